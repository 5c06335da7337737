//! A hash of any algorithm, from the rows of the table.

use super::hash::Hash;
use super::kernels::{Choice, Entry, Kernel, Policy};
use super::rustcrypto::RustCrypto;
use super::tuner::Timing;
use super::{blake2b, blake2s, blake3, crc, null, sha256, sha512, siphash, xxh3, xxh64};
use crate::table::algorithms;
use crate::{Algorithm, Digest};

/// Returns the implementations that a row of the table names.
macro_rules! entries {
    (library, $name:literal) => {
        const { &[Entry::library($name)] }
    };
    (kernels, $kernel:path) => {
        <$kernel as Kernel>::ENTRIES
    };
    (per_cpu, $module:ident) => {
        $module::ENTRIES
    };
}

/// Returns the name of a row's family of kernels. A library is none.
macro_rules! family {
    (library, $name:literal) => {
        ""
    };
    (kernels, $kernel:path) => {
        <$kernel as Kernel>::FAMILY
    };
    (per_cpu, $module:ident) => {
        $module::FAMILY
    };
}

/// Returns the initial state of a row.
macro_rules! start {
    (library, $start:expr, $accept:ident, $policy:ident) => {
        $start
    };
    (kernels, $start:expr, $accept:ident, $policy:ident) => {
        $start(Choice::detect($accept, $policy))
    };
    (per_cpu, $start:expr, $accept:ident, $policy:ident) => {
        $start($accept, $policy)
    };
}

/// Defines [`State`] with one variant for each row of the table.
macro_rules! define {
    ($(
        $(#[$doc:meta])*
        $algorithm:ident: $name:literal $(| $alias:literal)*, $size:literal bytes, $strength:ident
            { $($properties:tt)* }
            $from:ident($($implementations:tt)*) => $hash:ty: $start:expr;
    )*) => {
        /// A hash in progress.
        #[derive(Clone)]
        pub struct State(pub(super) Inner);

        #[derive(Clone)]
        pub(super) enum Inner {
            $($algorithm($hash),)*
        }

        /// Returns the implementations of an algorithm: our own kernels, or the crate that computes
        /// it.
        pub(super) fn entries(algorithm: Algorithm) -> &'static [Entry] {
            match algorithm {
                $(Algorithm::$algorithm => entries!($from, $($implementations)*),)*
            }
        }

        /// Returns the name of the family of kernels that compute an algorithm.
        pub(super) fn family(algorithm: Algorithm) -> &'static str {
            match algorithm {
                $(Algorithm::$algorithm => family!($from, $($implementations)*),)*
            }
        }

        impl State {
            /// Returns the initial state of a hash with the kernels that `accept` allows.
            pub(super) fn with_kernels(
                algorithm: Algorithm,
                accept: &dyn Fn(&Entry) -> bool,
                policy: Policy,
            ) -> Self {
                Self(match algorithm {
                    $(Algorithm::$algorithm => {
                        Inner::$algorithm(start!($from, $start, accept, policy))
                    })*
                })
            }

            /// Returns the algorithm.
            pub fn algorithm(&self) -> Algorithm {
                match self.0 {
                    $(Inner::$algorithm(_) => Algorithm::$algorithm,)*
                }
            }

            /// Hashes the next bytes.
            pub fn update(&mut self, input: &[u8]) {
                match &mut self.0 {
                    $(Inner::$algorithm(state) => state.update(input),)*
                }
            }

            /// Hashes `count` zero bytes. A CRC takes a long run in one step.
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

            pub(super) fn finish_many(&self, inputs: &[&[u8]], digests: &mut [u8]) {
                match &self.0 {
                    $(Inner::$algorithm(start) => start.finish_many(inputs, digests),)*
                }
            }

            /// Returns the kernel that hashes `count` inputs, or `None` if the algorithm has no
            /// kernels.
            pub(super) fn kernel_for(&self, count: usize) -> Option<&'static Entry> {
                match &self.0 {
                    $(Inner::$algorithm(state) => state.kernel_for(count),)*
                }
            }

            /// Returns what this process has measured of the kernels of the algorithm.
            pub(super) fn timings(&self) -> Vec<(&'static Entry, Timing)> {
                match &self.0 {
                    $(Inner::$algorithm(state) => state.timings(),)*
                }
            }

            /// Appends each input to the state of the same index. All states belong to one
            /// algorithm.
            pub(super) fn update_many(states: &mut [Self], inputs: &[&[u8]]) {
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

algorithms!(define);

impl State {
    /// Returns the initial state of a hash with one implementation, whether it is usable or not.
    pub(super) fn only(algorithm: Algorithm, variant: &str) -> Self {
        Self::with_kernels(algorithm, &|entry| entry.name == variant, Policy::Guess)
    }

    /// Returns the digest of all bytes hashed.
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
