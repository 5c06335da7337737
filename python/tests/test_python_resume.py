"""Copies with a map that is their log, continued by the package and by blkcopy."""

import contextlib
import errno
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import blkmap as format
import images
import pytest
from conftest import BLKSUM, HANG, blkmap, blksum, run, wait_for_threads

import blkhash

MIB = 1 << 20
SIZE = 48 * MIB
BLKCOPY = BLKSUM.with_name("blkcopy")
LOG = {"map": "copy.blkmap", "block_size": 4096, "checkpoint": 0}
ARGS = ["--map", "copy.blkmap", "--block-size", "4096", "--checkpoint", "0"]


@pytest.fixture
def disk(workdir):
    """disk.raw, disk.qcow2 and an older copy of both, with data, zeros and holes."""
    rng = random.Random(9)
    with open("disk.raw", "wb") as file:
        for number in range(SIZE // MIB):
            if number % 5 == 3:
                file.seek(MIB, os.SEEK_CUR)
            else:
                file.write(bytes(MIB) if number % 7 == 2 else rng.randbytes(MIB))
        file.truncate(SIZE)
    images.convert("disk.raw", "disk.qcow2")
    return workdir


def known(path="copy.blkmap"):
    """Returns how many bytes the checkpoints of a map cover, as the model says. 0 if there is none."""
    try:
        data = pathlib.Path(path).read_bytes()
        parameters, file_id = format.read_header(data)
        offset, total = format.resume_point(data) - format.PAGE, 0
    except Exception:
        return 0
    while offset >= format.PAGE:
        commit = format.read_commit(data, offset, parameters, file_id)
        total, offset = total + commit.known, commit.previous
    return total * 4096


def verify(source="disk.raw", name="copy"):
    """The copy is whole, and so is its map."""
    run("cmp", "-n", SIZE, "disk.raw", name)
    blkmap("check", "copy.blkmap")
    blkmap("verify", "copy.blkmap", source)
    blkmap("verify", "copy.blkmap", name)
    assert blkmap("show", "--id", "copy.blkmap").strip() == own_id(source)


def own_id(source):
    """Returns the ID of a map that was made without a copy."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink("own.blkmap")
    blkmap("create", "--block-size", "4096", "-o", "own.blkmap", source)
    return blkmap("show", "--id", "own.blkmap").strip()


def gone():
    return not os.path.exists("copy") and not os.path.exists("copy.blkmap")


def clean():
    for name in ("copy", "copy.blkmap"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


class Checkpointed:
    """An event that is set once a map has a checkpoint."""

    def is_set(self):
        return os.path.exists("copy.blkmap") and os.path.getsize("copy.blkmap") > 20000


def cancelled_in_the_middle(source="disk.raw"):
    for _ in range(50):
        clean()
        with contextlib.suppress(blkhash.CancelledError):
            blkhash.copy(source, "copy", threads=1, cancel=Checkpointed(), **LOG)
        wait_for_threads()
        if 0 < known() < SIZE and os.path.exists("copy"):
            return known()
    raise AssertionError("never cancelled in the middle")


def heed_interrupts():
    """A shell lets programs in the background ignore SIGINT, and those that they start inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def killed_in_the_middle(command, number):
    """Runs a command that copies, and ends it with a signal once there is a checkpoint."""
    for _ in range(50):
        clean()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=heed_interrupts) as process:
            # It is looked at while it stands still.
            while process.poll() is None and not 0 < known():
                process.send_signal(signal.SIGCONT)
                time.sleep(0.001)
                process.send_signal(signal.SIGSTOP)
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait(timeout=HANG)
        # The process that removes new files ends later.
        time.sleep(0.1)
        if 0 < known() < SIZE and os.path.exists("copy"):
            return known()
    raise AssertionError("never killed in the middle")


SCRIPT = """
import signal, sys
import blkhash
signal.signal(signal.SIGINT, signal.default_int_handler)
blkhash.copy(sys.argv[1], "copy", map="copy.blkmap", block_size=4096, checkpoint=0, threads=1)
"""


