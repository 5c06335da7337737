"""blkfs on XFS: the owner of each block compared with xfs_db, and checks compared with xfs_repair -n."""

import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import threading

import pytest

import filesystems
import images
import owners

MIB = 1 << 20

# What mkfs.xfs wants to see before it makes a file system smaller than 300 MiB.
SMALL = {"TEST_DIR": "/", "TEST_DEV": "/", "QA_CHECK_FS": "1"}

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not shutil.which("xfs_db") and "CI" not in os.environ, reason="needs xfsprogs"),
]

# The names that xfs_db has for what a block is, where they are others.
NAMES = {
    "superblock": "sb",
    "AGF": "sb",
    "AGI": "sb",
    "AGFL": "sb",
    "AG header": "sb",
    "bnobt block": "btbno",
    "cntbt block": "btcnt",
    "inobt block": "btino",
    "finobt block": "btfino",
    "rmapbt block": "btrmap",
    "refcountbt block": "btrefcnt",
    "free list": "freelist",
    "inode chunk": "inode",
    "directory": "dir",
    "journal": "log",
    "file": "data",
    "attribute block": "attr",
    "attribute value block": "attr",
    "symlink block": "symlink",
}
FOREIGN = {"agf": "sb", "agi": "sb", "agfl": "sb", "rldata": "data", "free1": "free", "free2": "free"}


def make(path, *options, size=64 * MIB):
    with open(path, "wb") as file:
        file.truncate(size)
    images.run("mkfs.xfs", "-q", *options, str(path), env=os.environ | SMALL)
    return path


@contextlib.contextmanager
def mounted(path, options="rw"):
    """Temporarily mounts the file system. Skips the test if the kernel cannot."""
    with filesystems.attached(path) as device, tempfile.TemporaryDirectory() as folder:
        result = images.attempt("mount", "-t", "xfs", "-o", options, device, folder)
        if result.returncode:
            pytest.skip(f"XFS cannot be mounted: {result.stderr.decode()}")
        try:
            yield pathlib.Path(folder)
        finally:
            images.run("umount", folder)


def fill(root, seed=1, entries=400):
    """Makes files of every kind, then removes some of them."""
    source = random.Random(seed)
    big = root / "big"
    big.mkdir()
    for number in range(entries):
        (big / f"{number:05d} {'x' * source.randrange(80)}").touch()
    deep = root / "deep" / ("l" * 255)
    deep.mkdir(parents=True)
    for number in range(60):
        (deep / f"f{number}").write_bytes(source.randbytes(source.randrange(20_000)))
        os.link(deep / f"f{number}", root / f"hard{number}")
        os.symlink("t" * source.randrange(1, 1000), root / f"link{number}")
    fragmented = [open(root / f"fragmented{number}", "wb", buffering=0) for number in range(2)]
    for number in range(60):
        for file in fragmented:
            os.pwrite(file.fileno(), b"f" * 4096, number * 16384)
            os.fsync(file.fileno())
    for file in fragmented:
        file.close()
    with open(root / "holes", "wb") as file:
        for _ in range(30):
            file.seek(source.randrange(1 << 30))
            file.write(b"hole")
    images.run("fallocate", "-l", "1M", str(root / "preallocated"))
    for number in range(12):
        path = root / f"attributes{number}"
        path.write_bytes(b"a")
        for name in range(source.randrange(1, 30)):
            value = source.randbytes(source.choice([3, 300, 3000, 50_000]))
            os.setxattr(path, f"user.{name}{'n' * source.randrange(90)}", value)
    for number in range(400):
        os.setxattr(root / "holes", f"user.many{number}", bytes(40))
    for number in range(4):
        images.attempt("cp", "--reflink=always", str(root / "fragmented0"), str(root / f"shared{number}"))
    images.run("sync", "-f", str(root))
    for path in [*sorted(big.iterdir())[::5], *sorted(deep.iterdir())[::3]]:
        path.unlink()


