"""Block maps, compared with `blkhash map`, blksum, veritysetup and the test vectors."""

import csv
import hashlib
import io
import json
import os
import pickle
import random
import re
import tarfile
import threading

import images
import numpy
import pytest
from conftest import ROOT, blkmap, blksum, json_lines, run, wait_for_threads

import blkhash

BLOCK = 65536
KEY = b"a key of 16 bytes"


def content(rng, blocks, tail=0):
    """Random data and zeros, in runs of blocks."""
    data = bytearray()
    while len(data) < blocks * BLOCK:
        count = min(rng.choice([1, 2, 7, 130]), blocks - len(data) // BLOCK)
        data += rng.randbytes(count * BLOCK) if rng.randrange(3) else bytes(count * BLOCK)
    return data + rng.randbytes(tail)


def ranges(text):
    """Returns the differences in the JSON of blkhash."""
    return [(it["offset"], it["length"], it["kind"]) for it in json_lines(text) if it["type"] == "range"]


def show(path):
    return json.loads(blkmap("show", "--json", path))


@pytest.mark.parametrize("digest", ["sha256", "sha1", "sha384", "crc32c", "blake2b512", "xxh64"])
@pytest.mark.parametrize("tail", [0, 1, 5000])
def test_maps_are_those_of_the_command(tmp_path, digest, tail):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(f"{digest} {tail}"), 400, tail))
    blkmap("create", "-d", digest, "-o", tmp_path / "command", path)
    calls = []
    ours = blkhash.create_map(path, tmp_path / "ours", digest, progress=lambda *args: calls.append(args))
    theirs = blkhash.Map(tmp_path / "command")
    blkmap("check", tmp_path / "ours")
    assert calls[-1] == (ours.image_size, ours.image_size)
    for opened, name in ((ours, "ours"), (theirs, "command")):
        shown = show(tmp_path / name)
        assert opened.root.hex() == shown["root"]
        assert opened.content_id.hex() == shown["content_id"]
        assert (opened.algorithm, opened.block_size) == (shown["digest"], shown["block_size"])
        assert (opened.image_size, opened.block_count) == (path.stat().st_size, shown["blocks"])
        assert opened.salt.hex() == shown["salt"]
        assert opened.info == shown["info"]
        assert (opened.is_complete, opened.is_sealed, opened.commit) == (True, False, 1)
        assert opened.name == str(tmp_path / name)
        opened.check()
    for volatile in (ours.info, theirs.info):
        volatile.pop("created")
    assert ours.content_id == theirs.content_id
    assert {**ours.info, "created": None} == {**theirs.info, "created": None}
    assert ours.diff(theirs) == theirs.diff(ours) == []
    # What the command does with a map of this package.
    blkmap("create", "-d", digest, "--if-changed", "-o", tmp_path / "ours", path)
    assert blkhash.Map(tmp_path / "ours").info == ours.info


