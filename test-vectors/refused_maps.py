"""Maps that a reader must refuse: changes of other maps, with hashes that match again."""

import blkmap

from maps import build

BASE = "zeros in the middle"
CHECKPOINTS = "two checkpoints"
SHORT = "short last block of zeros"


def refused_vectors():
    for reason, base, when, change in REFUSED:
        data, _ = build(base)
        changed = change(data)
        assert refuses(blkmap.read, changed), reason
        assert refuses(blkmap.open_map, changed) == (when == "open"), reason
        yield {
            "reason": reason,
            "base": base,
            "when": when,
            "length": len(changed),
            "changes": changes(data, changed),
        }


def refuses(read, data):
    try:
        read(data)
    except blkmap.MapError:
        return True
    return False


def changes(data, changed):
    """[offset, bytes] of all bytes of changed that data has not."""
    data = data.ljust(len(changed), b"\0")
    found = []
    for at, byte in enumerate(changed):
        if byte != data[at]:
            if found and at - found[-1][0] - len(found[-1][1]) < 8:
                start = found[-1][0]
                found[-1][1] = changed[start : at + 1]
            else:
                found.append([at, changed[at : at + 1]])
    return [[at, it.hex()] for at, it in found]


def put(data, at, new):
    return data[:at] + new + data[at + len(new) :]


def commits(data):
    offsets = range(0, len(data), 4096)
    return [at for at in offsets if data[at:].startswith(blkmap.COMMIT_MAGIC)]


def commit(number=-1, **fields):
    """Sets fields of a commit, by default the last one."""

    def change(data):
        at = commits(data)[number]
        it = blkmap.Commit(*blkmap.COMMIT.unpack_from(data, at))
        values = {name: new(it) if callable(new) else new for name, new in fields.items()}
        it = it._replace(**values)
        complete = it.kind == blkmap.FINAL and it.known == it.blocks
        if complete and "content_id" not in fields:
            it = it._replace(content_id=blkmap.id_of(data[:4096], it.size, it.root))
        return hashed(put(data, at, blkmap.COMMIT.pack(*it)), at)

    return change


def raw(at_in_commit, new):
    """Sets bytes of the last commit."""

    def change(data):
        at = commits(data)[-1]
        return hashed(put(data, at + at_in_commit, new), at)

    return change


def hashed(data, at):
    return put(data, at + 4064, blkmap.sha(data[at : at + 4064]))


def header(at, new):
    def change(data):
        data = put(data, at, new)
        return commit(header_sha=blkmap.sha(data[:4096]))(data)

    return change


def directory(change_entries, number=-1, **fields):
    """Changes the entries of a commit, whose number stays the same."""

    def change(data):
        it = blkmap.Commit(*blkmap.COMMIT.unpack_from(data, commits(data)[number]))
        area = data[it.directory :][: it.entries * 32]
        entries = [list(entry) for entry in blkmap.ENTRY.iter_unpack(area)]
        change_entries(entries)
        area = b"".join(blkmap.ENTRY.pack(*entry) for entry in entries)
        data = put(data, it.directory, area)
        return commit(number, directory_sha=blkmap.sha(area), **fields)(data)

    return change


def entry(number, field, value):
    def change(entries):
        entries[number][field] = value

    return directory(change)


def page(at, new):
    """Changes the bytes of the first page, with its hash and the root."""

    def change(data):
        data = put(data, 4096 + at, new)
        it = blkmap.Commit(*blkmap.COMMIT.unpack_from(data, commits(data)[-1]))
        data = put(data, it.hashes, blkmap.sha(data[4096:8192]))
        area = data[it.hashes :][: it.hash_count * 32]
        parameters, _ = blkmap.read_header(data)
        runs = []
        for first, count, offset, index in blkmap.ENTRY.iter_unpack(
            data[it.directory :][: it.entries * 32]
        ):
            own = [area[32 * i :][:32] for i in range(index, index + count)] if offset else []
            runs.append(blkmap.Run(first, count, offset, tuple(own)))
        root = blkmap.root_of(runs, parameters, it.size)
        return commit(hashes_sha=blkmap.sha(area), root=root)(data)

    return change


def info(text):
    """Sets the info, which is no longer than a page."""

    def change(data):
        it = blkmap.Commit(*blkmap.COMMIT.unpack_from(data, commits(data)[-1]))
        data = put(data, it.info, text.ljust(4096, b"\0"))
        return commit(info_size=len(text), info_sha=blkmap.sha(text))(data)

    return change


def another_hash(data):
    """A page hash more than there are pages."""
    it = blkmap.Commit(*blkmap.COMMIT.unpack_from(data, commits(data)[-1]))
    area = data[it.hashes :][: 32 * (it.hash_count + 1)]
    fields = {"stored": it.stored + 1, "hash_count": it.hash_count + 1}
    return commit(hashes_sha=blkmap.sha(area), **fields)(data)


