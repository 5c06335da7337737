"""EWF images (E01): from ewfacquire, what sections they have, and changes whose checksums are repaired."""

import hashlib
import pathlib
import struct
import subprocess
import zlib

import images

HEADER, DESCRIPTOR = 13, 76

# The formats that ewfacquire writes, and the ends of their names. ewfacquirestream writes all but those in FILES_ONLY.
FORMATS = {
    "ftk": "E01",
    "encase2": "E01",
    "encase3": "E01",
    "encase4": "E01",
    "encase5": "E01",
    "encase6": "E01",
    "linen5": "E01",
    "linen6": "E01",
    "ewfx": "e01",
    "ewf": "e01",
    "smart": "s01",
    "encase1": "E01",
}
FILES_ONLY = ("ewf", "smart", "encase1")

# libewf of Debian writes these with a warning that it does not support them.
LATER = {"encase7": "E01", "linen7": "E01"}


def acquire(raw, target, fmt="encase6", compression="none", segment=None, sectors=64, sector=512, more=()):
    """Acquires a file by ewfacquire. Returns the path of the first segment."""
    options = ["-q", "-f", fmt, "-c", compression, "-b", str(sectors), "-P", str(sector), "-t", target, *more]
    if segment:
        options += ["-S", str(segment)]
    if fmt in FILES_ONLY:
        images.run("ewfacquire", "-u", *options, str(raw))
    else:
        with open(raw, "rb") as file:
            images.run("ewfacquirestream", *options, stdin=file)
    return f"{target}.{(FORMATS | LATER)[fmt]}"


def export(path):
    """The content according to ewfexport, or None if it fails or reports errors."""
    result = subprocess.run(["ewfexport", "-u", "-t", "-", "-f", "raw", path], capture_output=True, timeout=120)
    # It writes its verdict to standard output, too.
    content, verdict, rest = result.stdout.rpartition(b"ewfexport: SUCCESS\n")
    if result.returncode != 0 or b"errors" in result.stderr or not verdict or rest:
        return None
    return content


def verify(path):
    """Whether ewfverify succeeds."""
    result = subprocess.run(["ewfverify", "-q", "-d", "sha1", path], capture_output=True, timeout=120)
    return result.returncode == 0 and b"ewfverify: SUCCESS" in result.stdout


class Section:
    """A section of a segment, by the offsets in the file."""

    def __init__(self, content, offset):
        self.offset = offset
        self.kind = bytes(content[offset : offset + 16]).rstrip(b"\0").decode(errors="replace")
        self.next, self.size = struct.unpack_from("<QQ", content, offset + 16)
        self.data = offset + DESCRIPTOR
        self.end = offset + self.size


def sections(content):
    """The sections of a segment, in order."""
    found, offset = [], HEADER
    while True:
        section = Section(content, offset)
        found.append(section)
        if section.kind in ("next", "done") or section.next <= offset or len(found) > 1000:
            return found
        offset = section.next


def by_kind(content):
    """The first section of each kind."""
    return {section.kind: section for section in reversed(sections(content))}


def seal(content, start, length):
    """Writes the Adler-32 of a range after it."""
    struct.pack_into("<I", content, start + length, zlib.adler32(bytes(content[start : start + length])))


def reseal(content):
    """Repairs the checksums of all sections that can be found. Checksums of chunks stay."""
    offset = HEADER
    for _ in range(1000):
        if offset + DESCRIPTOR > len(content):
            return
        seal(content, offset, DESCRIPTOR - 4)
        section = Section(content, offset)
        lengths = {"hash": 32, "digest": 76, "error2": 516, "session": 32, "table": 20, "table2": 20}
        length = lengths.get(section.kind)
        if section.kind in ("volume", "data", "disk"):
            length = 90 if section.size < 1000 else 1048
        if length and section.data + length + 4 <= len(content):
            seal(content, section.data, length)
        if section.kind in ("table", "table2"):
            (count,) = struct.unpack_from("<I", content, section.data)
            if section.data + 28 + 4 * count <= len(content):
                seal(content, section.data + 24, 4 * count)
        if section.kind in ("next", "done") or section.next <= offset:
            return
        offset = section.next


def write(path, chunks, chunk_size=32768, sector=512, size=None, md5=None, number=1, is_last=True, total=None, guid=b"\0" * 16, errors=()):
    """Writes a segment of chunks, which are pairs of stored bytes and whether they are compressed."""
    body = bytearray(b"EVF\x09\r\n\xff\0" + struct.pack("<BHH", 1, number, 0))

    def add(kind, data=b"", is_end=False):
        offset, length = len(body), DESCRIPTOR + len(data)
        following = offset if is_end else offset + length
        descriptor = struct.pack("<16sQQ40x", kind, following, 0 if is_end else length)
        body.extend(descriptor + struct.pack("<I", zlib.adler32(descriptor)) + data)

    def summed(data):
        return data + struct.pack("<I", zlib.adler32(data))

    size = size if size is not None else chunk_size * len(chunks)
    media = bytearray(1048)
    count = total if total is not None else len(chunks)
    struct.pack_into("<B3xIIIQ", media, 0, 1, count, chunk_size // sector, sector, size // sector)
    media[36] = 3
    media[64:80] = guid
    if number == 1:
        text = "1\nmain\nc\tn\ta\te\tt\nA\tB\tC\tD\tE\n\n"
        add(b"header", zlib.compress(text.encode()))
    add(b"volume" if number == 1 else b"data", summed(bytes(media)))
    base = len(body)
    add(b"sectors", b"".join(stored for stored, _ in chunks))
    entries, at = b"", DESCRIPTOR
    for stored, is_compressed in chunks:
        entries += struct.pack("<I", at | (is_compressed << 31))
        at += len(stored)
    table = summed(struct.pack("<I4xQ4x", len(chunks), base)) + summed(entries)
    add(b"table", table)
    add(b"table2", table)
    if errors:
        listed = b"".join(struct.pack("<II", *error) for error in errors)
        add(b"error2", summed(struct.pack("<I512x", len(errors))) + summed(listed))
    if is_last and md5:
        add(b"hash", summed(md5 + bytes(16)))
    add(b"done" if is_last else b"next", is_end=True)
    pathlib.Path(path).write_bytes(body)


def stored(content):
    """A chunk that is stored as it is."""
    return content + struct.pack("<I", zlib.adler32(content)), False


def compressed(content):
    """A chunk that is compressed."""
    return zlib.compress(content), True


def md5(content):
    return hashlib.md5(content).hexdigest()
