"""The slow model of block maps (docs/reference/map-format.md): a writer, and a reader that checks every byte.

Content is as in blkhash.py: bytes, or chunks of bytes and ints that stand for zeros.

    >>> data = write(b"a" * 1000 + bytes(2048), "sha256", 512, file_id=bytes(16), info="{}")
    >>> map = read(data)
    >>> [ZERO if it is ZERO else it.hex()[:6] for it in map.digests()]
    ['471be6', 'de8635', 'zero', 'zero', 'zero', 'f8afca']
    >>> checksum(map, "flat") == blkhash.checksum(b"a" * 1000 + bytes(2048), "sha256", "flat", 512)
    True
"""

import argparse
import functools
import hashlib
import hmac
import json
import struct
import sys
from typing import NamedTuple

import blkhash
from digests import ALGORITHMS, new
from verity import FS_VERITY

PAGE = 4096
HEADER_MAGIC = b"\x89BLKMAP\n"
COMMIT_MAGIC = b"\x89BLKEND\n"
VERSION = 1
MAX_SALT = 256
MAX_SIZE = (1 << 63) - 1
MAX_INFO = 1 << 20
KEY_LENGTHS = range(16, 4097)
CHECKPOINT, FINAL = 1, 2

# Without a digest, and with a digest that needs a secret key.
NO_MAP = {"null", "siphash"}
DM_VERITY = set(ALGORITHMS) - NO_MAP - {name for name in ALGORITHMS if name[:3] in ("crc", "xxh")}

HEADER = struct.Struct("<8sII16s32sIIIIIHHQ256s")
ENTRY = struct.Struct("<QQQQ")
COMMIT = struct.Struct("<8sII16s14Q32s32s32s32s32s64s64s32sII8s32s")
SEALED = 480  # The bytes of a commit that the tag covers.
OWN_HASH = PAGE - 32

# Stand in for digests.
ZERO = "zero"
UNKNOWN = "unknown"


class MapError(ValueError):
    """The bytes are not a block map, or not an intact one."""


