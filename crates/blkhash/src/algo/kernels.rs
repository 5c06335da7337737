//! Chooses the kernels of an algorithm: all that the CPU supports and that passed their self-test,
//! and of these one for each batch. A small job uses the one with the lowest assumed cost. A large
//! job times its own batches.

use std::thread::LocalKey;
use std::time::Instant;

use super::guess::guess;
use super::random;
use super::tuner::{CLASSES, Pending, Timing, Tuner};
use crate::cpu::Feature;

/// A way to run the compression function of an algorithm.
pub(super) trait Kernel: Copy + 'static {
    /// The name of the family.
    const FAMILY: &'static str;

    /// All kernels for CPUs of this architecture, the portable one first.
    const ENTRIES: &'static [Entry];

    /// Number of lanes of the widest kernel.
    const MAX_LANES: usize = {
        let (mut widest, mut index) = (1, 0);
        while index < Self::ENTRIES.len() {
            let lanes = Self::ENTRIES[index].lanes;
            widest = if lanes > widest { lanes } else { widest };
            index += 1;
        }
        widest
    };

    /// Returns the kernel of an entry, if this CPU can run it.
    fn detect(entry: &Entry) -> Option<Self>;

    /// Returns the kernel's entry.
    fn entry(self) -> &'static Entry;

    /// Returns what this process has learnt about the kernels of the family.
    fn tuner() -> &'static Tuner;

    /// Returns the counters of this thread.
    fn pending() -> &'static LocalKey<Pending>;
}

/// Properties of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The implementation's name without the algorithm's.
    pub name: &'static str,
    /// Number of inputs that it hashes side by side.
    pub lanes: usize,
    /// The CPU feature that it needs.
    pub feature: Option<Feature>,
    /// Core cycles for a KiB of every lane, however many lanes are filled, measured on a Sapphire
    /// Rapids, or computed for a Neoverse V1. Only the ratios matter. The module `guess` has the costs
    /// on other CPUs.
    pub cost: u32,
}

impl Entry {
    /// Returns the entry of a crate that computes an algorithm.
    pub const fn library(name: &'static str) -> Self {
        Self { name, lanes: 1, feature: None, cost: 1 }
    }
}

/// Defines the enum `Kernel` of a family's kernels and the method that runs them. Each row has the
/// variant and its token, the module, the name, the lanes and the cost.
///
/// The function of every module has the name of the method. It takes the token, a state and an
/// input for each lane, and the last argument of the method.
macro_rules! kernels {
    (
        family $family:literal;

        $(#[$doc:meta])*
        fn $run:ident($states:ident: &mut [$state:ty], $inputs:ident: &[&[u8]], $extent:ident: $type:ty);

        $(
            $(#[cfg($condition:meta)])?
            $variant:ident($token:ident): $module:ident, $name:literal, $lanes:literal, $cost:literal;
        )*
    ) => {
        /// A way to run the compression function.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Kernel {
            $(
                $(#[cfg($condition)])?
                $variant($crate::cpu::$token),
            )*
        }

        impl $crate::algo::kernels::Kernel for Kernel {
            const FAMILY: &'static str = $family;

            const ENTRIES: &'static [Entry] = &[$(
                $(#[cfg($condition)])?
                Entry {
                    name: $name,
                    lanes: $lanes,
                    feature: $crate::cpu::$token::FEATURE,
                    cost: $cost,
                },
            )*];

            fn detect(entry: &Entry) -> Option<Self> {
                match entry.name {
                    $(
                        $(#[cfg($condition)])?
                        $name => $crate::cpu::$token::detect().map(Self::$variant),
                    )*
                    _ => None,
                }
            }

            fn entry(self) -> &'static Entry {
                match self {
                    $(
                        $(#[cfg($condition)])?
                        Self::$variant(_) => const {
                            &Entry {
                                name: $name,
                                lanes: $lanes,
                                feature: $crate::cpu::$token::FEATURE,
                                cost: $cost,
                            }
                        },
                    )*
                }
            }

            fn tuner() -> &'static $crate::algo::tuner::Tuner {
                static TUNER: $crate::algo::tuner::Tuner = $crate::algo::tuner::Tuner::new();
                &TUNER
            }

            fn pending() -> &'static std::thread::LocalKey<$crate::algo::tuner::Pending> {
                thread_local! {
                    static PENDING: $crate::algo::tuner::Pending =
                        const { $crate::algo::tuner::Pending::new() };
                }
                &PENDING
            }
        }

        impl Kernel {
            $(#[$doc])*
            /// There are at most as many inputs as the kernel has lanes.
            fn $run(self, $states: &mut [$state], $inputs: &[&[u8]], $extent: $type) {
                debug_assert!($states.len() == $inputs.len());
                debug_assert!($states.len() <= self.entry().lanes);
                match self {
                    $(
                        $(#[cfg($condition)])?
                        Self::$variant(token) => $crate::algo::kernels::fill_lanes(
                            $states,
                            $inputs,
                            |states: &mut [$state; $lanes], inputs| {
                                $module::$run(token, states, inputs, $extent);
                            },
                        ),
                    )*
                }
            }
        }

        const MAX_LANES: usize = <Kernel as $crate::algo::kernels::Kernel>::MAX_LANES;

        const _: () = {
            use $crate::algo::kernels;
            let entries = <Kernel as kernels::Kernel>::ENTRIES;
            assert!(entries.len() <= kernels::MAX_KERNELS, "more kernels than a choice has room for");
            assert!(MAX_LANES <= kernels::MAX_LANES, "more lanes than the self-test fills");
        };
    };
}

pub(super) use kernels;

/// The kernels of an algorithm that may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<K> {
    /// The kernels, each at its index in [`Kernel::ENTRIES`].
    kernels: [Option<K>; MAX_KERNELS],
    /// The index of the kernel that is assumed to be the best, for each [`class`] of batches.
    guess: [u8; CLASSES],
    policy: Policy,
}

/// The way in which the kernel for a batch is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// By its assumed cost.
    Guess,
    /// By its assumed cost, and in a large job by measurement.
    Learn,
    /// At random, for tests.
    Random,
}

