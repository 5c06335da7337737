"""Random images of qcow version 1."""

import guest_view
import images

KIB = 1 << 10
MIB = 1 << 20


def create(rng, path, base=None):
    """Creates an image with QEMU: clusters of 4 KiB, or of 512 bytes in an overlay."""
    cluster = 512 if base else 4 * KIB
    size = rng.randrange(cluster // 512, 6 * MIB // 512) * 512
    backing = ("-b", base[0], "-F", base[1]) if base else ()
    images.qemu_img("create", "-q", "-f", "qcow", *backing, path, size)
    # QEMU corrupts a cluster that is written again with compression.
    fresh = rng.sample(range(size // cluster), min(size // cluster, rng.randint(0, 10)))
    packed = [f"write -c -P {rng.randint(0, 255)} {at * cluster} {cluster}" for at in fresh]
    # A driver without discards ignores them.
    images.qemu_io(path, *packed, *guest_view.random_writes(rng, size, cluster), fmt="qcow")
