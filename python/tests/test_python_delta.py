"""Deltas, and copies that write what differs from a map: compared with cmp and with blkcopy, which reads and writes the same ones."""

import errno
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time

import pytest
from conftest import BLKSUM, HANG

import blkhash

BLKCOPY = str(BLKSUM.with_name("blkcopy"))
BLOCK = 65536


def states(rng, folder):
    """Writes an image before and after changes, and the map of the first."""
    size = rng.choice([BLOCK, 5 * BLOCK + 512, 40 * BLOCK, 300 * BLOCK])
    old = bytearray(rng.choice([rng.randbytes, bytes])(size))
    new = bytearray(old)
    for _ in range(rng.randrange(6)):
        at = rng.randrange(size)
        data = rng.choice([bytes(9000), rng.randbytes(9000)])[: size - at]
        new[at : at + len(data)] = data
    new = (new + bytes(rng.choice([0, BLOCK])))[: size + rng.choice([0, 0, BLOCK, -(size // 3)])]
    for name, content in (("old", old), ("new", new)):
        (folder / name).write_bytes(content)
    blkhash.create_map(folder / "old", folder / "old.blkmap")


def digest(path):
    return blkhash.checksum(path).hexdigest


@pytest.mark.parametrize("seed", range(12))
def test_deltas(workdir, seed):
    rng = random.Random(seed)
    states(rng, workdir)
    sent = blkhash.send_delta("old.blkmap", "new", "delta")
    assert (sent.checksum, sent.size) == (digest("new"), os.path.getsize("new"))
    command = [BLKCOPY, "--json", "--delta-from", "old.blkmap", "new", "-"]
    theirs = subprocess.run(command, capture_output=True, check=True, timeout=HANG)
    assert theirs.stdout == pathlib.Path("delta").read_bytes()
    found = json.loads(theirs.stderr)
    assert (sent.changed, sent.length) == (found["changed_bytes"], found["delta_bytes"])
    for _ in range(2):
        # The second time, it was applied.
        shutil.copy("old", "copy") if not os.path.exists("copy") else None
        copied = blkhash.apply_delta("delta", "copy", digest="blake3")
        assert pathlib.Path("copy").read_bytes() == pathlib.Path("new").read_bytes()
        assert copied.checksum == blkhash.checksum("new", "blake3").hexdigest
        assert (copied.verified, copied.format, copied.size) == ("readback", "raw", os.path.getsize("new"))
    shutil.copy("old", "copy")
    subprocess.run([BLKCOPY, "-q", "--apply", "delta", "copy"], check=True, timeout=HANG)
    assert pathlib.Path("copy").read_bytes() == pathlib.Path("new").read_bytes()


@pytest.mark.parametrize("seed", range(6))
def test_copies_of_what_differs_from_a_map(workdir, seed):
    rng = random.Random(seed)
    states(rng, workdir)
    os.truncate("new", os.path.getsize("old"))
    shutil.copy("old", "copy")
    copied = blkhash.copy("new", "copy", destination_map="old.blkmap")
    assert pathlib.Path("copy").read_bytes() == pathlib.Path("new").read_bytes()
    assert copied.checksum == digest("new") and copied.equal + copied.written + copied.zeroed == copied.size
    # A map of something else is noticed as the copy is read back.
    data = bytearray(pathlib.Path("new").read_bytes())
    data[len(data) // 2] ^= 1
    pathlib.Path("copy").write_bytes(data)
    blkhash.create_map("new", "new.blkmap")
    with pytest.raises(blkhash.MismatchError):
        blkhash.copy("new", "copy", destination_map="new.blkmap")


def test_pipes(workdir):
    states(random.Random(3), workdir)
    shutil.copy("old", "copy")
    code = "import blkhash; print(blkhash.apply_delta('/dev/stdin', 'copy').checksum)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as receiver:
        sent = blkhash.send_delta("old.blkmap", "new", f"/dev/fd/{receiver.stdin.fileno()}")
        received = receiver.communicate(timeout=HANG)[0]
    assert received.decode().strip() == sent.checksum == digest("copy")


def test_what_is_refused(workdir):
    states(random.Random(5), workdir)
    blkhash.send_delta("old.blkmap", "new", "delta")
    with pytest.raises(FileExistsError):
        blkhash.send_delta("old.blkmap", "new", "delta")
    with pytest.raises(blkhash.MismatchError):
        blkhash.send_delta("old.blkmap", "new", "unexpected", expect="0" * 64)
    with pytest.raises(blkhash.MapError):
        blkhash.send_delta("new", "new", "none")
    with pytest.raises(blkhash.ImageError):
        blkhash.send_delta("old.blkmap", "missing", "none")
    assert not os.path.exists("unexpected") and not os.path.exists("none")
    assert blkhash.send_delta("old.blkmap", "new", "expected", expect=digest("new")).checksum == digest("new")
    # Another state, another size, a delta that is damaged or cut, and none.
    data = bytearray(pathlib.Path("old").read_bytes())
    for at in range(0, len(data), BLOCK):
        data[at] ^= 1
    pathlib.Path("other").write_bytes(data)
    with pytest.raises(blkhash.CopyError):
        blkhash.apply_delta("delta", "other")
    assert pathlib.Path("other").read_bytes() == data
    pathlib.Path("short").write_bytes(data[:-1])
    with pytest.raises(blkhash.CopyError):
        blkhash.apply_delta("delta", "short")
    whole = pathlib.Path("delta").read_bytes()
    for number, damaged in enumerate([whole[:-1], whole[: len(whole) // 2], whole[:-9] + b"x" + whole[-8:], b""]):
        pathlib.Path("damaged").write_bytes(damaged)
        shutil.copy("old", "copy")
        with pytest.raises(blkhash.Error):
            blkhash.apply_delta("damaged", "copy")
    with pytest.raises(FileNotFoundError):
        blkhash.apply_delta("missing", "copy")
    with pytest.raises(blkhash.Error):
        blkhash.apply_delta("delta", "no-such-destination")
    assert not os.path.exists("no-such-destination")
    # What is read is not overwritten.
    for name in ("delta", "old.blkmap"):
        before = pathlib.Path(name).read_bytes()
        with pytest.raises(blkhash.CopyError):
            if name == "delta":
                blkhash.apply_delta(name, name, force=True)
            else:
                blkhash.copy("new", name, destination_map=name, force=True)
        assert pathlib.Path(name).read_bytes() == before
    for options in ({"changes": []}, {"bitmap": "b"}):
        with pytest.raises(TypeError):
            blkhash.copy("new", "copy", destination_map="old.blkmap", **options)


def test_only_a_new_file_or_a_pipe_is_written(workdir):
    states(random.Random(3), workdir)
    pathlib.Path("disk").write_bytes(b"precious" * 512)
    result = subprocess.run(["losetup", "--find", "--show", "disk"], capture_output=True, text=True)
    names = ["disk", "."]
    if result.returncode == 0:
        names.append(result.stdout.strip())
    else:
        assert "CI" not in os.environ, result
    try:
        for name in names:
            with pytest.raises((FileExistsError, IsADirectoryError)):
                blkhash.send_delta("old.blkmap", "new", name)
    finally:
        if result.returncode == 0:
            subprocess.run(["losetup", "--detach", result.stdout.strip()], check=True)
    assert pathlib.Path("disk").read_bytes() == b"precious" * 512


@pytest.fixture
def slow(workdir, servers):
    """The URI of an image that takes minutes to read, and differs from the map."""
    states(random.Random(3), workdir)
    return servers.nbdkit("--filter=delay", "file", "new", "rdelay=2").uri()


def test_only_its_own_file_is_removed(workdir, slow):
    """The current folder changes during the work."""
    here = pathlib.Path.cwd()
    (here / "other").mkdir()
    (here / "other/delta").write_bytes(b"precious")
    event, calls = threading.Event(), []

    def move(done, total):
        os.chdir(here / "other")
        calls.append(os.path.exists(here / "delta"))
        if calls[-1]:
            event.set()

    try:
        with pytest.raises(blkhash.CancelledError):
            blkhash.send_delta(here / "old.blkmap", slow, "delta", progress=move, cancel=event, threads=1)
    finally:
        os.chdir(here)
    # It was made here before the first call.
    assert calls[-1] and (here / "other/delta").read_bytes() == b"precious" and not (here / "delta").exists()


def test_a_delta_that_is_not_complete_is_removed(workdir, slow):
    event = threading.Event()
    threading.Timer(1, event.set).start()
    with pytest.raises(blkhash.CancelledError):
        blkhash.send_delta("old.blkmap", slow, "delta", threads=1, cancel=event)
    assert not os.path.exists("delta")

    def fail(done, total):
        raise KeyError

    with pytest.raises(KeyError):
        blkhash.send_delta("old.blkmap", "new", "delta", progress=fail)
    # A thread that remains does not make the file later.
    time.sleep(3)
    assert not os.path.exists("delta")


def test_a_full_disk_is_no_missing_file(workdir):
    states(random.Random(3), workdir)
    with pytest.raises(OSError) as caught:
        blkhash.send_delta("old.blkmap", "new", "/dev/full")
    assert caught.value.errno == errno.ENOSPC and not isinstance(caught.value, FileNotFoundError)
