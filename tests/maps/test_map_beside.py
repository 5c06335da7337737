"""Maps along with checksums: `blksum --map`, and what `blksum --check` says where a map is next to an image."""

import contextlib
import json
import os
import random
import shutil
import subprocess

import pytest

import blkmap as reference
import images
import servers
from commands import blksum_path
from maps import BLOCK, MIB, blkmap, random_content, show

OPTIONS = [
    [],
    ["-d", "blake3"],
    ["-d", "sha256", "-d", "crc32c"],
    ["-d", "sha256:linear", "-d", "sha256"],
    ["-d", "sha512", "--block-size", "4k"],
    ["--construction", "flat"],
    ["--construction", "fs-verity"],
    ["--construction", "dm-verity", "--salt", "5eed"],
    ["-B"],
    ["--threads", "1"],
    ["-B", "--threads", "1", "-d", "md5"],
]

# Options of `map create` for the same map.
SAME = {
    "-d blake3": ["-d", "blake3"],
    "-d sha512 --block-size 4k": ["-d", "sha512", "--block-size", "4k"],
    "--construction fs-verity": ["--block-size", "4k"],
    "--construction dm-verity --salt 5eed": ["--block-size", "4k", "--salt", "5eed"],
    "-B --threads 1 -d md5": ["-d", "md5"],
}


def blksum(*args, **kwargs):
    return images.attempt(str(blksum_path()), *map(str, args), **kwargs)


def lines(*args, **kwargs):
    return images.succeeded(args, blksum(*args, **kwargs)).decode()


def failure(*args, **kwargs):
    result = blksum(*args, **kwargs)
    assert result.returncode == 1, result
    return result.stderr.decode()


