"""Images of ISO 9660 with an MD5 of themselves (isomd5sum), compared with checkisomd5; damage of every class, mutants."""

import gzip
import hashlib
import json
import lzma
import os
import pathlib
import random

import pytest

import images
import iso_images
from iso_images import SECTOR, TEXT, TEXT_END

SEED = 20261128
MIB = 1 << 20


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """An image with its MD5, of 21 fragments."""
    folder = tmp_path_factory.mktemp("iso")
    here = os.getcwd()
    os.chdir(folder)
    try:
        iso_images.create("x.iso", [random.Random(SEED).randbytes(MIB)])
        iso_images.implant("x.iso")
        return pathlib.Path("x.iso").read_bytes()
    finally:
        os.chdir(here)


def blkhash(blksum):
    return pathlib.Path(blksum.path).parent / "blkhash"


def check(blksum, content, path="x.iso"):
    """Writes an image and checks it; its status and message, which must fit each other."""
    pathlib.Path(path).write_bytes(content)
    result = blksum("-c", path)
    (line,) = result.stdout.decode().splitlines() or [""]
    status = line.removeprefix(f"{path}: ")
    assert (result.returncode == 0) == (status == "OK"), result
    assert status in ("OK", "FAILED", "FAILED open or read", ""), result
    assert status == "OK" or result.stderr, result
    return status, result.stderr.decode()


def flipped(content, offset):
    content = bytearray(content)
    content[offset] ^= 1
    return bytes(content)


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_random_images(blksum, workdir, count):
    """Those that programs write, of any size, and other numbers of skipped sectors and fragments."""
    rng = random.Random(SEED + count)
    writers, verdicts = list(iso_images.WRITERS), []
    for number in range(count):
        contents = [rng.randbytes(rng.randrange(rng.choice((1000, 600_000)))) for _ in range(rng.randrange(1, 5))]
        if rng.random() < 0.5:
            contents.append(bytes(rng.randrange(MIB)))
        iso_images.create("x.iso", contents, writers[number % len(writers)])
        iso_images.implant("x.iso", *rng.choice(([], ["--supported-iso"])))
        if rng.random() < 0.4:
            content = pathlib.Path("x.iso").read_bytes()
            skipped = rng.choice((0, 1, 15, 16, 100, rng.randrange(200)))
            content = iso_images.state(content, skipped, rng.choice((4, 5, 6, 10, 12, 15, 20, 30, 60)))
            pathlib.Path("x.iso").write_bytes(content)
        if rng.random() < 0.2:
            with open("x.iso", "ab") as file:
                file.write(rng.randbytes(rng.randrange(100_000)))
        verdicts.append(iso_images.verdict("x.iso"))
        result = blksum("-c", "x.iso")
        assert (result.returncode == 0) == verdicts[-1], (number, result)
        assert result.stdout == (b"x.iso: OK\n" if verdicts[-1] else b""), (number, result)
        os.unlink("x.iso")
    # implantisomd5 writes sums into small images that checkisomd5 refuses.
    assert verdicts.count(True) > count / 3 and verdicts.count(False) > 0


def test_several_images(blksum, workdir, intact):
    for name in ("a.iso", "b.iso"):
        pathlib.Path(name).write_bytes(intact)
    pathlib.Path("c.iso").write_bytes(flipped(intact, 500_000))
    result = blksum("-c", "a.iso", "b.iso", "c.iso")
    assert result.returncode == 1
    assert result.stdout == b"a.iso: OK\nb.iso: OK\nc.iso: FAILED\n"


