"""Files that the commands write: links, modes, and what is left after an error."""

import contextlib
import os
import pathlib
import random
import signal
import socket
import stat
import subprocess
import time

import pytest

import images
from commands import blkhash, blksum_path
from maps import BLOCK, blkmap

PARTITION = ["--partition", "9"]


def blksum(*args):
    return images.attempt(str(blksum_path()), *map(str, args))


@pytest.fixture
def disk(workdir):
    """disk.img and disk.qcow2 with 20 blocks, the folder maps, and a umask that leaves all to the program."""
    images.write_sparse("disk.img", random.Random(7).randbytes(20 * BLOCK))
    images.convert("disk.img", "disk.qcow2")
    os.mkdir("maps")
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_derived_names_follow_no_links(disk):
    pathlib.Path("empty").write_bytes(b"")
    for target in ["new", "empty"]:
        for name, run in [
            ("disk.qcow2.blkmap", lambda: blkhash("map", "create", "disk.qcow2")),
            ("disk.qcow2.blkmap", lambda: blkhash("map", "create", "--force", "disk.qcow2")),
            ("maps/disk.qcow2.blkmap", lambda: blksum("--map", "maps", "disk.qcow2")),
        ]:
            os.symlink(os.path.abspath(target), name)
            result = run()
            assert result.returncode and f"{name}: is a symbolic link" in result.stderr.decode(), result
            os.remove(name)
    assert not os.path.exists("new") and os.path.getsize("empty") == 0
    # The user typed these.
    for name, target in [("there", "empty"), ("dangling", "maps/new")]:
        os.symlink(target, name)
        blkmap("create", "-o", name, "disk.qcow2")
        assert os.path.islink(name)
        blkmap("verify", target, "disk.img")


def test_a_file_that_others_may_write_takes_no_map(disk):
    pathlib.Path("disk.qcow2.blkmap").write_bytes(b"")
    for bits in (0o666, 0o620):
        os.chmod("disk.qcow2.blkmap", bits)
        result = blkhash("map", "create", "disk.qcow2")
        assert result.returncode == 2 and b"may be written by users who may not write the image" in result.stderr
    os.chmod("disk.qcow2.blkmap", 0o600)
    blkmap("create", "disk.qcow2")


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o755])
def test_new_files_have_the_mode_of_the_image(disk, bits):
    os.chmod("disk.qcow2", bits)
    os.chmod("disk.img", 0o666)
    expected = bits & 0o666
    outputs = {
        "disk.qcow2.blkmap": ["map", "create", "disk.qcow2"],
        "both.svg": ["map", "diff", "--picture=both.svg", "disk.img", "disk.qcow2"],
        "merged": ["map", "merge", "-o", "merged", "disk.qcow2.blkmap"],
        "csv": ["map", "export", "--to", "csv", "-o", "csv", "disk.qcow2.blkmap"],
        "hashes": ["verity", "format", "--root-hash-file", "root", "disk.qcow2", "hashes"],
        "tree": ["verity", "digest", "--out-merkle-tree", "tree", "--out-descriptor", "descriptor", "disk.qcow2"],
    }
    for name, command in outputs.items():
        assert blkhash(*command).returncode == 0, command
        assert mode(name) == expected, name
    assert blksum("--map", "maps", "disk.qcow2").returncode == 0
    for name in ["root", "descriptor", "maps/disk.qcow2.blkmap"]:
        assert mode(name) == expected, name
    # Files that are there keep theirs.
    os.chmod("csv", 0o644)
    blkhash(*outputs["csv"])
    assert mode("csv") == 0o644


COMMANDS = {
    "new": ["map", "create", "-o", "new"],
    "disk.qcow2.blkmap": ["map", "create"],
    "svg": ["map", "verify", "--picture=svg", "right.blkmap"],
    "tree": ["verity", "digest", "--out-merkle-tree", "tree", "--out-descriptor", "descriptor"],
    "root": ["verity", "format", "--root-hash-file", "root"],
}


