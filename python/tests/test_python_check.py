"""`check()` and `owners()`, compared with the JSON of `blkhash check` and `blkhash owners`, and with the places that were damaged."""

import json
import os
import pathlib
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
PARTITIONS = {1: (1 * MIB, "ext4"), 2: (33 * MIB, "btrfs"), 3: (161 * MIB, None)}
STATUS = {"clean": 0, "damaged": 1, "incomplete": 2}


@pytest.fixture
def disk(workdir):
    """A disk with an ext4, a btrfs and a partition that is empty."""
    rng = random.Random(1)
    os.makedirs("root/deep/er")
    for number in range(10):
        with open(f"root/deep/file {number}", "wb") as file:
            file.write(rng.randbytes(rng.randrange(20_000, 200_000)))
    os.link("root/deep/file 3", "root/deep/er/link")
    with open(b"root/caf\xe9", "wb") as file:
        file.write(rng.randbytes(50_000))
    options = ["-q", "-d", "root", "-b", "4096", "-O", "metadata_csum", "-L", "label", "ext4", "32M"]
    images.run("mkfs.ext4", *options)
    filesystems.of_folder("btrfs", "root", "-m", "single", size=128 * MIB)
    with open("disk", "wb") as file:
        file.truncate(170 * MIB)
    table = "label: gpt\nstart=1MiB, size=32MiB\nstart=33MiB, size=128MiB\nstart=161MiB, size=1MiB\n"
    images.run("sfdisk", "-q", "disk", stdin=None, input=table.encode())
    for offset, name in PARTITIONS.values():
        if name:
            images.run("dd", f"if={name}", "of=disk", "bs=1M", f"seek={offset // MIB}", "conv=notrunc,sparse")
    return workdir


def command(*args):
    """Returns the exit status, the lines of JSON, and what is printed on standard error."""
    program = [str(BLKSUM.with_name("blkhash")), *map(str, args), "--json"]
    result = subprocess.run(program, capture_output=True, timeout=HANG, stdin=subprocess.DEVNULL)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return result.returncode, lines, result.stderr.decode()


def name_of(name):
    return os.fsdecode(bytes.fromhex(name["name_bytes"])) if "name_bytes" in name else name["name"]


def plain(value):
    """Returns what a tuple of the package is in JSON."""
    if hasattr(value, "_asdict"):
        return {key: plain(it) for key, it in value._asdict().items()}
    return [plain(it) for it in value] if isinstance(value, (tuple, list)) else value


def checked(image, *args, **options):
    """Checks an image, and asserts that the command prints the same. Returns the result."""
    found = blkhash.check(image, max_findings=1 << 30, **options)
    status, lines, _ = command("check", "--max-errors", "0", *args, getattr(image, "name", image))
    assert status == STATUS[found.verdict]
    assert found.is_clean == (status == 0)
    summary = lines.pop()
    assert (summary["type"], summary["verdict"]) == ("summary", found.verdict)
    objects = {"finding": [], "layer": []}
    for line in lines:
        for key in ("name", "name_bytes"):
            line.pop(key, None)
        if "files" in line:
            line["files"] = [name_of(name) for name in line["files"]]
        objects[line.pop("type")].append(line)
    assert plain(found.layers) == objects["layer"]
    # Threads report in any order.
    assert sorted(map(repr, plain(found.findings))) == sorted(map(repr, objects["finding"]))
    return found


def owned(image, *ranges, args=(), **options):
    """Asks for the owners, and asserts that the command prints the same. Returns the result."""
    found = blkhash.owners(image, *ranges, **options)
    text = f"{ranges[0]}-{sum(ranges)}" if len(ranges) == 2 else f"{ranges[0]}-" if ranges else "0-"
    status, lines, errors = command("owners", *args, getattr(image, "name", image), text)
    assert status == 0
    for line in lines:
        assert line.pop("type") == "extent"
        line["names"] = [name_of(name) for name in line["names"]]
    assert plain(found.extents) == lines
    notes = [line.split("note: ", 1)[1] for line in errors.splitlines()]
    assert [(f"partition {number}: " if number else "") + text for number, text in found.remarks] == notes
    return found


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x5A]))


