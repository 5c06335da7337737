"""Archives that are odd in one or several ways, and what GNU tar and Python's tarfile extract from them."""

import io
import subprocess
import tarfile

BLOCK = 512
NAMES = ["d", "e"]
DESCRIPTOR = b'<E><File id="a" href="d"/><File id="b" href="e"/><Disk fileRef="a"/><Disk fileRef="b"/></E>'


def header(name, size, kind=b"0", magic=b"ustar\x0000", prefix=b"", size_field=None, signed=False):
    """Returns a header with the right checksum."""
    block = bytearray(BLOCK)
    block[: min(len(name), 100)] = name[:100]
    block[100:108], block[108:116], block[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
    block[124:136] = size_field if size_field is not None else b"%011o\0" % size
    block[136:148] = b"00000000000\0"
    block[156:157] = kind
    block[257:265] = magic
    block[345 : 345 + len(prefix)] = prefix
    return seal(block, signed)


def seal(block, signed=False):
    block = bytearray(block)
    block[148:156] = b" " * 8
    total = sum(byte - 256 if signed and byte > 127 else byte for byte in block)
    block[148:156] = b"%06o\0 " % max(total, 0)
    return bytes(block)


def padded(content):
    return content + bytes(-len(content) % BLOCK)


def member(name, content, **more):
    return header(name, len(content), **more) + padded(content)


def record(key, value):
    length = len(key) + len(value) + 3
    while len(b"%d" % length) + len(key) + len(value) + 3 != length:
        length = len(b"%d" % length) + len(key) + len(value) + 3
    return b"%d %s=%s\n" % (length, key, value)


def odd_parts(rng):
    """Returns members and headers, one of each kind."""
    evil = member(rng.choice([b"d", b"e", b"./d", b"z"]), rng.randbytes(rng.choice([0, 5, 512])))
    size = rng.choice([0, 1, len(evil), len(evil) - 100])
    name = rng.choice([b"d", b"e", b"./d", b"z", b"e/", b"d\0x", b"\xff\xfe", b"d" * 120])
    records = [
        record(b"size", rng.choice([b"0", b"512", b"%d" % len(evil), b"+5", b" 5", b"5 ", b"", b"x", b"1" * 30])),
        record(b"path", name),
        record(b"comment", b"hello"),
        record(b"GNU.sparse.major", b"1") + record(b"GNU.sparse.minor", b"0") + record(b"GNU.sparse.name", b"d"),
        record(b"GNU.sparse.size", b"2000") + record(b"GNU.sparse.map", b"0,5"),
        record(b"hdrcharset", b"BINARY") + record(b"path", name),
        record(b"size", b"512")[:-1] + b" ",
        b"9 path=d\n9 path=e\n",
        b"0 path=d\n",
        b" 9 path=d\n",
    ]
    pax = rng.choice(records)
    hidden = rng.choice([b"", record(b"path", b"e"), record(b"size", b"0")])
    long_name = rng.choice([name + b"\0", name, name + b"\0more"])
    kind = rng.choice([b"1", b"2", b"3", b"4", b"5", b"6"])
    other = rng.choice([b"A", b"D", b"M", b"N", b"V", b"X", b"S", b"7", b"\0", b"\x80", b"K"])
    base256 = rng.choice([b"\x80", b"\xff", b"\x81", b"\x80\xff"])
    base256 += b"\xff" * (12 - len(base256)) if base256[0] == 255 else bytes(10 - len(base256)) + b"\x02\0"
    fields = [
        base256, b"0000000512 \0", b"\0000000001000"[:12], b"            ", bytes(12), b"0x200\0\0\0\0\0\0\0", b"-1000\0\0\0\0\0\0\0",
        b"+A\0\0\0\0\0\0\0\0\0\0", b" 1000 \0\0\0\0\0\0", b"1000\0junk\0\0\0", b"1_000\0\0\0\0\0\0\0", b"1000 5\0\0\0\0\0\0",
        b"\0001000\0\0\0\0\0\0\0", b"001000001000",
    ]
    pax_header = header(b"pax", len(pax), b"x") + pax + hidden + bytes(-len(pax + hidden) % BLOCK)
    return [
        header(b"special", size, kind) + evil,
        header(b"d", size, kind) + evil,
        pax_header + header(b"special", 0, kind),
        pax_header,
        pax_header + evil,
        header(b"pax", len(pax), b"g") + padded(pax),
        header(b"long", len(long_name) - rng.choice([0, 0, 1]), b"L") + padded(long_name),
        member(b"long", b"target\0", kind=b"K"),
        header(rng.choice([b"d", b"z"]), size, other) + evil,
        header(rng.choice([b"z/", b"d/"]), size, rng.choice([b"0", b"\0"])) + evil,
        evil,
        member(rng.choice([b"d", b"z"]), evil, magic=rng.choice([b"ustar  \0", bytes(8), b"ustar\0  ", b"ustbr\x0000"])),
        member(b"d", b"pre", prefix=rng.choice([b"sub", b".", b"\0x"]), magic=rng.choice([b"ustar  \0", bytes(8), b"ustar\x0000"])),
        header(b"z", 512, size_field=rng.choice(fields)) + rng.choice([bytes(512), evil]),
        header(b"z", 1 << 33, size_field=b"\x80" + (1 << 33).to_bytes(11, "big")),
        header(b"z\xe9", 0, signed=True),
        bytes(BLOCK * rng.choice([1, 2, 3])),
        bytes(rng.choice([1, 100, 511])),
        rng.randbytes(BLOCK),
    ]


def mutant(rng):
    """Returns an archive with the members x.ovf, d and e, and up to three odd parts or changed bytes."""
    magic = rng.choice([b"ustar\x0000", b"ustar\x0000", b"ustar  \0", bytes(8)])
    parts = [member(b"x.ovf", DESCRIPTOR, magic=magic)]
    parts += [member(name.encode(), rng.randbytes(rng.choice([0, 1, 511, 512, 700])), magic=magic) for name in NAMES]
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        parts.insert(rng.randrange(1, len(parts) + 1), rng.choice(odd_parts(rng)))
    content = bytearray(b"".join(parts) + bytes(rng.choice([0, 512, 1024, 10240])))
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        at = rng.randrange(len(content) // BLOCK) * BLOCK
        block = content[at : at + BLOCK]
        field = rng.choice([range(4), range(124, 136), range(148, 156), range(156, 157), range(257, 265), range(345, 350)])
        block[rng.choice(field)] = rng.choice(b"\0 /17d0xLg\x80\xff5S")
        content[at : at + BLOCK] = seal(block) if rng.randrange(4) else block
    if not rng.randrange(20):
        del content[rng.randrange(len(content)) :]
    return bytes(content)


def by_tar(path, name):
    """Returns what GNU tar extracts, or None if it fails."""
    result = subprocess.run(["tar", "-xOf", path, "--no-wildcards", "--", name], capture_output=True)
    return result.stdout if result.returncode == 0 else None


def by_tarfile(path, name):
    """Returns what Python's tarfile extracts, or None if it fails."""
    try:
        with tarfile.open(path, "r:") as opened:
            file = opened.extractfile(name) or io.BytesIO()
            return file.read()
    except (tarfile.TarError, KeyError, OSError, ValueError, RecursionError):
        return None
