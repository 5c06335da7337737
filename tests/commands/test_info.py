"""blkhash info: the formats, sizes, snapshots and partitions are as in qemu-img and sfdisk."""

import datetime
import json
import os
import struct

import pytest

import images
from commands import HANG, blksum_path

MIB = 1 << 20

GPT = """label: gpt
start=2048, size=4096, type=linux, name="root \u00fc\u4e2d"
start=8192, size=2048, type=uefi
start=16384, size=2048, type=5808C8AA-7E8F-42E0-85D2-E1E90434CFB3
"""
MBR = """label: dos
start=2048, size=4096, type=83
start=8192, size=16384, type=5
start=32768, size=2048, type=ef
start=10240, size=2048, type=82
start=14336, size=2048, type=8e
"""

# Types of extended partitions, which are lists and have no content.
EXTENDED = {"5", "f", "85"}


def attempt(*args):
    program = str(blksum_path().with_name("blkhash"))
    return images.attempt(program, "info", *args, timeout=HANG)


def info(*args):
    """The objects of all images."""
    output = images.succeeded(args, attempt("--json", *args))
    return [json.loads(line) for line in output.splitlines()]


def disk(path, table):
    with open(path, "wb") as file:
        file.truncate(16 * MIB + (8 * MIB if "dos" in table else 0))
    images.run("sfdisk", "-q", path, stdin=None, input=table.encode())


def of_sfdisk(path):
    table = json.loads(images.run("sfdisk", "-J", path))["partitiontable"]
    for part in table["partitions"]:
        yield {
            "number": int(part["node"].removeprefix(path)),
            "offset": part["start"] * 512,
            "length": part["size"] * 512,
            "type": part["type"].lower(),
            "uuid": part["uuid"].lower() if table["label"] == "gpt" else None,
            "label": part.get("name", ""),
        }


@pytest.mark.parametrize("table, label", [(GPT, "gpt"), (MBR, "mbr")])
@pytest.mark.parametrize("fmt", ["raw", "qcow2"])
def test_partitions_are_those_of_sfdisk(workdir, table, label, fmt):
    disk("disk.raw", table)
    images.run("qemu-img", "convert", "-O", fmt, "disk.raw", f"image.{fmt}")
    [found] = info(f"image.{fmt}")
    assert (found["partition_table"], found["partition_problem"]) == (label, None)
    names = [part.pop("type_name") for part in found["partitions"]]
    expected = [part for part in of_sfdisk("disk.raw") if part["type"] not in EXTENDED]
    assert found["partitions"] == sorted(expected, key=lambda part: part["number"])
    assert {"EFI system"} < set(names)
    assert label == "mbr" or None in names


@pytest.mark.parametrize("bits", ["12", "16", "32"])
def test_a_fat_file_system_is_no_partition_table(workdir, bits):
    """Its boot sector ends like one, and has zeros where the entries of a table would be. Some have entries."""
    with open("fat.img", "wb") as file:
        file.truncate(64 * MIB if bits != "12" else 4 * MIB)
    images.run("mkfs.vfat", "-F", bits, "fat.img")
    assert images.attempt("blkid", "-p", "-s", "PTTYPE", "-o", "value", "fat.img").stdout == b""
    [found] = info("fat.img")
    assert (found["partition_table"], found["partitions"]) == (None, [])
    with open("fat.img", "r+b") as file:
        file.seek(446)
        file.write(struct.pack("<8xII", 2048, 2048).replace(bytes(8), b"\x80\0\0\0\x0c\0\0\0", 1))
    [found] = info("fat.img")
    assert found["partition_table"] == "mbr" and len(found["partitions"]) == 1


def test_snapshots_are_those_of_qemu_img(workdir):
    names = ["one", "with space", "\u00fc\u4e2d", "1", "\x1b[2J"]
    images.create("disk.qcow2", "10M")
    for name in names:
        images.run("qemu-img", "snapshot", "-c", name, "disk.qcow2")
        if name == "one":
            images.run("qemu-img", "resize", "disk.qcow2", "12M")
    described = json.loads(images.run("qemu-img", "info", "--output=json", "disk.qcow2"))
    [found] = info("disk.qcow2")
    assert (found["format"], found["virtual_size"]) == (described["format"], described["virtual-size"])
    assert found["chain"][0]["files"][0]["stored"] == described["actual-size"]
    for ours, theirs in zip(found["snapshots"], described["snapshots"], strict=True):
        created = datetime.datetime.strptime(ours["created"], "%Y-%m-%dT%H:%M:%SZ")
        assert created.replace(tzinfo=datetime.timezone.utc).timestamp() == theirs["date-sec"]
        assert (ours["id"], ours["name"]) == (theirs["id"], theirs["name"])
        assert ours["vm_state_size"] == theirs["vm-state-size"]
    assert [it["virtual_size"] for it in found["snapshots"]] == [10 * MIB, *[12 * MIB] * 4]
    text = attempt("disk.qcow2").stdout.decode()
    assert "\x1b" not in text and "10.00 MiB  one\n" in text


