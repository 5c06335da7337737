"""qed images that QEMU wrote at random, overlays, and mutants: the content is QEMU's, or an error."""

import json
import os
import pathlib
import random
import struct

import guest_view
import images

KIB = 1 << 10
MIB = 1 << 20
SEED = 20241123


def test_chain(blksum, workdir):
    """A qcow2 overlay over qed over qed over raw, all of which are needed."""
    rng = random.Random(SEED + 2)
    pathlib.Path("0").write_bytes(rng.randbytes(MIB))
    for index, fmt in ((1, "qed"), (2, "qcow2"), (3, "qed"), (4, "qcow2")):
        below = {1: "raw", 2: "qed", 3: "qcow2", 4: "qed"}[index]
        create = ("create", "-q", "-f", fmt, "-b", str(index - 1), "-F", below, str(index))
        images.qemu_img(*create, MIB + index * 512)
        images.qemu_io(str(index), f"write -P {index} {index * 100}k 50k", fmt=fmt)
    guest_view.assert_same(blksum, ["4"], "qcow2", "--backing-format=qcow2")
    report = json.loads(blksum("-v", "--json", "--backing-format=qcow2", "4").stdout)
    assert [image["format"] for image in report["chain"]] == ["qcow2", "qed", "qcow2", "qed", "raw"]


def test_image_that_was_not_closed(blksum, workdir):
    """QEMU reads such an image without a check if it must not write to it."""
    images.qemu_img("create", "-q", "-f", "qed", "disk.qed", "1M")
    images.qemu_io("disk.qed", "write -P 7 0 100k", fmt="qed")
    with open("disk.qed", "r+b") as file:
        file.seek(16)
        file.write(struct.pack("<Q", 2))
    expected = guest_view.theirs("disk.qed", "qed")
    assert expected is not None
    assert guest_view.ours(blksum, ["disk.qed"]) == [(expected, None)]
    assert b"was not closed" in blksum("disk.qed").stderr


def structures(path):
    """Returns the offsets and lengths of the header and of the used parts of all tables."""
    content = pathlib.Path(path).read_bytes()
    cluster, table = struct.unpack_from("<II", content, 4)
    l1, size = struct.unpack_from("<QQ", content, 40)
    entries = cluster * table // 8
    used = -(-size // (entries * cluster))
    regions = [(0, 64), (0, 64), (l1, used * 8)]
    for l2 in struct.unpack_from(f"<{used}Q", content, l1):
        if l2:
            regions.append((l2, min(entries, -(-size // cluster)) * 8))
    return regions, cluster * table


def sample(rng, path, *args):
    """Creates an image with data, zero and unallocated clusters under two L1 entries."""
    options = "cluster_size=4k,table_size=2"
    images.qemu_img("create", "-q", "-f", "qed", "-o", options, *args, path, 6 * MIB)
    commands = guest_view.random_writes(rng, 6 * MIB, 4 * KIB, writes=20)
    more = ("write -P 1 4090k 12k", "write -P 2 20k 40k", "write -z 32k 8k", "write -P 3 5M 8k")
    images.qemu_io(path, *commands, *more, fmt="qed")


def test_cut_off_at_every_structure(blksum, workdir):
    """Nothing that the guest sees is lost without an error."""
    sample(random.Random(SEED + 3), "disk.qed")
    content = pathlib.Path("disk.qed").read_bytes()
    [(expected, _)] = guest_view.ours(blksum, ["disk.qed"])
    regions, table = structures("disk.qed")
    ends = {start + more for start, _ in regions for more in (0, 1, 8, table - 1, table, 4096)}
    ends |= {len(content) - lost for lost in (1, 511, 512, 4095, 4096, 4097)}
    paths = []
    for end in sorted(end for end in ends if end < len(content)):
        paths.append(f"{end}.cut")
        pathlib.Path(paths[-1]).write_bytes(content[:end])
    results = guest_view.ours(blksum, paths, "-f", "qed")
    assert len(paths) > 15 and {checksum for checksum, _ in results} == {None}, results
    assert guest_view.ours(blksum, ["disk.qed"]) == [(expected, None)]


def test_mutants(blksum, workdir):
    rng = random.Random(SEED + 4)
    sample(rng, "disk.qed")
    regions, _ = structures("disk.qed")
    image = pathlib.Path("disk.qed").read_bytes()
    both, _ = guest_view.check_mutants(blksum, "qed", image, regions, 50, rng)
    assert both > 0


def test_mutants_with_a_backing_file(blksum, workdir):
    rng = random.Random(SEED + 5)
    pathlib.Path("base").write_bytes(rng.randbytes(5 * MIB))
    sample(rng, "disk.qed", "-b", "base", "-F", "raw")
    regions, _ = structures("disk.qed")
    image = pathlib.Path("disk.qed").read_bytes()
    regions.append((struct.unpack_from("<I", image, 56)[0], 4))
    args = ("--backing-format=raw",)
    both, _ = guest_view.check_mutants(blksum, "qed", image, regions, 30, rng, args)
    assert both > 0


def test_sizes_that_qemu_refuses(blksum, workdir):
    """QEMU creates images with tables of one cluster, and does not open them."""
    images.qemu_img("create", "-q", "-f", "qed", "-o", "table_size=1", "disk.qed", "1M")
    assert guest_view.theirs("disk.qed", "qed") is None
    [(checksum, message)] = guest_view.ours(blksum, ["disk.qed"])
    assert checksum is None and "tables of 1 clusters" in message
    os.truncate("disk.qed", 3)
    [(checksum, message)] = guest_view.ours(blksum, ["disk.qed"], "-f", "qed")
    assert checksum is None and "is not a qed image" in message
