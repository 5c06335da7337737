//! The assumed costs of kernels: a first guess, before anything was measured on this CPU.
//!
//! A kernel's row in `kernels!` has its cost on an Intel Sapphire Rapids. Where the order of kernels
//! is different on other CPUs, they have a row here. To add a CPU, run
//! `blkhash bench --filter sha256` on it, and convert the cycles to those of the core for a KiB of
//! every lane: cycles for a block of 4 KiB, divided by 4, times the lanes.

use super::kernels::Entry;
use crate::cpu::{self, Model};

/// An assumed cost and the CPU on which it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guess {
    /// Core cycles for a KiB of every lane.
    pub cost: u32,
    /// The name of the CPU.
    pub measured_on: &'static str,
}

/// Returns the assumed cost of a kernel of `family` on this CPU.
pub(super) fn guess(family: &str, entry: &Entry) -> Guess {
    guess_for(cpu::model(), family, entry)
}

fn guess_for(model: Option<Model>, family: &str, entry: &Entry) -> Guess {
    let rows = CPUS.iter().filter(|cpu| model.is_some_and(|model| cpu.is(model)));
    let known = rows.flat_map(|cpu| cpu.costs.iter().map(move |cost| (cpu, cost)));
    let mut known = known.filter(|(_, (of, name, _))| *of == family && *name == entry.name);
    match known.next() {
        Some((cpu, (_, _, cost))) => Guess { cost: *cost, measured_on: cpu.name },
        None => Guess { cost: entry.cost, measured_on: "Intel Sapphire Rapids" },
    }
}

/// Costs of kernels on some CPUs.
struct Cpu {
    name: &'static str,
    /// The vendor and the family, as CPUID reports them.
    vendor: &'static str,
    family: u32,
    /// The family of kernels, the kernel, and its cost.
    costs: &'static [(&'static str, &'static str, u32)],
}

impl Cpu {
    fn is(&self, model: Model) -> bool {
        model.vendor == self.vendor.as_bytes() && model.family == self.family
    }
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

    fn sha256(model: Option<Model>, name: &str) -> Option<Guess> {
        let entry = Kernel::ENTRIES.iter().find(|entry| entry.name == name)?;
        Some(guess_for(model, Kernel::FAMILY, entry))
    }

    #[test]
    fn a_cpu_has_its_own_row_or_the_default() {
        let genoa = Some(Model { vendor: *b"AuthenticAMD", family: 0x19 });
        let others = [
            None,
            Some(Model { vendor: *b"GenuineIntel", family: 0x19 }),
            Some(Model { vendor: *b"AuthenticAMD", family: 0x1a }),
        ];
        for other in others {
            let entry = &Kernel::ENTRIES[0];
            let default = Guess { cost: entry.cost, measured_on: "Intel Sapphire Rapids" };
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
