"""Apple disk images (UDIF), written by their known structure: runs, tables (mish), a property list and a trailer (koly)."""

import bz2
import dataclasses
import lzma
import plistlib
import struct
import zlib

SECTOR = 512
ZERO, RAW, IGNORE = 0, 1, 2
ADC, ZLIB, BZIP2, LZFSE, XZ = range(0x80000004, 0x80000009)
COMMENT, END = 0x7FFFFFFE, 0xFFFFFFFF


def adc(content):
    """Apple Data Compression: copies of the last place with the same three bytes, and literals."""
    out, literals, places, at = bytearray(), bytearray(), {}, 0

    def flush():
        for start in range(0, len(literals), 128):
            piece = literals[start : start + 128]
            out.append(0x80 | len(piece) - 1)
            out.extend(piece)
        literals.clear()

    while at < len(content):
        before = places.get(content[at : at + 3])
        places[content[at : at + 3]] = at
        distance = at - before - 1 if before is not None else 1 << 16
        length = 0
        while distance < 1 << 16 and at + length < len(content) and length < 67:
            if content[at + length] != content[before + length]:
                break
            length += 1
        if distance < 1 << 10 and 3 <= length <= 18:
            flush()
            out += bytes([length - 3 << 2 | distance >> 8, distance & 0xFF])
        elif length >= 4:
            flush()
            out += bytes([0x40 | length - 4]) + struct.pack(">H", distance)
        else:
            literals.append(content[at])
            length = 1
        at += length
    flush()
    return bytes(out)


def lzfse(content):
    """The reference implementation, which macOS uses."""
    import liblzfse

    return liblzfse.compress(content)


COMPRESS = {
    ZERO: lambda _: b"",
    IGNORE: lambda _: b"",
    RAW: bytes,
    ADC: adc,
    ZLIB: zlib.compress,
    BZIP2: bz2.compress,
    LZFSE: lzfse,
    XZ: lambda content: lzma.compress(content, preset=0),
}


@dataclasses.dataclass
class Run:
    """Sectors that are stored in one way. Numbers that are given replace those of the content."""

    kind: int
    content: bytes = b""
    stored: bytes | None = None
    sectors: int | None = None
    length: int | None = None

    def __post_init__(self):
        if self.stored is None:
            self.stored = COMPRESS[self.kind](self.content)
        if self.sectors is None:
            self.sectors = len(self.content) // SECTOR
        if self.length is None:
            self.length = len(self.stored)


def sum_of(crc, kind=2, size=32):
    """A checksum of a type, as it is stored."""
    if crc is None:
        return bytes(136)
    return struct.pack(">III", kind, size, crc).ljust(136, b"\0")


@dataclasses.dataclass
class Table:
    runs: list
    name: str = "disk image (Apple_HFS : 1)"
    # Its CRC-32, or None for no checksum.
    crc: object = "right"
    kind: int = 2
    has_end: bool = True
    # Where its runs begin, apart from the start of the data fork.
    data: int = 0
    # Its first sector, and its number of sectors.
    start: int | None = None
    sectors: int | None = None

    @property
    def content(self):
        return b"".join(run.content for run in self.runs)

    def checksum(self):
        """hdiutil leaves out what is ignored."""
        if self.crc == "right":
            return zlib.crc32(b"".join(run.content for run in self.runs if run.kind != IGNORE))
        return self.crc

    def bytes(self, start, blob):
        """The table, with the data of its runs behind `blob`."""
        entries, sector = [], 0
        for run in self.runs:
            entries.append(struct.pack(">IIQQQQ", run.kind, 0, sector, run.sectors, len(blob) - self.data, run.length))
            sector += run.sectors
            blob += run.stored
        if self.has_end:
            entries.append(struct.pack(">IIQQQQ", END, 0, sector, 0, len(blob) - self.data, 0))
        start = start if self.start is None else self.start
        sectors = sector if self.sectors is None else self.sectors
        head = b"mish" + struct.pack(">IQQQII", 1, start, sectors, self.data, 2056, 0) + bytes(24)
        return head + sum_of(self.checksum(), self.kind) + struct.pack(">I", len(entries)) + b"".join(entries)