def test_a_clean_disk(disk):
    found = checked("disk")
    layers = [(it.place, it.layer.lower(), it.verdict) for it in found.layers]
    assert layers[:3] == [
        ("disk", "gpt", "clean"), ("partition 1", "ext4", "clean"), ("partition 2", "btrfs", "clean"),
    ]
    assert not found.findings
    ext4 = found.layers[1]
    assert (ext4.partition, ext4.offset, ext4.length, ext4.label) == (1, MIB, 32 * MIB, "label")
    assert {it.structure: it.count for it in ext4.verified}["inode"] > 10
    images.convert("disk", "disk.qcow2")
    with blkhash.Image("disk.qcow2") as image:
        layers = checked(image, threads=2).layers
    assert (layers[0].place, layers[0].layer, layers[0].leaks, layers[0].outdated) == ("image", "qcow2", 0, 0)
    assert layers[1:] == found.layers


def test_damage(disk):
    """An inode of ext4, content in btrfs, and the partition table."""
    inodes = filesystems_place("ext4")
    flip("disk", MIB + inodes + 256 * 11 + 8)
    with open("root/deep/file 3", "rb") as file:
        data = 33 * MIB + filesystems.damage("btrfs", file.read(4096))
    flip("disk", data)
    flip("disk", 512 + 56)
    found = checked("disk")
    assert found.verdict == "damaged"
    findings = {it.layer.lower(): it for it in found.findings}
    assert set(findings) == {"gpt", "ext4", "btrfs"}
    inode = findings["ext4"]
    assert (inode.place, inode.problem, inode.structure, inode.object) == ("partition 1", "mismatch", "inode", 12)
    assert inode.offset == MIB + inode.layer_offset
    assert inode.files
    assert (findings["btrfs"].offset, findings["btrfs"].length) == (data, 4096)
    assert {name.lstrip("/") for name in findings["btrfs"].files} == {"deep/file 3", "deep/er/link"}
    # Only one of the partitions.
    for number in PARTITIONS:
        part = checked("disk", "--partition", number, partition=number)
        assert [it.place for it in part.layers] == ["disk"]
        assert part.is_clean == (number == 3)
        with blkhash.Image("disk", partition=number) as image:
            assert blkhash.check(image) == part
    # All are counted, whatever is kept.
    for limit in range(3):
        fewer = blkhash.check("disk", max_findings=limit)
        assert (fewer.verdict, fewer.layers) == (found.verdict, found.layers)
        assert fewer.findings == found.findings[:limit]


def filesystems_place(path):
    """Returns the offset of the first inode table of an ext4."""
    output = images.run("dumpe2fs", path).decode()
    (line,) = [line for line in output.splitlines() if "Inode table at" in line][:1]
    return int(line.split("Inode table at ")[1].split("-")[0]) * 4096


def test_the_structure_of_an_image(disk):
    images.convert("disk", "disk.qcow2")
    with open("disk.qcow2", "rb") as file:
        header = file.read(104)
    table = int.from_bytes(header[48:56], "big")
    with open("disk.qcow2", "r+b") as file:
        file.seek(table)
        block = int.from_bytes(file.read(8), "big")
        # The reference count of the third cluster.
        file.seek(block + 4)
        file.write(b"\0\0")
    found = checked("disk.qcow2")
    assert found.layers[0].damaged == 1
    (finding,) = found.findings
    assert (finding.place, finding.partition, finding.problem) == ("image", None, "damaged")
    assert blkhash.check("disk.qcow2", max_findings=0).layers == found.layers
    # The limit is one for all layers.
    flip("disk", 512 + 56)
    images.convert("disk", "two.qcow2")
    with open("two.qcow2", "r+b") as file:
        file.seek(block + 4)
        file.write(b"\0\0")
    assert len(checked("two.qcow2").findings) >= 2
    assert len(blkhash.check("two.qcow2", max_findings=1).findings) == 1
    # The table of level 1 is past the end of the file, so that there is no content.
    with open("disk.qcow2", "r+b") as file:
        file.seek(40)
        file.write((1 << 50).to_bytes(8, "big"))
    with pytest.raises(blkhash.ImageError):
        blkhash.Image("disk.qcow2")
    found = blkhash.check("disk.qcow2")
    status, lines, _ = command("check", "disk.qcow2")
    assert status == STATUS[found.verdict]
    of_command = [line for line in lines if line["type"] == "layer"]
    assert [(it.place, it.layer, it.verdict) for it in found.layers] == [
        (it["place"], it["layer"], it["verdict"]) for it in of_command
    ]
    assert found.layers[-1].unreadable == 1 and found.findings[-1].structure == "content"