impl<K: Kernel> Choice<K> {
    /// Chooses all kernels that this CPU can run and `accept` allows.
    pub fn detect(accept: impl Fn(&Entry) -> bool, policy: Policy) -> Self {
        let mut kernels = [None; MAX_KERNELS];
        for (slot, entry) in kernels.iter_mut().zip(K::ENTRIES) {
            *slot = accept(entry).then(|| K::detect(entry)).flatten();
        }
        let choice = Self { kernels, guess: [0; CLASSES], policy };
        let costs = costs::<K>();
        let guess = std::array::from_fn(|class| {
            let rate = |index: &usize| rate::<K>(&costs, *index, class + 1);
            choice.present().max_by_key(rate).unwrap_or(0) as u8
        });
        Self { guess, ..choice }
    }

    /// Returns the kernel with the least cost per input for `count` inputs of equal length.
    pub fn best_for(&self, count: usize) -> K {
        let class = class(count);
        let learnt = match self.policy {
            Policy::Learn => K::tuner().best(class),
            Policy::Guess | Policy::Random => None,
        };
        // Algorithms of a family share what is learnt, and one of them may lack a kernel that failed its
        // self-test.
        let learnt = learnt.and_then(|index| self.kernels[index]);
        learnt
            .or(self.kernels[usize::from(self.guess[class])])
            .expect("the portable kernel is there")
    }

    /// Passes the kernel for one input of `length` bytes to `run`.
    pub fn with_one<T>(&self, length: usize, run: impl FnOnce(K) -> T) -> T {
        self.timed(1, length, run)
    }

    /// Cuts inputs of equal length into batches, with the `each` items that belong to every input,
    /// and passes each batch to `run`. A kernel gets as many inputs as it has lanes. If fewer are
    /// left, the kernel that is best for that many gets them.
    pub fn for_each_batch<T>(
        &self,
        mut inputs: &[&[u8]],
        mut items: &mut [T],
        each: usize,
        mut run: impl FnMut(K, &[&[u8]], &mut [T]),
    ) {
        let Some(length) = inputs.first().map(|input| input.len()) else { return };
        self.timed(inputs.len(), length, move |mut kernel| {
            loop {
                let count = inputs.len().min(kernel.entry().lanes);
                let (batch, more_inputs) = inputs.split_at(count);
                let (batch_items, more_items) = items.split_at_mut(count * each);
                run(kernel, batch, batch_items);
                (inputs, items) = (more_inputs, more_items);
                if inputs.is_empty() {
                    return;
                }
                if self.policy == Policy::Random || inputs.len() < kernel.entry().lanes {
                    kernel = self.kernel_for(inputs.len());
                }
            }
        });
    }

