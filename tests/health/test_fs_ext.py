"""Owners and checksums of ext2, ext3 and ext4, compared with debugfs, dumpe2fs and e2fsck."""

import contextlib
import os
import random
import re
import shutil
import subprocess
import threading

import pytest

import filesystems
import images
import owners

MIB = 1 << 20

# Number of blocks that debugfs is asked about at once, because a command line has a limit.
AT_ONCE = 12000

pytestmark = pytest.mark.skipif(not shutil.which("debugfs"), reason="needs e2fsprogs")


def debugfs(path, command, *options):
    environ = os.environ | {"DEBUGFS_PAGER": "__none__", "PAGER": "cat"}
    return images.run("debugfs", *options, "-R", command, str(path), env=environ).decode("latin-1")


def make(path, *options, size=48 * MIB, folder=None):
    """Creates a file system with the files of a folder."""
    with open(path, "wb") as file:
        file.truncate(size)
    source = ["-d", str(folder)] if folder else []
    images.run("mke2fs", "-q", "-F", *options, *source, str(path))
    return path


def fill(root, seed=1):
    """Fills a folder with files of every kind."""
    source = random.Random(seed)
    (root / "small").mkdir()
    for number in range(200):
        size = source.choice([0, 1, 50, 100, 1000, 5000, 20000])
        (root / "small" / f"{number}").write_bytes(source.randbytes(size))
    many = root / "a folder of many names"
    many.mkdir()
    for number in range(1500):
        (many / f"number {number} {'x' * source.randrange(60)}").touch()
    (many / ("n" * 255)).write_bytes(b"long")
    (many / "\N{SNOWMAN}").write_bytes(source.randbytes(30000))
    with open(root / "sparse", "wb") as file:
        for _ in range(40):
            file.seek(source.randrange(1 << source.randrange(10, 31)))
            file.write(source.randbytes(source.randrange(1, 9000)))
    with open(root / "comb", "wb") as file:
        for number in range(400):
            file.seek(number * 8192)
            file.write(b"tooth")
    for target in ["short", "l" * 300]:
        (root / f"link{len(target)}").symlink_to(target)
    os.link(root / "comb", root / "small" / "another name")
    os.mkfifo(root / "fifo")
    with contextlib.suppress(OSError):
        for number in range(9):
            os.setxattr(root / "small" / f"{number}", "user.test", bytes([number % 3]) * 700)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("folder")
    fill(root)
    return root


def fields_of(path):
    """Returns the fields that dumpe2fs prints of the superblock, and the free clusters as it prints them."""
    text = images.run("dumpe2fs", str(path)).decode("latin-1")
    fields = dict(re.findall(r"^([A-Z][^:\n]*):[ \t]+(.*)$", text, re.MULTILINE)[::-1])
    lists = re.findall(r"^  Free blocks: (.*)$", text, re.MULTILINE)
    ranges = re.findall(r"(\d+)(?:-(\d+))?", " ".join(lists))
    return fields, [(int(first), int(last or first)) for first, last in ranges]


def blocks_of(path, inode):
    """Returns the pairs of a block of a file and of the file system, as debugfs prints them."""
    text = debugfs(path, f"stat <{inode}>")
    found = re.search(r"^(?:BLOCKS|EXTENTS):\n(.*?)(?:\nTOTAL|\Z)", text, re.MULTILINE | re.DOTALL)
    pairs = set()
    pattern = r"\((\d+)[^)]*\):(\d+)(?:-(\d+))?"
    for logical, first, last in re.findall(pattern, found[1] if found else ""):
        for index, block in enumerate(range(int(first), int(last or first) + 1)):
            pairs.add((int(logical) + index, block))
    return pairs


def users_of(path, blocks):
    """Returns the inode of each block that has one."""
    users = {}
    for start in range(0, len(blocks), AT_ONCE):
        text = debugfs(path, "icheck " + " ".join(map(str, blocks[start : start + AT_ONCE])))
        users |= {int(it): int(inode) for it, inode in re.findall(r"^(\d+)\t(\d+)$", text, re.M)}
    return users


