"""Formats that blksum reads itself: nothing else is needed, and nothing else is run."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import blkhash
import images
from formats import FORMATS, make

NATIVE = [name for name in FORMATS if name != "luks"]


def libraries(program):
    """Returns the files that the loader needs to run a program, and the loader."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"(/\S+)", listed)))


@pytest.fixture
def root(blksum, workdir):
    """A root file system with blksum and its libraries alone."""
    path = workdir / "root"
    for file in libraries(blksum.path):
        target = path / file.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    shutil.copy(blksum.path, path / "blksum")
    return path


@pytest.mark.root
def test_no_qemu_and_no_libnbd(blksum, root, raw, value):  # noqa: F811
    os.chdir(root)
    for name in NATIVE:
        os.mkdir(name)
        os.chdir(name)
        make(name, raw, "disk.img")
        os.chdir(root)
    found = [path for path in root.rglob("*") if re.search("qemu|nbd", path.name)]
    assert found == []
    # Shown by failing: a format that qemu-nbd reads, and a server.
    bochs = make("bochs", raw, "bochs.img")
    paths = [f"{name}/disk.img" for name in NATIVE]

    def run(*args):
        return subprocess.run(["chroot", root, "/blksum", *args], capture_output=True)

    result = run(bochs)
    assert result.returncode == 1 and b"qemu" in result.stderr, result
    result = run("nbd://localhost/")
    assert result.returncode == 1 and b"libnbd" in result.stderr, result
    for args in ((), ("--no-sandbox",)):
        result = run(*args, *paths)
        assert result.stdout.decode().splitlines() == [f"{value}  {path}" for path in paths], result
        assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("name", NATIVE)
def test_nothing_is_run(blksum, raw, value, name):  # noqa: F811
    """As strace sees it, and as the sandbox says."""
    path = make(name, raw, "disk.img")
    run = ["strace", "-ff", "-qq", "-e", "trace=execve,execveat,openat,clone,clone3,fork,vfork", "-o", "trace"]
    result = subprocess.run([*run, blksum.path, "-v", path], capture_output=True)
    assert result.stdout.split()[0].decode() == value, result
    assert b"sandbox: " in result.stderr and b"running programs" not in result.stderr, result
    lines = [line for trace in pathlib.Path(".").glob("trace.*") for line in trace.read_text().splitlines()]
    assert sum("exec" in line.split("(")[0] for line in lines) == 1, lines
    # Threads share everything. A process does not.
    started = [line for line in lines if line.startswith(("clone", "fork", "vfork"))]
    assert all("CLONE_THREAD" in line for line in started), started
    assert not any("libnbd" in line for line in lines)


@pytest.mark.parametrize("options", [(), ("--tag",), ("--json",), ("--offset=1M",), ("--follow=any",)])
@pytest.mark.parametrize("name", NATIVE)
def test_nothing_is_opened_once_an_image_is_open(blksum, raw, name, options):  # noqa: F811
    """FreeBSD confines a process that gives up opening files in between."""
    path = make(name, raw, "disk.img")
    run = ["strace", "-f", "-qq", "-e", "trace=%file,write", "-o", "trace", blksum.path, "-v", *options, path]
    result = subprocess.run(run, capture_output=True)
    assert result.returncode == 0 and b": hashing: " in result.stderr, result
    calls = [line.split(maxsplit=1)[1] for line in pathlib.Path("trace").read_text().splitlines()]
    last = max(index for index, call in enumerate(calls) if call.startswith("write(2"))
    # Calls that take a name. An older strace calls cachestat one, which takes a descriptor, as statx without a name does.
    named = [not call.startswith(("write(", "syscall_0x1c3(", "<", "?")) and "AT_EMPTY_PATH" not in call for call in calls]
    assert any(named[:last]) and not any(named[last:]), calls[last:]


@pytest.mark.parametrize("name", NATIVE)
def test_both_readers_see_the_same(blksum, raw, value, name):  # noqa: F811
    path = make(name, raw, "disk.img")
    for reader, options in (("built-in", ()), ("qemu-nbd", ("--reader=qemu",))):
        result = json.loads(blksum("--json", "-v", *options, path).stdout)
        assert (result["checksum"], result["chain"][0]["reader"]) == (value, reader)


def test_reader_of_a_chain(blksum, workdir):
    """QEMU reads the whole chain, with the data file, and gets no name that an image holds."""
    images.create("base.qcow2", "4M", "-o", "data_file=base.data")
    images.qemu_io("base.qcow2", "write -P 1 0 2M")
    images.qemu_img("create", "-q", "-f", "qed", "-b", "base.qcow2", "-F", "qcow2", "middle.qed")
    images.qemu_io("middle.qed", "write -P 2 1M 64k", fmt="qed")
    images.create("top.qcow2", "4M", "-b", "middle.qed", "-F", "qed")
    images.qemu_io("top.qcow2", "write -P 3 3M 64k")
    expected = blkhash.file_checksum(images.to_raw("top.qcow2", "theirs.raw")).hex()
    options = ("--backing-format=qcow2",)
    assert blksum.hex(*options, "top.qcow2") == expected
    result = json.loads(blksum("--json", "-v", "--reader=qemu", *options, "top.qcow2").stdout)
    assert result["checksum"] == expected
    assert [image["reader"] for image in result["chain"]] == ["qemu-nbd"] * 3
    result = blksum("--reader=qemu", "--snapshot=x", "top.qcow2")
    assert result.returncode == 1 and b"has no snapshots" in result.stderr


@pytest.mark.parametrize("name", ["vmdk", "vdi", "qed", "qcow1", "parallels", "vpc"])
def test_cut_off_images_are_errors_for_both(blksum, raw, name):  # noqa: F811
    path = make(name, raw, "disk.img")
    os.truncate(path, os.path.getsize(path) // 2)
    for options in ((), ("--reader=qemu",)):
        result = blksum(*options, path)
        assert (result.returncode, result.stdout) == (1, b"") and result.stderr.count(b"\n") == 1, result