@pytest.mark.parametrize("digest", ["sha256", "sha1", "crc32"])
def test_blocks_and_runs(tmp_path, digest):
    data = content(random.Random(digest), 3000 if digest == "sha256" else 400, 77)
    path = images.write_sparse(tmp_path / "disk.img", data)
    opened = blkhash.create_map(path, tmp_path / "map", digest)
    rows = csv.DictReader(io.StringIO(blkmap("export", "--to", "csv", tmp_path / "map")))
    expected = {}
    for row in rows:
        for offset in range(int(row["offset"]), int(row["offset"]) + int(row["length"]), BLOCK):
            expected[offset] = row["digest"]
    zero = blkhash.new(digest, bytes(BLOCK), construction="linear").hexdigest()
    blocks = list(opened.blocks())
    assert [block.offset for block in blocks] == list(range(0, len(data), BLOCK)) == sorted(expected)
    for offset, length, kind, digest_of_block in blocks:
        block = data[offset : offset + BLOCK]
        assert length == len(block)
        if kind == "zero":
            assert digest_of_block is None and not any(block)
        else:
            assert kind == "data"
            value = blkhash.new(digest, block, construction="linear")
            assert digest_of_block == value.digest()
        # The command does not list digests of zero blocks.
        assert (digest_of_block or b"").hex() == expected[offset] or not any(block)
        assert any(block) or digest_of_block in (None, bytes.fromhex(zero))
    at = 0
    for offset, length, kind, digests in opened.runs():
        assert offset == at
        at += length
        if kind == "data":
            rows = numpy.asarray(digests)
            assert rows.shape == ((length + BLOCK - 1) // BLOCK, opened.digest_size)
            assert rows.dtype == numpy.uint8 and not rows.flags.owndata and not rows.flags.writeable
            again = [b.digest for b in blocks if offset <= b.offset < offset + length]
            assert rows.tobytes() == digests.tobytes() == b"".join(again)
        else:
            assert (kind, digests) == ("zero", None)
    assert at == len(data)


def test_the_digests_are_those_of_hashlib(tmp_path):
    data = os.urandom(5 * BLOCK + 1)
    (tmp_path / "disk.img").write_bytes(data)
    opened = blkhash.create_map(tmp_path / "disk.img", tmp_path / "map", salt=b"salt")
    for offset, length, kind, digest in opened.blocks():
        assert digest == hashlib.sha256(b"salt" + data[offset : offset + length]).digest()
    assert opened.salt == b"salt"


def test_the_root_is_that_of_veritysetup(tmp_path):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(1), 300))
    opened = blkhash.create_map(path, tmp_path / "map", block_size=4096)
    command = ["veritysetup", "format", "--salt", "-", "--data-block-size", "4096", path, tmp_path / "hash"]
    assert opened.root.hex() == re.search(r"Root hash:\s+(\w+)", run(*command))[1]


def changed(rng, data):
    """Returns other content, often of another length."""
    data = bytearray(data)
    for _ in range(rng.randrange(30)):
        start = rng.randrange(len(data))
        length = rng.choice([1, 100, BLOCK, 5 * BLOCK])
        end = min(start + length, len(data))
        data[start:end] = rng.choice([bytes, rng.randbytes])(end - start)
    grow = rng.choice([0, 0, 1, BLOCK - 1, 5 * BLOCK + 7, -1, -3 * BLOCK - 5])
    return data[:grow] if grow < 0 else data + rng.randbytes(grow)


@pytest.mark.parametrize("seed", range(12))
def test_differences_are_those_of_the_command(tmp_path, seed):
    rng = random.Random(seed)
    left = content(rng, rng.choice([1, 5, 300]), rng.choice([0, 1, 1000]))
    right = changed(rng, left)
    left_path = images.write_sparse(tmp_path / "left.img", left)
    right_path = images.write_sparse(tmp_path / "right.img", right)
    images.convert(right_path, tmp_path / "right.qcow2")
    left_map = blkhash.create_map(left_path, tmp_path / "left.blkmap")
    right_map = blkhash.create_map(right_path, tmp_path / "right.blkmap")
    status = 0 if left == right else 1
    expected = ranges(blkmap("diff", "--json", left_map.name, right_map.name, status=status))
    assert left_map.diff(right_map) == expected
    for image in (right_path, str(right_path)) if len(right) % 512 else (right_path, tmp_path / "right.qcow2"):
        expected = ranges(blkmap("verify", "--json", left_map.name, image, status=status))
        for threads in (None, 1, 3):
            assert left_map.verify(image, threads=threads) == expected
        with blkhash.Image(image) as opened:
            assert left_map.verify(opened) == expected
    # Every byte that differs is in a difference, and no difference has equal bytes only.
    found = [(it.offset, it.offset + it.length) for it in left_map.verify(right_path)]
    for start in range(0, max(len(left), len(right)), BLOCK):
        differs = left[start : start + BLOCK] != right[start : start + BLOCK]
        ended = min(len(left), len(right))
        if start + BLOCK <= ended:
            assert differs == any(a <= start < b for a, b in found)


