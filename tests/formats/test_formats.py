"""A 6 GiB image with a real ext4, which has the same checksum in each format.

The reference reads the raw image once for each parameter. Each format is created, compared with it and
deleted before the next, so that less than 8 GiB is in use at any time.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import time

import pytest

import blkhash
import images
from commands import ROOT

pytestmark = pytest.mark.slow

MIB = 1 << 20
IMAGE_SIZE = 6 << 30
PARAMETERS = [
    ("sha256", "streams:4"),
    ("sha256", "flat"),
    ("blake2b512", "streams:4"),
    ("blake2b512", "flat"),
]
DENSE_SIZE = 512 * MIB


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """The raw image, sparse."""
    folder = tmp_path_factory.mktemp("formats")
    path = folder / "disk.img"
    images.run(sys.executable, str(ROOT / "scripts/real-image"), str(path))
    assert path.stat().st_size == IMAGE_SIZE
    assert path.stat().st_blocks * 512 > 1024 * MIB, "more than 1 GiB of real files"
    yield path
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def values(raw):
    """The checksums of the reference."""
    return {
        parameter: blkhash.file_checksum(raw, *parameter, 65536).hex() for parameter in PARAMETERS
    }


def check(blksum, path, values, *args):
    for (digest, construction), value in values.items():
        options = ["-d", digest, "--construction", construction, *args]
        assert blksum.hex(*options, str(path)) == value, options


def test_sparse_raw(blksum, raw, values):
    check(blksum, raw, values)


@pytest.mark.parametrize("option", ["--holes=ignore", "--holes=verify", "--cache", "--cache=no"])
def test_sparse_raw_read_otherwise(blksum, raw, values, option):
    check(blksum, raw, values, option)


def test_pipe(blksum, raw, values):
    for (digest, construction), value in values.items():
        cat = subprocess.Popen(["cat", raw], stdout=subprocess.PIPE)
        options = ["-d", digest, "--construction", construction]
        assert blksum.hex(*options, stdin=cat.stdout) == value
        cat.stdout.close()
        assert cat.wait() == 0


def test_standard_input(blksum, raw, values):
    with open(raw, "rb") as file:
        assert blksum.hex(stdin=file) == values["sha256", "streams:4"]


def test_linear_is_the_hash_of_the_content(blksum, raw):
    with open(raw, "rb") as file:
        value = hashlib.file_digest(file, "sha256").hexdigest()
    assert blksum.hex("--construction", "linear", "-f", "raw", str(raw)) == value
    assert blksum.hex("--construction", "linear", str(raw)) == value


FORMATS = {
    "v3": (),
    "v2": ("-o", "compat=0.10"),
    "clusters-4k": ("-o", "cluster_size=4k"),
    "clusters-2m": ("-o", "cluster_size=2m"),
    "metadata": ("-o", "preallocation=metadata"),
    "falloc": ("-o", "preallocation=falloc"),
    "full": ("-o", "preallocation=full"),
    "unordered": ("-W", "-m", "16"),
    "extended-l2": ("-o", "extended_l2=on,cluster_size=128k"),
    "zlib": ("-c", "-W", "-m", "16"),
    "zstd": ("-c", "-W", "-m", "16", "-o", "compression_type=zstd"),
}


# QEMU takes a minute to compress with zlib, and random images of other tests are compressed with it as well.
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.soak] * (name == "zlib")) for name in FORMATS])
def test_qcow2(blksum, raw, values, tmp_path, name):
    path = images.convert(raw, tmp_path / "disk.qcow2", flags=FORMATS[name])
    try:
        check(blksum, path, values)
    finally:
        path.unlink()


@pytest.mark.parametrize("options", ["", "data_file_raw=on"], ids=["data-file", "data-file-raw"])
def test_data_file(blksum, raw, values, tmp_path, options):
    path = images.convert_data_file(raw, tmp_path / "disk.qcow2", options)
    try:
        check(blksum, path, values)
    finally:
        path.with_suffix(".data").unlink()


def test_clusters_of_512_bytes(blksum, raw, tmp_path):
    # QEMU needs minutes for the whole image, so use a part of it.
    part = take_part(raw, tmp_path / "part.img", 128 * MIB)
    values = {p: blkhash.file_checksum(part, *p, 65536).hex() for p in PARAMETERS}
    path = images.convert(part, tmp_path / "disk.qcow2", "cluster_size=512")
    check(blksum, path, values)
    path.unlink()
    part.unlink()


def test_raw_without_holes(blksum, raw, tmp_path):
    part = take_part(raw, tmp_path / "part.img", DENSE_SIZE)
    assert part.stat().st_blocks * 512 >= DENSE_SIZE
    check(blksum, part, {p: blkhash.file_checksum(part, *p, 65536).hex() for p in PARAMETERS})
    part.unlink()


def take_part(raw, path, size):
    """Copies the first bytes of an image, all of them allocated."""
    with open(raw, "rb") as source, open(path, "wb") as target:
        for _ in range(size // MIB):
            target.write(source.read(MIB))
    return path


def test_snapshot_chain_three_deep(blksum, raw, values, tmp_path):
    """Base and overlays contain garbage where a layer above restores the image."""
    base = images.convert(raw, tmp_path / "base.qcow2")
    rng = random.Random(1)
    starts = sorted(rng.sample(range(0, IMAGE_SIZE // MIB, 2), 48))
    areas = [(n * MIB + 512 * rng.randrange(1000), 512 * rng.randrange(1, 1000)) for n in starts]
    write_garbage(base, areas)
    below = base
    for layer in range(3):
        path = tmp_path / f"overlay{layer}.qcow2"
        images.create(path, IMAGE_SIZE, "-b", below.name, "-F", "qcow2")
        restore(path, raw, areas[layer::3], tmp_path / "area")
        if layer < 2:
            # Layers above restore these areas, some of them for the second time.
            write_garbage(path, areas[layer + 1 :: 3])
        below = path
    assert b"identical" in images.qemu_img(
        "compare", "-f", "raw", "-F", "qcow2", raw, below, cwd=tmp_path
    )
    for lower in (tmp_path / "overlay1.qcow2", base):
        assert blksum.hex(str(lower)) != values["sha256", "streams:4"]
    check(blksum, below, values)
    for path in tmp_path.iterdir():
        path.unlink()


def write_garbage(path, areas):
    images.qemu_io(path, *(f"write -P 0xee {offset} {length}" for offset, length in areas))


def restore(path, raw, areas, scratch):
    """Writes areas of the raw image. Areas of zeros are written as zeros."""
    for offset, length in areas:
        with open(raw, "rb") as file:
            file.seek(offset)
            data = file.read(length)
        if data.count(0) == length:
            images.qemu_io(path, f"write -z {offset} {length}")
        else:
            scratch.write_bytes(data)
            images.qemu_io(path, f"write -s {scratch} {offset} {length}")


# The documented limit for 2 threads and any image.
MOST_RESIDENT = 64 * MIB


@pytest.mark.parametrize("options", [None, "", "compression_type=zstd,cluster_size=2m"])
def test_resident_memory(blksum, raw, values, tmp_path, options):
    path = raw
    if options is not None:
        flags = ["-c", "-W", "-m", "16"] if options else []
        path = images.convert(raw, tmp_path / "disk.qcow2", options, flags)
    process = blksum.start("--threads", "2", "--holes=ignore", str(path))
    peak = 0
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    peak = max(peak, int(line.split()[1]) * 1024)
        time.sleep(0.002)
    stdout, _ = process.communicate()
    assert stdout.split()[0].decode() == values["sha256", "streams:4"]
    assert 0 < peak <= MOST_RESIDENT
    if path is not raw:
        path.unlink()


def test_one_changed_byte_changes_every_checksum(blksum, raw, values):
    with open(raw, "r+b") as file:
        file.seek(IMAGE_SIZE // 2 + 12345)
        before = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([before[0] ^ 1]))
        file.flush()
        try:
            for (digest, construction), value in values.items():
                options = ["-d", digest, "--construction", construction]
                assert blksum.hex(*options, str(raw)) != value
        finally:
            file.seek(-1, os.SEEK_CUR)
            file.write(before)
