"""Files that share extents on btrfs and XFS: comparisons that do not read them, compared with the bytes of both."""

import contextlib
import ctypes
import ctypes.util
import fcntl
import mmap
import os
import random
import struct
import subprocess
import threading
import time

import pytest

import filesystems
import images
from commands import blksum_path
from maps import attempt, blkmap

pytestmark = pytest.mark.root

KIB = 1 << 10
MIB = 1 << 20
PAGE = 4 * KIB

# Number of random files of each test. More for a long run.
FILES = int(os.environ.get("REFLINK_FILES", "12"))

PROGRAM = str(blksum_path().with_name("blkhash"))

FICLONE = 0x40049409
FICLONERANGE = 0x4020940D
PUNCH_HOLE, ZERO_RANGE, KEEP_SIZE = 2, 16, 1


@pytest.fixture(autouse=True, scope="module")
def possible():
    filesystems.require()


def fails(status, says, *args):
    result = attempt(*args)
    assert result.returncode == status and says in result.stderr.decode(), (args, says, result)


@contextlib.contextmanager
def btrfs(path, options="rw"):
    filesystems.make([path], size=768 * MIB)
    with filesystems.mounted([path], options) as root:
        yield root


@contextlib.contextmanager
def mounted(kind, folder):
    """Temporarily mounts a new file system of this kind, and returns a folder in it."""
    path = folder / "volume.img"
    manager = {
        "btrfs": lambda: btrfs(path),
        "zstd": lambda: btrfs(path, "rw,compress-force=zstd"),
        "nodatacow": lambda: btrfs(path),
        "xfs": lambda: filesystems.xfs(path),
        "xfs-1k": lambda: filesystems.xfs(path, "-b", "size=1024"),
    }
    with manager[kind]() as root:
        if kind == "nodatacow":
            images.run("chattr", "+C", str(root))
        yield root
    path.unlink()


KINDS = ["btrfs", "zstd", "nodatacow", "xfs", "xfs-1k"]


def clone(source, target):
    with open(source, "rb") as file, open(target, "wb") as copy:
        fcntl.ioctl(copy, FICLONE, file.fileno())


def clone_range(source, offset, length, target, place):
    with open(source, "rb") as file, open(target, "r+b") as copy:
        request = struct.pack("qQQQ", file.fileno(), offset, length, place)
        with contextlib.suppress(OSError):
            # Ranges that overlap in one file, or end past its end, are refused.
            fcntl.ioctl(copy, FICLONERANGE, request)


def fallocate(path, mode, offset, length):
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    with open(path, "r+b") as file:
        arguments = [ctypes.c_int(mode), ctypes.c_long(offset), ctypes.c_long(length)]
        libc.fallocate(file.fileno(), *arguments)


