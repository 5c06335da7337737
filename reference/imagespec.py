"""Images described by one line, such as `"32k:A 64k:- 32k:0"`.

A spec consists of `LENGTH:KIND` items separated by spaces. An empty spec is an empty image. LENGTH
is decimal with an optional suffix k, m, g or t (powers of 1024). KIND is one of

    A .. Z  that ASCII letter repeated
    #       counter251: the byte at offset i of the image is i mod 251
    0       zeros that are allocated, if the format can represent them
    -       a hole: zeros that are not allocated
"""

import string

SUFFIXES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
PIECE = 1024 * 1024


def parse(spec):
    """Returns a list of (offset, length, kind)."""
    extents = []
    offset = 0
    for item in spec.split():
        length, kind = item.split(":")
        length = parse_length(length)
        if kind not in string.ascii_uppercase + "#0-":
            raise ValueError(f"unknown kind: {item!r}")
        extents.append((offset, length, kind))
        offset += length
    return extents


def parse_length(text):
    scale = SUFFIXES.get(text[-1:], 1)
    return int(text.rstrip("".join(SUFFIXES))) * scale


def size(spec):
    return sum(length for _, length, _ in parse(spec))


def chunks(spec):
    """Yields the content for blkhash.checksum(), as bytes and as ints for zero runs."""
    for offset, length, kind in parse(spec):
        if kind in "0-":
            yield length
        else:
            for start in range(offset, offset + length, PIECE):
                yield data(kind, start, min(PIECE, offset + length - start))


def data(kind, offset, length):
    """Returns bytes of an extent. offset counts from the start of the image."""
    if kind in "0-":
        return bytes(length)
    if kind == "#":
        first = offset % 251
        return (bytes(range(251)) * ((first + length) // 251 + 1))[first : first + length]
    return kind.encode() * length


def write(spec, path):
    """Writes a raw image. `-` becomes a hole if the file system supports holes."""
    with open(path, "wb") as file:
        for offset, length, kind in parse(spec):
            if kind != "-":
                file.seek(offset)
                for start in range(offset, offset + length, PIECE):
                    file.write(data(kind, start, min(PIECE, offset + length - start)))
        file.truncate(size(spec))
