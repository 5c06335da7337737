"""Images in formats that qemu-img reads and does not write, created from their known structure.

The tests compare them with `qemu-img convert -O raw` before blksum reads them.
"""

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
