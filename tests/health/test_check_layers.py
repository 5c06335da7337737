"""Checks of the layers between a disk and its file systems, compared with sgdisk, cryptsetup, LVM and veritysetup.

Random places have fixed seeds, which pytest shows with a failure.
"""

import contextlib
import dataclasses
import json
import os
import random
import re
import shutil

import pytest

import filesystems
import images
from commands import HANG, ROOT, blksum_path, mostly_slow
from layers import blank, luks, physical_volume, physical_volumes

MIB = 1 << 20


CLEAN, DAMAGED, INCOMPLETE = 0, 1, 2


@dataclasses.dataclass
class Row:
    place: str
    kind: str
    verdict: str
    verified: dict
    unprotected: int | None
    remarks: str


@dataclasses.dataclass
class Checked:
    status: int
    rows: list
    findings: list

    def row(self, place, kind=None):
        (row,) = [row for row in self.rows if row.place == place and kind in (None, row.kind)]
        return row

    def structures(self):
        return {finding[4] for finding in self.findings}


def check(path):
    """Checks an image."""
    program = str(blksum_path().with_name("blkhash"))
    result = images.attempt(program, "check", "--json", "--max-errors=0", "-f", "raw", str(path), timeout=HANG)
    assert result.returncode in (CLEAN, DAMAGED, INCOMPLETE) and not result.stderr, result
    rows, findings = [], []
    for line in map(json.loads, result.stdout.splitlines()):
        if line["type"] == "finding":
            paths = [it["name"] for it in line["files"]]
            fields = ("type", "place", "layer", "problem", "structure", "layer_offset", "length", "offset", "reason")
            findings.append([*(str(line[field]) for field in fields), *paths])
        elif line["type"] == "layer":
            counts = {it["structure"]: (it["count"], it["bytes"]) for it in line["verified"]}
            verdict = line["verdict"].capitalize()
            remarks = "; ".join(line["remarks"])
            rows.append(Row(line["place"], line["layer"], verdict, counts, line["unprotected_bytes"], remarks))
    return Checked(result.returncode, rows, findings)


@contextlib.contextmanager
def flipped(path, place, bit):
    """Temporarily changes a bit of a file."""
    with open(path, "r+b") as file:

        def flip():
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1 << bit]))
            file.flush()

        flip()
        try:
            yield
        finally:
            flip()


def write(path, offset, content):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content)


def sgdisk_objects(target):
    """Returns whether sgdisk finds a problem."""
    result = images.attempt("sgdisk", "-v", str(target))
    return result.returncode != 0 or b"No problems found" not in result.stdout or b"corrupt" in result.stdout


def gpt(path, sector_size=512):
    """Creates a disk with three partitions."""
    blank(path, 64 * MIB)
    with filesystems.attached(path, "-b", str(sector_size)) as device:
        options = ["-n", "1:0:+8M", "-n", "2:0:+16M", "-t", "2:8e00", "-n", "4:0:0", "-c", "4:rest"]
        images.run("sgdisk", *options, device)
    return path


def gpt_places(source, sector_size, size=64 * MIB):
    """Returns places of all structures of a GPT."""
    last = size - sector_size
    entries = 128 * 128
    starts = [sector_size, last]
    return (
        [source.randrange(446, 512) for _ in range(20)]
        + [start + source.randrange(92) for start in starts for _ in range(60)]
        + [2 * sector_size + source.randrange(512) for _ in range(30)]
        + [2 * sector_size + source.randrange(entries) for _ in range(30)]
        + [last - entries + source.randrange(512) for _ in range(30)]
        + [last - entries + source.randrange(entries) for _ in range(20)]
    )