def prototype(folder, seed=1):
    """Returns a file that lists what mkfs.xfs is to create, for file systems that cannot be mounted here."""
    source = random.Random(seed)
    content = folder / "content"
    content.write_bytes(source.randbytes(9000))
    lines = ["boot", "0 0", "d--755 0 0", "big d--755 0 0"]
    for number in range(400):
        name = f"{number:05d}{'x' * source.randrange(80)}"
        lines.append(f"{name} ---644 0 0 {content if number % 9 == 0 else '/dev/null'}")
    lines += ["$", f"large ---644 0 0 {content}", f"short l--777 0 0 {'t' * 40}", "$"]
    path = folder / "prototype"
    path.write_text("\n".join(lines) + "\n")
    return path


def xfs_db(path, *commands):
    lines = "".join(f"{it}\n" for it in commands)
    result = images.attempt("xfs_db", "-r", str(path), input=lines.encode(), stdin=None)
    return result.stdout.decode(errors="surrogateescape").replace("xfs_db> ", "")


class Geometry:
    def __init__(self, path):
        fields = dict(re.findall(r"^(\w+) = (\w+)$", xfs_db(path, "sb 0", "p"), re.MULTILINE))
        self.block, self.blocks = int(fields["blocksize"]), int(fields["dblocks"])
        self.group, self.groups = int(fields["agblocks"]), int(fields["agcount"])
        self.group_log = int(fields["agblklog"])


def used_blocks(path, geometry):
    """Returns what each block is according to xfs_db, and the inode that it belongs to."""
    commands = ["blockget -n"]
    for group in range(geometry.groups):
        count = min(geometry.group, geometry.blocks - group * geometry.group)
        commands += [f"fsblock {group << geometry.group_log}", f"blockuse -c {count}"]
    pattern = r"^block \d+ \((\d+)/(\d+)\) type (\S+)(?: inode (\d+))?"
    found = re.finditer(pattern, xfs_db(path, *commands), re.MULTILINE)
    return {
        int(it[1]) * geometry.group + int(it[2]): (FOREIGN.get(it[3], it[3]), it[4] and int(it[4]))
        for it in found
    }


def file_blocks(path, geometry, inodes):
    """Returns the blocks of files according to xfs_db: inode, block of the file, block."""
    commands = [it for inode in sorted(inodes) for it in (f"echo I {inode}", f"inode {inode}", "p core.mode", "bmap -d")]
    blocks, inode, is_file = set(), None, False
    for line in xfs_db(path, *commands).splitlines():
        if line.startswith("I "):
            inode = int(line[2:])
        elif line.startswith("core.mode"):
            is_file = int(line.split()[-1], 8) & 0o170000 == 0o100000
        elif is_file and (it := re.match(r"data offset (\d+) startblock \d+ \((\d+)/(\d+)\) count (\d+)", line)):
            offset, group, within, count = map(int, it.groups())
            first = group * geometry.group + within
            blocks |= {(inode, offset + step, first + step) for step in range(count)}
    return blocks


def assert_owners(path, names=None):
    """Asserts that all bytes have the owners that xfs_db knows, and files the names in `names`."""
    geometry, listing = Geometry(path), owners.listing(path)
    assert not listing.is_partial
    size, end = geometry.block, 0
    for extent in sorted(listing.extents, key=lambda it: it.offset):
        assert extent.offset == end or (extent.offset < end and extent.kind == "file"), extent
        end = max(end, extent.offset + extent.length)
    assert end == geometry.blocks * size
    used, ours, files = used_blocks(path, geometry), collections.defaultdict(set), set()
    for extent in listing.extents:
        first, last = extent.offset // size, (extent.offset + extent.length - 1) // size
        for block in range(first, last + 1):
            ours[block].add((NAMES.get(extent.kind, extent.kind), extent.object))
        if extent.kind == "file":
            start = extent.start // size
            files |= {(extent.object, start + step, first + step) for step in range(last - first + 1)}
    for block in range(geometry.blocks):
        kind, inode = used[block]
        kinds = {it[0] for it in ours[block]}
        # These are content of the file or directory to xfs_db.
        if kinds == {"bmbt block"}:
            kinds = {kind}
        assert kinds == {kind}, (block, used[block], ours[block])
        assert inode is None or inode in {it[1] for it in ours[block]}, (block, used[block], ours[block])
    if names is None:
        text = xfs_db(path, "blockget -n", "ncheck")
        names = {int(it): None for it in re.findall(r"^\s*(\d+) ", text, re.MULTILINE)}
    assert files == file_blocks(path, geometry, names)
    for extent in listing.extents:
        expected = names.get(extent.object)
        assert not expected or len(expected) > 16 or set(extent.paths) == expected, extent


