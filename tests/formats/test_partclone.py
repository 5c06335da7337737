"""Images of partclone, as Clonezilla makes them of file systems, compared with partclone.restore; checksums, damage, mutants."""

import concurrent.futures
import gzip
import hashlib
import json
import os
import pathlib
import random
import struct
import zlib

import pytest

import images
from commands import assert_refused, digest

SEED = 20261130
KIB, MIB = 1 << 10, 1 << 20
HEADER = 110

# partclone waits for about two seconds at its end, so several run at once.
POOL = concurrent.futures.ThreadPoolExecutor(16)

# Options of partclone for checksums.
SETTINGS = {
    "default": (),
    "none": ("-a0",),
    "each block": ("-a1", "-k1"),
    # partclone.restore ends by a double free for some numbers that do not divide those in its buffer.
    "few blocks": ("-k8",),
    "not reseeded": ("-k4", "-K"),
    "all": ("-k10000000",),
    "clonezilla": ("-z", "10485760"),
}

PROGRAMS = {"ext4": "partclone.ext4", "vfat": "partclone.vfat", "ntfs": "partclone.ntfs", "xfs": "partclone.xfs", "raw": "partclone.imager"}


def clone(kind, source, image, *options):
    images.run(PROGRAMS[kind], "-c", "-s", source, "-O", image, "-q", "-L", "/dev/null", *options)
    return image


def restored(path):
    """The SHA-256 of what partclone.restore writes, or None if it fails."""
    result = images.attempt("partclone.restore", "-C", "-s", path, "-o", "-", "-q", "-L", "/dev/null")
    return hashlib.sha256(result.stdout).hexdigest() if result.returncode == 0 else None


def file_system(kind, path):
    """Makes a file system with random files, and with blocks that are used no more."""
    rng = random.Random(SEED)
    folder = path.with_suffix(".files")
    folder.mkdir()
    for number in range(12):
        (folder / f"file{number}").write_bytes(rng.randbytes(rng.randrange(1, 300_000)))
    with open(path, "wb") as file:
        for place in range(0, 12 * MIB, 128 * KIB):
            file.seek(place)
            file.write(rng.randbytes(5000))
        file.truncate(300 * MIB if kind == "xfs" else 12 * MIB + 100 if kind == "raw" else 12 * MIB)
    files = sorted(folder.iterdir())
    if kind == "ext4":
        images.run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", "-d", folder, path)
    elif kind == "vfat":
        images.run("mkfs.vfat", path)
        images.run("mcopy", "-i", path, *files, "::")
    elif kind == "ntfs":
        images.run("mkfs.ntfs", "-q", "-Q", "-F", "-s", "512", "-p", "0", "-H", "0", "-S", "0", path)
        for file in files:
            images.run("ntfscp", path, file, file.name)
    elif kind == "xfs":
        lines = "".join(f"{file.name} ---644 0 0 {file}\n" for file in files)
        path.with_suffix(".proto").write_text(f"/\n0 0\nd--755 0 0\n{lines}$\n")
        images.run("mkfs.xfs", "-q", "-K", "-f", "-p", path.with_suffix(".proto"), path)


@pytest.fixture(scope="module")
def cloned(tmp_path_factory):
    """Images of all kinds of file systems with all settings, by both."""
    folder = tmp_path_factory.mktemp("partclone")
    for kind in PROGRAMS:
        file_system(kind, folder / kind)
    names = {
        (kind, setting): folder / f"{kind}.{number}"
        for kind in PROGRAMS
        for number, setting in enumerate(SETTINGS)
        # Their images have a log of 64 MiB.
        if kind != "xfs" or setting in ("default", "none", "not reseeded")
    }
    made = [POOL.submit(clone, kind, folder / kind, path, *SETTINGS[setting]) for (kind, setting), path in names.items()]
    for future in made:
        future.result()
    return names


def fields(image):
    """Returns the offset of the blocks, their number, their size and how many have one checksum, 0 for none."""
    total, _, used, block = struct.unpack_from("<QQQI", image, 60)
    mode, _, per_sum = struct.unpack_from("<HHI", image, 96)
    return HEADER + (total + 7) // 8 + 4, used, block, per_sum if mode else 0