@pytest.mark.parametrize("source", ["disk.raw", "disk.qcow2"])
def test_cancelled_and_resumed_by_blkcopy(disk, source):
    before = cancelled_in_the_middle(source)
    with pytest.raises(blkhash.MapError, match="is not finished"):
        blkhash.Map("copy.blkmap")
    found = run(BLKCOPY, "--json", *ARGS, "--resume", source, "copy")
    found = json.loads(found)
    assert found["written_bytes"] + found["zeroed_bytes"] == SIZE - before
    assert found["checksum"] == blksum("--block-size", "4096", source)
    verify(source)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("source", ["disk.raw", "disk.qcow2"])
def test_blkcopy_is_resumed(disk, source, number):
    before = killed_in_the_middle([BLKCOPY, *ARGS, "--threads=1", source, "copy"], number)
    calls = []
    copied = blkhash.copy(source, "copy", resume=True, progress=lambda *call: calls.append(call), **LOG)
    assert copied.written + copied.zeroed == SIZE - before
    assert copied.checksum == blksum("--block-size", "4096", source) and copied.verified == "readback"
    # What was copied before was compared with the map first.
    assert calls[-1] == (2 * SIZE, 2 * SIZE), calls
    verify(source)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("by", ["python", "blkcopy"])
def test_a_process_that_is_killed(disk, number, by):
    before = killed_in_the_middle([sys.executable, "-c", SCRIPT, "disk.raw"], number)
    if by == "python":
        copied = blkhash.copy("disk.raw", "copy", resume=True, **LOG)
        assert copied.written + copied.zeroed == SIZE - before
    else:
        run(BLKCOPY, *ARGS, "--resume", "disk.raw", "copy")
    verify()


@pytest.mark.parametrize("seed", range(6))
def test_interrupted_at_random(disk, seed):
    """In turn by the package and by blkcopy, with any threads, in any pass."""
    rng = random.Random(seed)
    source, started = rng.choice(["disk.raw", "disk.qcow2"]), 0
    while True:
        started += 1
        wait = rng.random() * 0.08 * started
        resume = os.path.exists("copy")
        if rng.randrange(2):
            event = threading.Event()
            timer = threading.Timer(wait, event.set)
            timer.start()
            try:
                copied = blkhash.copy(source, "copy", resume=resume, threads=rng.randrange(1, 4), cancel=event, **LOG)
                break
            except blkhash.CancelledError:
                pass
            finally:
                timer.cancel()
            wait_for_threads()
            # Both stay or none.
            assert gone() or (os.path.exists("copy") and known() >= 0 and os.path.exists("copy.blkmap"))
        else:
            command = [BLKCOPY, *ARGS, *(["--resume"] if resume else []), source, "copy"]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                try:
                    _, err = process.communicate(timeout=wait)
                    assert process.returncode == 0, err
                    copied = None
                    break
                except subprocess.TimeoutExpired:
                    process.send_signal(rng.choice([signal.SIGKILL, signal.SIGINT]))
                    process.wait(timeout=HANG)
            deadline = time.monotonic() + HANG
            while os.path.exists("copy") != os.path.exists("copy.blkmap"):
                assert time.monotonic() < deadline
    assert copied is None or copied.checksum == blksum("--block-size", "4096", source)
    verify(source)


