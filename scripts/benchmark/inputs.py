"""Creates the measured images when a row needs them, and verifies their content. The SHA-256 that blksum
computes must equal Python's hashlib's."""

import dataclasses
import hashlib
import os
import pathlib
import subprocess
from typing import Callable

from .command import Command, run

GIB = 1 << 30
MIB = 1 << 20
KIB = 1 << 10
SCRIPTS = pathlib.Path(__file__).resolve().parent.parent

# Size of the image with real files.
SIZE = 6 * GIB
# Unit in which data is distributed over the layers of the chain.
STRIPE = MIB
LAYERS = ["base.qcow2", "middle.qcow2", "chain.qcow2"]
EMPTY_RUST = "fn main() {}\n"


@dataclasses.dataclass(frozen=True)
class Input:
    make: Callable[[str], None]
    # Name of the content. Images with the same content have the same checksum.
    content: str | None = None
    # Bytes that it takes in the folder.
    room: int = 0
    # Inputs that must exist as long as this one.
    needs: tuple = ()
    # Blocks of the file system that it takes in addition to `room`.
    blocks: int = 0


class Inputs:
    """The images in the current folder."""

    def __init__(self, blksum):
        self.blksum = blksum
        self.sums = {}
        self.blocks = {}

    def make(self, names):
        for name in names:
            if not os.path.exists(name):
                self.make(INPUTS[name].needs)
                INPUTS[name].make(name)
                self.check(name)
                self.blocks[name] = os.stat(name).st_blocks

    def check_sparse(self, names):
        """Fails if a program has turned holes into data. Mapping a file in a tmpfs does this."""
        for name in names:
            if name not in MAPPED and os.stat(name).st_blocks != self.blocks[name]:
                raise SystemExit(f"{name} was changed by what read it: its holes are gone")

    def check(self, name):
        content = INPUTS[name].content
        if content is None:
            return
        if content not in self.sums:
            with open(name, "rb") as file:
                self.sums[content] = hashlib.file_digest(file, "sha256").hexdigest()
        command = Command(self.blksum, ("--construction", "linear", name), key=(content,))
        checksum, = command.checksums(run(command).output)
        if checksum != self.sums[content]:
            raise SystemExit(f"{name} has not the content of {content}")


def closure(names):
    """Returns `names` and everything that they need."""
    return set(names).union(*(closure(INPUTS[name].needs) for name in names))


def room(names):
    missing = [INPUTS[name] for name in closure(names) if not os.path.exists(name)]
    return sum(it.room + it.blocks * block_size() for it in missing)


def block_size():
    """Returns the size of the smallest extent of the folder's file system, at most 4 KiB."""
    return min(os.statvfs(".").f_frsize, 4 * KIB)


def remove(keep):
    """Deletes inputs that none of `keep` needs."""
    keep = closure(keep)
    for name in INPUTS:
        if name not in keep and os.path.exists(name):
            if os.path.isdir(name):
                subprocess.run(["rm", "-r", name], check=True)
            else:
                os.remove(name)


