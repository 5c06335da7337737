//! Refused system calls, and the reasons why no reader of images needs them.
//! docs/inside/decisions/refused-calls.md says why allowed calls are not listed.

use std::collections::BTreeMap;

use nix::libc::{self, c_long};

use super::Families;
use super::program::{Holds, Rule, Test};

/// ABI of this process, as the kernel numbers it. `None` if the lists do not cover it.
pub const AUDIT_ARCH: Option<u32> =
    if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
        Some(62 | LITTLE_ENDIAN_64)
    } else if cfg!(all(
        target_arch = "aarch64",
        target_pointer_width = "64",
        target_endian = "little"
    )) {
        Some(183 | LITTLE_ENDIAN_64)
    } else if cfg!(target_arch = "riscv64") {
        Some(243 | LITTLE_ENDIAN_64)
    } else {
        None
    };

const LITTLE_ENDIAN_64: u32 = 0xc000_0000;

/// Returns the rules for a process that reads images, may create sockets of `families` and may run
/// programs.
pub fn refused_to_reader(families: Families, runs_programs: bool) -> BTreeMap<u32, Rule> {
    let mut rules = refused();
    rules.insert(libc::SYS_socket as u32, Rule::FailUnless(families.tests()));
    let unless = [BTRFS_FS_INFO, FICLONE].map(|request| is(1, u32::MAX, request as i32)).into();
    rules.insert(libc::SYS_ioctl as u32, Rule::FailIf { tests: ioctls(), unless });
    if !runs_programs {
        // The error that Landlock gives.
        rules.extend(EXECUTION.iter().map(|&call| (call as u32, Rule::Fail(libc::EACCES))));
    }
    rules
}

/// Returns the rules for a server, which receives its connections and may create no sockets.
pub fn refused_to_server() -> BTreeMap<u32, Rule> {
    let mut rules = refused();
    rules.extend(CONNECTIONS.iter().map(|&call| (call as u32, Rule::Fail(libc::EPERM))));
    rules
}

fn refused() -> BTreeMap<u32, Rule> {
    let lists = [ATTRIBUTES, NAMES, MOUNTS, SYSTEM, PROCESSES, KERNEL, LEGACY];
    let mut rules: BTreeMap<u32, Rule> = lists
        .into_iter()
        .flatten()
        .map(|&number| (number as u32, Rule::Fail(libc::EPERM)))
        .collect();
    let mut put = |number: c_long, rule| rules.insert(number as u32, rule);
    let namespaces = vec![has_bits(0, NAMESPACES)];
    put(libc::SYS_clone, Rule::FailIf { tests: namespaces, unless: Vec::new() });
    // Its flags are in memory that a filter cannot read. On ENOSYS, the C library uses `clone`.
    put(libc::SYS_clone3, Rule::Fail(libc::ENOSYS));
    put(libc::SYS_ioctl, Rule::FailIf { tests: ioctls(), unless: Vec::new() });
    put(NEWEST + 1, Rule::Fail(libc::ENOSYS));
    rules
}

impl Families {
    /// Returns a list of tests for each kind of socket.
    fn tests(self) -> Vec<Vec<Test>> {
        let family = |number: i32| is(0, u32::MAX, number);
        let kind = |number: i32| is(1, KIND, number);
        let mut lists = Vec::new();
        if self.unix {
            lists.push(vec![family(libc::AF_UNIX)]);
        }
        if self.internet {
            for number in [libc::AF_INET, libc::AF_INET6] {
                for each in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
                    lists.push(vec![family(number), kind(each)]);
                }
            }
            lists.push(vec![family(libc::AF_NETLINK), is(2, u32::MAX, libc::NETLINK_ROUTE)]);
        }
        if self.hypervisor {
            lists.push(vec![family(libc::AF_VSOCK)]);
        }
        lists
    }
}

fn is(argument: u8, mask: u32, value: i32) -> Test {
    Test { argument, mask, holds: Holds::Equal(value as u32) }
}

fn has_bits(argument: u8, mask: u32) -> Test {
    Test { argument, mask, holds: Holds::NotZero }
}

/// Returns tests for requests that change a file through a descriptor for reading, and for those
/// that type into a terminal.
fn ioctls() -> Vec<Test> {
    let requests = IOCTLS.iter().map(|&request| is(1, u32::MAX, request as i32));
    requests.chain([is(1, 0xff00, BTRFS_REQUESTS)]).collect()
}

/// Mode, owner, times, extended attributes and flags of files. Landlock restricts none of them.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    452, // fchmodat2
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    463, // setxattrat
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    466, // removexattrat
    libc::SYS_utimensat,
    469, // file_setattr
];

/// Creating, removing and renaming files, which Landlock also refuses, and truncating them by name,
/// which Landlock refuses since Linux 6.2.
const NAMES: &[c_long] = &[
    libc::SYS_mknodat,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat2,
    libc::SYS_truncate,
];

/// Mounts, and calls that open files without their names.
const MOUNTS: &[c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    442, // mount_setattr
    467, // open_tree_attr
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    443, // quotactl_fd
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
];

/// Clock, names, modules and shutdown of the whole system.
const SYSTEM: &[c_long] = &[
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_vhangup,
];

/// libc has it for few targets. Machines that [`AUDIT_ARCH`] covers, except x86-64, share their numbers.
pub(super) const KEXEC_FILE_LOAD: c_long = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

/// Other processes, their memory and descriptors, and namespaces.
const PROCESSES: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    438, // pidfd_getfd
    440, // process_madvise
    448, // process_mrelease
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_personality,
];

/// Parts of the kernel that are common targets of attacks, and keys.
const KERNEL: &[c_long] = &[
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    425, // io_uring_setup
    426, // io_uring_enter
    427, // io_uring_register
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Older variants of the calls above, and calls that only this CPU has.
#[cfg(target_arch = "x86_64")]
const LEGACY: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_creat,
    libc::SYS_mknod,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_symlink,
    libc::SYS_link,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_uselib,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
];

#[cfg(target_arch = "aarch64")]
const LEGACY: &[c_long] = &[libc::SYS_renameat];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const LEGACY: &[c_long] = &[];

const EXECUTION: &[c_long] = &[libc::SYS_execve, libc::SYS_execveat];

/// Calls that make connections. A server only accepts connections.
const CONNECTIONS: &[c_long] =
    &[libc::SYS_socket, libc::SYS_socketpair, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen];

/// Newest call covered by the lists: file_setattr of Linux 6.18.
const NEWEST: c_long = 469;

/// `CLONE_NEW*`.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// Mask for the type of a socket, without `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
const KIND: u32 = 0xf;

/// Requests that need only a descriptor for reading.
const IOCTLS: &[u32] = &[
    0x5412,      // TIOCSTI
    0x541c,      // TIOCLINUX
    0x5423,      // TIOCSETD
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x4008_7602, // FS_IOC_SETVERSION
    0x4004_7602, // FS_IOC32_SETVERSION
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0xc050_6617, // FS_IOC_ADD_ENCRYPTION_KEY
    0xc040_6618, // FS_IOC_REMOVE_ENCRYPTION_KEY
];

/// `BTRFS_IOCTL_MAGIC`: snapshots, devices, balances.
const BTRFS_REQUESTS: i32 = 0x9400;

/// `BTRFS_IOC_FS_INFO`, by which a reader finds out that two files are on one file system. It changes nothing.
const BTRFS_FS_INFO: u32 = 0x8400_941f;

/// Makes a file that is open for writing share the storage of another, as a write would make it equal.
const FICLONE: u32 = 0x4004_9409;
