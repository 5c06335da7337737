"""The commands, of a debug or release build.

BLKSUM in the environment names the binary, by default target/release/blksum. The others are in its folder.
"""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Made absolute before a test changes its current folder.
BLKSUM = pathlib.Path(os.environ.get("BLKSUM", ROOT / "target/release/blksum")).absolute()

# Seconds after which a run counts as hanging. No run needs a tenth of it.
HANG = 300


def blksum_path():
    return BLKSUM


def blkhash(*args, **kwargs):
    """Runs blkhash. Outputs are bytes."""
    kwargs = {"stdin": subprocess.DEVNULL, "timeout": HANG} | kwargs
    program = str(BLKSUM.with_name("blkhash"))
    return subprocess.run([program, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


def digest(blksum, path, *options):
    """The SHA-256 of the content, or None if the image is refused."""
    result = blksum("-d", "sha256", "--construction=linear", *options, path)
    assert result.returncode in (0, 1), result
    return result.stdout.decode().split()[0] if result.returncode == 0 else None


def assert_refused(result, *words, status=1):
    """Checks for one line with the reason, and no checksum."""
    assert (result.returncode, result.stdout) == (status, b""), result
    message = result.stderr.decode("utf-8", "replace")
    assert message.startswith("blksum: ") and message.count("\n") == 1, message
    assert "panic" not in message and "\x1b" not in message, message
    for word in words:
        assert word in message, (word, message)


def mostly_slow(values, quick, slow=None):
    """Returns parameters of a test, of which only those in `quick` are quick. With `slow`, others than these soak as well."""

    def marks(value):
        if value in quick:
            return []
        return [pytest.mark.slow] if slow is None or value in slow else [pytest.mark.slow, pytest.mark.soak]

    return [pytest.param(value, marks=marks(value)) for value in values]


class Blksum:
    """Runs blksum. Outputs are bytes."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self, *args, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        if "input" in kwargs:
            del kwargs["stdin"]
        kwargs.setdefault("timeout", HANG)
        return subprocess.run(
            [self.path, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs
        )

    def start(self, *args, **kwargs):
        """Starts a process, with both of its outputs in pipes by default."""
        kwargs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | kwargs
        return subprocess.Popen([self.path, *args], **kwargs)

    def hex(self, *args, **kwargs):
        """Returns the checksum of a single image. The run must succeed."""
        result = self(*args, **kwargs)
        assert result.returncode == 0, (args, result)
        lines = result.stdout.splitlines()
        assert len(lines) == 1, (args, result)
        return lines[0].removeprefix(b"\\").split(b" ", 1)[0].decode("ascii")
