use std::collections::BTreeMap;
use std::io;
use std::thread;

use super::calls::{AUDIT_ARCH, refused_to_reader, refused_to_server};
use super::program::{ARCH, ARGUMENTS, Instruction, NUMBER, Rule, assemble};
use super::*;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
/// Deprecated for 20 years, and still supported.
const SOCK_PACKET: u64 = 10;
const EVERYTHING: Families = Families { unix: true, internet: true, hypervisor: true };

fn errno(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number as u32
}

/// Runs a program as the kernel does.
fn run(program: &[Instruction], arch: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let (mut accumulator, mut at) = (0, 0);
    for _ in 0..program.len() {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        match u32::from(code) {
            0x20 => {
                accumulator = match k {
                    NUMBER => number,
                    ARCH => arch,
                    _ => {
                        let (index, half) = ((k - ARGUMENTS) / 8, k % 8);
                        let bytes = arguments[index as usize].to_ne_bytes();
                        u32::from_ne_bytes(bytes[half as usize..][..4].try_into().unwrap())
                    }
                }
            }
            0x54 => accumulator &= k,
            0x05 => at += k as usize,
            0x15 => at += usize::from(if accumulator == k { jt } else { jf }),
            0x35 => at += usize::from(if accumulator >= k { jt } else { jf }),
            0x06 => return k,
            other => panic!("unknown instruction {other:#x}"),
        }
    }
    panic!("the program does not end");
}

/// Returns the rules for a reader that runs programs, or for a server.
fn refused(families: Option<Families>) -> BTreeMap<u32, Rule> {
    families.map_or_else(refused_to_server, |families| refused_to_reader(families, true))
}

#[test]
fn every_call_number_follows_its_rule() {
    let mut kinds = 0;
    let kept = refused_to_reader(EVERYTHING, false);
    for rules in
        [refused(None), refused(Some(Families::default())), refused(Some(EVERYTHING)), kept]
    {
        let program = assemble(1, &rules);
        assert!(program.len() < 1000, "{}", program.len());
        let (&newest, above) = rules.last_key_value().unwrap();
        assert_eq!(*above, Rule::Fail(libc::ENOSYS));
        for number in (0..2000).chain([0x4000_0000, 0x4000_005a, u32::MAX]) {
            let expected = match rules.get(&number).unwrap_or(&Rule::Allow) {
                _ if number >= newest => errno(libc::ENOSYS),
                Rule::Fail(error) => errno(*error),
                // Zero arguments match no test of `FailIf`, and family 0 is not an allowed family.
                Rule::Allow | Rule::FailIf { .. } => ALLOW,
                Rule::FailUnless(_) => errno(libc::EPERM),
            };
            assert_eq!(run(&program, 1, number, [0; 6]), expected, "{number}");
            assert_eq!(run(&program, 2, number, [0; 6]), KILL, "{number}");
        }
        kinds += rules.len();
    }
    assert!(kinds > 250, "{kinds}");
}

#[test]
fn programs_run_only_if_allowed() {
    for call in [libc::SYS_execve, libc::SYS_execveat] {
        let answer = |rules| run(&assemble(1, &rules), 1, call as u32, [0; 6]);
        assert_eq!(answer(refused_to_reader(EVERYTHING, false)), errno(libc::EACCES));
        assert_eq!(answer(refused_to_reader(EVERYTHING, true)), ALLOW);
        assert_eq!(answer(refused_to_server()), ALLOW);
    }
}

#[test]
fn search_trees_of_all_sizes() {
    for count in 0..600 {
        let rules: BTreeMap<u32, Rule> =
            (0..=count).map(|number| (3 * number + 1, Rule::Fail(number as i32 % 7 + 1))).collect();
        let program = assemble(1, &rules);
        for number in 0..3 * count + 4 {
            let expected = match rules.get(&number) {
                Some(Rule::Fail(error)) => errno(*error),
                _ if number > 3 * count => errno(count as i32 % 7 + 1),
                _ => ALLOW,
            };
            assert_eq!(run(&program, 1, number, [0; 6]), expected, "{number} of {count}");
        }
    }
}

/// Returns the filter's answer for a call with these first arguments.
fn answer(families: Option<Families>, number: libc::c_long, first: [u64; 3]) -> u32 {
    let [a, b, c] = first;
    run(&assemble(1, &refused(families)), 1, number as u32, [a, b, c, 0, 0, 0])
}