def test_the_map_of_a_copy(disk):
    """It has the bytes of the command's, except for what differs between two maps of the command."""
    for digest, size, verify in [("sha256", 65536, "readback"), ("blake3", 512, "source"), ("crc32c", 1 << 20, "readback")]:
        options = {"digest": digest, "block_size": size, "verify": verify}
        copied = blkhash.copy("disk.qcow2", "copy", map="copy.blkmap", force=True, **options)
        args = ["--digest", digest, "--block-size", size, "--verify", verify, "--force"]
        for name in ("one.blkmap", "other.blkmap"):
            # Each states the second in which it was made.
            time.sleep(1.1)
            line = run(BLKCOPY, *args, "--map", name, "disk.qcow2", "copy")
            assert line.split()[0] == copied.checksum
        own, one, other = (pathlib.Path(name).read_bytes() for name in ("copy.blkmap", "one.blkmap", "other.blkmap"))
        assert len(own) == len(one) == len(other)
        differing = [at for at in range(0, len(own), 4096) if own[at : at + 4096] != one[at : at + 4096]]
        assert set(differing) <= {at for at in range(0, len(own), 4096) if one[at : at + 4096] != other[at : at + 4096]}
        assert blkmap("show", "--id", "copy.blkmap") == blkmap("show", "--id", "one.blkmap")
        source = [blkhash.Map(name).info["source"] for name in ("copy.blkmap", "one.blkmap")]
        assert source[0] == source[1]
        blkmap("verify", "copy.blkmap", "disk.raw")
        for name in ("copy.blkmap", "one.blkmap", "other.blkmap"):
            os.unlink(name)


def test_nothing_is_left_without_a_checkpoint(disk, servers):
    slow = servers.nbdkit("--filter=delay", "file", "disk.raw", "rdelay=2").uri()

    def fail(done, total):
        raise KeyError

    def cancelled(after, log):
        event = threading.Event()
        threading.Timer(after, event.set).start()
        with pytest.raises(blkhash.CancelledError):
            blkhash.copy(slow, "copy", threads=1, cancel=event, **log)

    with pytest.raises(KeyError):
        blkhash.copy(slow, "copy", threads=1, progress=fail, map="copy.blkmap")
    assert gone()
    cancelled(1, {"map": "copy.blkmap"})
    # A thread that remains makes no file later.
    for wait in (0, 3):
        time.sleep(wait)
        assert gone()
    pathlib.Path("copy").touch()
    # The first read tells the format, the next one is of the content.
    for after, log in ((1, {"map": "copy.blkmap"}), (2.5, {})):
        cancelled(after, log)
        # Nor does it write to one.
        for wait in (0, 3):
            time.sleep(wait)
            assert os.path.getsize("copy") == 0 and not os.path.exists("copy.blkmap")


def test_a_callback_that_raises(disk, servers):
    """As an interruption: what has a checkpoint stays."""
    # The callback comes four times a second.
    slow = servers.nbdkit("--filter=delay", "file", "disk.raw", "rdelay=100ms").uri()

    def fail(done, total):
        if Checkpointed().is_set():
            raise KeyError("progress")

    with pytest.raises(KeyError):
        blkhash.copy(slow, "copy", threads=1, progress=fail, **LOG)
    wait_for_threads()
    assert 0 < known() < SIZE
    blkhash.copy(slow, "copy", resume=True, **LOG)
    verify()


def test_interrupted_while_it_is_read_back(disk, servers):
    """Nothing is left but to read it back."""
    (disk / "served").write_bytes(b"")
    os.truncate("served", SIZE)
    # The destination is slow to read.
    server = servers.writable_nbdkit("--filter=delay", "file", "served", "rdelay=50ms")

    class Finished:
        def is_set(self):
            return os.path.exists("copy.blkmap") and finished("copy.blkmap")

    with pytest.raises(blkhash.CancelledError):
        blkhash.copy("disk.raw", server.uri(), force=True, threads=1, cancel=Finished(), **LOG)
    assert finished("copy.blkmap")
    copied = blkhash.copy("disk.raw", server.uri(), resume=True, **LOG)
    assert (copied.written, copied.zeroed, copied.verified) == (0, 0, "readback")
    assert copied.checksum == blksum("--block-size", "4096", "disk.raw")
    with pytest.raises(blkhash.MapError) as raised:
        blkhash.copy("disk.raw", server.uri(), force=True, **LOG)
    assert isinstance(raised.value, FileExistsError) and raised.value.filename == "copy.blkmap"
    verify(name="served")


