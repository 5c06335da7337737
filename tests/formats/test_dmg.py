"""Apple disk images (dmg), compared with qemu-img, 7z and dmg2img; stated CRC-32, damage, mutants."""

import base64
import hashlib
import json
import os
import pathlib
import random
import re
import struct
import zlib

import pytest

import dmg_images
import images
from commands import digest
from dmg_images import ADC, BZIP2, IGNORE, LZFSE, RAW, XZ, ZERO, ZLIB, Run, Table

SEED = 20261129

# What every build of qemu-img reads, and what 7z reads as well.
OF_QEMU = (ZERO, IGNORE, RAW, ZLIB)
ALL = (*OF_QEMU, ADC, BZIP2, LZFSE, XZ)


def of_qemu(path):
    """The SHA-256 of what qemu-img reads, or None if it fails."""
    pathlib.Path("theirs").unlink(missing_ok=True)
    if images.attempt("qemu-img", "convert", "-f", "dmg", "-O", "raw", path, "theirs").returncode != 0:
        return None
    return hashlib.sha256(pathlib.Path("theirs").read_bytes()).hexdigest()


def of_7z(path):
    """The SHA-256 of what 7z reads, all tables in a row, or None if it fails. It compares the CRC-32 of tables."""
    result = images.attempt("7z", "x", "-so", "-tdmg", path)
    return hashlib.sha256(result.stdout).hexdigest() if result.returncode == 0 else None


def of_dmg2img(path):
    """The SHA-256 of what dmg2img writes."""
    pathlib.Path("theirs").unlink(missing_ok=True)
    images.attempt("dmg2img", "-s", "-i", path, "-o", "theirs")
    return hashlib.sha256(pathlib.Path("theirs").read_bytes()).hexdigest()


def write(*tables, **options):
    """An image as x.dmg. Returns the SHA-256 of its content."""
    pathlib.Path("x.dmg").write_bytes(dmg_images.image(tables, **options))
    return hashlib.sha256(b"".join(table.content for table in tables)).hexdigest()


def runs_of(rng, *kinds):
    """Runs of these kinds."""
    sizes = [rng.randrange(2, 60) * 512 for _ in kinds]
    return [
        Run(kind, bytes(size) if kind in (ZERO, IGNORE) else dmg_images.words(rng, size))
        for kind, size in zip(kinds, sizes, strict=True)
    ]


