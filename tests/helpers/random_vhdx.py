"""Random images of VHDX, by QEMU."""

import guest_view
import images

MIB = 1 << 20


def create(rng, path, size=None):
    """Creates an image with random options. Returns its size and its block size."""
    size = size or rng.choice((rng.randrange(1, 33 * MIB // 512) * 512, rng.randrange(1, 33) * MIB))
    block = rng.choice((1, 1, 1, 2, 4, 16)) * MIB
    options = {
        "subformat": rng.choice(("dynamic", "dynamic", "dynamic", "fixed")),
        "block_size": block,
        "log_size": rng.choice((1, 1, 2, 5)) * MIB,
        "block_state_zero": rng.choice(("on", "off")),
    }
    options = ",".join(f"{key}={value}" for key, value in options.items())
    images.qemu_img("create", "-q", "-f", "vhdx", "-o", options, path, size)
    return size, block


def create_written(rng, path):
    """Creates an image, and writes to it in up to two sessions."""
    size, block = create(rng, path)
    for _ in range(rng.randint(0, 2)):
        images.qemu_io(path, *guest_view.random_writes(rng, size, block, writes=8), fmt="vhdx")
