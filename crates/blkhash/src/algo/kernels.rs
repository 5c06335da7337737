//! Chooses the kernels of an algorithm: all that the CPU supports and that passed their self-test,
//! and of these the cheapest for each batch.

use super::guess::guess;
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
}

/// Properties of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The implementation's name without that of the algorithm.
    pub name: &'static str,
    /// Number of inputs that it hashes side by side.
    pub lanes: usize,
    /// The CPU feature that it needs.
    pub feature: Option<Feature>,
    /// Core cycles for a KiB of every lane, however many lanes are filled, measured on a Sapphire
    /// Rapids. Only the ratios matter. The module `guess` has the costs on other CPUs.
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
}

impl<K: Kernel> Choice<K> {
    /// Chooses all kernels that this CPU can run and `accept` allows.
    pub fn detect(accept: impl Fn(&Entry) -> bool) -> Self {
        let mut kernels = [None; MAX_KERNELS];
        for (slot, entry) in kernels.iter_mut().zip(K::ENTRIES) {
            *slot = accept(entry).then(|| K::detect(entry)).flatten();
        }
        let mut costs = [0; MAX_KERNELS];
        for (cost, entry) in costs.iter_mut().zip(K::ENTRIES) {
            *cost = guess(K::FAMILY, entry).cost;
        }
        let present = || (0..MAX_KERNELS).filter(|index| kernels[*index].is_some());
        let guess = std::array::from_fn(|class| {
            let rate = |index: &usize| rate(K::ENTRIES[*index].lanes, costs[*index], class + 1);
            present().max_by_key(rate).unwrap_or(0) as u8
        });
        Self { kernels, guess }
    }

    /// Returns the kernel with the least cost per input for `count` inputs of equal length.
    pub fn best_for(&self, count: usize) -> K {
        let index = usize::from(self.guess[class(count)]);
        self.kernels[index].expect("the portable kernel is always there")
    }

    /// Cuts inputs of equal length into batches, with the `each` items that belong to every input.
    /// Each batch goes to the kernel that is best for the inputs that are left.
    pub fn for_each_batch<T>(
        &self,
        mut inputs: &[&[u8]],
        mut items: &mut [T],
        each: usize,
        mut run: impl FnMut(K, &[&[u8]], &mut [T]),
    ) {
        while !inputs.is_empty() {
            let kernel = self.best_for(inputs.len());
            let count = inputs.len().min(kernel.entry().lanes);
            let (batch, more_inputs) = inputs.split_at(count);
            let (batch_items, more_items) = items.split_at_mut(count * each);
            run(kernel, batch, batch_items);
            (inputs, items) = (more_inputs, more_items);
        }
    }
}

/// Returns the relative speed of a kernel for `count` inputs side by side.
fn rate(lanes: usize, cost: u32, count: usize) -> usize {
    (count.min(lanes) << 32) / cost as usize
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
pub(super) const MAX_LANES: usize = 16;

/// Number of classes of batches.
const CLASSES: usize = MAX_LANES;
