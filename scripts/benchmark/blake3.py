"""BLAKE3 in plain Python (https://github.com/BLAKE3-team/BLAKE3-specs, section 2), without keys and with 32 bytes of
output. It hashes about a MiB in a second, for machines that lack the package blake3."""

import struct

IV = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
# Words of the state that each of the eight mixing steps of a round takes: columns, then diagonals.
STEPS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
CHUNK, BLOCK = 1024, 64
MASK = 0xFFFFFFFF


class Blake3:
    def __init__(self):
        self.content = bytearray()

    def update(self, data):
        self.content += data

    def digest(self):
        return struct.pack("<8I", *tree(memoryview(self.content), 0, ROOT))


def tree(content, counter, flags):
    """Returns the chaining value of `content`, whose first chunk has the number `counter`."""
    if len(content) <= CHUNK:
        return chunk(content, counter, flags)
    # The left half has the largest power of two of chunks that leaves something.
    left = 1 << ((len(content) - 1) // CHUNK).bit_length() - 1
    halves = tree(content[: left * CHUNK], counter, 0) + tree(content[left * CHUNK :], counter + left, 0)
    return compress(IV, halves, 0, BLOCK, PARENT | flags)


def chunk(content, counter, flags):
    value = IV
    for offset in range(0, max(len(content), 1), BLOCK):
        block = bytes(content[offset : offset + BLOCK])
        words = struct.unpack("<16I", block.ljust(BLOCK, b"\0"))
        start = CHUNK_START if offset == 0 else 0
        end = CHUNK_END | flags if offset + BLOCK >= len(content) else 0
        value = compress(value, words, counter, len(block), start | end)
    return value


def compress(value, words, counter, length, flags):
    state = [*value, *IV[:4], counter & MASK, counter >> 32, length, flags]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(STEPS):
            va, vb, vc = state[a], state[b], state[c]
            va = (va + vb + words[2 * i]) & MASK
            vd = state[d] ^ va
            vd = (vd >> 16 | vd << 16) & MASK
            vc = (vc + vd) & MASK
            vb ^= vc
            vb = (vb >> 12 | vb << 20) & MASK
            va = (va + vb + words[2 * i + 1]) & MASK
            vd ^= va
            vd = (vd >> 8 | vd << 24) & MASK
            vc = (vc + vd) & MASK
            vb ^= vc
            state[a], state[b], state[c], state[d] = va, (vb >> 7 | vb << 25) & MASK, vc, vd
        words = [words[i] for i in PERMUTATION]
    return tuple(low ^ high for low, high in zip(state[:8], state[8:]))