@pytest.fixture
def disk(workdir):
    """disk.img with zeros, runs of zeros and an odd size, and disk.qcow2 with the same content."""
    content = random_content(random.Random(3), 300) + b"end".ljust(512, b"\1")
    images.write_sparse("disk.img", content)
    images.convert("disk.img", "disk.qcow2")
    return content


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_checksum_and_map_are_those_of_two_passes(disk, options):
    name = "disk.img" if {"-B", "linear"} & set(options) else "disk.qcow2"
    with open("disk.img", "r+b") as file:
        if "dm-verity" in options:
            file.truncate(len(disk) // 4096 * 4096)
    if "dm-verity" in options:
        images.convert("disk.img", "disk.qcow2")
    assert lines(*options, "--map", "one.blkmap", name) == lines(*options, name)
    blkmap("create", *SAME.get(" ".join(options), []), "-o", "two.blkmap", name)
    assert blkmap("diff", "one.blkmap", "two.blkmap").startswith("no differences")
    blkmap("check", "one.blkmap")
    one, two = show("one.blkmap"), show("two.blkmap")
    for key in ["content_id", "root"]:
        assert one[key] == two[key]
    for info in [one["info"], two["info"]]:
        del info["created"]
    assert one["info"] == two["info"]


def test_several_images(disk):
    os.mkdir("maps")
    shutil.copy("disk.img", "small.img")
    os.truncate("small.img", 1000)
    names = ["disk.img", "disk.qcow2", "small.img"]
    assert lines("--map", "maps", *names) == lines(*names)
    assert sorted(os.listdir("maps")) == [f"{name}.blkmap" for name in names]
    for name in names:
        assert blkmap("verify", f"maps/{name}.blkmap", name).startswith("no differences")


def test_folders_and_lists(disk):
    os.makedirs("images/deeper")
    os.mkdir("images/maps")
    os.rename("disk.img", "images/disk.img")
    os.rename("disk.qcow2", "images/deeper/disk.qcow2")
    # The maps are among the images, and are none.
    found = lines("-r", "--map", "images/maps", "images")
    assert [line.split()[1] for line in found.splitlines()] == ["images/deeper/disk.qcow2", "images/disk.img"]
    assert sorted(os.listdir("images/maps")) == ["disk.img.blkmap", "disk.qcow2.blkmap"]
    os.mkdir("maps")
    found = lines("--map", "maps", "--files0-from", "-", input=b"images/disk.img\0", stdin=None)
    assert found.endswith("  images/disk.img\n")
    blkmap("verify", "maps/disk.img.blkmap", "images/disk.img")


def test_standard_input(disk):
    with open("disk.img", "rb") as file:
        assert lines("--map", "disk.blkmap", stdin=file) == lines("disk.img").replace("disk.img", "-")
    blkmap("verify", "disk.blkmap", "disk.img")
    error = failure("--map", "pipe.blkmap", input=disk, stdin=None)
    assert error == "blksum: -: standard input is a pipe, and a map needs its size first\n"


def test_partitions(workdir):
    images.write_sparse("disk.img", b"\1" * 4 * MIB)
    table = "label: dos\n start=2048, size=2048\n"
    images.run("sfdisk", "-q", "disk.img", stdin=None, input=table.encode())
    assert lines("--map", "p1.blkmap", "--partition", 1, "disk.img")
    blkmap("verify", "--partition", 1, "p1.blkmap", "disk.img")
    assert show("p1.blkmap")["info"]["source"]["partition"] == 1


def test_maps_are_not_overwritten(disk):
    lines("--map", "disk.blkmap", "disk.img")
    with open("disk.blkmap", "rb") as file:
        before = file.read()
    found = blksum("--map", "disk.blkmap", "disk.qcow2")
    # The next night has its checksum, and the status says that something is missing.
    assert (found.returncode, found.stdout.decode()) == (1, lines("disk.qcow2"))
    error = found.stderr.decode()
    assert error == "blksum: disk.qcow2: disk.blkmap: exists: remove it, or write the map elsewhere\n"
    with open("disk.blkmap", "rb") as file:
        assert file.read() == before
    # One that is not finished is.
    os.truncate("disk.blkmap", len(before) - 4096)
    lines("--map", "disk.blkmap", "disk.img")
    blkmap("verify", "disk.blkmap", "disk.img")


def test_maps_among_the_images(disk):
    found = lines("--map", ".", "disk.img")
    again = blksum("--map", ".", "disk.img", "disk.img.blkmap")
    assert again.returncode == 1 and again.stdout.decode().startswith(found)
    assert b"note: maps (*.blkmap) are among the images" in again.stderr


def test_what_cannot_have_a_map(disk):
    os.mkdir("maps")
    os.mkdir("other")
    shutil.copy("disk.img", "other/disk.img")
    shutil.copy("disk.img", "text")
    for args, status, message in [
        (["--map", "disk.img", "disk.img"], 1, "blksum: disk.img: disk.img: is a file of the image\n"),
        (["--map", "text", "disk.img"], 1, "blksum: disk.img: text: exists, and is not a block map\n"),
        (["--map", "none/x", "disk.img"], 1, "blksum: disk.img: none/x: No such file or directory\n"),
        (["--map", "/dev/null", "disk.img"], 1, "blksum: disk.img: /dev/null: is not a regular file\n"),
        (["--map", "x", "disk.img", "text"], 2, "x is not a folder: several images need one"),
        (["--map", "x", "-d", "null", "disk.img"], 2, "--map: there are no maps of null"),
        (["--map", "x", "--check", "disk.img"], 2, "--map option is meaningless when verifying checksums"),
        (["--map", "x", "--length", "512", "disk.img"], 2, "cannot be used"),
        (["--map", "maps", "missing"], 1, "blksum: missing: No such file or directory\n"),
        (
            ["--map", "maps", "disk.img", "other/disk.img"],
            1,
            "blksum: other/disk.img: maps/disk.img.blkmap: is the map of another image\n",
        ),
    ]:
        result = blksum(*args)
        assert result.returncode == status and message in result.stderr.decode(), (args, result)
    assert os.listdir("maps") == ["disk.img.blkmap"]
    assert not os.path.exists("x")


def test_a_full_disk_leaves_no_finished_map(disk):
    """The limit on the size of files stands for a full disk."""
    command = f"trap '' XFSZ; ulimit -f 8; exec {blksum_path()} --map disk.blkmap disk.img"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert result.returncode == 1 and result.stdout == "", result
    assert result.stderr == "blksum: disk.img: disk.blkmap: File too large\n"
    assert blksum("-c", "disk.blkmap").returncode == 1
    lines("--map", "disk.blkmap", "disk.img")


# What a failed check says


def test_servers(disk):
    with contextlib.closing(servers.Servers()) as started:
        uri = started.qemu_nbd("disk.qcow2", fmt="qcow2", shared=4).uri()
        assert lines("--map", "disk.blkmap", uri)
        os.mkdir("maps")
        error = failure("--map", "maps", uri)
    blkmap("verify", "disk.blkmap", "disk.img")
    assert error.endswith(": maps: give the name of the map: the image has no file name\n")


@pytest.fixture
def listed(disk):
    """SUMS with disk.qcow2, which has a map next to it and was damaged in block 1 and at the end."""
    lines("--map", "disk.qcow2.blkmap", "disk.qcow2")
    with open("SUMS", "w") as file:
        file.write(lines("--tag", "disk.qcow2"))
    assert failure_of_check() == ""
    content = bytearray(disk)
    content[BLOCK] ^= 1
    content[-1] ^= 1
    images.write_sparse("damaged.img", content)
    images.convert("damaged.img", "disk.qcow2")
    return content


def failure_of_check(*args):
    return "".join(
        line
        for line in blksum("-c", *args, "SUMS").stderr.decode().splitlines(keepends=True)
        if not line.startswith(("blksum: WARNING", "blksum: lines without a tag"))
    )


def test_a_failure_says_where(listed):
    end = len(listed)
    assert failure_of_check() == (
        f"blksum: disk.qcow2: differs from disk.qcow2.blkmap in 2 blocks of 64 KiB between 65536 and {end}: "
        "blkhash map verify disk.qcow2.blkmap disk.qcow2 shows where\n"
    )
    # That is what the command finds.
    found = images.attempt(
        str(blksum_path().with_name("blkhash")), "map", "verify", "--extents", "disk.qcow2.blkmap", "disk.qcow2"
    )
    last = end // BLOCK * BLOCK
    assert found.stdout.decode() == f"65536 65536\n{last} {end - last}\n"
    assert failure_of_check("--quiet") == failure_of_check()
    assert failure_of_check("--json") == failure_of_check()
    assert failure_of_check("--status") == ""


def test_a_failure_says_that_the_size_differs(listed):
    images.write_sparse("longer.img", listed + bytes(3 * BLOCK))
    images.convert("longer.img", "disk.qcow2")
    size = len(listed)
    assert f"and in its size, {size + 3 * BLOCK} instead of {size}: " in failure_of_check()
    images.write_sparse("shorter.img", listed[: 2 * BLOCK])
    images.convert("shorter.img", "disk.qcow2")
    expected = f"in 1 block of 64 KiB between 65536 and 131072 and in its size, 131072 instead of {size}: "
    assert expected in failure_of_check()


def test_only_a_map_of_the_content_is_used(listed):
    os.rename("disk.qcow2.blkmap", "right.blkmap")
    assert failure_of_check() == ""
    # It has the content that the image has now.
    lines("--map", "disk.qcow2.blkmap", "disk.qcow2")
    assert failure_of_check() == "blksum: disk.qcow2: disk.qcow2.blkmap: is of other content than the checksum: make a new map together with the next checksum\n"
    with open("disk.qcow2.blkmap", "r+b") as file:
        file.truncate(5000)
    assert failure_of_check().startswith("blksum: disk.qcow2: disk.qcow2.blkmap: ")
    # A map of a snapshot or of a partition says nothing about the image.
    os.remove("disk.qcow2.blkmap")
    images.qemu_img("snapshot", "-c", "before", "disk.qcow2")
    lines("--snapshot", "before", "--map", "disk.qcow2.blkmap", "disk.qcow2")
    assert failure_of_check() == ""


def test_a_map_with_other_blocks_is_used(listed):
    os.remove("disk.qcow2.blkmap")
    images.write_sparse("before.img", bytes(listed[:BLOCK]) + bytes([listed[BLOCK] ^ 1]) + bytes(listed[BLOCK + 1 :]))
    images.convert("before.img", "right.qcow2")
    lines("--block-size", "4k", "-d", "crc32c", "--map", "disk.qcow2.blkmap", "right.qcow2")
    expected = "in 1 block of 4 KiB between 65536 and 69632: blkhash map verify"
    assert expected in failure_of_check()


def test_shards_and_hostile_maps(listed):
    os.remove("disk.qcow2.blkmap")
    blkmap("create", "--shard", "2/2", "-o", "disk.qcow2.blkmap", "damaged.img")
    assert "up to 128 blocks that the map does not know" in failure_of_check()
    os.remove("disk.qcow2.blkmap")
    # What is no file, and a link, is none: it may lead to the map of another.
    os.mkfifo("disk.qcow2.blkmap")
    assert failure_of_check() == ""
    os.remove("disk.qcow2.blkmap")
    lines("--map", "other.blkmap", "disk.qcow2")
    os.symlink("other.blkmap", "disk.qcow2.blkmap")
    assert failure_of_check() == ""
    os.remove("disk.qcow2.blkmap")
    with open("disk.qcow2.blkmap", "wb") as file:
        file.write(b"no map")
    assert failure_of_check() == "blksum: disk.qcow2: disk.qcow2.blkmap: is not a block map\n"
    # A claim of very many zeros costs no time.
    size = 1 << 48
    content = reference.write([size], "sha256", 65536, file_id=bytes(16), info="{}")
    with open("disk.qcow2.blkmap", "wb") as file:
        file.write(content)
    assert f"in its size, {len(listed)} instead of {size}: " in failure_of_check()


def test_a_map_that_others_may_write_is_not_used(listed):
    """Its author would learn how many blocks match a guess."""
    assert "differs from disk.qcow2.blkmap in 2 blocks" in failure_of_check()
    for bits in (0o666, 0o602, 0o620):
        os.chmod("disk.qcow2.blkmap", bits)
        assert failure_of_check() == (
            "blksum: disk.qcow2: disk.qcow2.blkmap: is not used: users who may not write the image may write it, "
            "or it is another user's\n"
        )
    # The group may write both.
    os.chmod("disk.qcow2", 0o660)
    assert "differs from disk.qcow2.blkmap in 2 blocks" in failure_of_check()
    # A link next to a map of one's own leads to the image of another.
    os.rename("disk.qcow2", "private.qcow2")
    os.symlink("private.qcow2", "disk.qcow2")
    assert failure_of_check() == ""


def test_json_goes_on(listed):
    result = blksum("--json", "-c", "SUMS")
    assert json.loads(result.stdout)["status"] == "failed"
