"""Tries the calls that the sandbox refuses, and prints an errno name or `done` for each. Runs in the
sandbox.

No call does harm if it is allowed. Its arguments are invalid, only query, or keep a file as it is. The
optional argument is a file that may be read.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
is_x86 = platform.machine() == "x86_64"
path = (sys.argv[1] if len(sys.argv) > 1 else "/proc/self/exe").encode()
SIGCHLD, CLONE_NEWUTS = 17, 0x04000000


def call(function, *arguments):
    arguments = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = function(*arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return result


def number(x86, generic=None):
    """Returns a system call by its number. Newer calls have the same number on all CPUs."""
    value = x86 if is_x86 or generic is None else generic
    return lambda *arguments: call(libc.syscall, value, *arguments)


def clone():
    if number(56, 220)(CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0) == 0:
        os._exit(0)


def kind(family, type, protocol=0):
    return lambda: socket.socket(family, type, protocol).close()


def with_file(action):
    def run():
        fd = os.open(path, os.O_RDONLY)
        try:
            action(fd)
        finally:
            os.close(fd)

    return run


def on_file(function, *arguments):
    return lambda: call(getattr(libc, function), path, *arguments)


def on_system(function, *arguments):
    return lambda: call(getattr(libc, function), *arguments)


def status():
    return os.stat(path)


def chmod():
    os.chmod(path, status().st_mode & 0o7777)


CALLS = {
    "chmod": chmod,
    "fchmod": with_file(lambda fd: os.fchmod(fd, os.fstat(fd).st_mode & 0o7777)),
    "fchmodat2": lambda: number(452)(-100, path, status().st_mode & 0o7777, 0),
    "chown": lambda: os.chown(path, -1, -1),
    "lchown": lambda: os.lchown(path, -1, -1),
    "fchown": with_file(lambda fd: os.fchown(fd, -1, -1)),
    "utimensat": lambda: os.utime(path, ns=(status().st_atime_ns, status().st_mtime_ns)),
    "utimes": on_file("utimes", None),
    "futimens": with_file(lambda fd: os.utime(fd, ns=(status().st_atime_ns, status().st_mtime_ns))),
    "setxattr": lambda: os.setxattr(path, "user.blkhash", b"x"),
    "fsetxattr": with_file(lambda fd: os.setxattr(fd, "user.blkhash", b"x")),
    "removexattr": lambda: os.removexattr(path, "user.blkhash"),
    "setxattrat": lambda: number(463)(-100, path, 0, b"user.x", 0, 0),
    "file_setattr": lambda: number(469)(-100, path, 0, 0, 0),
    "FS_IOC_SETFLAGS": with_file(lambda fd: call(libc.ioctl, fd, 0x40086602, 0)),
    "FS_IOC_FSSETXATTR": with_file(lambda fd: call(libc.ioctl, fd, 0x401C5820, 0)),
    "BTRFS_IOC_SNAP_CREATE": with_file(lambda fd: call(libc.ioctl, fd, 0x50009401, 0)),
    "TIOCSTI": lambda: call(libc.ioctl, 0, 0x5412, 0),
    "TIOCLINUX": lambda: call(libc.ioctl, 0, 0x541C, 0),
    "mknod": lambda: os.mknod("/gone/gone"),
    "mkdir": lambda: os.mkdir("/gone/gone"),
    "unlink": lambda: os.unlink("/gone/gone"),
    "rmdir": lambda: os.rmdir("/gone/gone"),
    "rename": lambda: os.rename("/gone/gone", "/gone/other"),
    "link": lambda: os.link("/gone/gone", "/gone/other"),
    "symlink": lambda: os.symlink("x", "/gone/gone"),
    "truncate": lambda: os.truncate("/gone/gone", 0),
    "mount": on_system("mount", b"x", b"/gone", b"nofs", 0, None),
    "umount2": on_system("umount2", b"/gone", 0),
    "pivot_root": lambda: number(155, 41)(b"/gone", b"/gone"),
    "chroot": lambda: os.chroot("/gone"),
    "open_tree": lambda: number(428)(-100, b"/gone", 0),
    "fsopen": lambda: number(430)(b"nofs", 0),
    "mount_setattr": lambda: number(442)(-1, b"/gone", 0, 0, 0),
    "swapon": on_system("swapon", b"/gone", 0),
    "swapoff": on_system("swapoff", b"/gone"),
    "quotactl": on_system("quotactl", -1, None, 0, None),
    "open_by_handle_at": lambda: number(304, 265)(-1, 0, 0),
    "fanotify_init": on_system("fanotify_init", -1, 0),
    "clock_settime": lambda: number(227, 112)(0, 0),
    "settimeofday": lambda: number(164, 170)(1, 0),
    "adjtimex": lambda: number(159, 171)(0),
    "clock_adjtime": lambda: number(305, 266)(0, 0),
    "sethostname": on_system("sethostname", None, 5),
    "setdomainname": on_system("setdomainname", None, 5),
    "init_module": lambda: number(175, 105)(0, 0, 0),
    "finit_module": lambda: number(313, 273)(-1, 0, 0),
    "delete_module": lambda: number(176, 106)(0, 0),
    "kexec_load": lambda: number(246, 104)(0, 9999, 0, -1),
    "kexec_file_load": lambda: number(320, 294)(-1, -1, 0, 0, -1),
    "reboot": lambda: number(169, 142)(0, 0, 0, 0),
    "syslog": lambda: number(103, 116)(99, 0, 0),
    "acct": on_system("acct", b"/gone"),
    "ptrace": lambda: number(101, 117)(99, 0, 0, 0),
    "process_vm_readv": on_system("process_vm_readv", os.getpid(), None, 0, None, 0, 0),
    "process_vm_writev": on_system("process_vm_writev", os.getpid(), None, 0, None, 0, 0),
    "pidfd_getfd": lambda: number(438)(-1, 0, 0),
    "kcmp": lambda: number(312, 272)(os.getpid(), os.getpid(), 0, 0, 0),
    "unshare": on_system("unshare", 0),
    "setns": on_system("setns", -1, 0),
    "clone(CLONE_NEWUTS)": clone,
    "personality": lambda: number(135, 92)(0xFFFFFFFF),
    "bpf": lambda: number(321, 280)(9999, 0, 0),
    "perf_event_open": lambda: number(298, 241)(0, 0, 0, 0, 0),
    "userfaultfd": lambda: number(323, 282)(-1),
    "io_uring_setup": lambda: number(425)(0, 0),
    "io_uring_enter": lambda: number(426)(-1, 0, 0, 0, 0, 0),
    "io_uring_register": lambda: number(427)(-1, 0, 0, 0),
    "keyctl": lambda: number(250, 219)(9999, 0, 0, 0, 0),
    "add_key": lambda: number(248, 217)(0, 0, 0, 0, 0),
    "request_key": lambda: number(249, 218)(0, 0, 0, 0),
    "socket raw": kind(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "socket packet": kind(socket.AF_PACKET, socket.SOCK_RAW),
    "socket netfilter": kind(socket.AF_NETLINK, socket.SOCK_RAW, 12),
    "socket alg": kind(socket.AF_ALG, socket.SOCK_SEQPACKET),
    "socket bluetooth": kind(31, socket.SOCK_RAW),
    "clone3": lambda: number(435)(0, 0),
    "a call of the future": lambda: number(600)(),
}

# These depend on what was allowed.
NETWORK = {
    "udp": kind(socket.AF_INET, socket.SOCK_DGRAM),
    "tcp": kind(socket.AF_INET6, socket.SOCK_STREAM),
    "route": kind(socket.AF_NETLINK, socket.SOCK_RAW, 0),
    "vsock": kind(40, socket.SOCK_STREAM),
    "unix": kind(socket.AF_UNIX, socket.SOCK_STREAM),
    "socketpair": lambda: [end.close() for end in socket.socketpair()],
}


def capabilities():
    """Returns the content of each set."""
    header, data = struct.pack("II", 0x20080522, 0), ctypes.create_string_buffer(24)
    number(125, 90)(header, data)
    low = struct.unpack("6I", data.raw)
    sets = [low[part] | low[part + 3] << 32 for part in range(3)]
    ambient = sum(1 << bit for bit in range(41) if libc.prctl(47, 1, bit, 0, 0) == 1)
    return " ".join(f"{value:x}" for value in (*sets, ambient))


for name, action in {**CALLS, **NETWORK}.items():
    try:
        action()
        print(f"{name}: done", flush=True)
    except (OSError, OverflowError) as error:
        print(f"{name}: {errno.errorcode.get(error.errno, error.errno)}", flush=True)
print(f"capabilities: {capabilities()}", flush=True)
