"""Finds and changes tree blocks of btrfs file systems with crc32c on one device, and updates their
checksums."""

import contextlib
import struct

import filesystems

HEADER = 0x65
ITEM = 0x19
POINTER = 0x21
ROOT_ITEM = 132
LOG_TREE = 2**64 - 6

TABLE = []
for value in range(256):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    TABLE.append(value)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def summed(block):
    """Returns the block with its checksum updated."""
    return struct.pack("<I", crc32c(block[32:])) + block[4:]


class Block:
    """A tree block: the fields of its header, its items and its references."""

    def __init__(self, data):
        self.data = data
        self.logical, = struct.unpack_from("<Q", data, 0x30)
        self.generation, self.owner, self.count, self.level = struct.unpack_from("<QQIB", data, 0x50)

    def first_key(self):
        return self.data[HEADER : HEADER + 17] if self.count else None

    def items(self):
        """Yields the key and the content of each item of a leaf."""
        for slot in range(self.count):
            head = HEADER + slot * ITEM
            number, kind, offset, at, size = struct.unpack_from("<QBQII", self.data, head)
            yield (number, kind, offset), self.data[HEADER + at : HEADER + at + size]

    def references(self):
        """Yields the references to other blocks: slot, offset in the block, address, number of the tree
        for a root."""
        for slot in range(self.count):
            if self.level:
                at = HEADER + slot * POINTER + 17
                yield slot, at, struct.unpack_from("<Q", self.data, at)[0], None
                continue
            head = HEADER + slot * ITEM
            number, kind = struct.unpack_from("<QB", self.data, head)
            if kind == ROOT_ITEM and self.owner in (1, LOG_TREE):
                at = HEADER + struct.unpack_from("<I", self.data, head + 17)[0] + 176
                yield slot, at, struct.unpack_from("<Q", self.data, at)[0], number


def with_items(data, items):
    """Returns the leaf with its items replaced."""
    heads, contents = b"", b""
    at = len(data) - HEADER
    for (number, kind, offset), content in items:
        at -= len(content)
        heads += struct.pack("<QBQII", number, kind, offset, at, len(content))
        contents = bytes(content) + contents
    header = data[:0x60] + struct.pack("<I", len(items)) + data[0x64:HEADER]
    gap = len(data) - HEADER - len(heads) - len(contents)
    assert gap >= 0, "the items do not fit"
    return header + heads + bytes(gap) + contents


class Image:
    """The tree blocks of a file system in a raw file."""

    def __init__(self, path, node_size):
        self.path = path
        self.node_size = node_size
        self.layout = filesystems.Layout(path)
        self.bytes = path.read_bytes()
        self.superblock = self.bytes[64 << 10 :][:4096]
        self.fsid = self.superblock[0x20:0x30]
        # Holder (None for the superblock), slot, offset, address and tree of each reference.
        self.references = []
        self.blocks = {}
        for at, tree in ((0x50, 1), (0x58, 3), (0x60, LOG_TREE)):
            logical, = struct.unpack_from("<Q", self.superblock, at)
            if logical:
                self.walk(None, 0, at, logical, tree)

    def read(self, logical):
        place = self.layout.places(logical)[0]
        return Block(self.bytes[place : place + self.node_size])

    def walk(self, holder, slot, at, logical, tree):
        self.references.append((holder, slot, at, logical, tree))
        if logical in self.blocks:
            return
        block = self.blocks[logical] = self.read(logical)
        assert block.logical == logical, (block.logical, logical)
        for slot, at, child, number in block.references():
            below = LOG_TREE if tree == LOG_TREE else number or tree
            self.walk(logical, slot, at, child, below)

    def stale(self):
        """Yields blocks of earlier transactions that have no references and valid checksums."""
        for start, length, kind, stripes in self.layout.chunks:
            if kind.startswith("DATA|") or kind == "DATA":
                continue
            for logical in range(start, start + length, self.node_size):
                place = stripes[0] + logical - start
                data = self.bytes[place : place + self.node_size]
                if logical in self.blocks or data[0x20:0x30] != self.fsid:
                    continue
                if struct.unpack_from("<I", data)[0] == crc32c(data[32:]):
                    block = Block(data)
                    if block.logical == logical:
                        yield block

    def leaf_of(self, tree, *key):
        """Returns the leaf of a tree that has an item with a key that starts with `key`."""
        for block in self.blocks.values():
            if block.owner == tree and not block.level:
                if any(found[: len(key)] == key for found, _ in block.items()):
                    return block.logical
        raise AssertionError(f"no item {key} in tree {tree}")

    @contextlib.contextmanager
    def edited(self, leaf, edit):
        """Temporarily changes the items of a leaf, passed to `edit` as a list of keys and bytes."""

        def change(data):
            items = [[key, bytearray(content)] for key, content in Block(data).items()]
            edit(items)
            return with_items(data, items)

        with self.changed(leaf, change):
            yield

    @contextlib.contextmanager
    def redirected(self, holder, at, logical):
        """Temporarily points a reference to another address, with valid checksums."""
        address = struct.pack("<Q", logical)
        with self.changed(holder, lambda data: data[:at] + address + data[at + 8 :]):
            yield

    def changed(self, holder, change):
        """Temporarily changes a block, or all superblocks for None, with valid checksums."""
        if holder is None:
            places = [it for it in filesystems.SUPERBLOCKS if it + 4096 <= len(self.bytes)]
            return self.written(places, 4096, change)
        return self.written(self.layout.places(holder), self.node_size, change)

    def changed_superblock(self, copy, change):
        """Temporarily changes one superblock, with a valid checksum."""
        return self.written([filesystems.SUPERBLOCKS[copy]], 4096, change)

    @contextlib.contextmanager
    def written(self, places, size, change):
        with open(self.path, "r+b") as file:
            for place in places:
                file.seek(place)
                file.write(summed(change(self.bytes[place : place + size])))
            file.flush()
            try:
                yield
            finally:
                for place in places:
                    file.seek(place)
                    file.write(self.bytes[place : place + size])
