"""Block maps that were made up, and commands that could destroy what is there: wrong answers with status 0, data loss,
and time without bound."""

import hashlib
import json
import os
import pathlib
import random

import pytest

import blkmap as reference
import filesystems
import images
from commands import blksum_path
from maps import BLOCK, MIB, attempt, blkmap, random_content

KEY = b"k" * 32


@pytest.fixture
def disk(workdir):
    """disk.img with 512 blocks in 4 pages, and its map."""
    content = random.Random(4).randbytes(512 * 512)
    pathlib.Path("disk.img").write_bytes(content)
    pathlib.Path("key").write_bytes(KEY)
    blkmap("create", "--block-size", 512, "disk.img")
    return content


@pytest.fixture
def interrupted(workdir):
    """disk.img with 20 MiB, and an unfinished map of it with checkpoints. A full disk stands for the interruption."""
    content = random.Random(5).randbytes(20 * MIB)
    pathlib.Path("disk.img").write_bytes(content)
    pathlib.Path("key").write_bytes(KEY)
    interrupt("disk.img.blkmap", "disk.img")
    return content


def interrupt(name, image):
    command = f"map create --block-size 512 --checkpoint 0.001 -o {name} {image}"
    program = str(blksum_path().with_name("blkhash"))
    images.attempt("bash", "-c", f"trap '' XFSZ; ulimit -f 256; exec \"$0\" {command}", program)
    assert b"\x89BLKEND" in pathlib.Path(name).read_bytes()


def status(*args):
    return attempt(*args).returncode


def resealed(record):
    """A commit with the SHA-256 that it should have."""
    return record[:4064] + hashlib.sha256(record[:4064]).digest()


# Wrong answers


def test_a_part_that_is_not_there_is_a_difference(disk):
    """128 KiB of the image of 256 KiB are left."""
    pathlib.Path("cut.img").write_bytes(disk[: 128 << 10])
    found = {}
    for shard in range(1, 5):
        result = attempt("verify", "--extents", "--shard", f"{shard}/4", "disk.img.blkmap", "cut.img")
        found[shard] = result.returncode
        text = attempt("verify", "--shard", f"{shard}/4", "disk.img.blkmap", "cut.img").stdout.decode()
        if shard > 2:
            assert "128 of 128 blocks differ" in text and f"{(shard - 1) << 16}  65536  only in left" in text
    assert found == {1: 0, 2: 0, 3: 1, 4: 1}
    for where, expected in [("0-64K", 0), ("64K-", 1), ("200K-201K", 1)]:
        assert status("verify", "-q", "--range", where, "disk.img.blkmap", "cut.img") == expected
    pathlib.Path("empty.img").touch()
    assert status("verify", "-q", "--shard", "1/2", "disk.img.blkmap", "empty.img") == 1
    result = attempt("verify", "--range", "256K-300K", "disk.img.blkmap", "disk.img")
    assert (result.returncode, b"--range: the image of the map ends at 262144" in result.stderr) == (2, True)
    # More parts than pages: some have nothing to compare.
    assert {status("verify", "-q", "--shard", f"{it}/9", "disk.img.blkmap", "disk.img") for it in range(1, 10)} == {0}
    # What an image has past the end of the map is in the last part.
    pathlib.Path("long.img").write_bytes(disk + b"x")
    parts = [status("verify", "-q", "--shard", f"{it}/4", "disk.img.blkmap", "long.img") for it in range(1, 5)]
    assert parts == [0, 0, 0, 1]


def test_a_guest_cannot_make_its_disk_a_map(disk):
    """A raw disk with the bytes of the map of another."""
    pathlib.Path("evil.img").write_bytes(pathlib.Path("disk.img.blkmap").read_bytes())
    for sides in [("disk.img.blkmap", "evil.img"), ("evil.img", "disk.img"), ("evil.img", "disk.img.blkmap")]:
        result = attempt("diff", *sides)
        assert (result.returncode, b"begins like a block map" in result.stderr) == (2, True)
        assert status("diff", "-f", "raw", *sides) == 1
    # A damaged map is none of an image.
    with open("disk.img.blkmap", "r+b") as file:
        file.write(b"x")
    result = attempt("diff", "disk.img.blkmap", "disk.img")
    assert (result.returncode, b"is not a block map" in result.stderr) == (2, True)


