"""blkhash btrfs verify: invalid items, and items that contradict each other, with valid checksums."""

import os
import random
import re
import struct

import pytest

import filesystems
import images
from btrfs import verify
from btrfs_blocks import HEADER, ITEM, POINTER, Image
from commands import HANG

pytestmark = pytest.mark.root

# Number of bits to change. Set more and another seed for a long run.
BITS = int(os.environ.get("BTRFS_BITS", "150"))
SEED = int(os.environ.get("BTRFS_SEED", "20260101"))
MIB = 1 << 20
NODE = 4096

ROOTS, EXTENTS, CHUNKS, DEVICES, FILES, CHECKSUMS, QUOTA, FREE = 1, 2, 3, 4, 5, 7, 8, 10
RELOCATION = 2**64 - 9
INODE, INODE_REF, DIR_ITEM, DIR_INDEX, EXTENT_DATA = 1, 12, 84, 96, 108
CHECKSUM, ROOT, ROOT_REF, EXTENT, GROUP = 128, 132, 156, 168, 192
FREE_EXTENT, DEVICE_EXTENT, DEVICE, CHUNK = 199, 204, 216, 228


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Every kind of tree and of file, without mirrors."""
    path = tmp_path_factory.mktemp("structure") / "fs"
    options = ["--nodesize", "4k", "-m", "single", "-d", "single", "-R", "free-space-tree,quota"]
    filesystems.make([path], *options, size=128 * MIB)
    source = random.Random(1)
    with filesystems.mounted([path], "rw,nodiscard,commit=300") as root:
        images.run("btrfs", "subvolume", "create", str(root / "subvolume"))
        for number in range(200):
            (root / f"file{number:03}").write_bytes(source.randbytes(source.randrange(1, 9000)))
            (root / "subvolume" / f"file{number:03}").write_bytes(b"%d" % number * 300)
        (root / "folder").mkdir()
        os.symlink("file001", root / "folder" / "symlink")
        os.link(root / "file002", root / "folder" / "link")
        os.setxattr(root / "file003", "user.attribute", b"y" * 50)
        for name in ["zlib", "lzo", "zstd"]:
            compressed = root / name
            compressed.touch()
            images.run("btrfs", "property", "set", str(compressed), "compression", name)
            compressed.write_bytes(b"hello " * 300)
        for number in range(5):
            # Alternate data with and without checksums, so that there are several checksum items.
            plain = root / f"nodatacow{number}"
            plain.touch()
            images.run("chattr", "+C", str(plain))
            for name in (plain, root / f"between{number}"):
                name.write_bytes(source.randbytes(20_000))
                filesystems.sync(root)
        images.run("btrfs", "subvolume", "snapshot", str(root / "subvolume"), str(root / "snapshot"))
        for number in range(0, 200, 9):
            (root / "subvolume" / f"file{number:03}").write_bytes(b"other" * 500)
            (root / "snapshot" / f"file{number:03}").unlink()
        images.run("cp", "--reflink=always", str(root / "file001"), str(root / "reflink"))
        images.run("fallocate", "-l", "1M", str(root / "preallocated"))
        filesystems.sync(root)
    return Image(path, NODE)


def test_what_is_in_use_adds_up(image):
    status, errors, summary = verify(image.path)
    assert (status, errors, summary["compared"]) == (0, [], True)
    used, without = summary["used"], summary["unprotected"]
    assert used["unprotected"] == sum(without.values()) and without["preallocated"] == MIB
    assert sum(used.values()) == struct.unpack_from("<Q", image.superblock, 0x78)[0]
    # There are no mirrors here.
    assert used["data"] == summary["data_bytes"] and used["metadata"] == summary["tree_bytes"]
    assert summary["unchecked_bytes"] == without["nodatasum"] + without["internal"]


def spot(block, source):
    """Returns the name of a random part of a block, and the offset of a byte in it."""
    parts = [("header", 0x20, HEADER)]
    if block.level:
        parts.append(("pointer", HEADER, HEADER + block.count * POINTER))
    else:
        content = sum(len(content) for _, content in block.items())
        parts.append(("key", HEADER, HEADER + block.count * ITEM))
        parts.append(("item", NODE - content, NODE))
    name, first, end = source.choices(parts, [end - first for _, first, end in parts])[0]
    return name, source.randrange(first, end)


@pytest.mark.slow
def test_one_bit(image):
    """Nearly every error of `btrfs check` is also an error here."""
    source = random.Random(SEED)
    groups = {}
    for _, _, _, logical, tree in image.references:
        groups.setdefault((tree, image.blocks[logical].level), set()).add(logical)
    assert {tree for tree, _ in groups} >= {1, 2, 3, 4, 5, 7, 8, 9, 10, 256, RELOCATION}
    objections, missed = 0, []
    for _ in range(BITS):
        group = source.choice(sorted(groups))
        logical = source.choice(sorted(groups[group]))
        name, at = spot(image.blocks[logical], source)
        bit = 1 << source.randrange(8)
        with image.changed(logical, lambda data: data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]):
            status, _, _ = verify(image.path)
            checked = images.attempt("btrfs", "check", "--readonly", str(image.path), timeout=HANG)
        objections += checked.returncode != 0
        if checked.returncode and not status:
            missed.append((group[0], group[1], name, at, bit, checked.stdout[-300:]))
    assert objections > BITS / 3
    # The usage counters of quotas are not verified.
    others = [it for it in missed if it[0] != QUOTA]
    assert len(others) <= 0.02 * objections and len(missed) <= 0.05 * objections, missed
    assert verify(image.path)[:2] == (0, [])


def of(kind, number=None):
    """Matches items of a type, and optionally of an object."""
    return lambda key, content: key[1] == kind and number in (None, key[0])


def inode(key, content):
    return key[1] == INODE and key[0] > 256


def extent(key, content):
    """Matches an extent of a file that is not inline."""
    return key[1] == EXTENT_DATA and content[20] == 1


def symlink(key, content):
    return key[1] == INODE and struct.unpack_from("<I", content, 52)[0] >> 12 == 0o12


def to_subvolume(key, content):
    return key[1] == DIR_INDEX and content[8] == ROOT


def several_references(key, content):
    return key[1] == EXTENT and content[24:25] == b"\xb2" and content[53:54] == b"\xb2"


def inline(compression):
    return lambda key, content: key[1] == EXTENT_DATA and content[20] == 0 and content[16] == compression


def swap_references(items, index):
    content = items[index][1]
    content[24:53], content[53:82] = content[53:82], content[24:53]


def put(at, form, *values):
    """Writes values into an item."""
    return lambda items, index: struct.pack_into(form, items[index][1], at, *values)


def add(at, value):
    """Adds to a number in an item."""

    def edit(items, index):
        content = items[index][1]
        struct.pack_into("<Q", content, at, struct.unpack_from("<Q", content, at)[0] + value)

    return edit


def rename(number=0, kind=0, offset=0):
    """Changes the key of an item without changing its position."""

    def edit(items, index):
        key = items[index][0]
        items[index][0] = (key[0] + number, key[1] + kind, key[2] + offset)

    return edit


def last(edit):
    """Applies `edit` to the last item of the leaf."""
    return lambda items, index: edit(items, len(items) - 1)


def drop(items, index):
    del items[index]


def empty(items, index):
    items.clear()


def cut(size):
    def edit(items, index):
        del items[index][1][-size:]

    return edit


def cover_the_next(items, index):
    """Extends checksums to one sector after the start of the next item."""
    first, following = items[index][0][2], items[index + 1][0][2]
    content = items[index][1]
    content.extend(bytes(4 * ((following - first) // 4096 + 1) - len(content)))


def move_onto_the_next(items, index):
    """Moves the stripe of a chunk to the next chunk's."""
    items[index][1][0x38:0x40] = items[index + 1][1][0x38:0x40]


