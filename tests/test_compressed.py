"""Files that are compressed as a whole, by the real tools: their values and verdicts."""

import pathlib
import random
import shlex
import struct
import subprocess

import images
import pytest
from conftest import mostly_slow

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
}  # fmt: skip
METHODS = {"gz": "gzip", "xz": "xz", "zst": "zstd", "bz2": "bzip2", "lz4": "lz4"}


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
        for _ in range(rng.choice([1, 1, 1, 2, 3, 9])):
            size = rng.choice([0, 1, rng.randrange(1, 100_000), rng.randrange(1, 3 << 20)])
            (workdir / "part").write_bytes(content(rng, size))
            plain.append((workdir / "part").read_bytes())
            parts.append(compress(rng.choice(COMMANDS[extension]), "part"))
            if extension in ("zst", "lz4") and rng.random() < 0.2:
                skipped = rng.randbytes(rng.randrange(100))
                parts.append(struct.pack("<II", 0x184D2A50 + rng.randrange(16), len(skipped)) + skipped)
            if extension == "xz":
                parts.append(bytes(4 * rng.choice([0, 0, 1, 1000])))
        if extension == "gz":
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
    """Compares the verdicts on files with those of the tool, and the values where they are good."""
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


def test_name_and_content_decide(blksum, workdir):
    """A raw disk that begins like a compressed file is raw, and so is one that only has the name."""
    (workdir / "plain").write_bytes(bytes(1000) + b"x" * 1048)
    (workdir / "disk.raw.gz").write_bytes(compress("gzip -c FILE", "plain"))
    stored = (workdir / "disk.raw.gz").read_bytes()
    (workdir / "disk.raw").write_bytes(stored)
    (workdir / "disk.xz").write_bytes(stored)
    (workdir / "plain.gz").write_bytes((workdir / "plain").read_bytes())
    plain, packed = values(blksum, "plain", "plain.gz")[0], values(blksum, "-f", "raw", "disk.raw.gz")[0]
    assert plain != packed
    assert values(blksum, "disk.raw.gz", "plain.gz") == [plain, plain]
    assert values(blksum, "disk.raw", "disk.xz") == [packed, packed]
    assert values(blksum, "--untrusted", "disk.raw.gz") == [packed]
    assert values(blksum, "--untrusted", "-f", "gzip", "disk.raw.gz", "disk.raw") == [plain, plain]
    assert values(blksum, input=stored) == [packed]
    note = b"note: looks like gzip: the checksum is of the compressed bytes: -f gzip hashes the content\n"
    assert b"disk.xz: " + note in blksum("disk.xz").stderr and b"disk.raw: " + note in blksum("disk.raw").stderr
    assert blksum("disk.raw.gz").stderr == b""


@pytest.mark.parametrize("fmt", mostly_slow(["qcow2", "vmdk", "vhdx", "vdi", "vpc"], ["qcow2"]))
@pytest.mark.parametrize("extension", ["gz", "xz", "zst"])
def test_images_within(blksum, workdir, fmt, extension):
    """An image in a compressed file is read in its order, or with an error that says what is in the way."""
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


def test_footers(blksum, workdir):
    """A fixed vpc image in a stream of unknown size is not taken for raw."""
    (workdir / "disk.raw").write_bytes(bytes(40 << 20) + b"x" * 512 + bytes(30 << 20))
    images.run("qemu-img", "convert", "-O", "vpc", "-o", "subformat=fixed,force_size=on", "disk.raw", "disk.vhd")
    (raw,) = values(blksum, "disk.raw")
    for command, name in [("gzip -1c FILE", "disk.vhd.gz"), ("zstd -1 -c FILE", "disk.vhd.zst"), ("xz -0 -T1 -c FILE", "disk.vhd.xz")]:
        (workdir / name).write_bytes(compress(command, "disk.vhd"))
        result = blksum(name)
        assert (result.returncode, result.stdout) == (1, b""), name
        assert b"ends like a vpc or dmg image" in result.stderr, result.stderr
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
