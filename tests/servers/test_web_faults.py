"""HTTP servers that fail, lie or change what they serve (`rogue_web.py`): the right value or an error, in a bounded time."""

import concurrent.futures
import contextlib
import functools
import os
import pathlib
import random
import subprocess
import threading
import time

import pytest

import blkhash
import images
import rogue_web
from commands import assert_refused
from memory import peak_anonymous_memory_of

KIB = 1 << 10
MIB = 1 << 20

# Answers take a fraction of this, even on a busy machine, with retries and their pauses.
BOUND = 200

CONTENT = random.Random(1).randbytes(6 * MIB + 321)
OTHER = random.Random(2).randbytes(len(CONTENT))
EXPECTED = blkhash.checksum(CONTENT).hex()

GOOD = ["less", "no-length", "chunks", "no-tag", "date", "weak-tag", "503", "429", "500", "reset", "close", "short", "close-each", "old"]
GOOD += ["redirect", "identity", "slow"]
GOOD = [f"good-{way}" for way in GOOD]

# Each answer says something that cannot be right for the request, or does not arrive.
WRONG = [f"range-{name}" for name in rogue_web.Session.RANGES] + ["wrong-range", "wrong-start", "wrong-end", "total-below-end", "total-twice"]
WRONG += ["multipart", "short", "length-less", "length-more", "length-negative", "length-huge", "length-words", "length-hex", "lengths-differ"]
WRONG += ["short-no-length", "chunks-short", "chunks-less", "chunks-more", *(f"chunks-{name}" for name in rogue_web.Session.SIZES if name != "largest")]
WRONG += [f"redirect-{name}" for name in rogue_web.Session.LOCATIONS if name not in ("empty", "control")]
WRONG += ["redirect-self", "redirect-circle", "redirect-endless", "redirect-nowhere"]
WRONG += ["headers-many", "headers-endless", "header-endless", "line-endless", "continue-endless", "no-head", "nothing"]
WRONG += ["head-number", "head-colon", "gzip", "gzip-range", "gzip-word", "gzip-all", "gzip-transfer", "chunks-endless"]
WRONG += [f"status-{status}" for status in (204, 205, 300, 304, 400, 401, 403, 404, 410, 412, 416, 429, 451, 500, 501, 502, 503, 504, 599, 999)]
WRONG += ["status-503-for-a-day", "status-503-with-a-tale"]
WRONG += ["reset-at-start", "reset-in-head", "reset-in-body"]

# A program may refuse these, or read around what is wrong.
EITHER = ["total-unknown", "long", "length-list", "length-plus", "length-and-chunks", "chunks-trailers", "headers-huge", "continue-once"]
EITHER += ["redirect-empty", "redirect-control", "all", "wrong-total", "chunks-largest"]
EITHER += [f"head-{name}" for name in rogue_web.Session.HEADS if name not in ("number", "colon")]

CHANGES = ["changed-tag", "changed-weak-tag", "changed-no-tag", "changed-length", "all-changed"]

SILENT = ["stall-at-start", "stall-in-head", "stall-in-body", "drip-head", "drip-body", "drip-chunks"]

# Clients try again for seconds after some faults. These end at once.
QUICK = ["wrong-range", "range-none", "redirect-circle", "headers-endless", "gzip", "status-404", "late-wrong-range", "late-gzip-word"]
QUICK += ["late-length-more", "late-chunks-more", "status-503-for-a-day"]

# Clients at once, which wait most of the time.
AT_ONCE = 12


@contextlib.contextmanager
def rogue(way, content=CONTENT, other=OTHER):
    server = rogue_web.RogueWebServer(content, way, other)
    try:
        yield server
    finally:
        server.close()


def both(ways):
    return [*ways, *(f"late-{way}" for way in ways)]


def read(blksum, server, *args):
    """Runs blksum in a bounded time and memory."""
    process = blksum.start("-f", "raw", "--timeout=5", *args, server.url())
    hanging = threading.Timer(BOUND, process.kill)
    hanging.start()
    peak = peak_anonymous_memory_of(process)
    hanging.cancel()
    output, errors = process.communicate(timeout=BOUND)
    assert peak < 300 * MIB, peak
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def assert_right_or_refused(result, server):
    if result.returncode == 0:
        assert result.stdout.split()[0].decode() == EXPECTED, result
    else:
        assert_refused(result)
    assert server.requests


def test_every_way_is_tested():
    ways = set(GOOD + WRONG + EITHER + CHANGES + SILENT) | {"mixed", "mixed-dates"}
    methods = [name.replace("_", "-") for name, it in vars(rogue_web.Session).items() if callable(it)]
    parts = ["--init--", "run", "serve", "send", "head", "range", "partial", "honest", "close", "reset", "stall", "drip", "pour", "chunk"]
    parts += ["sometimes", "redirect", *(name for name in methods if name.startswith("any-"))]
    assert set(methods) - set(parts) | set(rogue_web.NAMED) == ways - {way for way in ways if way.startswith("status-") and way[7:].isdigit()}


def test_honest(blksum):
    with rogue("honest") as server:
        assert read(blksum, server).stdout.split()[0].decode() == EXPECTED
    # The ranges cover the content, and no byte is asked for twice.
    extents = sorted(it[3] for it in server.requests)
    assert sum(end - first for first, end in extents) == len(CONTENT) and len(extents) > 1, extents
    assert all(fields.get("accept-encoding", "identity") == "identity" for _, _, fields, _ in server.requests)


@pytest.mark.parametrize("way", GOOD)
def test_allowed(blksum, way):
    with rogue(way) as server:
        result = read(blksum, server)
    assert (result.returncode, result.stdout.split()[0].decode()) == (0, EXPECTED), result
    assert server.misbehaved