@pytest.mark.parametrize("count", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_images_that_qemu_reads(blksum, workdir, count):
    rng = random.Random(SEED + count)
    for number in range(count):
        image, content = dmg_images.made_up(rng, OF_QEMU)
        pathlib.Path("x.dmg").write_bytes(image)
        expected = hashlib.sha256(content).hexdigest()
        assert of_qemu("x.dmg") == expected, number
        assert digest(blksum, "x.dmg") == expected, number
        assert digest(blksum, "x.dmg", "--read-size=4k", "--threads=3") == expected, number
        assert blksum.hex("x.dmg") == blksum.hex("--reader=qemu", "x.dmg"), number


@pytest.mark.parametrize("count", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_images_of_all_compressions(blksum, workdir, count):
    rng = random.Random(SEED - count)
    for number in range(count):
        tables = [Table(runs_of(rng, *rng.choices(ALL, k=rng.randrange(1, 8)))) for _ in range(rng.randrange(1, 4))]
        expected = write(*tables)
        assert of_7z("x.dmg") == expected, number
        assert digest(blksum, "x.dmg") == expected, number
        assert digest(blksum, "x.dmg", "--read-size=4k", "--threads=3") == expected, number
        result = blksum("-c", "x.dmg")
        assert (result.returncode, result.stdout) == (0, b"x.dmg: OK\n"), (number, result)


@pytest.mark.parametrize("kind", [RAW, ADC, ZLIB, BZIP2])
def test_images_that_dmg2img_reads(blksum, workdir, kind):
    rng = random.Random(SEED)
    expected = write(Table(runs_of(rng, kind, ZERO, kind, IGNORE, kind)))
    assert digest(blksum, "x.dmg") == of_dmg2img("x.dmg") == expected


def test_long_runs(blksum, workdir):
    """Runs of the size that hdiutil makes, and of the largest that QEMU takes, are decompressed once."""
    rng = random.Random(SEED)
    words = dmg_images.words(rng, 1 << 17)
    runs = [Run(ZLIB, words * 4 + rng.randbytes(1 << 19)) for _ in range(8)]
    runs = [Run(RAW, b"r" * 512), *runs, Run(ZERO, bytes(96 << 20)), Run(ZLIB, words * 512)]
    expected = write(Table(runs))
    assert digest(blksum, "x.dmg") == of_qemu("x.dmg") == expected
    report = json.loads(blksum("--json", "x.dmg").stdout)
    assert report["bytes_read"] < 1.2 * os.path.getsize("x.dmg")
    assert blksum("-c", "x.dmg").stdout == b"x.dmg: OK\n"
    write(Table([Run(ZLIB, bytes((64 << 20) + 512))]))
    assert of_qemu("x.dmg") is None
    assert b"compressed run of more than 64 MiB" in blksum("x.dmg").stderr


def test_every_command_reads_it(blksum, workdir):
    rng = random.Random(SEED)
    expected = write(Table(runs_of(rng, ZLIB, ZERO, RAW, IGNORE)))
    os.rename("x.dmg", "disk.img")
    none = {"PATH": "/nowhere"}
    assert digest(blksum, "disk.img") == digest(blksum, "disk.img", "--format=dmg") == expected
    assert blksum("disk.img", env=none).returncode == 0
    tool = pathlib.Path(blksum.path).parent
    images.run(tool / "blkcopy", "disk.img", "copy.img")
    copy = pathlib.Path("copy.img").read_bytes()
    assert hashlib.sha256(copy).hexdigest() == expected
    info = json.loads(images.run(tool / "blkhash", "info", "--json", "disk.img"))
    assert (info["format"], info["virtual_size"]) == ("dmg", len(copy))
    assert re.fullmatch(r"CRC-32 of \d+ parts", info["part_checksums"])
    line = blksum("--tag", "-d", "sha256", "--format=dmg", "disk.img").stdout
    pathlib.Path("SUMS").write_bytes(line)
    assert blksum("-c", "SUMS").returncode == 0


# Checksums


def two_tables(rng):
    kinds = (ZLIB, IGNORE, RAW, ZERO, BZIP2)
    return Table(runs_of(rng, *kinds), "Apple (Apple_HFS : 1)"), Table(runs_of(rng, RAW, ZLIB), "rest \u202e")


def checked(blksum):
    """The record of `-c x.dmg`, its exit status and its messages."""
    result = blksum("-c", "--json", "x.dmg")
    return json.loads(result.stdout), result.returncode, result.stderr


def test_every_stated_checksum_is_compared(blksum, workdir):
    rng = random.Random(SEED)
    first, second = two_tables(rng)
    write(first, second)
    report, status, _ = checked(blksum)
    assert (status, report["status"], report["digest"]) == (0, "ok", "crc32")
    assert report["sums"] == {"compared": 4, "unknown": 0, "different": []}
    sums = struct.pack(">II", first.checksum(), second.checksum())
    assert report["checksum"] == f"{zlib.crc32(sums):08x}"
    for bit in range(0, 32, 5):
        flip = 1 << bit
        for number, table in enumerate((first, second)):
            # The master checksum is of what the tables state.
            table.crc = table.checksum() ^ flip
            write(first, second)
            report, status, stderr = checked(blksum)
            assert (status, report["sums"]["different"]) == (1, [table.name]), number
            assert b"differs from its CRC-32 in" in stderr and "\u202e".encode() not in stderr
            table.crc = "right"
        write(first, second, master_crc=zlib.crc32(sums) ^ flip)
        assert checked(blksum)[0]["sums"]["different"] == ["master checksum"]
        image = pathlib.Path("x.dmg").read_bytes()
        data = zlib.crc32(b"".join(run.stored for table in (first, second) for run in table.runs))
        write(first, second, data_crc=data ^ flip)
        assert checked(blksum)[0]["sums"]["different"] == ["data fork"]
        assert pathlib.Path("x.dmg").read_bytes() != image
    result = blksum("-c", "x.dmg")
    assert (result.returncode, result.stdout) == (1, b"x.dmg: FAILED\n")


def test_every_changed_byte_is_found(blksum, workdir):
    """Content of each kind of run. 7z finds it, too, where a table has a checksum of it."""
    rng = random.Random(SEED)
    runs = runs_of(rng, *ALL)
    for number, run in enumerate(runs):
        for data_crc in ("right", None):
            old, run.stored = run.stored, bytearray(run.stored)
            if run.stored:
                run.stored[rng.randrange(8, len(run.stored) - 8)] ^= 1 << rng.randrange(8)
                data = data_crc and zlib.crc32(b"".join(it.stored for it in runs[:number] + runs[number + 1 :]))
                write(Table(runs), data_crc=data)
                result = blksum("-c", "x.dmg")
                assert result.returncode == 1 and result.stdout.startswith(b"x.dmg: FAILED"), hex(run.kind)
                assert of_7z("x.dmg") is None
            run.stored = old
    # Zeros in place of what is ignored are the same content with another checksum.
    crc = Table(runs).checksum()
    for run in runs:
        if run.kind in (ZERO, IGNORE):
            run.kind = ZERO + IGNORE - run.kind
            write(Table(runs, crc=crc))
            assert blksum("-c", "x.dmg").stdout == b"x.dmg: FAILED\n"
            assert of_7z("x.dmg") is None
            run.kind = ZERO + IGNORE - run.kind


def test_images_without_checksums_say_so(blksum, workdir):
    table = Table(runs_of(random.Random(SEED), ZLIB, RAW), crc=None)
    write(table, data_crc=None, master_crc=None)
    result = blksum("-c", "x.dmg")
    assert result.returncode == 1 and b"states no checksum of its content" in result.stderr, result
    # An MD5, by its type.
    write(table, data_crc=1, master_crc=1, sum_kind=4)
    result = blksum("-c", "x.dmg")
    assert result.returncode == 1 and b"other types than CRC-32, which are not known" in result.stderr, result
    write(Table(table.runs), data_crc=1, master_crc=1, sum_kind=4)
    report, status, stderr = checked(blksum)
    assert (status, report["sums"]) == (0, {"compared": 1, "unknown": 2, "different": []})
    assert b"2 of its checksums are not CRC-32, and were not compared" in blksum("-c", "x.dmg").stderr, stderr


def test_parts_are_refused(blksum, workdir):
    write(Table(runs_of(random.Random(SEED), ZLIB, RAW)))
    result = blksum("-c", "--length=512", "x.dmg")
    assert result.returncode == 1 and b"of all of its content" in result.stderr, result


# Refusals


def test_images_in_which_readers_differ_are_refused(blksum, workdir):
    rng = random.Random(SEED)

    def refused(reason, *tables, **options):
        write(*tables, **options)
        result = blksum("x.dmg")
        assert result.returncode == 1 and reason.encode() in result.stderr, result
        assert not result.stdout and result.stderr.count(b"\n") == 1

    runs = runs_of(rng, ZLIB, ZERO, RAW)
    size = sum(run.sectors for run in runs)
    overlap = "overlap, have gaps or are not in order"
    refused(overlap, Table(runs), Table(runs, start=size + 1))
    refused(overlap, Table(runs), Table(runs, start=size - 1))
    refused(overlap, Table(runs, start=size), Table(runs, start=0))
    refused("sectors and runs of", Table(runs), sectors=size + 1)
    refused("sectors and runs of", Table(runs), sectors=size - 1)
    refused("with runs of", Table(runs, sectors=size + 1))
    refused("is segment 1 of 2 of a dmg image", Table(runs), segments=2)
    refused("version 5", Table(runs), version=5)
    refused("without a table of runs", lists=())
    refused("0x80000009, which is not known", Table([Run(0x80000009, bytes(512), b"x")]))
    refused("cannot be decompressed", Table([Run(ZLIB, bytes(512), zlib.compress(bytes(511)))]))
    refused("cannot be decompressed", Table([Run(ZLIB, bytes(512), zlib.compress(bytes(513)))]))
    refused("is stored in 511", Table([Run(RAW, bytes(512), bytes(511))]))
    entities = b'<!DOCTYPE plist [<!ENTITY a "b">]><plist><dict/></plist>'
    refused("declares entities", Table(runs), plist=entities)
    refused("is no XML", Table(runs), plist=b"<plist></dict>")


def test_other_images_of_apple_are_named(blksum, workdir):
    for content, reason in (
        (b"encrcdsa" + bytes(4088), "is an encrypted dmg image"),
        (bytes(4088) + b"cdsaencr", "is an encrypted dmg image"),
        (b"sprs\0\0\0\x03" + bytes(4088), "is a sparse image (macOS)"),
    ):
        pathlib.Path("x.img").write_bytes(content)
        result = blksum("x.img") if content[:1] == b"s" else blksum("--format=dmg", "x.img")
        assert result.returncode == 1 and reason.encode() in result.stderr, result
        assert b"hdiutil convert" in result.stderr, result
    pathlib.Path("x.dmg").write_bytes(b"encrcdsa" + bytes(4088))
    assert b"is an encrypted dmg image" in blksum("x.dmg").stderr


def test_huge_zeros(blksum, workdir):
    """They take no memory, and `--max-zeros` bounds the time, also of checks."""
    write(Table([Run(ZERO, sectors=1 << 50), Run(RAW, b"r" * 512)], crc=1))
    for args in (("x.dmg",), ("-c", "x.dmg")):
        result = blksum("--max-zeros=1G", *args)
        assert result.returncode == 1 and b"zeros" in result.stderr + result.stdout, result
    info = images.run(pathlib.Path(blksum.path).parent / "blkhash", "info", "--json", "x.dmg")
    assert json.loads(info)["virtual_size"] == (1 << 59) + 512


def mutant(rng, image):
    """The image with a changed bit: in the trailer, in a table, in the text of the property list, or anywhere; or cut."""
    image = bytearray(image)
    size = len(image)
    koly = size - 512
    start, length = struct.unpack_from(">QQ", image, koly + 216)
    where = rng.random()
    if where < 0.3:
        offset = koly + rng.randrange(512)
    elif where < 0.7 and length:
        # Changes the bytes of a table, and encodes it again.
        found = rng.choice(list(re.finditer(rb"<data>([^<]*bWlz[^<]*)</data>", bytes(image[start : start + length]))))
        table = bytearray(base64.b64decode(found[1]))
        at = rng.choice((rng.randrange(len(table)), rng.randrange(204, len(table))))
        table[at] ^= 1 << rng.randrange(8)
        text = base64.b64encode(table)
        text = text.ljust(len(found[1]))
        image[start + found.start(1) : start + found.end(1)] = text[: len(found[1])]
        return bytes(image)
    elif where < 0.8 and length:
        offset = start + rng.randrange(length)
    elif where < 0.9:
        return bytes(image[: rng.randrange(size)] + image[koly:])
    else:
        offset = rng.randrange(size)
    image[offset] ^= 1 << rng.randrange(8)
    return bytes(image)


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_mutants(blksum, workdir, count):
    """None is read that QEMU refuses, and those that both read have one content."""
    rng = random.Random(SEED * count)
    read = 0
    for number in range(count):
        image, _ = dmg_images.made_up(rng, OF_QEMU, 12)
        pathlib.Path("x").write_bytes(mutant(rng, image))
        found = digest(blksum, "x", "--format=dmg", "--max-zeros=1G")
        if found is not None:
            read += 1
            assert found == of_qemu("x"), number
    assert read > count / 10


@pytest.mark.parametrize("count", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_mutants_of_other_compressions(blksum, workdir, count):
    """QEMU lacks these. Those that are read have the content of 7z, or that before the change: 7z also refuses bits that do not
    matter, as in codes of bzip2 that no byte uses."""
    rng = random.Random(SEED // count)
    read = 0
    for number in range(count):
        kinds = rng.choices((ADC, BZIP2, LZFSE, XZ), k=3)
        table = Table(runs_of(rng, *kinds), crc=None)
        image = bytearray(dmg_images.image([table]))
        data = struct.unpack_from(">Q", image, len(image) - 480)[0]
        image[rng.randrange(data)] ^= 1 << rng.randrange(8)
        pathlib.Path("x").write_bytes(image)
        found, theirs = digest(blksum, "x", "--format=dmg"), of_7z("x")
        if found is not None:
            read += 1
            assert found in (theirs, hashlib.sha256(table.content).hexdigest()), number
    assert read > 0
