"""Random images of qcow2."""

import pathlib

import guest_view
import images

KIB = 1 << 10
MIB = 1 << 20
SECTOR = 512
CLUSTERS = (512, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 64 * KIB, 256 * KIB, MIB, 2 * MIB)


def create(rng, path, base=None):
    """Makes a random image, over a name and its format if `base` is given. Returns the names of its snapshots."""
    cluster = rng.choice(CLUSTERS)
    size = rng.randrange(1, 3 * MIB // SECTOR) * SECTOR
    options, has_data_file = random_options(rng, path, cluster, base)
    backing = ("-b", base[0], "-F", base[1]) if base else ()
    images.qemu_img("create", "-q", "-f", "qcow2", "-o", ",".join(options), *backing, path, size)
    snapshots = []
    for session in range(rng.randint(1, 3)):
        # QEMU 7.2 can corrupt an image, so that it cannot read it either, if one process mixes compressed
        # writes with others and discards.
        if not has_data_file and rng.randrange(3) == 0:
            write_compressed(rng, path, size, cluster)
        else:
            images.qemu_io(path, *random_writes(rng, size, cluster))
        if not has_data_file and rng.randrange(3) == 0:
            snapshots.append(f"s{session}")
            images.qemu_img("snapshot", "-c", snapshots[-1], path)
    return snapshots


def random_options(rng, path, cluster, base):
    """Returns options for qemu-img, and whether they name a data file."""
    options = [f"cluster_size={cluster}"]
    if rng.randrange(5) == 0:
        return [*options, "compat=0.10"], False
    if cluster >= 16 * KIB and rng.randrange(2):
        options.append("extended_l2=on")
    if rng.randrange(2):
        options.append("compression_type=zstd")
    if not base and rng.randrange(5) == 0:
        options.append(f"preallocation={rng.choice(('metadata', 'falloc', 'full'))}")
    has_data_file = not base and rng.randrange(6) == 0
    if has_data_file:
        options += [f"data_file={pathlib.Path(path).name}.data", f"data_file_raw={rng.choice(('on', 'off'))}"]
    return options, has_data_file


def random_writes(rng, size, cluster):
    for command in guest_view.random_writes(rng, size, cluster):
        is_zero = command.startswith("write -z") and rng.randrange(2)
        yield command.replace("-z", "-z -u") if is_zero else command


def write_compressed(rng, path, size, cluster):
    """Writes whole clusters. QEMU refuses those that are allocated, after it wrote the others."""
    commands = []
    for _ in range(rng.randint(1, 12)):
        start = rng.randrange(-(-size // cluster)) * cluster
        commands += ["-c", f"write -c -P {rng.randrange(256)} {start} {min(cluster, size - start)}"]
    images.attempt("qemu-io", "-f", "qcow2", *commands, str(path))


def create_base(rng, name):
    """Makes the bottom of a chain, of any length: a raw file, or a compressed image of one. Returns its format."""
    parts = (rng.randbytes(rng.randrange(MIB)), bytes(100 * KIB), b"A" * 3 * KIB, b"B" * rng.randrange(2 * MIB), b"C")
    pathlib.Path(name).write_bytes(b"".join(parts))
    if rng.randrange(2):
        return "raw"
    options = f"cluster_size={rng.choice(CLUSTERS)},compression_type={rng.choice(('zlib', 'zstd'))}"
    order = ("-W",) if rng.randrange(2) else ()
    images.qemu_img("convert", "-c", *order, "-f", "raw", "-O", "qcow2", "-o", options, name, f"{name}.qcow2")
    pathlib.Path(f"{name}.qcow2").replace(name)
    return "qcow2"