# Edits of one leaf: the tree, an item that is not the first one of its leaf, the edit, and the category of
# the finding. None if nothing can be verified.
CASES = {
    # Roots, and trees that describe others.
    "extent of no kind": (EXTENTS, of(EXTENT), put(16, "<Q", 0), "tree_item"),
    "checksum tree at 0": (ROOTS, of(ROOT, CHECKSUMS), put(176, "<Q", 0), "tree_item"),
    "root item cut off": (ROOTS, of(ROOT, CHECKSUMS), cut(300), "tree_item"),
    "no checksum tree": (ROOTS, of(ROOT, CHECKSUMS), drop, "tree_header"),
    "no device tree": (ROOTS, of(ROOT, DEVICES), drop, "tree_header"),
    "no relocation tree": (ROOTS, of(ROOT, RELOCATION), drop, "tree_header"),
    "no free space tree": (ROOTS, of(ROOT, FREE), drop, "tree_header"),
    "empty device tree": (DEVICES, of(DEVICE_EXTENT), empty, "tree_header"),
    "empty relocation tree": (RELOCATION, of(INODE_REF), empty, "tree_header"),
    # Data without checksums.
    "empty checksum tree": (CHECKSUMS, of(CHECKSUM), empty, "no_checksum"),
    "checksums dropped": (CHECKSUMS, of(CHECKSUM), drop, "no_checksum"),
    "checksums shortened": (CHECKSUMS, of(CHECKSUM), cut(4), "no_checksum"),
    "no checksum in an item": (CHECKSUMS, of(CHECKSUM), cut(10_000), "tree_item"),
    # Other keys among the checksums.
    "checksums of another object": (CHECKSUMS, of(CHECKSUM), last(rename(number=1)), "tree_item"),
    "checksums of another type": (CHECKSUMS, of(CHECKSUM), last(rename(kind=1)), "tree_item"),
    "checksums that overlap": (CHECKSUMS, of(CHECKSUM), cover_the_next, "tree_item"),
    # Content of items.
    "type of an extent": (FILES, extent, put(20, "<B", 3), "tree_item"),
    "compression of an extent": (FILES, extent, put(16, "<B", 7), "tree_item"),
    "extent in no chunk": (FILES, extent, put(21, "<Q", 1 << 50), "tree_item"),
    "extent that is not there": (FILES, extent, add(21, 4096), "contradiction"),
    "extent cut off": (FILES, extent, cut(8), "tree_item"),
    "inline zlib": (FILES, inline(1), put(30, "<I", 0xFF00FF55), "tree_item"),
    "inline lzo": (FILES, inline(2), put(25, "<I", 0x7FFFFFFF), "tree_item"),
    # A repetition of content before the first byte, and a stream that ends too early and too late.
    "inline lzo from nowhere": (FILES, inline(2), put(29, "<B", 0x10), "tree_item"),
    "inline lzo cut off": (FILES, inline(2), cut(1), "tree_item"),
    "inline lzo with more after it": (FILES, inline(2), lambda items, index: items[index][1].extend(b"x"), "tree_item"),
    "inline zstd": (FILES, inline(3), put(30, "<I", 0xFF00FF55), "tree_item"),
    "name without its hash": (FILES, of(DIR_ITEM), put(30, "<B", 0x7E), "tree_item"),
    "name in one of two places": (FILES, of(DIR_INDEX), put(30, "<B", 0x7E), "contradiction"),
    "no inode": (FILES, inode, drop, "tree_item"),
    "mode of an inode": (FILES, inode, put(52, "<I", 0), "tree_item"),
    "size of a folder": (FILES, of(INODE, 256), put(16, "<Q", 7), "contradiction"),
    "links of a file": (256, inode, put(40, "<I", 9), "contradiction"),
    "bytes of a file": (256, inode, put(24, "<Q", 9), "contradiction"),
    "target of a symbolic link": (FILES, symlink, put(16, "<Q", 3), "tree_item"),
    "immutable symbolic link": (FILES, symlink, put(64, "<Q", 1 << 6), "tree_item"),
    "symbolic link to append to": (FILES, symlink, put(64, "<Q", 1 << 7), "tree_item"),
    "written extent as reserved": (FILES, extent, put(20, "<B", 2), "contradiction"),
    # Roots and subvolumes.
    "removal without a level": (ROOTS, of(ROOT, 256), put(220, "<Q", 300), "tree_item"),
    "root of another number": (ROOTS, of(ROOT, DEVICES), rename(offset=1), "tree_item"),
    "subvolume without references": (ROOTS, of(ROOT, 256), put(216, "<I", 0), "contradiction"),
    "no default subvolume": (ROOTS, of(DIR_ITEM, 6), put(0, "<Q", 300), "contradiction"),
    "subvolume without a name": (ROOTS, of(ROOT_REF), drop, "contradiction"),
    "folder that leads elsewhere": (FILES, to_subvolume, put(0, "<Q", 999), "contradiction"),
    "references out of order": (EXTENTS, several_references, swap_references, "tree_item"),
    # Chunks and devices.
    "stripes at one place": (CHUNKS, of(CHUNK), move_onto_the_next, None),
    "stripe with another UUID": (CHUNKS, of(CHUNK), last(put(0x40, "<Q", 1)), "contradiction"),
    "size of the device": (CHUNKS, of(DEVICE), put(8, "<Q", 100 * MIB), "contradiction"),
    "UUID of the device": (CHUNKS, of(DEVICE), put(66, "<Q", 1), "contradiction"),
    "no device extent": (DEVICES, of(DEVICE_EXTENT), drop, "contradiction"),
    "device extent of another chunk": (DEVICES, of(DEVICE_EXTENT), put(16, "<Q", 4096), "contradiction"),
    # Other facts that are stored twice.
    "references counted": (EXTENTS, of(EXTENT), put(0, "<Q", 2), "contradiction"),
    "use of a block group": (EXTENTS, of(GROUP), add(0, 4096), "contradiction"),
    "free space in use": (FREE, of(FREE_EXTENT), rename(offset=4096), "contradiction"),
    "free space missing": (FREE, of(FREE_EXTENT), drop, "contradiction"),
}