def test_owners(disk):
    found = owned("disk")
    assert sum({it.offset: it.length for it in found.extents}.values()) == 170 * MIB
    names = {name for it in found.extents for name in it.names}
    assert {"caf\udce9", "deep/file 3", "deep/er/link"} <= names
    kinds = {(it.file_system, it.kind) for it in found.extents}
    assert {("ext4", "file"), ("ext4", "metadata"), ("ext4", "free"), ("btrfs", "file"), (None, "unknown")} <= kinds
    # Content is where the file system says.
    with open("disk", "rb") as image:
        files = [it for it in found.extents if it.kind == "file" and it.names]
        assert {it.file_system for it in files} == {"ext4", "btrfs"}
        # An extent of btrfs has several files.
        files = [it for it in files if it.file_system == "ext4"]
        assert len(files) > 10
        for it in files:
            image.seek(it.offset)
            with open(os.path.join("root", it.names[0]), "rb") as file:
                file.seek(it.file_offset)
                expected = file.read(it.length)
            assert image.read(len(expected)) == expected, it
    with blkhash.Image("disk") as image:
        assert blkhash.owners(image, 0).extents == found.extents
        with pytest.raises(TypeError, match="Image"):
            blkhash.owners(image, partition=1)


def test_ranges_of_owners(disk):
    whole = blkhash.owners("disk").extents
    rng = random.Random(2)
    for _ in range(10):
        offset = rng.randrange(170 * MIB)
        length = rng.choice([1, 5000, 3 * MIB])
        found = owned("disk", offset, length).extents
        end = min(offset + length, 170 * MIB)
        overlapping = [it for it in whole if it.offset < end and offset < it.offset + it.length]
        assert [(it.kind, it.structure, it.names) for it in found] == [
            (it.kind, it.structure, it.names) for it in overlapping
        ]
    assert owned("disk", 169 * MIB).extents[-1].offset >= 169 * MIB
    part = owned("disk", args=["--partition", 1], partition=1)
    assert sum(it.length for it in part.extents) == 32 * MIB and part.extents[0].partition is None
    assert blkhash.owners("disk", 1 << 60).extents == []
    assert blkhash.owners("disk", (1 << 64) - 1, (1 << 64) - 1).extents == []
    assert len(blkhash.owners("disk", limit=len(whole)).extents) == len(whole)
    with pytest.raises(ValueError, match="limit"):
        blkhash.owners("disk", limit=len(whole) - 1)


def test_remarks(disk):
    images.run("debugfs", "-w", "-R", "set_super_value state 0", "ext4")
    images.run("dd", "if=ext4", "of=disk", "bs=1M", "seek=1", "conv=notrunc")
    for number, text in owned("disk").remarks:
        assert number == 1 and text
    owned("ext4")


def test_errors(disk):
    with open("empty", "wb") as file:
        file.truncate(MIB)
    with pytest.raises(blkhash.ImageError, match="no file system") as caught:
        blkhash.owners("empty")
    assert (caught.value.kind, caught.value.filename) == ("format", "empty")
    assert blkhash.check("empty").layers[0].layer == "unknown"
    for function in (blkhash.check, blkhash.owners):
        with pytest.raises(FileNotFoundError):
            function("missing")
        with pytest.raises(ValueError, match="partition"):
            function("disk", partition=9)
        with pytest.raises(ValueError):
            function("disk", follow="all")
        with pytest.raises(TypeError):
            function("disk", colour="blue")
        with pytest.raises(TypeError):
            function()
        with blkhash.Image("disk") as image, pytest.raises(TypeError, match="Image"):
            function(image, force_share=True)
        shutil.copy("disk", "copy")
        with blkhash.Image("copy") as image:
            flip("copy", 100 * MIB)
            with pytest.raises(blkhash.ChangedError):
                function(image)
    for arguments in ({"threads": 0}, {"max_findings": -1}):
        with pytest.raises((ValueError, OverflowError)):
            blkhash.check("disk", **arguments)


