"""What file systems call free: --ignore-free passes over nothing that a file can show, after a replay or in another reading."""

import contextlib
import json
import pathlib
import random
import shutil

import pytest

import filesystems
import images
import owners
from commands import HANG, blksum_path

pytestmark = pytest.mark.root

MIB = 1 << 20
PROGRAM = str(blksum_path().with_name("blkhash"))


@pytest.fixture(autouse=True, scope="module")
def possible():
    filesystems.require()


def differs(left, right, *options):
    """Returns whether the images differ in more than free space, and the summary."""
    result = images.attempt(
        PROGRAM, "map", "diff", "--json", "--ignore-free", "--block-size", "512", *options, str(left), str(right), timeout=HANG
    )
    assert result.returncode in (0, 1), result
    summary = json.loads(result.stdout.splitlines()[-1])
    assert (summary["different"] > 0) == (result.returncode == 1)
    return result.returncode == 1, summary


def made(path, size, *command):
    with open(path, "wb") as file:
        file.truncate(size)
    images.run(*command, str(path))
    return pathlib.Path(path)


@contextlib.contextmanager
def mounted(path):
    with filesystems.attached(path) as device, filesystems.folder_of(device) as root:
        yield root


def overwritten(path, offset, length=4096):
    """Returns a copy with other bytes at a place."""
    copy = path.with_name("other.img")
    shutil.copy(path, copy)
    with open(copy, "r+b") as file:
        file.seek(offset)
        file.write(random.Random(offset).randbytes(length))
    return copy


def fill(root, count=40):
    rng = random.Random(7)
    for number in range(count):
        (root / f"file{number}").write_bytes(rng.randbytes(rng.choice([100, 5000, 70_000, 300_000])))
    for number in range(0, count, 3):
        (root / f"file{number}").unlink()


def place_of(path, name):
    """Returns the offset of the first bytes of a file."""
    content = [it for it in owners.listing(path).extents if b"/" + name.encode() in it.paths and it.kind == "file"]
    return content[0].offset


@pytest.mark.parametrize(
    "command",
    [
        ("mkfs.ext4", "-q", "-b", "4096"),
        ("mkfs.ext4", "-q", "-b", "1024", "-O", "^metadata_csum,^has_journal"),
        ("mkfs.ext4", "-q", "-O", "bigalloc", "-C", "65536"),
        ("mkfs.xfs", "-q", "-m", "rmapbt=1"),
        ("mkfs.btrfs", "-q"),
    ],
)
def test_all_free_space_may_change(workdir, command):
    """Whatever is written to what is free, no file changes; and no byte of a file is free."""
    path = made("fs.img", 320 * MIB, *command)
    with mounted(path) as root:
        fill(root)
        before = {it.name: it.read_bytes() for it in root.iterdir() if it.is_file()}
    rng = random.Random(3)
    other = path.with_name("other.img")
    shutil.copy(path, other)
    with open(other, "r+b") as file:
        for extent in owners.listing(path).extents:
            if extent.kind == "free":
                for at in range(extent.offset, extent.offset + extent.length, 256 << 10):
                    file.seek(at)
                    file.write(rng.randbytes(min(4096, extent.offset + extent.length - at)))
    changed, summary = differs(path, other)
    assert not changed and summary["ignored"] > 10 and summary["same_content"] is False
    with mounted(other) as root:
        assert {it.name: it.read_bytes() for it in root.iterdir() if it.is_file()} == before
    changed, summary = differs(path, overwritten(path, place_of(path, "file1")))
    assert changed and summary["in_files"] == 8


@pytest.mark.parametrize("command", [("mkfs.xfs", "-q", "-f"), ("mkfs.vfat", "-F", "32"), ("mkfs.exfat",), ("mkswap",)])
def test_copies_of_a_superblock_survive_in_another_file_system(workdir, command):
    path = made("fs.img", 320 * MIB, "mkfs.btrfs", "-q")
    images.run(*command, str(path))
    result = owners.attempt("owners", path)
    assert b'"file_system":"btrfs"' not in result.stdout
    if command[0] == "mkswap":
        assert differs(path, overwritten(path, 100 * MIB))[0]


def test_what_is_free_before_the_replay_of_a_log(workdir):
    path = made("fs.img", 320 * MIB, "mkfs.xfs", "-q")
    with mounted(path) as root:
        (root / "secret").write_bytes(random.Random(1).randbytes(3 * MIB))
        images.run("sync", str(root / "secret"))
        shutil.copy(path, "live.img")
    live = pathlib.Path("live.img")
    kinds = {it.kind for it in owners.listing(live).extents}
    assert "free" in kinds and any("was not replayed" in it for it in owners.listing(live).remarks)
    for offset in range(MIB, 300 * MIB, 31 * MIB):
        assert differs(live, overwritten(live, offset))[0], offset


def test_fast_commits(workdir):
    path = made("fs.img", 320 * MIB, "mkfs.ext4", "-q", "-O", "fast_commit")
    with mounted(path) as root:
        (root / "old").write_bytes(b"old")
        images.run("sync", "-f", str(root))
        (root / "new").write_bytes(random.Random(1).randbytes(MIB))
        images.run("sync", str(root / "new"))
        shutil.copy(path, "live.img")
    live = pathlib.Path("live.img")
    assert any("fast commits" in it for it in owners.listing(live).remarks)
    free = max((it for it in owners.listing(live).extents if it.kind == "free"), key=lambda it: it.length)
    assert differs(live, overwritten(live, free.offset + free.length // 2))[0]


def test_partitions_that_overlap(workdir):
    path = made("disk.img", 200 * MIB, "true")
    images.run("mkfs.ext4", "-q", "-E", f"offset={MIB}", str(path), "190M")
    images.run("mkfs.ext4", "-q", "-F", "-E", f"offset={100 * MIB}", str(path), "60M")
    table = bytearray(66)
    for number, (start, size) in enumerate([(2048, 190 * 2048), (100 * 2048, 60 * 2048)]):
        entry = bytes([0, 0, 0, 0, 0x83, 0, 0, 0]) + start.to_bytes(4, "little") + size.to_bytes(4, "little")
        table[16 * number : 16 * number + 16] = entry
    table[64:66] = b"\x55\xaa"
    with open(path, "r+b") as file:
        file.seek(446)
        file.write(table)
    assert differs(path, overwritten(path, 120 * MIB))[0]


def test_states_that_another_system_repairs(workdir):
    path = made("fs.img", 64 * MIB, "mkntfs", "-qQF")
    copy = overwritten(path, 40 * MIB)
    assert not differs(path, copy)[0]
    images.attempt("ntfsfix", str(path))
    shutil.copy(path, "dirty.img")
    assert differs(pathlib.Path("dirty.img"), overwritten(pathlib.Path("dirty.img"), 40 * MIB))[0]
    path = made("ex.img", 64 * MIB, "mkfs.exfat")
    assert not differs(path, overwritten(path, 50 * MIB))[0]
    with open(path, "r+b") as file:
        for boot in (0, 12 * 512):
            file.seek(boot + 200)
            file.write(b"\1")
    assert differs(path, overwritten(path, 50 * MIB))[0]
