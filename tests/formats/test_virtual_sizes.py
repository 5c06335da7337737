"""A size in a header that is smaller than what is stored, in each format, against QEMU."""

import pathlib
import struct

import pytest

import guest_view
import images
import vpc_images
from commands import assert_refused

MIB = 1 << 20
SIZE = 8 * MIB
WRITES = ("write -P 1 0 64k", f"write -P 2 {3 * MIB} 1M", f"write -P 3 {7 * MIB} 64k")

# Offset, encoding and unit of the field.
FIELDS = {
    "qcow": (24, ">Q", 1),
    "qcow2": (24, ">Q", 1),
    "vmdk": (12, "<Q", 512),
    "vdi": (0x170, "<Q", 1),
    "qed": (48, "<Q", 1),
    "parallels": (36, "<Q", 512),
    "vpc": (48, ">Q", 1),
    "vhdx": (0, "<Q", 1),
}
VHDX_SIZE = bytes.fromhex("2442a52f1bcd7648b2115dbed83bf4b8")


def create(fmt, path="disk", writes=WRITES, size=SIZE, options=()):
    options += ("force_size=on",) if fmt == "vpc" else ()
    images.qemu_img("create", "-q", "-f", fmt, *(it for option in options for it in ("-o", option)), path, size)
    if writes:
        images.qemu_io(path, *writes, fmt=fmt)
    return pathlib.Path(path).read_bytes()


def resized(fmt, image, size):
    """Returns a copy with another virtual size in its header, and nothing else changed."""
    at, code, unit = FIELDS[fmt]
    image = bytearray(image)
    if fmt == "vhdx":
        item = image.index(VHDX_SIZE)
        at = image.rindex(b"metadata", 0, item) + struct.unpack_from("<I", image, item + 16)[0]
    starts = (0, len(image) - 512) if fmt == "vpc" else (0,)
    for start in starts:
        struct.pack_into(code, image, start + at, size // unit)
        if fmt == "vpc":
            image[start : start + 512] = vpc_images.checksum(image[start : start + 512], 64)
    return bytes(image)


@pytest.mark.parametrize("fmt", FIELDS)
def test_a_smaller_size_is_read_as_in_qemu(blksum, workdir, fmt):
    """A disk that was shrunk keeps what it stores, so that this is no damage by itself."""
    image = create(fmt)
    sizes = (1, 511, 512, 65536, MIB, 3 * MIB, 3 * MIB + 512, 5 * MIB, 7 * MIB + 65536, SIZE)
    paths = [f"disk-{size}" for size in sizes]
    for path, size in zip(paths, sizes):
        pathlib.Path(path).write_bytes(resized(fmt, image, size))
    compared = 0
    for path, (checksum, message) in zip(paths, guest_view.ours(blksum, paths, "-f", fmt)):
        theirs = guest_view.theirs(path, fmt)
        assert checksum in (None, theirs), (path, message)
        compared += checksum is not None
    # The descriptor of a vmdk states the size as well.
    assert compared >= (1 if fmt == "vmdk" else 7)


@pytest.mark.parametrize("size", [0, 511])
@pytest.mark.parametrize("fmt", FIELDS)
def test_a_size_that_hides_all_content(blksum, workdir, fmt, size):
    image = resized(fmt, create(fmt), size)
    pathlib.Path("disk").write_bytes(image)
    [(checksum, message)] = guest_view.ours(blksum, ["disk"], "-f", fmt)
    # These round up to a sector.
    if size and fmt == "vdi":
        assert checksum == guest_view.theirs("disk", fmt)
        return
    words = {"qcow": "too small", "vmdk": "is not read", "vhdx": "BAT is too short", "qed": "multiple of 512"}
    if fmt == "vhdx" and size:
        words["vhdx"] = "not possible"
    expected = words.get(fmt) if not (fmt == "qcow" and size or fmt == "qed" and not size) else None
    assert checksum is None and (expected or "virtual size of 0 bytes, and stores content") in message


@pytest.mark.parametrize("fmt", ["qcow2", "vdi", "qed", "parallels", "vpc", "vhdx"])
def test_an_empty_disk_of_size_zero(blksum, workdir, fmt):
    create(fmt, writes=(), size=0)
    guest_view.assert_same(blksum, ["disk"], fmt)


def test_an_empty_vhdx_with_the_table_of_a_larger_disk(blksum, workdir):
    """QEMU needs a table of 64 MiB for a disk of 0 bytes, and writes one."""
    image = create("vhdx", writes=())
    pathlib.Path("disk").write_bytes(resized("vhdx", image, 0))
    assert guest_view.theirs("disk", "vhdx") is None
    assert_refused(blksum("disk"), "disk", "BAT is too short")


def test_a_vhdx_of_size_zero_with_blocks(blksum, workdir):
    """As QEMU makes one, with an entry for a block that follows the table."""
    image = bytearray(create("vhdx", writes=(), size=0))
    table = len(image) & -MIB
    image += bytes(table + 9 * MIB - len(image))
    # The entry of the region has the type, the offset and the length.
    bat = image.index(bytes.fromhex("6677c22d23f600429d64115e9bfd4a08"))
    (offset,) = struct.unpack_from("<Q", image, bat + 16)
    struct.pack_into("<Q", image, offset, table | 6)
    pathlib.Path("disk").write_bytes(image)
    assert_refused(blksum("disk"), "disk", "virtual size of 0 bytes, and stores content")


def test_a_fixed_vpc_of_size_zero(blksum, workdir):
    image = bytearray(vpc_images.fixed(b"x" * 4096))
    struct.pack_into(">Q", image, 4096 + 48, 0)
    image[4096:] = vpc_images.checksum(image[4096:], 64)
    pathlib.Path("disk.vhd").write_bytes(image)
    assert_refused(blksum("disk.vhd"), "disk.vhd", "virtual size of 0 bytes", "--vpc-size")


@pytest.mark.parametrize("size", ["512", "1M", "5M"])
def test_a_disk_that_was_shrunk(blksum, workdir, size):
    create("qcow2", options=("cluster_size=4k",))
    images.qemu_img("resize", "-q", "-f", "qcow2", "--shrink", "disk", size)
    guest_view.assert_same(blksum, ["disk"], "qcow2")


def test_a_snapshot_of_size_zero(blksum, workdir):
    """A snapshot has a size of its own. Besides the state of a machine, no content is stored in one of 0 bytes."""
    create("qcow2")
    images.qemu_img("snapshot", "-c", "before", "disk")
    image = bytearray(pathlib.Path("disk").read_bytes())
    (entry,) = struct.unpack_from(">Q", image, 64)
    assert struct.unpack_from(">Q", image, entry + 48) == (SIZE,)
    struct.pack_into(">Q", image, entry + 48, 0)
    pathlib.Path("disk").write_bytes(image)
    result = blksum("--snapshot", "before", "disk")
    assert (result.returncode, result.stdout) == (1, b""), result
    assert b"virtual size of 0 bytes, and stores content" in result.stderr
    struct.pack_into(">Q", image, entry + 40, 65536)
    pathlib.Path("disk").write_bytes(image)
    assert blksum.hex("--snapshot", "before", "disk") == blksum.hex("/dev/null")
