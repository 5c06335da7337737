"""vdi images, against what QEMU reads."""

import pathlib
import random
import struct

import guest_view
import images
from commands import assert_refused

MIB = 1 << 20
SECTOR = 512
# Fields that are numbers, and the map of an image of up to 128 blocks.
REGIONS = [(0x40, 0x14), (0x154, 0x34), (0x1A8, 0x20), (512, 64)]


def test_mutants(blksum, workdir):
    rng = random.Random(2)
    path = pathlib.Path("disk.vdi")
    size = 2 * MIB + 3 * SECTOR
    images.qemu_img("create", "-q", "-f", "vdi", path, size)
    images.qemu_io(path, f"write -P 1 0 {MIB}", f"write -P 2 {2 * MIB} {SECTOR}", fmt="vdi")
    both, stricter = guest_view.check_mutants(blksum, "vdi", path.read_bytes(), REGIONS, 120, rng)
    assert both > 0
    expected = ("is not a", "past the end", "not read", "not known", "larger than its table", "stores content")
    assert not [it for it in stricter if not any(words in it for words in expected)]


def test_truncation(blksum, workdir):
    """Whatever is lost, the result is an error."""
    size = 2 * MIB + SECTOR
    images.qemu_img("create", "-q", "-f", "vdi", "whole.vdi", size)
    images.qemu_io("whole.vdi", f"write -P 3 0 {size}", fmt="vdi")
    data = pathlib.Path("whole.vdi").read_bytes()
    end = 1024 + size
    value = guest_view.theirs("whole.vdi", "vdi")
    for cut in (0, 1, 511, 512, 513, 523, 524, 1023, 1024, 1025, 1024 + MIB, end - 1):
        pathlib.Path("cut.vdi").write_bytes(data[:cut])
        (result,) = guest_view.ours(blksum, ["cut.vdi"], "-f", "vdi")
        assert result[0] is None and result[1], cut
    for cut in (end, len(data) - 1):
        pathlib.Path("cut.vdi").write_bytes(data[:cut])
        assert guest_view.ours(blksum, ["cut.vdi"], "-f", "vdi") == [(value, None)], cut


def test_differences_are_refused(blksum, workdir):
    images.qemu_img("create", "-q", "-f", "vdi", "disk.vdi", "4M")
    with open("disk.vdi", "r+b") as file:
        file.seek(0x4C)
        file.write(struct.pack("<I", 4))
    assert_refused(blksum("disk.vdi"), "disk.vdi", "difference to another disk")
