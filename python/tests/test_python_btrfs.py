"""`btrfs_verify()`, compared with `blkhash btrfs verify`, `btrfs check` and the places that were damaged."""

import json
import os
import random
import shutil
import subprocess
import threading

import filesystems
import images
import pytest
from conftest import BLKSUM, HANG

import blkhash

MIB = 1 << 20
START = 2 * MIB


@pytest.fixture
def folder(workdir):
    """Files for a file system, in the folder `root`."""
    rng = random.Random(1)
    os.makedirs("root/deep/er")
    for number in range(20):
        with open(f"root/deep/file {number}", "wb") as file:
            file.write(rng.randbytes(rng.randrange(1, 200_000)))
    os.link("root/deep/file 3", "root/deep/er/link")
    with open(b"root/caf\xe9", "wb") as file:
        file.write(b"latin" * 10_000)
    return workdir


@pytest.fixture
def disk(folder):
    """A disk with a file system in its first partition, and another partition without one."""
    filesystems.of_folder("fs", "root", "-L", "label", "-m", "dup", "-d", "dup", size=256 * MIB)
    with open("disk", "wb") as file:
        file.truncate(START + 260 * MIB)
    table = f"label: gpt\nstart={START // 512}, size={256 * MIB // 512}\nsize=2048\n"
    images.run("sfdisk", "-q", "disk", stdin=None, input=table.encode())
    images.run("dd", "if=fs", "of=disk", "bs=1M", f"seek={START // MIB}", "conv=notrunc,sparse")
    return folder


def command(*args):
    """Returns the exit status, the errors and the summaries of the command."""
    program = [str(BLKSUM.with_name("blkhash")), "btrfs", "verify", "--json", *map(str, args)]
    result = subprocess.run(program, capture_output=True, timeout=HANG)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    summaries = [line for line in lines if line["type"] == "summary"]
    return result.returncode, [line for line in lines if line["type"] == "error"], summaries


def name_of(name):
    return os.fsdecode(bytes.fromhex(name["name_hex"])) if name.get("name_hex") else name["name"]


def assert_same(report, *args):
    """Asserts that a report has what the command prints. Returns the findings."""
    status, errors, summaries = command(*args, "--max-errors", "0")
    expected = 0 if report.is_clean and report.is_complete else 2 if report.is_clean else 1
    assert status == expected, (status, report)
    assert len(summaries) == len(report.file_systems)
    for summary, system in zip(summaries, report.file_systems):
        assert (system.fsid, system.label, system.checksum) == (
            summary["fsid"], summary["label"], summary["checksum"],
        )
        assert system.counts == summary["errors"]
        assert system.is_clean == (not any(summary["errors"].values()))
        assert list(system.missing_devices) == summary["missing_devices"]
        for ours, theirs in (
            ("data_bytes", "data_bytes"),
            ("metadata_bytes", "tree_bytes"),
            ("unchecked_bytes", "unchecked_bytes"),
            ("missing_bytes", "missing_bytes"),
        ):
            assert getattr(system, ours) == summary[theirs], ours
    findings = [finding for system in report.file_systems for finding in system.findings]
    plain = [
        (
            it["category"], it["subject"], it["problem"], it["device_name"], it["physical"], it["logical"], it["length"],
            it["blocks"], it["mirror"], it["mirrors"], tuple(it["good_mirrors"]), it["rebuildable"],
            it["tree"] and it["tree"]["number"], it["inode"],
            tuple(name_of(path) for owner in it["owners"] for path in owner.get("paths", [])), it["owners_complete"],
        )
        for it in errors
    ]
    # Threads report in any order.
    key = repr
    assert sorted(map(tuple, findings), key=key) == sorted(plain, key=key)
    return findings


@pytest.mark.parametrize("checksum", ["crc32c", "xxhash", "sha256", "blake2"])
def test_checksums(folder, checksum):
    filesystems.of_folder("fs", "root", "--csum", checksum)
    report = blkhash.btrfs_verify("fs")
    assert (report.is_clean, report.is_complete, report.problems, report.others) == (True, True, (), ())
    assert assert_same(report, "fs") == []
    system, = report.file_systems
    assert system.devices == {1: "fs"} and system.data_bytes > 1_000_000
    assert filesystems.check("fs") == (0, set())


