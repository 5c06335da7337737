"""Rows of the table: the commands to compare, and their images."""

import contextlib
import dataclasses
import os
import shutil
import subprocess
import time

from .command import Command
from .inputs import MANY, file_format

# Placeholder for the measured blksum.
BLKSUM = "blksum"
SOCKET = "nbd-socket"


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    title: str
    inputs: tuple
    commands: tuple
    # Factor for the number of runs, because short ones vary more.
    times: int = 1
    # Whether qemu-nbd also serves the first input.
    served: bool = False
    # Whether tracing each system call, to measure memory, takes reasonable time.
    traced: bool = True


def ours(content, *args, digest="sha256", construction="streams:4", **more):
    """Returns a command for blksum with `args`, and options for values other than the defaults."""
    options = [] if digest == "sha256" else ["-d", digest]
    options += [] if construction == "streams:4" else ["--construction", construction]
    key = None if digest == "null" else (content, digest, construction)
    return Command(BLKSUM, (*options, *args), key=key, **more)


def with_program(command, blksum):
    """Returns `command` with BLKSUM replaced by the program."""
    if command.program != BLKSUM:
        return command
    return dataclasses.replace(command, program=blksum)


def openssl(content, image):
    return Command("openssl", ("dgst", "-sha256", image), key=(content, "sha256", "linear"))


def b3sum(content, image):
    return Command("b3sum", (image,), key=(content, "blake3", "linear"))


def convert(file_format, image):
    target = ("--target-image-opts", image, "driver=null-co,size=6G")
    return Command("qemu-img", ("convert", "-f", file_format, "-W", "-n", *target))


def cat(image):
    return Command("cat", (image,))


# Images of other formats, and the qcow2 images that they are compared with.
FORMATS = {
    **{f"disk.{it}": "disk.qcow2" for it in ("vmdk", "vhdx", "vpc", "vdi", "qed", "parallels", "qcow")},
    "stream.vmdk": "zlib.qcow2",
}


def image_rows():
    def images(*args, **more):
        return ours("image", *args, **more)

    yield Row("image-raw", "6 GiB, 1.6 GiB of it data, raw", ("disk.img", "mapped.img"), (
        *(images("disk.img", digest=it) for it in ("sha256", "blake3", "xxh3", "crc32c", "null")),
        openssl("image", "disk.img"),
        b3sum("image", "mapped.img"),
        cat("disk.img"),
        Command("nbdcopy", ("disk.img", "null:")),
        convert("raw", "disk.img"),
    ))
    yield Row("image-qcow2", "6 GiB, qcow2", ("disk.qcow2",), (
        images("disk.qcow2"),
        convert("qcow2", "disk.qcow2"),
    ))
    yield Row("image-chain", "6 GiB, qcow2 over two backing files", ("chain.qcow2",), (
        images("chain.qcow2"),
        convert("qcow2", "chain.qcow2"),
    ))
    for compression in ("zlib", "zstd"):
        name = f"{compression}.qcow2"
        yield Row(f"image-{compression}", f"6 GiB, qcow2, {compression}", (name,), (
            images(name),
            convert("qcow2", name),
        ))
    for name, compared in FORMATS.items():
        kind = file_format(name)
        label = name.removeprefix("disk.")
        yield Row(f"image-{label}", f"6 GiB, {label}", (name, compared), (
            images(name),
            images(compared),
            convert(kind, name),
        ))
    yield Row("image-pipe", "6 GiB, through a pipe", ("disk.img",), (
        images(feeder=("cat", "disk.img")),
        Command("cat", feeder=("cat", "disk.img")),
    ))
    uri = f"nbd+unix:///?socket={SOCKET}"
    yield Row("image-nbd", "6 GiB, from qemu-nbd", ("disk.img",), (
        images(uri),
        images(uri, digest="null"),
        Command("nbdcopy", (uri, "null:")),
    ), served=True)


def random_rows():
    def images(*args, **more):
        return ours("random", *args, **more)

    name = "random.img"
    yield Row("random-raw", "2 GiB of random data", (name,), (
        *(images(name, digest=it) for it in ("sha256", "blake3", "xxh3", "null")),
        cat(name),
    ))
    yield Row("random-linear", "2 GiB of random data, linear", (name,), (
        *(images(name, digest=it, construction="linear") for it in ("sha256", "blake3", "crc32c")),
        openssl("random", name),
        b3sum("random", name),
    ))
    yield Row("random-stdin", "2 GiB of random data, standard input", (name,), (
        images(stdin=name),
        images(name),
    ))
    yield Row("random-pipe", "2 GiB of random data, through a pipe", (name,), (
        images(feeder=("cat", name)),
        Command("cat", feeder=("cat", name)),
    ))


def other_rows():
    yield Row("zeros", "6 GiB of zeros that take room", ("zeros.img",), (
        ours("zeros", "zeros.img"),
        ours("zeros", "zeros.img", digest="blake3"),
        b3sum("zeros", "zeros.img"),
        cat("zeros.img"),
    ))
    images = ("empty.img", "empty.qcow2")
    yield Row("empty-100G", "100 GiB, empty", images, (
        *(ours("100 GiB", image) for image in images),
    ), times=3)
    images = ("empty.vmdk", "empty.vhdx")
    yield Row("empty-1T", "1 TiB, empty", images, (
        *(ours("1 TiB", image) for image in images),
    ), times=3)
    images = ("large.img", "large.qcow2")
    yield Row("empty-8T", "8 TiB, empty", images, (
        *(ours("8 TiB", image) for image in images),
        *(ours("8 TiB", image, construction="flat") for image in images),
    ))
    program = ("empty-program",) if shutil.which("rustc") else ()
    yield Row("small", "64 KiB", ("small.img", *program), (
        ours("small", "small.img"),
        ours("small", "small.img", construction="linear"),
        Command("sha256sum", ("small.img",), key=("small", "sha256", "linear")),
        Command("true"),
        *(Command(f"./{it}", name="an empty Rust program") for it in program),
    ), times=30)
    key = ("many", "sha256", "linear")
    yield Row("many", "10,000 images of 64 KiB", ("many",), (
        ours("many", "-r", "many"),
        ours("many", "-r", "many", construction="linear"),
        Command("sha256sum", tuple(MANY), key=key, name="sha256sum many/*"),
    ))
    for count in (10_000, 100_000, 1_000_000, 10_000_000):
        name = f"extents-{count}.img"
        yield Row(f"extents-{count}", f"{count:,} times a block of data and a hole", (name,), (
            ours(name, name),
            ours(name, name, digest="null"),
            cat(name),
        ), traced=count <= 10_000)


ROWS = [*image_rows(), *random_rows(), *other_rows()]


@contextlib.contextmanager
def served(image):
    """Serves `image` by qemu-nbd on SOCKET. Yields its process id."""
    options = ["--read-only", "--persistent", "--shared=0", "-f", "raw"]
    path = os.path.abspath(SOCKET)
    server = subprocess.Popen(["qemu-nbd", *options, "-k", path, image])
    try:
        while not os.path.exists(SOCKET):
            if server.poll() is not None:
                raise SystemExit("qemu-nbd does not start")
            time.sleep(0.01)
        yield server.pid
    finally:
        server.terminate()
        server.wait()

