"""NTFS: owners and names compared with ntfs-3g's driver and tools, flipped bits, states that are no damage, mutants."""

import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

import images
import owners
from commands import HANG
from ntfs_3g import mounted

pytestmark = pytest.mark.root

MIB = 1 << 20

# Sizes of a sector and of a cluster.
QUICK = [(512, 4096), (4096, 4096), (512, 512), (512, 65536)]
OTHERS = [(512, 1024), (512, 16384), (1024, 1024), (1024, 4096), (2048, 2048), (4096, 65536), (512, 2 * MIB)]
SIZES = [*QUICK, *(pytest.param(it, marks=pytest.mark.slow) for it in OTHERS)]


@pytest.fixture(autouse=True, scope="module")
def possible():
    if not os.path.exists("/dev/fuse"):
        assert "CI" not in os.environ, "CI must be able to mount NTFS"
        pytest.skip("needs FUSE")


def make(path, sector=512, cluster=4096, size=48 * MIB):
    size = max(size, 500 * cluster)
    with open(path, "wb") as file:
        file.truncate(size)
    images.run("mkntfs", "-F", "-Q", "-q", "-s", str(sector), "-c", str(cluster), str(path))
    return path


def fill(root, cluster, seed=1):
    """Fills a file system with every kind of file."""
    source = random.Random(seed)
    text = b"".join(b"%d " % source.randrange(1000) for _ in range(40_000))
    folder = root / "folder" / "deeper"
    folder.mkdir(parents=True)
    for number in range(60):
        (folder / f"small file number {number}").write_bytes(source.randbytes(source.randrange(9000)))
    for number in range(5):
        name = f"{folder}/small file number {number}"
        pathlib.Path(f"{name}:resident").write_bytes(b"[ZoneTransfer]\r\n")
        pathlib.Path(f"{name}:stream").write_bytes(source.randbytes(source.randrange(2000, 30_000)))
    pathlib.Path(f"{folder}:of a folder").write_bytes(source.randbytes(5000))
    with open(root / "holes", "wb") as file:
        for _ in range(10):
            file.seek(source.randrange(64) * 70_000)
            file.write(source.randbytes(9_000))
        file.truncate(5 * MIB)
    if cluster <= 4096:
        compressed = root / "compressed"
        compressed.mkdir()
        os.setxattr(compressed, "system.ntfs_attrib_be", (0x800).to_bytes(4, "big"))
        mixed = text[:100_000] + source.randbytes(150_000) + bytes(200_000) + text[:70_000]
        (compressed / "mixed").write_bytes(mixed)
    files = [open(root / f"grows in turns {number}", "wb", buffering=0) for number in range(3)]
    for _ in range(60):
        for file in files:
            file.write(source.randbytes(min(cluster, 8192)))
            os.fsync(file.fileno())
    for file in files:
        file.close()
    for number in range(0, 60, 3):
        (folder / f"small file number {number}").unlink()
    (root / "linked").write_bytes(b"x" * 3000)
    for number in range(12):
        os.link(root / "linked", folder / f"a hard link with a rather long name {number:040}")
    (root / "streams").write_bytes(b"y" * 5000)
    for number in range(20):
        path = pathlib.Path(f"{root}/streams:stream number {number}")
        path.write_bytes(source.randbytes(source.randrange(1, 4000)))
    for name in ["ä", "日本語", "😀 emoji", "a" * 255]:
        (root / name).write_bytes(name.encode())
    many = root / "many"
    many.mkdir()
    for number in range(200):
        (many / f"entry {number:08} {'n' * source.randrange(60)}").touch()


