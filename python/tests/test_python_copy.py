"""Copies of images, compared with cmp, qemu-img and blksum."""

import contextlib
import errno
import hashlib
import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time

import filesystems
import images
import pytest
from conftest import BLKSUM, HANG, blksum, run

import blkhash

MIB = 1 << 20
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def disk(workdir):
    """disk.raw and disk.qcow2 with data and holes."""
    write(random.Random(5), "disk.raw", 8 * MIB)
    images.convert("disk.raw", "disk.qcow2")
    return workdir


def write(rng, path, size):
    """Writes data, stored zeros and holes."""
    with open(path, "wb") as file:
        while (left := size - file.tell()) > 0:
            length = min(rng.choice([512, 4096, 65536, 300_032, MIB]), left)
            kind = rng.randrange(3)
            if kind == 0:
                file.seek(length, os.SEEK_CUR)
            else:
                file.write(rng.randbytes(length) if kind == 1 else bytes(length))
        file.truncate(size)


@contextlib.contextmanager
def loop_device(path):
    name = run("losetup", "-f", "--show", path).strip()
    try:
        yield name
    finally:
        run("losetup", "-d", name)


def check(copied, source, destination, size):
    assert copied.checksum == blksum(source)
    assert copied.size == copied.written + copied.zeroed + copied.equal == size
    assert copied.format == ("raw" if str(source).endswith(".raw") else "qcow2")
    run("cmp", "-n", size, "disk.raw", destination)


@pytest.mark.parametrize("seed", range(12))
def test_random_copies(workdir, seed):
    rng = random.Random(seed)
    for number in range(4):
        size = rng.choice([512, 4096, 3 * MIB + 512, 9 * MIB])
        write(rng, "disk.raw", size)
        source = rng.choice(["disk.raw", "disk.qcow2", "disk.compressed"])
        if source != "disk.raw":
            images.convert("disk.raw", source, flags=["-c"] if source == "disk.compressed" else [])
        destination, options = f"copy{number}", {"zeros": rng.choice(["auto", "write", "punch", "keep-if-zero"])}
        if old := rng.randrange(3):
            write(rng, destination, rng.choice([size, size + MIB]))
            options["force" if old == 1 else "update"] = True
        if rng.randrange(2):
            options |= {"verify": "source", "threads": rng.randrange(1, 4)}
        copied = blkhash.copy(source, destination, **options)
        check(copied, source, destination, size)
        images.qemu_img("compare", "-f", "raw", "-F", "raw", "disk.raw", destination)
        assert os.path.getsize(destination) == size
        is_read = copied.verified == "readback"
        assert copied.destination_size == (size if is_read else None)
        assert (copied.read_back in ("direct", "page-cache")) == is_read


def test_the_result(disk):
    copied = blkhash.copy("disk.qcow2", disk / "copy", digest="blake3", construction="flat", block_size=4096)
    expected = blkhash.checksum("disk.raw", "blake3", construction="flat", block_size=4096)
    assert copied.checksum == expected.hexdigest
    again = blkhash.copy("disk.qcow2", "copy", update=True)
    assert (again.equal, again.written, again.zeroed) == (8 * MIB, 0, 0)
    with pytest.raises(AttributeError):
        again.size = 5


def test_parts_of_a_source(disk):
    run("sfdisk", "-q", "disk.raw", stdin=None, input="label: gpt\nstart=2048, size=4096\n")
    blkhash.copy("disk.raw", "part", partition=1)
    assert (disk / "part").read_bytes() == (disk / "disk.raw").read_bytes()[MIB : 3 * MIB]
    images.qemu_img("snapshot", "-c", "before", "disk.qcow2")
    before = blksum("disk.qcow2")
    images.qemu_io("disk.qcow2", "write -P 99 0 2M")
    assert blkhash.copy("disk.qcow2", "old", snapshot="before").checksum == before == blksum("old")
    assert blkhash.copy("disk.qcow2", "stored", format="raw").size == os.path.getsize("disk.qcow2")