    /// Passes a kernel for `count` inputs of `length` bytes to `run`, and measures how long it takes
    /// if the tuner wants to know.
    fn timed<T>(&self, count: usize, length: usize, run: impl FnOnce(K) -> T) -> T {
        let (tuner, class, bytes) = (K::tuner(), class(count), count * length);
        let turn = (self.policy == Policy::Learn && bytes >= MIN_TIMED)
            .then(|| K::pending().with(|pending| tuner.count(pending, class, bytes)))
            .filter(|is_due| *is_due)
            .and_then(|_| tuner.turn(class, (count, length), || self.candidates(count)));
        let candidate = turn.and_then(|turn| Some((turn, self.kernels[turn.kernel]?)));
        let Some((turn, kernel)) = candidate else { return run(self.kernel_for(count)) };
        let start = Instant::now();
        let result = run(kernel);
        tuner.record(turn, start.elapsed().as_nanos() as f64);
        result
    }

    fn kernel_for(&self, count: usize) -> K {
        match self.policy {
            Policy::Guess | Policy::Learn => self.best_for(count),
            Policy::Random => {
                let index = self.present().nth(random::below(self.present().count()));
                index.and_then(|index| self.kernels[index]).unwrap_or_else(|| self.best_for(count))
            }
        }
    }

    /// Returns the kernels that could be the best for `count` inputs: that in use first, then those
    /// whose assumed cost is not too high.
    fn candidates(&self, count: usize) -> Vec<usize> {
        let costs = costs::<K>();
        let rate = |index| rate::<K>(&costs, index, count);
        let guess = usize::from(self.guess[class(count)]);
        let current = K::tuner().best(class(count)).unwrap_or(guess);
        let others = self.present().filter(|index| {
            *index != current && (*index == guess || rate(*index) * WRONG_BY >= rate(guess))
        });
        std::iter::once(current).chain(others).collect()
    }

    /// Returns what this process has measured of the kernels, if it learns.
    pub fn timings(&self) -> Vec<(&'static Entry, Timing)> {
        if self.policy != Policy::Learn {
            return Vec::new();
        }
        let timings = K::tuner().timings().into_iter();
        timings.map(|timing| (&K::ENTRIES[timing.kernel], timing)).collect()
    }

    /// Returns the indices of the kernels.
    fn present(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MAX_KERNELS).filter(|index| self.kernels[*index].is_some())
    }
}

/// Returns the assumed costs of all kernels.
fn costs<K: Kernel>() -> [u32; MAX_KERNELS] {
    let mut costs = [0; MAX_KERNELS];
    for (cost, entry) in costs.iter_mut().zip(K::ENTRIES) {
        *cost = guess(K::FAMILY, entry.name, entry.cost).cost;
    }
    costs
}

/// Returns the relative speed of the kernel `index` for `count` inputs side by side.
fn rate<K: Kernel>(costs: &[u32; MAX_KERNELS], index: usize, count: usize) -> usize {
    (count.min(K::ENTRIES[index].lanes) << 32) / costs[index] as usize
}

/// Returns the class of batches of `count` inputs, from 0. Larger batches than any kernel has lanes
/// are all alike.
fn class(count: usize) -> usize {
    count.clamp(1, CLASSES) - 1
}

/// Cuts the input of a hash into blocks of `N` bytes. Whole blocks go to `compress`, bytes after
/// the last one to `buffer`, and `length` counts all bytes of the hash.
pub(super) fn take_blocks<const N: usize>(
    buffer: &mut [u8; N],
    length: &mut u64,
    mut input: &[u8],
    mut compress: impl FnMut(&[u8]),
) {
    let buffered = (*length % N as u64) as usize;
    *length += input.len() as u64;
    if buffered > 0 {
        let (head, rest) = input.split_at(input.len().min(N - buffered));
        buffer[buffered..][..head.len()].copy_from_slice(head);
        if buffered + head.len() < N {
            return;
        }
        compress(buffer);
        input = rest;
    }
    let (whole, tail) = input.split_at(input.len() / N * N);
    if !whole.is_empty() {
        compress(whole);
    }
    buffer[..tail.len()].copy_from_slice(tail);
}