@pytest.mark.parametrize("seed", range(8))
def test_differences_of_images_are_those_of_the_command(tmp_path, seed):
    rng = random.Random(100 + seed)
    left = content(rng, rng.choice([1, 5, 300]), rng.choice([0, 1, 1000]))
    right = changed(rng, left)
    paths = [images.write_sparse(tmp_path / "left.img", left), images.write_sparse(tmp_path / "right.img", right)]
    status = 0 if left == right else 1
    expected = ranges(blkmap("diff", "--json", *map(str, paths), status=status))
    assert blkhash.diff(*paths) == expected
    assert blkhash.diff(*map(str, paths), threads=1) == expected
    with blkhash.Image(paths[0]) as image:
        assert blkhash.diff(image, paths[1]) == expected
        assert blkhash.diff(image, image) == []
    for block_size in (512, 4096):
        found = blkhash.diff(*paths, block_size=block_size)
        blocks = {at for it in found for at in range(it.offset, it.offset + it.length, block_size)}
        for start in range(0, min(len(left), len(right)), block_size):
            end = start + block_size
            is_short = end > min(len(left), len(right))
            assert (start in blocks) == (left[start:end] != right[start:end]) or is_short


def test_differences_of_images_have_options(tmp_path):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(5), 300))
    seen = []
    assert blkhash.diff(path, path, progress=lambda *counts: seen.append(counts)) == []
    assert seen[-1] == (path.stat().st_size,) * 2
    stop = threading.Event()
    stop.set()
    with pytest.raises(blkhash.CancelledError):
        blkhash.diff(path, path, cancel=stop)
    with pytest.raises(FileNotFoundError):
        blkhash.diff(path, tmp_path / "missing")
    for bad in ({"block_size": 1000}, {"threads": 0}):
        with pytest.raises(ValueError):
            blkhash.diff(path, path, **bad)


@pytest.mark.parametrize("ends", ["cancel", "progress"])
def test_a_map_that_is_not_complete_is_removed(tmp_path, servers, ends):
    """Before the call ends, although its thread still waits for the server."""
    rng = random.Random(7)
    path = images.write_sparse(tmp_path / "disk.img", rng.randbytes(64 * BLOCK))
    base = blkhash.create_map(path, tmp_path / "base")
    slow = servers.nbdkit("--filter=delay", "file", path, "rdelay=3").uri()
    new = tmp_path / "new"

    class Begun:
        def is_set(self):
            return new.exists()

    def progress(done, total):
        if new.exists():
            raise KeyError

    options, error = {
        "cancel": ({"cancel": Begun()}, blkhash.CancelledError),
        "progress": ({"progress": progress}, KeyError),
    }[ends]
    for make in (
        lambda: blkhash.create_map(slow, new, threads=1, **options),
        lambda: blkhash.update_map(base, slow, new, changes=[(0, BLOCK)], threads=1, **options),
    ):
        with pytest.raises(error):
            make()
        assert not new.exists()
    wait_for_threads()
    assert not new.exists()


