//! An algorithm with the best implementations for this machine, or with a named one.

use std::sync::Arc;

use super::guess::guess;
use super::selection::{self, Implementation, implementations};
use super::state::{State, family};
use crate::{Algorithm, Digest, Error};

/// An algorithm and the implementations chosen for it.
#[derive(Clone, Debug)]
pub struct Digester {
    algorithm: Algorithm,
    start: Arc<State>,
    is_random: bool,
}

/// The time that an implementation took for some batches of a large job in this process.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Measurement {
    /// The implementation.
    pub implementation: &'static Implementation,
    /// Number of blocks in a batch.
    pub blocks: usize,
    /// Length of each block in bytes.
    pub block_size: usize,
    /// Time of the thread that hashed the batch. The time of a fast batch, not the mean.
    pub nanoseconds_per_byte: f64,
    /// Whether the implementation hashes such batches since.
    pub is_used: bool,
}

impl Digester {
    /// Chooses the implementations of `algorithm` that are assumed to be the best on this machine,
    /// or those that `BLKHASH_IMPLEMENTATION` names. A job of more than some 64 MiB measures the
    /// candidates with its own batches, and continues with the best.
    pub fn new(algorithm: Algorithm) -> Self {
        let start = Arc::new(selection::start(algorithm));
        Self { algorithm, start, is_random: selection::is_random(algorithm) }
    }

    /// Chooses the implementation of `algorithm` with this name for any number of inputs.
    ///
    /// # Errors
    ///
    /// Fails if no implementation has this name, it needs a feature that this CPU lacks or that was
    /// disabled, or it failed its self-test.
    pub fn with_implementation(algorithm: Algorithm, name: &str) -> Result<Self, Error> {
        let start = Arc::new(selection::forced(algorithm, name)?);
        Ok(Self { algorithm, start, is_random: false })
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the implementation for `count` inputs side by side: the fastest one, if this process
    /// has measured it, or else the one with the least assumed cost per input.
    pub fn implementation_for(&self, count: usize) -> &'static Implementation {
        let known = implementations(self.algorithm);
        let kernel = self.start.kernel_for(count);
        let chosen = known.iter().find(|known| kernel.is_none_or(|it| it.name == known.variant));
        chosen.expect("every kernel is an implementation")
    }

    /// Returns the assumed times for each number of inputs of one length from 0 to `most`, hashed by one thread. Only ratios
    /// matter.
    pub(crate) fn costs(&self, most: usize) -> Vec<u64> {
        let mut costs = vec![0];
        // Asking for the CPU takes time.
        let (mut last, mut cost) = (None, 1);
        for count in 1..=most {
            let kernel = self.start.kernel_for(count);
            let name = kernel.map(|kernel| kernel.name);
            if let Some(kernel) = kernel
                && name != last
            {
                cost = u64::from(guess(family(self.algorithm), kernel.name, kernel.cost).cost);
            }
            last = name;
            let lanes = kernel.map_or(1, |kernel| kernel.lanes);
            costs.push(cost + costs[count.saturating_sub(lanes)]);
        }
        costs
    }

    /// Returns whether each batch is hashed by a random implementation, for tests, as with
    /// `BLKHASH_IMPLEMENTATION=random`.
    pub fn is_random(&self) -> bool {
        self.is_random
    }

    /// Returns what this process has last measured for each number of blocks. The result is empty
    /// before a large job, and if an implementation was demanded.
    pub fn measurements(&self) -> Vec<Measurement> {
        let known = implementations(self.algorithm);
        let timings = self.start.timings().into_iter();
        timings
            .filter_map(|(kernel, timing)| {
                Some(Measurement {
                    implementation: known.iter().find(|it| it.variant == kernel.name)?,
                    blocks: timing.shape.0,
                    block_size: timing.shape.1,
                    nanoseconds_per_byte: timing.nanoseconds_per_byte,
                    is_used: timing.is_best,
                })
            })
            .collect()
    }

    /// Returns whether an implementation works on several places of its input at once, so that it
    /// hardly waits for memory. Such input is best hashed in place. Other algorithms are faster if
    /// the input was just read into a cache.
    pub fn hides_latency(&self) -> bool {
        self.algorithm.properties().hides_latency
            || self.start.kernel_for(usize::MAX).is_some_and(|kernel| kernel.lanes > 1)
    }

    /// Returns the initial state of a hash.
    pub fn start(&self) -> State {
        State::clone(&self.start)
    }

    /// Returns the digest of `input`.
    pub fn digest(&self, input: &[u8]) -> Digest {
        let mut digest = Digest::zeroed(self.algorithm.digest_size());
        self.finish_many(&self.start, &[input], digest.as_mut_bytes());
        digest
    }

    /// Hashes each of `inputs`, which all have the same length, from the state `start`, and writes
    /// their digests one after the other to `digests`.
    ///
    /// # Panics
    ///
    /// Panics if `digests` is not as long as the digests of all inputs, or `start` belongs to
    /// another algorithm.
    pub fn finish_many(&self, start: &State, inputs: &[&[u8]], digests: &mut [u8]) {
        assert_eq!(start.algorithm(), self.algorithm, "a state belongs to one algorithm");
        assert_eq!(digests.len(), inputs.len() * self.algorithm.digest_size());
        debug_assert!(inputs.windows(2).all(|pair| pair[0].len() == pair[1].len()));
        start.finish_many(inputs, digests);
    }

    /// Appends each of `inputs`, which all have the same length, to the state of the same index.
    ///
    /// # Panics
    ///
    /// Panics if the numbers of states and inputs differ.
    pub fn update_many(&self, states: &mut [State], inputs: &[&[u8]]) {
        assert_eq!(states.len(), inputs.len());
        debug_assert!(inputs.windows(2).all(|pair| pair[0].len() == pair[1].len()));
        State::update_many(states, inputs);
    }
}
