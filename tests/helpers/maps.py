"""Block maps, made by `blkhash map`."""

import json

import images
from commands import blkhash

KIB = 1 << 10
MIB = 1 << 20
BLOCK = 64 * KIB


def attempt(*args, **kwargs):
    """Runs blkhash map."""
    return blkhash("map", *args, **kwargs)


def blkmap(*args, **kwargs):
    """Runs blkhash map, which must succeed. Returns its output."""
    return images.succeeded(args, attempt(*args, **kwargs)).decode()


def show(name):
    return json.loads(blkmap("show", "--json", name))


def random_content(rng, blocks, block_size=BLOCK):
    """Data, zeros that are written, and holes, in runs of blocks."""
    content = bytearray()
    while len(content) < blocks * block_size:
        count = min(rng.choice([1, 2, 7, 130]), blocks - len(content) // block_size)
        kind = rng.choice(["data", "data", "zeros"])
        block = rng.randbytes(count * block_size) if kind == "data" else bytes(count * block_size)
        content += block
    return bytes(content)