@pytest.mark.parametrize("seed", range(4))
def test_a_larger_card(tmp_path, seed):
    """With ignore_tail, what the image has past the end of the other side is not compared, as by the command."""
    rng = random.Random(seed)
    data = rng.randbytes(rng.choice([1, 300, 70]) * BLOCK + rng.choice([0, 512, 1000]))
    card = bytearray(data + rng.randbytes(rng.choice([1, 700, 5 * BLOCK])))
    for _ in range(rng.randrange(3)):
        card[rng.randrange(len(data))] ^= 1
    (tmp_path / "disk.img").write_bytes(data)
    (tmp_path / "card.img").write_bytes(card)
    paths = tmp_path / "disk.img", tmp_path / "card.img"
    map = blkhash.create_map(paths[0], tmp_path / "map", block_size=512)
    status = 0 if card[: len(data)] == data else 1
    expected = ranges(blkmap("verify", "--ignore-tail", "--json", map.name, paths[1], status=status))
    assert map.verify(paths[1], ignore_tail=True) == expected
    assert blkhash.diff(*paths, block_size=512, ignore_tail=True) == expected
    assert (expected == []) == (card[: len(data)] == data)
    assert [it for it in map.verify(paths[1]) if it.kind == "right-only" or it.offset + it.length > len(data)]
    # One that is smaller lacks something.
    assert blkhash.create_map(paths[1], tmp_path / "larger").verify(paths[0], ignore_tail=True)
    assert blkhash.diff(paths[1], paths[0], ignore_tail=True)
    (tmp_path / "empty.img").write_bytes(b"")
    with pytest.raises(ValueError, match="nothing would be left"):
        blkhash.diff(tmp_path / "empty.img", paths[1], ignore_tail=True)
    with pytest.raises(ValueError, match="nothing would be left"):
        blkhash.create_map(tmp_path / "empty.img", tmp_path / "empty").verify(paths[1], ignore_tail=True)
    with blkhash.Image(paths[1], offset=512) as part, pytest.raises(ValueError, match="is a part|is a range"):
        blkhash.diff(paths[0], part, ignore_tail=True)


def test_maps_of_parts(tmp_path):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(3), 700))
    blkmap("create", "--shard", "2/3", "-o", tmp_path / "part", path)
    part = blkhash.Map(tmp_path / "part")
    assert (part.is_complete, part.root, part.content_id) == (False, None, None)
    assert {run.kind for run in part.runs()} >= {"unknown", "data"}
    assert sum(run.length for run in part.runs()) == 700 * BLOCK
    kinds = {it.kind for it in part.verify(path)}
    assert kinds == {"unknown"}
    expected = ranges(blkmap("verify", "--json", part.name, path, status=2))
    assert part.verify(path) == part.verify(path, limit=len(expected)) == expected
    # A part of the list would look like all of it.
    with pytest.raises(ValueError, match="more than 1 extents differ: limit=N"):
        part.verify(path, limit=1)
    with pytest.raises(ValueError, match="more than 0 extents differ"):
        part.diff(blkhash.create_map(path, tmp_path / "whole"), limit=0)
    with pytest.raises(blkhash.MapError, match="knows only"):
        part.checksum()


def test_a_partition_and_the_map_of_the_whole(tmp_path):
    path = tmp_path / "disk.img"
    path.write_bytes(random.Random(5).randbytes(8 << 20))
    run("sfdisk", "-q", path, input="label: gpt\nsize=2MiB\nsize=3MiB\n", stdin=None)
    whole = blkhash.create_map(path, tmp_path / "whole")
    with blkhash.Image(path, partition=1) as part:
        assert whole.verify(part) == []
        mapped = blkhash.create_map(part, tmp_path / "part")
        assert mapped.verify(part) == []
    assert whole.verify(path) == []
    with pytest.raises(ValueError, match="part: is the map of partition 1"):
        mapped.verify(path)
    with pytest.raises(ValueError, match="whole: compared with .*part: is the map of the whole image, and the other one of partition 1"):
        whole.diff(mapped)
    with pytest.raises(ValueError, match="part: compared with .*whole: is the map of partition 1, and the other one of the whole image"):
        mapped.diff(whole)
    # Offsets are those in the partition.
    damaged = bytearray(path.read_bytes())
    damaged[(1 << 20) + 5 * BLOCK + 1] ^= 1
    damaged[(4 << 20) + 1] ^= 1
    (tmp_path / "damaged.img").write_bytes(damaged)
    with blkhash.Image(tmp_path / "damaged.img", partition=1) as part:
        assert whole.verify(part) == [(5 * BLOCK, BLOCK, "changed")] == ranges(
            blkmap("verify", "--json", "--partition", "1", whole.name, tmp_path / "damaged.img", status=1)
        )
    # A file with the content of the partition.
    (tmp_path / "copy.img").write_bytes(path.read_bytes()[1 << 20 : 3 << 20])
    assert mapped.verify(tmp_path / "copy.img") == []
    assert mapped.diff(blkhash.create_map(tmp_path / "copy.img", tmp_path / "copy")) == []
    (tmp_path / "longer.img").write_bytes((tmp_path / "copy.img").read_bytes() + b"x")
    assert [it.kind for it in mapped.verify(tmp_path / "longer.img")] == ["right-only"]