def test_a_claimed_root_is_not_believed(disk):
    other = bytearray(disk)
    other[70_000] ^= 1
    pathlib.Path("other.img").write_bytes(other)
    blkmap("create", "--block-size", 512, "other.img")
    one, two = (pathlib.Path(f"{name}.blkmap").read_bytes() for name in ["disk.img", "other.img"])
    at = len(two) - 4096
    root = json.loads(blkmap("show", "--json", "disk.img.blkmap"))["root"]
    old = json.loads(blkmap("show", "--json", "other.img.blkmap"))["root"]
    claimed = two[at:].replace(bytes.fromhex(old), bytes.fromhex(root))
    ids = [blkmap("show", "--id", f"{name}.blkmap").strip() for name in ["other.img", "disk.img"]]
    claimed = claimed.replace(*map(bytes.fromhex, ids))
    pathlib.Path("forged.blkmap").write_bytes(two[:at] + resealed(claimed))
    assert one != two
    for command in [
        ["diff", "disk.img.blkmap", "forged.blkmap"],
        ["diff", "forged.blkmap", "disk.img.blkmap"],
        ["show", "--id", "forged.blkmap"],
        ["verify", "forged.blkmap", "disk.img"],
    ]:
        assert status(*command) == 2, command
    assert status("check", "forged.blkmap") == 1


def test_a_wrong_padded_block_is_found(workdir):
    pathlib.Path("raw").write_bytes(b"x" * 70_000)
    blkmap("create", "raw")
    whole = pathlib.Path("raw.blkmap").read_bytes()
    at = len(whole) - 4096
    commit = bytearray(whole[at:])
    commit[368] ^= 1
    pathlib.Path("raw.blkmap").write_bytes(whole[:at] + resealed(bytes(commit)))
    assert status("verify", "-q", "raw.blkmap", "raw") == 1


def test_blocks_with_the_digest_of_zeros(workdir):
    """A CRC is linear: 33 single bits have a combination with the CRC of zeros."""

    def crc(block):
        pathlib.Path("block").write_bytes(block)
        text = images.run(str(blksum_path()), "-B", "-d", "crc32c", "block").decode()
        return int(text.split()[0], 16)

    zeros = crc(bytes(512))
    basis, found = {}, None
    for bit in range(33):
        block = 1 << bit
        value = crc(block.to_bytes(512, "little")) ^ zeros
        for top, (other, combination) in sorted(basis.items(), reverse=True):
            if value >> top & 1:
                value ^= other
                block ^= combination
        if value == 0:
            found = block
            break
        basis[value.bit_length() - 1] = (value, block)
    block = found.to_bytes(512, "little")
    assert crc(block) == zeros and any(block)
    pathlib.Path("raw").write_bytes(block * 2)
    blkmap("create", "-d", "crc32c", "--block-size", 512, "raw")
    blkmap("check", "raw.blkmap")
    reference.read(pathlib.Path("raw.blkmap").read_bytes())


# Seals


def test_what_somebody_made_is_not_sealed(interrupted):
    """Any user who may write to the folder can put an unfinished map there."""
    before = pathlib.Path("disk.img.blkmap").read_bytes()
    result = attempt("create", "--block-size", 512, "--resume", "--key-file", "key", "disk.img")
    assert (result.returncode, b"is not sealed with this key" in result.stderr) == (3, True), result
    assert pathlib.Path("disk.img.blkmap").read_bytes() == before