@pytest.mark.root
@pytest.mark.parametrize("sector_size", [512, 4096])
def test_gpt(tmp_path, sector_size):
    disk = gpt(tmp_path / "disk", sector_size)
    checked = check(disk)
    assert checked.status == CLEAN and not checked.findings
    table = checked.row("disk")
    assert (table.kind, table.remarks) == ("GPT", "")
    assert set(table.verified) == {"primary header", "primary entries", "backup header", "backup entries"}
    assert [row.place for row in checked.rows] == ["disk", "partition 1", "partition 2", "partition 4"]
    # Every structure on its own.
    last = 64 * MIB - sector_size
    for place, structure in [
        (sector_size + 56, "primary header"),
        (2 * sector_size + 40, "primary entries"),
        (last + 56, "backup header"),
        (last - 128 * 128 + 40, "backup entries"),
    ]:
        with flipped(disk, place, 3):
            checked = check(disk)
            assert (checked.status, checked.structures()) == (DAMAGED, {structure})
            assert len(checked.rows) == 4


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("sector_size", [512, 4096])
def test_flips_of_a_gpt(tmp_path, sector_size):
    disk = gpt(tmp_path / "disk", sector_size)
    source = random.Random(sector_size)
    missed, more = [], []
    for place in gpt_places(source, sector_size):
        bit = source.randrange(8)
        with flipped(disk, place, bit):
            with filesystems.attached(disk, "-r", "-b", str(sector_size)) as device:
                objects = sgdisk_objects(device)
            status = check(disk).status
        if objects and status == CLEAN:
            missed.append((place, bit))
        if not objects and status != CLEAN:
            more.append((place, bit))
    print(f"{len(more)} that sgdisk accepts: {more}")
    assert not missed


@pytest.mark.root
def test_disks_that_sgdisk_accepts(tmp_path):
    """Tables that other programs and conversions make."""
    disk = blank(tmp_path / "disk", 64 * MIB)
    images.run("sfdisk", "-q", str(disk), input=b"label: dos\n,8M,83\n,32M,8e\n", stdin=None)
    assert [row.kind for row in check(disk).rows] == ["MBR", "unknown", "unknown"]
    assert check(disk).status == CLEAN
    images.run("sgdisk", "-g", str(disk))
    assert check(disk).status == CLEAN and check(disk).row("disk").kind == "GPT"
    # Hybrid: the protective entry does not cover the disk.
    images.run("sgdisk", "-h", "1", str(disk))
    assert check(disk).status == CLEAN and check(disk).row("disk").kind == "GPT"
    # Grown: the backup is not at the end.
    disk = gpt(tmp_path / "grown")
    os.truncate(disk, 96 * MIB)
    checked = check(disk)
    assert checked.status == CLEAN and "made larger" in checked.row("disk").remarks
    with flipped(disk, 512 + 60, 0):
        checked = check(disk)
        assert checked.structures() == {"primary header"} and len(checked.rows) == 4
    images.run("sgdisk", "-e", str(disk))
    checked = check(disk)
    assert checked.status == CLEAN and not checked.row("disk").remarks
    # Cut off: the backup and a part of a partition are missing.
    os.truncate(disk, 40 * MIB)
    assert check(disk).status == DAMAGED
    # Back to an MBR.
    disk = gpt(tmp_path / "back")
    images.run("sgdisk", "-m", "1:2:4", str(disk))
    assert check(disk).row("disk").kind == "MBR" and check(disk).status == CLEAN
    # What is left of a GPT after another use.
    disk = gpt(tmp_path / "left")
    write(disk, 0, bytes(512))
    checked = check(disk)
    assert checked.structures() == {"protective MBR"} and len(checked.rows) == 4
    images.run("mkswap", str(disk))
    assert [row.kind for row in check(disk).rows] == ["swap"]


def cryptsetup_objects(path):
    """Returns whether cryptsetup repairs a header or refuses the disk. It works on a copy."""
    copy = path.with_name("copy")
    shutil.copyfile(path, copy)
    before = copy.read_bytes()
    result = images.attempt("cryptsetup", "luksDump", str(copy))
    return result.returncode != 0 or copy.read_bytes() != before


@pytest.mark.parametrize("options", mostly_slow(["", "--luks2-metadata-size 64k", "--luks2-metadata-size 4m"], [""]))
def test_luks2(tmp_path, options):
    options = options.split()
    disk = luks(tmp_path / "disk", "--label", "name", *options)
    checked = check(disk)
    assert checked.status == CLEAN
    (row,) = checked.rows
    sizes = {"64k": 64 << 10, "4m": 4 * MIB}
    size = sizes.get(options[-1] if options else None, 16 << 10)
    assert (row.kind, row.unprotected) == ("LUKS2", 32 * MIB - 2 * size)
    assert row.verified == {"primary header": (1, size), "secondary header": (1, size)}
    for place, structure in [(0, "primary header"), (100, "primary header"), (size + 7, "secondary header")]:
        with flipped(disk, place, 1):
            checked = check(disk)
            assert (checked.status, checked.structures()) == (DAMAGED, {structure}), place
            assert cryptsetup_objects(disk)