#[test]
fn sockets_are_of_the_allowed_families() {
    let (unix, internet) = (libc::AF_UNIX as u64, libc::AF_INET as u64);
    let (netlink, hypervisor) = (libc::AF_NETLINK as u64, libc::AF_VSOCK as u64);
    let stream = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;
    let raw = (libc::SOCK_RAW | libc::SOCK_CLOEXEC) as u64;
    let only = |unix, internet, hypervisor| Some(Families { unix, internet, hypervisor });
    for (families, arguments, allowed) in [
        (only(false, false, false), [unix, stream, 0], false),
        (only(true, false, false), [unix, stream, 0], true),
        (only(true, false, false), [internet, stream, 0], false),
        (only(false, true, false), [internet, stream, 0], true),
        (only(false, true, false), [libc::AF_INET6 as u64, stream, 0], true),
        (only(false, true, false), [internet, libc::SOCK_DGRAM as u64, 17], true),
        (only(false, true, false), [internet, raw, 0], false),
        (only(false, true, false), [internet, SOCK_PACKET, 0], false),
        (only(false, true, false), [unix, stream, 0], false),
        (only(false, true, false), [netlink, raw, 0], true),
        (only(false, true, false), [netlink, raw, libc::NETLINK_NETFILTER as u64], false),
        (only(true, true, false), [hypervisor, stream, 0], false),
        (only(false, false, true), [hypervisor, stream, 0], true),
        (Some(EVERYTHING), [libc::AF_PACKET as u64, raw, 0], false),
        (Some(EVERYTHING), [libc::AF_ALG as u64, 5, 0], false),
        (None, [unix, stream, 0], false),
        // The kernel takes an int and ignores the higher bits.
        (only(true, false, false), [unix | 1 << 32, stream | 1 << 32, 0], true),
        (only(true, false, false), [internet | 1 << 32, stream, 0], false),
    ] {
        let expected = if allowed { ALLOW } else { errno(libc::EPERM) };
        let found = answer(families, libc::SYS_socket, arguments);
        assert_eq!(found, expected, "{families:?} {arguments:?}");
    }
}

#[test]
fn namespaces_and_terminals() {
    let clone = |flags: libc::c_int| answer(None, libc::SYS_clone, [flags as u64, 0, 0]);
    assert_eq!(clone(libc::CLONE_VM | libc::CLONE_THREAD | libc::SIGCHLD), ALLOW);
    for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNET, libc::CLONE_NEWNS, libc::CLONE_NEWPID] {
        assert_eq!(clone(flag | libc::SIGCHLD), errno(libc::EPERM));
    }
    let ioctl = |request| answer(Some(EVERYTHING), libc::SYS_ioctl, [0, request, 0]);
    for request in [0x5412, 0x5412 | 1 << 32, 0x4008_6602, 0x5000_9401, 0x4080_6685] {
        assert_eq!(ioctl(request), errno(libc::EPERM), "{request:#x}");
    }
    // TCGETS, FIONREAD, FIONBIO, BLKGETSIZE64, FS_IOC_GETFLAGS, FS_IOC_FIEMAP, FS_IOC_FSGETXATTR, BTRFS_IOC_FS_INFO, FICLONE.
    for request in [
        0x5401,
        0x541b,
        0x5421,
        0x8008_1272,
        0x8008_6601,
        0xc020_660b,
        0x801c_581f,
        0x8400_941f,
        0x4004_9409,
    ] {
        assert_eq!(ioctl(request), ALLOW, "{request:#x}");
    }
    // All others of btrfs, and all of them for a server.
    for number in (0..=255).filter(|number| *number != 0x1f) {
        assert_eq!(ioctl(0x8400_9400 | number), errno(libc::EPERM));
    }
    let server = answer(None, libc::SYS_ioctl, [0, 0x8400_941f, 0]);
    assert_eq!(server, errno(libc::EPERM));
}

#[test]
fn filter_is_in_force_for_its_thread_only() {
    let Some(filter) = Filter::for_reader(EVERYTHING, true) else { return };
    assert!(AUDIT_ARCH.is_some());
    let pretend = || {
        // SAFETY: the call has no arguments that refer to memory.
        let result = unsafe { libc::syscall(libc::SYS_umount2, std::ptr::null::<u8>(), 0) };
        assert_eq!(result, -1);
        io::Error::last_os_error().raw_os_error()
    };
    thread::spawn(move || {
        rustix::thread::set_no_new_privs(true).unwrap();
        filter.enter().unwrap();
        // Threads still start although `clone3` is refused.
        assert_eq!(thread::spawn(pretend).join().unwrap(), Some(libc::EPERM));
        // SAFETY: the call has no arguments, and its number does not exist.
        assert_eq!(unsafe { libc::syscall(1000) }, -1);
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS));
    })
    .join()
    .unwrap();
}

#[cfg(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn numbers_that_libc_lacks_elsewhere() {
    assert_eq!(super::calls::KEXEC_FILE_LOAD, libc::SYS_kexec_file_load);
}
