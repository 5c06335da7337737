"""Backups of Proxmox VE (.vma), made by an independent writer (`backups.py`) and compared with dissect.archive."""

import pathlib
import random
import struct
import subprocess

import pytest
from dissect.archive.vma import VMA

import backups
from commands import mostly_slow
from container_images import value

CLUSTER = backups.CLUSTER


def content(rng, size):
    """Returns a disk with blocks of zeros in between."""
    out = bytearray(size)
    for _ in range(rng.randint(1, 20)):
        at, length = rng.randrange(size), rng.randint(1, 40_000)
        out[at : at + length] = rng.randbytes(len(out[at : at + length]))
    return bytes(out)


def disks_of(rng):
    sizes = [rng.randint(1, 40) * CLUSTER - rng.choice([0, 512, 4096, 59_904]) for _ in range(rng.randint(1, 3))]
    return {f"drive-scsi{index}": content(rng, size) for index, size in enumerate(sizes)}


def by_dissect(path):
    with open(path, "rb") as file:
        return {device.name: device.open().read() for device in VMA(file).devices()}


def written(archive, form):
    """Writes an archive, compressed or not. Returns its name."""
    name = "b.vma" + form
    packers = {"": None, ".gz": ["gzip", "-1c"], ".zst": ["zstd", "-q", "-1", "-c", "--rsyncable"], ".lzo": ["lzop", "-c"]}
    packed = subprocess.run(packers[form], input=archive, stdout=subprocess.PIPE, check=True).stdout if form else archive
    pathlib.Path(name).write_bytes(packed)
    return name


def shuffled(rng):
    """Returns a change of the order: some clusters come early, as where a guest writes."""

    def order(clusters):
        for _ in range(rng.randint(0, 10)):
            clusters.insert(rng.randrange(len(clusters)), clusters.pop(rng.randrange(len(clusters))))

    return order


@pytest.mark.parametrize("form", ["", ".gz", ".zst", ".lzo"])
def test_disks(blksum, workdir, form):
    disks = disks_of(random.Random(7)) | {"drive-efidisk0": b"efi" * 30_720}
    name = written(backups.vma(disks, configs=[("qemu-server.conf", b"cores: 2\n")]), form)
    result = blksum(name)
    lines = [f"{value(data)}  {name}:{disk}\n" for disk, data in disks.items()]
    assert (result.returncode, result.stdout.decode(), result.stderr) == (0, "".join(lines), b"")
    for disk, data in disks.items():
        assert blksum.hex(f"{name}:{disk}") == value(data)
    assert blksum("-c", input=result.stdout).returncode == 0
    checked = blksum("-c", name)
    assert (checked.returncode, checked.stdout.count(b": OK\n")) == (0, len(disks)), checked
    unknown = blksum(f"{name}:drive-ide0")
    assert unknown.returncode == 1 and b"it has drive-scsi0" in unknown.stderr


def test_guests_do_not_choose_the_format(blksum, workdir):
    """A guest could write the header of an image into its disk."""
    disk = b"QFI\xfb\0\0\0\3" + bytes(CLUSTER) + b"conectix" + bytes(504)
    for form in ("", ".zst"):
        name = written(backups.vma({"drive-scsi0": disk}), form)
        assert blksum.hex(name) == value(disk)


@pytest.mark.parametrize("seed", mostly_slow(range(200), range(10)))
def test_random_archives(blksum, workdir, seed):
    rng = random.Random(seed)
    disks = disks_of(rng)
    ids = rng.sample(range(1, 256), len(disks))
    archive = backups.vma(disks, seed=seed, order=shuffled(rng), ids=sorted(ids))
    for form in ("", rng.choice([".gz", ".zst", ".lzo"])):
        name = written(archive, form)
        result = blksum("--threads", str(rng.randint(1, 4)), name)
        values = [line.split()[0].decode() for line in result.stdout.splitlines()]
        assert (result.returncode, values) == (0, [value(data) for data in disks.values()]), result
    assert by_dissect("b.vma") == disks