# Fields that all superblocks share, and the text of the error.
FIELDS = {
    "size of the device": (0xC9 + 8, "<Q", 0, "of 0 bytes in use"),
    "no devices": (0x88, "<Q", 0, "has no devices"),
    "stripe size": (0x9C, "<I", 5, "has stripes of 5 bytes"),
    "leaf size": (0x98, "<I", 8192, "has leaves of 8192 bytes"),
    "bytes in use": (0x78, "<Q", 4096, "has 4096 bytes in use"),
    "flags": (0x38, "<Q", 1 << 50, "has the flags 0x4000000000000"),
    "device of another": (0xC9 + 0x52, "<Q", 1, "has a device of the file system"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_superblock(image, name):
    """The kernel refuses to mount this. One such copy is a finding. If all are, nothing can be verified."""
    at, form, value, reason = FIELDS[name]
    field = struct.pack(form, value)
    with image.changed(None, lambda data: data[:at] + field + data[at + len(field) :]):
        status, _, message = verify(image.path)
        assert status == 2 and reason in message, message
    with image.changed_superblock(1, lambda data: data[:at] + field + data[at + len(field) :]):
        status, errors, _ = verify(image.path)
        assert status == 1 and [it["copy"] for it in errors] == [1], errors
        assert reason in errors[0]["problem"], errors


def test_superblocks_that_differ(image):
    """Copies of one transaction with different labels."""
    with image.changed_superblock(1, lambda data: data[:0x12B] + b"other" + data[0x130:]):
        status, errors, _ = verify(image.path)
        assert status == 1 and len(errors) == 1 and f"from byte {0x12B}" in errors[0]["problem"], errors


def mounted_verdict(path):
    """Returns the results of a mount and a scrub. They are only printed, because kernels differ."""
    try:
        with filesystems.mounted([path], "ro") as root:
            read = images.attempt("tar", "-cf", "-", "-C", str(root), ".", timeout=HANG)
            images.attempt("btrfs", "scrub", "start", "-Br", str(root), timeout=HANG)
            status = images.attempt("btrfs", "scrub", "status", "-R", str(root)).stdout.decode()
        counted = dict(re.findall(r"(\w+_errors): (\d+)", status))
        errors = [name for name, count in counted.items() if count != "0"]
        return f"mount {'reads all' if not read.returncode else 'cannot read all'}, scrub {errors or 'clean'}"
    except AssertionError:
        return "mount fails"


@pytest.mark.parametrize("name", CASES)
def test_item(image, name):
    tree, finds, edit, category = CASES[name]
    leaf, index = next(
        (block.logical, index)
        for block in image.blocks.values()
        if block.owner == tree and not block.level
        for index, (key, content) in enumerate(block.items())
        # The first key is also in the parent, and the other items of the last inode are in the next leaf.
        if finds(key, content) and (edit is not drop or index and (finds is not inode or index < block.count - 1))
    )
    with image.edited(leaf, lambda items: edit(items, index)):
        status, errors, summary = verify(image.path)
        checked = images.attempt("btrfs", "check", "--readonly", str(image.path), timeout=HANG)
        beside = mounted_verdict(image.path)
    print(f"{name}: verify {status}, check {checked.returncode}, {beside}")
    if category is None:
        assert status in (1, 2)
    else:
        assert status == 1 and summary["errors"][category] > 0, (errors, summary)