def finished(name):
    try:
        return bool(blkhash.Map(name))
    except blkhash.MapError:
        return False


def test_a_finished_copy_is_read_back(disk):
    first = blkhash.copy("disk.raw", "copy", **LOG)
    before = pathlib.Path("copy.blkmap").read_bytes()
    again = blkhash.copy("disk.raw", "copy", resume=True, **LOG)
    assert (again.checksum, again.written, again.equal) == (first.checksum, 0, 0)
    assert blkhash.copy("disk.raw", "copy", resume=True, verify="source", **LOG).checksum == first.checksum
    with open("copy", "r+b") as file:
        file.seek(5 * MIB)
        file.write(b"other")
    for verify_ in ("readback", "source"):
        with pytest.raises(blkhash.MismatchError) as raised:
            blkhash.copy("disk.raw", "copy", resume=True, verify=verify_, **LOG)
        assert raised.value.kind == "differs" and raised.value.offset is not None
        assert raised.value.filename == "copy"
    assert pathlib.Path("copy.blkmap").read_bytes() == before


def test_a_destination_that_lost_a_checkpoint(disk):
    cancelled_in_the_middle()
    with open("copy", "r+b") as file:
        file.seek(4096)
        file.write(bytes(4096))
    before = files()
    with pytest.raises(blkhash.MismatchError, match="holds something else than what was written: 4096 bytes at 4096") as raised:
        blkhash.copy("disk.raw", "copy", resume=True, **LOG)
    assert (raised.value.kind, raised.value.offset, raised.value.filename) == ("differs", 4096, "copy")
    assert files() == before


def test_a_destination_that_loses_writes(disk, servers):
    """The map is not finished."""
    lies = ["eval", f"get_size=echo {SIZE}", "can_write=true", "pread=head -c $3 /dev/zero", "pwrite=cat >/dev/null"]
    server = servers.writable_nbdkit(*lies)
    with pytest.raises(blkhash.MismatchError, match="holds something else"):
        blkhash.copy("disk.raw", server.uri(), map="copy.blkmap", block_size=4096)
    assert not finished("copy.blkmap")


def files():
    return {path.name: path.read_bytes() for path in pathlib.Path().iterdir() if path.is_file()}


def refused(error, words, *args, filename=None, **options):
    before = files()
    with pytest.raises(error, match=words) as raised:
        blkhash.copy(*args, **options)
    assert files() == before
    assert filename is None or raised.value.filename == filename, raised.value
    return raised.value


