//! The digest algorithms' implementations, one module for each family.
//!
//! Blocks are independent of each other, so the interface takes many of them: [`Digester`] hashes
//! inputs of equal length side by side, each from the same [`State`] on. A state may have taken any
//! number of bytes before: blocks longer than a chunk are hashed piece by piece.

mod blake2b;
mod blake2s;
pub(crate) mod blake3;
pub(crate) mod crc;
#[cfg(test)]
mod kernel_tests;
mod kernels;
mod null;
mod rustcrypto;
mod selection;
mod self_test;
mod sha256;
mod siphash;
mod xxh3;
mod xxh64;

use std::sync::Arc;

use self::kernels::{Choice, Entry};
use self::rustcrypto::RustCrypto;
pub use self::selection::{Implementation, Status, implementations};
use crate::{Algorithm, Digest, Error};

/// An algorithm and the implementations that were chosen for it.
#[derive(Clone, Debug)]
pub struct Digester {
    algorithm: Algorithm,
    start: Arc<State>,
}

impl Digester {
    /// The best implementations of `algorithm` on this machine, or those that
    /// `BLKHASH_IMPLEMENTATION` names.
    pub fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, start: Arc::new(selection::start(algorithm)) }
    }

    /// One implementation of `algorithm` for everything, by its name.
    ///
    /// # Errors
    ///
    /// There is none of that name, this CPU cannot run it, or it failed its self-test.
    pub fn with_implementation(algorithm: Algorithm, name: &str) -> Result<Self, Error> {
        Ok(Self { algorithm, start: Arc::new(selection::forced(algorithm, name)?) })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The implementation that hashes `count` inputs side by side at the least cost for each.
    pub fn implementation_for(&self, count: usize) -> &'static Implementation {
        let known = implementations(self.algorithm);
        let kernel = self.start.kernel_for(count);
        let chosen = known.iter().find(|known| kernel.is_none_or(|it| it.name == known.variant));
        chosen.expect("every kernel is an implementation")
    }

    /// Whether it works on several places of its input at once, and so hardly waits for memory: input
    /// is best hashed where it lies. Anything else is faster over what a cache has just got.
    pub fn hides_latency(&self) -> bool {
        self.algorithm == Algorithm::Blake3
            || self.start.kernel_for(usize::MAX).is_some_and(|kernel| kernel.lanes > 1)
    }

    /// The state of a hash that has taken nothing yet.
    pub fn start(&self) -> State {
        State::clone(&self.start)
    }

    /// The digest of `input`.
    pub fn digest(&self, input: &[u8]) -> Digest {
        let mut digest = Digest::zeroed(self.algorithm.digest_size());
        self.finish_many(&self.start, &[input], digest.as_mut_bytes());
        digest
    }

    /// Hashes each of `inputs`, all of the same length, from `start` on, and writes their digests
    /// one after the other to `digests`.
    ///
    /// # Panics
    ///
    /// If `digests` is not as long as the digests of all inputs, or `start` belongs to another
    /// algorithm.
    pub fn finish_many(&self, start: &State, inputs: &[&[u8]], digests: &mut [u8]) {
        assert_eq!(start.algorithm(), self.algorithm, "a state belongs to one algorithm");
        assert_eq!(digests.len(), inputs.len() * self.algorithm.digest_size());
        debug_assert!(inputs.windows(2).all(|pair| pair[0].len() == pair[1].len()));
        start.finish_many(inputs, digests);
    }

    /// Feeds each of `inputs`, all of the same length, to the state of the same index.
    ///
    /// # Panics
    ///
    /// If there are not as many states as inputs.
    pub fn update_many(&self, states: &mut [State], inputs: &[&[u8]]) {
        assert_eq!(states.len(), inputs.len());
        debug_assert!(inputs.windows(2).all(|pair| pair[0].len() == pair[1].len()));
        State::update_many(states, inputs);
    }
}

/// What every implementation does with one input.
pub(crate) trait Hash: Clone {
    /// Takes the next bytes.
    fn update(&mut self, input: &[u8]);

    /// Writes the digest of everything taken; `digest` has its length.
    fn finalize_into(self, digest: &mut [u8]);

    /// Takes `count` zero bytes next.
    fn update_zeros(&mut self, count: u64) {
        update_zeros(self, count);
    }

    /// Hashes `inputs` side by side from this state on.
    fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
        finish_each(self, inputs, digests);
    }

    /// Feeds each of `inputs`, all of the same length, to the hash of the same index.
    fn update_many(hashes: &mut [&mut Self], inputs: &[&[u8]]) {
        update_each(hashes, inputs);
    }

    /// Which of its own kernels hashes `count` inputs, if it has any.
    fn kernel_for(&self, _count: usize) -> Option<&'static Entry> {
        None
    }
}

/// [`Hash::update_zeros`], one page after the other.
fn update_zeros<H: Hash>(hash: &mut H, mut count: u64) {
    static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
    while count > 0 {
        let length = count.min(ZEROS.len() as u64);
        hash.update(&ZEROS[..length as usize]);
        count -= length;
    }
}

/// [`Hash::update_many`], one input after the other.
fn update_each<H: Hash>(hashes: &mut [&mut H], inputs: &[&[u8]]) {
    for (hash, input) in hashes.iter_mut().zip(inputs) {
        hash.update(input);
    }
}

