"""Random images that QEMU writes in each format, overlays, and large disks: the content is QEMU's."""

import json
import random

import pytest

import guest_view
import images
import test_parallels
import test_qcow1
import test_qcow2
import test_qed
import test_vdi
import test_vhdx
import test_vmdk
import test_vpc

KIB = 1 << 10
MIB = 1 << 20

# `create(rng, path)` makes a random image. Functions of OVERLAYS take the name and the format of a backing file as
# well.
GENERATORS = {
    "parallels": test_parallels.create,
    "qcow": test_qcow1.create,
    "qcow2": test_qcow2.create,
    "qed": test_qed.create,
    "vdi": test_vdi.create,
    "vhdx": test_vhdx.create_written,
    "vmdk": test_vmdk.random_disk,
    "vpc": test_vpc.create,
}
# The format, and those that it records.
OVERLAYS = [("qcow", []), ("qcow2", ["raw", "qcow2", "vdi"]), ("qed", ["raw"])]
# Options of qemu-img for a disk of 1 TiB, and the most that may be read if 512 bytes are stored: the tables.
LARGE = {
    "qcow": ("", 5 * MIB),
    "qed": ("", 500 * KIB),
    "vdi": ("", 6 * MIB),
    "vhdx": ("", 12 * MIB),
    "vpc": ("force_size=on", 5 * MIB),
}


@pytest.mark.parametrize("fmt", GENERATORS)
def test_content(blksum, workdir, fmt):
    rng = random.Random(fmt)
    numbers = range(guest_view.count(12))
    # Few files at a time, because many images fill a disk.
    for start in numbers[::20]:
        paths = [workdir / f"{number}.{fmt}" for number in numbers[start : start + 20]]
        for path in paths:
            GENERATORS[fmt](rng, path)
        guest_view.assert_same(blksum, paths, fmt)
        for path in paths:
            path.unlink()


@pytest.mark.parametrize("fmt, recorded", OVERLAYS)
def test_overlays(blksum, workdir, fmt, recorded):
    guest_view.assert_overlays_same(blksum, fmt, random.Random(fmt), GENERATORS[fmt], recorded)


@pytest.mark.parametrize("fmt", LARGE)
def test_large_disk(blksum, workdir, fmt):
    options, limit = LARGE[fmt]
    images.qemu_img("create", "-q", "-f", fmt, *(("-o", options) if options else ()), "disk", "1T")
    images.create("disk.qcow2", "1T")
    for name, kind in (("disk", fmt), ("disk.qcow2", "qcow2")):
        images.qemu_io(name, "write -P 7 700G 512", fmt=kind)
    report = json.loads(blksum("--json", "-f", fmt, "disk", timeout=30).stdout)
    assert report["virtual_size"] == 1 << 40 and report["bytes_read"] < limit, report
    assert report["checksum"] == blksum.hex("disk.qcow2")
