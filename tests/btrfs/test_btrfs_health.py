"""blkhash btrfs verify: healthy file systems of many kinds, after random work, interrupted, or copied
while mounted.

None of them is reported, but a change to one of two mirrors is.
"""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time

import pytest

import filesystems
import images
from btrfs import assert_healthy, verify
from commands import HANG, blkhash
from servers import Servers

pytestmark = pytest.mark.root

MIB = 1 << 20
ROUNDS = int(os.environ.get("BTRFS_ROUNDS", "2"))
COPIES = int(os.environ.get("BTRFS_COPIES", "6"))


def churn(root, seed, rounds=ROUNDS):
    """Works randomly on files and folders of every kind, and creates and deletes snapshots."""
    source = random.Random(seed)
    folders, files = [root], []

    def new(folder, letter):
        return folder / f"{letter}{source.randrange(10**6)}"

    def create():
        files.append(new(source.choice(folders), "file"))
        files[-1].write_bytes(source.randbytes(source.choice([0, 10, 900, 3000, 5000, 70_000, 300_000])))

    def without_checksums():
        files.append(new(source.choice(folders), "nodatacow"))
        files[-1].touch()
        images.run("chattr", "+C", str(files[-1]))
        files[-1].write_bytes(source.randbytes(100_000))

    def folder():
        folders.append(new(source.choice(folders), "folder"))
        folders[-1].mkdir()

    def overwrite():
        with open(source.choice(files), "r+b") as file:
            file.seek(source.randrange(400_000))
            file.write(source.randbytes(source.randrange(1, 20_000)))

    def log():
        with open(source.choice(files), "r+b") as file:
            file.write(b"logged")
            os.fsync(file.fileno())

    def rename():
        old = source.choice(files)
        files.remove(old)
        files.append(new(source.choice(folders), "renamed"))
        os.rename(old, files[-1])

    def remove():
        files.pop(source.randrange(len(files))).unlink()

    def reserve(*options):
        start, length = 4096 * source.randrange(20), source.randrange(1, 200_000)
        name = str(source.choice(files))
        images.attempt("fallocate", *options, "-o", str(start), "-l", str(length), name)

    def clone():
        old, copy = source.choice(files), new(source.choice(folders), "clone")
        # Files with and without checksums cannot share extents.
        images.attempt("cp", "--reflink=auto", str(old), str(copy))

    works = [
        (30, create), (3, without_checksums), (8, folder), (10, overwrite), (4, log), (6, rename), (7, remove),
        (5, lambda: reserve("-p")), (4, reserve), (5, clone),
        (5, lambda: os.truncate(source.choice(files), source.randrange(200_000))),
        (5, lambda: os.link(source.choice(files), new(source.choice(folders), "link"))),
        (2, lambda: os.symlink("x" * source.randrange(1, 300), new(source.choice(folders), "symlink"))),
        (3, lambda: os.setxattr(source.choice(files), f"user.{source.randrange(5)}", source.randbytes(100))),
        (1, lambda: os.mkfifo(new(source.choice(folders), "fifo"))),
    ]  # fmt: skip
    for number in range(rounds):
        for _ in range(120):
            work = source.choices([work for _, work in works], [weight for weight, _ in works])[0]
            try:
                work()
            except (OSError, LookupError, ValueError, AssertionError):
                # No space or no file is left, or this file system does not support the operation.
                pass
        images.run("sync", "-f", str(root))
        images.attempt("btrfs", "subvolume", "snapshot", str(root), str(root / f"snapshot{number}"))
        if number:
            images.attempt("btrfs", "subvolume", "delete", str(root / f"snapshot{number - 1}"))


def make_room(root):
    """Removes everything from a file system that is half full."""
    usage = shutil.disk_usage(root)
    if usage.used > usage.total // 2:
        for entry in os.scandir(root):
            remove = shutil.rmtree if entry.is_dir(follow_symlinks=False) else os.unlink
            remove(entry.path)


