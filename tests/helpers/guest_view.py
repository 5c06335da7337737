"""Compares the guest content that blksum reads with the content that QEMU reads, for many images.

Environment: IMAGES is the number of random images of a test, and MUTANTS of mutants. Without them,
a test makes as many as it asks for.
"""

import hashlib
import os
import pathlib
import subprocess

import images

KIB = 1 << 10
MIB = 1 << 20
SECTOR = 512

# Content beyond this is not compared byte for byte.
LIMIT = 64 * MIB

# Names in one command line.
BATCH = 100


def count(number):
    """Returns how many random images to make."""
    return int(os.environ.get("IMAGES", number))


def random_range(rng, size, unit):
    """Returns the offset and length of some sectors of a disk, often along the borders of units."""
    border = rng.randrange(0, size // unit + 1) * unit
    start = min(max(border + rng.choice((0, 0, 0, -SECTOR, SECTOR, unit // 2)), 0), size - SECTOR)
    length = rng.choice((SECTOR, 4 * KIB, unit // 2, unit, unit, 3 * unit, unit + SECTOR))
    start -= start % SECTOR
    return start, max(SECTOR, min(length - length % SECTOR, (size - start) // SECTOR * SECTOR))


def random_writes(rng, size, unit, writes=12, zeroes=True, discards=True):
    """Returns qemu-io commands that write, clear and discard parts of a disk.

    `unit` is the size of a cluster, block or grain.
    """
    kinds = ["write"] * 4 + ["zeros"] + ["write -z"] * zeroes + ["discard"] * discards
    commands = []
    for _ in range(rng.randint(1, writes)):
        start, length = random_range(rng, size, unit)
        kind = rng.choice(kinds)
        if kind == "write":
            kind = f"write -P {rng.randint(1, 255)}"
        elif kind == "zeros":
            kind = "write -P 0"
        commands.append(f"{kind} {start} {length}")
    return commands


def ours(blksum, paths, *args):
    """Returns (checksum, None) or (None, message) for each image: the SHA-256 of its content."""
    results = {}
    paths = [str(path) for path in paths]
    for start in range(0, len(paths), BATCH):
        batch = paths[start : start + BATCH]
        run = blksum("--construction=linear", "-d", "sha256", *args, "--", *batch)
        assert run.returncode in (0, 1), run
        for line in run.stdout.decode().splitlines():
            checksum, name = line.split("  ", 1)
            results[name] = (checksum, None)
        for line in run.stderr.decode().splitlines():
            # A name with a colon is quoted.
            name, message = next(
                (
                    (name, line.removeprefix(beginning))
                    for name in batch
                    for beginning in (f"blksum: {name}: ", f"blksum: '{name}': ")
                    if line.startswith(beginning)
                ),
                (None, ""),
            )
            assert name is not None and "panic" not in line, line
            if not message.startswith(("note: ", "warning: ")):
                assert name not in results, (results[name], line)
                results[name] = (None, message)
    return [results[path] for path in paths]


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def theirs(path, fmt, *args):
    """Returns the SHA-256 of the content that QEMU reads, or None if it refuses the image."""
    raw = pathlib.Path(f"{path}.theirs")
    try:
        run = images.attempt("qemu-img", "convert", "-f", fmt, "-O", "raw", *args, str(path), str(raw))
        return digest(raw) if run.returncode == 0 else None
    finally:
        raw.unlink(missing_ok=True)


def assert_same(blksum, paths, fmt, *args):
    """Checks that blksum and QEMU read the same content, and that blksum does in several ways."""
    paths = list(paths)
    expected = [theirs(path, fmt) for path in paths]
    assert None not in expected, paths[expected.index(None)]
    for way in ((), ("--cache=no", "--threads=1"), ("--read-size=64k", "--holes=verify")):
        results = ours(blksum, paths, "-f", fmt, *way, *args)
        for path, value, (checksum, message) in zip(paths, expected, results):
            assert checksum == value, (path, way, message)


def assert_overlays_same(blksum, fmt, rng, create, recorded=()):
    """Checks random overlays of a format over raw, qcow2, vdi and itself.

    `create(rng, name, backing)` makes an image, over a name and its format if `backing` is given. An image of this
    format records the formats in `recorded` if they are below it.
    """
    groups = {below: [] for below in ("raw", "qcow2", fmt, "vdi")}
    for index in range(count(8)):
        below = list(groups)[index % len(groups)]
        base, overlay = f"{index}.base", f"{index}.{fmt}"
        if below == fmt:
            create(rng, base)
        else:
            create_base(rng, base, below)
        create(rng, overlay, (base, below))
        groups[below].append(overlay)
    for below, paths in groups.items():
        args = () if below in recorded else (f"--backing-format={below}",)
        assert_same(blksum, paths, fmt, *args)


def create_base(rng, name, fmt):
    """Creates an image that may be shorter or longer than the image on top, or end within a sector."""
    size = rng.randrange(1, 16384) * 512
    if fmt == "raw":
        pathlib.Path(name).write_bytes(rng.randbytes(size)[: size - rng.choice((0, 0, 1, 511))])
        return
    images.qemu_img("create", "-q", "-f", fmt, name, size)
    images.qemu_io(name, *random_writes(rng, size, 64 << 10), fmt=fmt)


# Mutants

VALUES = (0, 1, 2, 3, 7, 8, 9, 63, 64, 127, 128, 255, 256, 511, 512, 513, 4095, 4096, 65535, 65536, 1 << 20)
ENDS = tuple((1 << bits) + more for bits in (16, 31, 32, 40, 53, 55, 62, 63, 64) for more in (-512, -1, 0))


def mutate(rng, image, regions):
    """Returns a copy of an image with one change in its structures, and a description of the change.

    `regions` are offsets and lengths of structures.
    """
    kind = rng.choice(("bit", "bit", "number", "number", "number", "copy", "swap", "cut"))
    offset, length = rng.choice(regions)
    at = offset + rng.randrange(length)
    image = bytearray(image)
    if kind == "cut":
        end = min(max(at + rng.choice((0, 0, 1, -1, SECTOR, -SECTOR)), 0), len(image) - 1)
        return image[:end], f"cut at {end}"
    if kind == "bit":
        bit = rng.randrange(8)
        image[at] ^= 1 << bit
        return image, f"bit {bit} of byte {at}"
    width = rng.choice((1, 2, 4, 8))
    at = offset + (at - offset) // width * width
    if kind == "number":
        order = rng.choice(("little", "big"))
        old = int.from_bytes(image[at : at + width], order)
        near = (old + 1, old - 1, old * 2, old // 2, old + len(image), old + 512)
        new = rng.choice((*VALUES, *ENDS, *near, len(image), len(image) // SECTOR, -(-len(image) // 4096)))
        image[at : at + width] = (new % (1 << 8 * width)).to_bytes(width, order)
        return image, f"{width} bytes at {at}, {order} endian: {new}"
    other, more = rng.choice(regions)
    other += rng.randrange(more) // width * width
    here, there = bytes(image[at : at + width]), bytes(image[other : other + width])
    image[at : at + width] = there
    if kind == "swap":
        image[other : other + width] = here
    return image, f"{kind} {width} bytes at {at} and {other}"


def check_mutants(blksum, fmt, image, regions, number, rng, args=(), accept=None):
    """Checks that blksum refuses each mutant of an image, or reads what QEMU reads.

    `accept(mutant, checksum)` returns whether a value that QEMU does not confirm is right. Returns the
    number of mutants that both read, and the messages for those that only QEMU reads.
    """
    number = int(os.environ.get("MUTANTS", number))
    image = bytes(image)
    mutants = {}
    for index in range(number):
        content, change = mutate(rng, image, regions)
        if bytes(content) != image:
            path = pathlib.Path(f"mutant{index}.{fmt}")
            path.write_bytes(content)
            mutants[path] = change
    paths = list(mutants)
    lengths = sizes(paths, fmt)
    both, stricter = 0, []
    small = [path for path in paths if lengths[path] is None or lengths[path] <= LIMIT]
    large = [path for path in paths if path not in set(small)]
    for chosen, limit in ((small, ()), (large, (f"--length={LIMIT}",))):
        results = ours(blksum, chosen, "-f", fmt, *args, *limit)
        for path, (checksum, message) in zip(chosen, results):
            expected = first(path, fmt) if limit else theirs(path, fmt)
            if checksum is None:
                if expected is not None:
                    stricter.append(message)
            elif checksum == expected:
                both += 1
            else:
                found = (path, mutants[path], checksum, expected)
                assert accept is not None and accept(path, checksum), found
    for path in paths:
        path.unlink()
    return both, stricter


def sizes(paths, fmt):
    """Returns the size that QEMU gives each image, or None if it refuses it."""
    found = {}
    for path in paths:
        run = images.attempt("qemu-io", "-r", "-f", fmt, "-c", "length", str(path))
        words = run.stdout.decode().split()
        found[path] = size_of(words) if run.returncode == 0 and words and words[0][0].isdigit() else None
    return found


def size_of(words):
    """Reads a size as qemu-io prints it: exact, or rounded with a unit."""
    units = {"bytes": 1, "KiB": KIB, "MiB": MIB, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50, "EiB": 1 << 60}
    return int(float(words[0]) * units[words[1]])


def first(path, fmt):
    """Returns the SHA-256 of the first LIMIT bytes that QEMU reads, or None."""
    raw = pathlib.Path(f"{path}.first")
    options = (f"if={path}", f"of={raw}", f"bs={MIB}", f"count={LIMIT // MIB}")
    try:
        run = images.attempt("qemu-img", "dd", "-f", fmt, "-O", "raw", *options)
        return digest(raw) if run.returncode == 0 else None
    except subprocess.TimeoutExpired:
        return None
    finally:
        raw.unlink(missing_ok=True)
