"""The slow model of every checksum, in plain and readable Python. Tests compare with it.

A checksum is a construction over a digest algorithm (docs/reference/constructions.md). Nothing here shares
code with the Rust crates. Content is bytes, or an iterable of chunks. A chunk is bytes, or an int
that stands for that many zeros. There are only two shortcuts, and neither changes a value. Long
zero runs repeat one cached digest, and the holes of a file are not read.

    >>> checksum(b"").hex()
    '9fb03d22515ca48e57b578de80bbc1e75d5126dbb2de6db177947c3da3b2276f'
"""

import argparse
import errno
import functools
import os
import sys

import verity
from digests import new

DEFAULT_DIGEST = "sha256"
DEFAULT_CONSTRUCTION = "streams:4"
DEFAULT_BLOCK_SIZE = 64 * 1024
MIN_BLOCK_SIZE = 512
MAX_BLOCK_SIZE = 64 * 1024 * 1024
MAX_STREAMS = 128
PIECE = 1024 * 1024


def checksum(
    content,
    digest=DEFAULT_DIGEST,
    construction=DEFAULT_CONSTRUCTION,
    block_size=DEFAULT_BLOCK_SIZE,
    salt=b"",
):
    """Returns the checksum of content as bytes."""
    chunks = [content] if isinstance(content, (bytes, bytearray, memoryview)) else content
    if construction == "linear":
        return linear(chunks, digest)
    check_block_size(block_size)
    if construction == "fs-verity":
        return verity.fs_verity(blocks(chunks, block_size), digest, block_size, salt)[0]
    if construction == "dm-verity":
        return verity.dm_verity(blocks(chunks, block_size), digest, block_size, salt)[0]
    if construction == "flat":
        return flat(chunks, digest, block_size)
    if construction == "concat":
        return concat(chunks, digest, block_size)
    return streams(chunks, digest, block_size, stream_count(construction))


def linear(chunks, digest):
    """H(content)"""
    h = new(digest)
    for chunk in chunks:
        if isinstance(chunk, int):
            update_repeated(h, b"\0", chunk)
        else:
            h.update(chunk)
    return h.digest()


def flat(chunks, digest, block_size):
    """H( H(b_0) || ... || H(b_n-1) || length as 64-bit little endian )"""
    outer = new(digest)
    length = 0
    for block, count in blocks(chunks, block_size):
        update_repeated(outer, block_digest(digest, block), count)
        length += len(block) * count
    outer.update(length.to_bytes(8, "little"))
    return outer.digest()


def concat(chunks, digest, block_size):
    """H( H(b_0) || ... || H(b_n-1) )"""
    outer = new(digest)
    for block, count in blocks(chunks, block_size):
        update_repeated(outer, block_digest(digest, block), count)
    return outer.digest()


def streams(chunks, digest, block_size, n):
    """H( S_0 || ... || S_n-1 ), S_k = H( H(b_i) for every i with i mod n = k, in order )"""
    inner = [new(digest) for _ in range(n)]
    first = 0
    for block, count in blocks(chunks, block_size):
        d = block_digest(digest, block)
        for i in range(first, first + min(count, n)):
            # Number of the blocks first .. first+count-1 that go to stream i mod n.
            update_repeated(inner[i % n], d, (first + count - i + n - 1) // n)
        first += count
    outer = new(digest)
    for stream in inner:
        outer.update(stream.digest())
    return outer.digest()


def blocks(chunks, block_size):
    """Cuts chunks into (block, count) for count equal blocks in a row. The last may be short."""
    rest = bytearray()
    for chunk in chunks:
        if isinstance(chunk, int):
            fill = min(chunk, -len(rest) % block_size)
            rest += bytes(fill)
            chunk -= fill
            if len(rest) == block_size:
                yield bytes(rest), 1
                rest.clear()
            if chunk >= block_size:
                yield zero_block(block_size), chunk // block_size
            rest += bytes(chunk % block_size)
        else:
            rest += chunk
            whole = len(rest) - len(rest) % block_size
            for offset in range(0, whole, block_size):
                yield bytes(rest[offset : offset + block_size]), 1
            del rest[:whole]
    if rest:
        yield bytes(rest), 1


def block_digest(digest, block):
    """Returns H(block). The digest of zeros is computed once for each length."""
    if block == zero_block(len(block)):
        return zero_digest(digest, len(block))
    h = new(digest)
    h.update(block)
    return h.digest()


@functools.lru_cache(maxsize=8)
def zero_block(length):
    return bytes(length)


@functools.lru_cache(maxsize=256)
def zero_digest(digest, length):
    h = new(digest)
    h.update(bytes(length))
    return h.digest()


def update_repeated(h, data, count):
    """Updates h with data count times."""
    if count == 1 or not data:
        h.update(data)
        return
    in_piece = min(count, max(1, PIECE // len(data)))
    piece = data * in_piece
    for _ in range(count // in_piece):
        h.update(piece)
    h.update(data * (count % in_piece))


def stream_count(construction):
    """Returns N of `streams:N`. `streams` alone means 4."""
    name, colon, number = construction.partition(":")
    if name != "streams" or (colon and not number.isdecimal()):
        raise ValueError(f"unknown construction: {construction!r}")
    n = int(number) if colon else 4
    if not 1 <= n <= MAX_STREAMS:
        raise ValueError(f"streams must be 1 to {MAX_STREAMS}: {n}")
    return n


def check_block_size(block_size):
    if block_size & (block_size - 1) or not MIN_BLOCK_SIZE <= block_size <= MAX_BLOCK_SIZE:
        raise ValueError(f"block size must be a power of two, 512 to 64 MiB: {block_size}")


def file_chunks(file):
    """Yields the content of an open file from its start, as bytes and as ints for its holes."""
    fd = file.fileno()
    end = os.lseek(fd, 0, os.SEEK_END)
    offset = 0
    while offset < end:
        try:
            data = os.lseek(fd, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            data = end  # A hole to the end.
        if data > offset:
            yield data - offset
        hole = os.lseek(fd, data, os.SEEK_HOLE) if data < end else end
        for offset in range(data, hole, PIECE):
            chunk = os.pread(fd, min(PIECE, hole - offset), offset)
            if len(chunk) != min(PIECE, hole - offset):
                raise OSError(errno.EIO, "the file became shorter while it was read")
            yield chunk
        offset = hole


def file_checksum(path, *args, **kwargs):
    """Returns the checksum of a raw file. Takes the parameters of checksum()."""
    with open(path, "rb") as file:
        return checksum(file_chunks(file), *args, **kwargs)


def main():
    parser = argparse.ArgumentParser(description="Print checksums of raw images.")
    parser.add_argument("-d", "--digest", default=DEFAULT_DIGEST)
    parser.add_argument("--construction", default=DEFAULT_CONSTRUCTION)
    parser.add_argument("--block-size", type=int, default=DEFAULT_BLOCK_SIZE, metavar="N")
    parser.add_argument("file", nargs="+", metavar="FILE")
    args = parser.parse_args()
    for name in args.file:
        value = file_checksum(name, args.digest, args.construction, args.block_size)
        print(f"{value.hex()}  {name}")


if __name__ == "__main__":
    sys.exit(main())