# Works until the stop file exists, and prints the number of successful rounds. A full file system, or a
# commit that fails because of it, ends only the current round.
WORK = """
import pathlib
import sys

root, stop = map(pathlib.Path, sys.argv[1:3])
sys.path = sys.argv[3:]
import test_btrfs_health

rounds = 0
while not stop.exists():
    try:
        test_btrfs_health.churn(root, rounds, 1)
        test_btrfs_health.make_room(root)
        rounds += 1
    except (OSError, AssertionError) as error:
        print(error, file=sys.stderr)
print(rounds)
"""


CHECKSUMS = ["crc32c", "xxhash", "sha256", "blake2"]
FEATURES = [
    ("-m", "dup"),
    ("-O", "^no-holes"),
    ("-R", "^free-space-tree"),
    ("-O", "^skinny-metadata"),
    ("-R", "quota"),
    ("--mixed", "--nodesize", "4k"),
]
MOUNTS = ["compress=zstd", "compress-force=lzo", "compress=zlib,autodefrag", "nodatacow", "max_inline=0", "max_inline=4000"]


@pytest.mark.parametrize("number", range(12))
def test_worked_on(workdir, number):
    path = workdir / "fs"
    feature = FEATURES[number % 6]
    size = () if "--nodesize" in feature else ("--nodesize", ["4k", "16k", "64k"][number % 3])
    checksum = CHECKSUMS[number % 4]
    filesystems.make([path], "--csum", checksum, *size, *feature, size=512 * MIB)
    with filesystems.mounted([path], f"rw,nodiscard,{MOUNTS[(number + number // 6) % 6]}") as root:
        churn(root, number)
    assert_healthy(path)
    assert filesystems.check(path)[0] == 0


@pytest.mark.parametrize(
    "data, metadata, count",
    [
        ("raid0", "raid1", 3), ("raid1", "raid1", 2), ("raid1c3", "raid1c4", 4), ("raid10", "raid10", 4),
        ("raid5", "raid1", 3), ("raid6", "raid1c3", 4), ("single", "dup", 2),
    ],
)  # fmt: skip
def test_interrupted(workdir, data, metadata, count):
    """A balance is paused, then cancelled, and a device is removed."""
    paths = [workdir / f"device{number}" for number in range(count)]
    filesystems.make(paths, "-d", data, "-m", metadata, size=512 * MIB)
    with filesystems.mounted(paths, "rw,nodiscard") as root:
        churn(root, count)
    assert_healthy(*paths)
    with filesystems.mounted(paths, "rw,nodiscard") as root:
        command = ["btrfs", "balance", "start", "--full-balance", str(root)]
        balance = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.1)
        images.attempt("btrfs", "balance", "pause", str(root))
        balance.wait(timeout=HANG)
    assert_healthy(*paths)
    if metadata == "raid10" or data == "single":
        with filesystems.mounted(paths, "rw,nodiscard") as root:
            images.attempt("btrfs", "balance", "cancel", str(root))
            gone = not images.attempt("btrfs", "device", "remove", "2", str(root)).returncode
        assert_healthy(*(path for path in paths if not gone or path != paths[1]))


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-R", "^free-space-tree"), ("--csum", "sha256", "-R", "quota")], ids=" ".join)
def test_copied_while_mounted(workdir, options):
    """Reflinks of the underlying file. Each is the file system at one instant, as after a crash."""
    host, stop = workdir / "host", workdir / "stop"
    filesystems.make([host], size=6144 * MIB)
    with filesystems.mounted([host], "rw,nodiscard") as below:
        path = below / "fs"
        filesystems.make([path], *options, size=1024 * MIB)
        with filesystems.mounted([path], "rw,nodiscard,commit=1,compress=zstd") as root:
            worker = subprocess.Popen([sys.executable, "-c", WORK, str(root), str(stop), *sys.path], stdout=subprocess.PIPE)
            try:
                for _ in range(COPIES):
                    time.sleep(0.5)
                    images.run("cp", "--reflink=always", str(path), str(below / "copy"))
                    assert_healthy(below / "copy")
            finally:
                stop.touch()
                rounds, _ = worker.communicate(timeout=HANG)
            assert int(rounds) > 0


