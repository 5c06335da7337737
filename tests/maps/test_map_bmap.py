"""Images compared with bmaps of bmaptool, which have checksums of ranges of blocks, and with `bmaptool copy`."""

import contextlib
import hashlib
import json
import pathlib
import random
import re
import shutil
import xml.etree.ElementTree

import pytest

import copies
import images
from commands import HANG, blkhash, blksum_path
from memory import peak
from servers import FAILING

BLOCK = 4096


def verify(bmap, image, *options):
    """Returns the status, the runs of changed, unknown and unreadable blocks, and the summary."""
    result = blkhash("map", "verify", "--json", *options, bmap, image)
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    if not objects:
        assert result.returncode == 2 and result.stderr.count(b"\n") == 1, result
        return 2, None, result.stderr.decode()
    runs = [(it["offset"] // BLOCK, it["blocks"], it["kind"]) for it in objects[:-1]]
    return result.returncode, runs, objects[-1]


def by_bmaptool(bmap, image, folder):
    """Returns whether bmaptool copies an image without an error, and what it says."""
    out = folder / "copied"
    with contextlib.suppress(FileNotFoundError):
        out.unlink()
    result = images.attempt("bmaptool", "copy", "--bmap", str(bmap), str(image), str(out), timeout=HANG)
    return result.returncode == 0, (result.stdout + result.stderr).decode()


def sparse(path, rng, blocks, tail):
    """Writes an image of random data and holes, whose last block has `tail` bytes."""
    size = blocks * BLOCK - (BLOCK - tail)
    with open(path, "wb") as file:
        at = rng.randrange(2)
        while at < blocks:
            count = min(rng.choice([1, 1, 2, 3, 17, 300]), blocks - at)
            file.seek(at * BLOCK)
            # A block of zeros that is stored is in a range, too.
            data = b"".join(rng.choice([rng.randbytes(BLOCK), rng.randbytes(BLOCK), bytes(BLOCK)]) for _ in range(count))
            file.write(data[: size - at * BLOCK])
            at += count + rng.choice([1, 2, 5, 200])
        file.truncate(size)
    return path


CREATE = """
import sys
from bmaptools.BmapCreate import BmapCreate
BmapCreate(sys.argv[1], sys.argv[2], sys.argv[3]).generate()
"""


def create(image, path, digest="sha256"):
    """Makes a bmap. The program takes no digest, and its module does."""
    if digest == "sha256":
        images.run("bmaptool", "create", "-o", str(path), str(image))
    else:
        python, *_ = pathlib.Path(shutil.which("bmaptool")).read_text().removeprefix("#!").split()
        images.run(python, "-c", CREATE, str(image), str(path), digest)
    return path


def sealed(text, digest="sha256"):
    """Returns a bmap with the right checksum of its own."""
    pattern = re.compile(r"(<BmapFile(?:Checksum|SHA1)> )(\w+)( )")
    text = pattern.sub(lambda match: match[1] + "0" * hashlib.new(digest).digest_size * 2 + match[3], text)
    value = hashlib.new(digest, text.encode()).hexdigest()
    return pattern.sub(lambda match: match[1] + value + match[3], text)


def of_version(text, version, digest):
    """Returns a bmap in an older version. 1.3 has SHA-1, and no element that says so."""
    text = text.replace('<bmap version="2.0">', f'<bmap version="{version}">')
    if version == "1.3":
        text = re.sub(r"<ChecksumType>.*</ChecksumType>", "", text)
        text = text.replace("BmapFileChecksum", "BmapFileSHA1").replace("chksum=", "sha1=")
    return sealed(text, digest)


def ranges_of(bmap):
    """Returns the ranges as the XML parser of Python reads them: the first block, the block after the last one, and the checksum."""
    found = []
    for it in xml.etree.ElementTree.parse(bmap).findall("BlockMap/Range"):
        first, _, last = it.text.strip().partition("-")
        found.append((int(first), int(last or first) + 1, it.get("chksum") or it.get("sha1")))
    return found


def expected(bmap, data, digest="sha256"):
    """Returns the runs that a plain comparison finds."""
    blocks, runs, at = -(-len(data) // BLOCK), [], 0
    for first, end, checksum in ranges_of(bmap):
        runs.append((at, first - at, "unknown"))
        is_equal = hashlib.new(digest, data[first * BLOCK : end * BLOCK]).hexdigest() == checksum
        runs.append((first, end - first, "equal" if is_equal else "changed"))
        at = end
    runs.append((at, blocks - at, "unknown"))
    joined = []
    for first, count, kind in runs:
        if joined and joined[-1][2] == kind:
            joined[-1] = (joined[-1][0], joined[-1][1] + count, kind)
        elif count:
            joined.append((first, count, kind))
    return [run for run in joined if run[2] != "equal"]


def check(bmap, image, folder, digest="sha256", raw=None):
    """Compares an image with a bmap, and what is found with a plain comparison and with bmaptool. Returns the status."""
    data = (raw or image).read_bytes()
    runs = expected(bmap, data, digest)
    unknown = [run for run in runs if run[2] == "unknown"]
    is_damaged = len(unknown) < len(runs)
    status, found, summary = verify(bmap, image)
    assert (status, found) == (1 if is_damaged else 2 if unknown else 0, runs), summary
    unknown_bytes = sum(min((first + count) * BLOCK, len(data)) - first * BLOCK for first, count, _ in unknown)
    assert (summary["unknown"], summary["unknown_bytes"]) == (sum(run[1] for run in unknown), unknown_bytes)
    assert summary["same_content"] is (False if is_damaged else None if unknown else True)
    ignoring, *rest = verify(bmap, image, "--ignore-unknown")
    assert (ignoring, *rest) == (int(is_damaged), found, summary)
    copied, message = by_bmaptool(bmap, raw or image, folder)
    assert copied == (not is_damaged), message
    assert copied or "checksum mismatch for blocks range" in message
    result = copies.attempt("--force", "--expect-map", bmap, image, folder / "own")
    assert result.returncode == int(is_damaged), result
    assert not is_damaged or b"differs from" in result.stderr
    return status


@pytest.mark.parametrize(
    "version, digest",
    [("2.0", "sha256"), ("2.0", "sha1"), ("2.0", "md5"), ("2.0", "sha512"), ("1.4", "sha256"), ("1.4", "sha1"), ("1.3", "sha1")],
)
@pytest.mark.parametrize("seed", range(3))
def test_random_images(tmp_path, version, digest, seed):
    rng = random.Random(f"{version} {digest} {seed}")
    image = sparse(tmp_path / "disk.img", rng, rng.randrange(1, 1500), rng.choice([512, 1536, BLOCK]))
    bmap = create(image, tmp_path / "disk.bmap", digest)
    text = of_version(bmap.read_text(), version, digest)
    bmap.write_text(text)
    assert check(bmap, image, tmp_path, digest) in (0, 2)
    # The format of the image does not matter.
    qcow2 = images.convert(image, tmp_path / "disk.qcow2")
    assert verify(bmap, qcow2)[:2] == verify(bmap, image)[:2]
    data = bytearray(image.read_bytes())
    ranges = ranges_of(bmap)
    first, end, _ = rng.choice(ranges)
    places = {first * BLOCK, min(end * BLOCK, len(data)) - 1, min(ranges[-1][1] * BLOCK, len(data)) - 1}
    places.add(rng.randrange(first * BLOCK, min(end * BLOCK, len(data))))
    for at in places:
        data[at] ^= 1
        image.write_bytes(data)
        assert check(bmap, image, tmp_path, digest) == 1
        data[at] ^= 1
    # What a block holds that is in no range makes no difference.
    inside = {block for first, end, _ in ranges for block in range(first, end)}
    for block in range(-(-len(data) // BLOCK)):
        if block not in inside:
            data[block * BLOCK] ^= 1
    image.write_bytes(data)
    assert check(bmap, image, tmp_path, digest) in (0, 2)
    # A digit of a checksum: the file has another one, and with the right one for the file, the range has another one.
    for bad in (rng.choice(ranges), ranges[-1]):
        digit = format(int(bad[2][7], 16) ^ 1, "x")
        changed = text.replace(bad[2], bad[2][:7] + digit + bad[2][8:])
        bmap.write_text(changed)
        status, found, message = verify(bmap, image)
        assert (status, found) == (2, None) and "the file has another checksum" in message
        copied, message = by_bmaptool(bmap, image, tmp_path)
        assert not copied and "checksum mismatch for bmap file" in message
        bmap.write_text(sealed(changed, digest))
        assert check(bmap, image, tmp_path, digest) == 1


def test_each_byte_of_a_bmap(tmp_path):
    """bmaptool takes no bmap in which a byte was changed, and neither does blkhash."""
    rng = random.Random(1)
    image = sparse(tmp_path / "disk.img", rng, 60, 100)
    bmap = create(image, tmp_path / "disk.bmap")
    text = bmap.read_bytes()
    for at in sorted(rng.sample(range(len(text)), 60)):
        bmap.write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
        status, found, _ = verify(bmap, image)
        assert (status, found) == (2, None), at
        assert not by_bmaptool(bmap, image, tmp_path)[0], at


def test_images_of_other_sizes(tmp_path):
    image, other = tmp_path / "disk.img", tmp_path / "other.img"
    data = random.Random(2).randbytes(20 * BLOCK - 100)
    image.write_bytes(data)
    with open(image, "r+b") as file:
        file.truncate(30 * BLOCK)
    bmap = create(image, tmp_path / "disk.bmap")
    assert [(first, end) for first, end, _ in ranges_of(bmap)] == [(0, 20)]
    whole = image.read_bytes()
    # A card has more space. Zeros past the end can be ignored, other bytes cannot.
    for more, ignoring in [(bytes(5 * BLOCK), 2), (bytes(100), 2), (b"x" + bytes(BLOCK), 1)]:
        other.write_bytes(whole + more)
        status, found, summary = verify(bmap, other)
        assert status == 1 and summary["right"]["size"] - summary["left"]["size"] == len(more)
        assert found[:1] == [(20, 10, "unknown")] and {kind for *_, kind in found[1:]} == {"right-only"}
        assert verify(bmap, other, "--ignore-zero-tail")[0] == ignoring
        assert verify(bmap, other, "--ignore-zero-tail", "--ignore-unknown")[0] == ignoring % 2
        assert "cannot set image size" in by_bmaptool(bmap, other, tmp_path)[1]
    # A range that ends past the image cannot be compared.
    for size, unknown in [(25 * BLOCK, (20, 5)), (20 * BLOCK, None), (20 * BLOCK - 1, (0, 20)), (3 * BLOCK, (0, 3))]:
        other.write_bytes(whole[:size])
        status, found, summary = verify(bmap, other, "--ignore-zero-tail", "--ignore-unknown")
        assert status == 1 and summary["different"] == 30 - -(-size // BLOCK), summary
        assert [run[:2] for run in found if run[2] == "unknown"] == ([unknown] if unknown else [])
        assert "cannot set image size" in by_bmaptool(bmap, other, tmp_path)[1]


def test_text(tmp_path):
    image = tmp_path / "disk.img"
    data = random.Random(3).randbytes(300 * BLOCK)
    image.write_bytes(data)
    with open(image, "r+b") as file:
        file.truncate(500 * BLOCK + 1)
    bmap = create(image, tmp_path / "disk.bmap")
    result = blkhash("map", "verify", bmap, image)
    assert result.returncode == 2 and result.stderr == b""
    assert result.stdout == b"no differences in 300 blocks, 201 not compared (800.00 KiB)\n"
    assert blkhash("map", "verify", "-q", "--ignore-unknown", bmap, image).returncode == 0
    with open(image, "r+b") as file:
        file.seek(299 * BLOCK)
        file.write(b"changed")
    result = blkhash("map", "verify", bmap, image)
    assert result.returncode == 1 and result.stdout.splitlines() == [
        b"300 of 501 blocks are in ranges that differ, 1.17 MiB, in 1 range; 201 not compared (800.00 KiB)",
        b"",
        b" offset  length",
        b"      0 1228800  changed",
    ]
    extents = blkhash("map", "verify", "--extents", bmap, image)
    assert extents.stdout == b"0 1228800\n" and b"201 blocks are not known, and not listed" in extents.stderr
    swapped = blkhash("map", "verify", image, bmap)
    assert swapped.returncode == 2 and b"the map comes first" in swapped.stderr
    # Only maps have pages and seals.
    for options in (["--shard", "1/2"], ["--range", "0-1M"]):
        result = blkhash("map", "verify", *options, bmap, image)
        assert result.returncode == 2 and b"has one checksum of the blocks 0-299" in result.stderr, result
    for command in (["import", "-o", tmp_path / "x"], ["show"], ["diff", image]):
        result = blkhash("map", *command, bmap)
        assert result.returncode == 2 and b"'blkhash map verify' compares an image with it" in result.stderr, result


def test_bmaps_without_ranges(tmp_path):
    image = tmp_path / "disk.img"
    with open(image, "wb") as file:
        file.truncate(5 * BLOCK)
    bmap = create(image, tmp_path / "disk.bmap")
    result = blkhash("map", "verify", bmap, image)
    assert (result.returncode, result.stdout) == (2, b"nothing to compare: 5 not compared (20.00 KiB)\n")


def test_long_ranges_and_many_threads(tmp_path):
    """Long ranges are read by all threads, and short ones side by side."""
    rng = random.Random(4)
    image = tmp_path / "disk.img"
    with open(image, "wb") as file:
        for at in range(0, 40, 20):
            file.seek(at << 20)
            file.write(rng.randbytes(9 << 20))
        for at in range(40 << 20, 60 << 20, 3 * BLOCK):
            file.seek(at)
            file.write(rng.randbytes(BLOCK))
    bmap = create(image, tmp_path / "disk.bmap")
    for threads in (1, 2, 7):
        status, found, summary = verify(bmap, image, "--threads", threads)
        assert (status, found) == (2, expected(bmap, image.read_bytes())), summary
    with open(image, "r+b") as file:
        file.seek(58 << 20)
        file.write(bytes(20 << 10))
        file.seek(25 << 20)
        file.write(bytes(1))
    data = image.read_bytes()
    for threads in (1, 2, 7):
        assert verify(bmap, image, "--threads", threads)[:2] == (1, expected(bmap, data))


def test_ranges_that_cannot_be_read(tmp_path, servers):
    """What lies in a range that cannot be read as a whole is unknown, and other ranges are compared."""
    rng = random.Random(5)
    image = tmp_path / "disk.img"
    with open(image, "wb") as file:
        for at, count in [(0, 4), (10, 700), (800, 3), (900, 5)]:
            file.seek(at * BLOCK)
            file.write(rng.randbytes(count * BLOCK))
    bmap = create(image, tmp_path / "disk.bmap")
    bad = [(0, 1), (20 * BLOCK + 5, BLOCK), (903 * BLOCK, 512)]
    with open(image, "r+b") as file:
        file.seek(801 * BLOCK)
        file.write(b"changed")
    (tmp_path / "bad").write_text("".join(f"{first} {length}\n" for first, length in bad))
    script = tmp_path / "server.sh"
    script.write_text(f"#!/bin/sh\ndisk={image}\nbad={tmp_path}/bad\n" + FAILING)
    script.chmod(0o755)
    uri = servers.nbdkit("sh", script).uri()
    status, found, summary = verify(bmap, uri)
    assert status == 1 and summary["reasons"]
    assert found == [
        (0, 1, "unreadable"),
        (1, 19, "unknown"),
        (20, 2, "unreadable"),
        (22, 778, "unknown"),
        (800, 3, "changed"),
        (803, 100, "unknown"),
        (903, 1, "unreadable"),
        (904, 1, "unknown"),
    ]


# Hostile bmaps


def entry(first, last=None, data=b""):
    blocks = first if last is None else f"{first}-{last}"
    return f'<Range chksum="{hashlib.sha256(data).hexdigest()}"> {blocks} </Range>'


def handmade(entries, blocks=8, mapped=None, size=None, count=None, block_size=BLOCK, before=""):
    size = blocks * block_size if size is None else size
    return sealed(
        f'<?xml version="1.0" ?>\n{before}<bmap version="2.0"><ImageSize> {size} </ImageSize><BlockSize> {block_size} '
        f"</BlockSize><BlocksCount> {blocks if count is None else count} </BlocksCount><MappedBlocksCount> {mapped} "
        f"</MappedBlocksCount><ChecksumType> sha256 </ChecksumType><BmapFileChecksum> {'0' * 64} </BmapFileChecksum>"
        f"<BlockMap>{''.join(entries)}</BlockMap></bmap>"
    )


def test_hostile_bmaps(tmp_path):
    image, bmap = tmp_path / "disk.img", tmp_path / "disk.bmap"
    image.write_bytes(bytes(8 * BLOCK))
    good = [entry(0, 3, bytes(4 * BLOCK)), entry(5, 5, bytes(BLOCK)), entry(7, None, bytes(BLOCK))]
    bmap.write_text(handmade(good, mapped=6))
    assert verify(bmap, image)[:2] == (2, [(4, 1, "unknown"), (6, 1, "unknown")])
    huge = 2**64 - 1
    for name, text in {
        "overlapping": handmade([entry(0, 3), entry(3, 4)], mapped=6),
        "the same twice": handmade([entry(0, 3), entry(0, 3)], mapped=8),
        "out of order": handmade([entry(4, 5), entry(0, 3)], mapped=6),
        "descending": handmade([entry(3, 0)], mapped=4),
        "past the end": handmade([entry(0, 8)], mapped=9),
        "far past the end": handmade([entry(0, huge)], mapped=huge),
        "beyond numbers": handmade([entry(0, huge + 1)], mapped=4),
        "beyond all": handmade([entry(huge)], mapped=1),
        "negative": handmade([entry(-1, 3)], mapped=4),
        "three numbers": handmade([entry("0-1", 3)], mapped=4),
        "no number": handmade([entry("")], mapped=1),
        "too few mapped": handmade(good, mapped=5),
        "too many mapped": handmade(good, mapped=7),
        "huge image": handmade(good, mapped=6, size=huge, count=-(-huge // BLOCK)),
        "another count": handmade(good, mapped=6, count=9),
        "no blocks": handmade(good, mapped=6, block_size=0, size=8),
        "huge blocks": handmade(good, mapped=6, blocks=1, block_size=2**63),
        "entity": handmade(good, mapped=6, before='<!DOCTYPE bmap [<!ENTITY a "aaaa">]>'),
        "outside": handmade(good, mapped=6, before='<!DOCTYPE bmap SYSTEM "/etc/passwd">'),
        "entity in a range": handmade([entry("&#48;", 3)], mapped=4),
        "an element in a range": handmade([entry("<x/>0", 3)], mapped=4),
        "a comment in a range": handmade([entry("0<!-- -->", 3)], mapped=4),
        "another attribute": handmade([entry(0, 3).replace("chksum", "sha1")], mapped=4),
        "two attributes": handmade([entry(0, 3).replace("chksum", 'a="" chksum')], mapped=4),
        "a short checksum": handmade(['<Range chksum="ab"> 0-3 </Range>'], mapped=4),
        "a long text": handmade([entry(0, " " * 5000 + "3")], mapped=4),
        "version 1.2": sealed(handmade(good, mapped=6).replace('"2.0"', '"1.2"')),
        "version 1.3 with a type": sealed(handmade(good, mapped=6).replace('"2.0"', '"1.3"')),
        "version 3.0": sealed(handmade(good, mapped=6).replace('"2.0"', '"3.0"')),
    }.items():
        bmap.write_text(text)
        assert verify(bmap, image)[:2] == (2, None), name
    # A range in an image that ends before is not read.
    bmap.write_text(handmade([entry(0, 2**40 - 1)], blocks=2**40, mapped=2**40))
    status, found, summary = verify(bmap, image)
    assert status == 1 and found[0] == (0, 8, "unknown") and summary["different"] == 2**40 - 8


def test_zeros_that_are_not_stored_are_limited(tmp_path):
    image, bmap = tmp_path / "disk.qcow2", tmp_path / "disk.bmap"
    images.qemu_img("create", "-f", "qcow2", str(image), "1T")
    half = 2**40 // BLOCK // 2
    bmap.write_text(handmade([entry(0, half - 1), entry(half, 2 * half - 1)], blocks=2 * half, mapped=2 * half))
    result = blkhash("map", "verify", "--max-zeros", "10M", bmap, image)
    assert result.returncode == 2 and b"zeros" in result.stderr and result.stdout == b"", result
    zeros = bytes(2 << 20)
    ranges = [entry(at * 512, at * 512 + 511, zeros) for at in range(8)]
    bmap.write_text(handmade(ranges, blocks=2 * half, mapped=8 * 512))
    assert verify(bmap, image, "--max-zeros", "16M")[0] == 2
    assert verify(bmap, image, "--max-zeros", "16M", "--ignore-unknown")[0] == 0
    result = blkhash("map", "verify", "--max-zeros", "15M", bmap, image)
    assert result.returncode == 2 and b"15728640 bytes of zeros" in result.stderr, result


def test_memory_does_not_grow_with_the_bmap(tmp_path):
    image, bmap = tmp_path / "disk.img", tmp_path / "disk.bmap"
    program = str(blksum_path().with_name("blkhash"))
    peaks = []
    for count in (100, 100_000):
        with open(image, "wb") as file:
            file.truncate(2 * count * 512)
        ranges = [entry(2 * at, None, bytes(512)) for at in range(count)]
        bmap.write_text(handmade(ranges, blocks=2 * count, mapped=count, block_size=512))
        status, errors, most = peak(program, "map", "verify", "-q", "--ignore-unknown", str(bmap), str(image))
        assert (status, errors) == (0, b"")
        peaks.append(most)
    assert bmap.stat().st_size > 9 << 20
    assert peaks[1] < peaks[0] + (4 << 20), peaks
