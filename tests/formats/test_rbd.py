"""Exports of Ceph RBD, compared with a plain reader, and with `rbd` and a small cluster; damage, mutants."""

import hashlib
import json
import os
import pathlib
import random

import pytest

import ceph
import images
import rbd_images
from commands import digest

SEED = 20261129
KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def cluster():
    made = ceph.Cluster()
    yield made
    made.close()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def random_export(rng):
    size = rng.choice((0, 1, 512, 5000, 100_000, MIB + 1))
    return rbd_images.export(rbd_images.random_diffs(rng, size), options=rng.random() < 0.8)


def example():
    """An image with a snapshot, data, zeros, and a size that went down and up again."""
    rng = random.Random(SEED)
    first = [("size", 300_000), ("write", 5000, rng.randbytes(100_000)), ("write", 200_000, rng.randbytes(100_000))]
    second = [("size", 250_000), ("size", 400_000), ("zero", 10_000, 4096), ("write", 90_000, rng.randbytes(50_000))]
    return rbd_images.export([first, second])


def test_every_command_reads_it(blksum, workdir):
    image = pathlib.Path("vm.rbd")
    image.write_bytes(example())
    content = rbd_images.read(example())
    assert len(content) == 400_000
    assert digest(blksum, image) == digest(blksum, image, "--format=rbd") == sha256(content)
    tools = pathlib.Path(blksum.path).parent
    images.run(tools / "blkcopy", image, "copy.img")
    assert pathlib.Path("copy.img").read_bytes() == content
    info = json.loads(images.run(tools / "blkhash", "info", "--json", image))
    assert (info["format"], info["virtual_size"]) == ("rbd", 400_000)
    pathlib.Path("SUMS").write_bytes(blksum("--tag", "-d", "sha256", "--format=rbd", image).stdout)
    assert blksum("-c", "SUMS").returncode == 0
    refused = blksum("--reader=qemu", image)
    assert refused.returncode == 1 and b"which qemu-nbd does not read" in refused.stderr


def test_what_was_not_written_is_not_read(blksum, workdir):
    """An image of 8 EiB less a byte needs no time."""
    size = (1 << 63) - 1
    pathlib.Path("x.rbd").write_bytes(rbd_images.export([[("size", size), ("write", size - 1, b"x")]]))
    result = blksum("--length=1G", "--offset=4G", "--format=rbd", "x.rbd")
    pathlib.Path("zeros").touch()
    os.truncate("zeros", 1 << 30)
    assert result.returncode == 0, result
    assert result.stdout.split()[0] == blksum("-f", "raw", "zeros").stdout.split()[0]


@pytest.mark.parametrize("suffix", ["zst", "gz"])
def test_compressed_exports(blksum, workdir, suffix):
    rng = random.Random(SEED)
    places = range(0, MIB, 64 * KIB)
    diffs = [[("size", MIB), *(("write", place, rng.randbytes(25 * KIB)) for place in places)]]
    for name, made in ("one.rbd", diffs), ("two.rbd", [*diffs, [("zero", 0, 5000), ("write", 500 * KIB + 7, b"new" * 30_000)]]):
        pathlib.Path(name).write_bytes(rbd_images.export(made))
        images.run(*(["zstd", "-q"] if suffix == "zst" else ["gzip", "-k"]), name)
        expected = sha256(rbd_images.read(rbd_images.export(made)))
        for threads in (1, 4):
            assert digest(blksum, f"{name}.{suffix}", f"--threads={threads}") == expected, (name, threads)


def test_differences_are_refused(blksum, workdir):
    for version in (1, 2):
        pathlib.Path("x").write_bytes(b"rbd diff v%d\n" % version + b"e")
        result = blksum("x")
        assert result.returncode == 1 and b"is a difference of rbd: rbd import-diff x IMAGE" in result.stderr, result


