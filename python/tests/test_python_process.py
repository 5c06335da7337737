"""Forks, signals, development mode."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import HANG, script
from images import qemu_img

FORKED = """
import os, sys, threading, warnings
import blkhash

data = os.urandom(8 << 20)
threaded, single = blkhash.new("sha256", data, threads=3), blkhash.new("sha256", data, threads=1)
image, map = blkhash.Image(sys.argv[1]), blkhash.Map(sys.argv[2])
runs, extents = map.runs(), image.extents()

pid = os.fork()
if pid == 0:
    refused = [
        lambda: threaded.update(b"x"), lambda: threaded.update(data), lambda: threaded.zero(5), threaded.digest,
        threaded.hexdigest, threaded.copy, lambda: image.size, lambda: image.read(0, 5), image.checksum,
        lambda: next(extents), lambda: map.root, lambda: next(runs), map.check, lambda: map.verify(sys.argv[1]),
        lambda: blkhash.Map(sys.argv[2]).verify(image),
    ]
    for call in refused:
        try:
            call()
        except blkhash.ForkError as error:
            assert isinstance(error, RuntimeError)
        else:
            os._exit(1)
    single.update(b"more")
    copy = single.copy()
    new = blkhash.new("sha256", data + b"more", threads=3)
    if not copy.digest() == single.digest() == new.digest():
        os._exit(2)
    if blkhash.checksum(sys.argv[1]).hexdigest != blkhash.Map(sys.argv[2]).checksum():
        os._exit(3)
    # A drop of what belongs to the parent waits for nothing.
    del refused, threaded, single, image, map, runs, extents
    os._exit(0)
_, status = os.waitpid(pid, 0)
assert status == 0, status
assert threaded.digest() == single.digest()
assert next(extents) and next(runs) and image.checksum().hexdigest == map.checksum()
"""

BUSY = """
import os, threading, time
import blkhash

h = blkhash.new("sha3-512", construction="linear", threads=1)
data = bytes(16 << 20)
forked = threading.Event()

def work():
    while not forked.is_set():
        h.update(data)

thread = threading.Thread(target=work)
thread.start()
time.sleep(0.1)
assert thread.is_alive()
pid = os.fork()
if pid == 0:
    for call in (lambda: h.update(b"x"), lambda: h.zero(1 << 30), h.digest):
        try:
            call()
        except blkhash.ForkError:
            continue
        os._exit(1)
    del h
    os._exit(0)
_, status = os.waitpid(pid, 0)
assert status == 0, status
forked.set()
thread.join()
assert len(h.digest()) == 64
"""

INTERRUPTED = """
import signal, sys
import blkhash

signal.signal(signal.SIGINT, signal.default_int_handler)

def progress(done, total):
    print(done, total, flush=True)

try:
    {call}
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "disk.qcow2"
    raw = tmp_path / "disk.img"
    raw.write_bytes(os.urandom(3 << 20) + bytes(5 << 20))
    qemu_img("convert", "-O", "qcow2", raw, path)
    return path


def test_a_child_uses_nothing_of_its_parent(image, tmp_path):
    script(f"import blkhash; blkhash.create_map({str(image)!r}, {str(tmp_path / 'map')!r})")
    script(FORKED, image, tmp_path / "map")


def test_a_lock_that_the_child_cannot_get_is_an_error():
    script(BUSY)


@pytest.mark.parametrize(
    "call",
    [
        "blkhash.checksum(sys.argv[1], 'sha3-512', construction='linear', holes='ignore', progress=progress)",
        "blkhash.Image(sys.argv[1]).checksum('sha3-512', construction='linear', progress=progress)",
        "image = blkhash.Image(sys.argv[1], holes='ignore')\n"
        "    blkhash.create_map(image, sys.argv[1] + '.map', 'sha3-512', progress=progress)",
    ],
)
def test_ctrl_c(tmp_path, call):
    large = tmp_path / "large"
    with open(large, "wb") as file:
        file.truncate(1 << 40)
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", INTERRUPTED.format(call=call), str(large)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:
        done, total = map(int, process.stdout.readline().split())
        assert 0 <= done < total == 1 << 40
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=HANG)
        seconds = time.monotonic() - sent
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert output.splitlines()[-1] == "interrupted"
    # A second is the limit of the package, and the machine may be busy.
    assert seconds < 10
    assert not (tmp_path / "large.map").exists()


def test_everything_without_warnings(image, tmp_path):
    script(
        """
import gc, io, sys
import blkhash
for name in blkhash.algorithms_available:
    blkhash.new(name, b"abc").hexdigest()
with blkhash.Image(sys.argv[1]) as image:
    list(image.extents()), image.chain, image.warnings, image.partitions(), image.checksum()
    with io.BufferedReader(image.open()) as file:
        file.read()
map = blkhash.create_map(sys.argv[1], sys.argv[2])
list(map.blocks()), map.info, map.verify(sys.argv[1]), map.diff(map), map.check(), map.checksum()
for call in (lambda: blkhash.checksum("/nowhere"), lambda: blkhash.Map("/nowhere")):
    try:
        call()
    except blkhash.Error:
        pass
blkhash.Image(sys.argv[1])
del image, map, file
gc.collect()
""",
        image,
        tmp_path / "map",
    )