def fragment(root, cluster):
    """Fills what is free with small files and removes every other one, so that new records of the MFT are scattered."""
    folder = root / "fragments"
    folder.mkdir()
    count = 0
    with contextlib.suppress(OSError):
        while True:
            (folder / str(count)).write_bytes(b"x" * max(cluster, 2048))
            count += 1
    for number in range(0, count, 2):
        with contextlib.suppress(OSError):
            (folder / str(number)).unlink()
    with contextlib.suppress(OSError), open(root / "shards", "wb", buffering=0) as file:
        for _ in range(count // 8):
            file.write(b"z" * cluster)
    with contextlib.suppress(OSError):
        for number in range(count // 2):
            (folder / f"empty {number}").touch()


def filled(path, sector=512, cluster=4096, **kwargs):
    make(path, sector, cluster, **kwargs)
    with mounted(path) as root:
        fill(root, cluster)
    return path


def record_of(extent):
    """Returns the record of the MFT that owns an extent."""
    fixed = {"journal": 2, "MFT": 0}
    return fixed[extent.kind] if extent.kind in fixed else extent.object & ((1 << 48) - 1)


def assert_owners(path, cluster):
    """Asserts that the owners of all clusters and the names are those that ntfs-3g finds."""
    good, text = owners.check(path)
    assert good, text
    listing = owners.listing(path)
    assert not listing.is_partial
    end = 0
    owned = collections.defaultdict(list)
    for extent in listing.extents:
        assert extent.offset == end
        end += extent.length
        for number in range(extent.offset // cluster, (end - 1) // cluster + 1):
            owned[number].append(extent)
    assert end == path.stat().st_size
    bitmap = images.run("ntfscat", "-fi", "6", str(path))
    clusters = end // cluster - (end % cluster == 0)
    for number in range(clusters):
        is_used = bitmap[number // 8] >> number % 8 & 1
        assert is_used == all(it.kind != "free" for it in owned[number]), number
    assert_runs(path, cluster, owned)
    with mounted(path, "ro,streams_interface=windows") as root:
        assert_contents(path, root, listing)
        assert_names(root, listing)


def assert_runs(path, cluster, owned):
    """Compares the clusters of files with `ntfscluster`, which knows their records and their order."""
    numbers = {record_of(it) for its in owned.values() for it in its if it.object is not None}
    for number in sorted(numbers)[:200]:
        output = images.run("ntfscluster", "-f", "-I", str(number), str(path)).decode(errors="replace")
        for vcn, lcn, length in re.findall(r"^ +(\d+) +(\d+) +(\d+)$", output, re.MULTILINE):
            for step in range(int(length)):
                (extent, *_) = owned[int(lcn) + step]
                assert record_of(extent) == number or extent.kind == "MFT", extent
                if extent.kind == "file":
                    start = (int(lcn) + step) * cluster - extent.offset + extent.start
                    assert start == (int(vcn) + step) * cluster, extent


def assert_contents(path, root, listing):
    with open(path, "rb") as image:
        for extent in listing.extents:
            if extent.kind != "file" or extent.paths[0].startswith((b"/compressed/", b"/$Extend")):
                continue
            with open(os.fsencode(root) + extent.paths[0], "rb") as file:
                file.seek(extent.start)
                content = file.read(extent.length)
            image.seek(extent.offset)
            assert image.read(len(content)) == content, extent


def assert_names(root, listing):
    found = collections.defaultdict(set)
    top = os.fsencode(root)
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            entry = os.path.join(folder, name)
            found[os.lstat(entry).st_ino].add(entry[len(top) :])
    ours = {it.object: set(it.paths) for it in listing.extents if it.kind == "MFT" and (it.object or 0) >= 64}
    for number, paths in ours.items():
        assert paths == found[number] or len(paths) == 16 and paths < found[number], number
    assert {number for number in found if number >= 64} == set(ours)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_owners(workdir, sizes):
    assert_owners(filled(workdir / "fs", *sizes), sizes[1])


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(512, 1024), (512, 4096), (4096, 4096)], ids=str)
def test_fragmented_mft(workdir, sizes):
    path = filled(workdir / "fs", *sizes, size=16 * MIB)
    with mounted(path) as root:
        fragment(root, sizes[1])
    # Some file system has so many runs that they do not fit into the first record.
    has_list = b"$ATTRIBUTE_LIST" in images.run("ntfsinfo", "-fi", "0", str(path))
    assert has_list == (sizes == (512, 1024))
    assert_owners(path, sizes[1])


def structures(path):
    """Returns the offset and the length of protected structures in use, with their kinds."""
    content = path.read_bytes()
    found = []
    for extent in owners.listing(path).extents:
        if extent.kind == "MFT" and extent.object is not None:
            found += [("record", at, 1024) for at in range(extent.offset, extent.offset + extent.length, 1024)]
        if extent.kind == "MFT mirror":
            found += [("mirror", at, 1024) for at in range(extent.offset, extent.offset + 4096, 1024)]
        if extent.kind == "directory":
            found += [
                ("block", at, 4096)
                for at in range(extent.offset, extent.offset + extent.length, 4096)
                if content.startswith(b"INDX", at)
            ]
    return found


def objects(kind, path, number):
    """Returns whether ntfs-3g objects to a structure."""
    if kind == "block":
        errors = []
        try:
            with mounted(path, "ro") as root:
                for _ in os.walk(root, onerror=errors.append):
                    pass
        except OSError as error:
            errors.append(error)
        return bool(errors)
    which = ["-m"] if kind == "mirror" else ["-i", str(number)]
    result = images.attempt("ntfsinfo", "-f", *which, str(path))
    return result.returncode != 0 or b"rror" in result.stderr


@pytest.mark.parametrize("cases", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_flipped_bits(workdir, cases):
    """A bit of an update sequence number flips, or one at the end of a sector. ntfs-3g objects to the same ones."""
    source = random.Random(3)
    path = filled(workdir / "fs")
    content = path.read_bytes()
    known = structures(path)
    for _ in range(cases):
        kind, at, length = source.choice(known)
        array = int.from_bytes(content[at + 4 : at + 6], "little")
        sector = source.randrange(length // 512)
        place = at + source.choice([array, array + 1, sector * 512 + 510, sector * 512 + 511])
        with open(path, "r+b", buffering=0) as file:
            file.seek(place)
            file.write(bytes([content[place] ^ 1 << source.randrange(8)]))
            good, text = owners.check(path)
            assert not good and f'"offset":{at},' in text, (kind, at, place, text)
            # The tools read only some of the records that continue another one.
            if kind != "record" or not any(content[at + 32 : at + 40]):
                number = int.from_bytes(content[at + 44 : at + 48], "little")
                assert objects(kind, path, number), (kind, at, place)
            file.seek(place)
            file.write(content[place : place + 1])


def with_log(path, is_open):
    """Writes restart pages as Windows leaves them, because ntfs-3g clears the log."""
    page = bytearray(4096)
    page[:8] = b"RSTR\x1e\0\x09\0"
    page[16:32] = bytes([0, 16, 0, 0, 0, 16, 0, 0, 0x30, 0, 1, 0, 1, 0, 5, 0])
    area = [(1, 8), (1, 2), (0xFFFF, 2), (0 if is_open else 0xFFFF, 2), (0 if is_open else 2, 2), (45, 4), (0xE0, 2), (0x40, 2)]
    page[0x30:0x48] = b"".join(value.to_bytes(size, "little") for value, size in area)
    for end in range(512, 4097, 512):
        page[end - 2 : end] = page[0x1E:0x20]
    journal = next(it for it in owners.listing(path).extents if it.kind == "journal")
    with open(path, "r+b") as file:
        file.seek(journal.offset)
        file.write(page * 2)
    return journal.offset


def test_log(workdir):
    path = filled(workdir / "fs")
    at = with_log(path, is_open=False)
    good, text = owners.check(path)
    assert good and "log restart page" in text and owners.listing(path).remarks == []
    with open(path, "r+b", buffering=0) as file:
        file.seek(at + 4096 + 1023)
        file.write(b"\1")
        assert not owners.check(path)[0]
        # After a crash, one of the pages may be torn.
        assert with_log(path, is_open=True) == at
        file.seek(at + 4096 + 1023)
        file.write(b"\1")
        good, text = owners.check(path)
    assert good, text
    assert owners.listing(path).remarks == ["the log file holds changes that were not made yet"]


def test_names_that_differ(workdir):
    """A letter changes in an index, for a file that is found by its record. This is judged only if the log was closed."""
    path = filled(workdir / "fs")
    with_log(path, is_open=False)
    content = path.read_bytes()
    name = "entry 00000100".encode("utf-16-le")
    blocks = [at for kind, at, _ in structures(path) if kind == "block"]
    place = next(at + place for at in blocks if (place := content[at : at + 4096].find(name)) > 0)
    with open(path, "r+b", buffering=0) as file:
        file.seek(place)
        file.write(b"E")
        good, text = owners.check(path)
        assert not good and "other names in the directory than in the MFT" in text
        assert owners.listing(path).is_partial is False
        with_log(path, is_open=True)
        assert owners.check(path)[0]


def test_states(workdir):
    """States that are no damage, and are said."""
    path = filled(workdir / "fs")
    assert owners.listing(path).remarks == []
    with mounted(path) as root:
        (root / "hiberfil.sys").write_bytes(b"hibr" + bytes(8000))
    assert owners.check(path)[0]
    assert ["hibernated" in it for it in owners.listing(path).remarks] == [True]
    images.attempt("ntfsfix", str(path))
    assert owners.check(path)[0]
    assert any("dirty" in it for it in owners.listing(path).remarks)


def test_boot_sectors(workdir):
    path = make(workdir / "fs")
    backup = path.stat().st_size - 512
    assert owners.listing(path).extents[-1].kind == "backup boot sector"
    for at, is_good in [(backup + 13, False), (backup + 72, True), (backup + 3, False), (backup + 200, True), (511, False)]:
        content = path.read_bytes()
        with open(path, "r+b", buffering=0) as file:
            file.seek(at)
            file.write(bytes([content[at] ^ 4]))
            assert owners.check(path)[0] == is_good, at
            file.seek(at)
            file.write(content[at : at + 1])
    # The sizes come from the backup.
    with open(path, "r+b") as file:
        file.seek(13)
        file.write(b"\3")
    good, text = owners.check(path)
    assert not good and "impossible sizes in the boot sector" in text
    # Without the backup, it is no error that it is missing.
    whole = make(workdir / "whole")
    os.truncate(whole, backup)
    assert owners.check(whole)[0] and owners.listing(whole).extents[-1].kind == "volume slack"
    os.truncate(whole, backup - 4096)
    assert not owners.check(whole)[0]


@pytest.mark.slow
def test_copied_while_mounted(workdir):
    """The driver is stopped during each copy, like for a snapshot of a disk."""
    path = make(workdir / "fs")
    copy = workdir / "copy"
    with mounted(path) as root:
        drivers = images.run("pgrep", "-f", str(root)).decode().split()
        for seed in range(30):
            (root / str(seed)).mkdir()
            with subprocess.Popen(["cp", "-r", os.path.dirname(__file__), str(root / str(seed))]) as busy:
                time.sleep(0.05)
                for driver in drivers:
                    os.kill(int(driver), signal.SIGSTOP)
                images.run("cp", str(path), str(copy))
                for driver in drivers:
                    os.kill(int(driver), signal.SIGCONT)
                good, text = owners.check(copy)
                assert good, text
                busy.wait(HANG)
            shutil.rmtree(root / str(seed))


@pytest.mark.parametrize("cases", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_mutants(workdir, cases):
    """Nothing that is stored makes it panic, hang or take memory."""
    source = random.Random(cases)
    path = filled(workdir / "fs")
    content = path.read_bytes()
    spans = [(it.offset, it.length) for it in owners.listing(path).extents if it.kind not in ("free", "file", "journal")]
    with open(path, "r+b", buffering=0) as file:
        for _ in range(cases):
            changed = []
            for _ in range(source.choice([1, 1, 2, 8])):
                offset, length = source.choice([(0, 90), source.choice(spans), source.choice(spans)])
                at = offset + min(int(source.expovariate(1 / 200)), length - 8)
                value = source.choice([source.randbytes(8), b"\xff", b"\0", b"\xff\xff\xff\x7f", b"\1\0\0\0\0\0\0\0"])
                changed.append((at, len(value)))
                file.seek(at)
                file.write(value)
            for verb in ("check", "owners"):
                limited = f"ulimit -v 400000; exec timeout 20 {owners.program()} {verb} {path}"
                result = images.attempt("bash", "-c", limited)
                assert result.returncode in (0, 1, 2) and b"panick" not in result.stderr, (changed, result)
            for at, length in changed:
                file.seek(at)
                file.write(content[at : at + length])
