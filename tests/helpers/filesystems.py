"""Real btrfs and XFS file systems on loop devices, and tools to compare with."""

import contextlib
import functools
import mmap
import os
import pathlib
import random
import re
import tempfile

import pytest

import images

MIB = 1 << 20

# Offsets of the superblocks.
SUPERBLOCKS = [64 << 10, 64 << 20, 256 << 30]


@functools.cache
def obstacle():
    """Returns the reason why file systems cannot be created here, or None if they can."""
    with tempfile.TemporaryDirectory() as folder:
        image = pathlib.Path(folder) / "probe"
        try:
            make([image], size=128 * MIB)
            with mounted([image], "ro"):
                return None
        except (AssertionError, OSError) as error:
            return f"btrfs cannot be mounted: {error}"


def require():
    """Skips the test if file systems cannot be created. Fails it in CI."""
    reason = obstacle()
    if reason and os.environ.get("CI"):
        pytest.fail(f"CI must be able to test btrfs: {reason}")
    if reason:
        pytest.skip(reason)


def make(paths, *options, size=256 * MIB):
    """Creates an empty file system on the files `paths`."""
    with contextlib.ExitStack() as stack:
        for path in paths:
            with open(path, "wb") as file:
                file.truncate(size)
        names = [str(path) for path in paths]
        if len(paths) > 1:
            names = [stack.enter_context(attached(path)) for path in paths]
        images.run("mkfs.btrfs", "-q", "-f", *options, *names)


def of_folder(path, folder, *options, size=128 * MIB):
    """Creates a file system with the files of a folder, without a mount."""
    with open(path, "wb") as file:
        file.truncate(size)
    images.run("mkfs.btrfs", "-q", "--rootdir", str(folder), *options, str(path))