def test_luks1(tmp_path):
    disk = luks(tmp_path / "disk", "--type", "luks1")
    (row,) = check(disk).rows
    assert (row.kind, row.verdict, row.verified, row.unprotected) == ("LUKS1", "Clean", {}, 32 * MIB)


@pytest.mark.slow
def test_flips_of_luks2(tmp_path):
    disk = luks(tmp_path / "disk", size=17 * MIB)
    source = random.Random(2)
    text = disk.read_bytes()[4096:16384].index(0)
    places = [base + source.randrange(512) for base in (0, 16384) for _ in range(50)]
    places += [base + 4096 + source.randrange(text) for base in (0, 16384) for _ in range(15)]
    places += [source.randrange(32768) for _ in range(30)]
    missed, more = [], []
    for place in places:
        bit = source.randrange(8)
        with flipped(disk, place, bit):
            objects, status = cryptsetup_objects(disk), check(disk).status
        if objects and status == CLEAN:
            missed.append((place, bit))
        if not objects and status != CLEAN:
            more.append((place, bit))
    print(f"{len(more)} that cryptsetup accepts: {more}")
    assert not missed


def content(name, size):
    return random.Random(name).randbytes(size)


@pytest.mark.root
def test_lvm(tmp_path):
    disk = tmp_path / "disk"
    with physical_volume(disk) as (lvm, device):
        lvm.create("a", "-l", "2", "vg")
        lvm.create("b", "-l", "1", "vg")
        lvm("lvextend", "-q", "-l", "+2", "vg/a")
        # The segments of the last one are in another order than on the disk.
        lvm.create("c", "-l", "2", "vg", f"{device}:9-10")
        lvm("lvextend", "-q", "-l", "+1", "vg/c", f"{device}:6-6")
    checked = check(disk)
    assert [row.place for row in checked.rows] == ["disk", "LV a", "LV b", "LV c"]
    assert checked.status == CLEAN
    assert checked.row("disk").kind == "LVM2"
    assert set(checked.row("disk").verified) == {"label", "metadata area header", "metadata text"}


