"""Files that are compressed as a whole, by the real tools: their values and verdicts."""

import bz2
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import struct
import subprocess
import zlib

import pytest

import images
from commands import mostly_slow
from memory import peak

# COMMAND for a file, by the extension of the result. The content is in FILE, the result goes to standard output.
COMMANDS = {
    "gz": [
        "gzip -1c FILE", "gzip -6c FILE", "gzip -9c FILE", "gzip -nc FILE", "gzip -c < FILE", "pigz -c FILE", "pigz -9 -c FILE",
        "pigz -i -b 128 -c FILE", "pigz -0c FILE", "bgzip -c FILE", "bgzip -l 0 -c FILE", "igzip -c FILE",
    ],
    "xz": [
        "xz -0c FILE", "xz -1c FILE", "xz -T2 -0 --block-size=100KiB -c FILE", "xz -T1 --block-size=1MiB -1 -c FILE",
        "xz -C none -1c FILE", "xz -C crc32 -0c FILE", "xz -C sha256 -1c FILE", "xz -0e -c FILE",
        "xz --block-list=64KiB,1,300KiB,0 -0c FILE", "xz --x86 --lzma2=preset=1 -c FILE", "xz --delta=dist=4 --lzma2=preset=0 -c FILE",
        "pixz -1 -t < FILE",
    ],
    "zst": [
        "zstd -1 -c FILE", "zstd -c < FILE", "zstd --fast=3 -c FILE", "zstd -9 --no-check -c FILE", "zstd -T2 -c FILE",
        "zstd --long=27 -3 -c FILE", "zstd --no-content-size -c FILE", "pzstd -q -1 -c FILE", "pzstd -q -p 3 -c FILE",
    ],
    "bz2": ["bzip2 -1c FILE", "bzip2 -9c FILE", "pbzip2 -1 -c FILE", "pbzip2 -b1 -c FILE", "lbzip2 -c FILE"],
    "lz4": [
        "lz4 -c FILE", "lz4 -c < FILE", "lz4 -1 -B4 -c FILE", "lz4 -9 -B5 -BD -c FILE", "lz4 -B7 -BX -c FILE",
        "lz4 --content-size -c FILE", "lz4 --content-size -B4 -BD --no-frame-crc -c FILE",
    ],
    "lzo": ["lzop -c FILE", "lzop -1 -c FILE", "lzop -9 -c FILE", "lzop --crc32 -c FILE", "lzop -F -c FILE", "lzop -c < FILE"],
}  # fmt: skip
METHODS = {"gz": "gzip", "xz": "xz", "zst": "zstd", "bz2": "bzip2", "lz4": "lz4", "lzo": "lzop"}


