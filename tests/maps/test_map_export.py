"""Maps in other formats, compared with the images and read by bmaptool."""

import csv
import hashlib
import json
import os
import random
import re

import pytest

import images
from commands import HANG, blkhash

BLOCK = 65536

# The digests that bmaptool takes.
DIGESTS = ["sha256", "sha512", "sha384", "sha224", "sha1", "md5"]


def blkmap(*args, **kwargs):
    """Runs blkhash map, which must succeed. Returns its output."""
    result = blkhash("map", *args, **kwargs)
    return images.succeeded(args, result)


def bmaptool(*args, **kwargs):
    return images.attempt("bmaptool", *map(str, args), **{"timeout": HANG} | kwargs)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An image with data and zeros, and a short last block. Zeros begin and end in the middle of pages."""
    rng = random.Random(1)
    blocks = [bytes(BLOCK) if index % 3 == 0 else rng.randbytes(BLOCK) for index in range(100)]
    blocks += [bytes(BLOCK)] * 300
    blocks += [rng.randbytes(BLOCK), rng.randbytes(1000)]
    path = tmp_path_factory.mktemp("image") / "disk.img"
    path.write_bytes(b"".join(blocks))
    return path


def make(image, *options):
    path = image.with_name("disk.blkmap")
    blkmap("create", "--force", *options, "-o", path, image)
    return path


def expected(image, digest="sha256"):
    """Returns offset, length and digest of each block with data, and None for runs of zeros."""
    data = image.read_bytes()
    found = []
    for offset in range(0, len(data), BLOCK):
        block = data[offset : offset + BLOCK]
        if any(block):
            found.append((offset, len(block), hashlib.new(digest, block).hexdigest()))
        elif found and found[-1][2] is None:
            found[-1] = (found[-1][0], found[-1][1] + len(block), None)
        else:
            found.append((offset, len(block), None))
    return found


def test_lines_csv_and_json_hold_the_blocks(image):
    path = make(image)
    blocks = expected(image)
    lines = blkmap("export", "--to", "lines", path).decode().splitlines()
    assert lines == [f"{offset} {length} {digest or 'zero'}" for offset, length, digest in blocks]
    rows = list(csv.DictReader(blkmap("export", "--to", "csv", path).decode().splitlines()))
    assert [(int(row["offset"]), int(row["length"]), row["digest"] or None) for row in rows] == blocks
    assert all(int(row["block"]) * BLOCK == int(row["offset"]) for row in rows)
    assert [row["kind"] for row in rows] == ["data" if digest else "zero" for *_, digest in blocks]
    objects = [json.loads(line) for line in blkmap("export", "--to", "json", path).splitlines()]
    summary = objects.pop()
    found = [(each["offset"], each["length"], each.get("digest")) for each in objects]
    assert found == blocks
    assert summary["type"] == "summary" and summary["size"] == image.stat().st_size
    assert summary["content_id"] == blkmap("show", "--id", path).decode().strip()


def test_parts_have_unknown_blocks(image):
    path = make(image, "--shard", "2/2")
    lines = blkmap("export", "--to", "lines", path).decode().splitlines()
    offset, length, kind = lines[0].split()
    assert (offset, kind) == ("0", "unknown") and int(length) > 0
    # Runs of zeros end where the part begins.
    known = [line for line in lines if line.split()[2] not in ("zero", "unknown")]
    blocks = [block for block in expected(image) if block[0] >= int(length) and block[2]]
    assert known == [" ".join(map(str, block)) for block in blocks]
    result = blkhash("map", "export", "--to", "bmap", path)
    assert result.returncode == 2 and b"knows only" in result.stderr
    assert result.stdout == b""


@pytest.mark.parametrize("digest", DIGESTS)
def test_bmaptool_copies_and_verifies(image, digest, tmp_path):
    path = make(image, "-d", digest)
    bmap = tmp_path / "disk.bmap"
    blkmap("export", "--to", "bmap", "-o", bmap, path)
    out = tmp_path / "out"
    result = bmaptool("copy", "--bmap", bmap, image, out)
    assert result.returncode == 0, result
    assert out.read_bytes() == image.read_bytes()
    data = [block for block in expected(image, digest) if block[2]]
    assert re.findall(r'chksum="(\w+)"', bmap.read_text()) == [block[2] for block in data]
    # A changed byte, also in the short last block, is refused with the number of its block.
    for offset in (data[0][0], data[20][0] + 77, data[-1][0] + 999):
        bad = tmp_path / "bad"
        bad.write_bytes(image.read_bytes())
        with open(bad, "r+b") as file:
            byte = os.pread(file.fileno(), 1, offset)[0]
            os.pwrite(file.fileno(), bytes([byte ^ 1]), offset)
        result = bmaptool("copy", "--bmap", bmap, bad, out)
        block = offset // BLOCK
        assert result.returncode != 0
        assert f"blocks range {block}-{block}:".encode() in result.stderr + result.stdout
    # So is a changed list of blocks.
    text = bmap.read_text()
    bmap.write_text(text.replace("<BlocksCount> ", "<BlocksCount>  "))
    result = bmaptool("copy", "--bmap", bmap, image, out)
    assert result.returncode != 0 and b"checksum mismatch for bmap file" in result.stderr + result.stdout


@pytest.mark.parametrize("options", [["-d", "blake3"], ["-d", "crc32c"]], ids=" ".join)
def test_bmaptool_does_not_know_every_digest(image, options, tmp_path):
    path = make(image, *options)
    out = tmp_path / "disk.bmap"
    out.write_text("old")
    result = blkhash("map", "export", "--to", "bmap", "-o", out, path)
    assert result.returncode == 2 and b"bmaptool knows only" in result.stderr
    # The reason is known before the old content is removed.
    assert out.read_text() == "old"


def test_bmaps_of_images_without_data(tmp_path):
    image = tmp_path / "disk.img"
    with open(image, "wb") as file:
        file.truncate(10 * BLOCK + 1)
    bmap, out = tmp_path / "disk.bmap", tmp_path / "out"
    blkmap("export", "--to", "bmap", "-o", bmap, make(image))
    result = bmaptool("copy", "--bmap", bmap, image, out)
    assert result.returncode == 0, result
    assert out.read_bytes() == image.read_bytes()
    # bmaptool itself fails with an empty image.
    os.truncate(image, 0)
    result = blkhash("map", "export", "--to", "bmap", make(image))
    assert result.returncode == 2 and b"empty image" in result.stderr


def test_maps_are_not_overwritten(image, tmp_path):
    path = make(image)
    link = tmp_path / "link"
    link.symlink_to(path)
    before = path.read_bytes()
    result = blkhash("map", "export", "--to", "lines", "-o", link, path)
    assert result.returncode == 2 and b"is a block map" in result.stderr
    assert path.read_bytes() == before


def test_errors_of_writing_are_reported(image):
    path = make(image)
    result = blkhash("map", "export", "--to", "lines", "-o", "/dev/full", path)
    assert result.returncode == 2 and b"No space left" in result.stderr


def test_dups_counts_blocks(image, tmp_path):
    path = make(image)
    data = [block for block in expected(image) if block[2]]
    count = -(-image.stat().st_size // BLOCK)
    one = json.loads(blkmap("dups", "--json", path))
    assert (one["different_blocks"], one["repeated_blocks"]) == (len(data), 0)
    assert (one["blocks"], one["zero_blocks"]) == (count, count - len(data))
    two = json.loads(blkmap("dups", "--json", path, path))
    assert (two["different_blocks"], two["repeated_blocks"]) == (len(data), len(data))
    assert two["repeated_bytes"] == sum(length for _, length, _ in data)
    text = blkmap("dups", path, path).decode()
    assert re.search(rf"^repeated: +{len(data)}$", text, re.M)
    other = tmp_path / "other.blkmap"
    blkmap("create", "-d", "blake3", "-o", other, image)
    result = blkhash("map", "dups", path, other)
    assert result.returncode == 2 and b"other.blkmap: " in result.stderr and result.stdout == b""
