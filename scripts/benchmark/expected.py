"""Checksums of measured content, by hashlib: a second implementation, with which every run is compared.

The content of a case repeats, so its blocks are hashed once, however long it is. docs/reference/constructions.md defines the
constructions.
"""

import functools
import hashlib

from .blake3 import Blake3

PIECE = 1 << 20


def new(digest):
    return Blake3() if digest == "blake3" else hashlib.new(digest)


def is_fast(digest):
    """Tells whether digests of megabytes take no time to speak of."""
    return digest != "blake3"


@functools.lru_cache(maxsize=64)
def flat(digest, fill, size, block_size):
    """Returns the checksum `flat` of `size` bytes `fill`."""
    count, rest = divmod(size, block_size)
    outer = new(digest)
    repeat(outer, block_digest(digest, fill, block_size), count)
    if rest:
        outer.update(block_digest(digest, fill, rest))
    outer.update(size.to_bytes(8, "little"))
    return outer.digest().hex()


def streams(digest, piece, count, block_size=64 << 10, number=4):
    """Returns the checksum `streams:4` of `count` times `piece`, which has whole blocks for each stream."""
    assert len(piece) % (block_size * number) == 0
    inner = [new(digest) for _ in range(number)]
    for at, stream in enumerate(inner):
        offsets = range(at * block_size, len(piece), block_size * number)
        digests = b"".join(of(digest, piece[offset : offset + block_size]) for offset in offsets)
        repeat(stream, digests, count)
    return of(digest, b"".join(stream.digest() for stream in inner)).hex()


@functools.lru_cache(maxsize=64)
def block_digest(digest, fill, length):
    return of(digest, bytes([fill]) * length)


def of(digest, data):
    h = new(digest)
    h.update(data)
    return h.digest()


def repeat(h, data, count):
    """Updates `h` with `data`, `count` times."""
    times = max(1, PIECE // len(data))
    piece = data * min(times, count)
    for _ in range(count // times):
        h.update(piece)
    h.update(data * (count % times))