def sums(image):
    """Returns the offsets of all checksums of blocks."""
    start, used, block, per_sum = fields(image)
    ends = [min(first + per_sum, used) for first in range(0, used, per_sum)] if per_sum else []
    return [start + end * block + 4 * number for number, end in enumerate(ends)]


def crc(data):
    """The CRC-32 as partclone stores it."""
    return struct.pack("<I", zlib.crc32(data) ^ 0xFFFFFFFF)


def test_every_file_system_and_setting(blksum, cloned):
    expected = dict(zip(cloned, POOL.map(restored, cloned.values()), strict=True))
    for (kind, setting), path in cloned.items():
        assert expected[kind, setting] is not None, (kind, setting)
        assert digest(blksum, path) == expected[kind, setting], (kind, setting)
        assert digest(blksum, path, "--read-size=4k", "--threads=5") == expected[kind, setting], (kind, setting)
        result = blksum("-c", path)
        if setting == "none":
            assert result.returncode == 1 and b"states no checksum of its content" in result.stderr
        else:
            assert (result.returncode, result.stdout) == (0, f"{path}: OK\n".encode()), result
    assert len(set(expected.values())) == len(PROGRAMS)


def test_onto_a_file_of_zeros(blksum, cloned, workdir):
    for kind in PROGRAMS:
        source = cloned[kind, "default"]
        size = struct.unpack_from("<Q", source.read_bytes(), 52)[0]
        with open("disk.raw", "wb") as file:
            file.truncate(size)
        images.run("partclone.restore", "-s", source, "-O", "disk.raw", "-q", "-L", "/dev/null")
        assert os.path.getsize("disk.raw") == size
        assert digest(blksum, source) == digest(blksum, "disk.raw"), kind
        os.unlink("disk.raw")


def test_every_command_reads_it(blksum, cloned, workdir):
    source = cloned["ext4", "few blocks"]
    image = pathlib.Path("sda1.ext4-ptcl-img")
    image.write_bytes(source.read_bytes())
    expected = restored(image)
    assert digest(blksum, image) == digest(blksum, image, "--format=partclone") == expected
    tools = pathlib.Path(blksum.path).parent
    images.run(tools / "blkcopy", image, "copy.img")
    assert hashlib.sha256(pathlib.Path("copy.img").read_bytes()).hexdigest() == expected
    images.run("e2fsck", "-fn", "copy.img")
    info = json.loads(images.run(tools / "blkhash", "info", "--json", image))
    assert (info["format"], info["virtual_size"]) == ("partclone", 12 * MIB)
    assert info["part_checksums"].startswith("CRC-32 of ")
    _, used, block, _ = fields(image.read_bytes())
    version = images.run("partclone.restore", "-v").decode().split("v")[1].split()[0]
    assert info["backup"] == {"file_system": "EXTFS", "version": version, "block_size": block, "used": used * block}
    text = images.run(tools / "blkhash", "info", image).decode()
    assert "  file system EXTFS\n" in text and f"({used * block} bytes)" in text and f"  partclone   {version}\n" in text
    line = blksum("--tag", "-d", "sha256", "--format=partclone", image).stdout
    pathlib.Path("SUMS").write_bytes(line)
    assert blksum("-c", "SUMS").returncode == 0
    checked = images.attempt(tools / "blkhash", "check", image)
    assert checked.returncode == 0 and b" CRC-32" in checked.stdout, checked
    refused = blksum("--reader=qemu", image)
    assert refused.returncode == 1 and b"which qemu-nbd does not read" in refused.stderr


