//! The object of `blkhash algorithms`.

use blkrecord::record;

record! {
    /// An algorithm.
    pub struct Algorithm<'a> {
        /// the algorithm, as `blksum --digest` takes it
        pub name: &'static str,
        /// other names that options take
        pub aliases: &'static [&'static str],
        /// bits of a digest
        pub digest_bits: usize,
        /// `none`, `error detection`, `broken`, `cryptographic` or `keyed`
        pub strength: String,
        /// the FIPS standard that defines it; null if none does
        pub standard: Option<&'static str>,
        /// whether a digest fits the 32 bytes that btrfs has for a checksum
        pub fits_32_bytes: bool,
        /// the licence of the reference code; null if it is not known here
        pub licence: Option<&'static str>,
        /// whether the Linux kernel has the algorithm
        pub linux: bool,
        /// its name in the kernel's crypto API; null if it is not there
        pub kernel_name: Option<&'static str>,
        /// well-known users
        pub used_by: &'static [&'static str],
        /// the CPUs that `assumed_cycles_per_byte` was measured on; null if there is only one implementation, or none was
        /// measured on this architecture
        pub assumed_of: Option<String>,
        /// every implementation for CPUs of this architecture
        pub implementations: Vec<Implementation>,
        /// the name of this CPU
        #[absent("without `--measure`")]
        pub cpu: Option<&'a str>,
        /// the implementation that a large job would choose for such batches on this CPU; null if the CPU runs only one
        #[absent("without `--measure`")]
        pub measured_best: Option<Option<&'a str>>,
        /// implementations in the kernel's crypto API, from /proc/crypto, the preferred one first
        #[absent("without `--kernel`")]
        pub kernel: Option<Vec<&'a Driver>>,
    }
}

record! {
    /// An implementation here.
    pub struct Implementation {
        /// its name, as `--implementation` takes it
        pub name: String,
        /// blocks that it hashes side by side
        pub lanes: usize,
        /// the CPU feature that it needs, as `BLKHASH_CPU_DISABLE` takes it; null if none
        pub needs: Option<&'static str>,
        /// its place in the order of preference with all lanes filled, from 1; null if it is the only one
        pub rank: Option<usize>,
        /// what it is ranked by: core cycles for a byte with all lanes filled, compiled in, not measured on this CPU; null if
        /// `assumed_of` is null
        pub assumed_cycles_per_byte: Option<f64>,
        /// MiB in a second on one thread of this CPU, 16 blocks of 4 KiB at a time; null if this CPU cannot run it
        #[absent("without `--measure`")]
        pub measured_mib_per_second: Option<Option<f64>>,
        /// for which numbers of blocks at a time it is used on this CPU: pairs of the first and the last, which is null if there
        /// is no end; empty if it is not used
        pub chosen: Vec<(usize, Option<usize>)>,
        /// why it is not used; null if it is
        pub reason: Option<String>,
        /// `passed`, `failed`, or `not run` if this CPU cannot run it
        pub selftest: &'static str,
    }
}

record! {
    /// An implementation in the kernel.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Driver {
        /// the algorithm
        pub name: String,
        /// the implementation
        pub driver: String,
        /// the kernel uses the one with the highest; null if /proc/crypto does not say
        pub priority: Option<i64>,
        /// the result of the kernel's self-test
        pub selftest: String,
    }
}