@pytest.mark.parametrize("construction", ["streams:4", "streams:7", "flat", "concat", "fs-verity"])
def test_checksums(tmp_path, construction):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(4), 500, 123))
    opened = blkhash.create_map(path, tmp_path / "map")
    expected = blksum("--construction", construction, "--block-size", "65536", path)
    assert opened.checksum(construction) == opened.checksum(construction, threads=1) == expected
    assert blkmap("checksum", "--construction", construction, opened.name).split()[0] == expected
    with pytest.raises(blkhash.MapError, match="linear"):
        opened.checksum("linear")
    with pytest.raises(ValueError):
        opened.checksum("streams:0")


def test_seals(tmp_path):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(5), 10))
    (tmp_path / "key").write_bytes(KEY)
    sealed = blkhash.create_map(path, tmp_path / "map", key=KEY)
    assert sealed.is_sealed
    sealed.check_seal(KEY)
    sealed.check_seal(bytearray(KEY))
    blkmap("check", "--key-file", tmp_path / "key", sealed.name)
    with pytest.raises(blkhash.MapError, match="another key"):
        sealed.check_seal(KEY[::-1])
    with pytest.raises(ValueError):
        sealed.check_seal(b"short")
    plain = blkhash.create_map(path, tmp_path / "plain")
    with pytest.raises(blkhash.MapError, match="not sealed"):
        plain.check_seal(KEY)


VECTORS = json.loads((ROOT / "test-vectors" / "maps.json").read_text())
BY_NAME = {vector["name"]: vector for vector in VECTORS["maps"] + VECTORS["appended"]}


def build(vector):
    """Returns the bytes of a map of the test vectors."""
    file = bytearray(build(BY_NAME[vector["base"]]) if "base" in vector else b"")
    if len(file) > vector["length"]:
        del file[vector["length"] :]
    file += bytes(vector["length"] - len(file))
    for offset, hexadecimal in vector.get("file", []) + vector.get("changes", []):
        part = bytes.fromhex(hexadecimal)
        file[offset : offset + len(part)] = part
    return file


def test_vectors_of_maps(tmp_path):
    path = tmp_path / "map"
    count = 0
    for vector in VECTORS["maps"] + VECTORS["appended"]:
        file = build(vector)
        assert hashlib.sha256(file).hexdigest() == vector["sha256"]
        path.write_bytes(file)
        opened = blkhash.Map(path)
        opened.check()
        assert (opened.root or bytes(32)).hex() == vector["root"]
        assert (opened.content_id or bytes(32)).hex() == vector["content_id"]
        assert opened.info == json.loads(vector["info"])
        if vector["key"]:
            opened.check_seal(bytes.fromhex(vector["key"]))
        for construction, value in vector.get("checksums", {}).items():
            assert opened.checksum(construction) == value, (vector["name"], construction)
        if "base" in vector:
            (tmp_path / "base").write_bytes(build(BY_NAME[vector["base"]]))
            base = blkhash.Map(tmp_path / "base")
            found = base.diff(opened)
            size, end = base.block_size, max(base.image_size, opened.image_size)
            expected = [
                (first * size, min((first + number) * size, end) - first * size, kind)
                for first, number, kind in vector["diff"]
            ]
            assert [it for it in found if not it.kind.endswith("only")] == expected
            assert blkhash.Map(path, commit=base.commit).root == base.root
        count += 1
    for vector in VECTORS["refused"]:
        path.write_bytes(build(vector))
        with pytest.raises(blkhash.MapError) as caught:
            opened = blkhash.Map(path)
            assert vector["when"] == "check", vector["reason"]
            opened.check()
        assert caught.value.filename == str(path)
        count += 1
    assert count == VECTORS["count"]


