"""Forensic images (E01) of ewfacquire, compared with ewfexport and ewfverify; damage, segments, limits."""

import hashlib
import json
import pathlib
import random
import resource
import shutil
import struct
import zlib

import pytest

import ewf_images
import images

KIB = 1 << 10
MIB = 1 << 20
SEED = 20261201


def content(rng, size, chunk=32 * KIB):
    """Content with zeros, patterns and random bytes, in stretches that end anywhere."""
    parts, length = [], 0
    while length < size:
        part = rng.choice((rng.randrange(1, 3 * chunk), rng.randrange(1, 5000)))
        kind = rng.randrange(3)
        parts.append(bytes(part) if kind == 0 else rng.randbytes(part) if kind == 1 else (b"pattern %d " % length * part)[:part])
        length += part
    return b"".join(parts)[:size]


def digests(blksum, path, *options):
    """MD5 and SHA-1 of the content of an image."""
    lines = blksum("--tag", "-d", "md5", "-d", "sha1", "--construction=linear", *options, path).stdout.decode().splitlines()
    return [line.rpartition(" = ")[2] for line in lines]


def linear(content):
    return [hashlib.md5(content).hexdigest(), hashlib.sha1(content).hexdigest()]


def create(rng, name):
    """Acquires random content in a random way. Returns the content and the path."""
    fmt = rng.choice(list(ewf_images.FORMATS))
    sector = 512 if fmt in ewf_images.FILES_ONLY else rng.choice((512, 512, 512, 2048))
    sectors = rng.choice((16, 32, 64, 64, 64, 128, 1024))
    size = rng.randrange(1, rng.choice((20, 400, 8000))) * sector
    segment = rng.choice((None, None, MIB, 2 * MIB))
    compression = rng.choice(("none", "empty-block", "fast", "best"))
    raw = content(rng, size, sectors * sector)
    pathlib.Path(f"{name}.raw").write_bytes(raw)
    more = ("-d", "sha1") if rng.random() < 0.5 else ()
    path = ewf_images.acquire(f"{name}.raw", name, fmt, compression, segment, sectors, sector, more)
    return raw, path


