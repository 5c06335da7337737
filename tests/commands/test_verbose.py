"""What --verbose says of images, compared with what qemu-img and the file system say."""

import json
import os
import subprocess

import pytest

import images
import imagespec


@pytest.fixture
def chain(workdir):
    imagespec.write("1024k:A 1024k:- 1024k:B", "base.raw")
    images.qemu_img("create", "-q", "-f", "qcow2", "-b", "base.raw", "-F", "raw", "mid.qcow2")
    images.qemu_img("create", "-q", "-f", "qcow2", "-b", "mid.qcow2", "-F", "qcow2", "top.qcow2", "8M")
    return workdir


READ = {"page-cache", "resident-page-cache", "direct"}


def described(result):
    return [line for line in result.stderr.decode().splitlines() if "sandbox:" not in line]


def test_json_has_the_chain_as_qemu_img_shows_it(blksum, chain):
    info = subprocess.run(
        ["qemu-img", "info", "--backing-chain", "--output=json", "top.qcow2"],
        check=True,
        capture_output=True,
    )
    expected = [
        {
            "format": image["format"],
            "virtual_size": image["virtual-size"],
            "name": image["filename"],
            "stored": image["actual-size"],
            "size": os.stat(image["filename"]).st_size,
        }
        for image in json.loads(info.stdout)
    ]
    result = blksum("--json", "-v", "--threads", "3", "top.qcow2")
    report = json.loads(result.stdout)
    found = [
        {"format": image["format"], "virtual_size": image["virtual_size"]} | file
        for image in report["chain"]
        for file in image["files"]
    ]
    for file in found:
        assert file.pop("read") in READ
        file["name"] = os.path.basename(file["name"])
    assert found == expected
    assert report["threads"] == 3 and "connections" not in report
    assert report["implementations"][0].startswith("sha256-")
    assert {image["reader"] for image in report["chain"]} == {"built-in"}
    report = json.loads(blksum("--json", "-v", "--reader=qemu", "top.qcow2").stdout)
    assert {image["reader"] for image in report["chain"]} == {"qemu-nbd"}
    # Without -v the object has its usual fields alone.
    plain = json.loads(blksum("--json", "top.qcow2").stdout)
    assert set(report) - set(plain) == {"chain", "threads", "implementations", "measured"}
    assert plain["checksum"] == report["checksum"]


def test_lines(blksum, chain):
    result = blksum("-v", "--implementation", "sha256-soft", "--threads", "1", "top.qcow2")
    assert result.stdout == blksum("top.qcow2").stdout
    lines = described(result)
    assert len(lines) == 4
    assert lines[0].startswith(
        "blksum: top.qcow2: qcow2, virtual size 8.00 MiB (8388608 bytes); file of "
    )
    assert "backing file: qcow2, virtual size 3.00 MiB (3145728 bytes); mid.qcow2: " in lines[1]
    assert "backing file: raw, virtual size 3.00 MiB (3145728 bytes); base.raw: " in lines[2]
    assert lines[3] == "blksum: top.qcow2: hashing: sha256-soft; 1 thread"


def test_nothing_need_be_read(blksum, chain):
    """The way to look at an image alone."""
    result = blksum("-v", "--length", "0", "--json", "top.qcow2")
    report = json.loads(result.stdout)
    assert report["chain"][0]["virtual_size"] == 8 << 20 and report["bytes_read"] < 1 << 18


def test_extents_and_data_files(blksum, workdir):
    images.qemu_img("create", "-q", "-f", "vmdk", "-o", "subformat=twoGbMaxExtentFlat", "d.vmdk", "3G")
    images.qemu_img("create", "-q", "-f", "qcow2", "-o", "data_file=data.raw", "d.qcow2", "1M")
    for name, files in (
        ("d.vmdk", ["d.vmdk", "d-f001.vmdk", "d-f002.vmdk"]),
        ("d.qcow2", ["d.qcow2", "data.raw"]),
    ):
        report = json.loads(blksum("--json", "-v", name).stdout)
        [image] = report["chain"]
        assert [os.path.basename(file["name"]) for file in image["files"]] == files


def test_every_image_is_described_also_when_there_are_many(blksum, chain):
    names = ["base.raw"] * 5
    assert len(described(blksum("-v", *names))) == 10


def test_names_cannot_command_a_terminal(blksum, workdir):
    base = "b\x1b[2J\n.raw"
    imagespec.write("64k:A", base)
    images.qemu_img("create", "-q", "-f", "qcow2", "-b", f"./{base}", "-F", "raw", "top")
    result = blksum("-v", "top")
    assert result.returncode == 0 and b"\x1b" not in result.stderr
    assert len(described(result)) == 3


def test_a_large_image_measures_the_implementations(blksum, workdir):
    with open("large.img", "wb") as file:
        file.write(b"A" * (96 << 20))
    with open("small.img", "wb") as file:
        file.write(b"A" * (32 << 20))

    def measured(*arguments):
        result = blksum("--json", "-v", "--threads", "2", "-d", "xxh64", *arguments)
        report = json.loads(result.stdout)
        lines = [line for line in described(result) if ": measured: " in line]
        assert len(lines) == (1 if report["measured"] else 0)
        return report["checksum"], report["measured"]

    checksum, found = measured("large.img")
    if found:
        assert len(found) > 1
        assert len({it["implementation"] for it in found}) == len(found)
        assert [it["used"] for it in found].count(True) == 1
        for it in found:
            assert it["implementation"].startswith("xxh64-")
            assert (it["blocks"], it["block_size"]) == (16, 65536)
            assert it["nanoseconds_per_byte"] > 0
    # A demanded implementation is not compared with others, and a small image has no time for that.
    assert measured("--implementation=xxh64-soft", "large.img") == (checksum, [])
    assert measured("small.img")[1] == []


def test_random_implementations_compute_the_same(blksum, chain):
    expected = blksum("top.qcow2").stdout
    environment = os.environ | {"BLKHASH_IMPLEMENTATION": "random"}
    result = blksum("-v", "--threads=1", "top.qcow2", env=environment)
    assert result.stdout == expected
    assert described(result)[3] == f"blksum: top.qcow2: hashing: sha256-random; 1 thread"
