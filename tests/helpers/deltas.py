"""Reads a delta as docs/reference/delta-format.md describes it."""

import hashlib

HEADER = 32 + 4096


class Decoded:
    """A delta, as docs/reference/delta-format.md says. Fails where one has no meaning."""

    def __init__(self, delta):
        self.delta, self.at, self.chain = delta, 0, b""
        header = self.checked(HEADER)
        assert header[:16] == b"\x89BLKDLT\n" + (1).to_bytes(8, "little")
        self.base_size, self.size = (int.from_bytes(header[at:][:8], "little") for at in (16, 24))
        parameters = header[32:]
        assert parameters[:8] == b"\x89BLKMAP\n"
        self.name = parameters[32:64].rstrip(b"\0").decode()
        self.digest_size = int.from_bytes(parameters[64:68], "little")
        self.block_size = int.from_bytes(parameters[72:76], "little")
        self.records, self.text = [], None
        while self.text is None:
            self.record()
        assert self.at == len(delta)

    def take(self, count):
        assert self.at + count <= len(self.delta)
        self.at += count
        return self.delta[self.at - count : self.at]

    def checked(self, *counts):
        """Takes strings and the digest after them."""
        parts = [self.take(count) for count in counts]
        self.chain = hashlib.sha256(self.chain + b"".join(parts)).digest()
        assert self.take(32) == self.chain
        return parts[0] if len(parts) == 1 else parts

    def record(self):
        kind, first, count = (int.from_bytes(self.delta[self.at :][at : at + 8], "little") for at in (0, 8, 16))
        if kind == 3:
            assert first == 0
            self.text = self.checked(24, count)[1].decode()
            return
        before = -(-self.base_size // self.block_size)
        start, end = first * self.block_size, min((first + count) * self.block_size, self.size)
        assert start < end and (not self.records or self.records[-1][1] <= first)
        assert first + count <= before or first >= before
        old = count * self.digest_size if first < before else 0
        length = {1: end - start, 2: 0}[kind]
        _, old, data = self.checked(24, old, length)
        self.records.append((first, first + count, old, data if kind == 1 else bytes(end - start)))

    def applied(self, base):
        """Returns the content afterwards, of the content before."""
        assert len(base) == self.base_size
        content = bytearray(base.ljust(self.size, b"\xff"))
        for first, end, old, data in self.records:
            if self.name == "sha256" and old:
                blocks = [base[at * self.block_size :][: self.block_size] for at in range(first, end)]
                assert old == b"".join(hashlib.sha256(block).digest() for block in blocks)
            start = first * self.block_size
            content[start : start + len(data)] = data
        return bytes(content[: self.size])