@pytest.mark.parametrize("option", ["--resume", "--if-changed"])
def test_a_map_without_the_seal_is_not_the_one_to_make(disk, option):
    make = ["create", "--block-size", 512, option, "--key-file", "key", "disk.img"]
    result = attempt(*make)
    assert result.returncode in (2, 3) and b"is not sealed with this key" in result.stderr
    blkmap(*make, "--force")
    assert "seal OK" in blkmap("check", "--key-file", "key", "disk.img.blkmap")
    blkmap(*make)


def test_older_seals_are_checked(disk):
    blkmap("seal", "--key-file", "key", "disk.img.blkmap")
    sealed = pathlib.Path("disk.img.blkmap").read_bytes()
    commit = bytearray(sealed[-4096:])
    commit[480] ^= 1
    pathlib.Path("disk.img.blkmap").write_bytes(sealed[:-4096] + resealed(bytes(commit)))
    assert status("check", "--key-file", "key", "disk.img.blkmap") == 1
    blkmap("seal", "--key-file", "key", "disk.img.blkmap")
    assert status("check", "--key-file", "key", "disk.img.blkmap") == 1


def test_a_map_survives_a_seal_on_a_full_disk(disk):
    before = pathlib.Path("disk.img.blkmap").read_bytes()
    limit = f"trap '' XFSZ; ulimit -f {len(before) // 1024 + 4}; exec \"$0\" map seal --key-file key disk.img.blkmap"
    result = images.attempt("bash", "-c", limit, str(blksum_path().with_name("blkhash")))
    assert (result.returncode, b"File too large" in result.stderr) == (2, True)
    assert pathlib.Path("disk.img.blkmap").read_bytes() == before


# Interrupted maps


def test_a_damaged_page_is_not_continued(interrupted):
    blkmap("create", "--block-size", 512, "-o", "whole.blkmap", "disk.img")
    before = pathlib.Path("disk.img.blkmap").read_bytes()
    damaged = bytearray(before)
    damaged[4100] ^= 1
    pathlib.Path("disk.img.blkmap").write_bytes(damaged)
    resume = ["create", "--block-size", 512, "--resume", "disk.img"]
    result = attempt(*resume)
    assert result.returncode == 2 and b"a page has another hash: --force makes it anew" in result.stderr, result
    pathlib.Path("disk.img.blkmap").write_bytes(before)
    blkmap(*resume)
    ids = {blkmap("show", "--id", name) for name in ["whole.blkmap", "disk.img.blkmap"]}
    assert len(ids) == 1


@pytest.mark.parametrize("length", [1, 100, 4096, 20480])
@pytest.mark.parametrize("kept", [0, 60])
def test_a_torn_beginning_is_continued(disk, length, kept):
    whole = pathlib.Path("disk.img.blkmap").read_bytes()
    torn = whole[: min(kept, length)].ljust(length, b"\0")
    make = ["create", "--block-size", 512, "disk.img"]
    # There is nothing to continue, and nothing to lose.
    for options in ([], ["--resume"]):
        pathlib.Path("disk.img.blkmap").write_bytes(torn)
        blkmap(*make, *options)
        assert status("verify", "-q", "disk.img.blkmap", "disk.img") == 0


def test_files_that_are_no_maps_are_kept(disk):
    for content in [b"\x89", b"text", bytes(2 * MIB), b"\x89BLKMAP\n" + b"x" * 8000]:
        pathlib.Path("other").write_bytes(content)
        for option in ["--resume", "--force"]:
            result = status("create", "--block-size", 512, option, "-o", "other", "disk.img")
            kept = pathlib.Path("other").read_bytes() == content
            assert (result == 0) == (not kept)
            assert kept or content == b"\x89"


def test_the_search_for_a_commit_ends(disk):
    with open("disk.img.blkmap", "r+b") as file:
        file.truncate(4096)
        file.truncate(1 << 42)
    result = attempt("create", "--block-size", 512, "--resume", "disk.img")
    assert (result.returncode, b"there is no commit" in result.stderr) == (2, True), result


