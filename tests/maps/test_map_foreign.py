"""Indexes of blocks that other programs write, read as maps and written from maps: casync, bmaptool, RAUC, Proxmox, S3."""

import base64
import hashlib
import json
import os
import random
import re
import struct
import subprocess

import pytest

import images
from commands import HANG, blkhash, blksum_path

BLOCK = 65536
FIDX_MAGIC = bytes.fromhex("2f7f41ed91fd0fcd")


def blkmap(*args, **kwargs):
    """Runs blkhash map, which must succeed. Returns its output."""
    return images.succeeded(args, blkhash("map", *args, **kwargs))


def tool(*args, **kwargs):
    """Runs another program, which must succeed."""
    return images.succeeded(args, images.attempt(*map(str, args), **{"timeout": HANG} | kwargs))


def concat(image, block_size, digest="sha256"):
    """Returns the digest of the digests, as blksum computes it."""
    options = ["--construction", "concat", "-d", digest, "--block-size", str(block_size)]
    return tool(blksum_path(), *options, image).split()[0].decode()


def content(size, seed=1, block=BLOCK):
    """Returns bytes with data, zeros within pages, and pages of zeros."""
    rng = random.Random(seed)
    blocks = []
    for index in range(-(-size // block)):
        is_zero = index % 5 == 1 or 150 <= index < 420
        blocks.append(bytes(block) if is_zero else rng.randbytes(64) * (block // 64))
    return b"".join(blocks)[:size]


def hashes(data, block_size, digest="sha256", suffix=b""):
    digests = []
    for at in range(0, len(data), block_size):
        digests.append(hashlib.new(digest, data[at : at + block_size] + suffix).digest())
    return digests


def fidx(data, chunk_size, suffix=b"", uuid=bytes(16), ctime=0):
    """Returns the fixed index of a Proxmox backup. In an encrypted one, a key is hashed after each chunk."""
    digests = b"".join(hashes(data, chunk_size, suffix=suffix))
    head = FIDX_MAGIC + uuid + struct.pack("<q", ctime) + hashlib.sha256(digests).digest()
    head += struct.pack("<QQ", len(data), chunk_size)
    return head.ljust(4096, b"\0") + digests


def caibx(path, image, chunk_size, digest="sha512-256"):
    """Makes an index with casync."""
    sizes = ":".join([str(chunk_size)] * 3)
    store = path.with_name("store.castr")
    tool("casync", "make", f"--chunk-size={sizes}", f"--digest={digest}", f"--store={store}", path, image)
    return path


def lines(path):
    return blkmap("export", "--to", "lines", path).decode()


def status(path, image):
    """Compares an image with an index. An error is one line with the name of the index."""
    result = blkhash("map", "verify", path, image)
    if result.returncode not in (0, 1):
        assert result.returncode == 2, result
        assert result.stderr.count(b"\n") == 1 and str(path).encode() in result.stderr, result
        assert result.stdout == b"", result
    return result.returncode


# Proxmox


@pytest.mark.parametrize("chunk_size", [BLOCK, 4 << 20])
@pytest.mark.parametrize("size", [0, 1, BLOCK, 450 * BLOCK, 450 * BLOCK + 1, 500 * BLOCK - 512])
def test_fidx_is_the_map_of_the_disk(tmp_path, size, chunk_size):
    image, path = tmp_path / "disk.img", tmp_path / "disk.img.fidx"
    image.write_bytes(content(size))
    index = fidx(image.read_bytes(), chunk_size, uuid=b"\x12" * 16, ctime=1_700_000_000)
    path.write_bytes(index)
    blkmap("verify", path, image)
    # index_csum is the checksum of the image with this construction.
    assert index[32:64].hex() == concat(image, chunk_size)
    line = blkmap("checksum", "--construction", "concat", path).decode()
    assert line.split() == [index[32:64].hex(), str(tmp_path / "disk.img")]
    made, imported = tmp_path / "made.blkmap", tmp_path / "imported.blkmap"
    blkmap("create", "--block-size", chunk_size, "-o", made, image)
    blkmap("import", "-o", imported, path)
    assert blkmap("show", "--id", imported) == blkmap("show", "--id", made)
    info = json.loads(blkmap("show", "--json", imported))["info"]
    assert info["made"] == {"import": "fidx"} and info["created"]
    exported = blkmap("export", "--to", "fidx", made)
    assert exported[32:] == index[32:] and exported[:8] == index[:8]
    # Equal maps have equal indexes.
    assert blkmap("export", "--to", "fidx", imported) == exported


def test_every_command_reads_an_index(tmp_path):
    image, path = tmp_path / "disk.img", tmp_path / "disk.fidx"
    data = content(300 * BLOCK + 5)
    image.write_bytes(data)
    path.write_bytes(fidx(data, BLOCK))
    changed = tmp_path / "changed.img"
    changed.write_bytes(data[:BLOCK] + bytes([data[BLOCK] ^ 1]) + data[BLOCK + 1 :])
    # The content tells the format, so the name does not matter.
    other = tmp_path / "index"
    other.write_bytes(path.read_bytes())
    assert status(other, image) == 0 and status(other, changed) == 1
    assert blkmap("diff", path, image).startswith(b"no differences")
    result = blkhash("map", "diff", "--extents", changed, path)
    assert (result.returncode, result.stdout) == (1, f"{BLOCK} {BLOCK}\n".encode())
    newer = tmp_path / "newer.fidx"
    newer.write_bytes(fidx(changed.read_bytes(), BLOCK))
    result = blkhash("map", "diff", "--extents", path, newer)
    assert (result.returncode, result.stdout) == (1, f"{BLOCK} {BLOCK}\n".encode())
    assert b"import of fidx" in blkmap("show", path)
    assert json.loads(blkmap("dups", "--json", path, newer))["maps"] == 2
    merged = tmp_path / "merged.blkmap"
    blkmap("merge", "-o", merged, path)
    assert blkmap("show", "--id", merged) == blkmap("show", "--id", path)
    changes = tmp_path / "changes"
    changes.write_text(f"{BLOCK} 512\n")
    blkmap("audit", "--changes", changes, path, changed)
    result = blkhash("map", "audit", "--changes", "/dev/null", "--changes-format", "lines", path, changed)
    assert result.returncode == 1, result
    updated = tmp_path / "updated.blkmap"
    blkmap("update", "--changes", changes, "-o", updated, path, changed)
    blkmap("verify", updated, changed)


@pytest.mark.parametrize("command", ["check", "seal", "update", "state", "output"])
def test_commands_for_maps_alone_say_what_to_do(tmp_path, command):
    image, path, key = tmp_path / "disk.img", tmp_path / "disk.fidx", tmp_path / "key"
    image.write_bytes(content(3 * BLOCK))
    key.write_bytes(bytes(32))
    before = fidx(image.read_bytes(), BLOCK)
    path.write_bytes(before)
    (tmp_path / "changes").write_text("0 512\n")
    args = {
        "check": ["check", path],
        "seal": ["seal", "--key-file", key, path],
        "update": ["update", "--changes", tmp_path / "changes", path, image],
        "state": ["show", f"{path}@1"],
        "output": ["export", "--to", "csv", "-o", path, path],
    }[command]
    result = blkhash("map", *args)
    assert result.returncode == 2
    expected = b"is the file to export" if command == "output" else b"is a .fidx index of another program: make a map"
    assert expected in result.stderr
    assert path.read_bytes() == before


def test_diff_takes_no_image_for_an_index(tmp_path):
    """A guest can write the beginning of an index to its disk."""
    image, path = tmp_path / "disk.img", tmp_path / "guest.img"
    image.write_bytes(content(3 * BLOCK))
    path.write_bytes(fidx(image.read_bytes(), BLOCK))
    result = blkhash("map", "diff", path, image)
    assert result.returncode == 2 and b"which the guest of an image may write" in result.stderr
    result = blkhash("map", "diff", "-f", "raw", path, image)
    assert result.returncode == 1


def test_encrypted_backups_differ_everywhere(tmp_path):
    image, path = tmp_path / "disk.img", tmp_path / "disk.fidx"
    image.write_bytes(content(20 * BLOCK))
    path.write_bytes(fidx(image.read_bytes(), BLOCK, suffix=b"key"))
    result = blkhash("map", "verify", path, image)
    assert result.returncode == 1 and b"encrypted backup of Proxmox" in result.stderr
    # Not for an index with an equal block, and not for others.
    index = fidx(image.read_bytes(), BLOCK)
    other = content(20 * BLOCK, seed=2)
    path.write_bytes(index)
    image.write_bytes(other)
    result = blkhash("map", "verify", path, image)
    assert result.returncode == 1 and b"encrypted" not in result.stderr
    blocks = tmp_path / "disk.blkmap"
    path.write_bytes(fidx(other, BLOCK, suffix=b"key"))
    blkmap("import", "--from", "raw", "--block-size", "64K", "-o", blocks, write(tmp_path / "raw", path.read_bytes()[4096:]))
    result = blkhash("map", "verify", blocks, image)
    assert result.returncode == 1 and b"encrypted" not in result.stderr


def write(path, data):
    path.write_bytes(data)
    return path


def test_damaged_fidx(tmp_path):
    image, path = tmp_path / "disk.img", tmp_path / "disk.fidx"
    data = content(9 * BLOCK + 77)
    image.write_bytes(data)
    index = fidx(data, BLOCK)
    for at in [*range(80), 80, 4095, *range(4096, len(index), 13)]:
        write(path, index[:at] + bytes([index[at] ^ 0x41]) + index[at + 1 :])
        # The UUID and the time say nothing about the disk.
        assert (status(path, image) == 0) == (8 <= at < 32), at
    for length in [0, 1, 7, 8, 79, 80, 4095, 4096, 4097, len(index) - 32, len(index) - 1]:
        assert status(write(path, index[:length]), image) == 2
    for tail in [b"\0", bytes(32)]:
        assert status(write(path, index + tail), image) == 2
    for size, chunk_size in [(2**63, BLOCK), (2**64 - 1, 1), (len(data), 0), (len(data), BLOCK - 1), (len(data), 1 << 40)]:
        bad = index[:64] + struct.pack("<QQ", size, chunk_size) + index[80:]
        assert status(write(path, bad), image) == 2


def test_the_map_of_a_large_index_is_a_temporary_file(tmp_path):
    digests = random.Random(5).randbytes(32 * 300_000)
    head = FIDX_MAGIC + bytes(24) + hashlib.sha256(digests).digest() + struct.pack("<QQ", 300_000 << 22, 4 << 20)
    path = write(tmp_path / "disk.fidx", head.ljust(4096, b"\0") + digests)
    assert blkmap("export", "--to", "raw", path) == digests
    assert list(tmp_path.iterdir()) == [path]
    result = blkhash("map", "show", path, env=os.environ | {"TMPDIR": str(tmp_path / "missing")})
    assert result.returncode == 2 and result.stderr.count(b"\n") == 1
    blkmap("import", path, env=os.environ | {"TMPDIR": str(tmp_path / "missing")})


# casync


@pytest.mark.parametrize("digest", ["sha512-256", "sha256"])
@pytest.mark.parametrize("chunk_size", [4096, BLOCK])
@pytest.mark.parametrize("size", [0, 1, 4096, BLOCK, 200 * BLOCK, 200 * BLOCK + 513])
def test_caibx_is_that_of_casync(tmp_path, size, chunk_size, digest):
    image = tmp_path / "disk.img"
    image.write_bytes(content(size, block=chunk_size))
    path = caibx(tmp_path / "disk.caibx", image, chunk_size, digest)
    assert status(path, image) == 0
    made, imported = tmp_path / "made.blkmap", tmp_path / "imported.blkmap"
    blkmap("create", "-d", digest, "--block-size", chunk_size, "-o", made, image)
    blkmap("import", "-o", imported, path)
    assert blkmap("show", "--id", imported) == blkmap("show", "--id", made)
    for each in (made, imported):
        assert blkmap("export", "--to", "caibx", each) == path.read_bytes()


def test_casync_extracts_with_an_index_of_a_map(tmp_path):
    image, made, index = tmp_path / "disk.img", tmp_path / "disk.blkmap", tmp_path / "own.caibx"
    image.write_bytes(content(40 * BLOCK + 1))
    caibx(tmp_path / "disk.caibx", image, BLOCK)
    blkmap("create", "-d", "sha512-256", "-o", made, image)
    blkmap("export", "--to", "caibx", "-o", index, made)
    out = tmp_path / "out.img"
    tool("casync", "extract", f"--store={tmp_path / 'store.castr'}", index, out)
    assert out.read_bytes() == image.read_bytes()


def test_variable_chunks_are_refused(tmp_path):
    image, path = tmp_path / "disk.img", tmp_path / "disk.caibx"
    image.write_bytes(random.Random(1).randbytes(2_000_000))
    tool("casync", "make", f"--store={tmp_path / 'store.castr'}", path, image)
    result = blkhash("map", "verify", path, image)
    assert result.returncode == 2 and b"a map needs chunks of one length" in result.stderr


def test_damaged_caibx(tmp_path):
    image = tmp_path / "disk.img"
    image.write_bytes(content(9 * 4096 + 77, block=4096))
    path = caibx(tmp_path / "disk.caibx", image, 4096)
    index = path.read_bytes()
    for at in range(len(index)):
        found = status(write(path, index[:at] + bytes([index[at] ^ 0x41]) + index[at + 1 :]), image)
        # Flags that say nothing about a file, and a larger maximum than the chunks'.
        assert found != 0 or at == 23 or 40 <= at < 48, at
    for length in range(0, len(index), 7):
        assert status(write(path, index[:length]), image) == 2
    assert status(write(path, index + bytes(40)), image) == 2


# RAUC


@pytest.fixture(scope="module")
def rauc_index(tmp_path_factory):
    """Returns an image and its block hash index, which is taken from a bundle."""
    folder = tmp_path_factory.mktemp("rauc")
    bundle = folder / "content"
    bundle.mkdir()
    image = write(bundle / "rootfs.img", content(700 * 4096, block=4096))
    (bundle / "manifest.raucm").write_text(
        "[update]\ncompatible=test\nversion=1\n\n[bundle]\nformat=verity\n\n"
        "[image.rootfs]\nfilename=rootfs.img\nadaptive=block-hash-index\n"
    )
    cert, key = folder / "cert.pem", folder / "key.pem"
    subject = ["-subj", "/O=test/CN=test"]
    tool("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, *subject)
    out = folder / "update.raucb"
    tool("rauc", "--cert", cert, "--key", key, "bundle", bundle, out)
    extracted = folder / "extracted"
    # The signature follows the file system.
    tool("unsquashfs", "-quiet", "-no-progress", "-dest", extracted, out)
    return image, extracted / "rootfs.img.block-hash-index"


def test_block_hash_index_is_that_of_rauc(tmp_path, rauc_index):
    image, index = rauc_index
    assert status(index, image) == 0
    made = tmp_path / "disk.blkmap"
    blkmap("create", "--block-size", "4K", "-o", made, image)
    assert blkmap("export", "--to", "raw", made) == index.read_bytes()
    imported = tmp_path / "imported.blkmap"
    # It has no magic: another name needs the format.
    other = write(tmp_path / "index", index.read_bytes())
    result = blkhash("map", "import", "-o", imported, other)
    assert result.returncode == 2 and b"name it with --from" in result.stderr and not imported.exists()
    blkmap("import", "--from", "raw", "-o", imported, other)
    assert blkmap("show", "--id", imported) == blkmap("show", "--id", made)
    for length in [1, 31, 32, 700 * 32 - 1, 700 * 32 - 32]:
        cut = write(tmp_path / "cut.block-hash-index", index.read_bytes()[:length])
        assert status(cut, image) != 0


def test_raw_digests_have_parameters(tmp_path):
    image = write(tmp_path / "disk.img", content(20 * 512 + 3, block=512))
    index = write(tmp_path / "index", b"".join(hashes(image.read_bytes(), 512, "sha1")))
    imported = tmp_path / "imported.blkmap"
    options = ["--from", "raw", "-d", "sha1", "--block-size", "512", "--size", image.stat().st_size]
    blkmap("import", *options, "-o", imported, index)
    blkmap("verify", imported, image)
    assert blkmap("export", "--to", "raw", imported) == index.read_bytes()
    for size in (0, 20 * 512, 22 * 512, 2**63):
        result = blkhash("map", "import", "--force", *options[:-1], size, "-o", imported, index)
        assert result.returncode == 2, size
    blkmap("verify", imported, image)


# bmaptool


def test_bmap_of_a_map_is_read(tmp_path):
    """Blocks that no range covers are unknown, and pages are known as a whole."""
    blocks = 3 * 128 + 40
    data = bytearray(random.Random(3).randbytes(4096 * blocks)[: 4096 * blocks - 100])
    data[4096 * 130 : 4096 * 131] = bytes(4096)
    image = write(tmp_path / "disk.img", data)
    made, path = tmp_path / "made.blkmap", tmp_path / "disk.bmap"
    blkmap("create", "--block-size", "4K", "-o", made, image)
    blkmap("export", "--to", "bmap", "-o", path, made)
    # The block of zeros is in no range, and is the only one that is not compared.
    result = blkhash("map", "verify", path, image)
    assert result.returncode == 2 and result.stderr == b""
    assert result.stdout == f"no differences in {blocks - 1} blocks, 1 not compared (4.00 KiB)\n".encode()
    # As a map, it knows pages as a whole.
    result = blkhash("map", "diff", path, image)
    assert result.returncode == 2
    assert f"no differences in {blocks - 128} blocks, 128 not known".encode() in result.stdout
    assert b"127 blocks with digests become unknown" in result.stderr
    expected = lines(made).splitlines()
    expected[128 : 128 + 128] = [f"{128 * 4096} {128 * 4096} unknown"]
    assert lines(path).splitlines() == expected
    text = path.read_text()
    for old, new in [
        ("<BlockSize> 4096", "<BlockSize> 4095"),
        ("<BlocksCount> ", "<BlocksCount> 1"),
        ("<MappedBlocksCount> ", "<MappedBlocksCount> 1"),
        ("<ImageSize> ", "<ImageSize> 9"),
        ("> 5 <", "> 4 <"),
        ("> 5 <", "> 5-6 <"),
        ("</bmap>", ""),
        ("</BlockMap>", ""),
        ("</bmap>", "</bmap><x>"),
        (' version="2.0"', ' version="1.3"'),
        (' version="2.0"', ' version="1.2"'),
        ("<ChecksumType> sha256", "<ChecksumType> sha1"),
        ("sha256", "sha257"),
        ('chksum="', 'chksum="0'),
    ]:
        assert old in text
        path.write_text(sealed(text.replace(old, new, 1)))
        assert status(path, image) == 2, (old, new)
    # The checksum of the file covers the rest.
    path.write_text(text.replace("> 5 <", ">  5 <", 1))
    result = blkhash("map", "verify", path, image)
    assert result.returncode == 2 and b"the file has another checksum" in result.stderr
    for length in range(0, len(text), 977):
        assert status(write(path, text.encode()[:length]), image) == 2


def sealed(text):
    """Returns a bmap with the right checksum of its own."""
    pattern = re.compile(r"(<BmapFileChecksum> )(\w+)( )")
    zeros = pattern.sub(lambda match: match[1] + "0" * len(match[2]) + match[3], text)
    digest = hashlib.sha256(zeros.encode()).hexdigest()
    return pattern.sub(lambda match: match[1] + digest + match[3], text)


def test_bmaps_of_bmaptool(tmp_path):
    """Its ranges are as long as the data. Ranges of one block have the digest of a block."""
    image, path = tmp_path / "disk.img", tmp_path / "disk.bmap"
    rng = random.Random(4)
    with open(image, "wb") as file:
        file.truncate(512 * 4096)
        for block in [3, 130, 400]:
            file.seek(block * 4096)
            file.write(rng.randbytes(4096))
    tool("bmaptool", "create", "-o", path, image)
    imported = tmp_path / "imported.blkmap"
    result = blkhash("map", "import", "-o", imported, path)
    assert result.returncode == 0 and b"3 blocks with digests become unknown" in result.stderr
    assert lines(imported) == f"0 {512 * 4096} unknown\n"
    with open(image, "r+b") as file:
        file.write(rng.randbytes(256 * 4096))
        tool("bmaptool", "create", "-o", path, image)
    # tests/maps/test_map_bmap.py compares images with such ranges.
    result = blkhash("map", "import", "--force", "-o", imported, path)
    assert result.returncode == 2 and b"has one checksum of the blocks 0-255" in result.stderr
    with open(image, "wb") as file:
        for block in range(128):
            file.write(rng.randbytes(4096))
    tool("bmaptool", "create", "--no-checksum", "-o", path, image)
    result = blkhash("map", "verify", path, image)
    assert result.returncode == 2 and b"a bmap without checksums of ranges" in result.stderr


# S3


def s3(data, part_size, digest="sha256", **fields):
    name = {"sha256": "ChecksumSHA256", "sha1": "ChecksumSHA1"}[digest]
    digests = hashes(data, part_size, digest)
    parts = []
    for number, value in enumerate(digests, 1):
        size = min(part_size, len(data) - (number - 1) * part_size)
        parts.append({"PartNumber": number, "Size": size, name: base64.b64encode(value).decode()})
    whole = base64.b64encode(hashlib.new(digest, b"".join(digests)).digest()).decode()
    return {
        "LastModified": "2026-11-01T00:00:00+00:00",
        "ETag": "0123-3",
        "Checksum": {name: whole, "ChecksumType": "COMPOSITE"},
        "ObjectParts": {
            "TotalPartsCount": len(parts),
            "PartNumberMarker": 0,
            "NextPartNumberMarker": len(parts),
            "MaxParts": 1000,
            "IsTruncated": False,
            "Parts": parts,
        },
        "StorageClass": "STANDARD",
        "ObjectSize": len(data),
    } | fields


@pytest.mark.parametrize("digest", ["sha256", "sha1"])
def test_parts_of_an_object_of_s3(tmp_path, digest):
    image = write(tmp_path / "disk.img", content(9 * BLOCK + 5))
    path = tmp_path / "attributes.json"
    attributes = s3(image.read_bytes(), BLOCK, digest)
    path.write_text(json.dumps(attributes, indent=4))
    assert status(path, image) == 0
    made = tmp_path / "made.blkmap"
    blkmap("create", "-d", digest, "-o", made, image)
    assert blkmap("show", "--id", path) == blkmap("show", "--id", made)
    # Pages follow each other.
    parts = attributes["ObjectParts"]
    first = attributes | {"ObjectParts": parts | {"Parts": parts["Parts"][:4], "IsTruncated": True}}
    second = attributes | {"ObjectParts": parts | {"Parts": parts["Parts"][4:]}}
    path.write_text(json.dumps(first) + json.dumps(second))
    assert status(path, image) == 0
    path.write_text(json.dumps(first))
    assert status(path, image) == 2


def test_crcs_of_s3(tmp_path):
    image = write(tmp_path / "disk.img", content(3 * BLOCK))
    made, path = tmp_path / "made.blkmap", tmp_path / "attributes.json"
    for name, digest in [("ChecksumCRC32C", "crc32c"), ("ChecksumCRC64NVME", "crc64nvme"), ("ChecksumCRC32", "crc32")]:
        blkmap("create", "--force", "-d", digest, "-o", made, image)
        found = blkmap("export", "--to", "raw", made)
        size = len(found) // 3
        parts = [
            {"PartNumber": at + 1, "Size": BLOCK, name: base64.b64encode(found[at * size : at * size + size]).decode()}
            for at in range(3)
        ]
        path.write_text(json.dumps({"ObjectParts": {"Parts": parts}, "ObjectSize": 3 * BLOCK}))
        assert blkmap("show", "--id", path) == blkmap("show", "--id", made)


def test_wrong_parts_of_s3(tmp_path):
    image = write(tmp_path / "disk.img", content(5 * BLOCK + 5))
    path = tmp_path / "attributes.json"
    good = s3(image.read_bytes(), BLOCK)

    def change(edit):
        attributes = json.loads(json.dumps(good))
        edit(attributes, attributes["ObjectParts"]["Parts"])
        path.write_text(json.dumps(attributes))
        assert status(path, image) == 2, attributes

    change(lambda it, parts: parts.pop(2))
    change(lambda it, parts: parts.pop())
    change(lambda it, parts: parts.clear())
    change(lambda it, parts: parts.reverse())
    change(lambda it, parts: parts.append(parts[-1]))
    change(lambda it, parts: parts[1].update(Size=BLOCK - 1))
    change(lambda it, parts: parts[-1].update(Size=BLOCK + 1))
    change(lambda it, parts: parts[1].update(ChecksumSHA256="AAAA"))
    change(lambda it, parts: parts[1].update(ChecksumSHA256=parts[0]["ChecksumSHA256"]))
    change(lambda it, parts: parts[1].pop("ChecksumSHA256"))
    change(lambda it, parts: it.update(ObjectSize=1))
    change(lambda it, parts: it.pop("ObjectParts"))
    change(lambda it, parts: it["ObjectParts"].update(IsTruncated=True))
    text = json.dumps(good)
    for length in range(1, len(text), 101):
        assert status(write(path, text.encode()[:length]), image) == 2
    path.write_text(json.dumps(s3(image.read_bytes(), 3 * BLOCK)))
    assert status(path, image) == 2


# Our own exports


@pytest.mark.parametrize("options", [[], ["-d", "sha1"], ["-d", "blake3", "--block-size", "4K"], ["--shard", "2/3"]], ids=" ".join)
@pytest.mark.parametrize("form", ["lines", "csv", "json"])
@pytest.mark.parametrize("size", [1000, 450 * BLOCK, 450 * BLOCK + 1])
def test_exports_are_read_back(tmp_path, form, options, size):
    image, made = tmp_path / "disk.img", tmp_path / "made.blkmap"
    image.write_bytes(content(size))
    blkmap("create", *options, "-o", made, image)
    text = write(tmp_path / f"disk.{form}", blkmap("export", "--to", form, made))
    given = []
    if form != "json":
        # These do not name the digest, and a short block does not show the size of the others.
        given = options if "-d" in options else []
        given = given if "--block-size" in given else [*given, "--block-size", "64K"]
    back = tmp_path / "back.blkmap"
    blkmap("import", *given, "-o", back, text)
    for again in ("lines", "csv", "json"):
        assert blkmap("export", "--to", again, back) == blkmap("export", "--to", again, made)
    result = blkhash("map", "diff", back, made)
    assert b"differ," not in result.stdout and result.returncode == (2 if "--shard" in options else 0)


def test_lines_of_ebs(tmp_path):
    """GetSnapshotBlock has SHA-256 in base64, of blocks of 512 KiB."""
    block = 512 << 10
    data = content(4 * block, block=block)
    image, path = write(tmp_path / "disk.img", data), tmp_path / "lines"
    text = ""
    for number, digest in enumerate(hashes(data, block)):
        value = "zero" if number == 1 else base64.b64encode(digest).decode()
        text += f"{number * block} {block} {value}\n"
    path.write_text(text)
    assert status(path, image) == 0
    text = text.splitlines(keepends=True)
    for bad in [
        [text[0], text[2], text[3]],
        [text[0], text[1], text[1], text[2], text[3]],
        [text[1], text[0], text[2], text[3]],
        [*text[:3], f"{3 * block} {block} {'00' * 20}\n"],
        [*text[:3], f"{3 * block} {block + 1} {'00' * 32}\n"],
        [*text[:3], f"{3 * block} 0 zero\n"],
        [*text[:3], f"{3 * block} {2**64 - 1} zero\n"],
        [*text, "\n"],
        [*text, "x\n"],
    ]:
        path.write_text("".join(bad))
        assert status(path, image) == 2, bad
    # A shorter list belongs to a shorter image.
    path.write_text("".join([*text[:3], text[3].replace(f" {block} ", f" {block - 1} ")]))
    assert status(path, image) == 1


# Files that exist


def test_import_treats_files_as_create_does(tmp_path):
    image = write(tmp_path / "disk.img", content(5 * BLOCK))
    path = write(tmp_path / "disk.fidx", fidx(image.read_bytes(), BLOCK))
    made = tmp_path / "disk.fidx.blkmap"
    blkmap("import", path)
    before = made.read_bytes()
    result = blkhash("map", "import", path)
    assert result.returncode == 2 and b"--force overwrites it" in result.stderr
    # A damaged index does not cost the map that is there.
    good = path.read_bytes()
    write(path, good[:-1] + bytes([good[-1] ^ 1]))
    result = blkhash("map", "import", "--force", path)
    assert result.returncode == 2 and b"index_csum" in result.stderr
    assert made.read_bytes() == before
    # And leaves no map.
    other = tmp_path / "other.blkmap"
    assert blkhash("map", "import", "-o", other, path).returncode == 2 and not other.exists()
    write(path, good)
    blkmap("import", "--force", path)
    blkmap("verify", made, image)
    result = blkhash("map", "import", "--force", "-o", path, path)
    assert result.returncode == 2 and path.read_bytes() == good
    key = write(tmp_path / "key", bytes(32))
    blkmap("import", "--force", "--key-file", key, path)
    blkmap("check", "--key-file", key, made)
    program = [str(blksum_path().with_name("blkhash")), "map", "import", "-o", "-", str(path)]
    piped = subprocess.run(program, capture_output=True, timeout=HANG, check=True).stdout
    blkmap("verify", write(made, piped), image)
    result = blkhash("map", "import", "/dev/null")
    assert result.returncode == 2 and b"is not a regular file" in result.stderr
    result = blkhash("map", "import", "--block-size", "4K", "--force", path)
    assert result.returncode == 2 and b"with the block size 65536" in result.stderr
