"""blkhash btrfs verify: every reference to a tree block is compared with the block.

Each reference is redirected, with valid checksums, to its parent, to itself, to a sibling, to a good
block of another tree, or to an older block.
"""

import json
import os
import random
import re
import struct
import sys

import pytest

import filesystems
import images
from btrfs import verify
from btrfs_blocks import HEADER, ITEM, LOG_TREE, POINTER, Image, summed
from commands import HANG, blksum_path

pytestmark = pytest.mark.root

NODE = 4096
# Minimum number of file systems to verify.
CHANGES = 400
MOST_MEMORY = 64 << 20
MOST_OUTPUT = 100 << 10
# CPU time, which does not depend on the load of the machine.
MOST_SECONDS = 1

TREES = {
    1: "root",
    2: "extent",
    3: "chunk",
    4: "device",
    5: "file",
    7: "checksum",
    9: "UUID",
    10: "free space",
    256: "subvolume",
    2**64 - 6: "log",
    2**64 - 9: "data relocation",
}


# A child process starts with the peak memory of its parent in the kernel's statistics. This parent is
# small.
MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    print(status, usage.ru_maxrss << 10, usage.ru_utime + usage.ru_stime, file=file)
"""


def measured(folder, *args):
    """Verifies and checks that it takes little memory. Returns the exit status, the outputs and the CPU
    seconds."""
    command = [str(blksum_path().with_name("blkhash")), "btrfs", "verify", *map(str, args)]
    taken = folder / "taken"
    result = images.attempt(sys.executable, "-S", "-c", MEASURE, str(taken), *command, timeout=HANG)
    status, memory, seconds = taken.read_text().split()
    assert int(memory) < MOST_MEMORY, (memory, args)
    return int(status), result.stdout, result.stderr, float(seconds)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """All kinds of trees, some with several levels, and a log."""
    folder = tmp_path_factory.mktemp("references")
    path = folder / "fs"
    options = ["--nodesize", "4k", "-m", "single", "-d", "single", "-R", "free-space-tree,quota"]
    filesystems.make([path], *options, size=128 << 20)
    source = random.Random(1)
    with filesystems.mounted([path], "rw,nodiscard,commit=300") as root:
        images.run("btrfs", "subvolume", "create", str(root / "subvolume"))
        for number in range(500):
            (root / f"file{number:03}").write_bytes(source.randbytes(source.randrange(1, 9000)))
            (root / "subvolume" / f"file{number:03}").write_bytes(b"%d" % number * 300)
        filesystems.sync(root)
        images.run("btrfs", "subvolume", "snapshot", str(root / "subvolume"), str(root / "snapshot"))
        for number in range(0, 500, 9):
            (root / "subvolume" / f"file{number:03}").write_bytes(b"other" * 500)
            (root / "snapshot" / f"file{number:03}").unlink()
            (root / f"file{number:03}").write_bytes(source.randbytes(5000))
        filesystems.sync(root)
        for number in range(40):
            # Logs of two subvolumes, one of them with several blocks.
            for name in [root / f"logged{number}", root / "subvolume" / f"logged{number}"]:
                with open(name, "wb") as file:
                    file.write(source.randbytes(9000))
                    os.fsync(file.fileno())
        copy = folder / "copy"
        images.run("cp", "--sparse=always", str(path), str(copy))
    return Image(copy, NODE)


def astray(image, reference, source, stale):
    """Yields other blocks for the reference to point to, with their kind."""
    holder, _, _, logical, tree = reference
    target = image.blocks[logical]
    yield "itself", logical if holder is None else holder
    parents = [it[0] for it in image.references if it[3] == holder and it[0] is not None]
    if parents:
        yield "parent", parents[0]
    siblings = [it[3] for it in image.references if it[0] == holder and it[3] != logical]
    if siblings:
        yield "sibling", source.choice(siblings)
    others = [it for it in image.blocks.values() if it.owner != target.owner]
    alike = [it for it in others if it.level == target.level]
    for kind, some in (("another tree", others), ("another tree, same level", alike)):
        if some:
            yield kind, source.choice(some).logical
    newest = [it for it in alike if it.generation == target.generation]
    alike = [it for it in newest if it.first_key() == target.first_key()] or newest
    if alike:
        yield "another tree, same generation", source.choice(alike).logical
    older = [it for it in stale if it.owner == target.owner and it.level == target.level]
    older = [it for it in older if it.first_key() == target.first_key()] or older
    if older:
        yield "older", source.choice(older).logical


@pytest.mark.slow
def test_led_astray(image):
    assert verify(image.path)[:2] == (0, [])
    source = random.Random(2)
    stale = list(image.stale())
    groups = {}
    for reference in image.references:
        holder, _, _, logical, tree = reference
        groups.setdefault((tree, image.blocks[logical].level, holder is None), []).append(reference)
    seen = {tree for tree, _, _ in groups}
    assert seen >= set(TREES), {name for number, name in TREES.items() if number not in seen}
    assert max(level for _, level, _ in groups) >= 2
    runs = {}
    rounds = 0
    while sum(runs.values()) < CHANGES:
        rounds += 1
        assert rounds < 1000
        for group, references in groups.items():
            reference = source.choice(references)
            holder, slot, at, logical, tree = reference
            for kind, other in astray(image, reference, source, stale):
                if other == logical and holder is not None:
                    continue
                if holder is None and kind == "itself":
                    # The superblock has no logical address, so use one in the reserved space.
                    other = 64 << 10
                if tree == LOG_TREE and kind == "older" and is_alike(image, other, reference, stale):
                    # The log after an earlier fsync is as valid as the last one.
                    continue
                with image.redirected(holder, at, other):
                    judge(image, reference, kind, other)
                runs[kind] = runs.get(kind, 0) + 1
    assert len(runs) == 7 and verify(image.path)[:2] == (0, []), runs


def is_alike(image, other, reference, stale):
    holder, _, _, logical, _ = reference
    target = image.blocks[logical]
    block = next(it for it in stale if it.logical == other)
    is_root = holder is None or not image.blocks[holder].level
    return block.generation == target.generation and (
        is_root or block.first_key() == target.first_key()
    )


def judge(image, reference, kind, other):
    holder, slot, _, logical, tree = reference
    what = (kind, other, reference)
    status, out, err, seconds = measured(image.path.parent, "--json", image.path)
    assert seconds < MOST_SECONDS, (what, seconds)
    if status == 2:
        # A structure that all others depend on is invalid.
        assert b"leads to it" in err and str(other).encode() in err, (what, err)
        return
    assert status == 1, (what, out)
    errors = [json.loads(line) for line in out.splitlines()]
    errors = [it for it in errors if it["type"] == "error"]
    if any("nothing leads to it" in it["problem"] and it["logical"] == logical for it in errors):
        # The other block matches the reference completely, and the original block is left without
        # references.
        return
    if any("another reference" in it["problem"] and it["logical"] == other for it in errors):
        # Logs are never shared. The second of two equal references is reported.
        return
    if any("counts other references" in it["problem"] for it in errors):
        return
    errors = [it for it in errors if it["logical"] == other]
    expected = {"kind": "superblock"}
    if holder is not None:
        block = image.blocks[holder]
        kind = "pointer" if block.level else "root item"
        expected = {"kind": kind, "logical": holder, "slot": slot}
    assert expected in [it["parent"] for it in errors], (what, errors, out)


@pytest.mark.parametrize("tree", [5, 7, 256], ids=TREES.get)
def test_claim_of_removal(image, tree):
    """A root item claims that most of its tree is removed. This must hide nothing below it."""
    roots = [it for it in image.references if it[4] == tree and it[0] in image.blocks]
    holder, _, at, _, _ = next(it for it in roots if image.blocks[it[0]].owner == 1)
    item = at - 176

    def claim(data):
        data = bytearray(data)
        struct.pack_into("<I", data, item + 216, 0)
        struct.pack_into("<QBQ", data, item + 220, 2**64 - 1, 255, 2**64 - 1)
        data[item + 237] = 1
        return bytes(data)

    led = [it[3] for it in image.references]
    leaves = [it for it in led if image.blocks[it].owner == tree and image.blocks[it].level == 0]
    leaf = next(it for it in leaves if led.count(it) == 1)
    place = image.layout.places(leaf)[0] + NODE - 1
    with image.changed(holder, claim):
        status = verify(image.path)[0]
        # Only a subvolume can be partially removed, and this one is not being removed. The first
        # subvolume always stays.
        assert status == (0 if tree == 7 else 1)
        with filesystems.changed(image.path, place):
            status, errors, _ = verify(image.path)
            assert status == 1 and leaf in [it["logical"] for it in errors], errors
    assert verify(image.path)[:2] == (0, [])


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """A file tree of 230,000 pointers to blocks in a huge chunk on a missing device."""
    folder = tmp_path_factory.mktemp("attacked")
    path = folder / "fs"
    filesystems.make([path], "--nodesize", "4k", "-m", "single", "-d", "single", size=128 << 20)
    with filesystems.mounted([path], "rw,nodiscard") as root:
        (root / "file").write_bytes(b"x" * 5000)
    image = Image(path, NODE)
    start, _, _, _ = max(image.layout.chunks)
    leaf = next(it for it in image.blocks.values() if it.owner == 3 and it.level == 0)

    def lose(data):
        head = next(
            HEADER + slot * ITEM
            for slot in range(leaf.count)
            if struct.unpack_from("<QBQ", data, HEADER + slot * ITEM) == (256, 228, start)
        )
        item = HEADER + struct.unpack_from("<I", data, head + 17)[0]
        data = bytearray(data)
        struct.pack_into("<Q", data, item, 1 << 50)
        struct.pack_into("<Q", data, item + 0x30, 99)
        return bytes(data)

    template = next(it for it in image.blocks.values() if it.owner == 5)
    begin, length, _, _ = next(it for it in image.layout.chunks if it[2] == "METADATA|single" or it[2] == "METADATA")
    free = iter(it for it in range(begin + (1 << 20), begin + length, NODE) if it not in image.blocks)
    new = {}

    def node(level, children):
        logical = next(free)
        head = bytearray(template.data[:HEADER])
        struct.pack_into("<Q", head, 0x30, logical)
        struct.pack_into("<IB", head, 0x60, len(children), level)
        pointers = b"".join(
            struct.pack("<QBQQQ", key, 1, 0, child, template.generation) for key, child in children
        )
        new[logical] = summed(bytes(head) + pointers + bytes(NODE - HEADER - len(pointers)))
        return children[0][0], logical

    count = (NODE - HEADER) // POINTER
    step = 16 << 20
    leaves = [(256 + number, start + step * (number + 1)) for number in range(count * 1700)]
    level = 0
    below = leaves
    while len(below) > 1:
        level += 1
        below = [node(level, below[at : at + count]) for at in range(0, len(below), count)]
    root_leaf = next(
        (holder, at - 176) for holder, _, at, logical, tree in image.references
        if tree == 5 and holder in image.blocks and image.blocks[holder].owner == 1
    )

    def point(data):
        data = bytearray(data)
        struct.pack_into("<Q", data, root_leaf[1] + 176, below[0][1])
        data[root_leaf[1] + 238] = level
        return bytes(data)

    with open(path, "r+b") as file:
        for logical, data in new.items():
            file.seek(image.layout.places(logical)[0])
            file.write(data)
        for logical, change in ((leaf.logical, lose), (root_leaf[0], point)):
            file.seek(image.layout.places(logical)[0])
            file.write(summed(change(image.blocks[logical].data)))
    return path, start, len(leaves)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=str)
def test_pointers_to_missing_devices(attacked, options):
    path, _, count = attacked
    status, out, err, _ = measured(path.parent, *options, path)
    assert status in (1, 2) and len(out) + len(err) < MOST_OUTPUT, (status, len(out), out[:2000])
    if options:
        summary = json.loads(out.splitlines()[-1])
        assert summary["missing_bytes"] >= count * NODE, summary


@pytest.mark.parametrize("options", [[], ["--json"]], ids=str)
def test_findings_without_end(attacked, options, workdir):
    """The same pointers without a missing device. The device ends before each of the blocks."""
    path, start, count = attacked
    copy = workdir / "copy"
    images.run("cp", "--sparse=always", str(path), str(copy))
    with open(copy, "r+b") as file:
        data = file.read()
        chunks = [
            at for at in range(1 << 20, len(data), NODE)
            if struct.unpack_from("<Q", data, at + 0x58)[0] == 3 and data[at + 0x64] == 0
        ]
        for at in chunks:
            block = data[at : at + NODE]
            if struct.pack("<Q", 99) in block:
                place = block.index(struct.pack("<Q", 99))
                block = block[:place] + struct.pack("<Q", 1) + block[place + 8 :]
                file.seek(at)
                file.write(summed(block))
    status, out, err, _ = measured(workdir, *options, copy)
    assert status == 1 and len(out) + len(err) < MOST_OUTPUT, (status, len(out), out[:2000])
    if options:
        lines = [json.loads(line) for line in out.splitlines()]
        summary = lines[-1]
        # A few of them are within the device.
        assert summary["errors"]["read"] > count - 100 and len(lines) <= 101
        shown = sum(it["blocks"] for it in lines[:-1])
        assert sum(summary["errors_not_printed"].values()) + shown == sum(summary["errors"].values())
        few = measured(workdir, "--json", "--max-errors", "3", copy)[1].splitlines()
        assert len(few) == 4
    else:
        # Other errors may be among those that are not printed, depending on the threads.
        assert re.search(rb"not printed   .*blocks that cannot be read: ", out), out[-2000:]


def test_cut_off(workdir):
    """Adjacent lost data is one error."""
    path = workdir / "fs"
    filesystems.make([path], "-m", "single", "-d", "single", size=256 << 20)
    with filesystems.mounted([path], "rw,nodiscard") as root:
        (root / "file").write_bytes(random.Random(3).randbytes(20 << 20))
    layout = filesystems.Layout(path)
    start, length = max(layout.data)
    cut = layout.places(start)[0]
    assert cut > max(layout.places(it)[0] for it, _ in layout.blocks), "data lies last"
    os.truncate(path, cut)
    status, out, _, _ = measured(workdir, "--json", path)
    errors = [json.loads(line) for line in out.splitlines()][:-1]
    data = [it for it in errors if it["subject"] == "data"]
    assert status == 1 and len(data) == 1, errors
    assert data[0]["logical"] == start and data[0]["length"] == length
    assert data[0]["blocks"] == length // 4096
    assert data[0]["owners"][0]["paths"] == [{"name": "file"}]
