"""Exports of XenServer and XCP-ng (.xva), made by an independent writer (`backups.py`), which has the same values as tar."""

import gzip
import pathlib
import random
import subprocess

import pytest

import backups
from commands import mostly_slow
from container_images import value

MIB = 1 << 20


def content(rng, count):
    """Returns a disk, some MiB of which are zero."""
    parts = [rng.randbytes(MIB) if rng.random() < 0.4 else bytes(MIB) for _ in range(count)]
    return b"".join(parts)[: count * MIB - rng.choice([0, 0, 512, 4096, 699_904])]


def disks_of(rng):
    count = rng.randint(1, 3)
    return {f"Ref:{7 + index}": (content(rng, rng.randint(1, 6)), index, f"disk {index}") for index in range(count)}


def zstd(archive):
    return subprocess.run(["zstd", "-q", "-1", "-c"], input=archive, stdout=subprocess.PIPE, check=True).stdout


def written(archive, form):
    """Writes an archive under the name of its form. Returns the name."""
    name = "m.xva" + form.replace("inside", "")
    packed = {"": lambda data: data, ".zst": zstd, ".gz": gzip.compress, "inside": zstd}[form](archive)
    pathlib.Path(name).write_bytes(packed)
    return name


@pytest.mark.parametrize("form", ["", ".gz", ".zst", "inside"])
@pytest.mark.parametrize("sums", ["checksum", "xxhash"])
def test_disks(blksum, workdir, form, sums):
    disks = disks_of(random.Random(1)) | {"Ref:90": (b"x" * 5120, 9, "small & odd".replace("&", "&amp;"))}
    name = written(backups.xva(disks, sums), form)
    result = blksum(name)
    lines = "".join(f"{value(data)}  {name}:{reference}\n" for reference, (data, _, _) in disks.items())
    assert (result.returncode, result.stdout.decode(), result.stderr) == (0, lines, b"")
    assert blksum.hex(f"{name}:9") == blksum.hex(f"{name}:small & odd") == value(b"x" * 5120)
    checked = blksum("-c", name)
    assert (checked.returncode, checked.stdout.count(b": OK\n")) == (0, len(disks)), checked
    unknown = blksum(f"{name}:Ref:1")
    assert unknown.returncode == 1 and b"it has Ref:7" in unknown.stderr, unknown


def test_odd_sizes(blksum, workdir):
    """The size is that in the description, of which the guest sees whole sectors."""
    disk = b"x" * (MIB + 700)
    for form in ("", ".gz"):
        result = blksum(written(backups.xva({"Ref:7": (disk, 0, "d")}), form))
        assert (result.returncode, result.stdout.split()[0].decode()) == (0, value(disk))
        assert b"note: size is not a multiple of 512 bytes" in result.stderr


@pytest.mark.parametrize("seed", mostly_slow(range(200), range(8)))
def test_random_archives(blksum, workdir, seed):
    rng = random.Random(seed)
    disks = disks_of(rng)
    empty = set(rng.sample(range(1, 7), rng.randint(0, 2)))
    archive = backups.xva(disks, rng.choice(["checksum", "xxhash"]), empty=empty)
    for form in ("", rng.choice([".gz", ".zst", "inside"])):
        result = blksum("--threads", str(rng.randint(1, 4)), written(archive, form))
        values = [line.split()[0].decode() for line in result.stdout.splitlines()]
        assert (result.returncode, values) == (0, [value(data) for data, _, _ in disks.values()]), result


def test_damage(blksum, workdir):
    data = random.Random(3).randbytes(MIB) + bytes(MIB) + random.Random(4).randbytes(MIB + 4096)
    disks = {"Ref:7": (data, 0, "d")}

    def without(name):
        return lambda members: [member for member in members if member[0] != name]

    def renamed(old, new):
        return lambda members: [(new if name == old else name, data) for name, data in members]

    def flipped(which):
        return lambda members: [
            (name, bytes([data[0] ^ 1]) + data[1:] if name == which else data) for name, data in members
        ]

    cases = [
        (dict(change=flipped("Ref:7/00000000")), b"does not match its checksum"),
        (dict(change=flipped("Ref:7/00000003")), b"does not match its checksum"),
        (dict(change=flipped("Ref:7/00000002.checksum")), b"does not match its checksum"),
        (dict(change=without("Ref:7/00000002.checksum")), b"without a checksum"),
        (dict(change=without("Ref:7/00000000")), b""),
        (dict(change=lambda members: members[:-2]), b"of which it states"),
        (dict(change=lambda members: members + members[-2:]), b""),
        (dict(change=lambda members: members[2:4] + members[:2] + members[4:]), b""),
        (dict(change=renamed("Ref:7/00000002", "Ref:7/2")), b"no block of a disk"),
        (dict(sizes={"Ref:7": len(data) + 1}), b"of which it states"),
        (dict(sizes={"Ref:7": len(data) - 1}), b"past the end"),
        (dict(text=b"<value>"), b"ova.xml"),
    ]
    for how, word in cases:
        archive = backups.xva(disks, **how)
        for form in ("", ".gz", "inside"):
            name = written(archive, form)
            for args in ((name,), ("-c", name), (f"{name}:Ref:7",)):
                result = blksum(*args)
                if how.get("text"):
                    assert result.returncode == 1, result
                    continue
                assert (result.returncode, result.stdout.count(b"OK")) == (1, 0), (word, result)
                assert value(data).encode() not in result.stdout
                assert word in result.stderr, (word, result)


@pytest.mark.parametrize("seed", mostly_slow(range(10), range(1)))
def test_mutants(blksum, workdir, seed):
    """A changed archive has the content of the intact one, or none."""
    rng = random.Random(seed)
    data = b"block" * 50_000
    disks = {"Ref:7": (data, 0, "d")}
    intact = backups.xva(disks)
    for _ in range(50):
        archive = bytearray(intact)
        for _ in range(rng.randint(1, 3)):
            archive[rng.randrange(len(archive))] ^= 1 << rng.randrange(8)
        name = written(bytes(archive), rng.choice(["", ".gz"]))
        result = blksum(f"{name}:Ref:7")
        assert result.returncode == 1 or result.stdout.split()[0] == value(data).encode()


def test_limits(blksum, workdir):
    """Small files that ask for much."""
    for size in (1 << 62, 1 << 45, 0, "x"):
        archive = backups.xva({"Ref:7": (b"x" * 4096, 0, "d")}, sizes={"Ref:7": size})
        for form in ("", ".gz"):
            assert blksum(written(archive, form)).returncode == 1, size
    deep = b"<member>" * 100_000
    assert blksum(written(backups.xva({}, text=deep), "")).returncode == 1