def test_what_cannot_be_resumed(disk):
    cancelled_in_the_middle()
    resumed = LOG | {"resume": True}
    for force in (False, True):
        words = "resume=True continues" if force else "File exists"
        error, name = (blkhash.MapError, "copy.blkmap") if force else (FileExistsError, "copy")
        refused(error, words, "disk.raw", "copy", force=force, filename=name, **LOG)
    for options in ({"block_size": 8192}, {"digest": "blake3"}):
        found = refused(blkhash.MapError, "another digest or block size", "disk.raw", "copy", **(resumed | options))
        assert found.filename == "copy.blkmap"
    found = refused(blkhash.CopyError, "the map has no checkpoint", "disk.raw", "copy", **(resumed | {"map": "new.blkmap"}))
    assert (found.kind, found.filename) == ("exists", "copy")
    refused(blkhash.CopyError, "is new, and the map has a checkpoint", "disk.raw", "other", **resumed)
    pathlib.Path("precious").write_bytes(b"precious" * 1000)
    refused(blkhash.CopyError, "so it is not the interrupted copy", "disk.raw", "precious", filename="precious", **resumed)
    pathlib.Path("precious").write_bytes(b"precious" * (SIZE // 8))
    found = refused(blkhash.MismatchError, "holds something else", "disk.raw", "precious", filename="precious", **resumed)
    # Another source of the same size, and one of another size.
    shutil.copy("disk.raw", "same.raw")
    refused(blkhash.MapError, "is not the log of a copy of the source", "same.raw", "copy", filename="copy.blkmap", **resumed)
    pathlib.Path("larger.raw").write_bytes(bytes(SIZE + 4096))
    words = f"is the map of {SIZE} bytes, and the source has {SIZE + 4096}"
    refused(blkhash.MapError, words, "larger.raw", "copy", filename="copy.blkmap", **resumed)
    # A map of another image, finished or not.
    blkmap("create", "--block-size", "4096", "-o", "image.blkmap", "same.raw")
    other = resumed | {"map": "image.blkmap"}
    refused(blkhash.MapError, "is not the log of a copy", "disk.raw", "copy", filename="image.blkmap", **other)
    refused(blkhash.MapError, "File exists", "disk.raw", "new", filename="image.blkmap", map="image.blkmap")
    with open("disk.raw", "r+b") as file:
        file.write(b"x")
    refused(blkhash.MapError, "is not the log of a copy of the source", "disk.raw", "copy", **resumed)


def test_arguments(disk):
    resumed = LOG | {"resume": True}
    for error, options in [
        (TypeError, {"resume": True}),
        (TypeError, {"checkpoint": 1}),
        (TypeError, resumed | {"update": True}),
        (TypeError, LOG | {"changes": []}),
        (TypeError, LOG | {"bitmap": "b"}),
        (TypeError, LOG | {"destination_map": "m"}),
        (TypeError, LOG | {"expect_map": "m"}),
        (ValueError, resumed | {"construction": "linear"}),
        (ValueError, LOG | {"digest": "siphash"}),
        (ValueError, LOG | {"checkpoint": -1}),
        (ValueError, LOG | {"checkpoint": float("nan")}),
        (ValueError, {"expect_map": "m", "verify": "source"}),
    ]:
        with pytest.raises(error):
            blkhash.copy("disk.raw", "copy", **options)
        assert gone(), options
    # The checksum is not of blocks, but the map is.
    copied = blkhash.copy("disk.raw", "copy", construction="linear", map="copy.blkmap")
    assert copied.checksum == run("sha256sum", "disk.raw").split()[0]
    blkmap("verify", "copy.blkmap", "disk.raw")


def test_files_that_are_not_overwritten(disk):
    """By whatever name."""
    os.symlink("disk.raw", "source.link")
    os.symlink("copy", "copy.link")
    os.link("disk.raw", "source.hard")
    images.create("overlay.qcow2", str(SIZE), "-b", "disk.qcow2", "-F", "qcow2")
    pathlib.Path("text").write_text("of another program")
    os.mkfifo("pipe")
    os.mkdir("folder")
    os.symlink("nowhere", "dangling")
    for options in ({}, {"resume": True}, {"force": True}, {"force": True, "resume": True}):
        for name in ("disk.raw", "source.link", "source.hard"):
            refused(blkhash.MapError, "is a file of the source", "disk.raw", "copy", map=name, filename=name, **options)
        for name in ("disk.qcow2", "overlay.qcow2"):
            refused(blkhash.MapError, "is a file of the source", "overlay.qcow2", "copy", map=name, **options)
        refused(blkhash.MapError, "exists, and is not a block map", "disk.raw", "copy", map="text", **options)
        refused(blkhash.MapError, "is not a regular file", "disk.raw", "copy", map="pipe", **options)
        refused(IsADirectoryError, "folder", "disk.raw", "copy", map="folder", **options)
        refused(FileNotFoundError, "none/map", "disk.raw", "copy", map="none/map", **options)
        refused(FileExistsError, "dangling", "disk.raw", "copy", map="dangling", **options)
        # The destination, which is new.
        refused(ValueError, "map is the destination", "disk.raw", "copy", map="copy", **options)
        refused(blkhash.InUseError, "is being written", "disk.raw", "copy", map="copy.link", **options)
        assert not os.path.exists("copy")
    # The destination is the map, which is there.
    blkhash.copy("disk.raw", "one", map="one.blkmap")
    os.symlink("one.blkmap", "map.link")
    for name in ("./one.blkmap", "map.link"):
        for options in ({"force": True}, {"update": True}, {"resume": True}):
            found = refused(blkhash.CopyError, "the file of map|the name of", "disk.raw", name, map="one.blkmap", **options)
            assert found.kind in ("source", "format")


def test_two_copies_at_once(disk, servers):
    """The map or the destination of one is refused to another."""
    slow = servers.nbdkit("--filter=delay", "file", "disk.raw", "rdelay=2").uri()
    event, failures = threading.Event(), []

    def begin():
        try:
            blkhash.copy(slow, "copy", threads=1, cancel=event, **LOG)
        except blkhash.CancelledError:
            failures.append("cancelled")

    thread = threading.Thread(target=begin)
    thread.start()
    while not os.path.exists("copy.blkmap"):
        time.sleep(0.01)
    for name, map in (("copy", "other.blkmap"), ("other", "copy.blkmap")):
        for options in ({"force": True}, {"resume": True}, {"resume": True, "force": True}):
            with pytest.raises(blkhash.InUseError, match="is being written") as raised:
                blkhash.copy("disk.raw", name, **(LOG | {"map": map}), **options)
            assert raised.value.filename == (name if name == "copy" else map)
        assert not os.path.exists("other") and not os.path.exists("other.blkmap")
    event.set()
    thread.join()
    assert failures == ["cancelled"]


def test_expected_checksums(disk):
    value = blksum("--block-size", "4096", "disk.raw")
    wrong = "0" * 64
    with pytest.raises(blkhash.MismatchError, match="not the one of expect"):
        blkhash.copy("disk.raw", "copy", expect=wrong, map="copy.blkmap", block_size=4096)
    assert gone()
    cancelled_in_the_middle()
    with pytest.raises(blkhash.MismatchError, match="not the one of expect"):
        blkhash.copy("disk.raw", "copy", resume=True, expect=wrong, **LOG)
    assert blkhash.copy("disk.raw", "copy", resume=True, expect=value, **LOG).checksum == value
    verify()


def test_failures_of_the_system(disk, servers):
    """A map that cannot be written is an error of the map. What has a checkpoint is continued."""
    code = """
import resource, signal, sys
import blkhash
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))
try:
    blkhash.copy("disk.raw", sys.argv[1], map="copy.blkmap", block_size=4096, checkpoint=0, threads=1)
except blkhash.MapError as error:
    print(error.errno, error.filename)
"""
    server = servers.writable_nbdkit("memory", str(SIZE))
    assert run(sys.executable, "-c", code, server.uri()) == f"{errno.EFBIG} copy.blkmap\n"
    before = known()
    assert 0 < before < SIZE
    copied = blkhash.copy("disk.raw", server.uri(), resume=True, **LOG)
    assert copied.written + copied.zeroed == SIZE - before
    blkmap("verify", "copy.blkmap", server.uri())


def test_permissions(disk):
    """The map may be read by users who may read the source, at most."""
    for mode in (0o640, 0o600, 0o444):
        os.chmod("disk.qcow2", mode)
        blkhash.copy("disk.qcow2", "copy", map="copy.blkmap")
        assert os.stat("copy.blkmap").st_mode & 0o777 & ~(mode | 0o600) == 0
        clean()


def test_parts_and_devices(disk):
    """A partition is another source than its disk."""
    run("sfdisk", "-q", "disk.raw", stdin=None, input="label: gpt\nstart=2048, size=16384\n")
    copied = blkhash.copy("disk.raw", "copy", partition=1, **LOG)
    assert copied.size == 8 * MIB
    assert blkhash.copy("disk.raw", "copy", partition=1, resume=True, **LOG).written == 0
    run(BLKCOPY, *ARGS, "--resume", "--partition", "1", "disk.raw", "copy")
    refused(blkhash.MapError, "is the map of", "disk.raw", "copy", resume=True, **LOG)
    blkmap("verify", "copy.blkmap", "copy")
