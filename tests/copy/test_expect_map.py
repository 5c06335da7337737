"""blkcopy --expect-map: copies whose destination is compared with a map or a bmap. tests/maps/test_map_bmap.py has random images."""

import gzip
import json
import os
import pathlib
import random
import subprocess

import pytest

import images
from changing import loop_device
from commands import blkhash
from copies import attempt, fails, run

BLOCK = 4096


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def disk():
    """Writes an image with a hole, its bmap and its map, and one whose last stored byte differs."""
    data = random.Random(1).randbytes(30 * BLOCK) + bytes(40 * BLOCK) + b"end" * 1024
    for name, content in (("disk.img", data), ("other.img", data[:-1] + b"x")):
        images.write_sparse(name, content)
    images.run("bmaptool", "create", "-o", "disk.bmap", "disk.img")
    assert blkhash("map", "create", "-o", "disk.blkmap", "disk.img").returncode == 0
    assert blkhash("map", "export", "--to", "csv", "-o", "disk.csv", "disk.blkmap").returncode == 0
    return data


def piped(function, data, *args):
    """Calls a function with `data` in a pipe as standard input."""
    pathlib.Path("data").write_bytes(data)
    with subprocess.Popen(["cat", "data"], stdout=subprocess.PIPE) as cat:
        return function(*args, stdin=cat.stdout)


def gzipped(name):
    pathlib.Path(name + ".gz").write_bytes(gzip.compress(pathlib.Path(name).read_bytes()))
    return name + ".gz"


@pytest.mark.parametrize("of", ["disk.bmap", "disk.blkmap", "disk.csv"])
def test_sources(of):
    """Images, compressed files and pipes. A new file that is not what was expected is removed."""
    data = disk()
    first = 70 * BLOCK if of == "disk.bmap" else 4 * 65536
    images.convert("other.img", "other.qcow2")
    for source in ("disk.img", gzipped("disk.img"), "-"):
        piped(run, data, "--expect-map", of, source, "copy")
        assert pathlib.Path("copy").read_bytes() == data
        os.remove("copy")
    for source in ("other.img", "other.qcow2", gzipped("other.img"), "-"):
        # The copy equals the source, so that is named.
        result = piped(fails, data[:-1] + b"x", 1, f" {source}: differs from {of} in", "--expect-map", of, source, "copy")
        says = f", the first at {first}: 'blkhash map verify' lists what differs\n"
        assert result.stderr.decode().endswith(says), result
        assert not os.path.exists("copy")


def test_sizes_are_compared_before_anything_is_written():
    data = disk()
    with open("larger.img", "wb") as file:
        file.write(data + b"x")
    pathlib.Path("old").write_bytes(b"old")
    size = len(data)
    for of in ("disk.bmap", "disk.blkmap"):
        says = f"larger.img: has {size + 1} bytes, and {of} is of {size}"
        fails(1, says, "--force", "--expect-map", of, "larger.img", "old")
    assert pathlib.Path("old").read_bytes() == b"old"
    # The length of a pipe is known at its end.
    says = f" -: has {size + 1} bytes, and disk.bmap is of {size}"
    piped(fails, data + b"x", 1, says, "--expect-map", "disk.bmap", "-", "copy")
    assert not os.path.exists("copy")


def test_what_is_reported():
    disk()
    record = json.loads(run("--json", "--expect-map", "disk.bmap", "disk.img", "copy"))
    assert record["compared_bytes"] == 30 * BLOCK + 3072
    result = attempt("-v", "--force", "--expect-map", "disk.blkmap", "disk.img", "copy")
    assert b"; 283.00 KiB compared with the map, and equal\n" in result.stderr
    assert json.loads(run("--json", "--force", "disk.img", "copy"))["compared_bytes"] is None
    lines = attempt("--progress=json", "--force", "--expect-map", "disk.bmap", "disk.img", "copy").stderr.splitlines()
    last = json.loads(lines[-1])
    assert last["done"] == last["total"]


def test_options():
    disk()
    fails_with = [
        (["--verify=source"], "compares what is read back"),
        (["--verify=none"], "compares what is read back"),
        (["--map", "m"], "cannot be used with"),
    ]
    for options, says in fails_with:
        result = attempt("--expect-map", "disk.bmap", *options, "disk.img", "copy")
        assert result.returncode == 2 and says in result.stderr.decode(), result
    result = attempt("--expect-map", "disk.bmap", "disk.img", "-")
    assert result.returncode == 2 and b"standard output cannot be read again" in result.stderr
    fails(2, "none: No such file or directory", "--expect-map", "none", "disk.img", "copy")
    fails(2, "disk.img: is not a block map", "--expect-map", "disk.img", "disk.img", "copy")
    text = pathlib.Path("disk.bmap").read_text()
    pathlib.Path("disk.bmap").write_text(text.replace("chksum=\"", "chksum=\"0", 1))
    fails(2, "disk.bmap: ", "--expect-map", "disk.bmap", "disk.img", "copy")
    assert not os.path.exists("copy")


def test_the_map_is_no_destination():
    disk()
    for of in ("disk.bmap", "disk.blkmap"):
        before = pathlib.Path(of).read_bytes()
        os.link(of, "linked")
        for name in (of, "linked"):
            fails(2, "is the map of --expect-map", "--force", "--expect-map", of, "disk.img", name)
        os.remove("linked")
        with loop_device(of) as device:
            fails(2, "is the map of --expect-map", "--force", "--expect-map", of, "disk.img", device)
        assert pathlib.Path(of).read_bytes() == before
    fails(2, "is the map of --expect-map", "--force", "--expect-map", "disk.blkmap@1", "disk.img", "disk.blkmap")
    assert pathlib.Path("disk.blkmap").read_bytes() == before


def test_a_bmap_without_ranges_proves_nothing():
    with open("zeros.img", "wb") as file:
        file.truncate(20 * BLOCK)
    images.run("bmaptool", "create", "-o", "zeros.bmap", "zeros.img")
    says = "zeros.bmap: has no range with a checksum, so nothing would be compared"
    fails(2, says, "--expect-map", "zeros.bmap", "zeros.img", "copy")
    assert not os.path.exists("copy")


def test_an_empty_image():
    for name in ("empty.img", "other.img"):
        pathlib.Path(name).touch()
    blkhash("map", "create", "-o", "empty.blkmap", "empty.img")
    run("--expect-map", "empty.blkmap", "empty.img", "copy")


def test_a_larger_device():
    """As a card: what it has after the copy is not compared."""
    data = disk()
    with open("card", "wb") as file:
        file.truncate(2 << 20)
    with loop_device("card") as device:
        run("--force", "--expect-map", "disk.bmap", "disk.img", device)
        assert pathlib.Path(device).read_bytes()[: len(data)] == data
        fails(1, "other.img: differs from disk.bmap", "--force", "--expect-map", "disk.bmap", "other.img", device)
