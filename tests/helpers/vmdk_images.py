"""VMware disks that qemu-img does not write, created after "Virtual Disk Format 5.0" of VMware.

The content of a disk is given as a list of grains: bytes, `ZERO` for a grain of zeros that hides the
parent, or `None` for a grain that is not stored.
"""

import struct
import zlib

SECTOR = 512
GRAIN = 128
ENTRIES = 512
NO_PARENT = 0xFFFFFFFF
AT_END = 0xFFFFFFFF_FFFFFFFF
ZERO = "zero"

# Flags of hosted sparse files.
NEWLINES, REDUNDANT, ZERO_GRAINS, COMPRESSED, MARKERS = 1, 2, 4, 1 << 16, 1 << 17

END_MARKER, TABLE_MARKER, DIRECTORY_MARKER, FOOTER_MARKER = range(4)


def grains_of(content, grain=GRAIN):
    """Cuts content into grains. Grains of zeros are not stored."""
    size = grain * SECTOR
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    return [piece if any(piece) else None for piece in pieces]


def descriptor(extents, kind, cid=0x1234ABCD, parent_cid=NO_PARENT, parent=None, more=""):
    """Returns the text of a disk. `extents` are its lines."""
    hint = f'parentFileNameHint="{parent}"\n' if parent else ""
    return (
        "# Disk DescriptorFile\nversion=1\nencoding=\"UTF-8\"\n"
        f"CID={cid:08x}\nparentCID={parent_cid:08x}\nisNativeSnapshot=\"no\"\n"
        f'createType="{kind}"\n{hint}\n# Extent description\n'
        + "\n".join(extents)
        + '\n\n# The Disk Data Base\n#DDB\n\nddb.virtualHWVersion = "14"\n'
        'ddb.longContentID = "c08f47ba1ea6a0e9bc0d1f7c1234abcd"\n'
        'ddb.geometry.sectors = "63"\nddb.adapterType = "lsilogic"\n' + more
    ).encode()


def pad(data, unit=SECTOR):
    return data + bytes(-len(data) % unit)


class Image(bytearray):
    """A file that grows by whole sectors."""

    def add(self, data):
        """Appends bytes, and returns their sector."""
        sector = len(self) // SECTOR
        self += pad(bytes(data))
        return sector


def header(capacity, grain, directory, redundant=0, flags=NEWLINES, version=1, text_sectors=0,
           overhead=0, compression=0, entries=ENTRIES, unclean=0):
    """Returns the header of a hosted sparse file."""
    fields = struct.pack(
        "<4sIIQQQQIQQQB4sH",
        *(b"KDMV", version, flags, capacity, grain, 1 if text_sectors else 0, text_sectors, entries),
        *(redundant, directory, overhead, unclean, b"\n \r\n", compression),
    )
    return fields.ljust(SECTOR, b"\0")


