"""blkhash btrfs verify: one changed byte anywhere, compared with the verdicts of the kernel and btrfs
check."""

import contextlib
import fcntl
import os
import random
import struct

import pytest

import filesystems
import images
from btrfs import verify
from filesystems import SUPERBLOCKS
from servers import Servers

pytestmark = [pytest.mark.root, pytest.mark.slow]

# Number of changes for each file system. Set more and another seed for a long run.
CHANGES = int(os.environ.get("BTRFS_CHANGES", "40"))
SEED = int(os.environ.get("BTRFS_SEED", "20260101"))

SECTOR = 4096
CHECKSUM_SIZES = {"crc32c": 4, "xxhash": 8, "sha256": 32, "blake2": 32}


class Owners:
    """Files of each block, according to the kernel (FIEMAP)."""

    FIEMAP = 0xC020660B
    LAST, ENCODED, INLINE = 0x1, 0x8, 0x200

    def __init__(self, root):
        self.plain = []
        self.compressed = {}
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                for logical, length, flags in self.extents(path):
                    relative = os.path.relpath(path, root)
                    if flags & self.ENCODED:
                        self.compressed.setdefault(logical, set()).add(relative)
                    elif not flags & self.INLINE:
                        self.plain.append((logical, logical + length, relative))

    def extents(self, path):
        count = 1000
        buffer = bytearray(struct.pack("=QQLLLL", 0, 2**64 - 1, 0, 0, count, 0) + bytes(56 * count))
        with open(path, "rb") as file:
            fcntl.ioctl(file, self.FIEMAP, buffer)
        mapped = struct.unpack_from("=L", buffer, 20)[0]
        assert mapped < count, path
        for index in range(mapped):
            extent = struct.unpack_from("=QQQQQL", buffer, 32 + 56 * index)
            yield extent[1], extent[2], extent[5]

    def of(self, logical, extent):
        plain = {path for first, end, path in self.plain if first <= logical < end}
        return plain | self.compressed.get(extent, set())


@pytest.fixture(scope="module", params=["crc32c", "xxhash", "sha256", "blake2", "mixed", "dup"])
def damaged(request, tmp_path_factory):
    """A file system to be damaged, with its layout and owners."""
    path = tmp_path_factory.mktemp("damaged") / "fs"
    checksum = request.param if request.param in CHECKSUM_SIZES else "crc32c"
    options = {"mixed": ["--mixed", "--nodesize", "4k"], "dup": ["-d", "dup"]}
    filesystems.filled(path, "--csum", checksum, *options.get(request.param, []))
    with filesystems.mounted([path], "ro") as root:
        owners = Owners(root)
    return path, filesystems.Layout(path), owners, CHECKSUM_SIZES[checksum], request.param


def summed(path):
    """Returns the ranges of data with checksums."""
    ranges = []
    for line in filesystems.dump(path, "csum").splitlines():
        words = line.split()
        if words[:2] == ["range", "start"]:
            ranges.append((int(words[2]), int(words[4])))
    assert ranges
    return ranges


def test_one_byte(damaged):
    path, layout, owners, checksum_size, name = damaged
    source = random.Random(f"{SEED} {name}")
    covered = summed(path)
    assert verify(path)[:2] == (0, [])
    seen = set()
    for _ in range(CHANGES):
        kind = source.choices(["data", "tree", "super", "unused"], [50, 30, 8, 8])[0]
        seen.add(kind)
        if kind == "data":
            start, length = source.choice(layout.data)
            logical = start + source.randrange(length)
            judge_data(path, layout, owners, covered, source, start, logical)
        elif kind == "tree":
            start, length = source.choice(layout.blocks)
            offset = source.randrange(length)
            if source.random() < 0.3:
                # Headers are small, and most of their bytes matter.
                offset = source.randrange(101)
            judge_tree(path, layout, source, start, offset, checksum_size)
        elif kind == "super":
            judge_superblock(path, source, checksum_size)
        else:
            with filesystems.changed(path, layout.unused(source)):
                assert verify(path)[:2] == (0, [])
                assert filesystems.errors(filesystems.scrub([path])) == {}
    assert verify(path)[:2] == (0, [])
    assert CHANGES < 40 or len(seen) == 4


def judge_data(path, layout, owners, covered, source, extent, logical):
    sector = logical // SECTOR * SECTOR
    places = layout.places(logical)
    mirror = source.randrange(len(places))
    with filesystems.changed(path, places[mirror]):
        status, errors, _ = verify(path)
        counters = filesystems.errors(filesystems.scrub([path]))
        if not any(first <= sector < end for first, end in covered):
            assert (status, errors, counters) == (0, [], {})
            return
        assert counters == {"csum_errors": 1}
        assert status == 1 and len(errors) == 1, errors
        error = errors[0]
        assert (error["subject"], error["category"]) == ("data", "data_checksum")
        assert (error["logical"], error["length"]) == (sector, SECTOR)
        assert (error["mirror"], error["mirrors"]) == (mirror + 1, len(places))
        assert error["physical"] == layout.places(sector)[mirror]
        others = [number + 1 for number in range(len(places)) if number != mirror]
        assert error["good_mirrors"] == others
        paths = {it["name"] for owner in error["owners"] for it in owner["paths"]}
        assert error["owners_complete"]
        assert paths == owners.of(sector, extent), (error, extent)
        # btrfs check stops at the first good mirror.
        status, bad = filesystems.check(path)
        if mirror == 0:
            assert (sector, 1) in bad and status != 0


