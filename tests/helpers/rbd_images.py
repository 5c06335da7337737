"""Exports of rbd (format 2), written and read by their known structure, and differences of format 1.

An export is a list of differences, and a difference is a list of records: ("size", N), ("write", OFFSET, DATA) or
("zero", OFFSET, LENGTH).
"""

import struct

# Maximum size of an image that the reader holds.
LARGE = 1 << 26


def u32(number):
    return struct.pack("<I", number)


def u64(number):
    return struct.pack("<Q", number)


def record(tag, body, length=None):
    return tag + u64(len(body) if length is None else length) + body


def text(data):
    return u32(len(data)) + data


def body(one):
    """The tag and the body of a record."""
    kind, *values = one
    if kind == "size":
        return b"s", u64(*values)
    offset, what = values
    if kind == "write":
        return b"w", u64(offset) + u64(len(what)) + what
    return b"z", u64(offset) + u64(what)


def export(diffs, options=True):
    """An export, with a snapshot after each difference but the last one."""
    made = [b"rbd image v2\n"]
    if options:
        made += [record(b"O", u64(22)), record(b"T", u64(61)), record(b"U", u64(1 << 22)), record(b"C", u64(1))]
        made.append(record(b"M", text(b"note") + text(b"a value")))
    made += [b"E", b"rbd image diffs v2\n", u64(len(diffs))]
    for number, records in enumerate(diffs):
        made.append(b"rbd diff v2\n")
        if number > 0:
            made.append(record(b"f", text(b"s%d" % number)))
        if number + 1 < len(diffs):
            made.append(record(b"t", text(b"s%d" % (number + 1))))
            # It states 8 bytes, and has one.
            made.append(record(b"p", b"\0", 8))
        made += [record(*body(one)) for one in records]
        made.append(b"e")
    return b"".join(made)


def diff_v1(records):
    """A difference that `rbd import-diff` applies."""
    return b"rbd diff v1\n" + b"".join(b"".join(body(one)) for one in records) + b"e"


def apply(content, records):
    """Returns the content after a difference. Fails with a ValueError if it writes past the end."""
    content = bytearray(content)
    for kind, *values in records:
        if kind == "size":
            content = content[: values[0]].ljust(values[0], b"\0")
            continue
        offset, what = values
        data = what if kind == "write" else bytes(min(what, LARGE))
        if offset + (len(data) if kind == "write" else what) > len(content):
            raise ValueError("past the end")
        content[offset : offset + len(data)] = data
    return bytes(content)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, length):
        piece = self.data[self.at : self.at + length]
        if len(piece) != length:
            raise ValueError("cut off")
        self.at += length
        return piece

    def number(self):
        return int.from_bytes(self.bytes(8), "little")

    def text(self):
        return self.bytes(int.from_bytes(self.bytes(4), "little"))

    def expect(self, condition):
        if not condition:
            raise ValueError(f"not valid before {self.at}")

    def records(self, end):
        """The tags and the stated lengths of records up to the one with this tag."""
        while (tag := self.bytes(1)) != end:
            yield tag, self.number()


def read(data):
    """Returns the content of an export, in plain steps. Fails with a ValueError if it is not valid."""
    reader = Reader(bytes(data))
    reader.expect(reader.bytes(13) == b"rbd image v2\n")
    for tag, length in reader.records(b"E"):
        start = reader.at
        if tag == b"M":
            reader.text()
            reader.text()
        else:
            reader.expect(tag in (b"O", b"T", b"U", b"C"))
            reader.number()
        reader.expect(reader.at - start == length)
    reader.expect(reader.bytes(19) == b"rbd image diffs v2\n")
    content, snapshot = None, None
    for _ in range(reader.number()):
        reader.expect(reader.bytes(12) == b"rbd diff v2\n")
        names = {b"f": None, b"t": None}
        for tag, length in reader.records(b"e"):
            start = reader.at
            if tag in names:
                names[tag] = reader.text()
                reader.expect(len(names[tag]) <= 4096)
            elif tag == b"p":
                reader.bytes(1)
                reader.expect(length in (1, 8))
                continue
            elif tag == b"s":
                size = reader.number()
                if size > LARGE:
                    raise ValueError("too large")
                content = apply(content or b"", [("size", size)])
            elif tag == b"w":
                offset, size = reader.number(), reader.number()
                content = apply(content or b"", [("write", offset, reader.bytes(size))])
            elif tag == b"z":
                offset, size = reader.number(), reader.number()
                content = apply(content or b"", [("zero", offset, size)])
            else:
                reader.expect(False)
            reader.expect(reader.at - start == length)
        reader.expect(names[b"f"] == snapshot)
        snapshot = names[b"t"]
    reader.expect(reader.at == len(data) and content is not None)
    return content


def random_records(rng, size, resize=True, overlap=True):
    """A difference of an image of `size` bytes, and the size after it. rbd writes overlaps in any order."""
    records = []
    if resize:
        for _ in range(rng.choice((1, 1, 2, 3))):
            size = rng.choice((size, size // 2, size // 3 + 1, size + size // 3, rng.randrange(2 * size + 1)))
            records.append(("size", size))
    end = 0
    for _ in range(rng.randrange(9)):
        if end >= size:
            break
        offset = rng.randrange(end, size)
        length = min(rng.choice((0, 1, 7, 100, 4096, 4096, 70_000)), size - offset)
        if not overlap:
            end = offset + length
        records.append(("write", offset, rng.randbytes(length)) if rng.random() < 0.6 else ("zero", offset, length))
    return records, size


def random_diffs(rng, size):
    """Differences of an image, the first of which has this size."""
    diffs = [[("size", size), *random_records(rng, size, resize=False)[0]]]
    for _ in range(rng.choice((0, 1, 2, 5))):
        records, size = random_records(rng, size, resize=rng.random() < 0.8)
        diffs.append(records)
    return diffs
