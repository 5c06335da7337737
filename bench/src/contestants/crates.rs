//! Rust crates, called directly.

use blake2b_simd::Params;
use blake2b_simd::many::{HashManyJob, hash_many};
use blkhash::Algorithm;
use sha2::Digest;

use super::{Contestant, Entry};

pub fn contestants() -> Vec<Entry> {
    vec![
        Ok(Contestant::one(Algorithm::Sha256, "crate sha2", || {
            |input: &[u8], out: &mut [u8]| {
                out.copy_from_slice(&sha2::Sha256::digest(input));
            }
        })),
        Ok(Contestant::one(Algorithm::Sha512, "crate sha2", || {
            |input: &[u8], out: &mut [u8]| {
                out.copy_from_slice(&sha2::Sha512::digest(input));
            }
        })),
        Ok(Contestant::one(Algorithm::Blake2b256, "crate blake2b_simd", || {
            |input: &[u8], out: &mut [u8]| {
                out.copy_from_slice(Params::new().hash_length(32).hash(input).as_bytes());
            }
        })),
        Ok(Contestant::many(Algorithm::Blake2b256, "crate blake2b_simd hash_many", || {
            |inputs: &[&[u8]], out: &mut [u8]| {
                let params = Params::new().hash_length(32).clone();
                for (inputs, out) in inputs.chunks(JOBS).zip(out.chunks_mut(32 * JOBS)) {
                    let mut jobs: Vec<_> =
                        inputs.iter().map(|input| HashManyJob::new(&params, input)).collect();
                    hash_many(&mut jobs);
                    for (job, out) in jobs.iter().zip(out.chunks_exact_mut(32)) {
                        out.copy_from_slice(job.to_hash().as_bytes());
                    }
                }
            }
        })),
        Ok(Contestant::one(Algorithm::Blake3, "crate blake3, its authors' assembly", || {
            |input: &[u8], out: &mut [u8]| {
                out.copy_from_slice(blake3::hash(input).as_bytes());
            }
        })),
        Ok(Contestant::one(Algorithm::Xxh64, "crate xxhash-rust", || {
            |input: &[u8], out: &mut [u8]| {
                out.copy_from_slice(&xxhash_rust::xxh64::xxh64(input, 0).to_be_bytes());
            }
        })),
        Ok(Contestant::one(Algorithm::Xxh3, "crate xxhash-rust", || {
            |input: &[u8], out: &mut [u8]| {
                out.copy_from_slice(&xxhash_rust::xxh3::xxh3_64(input).to_be_bytes());
            }
        })),
    ]
}

/// Number of jobs passed to blake2b_simd at once.
const JOBS: usize = 16;