def swap(entries):
    entries[:2] = entries[1::-1]


def stored_zero_page(data):
    parameters, _ = blkmap.read_header(data)
    return page(0, parameters.zero())(data)


def more_entries(entries, **fields):
    """Replaces the directory of the last commit, which stays within its 4096 bytes."""

    def change(data):
        at = commits(data)[-1]
        it = blkmap.Commit(*blkmap.COMMIT.unpack_from(data, at))
        area = b"".join(blkmap.ENTRY.pack(*entry) for entry in entries)
        data = put(data, it.directory, area.ljust(4096, b"\0"))
        return commit(directory_sha=blkmap.sha(area), entries=len(entries), **fields)(data)

    return change


REFUSED = [
    ("an empty file", BASE, "open", lambda data: b""),
    ("a header alone", BASE, "open", lambda data: data[:4096]),
    ("cut within the commit", BASE, "open", lambda data: data[:-1]),
    ("cut before the commit", BASE, "open", lambda data: data[:-4096]),
    ("a page behind a checkpoint", CHECKPOINTS, "open", lambda data: data[: commits(data)[1] + 4096] + bytes(4096)),
    ("ends with a checkpoint", CHECKPOINTS, "open", lambda data: data[: commits(data)[1] + 4096]),
    ("header: magic", BASE, "open", header(0, b"X")),
    ("header: version 2", BASE, "open", header(8, b"\2")),
    ("header: its size", BASE, "open", header(13, b"\x20")),
    ("header: an alias of the digest", BASE, "open", header(32, b"sha-256")),
    ("header: a digest in capitals", BASE, "open", header(32, b"SHA256")),
    ("header: bytes behind the name", BASE, "open", header(40, b"x")),
    ("header: null has no maps", BASE, "open", header(32, b"null\0\0")),
    ("header: size of a digest", BASE, "open", header(64, b"\x1f")),
    ("header: size of an entry", BASE, "open", header(68, b"\x40")),
    ("header: blocks of 256 bytes", BASE, "open", header(72, b"\0\1")),
    ("header: blocks of 128 MiB", BASE, "open", header(72, b"\0\0\0\x08")),
    ("header: blocks of 513 bytes", BASE, "open", header(72, b"\1\2")),
    ("header: size of a page", BASE, "open", header(77, b"\x20")),
    ("header: digests with a key", BASE, "open", header(80, b"\1")),
    ("header: reserved", BASE, "open", header(86, b"\1")),
    ("header: id of a key", BASE, "open", header(88, b"\1")),
    ("header: bytes behind the salt", BASE, "open", header(96, b"\1")),
    ("header: a salt of 257 bytes", BASE, "open", header(84, b"\1\1")),
    ("header: padding", BASE, "open", header(4095, b"\1")),
    ("commit: version", BASE, "open", commit(version=2)),
    ("commit: kind", BASE, "open", commit(kind=3)),
    ("commit: file id", BASE, "open", commit(file_id=b"x" * 16)),
    ("commit: SHA of the header", BASE, "open", commit(header_sha=bytes(32))),
    ("commit: sequence number 0", BASE, "open", commit(sequence=0)),
    ("commit: sequence number 2 of the first", BASE, "open", commit(sequence=2)),
    ("commit: sequence number 1 of the third", CHECKPOINTS, "open", commit(sequence=1)),
    ("commit: sequence number 4 of the third", CHECKPOINTS, "check", commit(sequence=4)),
    ("commit: the one before is behind", CHECKPOINTS, "open", commit(previous=1 << 40)),
    ("commit: the one before is odd", CHECKPOINTS, "open", commit(previous=lambda it: it.previous + 1)),
    ("commit: the one before is no commit", CHECKPOINTS, "check", commit(previous=4096)),
    ("commit: an image that is too large", BASE, "open", commit(size=1 << 63, blocks=1 << 54)),
    ("commit: number of blocks", BASE, "open", commit(blocks=lambda it: it.blocks + 1)),
    ("commit: number of known blocks", BASE, "open", commit(known=513, root=b"", content_id=b"")),
    ("commit: number of zero blocks", BASE, "open", commit(zero_blocks=0)),
    ("commit: number of stored pages", BASE, "open", commit(stored=1)),
    ("commit: number of page hashes", BASE, "open", another_hash),
    ("commit: more known blocks than blocks", BASE, "open", commit(known=515)),
    ("commit: more zero blocks than known", "shard of zeros", "open", commit(zero_blocks=129)),
    ("commit: entries beyond 64 bits", BASE, "open", commit(entries=1 << 63)),
    ("commit: place of the directory", BASE, "open", commit(directory=lambda it: it.directory - 4096)),
    ("commit: place of the page hashes", BASE, "open", commit(hashes=lambda it: it.directory)),
    ("commit: an odd place of the info", BASE, "open", commit(info=lambda it: it.info + 1)),
    ("commit: info of one byte", BASE, "open", commit(info_size=1)),
    ("commit: reserved", BASE, "open", commit(reserved=1)),
    ("commit: the second reserved field", BASE, "open", commit(reserved_seal=1)),
    ("commit: padding", BASE, "open", raw(512, b"\1")),
    ("commit: the last byte of the padding", BASE, "open", raw(4063, b"\1")),
    ("commit: another root", BASE, "check", commit(root=bytes(32))),
    ("commit: another content id", BASE, "open", commit(content_id=bytes(32))),
    ("commit: a root of a shard", "middle shard", "open", commit(root=b"x" * 32)),
    ("commit: a content id of a shard", "middle shard", "open", commit(content_id=b"x" * 32)),
    ("commit: a root of a checkpoint", CHECKPOINTS, "check", commit(0, root=b"x" * 32)),
    ("commit: a root of an empty image", "empty", "check", commit(root=b"x" * 32)),
    ("commit: another Z", BASE, "check", commit(zero_block=b"x" * 32)),
    ("commit: bytes behind Z", BASE, "open", raw(304 + 32, b"\1")),
    ("commit: bytes behind the padded last block", BASE, "open", raw(368 + 63, b"\1")),
    ("commit: no short last block", BASE, "check", commit(padded_last=b"x" * 32)),
    ("commit: the padded last block is Z", SHORT, "check", commit(padded_last=b"x" * 32)),
    ("commit: the padded last block of a shard", "first shard", "check", commit(padded_last=b"x" * 32)),
    ("commit: kind of the seal", BASE, "open", commit(seal=2)),
    ("commit: a tag without a seal", BASE, "open", commit(tag=b"x" * 32)),
    ("commit: a key id without a seal", BASE, "open", commit(key_id=b"x" * 8)),
    ("commit: size of a checkpoint", CHECKPOINTS, "check", commit(1, size=lambda it: it.size + 1)),
    ("directory: no pages", BASE, "open", entry(1, 1, 0)),
    ("directory: out of order", BASE, "open", directory(swap)),
    ("directory: another SHA", BASE, "open", commit(directory_sha=b"x" * 32)),
    ("info: another SHA", BASE, "open", commit(info_sha=b"x" * 32)),
    ("directory: overlapping", BASE, "open", entry(1, 0, 0)),
    ("directory: beyond the image", BASE, "open", entry(2, 0, 5)),
    ("directory: pages beyond 64 bits", BASE, "open", entry(2, 1, (1 << 64) - 4)),
    ("directory: an odd offset", BASE, "open", entry(0, 2, 4097)),
    ("directory: pages behind the tables", BASE, "open", entry(0, 2, 3 * 4096)),
    ("directory: an offset beyond 64 bits", BASE, "open", entry(0, 2, (1 << 64) - 4096)),
    ("directory: index of a hash", BASE, "open", entry(2, 3, 0)),
    ("directory: index of the hash of zeros", BASE, "open", entry(1, 3, 1)),
    (
        *("directory: zeros that are not joined", "zeros", "open"),
        more_entries([(0, 9, 0, 0), (9, 119, 0, 0)]),
    ),
    (
        *("directory: pages that are not joined", "two pages, the second one short", "open"),
        more_entries([(0, 1, 4096, 0), (1, 1, 8192, 1)]),
    ),
    (
        *("directory: a zero page with a short block", "first shard", "open"),
        more_entries([(0, 1, 4096, 0), (1, 3, 0, 0)], known=385, zero_blocks=257),
    ),
    (
        *("directory: a page in two checkpoints", CHECKPOINTS, "check"),
        directory(lambda entries: entries[0].__setitem__(0, 0), 1),
    ),
    ("directory: padding", BASE, "check", raw(4095 - 3 * 4096, b"\1")),
    ("page: a byte that its hash does not match", BASE, "check", lambda data: put(data, 5000, b"\0")),
    ("page: only zero blocks", "one block", "check", stored_zero_page),
    ("page: bytes behind a digest", "digest sha1", "check", page(20, b"\1")),
    ("page: bytes behind the last entry", "one block", "check", page(32, b"\1")),
    ("info: no JSON", BASE, "open", info(b"{]")),
    ("info: no object", BASE, "open", info(b"[1]")),
    ("info: not UTF-8", BASE, "open", info(b'{"a":"\xff"}')),
    ("info: behind the object", BASE, "open", info(b"{}\0")),
    ("info: a number that is none", BASE, "open", info(b'{"a":NaN}')),
]