def test_converted(workdir):
    """Converted from ext4, and still containing the image of the old file system."""
    path = workdir / "fs"
    with open(path, "wb") as file:
        file.truncate(512 * MIB)
    images.run("mke2fs", "-q", "-t", "ext4", "-b", "4096", str(path))
    with filesystems.attached(path) as device, filesystems.folder_of(device) as root:
        churn(root, 3, 1)
    images.run("btrfs-convert", str(path))
    assert_healthy(path)


def test_received(workdir):
    sent, path = workdir / "sent", workdir / "fs"
    for name in (sent, path):
        filesystems.make([name], size=512 * MIB)
    with filesystems.mounted([sent], "rw,nodiscard") as root:
        images.run("btrfs", "subvolume", "create", str(root / "sub"))
        churn(root / "sub", 5, 1)
        images.run("btrfs", "subvolume", "snapshot", "-r", str(root / "sub"), str(root / "ro"))
        images.run("btrfs", "send", "-q", "-f", str(workdir / "stream"), str(root / "ro"))
    with filesystems.mounted([path], "rw,nodiscard") as root:
        images.run("btrfs", "receive", "-f", str(workdir / "stream"), str(root))
    assert_healthy(path)
    assert_healthy(sent)


def raid1(workdir):
    paths = [workdir / f"device{number}" for number in range(2)]
    filesystems.make(paths, "-d", "raid1", "-m", "raid1")
    return paths


def split_brain(workdir):
    """Both devices were written separately, with equal numbers of transactions."""
    paths = raid1(workdir)
    with filesystems.mounted(paths, "rw,nodiscard") as root:
        (root / "file").write_bytes(b"both" * 10_000)
    for path in paths:
        images.run("btrfs", "device", "scan", "--forget")
        with filesystems.mounted([path], "rw,nodiscard,degraded") as root:
            (root / "file").write_bytes(path.name.encode() * 5_000)
    generations = [filesystems.field_of(path, "generation") for path in paths]
    assert generations[0] == generations[1], generations
    return paths


def test_split_brain(workdir):
    """Where both devices have their blocks at the same places, each block is valid by itself. The kernel
    places them as its threads run, so sometimes headers differ instead."""
    for _ in range(20):
        paths = split_brain(workdir)
        verified = [verify(*order) for order in (paths, paths[::-1])]
        for status, _, summary in verified:
            assert status == 1 and sum(summary["errors"].values()) > summary["errors"]["superblock"], summary
        if all(summary["errors"]["tree_header"] == 0 for _, _, summary in verified):
            break
    for _, errors, summary in verified:
        assert summary["errors"]["tree_header"] == 0 and summary["errors"]["mirror"] > 0, summary
        differing = [it for it in errors if "differs from mirror" in it["problem"]]
        assert differing and not any(it["good_mirrors"] for it in differing), errors


def test_mirrors_without_checksums(workdir):
    """Mirrors are read and must be equal, except in preallocated space."""
    paths = raid1(workdir)
    content = random.Random(7).randbytes(300_000)
    with filesystems.mounted(paths, "rw,nodiscard") as root:
        (root / "file").touch()
        images.run("chattr", "+C", str(root / "file"))
        (root / "file").write_bytes(content)
        images.run("fallocate", "-l", "1M", str(root / "reserved"))
    summary = assert_healthy(*paths)
    places = [path.read_bytes().find(content[8192:12288]) for path in paths]
    assert summary["unchecked_bytes"] == 2 * summary["unprotected"]["nodatasum"] >= 600_000
    with filesystems.changed(paths[1], places[1] + 5):
        status, errors, _ = verify(*paths)
        assert status == 1 and [it["category"] for it in errors] == ["mirror"], errors
        assert errors[0]["owners"][0]["paths"] == [{"name": "file"}]
        assert errors[0]["length"] == 4096 and errors[0]["physical"] == places[1]
        assert filesystems.errors(filesystems.scrub(paths)) == {}