def test_errors(tmp_path):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(6), 300))
    opened = blkhash.create_map(path, tmp_path / "map")
    with pytest.raises(FileExistsError) as caught:
        blkhash.create_map(path, tmp_path / "map")
    assert isinstance(caught.value, blkhash.MapError)
    with pytest.raises(blkhash.MapError, match="no commit"):
        blkhash.Map(tmp_path / "map", commit=2)
    with pytest.raises(blkhash.MapError, match="is not a block map"):
        blkhash.Map(path)
    with pytest.raises(IsADirectoryError):
        blkhash.Map(tmp_path)
    other = blkhash.create_map(path, tmp_path / "other", block_size=4096)
    with pytest.raises(blkhash.MapError, match="cannot be compared"):
        opened.diff(other)
    with pytest.raises(FileNotFoundError):
        blkhash.create_map(tmp_path / "missing", tmp_path / "new")
    with pytest.raises(ValueError):
        blkhash.create_map(path, tmp_path / "new", "null")
    assert not (tmp_path / "new").exists()
    damaged = bytearray((tmp_path / "map").read_bytes())
    damaged[5000] ^= 1
    (tmp_path / "map").write_bytes(damaged)
    opened = blkhash.Map(tmp_path / "map")
    with pytest.raises(blkhash.MapError) as caught:
        list(opened.blocks())
    assert caught.value.offset == 4096
    # The map is what is wrong, not the image.
    with pytest.raises(blkhash.MapError):
        opened.verify(path)
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(opened)


def test_names_that_are_not_utf8(tmp_path):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(7), 5))
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.blkmap")
    opened = blkhash.create_map(path, name)
    assert opened.name == blkhash.Map(name).name == name
    other = blkhash.create_map(path, tmp_path / "other", "sha512")
    for call in (lambda: opened.diff(other), lambda: opened.check_seal(KEY)):
        with pytest.raises(blkhash.MapError) as caught:
            call()
        assert caught.value.filename == name
    with pytest.raises(FileNotFoundError) as caught:
        blkhash.Map(name + "\udcfe")
    assert caught.value.filename == name + "\udcfe"


def test_a_failure_leaves_no_map(tmp_path):
    path = tmp_path / "disk.img"
    path.write_bytes(os.urandom(1 << 20))
    with blkhash.Image(path) as image:
        with open(path, "r+b") as file:
            file.write(b"changed")
        with pytest.raises(blkhash.ChangedError):
            blkhash.create_map(image, tmp_path / "map")
    assert sorted(os.listdir(tmp_path)) == ["disk.img"]


