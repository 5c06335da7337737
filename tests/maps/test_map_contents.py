"""Partitions and files of btrfs that `blkhash map verify` and `blkhash map diff` name, compared with where the content is."""

import json
import os
import random
import shutil

import pytest

import filesystems
import images
from commands import HANG, blksum_path

KIB = 1 << 10
MIB = 1 << 20
BLOCK = 64 * KIB

# Offset of the partition with the file system.
START = 2 * MIB


def attempt(*args):
    program = str(blksum_path().with_name("blkhash"))
    return images.attempt(program, *map(str, args), timeout=HANG)


def different(*args):
    """Runs a command of `blkhash map` whose result is that there are differences. Returns its output."""
    result = attempt("map", *args)
    assert result.returncode == 1 and result.stderr == b"", (args, result)
    return result.stdout.decode()


def ranges(*args):
    """Returns the ranges with a difference, and the summary."""
    *found, summary = map(json.loads, different(*args, "--json").splitlines())
    assert all(it["type"] == "range" for it in found) and summary["type"] == "summary"
    return found, summary


def names(found):
    return [name["name"] for name in found["files"]]


@pytest.fixture
def disk(workdir):
    """A disk with a file system in its first partition, its map, and the places of the files on the disk."""
    rng = random.Random(1)
    os.makedirs("root/var/log")
    contents = {f"var/log/{name}": rng.randbytes(200_000) for name in ("one", "two", "three")}
    for name, content in contents.items():
        with open(f"root/{name}", "wb") as file:
            file.write(content)
    filesystems.of_folder("fs", "root", "-m", "single")
    with open("disk.img", "wb") as file:
        file.truncate(START + 130 * MIB)
    table = f"label: gpt\nstart={START // 512}, size={128 * MIB // 512}\n"
    images.run("sfdisk", "-q", "disk.img", stdin=None, input=table.encode())
    with open("fs", "rb") as source, open("disk.img", "r+b") as target:
        image = source.read()
        target.seek(START)
        target.write(image)
    images.run(str(blksum_path().with_name("blkhash")), "map", "create", "-o", "disk.blkmap", "disk.img")
    shutil.copy("disk.img", "copy.img")
    return {name: START + image.index(content[:4096]) for name, content in contents.items()}


def test_files_are_named(disk):
    for name, place in disk.items():
        with filesystems.changed("copy.img", place):
            text = different("verify", "disk.blkmap", "copy.img")
            row = text.splitlines()[-1]
            block = place // BLOCK * BLOCK
            assert row.split()[:5] == [str(block), str(BLOCK), "changed", "partition", "1:"] and name in row, text
            for args in [
                ("verify", "disk.blkmap", "copy.img"),
                ("diff", "disk.blkmap", "copy.img"),
                ("diff", "copy.img", "disk.blkmap"),
                ("diff", "disk.img", "copy.img"),
                ("diff", "--block-size", "4k", "disk.img", "copy.img"),
            ]:
                (found,), _ = ranges(*args)
                assert name in names(found) and found["partition"] == 1, args
                assert found["partition_offset"] == max(found["offset"] - START, 0), args
                assert found["files_complete"] and not found["metadata"], args
                if "4k" in args:
                    assert names(found) == [name] and found["offset"] == place
                    assert f"partition 1: {name}\n" in different(*args)


def test_names_of_a_partition(disk):
    name, place = next(iter(disk.items()))
    with filesystems.changed("copy.img", place):
        (found,), _ = ranges("diff", "--block-size", "4k", "--partition", 1, "disk.img", "copy.img")
        assert (found["offset"], found["partition"], names(found)) == (place - START, None, [name])
        assert found["partition_offset"] is None
        (found,), _ = ranges("verify", "--partition", 1, "disk.blkmap", "copy.img")
        assert name in names(found)


def test_metadata_is_named(disk):
    layout = filesystems.Layout("fs")
    for logical, _ in layout.blocks[:3]:
        with filesystems.changed("copy.img", START + layout.places(logical)[0] + 200):
            # The block may be the one without which nothing is found.
            assert len(ranges("verify", "disk.blkmap", "copy.img")[0]) == 1
            (found,), _ = ranges("diff", "copy.img", "disk.img")
            assert found["metadata"] and found["files_complete"]
            assert "partition 1: tree block of btrfs\n" in different("diff", "copy.img", "disk.img")


def test_maps_alone_name_nothing(disk):
    with filesystems.changed("copy.img", next(iter(disk.values()))):
        images.run(str(blksum_path().with_name("blkhash")), "map", "create", "-o", "copy.blkmap", "copy.img")
    (found,), _ = ranges("diff", "disk.blkmap", "copy.blkmap")
    assert found["files"] == [] and not found["metadata"] and not found["files_complete"]
    assert found["partition"] == 1
    assert different("diff", "disk.blkmap", "copy.blkmap").endswith(" partition 1\n")


