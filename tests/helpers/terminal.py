"""A terminal for the tests."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pyte

ROWS = 24

# After these the screen is in order: what clears the rest of a line, and the end of one.
DRAWN = re.compile(rb"(?<=\x1b\[K)|(?<=\n)")


def run(blksum, *args):
    """Runs blksum with standard error on a terminal. Also returns the text shown there."""
    master, slave = pty.openpty()
    process = blksum.start(*args, stderr=slave, stdin=subprocess.DEVNULL)
    os.close(slave)
    shown = b""
    while data := read(master):
        shown += data
    os.close(master)
    stdout, _ = process.communicate(timeout=60)
    return process.returncode, stdout, shown


def read(master):
    try:
        return os.read(master, 4096)
    except OSError:  # EIO: the other side is closed.
        return b""


class Terminal:
    """A command on a terminal with a screen: what a user would see of both its outputs."""

    def __init__(self, command, columns, **kwargs):
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.rest = b""
        self.resize(columns)
        kwargs = {"stdin": subprocess.DEVNULL, "stdout": slave, "stderr": slave} | kwargs
        self.process = subprocess.Popen([str(word) for word in command], **kwargs)
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def resize(self, columns):
        size = struct.pack("HHHH", ROWS, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        self.screen.resize(ROWS, columns)

    def frames(self, patience=300):
        """What stands on the screen after each thing that was drawn, without empty rows. Ends with the
        command; fails if that says nothing for too long."""
        while True:
            deadline = time.monotonic() + patience
            while not select.select([self.master], [], [], 0.1)[0]:
                assert time.monotonic() < deadline, "the command says nothing"
            data = read(self.master)
            if not data:
                break
            *whole, self.rest = DRAWN.split(self.rest + data)
            for part in whole:
                self.stream.feed(part)
                yield self.rows()
        self.stream.feed(self.rest)
        yield self.rows()

    def rows(self):
        return [row.rstrip() for row in self.screen.display if row.strip()]

    def finish(self):
        """The screen in the end, and the exit status."""
        rows = None
        with contextlib.suppress(StopIteration):
            for rows in self.frames():
                pass
        return rows, self.process.wait(timeout=60)


def screen_of(text, columns):
    """The rows of a screen that shows `text`."""
    screen = pyte.Screen(columns, ROWS)
    pyte.ByteStream(screen).feed(text.replace(b"\n", b"\r\n"))
    return [row.rstrip() for row in screen.display if row.strip()]
