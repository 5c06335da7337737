"""Random images of Parallels."""

import struct

import guest_view
import images

KIB = 1 << 10
MIB = 1 << 20
SECTOR = 512


def create(rng, path):
    """Makes a random image of either variant."""
    size = rng.randrange(1, 4096) * SECTOR
    cluster = rng.choice((SECTOR, 4 * KIB, 63 * SECTOR, 64 * KIB, MIB))
    options = f"cluster_size={cluster}"
    images.qemu_img("create", "-q", "-f", "parallels", "-o", options, path, size)
    # A discard fails in QEMU 7.2.
    writes = guest_view.random_writes(rng, size, cluster, discards=False)
    images.qemu_io(path, *writes, fmt="parallels")
    if rng.random() < 0.5:
        change(path, rng)


def change(path, rng):
    """Changes a table: entries in any order, cleared and shared, and in sectors."""
    data = bytearray(path.read_bytes())
    tracks, count = struct.unpack_from("<II", data, 28)
    entries = list(struct.unpack_from(f"<{count}I", data, 64))
    rng.shuffle(entries)
    for index in range(count):
        if rng.random() < 0.1:
            entries[index] = 0
    if rng.random() < 0.7:
        data[:16] = b"WithoutFreeSpace"
        entries = [entry * tracks for entry in entries]
        # These bytes are not used.
        struct.pack_into("<I", data, 40, rng.choice((0, 1)))
    struct.pack_into(f"<{count}I", data, 64, *entries)
    path.write_bytes(data)