/// [`Hash::finish_many`], one input after the other.
fn finish_each<H: Hash>(start: &H, inputs: &[&[u8]], digests: &mut [u8]) {
    if inputs.is_empty() {
        return;
    }
    let size = digests.len() / inputs.len();
    for (index, input) in inputs.iter().enumerate() {
        let mut state = start.clone();
        state.update(input);
        state.finalize_into(&mut digests[index * size..][..size]);
    }
}

/// Defines [`State`] with one variant for each algorithm.
macro_rules! states {
    ($($algorithm:ident => $state:ty, $start:expr;)*) => {
        /// A hash that has taken some bytes and may take more.
        #[derive(Clone)]
        pub struct State(Inner);

        #[derive(Clone)]
        enum Inner {
            $($algorithm($state),)*
        }

        impl State {
            /// A hash that has taken nothing yet and uses the kernels that `accept` takes.
            fn with_kernels(algorithm: Algorithm, accept: &dyn Fn(&Entry) -> bool) -> Self {
                Self(match algorithm {
                    $(Algorithm::$algorithm => Inner::$algorithm($start(accept)),)*
                })
            }

            /// The algorithm it belongs to.
            pub fn algorithm(&self) -> Algorithm {
                match self.0 {
                    $(Inner::$algorithm(_) => Algorithm::$algorithm,)*
                }
            }

            /// Takes the next bytes.
            pub fn update(&mut self, input: &[u8]) {
                match &mut self.0 {
                    $(Inner::$algorithm(state) => state.update(input),)*
                }
            }

            /// Takes `count` zero bytes next. A CRC takes any number of them at once.
            pub fn update_zeros(&mut self, count: u64) {
                match &mut self.0 {
                    $(Inner::$algorithm(state) => state.update_zeros(count),)*
                }
            }

            fn finalize_into(self, digest: &mut [u8]) {
                match self.0 {
                    $(Inner::$algorithm(state) => state.finalize_into(digest),)*
                }
            }

            fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
                match &self.0 {
                    $(Inner::$algorithm(start) => start.finish_many(inputs, digests),)*
                }
            }

            /// Which of the algorithm's kernels hashes `count` inputs, if it has any.
            fn kernel_for(&self, count: usize) -> Option<&'static Entry> {
                match &self.0 {
                    $(Inner::$algorithm(state) => state.kernel_for(count),)*
                }
            }

            /// All states belong to one algorithm.
            fn update_many(states: &mut [Self], inputs: &[&[u8]]) {
                match states.first() {
                    None => {}
                    $(Some(Self(Inner::$algorithm(_))) => {
                        let hashes = states.iter_mut().map(|state| match &mut state.0 {
                            Inner::$algorithm(hash) => hash,
                            _ => panic!("states of one algorithm"),
                        });
                        Hash::update_many(&mut hashes.collect::<Vec<_>>(), inputs);
                    })*
                }
            }
        }
    };
}

states! {
    Null => null::Null, |_| null::Null;
    Crc32 => crc::Crc, |_| crc::Crc::crc32();
    Crc32c => crc::Crc, |_| crc::Crc::crc32c();
    Crc64 => crc::Crc, |_| crc::Crc::crc64();
    Crc64Nvme => crc::Crc, |_| crc::Crc::crc64nvme();
    Xxh64 => xxh64::Xxh64, |accept| xxh64::Xxh64::new(Choice::detect(accept));
    Xxh3 => xxh3::Xxh3, |_| xxh3::Xxh3::new();
    Xxh128 => xxh3::Xxh128, |_| xxh3::Xxh128::new();
    SipHash => siphash::SipHash, |_| siphash::SipHash::new();
    Md5 => RustCrypto<md5::Md5>, |_| RustCrypto::new();
    Sha1 => RustCrypto<sha1::Sha1>, |_| RustCrypto::new();
    Sha224 => sha256::Sha256, |accept| sha256::Sha256::new(sha256::SHA224, Choice::detect(accept));
    Sha256 => sha256::Sha256, |accept| sha256::Sha256::new(sha256::SHA256, Choice::detect(accept));
    Sha384 => RustCrypto<sha2::Sha384>, |_| RustCrypto::new();
    Sha512 => RustCrypto<sha2::Sha512>, |_| RustCrypto::new();
    Sha512_224 => RustCrypto<sha2::Sha512_224>, |_| RustCrypto::new();
    Sha512_256 => RustCrypto<sha2::Sha512_256>, |_| RustCrypto::new();
    Sha3_224 => RustCrypto<sha3::Sha3_224>, |_| RustCrypto::new();
    Sha3_256 => RustCrypto<sha3::Sha3_256>, |_| RustCrypto::new();
    Sha3_384 => RustCrypto<sha3::Sha3_384>, |_| RustCrypto::new();
    Sha3_512 => RustCrypto<sha3::Sha3_512>, |_| RustCrypto::new();
    Blake2b256 => blake2b::Blake2b, |accept| blake2b::Blake2b::new(32, Choice::detect(accept));
    Blake2b512 => blake2b::Blake2b, |accept| blake2b::Blake2b::new(64, Choice::detect(accept));
    Blake2s256 => blake2s::Blake2s, |_| blake2s::Blake2s::new(32);
    Blake3 => blake3::Blake3, |_| blake3::Blake3::new();
}

impl State {
    /// The digest of everything taken.
    pub fn finalize(self) -> Digest {
        let mut digest = Digest::zeroed(self.algorithm().digest_size());
        self.finalize_into(digest.as_mut_bytes());
        digest
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State({})", self.algorithm())
    }
}