@pytest.mark.parametrize("setting", ["default", "each block", "few blocks", "not reseeded", "all"])
def test_every_sum_is_compared(blksum, cloned, workdir, setting):
    """partclone.restore compares these, but for the last one in some images. It exits with an error."""
    image = cloned["ext4", setting].read_bytes()
    start, used, block, per_sum = fields(image)
    places = sums(image)
    assert len(places) == -(-used // per_sum) and places[-1] + 4 == len(image)
    rng = random.Random(SEED)
    chosen = [places[0], places[-1], *rng.sample(places, min(len(places), 40))]
    # The header, its CRC, the bitmap, its CRC, the first and last bytes of blocks, and those around each checksum.
    chosen += [40, 106, HEADER, start - 5, start - 4, start, places[-1] - 1]
    chosen += [place + 4 for place in chosen[:10] if place + 4 < len(image)]
    path = pathlib.Path("x.img")
    damaged = bytearray(image)
    for place in chosen:
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        result = blksum("-c", path)
        assert result.returncode == 1 and b"CRC-32" in result.stderr, (place, result)
        assert digest(blksum, path) is None
        damaged[place] ^= 0x10
    damaged[places[0] - block] ^= 1
    path.write_bytes(damaged)
    checked = images.attempt(pathlib.Path(blksum.path).parent / "blkhash", "check", path)
    assert checked.returncode == 1 and b"strip 0" in checked.stdout + checked.stderr, checked
    assert restored(path) is None


def test_without_sums_the_header_and_the_bitmap_are_compared(blksum, cloned, workdir):
    image = bytearray(cloned["ext4", "none"].read_bytes())
    start = fields(image)[0]
    for place in (20, 60, 106, HEADER, start - 5, start - 1):
        image[place] ^= 1
        pathlib.Path("x.img").write_bytes(image)
        assert digest(blksum, "x.img") is None and b"CRC-32" in blksum("x.img").stderr, place
        image[place] ^= 1


def test_cut_off(blksum, cloned, workdir):
    for setting in ("none", "few blocks", "not reseeded"):
        image = cloned["ext4", setting].read_bytes()
        for length in (0, 14, 16, 100, HEADER, HEADER + 5, fields(image)[0] - 1, fields(image)[0], len(image) // 2, len(image) - 1):
            pathlib.Path("x.img").write_bytes(image[:length])
            assert digest(blksum, "x.img", "--format=partclone") is None, (setting, length)
    assert b"first of several parts: cat joins them" in blksum("x.img").stderr


@pytest.mark.parametrize("options", [(), ("-z", "10485760"), ("-a0",), ("-k1",), ("-K", "-k300")])
def test_compressed_images(blksum, workdir, options):
    """As Clonezilla has them: in one piece, which is decoded once, from start to end."""
    rng = random.Random(SEED)
    pathlib.Path("files").mkdir()
    for number in range(8):
        pathlib.Path(f"files/file{number}").write_bytes(rng.randbytes(5 * MIB))
    with open("disk", "wb") as file:
        file.truncate(80 * MIB)
    images.run("mkfs.ext4", "-q", "-F", "-d", "files", "disk")
    image = clone("ext4", "disk", "sda1.ext4-ptcl-img", *options)
    expected = restored(image)
    images.run("zstd", "-q", "-1", image)
    pathlib.Path("sda1.ext4-ptcl-img.gz").write_bytes(gzip.compress(pathlib.Path(image).read_bytes(), 1))
    for name in ("sda1.ext4-ptcl-img.zst", "sda1.ext4-ptcl-img.gz"):
        for threads in (1, 4):
            assert digest(blksum, name, f"--threads={threads}") == expected, (name, threads)
        result = blksum("-c", name)
        if "-a0" in options:
            assert_refused(result, name, "states no checksum of its content")
        else:
            assert (result.returncode, result.stdout) == (0, f"{name}: OK\n".encode()), result
    images.run("split", "-b", "20M", "sda1.ext4-ptcl-img.zst", "sda1.ext4-ptcl-img.zst.")
    for part in ("sda1.ext4-ptcl-img.zst.aa", "sda1.ext4-ptcl-img.zst.ab"):
        assert b"a part of a split image: cat joins all of its parts" in blksum(part).stderr


def test_damage_in_a_compressed_image(blksum, cloned, workdir):
    image = bytearray(cloned["ext4", "default"].read_bytes())
    for place, status in ((None, b"OK"), (len(image) // 2, b"FAILED open or read")):
        if place:
            image[place] ^= 1
        pathlib.Path("sda1.ext4-ptcl-img").write_bytes(image)
        images.run("zstd", "-q", "-f", "-1", "sda1.ext4-ptcl-img")
        result = blksum("-c", "sda1.ext4-ptcl-img.zst")
        assert result.stdout == b"sda1.ext4-ptcl-img.zst: " + status + b"\n" and (b"CRC-32" in result.stderr) == bool(place)
    # A list of checksums that is compressed is none, and other content states nothing.
    pathlib.Path("SUMS.gz").write_bytes(gzip.compress(b"0" * 64 + b"  sda1.ext4-ptcl-img\n"))
    result = blksum("-c", "SUMS.gz")
    assert (result.returncode, result.stdout) == (1, b"") and b"is compressed, and states no checksum of its content" in result.stderr


def made_up(rng):
    """An image of random blocks."""
    block = rng.choice((1, 512, 512, 1024, 4096))
    total = rng.choice((0, 1, 7, 8, 63, 64, 65, 300, 300, 1000, 17_000 if block <= 512 else 50))
    share = rng.choice((0, 0.05, 0.5, 0.9, 1))
    bits = [rng.random() < share for _ in range(total)]
    if total > 10_000:
        bits[4000:13_000] = [rng.random() < 0.5] * 9000
    mode = rng.random() < 0.8
    per_sum = rng.choice((1, 2, 5, 64, 10_000))
    reseed = rng.random() < 0.6
    size = total * block + rng.choice((0, 0, 1, 700, 5000))
    used = sum(bits)
    header = struct.pack("<16s14s4sH16sQQQQI", b"partclone-image", b"0.3.23", b"0002", 0xC0DE, b"MADE", size, total, used, used, block)
    header += struct.pack("<IHHHHIBB", 18, 2, 64, 0x20 if mode else 0, 4 if mode else 0, per_sum, reseed, 1)
    bitmap = sum(bit << number for number, bit in enumerate(bits)).to_bytes((total + 7) // 8, "little")
    blocks = []
    state = 0
    for number in range(1, used + 1):
        data = rng.randbytes(block)
        blocks.append(data)
        state = zlib.crc32(data, state)
        if mode and (number % per_sum == 0 or number == used):
            blocks.append(struct.pack("<I", state ^ 0xFFFFFFFF))
            state = 0 if reseed else state
    return bytearray(header + crc(header) + bitmap + crc(bitmap) + b"".join(blocks))


@pytest.mark.parametrize("count", [48, pytest.param(300, marks=pytest.mark.slow)])
def test_random_images(blksum, workdir, count):
    rng = random.Random(SEED + count)
    names = [f"{number}.img" for number in range(count)]
    for name in names:
        pathlib.Path(name).write_bytes(made_up(rng))
    for name, expected in zip(names, POOL.map(restored, names), strict=True):
        found = digest(blksum, name, f"--threads={rng.randrange(1, 4)}")
        assert found is not None and found == expected, name


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_mutants(blksum, workdir, count):
    """None is read that partclone.restore refuses, and those that both read have one content."""
    rng = random.Random(SEED * count)
    found = {}
    for number in range(count):
        image = made_up(rng)
        start = fields(image)[0]
        offset = rng.randrange(106) if rng.random() < 0.5 else rng.randrange(len(image))
        if rng.random() < 0.1:
            del image[offset:]
        else:
            image[offset] ^= 1 << rng.randrange(8)
            # Most mutants have the right checksums of the header and of the bitmap.
            if rng.random() < 0.9:
                image[106:HEADER] = crc(image[:106])
                image[start - 4 : start] = crc(image[HEADER : start - 4])
        name = f"{number}.img"
        pathlib.Path(name).write_bytes(image)
        size = struct.unpack_from("<Q", image.ljust(HEADER, b"\0"), 52)[0]
        if size > 64 * MIB:
            # partclone.restore writes all zeros of some. A reader must not take long.
            blksum("--max-zeros=1G", name)
        elif value := digest(blksum, name, "--format=partclone"):
            found[name] = value
    assert len(found) > count / 10
    for name, expected in zip(found, POOL.map(restored, found), strict=True):
        assert found[name] == expected, name


def test_other_versions(blksum, workdir):
    """partclone before 0.3 has a byte for each block, and another checksum."""
    head = b"partclone-image" + b"EXTFS".ljust(15, b"\0") + b"0001\0\0"
    pathlib.Path("old.img").write_bytes(head + struct.pack("<IQQQ", 4096, 1 << 20, 256, 0) + bytes(4096 + 256) + b"BiTmAgIc")
    result = blksum("old.img")
    assert result.returncode == 1 and b"version 0001, and only 0002 is read (offset 30): partclone.restore -C -s old.img -o - |" in result.stderr
