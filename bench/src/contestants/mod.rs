//! Implementations of the same algorithms in other libraries, with one interface.
//!
//! A contestant hashes many inputs of equal length. A library that takes one input at a time is
//! called for one after the other, as its users do. Contexts are created outside of the measured
//! time. Each contestant must give the same digests as blkhash before it is measured
//! ([`Contestant::verify`]).

mod af_alg;
mod botan;
mod coreutils;
mod crates;
mod libgcrypt;
mod libsodium;
mod openssl;
mod xxhash;

use blkhash::{Algorithm, Digester};

/// A library's implementation of an algorithm.
pub struct Contestant {
    /// The algorithm, if blkhash has it.
    pub algorithm: Option<Algorithm>,
    /// `ALGORITHM (LIBRARY)`.
    pub name: String,
    digest_size: usize,
    make: Box<dyn Fn() -> Box<HashMany> + Send + Sync>,
}

/// Hashes each input and writes the digests one after the other.
pub type HashMany = dyn FnMut(&[&[u8]], &mut [u8]);

/// A contestant, or the reason that it is missing, which becomes a note of the report.
pub type Entry = Result<Contestant, Absent>;

/// A contestant that this machine does not have.
pub struct Absent {
    pub name: String,
    pub reason: String,
}

/// Returns all contestants.
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
    /// Creates a contestant that hashes many inputs at a time. `make` is called once for each thread
    /// and sample.
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

    /// Creates a contestant that hashes one input at a time.
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

    /// Creates a contestant for a checksum that blkhash does not have.
    fn foreign(name: &str, digest_size: usize, hash: fn(&[u8], &mut [u8])) -> Self {
        Self {
            algorithm: None,
            name: name.to_owned(),
            digest_size,
            make: Box::new(move || Box::new(each(digest_size, hash))),
        }
    }

    /// Returns the length of a digest in bytes.
    pub fn digest_size(&self) -> usize {
        self.digest_size
    }

    /// Returns a function for one thread that hashes inputs of equal length.
    pub fn start(&self) -> Box<HashMany> {
        (self.make)()
    }

    /// Checks that it gives the same digests as blkhash, for lengths that affect padding.
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
