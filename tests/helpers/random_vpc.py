"""Random images of VPC, by QEMU."""

import guest_view
import images

MIB = 1 << 20
SECTOR = 512


def create(rng, path):
    """Makes a random image with QEMU."""
    size = rng.randrange(1, 12 * 2048) * SECTOR
    subformat = "fixed" if rng.randrange(4) == 0 else "dynamic"
    options = f"subformat={subformat},force_size={rng.choice(('on', 'off'))}"
    images.qemu_img("create", "-q", "-f", "vpc", "-o", options, path, size)
    # The image can be larger, but this is what lies in every one.
    writes = guest_view.random_writes(rng, size, 2 * MIB, zeroes=False, discards=False)
    images.qemu_io(path, *writes, fmt="vpc")
