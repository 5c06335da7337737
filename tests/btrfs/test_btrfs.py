"""blkhash btrfs verify: clean file systems of every kind, compared with the counters of btrfs scrub."""

import errno
import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

import filesystems
import images
from btrfs import verify
from commands import HANG, blkhash, mostly_slow

pytestmark = pytest.mark.root

CHECKSUMS = ["crc32c", "xxhash", "sha256", "blake2"]


def assert_clean(paths, scrubbed=None, mirrors=1):
    """Asserts that there are no errors, and that as much was verified as by a scrub."""
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
    # 64 KiB of the 1 MiB were written.
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


@pytest.mark.slow
def test_unclean(workdir):
    """The image is copied while it is mounted and has a log tree, like after a crash."""
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
    # The log's checksums cover the log's data, so a change in it is found.
    position = pathlib.Path(copy).read_bytes().find(data[:4096])
    with filesystems.changed(copy, position):
        status, errors, changed = verify(copy)
    assert status == 1 and len(errors) == 1, errors
    assert errors[0]["physical"] == position and errors[0]["owners"] == []


@pytest.mark.slow
def test_removal_in_progress(workdir):
    """A subvolume is partially removed. The removed part is not verified."""
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
            # The removal commits in the background. A copy between two superblocks of a commit would be torn.
            images.run("fsfreeze", "--freeze", str(root))
            try:
                images.run("cp", "--sparse=always", str(path), str(copy))
            finally:
                images.run("fsfreeze", "--unfreeze", str(root))
            status, errors, _ = verify(copy)
            assert (status, errors) == (0, []), errors[:3]


@pytest.mark.parametrize(
    "profile, devices", [("raid1", 2), ("raid1c3", 3), ("raid10", 4), ("raid5", 3), ("raid6", 4)]
)
def test_missing_device(workdir, profile, devices):
    paths = [workdir / f"device{number}" for number in range(devices)]
    filesystems.make(paths, "-d", profile, "-m", profile)
    with filesystems.mounted(paths, "rw,nodiscard") as root:
        filesystems.fill(root)
    _, _, whole = verify(*paths)
    status, errors, summary = verify(*paths[1:])
    assert (status, errors) == (2, []), (errors[:3], summary)
    assert summary["missing_devices"] == [1]
    # Present devices are verified. The content of missing ones is counted, or rebuilt from parity.
    kinds = ["data_bytes", "tree_bytes", "unchecked_bytes"]
    seen = sum(summary[kind] for kind in kinds)
    assert seen + summary["missing_bytes"] == sum(whole[kind] for kind in kinds)
    has_parity = profile in ["raid5", "raid6"]
    assert (summary["missing_bytes"] == 0) == has_parity, summary
    assert (summary["rebuilt_bytes"] > 0) == has_parity, summary
    result = blkhash("btrfs", "verify", *paths[1:])
    assert result.returncode == 2 and b"missing       device 1 (" in result.stdout, result
    status, _, message = verify(*paths, paths[0])
    assert status == 2 and "is device 1, and so is" in message, message


@pytest.mark.parametrize("checksum", mostly_slow(CHECKSUMS, ["xxhash"]))
@pytest.mark.parametrize("profile, devices", [("raid5", 3), ("raid6", 5)])
def test_rebuilt(workdir, profile, devices, checksum):
    """As many devices are missing as there are parities. Everything that the kernel can read is verified,
    and a further bad byte is lost exactly if the kernel cannot read it."""
    paths = [workdir / f"device{number}" for number in range(devices)]
    filesystems.make(paths, "-d", profile, "-m", profile, "--csum", checksum)
    with filesystems.mounted(paths, "rw,nodiscard") as root:
        filesystems.fill(root)
        content = os.urandom(3 << 20)
        (root / "file").write_bytes(content)
        written = contents(root)
    _, _, whole = verify(*paths)
    sets = itertools.combinations(range(devices), {"raid5": 1, "raid6": 2}[profile])
    for lost in sets:
        rest = [path for number, path in enumerate(paths) if number not in lost]
        status, errors, summary = verify(*rest)
        assert (status, errors) == (2, []), (lost, errors[:3])
        assert len(summary["missing_devices"]) == len(lost)
        assert summary["rebuilt_bytes"] > 0 and summary["missing_bytes"] == 0
        for name in ["data_bytes", "tree_bytes", "unprotected", "lost_blocks"]:
            assert summary[name] == whole[name], (lost, name)
    assert degraded_reads(rest, whole["fsid"], len(lost), written) == set()
    path, position = place_of(content, rest, paths)
    with filesystems.changed(path, position):
        status, errors, _ = verify(*rest)
        assert status == 1 and errors, errors
        # The sector itself, and those that are rebuilt from it.
        assert len(errors) <= devices and not any(error["rebuildable"] for error in errors), errors
        named = {it["name"] for error in errors for owner in error["owners"] for it in owner["paths"]}
        unread = degraded_reads(rest, whole["fsid"], len(lost), written)
        assert named == unread and "file" in named, (named, unread, errors)
        # If all devices are present, it can be repaired.
        status, errors, _ = verify(*paths)
        assert [error["rebuildable"] for error in errors] == [True], errors


