"""Images in use or changing while they are read, block devices, and real read errors."""

import contextlib
import fcntl
import hashlib
import mmap
import os
import pathlib
import random
import subprocess
import sys
import time

import pytest

import blkhash
import filesystems
import images
import imagespec
from changing import LONG, finish, loop_device, start_reading
from commands import assert_refused

GIB = 1 << 30


# Locks of QEMU


@contextlib.contextmanager
def held_by_qemu(path, *options, fmt="qcow2"):
    """Holds the image open in a real qemu-io."""
    process = subprocess.Popen(
        ["qemu-io", "-f", fmt, *options, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        process.stdin.write(b"length\n")
        process.stdin.flush()
        # An answer shows that it has opened and locked the image.
        answer = b""
        while b"iB" not in answer and b"bytes" not in answer:
            data = os.read(process.stdout.fileno(), 4096)
            assert data, answer
            answer += data
        yield
    finally:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


def qemu_img_refuses(path):
    command = ["qemu-img", "convert", "-O", "raw", path, "/dev/null"]
    result = subprocess.run(command, capture_output=True, timeout=60)
    return result.returncode != 0 and b"lock" in result.stderr


@pytest.mark.parametrize("fmt", ["qcow2", "raw"])
def test_image_open_for_writing(blksum, workdir, fmt):
    images.qemu_img("create", "-q", "-f", fmt, "disk", "1M")
    value = blkhash.checksum([1 << 20]).hex()
    assert blksum.hex("disk") == value
    with held_by_qemu("disk", fmt=fmt):
        assert qemu_img_refuses("disk")
        assert_refused(blksum("disk"), "disk", "--force-share")
        with open("disk", "rb") as file:
            assert_refused(blksum(stdin=file), "--force-share")
        for option in ("-U", "--force-share"):
            assert blksum.hex(option, "disk") == value
    assert blksum.hex("disk") == value


@pytest.mark.parametrize("fmt", ["qcow2", "raw"])
def test_image_open_for_reading(blksum, workdir, fmt):
    images.qemu_img("create", "-q", "-f", fmt, "disk", "1M")
    with held_by_qemu("disk", "-r", fmt=fmt):
        assert not qemu_img_refuses("disk")
        assert blksum.hex("disk") == blkhash.checksum([1 << 20]).hex()


def test_backing_file_open_for_writing(blksum, workdir):
    images.create("base.qcow2", "1M")
    images.create("middle.qcow2", "1M", "-b", "base.qcow2", "-F", "qcow2")
    images.create("top.qcow2", "1M", "-b", "middle.qcow2", "-F", "qcow2")
    with held_by_qemu("base.qcow2"):
        assert qemu_img_refuses("top.qcow2")
        assert_refused(blksum("top.qcow2"), "base.qcow2", "--force-share")
        assert blksum.hex("-U", "top.qcow2") == blkhash.checksum([1 << 20]).hex()
    # A guest that writes the top layer opens its backing files for reading, so they may be read.
    with held_by_qemu("top.qcow2"):
        assert not qemu_img_refuses("base.qcow2")
        assert blksum.hex("base.qcow2") == blkhash.checksum([1 << 20]).hex()
        assert_refused(blksum("top.qcow2"), "top.qcow2", "--force-share")


def test_data_file_open_for_writing(blksum, workdir):
    imagespec.write("1m:A", "raw")
    images.convert_data_file(workdir / "raw", workdir / "disk.qcow2", "data_file_raw=on")
    with held_by_qemu("disk.data", fmt="raw"):
        assert qemu_img_refuses("disk.qcow2")
        assert_refused(blksum("disk.qcow2"), "disk.data", "--force-share")


@pytest.mark.parametrize("byte", [101, 103])
def test_lock_bytes_of_write_and_resize(blksum, workdir, byte):
    """The permissions WRITE and RESIZE, locked as in QEMU: shared, on one byte."""
    imagespec.write("1m:A", "disk")
    with open("disk", "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_SH, 1, byte)
        assert_refused(blksum("disk"), "disk", "--force-share")
        assert blksum.hex("-U", "disk") == blkhash.checksum(b"A" * (1 << 20)).hex()
    assert blksum.hex("disk") == blkhash.checksum(b"A" * (1 << 20)).hex()


def test_lock_of_reading_is_no_writer(blksum, workdir):
    imagespec.write("1m:A", "disk")
    with open("disk", "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_SH, 1, 100)
        assert blksum.hex("disk") == blkhash.checksum(b"A" * (1 << 20)).hex()


# Changes during reading


def test_raw_truncated_while_read(blksum, workdir):
    imagespec.write(f"1m:A {LONG}:- 1m:B", "disk")
    process = start_reading(blksum, "--holes=ignore", "disk")
    os.truncate("disk", GIB)
    assert_refused(finish(process), "disk")


def start_mapping(blksum, path, *args):
    """Starts a blksum, and waits until it has mapped a part of the file."""
    process = blksum.start("--threads=1", *args, path)
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{process.pid}/maps") as maps:
            if any(line.rstrip().endswith(os.path.realpath(path)) for line in maps):
                return process
        time.sleep(0.0005)
    process.kill()
    pytest.skip(f"Linux {os.uname().release} does not tell what is in the page cache")


@pytest.mark.parametrize("fmt", ["raw", "qcow2"])
@pytest.mark.parametrize("digest", ["sha256", "blake3"])
def test_truncated_while_mapped(blksum, workdir, fmt, digest):
    """The kernel sends SIGBUS to a process that accesses truncated pages."""
    imagespec.write(f"{GIB // 2}:A", "disk.raw")
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", fmt, "disk.raw", "disk"], check=True)
    # Written back, so that it may leave the page cache, and read, so that it is in it.
    subprocess.run(["sync", "-f", "disk"], check=True)
    pathlib.Path("disk").read_bytes()
    process = start_mapping(blksum, "disk", "--digest", digest)
    os.truncate("disk", 1 << 20)
    assert_refused(finish(process), "disk")


@pytest.mark.slow
def test_raw_grown_while_read(blksum, workdir):
    imagespec.write(f"1m:A {LONG}:- 1m:B", "disk")
    process = start_reading(blksum, "--holes=ignore", "disk")
    with open("disk", "ab") as file:
        file.write(b"more")
    assert_refused(finish(process), "disk")


@pytest.mark.slow
def test_raw_written_while_read(blksum, workdir):
    imagespec.write(f"1m:A {LONG}:- 1m:B", "disk")
    process = start_reading(blksum, "--holes=ignore", "disk")
    with open("disk", "r+b") as file:
        file.write(b"other")
    assert_refused(finish(process), "disk")


def test_written_while_read_with_force_share_is_told_by_nothing(blksum, workdir):
    """With -U, content that changes is accepted."""
    imagespec.write(f"1m:A {LONG // 4}:- 1m:B", "disk")
    process = start_reading(blksum, "-U", "--holes=ignore", "disk")
    with open("disk", "r+b") as file:
        file.write(b"A")
    result = finish(process)
    assert result.returncode == 0, result
    value = blkhash.checksum(imagespec.chunks(f"1m:A {LONG // 4}:- 1m:B")).hex()
    assert result.stdout.decode() == f"{value}  disk\n"


@pytest.mark.slow
def test_backing_file_written_while_read(blksum, workdir):
    imagespec.write(f"1m:A {LONG}:- 1m:B", "base.img")
    images.create("top.qcow2", str(LONG), "-b", "base.img", "-F", "raw")
    process = start_reading(blksum, "--holes=ignore", "top.qcow2")
    with open("base.img", "r+b") as file:
        file.write(b"other")
    assert_refused(finish(process), "base.img")


def test_metadata_of_the_folder_may_change_while_read(blksum, workdir):
    """Reading changes access times. A new file in the folder changes no content."""
    spec = f"1m:A {LONG // 4}:- 1m:B"
    imagespec.write(spec, "disk")
    process = start_reading(blksum, "--holes=ignore", "disk")
    (workdir / "other").touch()
    with open("disk", "rb") as file:
        file.read(10)
    result = finish(process)
    value = blkhash.checksum(imagespec.chunks(spec)).hex()
    assert (result.returncode, result.stdout.decode()) == (0, f"{value}  disk\n"), result


# Within a clock tick

# Number of changes to a file at random points of a run.
REPETITIONS = int(os.environ.get("BLKSUM_REPETITIONS", "20"))

MARKS = 64
STEP = 64 << 10


@contextlib.contextmanager
def mounted(path, kind, *make):
    """Mounts a new file system in the file `path`."""
    with open(path, "wb") as file:
        file.truncate(64 << 20)
    images.run(*make, str(path))
    folder = pathlib.Path(f"{path}.mounted")
    folder.mkdir()
    result = images.attempt("mount", "-o", "loop", "-t", kind, str(path), str(folder))
    if result.returncode != 0:
        assert "CI" not in os.environ, result
        pytest.skip(f"cannot mount {kind}: {result.stderr}")
    try:
        yield folder
    finally:
        images.run("umount", str(folder))


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("inode_size, kind", [(128, "ext4"), (256, "ext2")])
def test_no_torn_content_within_a_tick(blksum, workdir, inode_size, kind):
    """Time stamps with a resolution of a second, and of a tick of the kernel's clock. The result is the
    content of one moment, or an error."""

    def content(marks):
        """Returns the content after `marks` marks, set from front to back."""
        mark, rest = b"B" * 4096 + b"A" * (STEP - 4096), b"A" * STEP
        return marks * mark + (MARKS - marks) * rest

    make = ["mke2fs", "-q", "-F", "-t", kind, "-I", str(inode_size)]
    values = {hashlib.sha256(content(marks)).hexdigest() for marks in range(MARKS + 1)}
    source = random.Random(1)
    longest = 0.02
    with mounted(workdir / "image", kind, *make) as root:
        (root / "disk").write_bytes(content(0))
        with open(root / "disk", "r+b", buffering=0) as file:
            for _ in range(REPETITIONS):
                for mark in range(MARKS):
                    os.pwrite(file.fileno(), b"A" * 4096, mark * STEP)
                started = time.monotonic()
                process = blksum.start("--construction", "linear", "--threads=1", root / "disk")
                time.sleep(longest * source.random())
                for mark in range(MARKS):
                    os.pwrite(file.fileno(), b"B" * 4096, mark * STEP)
                result = finish(process)
                if inode_size == 256:
                    longest = min(0.1, time.monotonic() - started)
                if result.returncode == 0:
                    assert result.stdout.split()[0].decode() in values, "torn"
                else:
                    assert_refused(result, "disk")


# Read errors


def test_read_error(blksum, workdir):
    """/proc/self/mem opens, but reading at offset 0 fails."""
    result = blksum("-f", "raw", "/proc/self/mem")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"/proc/self/mem" in result.stderr


def test_file_that_does_not_know_its_size(blksum, workdir):
    """Its size is reported as 0, but reading returns data. The result is its checksum or an error, never
    the checksum of no data."""
    theirs = subprocess.run(["sha256sum", "/proc/version"], capture_output=True, check=True)
    ours = blksum("-f", "raw", "--construction", "linear", "/proc/version")
    assert (ours.returncode, ours.stdout) in [(0, theirs.stdout), (1, b"")]


def test_damaged_compressed_cluster(blksum, workdir):
    imagespec.write("1m:#", "raw")
    for compression in ("zlib", "zstd"):
        options = f"compression_type={compression}"
        images.convert(workdir / "raw", workdir / "disk.qcow2", options, ["-c"])
        value = blkhash.file_checksum("raw").hex()
        assert blksum.hex("disk.qcow2") == value
        size = os.path.getsize("disk.qcow2")
        start = 5 * 65536
        assert size > start
        with open("disk.qcow2", "r+b") as file:
            file.seek(start)
            file.write(b"\xff" * (size - start))
        theirs = subprocess.run(
            ["qemu-img", "convert", "-O", "raw", "disk.qcow2", "out"], capture_output=True
        )
        assert theirs.returncode == 1
        assert_refused(blksum("disk.qcow2"), "disk.qcow2")


# Block devices


@pytest.mark.root
@pytest.mark.parametrize("cache", ["auto", "yes", "no"])
def test_block_device(blksum, workdir, cache):
    spec = "1m:A 3m:- 1m:0 2m:# 5m:- 512:B"
    imagespec.write(spec, "disk")
    value = blkhash.checksum(imagespec.chunks(spec)).hex()
    with loop_device("disk") as device:
        for threads in ("1", "2", "5"):
            assert blksum.hex(f"--cache={cache}", "--threads", threads, device) == value
        with open(device, "rb") as file:
            assert blksum.hex(f"--cache={cache}", stdin=file) == value


@pytest.mark.root
def test_block_device_written_by_another_is_read_fresh(blksum, workdir):
    """Block devices are read directly, so stale pages of the page cache are not used."""
    imagespec.write("2m:A", "disk")
    with loop_device("disk") as device:
        with open(device, "rb") as file:
            file.read()
            assert blksum.hex(device) == blkhash.checksum(b"A" * (2 << 20)).hex()
            with open("disk", "r+b") as behind:
                behind.write(b"B" * (2 << 20))
                os.fsync(behind.fileno())
            assert blksum.hex(device) == blkhash.checksum(b"B" * (2 << 20)).hex()


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("cache", ["auto", "yes"])
@pytest.mark.parametrize("flags", [os.O_DIRECT, 0], ids=["direct", "cached"])
def test_block_device_written_while_read(blksum, workdir, flags, cache):
    imagespec.write(f"4m:A {GIB}:- 4m:B", "disk")
    with loop_device("disk") as device:
        # sha512 does not map content. With it, reads are counted.
        process = start_reading(blksum, "--digest=sha512", f"--cache={cache}", device)
        write_device(device, flags)
        assert_refused(finish(process), device, "written to while it was read")


def write_device(device, flags=os.O_DIRECT):
    with mmap.mmap(-1, 4096) as page:
        page.write(b"C" * 4096)
        descriptor = os.open(device, os.O_WRONLY | flags)
        try:
            assert os.pwritev(descriptor, [page], 0) == 4096
        finally:
            os.close(descriptor)


@pytest.mark.root
def test_block_device_whose_file_is_written_while_read(blksum, workdir):
    imagespec.write(f"4m:A {GIB}:- 4m:B", "disk")
    with loop_device("disk") as device:
        process = start_reading(blksum, device)
        with open("disk", "r+b") as file:
            file.write(b"other")
        assert_refused(finish(process), device, "written to while it was read")


MAPPED_WRITER = """
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR)
with mmap.mmap(file, 0) as memory:
    for offset in range(0, len(memory), 4096):
        memory[offset] = 1
    print("ready", flush=True)
    number = 0
    while True:
        number += 1
        memory[0] = memory[len(memory) - 4096] = number % 256
        time.sleep(0.0001)
"""


@pytest.mark.root
def test_mapped_writes_through_an_overlay(blksum, workdir):
    """The root of a container. Its pages belong to another file."""
    with open("disk", "wb") as file:
        file.truncate(300 << 20)
    images.run("mke2fs", "-q", "-F", "-t", "ext4", "disk")
    with loop_device("disk") as device, mount(device) as lower, contextlib.ExitStack() as stack:
        for name in ("lower", "upper", "work", "merged"):
            (lower / name).mkdir()
        folders = ",".join(f"{name}dir={lower / name}" for name in ("lower", "upper", "work"))
        merged = lower / "merged"
        images.run("mount", "-t", "overlay", "overlay", "-o", folders, str(merged))
        stack.callback(images.run, "umount", str(merged))
        imagespec.write("64m:A", str(merged / "disk"))
        value = blksum.hex(str(merged / "disk"))
        command = [sys.executable, "-c", MAPPED_WRITER, str(merged / "disk")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            try:
                assert writer.stdout.readline() == b"ready\n"
                for _ in range(3):
                    result = blksum(str(merged / "disk"))
                    assert (result.returncode, result.stdout) == (1, b""), (value, result)
            finally:
                writer.kill()


def test_change_behind_an_attribute_cache(blksum, workdir):
    """FUSE caches attributes. Only a fresh query shows changes by the other side."""
    for name in ("behind", "mounted"):
        os.mkdir(name)
    imagespec.write(f"1m:A {GIB}:- 1m:B", "behind/disk")
    options = "ro,attr_timeout=60,entry_timeout=60"
    mounted = subprocess.run(["bindfs", "-o", options, "behind", "mounted"], capture_output=True)
    if mounted.returncode != 0:
        assert "CI" not in os.environ, mounted
        pytest.skip(f"no FUSE here: {mounted.stderr.decode().strip()}")
    try:
        value = blksum.hex("mounted/disk")
        assert value == blksum.hex("behind/disk")
        process = start_reading(blksum, "--holes=ignore", "mounted/disk")
        with open("behind/disk", "r+b") as file:
            file.write(b"C" * 4096)
        assert_refused(finish(process), "mounted/disk", "changed while it was read")
    finally:
        images.run("fusermount", "-u", "mounted")


@pytest.mark.root
@pytest.mark.parametrize("where", ["disk", "neighbour"])
def test_disk_written_beside_its_partition_while_it_is_read(blksum, workdir, where):
    """Writing to the neighbour also changes the time of the loop device's file. On a disk, this is not a
    change."""
    imagespec.write(f"4m:A {GIB}:- 4m:B", "disk")
    sectors = os.path.getsize("disk") // 512
    with loop_device("disk") as device, contextlib.ExitStack() as stack:
        for number, start, count in (("1", 2048, 4096), ("2", 8192, sectors - 8192)):
            images.run("addpart", device, number, str(start), str(count))
            stack.callback(images.run, "delpart", device, number)
        first, second = f"{device}p1", f"{device}p2"
        assert blksum.hex(second) == blkhash.checksum(imagespec.chunks(f"{GIB}:- 4m:B")).hex()
        process = start_reading(blksum, second)
        write_device(device if where == "disk" else first)
        assert_refused(finish(process), second, "written to while it was read")


@pytest.mark.root
def test_block_device_with_dirty_pages(blksum, workdir):
    """Data written before the run is not a change."""
    imagespec.write("4m:A", "disk")
    with loop_device("disk") as device:
        with open(device, "r+b", buffering=0) as file:
            file.write(b"B" * (4 << 20))
            assert blksum.hex(device) == blkhash.checksum(b"B" * (4 << 20)).hex()


@contextlib.contextmanager
def mount(device, *options):
    folder = pathlib.Path("root")
    folder.mkdir()
    images.run("mount", *options, device, str(folder))
    try:
        yield folder
    finally:
        images.run("umount", str(folder))
        folder.rmdir()


@pytest.mark.root
def test_mounted_block_device(blksum, workdir):
    with open("disk", "wb") as file:
        file.truncate(64 << 20)
    images.run("mke2fs", "-q", "-F", "-t", "ext4", "disk")
    with loop_device("disk") as device:
        value = blksum.hex(device)
        with mount(device) as root:
            assert_refused(blksum(device), "is mounted for writing at", str(root), "--force-share")
            with open(device, "rb") as file:
                assert_refused(blksum(stdin=file), "is mounted for writing at")
            assert_refused(blksum("disk"), "mounted for writing at", "--force-share")
            assert blksum("-U", device).returncode == 0
            assert blksum("-U", "disk").returncode == 0
        before = blksum(device)
        assert (before.returncode, before.stderr) == (0, b"")
        with mount(device, "-o", "ro,noload") as root:
            result = blksum(device)
            assert result.returncode == 0
            assert b"warning: is mounted read-only at" in result.stderr
        images.create("top.qcow2", "64M", "-b", device, "-F", "raw")
        with mount(device):
            assert_refused(blksum("--follow=any", "top.qcow2"), "is mounted for writing at")
    assert len(value) == 64


@pytest.mark.root
def test_devices_of_a_mounted_btrfs(blksum, workdir):
    """A mount names only one of several devices."""
    filesystems.require()
    blkhash_command = pathlib.Path(blksum.path).with_name("blkhash")
    paths = [workdir / "a", workdir / "b"]
    filesystems.make(paths, "-d", "raid1", "-m", "raid1")

    def verify(*arguments):
        command = [blkhash_command, "btrfs", *arguments]
        return subprocess.run(command, capture_output=True, timeout=300)

    assert verify("verify", *paths).returncode == 0
    with filesystems.mounted(paths) as root:
        devices = images.run("losetup", "-n", "-O", "NAME", "-j", "a").split()
        devices += images.run("losetup", "-n", "-O", "NAME", "-j", "b").split()
        devices = [device.decode() for device in devices]
        for device in devices:
            assert_refused(blksum(device), "is mounted for writing at", str(root))
            result = verify("verify", device)
            assert result.returncode == 2 and b"mounted for writing" in result.stderr, result
        assert verify("verify", "-U", *devices).returncode in (0, 1, 2)
        for name in [*devices, root]:
            result = verify("info", name)
            assert result.returncode == 0, result
    with filesystems.mounted(paths, "ro"):
        devices = images.run("losetup", "-n", "-O", "NAME", "-j", "a").split()
        result = verify("verify", *devices)
        assert b"mounted read-only" in result.stderr and b"for writing" not in result.stderr


@pytest.mark.root
def test_qcow2_on_a_block_device(blksum, workdir):
    imagespec.write("1m:A 3m:- 1m:0 2m:#", "raw")
    value = blkhash.file_checksum("raw").hex()
    images.convert(workdir / "raw", workdir / "disk.qcow2")
    os.truncate("disk.qcow2", 16 << 20)
    with loop_device("disk.qcow2") as device:
        assert blksum.hex(device) == value


@pytest.mark.root
def test_block_device_as_backing_file(blksum, workdir):
    imagespec.write("1m:A", "disk")
    with loop_device("disk") as device:
        images.create("top.qcow2", "1M", "-b", device, "-F", "raw")
        assert_refused(blksum("top.qcow2"), "top.qcow2", device, "--follow=any")
        assert blksum.hex("--follow=any", "top.qcow2") == blkhash.checksum(b"A" * (1 << 20)).hex()