def quietly(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def real_image(name):
    quietly(SCRIPTS / "real-image", name, "--size", str(SIZE // MIB), "--files", "1600")


def qcow2(*options):
    return lambda name: quietly(
        "qemu-img", "convert", "-W", "-m", "16", "-O", "qcow2", *options, "disk.img", name
    )


def file_format(name):
    """Returns the format that the ending of a name says."""
    return name.rpartition(".")[2]


def converted(options=""):
    """An image of the format that its name says."""

    def make(name):
        options_of = ["-o", options] if options else []
        write = ["qemu-img", "convert", "-f", "raw", "-O", file_format(name), *options_of]
        quietly(*write, "disk.img", name)

    return make


def layer(number):
    """An overlay with every third MiB of the data."""

    def make(name):
        part("disk.img", "part.img", number)
        backing = ["-b", LAYERS[number - 1], "-F", "qcow2"] if number else []
        quietly("qemu-img", "create", "-q", "-f", "qcow2", *backing, name, str(SIZE))
        # Zeros of the part are left to the layer below, not written as zeros.
        write = ["qemu-img", "convert", "-n", "--target-is-zero", "-f", "raw", "-O", "qcow2"]
        quietly(*write, "part.img", name)
        os.remove("part.img")

    return make


def part(source, target, number):
    """Makes a sparse copy of every third stripe of data in `source`, starting with stripe `number`."""
    with open(source, "rb") as file, open(target, "wb") as out:
        out.truncate(SIZE)
        position = 0
        while position < SIZE:
            try:
                data = os.lseek(file.fileno(), position, os.SEEK_DATA)
            except OSError:
                return
            position = os.lseek(file.fileno(), data, os.SEEK_HOLE)
            while data < position:
                end = min(position, (data // STRIPE + 1) * STRIPE)
                if data // STRIPE % len(LAYERS) == number:
                    os.pwrite(out.fileno(), os.pread(file.fileno(), end - data, data), data)
                data = end


def mapped_image(name):
    quietly("cp", "--sparse=always", "disk.img", name)


def random_data(size):
    def make(name):
        with open(name, "wb") as file:
            for _ in range(0, size, MIB):
                file.write(os.urandom(min(size, MIB)))

    return make


def zeros(name):
    with open(name, "wb") as file:
        for _ in range(0, SIZE, MIB):
            file.write(bytes(MIB))


def empty_raw(size):
    return lambda name: quietly("truncate", "-s", str(size), name)


def empty(size):
    return lambda name: quietly("qemu-img", "create", "-q", "-f", file_format(name), name, str(size))


def tiny_extents(count):
    """Alternates a block of data and a hole of a block."""

    def make(name):
        data = os.urandom(block_size())
        with open(name, "wb") as file:
            file.truncate(count * 2 * len(data))
            for number in range(count):
                os.pwrite(file.fileno(), data, number * 2 * len(data))
            # Unwritten extents may not be reported as data.
            os.fsync(file.fileno())

    return make


def many_images(name):
    os.mkdir(name)
    for path in MANY:
        random_data(64 * KIB)(path)


def empty_program(name):
    subprocess.run(["rustc", "-O", "-o", name, "-"], input=EMPTY_RUST, text=True, check=True)


MAPPED = ["mapped.img"]
MANY = [f"many/{number:05}" for number in range(10_000)]

INPUTS = {
    "disk.img": Input(real_image, "the image", 2 * GIB),
    # For programs that map the image, which fills all of its holes in a tmpfs.
    "mapped.img": Input(mapped_image, "the image", SIZE, ("disk.img",)),
    "disk.qcow2": Input(qcow2(), "the image", 2 * GIB, ("disk.img",)),
    "zlib.qcow2": Input(qcow2("-c"), "the image", GIB, ("disk.img",)),
    "zstd.qcow2": Input(
        qcow2("-c", "-o", "compression_type=zstd"), "the image", GIB, ("disk.img",)
    ),
    **{
        f"disk.{it}": Input(converted(), "the image", 2 * GIB, ("disk.img",))
        for it in ("vmdk", "vdi", "qed", "parallels", "qcow")
    },
    # Its blocks are large.
    "disk.vhdx": Input(converted(), "the image", 3 * GIB, ("disk.img",)),
    "disk.vpc": Input(converted("force_size=on"), "the image", 2 * GIB, ("disk.img",)),
    "stream.vmdk": Input(
        converted("subformat=streamOptimized"), "the image", GIB, ("disk.img",)
    ),
    "base.qcow2": Input(layer(0), None, GIB, ("disk.img",)),
    "middle.qcow2": Input(layer(1), None, GIB, ("disk.img", "base.qcow2")),
    "chain.qcow2": Input(layer(2), "the image", GIB, ("disk.img", "middle.qcow2")),
    "random.img": Input(random_data(2 * GIB), "random data", 2 * GIB),
    "zeros.img": Input(zeros, "zeros", SIZE),
    "empty.img": Input(empty_raw(100 * GIB)),
    "empty.qcow2": Input(empty(100 * GIB)),
    "empty.vmdk": Input(empty(1024 * GIB)),
    "empty.vhdx": Input(empty(1024 * GIB)),
    "large.img": Input(empty_raw(8192 * GIB)),
    "large.qcow2": Input(empty(8192 * GIB)),
    "small.img": Input(random_data(64 * KIB), "a small image"),
    "empty-program": Input(empty_program),
    "many": Input(many_images, None, GIB),
    **{
        f"extents-{count}.img": Input(
            # Metadata of the file system for these extents takes one percent of their size.
            tiny_extents(count), f"{count} extents", blocks=count + count // 100
        )
        for count in (10_000, 100_000, 1_000_000, 10_000_000)
    },
}
