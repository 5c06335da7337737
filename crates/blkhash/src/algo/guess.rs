//! The assumed costs of kernels: a first guess, before anything was measured on this CPU.
//! docs/inside/decisions/kernels.md says why a guess is enough.
//!
//! A kernel's row in `kernels!` has its cost on an Intel Sapphire Rapids. Kernels for ARM have the
//! bound of a Neoverse V1 that `scripts/arm-bounds` computes. Where the order of kernels is different
//! on other CPUs, they have a row here. To add a CPU, run `blkhash bench --filter sha256` on it, and
//! convert the cycles to cycles of the core for a KiB of every lane: cycles for a block of 4 KiB, divided by 4, times
//! the lanes.

use crate::cpu;

/// An assumed cost and the CPU on which it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guess {
    /// Core cycles for a KiB of every lane.
    pub cost: u32,
    /// The name of the CPU.
    pub measured_on: &'static str,
}

/// Returns the assumed cost of the kernel `name` of `family` on this CPU. `default` is its cost on a
/// Sapphire Rapids.
pub(super) fn guess(family: &str, name: &str, default: u32) -> Guess {
    guess_for(cpu::vendor(), cpu::family, (family, name), default)
}

/// Asks for the family of the CPU only if there is a row for its vendor.
fn guess_for(
    vendor: Option<[u8; 12]>,
    family_of_cpu: impl Fn() -> Option<u32>,
    kernel: (&str, &str),
    default: u32,
) -> Guess {
    let of_vendor = |cpu: &&Cpu| vendor.is_some_and(|vendor| vendor == cpu.vendor.as_bytes());
    let rows = CPUS.iter().filter(of_vendor).filter(|cpu| family_of_cpu() == Some(cpu.family));
    let known = rows.flat_map(|cpu| cpu.costs.iter().map(move |cost| (cpu, cost)));
    let mut known = known.filter(|(_, (family, name, _))| (*family, *name) == kernel);
    match known.next() {
        Some((cpu, (_, _, cost))) => Guess { cost: *cost, measured_on: cpu.name },
        None => Guess { cost: default, measured_on: DEFAULT_CPU },
    }
}

/// The CPU of the costs in the rows of the kernels.
const DEFAULT_CPU: &str = if cfg!(target_arch = "x86_64") {
    "Intel Sapphire Rapids"
} else {
    "no CPU of this architecture"
};

/// Costs of kernels on some CPUs.
struct Cpu {
    name: &'static str,
    /// The vendor and the family, as CPUID reports them.
    vendor: &'static str,
    family: u32,
    /// The family of kernels, the kernel, and its cost.
    costs: &'static [(&'static str, &'static str, u32)],
}

/// Families 19h and 1Ah are Zen 3 to 5. Zen 3 has no AVX-512, and nothing is known of Zen 5.
const CPUS: &[Cpu] = &[Cpu {
    name: "AMD EPYC Genoa",
    vendor: "AuthenticAMD",
    family: 0x19,
    costs: &[
        ("sha256", "x86_sha", 2052),
        ("sha256", "x86_sha-x2", 2096),
        ("sha256", "x86_sha-x4", 3272),
        ("sha256", "avx512-x16", 17_488),
    ],
}];

#[cfg(test)]
mod tests {
    use super::super::kernels::Kernel as _;
    use super::super::sha256::Kernel;
    use super::*;

    type Model = Option<([u8; 12], u32)>;

    fn sha256(model: Model, name: &str) -> Option<Guess> {
        let entry = Kernel::ENTRIES.iter().find(|entry| entry.name == name)?;
        let (vendor, family) = model.unzip();
        Some(guess_for(vendor, || family, (Kernel::FAMILY, name), entry.cost))
    }

    #[test]
    fn a_cpu_has_its_own_row_or_the_default() {
        let genoa = Some((*b"AuthenticAMD", 0x19));
        let others = [None, Some((*b"GenuineIntel", 0x19)), Some((*b"AuthenticAMD", 0x1a))];
        for other in others {
            let entry = &Kernel::ENTRIES[0];
            let default = Guess { cost: entry.cost, measured_on: DEFAULT_CPU };
            assert_eq!(sha256(other, entry.name), Some(default));
        }
        if cfg!(target_arch = "x86_64") {
            let x2 = Guess { cost: 2096, measured_on: "AMD EPYC Genoa" };
            assert_eq!(sha256(genoa, "x86_sha-x2"), Some(x2));
            assert_eq!(sha256(others[1], "x86_sha-x2").unwrap().cost, 3190);
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn rows_name_kernels() {
        let all = CPUS.iter().flat_map(|cpu| cpu.costs);
        for (family, name, _) in all.filter(|(family, ..)| *family == Kernel::FAMILY) {
            let known = Kernel::ENTRIES.iter().any(|entry| entry.name == *name);
            assert!(known, "{family}-{name}");
        }
    }
}