def place_of(content, paths, all_paths):
    """Returns one of `paths` and the offset of a sector of the content there. Requires that the sector
    exists once, because the parity of a row with only one sector in use equals that sector."""
    devices = {path: path.read_bytes() for path in all_paths}
    for start in range(1 << 20, len(content), 4096):
        sector = content[start : start + 4096]
        if sum(device.count(sector) for device in devices.values()) == 1:
            for path in paths:
                if (position := devices[path].find(sector)) > 0:
                    return path, position
    raise AssertionError("it is nowhere")


def degraded_reads(paths, fsid, lost, written):
    """Returns the files that the kernel cannot read while `lost` devices are missing."""
    deadline = time.monotonic() + HANG
    while True:
        with filesystems.mounted(paths, "ro,degraded") as root:
            # The kernel remembers devices of an earlier mount as long as they are in use.
            devices = pathlib.Path(f"/sys/fs/btrfs/{fsid}/devinfo").glob("*/missing")
            if [device.read_text() for device in devices].count("1\n") == lost:
                read = contents(root)
                # Linux 6.18 sometimes reads zeros without an error where it cannot rebuild a sector.
                return {name for name in written if read[name] != written[name]}
        assert time.monotonic() < deadline, "the kernel has devices that it was not given"
        time.sleep(0.1)