def test_cut_off(blksum, workdir):
    image = example()
    for length in (13, 14, 100, len(image) // 2, len(image) - 1):
        pathlib.Path("x.rbd").write_bytes(image[:length])
        assert digest(blksum, "x.rbd") is None, length
    pathlib.Path("x.rbd").write_bytes(image + b"\n")
    assert b"1 bytes after its last difference" in blksum("x.rbd").stderr


@pytest.mark.parametrize("count", [16, pytest.param(300, marks=pytest.mark.slow)])
def test_random_images(blksum, workdir, count):
    rng = random.Random(SEED + count)
    for number in range(count):
        image = random_export(rng)
        pathlib.Path("x.rbd").write_bytes(image)
        expected = sha256(rbd_images.read(image))
        found = digest(blksum, "x.rbd", f"--threads={rng.randrange(1, 4)}", f"--read-size={rng.choice(('4k', '1m'))}")
        assert found == expected, number


@pytest.mark.parametrize("count", [24, pytest.param(500, marks=pytest.mark.slow)])
def test_mutants(blksum, workdir, count):
    """None is read that the plain reader refuses, and those that both read have one content."""
    rng = random.Random(SEED * count)
    read = 0
    for number in range(count):
        image = bytearray(random_export(rng))
        # Half of the changes are in the headers and the first records.
        offset = rng.randrange(min(len(image), 400) if rng.random() < 0.5 else len(image))
        if rng.random() < 0.1:
            del image[offset:]
        else:
            image[offset] ^= 1 << rng.randrange(8)
        pathlib.Path("x.rbd").write_bytes(image)
        try:
            content = rbd_images.read(image)
        except ValueError as error:
            if str(error) == "too large":
                # A reader must not take long.
                blksum("--format=rbd", "--max-zeros=1G", "x.rbd")
            else:
                assert digest(blksum, "x.rbd", "--format=rbd", "--max-zeros=1G") is None, (number, error)
            continue
        read += 1
        assert digest(blksum, "x.rbd", "--format=rbd") == sha256(content), number
    assert count / 10 < read < count


def compare(blksum, cluster, name):
    """Exports an image in both formats, and returns the content."""
    for path in ("x.raw", "x.rbd"):
        pathlib.Path(path).unlink(missing_ok=True)
    cluster.rbd("export", "--no-progress", name, "x.raw")
    cluster.rbd("export", "--no-progress", "--export-format", "2", name, "x.rbd")
    content = pathlib.Path("x.raw").read_bytes()
    assert rbd_images.read(pathlib.Path("x.rbd").read_bytes()) == content, name
    assert digest(blksum, "x.rbd") == sha256(content), name
    return content


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_exports_of_a_cluster(blksum, cluster, workdir, seed):
    """Random images with snapshots, sizes that change, and stripes."""
    rng = random.Random(SEED + seed)
    name = f"image{seed}"
    size = rng.choice((5 * MIB, 3 * MIB + 512 * rng.randrange(100), 9 * MIB + 123))
    pieces = [rng.choice((bytes(64 * KIB), rng.randbytes(64 * KIB))) for _ in range(size // (64 * KIB) + 1)]
    content = b"".join(pieces)[:size]
    pathlib.Path("source").write_bytes(content)
    stripes = rng.choice(((), ("--stripe-unit", "64K", "--stripe-count", "3")))
    cluster.rbd("import", "--no-progress", "--object-size", rng.choice(("1M", "4M")), *stripes, "source", name)
    assert compare(blksum, cluster, name) == content
    cluster.rbd("image-meta", "set", name, "note", "a value")
    for snapshot in range(1, 4):
        cluster.rbd("snap", "create", "--no-progress", f"{name}@s{snapshot}")
        if rng.random() < 0.3:
            cluster.rbd("snap", "protect", f"{name}@s{snapshot}")
        for _ in range(rng.randrange(3)):
            size = rng.choice((rng.randrange(1, 12 * MIB), rng.randrange(1, 24) * MIB // 2))
            cluster.rbd("resize", "--no-progress", "--allow-shrink", "--size", f"{size}B", name)
            records, _ = rbd_images.random_records(rng, size, resize=False, overlap=False)
            pathlib.Path("diff").write_bytes(rbd_images.diff_v1(records))
            cluster.rbd("import-diff", "--no-progress", "diff", name)
        compare(blksum, cluster, name)
    cluster.rbd("export", "--no-progress", "--export-format", "2", f"{name}@s1", "snapshot.rbd")
    assert pathlib.Path("snapshot.rbd").read_bytes() == pathlib.Path("x.rbd").read_bytes()
    cluster.rbd("import", "--no-progress", "--export-format", "2", "x.rbd", f"{name}.copy")
    content = pathlib.Path("x.raw").read_bytes()
    assert compare(blksum, cluster, f"{name}.copy") == content


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_imports_into_a_cluster(blksum, cluster, workdir, seed):
    """Exports that rbd did not write have the content that `rbd import` gives them."""
    rng = random.Random(SEED * 2 + seed)
    size = rng.randrange(1, 3 * MIB)
    diffs = [[("size", size), *rbd_images.random_records(rng, size, resize=False, overlap=False)[0]]]
    for _ in range(rng.randrange(4)):
        records, size = rbd_images.random_records(rng, size, overlap=False)
        diffs.append(records)
    # rbd fails on empty records.
    diffs = [[one for one in records if one[0] == "size" or one[2] not in (0, b"")] for records in diffs]
    image = rbd_images.export(diffs)
    pathlib.Path("made.rbd").write_bytes(image)
    cluster.rbd("import", "--no-progress", "--export-format", "2", "made.rbd", f"made{seed}")
    assert compare(blksum, cluster, f"made{seed}") == rbd_images.read(image)
    assert digest(blksum, "made.rbd") == digest(blksum, "x.rbd")