@pytest.mark.parametrize("extra", [0, 8, 16, 24])
def test_entries_of_old_snapshots(workdir, extra):
    """Their extra data ends before the virtual size, or does not exist."""
    images.create("disk.qcow2", "10M")
    images.run("qemu-img", "snapshot", "-c", "s", "disk.qcow2")
    with open("disk.qcow2", "r+b") as file:
        file.seek(64)
        [table] = struct.unpack(">Q", file.read(8))
        file.seek(table)
        head = bytearray(file.read(40))
        struct.pack_into(">I", head, 32, 5 * MIB)
        struct.pack_into(">I", head, 36, extra)
        sizes = struct.pack(">QQQ", 6 * MIB, 8 * MIB, 0)[:extra]
        file.seek(table)
        file.write(head + sizes + b"1s")
    described = json.loads(images.run("qemu-img", "info", "--output=json", "disk.qcow2"))
    [theirs] = described["snapshots"]
    [ours] = info("disk.qcow2")[0]["snapshots"]
    assert (ours["id"], ours["name"]) == (theirs["id"], theirs["name"])
    assert ours["vm_state_size"] == theirs["vm-state-size"] == (6 if extra >= 8 else 5) * MIB
    assert ours["virtual_size"] == (8 if extra >= 16 else 10) * MIB


def test_every_format_and_its_chain(workdir):
    disk("disk.raw", GPT)
    for fmt in ["qcow2", "qcow", "vmdk", "vhdx", "vdi", "qed", "vpc"]:
        images.run("qemu-img", "convert", "-O", fmt, "disk.raw", f"disk.{fmt}")
        [found] = info(f"disk.{fmt}")
        assert found["format"] == fmt and len(found["partitions"]) == 3
        assert found["snapshots"] == ([] if fmt == "qcow2" else None)
    images.create("top.qcow2", "32M", "-b", "disk.qcow2", "-F", "qcow2")
    [found] = info("top.qcow2")
    chain = [(it["format"], it["virtual_size"], it["files"][0]["name"]) for it in found["chain"]]
    assert chain == [("qcow2", 32 * MIB, "top.qcow2"), ("qcow2", 16 * MIB, "disk.qcow2")]
    refused = attempt("--untrusted", "top.qcow2")
    assert refused.returncode == 2 and b"disk.qcow2" in refused.stderr


def test_disks_of_an_appliance(workdir):
    disk("disk.raw", GPT)
    for name in ["a.vmdk", "b.vmdk"]:
        images.run("qemu-img", "convert", "-O", "vmdk", "-o", "subformat=streamOptimized", "disk.raw", name)
    files = "".join(f'<File ovf:href="{name}.vmdk" ovf:id="{name}"/>' for name in "ab")
    disks = "".join(f'<Disk ovf:diskId="{name}" ovf:fileRef="{name}"/>' for name in "ab")
    head = '<?xml version="1.0"?><Envelope xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1">'
    with open("vm.ovf", "w") as file:
        file.write(f"{head}<References>{files}</References><DiskSection>{disks}</DiskSection></Envelope>")
    images.run("tar", "--format=ustar", "-cf", "vm.ova", "vm.ovf", "a.vmdk", "b.vmdk")
    found = info("vm.ova")
    assert [it["name"] for it in found] == ["vm.ova:a.vmdk", "vm.ova:b.vmdk"]
    assert all(len(it["partitions"]) == 3 for it in found)
    assert info("vm.ova:b.vmdk") == found[1:]


def test_damaged_tables_and_missing_images(workdir):
    disk("disk.raw", GPT)
    size = os.path.getsize("disk.raw")
    with open("disk.raw", "r+b") as file:
        for header in (512, size - 512):
            file.seek(header + 16)
            file.write(b"xxxx")
    [found] = info("disk.raw")
    assert found["partitions"] == [] and "checksum of its header" in found["partition_problem"]
    assert b"checksum of its header" in attempt("disk.raw").stdout
    disk("backup.raw", GPT)
    [whole] = info("backup.raw")
    with open("backup.raw", "r+b") as file:
        file.seek(512)
        file.write(bytes(512))
    [found] = info("backup.raw")
    problem = "the primary partition table is damaged, and the backup is used: it has no GPT header"
    assert found["partition_problem"] == problem and found["partitions"] == whole["partitions"]
    assert problem.encode() in attempt("backup.raw").stdout
    result = attempt("missing.img", "disk.raw")
    assert result.returncode == 2 and b"missing.img" in result.stderr and b"disk.raw" in result.stdout


def test_many_snapshots_are_a_short_table(workdir):
    """An entry takes 50 bytes, so a small image may have very many."""
    images.create("disk.qcow2", "1M")
    images.run("qemu-img", "snapshot", "-c", "s", "disk.qcow2")
    with open("disk.qcow2", "r+b") as file:
        file.seek(64)
        [table] = struct.unpack(">Q", file.read(8))
        file.seek(table)
        entry = file.read(40)
        extra = struct.unpack(">I", entry[36:40])[0]
        entry += file.read(extra) + b"1s"
        entry += bytes(-len(entry) % 8)
        file.seek(0, os.SEEK_END)
        start = -(-file.tell() // 65536) * 65536
        file.seek(start)
        file.write(entry * 5000)
        file.seek(60)
        file.write(struct.pack(">IQ", 5000, start))
    assert len(info("disk.qcow2")[0]["snapshots"]) == 5000
    text = attempt("disk.qcow2").stdout.decode()
    assert len(text.splitlines()) < 120 and "... 4900 more: --json lists all" in text
