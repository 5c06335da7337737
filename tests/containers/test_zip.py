"""zip archives: disks in them, compared with Python's zipfile, and archives that programs read differently."""

import binascii
import os
import pathlib
import random
import struct
import subprocess
import zipfile
import zlib

import pytest

from commands import mostly_slow
from container_images import value

MIB = 1 << 20


def content(rng, size=None):
    """Returns a disk of some kind: random, with zeros, or text that compresses well."""
    size = rng.choice([0, 1, 511, 512, 4096, 65_537, 300_000]) if size is None else size
    parts = []
    while sum(map(len, parts)) < size:
        kind, length = rng.randrange(3), rng.randrange(1, 70_000)
        parts.append(rng.randbytes(length) if kind == 0 else bytes(length) if kind == 1 else b"disk" * (length // 4 + 1))
    return b"".join(parts)[:size]


def raw(blksum, name):
    """Returns the result of reading a member as a raw disk."""
    return blksum("-f", "raw", name)


def archive(members, method=zipfile.ZIP_DEFLATED, path="a.zip"):
    with zipfile.ZipFile(path, "w", method) as out:
        for name, data in members:
            out.writestr(name, data)


def test_a_disk_by_its_name_or_as_the_only_one(blksum, workdir):
    disk = content(random.Random(1), 3 * MIB)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive([("dir/", b""), ("dir/disk.img", disk), ("README", b"text"), ("dir/other.txt", b"")], method)
        assert blksum.hex("a.zip") == value(disk)
        assert blksum("a.zip").stdout == f"{value(disk)}  a.zip:dir/disk.img\n".encode()
        assert blksum.hex("a.zip:dir/disk.img") == blksum.hex("a.zip:./dir//disk.img") == value(disk)
        assert raw(blksum, "a.zip:README").stdout.startswith(value(b"text").encode())
        checked = blksum("-c", "a.zip")
        assert (checked.returncode, checked.stdout.count(b": OK\n")) == (0, 3), checked
    # The bytes of the file itself.
    assert blksum.hex("-f", "raw", "a.zip") == value(pathlib.Path("a.zip").read_bytes())
    # The name decides, because a guest could write an archive into its raw disk.
    os.rename("a.zip", "disk.raw")
    refused = blksum("disk.raw")
    assert refused.returncode == 1 and b"is a zip archive" in refused.stderr
    assert blksum.hex("disk.raw:dir/disk.img") == value(disk)


def test_which_member_is_a_disk(blksum, workdir):
    disk = content(random.Random(2), MIB)
    archive([("firmware.bin", disk)])
    assert blksum.hex("a.zip") == value(disk)
    archive([("a.bin", disk), ("b.bin", disk)])
    refused = blksum("a.zip")
    assert refused.returncode == 1 and b"name one after a colon, as a.bin, b.bin" in refused.stderr
    archive([("a.img", disk), ("b.iso", b"x" * 4096)])
    assert [line.split()[1] for line in blksum("a.zip").stdout.splitlines()] == [b"a.zip:a.img", b"a.zip:b.iso"]
    unknown = blksum("a.zip:c.img")
    assert unknown.returncode == 1 and b'has no file with the name "c.img": it has a.img, b.iso' in unknown.stderr


@pytest.mark.parametrize("seed", mostly_slow(range(200), range(10)))
def test_random_archives(blksum, workdir, seed):
    rng = random.Random(seed)
    files = {f"f{index}{rng.choice(['', '.img', ' x'])}": content(rng) for index in range(rng.randint(1, 4))}
    for name, data in files.items():
        pathlib.Path(name).write_bytes(data)
    names = list(files)
    tool = rng.randrange(6)
    if tool == 0:
        with zipfile.ZipFile("a.zip", "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as out:
            for name, data in files.items():
                with out.open(name, "w", force_zip64=rng.random() < 0.5) as member:
                    member.write(data)
    elif tool == 1:
        subprocess.run(["zip", "-q", f"-{rng.randrange(10)}", *rng.choice([[], ["-fz"], ["-z"]]), "a.zip", *names], input=b"a comment", check=True)
    elif tool == 2:
        subprocess.run(["zip", "-q", "-fd", "a.zip", *names], check=True)
    elif tool == 3:
        subprocess.run(["7z", "a", "-tzip", f"-mx={rng.choice([0, 1, 5, 9])}", "a.zip", *names], check=True, stdout=subprocess.DEVNULL)
    elif tool == 4:
        compression = rng.choice(["store", "deflate"])
        subprocess.run(["bsdtar", "--format=zip", f"--options=zip:compression={compression}", "-cf", "a.zip", *names], check=True)
    else:
        # To a pipe, so that sizes follow the content.
        with open("a.zip", "wb") as out:
            subprocess.run(["zip", "-q", "-", *names], stdout=subprocess.PIPE, check=True)
            out.write(subprocess.run(["zip", "-q", "-", *names], stdout=subprocess.PIPE, check=True).stdout)
    for name, data in files.items():
        assert raw(blksum, f"a.zip:{name}").stdout.split()[0] == value(data).encode(), (tool, name)
    checked = blksum("-c", "a.zip")
    assert (checked.returncode, checked.stdout.count(b": OK\n")) == (0, len(files)), (tool, checked)


def test_each_byte_of_content_is_checked(blksum, workdir):
    disk = content(random.Random(3), MIB)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive([("disk.img", disk)], method)
        intact = pathlib.Path("a.zip").read_bytes()
        with zipfile.ZipFile("a.zip") as found:
            info = found.infolist()[0]
        start = 30 + len("disk.img")
        for at in (start, start + info.compress_size // 2, start + info.compress_size - 1):
            pathlib.Path("a.zip").write_bytes(intact[:at] + bytes([intact[at] ^ 4]) + intact[at + 1 :])
            for args in (("a.zip",), ("-c", "a.zip"), ("a.zip:disk.img",)):
                result = blksum(*args)
                assert result.returncode == 1 and value(disk).encode() not in result.stdout, (method, at, result)


def test_archives_that_programs_read_differently(blksum, workdir):
    disk = b"first disk" * 100
    archive([("a.img", disk), ("b.img", b"other" * 100)], zipfile.ZIP_STORED)
    good = pathlib.Path("a.zip").read_bytes()
    second = good.index(b"PK\x03\x04", 4)
    central = good.index(b"PK\x01\x02")
    end = good.index(b"PK\x05\x06")

    def changed(at, new, data=good):
        return data[:at] + new + data[at + len(new) :]

    cases = {
        "another name": (changed(30, b"c.img"), b"another name"),
        "another method": (changed(8, b"\x08"), b"another method"),
        "another size": (changed(22, b"\x01"), b"another size"),
        "another CRC": (changed(14, b"\x01\x02"), b"another CRC-32"),
        "encrypted in one": (changed(6, b"\x01"), b"another method"),
        "overlap": (changed(central + 46 + 5 + 42, struct.pack("<I", 0)), b"overlaps"),
        "prefix": (b"#!/bin/sh\n" + good, b"is a zip archive after 10 other bytes"),
        "trailing": (good + b"more", b"other bytes past its end"),
        "two ends": (changed(end + 20, struct.pack("<H", 22)) + b"PK\x05\x06" + bytes(18), b"several ends"),
        "cut": (good[: end - 10], b"no end of a zip archive"),
        "volumes": (changed(end + 4, b"\x01"), b"several volumes"),
        "count": (changed(end + 8, b"\x01\0\x01\0"), b"longer than its members"),
        "gap": (good[:second] + b"hidden" + good[second:], b"after 6 other bytes"),
        "absolute": (good.replace(b"a.img", b"/.img"), b"absolute"),
        "above": (good.replace(b"a.img", b"../ai"), b'".."'),
        "backslash": (good.replace(b"a.img", b"d\\img"), b"backslash"),
        "same name": (good.replace(b"b.img", b"a.img"), b"two members with the name"),
        "link": (changed(central + 5, b"\x03", changed(central + 38, struct.pack("<I", 0o120777 << 16))), b"is a link"),
        "no directory": (changed(central, b"XX"), b"no record of a member"),
    }
    for name, (data, word) in cases.items():
        pathlib.Path("a.zip").write_bytes(data)
        for args in (("a.zip:a.img",), ("-c", "a.zip")):
            result = blksum(*args)
            assert result.returncode == 1 and b"OK" not in result.stdout, (name, result)
            assert word in result.stderr, (name, result)
    archive([("c", b"x"), ("c/d", b"y")])
    assert b'and "c/d" in a folder of this name' in blksum("a.zip:c").stderr
    pathlib.Path("a.zip").write_bytes(good)
    assert blksum.hex("a.zip:a.img") == value(disk)


def test_other_methods_are_named(blksum, workdir):
    disk = content(random.Random(4), 100_000)
    pathlib.Path("disk.img").write_bytes(disk)
    for options, word in [
        (["-mm=bzip2"], b"bzip2"),
        (["-mm=lzma"], b"LZMA"),
        (["-mm=deflate64"], b"Deflate64"),
        (["-psecret"], b"encrypted"),
        (["-psecret", "-mem=AES256"], b"encrypted"),
    ]:
        pathlib.Path("a.zip").unlink(missing_ok=True)
        subprocess.run(["7z", "a", "-tzip", *options, "a.zip", "disk.img"], check=True, stdout=subprocess.DEVNULL)
        for args in (("a.zip",), ("-c", "a.zip")):
            result = blksum(*args)
            assert result.returncode == 1 and word in result.stderr, (options, result)
    subprocess.run(["zip", "-q", "-s", "64k", "b.zip", "disk.img"], check=True)
    pathlib.Path("big.img").write_bytes(random.Random(5).randbytes(200_000))
    subprocess.run(["zip", "-q", "-s", "64k", "c.zip", "big.img"], check=True)
    result = blksum("c.zip")
    assert result.returncode == 1 and b"volumes" in result.stderr, result


def mutants(intact, rng, count):
    for _ in range(count):
        data = bytearray(intact)
        for _ in range(rng.randint(1, 3)):
            # Most changes are in headers.
            magics = [at for at in range(len(data) - 4) if data[at : at + 2] == b"PK"]
            start = rng.choice(magics) if magics and rng.random() < 0.8 else rng.randrange(len(data))
            at = min(start + rng.randrange(60), len(data) - 1)
            data[at] = rng.choice([0, 1, 0xFF, data[at] ^ 1 << rng.randrange(8)])
        if rng.random() < 0.1:
            del data[rng.randrange(len(data)) :]
        yield bytes(data)


def check_mutants(blksum, seed, count):
    """No value is printed that zipfile and unzip do not give."""
    rng = random.Random(seed)
    disks = {"a.img": content(rng, 5000), "b.img": content(rng, 3000)}
    archive(disks.items(), rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    intact = pathlib.Path("a.zip").read_bytes()
    read = 0
    for data in mutants(intact, rng, count):
        pathlib.Path("a.zip").write_bytes(data)
        for name in disks:
            result = raw(blksum, f"a.zip:{name}")
            if result.returncode:
                continue
            read += 1
            with zipfile.ZipFile("a.zip") as found:
                assert value(found.read(name)).encode() == result.stdout.split()[0]
            unzipped = subprocess.run(["unzip", "-p", "a.zip", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            assert value(unzipped.stdout).encode() == result.stdout.split()[0], unzipped.returncode
    return read


@pytest.mark.parametrize("seed", mostly_slow(range(10), range(1)))
def test_mutants(blksum, workdir, seed):
    assert check_mutants(blksum, seed, 50) > 0


def test_limits(blksum, workdir):
    """Small files that ask for much."""
    # A bomb of 10 GiB in 10 MiB is one of zeros: its size is within the limit only if that is raised.
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packed.compress(bytes(64 * MIB)) + packed.flush()
    crc = binascii.crc32(bytes(64 * MIB))

    def bomb(size):
        local = struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 8, 0, 0, crc, len(body), size, 5, 0) + b"a.img"
        central = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, crc, len(body), size, 5, 0, 0, 0, 0, 0, 0) + b"a.img"
        end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local + body), 0)
        return local + body + central + end

    pathlib.Path("a.zip").write_bytes(bomb(64 * MIB))
    assert blksum.hex("a.zip") == value(bytes(64 * MIB))
    assert b"--max-zeros" in blksum("--max-zeros", "1M", "a.zip").stderr
    for size in (0, 1, 64 * MIB - 1, 64 * MIB + 1, 0xFFFF_FFFE):
        pathlib.Path("a.zip").write_bytes(bomb(size))
        assert blksum("a.zip").returncode == 1, size
    archive([(f"{index}.img", b"") for index in range(10_001)])
    assert b"more than 10000 members" in blksum("a.zip").stderr