def test_progress_and_cancellation(disk, servers):
    images.convert("disk", "disk.qcow2")
    calls = []
    blkhash.check("disk.qcow2", progress=lambda *args: calls.append(args))
    done, total = calls[-1]
    assert done == total > MIB
    event = threading.Event()
    event.set()
    with pytest.raises(blkhash.CancelledError):
        blkhash.check("disk", cancel=event)
    # Reads that take long.
    uri = servers.nbdkit("--filter=delay", "file", "disk", "rdelay=50ms").uri()
    calls, event = [], threading.Event()

    def progress(done, total):
        assert done <= total
        calls.append((done, total))
        event.set()

    with pytest.raises(blkhash.CancelledError):
        blkhash.check(uri, threads=1, progress=progress, cancel=event)
    assert len(calls) == 1


def test_an_image_that_violates_its_format(workdir):
    """The verdict equals the command's, which finds it on opening or on reading."""
    pathlib.Path("bad.img.gz").write_bytes(b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 4000)
    checked = blkhash.check("bad.img.gz")
    assert checked.verdict == "damaged" and [it.problem for it in checked.findings] == ["damaged"]
    program = str(BLKSUM.with_name("blkhash"))
    result = subprocess.run([program, "check", "--json", "bad.img.gz"], capture_output=True, text=True)
    found = json.loads(result.stdout.splitlines()[0])
    assert result.returncode == 1 and found["reason"] == checked.findings[0].reason


def test_owners_of_differences(disk):
    """As the command says with blocks of 4 KiB."""
    extents = owned("disk").extents
    files = [it for it in extents if it.file_system == "ext4" and it.kind == "file" and it.length >= 8192]
    free = next(it for it in extents if it.file_system == "ext4" and it.kind == "free" and it.length >= MIB)
    shutil.copy("disk", "copy")
    for place in (files[0].offset, files[1].offset, free.offset, free.offset + 8192):
        flip("copy", place)
    blkhash.create_map("disk", "disk.blkmap", block_size=4096)
    map_ = blkhash.Map("disk.blkmap")
    plain = map_.verify("copy")
    found = map_.verify("copy", owners=True)
    used = map_.verify("copy", ignore_free=True)
    left = map_.verify("copy", ignore_free=True, limit=2)
    assert plain == found == blkhash.diff("disk", "copy", block_size=4096, owners=True) and len(plain) == 4
    assert used == left == [it for it in plain if it.offset < free.offset // 4096 * 4096 or it.offset > free.offset + 8192]
    assert (plain.in_files, plain.owners, plain.ignored, plain.remarks) == (None, None, None, ())
    assert (used.owners, used.ignored, used.in_files, used.in_free_space) == (None, 2, 2, 0)
    status, lines, _ = command("map", "diff", "--block-size", "4k", "disk", "copy")
    *differences, summary = lines
    fields = ("in_files", "in_metadata", "in_journal", "in_free_space", "elsewhere", "ignored")
    assert {it: getattr(found, it) for it in fields} == {it: summary[it] for it in fields}
    assert (found.in_files, found.in_free_space) == (2, 2)
    for owners, line in zip(found.owners, differences):
        of_command = [
            (it["kind"], it["structure"], tuple(map(name_of, it["names"])), it["object"], it["file_offset"])
            for it in line["owners"]
        ]
        assert list(owners) == of_command
    assert {name for owners in found.owners for it in owners for name in it.names} >= {*files[0].names, *files[1].names}
    # Nothing is known of an image without a file system.
    flip("copy", 512 + 16)
    for name in ("none", "other"):
        with open(name, "wb") as file:
            file.write(name.encode() * 1000)
    found = blkhash.diff("none", "other", owners=True, ignore_free=True)
    assert len(found) == 1 and (found.in_files, found.owners, found.ignored) == (None, None, None)