@pytest.mark.parametrize("member", ["d.img", "sub/d.img"])
def test_the_map_of_a_disk_in_an_appliance(tmp_path, member):
    text = f'<E><File id="f" href="{member}"/><Disk fileRef="f"/></E>'.encode()
    with tarfile.open(tmp_path / "a.ova", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in (("x.ovf", text), (member, b"disk" * 50_000)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    for name in (f"{tmp_path}/a.ova:{member}", f"{tmp_path}/a.ova"):
        for path in ("command", "ours"):
            (tmp_path / path).unlink(missing_ok=True)
        blkmap("create", "-o", tmp_path / "command", name)
        ours = blkhash.create_map(name, tmp_path / "ours")
        theirs = blkhash.Map(tmp_path / "command")
        assert {**ours.info, "created": None} == {**theirs.info, "created": None}
        assert "mtime_ns" in ours.info["source"]["files"][0]
        # The map is of the image as it is, so it is not made again.
        blkmap("create", "--if-changed", "-o", tmp_path / "ours", name)
        assert blkhash.Map(tmp_path / "ours").info == ours.info


@pytest.fixture
def tracked(tmp_path):
    """An image with a bitmap, its map, and two extents that changed since."""
    path = tmp_path / "disk.qcow2"
    images.create(path, "8M")
    images.qemu_io(path, "write -P 1 0 3M")
    images.qemu_img("bitmap", "--add", path, "changes")
    base = blkhash.create_map(path, tmp_path / "base")
    images.qemu_io(path, "write -P 2 1M 64k", "write -z 2M 128k")
    return path, base


def test_changes_of_a_bitmap(tracked):
    path, _ = tracked
    with blkhash.Image(path) as image:
        assert image.changes("changes") == [(1 << 20, 65536), (2 << 20, 131072)]
        with pytest.raises(blkhash.ImageError, match="has no bitmap other"):
            image.changes("other")


def test_changes_since_an_older_image(tracked, tmp_path):
    """tests/maps/test_reflink.py has the file systems that tell shared extents."""
    path, _ = tracked
    with blkhash.Image(path) as image, blkhash.Image("/proc/self/exe", format="raw") as older:
        with pytest.raises(ValueError, match="disk.qcow2: extents shared with the older image are unknown"):
            image.changes(reflink=older)
        for arguments in ({}, {"bitmap": "changes", "reflink": older}):
            with pytest.raises(TypeError, match="one of bitmap and reflink"):
                image.changes(**arguments)


def test_an_updated_map_is_that_of_the_image(tracked, tmp_path):
    path, base = tracked
    changes = blkhash.Image(path).changes("changes")
    calls = []
    updated = blkhash.update_map(base, path, tmp_path / "new", changes, progress=lambda *args: calls.append(args))
    assert calls and updated.content_id == blkhash.create_map(path, tmp_path / "whole").content_id
    assert updated.info["made"]["update"]["read"] == 3
    assert updated.info["source"]["bitmaps"][0]["name"] == "changes"
    assert base.diff(updated) == base.audit(path, []).missed
    with pytest.raises(FileExistsError):
        blkhash.update_map(base, path, tmp_path / "new", changes)
    with pytest.raises(blkhash.MapError, match="65536 bytes at 2097152 changed") as caught:
        blkhash.update_map(base, path, tmp_path / "missed", changes[:1], sample=100)
    assert caught.value.offset == 2 << 20
    assert not (tmp_path / "missed").exists()
    for sample in (-1, 101, float("nan")):
        with pytest.raises(ValueError, match="percentage"):
            blkhash.update_map(base, path, tmp_path / "missed", changes, sample=sample)
    with pytest.raises(ValueError, match="past 2"):
        blkhash.update_map(base, path, tmp_path / "missed", [(2**64 - 1, 1)])


def test_history(tracked, tmp_path):
    path, _ = tracked
    first = blkhash.create_map(path, tmp_path / "map")
    assert [state.changed_blocks for state in first.history()] == [None]
    offset = 3 * BLOCK + 7
    images.qemu_io(path, f"write -P 77 {offset // 512 * 512} 512")
    (tmp_path / "list").write_text(f"{offset} 1\n")
    blkmap("update", "--changes", tmp_path / "list", tmp_path / "map", path)
    state, before = blkhash.Map(tmp_path / "map").history()
    assert (state.commit, before.commit) == (2, 1)
    assert state.created >= before.created
    assert state[2:] == (first.image_size, 1, BLOCK, 1)
    assert before[2:] == (first.image_size, None, None, None)
    changed = blkhash.Map(tmp_path / "map").history(0, 3 * BLOCK)[0]
    assert changed[3:] == (0, 0, 0)


def test_an_updated_map_keeps_its_seal(tracked, tmp_path):
    path, _ = tracked
    changes = blkhash.Image(path).changes("changes")
    sealed = blkhash.create_map(path, tmp_path / "sealed", key=KEY)
    with pytest.raises(blkhash.MapError, match="is sealed"):
        blkhash.update_map(sealed, path, tmp_path / "new", changes)
    updated = blkhash.update_map(sealed, path, tmp_path / "new", changes, key=KEY)
    updated.check_seal(KEY)
    assert updated.content_id == sealed.content_id


def test_an_audit_names_what_a_list_misses(tracked):
    path, base = tracked
    changes = blkhash.Image(path).changes("changes")
    judged = base.audit(path, [*changes, (4 << 20, 100)])
    assert judged == blkhash.Audit([], 3, 1, 124, 0, 196608 + 100, 100)
    judged = base.audit(path, changes[1:])
    assert judged.missed == [blkhash.Difference(1 << 20, 65536, "changed")]
    assert (judged.listed, judged.needless) == (2, 0)
    with pytest.raises(ValueError, match="limit=N"):
        base.audit(path, [], limit=1)


@pytest.mark.parametrize("form", ["lines", "csv", "json", "bmap", "fidx", "caibx", "raw"])
def test_exports_are_those_of_the_command(tmp_path, form):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(form), 200, 5))
    whole = blkhash.create_map(path, tmp_path / "map")
    whole.export(tmp_path / "export", form)
    blkmap("export", "--to", form, "-o", tmp_path / "command", tmp_path / "map")
    assert (tmp_path / "export").read_bytes() == (tmp_path / "command").read_bytes()
    with pytest.raises(FileExistsError):
        whole.export(tmp_path / "export", form)
    if form == "bmap":
        return
    given = {"raw": {"format": "raw", "block_size": BLOCK, "image_size": path.stat().st_size}}
    given = given.get(form, {"block_size": BLOCK} if form in ("lines", "csv") else {})
    imported = blkhash.import_map(tmp_path / "export", tmp_path / "imported", **given)
    assert imported.content_id == whole.content_id
    assert imported.info["made"] == {"import": form}
    assert imported.verify(path) == []
    if form in ("fidx", "caibx", "json"):
        opened = blkhash.Map(tmp_path / "export")
        assert opened.content_id == whole.content_id and opened.verify(path) == []
    with pytest.raises(FileExistsError):
        blkhash.import_map(tmp_path / "export", tmp_path / "imported", **given)