@pytest.mark.root
def test_a_device_is_not_known_again(workdir):
    """Nothing but its size shows that it is the same."""
    images.write_sparse("one.img", random.Random(1).randbytes(20 * MIB))
    with filesystems.attached("one.img") as device:
        result = attempt("create", device)
        assert (result.returncode, b"-o FILE says where the map of a device goes" in result.stderr) == (2, True)
        for shard in [1, 2]:
            blkmap("create", "--block-size", 512, "--shard", f"{shard}/2", "-o", "{shard}.blkmap", device)
        result = attempt("merge", "--shards", 2, "-o", "all.blkmap", "{shard}.blkmap")
        assert result.returncode == 0 and b"do not show that they are of the same image" in result.stderr
        interrupt("d.blkmap", device)
        result = attempt("create", "--block-size", 512, "--resume", "-o", "d.blkmap", device)
        assert result.returncode == 0 and b"nothing shows that this is the same image" in result.stderr


# What is there


def test_a_merge_that_fails_keeps_the_map_that_is_there(disk):
    for shard in [1, 2]:
        blkmap("create", "--block-size", 512, "--shard", f"{shard}/2", "-o", "{shard}.blkmap", "disk.img")
    blkmap("merge", "-o", "all.blkmap", "1-of-2.blkmap", "2-of-2.blkmap")
    whole = pathlib.Path("all.blkmap").read_bytes()
    good = pathlib.Path("1-of-2.blkmap").read_bytes()
    bad = bytearray(good)
    bad[4200] ^= 1
    pathlib.Path("1-of-2.blkmap").write_bytes(bad)
    merge = ["merge", "--force", "-o", "all.blkmap", "1-of-2.blkmap", "2-of-2.blkmap"]
    assert status(*merge) == 2
    assert pathlib.Path("all.blkmap").read_bytes() == whole
    pathlib.Path("1-of-2.blkmap").write_bytes(good)
    blkmap(*merge)
    # A state of the map itself is one of the parts.
    before = pathlib.Path("all.blkmap").read_bytes()
    result = attempt("merge", "--force", "-o", "all.blkmap", "all.blkmap@1")
    assert (result.returncode, b"is one of the parts" in result.stderr) == (2, True)
    assert pathlib.Path("all.blkmap").read_bytes() == before


def test_a_picture_replaces_no_side(disk):
    os.mkdir("folder")
    images.create("top.qcow2", "256K", "-b", "disk.img", "-F", "raw")
    os.link("disk.img", "link.img")
    kept = {name: pathlib.Path(name).read_bytes() for name in ["disk.img", "disk.img.blkmap", "top.qcow2"]}
    for command in [
        ["verify", "--picture=disk.img", "disk.img.blkmap", "disk.img"],
        ["verify", "--picture=link.img", "disk.img.blkmap", "disk.img"],
        ["verify", "--picture=disk.img.blkmap", "disk.img.blkmap", "disk.img"],
        ["verify", "--picture=disk.img", "disk.img.blkmap", "top.qcow2"],
        ["diff", "--picture=top.qcow2", "disk.img", "top.qcow2"],
        ["diff", "--picture=disk.img.blkmap", "disk.img.blkmap@1", "disk.img"],
        ["diff", "--picture=disk.img", "top.qcow2", "disk.img.blkmap"],
    ]:
        assert status(*command) == 2, command
        assert {name: pathlib.Path(name).read_bytes() for name in kept} == kept, command
    # An old picture stays if there is no new one.
    pathlib.Path("old.svg").write_text("old")
    assert status("verify", "--picture=old.svg", "missing.blkmap", "disk.img") == 2
    assert pathlib.Path("old.svg").read_text() == "old"
    assert status("verify", "--picture=old.svg", "disk.img.blkmap", "disk.img") == 0
    assert pathlib.Path("old.svg").read_text().endswith("</svg>\n")


