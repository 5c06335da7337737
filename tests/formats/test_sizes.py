"""Images that claim far more than they store, and ambiguous sizes."""

import os
import struct

import pytest

import blkhash
import foreign_images
import images
from commands import HANG, assert_refused, blksum_path

MIB = 1 << 20


def claim(path, offset, size):
    """Overwrites the size in the header with `size`, in sectors or bytes."""
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(size)


def test_zeros_without_end(blksum, workdir):
    images.create("disk.qcow2", "2E", "-o", "cluster_size=2M")
    assert_refused(blksum("disk.qcow2"), "disk.qcow2: has more than 281474976710656 bytes", "--max-zeros")
    assert_refused(blksum("--block-size", "512", "disk.qcow2"), "more than 2199023255552 bytes")
    check = blksum("-c", input=b"0" * 64 + b"  disk.qcow2\n")
    assert (check.returncode, check.stdout) == (1, b"disk.qcow2: FAILED open or read\n")


def test_the_limit_can_be_moved(blksum, workdir):
    images.create("disk.qcow2", "1T")
    value = blksum.hex("disk.qcow2")
    assert blksum.hex("--max-zeros=1T", "disk.qcow2") == value
    assert_refused(blksum("--max-zeros=1023G", "disk.qcow2"), "--max-zeros")


def test_a_large_format_that_does_not_tell_what_it_stores(blksum, workdir):
    """A bochs image of the largest extents, all of them empty."""
    extent, count = 8 * MIB, 1 << 18
    head = bytearray(foreign_images.bochs(bytes(MIB))[:512])
    struct.pack_into("<6IQ", head, 64, 0x20000, 512, count, extent // 4096, extent, 0, extent * count)
    with open("disk.bochs", "wb") as file:
        file.write(head + b"\xff" * 4 * count)
    assert_refused(blksum("disk.bochs"), "disk.bochs", f"{extent * count} bytes", "--max-zeros")
    with open("small.bochs", "wb") as file:
        file.write(foreign_images.bochs(bytes(64 * MIB)))
    assert blksum.hex("small.bochs") == blkhash.checksum([64 * MIB]).hex()
    assert_refused(blksum("--max-zeros=1M", "small.bochs"), "--max-zeros")
    for command in ["info", "btrfs info", "bench image --time 0.01 -d md5"]:
        program = [blksum_path().with_name("blkhash"), *command.split()]
        refused = images.attempt(*program, "disk.bochs", timeout=HANG)
        assert b"--max-zeros=SIZE allows more" in refused.stderr, command
        refused = images.attempt(*program, "--max-zeros=4T", "disk.bochs", timeout=HANG)
        assert b"--max-zeros" not in refused.stderr, command


def test_parallels_that_is_larger_than_its_table(blksum, workdir):
    images.qemu_img("create", "-q", "-f", "parallels", "disk.hds", "1M")
    assert blksum("disk.hds").returncode == 0
    claim("disk.hds", 36, struct.pack("<Q", (2 << 60) // 512))
    assert_refused(blksum("disk.hds"), "disk.hds", "larger than its table")


def test_snapshot_from_before_a_resize(blksum, workdir):
    images.create("disk.qcow2", "1M")
    images.qemu_io("disk.qcow2", "write -P 0x41 0 64k")
    images.qemu_img("snapshot", "-c", "one", "disk.qcow2")
    before = blksum("--snapshot", "one", "disk.qcow2")
    assert (before.returncode, before.stderr) == (0, b"")
    images.qemu_img("resize", "-q", "disk.qcow2", "2M")
    after = blksum("--snapshot", "one", "disk.qcow2")
    assert (after.returncode, after.stdout) == (0, before.stdout)
    assert b"resized after the snapshot" in after.stderr and b"2097152" in after.stderr
    images.to_raw("disk.qcow2", "raw", "-l", "snapshot.name=one")
    assert os.path.getsize("raw") == 2 * MIB


@pytest.mark.parametrize("subformat", ["dynamic", "fixed"])
@pytest.mark.parametrize("force", ["on", "off"])
def test_vpc_with_and_without_force_size(blksum, workdir, subformat, force):
    with open("disk.raw", "wb") as file:
        file.write(b"A" * 100_000)
        file.truncate(100_000 << 10)
    options = f"subformat={subformat},force_size={force}"
    images.qemu_img("convert", "-f", "raw", "-O", "vpc", "-o", options, "disk.raw", "disk.vhd")
    result = blksum("disk.vhd")
    assert result.returncode == 0
    is_same = result.stdout.split()[0].decode() == blksum.hex("disk.raw")
    assert is_same == (force == "on")
    assert (b"whole cylinders" in result.stderr) == (force == "off")


def test_vpc_whose_geometry_is_not_its_size(blksum, workdir):
    images.qemu_img("create", "-q", "-f", "vpc", "-o", "subformat=fixed", "disk.vhd", "100000k")
    with open("disk.vhd", "r+b") as file:
        file.seek(-512, os.SEEK_END)
        footer = bytearray(file.read())
        footer[48:56] = struct.pack(">Q", 90_000 << 10)
        footer[64:68] = bytes(4)
        footer[64:68] = struct.pack(">I", ~sum(footer) & 0xFFFF_FFFF)
        file.seek(-512, os.SEEK_END)
        file.write(footer)
    result = blksum("disk.vhd")
    assert result.returncode == 0
    assert b"and not the 92160000 bytes" in result.stderr, result


def test_vmdk_descriptor_without_the_id_of_a_parent(blksum, workdir):
    with open("flat.raw", "wb") as file:
        file.truncate(MIB)
    head = '# Disk DescriptorFile\nversion=1\nCID=12345678\ncreateType="monolithicFlat"\n'
    extent = 'RW 2048 FLAT "flat.raw" 0\n'
    with open("disk.vmdk", "w") as file:
        file.write(head + extent)
    assert images.attempt("qemu-img", "info", "disk.vmdk").returncode == 1
    assert_refused(blksum("disk.vmdk"), "disk.vmdk", "parentCID=")
    with open("disk.vmdk", "w") as file:
        file.write(head + "parentCID=ffffffff\n" + extent)
    assert blksum.hex("disk.vmdk") == blkhash.checksum([MIB]).hex()
