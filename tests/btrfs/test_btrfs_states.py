"""blkhash btrfs verify: states that healthy file systems have for a while or because of the program that made
them, and damage that resembles them."""

import contextlib
import os
import random
import shutil
import struct
import subprocess

import pytest

import filesystems
import images
from btrfs import assert_healthy, verify
from btrfs_blocks import Image
from commands import HANG

pytestmark = [pytest.mark.root, pytest.mark.slow]

MIB = 1 << 20
NODE = 16384

ROOTS, FILES, CHECKSUMS, UUIDS, FREE = 1, 5, 7, 9, 10
INODE, INODE_REF, ORPHAN, DIR_ITEM, DIR_INDEX, EXTENT_DATA = 1, 12, 48, 84, 96, 108
ROOT, FREE_INFO, FREE_EXTENT = 132, 198, 199
ORPHANS = 2**64 - 5
NODATASUM = 1


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A few files, so that one leaf has them. A file and a folder are removed and still open."""
    folder = tmp_path_factory.mktemp("states")
    path, copy = folder / "fs", folder / "copy"
    options = ["--nodesize", str(NODE), "-m", "dup", "-d", "single", "-R", "free-space-tree"]
    filesystems.make([path], *options, size=128 * MIB)
    with filesystems.mounted([path], "rw,nodiscard,commit=300") as root, contextlib.ExitStack() as stack:
        for name in ("one", "two", "open"):
            (root / name).write_bytes(name.encode() * 10_000)
        (root / "small").write_bytes(b"s" * 100)
        (root / "folder").mkdir()
        for name in ("open", "folder"):
            stack.callback(os.close, os.open(root / name, os.O_RDONLY))
        filesystems.sync(root)
        (root / "open").unlink()
        (root / "folder").rmdir()
        images.run("fsfreeze", "--freeze", str(root))
        try:
            shutil.copy(path, copy)
        finally:
            images.run("fsfreeze", "--unfreeze", str(root))
    return Image(copy, NODE)


def number_of(image, kind):
    """Returns the number of the inode that is removed and of this kind of file."""
    leaf = image.blocks[image.leaf_of(FILES, ORPHANS, ORPHAN)]
    orphans = [key[2] for key, _ in leaf.items() if key[:2] == (ORPHANS, ORPHAN)]
    modes = {key[0]: struct.unpack_from("<I", content, 52)[0] for key, content in leaf.items() if key[1] == INODE}
    return next(number for number in orphans if modes[number] >> 12 == kind)


def content_of(items, *key):
    return next(content for found, content in items if found[: len(key)] == key)


def insert(items, key, content=b""):
    items.append([key, bytearray(content)])
    items.sort(key=lambda item: item[0])


def assert_agreed(image):
    """Asserts that neither `btrfs check` nor verify finds an error."""
    checked = images.attempt("btrfs", "check", "--readonly", str(image.path), timeout=HANG)
    assert checked.returncode == 0, checked
    assert_healthy(image.path)


def assert_found(image, category, reason):
    status, errors, summary = verify(image.path)
    assert status == 1 and summary["errors"][category] > 0, (errors, summary)
    assert any(reason in it["problem"] for it in errors), errors


def test_open_and_removed(image):
    assert number_of(image, 0o10) != number_of(image, 0o4)
    assert_agreed(image)


def test_uuid_tree_with_a_folder(image):
    """As mkfs.btrfs 4.16 to 4.19 made it."""
    inode = content_of([(k, c) for b in image.blocks.values() if b.owner == FILES for k, c in b.items()], 256, INODE, 0)

    def add_folder(items):
        insert(items, (256, INODE, 0), inode)
        insert(items, (256, INODE_REF, 256), struct.pack("<QH", 0, 2) + b"..")

    def name_folder(items):
        struct.pack_into("<Q", content_of(items, UUIDS, ROOT), 168, 256)

    leaf, roots = image.leaf_of(UUIDS), image.leaf_of(ROOTS, UUIDS, ROOT)
    with image.edited(roots, name_folder):
        assert_agreed(image)
        with image.edited(leaf, add_folder):
            assert_agreed(image)
        with image.edited(leaf, lambda items: insert(items, (257, INODE, 0), inode)):
            assert_found(image, "tree_item", "no such item belongs into the UUID tree")


def test_flag_of_relocation(image):
    """Only blocks of trees that a balance copies may have the flag."""
    with image.changed(image.leaf_of(CHECKSUMS), lambda data: data[:0x38] + bytes([data[0x38] | 2]) + data[0x39:]):
        assert_found(image, "tree_header", "header has the flags")


def test_file_in_removal(image):
    """The removal of a file that has begun took extents and left the inode as it was."""
    number = number_of(image, 0o10)
    leaf = image.leaf_of(FILES, number, INODE)

    def count(value):
        def edit(items):
            inode = content_of(items, number, INODE)
            struct.pack_into("<Q", inode, 24, struct.unpack_from("<Q", inode, 24)[0] + value)

        return edit

    with image.edited(leaf, count(MIB)):
        assert_agreed(image)
    with image.edited(leaf, count(-4096)):
        assert_found(image, "contradiction", "its extents have")

    def without_orphan(items):
        count(MIB)(items)
        items[:] = [item for item in items if item[0] != (ORPHANS, ORPHAN, number)]

    with image.edited(leaf, without_orphan):
        assert_found(image, "contradiction", "its extents have")


def test_folder_in_removal(image):
    """Names in a removed folder are removed with it, and their files may be gone before."""
    number = number_of(image, 0o4)
    leaf = image.leaf_of(FILES, number, INODE)
    entry = struct.pack("<QBQQHHB", 999, INODE, 0, 7, 0, 4, 1) + b"gone"

    def insert_entry(items):
        insert(items, (number, DIR_INDEX, 2), entry)

    def without_orphan(items):
        insert_entry(items)
        items[:] = [item for item in items if item[0] != (ORPHANS, ORPHAN, number)]

    with image.edited(leaf, insert_entry):
        assert_agreed(image)
    with image.edited(leaf, without_orphan):
        assert_found(image, "contradiction", "a folder names it, and it is not there")


def test_name_twice(image):
    """A mount shows the first file under both names."""
    leaf = image.leaf_of(FILES, 256, INODE)

    def rename_two(items):
        for key, content in items:
            if key[1] in (INODE_REF, DIR_INDEX, DIR_ITEM) and content[-3:] == b"two":
                content[-3:] = b"one"
        first, second = [item for item in items if item[0][1] == DIR_ITEM and item[1][-3:] == b"one"]
        hashed = next(item for item in (first, second) if item[1][:8] == struct.pack("<Q", 257))
        other = second if hashed is first else first
        hashed[1].extend(other[1])
        items.remove(other)

    with image.edited(leaf, rename_two):
        assert_found(image, "tree_item", "has a name twice")


def test_free_space_without_block_group(image):
    """mkfs.btrfs up to 6.16 leaves the one of its first block groups, which it removes."""
    leaf = image.leaf_of(FREE)
    mkfs = [key for key, _ in image.blocks[leaf].items() if key[0] == MIB]
    start = min(chunk[0] for chunk in image.layout.chunks)
    assert start > 12 * MIB

    def as_mkfs(items):
        for key in [(MIB, FREE_INFO, 4 * MIB), (MIB, FREE_EXTENT, 4 * MIB)]:
            if key not in mkfs:
                insert(items, key, struct.pack("<II", 1, 0) if key[1] == FREE_INFO else b"")

    with image.edited(leaf, as_mkfs):
        assert_agreed(image)

    def nowhere(items):
        insert(items, (1 << 40, FREE_INFO, 8 * MIB), struct.pack("<II", 1, 0))
        insert(items, (1 << 40, FREE_EXTENT, 8 * MIB))

    with image.edited(leaf, nowhere):
        assert_found(image, "contradiction", "where there is no block group")
    with image.edited(leaf, lambda items: insert(items, (start, FREE_INFO, 4096), struct.pack("<II", 0, 0))):
        assert_found(image, "contradiction", "a block group of it that is not there")


def test_compressed_without_checksums(image):
    """`btrfs check` objects to compressed data without checksums, even if the inode has the flag for that."""
    files = list(image.blocks[image.leaf_of(FILES, 256, INODE)].items())
    number = next(key[0] for key, _ in files if key[1] == EXTENT_DATA)
    address, = struct.unpack_from("<Q", content_of(files, number, EXTENT_DATA), 21)

    def edit(compression):
        def edit(items):
            struct.pack_into("<Q", content_of(items, number, INODE), 64, NODATASUM)
            struct.pack_into("<B", content_of(items, number, EXTENT_DATA), 16, compression)

        return edit

    def is_found():
        status, errors, _ = verify(image.path)
        assert status == 1 and {it["category"] for it in errors} == {"no_checksum"}, errors
        return any(it["logical"] <= address < it["logical"] + it["length"] for it in errors)

    # The other files still need their checksums.
    with image.edited(image.leaf_of(CHECKSUMS), lambda items: items.clear()):
        with image.edited(image.leaf_of(FILES, number, INODE), edit(0)):
            assert not is_found()
        with image.edited(image.leaf_of(FILES, number, INODE), edit(1)):
            assert is_found()


@pytest.mark.parametrize("size, reason", [(0, "is empty"), (4096, None), (5000, "is 5000, at most 4096")])
def test_inline_extent_of_another_size(image, size, reason):
    """mkfs.btrfs -r before 4.16 stored files of several sectors inline. A mount has zeros after the first one."""
    files = list(image.blocks[image.leaf_of(FILES, 256, INODE)].items())
    number = next(key[0] for key, content in files if key[1] == EXTENT_DATA and content[20] == 0)

    def edit(items):
        struct.pack_into("<QQ", content_of(items, number, INODE), 16, size, size)
        content = content_of(items, number, EXTENT_DATA)
        struct.pack_into("<Q", content, 8, size)
        content[21:] = b"s" * size

    with image.edited(image.leaf_of(FILES, number, INODE), edit):
        if reason:
            checked = images.attempt("btrfs", "check", "--readonly", str(image.path), timeout=HANG)
            assert checked.returncode != 0
            assert_found(image, "tree_item", reason)
        else:
            assert_healthy(image.path)


def test_between_superblocks(image):
    """At the end of a commit, the first superblock is written before the copies."""
    generation, = struct.unpack_from("<Q", image.superblock, 0x48)

    def older(by):
        return lambda data: data[:0x48] + struct.pack("<Q", generation - by) + data[0x50:]

    with image.changed_superblock(1, older(1)):
        assert_agreed(image)
    with image.changed_superblock(1, older(2)):
        assert_found(image, "superblock", f"has generation {generation - 2}")
    # A mount would lose a transaction.
    with image.changed_superblock(0, older(1)):
        assert_found(image, "superblock", f"has generation {generation - 1}")

    # No transaction changes these: sizes of blocks, number and UUID of the device.
    for at, form, value in ((0x94, "<II", (32768, 32768)), (0xC9, "<Q", (7,)), (0x10B, "<Q", (7,))):
        field = struct.pack(form, *value)

        def of_another(data):
            return data[:at] + field + data[at + len(field) :]

        with image.changed_superblock(1, of_another):
            assert_found(image, "superblock", "differs from the newest one")
        with image.changed_superblock(1, lambda data: of_another(older(1)(data))):
            assert_found(image, "superblock", "differs from the newest one")
    # These may change: label, size and number of devices, and the device 0 after it replaced another one.
    for at, form, value in ((0x12B, "<Q", 7), (0x70, "<Q", 1 << 40), (0x88, "<Q", 7), (0xC9, "<Q", 0)):
        field = struct.pack(form, value)
        with image.changed_superblock(1, lambda data: older(1)(data[:at] + field + data[at + len(field) :])):
            assert_agreed(image)


def test_between_superblocks_of_devices(workdir):
    """A mount uses the newest of the first superblocks of all devices."""
    devices, copies = [workdir / "one", workdir / "two"], [workdir / "copy1", workdir / "copy2"]
    filesystems.make(devices, "-d", "raid1", "-m", "raid1")

    def superblocks(path):
        with open(path, "rb") as file:
            return [file.seek(offset) and file.read(4096) for offset in filesystems.SUPERBLOCKS[:2]]

    def put(path, superblocks):
        with open(path, "r+b") as file:
            for offset, superblock in zip(filesystems.SUPERBLOCKS, superblocks):
                file.seek(offset)
                file.write(superblock)

    with filesystems.mounted(devices, "rw,noatime,nodiscard,commit=300") as root:
        for last in range(20):
            before = [superblocks(path) for path in devices]
            (root / f"file{last}").write_bytes(bytes([last]) * 5000)
            filesystems.sync(root)
            after = [superblocks(path) for path in devices]
            generations = [struct.unpack_from("<Q", it[0][0], 0x48)[0] for it in (before, after)]
            if generations[0] + 1 == generations[1]:
                break
        for path, copy in zip(devices, copies):
            images.run("cp", "--sparse=always", str(path), str(copy))
    assert generations[0] + 1 == generations[1]
    for number in (0, 1):
        put(copies[number], before[number])
        assert_healthy(*copies)
        with filesystems.mounted(copies, "ro") as root:
            assert (root / f"file{last}").read_bytes() == bytes([last]) * 5000
        put(copies[number], after[number])
    # A mount would lose a transaction.
    for number in (0, 1):
        put(copies[number], [before[number][0], after[number][1]])
    status, errors, _ = verify(*copies)
    assert status == 1 and {it["category"] for it in errors} == {"superblock"}, errors
    assert [it["copy"] for it in errors] == [0, 0], errors
    # The copy of another device.
    for number in (0, 1):
        put(copies[number], after[number])
    put(copies[1], [after[1][0], after[0][1]])
    status, errors, _ = verify(*copies)
    assert status == 1 and [it["copy"] for it in errors] == [1], errors
    assert "differs from the newest one, from byte 201 of it on" in errors[0]["problem"], errors

def test_copied_during_balance(workdir):
    """A balance copies trees. Each has the root item and the owners of its original."""
    host = workdir / "host"
    filesystems.make([host], size=3072 * MIB)
    with filesystems.mounted([host], "rw,nodiscard") as below:
        path, copy = below / "fs", below / "copy"
        filesystems.make([path], "--nodesize", "4k", size=512 * MIB)
        with filesystems.mounted([path], "rw,nodiscard,commit=1") as root:
            source = random.Random(11)
            for number in range(1500):
                (root / f"file{number}").write_bytes(source.randbytes(source.choice([100, 3000, 9000])))
            filesystems.sync(root)
            for number in range(3):
                images.run("btrfs", "subvolume", "snapshot", str(root), str(root / f"snapshot{number}"))
                (root / f"file{number}").unlink()
            relocated = 0
            for _ in range(200):
                command = ["btrfs", "balance", "start", "-m", str(root)]
                balance = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while balance.poll() is None and relocated < 2:
                    images.run("cp", "--reflink=always", str(path), str(copy))
                    if "TREE_RELOC ROOT_ITEM" in filesystems.dump(copy, "root"):
                        relocated += 1
                        assert_healthy(copy)
                balance.wait(timeout=HANG)
                if relocated >= 2:
                    return
    raise AssertionError(f"only {relocated} copies have trees in relocation")
