"""The memory that a process takes."""

import contextlib
import subprocess
import sys
import time


def peak_anonymous_memory_of(process):
    """Samples the process until it ends."""
    peak = 0
    while process.poll() is None:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{process.pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
            peak = max(peak, int(fields.get("RssAnon", "0 kB").split()[0]) * 1024)
        time.sleep(0.002)
    return peak


# A child process starts with the peak memory of its parent in the kernel's statistics. This parent is small.
MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)
"""


def peak(program, *args):
    """Runs a program. Returns its status, its errors and the most memory that it had, in bytes."""
    command = [sys.executable, "-S", "-c", MEASURE, program, *args]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    status, most = map(int, result.stdout.split())
    return status, result.stderr, most