def test_a_check_file_asks_as_often_as_an_image(blksum):
    """It may be an image that states checksums, or lines. A server that fails is not asked for both."""
    asked = []
    for option in ("--bytes", "--check"):
        with rogue("status-503-for-a-day") as server:
            assert_refused(blksum(option, "--timeout=5", server.url(), timeout=BOUND), f"127.0.0.1:{server.port}")
        asked.append(len(server.requests))
    assert asked[0] == asked[1] > 0, asked


def check_wrong(blksum, way):
    with rogue(way) as server:
        result = read(blksum, server)
    assert server.misbehaved
    assert_refused(result, f"http://127.0.0.1:{server.port}/")
    assert len(server.requests) < 300


def check_doubtful(blksum, way):
    with rogue(way) as server:
        assert_right_or_refused(read(blksum, server), server)
    assert server.misbehaved


def check_silent(blksum, way):
    with rogue(way) as server:
        assert_refused(read(blksum, server, "--timeout=0.4"))
    assert server.misbehaved


def check_all(blksum, check, ways):
    """Checks all ways before it fails."""

    def failure(way):
        try:
            check(blksum, way)
        except AssertionError as error:
            return way, str(error)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        failures = [it for it in pool.map(failure, ways) if it]
    assert failures == []


@pytest.mark.parametrize("way", QUICK)
def test_wrong(blksum, way):
    check_wrong(blksum, way)


@pytest.mark.slow
def test_all_that_are_wrong(blksum):
    check_all(blksum, check_wrong, [way for way in both(WRONG) if way not in QUICK])


@pytest.mark.parametrize("way", ["all", "late-all", "long"])
def test_doubtful(blksum, way):
    check_doubtful(blksum, way)


@pytest.mark.slow
def test_all_that_are_doubtful(blksum):
    check_all(blksum, check_doubtful, both(EITHER))


@pytest.mark.slow
def test_silent(blksum):
    check_all(blksum, check_silent, both(SILENT))


@pytest.mark.parametrize("way", [*(f"late-{way}" for way in CHANGES), "mixed", "mixed-dates"])
def test_changed(blksum, way):
    """The content is of one version, or there is no checksum."""
    with rogue(way) as server:
        result = read(blksum, server)
    assert server.misbehaved
    assert_refused(result, "without ETag" if way == "late-changed-no-tag" else "changed")


@pytest.mark.slow
def test_random_faults(blksum):
    """Servers that change their way with every answer. What is read is the content."""
    ways = [way for way in both(WRONG + EITHER) if not way.startswith("status-503-")]
    rng = random.Random(3)
    read_well = []
    servers = []
    for _ in range(60):
        two = [way.removeprefix("late-") for way in rng.choices(ways, k=2)]
        own = random.Random(rng.random())
        servers.append(functools.partial(choose, own, [*["honest"] * 6, *two]))

    def check(blksum, way):
        with rogue(way) as server:
            result = read(blksum, server, "--timeout=1")
        assert_right_or_refused(result, server)
        if result.returncode == 0:
            read_well.append(way)

    check_all(blksum, check, servers)
    assert len(read_well) > 3


def choose(rng, ways, number):
    return rng.choice(ways)


@pytest.mark.parametrize("kind", ["nginx", "apache", "caddy"])
def test_replaced_while_it_is_read(blksum, web, root, kind):
    """A new file takes the name of the old one, while some of its bytes have been read."""
    disk, new = pathlib.Path("disk.img"), pathlib.Path("new.img")
    disk.write_bytes(random.Random(4).randbytes(64 * MIB))
    new.write_bytes(random.Random(5).randbytes(64 * MIB))
    # nginx looks at whole seconds only.
    os.utime(disk, (0, 0))
    server = web.start(kind, root)
    slow = web.start("nginx", root, more=f"proxy_buffering off; limit_rate 4m; location / {{ proxy_pass {server.url()}; }}")
    process = blksum.start(slow.url("disk.img"))
    wait_for_a_request(slow, process)
    new.rename(disk)
    output, errors = process.communicate(timeout=BOUND)
    assert_refused(subprocess.CompletedProcess([], process.returncode, output, errors), "changed")


def wait_for_a_request(server, process):
    while not (server.folder / "log").read_text():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.mark.slow
def test_server_that_dies(blksum, web, root):
    disk = pathlib.Path("disk.img")
    disk.write_bytes(random.Random(4).randbytes(32 * MIB))
    server = web.start("nginx", root, more="limit_rate 4m;")
    process = blksum.start("--timeout=2", server.url("disk.img"))
    wait_for_a_request(server, process)
    server.process.kill()
    output, errors = process.communicate(timeout=BOUND)
    assert_refused(subprocess.CompletedProcess([], process.returncode, output, errors), "disk.img")


@pytest.mark.slow
def test_qcow2_on_servers_that_fail(blksum, root):
    images.create("disk.qcow2", "64M")
    images.qemu_io("disk.qcow2", *(f"write -P {1 + at} {at * 3 * MIB} 1M" for at in range(20)))
    content = pathlib.Path("disk.qcow2").read_bytes()
    expected = blksum.hex("disk.qcow2")
    for way in ("good-reset", "good-short", "good-503", "good-less", "good-chunks", "good-close-each"):
        with rogue(way, content) as server:
            assert blksum.hex("--timeout=5", "-f", "qcow2", server.url()) == expected, way
    for way in ("late-short", "late-wrong-range", "late-changed-tag", "late-gzip", "mixed"):
        with rogue(way, content, content[:-MIB] + bytes(MIB)) as server:
            assert_refused(blksum("--timeout=5", "-f", "qcow2", server.url(), timeout=BOUND))
            assert server.misbehaved