def test_damage(blksum, workdir):
    disks = {"drive-scsi0": content(random.Random(8), 70 * CLUSTER)}
    good = backups.vma(disks)
    first = struct.unpack_from(">I", good, 56)[0]
    at = first + 40
    clusters = [at + 8 * index for index in range(59) if any(good[at + 8 * index : at + 8 * index + 8])]

    def changed(at, new):
        return good[:at] + new + good[at + len(new) :]

    one, two = (good[at : at + 8] for at in clusters[:2])
    twice = backups.seal(changed(clusters[0], one[:4] + two[4:]))
    cases = [
        (changed(100, b"x"), b"does not match its MD5"),
        (changed(first + 2, b"x"), b"else in the place of an extent"),
        (changed(first + 9, b"x"), b"of another archive"),
        (changed(first + 30, b"x"), b"extent whose header does not match its MD5"),
        (changed(clusters[0] + 7, b"\x09"), b"extent whose header does not match its MD5"),
        (twice, b"twice"),
        (backups.seal(changed(clusters[0], one[:3] + b"\x09" + one[4:])), b"unknown device"),
        (backups.seal(changed(clusters[0], one[:4] + b"\0\1\0\0")), b"past the end of its device"),
        (backups.seal(changed(first + 6, b"\0\0")), b"of another number of blocks"),
        (good[: len(good) - 100], b"cut off"),
        (good[: first + 100], b"cut off"),
        (good[:first], b"lacks cluster"),
        (good[:6000], b"cut off in its header"),
    ]
    for data, word in cases:
        for form in ("", ".gz", ".zst", ".lzo"):
            name = written(data, form)
            for args in ((name,), ("-c", name), (f"{name}:drive-scsi0",)):
                result = blksum(*args)
                assert (result.returncode, result.stdout.count(b"OK")) == (1, 0), (word, result)
                assert value(disks["drive-scsi0"]).encode() not in result.stdout
                assert word in result.stderr, (word, result)


@pytest.mark.parametrize("seed", mostly_slow(range(10), range(1)))
def test_mutants(blksum, workdir, seed):
    """No value is printed that dissect.archive does not give."""
    rng = random.Random(seed)
    disks = {"drive-scsi0": content(rng, 5 * CLUSTER), "drive-scsi1": content(rng, 3 * CLUSTER)}
    intact = backups.vma(disks, configs=[("a.conf", b"x")])
    size = struct.unpack_from(">I", intact, 56)[0]
    read = 0
    for _ in range(50):
        data = bytearray(intact)
        for _ in range(rng.randint(1, 3)):
            start, length = rng.choice([(0, 60), (2044, 8), (3068, 8), (4096, 96), (12288, 60), (size, 120)])
            data[start + rng.randrange(length)] = rng.choice([0, 1, 0xFF, rng.randrange(256)])
        archive = backups.seal(data) if rng.random() < 0.9 else bytes(data)
        name = written(archive, "")
        packed = written(archive, ".gz")
        for disk in disks:
            result = blksum(f"{name}:{disk}")
            other = blksum(f"{packed}:{disk}")
            assert result.stdout.split()[:1] == other.stdout.split()[:1]
            if result.returncode == 0:
                read += 1
                assert result.stdout.split()[0] == value(by_dissect(name)[disk]).encode()
    assert read


def test_limits(blksum, workdir):
    """Small files that ask for much."""
    disks = {"drive-scsi0": bytes(4 * CLUSTER)}
    good = bytearray(backups.vma(disks))
    for size, word in [(1 << 60, b"invalid size"), (1 << 47, b"clusters"), (1 << 40, b"lacks clusters"), (0, b"invalid size")]:
        struct.pack_into(">Q", good, 4096 + 32 + 8, size)
        data = backups.seal(good)
        result = blksum(written(data, ""))
        assert result.returncode == 1 and word in result.stderr, (size, result)
        assert blksum(written(data, ".gz")).returncode == 1
    # Clusters from the last to the first one need as much memory as the disk has.
    rng = random.Random(9)
    disks = {"drive-scsi0": rng.randbytes(60 * CLUSTER)}
    name = written(backups.vma(disks, order=lambda clusters: clusters.reverse()), ".gz")
    assert blksum.hex(name) == value(disks["drive-scsi0"])
    refused = blksum("--max-memory", "1M", name)
    assert refused.returncode == 1 and b"decompress it first" in refused.stderr, refused
