"""Images that cannot be read in places: comparisons continue after these, and copies repair them."""

import json
import os
import subprocess

import pytest

import images
from commands import HANG, blksum_path
from servers import FAILING

KIB = 1 << 10
BLOCK = 64 * KIB
BLOCKS = 64

# What a server cannot read until it is written.
BAD = [(5 * BLOCK, 2 * BLOCK), (20 * BLOCK + 4096, 512), (63 * BLOCK, BLOCK)]


def program(name, *args, **kwargs):
    command = [str(blksum_path().with_name(name)), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, **kwargs)


def content():
    """Data that compresses to about half, with zeros in between."""
    blocks = []
    for block in range(BLOCKS):
        half = os.urandom(BLOCK // 2)
        blocks.append(bytes(BLOCK) if block % 8 == 7 else half + bytes([block + 1]) * (BLOCK // 2))
    return b"".join(blocks)


@pytest.fixture
def disk(tmp_path):
    """The folder of a disk and its map."""
    (tmp_path / "good.raw").write_bytes(content())
    made = program("blkhash", "map", "create", "-o", "good.blkmap", "good.raw", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    return tmp_path


def compressed(folder):
    """Makes a compressed image, and destroys the clusters of blocks 3, 40 and 41. Returns its name."""
    name = folder / "damaged.qcow2"
    images.run("qemu-img", "convert", "-c", "-O", "qcow2", str(folder / "good.raw"), str(name))
    with open(name, "r+b") as file:
        header = file.read(48)
        l1 = int.from_bytes(header[40:48])
        file.seek(l1)
        l2 = int.from_bytes(file.read(8)) & ((1 << 56) - 1) & ~511
        for block in (3, 40, 41):
            file.seek(l2 + 8 * block)
            entry = int.from_bytes(file.read(8))
            assert entry >> 62 & 1, "the cluster is compressed"
            # No deflate block has this type. After its start, these could be the bytes of a stored block.
            file.seek(entry & ((1 << 54) - 1))
            file.write(b"\xff" * 4096)
    return name


def objects(result):
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    ranges = [(it["offset"] // BLOCK, it["blocks"], it["kind"]) for it in lines if it["type"] == "range"]
    summaries = [it for it in lines if it["type"] == "summary"]
    assert len(summaries) == 1, result
    return ranges, summaries[0]


def truth(image):
    """Returns which blocks qemu-io cannot read."""
    reads = [["-c", f"read {block * BLOCK} {BLOCK}"] for block in range(BLOCKS)]
    command = ["qemu-io", "-r", "-f", "qcow2", str(image)]
    bad = []
    for block, read in enumerate(reads):
        found = subprocess.run([*command, *read], capture_output=True, text=True, timeout=HANG)
        if "failed" in found.stdout + found.stderr:
            bad.append(block)
    return bad


def test_destroyed_clusters_are_listed_and_the_rest_is_compared(disk):
    damaged = compressed(disk)
    # A difference after the first place that cannot be read.
    assert images.run("qemu-io", "-c", f"write -P 9 {50 * BLOCK} 512", str(damaged))
    assert truth(damaged) == [3, 40, 41]
    found = program("blkhash", "map", "verify", "--json", "good.blkmap", "damaged.qcow2", cwd=disk)
    assert found.returncode == 1
    ranges, summary = objects(found)
    assert ranges == [(3, 1, "unreadable"), (40, 2, "unreadable"), (50, 1, "changed")]
    assert (summary["different"], summary["unreadable"], summary["zeros"]) == (4, 3, 8)
    assert summary["same_content"] is False
    assert [it["offset"] for it in summary["reasons"]] == [3 * BLOCK]
    assert "damaged.qcow2: cannot be read at 196608: " in found.stderr
    text = program("blkhash", "map", "verify", "--picture", "good.blkmap", "damaged.qcow2", cwd=disk)
    assert text.returncode == 1
    assert "4 of 64 blocks differ or cannot be read, 256.00 KiB, in 3 ranges; 3 unreadable, 52 equal" in text.stdout
    assert "X cannot be read" in text.stdout
    assert [line.split() for line in text.stdout.splitlines()[-3:]] == [
        [str(first * BLOCK), str(count * BLOCK), kind] for first, count, kind in ranges
    ]
    for left, right in [("good.blkmap", "damaged.qcow2"), ("damaged.qcow2", "good.blkmap"), ("good.raw", "damaged.qcow2")]:
        extents = program("blkhash", "map", "diff", "--extents", left, right, cwd=disk)
        assert extents.returncode == 1, (left, right)
        listed = [line.split() for line in extents.stdout.splitlines()]
        expected = [(3, 1), (40, 2), (50, 1)]
        assert listed == [[str(first * BLOCK), str(count * BLOCK)] for first, count in expected]
    # Without another difference, nothing says that the content is another one, and the status is not 0.
    other = compressed(disk)
    found = program("blkhash", "map", "diff", "--json", "good.raw", other, cwd=disk)
    ranges, summary = objects(found)
    assert (found.returncode, summary["same_content"]) == (1, None)
    assert ranges == [(3, 1, "unreadable"), (40, 2, "unreadable")]
    assert summary["reasons"][0]["name"] == str(other)
    # A checksum needs all of the content.
    assert program("blksum", other).returncode == 1


@pytest.mark.parametrize("format", ["vmdk", "qcow2"])
def test_what_lies_behind_the_end_of_a_file_is_unreadable(disk, format):
    name = disk / f"cut.{format}"
    images.run("qemu-img", "convert", "-O", format, str(disk / "good.raw"), str(name))
    size = name.stat().st_size
    os.truncate(name, size // 2)
    found = program("blkhash", "map", "verify", "--json", "good.blkmap", name, cwd=disk)
    assert found.returncode == 1, found
    ranges, summary = objects(found)
    assert {kind for _, _, kind in ranges} == {"unreadable"}
    assert summary["unreadable"] + summary["equal"] + summary["zeros"] == BLOCKS
    # The file holds its clusters in the order of the disk, so the first half is intact.
    assert summary["unreadable"] in range(20, 36)
    assert min(first for first, _, _ in ranges) in range(20, 40)


@pytest.fixture
def bad_export(disk, servers):
    """An export with bad sectors, and the file that lists them."""
    (disk / "copy.raw").write_bytes((disk / "good.raw").read_bytes())
    bad = disk / "bad"
    bad.write_text("".join(f"{first} {length}\n" for first, length in BAD))
    script = disk / "server.sh"
    script.write_text(f"#!/bin/sh\ndisk={disk}/copy.raw\nbad={bad}\n" + FAILING)
    script.chmod(0o755)
    return servers.writable_nbdkit("sh", str(script)).uri(), bad


def test_bad_sectors_of_a_server(disk, bad_export):
    uri, _ = bad_export
    found = program("blkhash", "map", "verify", "--json", "good.blkmap", uri, cwd=disk)
    ranges, summary = objects(found)
    # Block 63 is zeros in the map.
    assert ranges == [(5, 2, "unreadable"), (20, 1, "unreadable"), (63, 1, "unreadable")]
    assert found.returncode == 1 and summary["same_content"] is None
    assert "Input/output error" in found.stderr
    # Nothing tells whether these blocks changed.
    (disk / "none").write_text("0 65536\n")
    audit = program("blkhash", "map", "audit", "--changes", "none", "good.blkmap", uri, cwd=disk)
    assert (audit.returncode, "4 not known" in audit.stdout) == (2, True), audit


def test_an_update_writes_what_cannot_be_read(disk, bad_export):
    uri, bad = bad_export
    with open(disk / "copy.raw", "r+b") as file:
        os.pwrite(file.fileno(), b"other", 30 * BLOCK)
    copied = program("blkcopy", "-v", "--update", "good.raw", uri, cwd=disk)
    assert copied.returncode == 0, copied.stderr
    assert bad.read_text() == ""
    assert (disk / "copy.raw").read_bytes() == (disk / "good.raw").read_bytes()
    # Three blocks of data and a page, and a block of zeros: the rest was left as it was.
    assert "196.00 KiB written, 64.00 KiB of zeros" in copied.stderr or "260.00 KiB written" in copied.stderr
    verified = program("blkhash", "map", "verify", "good.blkmap", uri, cwd=disk)
    assert verified.returncode == 0, verified


def test_a_lost_server_ends_the_comparison(disk, servers):
    script = disk / "server.sh"
    script.write_text(
        f"#!/bin/sh\ncase $1 in get_size) stat -c %s {disk}/good.raw ;;\n"
        "pread) echo ESHUTDOWN >&2; exit 1 ;;\nthread_model) echo serialize_all_requests ;;\n*) exit 2 ;; esac\n"
    )
    script.chmod(0o755)
    uri = servers.nbdkit("sh", str(script)).uri()
    found = program("blkhash", "map", "verify", "--json", "good.blkmap", uri, cwd=disk)
    assert found.returncode == 2 and found.stdout == "", found


def test_data_of_a_tree_that_cannot_be_read(disk):
    images.run(*map(str, [blksum_path().with_name("blkhash"), "verity", "format", "--data-block-size", "4096",
                          "--root-hash-file", disk / "root", disk / "good.raw", disk / "tree"]))
    damaged = compressed(disk)
    found = program("blkhash", "verity", "verify", "--json", "--root-hash-file", "root", damaged, "tree", cwd=disk)
    assert found.returncode == 1, found
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    errors = [(it["problem"], it["block"], it["blocks"]) for it in lines if it["type"] == "error"]
    assert errors == [("unreadable", 3 * 16, 16), ("unreadable", 40 * 16, 32)]
    assert (lines[-1]["unreadable_blocks"], lines[-1]["bad_data_blocks"]) == (48, 0)
    assert lines[-1]["reasons"][0]["offset"] == 3 * BLOCK
    text = program("blkhash", "verity", "verify", "--root-hash-file", "root", damaged, "tree", cwd=disk)
    assert "48 cannot be read" in text.stdout and "cannot be read at 196608" in text.stderr
