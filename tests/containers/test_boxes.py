"""Disks in tar archives, compressed or not: boxes of vagrant, disk.raw.tar.gz, files with holes."""

import io
import os
import pathlib
import random
import subprocess
import tarfile

import pytest

import images
from commands import mostly_slow
from container_images import value

MIB = 1 << 20
# Those that are decoded in one piece, and those that have parts.
FORMS = {
    ".tar": [],
    ".tar.gz": ["-z"],
    ".tgz": ["-z"],
    ".tar.xz": ["-J"],
    ".tar.zst": ["--zstd"],
    ".tar.bz2": ["-j"],
    ".box": ["-z"],
}


def tar(name, *args):
    subprocess.run(["tar", "-cf", name, *args], check=True)


def content(rng, size=2 * MIB + 4096):
    """Returns a disk with holes of many blocks."""
    out = bytearray(size)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(size) & ~4095
        out[at : at + 16_384] = rng.randbytes(len(out[at : at + 16_384]))
    return bytes(out)


@pytest.mark.parametrize("form", FORMS)
def test_the_only_disk(blksum, workdir, form):
    data = content(random.Random(1))
    pathlib.Path("disk.raw").write_bytes(data)
    pathlib.Path("metadata.json").write_bytes(b'{"provider": "libvirt"}')
    tar(f"a{form}", *FORMS[form], "metadata.json", "disk.raw")
    assert blksum.hex(f"a{form}") == value(data)
    assert blksum.hex(f"a{form}:disk.raw") == value(data)
    assert blksum.hex("-f", "raw", f"a{form}:metadata.json") == value(b'{"provider": "libvirt"}')
    unknown = blksum(f"a{form}:x.img")
    assert unknown.returncode == 1 and b"it has metadata.json, disk.raw" in unknown.stderr
    own = blksum("-f", "raw", f"a{form}")
    assert own.stdout.split()[0].decode() == value(pathlib.Path(f"a{form}").read_bytes())
    os.rename(f"a{form}", "other.raw")
    assert blksum("other.raw").returncode == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_box_with_an_image(blksum, workdir, form):
    data = content(random.Random(2))
    pathlib.Path("raw").write_bytes(data)
    images.qemu_img("convert", "-f", "raw", "-O", "qcow2", "raw", "box.img")
    for name in ("Vagrantfile", "metadata.json", "info.json"):
        pathlib.Path(name).write_bytes(b"text")
    tar(f"a{form}", *FORMS[form], "./metadata.json", "./Vagrantfile", "./box.img", "./info.json")
    assert blksum.hex(f"a{form}") == value(data)


@pytest.mark.parametrize("form", FORMS)
def test_two_disks(blksum, workdir, form):
    """The second one is an error where one is expected, found in the same pass, and each has a name."""
    one, two = content(random.Random(3)), content(random.Random(4))
    pathlib.Path("a.img").write_bytes(one)
    pathlib.Path("b.img").write_bytes(two)
    tar(f"a{form}", *FORMS[form], "a.img", "b.img")
    result = blksum(f"a{form}")
    if result.returncode == 0:
        assert form in (".tar", ".tar.xz") and len(result.stdout.splitlines()) == 2, result
    else:
        assert result.stdout == b"" and b'the disks "a.img" and "b.img": name one' in result.stderr, result
    assert blksum.hex(f"a{form}:a.img") == value(one) and blksum.hex(f"a{form}:b.img") == value(two)


@pytest.mark.parametrize("form", FORMS)
def test_no_disk_and_odd_members(blksum, workdir, form):
    pathlib.Path("a.bin").write_bytes(b"x" * 1000)
    pathlib.Path("b.bin").write_bytes(b"y" * 1000)
    tar(f"a{form}", *FORMS[form], "a.bin", "b.bin")
    refused = blksum(f"a{form}")
    assert refused.returncode == 1 and b"name one after a colon, as a.bin, b.bin" in refused.stderr, refused
    tar(f"a{form}", *FORMS[form], "a.bin")
    assert blksum.hex(f"a{form}") == value(b"x" * 1000)
    # Two members of one name, of which programs take one or the other.
    tar(f"a{form}", *FORMS[form], "a.bin", "b.bin", "--transform=s/b.bin/a.bin/")
    assert b"two members with the name" in blksum(f"a{form}:a.bin").stderr
    os.symlink("a.bin", "link.img")
    tar(f"a{form}", *FORMS[form], "a.bin", "link.img")
    assert b"symbolic link" in blksum(f"a{form}").stderr


@pytest.mark.parametrize("seed", mostly_slow(range(200), range(12)))
def test_files_with_holes(blksum, workdir, seed):
    rng = random.Random(seed)
    data = content(rng, rng.choice([MIB, 2 * MIB + 4096, 100_000, 8 * MIB]))
    images.write_sparse("disk.raw", data)
    images.write_sparse("second.raw", content(rng))
    kind = rng.choice(["oldgnu", "gnu", "0.0", "0.1", "1.0", "bsdtar"])
    form = rng.choice([form for form in FORMS if form != ".box"])
    if kind == "bsdtar":
        subprocess.run(["bsdtar", "--read-sparse", "-a", "-cf", f"a{form}", "disk.raw"], check=True)
    elif kind in ("oldgnu", "gnu"):
        tar(f"a{form}", f"--format={kind}", "-S", *FORMS[form], "disk.raw")
    else:
        tar(f"a{form}", "--format=pax", f"--sparse-version={kind}", "-S", *FORMS[form], "disk.raw")
    result = blksum("--threads", str(rng.randint(1, 4)), f"a{form}")
    assert result.stdout.split()[:1] == [value(data).encode()], (kind, form, result)
    assert blksum.hex(f"a{form}:disk.raw") == value(data)


