"""Random images of QED."""

import guest_view
import images

KIB = 1 << 10
MIB = 1 << 20


def create(rng, path, base=None):
    """Creates an image of random geometry, in up to three sessions and two sizes."""
    cluster = rng.choice((4, 4, 8, 64, 64, 1024)) * KIB
    table = rng.choice((2, 4, 16))
    size = rng.randrange(1, (12 * MIB if cluster < 64 * KIB else 3 * MIB) // 512) * 512
    backing = ("-b", base[0], "-F", base[1]) if base else ()
    options = f"cluster_size={cluster},table_size={table}"
    images.qemu_img("create", "-q", "-f", "qed", *backing, "-o", options, path, size)
    for _ in range(rng.randint(1, 3)):
        images.qemu_io(path, *guest_view.random_writes(rng, size, cluster), fmt="qed")
        # QEMU does not resize an image beneath which a longer one is.
        if not base and rng.random() < 0.3:
            size += rng.randrange(1, 5 * MIB // 512) * 512
            images.qemu_img("resize", "-q", "-f", "qed", path, size)