def test_if_changed_overwrites_only_the_map_of_the_same(disk):
    images.write_sparse("other.img", bytes(MIB))
    make = ["create", "--block-size", 512, "--if-changed", "-o", "disk.img.blkmap"]
    before = pathlib.Path("disk.img.blkmap").read_bytes()
    for other in [
        [*make, "other.img"],
        [*make, "--shard", "1/2", "disk.img"],
        [*make, "-d", "blake3", "disk.img"],
        ["create", "--if-changed", "-o", "disk.img.blkmap", "disk.img"],
    ]:
        result = attempt(*other)
        assert (result.returncode, b"--force" in result.stderr) == (2, True), other
        assert pathlib.Path("disk.img.blkmap").read_bytes() == before
    os.utime("disk.img")
    blkmap(*make, "disk.img")
    assert pathlib.Path("disk.img.blkmap").read_bytes() != before
    blkmap(*make, "--force", "other.img")


# Time and memory


def huge(size, block_size):
    return reference.write([size], "sha256", block_size, file_id=os.urandom(16), info="{}")


def test_huge_maps_take_no_time(workdir):
    for name in ["a.blkmap", "b.blkmap"]:
        pathlib.Path(name).write_bytes(huge(1 << 62, 512))
    blkmap("merge", "-o", "c.blkmap", "a.blkmap", "b.blkmap")
    assert blkmap("diff", "a.blkmap", "c.blkmap").startswith("no differences")
    names = ["a.blkmap"] * 2100
    assert "blocks" in blkmap("dups", *names)


# Messages


def test_refusals_name_the_command_that_helps(workdir):
    for command, name in [(["create"], "create"), (["diff", "--nonsense"], "diff"), (["show", "--log", "--id", "x"], "show")]:
        text = attempt(*command).stderr.decode()
        assert f"Try 'blkhash map {name} --help'" in text or f"Usage: blkhash map {name}" in text, text


def test_what_cannot_be_mapped_is_refused_at_once(disk):
    for args, message in [
        (["create", "-"], "cannot create a map of standard input"),
        (["create", "--checksum=linear", "-o", "x", "disk.img"], "maps need blocks, and linear has none"),
    ]:
        result = attempt(*args)
        assert result.returncode == 2 and message in result.stderr.decode(), result
    assert not os.path.exists("x")


def test_the_end_of_a_short_copy_is_an_extent(workdir):
    """The right side is longer within the last block of the left one."""
    content = random_content(random.Random(2), 20) + b"end"
    images.write_sparse("copy", content)
    images.write_sparse("original", content + bytes(600))
    assert attempt("diff", "--extents", "copy", "original").stdout.decode() == f"{20 * BLOCK} 603\n"
    assert attempt("diff", "--extents", "--ignore-zero-tail", "copy", "original").stdout == b""
    images.write_sparse("original", content + bytes(BLOCK))
    assert attempt("diff", "--extents", "copy", "original").stdout.decode() == f"{20 * BLOCK} {BLOCK + 3}\n"


def test_blocks_that_are_not_known_are_not_silent(disk):
    blkmap("create", "--block-size", 512, "--shard", "1/2", "-o", "half.blkmap", "disk.img")
    result = attempt("diff", "--extents", "half.blkmap", "disk.img")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr == b"blkhash: 256 blocks are not known, and not listed\n"


def test_a_map_of_a_partition_says_so(workdir):
    images.write_sparse("disk.img", random.Random(1).randbytes(3 * MIB))
    images.run("sfdisk", "-q", "disk.img", stdin=None, input=b"label: dos\n start=2048, size=2048\n")
    blkmap("create", "--partition", 1, "-o", "p1.blkmap", "disk.img")
    assert "disk.img (raw), partition 1\n" in blkmap("show", "p1.blkmap")
    for command in [["verify", "p1.blkmap", "disk.img"], ["diff", "disk.img", "p1.blkmap"]]:
        result = attempt(*command)
        assert (result.returncode, result.stdout) == (2, b"")
        assert result.stderr == b"blkhash: p1.blkmap: is the map of partition 1: add --partition 1\n"
    assert attempt("verify", "--partition", 1, "p1.blkmap", "disk.img").stderr == b""