def contents(root):
    """Returns a digest of each file, or None for a file that cannot be read."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                assert error.errno == errno.EIO, error
                digest = None
            found[os.path.relpath(path, root)] = digest
    return found


MIB = 1 << 20


def disk_of(workdir, table, at):
    """Creates a disk with a file system at each offset."""
    disk = workdir / "disk"
    with open(disk, "wb") as file:
        file.truncate(700 * MIB)
    subprocess.run(["sfdisk", "-q", str(disk)], input=table.encode(), check=True)
    for number, offset in enumerate(at):
        filesystem = filesystems.filled(workdir / f"fs{number}")
        images.run("dd", f"if={filesystem}", f"of={disk}", "bs=1M", f"seek={offset // MIB}", "conv=notrunc,sparse")
    return disk


def test_partitions_are_accounted_for(workdir):
    """A partition that the image does not contain, or contains only in part, is reported."""
    disk = disk_of(workdir, "label: gpt\n1MiB,256MiB\n257MiB,256MiB\n513MiB,16MiB\n", (MIB, 257 * MIB))
    result = blkhash("btrfs", "verify", disk)
    assert result.returncode == 0, result
    assert result.stderr.decode() == f"blkhash: {disk} partition 3: no btrfs file system, not verified\n"
    assert result.stdout.count(b"errors        none") == 2
    cases = {
        # End of the image, and the reports for the second and the third partition.
        520 * MIB: ("", "is cut off"),
        500 * MIB: ("is cut off", "lies past the end"),
        257 * MIB + 4096: ("is cut off", "lies past the end"),
        257 * MIB: ("lies past the end", "lies past the end"),
        200 * MIB: ("lies past the end", "lies past the end"),
    }
    for end, said in cases.items():
        os.truncate(disk, end)
        result = blkhash("btrfs", "verify", disk)
        errors = result.stderr.decode()
        assert result.returncode in ((1, 2) if end in (500 * MIB, 200 * MIB) else (2,)), result
        for number, words in zip((2, 3), said):
            assert not words or re.search(f"partition {number}: {words}", errors), (end, errors)
        result = blkhash("btrfs", "verify", "--partition", "3", disk)
        assert result.returncode == 2 and b"partition 3" in result.stderr, result


def test_logical_partitions_that_are_lost(workdir):
    table = "label: dos\n1MiB,256MiB,83\n257MiB,400MiB,5\n258MiB,256MiB,83\n"
    disk = disk_of(workdir, table, (MIB, 258 * MIB))
    result = blkhash("btrfs", "verify", disk)
    assert (result.returncode, result.stderr) == (0, b""), result
    assert result.stdout.count(b"errors        none") == 2
    with open(disk, "r+b") as file:
        file.seek(257 * MIB)
        file.write(bytes(512))
    result = blkhash("btrfs", "verify", disk)
    message = f"the partition table is damaged: no record of a logical partition at sector {257 * 2048}"
    assert result.returncode == 2 and message in result.stderr.decode(), result
    # The other partition is still verified.
    assert result.stdout.count(b"errors        none") == 1


@pytest.mark.parametrize("profile, parity", [("raid5", 0), ("raid6", 0), ("raid6", 1)])
def test_parity(workdir, profile, parity):
    """A wrong parity is reported, except in a row with bad data."""
    paths = [workdir / f"device{number}" for number in range(4)]
    filesystems.make(paths, "-d", profile, "-m", "raid1")
    content = os.urandom(3 << 20)
    with filesystems.mounted(paths, "rw,nodiscard") as root:
        (root / "file").write_bytes(content)
    chunk = next(
        item
        for item in filesystems.dump_devices(paths, "chunk").split("\titem ")
        if f"type DATA|{profile.upper()}" in item
    )
    logical = int(re.search(r"CHUNK_ITEM (\d+)", chunk)[1])
    stripes = [
        (int(device), int(offset))
        for device, offset in re.findall(r"stripe \d+ devid (\d+) offset (\d+)", chunk)
    ]
    data = 4 - (1 if profile == "raid5" else 2)
    dump = filesystems.dump_devices(paths, "extent")
    extents = re.findall(r"key \((\d+) EXTENT_ITEM \d+\).*\n.*flags DATA", dump)
    # The row after the one in which the file begins.
    row = (int(extents[0]) - logical) // (data * 65536) + 1
    device, offset = stripes[(data + parity + row) % 4]
    physical = offset + row * 65536 + 4096 * 3
    with filesystems.changed(paths[device - 1], physical + 5):
        status, errors, _ = verify(*paths)
        assert status == 1 and len(errors) == 1, errors
        assert errors[0]["subject"] == "parity"
        assert (errors[0]["device"], errors[0]["physical"]) == (device, physical)
    device, offset = stripes[(0 + row) % 4]
    with filesystems.changed(paths[device - 1], offset + row * 65536 + 4096 * 3 + 5):
        status, errors, _ = verify(*paths)
        assert status == 1 and [error["subject"] for error in errors] == ["data"], errors
        assert errors[0]["logical"] == logical + row * data * 65536 + 4096 * 3
        assert errors[0]["owners"][0]["paths"] == [{"name": "file"}]


def test_info(workdir):
    paths = [workdir / "one", workdir / "two"]
    filesystems.make(paths, "--csum", "xxhash", "-m", "raid1", "-d", "raid0", "-L", "a label")
    info = json.loads(blkhash("btrfs", "info", "--json", *paths).stdout)
    assert (info["checksum"], info["checksum_size"], info["label"]) == ("xxhash", 8, "a label")
    assert info["implementation"].startswith("xxh64-")
    profiles = {it["kind"]: it["profile"] for it in info["allocations"]}
    assert profiles == {"data": "RAID0", "metadata": "RAID1", "system": "RAID1"}
    assert [device["id"] for device in info["devices"]] == [1, 2]
    assert info["kernel"] is None
    with filesystems.mounted(paths) as root:
        info = json.loads(blkhash("btrfs", "info", "--json", root).stdout)
        fsid = info["fsid"]
        kernel = pathlib.Path(f"/sys/fs/btrfs/{fsid}/checksum").read_text().strip()
        assert info["kernel"] == kernel and len(info["devices"]) == 2
        text = blkhash("btrfs", "info", root).stdout.decode()
        assert f"kernel        {kernel}\n" in text and "8 bytes for 4096 of data" in text
    info = json.loads(blkhash("btrfs", "info", "--json", paths[0]).stdout)
    assert [device["id"] for device in info["missing_devices"]] == [2]
    assert blkhash("btrfs", "info", workdir).returncode == 2


def test_algorithms():
    lines = blkhash("btrfs", "algorithms", "--json", "--data", "1T").stdout.splitlines()
    found = {line["checksum"]: line for line in map(json.loads, lines)}
    assert {name: line["bytes"] for name, line in found.items()} == {
        "crc32c": 4,
        "xxhash": 8,
        "sha256": 32,
        "blake2b": 32,
    }
    assert found["crc32c"]["space_bytes"] == 1 << 30 and found["crc32c"]["ratio"] == 1
    assert [name for name, it in found.items() if it["collisions_are_hard"]] == ["sha256", "blake2b"]
    assert found["sha256"]["standard"] == "FIPS 180-4"


def test_obscure_name(workdir):
    """The kernel stores both names under one hash."""
    names = ["secret.txt", "passwd", "holiday pictures"]
    others = blkhash("btrfs", "obscure-name", *names).stdout.decode().splitlines()
    path = workdir / "fs"
    filesystems.make([path])
    with filesystems.mounted([path]) as root:
        for name in names + others:
            (root / name).touch()
    found = re.findall(r"key \(256 DIR_ITEM (\d+)\)", filesystems.dump(path, "5"))
    # Both names share one folder item, because their hashes collide.
    assert len(found) == len(names) and len(set(names + others)) == 2 * len(names)
    assert blkhash("btrfs", "obscure-name", "abcd").returncode == 1


def test_not_btrfs(workdir):
    path = workdir / "zeros"
    with open(path, "wb") as file:
        file.truncate(1 << 20)
    status, _, message = verify(path)
    assert status == 2 and message == f"blkhash: {path}: no btrfs file system\n"
    assert verify(workdir / "absent")[0] == 2
    fs = filesystems.filled(workdir / "fs")
    # The other file system is still verified.
    result = blkhash("btrfs", "verify", path, fs)
    assert result.returncode == 2 and b"errors        none" in result.stdout


def test_truncated(workdir):
    """An image is truncated. Content after its end is unreadable and not zeros."""
    path = filesystems.filled(workdir / "fs")
    os.truncate(path, 100 << 20)
    status, errors, summary = verify(path)
    assert status in (1, 2)
    if status == 1:
        assert any(error["category"] == "read" for error in errors), errors[:3]
    else:
        assert "ends before" in summary, summary


def test_what_cannot_be_read_is_not_called_verified(workdir):
    """The trees tell what is in use, also where the image ends before it."""
    path = filesystems.filled(workdir / "fs", "-d", "single", "-m", "dup")
    whole = blkhash("btrfs", "verify", path).stdout.decode()
    assert re.search(r"^  in use +[0-9.]+ MiB: verified ", whole, re.MULTILINE)
    for size in range(240 * MIB, 16 * MIB, -8 * MIB):
        os.truncate(path, size)
        _, errors, summary = verify(path)
        if any(error["category"] == "read" and error["subject"] == "data" for error in errors):
            break
    text = blkhash("btrfs", "verify", path).stdout.decode()
    assert "blocks that cannot be read" in text
    assert re.search(r"^  in use +[0-9.]+ MiB: with checksums ", text, re.MULTILINE), text
    assert summary["data_bytes"] < summary["used"]["data"]


def test_quiet_prints_only_what_is_wrong(workdir):
    path = filesystems.filled(workdir / "fs")
    good = blkhash("btrfs", "verify", "-q", path)
    assert (good.returncode, good.stdout, good.stderr) == (0, b"", b"")
    with open(path, "r+b") as file:
        file.seek(filesystems.SUPERBLOCKS[1] + 100)
        file.write(b"\xa5" * 8)
    bad = blkhash("btrfs", "verify", "-q", path)
    assert bad.returncode == 1 and b"superblock 1" in bad.stdout
    assert blkhash("btrfs", "verify", "-q", "--json", path).returncode == 2


def test_mounted(workdir):
    """A folder and a file of a mounted btrfs are no images: the message says what verifies them."""
    path = filesystems.filled(workdir / "fs")
    with filesystems.mounted([path]) as root:
        (root / "plain").write_bytes(b"x" * 10_000)
        folder = blkhash("btrfs", "verify", root)
        file = blkhash("btrfs", "verify", root / "plain")
        mounts = pathlib.Path("/proc/mounts").read_text().splitlines()
        device = next(line.split()[0] for line in mounts if f" {root} " in line)
    assert folder.returncode == 2 and folder.stdout == b""
    expected = f"is a mounted file system: 'btrfs scrub start -B {root}' verifies it, or unmount it and name {device}"
    assert folder.stderr.decode() == f"blkhash: {root}: {expected}\n"
    assert file.returncode == 2 and f"is itself a file of the btrfs on {device}" in file.stderr.decode()
    assert f"'blkhash btrfs verify {device}'" in file.stderr.decode()


def test_a_folder_is_no_file_system(workdir):
    path = filesystems.filled(workdir / "fs")
    result = blkhash("btrfs", "verify", ".", path)
    # The other one is verified.
    assert result.returncode == 2 and b"errors        none" in result.stdout
    assert result.stderr == b"blkhash: .: is a folder, and not of a btrfs file system\n"