def write(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def write_mapped(path, offset, data):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        end = min(offset + len(data), len(memory))
        memory[offset:end] = data[: end - offset]


def random_bytes(rng, length):
    return rng.choice([rng.randbytes, bytes, lambda n: bytes([rng.randrange(1, 256)]) * n])(length)


def random_file(rng, path, size):
    path.touch()
    os.truncate(path, size)
    for _ in range(rng.randrange(1, 9)):
        offset, length = rng.randrange(size), rng.randrange(1, 300 * KIB)
        if rng.random() < 0.2:
            fallocate(path, KEEP_SIZE, offset, min(length, size - offset))
        write(path, offset, random_bytes(rng, min(length, size - offset)))
    if rng.random() < 0.6:
        images.run("sync", "-f", str(path))


def change(rng, path, other):
    """Changes a file, or what it shares with another one."""
    size = path.stat().st_size
    offset = rng.randrange(max(size, 1))
    length = rng.choice([1, 511, PAGE, rng.randrange(1, 200 * KIB)])
    kind = rng.randrange(9)
    if kind <= 1 or size == 0:
        write(path, offset, random_bytes(rng, length))
    elif kind == 2:
        write_mapped(path, offset, random_bytes(rng, length))
    elif kind == 3:
        fallocate(path, rng.choice([PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE | KEEP_SIZE]), offset, length)
    elif kind == 4:
        fallocate(path, rng.choice([0, KEEP_SIZE]), rng.randrange(size + MIB), length)
    elif kind == 5:
        os.truncate(path, rng.choice([size, offset, size + rng.randrange(100 * KIB), offset // PAGE * PAGE]))
    elif kind == 6:
        # The same bytes again, in another place.
        write(path, offset, path.read_bytes()[offset : offset + length])
    else:
        source = rng.choice([path, other])
        places = [rng.randrange(size // PAGE + 1) * PAGE for _ in range(2)]
        if rng.random() < 0.4:
            places[1] = places[0]
        clone_range(source, places[0], rng.randrange(1, 40) * PAGE, path, places[1])
    if rng.random() < 0.15:
        with open(path, "rb") as file:
            os.fsync(file)


def differing(one, other, size):
    """Returns the offsets of the pages that differ, as far as both reach. A short page is padded with zeros."""
    end = -(-min(len(one), len(other)) // size) * size
    one, other = (data[:end].ljust(end, b"\0") for data in (one, other))
    return {at for at in range(0, end, size) if one[at : at + size] != other[at : at + size]}


def pages(lines, size):
    """Returns the offsets of the pages in extents."""
    extents = [tuple(map(int, line.split()[:2])) for line in lines.splitlines()]
    return {page * size for at, length in extents for page in range(at // size, -(-(at + length) // size))}


def compare(one, other):
    """Compares two files in both ways, and returns how many bytes the second way calls changed."""
    contents = [path.read_bytes() for path in (one, other)]
    expected = differing(*contents, PAGE)
    result = attempt("diff", "--block-size", "4K", "--extents", one, other)
    assert result.returncode == int(contents[0] != contents[1]), result
    # What only the larger one has is one extent more, with the page in which the smaller one ends.
    is_one_size = len(contents[0]) == len(contents[1])
    end = max(map(len, contents)) if is_one_size else min(map(len, contents)) // PAGE * PAGE
    found = pages(result.stdout.decode(), PAGE)
    assert {at for at in found ^ expected if at < end} == set(), (found ^ expected, result)
    changes = blkmap("changes", "--reflink", one, other)
    listed = pages(changes, PAGE)
    common = min(map(len, contents))
    changed = differing(*(data[:common] for data in contents), PAGE)
    assert changed <= listed, changed - listed
    if len(contents[1]) > len(contents[0]):
        assert len(contents[1]) - 1 in range(*last(changes))
    return length_of(changes)


def length_of(lines):
    return sum(int(line.split()[1]) for line in lines.splitlines())


def last(lines):
    at, length = map(int, lines.splitlines()[-1].split())
    return at, at + length


def random_copies(rng, root, number):
    """Returns a file and a changed copy that shares extents with it."""
    one, other = root / f"{number}.a", root / f"{number}.b"
    random_file(rng, one, rng.choice([rng.randrange(1, 100), rng.randrange(1, 2 * MIB), rng.randrange(1, 400) * PAGE]))
    clone(one, other)
    for _ in range(rng.randrange(7)):
        change(rng, *rng.choice([(one, other), (other, one)]))
    return one, other


@pytest.mark.parametrize("kind", KINDS)
def test_random_copies(workdir, kind):
    rng = random.Random(f"{kind} {FILES}")
    with mounted(kind, workdir) as root:
        for number in range(FILES):
            one, other = random_copies(rng, root, number)
            compare(one, other)
            compare(other, one)
            # Written back by now.
            compare(one, other)
            one.unlink()
            other.unlink()


def test_random_files_in_snapshots(workdir):
    rng = random.Random(FILES)
    with mounted("btrfs", workdir) as root:
        old = root / "old"
        images.run("btrfs", "subvolume", "create", str(old))
        files = [old / str(number) for number in range(FILES)]
        for path in files:
            random_file(rng, path, rng.randrange(1, MIB))
        for name in ("new", "newer"):
            images.run("btrfs", "subvolume", "snapshot", str(old), str(root / name))
        for path in files:
            new, newer = (root / name / path.name for name in ("new", "newer"))
            for _ in range(rng.randrange(5)):
                change(rng, *rng.choice([(new, newer), (newer, path)]))
            compare(path, new)
            compare(new, newer)


@pytest.mark.parametrize("kind", ["btrfs", "nodatacow", "xfs", "xfs-1k"])
def test_only_what_changed_is_listed(workdir, kind):
    with mounted(kind, workdir) as root:
        one, other = root / "one", root / "other"
        one.write_bytes(random.Random(1).randbytes(20 * MIB))
        clone(one, other)
        assert blkmap("changes", "--reflink", one, other) == ""
        write(other, 5 * MIB, bytes(PAGE))
        write_mapped(other, 9 * MIB + 7, b"x")
        fallocate(other, PUNCH_HOLE | KEEP_SIZE, 12 * MIB, 64 * KIB)
        assert blkmap("changes", "--reflink", one, other) == f"{5 * MIB} {PAGE}\n{9 * MIB} {PAGE}\n{12 * MIB} {64 * KIB}\n"
        assert compare(one, other) == 2 * PAGE + 64 * KIB
        # The other direction, a shorter one and a longer one.
        assert compare(other, one) == 2 * PAGE + 64 * KIB
        os.truncate(other, 8 * MIB)
        assert compare(one, other) == PAGE
        assert blkmap("changes", "--reflink", other, one) == f"{5 * MIB} {PAGE}\n{8 * MIB} {12 * MIB}\n"


def test_snapshots(workdir):
    with mounted("btrfs", workdir) as root:
        live = root / "live"
        images.run("btrfs", "subvolume", "create", str(live))
        (live / "disk").write_bytes(random.Random(1).randbytes(20 * MIB))
        images.run("btrfs", "subvolume", "snapshot", "-r", str(live), str(root / "monday"))
        write(live / "disk", MIB, b"changed")
        images.run("btrfs", "subvolume", "snapshot", "-r", str(live), str(root / "tuesday"))
        monday, tuesday = root / "monday/disk", root / "tuesday/disk"
        assert blkmap("changes", "--reflink", monday, tuesday) == f"{MIB} {PAGE}\n"
        assert compare(monday, tuesday) == PAGE
        assert compare(tuesday, live / "disk") == 0


def test_without_places_everything_is_read(workdir):
    """Compressed and inline content, and preallocated space."""
    rng = random.Random(2)
    with mounted("zstd", workdir) as root:
        one, other = root / "one", root / "other"
        one.write_bytes(b"compressible" * MIB)
        clone(one, other)
        assert compare(one, other) == one.stat().st_size
    with mounted("btrfs", workdir) as root:
        one, other = root / "one", root / "other"
        one.write_bytes(rng.randbytes(1000))
        images.run("sync", "-f", str(root))
        images.run("cp", "--reflink=auto", str(one), str(other))
        assert compare(one, other) == 1000
    for kind in ("btrfs", "xfs"):
        with mounted(kind, workdir) as root:
            one, other = root / "one", root / "other"
            one.touch()
            fallocate(one, 0, 0, 4 * MIB)
            write(one, MIB, rng.randbytes(MIB))
            clone(one, other)
            assert compare(one, other) <= 3 * MIB
            assert pages(blkmap("changes", "--reflink", one, other), PAGE).isdisjoint(range(MIB, 2 * MIB))
            # A whole copy.
            images.run("cp", "--reflink=never", str(one), str(root / "copy"))
            assert compare(one, root / "copy") >= MIB


def test_holes_that_are_not_trusted(workdir):
    with mounted("btrfs", workdir) as root:
        one, other = root / "one", root / "other"
        one.write_bytes(random.Random(3).randbytes(4 * MIB))
        clone(one, other)
        for option in (["--holes", "verify"], ["--holes", "ignore"], ["--force-share"]):
            assert blkmap("diff", *option, one, other) == "no differences in 64 blocks\n"
            fails(2, "extents shared with", "changes", *option, "--reflink", one, other)


def test_other_file_systems_are_an_error(workdir):
    one, other = workdir / "one", workdir / "other"
    one.write_bytes(bytes(MIB))
    other.write_bytes(bytes(MIB))
    blkmap("create", "-o", "m.blkmap", one)
    says = "extents shared with the older image are unknown: both must be on one btrfs or XFS file system"
    fails(2, says, "changes", "--reflink", one, other)
    fails(2, says, "update", "--reflink", one, "m.blkmap", other)
    fails(2, says, "audit", "--reflink", one, "m.blkmap", other)
    with mounted("btrfs", workdir) as root:
        (root / "other").write_bytes(bytes(MIB))
        fails(2, says, "changes", "--reflink", one, root / "other")


@pytest.mark.parametrize("kind", ["btrfs", "xfs"])
def test_maps_are_updated(workdir, kind):
    rng = random.Random(4)
    with mounted(kind, workdir) as root:
        one, other = root / "one", root / "other"
        one.write_bytes(rng.randbytes(8 * MIB + 1000))
        blkmap("create", "-o", "m.blkmap", one)
        clone(one, other)
        write(other, 3 * MIB, b"x" * 100_000)
        os.truncate(other, 9 * MIB + 5)
        text = blkmap("update", "--reflink", one, "--sample", "100", "-o", "n.blkmap", "m.blkmap", other)
        # Two blocks, the last one, and what is new.
        assert text.startswith("n.blkmap: 19 of 145 blocks read"), text
        blkmap("create", "-o", "f.blkmap", other)
        contents = [blkmap("export", "--to", "lines", name) for name in ("n.blkmap", "f.blkmap")]
        assert contents[0] == contents[1]
        assert blkmap("audit", "--reflink", one, "m.blkmap", other).startswith("every change is listed: ")
        assert '"by":"reflink"' in blkmap("show", "--json", "n.blkmap").replace(" ", "")
        # The map of another file, and of an earlier state.
        fails(3, "is not the map of the older image", "update", "--reflink", one, "f.blkmap", other)
        fails(3, "is not the map of the older image", "update", "--reflink", other, "m.blkmap", other)
        write(one, 0, b"y")
        fails(3, "is not the map of the older image", "update", "--reflink", one, "m.blkmap", other)
        blkmap("update", "--trust", "--reflink", one, "m.blkmap", other)


@pytest.mark.parametrize("kind", ["btrfs", "xfs"])
def test_qcow2_images(workdir, kind):
    rng = random.Random(5)
    with mounted(kind, workdir) as root:
        for number in range(max(2, FILES // 4)):
            one, other = root / "one.qcow2", root / "other.qcow2"
            images.create(one, 64 * MIB, "-o", f"cluster_size={rng.choice([PAGE, 64 * KIB, MIB])}")
            images.qemu_io(one, *(f"write -P {rng.randrange(256)} {rng.randrange(900) * 64 * KIB} 3M" for _ in range(9)))
            clone(one, other)
            # The last cluster may be longer than the file.
            assert length_of(blkmap("changes", "--reflink", one, other)) <= MIB
            for path in (one, other, other):
                offset = rng.randrange(900) * 64 * KIB
                images.qemu_io(path, f"write -P {rng.randrange(256)} {offset} {rng.choice([512, 70_656, 2 * MIB])}")
            raws = [images.to_raw(path, root / f"{path.name}.raw").read_bytes() for path in (one, other)]
            expected = differing(*raws, 64 * KIB)
            result = attempt("diff", "--extents", one, other)
            assert pages(result.stdout.decode(), 64 * KIB) == expected, number
            changes = blkmap("changes", "--reflink", one, other)
            listed = pages(changes, 64 * KIB)
            assert expected <= listed and len(listed) <= 200, (number, len(listed))
            for path in root.glob("*.qcow2*"):
                path.unlink()


@contextlib.contextmanager
def beside(work):
    """Repeats work in another thread."""
    stop = threading.Event()

    def loop():
        while not stop.is_set():
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("what", ["balance", "defragment"])
def test_extents_that_move(workdir, what):
    rng = random.Random(6)
    with mounted("btrfs", workdir) as root:
        files = []
        for number in range(8):
            one, other = root / f"{number}.a", root / f"{number}.b"
            one.write_bytes(rng.randbytes(3 * MIB))
            clone(one, other)
            for _ in range(40):
                write(rng.choice([one, other]), rng.randrange(700) * PAGE, rng.randbytes(PAGE))
            files.append((one, other))
        contents = {path: path.read_bytes() for pair in files for path in pair}
        moves = []

        def move():
            if what == "balance":
                images.attempt("btrfs", "balance", "start", "--full-balance", str(root))
            else:
                images.attempt("btrfs", "filesystem", "defragment", "-f", str(rng.choice(files)[rng.randrange(2)]))
            moves.append(what)

        with beside(move):
            for number in range(8 * FILES):
                one, other = rng.choice(files)
                expected = differing(contents[one], contents[other], PAGE)
                result = attempt("diff", "--block-size", "4K", "--extents", one, other)
                assert result.returncode == 1, result
                assert pages(result.stdout.decode(), PAGE) == expected, number
                # Several files, of which none shares anything with a file of another pair.
                strangers = rng.sample(files, 2)
                paths = [rng.choice(pair) for pair in strangers]
                expected = differing(*(contents[path] for path in paths), PAGE)
                result = attempt("diff", "--block-size", "4K", "--extents", *paths)
                assert pages(result.stdout.decode(), PAGE) == expected, number
        assert len(moves) > 1


@pytest.mark.parametrize("kind", ["btrfs", "nodatacow", "xfs"])
@pytest.mark.parametrize("way", ["write", "map"])
def test_a_writer_beside(workdir, kind, way):
    """A file that changes all the time. Where the comparison ends before the writer has a processor, there is a result."""
    rng = random.Random(7)
    with mounted(kind, workdir) as root:
        one, other = root / "one", root / "other"
        one.write_bytes(rng.randbytes(96 * MIB))
        clone(one, other)
        write(other, 16 * MIB, rng.randbytes(80 * MIB))
        stop = threading.Event()

        def change_all_the_time():
            with open(other, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
                original = memory[5 * MIB : 5 * MIB + 100]
                while not stop.is_set():
                    for data in (b"x" * 100, original):
                        if way == "map":
                            memory[5 * MIB : 5 * MIB + 100] = data
                        else:
                            os.pwrite(file.fileno(), data, 5 * MIB)

        thread = threading.Thread(target=change_all_the_time)
        thread.start()
        try:
            results = [attempt("diff", one, other) for _ in range(12)]
            assert all(result.returncode in (0, 1, 2, 3) for result in results), results
            assert any(b"changed while it was read" in result.stderr for result in results), results
        finally:
            stop.set()
            thread.join()
        assert compare(one, other) <= 80 * MIB + PAGE


@pytest.mark.parametrize("kind", ["btrfs", "xfs"])
def test_a_write_at_any_time(workdir, kind):
    """One write: before it the files are equal, after it they differ, and while it is made it is one of both or an error."""
    rng = random.Random(8)
    with mounted(kind, workdir) as root:
        one, other = root / "one", root / "other"
        one.write_bytes(rng.randbytes(4 * MIB))
        statuses = set()
        for number in range(3 * FILES):
            clone(one, other)
            with open(other, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
                before = attempt("diff", "-q", one, other).returncode
                assert before == 0
                process = subprocess.Popen([PROGRAM, "map", "diff", "-q", str(one), str(other)], stderr=subprocess.PIPE)
                time.sleep(rng.random() * 0.03)
                has_ended = process.poll() is not None
                at = rng.randrange(4 * MIB)
                if number % 2:
                    memory[at] ^= 255
                else:
                    os.pwrite(file.fileno(), bytes([memory[at] ^ 255]), at)
                process.communicate()
                statuses.add(process.returncode)
                assert process.returncode == 0 if has_ended else process.returncode in (0, 1, 3), process.returncode
                assert attempt("diff", "-q", one, other).returncode == 1
        assert statuses & {1, 3}, statuses
