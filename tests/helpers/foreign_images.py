"""Images in formats that qemu-img reads and does not write, created from their known structure.

The tests compare them with `qemu-img convert -O raw` before blksum reads them.
"""

import base64
import bz2
import struct
import zlib

SECTOR = 512


def cloop(content, block_size=65536):
    """A compressed loop device. Offsets of blocks, each of which is a zlib stream."""
    assert len(content) % block_size == 0
    blocks = [
        zlib.compress(content[start : start + block_size])
        for start in range(0, len(content), block_size)
    ]
    preamble = b"#!/bin/sh\n#V2.0 Format\nmodprobe cloop file=$0 && mount -r -t iso9660 /dev/cloop $1\n"
    head = preamble.ljust(128, b"\0") + struct.pack(">II", block_size, len(blocks))
    offset = len(head) + 8 * (len(blocks) + 1)
    offsets = []
    for block in blocks:
        offsets.append(offset)
        offset += len(block)
    offsets.append(offset)
    return head + struct.pack(f">{len(offsets)}Q", *offsets) + b"".join(blocks)


def bochs(content, extent_size=65536):
    """A growing image. A catalog of extents, each with a bitmap of its sectors and the sectors."""
    assert len(content) % SECTOR == 0
    sectors = extent_size // SECTOR
    bitmap_size = (sectors + 7) // 8
    catalog, data = [], bytearray()
    for start in range(0, len(content), extent_size):
        extent = content[start : start + extent_size].ljust(extent_size, b"\0")
        if not any(extent):
            catalog.append(0xFFFFFFFF)
            continue
        catalog.append(sum(entry != 0xFFFFFFFF for entry in catalog))
        bitmap = bytearray(bitmap_size)
        for sector in range(sectors):
            if any(extent[sector * SECTOR : (sector + 1) * SECTOR]):
                bitmap[sector // 8] |= 1 << sector % 8
        data += bytes(bitmap).ljust(SECTOR, b"\0") + extent
    # QEMU expects the extents directly after the catalog.
    catalog += [0xFFFFFFFF] * (-len(catalog) % (SECTOR // 4))
    head = b"Bochs Virtual HD Image".ljust(32, b"\0")
    head += b"Redolog".ljust(16, b"\0") + b"Growing".ljust(16, b"\0")
    head += struct.pack("<6IQ", 0x20000, 512, len(catalog), bitmap_size, extent_size, 0, len(content))
    return head.ljust(512, b"\0") + struct.pack(f"<{len(catalog)}I", *catalog) + data


ZERO, RAW, IGNORE, ZLIB, BZIP2, END = 0, 1, 2, 0x80000005, 0x80000006, 0xFFFFFFFF


def dmg(content, kinds=(ZLIB, RAW), chunk_size=65536):
    """A UDIF image. Chunks of alternating `kinds`, chunks of zeros, a plist that lists them, and a
    trailer."""
    assert len(content) % SECTOR == 0
    data, chunks = b"", []
    zeros = (ZERO, IGNORE)
    for number, start in enumerate(range(0, len(content), chunk_size)):
        chunk = content[start : start + chunk_size]
        kind = kinds[number % len(kinds)] if any(chunk) else zeros[number % 2]
        stored = {ZLIB: zlib.compress, BZIP2: bz2.compress, RAW: bytes}.get(kind, lambda _: b"")(chunk)
        sectors = (start // SECTOR, len(chunk) // SECTOR)
        chunks.append(struct.pack(">IIQQQQ", kind, 0, *sectors, len(data), len(stored)))
        data += stored
    total = len(content) // SECTOR
    chunks.append(struct.pack(">IIQQQQ", END, 0, total, 0, len(data), 0))
    mish = b"mish" + struct.pack(">IQQQII", 1, 0, total, 0, 0, 0) + bytes(24 + 136)
    mish += struct.pack(">I", len(chunks)) + b"".join(chunks)
    plist = (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict>'
        b"<key>resource-fork</key><dict><key>blkx</key><array><dict><key>Data</key><data>\n"
        + base64.b64encode(mish)
        + b"\n</data></dict></array></dict></dict></plist>\n"
    )
    koly = bytearray(512)
    koly[:4] = b"koly"
    struct.pack_into(">II", koly, 4, 4, 512)
    struct.pack_into(">QQ", koly, 24, 0, len(data))
    struct.pack_into(">QQ", koly, 0xD8, len(data), len(plist))
    struct.pack_into(">Q", koly, 0x1EC, total)
    return data + plist + bytes(koly)
