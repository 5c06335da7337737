//! One algorithm, with the best implementations of this machine or one that was asked for.

use std::sync::Arc;

use super::selection::{self, Implementation, implementations};
use super::state::State;
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
        self.algorithm.properties().hides_latency
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