class Parameters(NamedTuple):
    algorithm: str
    block_size: int
    salt: bytes

    @property
    def digest_size(self):
        return len(new(self.algorithm).digest())

    @property
    def entry_size(self):
        return max(4, 1 << (self.digest_size - 1).bit_length())

    @property
    def per(self):
        """Blocks in a page."""
        return PAGE // self.entry_size

    def digest(self, block):
        h = new(self.algorithm)
        h.update(self.salt + block)
        return h.digest()

    @functools.lru_cache(maxsize=64)
    def zero(self, length=None):
        return self.digest(bytes(self.block_size if length is None else length))

    def blocks(self, size):
        return -(-size // self.block_size)

    def pages(self, size):
        return -(-self.blocks(size) // self.per)

    def page(self, digests):
        return b"".join(it.ljust(self.entry_size, b"\0") for it in digests).ljust(PAGE, b"\0")


class Run(NamedTuple):
    """Neighbouring pages: stored ones with their hashes, or, at offset 0, pages of zeros."""

    first: int
    count: int
    offset: int
    hashes: tuple

    @property
    def end(self):
        return self.first + self.count


class Commit(NamedTuple):
    magic: bytes
    version: int
    kind: int
    file_id: bytes
    sequence: int
    previous: int
    size: int
    blocks: int
    known: int
    zero_blocks: int
    stored: int
    directory: int
    entries: int
    hashes: int
    hash_count: int
    info: int
    info_size: int
    reserved: int
    header_sha: bytes
    directory_sha: bytes
    hashes_sha: bytes
    info_sha: bytes
    root: bytes
    zero_block: bytes
    padded_last: bytes
    content_id: bytes
    seal: int
    reserved_seal: int
    key_id: bytes
    tag: bytes


# Writing


def write(
    content, algorithm, block_size, salt=b"", pages=None, *, file_id, info, checkpoints=(), key=None
):
    """Returns a map of content, or of the pages in the range `pages` of it.

    info is the text of a JSON object. A checkpoint follows each page whose number is in checkpoints.
    """
    parameters = Parameters(algorithm, block_size, salt)
    writer = Writer(parameters, header(parameters, file_id), info, key)
    image = Image(content, parameters)
    pages = range(parameters.pages(image.size)) if pages is None else pages
    if pages.step != 1 or not 0 <= pages.start <= pages.stop <= parameters.pages(image.size):
        raise ValueError(f"not pages of the image: {pages}")
    for first, count, page in image.cut(pages, checkpoints):
        writer.add(first, count, page)
        if first + count - 1 in checkpoints:
            writer.commit(CHECKPOINT, image)
    writer.commit(FINAL, image)
    return bytes(writer.out)


def append(data, content, info, key=None):
    """Returns the map with the pages of content that differ, and a final commit, appended."""
    base = read(data)
    writer = Writer(base.parameters, data, info, key, base)
    image = Image(content, base.parameters)
    stored = {}
    for run in base.runs:
        for i, page_hash in enumerate(run.hashes):
            stored[run.first + i] = run.offset + i * PAGE, page_hash
    for first, count, page in image.cut(range(base.parameters.pages(image.size)), ()):
        offset, page_hash = stored.get(first, (0, None))
        writer.add(first, count, page, offset if page and sha(page) == page_hash else None)
    writer.commit(FINAL, image)
    return bytes(writer.out)


def seal(data, key):
    """Returns the map with a final commit appended that repeats the last one, with a seal."""
    base = read(data)
    writer = Writer(base.parameters, data, base.info_text, key, base)
    writer.every = list(base.runs)
    writer.commit(FINAL, base)
    return bytes(writer.out)


def header(parameters, file_id):
    algorithm, block_size, salt = parameters
    blkhash.check_block_size(block_size)
    if algorithm not in ALGORITHMS or algorithm in NO_MAP:
        raise ValueError(f"no digest for maps: {algorithm!r}")
    if len(salt) > MAX_SALT:
        raise ValueError(f"the salt has more than {MAX_SALT} bytes")
    return HEADER.pack(
        *(HEADER_MAGIC, VERSION, PAGE, file_id, algorithm.encode(), parameters.digest_size),
        *(parameters.entry_size, block_size, PAGE, 0, len(salt), 0, 0, salt),
    ).ljust(PAGE, b"\0")


class Image:
    """The digests of an image as runs, and what commits say about the image."""

    def __init__(self, content, parameters):
        self.parameters = parameters
        self.zero_block = parameters.zero()
        self.digests = []
        self.size = 0
        self.padded_last = b""
        block_size = parameters.block_size
        chunks = [content] if isinstance(content, (bytes, bytearray)) else content
        for block, count in blkhash.blocks(chunks, block_size):
            is_zero = block == blkhash.zero_block(block_size)
            digest = self.zero_block if is_zero else parameters.digest(block)
            self.digests.append((digest, count, len(block) < block_size))
            self.size += len(block) * count
            if len(block) < block_size:
                self.padded_last = parameters.digest(block.ljust(block_size, b"\0"))

    def pages(self):
        """Yields (number of pages, bytes of one page, or None for pages of zeros)."""
        per = self.parameters.per
        page = []
        for digest, count, is_short in self.digests:
            while count:
                if not page and count >= per and digest == self.zero_block:
                    yield count // per, None
                    count %= per
                    continue
                page.append((digest, is_short))
                count -= 1
                if len(page) == per:
                    yield 1, self.page(page)
                    page = []
        if page:
            yield 1, self.page(page)

    def page(self, blocks):
        if all(it == (self.zero_block, False) for it in blocks):
            return None
        return self.parameters.page(digest for digest, _ in blocks)

    def cut(self, pages, checkpoints):
        """Yields (first page, number of pages, page) of a range, cut after checkpoints."""
        cuts = sorted({pages.start, pages.stop, *(page + 1 for page in checkpoints)})
        first = 0
        for count, page in self.pages():
            end = first + count
            inner = [it for it in cuts if first < it < end]
            for start, stop in zip([first, *inner], [*inner, end]):
                if pages.start <= start < pages.stop:
                    yield start, stop - start, page
            first = end


class Writer:
    def __init__(self, parameters, data, info, key, base=None):
        self.parameters = parameters
        self.out = bytearray(data)
        self.info = info.encode()
        parse_info(self.info)
        self.key = key
        if key is not None and len(key) not in KEY_LENGTHS:
            raise ValueError(f"a key has 16 to 4096 bytes: {len(key)}")
        self.previous = base.offset if base else 0
        self.sequence = base.commit.sequence if base else 0
        self.every = []
        self.since = []

    def add(self, first, count, page, offset=None):
        """Adds pages, stored at offset, or by default appended."""
        if page is None:
            run = Run(first, count, 0, ())
        else:
            if offset is None:
                offset = len(self.out)
                self.out += page
            run = Run(first, count, offset, (sha(page),))
        join(self.every, run)
        join(self.since, run)

    def commit(self, kind, image):
        runs = self.every if kind == FINAL else self.since
        parameters = self.parameters
        directory, hashes = tables(runs)
        places = []
        for area in (directory, hashes, self.info):
            places.append(len(self.out))
            self.out += area + bytes(-len(area) % PAGE)
        offset = len(self.out)
        known, zero_blocks, complete = count_blocks(runs, parameters, image.size)
        root = content_id = b""
        if kind == FINAL and complete:
            root = root_of(runs, parameters, image.size)
            content_id = id_of(bytes(self.out[:PAGE]), image.size, root)
        covers_end = runs and runs[-1].end == parameters.pages(image.size)
        self.sequence += 1
        record = Commit(
            *(COMMIT_MAGIC, VERSION, kind, bytes(self.out[16:32]), self.sequence, self.previous),
            *(image.size, parameters.blocks(image.size), known, zero_blocks, len(hashes) // 32),
            *(places[0], len(runs), places[1], len(hashes) // 32, places[2], len(self.info), 0),
            *(sha(bytes(self.out[:PAGE])), sha(directory), sha(hashes), sha(self.info), root),
            *(parameters.zero(), image.padded_last if covers_end else b"", content_id),
            *(0, 0, b"", b""),
        )
        if self.key is not None:
            record = record._replace(seal=1, key_id=key_id(self.key))
            record = record._replace(tag=mac(self.key, COMMIT.pack(*record)[:SEALED]))
        data = COMMIT.pack(*record).ljust(OWN_HASH, b"\0")
        self.out += data + sha(data)
        self.previous = offset
        self.since = []


def join(runs, run):
    """Appends a run, joined with the last one if it continues it."""
    if runs and runs[-1].end == run.first:
        last = runs[-1]
        ends_at = last.offset + last.count * PAGE if last.offset else 0
        if run.offset == ends_at:
            count = last.count + run.count
            runs[-1] = Run(last.first, count, last.offset, last.hashes + run.hashes)
            return
    runs.append(run)


def tables(runs):
    """Returns the directory and the page hashes."""
    directory = hashes = b""
    for first, count, offset, run_hashes in runs:
        directory += ENTRY.pack(first, count, offset, len(hashes) // 32 if offset else 0)
        hashes += b"".join(run_hashes)
    return directory, hashes


# What follows from the digests


def count_blocks(runs, parameters, size):
    """Returns the blocks in runs, those in runs of zeros, and whether the former are all."""
    known = zero_blocks = 0
    blocks = parameters.blocks(size)
    for run in runs:
        count = min(run.end * parameters.per, blocks) - run.first * parameters.per
        known += count
        zero_blocks += 0 if run.offset else count
    return known, zero_blocks, known == blocks


def root_of(runs, parameters, size):
    """Returns the root over all pages of an image."""
    blocks = parameters.blocks(size)
    level = []
    for run in runs:
        if run.offset:
            level += [(it, 1) for it in run.hashes]
            continue
        whole = min(run.end, blocks // parameters.per) - run.first
        level.append((sha(parameters.page([parameters.zero()] * parameters.per)), whole))
        if whole < run.count:
            rest = blocks % parameters.per
            level.append((sha(parameters.page([parameters.zero()] * rest)), 1))
    return fold(level, PAGE, 32, sha) or bytes(32)


def fold(level, block_size, stride, hash_block):
    """Returns the root of a Merkle tree over runs of digests (digest, count), None if there are none."""
    level = [it for it in level if it[1]]
    while level and (len(level) > 1 or level[0][1] > 1):
        above = []
        block = b""
        for digest, count in level:
            entry = digest.ljust(stride, b"\0")
            while count:
                if not block and count * stride >= block_size:
                    groups, count = divmod(count, block_size // stride)
                    above.append((hash_block(entry * (block_size // stride)), groups))
                    continue
                added = min(count, (block_size - len(block)) // stride)
                block += entry * added
                count -= added
                if len(block) == block_size:
                    above.append((hash_block(block), 1))
                    block = b""
        if block:
            above.append((hash_block(block.ljust(block_size, b"\0")), 1))
        level = above
    return level[0][0] if level else None


def id_of(header, size, root):
    name = b"blkmap content 1".ljust(32, b"\0")
    return sha(name + header[32:352] + size.to_bytes(8, "little") + root)


def sha(data):
    return hashlib.sha256(data).digest()


def mac(key, data):
    return hmac.new(key, data, "sha256").digest()


def key_id(key):
    return mac(key, b"blkmap key id 1")[:8]


# Reading


class Map:
    """A commit of a map, checked."""

    def __init__(self, data, parameters, offset, commit, runs, info):
        self.data = data
        self.parameters = parameters
        self.offset = offset
        self.commit = commit
        self.runs = runs
        self.info = parse_info(info)
        self.info_text = info.decode()
        self.size = commit.size
        self.padded_last = commit.padded_last[: parameters.digest_size]
        self.is_complete = commit.known == commit.blocks
        self.seal = "not checked" if commit.seal else "none"

    @property
    def has_short_last(self):
        return self.size % self.parameters.block_size != 0

    def digest_runs(self):
        """Yields (digest or UNKNOWN, count), in order."""
        parameters, blocks = self.parameters, self.commit.blocks
        at = 0
        for run in self.runs:
            first = run.first * parameters.per
            if at < first:
                yield UNKNOWN, first - at
            at = min(run.end * parameters.per, blocks)
            if not run.offset:
                yield parameters.zero(), at - first
            for i in range(at - first if run.offset else 0):
                page, entry = divmod(i, parameters.per)
                start = run.offset + page * PAGE + entry * parameters.entry_size
                yield self.data[start : start + parameters.digest_size], 1
        if at < blocks:
            yield UNKNOWN, blocks - at

    def digests(self):
        """Returns the digest of each block, ZERO for a whole block of zeros, or UNKNOWN."""
        zero = self.parameters.zero()
        digests = []
        for digest, count in self.digest_runs():
            digests += [ZERO if digest == zero else digest] * count
        if digests and self.has_short_last and digests[-1] is ZERO:
            digests[-1] = zero
        return digests


def open_map(data):
    """Returns the last state of a map. Checks what a reader checks before it uses anything."""
    parameters, file_id = read_header(data)
    end = len(data)
    if end % PAGE or not data[-PAGE:].startswith(COMMIT_MAGIC):
        # A newer state was not finished.
        end = resume_point(data)
    check(end >= 2 * PAGE, "there is no commit")
    map = read_map(data, end - PAGE, parameters, file_id)
    check(map.commit.kind == FINAL, "the map is not finished")
    return map


def read(data, key=None, sequence=None):
    """Returns the last commit of a map, or the final one with that sequence number.

    Checks all commits of the file. With a key, the commit that is returned must be sealed with it.
    """
    if key is not None:
        check(len(key) in KEY_LENGTHS, "a key has 16 to 4096 bytes")
    commits = [open_map(data)]
    while commits[0].commit.previous:
        last = commits[0]
        offset, file_id = last.commit.previous, last.commit.file_id
        commits.insert(0, read_map(data, offset, last.parameters, file_id))
    for map in commits:
        check_map(map)
        check_seal(map, key)
    check_order(commits)
    found = [it for it in commits if it.commit.sequence == sequence] if sequence else commits[-1:]
    check(found and found[0].commit.kind == FINAL, "there is no such final commit")
    if key is not None:
        check(found[0].commit.seal, "the map is not sealed")
        check(found[0].seal == "checked", "the map is sealed with another key")
    return found[0]


def resume_point(data):
    """Returns the offset after the last intact commit, after the header if there is none."""
    parameters, file_id = read_header(data)
    offset = len(data) - len(data) % PAGE - PAGE
    while offset >= PAGE:
        try:
            read_commit(data, offset, parameters, file_id)
            return offset + PAGE
        except MapError:
            offset -= PAGE
    return PAGE


def read_header(data):
    check(len(data) >= PAGE, "the file is too short for a header")
    magic, version, header_size, file_id, name, digest_size, entry_size, block_size, *rest = (
        HEADER.unpack_from(data)
    )
    page_size, leaf, salt_size, reserved, leaf_key, salt = rest
    check(magic == HEADER_MAGIC, "the file is no block map")
    check(version == VERSION, "the version is not 1")
    check(header_size == PAGE and page_size == PAGE, "the header or the pages have another size")
    check(leaf == 0, "the blocks are hashed in an unknown way")
    check(reserved == 0 and leaf_key == 0, "a reserved field of the header is not zero")
    check(not any(data[HEADER.size : PAGE]), "the padding of the header is not zero")
    name = name.rstrip(b"\0").decode("ascii", "replace")
    check(name in ALGORITHMS and name not in NO_MAP, "the digest is unknown")
    check(salt_size <= MAX_SALT and not any(salt[salt_size:]), "the salt is malformed")
    parameters = Parameters(name, block_size, salt[:salt_size])
    check(512 <= block_size <= 64 << 20 and block_size & (block_size - 1) == 0, "the block size")
    check(digest_size == parameters.digest_size, "the digest has another size")
    check(entry_size == parameters.entry_size, "the entries have another size")
    return parameters, file_id


def read_commit(data, offset, parameters, file_id):
    """Returns the commit record at offset, after all checks that need nothing but the record."""
    record = data[offset : offset + PAGE]
    it = Commit(*COMMIT.unpack_from(record))
    check(it.magic == COMMIT_MAGIC, "there is no commit")
    check(it.version == VERSION, "the version of the commit is not 1")
    check(record[OWN_HASH:] == sha(record[:OWN_HASH]), "the hash of the commit does not match")
    check(not any(record[COMMIT.size : OWN_HASH]), "the padding of the commit is not zero")
    check(it.reserved == 0 and it.reserved_seal == 0, "a reserved field is not zero")
    check(it.file_id == file_id, "the commit belongs to another file")
    check(it.header_sha == sha(data[:PAGE]), "the hash of the header does not match")
    check(it.kind in (CHECKPOINT, FINAL), "the kind of the commit is unknown")
    check(it.seal in (0, 1), "the seal is of an unknown kind")
    check(it.seal or not any(it.key_id + it.tag), "there is a tag and no seal")

    check(it.size <= MAX_SIZE, "the image is too large")
    check(it.blocks == parameters.blocks(it.size), "the number of blocks does not match")
    check(it.zero_blocks <= it.known <= it.blocks, "more blocks are known than there are")
    check(it.stored == it.hash_count, "the number of page hashes does not match")
    check(2 <= it.info_size <= MAX_INFO, "the info is too short or too long")

    # After the commit before, one after the other, up to the record.
    sizes = (it.entries * ENTRY.size, it.hash_count * 32, it.info_size)
    end = it.directory
    for area, size in zip((it.directory, it.hashes, it.info), sizes):
        check(area == end, "the tables are not in their place")
        end += size + -size % PAGE
    check(end == offset and it.directory % PAGE == 0, "the tables are not in their place")
    check(it.previous % PAGE == 0, "the commit before is not in its place")
    check(it.previous + PAGE <= it.directory, "the commit before is not in its place")
    check((it.sequence == 1) == (it.previous == 0), "the sequence number does not match")
    check(it.sequence >= 1, "the sequence number does not match")

    complete = it.kind == FINAL and it.known == it.blocks
    check(complete or not any(it.root + it.content_id), "there is a root of a part")
    if complete:
        check(it.content_id == id_of(data[:PAGE], it.size, it.root), "the content id does not match")
    size = parameters.digest_size
    check(not any(it.zero_block[size:] + it.padded_last[size:]), "a digest is too long")
    return it


def read_map(data, offset, parameters, file_id):
    """Returns the commit at offset, after all checks that need the tables, but no pages."""
    it = read_commit(data, offset, parameters, file_id)
    directory = read_area(data, it.directory, it.entries * ENTRY.size, it.directory_sha)
    hashes = read_area(data, it.hashes, it.hash_count * 32, it.hashes_sha)
    info = read_area(data, it.info, it.info_size, it.info_sha)

    runs = []
    end = index = 0
    for first, count, start, hash_index in ENTRY.iter_unpack(directory):
        check(count > 0 and first >= end, "the directory is not in order")
        end = first + count
        check(end <= parameters.pages(it.size), "the directory is longer than the image")
        if start:
            check(start % PAGE == 0 and start >= PAGE, "pages are not in their place")
            check(start + count * PAGE <= it.directory, "pages are not in their place")
            check(hash_index == index and index + count <= it.hash_count, "the index of page hashes")
            run_hashes = tuple(hashes[32 * i : 32 * i + 32] for i in range(index, index + count))
            index += count
        else:
            check(hash_index == 0, "a run of zeros has page hashes")
            run_hashes = ()
        before = len(runs)
        join(runs, Run(first, count, start, run_hashes))
        check(len(runs) > before, "neighbouring runs are not joined")
    check(index == it.hash_count, "the number of page hashes does not match")

    if runs and end == parameters.pages(it.size) and it.size % parameters.block_size:
        check(runs[-1].offset, "a short last block is in a run of zeros")
    check((it.known, it.zero_blocks) == count_blocks(runs, parameters, it.size)[:2], "the counts")
    return Map(data, parameters, offset, it, runs, info)


def check_map(map):
    """Checks everything else that a commit refers to."""
    it, parameters, data = map.commit, map.parameters, map.data
    check(it.zero_block[: parameters.digest_size] == parameters.zero(), "the zero block's digest")
    sizes = (it.entries * ENTRY.size, it.hash_count * 32, it.info_size)
    for offset, size in zip((it.directory, it.hashes, it.info), sizes):
        padding = data[offset + size : offset + size + -size % PAGE]
        check(not any(padding), "the padding of a table is not zero")
    for run in map.runs:
        for i, page_hash in enumerate(run.hashes):
            at = run.offset + i * PAGE
            page = data[at : at + PAGE]
            check(sha(page) == page_hash, f"page {run.first + i} does not match its hash")
            check_page(page, run.first + i, parameters, it.size)
    check_padded_last(map)
    if it.kind == FINAL and map.is_complete:
        check(it.root == root_of(map.runs, parameters, it.size), "the root does not match")


def read_area(data, offset, size, expected):
    area = data[offset : offset + size]
    check(sha(area) == expected, f"the table at {offset} does not match its hash")
    return area


def check_page(page, number, parameters, size):
    blocks = min(parameters.per, parameters.blocks(size) - number * parameters.per)
    digests = []
    for at in range(0, blocks * parameters.entry_size, parameters.entry_size):
        digests.append(page[at : at + parameters.digest_size])
    check(page == parameters.page(digests), f"the padding of page {number} is not zero")
    ends_short = (number + 1) * parameters.per * parameters.block_size > size
    ends_short = ends_short and size % parameters.block_size != 0
    only_zeros = all(it == parameters.zero() for it in digests)
    check(ends_short or not only_zeros, f"page {number} has only zero blocks and is stored")


def check_padded_last(map):
    parameters = map.parameters
    short = map.size % parameters.block_size
    if short and map.runs and map.runs[-1].end == parameters.pages(map.size):
        last = list(map.digest_runs())[-1][0]
        if last == parameters.zero(short) and parameters.algorithm in DM_VERITY:
            check(map.padded_last == parameters.zero(), "the digest of the padded last block")
    else:
        check(not any(map.padded_last), "there is a digest of a padded last block")


def check_seal(map, key):
    it = map.commit
    if it.seal and key is not None and it.key_id == key_id(key):
        tag = mac(key, map.data[map.offset : map.offset + SEALED])
        check(hmac.compare_digest(it.tag, tag), "the seal does not match")
        map.seal = "checked"


def check_order(commits):
    """Checks what commits, the oldest first, say about each other."""
    pages = []
    for number, map in enumerate(commits, 1):
        it = map.commit
        check(it.sequence == number, "the sequence number does not match")
        if number > 1 and commits[number - 2].commit.kind == CHECKPOINT:
            check(it.size == commits[number - 2].size, "the size changed after a checkpoint")
        if it.kind == FINAL:
            pages = []
            continue
        pages += [(run.first, run.end) for run in map.runs]
        pages.sort()
        overlap = any(left[1] > right[0] for left, right in zip(pages, pages[1:]))
        check(not overlap, "checkpoints have the same page")


def parse_info(info):
    """Returns the JSON object in info."""
    check(len(info) <= MAX_INFO, "the info is too long")
    try:
        value = json.loads(info.decode(), parse_constant=refuse)
        # Fails for numbers and characters that are not in JSON, but which the parser accepts.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise MapError("the info is not JSON") from error
    check(isinstance(value, dict), "the info is not a JSON object")
    return value


def refuse(name):
    raise ValueError(name)


def check(condition, reason):
    if not condition:
        raise MapError(reason)


# Using


def checksum(map, construction):
    """Returns the checksum of the image, computed from the digests alone."""
    check(map.is_complete, "the map is not complete")
    parameters = map.parameters
    algorithm, block_size, salt = parameters
    runs = list(map.digest_runs())
    if construction == "dm-verity":
        check(algorithm in DM_VERITY, "dm-verity needs a cryptographic digest")
        check(map.size > 0 and not map.has_short_last, "dm-verity is defined for whole blocks")
        return fold(runs, block_size, parameters.entry_size, parameters.digest)
    check(salt == b"", "only dm-verity is computed from salted digests")
    if construction == "fs-verity":
        check(algorithm in FS_VERITY, "fs-verity needs sha256 or sha512")
        if map.has_short_last:
            runs[-1] = map.padded_last, 1
        root = fold(runs, block_size, parameters.entry_size, parameters.digest) or b""
        descriptor = bytes([1, FS_VERITY[algorithm][0], block_size.bit_length() - 1, 0])
        descriptor += bytes(4) + map.size.to_bytes(8, "little") + root
        return parameters.digest(descriptor.ljust(256, b"\0"))
    outer = new(algorithm)
    if construction in ("flat", "concat"):
        for digest, count in runs:
            blkhash.update_repeated(outer, digest, count)
        if construction == "flat":
            outer.update(map.size.to_bytes(8, "little"))
        return outer.digest()
    n = blkhash.stream_count(construction)
    streams = [new(algorithm) for _ in range(n)]
    first = 0
    for digest, count in runs:
        for i in range(first, first + min(count, n)):
            blkhash.update_repeated(streams[i % n], digest, (first + count - i + n - 1) // n)
        first += count
    for stream in streams:
        outer.update(stream.digest())
    return outer.digest()


def diff(left, right):
    """Returns (block, kind) of each block of both images that differs, or is not known.

    Kinds are `changed`, `zeroed`, `written` and `unknown`. Blocks past the end of the shorter image
    are not compared.
    """
    check(left.parameters == right.parameters, "the maps have different parameters")
    differences = []
    for block, (a, b) in enumerate(zip(compared(left), compared(right))):
        if UNKNOWN in (a, b):
            differences.append((block, "unknown"))
        elif a.padded != b.padded or (a.length == b.length and a.digest != b.digest):
            kind = "zeroed" if b.is_zero else "written" if a.is_zero else "changed"
            differences.append((block, kind))
    return differences


class Compared(NamedTuple):
    digest: bytes
    length: int
    padded: bytes
    is_zero: bool


def compared(map):
    """Returns what the comparison needs of each block, or UNKNOWN."""
    parameters = map.parameters
    zero = parameters.zero()
    whole = parameters.block_size
    blocks = []
    for digest, count in map.digest_runs():
        it = UNKNOWN
        if digest is not UNKNOWN:
            it = Compared(digest, whole, digest, digest == zero)
        blocks += [it] * count
    short = map.size % whole
    if short and blocks[-1] is not UNKNOWN:
        digest = blocks[-1].digest
        blocks[-1] = Compared(digest, short, map.padded_last, digest == parameters.zero(short))
    return blocks


def summary(map):
    algorithm, block_size, salt = map.parameters
    commit = map.commit
    return {
        "digest": algorithm,
        "block_size": block_size,
        "salt": salt.hex(),
        "sequence": commit.sequence,
        "size": commit.size,
        "blocks": commit.blocks,
        "known": commit.known,
        "zero_blocks": commit.zero_blocks,
        "stored_pages": commit.stored,
        "runs": commit.entries,
        "root": commit.root.hex(),
        "content_id": commit.content_id.hex(),
        "seal": map.seal,
        "info": map.info,
    }


def main():
    parser = argparse.ArgumentParser(description="Check block maps, and print what they say as JSON.")
    parser.add_argument("file", nargs="+", metavar="FILE")
    args = parser.parse_args()
    status = 0
    for name in args.file:
        with open(name, "rb") as file:
            data = file.read()
        try:
            print(json.dumps(summary(read(data))))
        except MapError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