@contextlib.contextmanager
def served(workdir, path, before_reading):
    """Yields the URI of a server of the file that runs a shell command before each read of `$3` bytes at
    `$4`."""
    script = workdir / "server.sh"
    script.write_text(
        f"""#!/bin/sh
case "$1" in
get_size) stat -c %s {path} ;;
pread)
    {before_reading}
    dd iflag=skip_bytes,count_bytes skip=$4 count=$3 if={path} bs=1M status=none ;;
*) exit 2 ;;
esac
"""
    )
    script.chmod(0o755)
    with contextlib.closing(Servers()) as servers:
        yield servers.nbdkit("sh", script).uri()


def test_sector_that_cannot_be_read(workdir):
    """The bad sector belongs to a file without checksums."""
    path = workdir / "fs"
    content = random.Random(8).randbytes(300_000)
    filesystems.make([path], "-m", "single")
    with filesystems.mounted([path], "rw,nodiscard") as root:
        (root / "file").touch()
        images.run("chattr", "+C", str(root / "file"))
        (root / "file").write_bytes(content)
    place = path.read_bytes().find(content[8192:12288])
    fails = f"[ $4 -lt {place + 4096} -a $(($4 + $3)) -gt {place} ] && {{ echo EIO bad sector >&2; exit 1; }}"
    with served(workdir, path, fails) as uri:
        status, errors, summary = verify(uri)
    assert status == 1 and summary["errors"]["read"] == len(errors) == 1, errors
    assert (errors[0]["physical"], errors[0]["length"]) == (place, 4096)
    assert errors[0]["owners"][0]["paths"] == [{"name": "file"}]


def test_server_hangs_up(workdir):
    """Sectors that were not read after that are not findings."""
    path = filesystems.filled(workdir / "fs")
    count = workdir / "count"
    dies = f"echo >> {count}; [ $(wc -l < {count}) -gt 40 ] && kill -9 $PPID"
    with served(workdir, path, dies) as uri:
        result = blkhash("btrfs", "verify", uri)
    assert result.returncode == 2 and result.stdout == b"", result
    assert len(result.stderr.splitlines()) == 1 and b"fs" not in result.stdout, result


def test_seed(workdir):
    """A file system was created from a seed, whose devices it still reads."""
    seed, sprout = workdir / "seed", workdir / "sprout"
    filesystems.filled(seed)
    images.run("btrfstune", "-S", "1", str(seed))
    with open(sprout, "wb") as file:
        file.truncate(512 * MIB)
    with filesystems.attached(sprout) as device, filesystems.mounted([seed], "ro") as root:
        images.run("btrfs", "device", "add", "-f", device, str(root))
        images.run("mount", "-o", "remount,rw", str(root))
        (root / "new").write_bytes(b"grown" * 10_000)
        filesystems.sync(root)
    result = blkhash("btrfs", "verify", sprout, seed)
    assert result.returncode == 0 and result.stdout.count(b"errors        none\n") == 2, result
    alone = blkhash("btrfs", "verify", sprout)
    assert alone.returncode == 2 and b"missing       device 1 " in alone.stdout, alone
    assert blkhash("btrfs", "verify", seed).returncode == 0
    stranger = filesystems.filled(workdir / "stranger")
    images.run("btrfstune", "-S", "1", str(stranger))
    mixed = blkhash("btrfs", "verify", sprout, stranger)
    assert mixed.returncode == 2 and b"missing       device 1 " in mixed.stdout, mixed
