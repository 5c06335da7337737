"""Runs commands in turns, and records their time, CPU time and output."""

from __future__ import annotations

import dataclasses
import os
import shlex
import statistics
import subprocess
import tempfile
import time

NULL = os.open("/dev/null", os.O_RDWR)


class Failed(Exception):
    """A command did not exit with status 0."""


@dataclasses.dataclass(frozen=True)
class Command:
    """`feeder | program args`, or `program args < stdin`."""

    program: str
    args: tuple = ()
    stdin: str | None = None
    feeder: tuple = ()
    # Identifies the checksum. Commands with the same key must print the same one.
    key: tuple | None = None
    # Name to show instead of the command line.
    name: str | None = None

    def __str__(self):
        if self.name:
            return self.name
        text = shlex.join([os.path.basename(self.program), *self.args])
        if self.feeder:
            text = f"{shlex.join(self.feeder)} | {text}"
        return f"{text} < {self.stdin}" if self.stdin else text

    def argv(self):
        return [self.program, *self.args]

    def checksums(self, output):
        """Returns the checksums in the output, in order."""
        place = -1 if self.program == "openssl" else 0
        return [line.split()[place] for line in output.splitlines() if line.strip()]


@dataclasses.dataclass(frozen=True)
class Run:
    seconds: float
    # User and system time of the command and its feeder.
    cpu: float
    output: str


def run(command):
    """Runs `command` once. Raises Failed."""
    # A command without a checksum prints the whole image.
    output = scratch() if command.key else os.dup(NULL)
    errors = scratch()
    stdin = os.open(command.stdin, os.O_RDONLY) if command.stdin else os.dup(NULL)
    try:
        start = time.perf_counter()
        pids = []
        if command.feeder:
            os.close(stdin)
            stdin, out = os.pipe()
            pids.append(spawn(command.feeder, NULL, out, errors))
            os.close(out)
        pids.append(spawn(command.argv(), stdin, output, errors))
        os.close(stdin)
        stdin = None
        ends = [os.wait4(pid, 0) for pid in pids]
        seconds = time.perf_counter() - start
        if any(status for _, status, _ in ends):
            message = text(errors).strip().splitlines() or ["no message"]
            raise Failed(f"{command}: {message[-1]}")
        cpu = sum(it.ru_utime + it.ru_stime for *_, it in ends)
        return Run(seconds, cpu, text(output) if command.key else "")
    finally:
        for descriptor in (stdin, output, errors):
            if descriptor is not None:
                os.close(descriptor)


def scratch():
    """Returns a descriptor of an empty file without a name, in memory where the system has that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("scratch")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def spawn(argv, stdin, output, errors):
    actions = [(os.POSIX_SPAWN_DUP2, it, at) for at, it in enumerate([stdin, output, errors])]
    return os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)


def text(descriptor):
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def in_turns(commands, count):
    """Runs each command once to warm up, then all of them in turns, `count` times. A machine that is slow
    for a while slows all of them. Returns the runs of each command."""
    runs = [[] for _ in commands]
    for turn in range(count + 1):
        for command, its in zip(commands, runs):
            result = run(command)
            if turn > 0:
                its.append(result)
    return runs


def one_line(main):
    """Runs `main`, and reports expected errors in one line."""
    try:
        main()
    except (Failed, OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{error}")
    except KeyboardInterrupt:
        raise SystemExit(130)


def median(values):
    return statistics.median(values)
