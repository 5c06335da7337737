"""Runs during which an image is changed, and loop devices."""

import contextlib
import os
import subprocess
import time

import pytest

import images

GIB = 1 << 30


# Size of sparse files whose holes are read. Long enough to be changed in the middle, without taking
# memory.
LONG = 48 * GIB


def start_reading(blksum, *args):
    process = blksum.start(*args)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with open(f"/proc/{process.pid}/io") as io:
            if int(io.readline().split()[1]) > 64 << 20:
                break
        time.sleep(0.001)
    assert process.poll() is None, "it ended before the file could be changed"
    return process


def finish(process):
    stdout, stderr = process.communicate(timeout=300)
    return subprocess.CompletedProcess([], process.returncode, stdout, stderr)


@contextlib.contextmanager
def loop_device(path, *options):
    command = ["losetup", "--find", "--show", *options, str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        assert "CI" not in os.environ, result
        pytest.skip(f"no loop device here: {result.stderr.strip()}")
    device = result.stdout.strip()
    try:
        yield device
    finally:
        images.run("losetup", "--detach", device)
