"""The memory that a process takes."""

import contextlib
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