def judge_tree(path, layout, source, logical, offset, checksum_size):
    places = layout.places(logical)
    mirror = source.randrange(len(places))
    with filesystems.changed(path, places[mirror] + offset):
        status, errors, failure = verify(path)
        if checksum_size <= offset < 32:
            # The field is longer than the checksum.
            assert (status, errors) == (0, [])
            assert filesystems.errors(filesystems.scrub([path])) == {}
            return
        if len(places) == 1:
            # The kernel cannot mount it, and sometimes blkhash cannot read it.
            assert status in (1, 2), errors
            assert status == 2 or logical in [error["logical"] for error in errors], errors
            assert status == 1 or str(logical) in failure, failure
            assert filesystems.check(path)[0] != 0
            return
        counters = filesystems.errors(filesystems.scrub([path]))
        assert counters and set(counters) <= {"csum_errors", "verify_errors"}, counters
        assert status == 1 and len(errors) == 1, errors
        error = errors[0]
        assert (error["subject"], error["category"]) == ("tree block", "tree_checksum")
        assert (error["logical"], error["mirror"]) == (logical, mirror + 1)
        assert error["physical"] == places[mirror]
        assert error["good_mirrors"] == [2 - mirror]
        assert error["owners"] and all("tree" in owner for owner in error["owners"])


def judge_superblock(path, source, checksum_size):
    number = source.randrange(2)
    offset = source.randrange(4096)
    with filesystems.changed(path, SUPERBLOCKS[number] + offset):
        status, errors, _ = verify(path)
        if checksum_size <= offset < 32:
            assert (status, errors) == (0, [])
            return
        assert status == 1 and len(errors) == 1, errors
        assert (errors[0]["subject"], errors[0]["copy"]) == ("superblock", number)
        assert errors[0]["physical"] == SUPERBLOCKS[number]
        if number == 0:
            # The kernel does not mount a file system without its first superblock.
            command = ["btrfs", "inspect-internal", "dump-super", "-f", str(path)]
            output = images.attempt(*command)
            text = (output.stdout + output.stderr).decode()
            assert "DON'T MATCH" in text or "bad magic" in text or output.returncode, text
        else:
            assert filesystems.errors(filesystems.scrub([path])) == {"super_errors": 1}


def test_inside_images(workdir):
    """The result is the same in a partition of a disk, in a qcow2 image, compressed or not, and from a
    server."""
    plain = filesystems.filled(workdir / "fs", size=128 << 20)
    layout = filesystems.Layout(plain)
    offset = 1 << 20
    disk = workdir / "disk.raw"
    source = random.Random(SEED)
    for label in ["gpt", "dos"]:
        with open(disk, "wb") as file:
            file.truncate(plain.stat().st_size + 3 * offset)
        script = f"label: {label}\nstart=2048, size={plain.stat().st_size // 512}\n"
        images.run("sfdisk", "-q", str(disk), stdin=None, input=script.encode())
        content = plain.read_bytes()
        with open(disk, "r+b") as file:
            for position in range(0, len(content), 1 << 20):
                if any(content[position : position + (1 << 20)]):
                    file.seek(offset + position)
                    file.write(content[position : position + (1 << 20)])
        for options in [(), ("-c",), ("-c", "-o", "compression_type=zstd")]:
            qcow2 = workdir / "disk.qcow2"
            start, length = source.choice(layout.data)
            changes = [layout.places(start)[0], layout.places(source.choice(layout.blocks)[0])[1] + 99]
            expected = verdicts(plain, changes)
            assert len(expected) == 2 or (start, length) not in layout.data
            assert verdicts(disk, [offset + change for change in changes]) == expected
            with filesystems.changed(disk, offset + changes[0]):
                with filesystems.changed(disk, offset + changes[1]):
                    images.convert(disk, qcow2, flags=options)
            assert verdicts(qcow2, []) == expected
            assert verdicts(qcow2, [], "--partition", "1") == expected
            assert verdicts(qcow2, [], "--offset", "1M") == expected
            with contextlib.closing(Servers()) as servers:
                assert verdicts(servers.qemu_nbd(qcow2, fmt="qcow2").uri(), []) == expected
        assert verify(disk, "--partition", "2")[0] == 2


def verdicts(path, changes, *options):
    """Returns the findings after the changes, without fields that depend on the image."""
    with contextlib.ExitStack() as stack:
        for change in changes:
            stack.enter_context(filesystems.changed(path, change))
        _, errors, _ = verify(path, *options)
    for error in errors:
        del error["name"], error["device_name"]
    return sorted(errors, key=str)
