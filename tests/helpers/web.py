"""Content that servers have, and values of it."""

import random
import re

KIB = 1 << 10
MIB = 1 << 20

# Servers with ranges.
KINDS = ["nginx", "apache", "caddy"]


def content(size, seed=1):
    """Returns random data in half of the MiB, and zeros and single pages in the others."""
    rng = random.Random(seed)
    parts = []
    for at in range(0, size, MIB):
        part = min(MIB, size - at)
        if rng.random() < 0.5:
            parts.append(rng.randbytes(part))
        else:
            page = bytearray(part)
            page[: 4 * KIB] = rng.randbytes(4 * KIB)
            parts.append(bytes(page[:part]))
    return b"".join(parts)


def values(result):
    assert result.returncode == 0 and all(b": note: " in line for line in result.stderr.splitlines()), result
    found = [line.removeprefix(b"\\").split(b" ")[0] for line in result.stdout.splitlines()]
    assert found and all(re.fullmatch(rb"[0-9a-f]{64}", it) for it in found), result
    return found
