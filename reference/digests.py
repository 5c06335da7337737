"""All digest algorithms of the project with one interface: new(name), update(bytes), digest().

Most algorithms are hashlib's. CRC-32 is zlib's, other CRCs, XXH64 and SipHash are
plain code, and the rest comes from the PyPI packages xxhash and blake3. The bytes of a CRC or an
XXH value are big endian, as printed in hexadecimal. SipHash returns its 8 bytes in the order of the
reference vectors.
"""

import hashlib
import struct
import zlib

MASK64 = (1 << 64) - 1

ALIASES = {"xxhash": "xxh64"}


def new(name):
    """Returns a new hash object."""
    if name == "blake2b":
        raise ValueError("blake2b means 512 bits to coreutils, 256 to btrfs: say which")
    try:
        return ALGORITHMS[ALIASES.get(name, name)]()
    except KeyError:
        raise ValueError(f"unknown digest: {name!r}") from None


class Null:
    """Computes nothing, to measure the cost of reading."""

    def update(self, data):
        pass

    def digest(self):
        return b""


class Crc32:
    """CRC-32 of IEEE 802.3."""

    def __init__(self):
        self.crc = 0

    def update(self, data):
        self.crc = zlib.crc32(data, self.crc)

    def digest(self):
        return self.crc.to_bytes(4, "big")


def crc_table_reflected(poly):
    """Returns the CRC of each byte, least significant bit first. poly is bit-reversed."""
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = (crc >> 1) ^ (poly if crc & 1 else 0)
        table.append(crc)
    return table