def assert_equal(path, samples=40):
    """Asserts that every block has the owner that e2fsprogs know, files their content, and objects their names."""
    listing = owners.listing(path)
    assert not listing.is_partial
    fields, free = fields_of(path)
    size = int(fields["Block size"])
    ratio = int(fields.get("Cluster size", size)) // size
    first, count = int(fields["First block"]), int(fields["Block count"])
    found = {}
    for extent in listing.extents:
        for block in range(extent.offset // size, -(-(extent.offset + extent.length) // size)):
            found.setdefault(block, []).append((extent, block))
    ours = {it for it, extents in found.items() if any(it.kind == "free" for it, _ in extents)}
    theirs = {it for start, last in free for it in range(start, last + ratio) if it < count}
    assert ours == theirs
    blocks = range(first, count)
    users = users_of(path, blocks)
    for block in blocks:
        extents = [extent for extent, _ in found.get(block, [])]
        assert len(extents) <= 1 or block == 0, (block, extents)
        objects = {8 if it.kind == "journal" else it.object for it in extents}
        kinds = {it.kind for it in extents}
        if block not in users:
            assert objects <= {None}, (block, extents)
        elif not kinds & {"reserved GDT blocks", "xattr block"}:
            assert objects == {users[block]}, (block, users[block], extents)
    compare_files(path, listing, size, samples)


def compare_files(path, listing, size, samples):
    files = {}
    names = {}
    for extent in listing.extents:
        if extent.kind == "file":
            pairs = files.setdefault(extent.object, set())
            for at in range(0, extent.length, size):
                pairs.add(((extent.start + at) // size, (extent.offset + at) // size))
            names[extent.object] = {it.decode() for it in extent.paths}
    chosen = random.Random(3).sample(sorted(files), min(samples, len(files)))
    chosen += sorted(files, key=lambda it: -len(files[it]))[:3]
    for inode in chosen:
        assert blocks_of(path, inode) == files[inode], inode
    text = images.run("debugfs", "-R", "ncheck " + " ".join(map(str, chosen)), str(path)).decode()
    theirs = {}
    for inode, name in re.findall(r"^(\d+)\t(.*)$", text, re.MULTILINE):
        theirs.setdefault(int(inode), set()).add(name.replace("//", "/"))
    assert theirs == {inode: names[inode] for inode in chosen}


def assert_clean(path):
    assert e2fsck(path) == 0
    assert owners.check(path)[0], owners.check(path)


def e2fsck(path, *options):
    options = options or ["-fn"]
    return images.attempt("e2fsck", *options, str(path)).returncode


QUICK = {
    "ext2": ["-t", "ext2", "-b", "1024"],
    "revision 0": ["-t", "ext2", "-r", "0", "-b", "1024"],
    "ext3": ["-t", "ext3", "-b", "2048"],
    "ext4": ["-t", "ext4", "-b", "4096"],
    "small blocks": ["-t", "ext4", "-b", "1024"],
    "large blocks": ["-t", "ext4", "-b", "65536", "-N", "4096"],
    "crc16": ["-t", "ext4", "-b", "1024", "-O", "^metadata_csum,uninit_bg"],
    "small descriptors": ["-t", "ext4", "-b", "1024", "-O", "^64bit"],
    "meta groups": ["-t", "ext4", "-b", "1024", "-g", "1024", "-O", "meta_bg,^resize_inode"],
    "clusters": ["-t", "ext4", "-b", "4096", "-O", "bigalloc", "-C", "16384"],
    "inline": ["-t", "ext4", "-b", "1024", "-O", "inline_data", "-I", "512"],
    "maps": ["-t", "ext4", "-b", "1024", "-O", "^extent,^64bit"],
}

MORE = {
    "no flexible groups": ["-O", "^flex_bg"],
    "many copies": ["-O", "^sparse_super,^resize_inode"],
    "two copies": ["-O", "sparse_super2,^resize_inode"],
    "small inodes": ["-I", "128"],
    "inodes for attributes": ["-O", "ea_inode"],
    "quota": ["-O", "quota,project"],
    "protection": ["-O", "mmp"],
    "seed": ["-O", "metadata_csum_seed"],
    "orphan file": ["-O", "orphan_file"],
    "fast commits": ["-O", "fast_commit"],
    "no index": ["-O", "^dir_index"],
    "small groups": ["-g", "2048"],
    "no types": ["-O", "^filetype"],
    "initialised": ["-E", "lazy_itable_init=0"],
    "no journal": ["-O", "^has_journal"],
}


@pytest.mark.parametrize("options", QUICK.values(), ids=QUICK)
def test_features(workdir, folder, options):
    size = 256 * MIB if "65536" in options else 48 * MIB
    path = make(workdir / "fs", *options, size=size, folder=folder)
    assert_equal(path, samples=10)
    assert_clean(path)


@pytest.mark.slow
@pytest.mark.parametrize("block_size", ["1024", "2048", "4096", "8192"])
@pytest.mark.parametrize("options", MORE.values(), ids=MORE)
def test_more_features(workdir, folder, options, block_size):
    options = ["-t", "ext4", "-b", block_size, *options]
    path = make(workdir / "fs", *options, size=96 * MIB, folder=folder)
    # mke2fs does not count the files of the folder in quotas.
    assert e2fsck(path, "-fy") <= 1
    assert_equal(path)
    assert_clean(path)


def test_external_journal(workdir):
    path = make(workdir / "journal", "-O", "journal_dev", "-b", "4096", size=16 * MIB)
    listing = owners.listing(path)
    kinds = [(it.offset, it.length, it.kind) for it in listing.extents]
    assert kinds[2:] == [(4096, 16 * MIB - 4096, "journal")]
    assert b'"layer":"jbd"' in owners.attempt("check", path).stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", [["-b", "1024"], ["-b", "4096", "-O", "inline_data,mmp"]], ids=str)
def test_flips(workdir, folder, options):
    """Whatever e2fsck objects to because of a checksum is found."""
    path = make(workdir / "fs", "-t", "ext4", *options, folder=folder)
    source = random.Random(4)
    unprotected = {"file", "free", "journal", "boot block", "reserved GDT blocks"}
    kinds = {}
    for extent in owners.listing(path).extents:
        if extent.kind not in unprotected and not extent.kind.startswith("backup"):
            kinds.setdefault(extent.kind, []).append(extent)
    for _ in range(60):
        extent = source.choice(kinds[source.choice(sorted(kinds))])
        with filesystems.changed(path, extent.offset + source.randrange(extent.length)):
            result = images.attempt("e2fsck", "-fn", str(path))
            is_found = not owners.check(path)[0]
        if b"checksum" in result.stdout + result.stderr:
            assert is_found, (extent, result.stdout)


@contextlib.contextmanager
def mounted(path, options="rw"):
    with filesystems.attached(path) as device:
        folder = path.with_suffix(".mounted")
        folder.mkdir(exist_ok=True)
        images.run("mount", "-o", options, device, str(folder))
        try:
            yield folder
        finally:
            images.run("umount", str(folder))


def write_meanwhile(root, stop):
    source = random.Random(6)
    for number in range(1 << 20):
        if stop.is_set():
            return
        path = root / f"folder {number % 10}" / f"{source.randrange(300)}"
        path.parent.mkdir(exist_ok=True)
        if path.exists() and source.random() < 0.6:
            path.unlink()
        else:
            path.write_bytes(source.randbytes(source.choice([10, 3000, 70000])))


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("options", [[], ["-O", "^extent,^64bit"], ["-O", "^metadata_csum"]], ids=str)
def test_unreplayed(workdir, options):
    """A copy of a mounted file system is read as it is after the replay of its journal."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    path = make(workdir / "fs", "-t", "ext4", "-b", "1024", *options, size=64 * MIB)
    copies = [workdir / f"copy{number}" for number in range(3)]
    with mounted(path) as root:
        stop = threading.Event()
        writer = threading.Thread(target=write_meanwhile, args=(root, stop))
        writer.start()
        try:
            for copy in copies:
                subprocess.run(["sleep", "2"], check=True)
                images.run("sync", "-f", str(root))
                images.run("cp", "--sparse=always", str(path), str(copy))
        finally:
            stop.set()
            writer.join()
    for copy in copies:
        before, is_clean = owners.listing(copy), owners.check(copy)[0]
        assert any("replay" in remark for remark in before.remarks)
        debugfs(copy, "journal_run", "-w")
        assert owners.listing(copy).extents == before.extents
        # What e2fsck must repair can be torn in the copy.
        assert is_clean or e2fsck(copy, "-fp") > 1
