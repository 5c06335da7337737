"""Images that need no other program: raw and qcow2 files of data, written zeros or nothing, in memory if possible."""

import functools
import os
import random
import shutil
import struct
import tempfile

from . import expected, machine

PIECE = 1 << 20
CLUSTER = 64 << 10


def folder(size, wanted=None):
    """Returns a folder for files of `size` bytes, and the bytes that it and the memory have room for."""
    names = [wanted] if wanted else ["/dev/shm", tempfile.gettempdir()]
    names = [name for name in names if os.path.isdir(name)]
    # A half of the memory, because the programs and the system need some.
    room = {name: min(shutil.disk_usage(name).free, machine.memory() // 2) for name in names}
    # The first one that has room, or the one with the most.
    best = next((name for name in names if room[name] > size), max(names, key=room.get))
    return best, room[best]


def in_memory(folder):
    """Tells whether the files of `folder` are in memory. Elsewhere they are in the page cache, since they are new."""
    return folder == "/dev/shm"


def make(name, kind, size):
    """Writes an image in the format that the end of its name says. Kinds are data, zero (written) and hole."""
    with open(name, "wb") as file:
        if os.fspath(name).endswith(".qcow2"):
            write_qcow2(file, kind, size)
        else:
            write_content(file, kind, size)
            file.truncate(size)


def write_content(file, kind, size):
    if kind != "hole":
        content = piece(kind)
        for _ in range(size // PIECE):
            file.write(content)


def write_qcow2(file, kind, size):
    """Writes a qcow2 image of version 3 with 16-bit reference counts, whose clusters are in the order of the content."""
    entries, counts = CLUSTER // 8, CLUSTER // 2
    data = 0 if kind == "hole" else size // CLUSTER
    tables = -(-size // CLUSTER // entries)
    # Header, reference table and L1 table, of a cluster each. Then reference blocks, L2 tables and data.
    blocks = 1
    while blocks * counts < 3 + blocks + tables + data:
        blocks += 1
    if tables > entries or blocks > entries:
        raise ValueError("an image of this size needs tables of several clusters")
    used = 3 + blocks + tables + data
    first_table, first_data = 3 + blocks, 3 + blocks + tables

    def clusters(first, count, flags=1 << 63):
        return struct.pack(f">{count}Q", *(flags | (first + at) * CLUSTER for at in range(count)))

    header = struct.pack(">4sIQIIQIIQQIIQQQQII", b"QFI\xfb", 3, 0, 0, 16, size, 0, tables, 2 * CLUSTER,
                         CLUSTER, 1, 0, 0, 0, 0, 0, 4, 104)
    for part in (header, clusters(3, blocks, 0), clusters(first_table, tables)):
        file.write(part.ljust(CLUSTER, b"\0"))
    file.write((b"\0\1" * used).ljust(blocks * CLUSTER, b"\0"))
    file.write(clusters(first_data, data).ljust(tables * CLUSTER, b"\0"))
    write_content(file, kind, size)


@functools.lru_cache(maxsize=None)
def piece(kind):
    """Returns a MiB of content, which repeats."""
    return random.Random(1).randbytes(PIECE) if kind == "data" else bytes(PIECE)


def checksum(kind, size):
    """Returns the checksum that blksum prints by default, by hashlib."""
    return expected.streams("sha256", piece(kind), size // PIECE)
