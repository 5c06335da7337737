"""Android sparse images (simg), compared with simg2img; stated CRC-32, damage, mutants."""

import hashlib
import json
import os
import pathlib
import random
import struct
import zlib

import pytest

import images
from commands import digest

SEED = 20261129
KIB = 1 << 10
MAGIC = 0xED26FF3A
RAW, FILL, DONT_CARE, CRC32 = 0xCAC1, 0xCAC2, 0xCAC3, 0xCAC4


def header(block=4096, blocks=4, chunks=0, crc=0, size=28, chunk_size=12, version=1):
    return struct.pack("<IHHHHIIII", MAGIC, version, 0, size, chunk_size, block, blocks, chunks, crc).ljust(size, b"h")


def chunk(kind, blocks, data=b"", size=12):
    return struct.pack("<HHII", kind, 0, blocks, size + len(data)).ljust(size, b"c") + data


def extracted(path):
    """The SHA-256 of what simg2img writes, or None if it fails."""
    pathlib.Path("extracted").unlink(missing_ok=True)
    result = images.attempt("simg2img", path, "extracted")
    return hashlib.sha256(pathlib.Path("extracted").read_bytes()).hexdigest() if result.returncode == 0 else None


def made_up(rng):
    """An image of random chunks. Returns it and its content."""
    block = rng.choice((4, 512, 1024, 4096, 4096, 4096, 65536))
    size, chunk_size = rng.choice(((28, 12), (28, 12), (32, 12), (28, 16), (100, 40)))
    pieces, content = [], b""
    for _ in range(rng.randrange(1, 12)):
        kind = rng.choice((RAW, FILL, FILL, DONT_CARE, CRC32))
        # simg2img moves blocks after chunks with data of no block.
        count = rng.randrange(kind != DONT_CARE, rng.choice((3, 3, 40)))
        if kind == RAW:
            data = rng.randbytes(block * count)
            pieces.append(chunk(RAW, count, data, chunk_size))
        elif kind == FILL:
            word = rng.choice((bytes(4), b"\xff" * 4, rng.randbytes(4)))
            data = word * (block * count // 4)
            pieces.append(chunk(FILL, count, word, chunk_size))
        elif kind == DONT_CARE:
            data = bytes(block * count)
            pieces.append(chunk(DONT_CARE, count, b"", chunk_size))
        else:
            data = b""
            pieces.append(chunk(CRC32, 0, struct.pack("<I", zlib.crc32(content)), chunk_size))
        content += data
    head = header(block, len(content) // block, len(pieces), 0, size, chunk_size)
    return head + b"".join(pieces) + rng.choice((b"", b"behind")), content


@pytest.mark.parametrize("count", [16, pytest.param(200, marks=pytest.mark.slow)])
def test_images_of_img2simg(blksum, workdir, count):
    rng = random.Random(SEED + count)
    for number in range(count):
        parts = []
        for _ in range(rng.randrange(1, 12)):
            size = rng.randrange(1, 30) * rng.choice((4 * KIB, 4 * KIB, 1000))
            parts.append(rng.choice((bytes(size), rng.randbytes(size), (rng.randbytes(4) * size)[:size])))
        pathlib.Path("raw").write_bytes(b"".join(parts))
        block = rng.choice(((), ("1024",), ("4096",), ("65536",)))
        images.run("img2simg", "raw", "disk.simg", *block)
        expected = extracted("disk.simg")
        assert expected is not None and digest(blksum, "disk.simg") == expected, (number, block)
        os.unlink("disk.simg")


@pytest.mark.parametrize("count", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_images_of_random_chunks(blksum, workdir, count):
    rng = random.Random(SEED - count)
    for number in range(count):
        image, content = made_up(rng)
        pathlib.Path("disk.simg").write_bytes(image)
        expected = hashlib.sha256(content).hexdigest()
        assert extracted("disk.simg") == expected, number
        assert digest(blksum, "disk.simg") == expected, number
        assert digest(blksum, "disk.simg", "--read-size=4k", "--threads=3") == expected, number


def test_every_command_reads_it(blksum, workdir):
    rng = random.Random(SEED)
    raw = rng.randbytes(100_000).ljust(1 << 20, b"\0")
    pathlib.Path("raw").write_bytes(raw)
    images.run("img2simg", "raw", "disk.img")
    expected = hashlib.sha256(raw).hexdigest()
    assert digest(blksum, "disk.img") == digest(blksum, "disk.img", "--format=simg") == expected
    tool = pathlib.Path(blksum.path).parent
    images.run(tool / "blkcopy", "disk.img", "copy.img")
    assert pathlib.Path("copy.img").read_bytes() == raw
    info = json.loads(images.run(tool / "blkhash", "info", "--json", "disk.img"))
    assert (info["format"], info["virtual_size"]) == ("simg", 1 << 20)
    line = blksum("--tag", "-d", "sha256", "--format=simg", "disk.img").stdout
    pathlib.Path("SUMS").write_bytes(line)
    assert blksum("-c", "SUMS").returncode == 0
    refused = blksum("--reader=qemu", "disk.img")
    assert refused.returncode == 1 and b"which qemu-nbd does not read" in refused.stderr


def test_stated_checksums(blksum, workdir):
    """The CRC-32 of the header and of a last chunk are compared. simg2img compares neither."""
    content = b"a" * 4096 + bytes(8192) + b"word" * 1024
    chunks = [chunk(RAW, 1, content[:4096]), chunk(DONT_CARE, 2), chunk(FILL, 1, b"word")]
    right = zlib.crc32(content)

    def check(stated, *sums):
        more = [chunk(CRC32, 0, struct.pack("<I", it)) for it in sums]
        image = header(blocks=4, chunks=len(chunks + more), crc=stated) + b"".join(chunks + more)
        pathlib.Path("x.simg").write_bytes(image)
        assert extracted("x.simg") == hashlib.sha256(content).hexdigest()
        return blksum("-c", "x.simg")

    for stated, sums in ((right, []), (0, [right]), (right, [right])):
        result = check(stated, *sums)
        assert (result.returncode, result.stdout) == (0, b"x.simg: OK\n"), result
    for stated, sums in ((right ^ 1, []), (0, [right ^ 1])):
        result = check(stated, *sums)
        assert (result.returncode, result.stdout) == (1, b"x.simg: FAILED\n"), result
    result = check(right, right ^ 1)
    assert result.returncode == 1 and result.stdout.splitlines() == [b"x.simg: OK", b"x.simg: FAILED"]
    result = check(0)
    assert result.returncode == 1 and b"states no checksum of its content" in result.stderr


def test_sums_of_a_part_are_not_of_all(blksum, workdir):
    content = b"a" * 4096 + b"b" * 4096
    chunks = [chunk(RAW, 1, content[:4096]), chunk(CRC32, 0, b"none"), chunk(RAW, 1, content[4096:])]
    pathlib.Path("x.simg").write_bytes(header(blocks=2, chunks=3) + b"".join(chunks))
    assert digest(blksum, "x.simg") == hashlib.sha256(content).hexdigest()
    assert b"states no checksum of its content" in blksum("-c", "x.simg").stderr


def test_huge_holes(blksum, workdir):
    """They take no memory, and `--max-zeros` bounds the time."""
    with open("x.simg", "wb") as file:
        file.write(header(blocks=(1 << 32) - 1, chunks=3))
        file.write(chunk(DONT_CARE, 1 << 31) + chunk(FILL, (1 << 31) - 2, bytes(4)) + chunk(RAW, 1, b"x" * 4096))
    result = blksum("--max-zeros=1G", "x.simg")
    assert result.returncode == 1 and b"zeros" in result.stderr
    info = images.run(pathlib.Path(blksum.path).parent / "blkhash", "info", "--json", "x.simg")
    assert json.loads(info)["virtual_size"] == ((1 << 32) - 1) * 4096


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_mutants(blksum, workdir, count):
    """None is read that simg2img refuses, and those that both read have one content."""
    rng = random.Random(SEED * count)
    read = 0
    for number in range(count):
        image, _ = made_up(rng)
        image = bytearray(image)
        offset = rng.randrange(28) if rng.random() < 0.4 else rng.randrange(len(image))
        if rng.random() < 0.2:
            del image[offset:]
        else:
            image[offset] ^= 1 << rng.randrange(8)
        block, blocks = struct.unpack_from("<II", image.ljust(28, b"\0"), 12)
        pathlib.Path("x").write_bytes(image)
        if block * blocks > 1 << 30:
            # simg2img writes all zeros of some. A reader must not take long.
            blksum("--max-zeros=1G", "x")
            continue
        found = digest(blksum, "x", "--format=simg")
        if found is not None:
            read += 1
            assert found == extracted("x"), number
    assert read > count / 10
