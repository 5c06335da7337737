//! The machine that ran the benchmark.

use std::fs;

use blkrecord::record;

record! {
    /// The properties of a machine that affect the figures.
    #[derive(Clone, Debug)]
    pub struct Machine {
        /// the model of the CPU
        pub cpu: String,
        /// features that hashing can use, as Linux names them
        pub features: Vec<String>,
        /// processors that the process may use
        pub processors: usize,
        /// operating system and its release
        pub kernel: String,
        /// compiler, and whether it optimised
        pub compiler: String,
        /// when it began, in UTC: `2026-01-31 23:59`
        pub date: String,
        /// bytes of the last-level cache; null if the system does not say
        pub last_level_cache: Option<u64>,
    }
}

impl Machine {
    /// Returns the current state of this machine.
    pub fn this() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let system = rustix::system::uname();
        let [name, release] = [system.sysname(), system.release()];
        Self {
            cpu: cpu_name(&cpuinfo),
            features: features(&cpuinfo),
            processors: blksys::allowed_cores().len().max(1),
            kernel: format!("{} {}", name.to_string_lossy(), release.to_string_lossy()),
            compiler: compiler(),
            date: blksys::now()[.."2026-01-31T23:59".len()].replace('T', " "),
            last_level_cache: last_level_cache(),
        }
    }
}

fn compiler() -> String {
    let level = if cfg!(debug_assertions) { "with debug assertions" } else { "optimised" };
    format!("{}, {level}", env!("BLKBENCH_COMPILER"))
}

fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(key, value)| (key.trim(), value.trim()))
        .find(|(key, _)| *key == name)
        .map(|(_, v)| v)
}

fn cpu_name(cpuinfo: &str) -> String {
    let Some(name) = field(cpuinfo, "model name") else {
        return format!("unknown {}", std::env::consts::ARCH);
    };
    let numbers = [field(cpuinfo, "cpu family"), field(cpuinfo, "model")];
    match numbers {
        [Some(family), Some(model)] => format!("{name} (family {family}, model {model})"),
        _ => name.to_owned(),
    }
}

fn features(cpuinfo: &str) -> Vec<String> {
    let all = field(cpuinfo, "flags").or_else(|| field(cpuinfo, "Features")).unwrap_or_default();
    let all: Vec<&str> = all.split_whitespace().collect();
    RELEVANT.iter().filter(|name| all.contains(name)).map(|name| (*name).to_owned()).collect()
}

fn last_level_cache() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = caches.flatten().filter_map(|entry| {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
        let level: u32 = read("level")?.trim().parse().ok()?;
        Some((level, parse_size(read("size")?.trim())?))
    });
    sizes.max().map(|(_, size)| size)
}

/// Parses a size such as `480M` or `2048K`.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Returns the available memory in bytes, if it is known.
pub fn available_memory() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes =
        field(&meminfo, "MemAvailable")?.strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(kibibytes << 10)
}

/// CPU features that hashes can use, with their names in Linux.
const RELEVANT: &[&str] = &[
    "sse4_2",
    "pclmulqdq",
    "bmi2",
    "avx2",
    "sha_ni",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512ifma",
    "avx512vbmi",
    "vpclmulqdq",
    "sha512",
    "aes",
    "asimd",
    "pmull",
    "crc32",
    "sha2",
    "sha3",
    "sve",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus() {
        let text = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu avx2 sha_ni\n";
        assert_eq!(
            (cpu_name(text).as_str(), features(text).join(" ").as_str()),
            ("A CPU", "avx2 sha_ni")
        );
        assert!(cpu_name("").starts_with("unknown"));
        assert_eq!(parse_size("480M"), Some(480 << 20));
        assert_eq!(parse_size("x"), None);
    }
}