def test_damage_in_each_fragment(blksum, workdir, intact):
    """It is found in the fragment, or in a later one where the few digits of its sum are the same."""
    rng = random.Random(SEED)
    ranges = iso_images.fragments(intact)
    assert len(ranges) == 21
    assert iso_images.first_that_differs(intact, iso_images.state(intact)) is None
    for start, end in ranges:
        for offset in (start, rng.randrange(start, end), end - 1):
            if TEXT <= offset < TEXT_END:
                continue
            content = flipped(intact, offset)
            status, message = check(blksum, content)
            assert status == "FAILED" and not iso_images.verdict("x.iso")
            first = iso_images.first_that_differs(intact, iso_images.state(content))
            number = 21 if first is None else 1 + first
            begin, limit = ranges[number - 1]
            place = f"the {limit - begin} bytes at {begin}, "
            which = "the last of 21 fragments" if number == 21 else f"fragment {number} of 21"
            assert place + which in message, (offset, message)


def test_damage_of_each_sum(blksum, workdir, intact):
    for number in range(20):
        offset = iso_images.field(intact, "FRAGMENT SUMS")[0] + number * 3 + number % 3
        content = bytearray(intact)
        content[offset] = ord("0") if content[offset] != ord("0") else ord("1")
        status, message = check(blksum, bytes(content))
        assert status == "FAILED" and not iso_images.verdict("x.iso")
        assert "its MD5 matches, and the sums of its fragments, which it states as well, do not" in message
    for digit in (0, 15, 31):
        content = bytearray(intact)
        offset = iso_images.field(intact, "ISO MD5SUM")[0] + digit
        content[offset] = ord("0") if content[offset] != ord("0") else ord("1")
        status, message = check(blksum, bytes(content))
        assert status == "FAILED" and not iso_images.verdict("x.iso")
        assert "the last of 21 fragments, or its MD5 is damaged" in message


def test_skipped_sectors(blksum, workdir, intact):
    """They are in no MD5, as with checkisomd5. More of them than implantisomd5 skips are noted."""
    assert check(blksum, flipped(intact, len(intact) - 1)) == ("OK", "") and iso_images.verdict("x.iso")
    assert check(blksum, flipped(intact, len(intact) - 15 * SECTOR)) == ("OK", "")
    assert check(blksum, flipped(intact, len(intact) - 15 * SECTOR - 1))[0] == "FAILED"
    status, message = check(blksum, iso_images.state(intact, skipped=100))
    assert status == "OK" and f"its MD5 is not of the last {100 * SECTOR} bytes" in message
    status, message = check(blksum, intact + bytes(5000))
    assert status == "OK" and f"its MD5 is not of the last {15 * SECTOR + 5000} bytes" in message