class CrcReflected:
    """A CRC, least significant bit first, initial value and final xor all ones."""

    def __init__(self, bits, table):
        self.bits = bits
        self.table = table
        self.ones = (1 << bits) - 1
        self.crc = self.ones

    def update(self, data):
        crc, table = self.crc, self.table
        for byte in data:
            crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
        self.crc = crc

    def digest(self):
        return (self.crc ^ self.ones).to_bytes(self.bits // 8, "big")


def crc64_table(poly):
    """Returns the CRC-64 of each byte, most significant bit first."""
    table = []
    for byte in range(256):
        crc = byte << 56
        for _ in range(8):
            crc = ((crc << 1) & MASK64) ^ (poly if crc >> 63 else 0)
        table.append(crc)
    return table


class Crc64:
    """CRC-64/ECMA-182 as in the Linux kernel: not reflected, initial value and final xor zero."""

    table = crc64_table(0x42F0E1EBA9EA3693)

    def __init__(self):
        self.crc = 0

    def update(self, data):
        crc, table = self.crc, self.table
        for byte in data:
            crc = ((crc & 0x00FFFFFFFFFFFFFF) << 8) ^ table[(crc >> 56) ^ byte]
        self.crc = crc

    def digest(self):
        return self.crc.to_bytes(8, "big")


CRC32C_TABLE = crc_table_reflected(0x82F63B78)
CRC64NVME_TABLE = crc_table_reflected(0x9A6C9329AC4BC9B5)


def words64(data):
    """Returns the 64-bit little endian words of data."""
    return struct.unpack(f"<{len(data) // 8}Q", data)


def rotl64(x, n):
    return ((x << n) | (x >> (64 - n))) & MASK64


class Xxh64:
    """XXH64 with seed 0 (xxHash, doc/xxhash_spec.md)."""

    P1 = 0x9E3779B185EBCA87
    P2 = 0xC2B2AE3D27D4EB4F
    P3 = 0x165667B19E3779F9
    P4 = 0x85EBCA77C2B2AE63
    P5 = 0x27D4EB2F165667C5

    def __init__(self):
        self.lanes = [(self.P1 + self.P2) & MASK64, self.P2, 0, -self.P1 & MASK64]
        self.rest = b""
        self.length = 0

    def update(self, data):
        self.length += len(data)
        data = self.rest + bytes(data)
        whole = len(data) - len(data) % 32
        words = words64(data[:whole])
        self.lanes = [self.run(acc, words[i::4]) for i, acc in enumerate(self.lanes)]
        self.rest = data[whole:]

    def digest(self):
        if self.length >= 32:
            acc = sum(rotl64(lane, n) for lane, n in zip(self.lanes, (1, 7, 12, 18))) & MASK64
            for lane in self.lanes:
                acc = ((acc ^ self.run(0, [lane])) * self.P1 + self.P4) & MASK64
        else:
            acc = self.P5
        acc = (acc + self.length) & MASK64
        rest = self.rest
        while len(rest) >= 8:
            lane = int.from_bytes(rest[:8], "little")
            acc = (rotl64(acc ^ self.run(0, [lane]), 27) * self.P1 + self.P4) & MASK64
            rest = rest[8:]
        if len(rest) >= 4:
            lane = int.from_bytes(rest[:4], "little")
            acc = (rotl64(acc ^ (lane * self.P1 & MASK64), 23) * self.P2 + self.P3) & MASK64
            rest = rest[4:]
        for byte in rest:
            acc = rotl64(acc ^ (byte * self.P5 & MASK64), 11) * self.P1 & MASK64
        acc = (acc ^ (acc >> 33)) * self.P2 & MASK64
        acc = (acc ^ (acc >> 29)) * self.P3 & MASK64
        return (acc ^ (acc >> 32)).to_bytes(8, "big")

    def run(self, acc, words):
        """Returns acc after the rounds of one lane."""
        p1, p2 = self.P1, self.P2
        for word in words:
            acc = (acc + word * p2) & MASK64
            acc = ((acc << 31) | (acc >> 33)) * p1 & MASK64
        return acc


class SipHash:
    """SipHash-2-4, 64 bits. The default key is zero."""

    def __init__(self, key=bytes(16)):
        k0 = int.from_bytes(key[:8], "little")
        k1 = int.from_bytes(key[8:], "little")
        self.state = [
            k0 ^ 0x736F6D6570736575,
            k1 ^ 0x646F72616E646F6D,
            k0 ^ 0x6C7967656E657261,
            k1 ^ 0x7465646279746573,
        ]
        self.rest = b""
        self.length = 0

    def update(self, data):
        self.length += len(data)
        data = self.rest + bytes(data)
        whole = len(data) - len(data) % 8
        for word in words64(data[:whole]):
            self.state = self.compress(self.state, word)
        self.rest = data[whole:]

    def digest(self):
        last = self.rest.ljust(7, b"\0") + bytes([self.length & 0xFF])
        v = self.compress(self.state, int.from_bytes(last, "little"))
        v[2] ^= 0xFF
        v = self.rounds(v, 4)
        return (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")

    def compress(self, v, word):
        v = self.rounds([v[0], v[1], v[2], v[3] ^ word], 2)
        v[0] ^= word
        return v

    @staticmethod
    def rounds(v, count):
        v0, v1, v2, v3 = v
        for _ in range(count):
            v0 = (v0 + v1) & MASK64
            v1 = rotl64(v1, 13) ^ v0
            v0 = rotl64(v0, 32)
            v2 = (v2 + v3) & MASK64
            v3 = rotl64(v3, 16) ^ v2
            v0 = (v0 + v3) & MASK64
            v3 = rotl64(v3, 21) ^ v0
            v2 = (v2 + v1) & MASK64
            v1 = rotl64(v1, 17) ^ v2
            v2 = rotl64(v2, 32)
        return [v0, v1, v2, v3]


def from_package(package, name):
    """Returns a constructor of a PyPI package, which is imported when first needed."""

    def construct():
        return getattr(__import__(package), name)()

    return construct


ALGORITHMS = {
    "null": Null,
    "crc32": Crc32,
    "crc32c": lambda: CrcReflected(32, CRC32C_TABLE),
    "crc64": Crc64,
    "crc64nvme": lambda: CrcReflected(64, CRC64NVME_TABLE),
    "xxh64": Xxh64,
    "xxh3": from_package("xxhash", "xxh3_64"),
    "xxh128": from_package("xxhash", "xxh3_128"),
    "siphash": SipHash,
    "md5": hashlib.md5,
    "sha1": hashlib.sha1,
    "sha224": hashlib.sha224,
    "sha256": hashlib.sha256,
    "sha384": hashlib.sha384,
    "sha512": hashlib.sha512,
    "sha512-224": lambda: hashlib.new("sha512_224"),
    "sha512-256": lambda: hashlib.new("sha512_256"),
    "sha3-224": hashlib.sha3_224,
    "sha3-256": hashlib.sha3_256,
    "sha3-384": hashlib.sha3_384,
    "sha3-512": hashlib.sha3_512,
    "blake2b256": lambda: hashlib.blake2b(digest_size=32),
    "blake2b512": hashlib.blake2b,
    "blake2s256": hashlib.blake2s,
    "blake3": from_package("blake3", "blake3"),
}
