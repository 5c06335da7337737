"""Random copies by blkcopy."""

import os

import images
from commands import HANG, blksum_path

MIB = 1 << 20
BLOCK = 65536
PROGRAM = str(blksum_path().with_name("blkcopy"))
FORMATS = ["raw", "qcow2", "qcow2 zlib", "chain", "vmdk", "vdi", "vhdx", "vpc"]
ZEROS = ["auto", "write", "punch", "keep-if-zero"]


def attempt(*args, **kwargs):
    return images.attempt(PROGRAM, *map(str, args), **({"timeout": HANG} | kwargs))


def run(*args, **kwargs):
    return images.succeeded(args, attempt(*args, **kwargs))


def fails(status, says, *args, **kwargs):
    result = attempt(*args, **kwargs)
    assert result.returncode == status, (args, result)
    assert says in result.stderr.decode() and result.stderr.count(b"\n") == 1, (says, result)
    return result


def blksum(*args):
    return images.run(str(blksum_path()), *map(str, args)).decode()


def content(rng, size):
    """Data, stored zeros and holes: pieces of bytes, None for a hole."""
    pieces = []
    while (at := sum(length for length, _ in pieces)) < size:
        length = min(rng.choice([512, 4096, 12288, BLOCK, 5 * BLOCK, MIB, 3 * MIB]), size - at)
        data = rng.choice([None, None, bytes(length), rng.randbytes(length), bytes([rng.randrange(256)]) * length])
        pieces.append((length, data))
    return pieces


def write(path, pieces):
    """Writes a sparse raw image."""
    with open(path, "wb") as file:
        for length, data in pieces:
            if data is None:
                file.seek(length, os.SEEK_CUR)
            else:
                file.write(data)
        file.truncate(sum(length for length, _ in pieces))


def source_of(rng, raw, kind):
    """Converts a raw image to a source of this kind."""
    if kind == "raw":
        return raw
    path = raw.with_suffix("." + kind.replace(" ", "."))
    if kind == "chain":
        images.convert(raw, raw.with_suffix(".base"))
        images.create(path, str(raw.stat().st_size), "-b", raw.with_suffix(".base").name, "-F", "qcow2")
        images.qemu_io(path, *random_writes(rng, raw.stat().st_size))
        images.to_raw(path, raw)
        return path
    flags = ["-c"] if kind == "qcow2 zlib" else []
    options = ["-o", "force_size=on"] if kind == "vpc" else []
    images.qemu_img("convert", "-f", "raw", "-O", kind.split()[0], *flags, *options, raw, path)
    return path


def random_writes(rng, size):
    commands = []
    for _ in range(rng.randrange(1, 5)):
        length = min(rng.choice([512, 4096, BLOCK, 300 * 1024]), size)
        offset = rng.randrange(0, size - length + 1, 512)
        commands.append(rng.choice([f"write -P {rng.randrange(256)}", "write -z"]) + f" {offset} {length}")
    return commands


def same(path, raw, size):
    """Compares the start of a destination with the content, by cmp."""
    images.run("cmp", "-n", str(size), str(path), str(raw))


class Copying:
    """A random source."""

    def __init__(self, rng, folder, whole=512):
        self.rng, self.folder = rng, folder
        size = rng.choice([whole, 4096, 100 * 4096, MIB, 7 * MIB + whole, 20 * MIB]) // whole * whole
        self.raw = folder / "content.raw"
        self.pieces = content(rng, size)
        write(self.raw, self.pieces)
        self.source = source_of(rng, self.raw, rng.choice(FORMATS))
        self.size = self.raw.stat().st_size
        self.checksum = blksum(self.source).split()[0]

    def options(self, old=None):
        zeros = self.rng.choice(ZEROS)
        options = ["--zeros", zeros]
        if old != "new":
            options.append(self.rng.choice(["--force", "--update"]))
        if self.rng.randrange(3) == 0:
            options.append("--threads=1")
        return options

    def copy(self, options, destination):
        line = run(*options, self.source, destination).decode()
        assert line == f"{self.checksum}  {destination}\n", (options, destination)
