"""blkhash btrfs verify: clean file systems of every kind, counted beside btrfs scrub."""

import json
import os
import pathlib
import subprocess

import pytest

import filesystems
import images
from conftest import HANG, blksum_path

CHECKSUMS = ["crc32c", "xxhash", "sha256", "blake2"]


@pytest.fixture(autouse=True, scope="module")
def possible():
    filesystems.require()


def blkhash(*args, **kwargs):
    """Runs blkhash, which lies beside blksum."""
    kwargs = {"stdin": subprocess.DEVNULL, "timeout": HANG} | kwargs
    return images.attempt(str(blksum_path().with_name("blkhash")), *map(str, args), **kwargs)


def verify(*args):
    """The exit status, the errors and the summary of a verification."""
    result = blkhash("btrfs", "verify", "--json", *args)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    errors = [line for line in lines if line["type"] == "error"]
    summaries = [line for line in lines if line["type"] == "summary"]
    assert result.returncode == 2 or len(summaries) == 1, result
    return result.returncode, errors, summaries[0] if summaries else result.stderr.decode()


def assert_clean(paths, scrubbed=None, mirrors=1):
    """Nothing is wrong, and as much was looked at as a scrub looks at."""
    status, errors, summary = verify(*paths)
    assert (status, errors) == (0, []), (status, errors[:3], summary)
    scrubbed = scrubbed or filesystems.scrub(paths)
    assert filesystems.errors(scrubbed) == {}
    assert summary["tree_bytes"] == scrubbed["tree_bytes_scrubbed"]
    without = sum(summary["unprotected"].values())
    assert without * mirrors == scrubbed["no_csum"] * 4096
    assert summary["data_bytes"] + without * mirrors == scrubbed["data_bytes_scrubbed"]
    assert summary["missing_bytes"] == 0
    return summary


@pytest.mark.parametrize("checksum", CHECKSUMS)
def test_checksums(workdir, checksum):
    path = filesystems.filled(workdir / "fs", "--csum", checksum)
    summary = assert_clean([path])
    assert summary["checksum"] == checksum.replace("blake2", "blake2b")
    assert summary["superblocks"] == 2
    unprotected = summary["unprotected"]
    assert unprotected["nodatasum"] >= 300_000
    # 64 KiB of the MiB were written.
    assert unprotected["preallocated"] == (1 << 20) - (64 << 10)


@pytest.mark.parametrize("size", ["4k", "8k", "32k", "64k"])
def test_node_sizes(workdir, size):
    assert_clean([filesystems.filled(workdir / "fs", "--nodesize", size)])


@pytest.mark.parametrize(
    "options",
    [
        ["--mixed", "--nodesize", "4k"],
        ["-d", "dup", "-m", "dup"],
        ["-d", "single", "-m", "single"],
        ["-R", "^free-space-tree", "-O", "^no-holes"],
        ["-O", "^skinny-metadata"],
        ["-R", "quota"],
    ],
    ids=" ".join,
)
def test_features(workdir, options):
    path = filesystems.filled(workdir / "fs", *options)
    mirrors = 2 if "dup" in options else 1
    assert_clean([path], mirrors=mirrors)


def test_metadata_uuid(workdir):
    path = filesystems.filled(workdir / "fs")
    images.run("btrfstune", "-m", str(path))
    assert "METADATA_UUID" in filesystems.super_of(path)
    assert_clean([path])


@pytest.mark.parametrize(
    "data, metadata, devices",
    [
        ("raid0", "raid0", 3),
        ("raid1", "raid1", 2),
        ("raid1", "raid1", 3),
        ("raid1c3", "raid1c3", 3),
        ("raid1c4", "raid1c4", 4),
        ("raid10", "raid10", 4),
        ("raid5", "raid1", 3),
        ("raid6", "raid1c3", 4),
        ("raid5", "raid5", 4),
        ("raid6", "raid6", 5),
        ("single", "dup", 2),
    ],
)
def test_profiles(workdir, data, metadata, devices):
    paths = [workdir / f"device{number}" for number in range(devices)]
    filesystems.make(paths, "-d", data, "-m", metadata)
    with filesystems.mounted(paths, "rw,nodiscard") as root:
        filesystems.fill(root)
    mirrors = {"raid1": 2, "raid1c3": 3, "raid1c4": 4, "raid10": 2}.get(data, 1)
    summary = assert_clean(paths[::-1], mirrors=mirrors)
    assert summary["superblocks"] == 2 * devices
    assert (summary["parity_bytes"] > 0) == (data in ["raid5", "raid6"])


def test_unclean(workdir):
    """Copied while it is mounted and has a log tree: a crash, as far as the copy can tell."""
    path = workdir / "fs"
    filesystems.make([path])
    with filesystems.mounted([path], "rw,nodiscard,commit=300") as root:
        filesystems.fill(root)
        data = os.urandom(1 << 20)
        with open(root / "logged", "wb") as file:
            file.write(data)
            os.fsync(file.fileno())
        copy = workdir / "copy"
        images.run("cp", "--sparse=always", str(path), str(copy))
    dump = filesystems.super_of(copy)
    assert not any(line.split() == ["log_root", "0"] for line in dump.splitlines()), dump
    status, errors, summary = verify(copy)
    assert (status, errors) == (0, []), errors[:3]
    # The log's data is verified by the log's checksums: a change of it is found.
    position = pathlib.Path(copy).read_bytes().find(data[:4096])
    with filesystems.changed(copy, position):
        status, errors, changed = verify(copy)
    assert status == 1 and len(errors) == 1, errors
    assert errors[0]["physical"] == position and errors[0]["owners"] == []


def test_removal_in_progress(workdir):
    """A subvolume that is half removed: what is gone already is not looked at."""
    path = filesystems.filled(workdir / "fs", "--nodesize", "4k")
    with filesystems.mounted([path], "rw,nodiscard") as root:
        big = root / "doomed"
        images.run("btrfs", "subvolume", "create", str(big))
        for number in range(3000):
            (big / f"file{number:05}").write_bytes(b"x" * 3000)
        filesystems.sync(root)
        images.run("btrfs", "subvolume", "delete", str(big))
        for number in range(20):
            filesystems.sync(root)
            copy = workdir / f"copy{number % 2}"
            images.run("cp", "--sparse=always", str(path), str(copy))
            status, errors, _ = verify(copy)
            assert (status, errors) == (0, []), errors[:3]
