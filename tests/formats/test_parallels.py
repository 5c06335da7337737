"""parallels images, against what QEMU reads."""

import hashlib
import pathlib
import random
import struct

import pytest

import guest_view
import images
from commands import assert_refused

KIB = 1 << 10
MIB = 1 << 20
SECTOR = 512
EXTENSION = struct.pack("<Q", 0xAB234CEF23DCEA87)


def disk(path="disk.hds"):
    path = pathlib.Path(path)
    options = "cluster_size=4096"
    images.qemu_img("create", "-q", "-f", "parallels", "-o", options, path, 20 * KIB)
    images.qemu_io(path, "write -P 1 0 6k", "write -P 2 16k 4k", fmt="parallels")
    return path


@pytest.mark.parametrize("magic", [b"WithoutFreeSpace", b"WithouFreSpacExt"])
def test_mutants(blksum, workdir, magic):
    rng = random.Random(magic[-1])
    image = bytearray(disk().read_bytes())
    if magic == b"WithoutFreeSpace":
        image[:16] = magic
        for at in range(64, 84, 4):
            struct.pack_into("<I", image, at, struct.unpack_from("<I", image, at)[0] * 8)
    both, stricter = guest_view.check_mutants(blksum, "parallels", image, [(0, 84)], 80, rng)
    assert both > 0
    expected = ("is not a", "past the end", "larger than its table", "flags", "converted", "marked as empty", "stores content")
    assert not [it for it in stricter if not any(words in it for words in expected)]


def test_truncation(blksum, workdir):
    data = disk().read_bytes()
    end = 4 * 4096
    value = guest_view.theirs("disk.hds", "parallels")
    for cut in (0, 1, 16, 63, 64, 83, 84, 4095, 4096, 8191, 3 * 4096, end - 1):
        pathlib.Path("cut.hds").write_bytes(data[:cut])
        (result,) = guest_view.ours(blksum, ["cut.hds"], "-f", "parallels")
        assert result[0] is None and result[1], cut
    pathlib.Path("cut.hds").write_bytes(data[:end])
    assert guest_view.ours(blksum, ["cut.hds"], "-f", "parallels") == [(value, None)]


def test_an_image_that_was_not_closed(blksum, workdir):
    data = bytearray(disk().read_bytes())
    value = blksum.hex("disk.hds")
    struct.pack_into("<I", data, 44, 0x746F6E59)
    pathlib.Path("open.hds").write_bytes(data)
    guest_view.assert_same(blksum, ["open.hds"], "parallels")
    result = blksum("open.hds")
    assert (result.returncode, result.stdout.split()[0].decode()) == (0, value)
    assert b"was not closed" in result.stderr, result


def with_extension(*features):
    """Makes an image with extensions, which QEMU reads if it knows them."""
    data = bytearray(disk().read_bytes())
    data += bytes(-len(data) % 4096)
    struct.pack_into("<Q", data, 56, len(data) // SECTOR)
    body = b"".join(features).ljust(4096 - 24, b"\0")
    path = pathlib.Path("extended.hds")
    path.write_bytes(bytes(data) + EXTENSION + hashlib.md5(body, usedforsecurity=False).digest() + body)
    return path


def bitmap(size=40):
    """A dirty bitmap without bits, with an id."""
    return struct.pack("<QQIIQ16sIIQ", 0x20385FAE252CB34A, 0, 40, 0, size, bytes(range(16)), 8, 1, 0)


def test_dirty_bitmaps_do_not_matter(blksum, workdir):
    path = with_extension(bitmap())
    guest_view.assert_same(blksum, [path], "parallels")
    assert blksum.hex(path) == blksum.hex("disk.hds")


def test_other_extensions_are_refused(blksum, workdir):
    path = with_extension(struct.pack("<QQII", 0x1234, 0, 0, 0))
    assert guest_view.theirs(path, "parallels") is None
    assert_refused(blksum(path), "extended.hds", "extension 0x1234")
    data = path.read_bytes()
    path.write_bytes(data.replace(EXTENSION, bytes(8)))
    assert guest_view.theirs(path, "parallels") is None
    assert_refused(blksum(path), "extended.hds", "magic")