@pytest.mark.parametrize("count", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_random_images(blksum, workdir, count):
    rng = random.Random(SEED + count)
    for number in range(count):
        raw, path = create(rng, f"disk{number}")
        assert digests(blksum, path) == linear(raw), (number, path)
        checked = blksum("-c", path)
        assert checked.returncode == 0 and set(checked.stdout.decode().splitlines()) == {f"{path}: OK"}, (number, checked)
        for file in pathlib.Path().glob(f"disk{number}.*"):
            file.unlink()


@pytest.mark.parametrize("fmt", list(ewf_images.LATER))
def test_formats_of_later_versions(blksum, workdir, fmt):
    """libewf writes the format of EnCase 7 as it writes EnCase 6's."""
    raw = content(random.Random(fmt), 300 * KIB)
    pathlib.Path("raw").write_bytes(raw)
    options = ["-q", "-f", fmt, "-d", "sha1", "-t", "disk"]
    with open("raw", "rb") as file:
        images.attempt("ewfacquirestream", *options, stdin=file)
    assert digests(blksum, "disk.E01") == linear(raw)


@pytest.mark.parametrize("size", [0, 511, 1000, 33 * KIB + 100])
def test_sizes_that_are_no_multiple_of_a_sector(blksum, workdir, size):
    """ewfexport leaves the rest out, and ewfverify says that the digest differs."""
    pathlib.Path("raw").write_bytes(random.Random(size).randbytes(size))
    path = ewf_images.acquire("raw", "disk")
    expected = ewf_images.export(path)
    assert expected is not None and digests(blksum, path) == linear(expected)
    assert (blksum("-c", path).returncode == 0) == ewf_images.verify(path) == (size == 0)


def test_digests_of_one_pass(blksum, workdir):
    raw = content(random.Random(1), 3 * MIB)
    pathlib.Path("raw").write_bytes(raw)
    path = ewf_images.acquire("raw", "disk", compression="fast", more=("-d", "sha1"))
    report = [json.loads(line) for line in blksum("-c", "--json", path).stdout.splitlines()]
    assert [it["status"] for it in report] == ["ok", "ok"]
    assert {it["checksum"] for it in report} == set(linear(raw))
    # Both lines are of one pass, which read the file once.
    assert len({it["bytes_read"] for it in report}) == 1


def test_info(blksum, workdir):
    pathlib.Path("raw").write_bytes(bytes(5 * 512))
    more = ("-C", "case \x1b[2J", "-E", "7", "-e", "Jane", "-N", "notes\u202e", "-D", "a disk", "-m", "optical")
    path = ewf_images.acquire("raw", "disk", more=more)
    info = json.loads(images.run(blkhash(blksum), "info", "--json", path))["acquisition"]
    case = info["case"]
    assert (case["evidence_number"], case["examiner"], case["description"]) == ("7", "Jane", "a disk")
    assert (info["medium"], info["chunk_size"], info["chunks"], info["sector_size"]) == ("optical", 32 * KIB, 1, 512)
    assert info["digests"] == [{"algorithm": "md5", "digest": ewf_images.md5(bytes(5 * 512))}]
    text = images.run(blkhash(blksum), "info", path).decode()
    assert "Jane" in text and "\x1b" not in text and "\u202e" not in text


def test_errors_of_the_acquisition(blksum, workdir):
    raw = bytes(range(256)) * 256
    chunks = [ewf_images.stored(raw[:32768]), ewf_images.compressed(raw[32768:])]
    ewf_images.write("x.E01", chunks, md5=hashlib.md5(raw).digest(), errors=[(3, 2), (64, 1)])
    assert ewf_images.verify("x.E01")
    result = blksum("-c", "x.E01")
    assert result.stdout == b"x.E01: OK\n"
    assert b"1536 bytes could not be read when it was acquired, in 2 ranges, the first at 1536" in result.stderr
    info = json.loads(images.run(blkhash(blksum), "info", "--json", "x.E01"))["acquisition"]
    assert info["errors"] == [{"offset": 1536, "length": 1024}, {"offset": 32768, "length": 512}]


def test_image_without_a_digest(blksum, workdir):
    """Reading it compares the checksums of its chunks."""
    raw = random.Random(3).randbytes(3 * 32768)
    chunks = [ewf_images.stored(raw[at : at + 32768]) for at in range(0, len(raw), 32768)]
    ewf_images.write("x.E01", chunks)
    assert blksum("-c", "x.E01").stdout == b"x.E01: OK\n"
    damaged = bytearray(pathlib.Path("x.E01").read_bytes())
    damaged[ewf_images.by_kind(damaged)["sectors"].data + 40000] ^= 1
    pathlib.Path("x.E01").write_bytes(damaged)
    result = blksum("-c", "x.E01")
    assert result.returncode == 1 and result.stdout == b"x.E01: FAILED open or read\n"
    assert b"the chunk of guest offset 32768 does not match its Adler-32 (offset " in result.stderr


def test_every_command_reads_it(blksum, workdir):
    raw = content(random.Random(4), 2 * MIB)
    pathlib.Path("raw").write_bytes(raw)
    path = ewf_images.acquire("raw", "disk", compression="best", segment=MIB)
    tool = blkhash(blksum)
    copy = pathlib.Path(blksum.path).with_name("blkcopy")
    images.run(str(copy), path, "copy")
    assert pathlib.Path("copy").read_bytes() == raw
    images.run(tool, "map", "create", path, "-o", "map")
    images.run(tool, "map", "verify", "map", "raw")
    checked = images.attempt(tool, "check", path)
    assert b"Adler-32" in checked.stdout
    assert images.attempt(str(copy), "raw", "copy.E01").returncode != 0


def blkhash(blksum):
    return str(pathlib.Path(blksum.path).with_name("blkhash"))


# Damage


def damages(original):
    """Names of places, and their offsets: a byte of each is flipped."""
    found = ewf_images.by_kind(original)
    table, (count,) = found["table"], struct.unpack_from("<I", original, found["table"].data)
    raw = [entry for entry in struct.unpack_from(f"<{count}I", original, table.data + 24)]
    base = struct.unpack_from("<Q", original, table.data + 8)[0]
    packed = [base + (it & 0x7FFFFFFF) for it in raw if it >> 31]
    plain = [base + it for it in raw if not it >> 31]
    yield "zlib header", packed[0]
    yield "zlib body", packed[1] + 20
    yield "stored chunk", plain[0] + 1000
    yield "Adler-32 of a stored chunk", plain[0] + 32768
    for kind, section in found.items():
        yield f"type of {kind}", section.offset
        yield f"next of {kind}", section.offset + 16
        yield f"size of {kind}", section.offset + 24
        yield f"padding of {kind}", section.offset + 40
        yield f"Adler-32 of {kind}", section.offset + 72
    for kind in ("volume", "data"):
        for name, at in (("chunks", 4), ("sectors", 16), ("rest", 500), ("Adler-32", 1048)):
            yield f"{name} in {kind}", found[kind].data + at
    for kind in ("table", "table2"):
        for name, at in (("count", 0), ("base", 8), ("Adler-32", 20), ("entry", 32), ("last entry", 24 + 4 * count - 4), ("Adler-32 of entries", 24 + 4 * count)):
            yield f"{name} in {kind}", found[kind].data + at
    for kind, places in (("hash", (0, 16, 32)), ("digest", (0, 16, 40, 76))):
        for at in places:
            yield f"byte {at} of {kind}", found[kind].data + at
    for kind in ("header", "header2"):
        yield f"text of {kind}", found[kind].data + 8
    yield "signature", 3
    yield "segment number", 9
    yield "header of the segment", 11


def test_damage_of_every_kind_is_found(blksum, workdir):
    raw = random.Random(5).randbytes(5 * 32768) + b"text " * 20000 + bytes(40000)
    raw = raw[: len(raw) // 512 * 512]
    pathlib.Path("raw").write_bytes(raw)
    path = ewf_images.acquire("raw", "disk", compression="fast", more=("-d", "sha1"))
    original = pathlib.Path(path).read_bytes()
    seen = 0
    for name, offset in damages(original):
        damaged = bytearray(original)
        damaged[offset] ^= 0x41
        pathlib.Path("x.E01").write_bytes(damaged)
        result = blksum("-c", "x.E01")
        assert result.returncode == 1 and b": OK" not in result.stdout, (name, result)
        seen += 1
    assert seen > 80


def test_a_digest_that_is_wrong(blksum, workdir):
    """All chunks are intact, and the stated digest is another one: that is a mismatch, and no error of reading."""
    chunks = [ewf_images.stored(bytes(32768))]
    ewf_images.write("x.E01", chunks, md5=b"x" * 16)
    result = blksum("-c", "x.E01")
    assert (result.returncode, result.stdout) == (1, b"x.E01: FAILED\n")
    assert not ewf_images.verify("x.E01")


def mutants(rng, original):
    """Changes of some bytes, of structures more often than of chunks, most with repaired checksums."""
    found = ewf_images.sections(original)
    while True:
        mutant = bytearray(original)
        for _ in range(rng.choice((1, 1, 2, 4))):
            section = rng.choice(found)
            end = min(section.data + 600, max(section.end, section.data), len(original))
            at = rng.randrange(section.offset, end) if rng.random() < 0.9 else rng.randrange(len(original))
            if rng.random() < 0.5:
                mutant[at] ^= 1 << rng.randrange(8)
            else:
                width = rng.choice((1, 2, 4, 8))
                value = rng.choice((0, 1, (1 << 8 * width) - 1, rng.getrandbits(8 * width), len(original)))
                mutant[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
        if rng.random() < 0.1:
            del mutant[rng.randrange(len(mutant)) :]
        if rng.random() < 0.8:
            ewf_images.reseal(mutant)
        yield bytes(mutant[: len(original)])


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_mutants_have_the_content_of_ewfexport_or_none(blksum, workdir, count):
    rng = random.Random(SEED + count)
    raw = content(rng, 60 * KIB, 4 * KIB)
    raw = raw[: len(raw) // 512 * 512]
    pathlib.Path("disk.raw").write_bytes(raw)
    originals = [
        pathlib.Path(ewf_images.acquire("disk.raw", f"disk-{fmt}", fmt, "fast", sectors=16)).read_bytes()
        for fmt in ("encase6", "encase2", "encase1", "smart")
    ]
    streams = [mutants(rng, original) for original in originals]
    outcomes = {"both": 0, "none": 0, "theirs": 0, "ours alone": 0}
    for number in range(count):
        mutant = next(streams[number % len(streams)])
        pathlib.Path("x.E01").write_bytes(mutant)
        result = blksum("--tag", "-d", "md5", "-d", "sha1", "--construction=linear", "x.E01")
        ours = [line.rpartition(b" = ")[2].decode() for line in result.stdout.splitlines()] or None
        theirs = ewf_images.export("x.E01")
        if ours is not None and theirs is not None:
            assert ours == linear(theirs), number
        outcomes[("none", "theirs", "ours alone", "both")[(ours is not None) * 2 + (theirs is not None)]] += 1
    assert outcomes["ours alone"] == 0 and outcomes["both"] > 0 and outcomes["none"] > 0, outcomes


# Segments


def split_image(workdir, chunks=9, count=3):
    """An image in several segments of ewfacquire's kind, with ids."""
    rng = random.Random(6)
    parts = [rng.randbytes(32768) for _ in range(chunks)]
    raw = b"".join(parts)
    step = chunks // count
    for number in range(1, count + 1):
        mine = [ewf_images.stored(part) for part in parts[(number - 1) * step : number * step]]
        is_last = number == count
        ewf_images.write(
            f"x.E{number:02}", mine, size=len(raw), md5=hashlib.md5(raw).digest(), number=number, is_last=is_last, total=chunks, guid=b"g" * 16
        )
    return raw


def test_segments(blksum, workdir):
    raw = split_image(workdir)
    assert digests(blksum, "x.E01") == linear(raw)
    assert ewf_images.export("x.E01") == raw
    assert blksum("-c", "x.E01").stdout == b"x.E01: OK\n"
    result = blksum("x.E02")
    assert b"is segment 2 of an image: give its first one, x.E01" in result.stderr and not result.stdout
    # From another folder, and through a path.
    result = images.attempt(blksum.path, f"{workdir.name}/x.E01", cwd=workdir.parent)
    assert result.returncode == 0


def test_more_segments_than_two_digits_name(blksum, workdir):
    raw = split_image(workdir, chunks=130, count=130)
    for number in range(100, 131):
        index = number - 100
        pathlib.Path(f"x.E{number}").rename(f"x.E{chr(65 + index // 26)}{chr(65 + index % 26)}")
    assert ewf_images.export("x.E01") == raw
    assert digests(blksum, "x.E01") == linear(raw)
    # More than a process may have open by default.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    result = blksum("-c", "x.E01", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard)))
    assert result.stdout == b"x.E01: OK\n", result


@pytest.mark.parametrize("case", ["missing", "last missing", "reordered", "foreign", "foreign without ids", "elsewhere", "renamed"])
def test_segments_that_do_not_belong_together(blksum, workdir, case):
    split_image(workdir)
    first = "x.E01"
    expected = {
        "missing": b'cannot open its segment "x.E02": No such file',
        "last missing": b'cannot open its segment "x.E03": No such file',
        "reordered": b"is segment 3 of an image, where segment 2 should be",
        "foreign": b"is a segment of another image",
        "foreign without ids": b"is a segment of another image",
        "elsewhere": b"leads out of the image's own folder",
        "renamed": b"has no name like x.E01",
    }[case]
    if case == "missing":
        pathlib.Path("x.E02").unlink()
    elif case == "last missing":
        pathlib.Path("x.E03").unlink()
    elif case == "reordered":
        pathlib.Path("x.E02").rename("y")
        pathlib.Path("x.E03").rename("x.E02")
        pathlib.Path("y").rename("x.E03")
    elif case == "renamed":
        first = "evidence.bin"
        pathlib.Path("x.E01").rename(first)
    elif case == "elsewhere":
        other = workdir.parent / f"{workdir.name}-other"
        other.mkdir()
        shutil.move("x.E02", other / "x.E02")
        pathlib.Path("x.E02").symlink_to(other / "x.E02")
    else:
        guid = b"h" * 16 if case == "foreign" else b"g" * 16
        size = 9 * 32768 if case == "foreign" else 10 * 32768
        total = 9 if case == "foreign" else 10
        chunks = [ewf_images.stored(bytes(32768))] * 3
        ewf_images.write("x.E02", chunks, size=size, number=2, is_last=False, total=total, guid=guid)
    for options in ((), ("-c",)):
        result = blksum(*options, first)
        assert result.returncode == 1 and not result.stdout and expected in result.stderr, result
    if case == "elsewhere":
        assert blksum("--follow=any", first).returncode == 0


def test_segments_are_not_followed_for_untrusted_images(blksum, workdir):
    split_image(workdir)
    result = blksum("--follow=none", "x.E01")
    assert result.returncode == 1 and b"no reference is followed" in result.stderr


# Limits


def limited(path):
    """Runs blksum with little memory and time."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    return images.attempt(path, "x.E01", preexec_fn=limit)


@pytest.mark.parametrize("case", ["chunks", "chunk size", "sections", "bomb", "loop", "size"])
def test_small_files_with_large_claims(blksum, workdir, case):
    zero = ewf_images.compressed(bytes(32768))
    ewf_images.write("x.E01", [zero, zero])
    original = pathlib.Path("x.E01").read_bytes()
    file = bytearray(original)
    found = ewf_images.by_kind(file)
    volume, table = found["volume"].data, found["table"].data
    if case == "chunks":
        struct.pack_into("<I", file, volume + 4, 0xFFFFFFFF)
        struct.pack_into("<Q", file, volume + 16, 0xFFFFFFFF * 64)
        struct.pack_into("<I", file, table, 0xFFFFFFFF)
    elif case == "chunk size":
        struct.pack_into("<III", file, volume + 4, 1, 1 << 30, 512)
    elif case == "size":
        struct.pack_into("<Q", file, volume + 16, 1 << 60)
    elif case == "loop":
        struct.pack_into("<Q", file, found["table"].offset + 16, found["volume"].offset)
    elif case == "bomb":
        bomb = zlib.compress(bytes(64 * MIB))
        descriptor = struct.pack("<16sQQ40x", b"header", 13 + 76 + len(bomb), 76 + len(bomb))
        file = bytearray(original[:13]) + descriptor + bytes(4) + bomb
    elif case == "sections":
        file = bytearray(original[:13])
        for _ in range(12000):
            file += struct.pack("<16sQQ40xI", b"filler", len(file) + 76, 76, 0)
    ewf_images.reseal(file)
    if case == "sections":
        for offset in range(13, len(file), 76):
            ewf_images.seal(file, offset, 72)
    pathlib.Path("x.E01").write_bytes(file)
    result = limited(blksum.path)
    assert result.returncode == 1 and not result.stdout and result.stderr.startswith(b"blksum: x.E01: "), result


def test_archives_of_files_and_later_versions_are_refused_by_name(blksum, workdir):
    for name, head, expected in (
        ("x.L01", b"LVF\x09\r\n\xff\0\x01\x01\0\0\0", b"is an EWF archive of files"),
        ("x.Ex01", b"EVF2\r\n\x81\0\x02\x01\x01\0\x01\0\0\0", b"is an EWF image of version 2"),
    ):
        pathlib.Path(name).write_bytes(head + bytes(1000))
        result = blksum(name)
        assert result.returncode == 1 and expected in result.stderr, result
