"""vpc (vhd) images that no tool here makes: differencing ones, and odd headers."""

import struct

SECTOR = 512
UNUSED = 0xFFFF_FFFF
HEADER = 1024
FIXED, DYNAMIC, DIFFERENCING = 2, 3, 4


def checksum(data, at):
    """Returns a header whose checksum at `at` is valid."""
    data = bytearray(data)
    struct.pack_into(">I", data, at, 0)
    struct.pack_into(">I", data, at, ~sum(data) & 0xFFFF_FFFF)
    return bytes(data)


def footer(kind, size, uuid=bytes(16), creator=b"win ", geometry=(0, 0, 0)):
    following = (1 << 64) - 1 if kind == FIXED else SECTOR
    data = struct.pack(">8sIIQI4sI4s", b"conectix", 2, 0x10000, following, 1000, creator, 0x10000, b"Wi2k")
    data += struct.pack(">QQHBBII16s", size, size, *geometry, kind, 0, uuid)
    return checksum(data.ljust(SECTOR, b"\0"), 64)


def fixed(content, **kwargs):
    return content + footer(FIXED, len(content), **kwargs)


def sparse(size, blocks, block_size=4096, uuid=bytes(16), parent=None, **kwargs):
    """Returns a dynamic image, or a differencing one if it has a parent.

    `blocks` are (index, bitmap, content) in the order of the file. The bitmap has a bool for each sector.
    `parent` has the `uuid`, and any of `relative` (a locator), `absolute` and `name`.
    """
    kind = DYNAMIC if parent is None else DIFFERENCING
    entries = -(-size // block_size)
    header = bytearray(HEADER)
    struct.pack_into(">8sQQIII", header, 0, b"cxsparse", (1 << 64) - 1, SECTOR + HEADER, 0x10000, entries, block_size)
    table_size = -(-4 * entries // SECTOR) * SECTOR
    at = SECTOR + HEADER + table_size
    locators = b""
    if parent is not None:
        header[40:56] = parent["uuid"]
        name = parent.get("name", "").encode("utf-16-be")
        header[64 : 64 + len(name)] = name
        number = 0
        for key, code in (("absolute", b"W2ku"), ("relative", b"W2ru")):
            if key in parent:
                value = parent[key].encode("utf-16-le")
                struct.pack_into(">4sIIIQ", header, 576 + 24 * number, code, SECTOR, len(value), 0, at)
                locators += value.ljust(SECTOR, b"\0")
                at += SECTOR
                number += 1
    table = [UNUSED] * entries
    body = b""
    for index, bitmap, content in blocks:
        assert len(content) == block_size and len(bitmap) == block_size // SECTOR
        table[index] = (at + len(body)) // SECTOR
        body += pack(bitmap) + content
    end = footer(kind, size, uuid=uuid, **kwargs)
    packed = struct.pack(f">{entries}I", *table).ljust(table_size, b"\xff")
    return end + checksum(header, 36) + packed + locators + body + end


def pack(bitmap):
    """Returns a bitmap, the first sector in the highest bit, padded to sectors."""
    data = bytearray(-(-len(bitmap) // (8 * SECTOR)) * SECTOR)
    for index, is_stored in enumerate(bitmap):
        if is_stored:
            data[index // 8] |= 0x80 >> index % 8
    return bytes(data)