def content(rng, size):
    """Data, runs and zeros."""
    parts = []
    while size > 0:
        length = min(size, rng.choice([1, 512, 4096, 70_000, 300_000, 1 << 20]))
        parts.append(rng.choice([bytes, rng.randbytes, lambda n: (rng.randbytes(13) * (n // 13 + 1))[:n]])(length))
        size -= length
    return b"".join(parts)


def compress(command, file):
    result = subprocess.run(["sh", "-c", command.replace("FILE", shlex.quote(str(file)))], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert result.returncode == 0, (command, result.stderr)
    return result.stdout


def values(blksum, *args, **options):
    result = blksum("-q", *args, **options)
    assert result.returncode == 0 and result.stderr == b"", (args, result.stderr)
    return [line.split()[0] for line in result.stdout.splitlines()]


@pytest.fixture
def blkhash(blksum):
    return type(blksum)(pathlib.Path(blksum.path).with_name("blkhash"))


@pytest.mark.parametrize("extension", COMMANDS)
def test_values(blksum, workdir, extension):
    rng = random.Random(extension)
    (workdir / "disk.raw").write_bytes(content(rng, 2 << 20))
    (expected,) = values(blksum, "disk.raw")
    for number, command in enumerate(COMMANDS[extension]):
        name = f"{number}.raw.{extension}"
        (workdir / name).write_bytes(compress(command, "disk.raw"))
        assert values(blksum, name) == [expected], command
        with open(name, "rb") as stored:
            assert values(blksum, "-f", METHODS[extension], stdin=stored) == [expected], command
        piped = (workdir / name).read_bytes()
        assert values(blksum, "-f", f"raw+{METHODS[extension]}", input=piped) == [expected], command


@pytest.mark.slow
@pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.soak)])
@pytest.mark.parametrize("extension", COMMANDS)
def test_random_values(blksum, workdir, extension, count):
    """Files of several members, streams or frames, in random sizes."""
    rng = random.Random(f"random {extension} {count}")
    names = []
    for number in range(count):
        parts = []
        plain = []
        # Several members of lzop are several files.
        for _ in range(1 if extension == "lzo" else rng.choice([1, 1, 1, 2, 3, 9])):
            size = rng.choice([0, 1, rng.randrange(1, 100_000), rng.randrange(1, 3 << 20)])
            (workdir / "part").write_bytes(content(rng, size))
            plain.append((workdir / "part").read_bytes())
            parts.append(compress(rng.choice(COMMANDS[extension]), "part"))
            if extension in ("zst", "lz4") and rng.random() < 0.2:
                skipped = rng.randbytes(rng.randrange(100))
                parts.append(struct.pack("<II", 0x184D2A50 + rng.randrange(16), len(skipped)) + skipped)
            if extension == "xz":
                parts.append(bytes(4 * rng.choice([0, 0, 1, 1000])))
        if extension in ("gz", "lzo"):
            parts.append(bytes(rng.choice([0, 0, 1, 511, 100_000])))
        name = f"{number}.{extension}"
        (workdir / name).write_bytes(b"".join(parts))
        (workdir / f"{number}.raw").write_bytes(b"".join(plain))
        names.append(name)
    raw = [f"{number}.raw" for number in range(count)]
    expected = values(blksum, "-f", "raw", *raw)
    threads = str(rng.choice([1, 2, 3, 8]))
    assert values(blksum, "-f", f"raw+{METHODS[extension]}", "--threads", threads, *names) == expected
    maps = workdir / "maps"
    maps.mkdir()
    assert values(blksum, "-f", f"raw+{METHODS[extension]}", "--map", "maps", *names) == expected


def mutate(rng, stored):
    """Changes a compressed file in one way."""
    changed = bytearray(stored)
    at = rng.randrange(len(changed))
    kind = rng.randrange(10)
    if kind < 4:
        changed[at] ^= 1 << rng.randrange(8)
    elif kind < 5:
        at = rng.choice([rng.randrange(min(40, len(changed))), len(changed) - 1 - rng.randrange(min(40, len(changed)))])
        changed[at] = rng.randrange(256)
    elif kind < 6:
        del changed[at : at + rng.randrange(1, 9)]
    elif kind < 7:
        changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    elif kind < 8:
        del changed[at:]
    elif kind < 9:
        changed += rng.choice([bytes(1), bytes(4), bytes(5), bytes(1000), rng.randbytes(7), bytes(3) + b"x", stored[:at], stored])
    else:
        changed = changed[at:] + changed[:at]
    return bytes(changed)


def verdict(extension, name):
    """Returns whether the tool says that a file is good. What it ignores with a warning is not."""
    result = subprocess.run([METHODS[extension], "-t", name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return result.returncode == 0 and b"trailing garbage" not in result.stderr and b"undecodable data" not in result.stderr


def check_verdicts(blksum, folder, extension, files):
    """Compares the verdicts on files with the tool's, and the values where they are good."""
    names = [f"{number:05}.{extension}" for number in range(len(files))]
    for name, stored in zip(names, files):
        (folder / name).write_bytes(stored)
    result = blksum("-q", "-f", f"raw+{METHODS[extension]}", *names)
    found = {name.decode(): value for value, name in (line.split() for line in result.stdout.splitlines())}
    good = {name: verdict(extension, name) for name in names}
    refused = [name for name in names if good[name] and name not in found]
    if extension == "zst":
        # zstd before 1.5.6 ignores reserved bits in blocks.
        assert all(b"(Data corruption detected)" in error_of(result, name) for name in refused), refused
        assert len(refused) <= len(names) // 50
    else:
        assert not refused, (refused, error_of(result, refused[0]))
    assert all(good[name] for name in found), [name for name in found if not good[name]]
    for name in found:
        (folder / f"{name}.raw").write_bytes(compress(f"{METHODS[extension]} -dcq FILE", name))
    plain = [f"{name}.raw" for name in found]
    assert not plain or values(blksum, "-f", "raw", *plain) == list(found.values())
    assert result.returncode == (0 if len(found) == len(names) else 1)
    return sum(good.values())


def error_of(result, name):
    return b"".join(line for line in result.stderr.splitlines() if name.encode() in line)


@pytest.mark.parametrize("extension", COMMANDS)
def test_truncations(blksum, workdir, extension):
    """Each truncation of small files is refused, as the tool does."""
    rng = random.Random(extension)
    (workdir / "small").write_bytes(content(rng, 300) + bytes(300) + rng.randbytes(20))
    for command in COMMANDS[extension][:: len(COMMANDS[extension]) - 1]:
        stored = compress(command, "small")
        files = [stored[:length] for length in range(1, len(stored) + 1, 1 + len(stored) // 150)] + [stored]
        assert check_verdicts(blksum, workdir, extension, files) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("count", [150, pytest.param(500, marks=pytest.mark.soak)])
@pytest.mark.parametrize("extension", COMMANDS)
def test_mutants(blksum, workdir, extension, count):
    """Damaged files have the verdicts of the tool."""
    rng = random.Random(f"mutants {extension} {count}")
    files = []
    for command in COMMANDS[extension]:
        (workdir / "small").write_bytes(content(rng, rng.choice([3000, 200_000])))
        files.append(compress(command, "small"))
    mutants = [mutate(rng, rng.choice(files)) for _ in range(count)]
    good = check_verdicts(blksum, workdir, extension, mutants)
    assert 0 < good < 0.9 * count


def test_lzop_archive_of_several_files(blksum, workdir):
    """lzop restores each member as a file of its own."""
    (workdir / "small").write_bytes(bytes(3000) + b"x")
    stored = compress("lzop -c FILE", "small")
    (workdir / "two.lzo").write_bytes(stored + stored)
    (workdir / "padded.lzo").write_bytes(stored + bytes(1000))
    result = blksum("two.lzo")
    assert (result.returncode, result.stdout) == (1, b""), result
    assert result.stderr == b"blksum: two.lzo: is an lzop archive of several files, which lzop -x extracts\n"
    assert values(blksum, "padded.lzo") == values(blksum, "small")


def test_name_and_content_decide(blksum, workdir):
    """A file of which only the name or only the beginning belongs to a compressed one may be either, and is refused."""
    (workdir / "plain").write_bytes(bytes(1000) + b"x" * 1048)
    (workdir / "disk.raw.gz").write_bytes(compress("gzip -c FILE", "plain"))
    stored = (workdir / "disk.raw.gz").read_bytes()
    (workdir / "disk.raw").write_bytes(stored)
    (workdir / "disk.xz").write_bytes(stored)
    (workdir / "plain.gz").write_bytes((workdir / "plain").read_bytes())
    plain, packed = values(blksum, "plain")[0], values(blksum, "-f", "raw", "disk.raw.gz")[0]
    assert plain != packed
    assert values(blksum, "disk.raw.gz") == [plain]
    assert values(blksum, "-f", "raw", "plain.gz", "disk.raw", "disk.xz") == [plain, packed, packed]
    assert values(blksum, "--untrusted", "-f", "gzip", "disk.raw.gz", "disk.raw") == [plain, plain]
    refusal = b"is compressed by gzip: -f gzip reads its content; -f raw reads the bytes of the file itself\n"
    for args in (["disk.raw"], ["--untrusted", "disk.raw.gz"]):
        result = blksum(*args)
        assert (result.returncode, result.stdout) == (1, b"") and refusal in result.stderr, result
    assert b"-: " + refusal in blksum(input=stored).stderr
    assert b"disk.xz: is compressed by gzip, and has the name of an xz file: -f gzip" in blksum("disk.xz").stderr
    assert b"plain.gz: has the name of a gzip file, and nothing in it says that it is one: -f raw" in blksum("plain.gz").stderr
    assert blksum("disk.raw.gz").stderr == b""


@pytest.mark.parametrize("fmt", mostly_slow(["qcow2", "vmdk", "vhdx", "vdi", "vpc"], ["qcow2"]))
@pytest.mark.parametrize("extension", ["gz", "xz", "zst"])
def test_images_within(blksum, workdir, fmt, extension):
    """An image in a compressed file is read in its order, or with an error that says what prevents it."""
    rng = random.Random(f"{fmt} {extension}")
    (workdir / "disk.raw").write_bytes(content(rng, 2 << 20))
    options = ["-o", "force_size=on"] if fmt == "vpc" else []
    images.run("qemu-img", "convert", "-O", fmt, *options, "disk.raw", f"disk.{fmt}")
    (expected,) = values(blksum, f"disk.{fmt}")
    for number, command in enumerate(COMMANDS[extension][:3]):
        name = f"{number}.{fmt}.{extension}"
        (workdir / name).write_bytes(compress(command, f"disk.{fmt}"))
        assert values(blksum, name) == [expected], command


def test_parts_and_commands(blksum, blkhash, workdir):
    """Everything that reads an image reads a compressed one."""
    rng = random.Random(7)
    (workdir / "disk.raw").write_bytes(content(rng, 5 << 20))
    for extension, command in [("gz", "gzip -1c FILE"), ("xz", "xz -T2 -0 --block-size=1MiB -c FILE"), ("zst", "zstd -c FILE")]:
        name = f"disk.raw.{extension}"
        (workdir / name).write_bytes(compress(command, "disk.raw"))
        part = ["--offset", "1M", "--length", "2M"]
        assert values(blksum, *part, name) == values(blksum, *part, "disk.raw")
        assert blkhash("map", "create", "-o", f"{name}.blkmap", name).returncode == 0
        assert blkhash("map", "verify", f"{name}.blkmap", "disk.raw").returncode == 0
        assert blkhash("map", "verify", f"{name}.blkmap", name).returncode == 0
        assert blkhash("map", "diff", name, "disk.raw").returncode == 0
        copied = subprocess.run([pathlib.Path(blksum.path).with_name("blkcopy"), name, f"{name}.copy"], stdout=subprocess.PIPE, check=True)
        assert copied.stdout.split()[0] == values(blksum, "disk.raw")[0]
        images.run("cmp", "disk.raw", f"{name}.copy")


def test_damage_in_what_was_not_read(blksum, workdir):
    """The checksum of a part fails if the stream that it is in does not verify."""
    (workdir / "disk.raw").write_bytes(random.Random(1).randbytes(3 << 20))
    for name, command, at in [("d.gz", "gzip -1c FILE", -6), ("d.xz", "xz -0 -T1 -c FILE", -60), ("d.zst", "zstd -1 -c FILE", -2)]:
        stored = bytearray(compress(command, "disk.raw"))
        stored[at] ^= 4
        (workdir / name).write_bytes(stored)
        result = blksum("--length", "64K", name)
        assert (result.returncode, result.stdout) == (1, b""), name
        assert b"stream is damaged" in result.stderr or b"index of the xz stream is damaged" in result.stderr


@pytest.fixture
def gapped(workdir):
    """A qcow2 image that leaves out most of its file: what only a snapshot has, in the middle and at the end."""
    (workdir / "disk.raw").write_bytes(random.Random(8).randbytes(6 << 20))
    images.run("qemu-img", "convert", "-O", "qcow2", "disk.raw", "gaps.qcow2")
    for at in "0", "3M":
        images.run("qemu-img", "snapshot", "-c", f"before-{at}", "gaps.qcow2")
        images.run("qemu-io", "-f", "qcow2", "-c", f"write -q -z {at} 3M", "gaps.qcow2")
    images.run("qemu-img", "snapshot", "-c", "after", "gaps.qcow2")
    images.run("qemu-io", "-f", "qcow2", "-c", "write -q -P 7 1M 64k", "gaps.qcow2")
    return workdir / "gaps.qcow2"


# Several blocks, members, frames or streams, and one.
PARTS = {
    "gz": ["bgzip -c FILE", "pigz -i -b 128 -c FILE", "gzip -1c FILE"],
    "xz": ["xz -T2 -0 --block-size=1MiB -c FILE", "xz -0 -T1 -c FILE"],
    "zst": ["split -b 1M --filter='cat > part; zstd -1 -c part' FILE", "zstd -1 -c FILE"],
    "lz4": ["split -b 1M --filter='cat > part; lz4 --content-size -c part' FILE"],
    "bz2": ["pbzip2 -b1 -c FILE", "bzip2 -1c FILE"],
    "lzo": ["lzop -1 -c FILE"],
}


@pytest.mark.parametrize("count", [4, pytest.param(60, marks=pytest.mark.soak)])
@pytest.mark.parametrize("extension", mostly_slow(PARTS, ["zst", "lz4"]))
def test_damage_in_what_an_image_leaves_out(blksum, workdir, gapped, extension, count):
    """Damage is found at any place of the file, as by the tool."""
    rng = random.Random(f"gaps {extension} {count}")
    name = f"gaps.qcow2.{extension}"
    (expected,) = values(blksum, gapped)
    for command in PARTS[extension]:
        stored = compress(command, gapped.name)
        (workdir / name).write_bytes(stored)
        assert values(blksum, name) == [expected], command
        names = []
        for number in range(count):
            damaged = bytearray(stored)
            at = (number * 2 + 1) * len(stored) // (2 * count) + rng.randrange(1000)
            damaged[at : at + 2] = bytes(byte ^ 0xFF for byte in damaged[at : at + 2])
            names.append(f"{number}.qcow2.{extension}")
            (workdir / names[-1]).write_bytes(damaged)
        result = blksum(*names)
        found = [line.split()[1].decode() for line in result.stdout.splitlines()]
        assert found == [it for it in names if verdict(extension, it)], (command, result)
        # A part as well.
        result = blksum("--length", "64K", names[-1])
        assert (result.returncode == 0) == verdict(extension, names[-1]), (command, result)


def test_damage_in_a_gap_of_other_commands(blksum, blkhash, workdir):
    """A vhdx begins with blocks that are not read."""
    (workdir / "disk.raw").write_bytes(content(random.Random(9), 1 << 20))
    images.run("qemu-img", "convert", "-O", "vhdx", "disk.raw", "disk.vhdx")
    stored = bytearray(compress("xz -0 -T2 --block-size=64KiB -c FILE", "disk.vhdx"))
    # Up to the last records of the index, in which an error is found when the file is opened.
    damages = [at for at in range(200, 4000, 400)]
    blkcopy = type(blksum)(pathlib.Path(blksum.path).with_name("blkcopy"))
    for at in damages:
        damaged = stored.copy()
        damaged[at : at + 2] = b"\xff\xff"
        (workdir / "d.vhdx.xz").write_bytes(damaged)
        assert not verdict("xz", "d.vhdx.xz")
        assert blksum("d.vhdx.xz").returncode == 1, at
    for args in ["map", "create", "-o", "d.blkmap", "d.vhdx.xz"], ["map", "diff", "d.vhdx.xz", "disk.raw"]:
        result = blkhash(*args)
        assert result.returncode != 0 and b"xz stream is damaged" in result.stderr, result
    assert blkcopy("d.vhdx.xz", "copy.raw").returncode != 0


def test_footers(blksum, workdir):
    """A fixed vpc image in a stream of unknown size is not read as raw."""
    (workdir / "disk.raw").write_bytes(bytes(40 << 20) + b"x" * 512 + bytes(30 << 20))
    images.run("qemu-img", "convert", "-O", "vpc", "-o", "subformat=fixed,force_size=on", "disk.raw", "disk.vhd")
    (raw,) = values(blksum, "disk.raw")
    for command, name in [("gzip -1c FILE", "disk.vhd.gz"), ("zstd -1 -c FILE", "disk.vhd.zst"), ("xz -0 -T1 -c FILE", "disk.vhd.xz")]:
        (workdir / name).write_bytes(compress(command, "disk.vhd"))
        result = blksum(name)
        assert (result.returncode, result.stdout) == (1, b""), name
        wanted = f"vpc+{METHODS[name.rsplit('.', 1)[1]]}"
        refusal = f"has the name of a vhd image, whose end must be read first: decompress it, or say what it is, as {wanted}"
        assert refusal.encode() in result.stderr and values(blksum, "-f", wanted, name) == [raw]
        os.rename(name, name.replace(".vhd", ""))
        name = name.replace(".vhd", "")
        result = blksum(name)
        assert (result.returncode, result.stdout) == (1, b""), name
        assert b"ends like a vpc image" in result.stderr and wanted.encode() in result.stderr, result.stderr
    (workdir / "disk.vhd.xz").write_bytes(compress("xz -0 -T2 --block-size=8MiB -c FILE", "disk.vhd"))
    assert values(blksum, "disk.vhd.xz") == [raw]


def test_limits(blksum, workdir):
    """Bombs and dictionaries are limited."""
    (workdir / "disk.raw").write_bytes(bytes(1000))
    (workdir / "big.xz").write_bytes(compress("xz --lzma2=preset=6,dict=512MiB -c FILE", "disk.raw"))
    result = blksum("big.xz")
    assert result.returncode == 1 and b"xz stream needs a larger dictionary than the limit of memory: --max-memory=SIZE" in result.stderr
    assert values(blksum, "--max-memory", "600M", "big.xz") == values(blksum, "disk.raw")
    with open("zeros", "wb") as zeros:
        zeros.truncate(300 << 20)
    for command, name in [("zstd -c FILE", "bomb.zst"), ("zstd -c < FILE", "piped.zst"), ("gzip -1c FILE", "bomb.gz")]:
        (workdir / name).write_bytes(compress(command, "zeros"))
        result = blksum("--max-zeros", "200M", name)
        assert result.returncode == 1 and b"has far more content than it stores" in result.stderr, result.stderr
        assert b"--max-zeros=SIZE allows more" in result.stderr
        assert values(blksum, name) == values(blksum, "zeros")


def number_of_xz(number):
    """A number in an index."""
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def xz_of_stated_blocks(count):
    """A file whose index states blocks of 1 MiB that are not there."""
    flags = b"\0\4"
    index = b"\0" + number_of_xz(count) + (b"\5" + number_of_xz(1 << 20)) * count
    index += bytes(-len(index) % 4)
    index += struct.pack("<I", zlib.crc32(index))
    footer = struct.pack("<I", len(index) // 4 - 1) + flags
    header = b"\xfd7zXZ\0" + flags + struct.pack("<I", zlib.crc32(flags))
    return header + bytes(8 * count) + index + struct.pack("<I", zlib.crc32(footer)) + footer + b"YZ"


def test_memory_of_stated_parts(blksum, workdir):
    """What a file states costs memory only within the limits of its content and of memory."""
    zstd_frame = struct.pack("<IBI", 0xFD2FB528, 0xA0, 1 << 20) + b"\1\0\0"
    (workdir / "small").write_bytes(bytes(1000))
    (workdir / "small.xz").write_bytes(compress("xz -c FILE", "small"))
    (workdir / "parts.xz").write_bytes(xz_of_stated_blocks(80_000))
    (workdir / "parts.zst").write_bytes(zstd_frame * 80_000)
    _, _, least = peak(blksum.path, "small.xz")
    for name in "parts.xz", "parts.zst":
        assert os.path.getsize(name) < 1 << 20
        status, errors, most = peak(blksum.path, "--max-zeros", "1G", name)
        assert status == 1 and b"has far more content than it stores, and all of it would be decoded: --max-zeros" in errors, errors
        assert most < least + (2 << 20), (name, most, least)
        status, errors, most = peak(blksum.path, "--max-memory", "1M", name)
        assert status == 1 and b"damaged" in errors, errors
        assert most < least + (3 << 20), (name, most, least)
    # Streams cannot be decoded as one.
    (workdir / "streams.xz").write_bytes((workdir / "small.xz").read_bytes() * 3000)
    status, errors, _ = peak(blksum.path, "--max-memory", "1M", "streams.xz")
    assert status == 1 and b"has more parts than the limit of memory: --max-memory=SIZE allows more" in errors, errors
    (workdir / "plain").write_bytes(bytes(3_000_000))
    assert values(blksum, "streams.xz") == values(blksum, "plain")


def test_memory_of_blocks_ahead(blksum, workdir):
    """Blocks of bzip2 may have 52 times the content that they are known for."""
    with open("zeros", "wb") as zeros:
        zeros.truncate(300 << 20)
    (workdir / "zeros.bz2").write_bytes(compress("bzip2 -9c FILE", "zeros"))
    (workdir / "small").write_bytes(bytes(1000))
    (workdir / "small.bz2").write_bytes(compress("bzip2 -9c FILE", "small"))
    _, _, least = peak(blksum.path, "small.bz2")
    status, errors, most = peak(blksum.path, "--max-memory", "16M", "zeros.bz2")
    assert (status, errors) == (0, b"")
    assert most < least + (24 << 20), (most, least)


@pytest.mark.slow
def test_values_of_elsewhere(blksum, workdir):
    """Values are found for the content and for the bytes of a file in one piece, which is decoded for each pass."""
    with open("disk.raw", "wb") as file:
        file.truncate(80 << 20)
        file.seek(70 << 20)
        file.write(random.Random(3).randbytes(1 << 20))
    (checksum,) = values(blksum, "disk.raw")
    linear = hashlib.sha256((workdir / "disk.raw").read_bytes()).hexdigest()
    for command, name in [("xz -0 -T1 -c FILE", "d.xz"), ("zstd -1 -c FILE", "d.zst"), ("gzip -1c FILE", "d.gz"), ("lz4 -c FILE", "d.lz4")]:
        stored = compress(command, "disk.raw")
        if name == "d.xz":
            # Sizes of lists of digests.
            stored += bytes(-len(stored) % 32)
        (workdir / name).write_bytes(stored)
        packed = hashlib.sha256(stored).hexdigest()
        for value in (checksum.decode(), linear, packed):
            result = blksum("--expect", value, name)
            assert result.returncode == 0, (name, value, result)
            assert blksum("-c", "-", input=f"{value}  {name}\n".encode()).stdout == f"{name}: OK\n".encode(), (name, value)
        wrong = blksum("-c", "-", input=f"{'0' * 64}  {name}\n".encode())
        assert (wrong.returncode, wrong.stdout) == (1, f"{name}: FAILED\n".encode())


def test_bytes_beside_the_content(blksum, workdir):
    """The digest of the file and the checksum of its content come from one pass."""
    (workdir / "disk.raw").write_bytes(content(random.Random(4), 3 << 20))
    (checksum,) = values(blksum, "disk.raw")
    for extension, commands in COMMANDS.items():
        name = f"disk.raw.{extension}"
        stored = compress(commands[0], "disk.raw")
        (workdir / name).write_bytes(stored)
        lines = f"BLKSUM-SHA256-STREAMS4-64K (NAME) = {checksum.decode()}\n"
        lines += f"MD5 (NAME) = {hashlib.md5(stored).hexdigest()}\nSHA256 (NAME) = {hashlib.sha256(stored).hexdigest()}\n"
        args = ["-d", "md5:bytes", "-d", "sha256", "-d", "sha256:bytes"]
        found = blksum(*args, name)
        assert found.stdout.decode() == lines.replace("NAME", name), found
        assert blksum("-c", "-", input=found.stdout).returncode == 0
        piped = blksum(*args, "-f", METHODS[extension], input=stored)
        assert piped.stdout.decode() == lines.replace("NAME", "-"), piped
        objects = [json.loads(line) for line in blksum("--json", *args, name).stdout.splitlines()]
        assert [it.get("bytes") for it in objects] == [None, True, True]
    # A list opens no FIFO.
    os.mkfifo("fifo")
    listed = blksum("-d", "sha256", "-d", "sha256:bytes", "--files0-from", "-", input=b"fifo\0missing", timeout=20)
    assert listed.returncode == 1 and b"fifo: is a pipe, which is read only where the command line names it" in listed.stderr
    assert listed.stdout == b"" and listed.stderr.count(b"\n") == 2
    assert blksum("-d", "sha256:bytes", "disk.raw").returncode == 2
    assert blksum("-c", "-d", "sha256", "-d", "sha256:bytes", "x").returncode == 2


def test_an_archive_is_read_by_its_name(blksum, workdir):
    """A disk within a tar archive is hashed where the name says so."""
    (workdir / "disk.raw").write_bytes(bytes(4096))
    images.run("tar", "-czf", "disk.tar.gz", "disk.raw")
    assert blksum.hex("disk.tar.gz") == blksum.hex("disk.raw")
    os.rename("disk.tar.gz", "disk.gz")
    result = blksum("disk.gz")
    hint = b"tar -xOf disk.gz NAME | blksum hashes it; -f raw+gzip reads its content as a disk\n"
    assert (result.returncode, result.stdout) == (1, b"") and b"disk.gz: is a tar archive: " + hint in result.stderr
    assert blksum("-f", "raw+gzip", "disk.gz").returncode == 0


def test_another_compression_is_named(blksum, workdir):
    (workdir / "disk.raw").write_bytes(bytes(4096))
    (workdir / "d.gz").write_bytes(compress("gzip -c FILE", "disk.raw"))
    assert b"d.gz: is not xz, but begins like gzip" in blksum("-f", "xz", "d.gz").stderr
    assert b"disk.raw: is not zstd: it does not begin like that" in blksum("-f", "zstd", "disk.raw").stderr


def bgzip_block(data, padding=0):
    """A member of bgzip, whose stated length has `padding` bytes after it as well."""
    coder = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = coder.compress(data) + coder.flush() + struct.pack("<II", zlib.crc32(data), len(data))
    header = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff\x06\x00BC\x02\x00"
    return header + struct.pack("<H", 18 + len(body) + padding - 1) + body + bytes(padding)


def test_sizes_that_lie(blksum, workdir):
    """Content that a file hides with a stated size of 0 is not left out."""
    hidden = b"hidden " * 1000
    first = random.Random(5).randbytes((1 << 20) + 5000)
    (workdir / "first").write_bytes(first)
    (workdir / "hidden").write_bytes(hidden)
    frames = [compress("zstd -c < FILE", name) for name in ("first", "hidden")]
    table = struct.pack("<IIII", len(frames[0]), len(first), len(frames[1]), 0)
    seekable = struct.pack("<II", 0x184D2A5E, len(table) + 9) + table + struct.pack("<IBI", 2, 0, 0x8F92EAB1)
    files = {
        "end.gz": b"".join(bgzip_block(bytes(65536)) for _ in range(16)) + bgzip_block(hidden, 8),
        "only.gz": bgzip_block(hidden, 8),
        "padded.gz": bgzip_block(bytes(65536)) * 16 + bgzip_block(b"", 8) + bgzip_block(hidden),
        "seek.zst": b"".join(frames) + seekable,
    }
    for name, stored in files.items():
        (workdir / name).write_bytes(stored)
        result = blksum(name)
        assert (result.returncode, result.stdout) == (1, b""), name
        assert subprocess.run([blksum.path.replace("blksum", "blkcopy"), name, "copy"], stderr=subprocess.PIPE).returncode != 0
    # A frame of lz4 with a size of 0 states none.
    sized = bytearray(compress("lz4 --content-size -c FILE", "hidden"))
    sized[6:14] = bytes(8)
    sized[14] = xxhash32(bytes(sized[4:14])) >> 8 & 0xFF
    (workdir / "none.lz4").write_bytes(sized)
    assert values(blksum, "-f", "raw+lz4", "none.lz4") == values(blksum, "-f", "raw", "hidden")


def xxhash32(data):
    result = subprocess.run(["xxhsum", "-H32"], input=data, stdout=subprocess.PIPE, check=True)
    return int(result.stdout.split()[0], 16)


def test_an_end_within_a_bzip2_file(blksum, workdir):
    """What the tool ignores past the end of a stream is no content, even if it looks like a block."""

    def bits(data):
        return "".join(f"{byte:08b}" for byte in data)

    end = f"{0x177245385090:048b}"

    def block(data):
        stream = bits(bz2.compress(data))
        at = stream.rindex(end)
        return stream[32:at], int(stream[at + 48 : at + 80], 2)

    (one, crc), (two, crc_of_two) = block(b"hello A " * 1000), block(b"hidden" * 1000)
    both = ((crc << 1 | crc >> 31) & 0xFFFFFFFF) ^ crc_of_two
    for between in (b"", b"garbage"):
        stream = bits(b"BZh9") + one + end + f"{crc:032b}"
        stream += "0" * (-len(stream) % 8) + bits(between) + two + end + f"{both:032b}"
        stream += "0" * (-len(stream) % 8)
        (workdir / "disk.raw.bz2").write_bytes(int(stream, 2).to_bytes(len(stream) // 8, "big"))
        assert blksum("disk.raw.bz2").returncode == 1
    (workdir / "magics.bz2").write_bytes(b"BZh9" + b"1AY&SY" * 20_000)
    assert blksum("magics.bz2").returncode == 1
    (workdir / "empty").write_bytes(b"")
    (workdir / "empty.bz2").write_bytes(compress("bzip2 -c FILE", "empty"))
    assert values(blksum, "empty.bz2") == values(blksum, "empty")
    (workdir / "old.lz4").write_bytes(compress("lz4 -l -c FILE", "magics.bz2"))
    for result in (blksum("old.lz4"), blksum("-f", "lz4", input=(workdir / "old.lz4").read_bytes())):
        assert result.returncode == 1
        assert b"is in the legacy format of lz4, which has no checksum: `lz4 -dc` in a pipe decompresses it" in result.stderr


@pytest.mark.slow
def test_footers_of_several_parts(blksum, workdir):
    """A fixed vpc image is one, however many threads decode it."""
    images.run("qemu-img", "create", "-q", "-f", "vpc", "-o", "subformat=fixed,force_size=on", "disk.vhd", "100M")
    (expected,) = values(blksum, "disk.vhd")
    (workdir / "disk.vhd.xz").write_bytes(compress("xz -0 -T2 --block-size=80MiB -c FILE", "disk.vhd"))
    for threads in "1", "2", "16":
        assert values(blksum, "--threads", threads, "disk.vhd.xz") == [expected]
    (workdir / "large.vhd.xz").write_bytes(compress("xz -0 -T1 --block-list=1MiB,0 -c FILE", "disk.vhd"))
    for threads in "1", "2", "16":
        result = blksum("--threads", threads, "large.vhd.xz")
        assert (result.returncode, result.stdout) == (1, b"") and b"vhd image, whose end must be read first" in result.stderr


def metadata(kind, data):
    """What OpenWrt's fwtool appends, but for its checksum."""
    return data + b"FWx0" + bytes(4) + bytes([kind, 0, 0, 0]) + struct.pack(">I", len(data) + 16)


def test_metadata_of_openwrt(blksum, blkhash, workdir):
    """The content equals the output of `gzip -dc`, and only metadata as a whole are left out."""
    (workdir / "disk.raw").write_bytes(content(random.Random(6), 300_000))
    stored = compress("gzip -9nc FILE", "disk.raw")
    description = metadata(1, bytes(8) + b'{  "metadata_version": "1.1", "supported_devices":["x"] }\n')
    signature = metadata(0, b"untrusted comment: signed by key 1\nRWQ=\n")
    expected = values(blksum, "disk.raw")
    for behind in (description, signature, description + signature):
        (workdir / "disk.img.gz").write_bytes(stored + behind)
        plain = subprocess.run(["gzip", "-dc", "disk.img.gz"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert plain.returncode == 2 and b"trailing garbage ignored" in plain.stderr
        assert plain.stdout == (workdir / "disk.raw").read_bytes()
        assert values(blksum, "disk.img.gz") == expected
        assert values(blksum, "-f", "gzip", input=stored + behind) == expected
        assert blkhash("map", "create", "-o", "x.blkmap", "disk.img.gz").returncode == 0
        (workdir / "x.blkmap").unlink()
    way = b"behind: gzip stream is followed by other bytes at byte %d of the compressed file, which `gzip -dc` in a pipe leaves out"
    others = [
        b"x", b"x" + description, bytes(3) + signature + b"x", description[1:], description[:-1], bytes(70_000) + b"x", description + bytes(1),
        bytes(70_000) + description, b"\x1e" + stored[1:],
    ]  # fmt: skip
    for behind in others:
        (workdir / "behind").write_bytes(stored + behind)
        result = blksum("-f", "gzip", "behind")
        assert (result.returncode, result.stdout) == (1, b""), behind[:20]
        assert way % len(stored) in result.stderr, (behind[:20], result.stderr)
    assert values(blksum, "-f", "raw", input=subprocess.run(["gzip", "-dc", "behind"], stdout=subprocess.PIPE).stdout) == expected


@pytest.mark.parametrize("command", ["bgzip -l 1 -c FILE", "xz -0 -T2 --block-size=256KiB -c FILE"])
def test_damage_is_named_by_its_place_in_the_file(blksum, workdir, command):
    """Also where each part is decoded on its own."""
    (workdir / "disk").write_bytes(random.Random(5).randbytes(20 << 16) + bytes(1000))
    stored = bytearray(compress(command, "disk"))
    named = 0
    for at in range(1000, len(stored), len(stored) // 9):
        stored[at] ^= 0x41
        (workdir / "damaged").write_bytes(stored)
        stored[at] ^= 0x41
        result = blksum("-f", command.split()[0].replace("bgzip", "gzip"), "damaged")
        assert (result.returncode, result.stdout) == (1, b""), (at, result)
        if place := re.search(rb" near byte (\d+) of", result.stderr):
            # Decoders take more at once, and find damage at the end of their part.
            assert abs(int(place[1]) - at) < 600_000, (at, result.stderr)
            named += at > 700_000
    assert named, result.stderr


def test_padding(blksum, workdir):
    (workdir / "disk.raw").write_bytes(bytes(512) + b"x" * 512)
    (workdir / "disk.raw.xz").write_bytes(compress("xz -c FILE", "disk.raw"))
    with open("disk.raw.xz", "r+b") as file:
        file.truncate(256 << 20)
    assert values(blksum, "disk.raw.xz") == values(blksum, "disk.raw")
