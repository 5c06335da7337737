//! Other libraries' implementations of the same algorithms, behind one shape.
//!
//! A contestant hashes many inputs of equal length; a library that takes one at a time is asked for
//! one after the other, as its users do. Contexts are made once, outside of what is timed. Before
//! anything is measured, every contestant gives the digests that ours gives ([`Contestant::verify`]).

mod af_alg;
mod botan;
mod coreutils;
mod crates;
mod libgcrypt;
mod libsodium;
mod openssl;
mod xxhash;

use blkhash::{Algorithm, Digester};

/// One library's way to compute an algorithm.
pub struct Contestant {
    /// The algorithm, where it is one of ours.
    pub algorithm: Option<Algorithm>,
    /// `ALGORITHM (LIBRARY)`
    pub name: String,
    digest_size: usize,
    make: Box<dyn Fn() -> Box<HashMany> + Send + Sync>,
}

/// Hashes each input and writes the digests one behind the other.
pub type HashMany = dyn FnMut(&[&[u8]], &mut [u8]);

/// A contestant, or why there is none: a row of the table either way.
pub type Entry = Result<Contestant, Absent>;

/// A contestant that this machine does not have.
pub struct Absent {
    pub name: String,
    pub reason: String,
}

/// All of them.
pub fn all() -> Vec<Entry> {
    let mut entries = Vec::new();
    entries.extend(openssl::contestants());
    entries.extend(libgcrypt::contestants());
    entries.extend(libsodium::contestants());
    entries.extend(botan::contestants());
    entries.extend(xxhash::contestants());
    entries.extend(crates::contestants());
    entries.extend(af_alg::contestants());
    entries.extend(coreutils::contestants());
    entries
}

impl Contestant {
    /// A library that hashes many inputs at a time; `make` makes what does, once for each thread.
    fn many<F>(
        algorithm: Algorithm,
        library: &str,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: FnMut(&[&[u8]], &mut [u8]) + 'static,
    {
        Self {
            algorithm: Some(algorithm),
            name: format!("{algorithm} ({library})"),
            digest_size: algorithm.digest_size(),
            make: Box::new(move || Box::new(make())),
        }
    }

    /// A library that hashes one input at a time.
    fn one<F>(
        algorithm: Algorithm,
        library: &str,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: FnMut(&[u8], &mut [u8]) + 'static,
    {
        let size = algorithm.digest_size();
        Self::many(algorithm, library, move || each(size, make()))
    }

    /// A checksum that is none of ours.
    fn foreign(name: &str, digest_size: usize, hash: fn(&[u8], &mut [u8])) -> Self {
        Self {
            algorithm: None,
            name: name.to_owned(),
            digest_size,
            make: Box::new(move || Box::new(each(digest_size, hash))),
        }
    }

    /// Length of a digest in bytes.
    pub fn digest_size(&self) -> usize {
        self.digest_size
    }

    /// What hashes inputs of equal length, for one thread.
    pub fn start(&self) -> Box<HashMany> {
        (self.make)()
    }

    /// Whether it computes what ours computes, over lengths that matter to padding.
    pub fn verify(&self) -> Result<(), String> {
        let Some(algorithm) = self.algorithm else {
            return Ok(());
        };
        let (digester, mut hash_many) = (Digester::new(algorithm), self.start());
        let content: Vec<u8> = (0..20 * 4096_usize).map(|i| (i % 251) as u8).collect();
        for length in [0, 1, 63, 64, 111, 112, 128, 240, 241, 1024, 4096] {
            let inputs: Vec<&[u8]> = (0..19).map(|i| &content[i * 4096..][..length]).collect();
            let mut digests = vec![0; inputs.len() * self.digest_size];
            hash_many(&inputs, &mut digests);
            for (input, digest) in inputs.iter().zip(digests.chunks_exact(self.digest_size)) {
                if digester.digest(input).as_bytes() != digest {
                    return Err(format!("{}: wrong digest of {length} bytes", self.name));
                }
            }
        }
        Ok(())
    }
}

/// Hashes one input after the other.
fn each(
    digest_size: usize,
    mut hash: impl FnMut(&[u8], &mut [u8]),
) -> impl FnMut(&[&[u8]], &mut [u8]) {
    move |inputs, digests| {
        for (input, digest) in inputs.iter().zip(digests.chunks_exact_mut(digest_size)) {
            hash(input, digest);
        }
    }
}
