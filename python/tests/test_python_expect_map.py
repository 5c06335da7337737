"""Copies whose destination is compared with a map, a bmap or another index, as by `blkcopy --expect-map`."""

import gzip
import os
import pathlib
import random
import subprocess

import images
import pytest
from conftest import BLKSUM, blkmap, run

import blkhash

BLOCK = 4096
BLKCOPY = BLKSUM.with_name("blkcopy")
MAPS = ["disk.bmap", "disk.blkmap", "disk.csv"]


@pytest.fixture
def disk(workdir):
    """An image with a hole, its maps, and an image whose last stored byte differs."""
    data = random.Random(1).randbytes(30 * BLOCK) + bytes(40 * BLOCK) + b"end" * 1024
    for name, content in (("disk.img", data), ("other.img", data[:-1] + b"x")):
        images.write_sparse(name, content)
        images.convert(name, name.replace("img", "qcow2"))
    run("bmaptool", "create", "-o", "disk.bmap", "disk.img")
    blkmap("create", "-o", "disk.blkmap", "disk.img")
    blkmap("export", "--to", "csv", "-o", "disk.csv", "disk.blkmap")
    return data


@pytest.mark.parametrize("of", MAPS)
def test_what_is_expected(disk, of):
    for source in ("disk.img", "disk.qcow2"):
        calls = []
        copied = blkhash.copy(source, "copy", expect_map=of, progress=lambda *call: calls.append(call))
        assert pathlib.Path("copy").read_bytes()[: len(disk)] == disk
        assert calls[-1][0] == calls[-1][1] > 2 * copied.size, calls
        os.unlink("copy")
    for source in ("other.img", "other.qcow2"):
        with pytest.raises(blkhash.MismatchError, match=f"copy: differs from {of} in [0-9]+ bytes, the first at") as raised:
            blkhash.copy(source, "copy", expect_map=of)
        assert (raised.value.kind, raised.value.filename) == ("expected", "copy")
        assert raised.value.offset == (70 * BLOCK if of == "disk.bmap" else raised.value.offset // BLOCK * BLOCK)
        assert not os.path.exists("copy")
        # The command agrees.
        command = [BLKCOPY, "--expect-map", of, source, "copy"]
        assert subprocess.run(command, capture_output=True).returncode == 1


@pytest.mark.parametrize("of", MAPS)
def test_other_copies(disk, of):
    """What is there and stays, which is compared, too."""
    blkhash.copy("disk.img", "copy")
    blkmap("create", "-o", "copy.blkmap", "copy")
    for options in ({"update": True}, {"changes": [(0, BLOCK)]}, {"destination_map": "copy.blkmap"}, {"force": True}):
        blkhash.copy("disk.img", "copy", expect_map=of, **options)
        with open("copy", "r+b") as file:
            file.write(b"x")
        if "changes" in options:
            options["changes"] = []
        if "update" in options or "force" in options:
            blkhash.copy("disk.img", "copy", expect_map=of, **options)
            continue
        with pytest.raises(blkhash.MismatchError):
            blkhash.copy("disk.img", "copy", expect_map=of, **options)
        blkhash.copy("disk.img", "copy", update=True)


def test_a_larger_destination(disk, servers):
    server = servers.writable_nbdkit("memory", "1M")
    blkhash.copy("disk.img", server.uri(), expect_map="disk.bmap")
    blkhash.copy("disk.img", server.uri(), expect_map="disk.blkmap", force=True)


def test_what_is_refused(disk):
    before = {path.name: path.read_bytes() for path in pathlib.Path().iterdir()}

    def refused(error, words, source="disk.img", destination="copy", **options):
        with pytest.raises(error, match=words) as raised:
            blkhash.copy(source, destination, **options)
        assert {path.name: path.read_bytes() for path in pathlib.Path().iterdir()} == before
        return raised.value

    for of in MAPS[:2]:
        pathlib.Path("small.img").write_bytes(disk[: 5 * BLOCK])
        before["small.img"] = disk[: 5 * BLOCK]
        size = len(disk)
        words = f"copy: the source has {5 * BLOCK} bytes, and {of} is of {size}"
        assert refused(blkhash.MismatchError, words, "small.img", expect_map=of).kind == "expected"
        # The destination is the map.
        os.symlink(of, "link")
        os.link(of, "hard")
        before["link"] = before["hard"] = before[of]
        for name in (of, "link", "hard"):
            for options in ({"force": True}, {"update": True}):
                refused(blkhash.CopyError, "the map of expect_map|the name of", destination=name, expect_map=of, **options)
        for name in ("link", "hard"):
            os.unlink(name)
            del before[name]
    refused(FileNotFoundError, "none", expect_map="none")
    assert refused(blkhash.MapError, "disk.img: is not a block map", expect_map="disk.img").filename == "disk.img"
    refused(blkhash.MapError, "/dev/null: is not a block map", expect_map="/dev/null")
    refused(IsADirectoryError, "Is a directory", expect_map="/")
    text = pathlib.Path("disk.bmap").read_text()
    pathlib.Path("damaged.bmap").write_text(text.replace("<Range", "<Rnge", 1))
    pathlib.Path("partial.bmap").write_bytes(gzip.compress(b"x"))
    for name in ("damaged.bmap", "partial.bmap"):
        before[name] = pathlib.Path(name).read_bytes()
    for name in ("damaged.bmap", "partial.bmap"):
        refused(blkhash.MapError, name, expect_map=name)


def test_a_map_that_does_not_know_all(disk):
    pathlib.Path("large.img").write_bytes(random.Random(3).randbytes(20 << 20))
    blkmap("create", "--block-size", BLOCK, "--shard", "1/2", "-o", "part.blkmap", "large.img")
    with pytest.raises(blkhash.MapError, match="part.blkmap: has no digests of") as raised:
        blkhash.copy("large.img", "copy", expect_map="part.blkmap")
    assert raised.value.filename == "part.blkmap" and not os.path.exists("copy")
    # A bmap of zeros has no range.
    with open("zeros.img", "wb") as file:
        file.truncate(1 << 20)
    run("bmaptool", "create", "-o", "zeros.bmap", "zeros.img")
    with pytest.raises(blkhash.MapError, match="zeros.bmap: has no range with a checksum"):
        blkhash.copy("zeros.img", "copy", expect_map="zeros.bmap")
    assert not os.path.exists("copy")
