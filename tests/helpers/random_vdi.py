"""Random images of VDI."""

import struct

import guest_view
import images

MIB = 1 << 20
SECTOR = 512


def create(rng, path):
    """Makes a random image."""
    size = rng.randrange(1, 6 * 2048) * SECTOR
    options = ("-o", "static=on") if rng.randrange(3) == 0 else ()
    images.qemu_img("create", "-q", "-f", "vdi", *options, path, size)
    images.qemu_io(path, *guest_view.random_writes(rng, size, MIB), fmt="vdi")
    if rng.random() < 0.5:
        shuffle(path, rng)


def shuffle(path, rng):
    """Exchanges blocks of the file, with their entries, and discards some."""
    data = bytearray(path.read_bytes())
    size, count = struct.unpack_from("<Q", data, 0x170)[0], struct.unpack_from("<I", data, 0x180)[0]
    table, start = struct.unpack_from("<II", data, 0x154)
    entries = list(struct.unpack_from(f"<{count}I", data, table))
    stored = [index for index, entry in enumerate(entries) if entry < 0xFFFF_FFFE]
    for _ in range(len(stored)):
        one, other = rng.choice(stored), rng.choice(stored)
        here, there = (start + entries[index] * MIB for index in (one, other))
        block, data[here : here + MIB] = data[here : here + MIB], data[there : there + MIB]
        data[there : there + MIB] = block
        entries[one], entries[other] = entries[other], entries[one]
    for index in range(count):
        if rng.random() < 0.1:
            entries[index] = rng.choice((0xFFFF_FFFE, 0xFFFF_FFFF))
        elif stored and rng.random() < 0.05:
            # Two blocks in one place.
            entries[index] = entries[rng.choice(stored)]
    struct.pack_into(f"<{count}I", data, table, *entries)
    if size % MIB and rng.random() < 0.2:
        # VirtualBox makes such images. QEMU rounds the size up.
        struct.pack_into("<Q", data, 0x170, size - rng.randrange(1, SECTOR))
    path.write_bytes(data)
