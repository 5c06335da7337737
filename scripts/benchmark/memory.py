"""Measures the exact peak memory of a command.

ru_maxrss of wait4 is unsuitable, because it counts mapped files and starts with the memory of the process
before exec, which is Python. Samples at intervals miss peaks. Anonymous memory shrinks only in system
calls (munmap, madvise, brk, exit), so its peaks are at the start of one. Therefore the command is traced,
and RssAnon is read whenever a thread enters or leaves the kernel. If that would happen millions of times,
only the peak of resident memory is read, which the kernel records.
"""

import ctypes
import dataclasses
import os
import signal

TRACEME, CONT, SYSCALL, SETOPTIONS = 0, 7, 24, 0x4200
TRACESYSGOOD, TRACECLONE, TRACEEXEC, TRACEEXIT, EXITKILL = 1, 8, 16, 64, 0x100000
OPTIONS = TRACESYSGOOD | TRACECLONE | TRACEEXEC | TRACEEXIT | EXITKILL
EVENT_EXIT = 6
WALL = 0x40000000

ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.restype = ctypes.c_long
ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


class CannotTrace(Exception):
    """The system does not allow a process to trace its child."""


@dataclasses.dataclass
class Peak:
    """Peaks in KiB, of the process without its children."""

    # Anonymous memory, which is not backed by a file.
    anonymous: int = 0
    # All memory, including program and libraries.
    resident: int = 0


def peak(command, calls=True):
    """Returns the peaks of `command` without its feeder. Without `calls`, omits the peak of anonymous memory.
    Raises CannotTrace."""
    stdin = os.open(command.stdin or "/dev/null", os.O_RDONLY)
    feeder = None
    if command.feeder:
        os.close(stdin)
        stdin, out = os.pipe()
        to_pipe = [(os.POSIX_SPAWN_DUP2, out, 1)]
        feeder = os.posix_spawnp(
            command.feeder[0], command.feeder, os.environ, file_actions=to_pipe
        )
        os.close(out)
    pid = os.fork()
    if pid == 0:
        child(command, stdin)
    os.close(stdin)
    try:
        return trace(pid, SYSCALL if calls else CONT)
    finally:
        if feeder is not None:
            os.waitpid(feeder, 0)


def child(command, stdin):
    try:
        # With its own group, waitpid can tell its threads from other children.
        os.setpgid(0, 0)
        null = os.open("/dev/null", os.O_WRONLY)
        os.dup2(stdin, 0)
        os.dup2(null, 1)
        os.dup2(null, 2)
        if ptrace(TRACEME, 0, None, None) == 0:
            os.execvp(command.program, command.argv())
    finally:
        os._exit(127)


def trace(pid, go_on):
    result = Peak()
    _, status = os.waitpid(pid, WALL)
    if not os.WIFSTOPPED(status):
        raise CannotTrace
    ptrace(SETOPTIONS, pid, None, OPTIONS)
    ptrace(go_on, pid, None, None)
    with open(f"/proc/{pid}/status", "rb", buffering=0) as file:
        while True:
            thread, status = os.waitpid(-pid, WALL)
            if not os.WIFSTOPPED(status):
                if thread == pid:
                    return result
                continue
            stop = os.WSTOPSIG(status)
            if stop == signal.SIGTRAP | 0x80 or status >> 16 == EVENT_EXIT:
                sample(file, result)
            # Passes on signals, but not the stops that exist only for tracing.
            passed_on = stop & 0x7F not in (signal.SIGTRAP, signal.SIGSTOP)
            ptrace(go_on, thread, None, stop if passed_on else None)


def sample(file, result):
    file.seek(0)
    for line in file.read().splitlines():
        name, _, value = line.partition(b":")
        if name == b"RssAnon":
            result.anonymous = max(result.anonymous, int(value.split()[0]))
        elif name == b"VmHWM":
            result.resident = int(value.split()[0])
