"""The slow model of the Merkle trees of fs-verity and dm-verity, level by level.

Content is as in blkhash.py: chunks of bytes, and ints that stand for zeros.

    >>> import blkhash
    >>> blkhash.checksum(bytes(8192), construction="dm-verity", block_size=4096).hex()
    '90b10db56173e2e7c847f6ff3ed85a3aebb140bc0064ec9a156ae5b2e71db988'
    >>> blkhash.checksum(bytes(8192), construction="fs-verity", block_size=4096).hex()
    'be54121da3877f8852c65136d731784f134c4dd9d95071502e80d7be9f99b263'
"""

from digests import new

# Number in the descriptor, and bytes of a block of the hash function.
FS_VERITY = {"sha256": (1, 64), "sha512": (2, 128)}
MAX_SALT = {"fs-verity": 32, "dm-verity": 256}


def dm_verity(blocks, digest, block_size, salt=b"", hash_block_size=None):
    """Returns the root and the tree, root block first. blocks are (block, count)."""
    leaves, _ = hash_leaves(blocks, digest, block_size, salt)
    return merkle(leaves, digest, hash_block_size or block_size, salt)


def fs_verity(blocks, digest, block_size, salt=b""):
    """Returns the file digest, the tree, root block first, and the descriptor."""
    number, unit = FS_VERITY[digest]
    padded = salt + bytes(-len(salt) % unit)
    leaves, length = hash_leaves(blocks, digest, block_size, padded)
    root, tree = merkle(leaves, digest, block_size, padded)
    descriptor = bytes([1, number, block_size.bit_length() - 1, len(salt)]) + bytes(4)
    descriptor += length.to_bytes(8, "little") + root.ljust(64, b"\0") + salt.ljust(32, b"\0")
    descriptor = descriptor.ljust(256, b"\0")
    return h(digest, descriptor), tree, descriptor


def hash_leaves(blocks, digest, block_size, prefix):
    """Returns the digests of blocks, the last one padded with zeros, and the length of all."""
    leaves = []
    length = 0
    for block, count in blocks:
        leaves += [h(digest, prefix + block.ljust(block_size, b"\0"))] * count
        length += len(block) * count
    return leaves, length


def merkle(digests, digest, block_size, prefix):
    """Returns the root over digests, and the blocks of the tree, root block first."""
    if not digests:
        return bytes(len(h(digest, b""))), b""
    stride = 1 << (len(digests[0]) - 1).bit_length()
    tree = b""
    while len(digests) > 1:
        level = b"".join(it.ljust(stride, b"\0") for it in digests)
        level += bytes(-len(level) % block_size)
        tree = level + tree
        cuts = range(0, len(level), block_size)
        digests = [h(digest, prefix + level[at : at + block_size]) for at in cuts]
    return digests[0], tree


def h(digest, data):
    state = new(digest)
    state.update(data)
    return state.digest()