def damage(path, content):
    """Changes the first byte of the block that begins with `content`. Returns its place."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as image:
        place = image.find(content)
        assert place >= 0
        image[place] ^= 1
        return place


@contextlib.contextmanager
def attached(path, *options):
    """Temporarily attaches the file to a loop device."""
    device = images.run("losetup", "-f", "--show", *options, str(path)).decode().strip()
    try:
        yield device
    finally:
        # The kernel remembers the devices of a btrfs that was mounted. While others of its devices are mounted
        # again, it refuses to mount another btrfs on this one, which another test may get.
        images.attempt("btrfs", "device", "scan", "--forget", device)
        images.run("losetup", "-d", device)


@contextlib.contextmanager
def mounted(paths, options="rw"):
    """Temporarily mounts the file system on the files, with read-only devices for the option `ro`."""
    read_only = ["-r"] if "ro" in options.split(",") else []
    with contextlib.ExitStack() as stack:
        devices = [stack.enter_context(attached(path, *read_only)) for path in paths]
        for device in devices:
            images.run("btrfs", "device", "scan", device)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        images.run("mount", "-t", "btrfs", "-o", options, devices[0], folder)
        stack.callback(images.run, "umount", folder)
        yield pathlib.Path(folder)


@contextlib.contextmanager
def xfs(path, *options, size=512 * MIB):
    """Temporarily mounts a new XFS on the file `path`. The kernel must be able to."""
    with open(path, "wb") as file:
        file.truncate(size)
    images.run("mkfs.xfs", "-q", *options, str(path))
    with attached(path) as device, folder_of(device) as root:
        yield root


@contextlib.contextmanager
def folder_of(device):
    """Temporarily mounts the file system of a device, of any kind."""
    with tempfile.TemporaryDirectory() as folder:
        images.run("mount", device, folder)
        try:
            yield pathlib.Path(folder)
        finally:
            images.run("umount", folder)


def fill(root, seed=1, data=8 * MIB):
    """Fills a mounted file system with every kind of file."""
    source = random.Random(seed)
    text = b"".join(b"%d " % source.randrange(1000) for _ in range(100_000))
    for name in ["zlib", "lzo", "zstd"]:
        path = root / name
        path.touch()
        images.run("btrfs", "property", "set", str(path), "compression", name)
        path.write_bytes(text)
    path = root / "nodatacow"
    path.touch()
    images.run("chattr", "+C", str(path))
    path.write_bytes(source.randbytes(300_000))
    images.run("fallocate", "-l", "1M", str(root / "preallocated"))
    with open(root / "preallocated", "r+b") as file:
        file.seek(256 << 10)
        file.write(source.randbytes(64 << 10))
    folder = root / "folder" / "deeper"
    folder.mkdir(parents=True)
    (folder / "inline").write_bytes(b"a few bytes")
    (folder / "big").write_bytes(source.randbytes(data))
    for number in range(300):
        (folder / f"small{number}").write_bytes(source.randbytes(source.randrange(1, 30_000)))
    os.link(folder / "small1", root / "a second name")
    with open(root / "holes", "wb") as file:
        for _ in range(20):
            file.seek(source.randrange(64) * 70_000)
            file.write(source.randbytes(9_000))
        file.truncate(8 * MIB)
    with open(root / "zeros", "wb") as file:
        file.write(bytes(MIB))
    sync(root)
    images.run("cp", "--reflink=always", str(folder / "big"), str(root / "reflink"))
    with open(folder / "big", "r+b") as file:
        for _ in range(10):
            file.seek(source.randrange(data))
            file.write(source.randbytes(5_000))
    images.run("btrfs", "subvolume", "create", str(root / "subvolume"))
    (root / "subvolume" / "inside").write_bytes(source.randbytes(100_000))
    sync(root)
    images.run("btrfs", "subvolume", "snapshot", str(root), str(root / "snapshot"))
    images.run("btrfs", "subvolume", "snapshot", "-r", str(root / "subvolume"), str(root / "ro"))
    for number in range(0, 300, 7):
        (folder / f"small{number}").unlink()
    (root / "subvolume" / "inside").write_bytes(source.randbytes(50_000))
    sync(root)


def sync(root):
    images.run("btrfs", "filesystem", "sync", str(root))


def filled(path, *options, size=256 * MIB, data=8 * MIB):
    """Creates and fills a file system on one device."""
    make([path], *options, size=size)
    with mounted([path], "rw,nodiscard") as root:
        fill(root, data=data)
    return path


def scrub(paths, options="ro"):
    """Returns the counters of a scrub of an unmounted file system."""
    with mounted(paths, options) as root:
        images.attempt("btrfs", "scrub", "start", "-Br", str(root))
        output = images.run("btrfs", "scrub", "status", "-R", str(root)).decode()
    assert "finished" in output, output
    return {name: int(value) for name, value in re.findall(r"(\w+): (\d+)\n", output)}


def errors(counters):
    """Returns the error counters of a scrub that are not zero."""
    names = ["read_errors", "csum_errors", "verify_errors", "super_errors"]
    return {name: counters[name] for name in names if counters[name]}


def check(path):
    """Runs `btrfs check --check-data-csum`. Returns its status, and the bad sectors as (logical, mirror)."""
    result = images.attempt("btrfs", "check", "--check-data-csum", str(path))
    output = result.stdout + result.stderr
    found = re.findall(rb"mirror (\d+) bytenr (\d+) csum", output)
    return result.returncode, {(int(logical), int(mirror)) for mirror, logical in found}


class Layout:
    """Locations on a file system of one device, as printed by btrfs-progs."""

    def __init__(self, path):
        self.chunks = []
        text = dump(path, "chunk")
        for item in text.split("\titem ")[1:]:
            found = re.search(r"CHUNK_ITEM (\d+)\).*\n\s+length (\d+) .* type (\S+)", item)
            if found:
                stripes = [int(it) for it in re.findall(r"stripe \d+ devid \d+ offset (\d+)", item)]
                self.chunks.append((int(found[1]), int(found[2]), found[3], stripes))
        self.data = []
        self.blocks = []
        size = int(re.search(r"nodesize\s+(\d+)", super_of(path))[1])
        for item in dump(path, "extent").split("\titem ")[1:]:
            if found := re.search(r"key \((\d+) EXTENT_ITEM (\d+)\)", item):
                kind = self.data if "flags DATA" in item else self.blocks
                kind.append((int(found[1]), int(found[2])))
            elif found := re.search(r"key \((\d+) METADATA_ITEM \d+\)", item):
                self.blocks.append((int(found[1]), size))

    def places(self, logical):
        """Returns the physical addresses of all mirrors. Does not support striped profiles."""
        for start, length, _, stripes in self.chunks:
            if start <= logical < start + length:
                return [offset + logical - start for offset in stripes]
        raise AssertionError(f"{logical} is in no chunk")

    def unused(self, source):
        """Returns a physical address in a chunk that is not in use."""
        used = sorted(self.data + self.blocks)
        while True:
            start, length, _, stripes = source.choice(self.chunks)
            logical = start + source.randrange(length)
            physical = source.choice(stripes) + logical - start
            is_used = any(first <= logical < first + size for first, size in used)
            is_super = any(first <= physical < first + 4096 for first in SUPERBLOCKS)
            if not is_used and not is_super:
                return physical


def dump(path, tree):
    return images.run("btrfs", "inspect-internal", "dump-tree", "-t", tree, str(path)).decode()


def dump_devices(paths, tree):
    """Dumps a tree of a file system on several devices."""
    with contextlib.ExitStack() as stack:
        devices = [stack.enter_context(attached(path, "-r")) for path in paths]
        for device in devices:
            images.run("btrfs", "device", "scan", device)
        return dump(devices[0], tree)


def super_of(path):
    return images.run("btrfs", "inspect-internal", "dump-super", str(path)).decode()


def field_of(path, name):
    """Returns a field of the superblock, as printed by btrfs-progs."""
    return re.search(rf"^{name}\s+(\S+)", super_of(path), re.MULTILINE)[1]


@contextlib.contextmanager
def changed(path, physical):
    """Temporarily changes one byte of the file."""
    with open(path, "r+b") as file:
        file.seek(physical)
        byte = file.read(1)
        file.seek(physical)
        file.write(bytes([byte[0] ^ 0x5A]))
        file.flush()
        try:
            yield
        finally:
            file.seek(physical)
            file.write(byte)