@pytest.mark.parametrize("options", [PARTITION, ["--snapshot", "none"], ["-f", "vhdx"]], ids=" ".join)
def test_errors_leave_nothing(disk, options):
    blkmap("create", "-o", "right.blkmap", "disk.qcow2")
    before = sorted(os.listdir())
    for name, command in COMMANDS.items():
        hashes = ["hashes"] if name == "root" else []
        assert blkhash(*command, *options, "disk.qcow2", *hashes).returncode == 2, command
    blksum("--map", "maps", *options, "disk.qcow2")
    assert sorted(os.listdir()) == before and not os.listdir("maps")
    assert blkhash("map", "merge", "-o", "merged", "right.blkmap", "none.blkmap").returncode == 2
    assert sorted(os.listdir()) == before
    # The next try does not fail, and what was there is as it was.
    for name, command in COMMANDS.items():
        hashes = ["hashes"] if name == "root" else []
        assert blkhash(*command, "disk.qcow2", *hashes).returncode == 0, command
    kept = {name: pathlib.Path(name).read_bytes() for name in [*COMMANDS, "hashes", "descriptor"]}
    for name, command in COMMANDS.items():
        hashes = ["hashes"] if name == "root" else []
        blkhash(*command, *options, "disk.qcow2", *hashes)
    assert kept == {name: pathlib.Path(name).read_bytes() for name in kept}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_leave_nothing_before_a_checkpoint(workdir, number):
    """A server that says nothing keeps the command waiting."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind("socket")
        server.listen()
        program = str(blksum_path().with_name("blkhash"))
        # The signals go to the process group, as a terminal's do.
        command = [program, "map", "create", "-o", "new.blkmap", f"nbd+unix:///?socket={os.path.abspath('socket')}"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
            connection, _ = server.accept()
            assert os.path.exists("new.blkmap") and mode("new.blkmap") == 0o600
            os.killpg(process.pid, number)
            # The pipe ends with the process, and the child that removes the file holds none of its ends.
            assert process.stderr.read() == b""
        connection.close()
    until = time.monotonic() + 20
    while os.path.exists("new.blkmap"):
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow
def test_a_map_that_another_process_goes_on_with_is_not_removed(disk):
    """The child of a process that was killed holds its lock until the file is gone."""
    create = ["map", "create", "-o", "new.blkmap"]
    program = str(blksum_path().with_name("blkhash"))
    for resume in [[], ["--resume"]] * 3:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
            server.bind("socket")
            server.listen()
            with subprocess.Popen([program, *create, f"nbd+unix:///?socket={os.path.abspath('socket')}"]) as process:
                connection, _ = server.accept()
                children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                process.kill()
                result = blkhash(*create, *resume, "disk.img")
            connection.close()
        assert result.returncode == 0, result
        [child] = children
        until = time.monotonic() + 20
        while os.path.exists(f"/proc/{child}"):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert blkhash("map", "verify", "new.blkmap", "disk.img").returncode == 0
        for name in ["socket", "new.blkmap"]:
            os.unlink(name)


@pytest.mark.root
def test_another_group_may_not_read_what_is_made_of_an_image(disk):
    os.chmod("disk.qcow2", 0o640)
    os.chown("maps", -1, 12345)
    os.chmod("maps", 0o2775)
    for name, group, expected in [("maps/disk.blkmap", 12345, 0o600), ("disk.blkmap", os.getegid(), 0o640)]:
        assert blkhash("map", "create", "-o", name, "disk.qcow2").returncode == 0
        assert (os.stat(name).st_gid, mode(name)) == (group, expected)


def test_a_map_that_another_process_wrote_first_stays(disk):
    """A process that creates the file, and locks it only after another one has written the map, does not remove it."""
    command = [str(blksum_path().with_name("blkhash")), "map", "create", "--resume", "-o", "a.blkmap", "disk.img"]
    slow = ["strace", "-f", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:delay_enter=700000:when=1"]
    process = subprocess.Popen([*slow, *command], stderr=subprocess.PIPE)
    while not os.path.exists("a.blkmap"):
        time.sleep(0.001)
    images.run(*command)
    written = pathlib.Path("a.blkmap").read_bytes()
    assert len(written) > 4096
    assert process.communicate(timeout=60) == (None, b"") and process.returncode == 0
    assert pathlib.Path("a.blkmap").read_bytes() == written
