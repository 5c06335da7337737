"""A terminal for the tests."""

import os
import pty
import subprocess


def run(blksum, *args):
    """Runs blksum with standard error on a terminal. Also returns the text shown there."""
    master, slave = pty.openpty()
    process = blksum.start(*args, stderr=slave, stdin=subprocess.DEVNULL)
    os.close(slave)
    shown = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:  # EIO: the other side is closed.
            break
        if not data:
            break
        shown += data
    os.close(master)
    stdout, _ = process.communicate(timeout=60)
    return process.returncode, stdout, shown