def test_wrong_indexes(tmp_path):
    path = images.write_sparse(tmp_path / "disk.img", content(random.Random(1), 20))
    blkhash.create_map(path, tmp_path / "map").export(tmp_path / "disk.fidx", "fidx")
    index = bytearray((tmp_path / "disk.fidx").read_bytes())
    index[-1] ^= 1
    (tmp_path / "disk.fidx").write_bytes(index)
    for use in [
        lambda: blkhash.Map(tmp_path / "disk.fidx"),
        lambda: blkhash.import_map(tmp_path / "disk.fidx", tmp_path / "new"),
    ]:
        with pytest.raises(blkhash.MapError, match="index_csum") as caught:
            use()
        assert caught.value.offset == 32
    with pytest.raises(blkhash.MapError, match="no format that is recognised"):
        blkhash.import_map(path, tmp_path / "new")
    with pytest.raises(blkhash.MapError, match=r"is a \.fidx index"):
        blkhash.Map(tmp_path / "disk.fidx", commit=1)
    with pytest.raises(ValueError, match="use lines"):
        blkhash.Map(tmp_path / "map").export(tmp_path / "new", "zip")
    assert not (tmp_path / "new").exists()


def test_no_file_in_the_folder_of_devices(tmp_path):
    """A typo in the name of a device makes no file there."""
    (tmp_path / "disk").write_bytes(b"x" * 512)
    with pytest.raises(blkhash.Error, match="is no device"):
        blkhash.create_map(tmp_path / "disk", "/dev/blkhash-no-such-device")
    assert not os.path.exists("/dev/blkhash-no-such-device")
