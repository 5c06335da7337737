//! Describes the sandbox that is in force.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blksandbox::{InForce, Landlock, Readable, Reading, SystemCalls};

use crate::{messages, quote};

/// Returns a description such as `sandbox: landlock ABI 7, no new privileges, ...`.
pub fn describe(in_force: &InForce) -> String {
    let mut parts = vec![landlock(&in_force.landlock)];
    if in_force.no_new_privileges {
        parts.push("no new privileges".into());
    }
    parts.push(system_calls(&in_force.system_calls));
    parts.push(capabilities(&in_force.capabilities));
    if in_force.landlock.is_restricted() {
        parts.extend(reading(&in_force.reading));
        if in_force.runs_programs {
            parts.push("running programs of the system".into());
        }
        parts.extend(in_force.ports.iter().map(|port| format!("connecting to TCP port {port}")));
    }
    format!("sandbox: {}", parts.join(", "))
}

fn landlock(landlock: &Landlock) -> String {
    match landlock {
        Landlock::Restricted(abi) => format!("landlock ABI {abi}"),
        Landlock::NotEnabled => "no landlock, which this system switches off".into(),
        Landlock::NotImplemented => "no landlock, which this kernel lacks".into(),
        Landlock::Failed(error) => {
            format!("no landlock, which failed: {}", messages::reason(error))
        }
    }
}

fn system_calls(system_calls: &SystemCalls) -> String {
    match system_calls {
        SystemCalls::Filtered => "system calls filtered".into(),
        SystemCalls::NotImplemented => "system calls not filtered, which this kernel cannot".into(),
        SystemCalls::UnknownCpu => "system calls not filtered on this CPU".into(),
        SystemCalls::Failed(error) => {
            format!("system calls not filtered: {}", messages::reason(error))
        }
    }
}

fn capabilities(kept: &io::Result<Vec<&str>>) -> String {
    match kept {
        Ok(names) if names.is_empty() => "no capabilities".into(),
        Ok(names) => format!("no capabilities but {}", names.join(" and ")),
        Err(error) => format!("all capabilities: {}", messages::reason(error)),
    }
}

fn reading(reading: &Reading) -> Vec<String> {
    match reading {
        Reading::Everything => vec!["reading everything".into()],
        Reading::Files { names, others } => {
            let others = (*others > 0).then(|| format!("and {others} more"));
            names.iter().map(readable).chain(others).collect()
        }
    }
}

fn readable(name: &Readable) -> String {
    let quoted = |path: &Path| quote::name(path.as_os_str().as_bytes());
    match name {
        Readable::File(path) => format!("reading {}", quoted(path)),
        Readable::Beneath(path) => format!("reading beneath {}", quoted(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied() -> io::Error {
        io::Error::from_raw_os_error(1)
    }

    #[test]
    fn layers() {
        for (layer, words) in [
            (Landlock::Restricted(6), "landlock ABI 6"),
            (Landlock::NotEnabled, "no landlock, which this system switches off"),
            (Landlock::NotImplemented, "no landlock, which this kernel lacks"),
            (Landlock::Failed(denied()), "no landlock, which failed: Operation not permitted"),
            (Landlock::Failed(io::Error::other("odd")), "no landlock, which failed: odd"),
        ] {
            assert_eq!(landlock(&layer), words);
        }
        for (layer, words) in [
            (SystemCalls::Filtered, "system calls filtered"),
            (SystemCalls::NotImplemented, "system calls not filtered, which this kernel cannot"),
            (SystemCalls::UnknownCpu, "system calls not filtered on this CPU"),
            (SystemCalls::Failed(denied()), "system calls not filtered: Operation not permitted"),
        ] {
            assert_eq!(system_calls(&layer), words);
        }
        for (kept, words) in [
            (Ok(vec![]), "no capabilities"),
            (Ok(vec!["A"]), "no capabilities but A"),
            (Ok(vec!["A", "B"]), "no capabilities but A and B"),
            (Err(denied()), "all capabilities: Operation not permitted"),
        ] {
            assert_eq!(capabilities(&kept), words);
        }
    }

    #[test]
    fn names() {
        assert_eq!(reading(&Reading::Everything), ["reading everything"]);
        let files = |others| {
            let names = ["-", "c\n"].map(|name| Readable::File(name.into()));
            let names = [vec![Readable::Beneath("a b".into())], names.into()].concat();
            reading(&Reading::Files { names, others })
        };
        let expected = ["reading beneath 'a b'", "reading -", "reading 'c'$'\\n'"];
        assert_eq!(files(0), expected);
        assert_eq!(files(992), [&expected[..], &["and 992 more"]].concat());
    }
}