def test_images_that_are_cut(blksum, workdir, intact):
    status, message = check(blksum, intact[:-SECTOR])
    assert status == "OK" and iso_images.verdict("x.iso")
    assert "the last 2048 bytes of its volume are missing, of which its MD5 is not" in message
    for length in (len(intact) - 15 * SECTOR - 1, len(intact) // 2, 20 * SECTOR):
        status, message = check(blksum, intact[:length])
        assert status == "FAILED" and not iso_images.verdict("x.iso")
        assert f"is cut: its MD5 is of {len(intact) - 15 * SECTOR} bytes, and it has {length}" in message


def test_damaged_descriptor(blksum, workdir, intact):
    for offset in (0, 6, 40, 80, 84, 87, 882):
        status, _ = check(blksum, flipped(intact, iso_images.DESCRIPTOR + offset))
        assert status != "OK" and not iso_images.verdict("x.iso"), offset
    # The text itself is not in the MD5: what it says after the sums does not matter.
    assert check(blksum, flipped(intact, TEXT_END - 1)) == ("OK", "") and iso_images.verdict("x.iso")
    assert check(blksum, flipped(intact, TEXT_END))[0] == "FAILED"


@pytest.mark.parametrize(
    "old, new, reason",
    [
        (b"SKIPSECTORS = 15", b"SKIPSECTORS = x", "no valid SKIPSECTORS"),
        (b"SKIPSECTORS = 15;", b"", "no valid SKIPSECTORS"),
        (b"SKIPSECTORS = 15", b"SKIPSECTORS = 99999", "all but 99999 sectors are hashed"),
        (b"SKIPSECTORS = 15", b"SKIPSECTORS = 18446744073709551616", "no valid SKIPSECTORS"),
        (b"FRAGMENT COUNT = 20;", b"", "no valid FRAGMENT COUNT"),
        (b"FRAGMENT COUNT = 20", b"FRAGMENT COUNT = 19", "FRAGMENT SUMS for 19 fragments"),
        (b"FRAGMENT COUNT = 20", b"FRAGMENT COUNT = 61", "FRAGMENT SUMS of 60 digits for 61 fragments"),
        (b"FRAGMENT SUMS", b"FRAGMENT SOMS", "FRAGMENT SUMS of 0 digits"),
        (b"MD5SUM = ", b"MD5SUM = 0", "no valid MD5"),
    ],
)
def test_texts_that_are_not_valid(blksum, workdir, intact, old, new, reason):
    """They are errors, and not images without an MD5. `blkhash info` warns and continues."""
    assert iso_images.text(intact).count(old) == 1
    status, message = check(blksum, iso_images.with_text(intact, iso_images.text(intact).replace(old, new).rstrip()))
    assert status == "" and reason in message
    result = images.attempt(blkhash(blksum), "info", "x.iso")
    assert result.returncode == 0 and reason.encode() in result.stderr


def test_image_without_fragments(blksum, workdir, intact):
    content = iso_images.with_text(
        intact, iso_images.text(intact).replace(b"COUNT = 20", b"COUNT = 0").rstrip()
    )
    assert check(blksum, content) == ("OK", "") and iso_images.verdict("x.iso")
    status, message = check(blksum, flipped(content, 500_000))
    assert status == "FAILED" and "differs from its MD5, or that is damaged" in message


def test_compressed_images(blksum, workdir, intact):
    for content, expected in ((intact, "OK"), (flipped(intact, 500_000), "FAILED")):
        assert check(blksum, gzip.compress(content, 1), "x.iso.gz")[0] == expected
        assert check(blksum, lzma.compress(content, preset=0), "x.iso.xz")[0] == expected


def test_images_without_an_md5(blksum, workdir):
    iso_images.create("x.iso", [b"content"])
    result = blksum("-c", "x.iso")
    assert result.returncode == 1 and result.stdout == b""
    assert b"is an image of ISO 9660 that states no MD5 of itself, as implantisomd5 writes it" in result.stderr
    pathlib.Path("raw.img").write_bytes(bytes(MIB))
    assert b"is not a check file" in blksum("-c", "raw.img").stderr
    # Text is a check file whatever else it holds.
    iso = pathlib.Path("x.iso").read_bytes()
    line = f"{hashlib.md5(iso).hexdigest()}  x.iso\n".encode()
    text = (line + b"#" * iso_images.DESCRIPTOR)[: iso_images.DESCRIPTOR] + iso[iso_images.DESCRIPTOR :][:SECTOR]
    pathlib.Path("SUMS").write_bytes(text)
    assert blksum("-c", "-d", "md5", "--construction=linear", "SUMS").stdout == b"x.iso: OK\n"


def test_parts(blksum, workdir, intact):
    pathlib.Path("x.iso").write_bytes(intact)
    for options in (["--partition=1"], ["--length=1M"], ["--offset=1M"]):
        result = blksum("-c", *options, "x.iso")
        assert result.returncode == 1 and b"leave out --partition, --offset" in result.stderr


def test_json(blksum, workdir, intact):
    def found(content):
        pathlib.Path("x.iso").write_bytes(content)
        return json.loads(blksum("-c", "--json", "x.iso").stdout)

    length = len(intact) - 15 * SECTOR
    md5 = hashlib.md5(iso_images.with_text(intact, b"")[:length]).hexdigest()
    report = found(intact)
    assert (report["status"], report["checksum"], report["format"]) == ("ok", md5, "raw")
    nothing = {"difference": None, "fragment": None, "difference_offset": None, "difference_length": None}
    assert report["implanted"] == {"md5": md5, "bytes": length, "fragments": 21, **nothing}
    start, end = iso_images.fragments(intact)[4]
    report = found(flipped(intact, start))
    assert report["status"] == "failed" and report["checksum"] != md5 == report["implanted"]["md5"]
    places = {"fragment": 5, "difference_offset": start, "difference_length": end - start}
    assert report["implanted"] | places | {"difference": "fragment"} == report["implanted"]
    assert found(intact[:-MIB])["implanted"]["difference"] == "end"


def test_info(blksum, workdir, intact):
    pathlib.Path("x.iso").write_bytes(intact)
    md5 = json.loads(blksum("-c", "--json", "x.iso").stdout)["checksum"]
    text = images.run(blkhash(blksum), "info", "x.iso").decode()
    assert md5 in text and f"of the first {len(intact) - 15 * SECTOR} bytes" in text
    info = json.loads(images.run(blkhash(blksum), "info", "--json", "x.iso"))["implanted"]
    assert info == {"md5": md5, "bytes": len(intact) - 15 * SECTOR, "volume_size": len(intact), "fragments": 21}
    iso_images.create("plain.iso", [b"content"])
    assert "implanted" not in json.loads(images.run(blkhash(blksum), "info", "--json", "plain.iso"))


def test_sparse_images(blksum, workdir, intact):
    """Holes count as zeros that are not stored."""
    pathlib.Path("x.iso").write_bytes(intact)
    size = 64 * MIB
    with open("x.iso", "r+b") as file:
        file.truncate(size)
        file.seek(iso_images.DESCRIPTOR + 80)
        file.write((size // SECTOR).to_bytes(4, "little") + (size // SECTOR).to_bytes(4, "big"))
    content = iso_images.state(pathlib.Path("x.iso").read_bytes())
    with open("x.iso", "r+b") as file:
        file.seek(TEXT)
        file.write(content[TEXT:TEXT_END])
    assert iso_images.verdict("x.iso") and blksum("-c", "x.iso").stdout == b"x.iso: OK\n"
    limited = blksum("-c", "--max-zeros=1M", "x.iso")
    assert limited.returncode == 1 and b"zeros" in limited.stderr


def mutant(rng, content):
    """The image with one change, most often in the text or the descriptor."""
    content = bytearray(content)
    kind = rng.randrange(6)
    if kind == 0:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        content[rng.randrange(iso_images.DESCRIPTOR, iso_images.DESCRIPTOR + SECTOR)] = rng.randrange(256)
    elif kind == 2:
        content[rng.randrange(TEXT, TEXT + 240)] = rng.choice(b"0123456789abcdefABCDEFx;= \0+-")
    elif kind == 3:
        at = rng.randrange(TEXT, TEXT + 240)
        length = rng.randrange(1, 20)
        content[at:TEXT_END] = (content[at + length : TEXT_END] + b" " * length)[: TEXT_END - at]
    elif kind == 4:
        at = rng.randrange(TEXT, TEXT + 240)
        piece = rng.choice((b"0", b";", b" ", b"ISO MD5SUM = ", b"SKIPSECTORS = 0;", b"FRAGMENT COUNT = 0;", b"\0"))
        content[at:TEXT_END] = (piece + content[at:TEXT_END])[: TEXT_END - at]
    else:
        # checkisomd5 never ends if there is no descriptor.
        del content[rng.randrange(iso_images.DESCRIPTOR + SECTOR, len(content)) :]
    return bytes(content)


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_mutants(blksum, workdir, intact, count):
    """None is OK that checkisomd5 does not pass. Some are errors here alone, because their text is not as it was written."""
    rng = random.Random(SEED * count)
    both = 0
    for number in range(count):
        content = mutant(rng, intact)
        status, message = check(blksum, content)
        passes = iso_images.verdict("x.iso")
        both += status == "OK"
        assert passes or status != "OK", (number, message)
        assert not passes or status in ("OK", ""), (number, message)
    assert both > 0