FILES = {
    "base.img": (b"PK\x03\x04" + bytes(508), "is a zip archive: unzip -p FILE NAME writes a disk in it to standard output; "),
    "other.xz": (b"\x1f\x8b\x08" + bytes(509), 'is compressed by gzip, and has the name of an xz file: format="gzip" reads'),
    "fake.qcow2": (bytes(512), "has the name of a qcow2 image, and nothing in it says that it is one: "),
    "empty.vhd": (b"", "is empty, and has the name of a vhd image: "),
    "page.raw": (b"<!DOCTYPE html>\n", "is an HTML page: if it was downloaded, its server sent something else; "),
}


def test_files_that_are_no_disks(disk):
    """They have the words of the commands."""
    for name, (content, words) in FILES.items():
        (disk / name).write_bytes(content)
        with pytest.raises(blkhash.ImageError) as raised:
            blkhash.copy(name, "copy")
        assert f"{name}: {words}" in str(raised.value) and raised.value.kind == "format"
        assert str(raised.value).endswith('format="raw" reads the bytes of the file itself')
        assert blkhash.copy(name, "copy", format="raw", force=True).size == len(content)
    os.unlink("copy")
    for name in ("new.img.xz", "new.zip", "new.vhd", "new.blkmap"):
        assert "and the copy is raw" in str(refused(blkhash.CopyError, "format", "disk.raw", name))
        assert not os.path.exists(name)


def refused(error, kind, source, destination, **options):
    with pytest.raises(error) as raised:
        blkhash.copy(source, destination, **options)
    assert raised.value.kind == kind and raised.value.filename == str(destination), raised.value
    return raised.value


def test_what_is_refused(disk):
    (disk / "copy").write_bytes(b"x")
    os.symlink("disk.qcow2", "link")
    images.create("overlay", "8M", "-b", "disk.qcow2", "-F", "qcow2")
    before = sorted((path.name, path.read_bytes()) for path in disk.iterdir())
    found = refused(FileExistsError, "exists", "disk.qcow2", "copy")
    assert isinstance(found, blkhash.CopyError) and found.errno == errno.EEXIST
    for source, destination in [("disk.qcow2", "disk.qcow2"), ("disk.qcow2", "link"), ("overlay", "disk.qcow2")]:
        for options in ({"force": True}, {"force": True, "update": True}):
            found = refused(blkhash.CopyError, "source", source, destination, **options)
            assert "is a file of the source" in str(found)
    found = refused(blkhash.CopyError, "format", "disk.raw", "new.qcow2")
    assert "has the name of a qcow2 image" in str(found)
    refused(blkhash.CopyError, "file-type", "disk.raw", "/dev/null")
    refused(blkhash.CopyError, "file-type", "disk.raw", disk)
    refused(FileNotFoundError, "open", "disk.raw", "missing/copy")
    with pytest.raises(blkhash.ImageError) as raised:
        blkhash.copy("missing", "new")
    assert isinstance(raised.value, FileNotFoundError) and raised.value.filename == "missing"
    with pytest.raises(blkhash.ImageError, match="cannot connect"):
        blkhash.copy("disk.raw", "nbd+unix:///?socket=none")
    assert sorted((path.name, path.read_bytes()) for path in disk.iterdir()) == before


@pytest.mark.parametrize(
    "options",
    [
        {"zeros": "none"}, {"verify": "none"}, {"digest": "sha0"}, {"digest": "null"}, {"expect": "12"}, {"threads": 0}, {"formt": "raw"},
        {"expect": "a" * 64, "digest": "sha1"}, {"expect": "blake3:" + "a" * 64, "digest": "sha256"},
        {"block_size": 5}, {"expect": "xyz"}, {"destination": "a\0b"},
    ],
)
def test_arguments_that_are_invalid(disk, options):
    with pytest.raises((ValueError, TypeError)):
        blkhash.copy("disk.raw", **({"destination": "new"} | options))
    assert not os.path.exists("new")