def sparse(grains, capacity, text=None, grain=GRAIN, redundant=True, order=None, entries=ENTRIES,
           all_tables=True, **fields):
    """A sparse file of hosted products: two directories, two sets of tables, grains in any order."""
    tables = -(-capacity // (grain * entries))
    table_sectors = -(-entries * 4 // SECTOR)
    directory_sectors = -(-tables * 4 // SECTOR)
    text_sectors = 20 if text else 0
    words = [0] * (tables * entries)
    used = [all_tables or any(grains[i * entries : (i + 1) * entries]) for i in range(tables)]
    starts, at = [], 1 + text_sectors
    for _ in range(2 if redundant else 1):
        starts.append((at, at + directory_sectors))
        at += directory_sectors + sum(used) * table_sectors
    overhead = -(-at // grain) * grain
    data = bytearray()
    for index in order if order is not None else range(len(grains)):
        if grains[index] == ZERO:
            words[index] = 1
        elif grains[index] is not None:
            words[index] = overhead + len(data) // SECTOR
            data += grains[index].ljust(grain * SECTOR, b"\0")
    flags = NEWLINES | (REDUNDANT if redundant else 0) | (ZERO_GRAINS if ZERO in grains else 0)
    fields = {"flags": flags, "version": 2 if ZERO in grains else 1} | fields
    image = Image()
    image.add(header(
        *(capacity, grain, starts[-1][0], starts[0][0] if redundant else 0),
        text_sectors=text_sectors, overhead=overhead, entries=entries, **fields,
    ))
    if text:
        image.add(text.ljust(text_sectors * SECTOR, b"\0"))
    for directory, first in starts:
        places = iter(range(first, at, table_sectors))
        image.add(struct.pack(f"<{tables}I", *(next(places) if use else 0 for use in used)))
        for table in range(tables):
            if used[table]:
                image.add(struct.pack(f"<{entries}I", *words[table * entries :][:entries]))
    image += bytes(overhead * SECTOR - len(image))
    return bytes(image + data)


def marker(value, size, kind):
    return struct.pack("<QII", value, size, kind).ljust(SECTOR, b"\0")


def stream(grains, capacity, text, grain=GRAIN, order=None, at_end=True, level=6, version=3, lba=None,
           short_end=False, size=None):
    """A stream as VMware writes it to an OVA: grains with markers, tables, directory, footer, end."""
    flags = NEWLINES | COMPRESSED | MARKERS
    place = dict(text_sectors=20, overhead=GRAIN, compression=1, flags=flags, version=version)
    image = Image()
    image.add(header(capacity, grain, AT_END, **place))
    image.add(text.ljust(20 * SECTOR, b"\0"))
    image += bytes(GRAIN * SECTOR - len(image))
    tables = -(-capacity // (grain * ENTRIES))
    words = [0] * (tables * ENTRIES)
    for index in order if order is not None else range(len(grains)):
        piece = grains[index]
        if piece is None:
            continue
        if not short_end:
            piece = piece.ljust(grain * SECTOR, b"\0")
        packed = zlib.compress(piece, level)
        first = index * grain if lba is None else lba(index * grain)
        length = len(packed) if size is None else size(len(packed))
        words[index] = image.add(struct.pack("<QI", first, length) + packed)
    places = []
    for table in range(tables):
        part = words[table * ENTRIES :][:ENTRIES]
        if any(part):
            image.add(marker(ENTRIES * 4 // SECTOR, 0, TABLE_MARKER))
            places.append(image.add(struct.pack(f"<{ENTRIES}I", *part)))
        else:
            places.append(0)
    image.add(marker(-(-tables * 4 // SECTOR), 0, DIRECTORY_MARKER))
    directory = image.add(struct.pack(f"<{tables}I", *places))
    image.add(marker(1, 0, FOOTER_MARKER))
    image.add(header(capacity, grain, directory, **place))
    image.add(marker(0, 0, END_MARKER))
    if not at_end:
        image[:SECTOR] = header(capacity, grain, directory, **place)
    return bytes(image)


def cowd(grains, capacity, grain=1, unclean=0, version=1, order=None):
    """A sparse file of ESX: one directory, tables of 4096 entries, grains of a sector."""
    tables = -(-capacity // (grain * 4096))
    image = Image()
    image += bytes(4 * SECTOR)
    directory = image.add(bytes(4 * tables))
    words = [0] * (tables * 4096)
    used = [any(grains[i * 4096 : (i + 1) * 4096]) for i in range(tables)]
    places = [image.add(bytes(4 * 4096)) if use else 0 for use in used]
    for index in order if order is not None else range(len(grains)):
        if grains[index] is not None:
            words[index] = image.add(grains[index].ljust(grain * SECTOR, b"\0"))
    fields = struct.pack("<4s10I", b"COWD", version, 3, capacity, grain, directory, tables,
                         len(image) // SECTOR, 1, 255, 63)
    image[: len(fields)] = fields
    struct.pack_into("<I", image, 1648, unclean)
    struct.pack_into(f"<{tables}I", image, directory * SECTOR, *places)
    for table, at in enumerate(places):
        if at:
            struct.pack_into("<4096I", image, at * SECTOR, *words[table * 4096 :][:4096])
    return bytes(image)


def se_sparse(grains, capacity, journal=0, order=None, unmapped=False):
    """A sparse file of ESXi: tables and grains are numbered from the start of their areas."""
    tables = -(-capacity // 32768)
    used = [index for index in range(tables) if any(grains[index * 4096 : (index + 1) * 4096])]
    image = Image()
    image += bytes(2 * SECTOR)
    directory_sectors = -(-tables * 8 // SECTOR)
    directory = [0] * (directory_sectors * 64)
    for number, index in enumerate(used):
        directory[index] = 0x10000000_00000000 | number
    directory_at = image.add(struct.pack(f"<{len(directory)}Q", *directory))
    tables_at = len(image) // SECTOR
    words, data = [0] * (tables * 4096), bytearray()
    for index in order if order is not None else range(len(grains)):
        if grains[index] == ZERO:
            words[index] = (0x1 if unmapped else 0x2) << 60
        elif grains[index] is not None:
            number = len(data) // 4096
            words[index] = 0x3 << 60 | (number & 0xFFF) << 48 | number >> 12
            data += grains[index].ljust(4096, b"\0")
    for index in used:
        image.add(struct.pack("<4096Q", *words[index * 4096 :][:4096]))
    grains_at = len(image) // SECTOR
    image += data
    fields = [0xCAFEBABE, 0x2_0000_0001, capacity, 8, 64, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0,
              directory_at, directory_sectors, tables_at, len(used) * 64, 0, 0, 0, 0,
              grains_at, len(data) // SECTOR]
    image[: 8 * len(fields)] = struct.pack("<26Q", *fields)
    image[SECTOR : SECTOR + 32] = struct.pack("<4Q", 0xCAFECAFE, 0, 0, journal)
    return bytes(image)