@pytest.mark.parametrize("form", FORMS)
def test_damage(blksum, workdir, form):
    """What is changed or cut off is found before a value is printed, where the compression has checksums."""
    data = random.Random(5).randbytes(MIB)
    pathlib.Path("disk.raw").write_bytes(data)
    tar(f"a{form}", *FORMS[form], "disk.raw")
    intact = pathlib.Path(f"a{form}").read_bytes()
    for cut in (len(intact) // 2, len(intact) - 10_240 if form == ".tar" else len(intact) - 3, 600):
        pathlib.Path(f"a{form}").write_bytes(intact[:cut])
        if form == ".tar" and cut > MIB:
            continue
        assert blksum(f"a{form}").returncode == 1, cut
    if form == ".tar":
        return
    for at in (len(intact) // 3, len(intact) - 6, len(intact) - 2):
        pathlib.Path(f"a{form}").write_bytes(intact[:at] + bytes([intact[at] ^ 16]) + intact[at + 1 :])
        result = blksum(f"a{form}")
        assert (result.returncode, result.stdout) == (1, b""), (at, result)


def extracted(path, name):
    """Returns what Python and GNU tar extract, the latter to a pipe and to a file."""
    with tarfile.open(path) as archive:
        mine = archive.extractfile(name).read()
    piped = subprocess.run(["tar", "-xOf", path, name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    pathlib.Path("to").mkdir(exist_ok=True)
    subprocess.run(["tar", "-C", "to", "-xf", path, name], stderr=subprocess.DEVNULL)
    written = pathlib.Path("to", name)
    found = written.read_bytes()
    written.unlink()
    return mine, piped, found


@pytest.mark.parametrize("seed", mostly_slow(range(10), range(1)))
def test_mutants(blksum, workdir, seed):
    """No value is printed that Python's tarfile and GNU tar do not give."""
    rng = random.Random(seed)
    data = content(rng, 300_000)
    images.write_sparse("disk.raw", data)
    pathlib.Path("x").write_bytes(b"text")
    kind = rng.choice(["--format=oldgnu", "--sparse-version=0.0", "--sparse-version=0.1", "--sparse-version=1.0"])
    tar("a.tar", "-S", "x", "disk.raw", *(["--format=pax"] if "version" in kind else []), kind)
    intact = pathlib.Path("a.tar").read_bytes()
    with tarfile.open("a.tar") as archive:
        ends = [member.offset_data for member in archive]
    read = 0
    for _ in range(50):
        mutant = bytearray(intact)
        for _ in range(rng.randint(1, 2)):
            at = rng.choice([0, *[end - 512 for end in ends], *[max(0, end - 1024) for end in ends], *ends])
            place = at + rng.choice([rng.randrange(512), 124 + rng.randrange(12), 386 + rng.randrange(100)])
            mutant[place] = rng.choice([0, 0x31, 0x37, mutant[place] ^ 1 << rng.randrange(8)])
            header = mutant[at : at + 512]
            header[148:156] = b" " * 8
            if rng.random() < 0.9 and any(mutant[at + 148 : at + 156]):
                mutant[at + 148 : at + 156] = b"%06o\0 " % sum(header)
        pathlib.Path("a.tar").write_bytes(mutant)
        subprocess.run("gzip -kf a.tar", shell=True, check=True)
        results = [blksum("-f", "raw", f"{name}:disk.raw") for name in ("a.tar", "a.tar.gz")]
        for result in results:
            if result.returncode == 0:
                read += 1
                for expected in extracted("a.tar", "disk.raw"):
                    assert result.stdout.split()[0].decode() == value(expected)
    assert read


def test_limits(blksum, workdir):
    """Small files that ask for much."""
    with tarfile.open("a.tar.gz", "w:gz") as out:
        for index in range(10_001):
            out.addfile(tarfile.TarInfo(f"f{index}"), io.BytesIO())
    assert b"more than 10000 headers" in blksum("a.tar.gz").stderr
    # A hole of 8 EiB.
    info = tarfile.TarInfo("disk.raw")
    info.pax_headers = {"GNU.sparse.size": str(1 << 62), "GNU.sparse.numblocks": "0", "GNU.sparse.map": ""}
    with tarfile.open("b.tar", "w", format=tarfile.PAX_FORMAT) as out:
        out.addfile(info)
    assert blksum("b.tar").returncode in (0, 1)
    zeros = subprocess.run("head -c 2G /dev/zero | gzip -1", shell=True, stdout=subprocess.PIPE, check=True).stdout
    pathlib.Path("c.tar.gz").write_bytes(zeros)
    assert blksum("c.tar.gz").returncode == 1