def resource_fork(tables):
    """A fork with resources of the type blkx, and one of another type."""
    datas = [*tables, b"other"]
    data = b"".join(struct.pack(">I", len(it)) + it for it in datas)
    kinds = struct.pack(">HHHH", 0, 0, 0, 0)
    return struct.pack(">IIII", 256, 256 + len(data), len(data), len(kinds)).ljust(256, b"\0") + data + kinds


def image(
    tables,
    before=b"",
    lists=("plist",),
    plist=None,
    data_crc="right",
    master_crc="right",
    sectors=None,
    segments=1,
    version=4,
    sum_kind=2,
):
    """An image of tables. `lists` says where they are listed: plist, fork or both."""
    blob, made, sector = bytearray(), [], 0
    for table in tables:
        made.append(table.bytes(sector, blob))
        sector += sum(run.sectors for run in table.runs)
    entries = [
        {"Attributes": "0x0050", "CFName": table.name, "Data": data, "ID": str(number - 1), "Name": table.name}
        for number, (table, data) in enumerate(zip(tables, made, strict=True))
    ]
    if plist is None:
        plst = [{"Attributes": "0x0050", "Data": bytes(1032), "ID": "0", "Name": ""}]
        plist = plistlib.dumps({"resource-fork": {"blkx": entries, "plst": plst}})
    plist = plist if "plist" in lists else b""
    fork = resource_fork(made) if "fork" in lists else b""
    if data_crc == "right":
        data_crc = zlib.crc32(blob)
    if master_crc == "right":
        sums = [table.checksum() for table in tables if table.kind == 2]
        master_crc = zlib.crc32(b"".join(struct.pack(">I", it) for it in sums if it is not None))
    start = len(before)
    ends = [start + len(blob), start + len(blob) + len(fork)]
    koly = b"koly" + struct.pack(">III", version, 512, 1)
    koly += struct.pack(">QQQQQ", 0, start, len(blob), ends[0] if fork else 0, len(fork))
    koly += struct.pack(">II", min(segments, 1), segments) + bytes(16) + sum_of(data_crc, sum_kind)
    koly += struct.pack(">QQ", ends[1] if plist else 0, len(plist)) + bytes(120) + sum_of(master_crc, sum_kind)
    koly += struct.pack(">IQ", 1, sector if sectors is None else sectors)
    return before + bytes(blob) + fork + plist + koly.ljust(512, b"\0")


def dmg(content, kinds=(ZLIB, RAW), chunk_size=65536):
    """An image of one table, with runs of alternating kinds, and of zeros."""
    runs = []
    for number, start in enumerate(range(0, len(content), chunk_size)):
        chunk = content[start : start + chunk_size]
        kind = kinds[number % len(kinds)] if any(chunk) else (ZERO, IGNORE)[number % 2]
        runs.append(Run(kind, chunk))
    return image([Table(runs)])


def words(rng, size):
    """Content that compresses well."""
    out = bytearray()
    while len(out) < size:
        out += rng.choice((rng.randbytes(rng.randrange(1, 40)), b"disk image", bytes(rng.randrange(1, 300))))
        if len(out) > 8 and rng.random() < 0.5:
            start = rng.randrange(len(out))
            out += out[start : start + rng.randrange(1, 2000)]
    return bytes(out[:size])


def made_up(rng, kinds, largest=60):
    """An image of random tables and runs. Returns it and its content."""
    tables = []
    for number in range(rng.randrange(1, 4)):
        runs = []
        for _ in range(rng.randrange(1, 8)):
            kind = rng.choice(kinds)
            size = rng.randrange(1, largest) * SECTOR
            content = bytes(size) if kind in (ZERO, IGNORE) else rng.choice((words, words, type(rng).randbytes))(rng, size)
            runs.append(Run(kind, content))
            if rng.random() < 0.1:
                runs.append(Run(COMMENT, stored=b"comment"[: rng.randrange(8)], sectors=0))
        crc = rng.choice(("right", "right", None))
        tables.append(Table(runs, f"part {number} <&> (Apple_HFS : {number})", crc=crc, has_end=rng.random() < 0.9))
    lists = rng.choice((("plist",), ("plist",), ("plist",), ("fork",), ("plist", "fork")))
    options = {"before": rng.randbytes(rng.choice((0, 0, 512, 100))), "lists": lists}
    options |= {"data_crc": rng.choice(("right", None)), "master_crc": rng.choice(("right", None))}
    return image(tables, **options), b"".join(table.content for table in tables)
