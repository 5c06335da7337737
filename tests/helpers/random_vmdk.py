"""Random images of vmdk, by QEMU."""

import os
import pathlib

import guest_view
import images

KIB = 1 << 10
MIB = 1 << 20
SECTOR = 512
GRAIN = 64 * KIB
SPARSE = ("monolithicSparse", "twoGbMaxExtentSparse")
FLAT = ("monolithicFlat", "twoGbMaxExtentFlat")
KINDS = (*SPARSE, *FLAT, "streamOptimized")


def random_content(rng, size, unit=GRAIN):
    """Returns content with runs of zeros, of bytes that compress, and of others, in units or parts."""
    content = bytearray()
    while len(content) < size:
        length = rng.choice((unit, 2 * unit, 5 * unit, SECTOR, unit // 2))
        kind = rng.randrange(4)
        if kind == 0:
            content += rng.randbytes(length)
        elif kind == 1:
            content += bytes([rng.randrange(256)]) * length
        else:
            content += bytes(length)
    return bytes(content[:size])


def create(path, kind, size=None, options="", parent=None):
    """Creates a disk with qemu-img."""
    options = f"subformat={kind}" + (options and "," + options)
    backing = ("-b", parent, "-F", "vmdk") if parent else ()
    size = () if size is None else (size,)
    images.qemu_img("create", "-q", "-f", "vmdk", "-o", options, *backing, path, *size)


def random_options(rng, kind):
    options = rng.choice(("", "compat6", "adapter_type=lsilogic", "hwversion=7", "toolsversion=2147483647"))
    if kind in SPARSE and rng.randrange(2):
        options += (options and ",") + "zeroed_grain=on"
    return options


def write(rng, path, size, zeroes=True):
    commands = guest_view.random_writes(rng, size, GRAIN, zeroes=zeroes, discards=False)
    images.qemu_io(path, *commands, fmt="vmdk")


def random_size(rng):
    return rng.choice((1, 2, 3, 17, 40)) * MIB + rng.choice((0, 0, SECTOR, 4096, GRAIN, 3 * GRAIN + SECTOR))


def random_disk(rng, path):
    """Creates a disk of a random kind with random writes. Returns its size."""
    kind, size = rng.choice(KINDS), random_size(rng)
    options = random_options(rng, kind)
    if kind != "streamOptimized":
        create(path, kind, size, options)
        write(rng, path, size)
        return size
    content = random_content(rng, size)
    pathlib.Path("raw").write_bytes(content)
    options = f"subformat={kind}" + (options and "," + options)
    images.qemu_img("convert", "-q", "-f", "raw", "-O", "vmdk", "-o", options, "raw", path)
    os.unlink("raw")
    return size