def test_files_that_are_in_use(disk, servers):
    (disk / "vm.img").write_bytes(b"\xff" * MIB)
    servers.writable_qemu_nbd(disk / "vm.img")
    found = refused(blkhash.InUseError, "in-use", "disk.raw", "vm.img", force=True)
    assert "force_share" not in str(found)
    assert (disk / "vm.img").read_bytes() == b"\xff" * MIB
    lock = "import fcntl, sys, time; f = open('copy', 'wb'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); time.sleep(99)"
    with subprocess.Popen([sys.executable, "-c", lock], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        refused(blkhash.InUseError, "in-use", "disk.raw", "copy")
        other.kill()


def test_the_mode_of_a_new_file(disk):
    for mode in (0o640, 0o600, 0o444):
        os.chmod("disk.qcow2", mode)
        blkhash.copy("disk.qcow2", "copy")
        assert stat.S_IMODE(os.stat("copy").st_mode) & ~(mode | 0o600) == 0
        os.unlink("copy")
    if os.geteuid() == 0:
        # The files of this folder have a group that may not read the image.
        os.mkdir("other")
        os.chown("other", -1, 12345)
        os.chmod("other", 0o2777)
        os.chmod("disk.qcow2", 0o640)
        blkhash.copy("disk.qcow2", "other/copy")
        assert stat.S_IMODE(os.stat("other/copy").st_mode) == 0o600 and os.stat("other/copy").st_gid == 12345


def test_expected_checksums(disk):
    value = blksum("disk.qcow2")
    assert blkhash.copy("disk.qcow2", "copy", expect=value).checksum == value
    blake3 = blksum("-d", "blake3", "disk.qcow2")
    assert blkhash.copy("disk.qcow2", "copy", force=True, expect=f"blake3:{blake3}").checksum == blake3
    linear = hashlib.sha256((disk / "disk.raw").read_bytes()).hexdigest()
    blkhash.copy("disk.qcow2", "copy", force=True, expect=linear, construction="linear")
    wrong = f"{int(value[0], 16) ^ 1:x}{value[1:]}"
    for verify in ("readback", "source"):
        found = refused(blkhash.MismatchError, "expected", "disk.qcow2", "new", expect=wrong, verify=verify)
        assert value in str(found) and not os.path.exists("new")


def test_a_destination_that_loses_writes(disk, servers):
    lies = ["eval", "get_size=echo 8M", "can_write=true", "pread=head -c $3 /dev/zero", "pwrite=cat >/dev/null"]
    server = servers.writable_nbdkit(*lies)
    found = refused(blkhash.MismatchError, "differs", "disk.raw", server.uri())
    assert "holds something else than what was written" in str(found) and found.offset is not None
    assert blkhash.copy("disk.raw", server.uri(), verify="source").size == 8 * MIB


def test_failures_of_the_system(disk):
    """The number of the error is the system's, and nothing is left."""
    code = """
import resource, signal, sys
import blkhash
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    blkhash.copy("disk.raw", "new")
except blkhash.CopyError as error:
    print(error.errno, error.kind, isinstance(error, OSError))
"""
    assert run(sys.executable, "-c", code) == f"{errno.EFBIG} io True\n"
    assert not os.path.exists("new")


def test_a_failed_copy_leaves_no_new_file(disk):
    with open("disk.qcow2", "r+b") as file:
        file.truncate(300 << 10)
    with pytest.raises(blkhash.ImageError):
        blkhash.copy("disk.qcow2", "copy")
    assert not os.path.exists("copy")


def test_progress(disk):
    seen = []
    blkhash.copy("disk.raw", "copy", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (16 * MIB, 16 * MIB) and seen == sorted(seen)
    blkhash.copy("disk.raw", "copy", force=True, verify="source", progress=lambda *it: seen.append(it))
    assert seen[-1] == (8 * MIB, 8 * MIB)

    def fail(done, total):
        raise KeyError("progress")

    with pytest.raises(KeyError):
        blkhash.copy("disk.raw", "new", progress=fail)
    assert not os.path.exists("new")


def test_a_callback_that_forks(disk):
    """A child that raises leaves the files to its parent."""
    for destination in ("new", "empty"):
        children = []

        def fork(done, total):
            if not children:
                child = os.fork()
                if child == 0:
                    raise SystemExit
                children.append(child)

        (disk / "empty").write_bytes(b"")
        try:
            copied = blkhash.copy("disk.raw", destination, force=True, progress=fork)
        except SystemExit:
            os._exit(0)
        assert os.waitpid(children[0], 0)[1] == 0
        assert (disk / destination).read_bytes() == (disk / "disk.raw").read_bytes() and copied.verified == "readback"


def test_another_current_folder_meanwhile(disk):
    (disk / "elsewhere").mkdir()
    blkhash.copy("disk.raw", "new", map="new.blkmap", progress=lambda *_: os.chdir(disk / "elsewhere"))
    os.chdir(disk)
    assert (disk / "new").read_bytes() == (disk / "disk.raw").read_bytes()
    assert blkhash.Map("new.blkmap").verify("new") == []


@pytest.fixture
def slow(disk, servers):
    """The URI of an image that takes minutes to read."""
    return servers.nbdkit("--filter=delay", "file", "disk.raw", "rdelay=2").uri()


def test_cancelled_copies(disk, slow):
    event = threading.Event()
    event.set()
    with pytest.raises(blkhash.CancelledError):
        blkhash.copy(slow, "copy", cancel=event)
    assert not os.path.exists("copy")
    (disk / "old").write_bytes(b"")
    for destination in ("copy", "old"):
        event = threading.Event()
        threading.Timer(1, event.set).start()
        with pytest.raises(blkhash.CancelledError):
            blkhash.copy(slow, destination, threads=1, cancel=event)
    assert not os.path.exists("copy") and os.path.exists("old")
    # A thread that remains ends, and does not create the file later.
    time.sleep(3)
    assert not os.path.exists("copy")


def test_an_interrupted_copy_leaves_nothing(disk, slow):
    # A shell lets programs in the background ignore the signal, and this one would inherit that.
    code = """
import signal
import sys
import blkhash
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    blkhash.copy(sys.argv[1], "copy", threads=1)
except KeyboardInterrupt:
    print("interrupted")
"""
    with subprocess.Popen([sys.executable, "-c", code, slow], stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + HANG
        while not os.path.exists("copy"):
            assert time.monotonic() < deadline and process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=HANG)[0] == "interrupted\n"
    assert not os.path.exists("copy")


def test_a_destination_that_is_replaced_meanwhile(disk, servers):
    uri = servers.nbdkit("--filter=delay", "file", "disk.raw", "rdelay=300ms").uri()

    def replace():
        while not os.path.exists("copy"):
            time.sleep(0.001)
        os.unlink("copy")
        (disk / "copy").write_bytes(b"of another program")

    thread = threading.Thread(target=replace)
    thread.start()
    refused(blkhash.CopyError, "removed", uri, "copy")
    thread.join()
    assert (disk / "copy").read_bytes() == b"of another program"


def test_servers(disk, servers):
    images.qemu_img("create", "-q", "-f", "qcow2", "uploaded.qcow2", "8M")
    server = servers.writable_qemu_nbd(disk / "uploaded.qcow2", fmt="qcow2")
    copied = blkhash.copy("disk.qcow2", server.uri())
    assert copied.read_back == "nbd" and copied.checksum == blksum("disk.raw")
    found = refused(blkhash.CopyError, "holds", "disk.qcow2", server.uri())
    assert "force=True" in str(found)
    assert blkhash.copy("disk.qcow2", server.uri(), update=True).equal == 8 * MIB
    refused(blkhash.CopyError, "zeros", "disk.qcow2", server.uri(), update=True, zeros="punch")
    check(blkhash.copy(server.uri(), "downloaded")._replace(format="qcow2"), "disk.qcow2", "downloaded", 8 * MIB)
    server.process.terminate()
    server.process.wait()
    images.qemu_img("compare", "disk.qcow2", "uploaded.qcow2")
    small = servers.writable_nbdkit("memory", "1M")
    refused(blkhash.CopyError, "size", "disk.qcow2", small.uri())
    with pytest.raises(blkhash.ImageError, match="read-only"):
        blkhash.copy("disk.qcow2", servers.nbdkit("memory", "8M").uri())


@ROOT
def test_devices(disk):
    (disk / "device").write_bytes(bytes(16 * MIB))
    with loop_device("device") as device:
        run("mkfs.ext4", "-q", device)
        found = refused(blkhash.CopyError, "holds", "disk.qcow2", device)
        assert "holds an ext file system: force=True" in str(found)
        os.mkdir("m")
        run("mount", "-o", "ro", device, "m")
        found = refused(blkhash.InUseError, "in-use", "disk.qcow2", device, force=True)
        assert found.errno == errno.EBUSY
        run("umount", "m")
        refused(blkhash.CopyError, "source", device, "device", force=True, format="raw")
        refused(blkhash.CopyError, "source", "device", device, force=True, format="raw")
        copied = blkhash.copy("disk.qcow2", device, force=True)
        check(copied, "disk.qcow2", device, 8 * MIB)
        assert copied.destination_size == 16 * MIB and copied.read_back in ("direct", "page-cache")


@ROOT
def test_storage_is_shared(tmp_path, monkeypatch):
    filesystems.require()
    with filesystems.xfs(tmp_path / "volume.img") as root:
        monkeypatch.chdir(root)
        write(random.Random(6), "disk.raw", 8 * MIB)
        images.convert("disk.raw", "disk.qcow2")
        shared = blkhash.copy("disk.raw", "shared.raw")
        assert (shared.shared, shared.written, shared.zeroed) == (8 * MIB, 0, 0)
        for source, name, options in [
            ("disk.raw", "written.raw", {"reflink": "never"}),
            ("disk.raw", "punched.raw", {"zeros": "punch"}),
            ("disk.qcow2", "converted.raw", {}),
        ]:
            copied = blkhash.copy(source, name, **options)
            assert copied.shared == 0 and copied.checksum == shared.checksum
            check(copied, source, name, 8 * MIB)
        run("cmp", "disk.raw", "shared.raw")
        with pytest.raises(ValueError, match="auto or never"):
            blkhash.copy("disk.raw", "x", reflink="always")
        monkeypatch.chdir(tmp_path)


def test_only_what_changed(disk):
    """As `blkcopy --bitmap` does it: what is elsewhere stays, and the checksum covers the destination."""
    images.qemu_img("bitmap", "--add", "disk.qcow2", "changes")
    blkhash.copy("disk.qcow2", "old.raw")
    images.qemu_io("disk.qcow2", "write -P 7 1M 64k", "write -z 3M 128k", "write -P 8 7M 64k")
    with blkhash.Image("disk.qcow2") as image:
        changes = image.changes("changes")
    assert changes == [(MIB, 65536), (3 * MIB, 131072), (7 * MIB, 65536)]
    with open("old.raw", "r+b") as file:
        file.seek(5 * MIB)
        file.write(b"stays")
    shutil.copy("old.raw", "copy.raw")
    run(BLKSUM.with_name("blkcopy"), "--bitmap", "changes", "disk.qcow2", "copy.raw")
    expected = pathlib.Path("copy.raw").read_bytes()
    assert expected[5 * MIB :].startswith(b"stays") and expected[MIB : MIB + 65536] == bytes([7]) * 65536
    for arguments in ({"changes": changes}, {"changes": iter(reversed(changes))}, {"bitmap": "changes"}):
        shutil.copy("old.raw", "own.raw")
        calls = []
        copied = blkhash.copy("disk.qcow2", "own.raw", progress=lambda *call: calls.append(call), **arguments)
        assert pathlib.Path("own.raw").read_bytes() == expected
        assert copied.checksum == blksum("own.raw")
        assert (copied.written + copied.zeroed, copied.size) == (262144, 8 * MIB)
        assert calls[-1][0] == calls[-1][1]
    # With the changes of nothing, everything stays.
    assert blkhash.copy("disk.qcow2", "own.raw", changes=[]).written == 0
    for arguments, error, reason in [
        ({"bitmap": "other"}, blkhash.ImageError, "has no bitmap other"),
        ({"changes": changes, "bitmap": "changes"}, TypeError, "exclude one another"),
        ({"changes": changes, "verify": "source"}, ValueError, "read back"),
        ({"changes": [(1, 2, 3)]}, ValueError, "length 2"),
        ({"changes": [(1 << 63, 1 << 63)]}, ValueError, "2\\^64"),
        ({"changes": changes, "expect": "0" * 64}, blkhash.MismatchError, "not the one of expect"),
    ]:
        with pytest.raises(error, match=reason):
            blkhash.copy("disk.qcow2", "own.raw", **arguments)
    assert pathlib.Path("own.raw").read_bytes() == expected
    # A destination that has no older state.
    with pytest.raises(blkhash.CopyError):
        blkhash.copy("disk.qcow2", "new.raw", changes=changes)
    assert not os.path.exists("new.raw")
    os.truncate("own.raw", 4 * MIB)
    with pytest.raises(blkhash.CopyError):
        blkhash.copy("disk.qcow2", "own.raw", changes=changes)