def test_equal_maps_show_their_zeros(workdir):
    images.write_sparse("raw", bytes(100 * MIB) + b"x" * MIB)
    blkmap("create", "raw")
    summary = json.loads(blkmap("diff", "--json", "raw.blkmap", "raw.blkmap").splitlines()[-1])
    assert summary["zeros"] >= 12 * 128 and summary["same_content"] is True


@pytest.fixture
def partitioned(workdir):
    """disk.img with partitions of 2 MiB at 1 MiB and of 1000 sectors at 4 MiB, and its map."""
    images.write_sparse("disk.img", random.Random(6).randbytes(6 * MIB))
    table = b"label: dos\nstart=2048, size=4096\nstart=8192, size=1000\nstart=9217, size=1024\n"
    images.run("sfdisk", "-q", "disk.img", stdin=None, input=table)
    blkmap("create", "disk.img")


def write_byte(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def test_a_partition_and_the_map_of_the_whole(partitioned):
    verify = ["verify", "--partition", 1, "disk.img.blkmap", "disk.img"]
    assert blkmap(*verify) == "no differences in 32 blocks\n"
    assert blkmap("diff", "--partition", 1, "disk.img", "disk.img.blkmap") == "no differences in 32 blocks\n"
    # What differs outside of it is not looked at, and offsets are those in the partition.
    for offset in (0, MIB - 1, 3 * MIB, 5 * MIB):
        write_byte("disk.img", offset)
    blkmap(*verify)
    write_byte("disk.img", MIB + BLOCK)
    write_byte("disk.img", 3 * MIB - 1)
    result = attempt("verify", "--extents", "--partition", 1, "disk.img.blkmap", "disk.img")
    assert (result.returncode, result.stdout.decode()) == (1, f"{BLOCK} {BLOCK}\n{2 * MIB - BLOCK} {BLOCK}\n")
    # The table of the disk says nothing about offsets in the partition.
    for command in (["verify", "disk.img.blkmap", "disk.img"], ["diff", "disk.img.blkmap", "disk.img"]):
        lines = attempt(*command, "--json", "--partition", 1).stdout.decode().splitlines()
        assert [json.loads(line)["partition"] for line in lines if '"range"' in line] == [None, None]
    blkmap("create", "--partition", 1, "-o", "p1.blkmap", "disk.img")
    result = attempt("diff", "p1.blkmap", "disk.img.blkmap")
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"is the map of partition 1, and disk.img.blkmap of the whole image" in result.stderr


def test_a_partition_that_ends_within_a_block(partitioned):
    verify = ["verify", "--partition", 2, "disk.img.blkmap", "disk.img"]
    assert blkmap(*verify) == "no differences in 8 blocks\n"
    # Nothing says whether the last block differs in the partition or after it.
    write_byte("disk.img", 4 * MIB + 1000 * 512)
    result = attempt(*verify)
    assert result.returncode == 2 and b"no differences in 7 blocks, 1 not known" in result.stdout, result
    write_byte("disk.img", 4 * MIB)
    assert status(*verify) == 1


def test_parts_that_cannot_be_compared(partitioned):
    blkmap("create", "--no-source", "-o", "anonymous.blkmap", "disk.img")
    images.run("sfdisk", "-q", "--delete", "disk.img", "1", stdin=None)
    images.run("sfdisk", "-q", "-a", "disk.img", stdin=None, input=b"start=3072, size=2048\n")
    for args, reason in [
        (["--partition", 1, "disk.img.blkmap"], "and the image has it at 1572864 with 1048576 bytes: compare without"),
        (["--partition", 3, "disk.img.blkmap"], "begins at 4719104, within a block of 65536 bytes: compare without"),
        (["--partition", 2, "anonymous.blkmap"], "has the size of the whole image, not of partition 2: compare without"),
        (["--partition", 2, "--shard", "1/2", "disk.img.blkmap"], "--shard and --range: the map is of the whole"),
    ]:
        result = attempt("verify", *args, "disk.img")
        assert (result.returncode, result.stdout) == (2, b"") and reason in result.stderr.decode(), (args, result)


@pytest.mark.parametrize(
    "option",
    ["--partition=1", "--snapshot=s", "--format=raw", "--backing-format=raw", "--vpc-size=auto", "--secret-file=key"],
)
def test_options_of_images_are_refused_for_two_maps(disk, option):
    result = attempt("diff", option, "disk.img.blkmap", "disk.img.blkmap")
    assert (result.returncode, result.stdout) == (2, b"")
    assert f"{option.split('=')[0]} says what of an image is read, and both are maps".encode() in result.stderr


@pytest.fixture
def snapshots(workdir):
    """disk.qcow2 with snapshots first and second, each of other content than the disk."""
    images.qemu_img("create", "-q", "-f", "qcow2", "disk.qcow2", MIB)
    for name in ("first", "second"):
        images.qemu_img("snapshot", "-c", name, "disk.qcow2")
        images.run("qemu-io", "-c", f"write -P {len(name)} 0 {BLOCK}", "disk.qcow2", stdin=None)


def test_a_snapshot_of_both_sides_is_no_comparison(snapshots):
    os.link("disk.qcow2", "link.qcow2")
    for other in ("disk.qcow2", "link.qcow2"):
        result = attempt("diff", "--snapshot", "first", "disk.qcow2", other)
        assert (result.returncode, result.stdout) == (2, b"")
        assert b"both are the same image with --snapshot first: make a map of the snapshot" in result.stderr
    # The advice.
    blkmap("create", "--snapshot", "first", "-o", "snapshot.blkmap", "disk.qcow2")
    assert attempt("diff", "snapshot.blkmap", "disk.qcow2").returncode == 1
    images.run("cp", "disk.qcow2", "copy.qcow2")
    assert blkmap("diff", "--snapshot", "first", "disk.qcow2", "copy.qcow2") == "no differences in 16 blocks\n"


def test_the_map_of_a_snapshot_and_another_state(snapshots):
    blkmap("create", "--snapshot", "first", "-o", "m.blkmap", "disk.qcow2")
    note = "blkhash: m.blkmap: note: is the map of snapshot 'first', and disk.qcow2 is read in {}\n"
    for command in (["verify", "m.blkmap", "disk.qcow2"], ["diff", "m.blkmap", "disk.qcow2"]):
        for options, state in [([], "its current state"), (["--snapshot", "second"], "snapshot 'second'")]:
            result = attempt(*command, *options)
            assert (result.returncode, result.stderr.decode()) == (1, note.format(state))
            assert attempt(*command, *options, "-q").stderr == b""
        # Snapshots have ids as well.
        for name in ("first", "1"):
            result = attempt(*command, "--snapshot", name)
            assert (result.returncode, result.stderr) == (0, b"")
    images.qemu_img("convert", "-l", "first", "-O", "raw", "disk.qcow2", "copy.img")
    result = attempt("verify", "m.blkmap", "copy.img")
    assert (result.returncode, result.stderr) == (0, b"")


def test_snapshots_and_partitions_share_a_default_name(snapshots, partitioned):
    blkmap("create", "disk.qcow2")
    for options, image in [(["--snapshot", "first"], "disk.qcow2"), (["--partition", 1], "disk.img")]:
        result = attempt("create", *options, image)
        reason = f"blkhash: {image}.blkmap: exists: -o FILE names another, --force overwrites it\n"
        assert (result.returncode, result.stderr.decode()) == (2, reason)
    blkmap("create", "--force", "--snapshot", "first", "disk.qcow2")
    assert b"exists: -o FILE names another" in attempt("create", "disk.qcow2").stderr


def test_a_shard_without_blocks_has_no_verdict(disk):
    assert blkmap("verify", "--shard", "1/9", "disk.img.blkmap", "disk.img") == (
        "nothing to compare: this part has no blocks\n"
    )