def names_of(path):
    names = collections.defaultdict(set)
    with mounted(path, "ro,norecovery") as root:
        top = bytes(root)
        for folder, folders, files in os.walk(top):
            for name in folders + files:
                full = os.path.join(folder, name)
                names[os.lstat(full).st_ino].add(b"/" + os.path.relpath(full, top))
    return names


def assert_clean(path):
    is_clean, text = owners.check(path)
    assert is_clean, text


def has_alarm(text):
    """Returns whether a check found damage, and not only what it could not judge."""
    return '"verdict":"damaged"' in text


MOUNTED = {
    "default": "",
    "b1024": "-b size=1024 -n size=4096 -d agcount=5",
    "b64k": "-b size=65536 -m rmapbt=1",
    "rmapbt": "-m rmapbt=1 -i nrext64=1 -d agcount=3",
    "noreflink": "-m reflink=0,finobt=0,inobtcount=0,bigtime=0",
    "i2048": "-i size=2048 -n size=16384",
    "sectors": "-s size=4096 -d agcount=2",
    "stripes": "-d su=64k,sw=2 -i sparse=0",
}
QUICK = {"rmapbt", "b1024"}


@pytest.mark.parametrize(
    "name", [it if it in QUICK else pytest.param(it, marks=pytest.mark.slow) for it in MOUNTED]
)
def test_owners(workdir, name):
    path = make(workdir / "fs", *MOUNTED[name].split(), size=(1024 if name == "b64k" else 96) * MIB)
    with mounted(path) as root:
        fill(root)
    assert_clean(path)
    assert_owners(path, names_of(path))


@pytest.mark.parametrize("options", ["-b size=512", "-n ftype=1", "-n size=8192 -i attr=1", "-l version=1"])
def test_version_4(workdir, options):
    path = make(workdir / "fs", "-m", "crc=0", *options.split(), "-p", str(prototype(workdir)))
    assert_clean(path)
    assert_owners(path)


def test_features_of_later_kernels(workdir):
    path = make(workdir / "fs")
    with open(path, "r+b") as file:
        file.seek(218)
        file.write(b"\x01")
    result = owners.attempt("check", path)
    assert result.returncode not in (0, 1) or b"metadata directories" in result.stdout
    assert b"metadata directories" in result.stdout


def flips(path, count, seed=1):
    """Flips single bits in metadata, and asserts that each is found that xfs_repair finds, or the CRC covers."""
    source = random.Random(seed)
    without = ("file", "free", "free list", "journal", "AG header", "CoW staging extent")
    kinds = collections.defaultdict(list)
    for extent in owners.listing(path).extents:
        if extent.kind not in without:
            kinds[extent.kind].append(extent)
    assert len(kinds) >= 12
    for kind in source.choices(sorted(kinds), k=count):
        extent = source.choice(kinds[kind])
        place, bit = extent.offset + source.randrange(extent.length), 1 << source.randrange(8)
        with open(path, "r+b", buffering=0) as file:
            byte = os.pread(file.fileno(), 1, place)
            os.pwrite(file.fileno(), bytes([byte[0] ^ bit]), place)
            result = owners.attempt("check", path)
            repair = images.attempt("xfs_repair", "-n", str(path))
            os.pwrite(file.fileno(), byte, place)
        output = repair.stdout + repair.stderr
        assert result.returncode != 0, (kind, place, bit, output)
        assert repair.returncode != 0 or b"CRC" in output, (kind, place, bit, result)