def test_random_damage(disk):
    """Single bytes of data, trees and superblocks, on either mirror."""
    rng = random.Random(1)
    layout = filesystems.Layout("fs")
    damaged = set()
    for extents, count in ((layout.data, 5), (layout.blocks, 3)):
        for logical, length in rng.sample(extents, count):
            at = logical + rng.randrange(length)
            place = rng.choice(layout.places(at))
            with open("disk", "r+b") as file:
                file.seek(START + place)
                byte = file.read(1)[0]
                file.seek(START + place)
                file.write(bytes([byte ^ 0x5A]))
            if extents is layout.data:
                damaged.add((place // 4096 * 4096, at // 4096 * 4096))
    with open("disk", "r+b") as file:
        file.seek(START + filesystems.SUPERBLOCKS[1] + 1000)
        file.write(b"\xff")
    report = blkhash.btrfs_verify("disk", threads=2)
    findings = assert_same(report, "disk")
    assert not report.is_clean and report.is_complete and report.others == ("disk partition 2",)
    data = [it for it in findings if it.category == "data_checksum"]
    assert sum(it.blocks for it in data) == len(damaged)
    assert {(it.offset, it.logical) for it in data} <= damaged
    assert all(it.files and it.files_complete and len(it.good_mirrors) == 1 for it in data)
    assert report.file_systems[0].counts["superblock"] == 1
    assert 1 <= report.file_systems[0].counts["tree_checksum"] <= 3
    # The same sectors as in btrfs-progs.
    images.run("dd", "if=disk", "of=fs", "bs=1M", f"skip={START // MIB}", "count=256")
    status, sectors = filesystems.check("fs")
    found = {(it.logical + 4096 * block, it.mirror) for it in data for block in range(it.blocks)}
    assert status != 0 and found == sectors


def test_files_are_named(folder):
    filesystems.of_folder("fs", "root")
    for name, names in (("deep/file 3", {"deep/file 3", "deep/er/link"}), ("caf\udce9", {"caf\udce9"})):
        with open(os.path.join("root", name), "rb") as file:
            beginning = file.read(4096)
        shutil.copy("fs", "damaged")
        place = filesystems.damage("damaged", beginning)
        (finding,) = blkhash.btrfs_verify("damaged").file_systems[0].findings
        assert (set(finding.files), finding.offset, finding.device) == (names, place, "damaged")
        assert finding.reason.startswith("checksum is 0x")
        (finding,) = blkhash.btrfs_verify("damaged", max_files=0).file_systems[0].findings
        assert (finding.files, finding.files_complete) == ((), False)


def test_limit(folder):
    filesystems.of_folder("fs", "root", "-m", "single")
    for number in range(0, 20, 2):
        with open(f"root/deep/file {number}", "rb") as file:
            content = file.read(4096)
        if len(content) == 4096:
            filesystems.damage("fs", content)
    whole = blkhash.btrfs_verify("fs").file_systems[0]
    assert len(whole.findings) >= 8
    for limit in (0, 1, 5):
        system = blkhash.btrfs_verify("fs", limit=limit).file_systems[0]
        assert system.counts == whole.counts and not system.is_clean
        assert len(system.findings) == limit


def test_parts(disk):
    whole = blkhash.btrfs_verify("disk")
    assert whole.others == ("disk partition 2",)
    assert blkhash.btrfs_verify("disk", partition=1) == whole._replace(others=())
    with blkhash.Image("disk", partition=1) as image:
        assert blkhash.btrfs_verify(image) == whole._replace(others=())
        with pytest.raises(TypeError, match="Image"):
            blkhash.btrfs_verify(image, force_share=True)
    images.convert("disk", "disk.qcow2")
    with blkhash.Image("disk.qcow2") as image:
        system, = blkhash.btrfs_verify(image).file_systems
    assert system == whole.file_systems[0]._replace(devices={1: "disk.qcow2 partition 1"})
    os.truncate("disk", START + 256 * MIB - 5)
    report = blkhash.btrfs_verify("disk")
    assert report.is_complete is False and len(report.problems) == 2
    assert report.problems[0].startswith("disk partition 1: is cut off")
    assert_same(report, "disk")


def test_several_devices_and_images(folder):
    for name in ("one", "two"):
        with open(name, "wb") as file:
            file.truncate(200 * MIB)
    images.run("mkfs.btrfs", "-q", "-d", "raid1", "-m", "raid1", "one", "two")
    filesystems.of_folder("fs", "root")
    report = blkhash.btrfs_verify("two", "fs", "one")
    assert report.is_clean and report.is_complete
    assert [system.devices for system in report.file_systems] == [{2: "two", 1: "one"}, {1: "fs"}]
    assert_same(report, "two", "fs", "one")
    report = blkhash.btrfs_verify("one")
    assert report.is_clean and not report.is_complete
    assert report.file_systems[0].missing_devices == (2,) and report.file_systems[0].missing_bytes > 0
    assert_same(report, "one")
    # A file system that cannot be verified is a problem, unless it is the only one.
    with open("empty", "wb") as file:
        file.truncate(MIB)
    report = blkhash.btrfs_verify("empty", "fs")
    assert report.problems == ("empty: no btrfs file system",)
    assert report.is_clean and not report.is_complete


def test_errors(folder):
    with open("empty", "wb") as file:
        file.truncate(MIB)
    filesystems.of_folder("fs", "root")
    shutil.copy("fs", "copy")
    for names, kind, filename in (
        (["empty"], "format", "empty"),
        (["fs", "copy"], "argument", "fs"),
        (["fs", "missing"], "open", "missing"),
    ):
        with pytest.raises(blkhash.ImageError) as caught:
            blkhash.btrfs_verify(*names)
        assert (caught.value.kind, caught.value.filename) == (kind, filename), names
    with pytest.raises(FileNotFoundError):
        blkhash.btrfs_verify("missing")
    for place in filesystems.SUPERBLOCKS[:2]:
        with open("copy", "r+b") as file:
            file.seek(place + 500)
            file.write(b"\xff")
    with pytest.raises(blkhash.ImageError, match="no intact superblock") as caught:
        blkhash.btrfs_verify("copy")
    assert caught.value.kind == "corrupt"
    for arguments in ({"threads": 0}, {"partition": 1}, {"follow": "all"}):
        with pytest.raises(ValueError):
            blkhash.btrfs_verify("fs", **arguments)
    for arguments in ({"colour": "blue"}, {"limit": "x"}):
        with pytest.raises(TypeError):
            blkhash.btrfs_verify("fs", **arguments)
    with pytest.raises(TypeError):
        blkhash.btrfs_verify()


def test_a_changed_image(folder):
    filesystems.of_folder("fs", "root")
    with blkhash.Image("fs") as image:
        with open("fs", "r+b") as file:
            file.seek(100 * MIB)
            file.write(b"x")
        with pytest.raises(blkhash.ChangedError):
            blkhash.btrfs_verify(image)


def test_progress_and_cancellation(folder, servers):
    filesystems.of_folder("fs", "root")
    calls = []
    blkhash.btrfs_verify("fs", progress=lambda *args: calls.append(args))
    done, total = calls[-1]
    assert done == total > 1_000_000
    event = threading.Event()
    event.set()
    with pytest.raises(blkhash.CancelledError):
        blkhash.btrfs_verify("fs", cancel=event)
    # Reads that take long.
    uri = servers.nbdkit("--filter=delay", "file", "fs", "rdelay=50ms").uri()
    calls, event = [], threading.Event()

    def progress(done, total):
        calls.append((done, total))
        event.set()

    with pytest.raises(blkhash.CancelledError):
        blkhash.btrfs_verify(uri, threads=1, progress=progress, cancel=event)
    assert len(calls) == 1