def test_the_other_image_names_files_if_one_has_no_file_system(disk):
    """The superblock, or the table of partitions, is lost on either side."""
    name, place = next(iter(disk.items()))
    with filesystems.changed("copy.img", place):
        for lost in (START + filesystems.SUPERBLOCKS[0], 512):
            with open("copy.img", "r+b") as file:
                file.seek(lost)
                before = file.read(4096)
                file.seek(lost)
                file.write(bytes(4096))
                file.flush()
                for pair in [("disk.img", "copy.img"), ("copy.img", "disk.img")]:
                    found, _ = ranges("diff", "--block-size", "4k", *pair)
                    assert [name] in map(names, found), (lost, pair)
                # The image alone has nothing to tell.
                assert ranges("verify", "disk.blkmap", "copy.img")
                file.seek(lost)
                file.write(before)
                file.flush()


def test_a_lost_file_system_changes_no_verdict(disk):
    """Any damage of what is read for the names leaves ranges, summary and status as they are."""
    layout = filesystems.Layout("fs")
    rng = random.Random(2)
    places = [START + at for at in filesystems.SUPERBLOCKS[:2]]
    places += [START + layout.places(logical)[0] for logical, _ in layout.blocks]
    for _ in range(30):
        shutil.copy("disk.img", "copy.img")
        damaged = {next(iter(disk.values())) // BLOCK}
        with open("copy.img", "r+b") as file:
            file.seek(next(iter(disk.values())))
            file.write(rng.randbytes(4096))
            for place in rng.sample(places, rng.randrange(1, 4)):
                at = place + rng.randrange(4000)
                file.seek(at)
                file.write(rng.randbytes(4))
                damaged.add(at // BLOCK)
        found, summary = ranges("verify", "disk.blkmap", "copy.img")
        assert summary["different"] == len(damaged)
        blocks = {it["offset"] // BLOCK + number for it in found for number in range(it["blocks"])}
        assert blocks == damaged
        extents = different("verify", "--extents", "disk.blkmap", "copy.img").splitlines()
        starts = [map(int, extent.split()) for extent in extents]
        assert {at // BLOCK for start, length in starts for at in range(start, start + length, BLOCK)} == damaged


def test_many_ranges_take_bounded_time(disk):
    """Every second block of 4 KiB differs, and only some are looked up."""
    shutil.copy("disk.img", "copy.img")
    with open("copy.img", "r+b") as file:
        for offset in range(0, os.path.getsize("copy.img"), 8192):
            file.seek(offset + 4095)
            file.write(b"x")
    found, summary = ranges("diff", "--block-size", "4k", "copy.img", "disk.img")
    assert len(found) == summary["ranges"] > 16_000
    text = different("diff", "--block-size", "4k", "copy.img", "disk.img")
    assert text.endswith("more: --max-errors 0 prints all\n")


def test_files_of_another_file_system_are_not_known(workdir):
    with open("ext4", "wb") as file:
        file.truncate(8 * MIB)
    images.run("mkfs.ext4", "-q", "-F", "ext4")
    images.run(str(blksum_path().with_name("blkhash")), "map", "create", "-o", "ext4.blkmap", "ext4")
    with filesystems.changed("ext4", 1100):
        (found,), _ = ranges("verify", "ext4.blkmap", "ext4")
    assert (found["files"], found["files_complete"]) == ([], False)


def owners(*args):
    """Returns the extents that `blkhash owners` prints."""
    result = attempt("owners", "--json", *args)
    assert result.returncode == 0, result
    return list(map(json.loads, result.stdout.splitlines()))


@pytest.mark.parametrize("label", ["gpt", "dos"])
def test_partition_tables_are_named(workdir, label):
    """Where sfdisk puts them. The bytes between them and the partition have no owner."""
    size = 8 * MIB
    with open("disk.img", "wb") as file:
        file.truncate(size)
    table = f"label: {label}\nstart=2048, size=8192\n"
    images.run("sfdisk", "-q", "disk.img", stdin=None, input=table.encode())
    images.run("mkfs.vfat", "--offset", "2048", "disk.img", "4096")
    found = [it for it in owners("disk.img") if it["partition"] is None]
    assert all(it["file_system"] is None and it["names"] == [] for it in found)
    places = [(it["offset"], it["offset"] + it["length"], it["kind"], it["structure"]) for it in found]
    behind = 2048 * 512 + 4 * MIB
    if label == "gpt":
        name = "GPT partition table"
        assert [it for it in places if it[2] != "unknown"] == [
            # MBR, header and entries, which are 128 of 128 bytes, and the same from the end on.
            (0, 512, "metadata", name),
            (512, 1024, "metadata", name),
            (1024, 1024 + 16384, "metadata", name),
            (size - 512 - 16384, size - 512, "metadata", name),
            (size - 512, size, "metadata", name),
        ]
        gaps = [(1024 + 16384, MIB), (behind, size - 512 - 16384)]
    else:
        assert [it for it in places if it[2] != "unknown"] == [(0, 512, "metadata", "MBR partition table")]
        gaps = [(512, MIB), (behind, size)]
    assert [it[:2] for it in places if it[2] == "unknown"] == gaps
    shutil.copy("disk.img", "copy.img")
    with filesystems.changed("copy.img", 444):
        (found,), summary = ranges("diff", "--block-size", "512", "disk.img", "copy.img")
    assert found["metadata"] and summary["in_metadata"] == 1


def test_offsets_of_owners(disk):
    name, place = next(iter(disk.items()))
    forms = [place, hex(place), f"{place // 512}s", f"{place // 1024}K", f"{place}-{hex(place + 1)}"]
    assert place % 1024 == 0
    for form in forms:
        (found,) = owners("disk.img", form)
        assert (found["offset"], found["length"], found["names"]) == (place, 1, [{"name": name}]), form
    size = os.path.getsize("disk.img")
    assert owners("disk.img", size - 1)[0]["kind"] == "metadata"
    for form in (size, f"{size}-", hex(size), "99999999s"):
        result = attempt("owners", "disk.img", 0, form)
        assert (result.returncode, result.stdout) == (2, b""), form
        assert f"has {size} bytes, and no byte ".encode() in result.stderr
    for form in ("0x", "s", "1ks", "0xg", "-1s", "1+", "1+0"):
        result = attempt("owners", "disk.img", "--", form)
        assert result.returncode == 2 and b" for RANGE: use OFFSET, FROM-TO or FROM+LENGTH" in result.stderr, result
    assert owners("disk.img", "1k+1k") == owners("disk.img", "1k-2k")


def test_update_names_what_it_replaces(disk):
    """blkcopy --update -v, and --json, as `map diff` with blocks of 4 KiB."""
    blkcopy = str(blksum_path().with_name("blkcopy"))
    program = str(blksum_path().with_name("blkhash"))
    free = next(
        it["offset"] for it in owners("disk.img") if it["kind"] == "free" and it["length"] >= MIB and it["offset"] % 4096 == 0
    )
    names_of = list(disk)[:2]
    with open("copy.img", "r+b") as file:
        for place in (disk[names_of[0]], disk[names_of[1]] + 4096, free, free + 8192, MIB):
            file.seek(place)
            file.write(b"changed")
    _, summary = ranges("diff", "--block-size", "4k", "copy.img", "disk.img")
    counts = {key: summary[key] for key in ("in_files", "in_metadata", "in_journal", "in_free_space", "elsewhere")}
    assert counts == {"in_files": 2, "in_metadata": 0, "in_journal": 0, "in_free_space": 2, "elsewhere": 1}
    shutil.copy("copy.img", "again.img")
    shutil.copy("copy.img", "quiet.img")
    result = images.attempt(blkcopy, "--update", "-v", "disk.img", "copy.img", timeout=HANG)
    assert result.returncode == 0
    _, text = result.stderr.decode().splitlines()
    start = "blkcopy: copy.img: 5 blocks of 4 KiB were replaced: in the source, 2 in files, 1 elsewhere, 2 in free space, with parts of "
    assert text == start + ", ".join(sorted(names_of, key=disk.get))
    found = json.loads(images.run(blkcopy, "--update", "--json", "disk.img", "again.img"))
    assert {key: found[key] for key in counts} == counts and found["owners_complete"]
    kinds = [(it["kind"], [name["name"] for name in it["names"]]) for it in found["owners"]]
    assert sorted(kinds) == sorted([("file", [name]) for name in names_of] + [("free", [])])
    images.run(program, "map", "diff", "-q", "disk.img", "again.img")
    # Nothing is replaced, all is written, or nothing is asked.
    equal = json.loads(images.run(blkcopy, "--update", "--json", "disk.img", "again.img"))
    new = json.loads(images.run(blkcopy, "--json", "disk.img", "new.img"))
    for found in (equal, new):
        assert {found[key] for key in counts} == {None} and found["owners"] is None
    result = images.attempt(blkcopy, "--update", "disk.img", "quiet.img", timeout=HANG)
    assert result.returncode == 0 and result.stderr == b""