@pytest.mark.root
def test_btrfs_in_a_volume_in_a_partition(tmp_path):
    """The segments of the volume are in another order than on the disk."""
    path = tmp_path / "volume"
    with physical_volume(path, size=320 * MIB) as (lvm, device):
        lvm.create("root", "-l", "10", "vg", f"{device}:50-59")
        lvm("lvextend", "-q", "-l", "+40", "vg/root", f"{device}:5-44")
    files = tmp_path / "files"
    files.mkdir()
    for index in range(20):
        (files / f"{index:03}").write_bytes(content(index, MIB))
    file_system = tmp_path / "btrfs"
    filesystems.of_folder(file_system, files, size=200 * MIB)
    inner = file_system.read_bytes()
    write(path, MIB + 50 * 4 * MIB, inner[: 40 * MIB])
    write(path, MIB + 5 * 4 * MIB, inner[40 * MIB :])
    disk = blank(tmp_path / "disk", 400 * MIB)
    images.run("sgdisk", "-n", "1:0:+16M", "-n", "3:0:+320M", "-t", "3:8e00", str(disk))
    start = 17 * MIB
    write(disk, start, path.read_bytes())
    checked = check(disk)
    assert [row.place for row in checked.rows] == ["disk", "partition 1", "partition 3", "partition 3: LV root"]
    row = checked.row("partition 3: LV root")
    assert (checked.status, row.kind, row.unprotected) == (CLEAN, "btrfs", 0)
    assert row.verified["data"] == (20 * MIB // 4096, 20 * MIB)
    # A byte of a file is found on the disk, with its name.
    place = disk.read_bytes().index(content(7, MIB)[:4096])
    with flipped(disk, place, 5):
        checked = check(disk)
        (finding,) = checked.findings
        assert (checked.status, finding[3:5]) == (DAMAGED, ["mismatch", "data"])
        assert int(finding[7]) == place and finding[9] == "007"
    line = images.run(str(blksum_path().with_name("blkhash")), "owners", "--json", "-f", "raw", str(disk), str(place))
    owner = json.loads(line)
    assert ([it["name"] for it in owner["names"]], owner["partition"], owner["file_offset"]) == (["007"], 3, 0)


def test_btrfs_on_two_partitions(tmp_path):
    parts = [tmp_path / "one", tmp_path / "two"]
    if filesystems.obstacle():
        pytest.skip("several devices need loop devices")
    filesystems.make(parts, "-d", "raid1", "-m", "raid1", size=128 * MIB)
    disk = blank(tmp_path / "disk", 300 * MIB)
    images.run("sgdisk", "-n", "1:0:+128M", "-n", "2:0:+128M", str(disk))
    for number, part in enumerate(parts):
        write(disk, MIB + number * 128 * MIB, part.read_bytes())
    checked = check(disk)
    assert [row.kind for row in checked.rows] == ["GPT", "btrfs", "btrfs"] and checked.status == CLEAN
    assert checked.row("partition 2").remarks.endswith("partition 1")
    with flipped(disk, 129 * MIB + (64 << 10) + 100, 1):
        checked = check(disk)
        assert checked.status == DAMAGED and checked.structures() == {"superblock"}
    # One of the devices alone.
    assert check(parts[0]).status == INCOMPLETE


SNAPSHOT = """
        snapshot0 {{
            id = "aaaaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaaaa"
            status = ["READ", "WRITE"]
            segment_count = 1
            segment1 {{ start_extent = 0 extent_count = 2 type = "snapshot" chunk_size = 8 origin = "{}" cow_store = "{}" }}
        }}
"""


@pytest.mark.root
def test_lvm_volumes_that_are_not_linear(tmp_path):
    paths = [tmp_path / "one", tmp_path / "two"]
    with physical_volumes(*paths) as (lvm, devices):
        lvm.create("striped", "-l", "2", "-i", "2", "vg")
        lvm.create("first", "-l", "2", "vg", devices[0])
        lvm.create("second", "-l", "2", "vg", devices[1])
        lvm.create("store", "-l", "1", "vg", devices[0])
        lvm.create("both", "-l", "20", "vg")
        text = tmp_path / "text"
        lvm("vgcfgbackup", "-q", "-f", str(text), "vg")
        content = text.read_text().replace("logical_volumes {", "logical_volumes {" + SNAPSHOT.format("first", "store"))
        text.write_text(content)
        lvm("vgcfgrestore", "-q", "-f", str(text), "vg")
        assert b"store|first" in lvm("lvs", "--noheadings", "--separator", "|", "-o", "name,origin", "vg")
    for path, here, there in [(paths[0], "first", "second"), (paths[1], "second", "first")]:
        checked = check(path)
        skipped = {finding[1].split()[-1]: finding[8] for finding in checked.findings}
        assert set(skipped) == {"striped", "store", "both", there}
        assert "snapshot" in skipped["store"] and "striped" in skipped["striped"]
        assert "partly" in skipped["both"] and "is on other" in skipped[there]
        assert checked.row(f"LV {here}").verdict == "Clean"
        assert checked.status == INCOMPLETE
    # Both on one disk.
    disk = blank(tmp_path / "disk", 160 * MIB)
    images.run("sgdisk", "-n", "1:0:+64M", "-n", "2:0:+64M", str(disk))
    write(disk, MIB, paths[0].read_bytes())
    write(disk, 65 * MIB, paths[1].read_bytes())
    checked = check(disk)
    assert {finding[1].split()[-1] for finding in checked.findings} == {"striped", "store", "both"}
    assert checked.row("partition 1: LV first").verdict == checked.row("partition 2: LV second").verdict == "Clean"


@pytest.mark.root
def test_lvm_metadata_that_wraps(tmp_path):
    """Many changes, so that the text goes around its ring buffer, with two areas."""
    disk = tmp_path / "disk"
    with physical_volume(disk, "--metadatacopies", "2", "--metadatasize", "32k") as (lvm, _):
        for index in range(24):
            lvm.create(f"v{index}", "-l", "1", "vg") if index < 8 else lvm("vgchange", "-q", "--addtag", f"t{index}", "vg")
            checked = check(disk)
            assert checked.status == CLEAN
            assert checked.row("disk").verified["metadata text"][0] == 2
            assert len(checked.rows) == 1 + min(index + 1, 8)


@pytest.mark.root
@pytest.mark.slow
def test_flips_of_lvm(tmp_path):
    disk = tmp_path / "disk"
    source = random.Random(3)
    missed, more = [], []
    with physical_volume(disk) as (lvm, device):
        lvm.create("a", "-l", "2", "vg")
        images.run("sync", device)
        header = disk.read_bytes()[4096:4608]
        start, size = int.from_bytes(header[40:48], "little"), int.from_bytes(header[48:56], "little")
        places = [512 + source.randrange(180) for _ in range(50)]
        places += [4096 + source.randrange(64) for _ in range(40)]
        places += [4096 + source.randrange(512) for _ in range(10)]
        places += [4096 + start + source.randrange(size) for _ in range(50)]
        for place in places:
            bit = source.randrange(8)
            with flipped(device, place, bit):
                images.run("blockdev", "--flushbufs", device)
                objects = lvm.objects(device)
                images.run("blockdev", "--flushbufs", device)
                status = check(device).status
            if objects and status == CLEAN:
                missed.append((place, bit))
            if not objects and status != CLEAN:
                more.append((place, bit))
        images.run("blockdev", "--flushbufs", device)
        assert check(device).status == CLEAN
    print(f"{len(more)} that LVM accepts: {more}")
    assert not missed


def verity_disk(tmp_path, uuids=True):
    """Creates a disk with a root partition and its hash tree. Returns it, and the offsets of both."""
    data, tree = tmp_path / "data", tmp_path / "tree"
    images.run("mkfs.erofs", "-T0", str(data), str(ROOT / "docs"))
    os.truncate(data, (data.stat().st_size + MIB - 1) // MIB * MIB)
    output = images.run("veritysetup", "format", str(data), str(tree)).decode()
    root = re.search(r"Root hash:\s+(\w+)", output)[1]
    disk = blank(tmp_path / "disk", 64 * MIB)
    options = ["-n", "1:2048:+16M", "-t", "1:8304", "-n", "2:40960:+8M", "-t", "2:830e"]
    if uuids:
        options += ["-u", f"1:{root[:32]}", "-u", f"2:{root[32:]}"]
        options = [re.sub(r"^(\d):(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$", r"\1:\2-\3-\4-\5-\6", it) for it in options]
    images.run("sgdisk", *options, str(disk))
    write(disk, MIB, data.read_bytes())
    write(disk, 20 * MIB, tree.read_bytes())
    return disk, MIB, 20 * MIB, data.stat().st_size, tree.stat().st_size


@pytest.mark.parametrize("uuids", [True, False])
def test_verity(tmp_path, uuids):
    disk, data, tree, data_size, tree_size = verity_disk(tmp_path, uuids)
    checked = check(disk)
    assert checked.status == CLEAN
    assert checked.row("partition 1").kind == "erofs"
    assert checked.row("partition 1").unprotected == 0
    row = checked.row("partition 2")
    assert row.kind == "dm-verity" and row.verified["data block"] == (data_size // 4096, data_size)
    assert ("UUIDs" in row.remarks) == uuids
    source = random.Random(5)
    for start, size, structure in [(data, data_size, "data block"), (tree + 4096, tree_size - 4096, None)]:
        for _ in range(8):
            with flipped(disk, start + source.randrange(size), 0):
                checked = check(disk)
                assert checked.status == DAMAGED
                assert structure in {None, *checked.structures()}


def test_other_kinds(tmp_path):
    folder = ROOT / "docs"
    disk = tmp_path / "disk"
    images.run("mksquashfs", str(folder), str(disk), "-quiet", "-no-progress", "-noappend")
    assert [(row.kind, row.verdict) for row in check(disk).rows] == [("squashfs", "Clean")]
    images.run("xorriso", "-as", "mkisofs", "-quiet", "-o", str(disk), str(folder))
    assert [(row.kind, row.verdict) for row in check(disk).rows] == [("iso9660", "Clean")]
    disk.unlink()
    images.run("mkfs.erofs", "-T0", str(disk), str(folder))
    assert check(disk).row("disk").verified["superblock"][0] == 1
    with flipped(disk, 1024 + 40, 2):
        assert check(disk).structures() == {"superblock"}
    for size in [0, 1, 511, 512, 5000]:
        assert check(blank(disk, size)).status == CLEAN
    write(disk, 0, content("x", 5000))
    assert [row.kind for row in check(disk).rows] == ["unknown"]


@pytest.mark.root
@pytest.mark.slow
def test_mutants(tmp_path):
    """Random changes of all structures, after which a check must end, in little memory."""
    seeds = [gpt(tmp_path / "gpt"), luks(tmp_path / "luks", size=17 * MIB), verity_disk(tmp_path)[0]]
    with physical_volume(tmp_path / "lvm") as (lvm, _):
        lvm.create("a", "-l", "2", "vg")
        lvm.create("b", "-l", "3", "vg")
    seeds.append(tmp_path / "lvm")
    source = random.Random(7)
    interesting = [0, 1, 0x7F, 0x80, 0xFF]
    for number in range(500):
        seed = seeds[number % len(seeds)]
        size = seed.stat().st_size
        areas = [(0, 8192), (4096, 32768), (size - 32768, 32768), (20 * MIB, 8192)]
        with open(seed, "r+b") as file:
            undo = []
            for _ in range(source.choice([1, 3, 10, 100])):
                start, length = source.choice(areas)
                place = min(start + source.randrange(length), size - 8)
                file.seek(place)
                old = file.read(8)
                undo.append((place, old))
                file.seek(place)
                file.write(bytes([source.choice([*interesting, source.randrange(256)])]) * source.choice([1, 2, 8]))
            file.flush()
            check(seed)
            for place, old in reversed(undo):
                file.seek(place)
                file.write(old)


def test_images_that_cannot_be_read(tmp_path):
    """Each has one object, and the others are checked."""
    disk = blank(tmp_path / "disk", 5000)
    names = [str(tmp_path / "missing"), str(disk), str(tmp_path)]
    program = str(blksum_path().with_name("blkhash"))
    result = images.attempt(program, "check", "--json", *names, timeout=HANG)
    assert result.returncode == INCOMPLETE
    found = list(map(json.loads, result.stdout.splitlines()))
    ends = [(it["type"], it["name"]) for it in found if it["type"] != "layer"]
    assert ends == [("error", names[0]), ("summary", names[1]), ("error", names[2])]
    errors = [it["error"] for it in found if it["type"] == "error"]
    assert result.stderr.decode() == "".join(f"blkhash: {error}\n" for error in errors)


@pytest.mark.parametrize(
    "make, kind, size",
    [
        (["mke2fs", "-q", "-t", "ext4", "-b", "1024"], "ext4", 64 * MIB),
        (["mke2fs", "-q", "-t", "ext4", "-b", "4096"], "ext4", 300 * MIB),
        (["mke2fs", "-q", "-t", "ext2", "-b", "1024", "-O", "^resize_inode"], "ext2", 64 * MIB),
        (["mke2fs", "-q", "-t", "ext3", "-b", "2048"], "ext3", 64 * MIB),
        (["mke2fs", "-q", "-t", "ext4", "-b", "1024", "-O", "bigalloc"], "ext4", 300 * MIB),
        (["mkfs.xfs", "-q", "-f"], "xfs", 320 * MIB),
        (["mkfs.xfs", "-q", "-f", "-b", "size=1024", "-m", "crc=0"], "xfs", 320 * MIB),
    ],
    ids=lambda it: " ".join(it[3:]) if isinstance(it, list) else None,
)
def test_backups_of_superblocks(tmp_path, make, kind, size):
    disk = blank(tmp_path / "disk", size)
    images.run(*make, str(disk))
    assert check(disk).status == CLEAN
    # Whatever was written over the beginning: zeros, or other data.
    for content_ in (bytes(64 << 10), content("x", 64 << 10)):
        write(disk, 0, content_)
        found = check(disk)
        (row,) = found.rows
        assert (found.status, row.kind, row.verdict) == (DAMAGED, kind, "Damaged")
        (finding,) = found.findings
        said = re.fullmatch(
            r"the primary superblock is destroyed; a backup at (\d+) is valid, in block (\d+) of (\d+) bytes", finding[8]
        )
        offset, block, block_size = map(int, said.groups())
        assert offset == block * block_size
        if kind != "xfs":
            # The tool finds nothing without it, and the file system with it.
            options = ["-o", f"superblock={block}", "-o", f"blocksize={block_size}"]
            assert images.attempt("dumpe2fs", "-h", str(disk)).returncode != 0
            # It fails in the end, where the table of the inode of the journal is gone as well.
            assert b"Filesystem UUID:" in images.attempt("dumpe2fs", "-h", *options, str(disk)).stdout
    # A backup that is not intact tells nothing, and neither does one of a file system before.
    with open(disk, "rb") as file:
        file.seek(offset)
        backup = file.read(1024)
    if kind == "ext4" or make[-1] == "-f":
        with flipped(disk, offset + 0x68, 1):
            assert all(str(offset) not in finding[8] for finding in check(disk).findings)
    write(disk, 0, bytes(MIB))
    images.run("mkfs.vfat", "-F", "16", str(disk))
    with open(disk, "rb") as file:
        file.seek(offset)
        assert file.read(1024) == backup or kind == "ext4"
    assert check(disk).row("disk").kind == "fat16" and check(disk).status == CLEAN