/// Runs a kernel of `N` lanes over up to `N` states and inputs. Unused lanes repeat the first one,
/// and their results are dropped.
pub(super) fn fill_lanes<S: Copy, const N: usize>(
    states: &mut [S],
    inputs: &[&[u8]],
    run: impl FnOnce(&mut [S; N], [&[u8]; N]),
) {
    if let (Ok(states), Ok(inputs)) = (<&mut [S; N]>::try_from(&mut *states), inputs.try_into()) {
        return run(states, inputs);
    }
    let mut all_states = [states[0]; N];
    let mut all_inputs = [inputs[0]; N];
    all_states[..states.len()].copy_from_slice(states);
    all_inputs[..inputs.len()].copy_from_slice(inputs);
    run(&mut all_states, all_inputs);
    states.copy_from_slice(&all_states[..states.len()]);
}

/// Maximum number of kernels of an algorithm. Every hash holds its choice of them.
pub(super) const MAX_KERNELS: usize = 8;

/// Maximum number of lanes of a kernel.
pub(super) const MAX_LANES: usize = CLASSES;

/// Bytes of a batch that are timed. The clock is too coarse for less.
const MIN_TIMED: usize = 32 << 10;

/// The factor by which the ratio of two assumed costs may be wrong.
const WRONG_BY: usize = 2;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::sha256::Kernel as Sha256;
    use super::*;

    fn names(choice: &Choice<Sha256>, count: usize) -> Vec<(&'static str, usize)> {
        let inputs = vec![&b"input"[..]; count];
        let (mut items, mut batches) = (vec![0; count], Vec::new());
        choice.for_each_batch(&inputs, &mut items, 1, |kernel, inputs, items| {
            batches.push((kernel.entry().name, inputs.len()));
            assert_eq!(inputs.len(), items.len());
            items.iter_mut().for_each(|item| *item += 1);
        });
        assert!(items.iter().all(|item| *item == 1));
        batches
    }

    #[test]
    fn every_kernel_is_chosen_at_random() {
        let choice = Choice::<Sha256>::detect(|_| true, Policy::Random);
        let mut seen = HashSet::new();
        for _ in 0..1000 {
            seen.extend(names(&choice, 20).into_iter().map(|(name, _)| name));
        }
        assert_eq!(seen.len(), choice.present().count());
    }

    #[test]
    fn the_guess_has_the_highest_rate_for_each_number_of_inputs() {
        let choice = Choice::<Sha256>::detect(|_| true, Policy::Guess);
        let costs = costs::<Sha256>();
        for count in 1..100 {
            let mut left = count;
            for (name, taken) in names(&choice, count) {
                let index = Sha256::ENTRIES.iter().position(|entry| entry.name == name).unwrap();
                let rate = |index: usize| rate::<Sha256>(&costs, index, left);
                assert!(choice.present().all(|other| rate(other) <= rate(index)), "{name}, {left}");
                assert_eq!(taken, left.min(Sha256::ENTRIES[index].lanes));
                left -= taken;
            }
            assert_eq!(left, 0);
        }
    }

    #[test]
    fn candidates_are_the_guess_and_those_that_could_be_as_fast() {
        let choice = Choice::<Sha256>::detect(|_| true, Policy::Learn);
        let costs = costs::<Sha256>();
        for count in [1, 2, 4, 9, 16, 64] {
            let candidates = choice.candidates(count);
            let rate = |index: usize| rate::<Sha256>(&costs, index, count);
            assert_eq!(Sha256::ENTRIES[candidates[0]], *choice.best_for(count).entry());
            for index in choice.present() {
                let could_be = 2 * rate(index) >= rate(candidates[0]);
                assert_eq!(candidates.contains(&index), could_be, "{index} for {count}");
            }
        }
    }
}