def test_flips(workdir):
    path = make(workdir / "fs", "-m", "rmapbt=1", "-d", "agcount=2")
    with mounted(path) as root:
        fill(root)
    flips(path, 40)


@pytest.mark.slow
@pytest.mark.parametrize("options", ["-b size=1024 -n size=4096", "-b size=16384 -m reflink=0", "-s size=4096"])
def test_many_flips(workdir, options):
    path = make(workdir / "fs", *options.split(), "-d", "agcount=2", size=96 * MIB)
    with mounted(path) as root:
        fill(root)
    flips(path, 300)


def work(root, stop, seed):
    """Changes files until it is stopped, or the file system fails."""
    source, folder = random.Random(seed), root / f"work{seed}"
    with contextlib.suppress(OSError):
        folder.mkdir()
        while not stop.is_set():
            for number in range(150):
                (folder / f"{number}{'n' * 40}").write_bytes(source.randbytes(source.randrange(9000)))
            for number in range(0, 150, 3):
                os.symlink("y" * 900, folder / f"link{number}")
                os.setxattr(folder / f"{number}{'n' * 40}", "user.a", source.randbytes(3000))
            images.attempt("sync", "-f", str(root))
            shutil.rmtree(folder)
            folder.mkdir()


@contextlib.contextmanager
def busy(root):
    stop = threading.Event()
    threads = [threading.Thread(target=work, args=(root, stop, seed)) for seed in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_crashed(workdir):
    path = make(workdir / "fs")
    with mounted(path) as root, busy(root):
        stop = threading.Event()
        stop.wait(0.7)
        images.run("xfs_io", "-x", "-c", "shutdown", str(root))
    _, text = owners.check(path)
    assert not has_alarm(text), text
    assert any("was not replayed" in it for it in owners.listing(path).remarks)
    with mounted(path):
        pass
    assert_clean(path)
    assert not owners.listing(path).remarks


@pytest.mark.slow
def test_live_copies(workdir):
    path, copy = make(workdir / "fs", size=128 * MIB), workdir / "copy"
    with mounted(path) as root, busy(root):
        for number in range(20):
            threading.Event().wait(0.05 * (number % 5))
            shutil.copyfile(path, copy)
            _, text = owners.check(copy)
            assert not has_alarm(text), text


@pytest.mark.slow
def test_grown_and_defragmented(workdir):
    path = make(workdir / "fs", "-m", "rmapbt=1")
    with mounted(path) as root:
        fill(root)
    os.truncate(path, 150 * MIB)
    with mounted(path) as root:
        images.run("xfs_growfs", str(root))
        fill(root / "big", seed=2)
        images.run("xfs_fsr", str(root))
    assert_clean(path)
    assert_owners(path, names_of(path))


@pytest.mark.slow
@pytest.mark.parametrize("options", ["-m rmapbt=1", "-b size=1024 -n size=4096"])
def test_mutants(workdir, options):
    """Whatever is in the metadata, a walk ends, with bounded memory."""
    path, mutant = make(workdir / "fs", *options.split()), workdir / "mutant"
    with mounted(path) as root:
        fill(root)
    extents = [it for it in owners.listing(path).extents if it.kind not in ("file", "free")]
    source = random.Random(1)
    for _ in range(200):
        shutil.copyfile(path, mutant)
        with open(mutant, "r+b") as file:
            for _ in range(source.choice([1, 5, 50])):
                extent = source.choice(extents)
                file.seek(extent.offset + source.randrange(min(extent.length, 4096)))
                file.write(source.choice([b"\xff" * 8, bytes(8), source.randbytes(4), b"\x7f"]))
        for verb in ("check", "owners"):
            command = f"ulimit -v 1000000; exec timeout 20 {owners.program()} {verb} {mutant}"
            result = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True)
            assert result.returncode in (0, 1, 2) and b"panicked" not in result.stderr, result
