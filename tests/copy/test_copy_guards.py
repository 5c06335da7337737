"""What blkcopy may write to: tables with verdicts, and random sources, destinations and options against a model of the bytes that
each name leads to."""

import contextlib
import fcntl
import lzma
import os
import pathlib
import random
import shutil
import subprocess
import urllib.parse

import pytest

import images
from commands import blksum_path
from copies import attempt
from servers import wait_for_answer

MIB = 1 << 20
SIZE = 256 * 1024
HALF = SIZE // 2
PROGRAM = str(blksum_path().with_name("blkcopy"))
BLKHASH = str(blksum_path().with_name("blkhash"))
SAME = "is a file of the source"
PART = "overlaps the source"
BLKFLSBUF = 0x1261


def fails(status, says, *args, **kwargs):
    result = attempt(*args, **kwargs)
    assert result.returncode == status and says in result.stderr.decode(), (args, result)


def succeeds(*args, **kwargs):
    result = attempt(*args, **kwargs)
    assert result.returncode == 0, (args, result)


def is_own_write(result):
    """What tells that a source changed, the statistics of a disk or the time of a file, may count the writes of the copy itself."""
    return result.returncode == 3 and result.stderr.endswith(b": was written to while it was read\n")


def copied_apart(source, destination):
    """Copies between two parts of one file or disk."""
    result = attempt("--force", source, destination)
    assert result.returncode == 0 or is_own_write(result), result


@contextlib.contextmanager
def loop(path, *options):
    device = images.run("losetup", "-f", "--show", *options, path).decode().strip()
    try:
        yield device
    finally:
        images.run("losetup", "-d", device)


@contextlib.contextmanager
def mounted(place, *args):
    os.makedirs(place, exist_ok=True)
    images.run("mount", *args, place)
    try:
        yield place
    finally:
        images.run("umount", place)


@contextlib.contextmanager
def served(command, uri):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_answer(uri, process)
        yield uri
    finally:
        process.terminate()
        process.wait()


def nbdkit(path, socket):
    return served(["nbdkit", "-f", "-U", str(socket), "file", str(path)], unix_uri(socket))


def unix_uri(socket):
    return f"nbd+unix:///?socket={urllib.parse.quote(str(socket))}"


@contextlib.contextmanager
def overlay(place):
    """An overlay in memory, with the folders low, up and merged."""
    with mounted(place, "-t", "tmpfs", "none"):
        for name in ("low", "up", "work", "merged"):
            os.mkdir(f"{place}/{name}")
        options = f"lowerdir={place}/low,upperdir={place}/up,workdir={place}/work"
        with mounted(f"{place}/merged", "-t", "overlay", "-o", options, "none"):
            yield place


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("disk.raw", "other.raw"):
        (tmp_path / name).write_bytes(os.urandom(SIZE))
    return tmp_path


COMPRESSORS = {"gz": ["gzip", "-k"], "bz2": ["bzip2", "-k"], "xz": ["xz", "-k"], "zst": ["zstd", "-q"], "lz4": ["lz4", "-qm"]}


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_compressed_file_is_not_its_own_destination(folder, suffix):
    """By any of its names, whether its content is read as a stream or in parts."""
    images.run(*COMPRESSORS[suffix], "disk.raw")
    name = f"disk.raw.{suffix}"
    os.link(name, "hard")
    os.symlink(name, "soft")
    before = (folder / name).read_bytes()
    for destination in (name, "hard", "soft"):
        for options in (["--force"], ["--force", "--verify=none"], ["--force", "--map=m"]):
            fails(2, SAME, *options, name, destination)
        # The name of the destination comes first.
        fails(2, "has the name of" if destination == name else SAME, "--update", name, destination)
    with open(name, "rb") as stdin:
        fails(2, SAME, "--force", "-f", f"raw+{suffix}", "-", "hard", stdin=stdin)
    assert (folder / name).read_bytes() == before
    succeeds("--force", name, "other.raw")
    assert (folder / "other.raw").read_bytes() == (folder / "disk.raw").read_bytes()


@pytest.mark.root
def test_what_stores_the_source(folder):
    """(source, destination, verdict) through loop devices, nested ones, ranges and backing files."""
    images.create("chain.qcow2", str(SIZE), "-b", "disk.raw", "-F", "raw")
    half = ["--offset", str(HALF)]
    with (
        loop("disk.raw") as one,
        loop(one) as nested,
        loop("disk.raw") as two,
        loop("disk.raw", "--sizelimit", str(HALF)) as low,
        loop("disk.raw", *half) as high,
        loop("other.raw") as other,
    ):
        before = (folder / "disk.raw").read_bytes()
        for source, destination, says in [
            ("chain.qcow2", one, PART),
            ("chain.qcow2", nested, PART),
            ("chain.qcow2", low, PART),
            ("chain.qcow2", "disk.raw", SAME),
            (nested, "disk.raw", PART),
            ("disk.raw", nested, PART),
            (nested, two, PART),
            (low, nested, PART),
            (high, "disk.raw", PART),
            (one, one, "is"),
        ]:
            for options in (["--force"], ["--update"]):
                fails(2, says, *options, source, destination)
        assert (folder / "disk.raw").read_bytes() == before
        # Ranges that are apart, and other files, are allowed.
        copied_apart(low, high)
        assert (folder / "disk.raw").read_bytes() == before[:HALF] * 2
        succeeds("--force", "chain.qcow2", other)
        assert (folder / "other.raw").read_bytes() == before[:HALF] * 2


@pytest.mark.root
def test_partitions_of_a_loop_device(folder):
    """Two partitions share nothing, a partition and its disk do."""
    with open("disk.raw", "r+b") as file:
        file.truncate(8 * MIB)
    images.run("sfdisk", "-q", "disk.raw", stdin=None, input=b"label: gpt\nsize=2048\nsize=2048\n")
    with loop("disk.raw") as disk:
        images.run("partx", "-a", disk)
        try:
            one, two = disk + "p1", disk + "p2"
            fails(2, PART, "--force", one, disk)
            fails(2, PART, "--force", one, "disk.raw")
            fails(2, PART, "--force", "disk.raw", two)
            copied_apart(one, two)
            held = (folder / "disk.raw").read_bytes()
            assert held[MIB : 2 * MIB] == held[2 * MIB : 3 * MIB]
            with loop("disk.raw", "--offset", str(MIB), "--sizelimit", str(MIB)) as same:
                fails(2, PART, "--force", same, one)
                copied_apart(same, two)
        finally:
            images.run("partx", "-d", disk)


@pytest.mark.root
def test_volumes_of_the_device_mapper(folder):
    """A volume is stored in its loop device and in the file of that. Two volumes of one device are apart."""
    sectors = HALF // 512
    with loop("disk.raw") as device:
        names = [f"guard-{os.getpid()}-{number}" for number in range(2)]
        made = []
        try:
            for number, name in enumerate(names):
                table = f"0 {sectors} linear {device} {number * sectors}"
                created = images.attempt("dmsetup", "create", "--noudevsync", name, "--table", table)
                if created.returncode:
                    pytest.skip(f"no device mapper here: {created.stderr.decode()}")
                made.append(name)
            images.run("dmsetup", "mknodes")
            one, two = (f"/dev/mapper/{name}" for name in names)
            fails(2, PART, "--force", one, "disk.raw")
            fails(2, PART, "--force", "disk.raw", one)
            fails(2, "", "--force", one, device)
            succeeds("--force", one, two)
        finally:
            for name in made:
                images.run("dmsetup", "remove", "--noudevsync", name)


@pytest.mark.root
def test_files_of_an_overlay(folder):
    """The merged path and the layer's are one file, which has other numbers on each."""
    with overlay(folder / "o") as place:
        (folder / "o/low/x.raw").write_bytes(b"low " * 1000)
        (folder / "o/up/y.raw").write_bytes(b"up " * 1000)
        (folder / "o/low/sub").mkdir()
        (folder / "o/low/sub/z.raw").write_bytes(b"sub " * 1000)
        for source, destination in [
            ("merged/x.raw", "low/x.raw"),
            ("merged/y.raw", "up/y.raw"),
            ("up/y.raw", "merged/y.raw"),
            ("merged/sub/z.raw", "low/sub/z.raw"),
        ]:
            fails(2, PART, "--force", f"{place}/{source}", f"{place}/{destination}")
        # It does not exist, and once it does, the source leads to it.
        fails(2, PART, f"{place}/merged/x.raw", f"{place}/up/x.raw")
        assert not (folder / "o/up/x.raw").exists()
        with loop(f"{place}/up/y.raw") as device:
            fails(2, PART, "--force", f"{place}/merged/y.raw", device)
        contents = {name: (folder / "o" / name).read_bytes()[:4] for name in ("low/x.raw", "up/y.raw", "low/sub/z.raw")}
        assert contents == {"low/x.raw": b"low ", "up/y.raw": b"up u", "low/sub/z.raw": b"sub "}
        succeeds("--force", f"{place}/merged/x.raw", f"{place}/merged/y.raw")
        # A lower file is copied up before it is written, so it is another one by then.
        succeeds("--force", f"{place}/merged/y.raw", f"{place}/merged/x.raw")
        succeeds("--force", "other.raw", f"{place}/up/y.raw")


@pytest.mark.root
def test_exports_of_this_host(folder):
    """What a server of this host has open."""
    images.create("chain.qcow2", str(SIZE), "-b", "disk.raw", "-F", "raw")
    (folder / "a folder").mkdir()
    with (
        nbdkit("disk.raw", folder / "a folder/s 1") as export,
        nbdkit("other.raw", folder / "s2") as other,
        loop("disk.raw") as device,
    ):
        before = (folder / "disk.raw").read_bytes()
        for source, destination in [
            (export, "disk.raw"),
            (export, device),
            ("disk.raw", export),
            (device, export),
            ("chain.qcow2", export),
            (export, export),
        ]:
            fails(2, "the source", "--force", source, destination)
        os.symlink("a folder/s 1", "link")
        fails(2, "the source", "--force", "disk.raw", f"nbd+unix:///x?socket={folder}/link")
        assert (folder / "disk.raw").read_bytes() == before
        succeeds("--force", export, other)
        assert (folder / "other.raw").read_bytes() == before
        succeeds("--force", "other.raw", export)
    command = ["nbdkit", "-f", "-i", "127.0.0.1", "-p", "11809", "file", "disk.raw"]
    with served(command, "nbd://127.0.0.1:11809"):
        for host in ("localhost", "127.0.0.1"):
            fails(2, "the source", "--force", "disk.raw", f"nbd://{host}:11809")
        succeeds("--force", "nbd://127.0.0.1:11809", "other.raw")


@pytest.mark.root
def test_no_file_in_the_folder_of_devices(folder):
    """At any depth, and through links. Whatever the command."""
    os.makedirs("/dev/guard-test/sub", exist_ok=True)
    try:
        os.symlink("/dev/guard-test/link", "dangling")
        os.symlink("/dev/guard-test", "folder")
        for name in ("/dev/guard-test/x", "/dev/guard-test/sub/x", "dangling", "folder/sub/x", "/dev/guard-x"):
            for options in ([], ["--force"], ["--update"]):
                fails(2, "is no device: a new file in /dev would be in memory", *options, "disk.raw", name)
            result = images.attempt(BLKHASH, "map", "create", "-o", name, "disk.raw")
            assert result.returncode == 2 and b"is no device" in result.stderr, result
        assert os.listdir("/dev/guard-test") == ["sub"] and os.listdir("/dev/guard-test/sub") == []
        with open("/dev/guard-test/held", "wb") as file:
            file.write(b"x")
        fails(2, "is no device", "--force", "disk.raw", "/dev/guard-test/held")
        name = f"/dev/shm/guard-{os.getpid()}"
        succeeds("disk.raw", name)
        os.unlink(name)
    finally:
        shutil.rmtree("/dev/guard-test")


@pytest.mark.parametrize("kind", ["damaged", "unexpected"])
def test_an_empty_file_is_empty_again_after_an_error(folder, kind):
    """As one that did not exist does not exist again."""
    if kind == "damaged":
        data = bytearray(lzma.compress(os.urandom(3 * MIB), check=lzma.CHECK_CRC64))
        data[-100] ^= 1
        (folder / "source.xz").write_bytes(data)
        command = ["source.xz"]
    else:
        command = ["--expect", 64 * "0", "disk.raw"]
    (folder / "empty").touch()
    for options in ([], ["--force"], ["--update"][: kind == "unexpected"]):
        result = attempt(*options, *command, "empty")
        assert result.returncode != 0 and os.path.getsize("empty") == 0, result
    os.symlink("empty", "link")
    assert attempt(*command, "link").returncode != 0 and os.path.getsize("empty") == 0
    succeeds("disk.raw", "empty")
    assert (folder / "empty").read_bytes() == (folder / "disk.raw").read_bytes()
    before = (folder / "other.raw").read_bytes()
    assert attempt(*command, "other.raw").returncode != 0 and (folder / "other.raw").read_bytes() == before


LOG = ["--map", "m", "--checkpoint", "0", "--block-size", "4096", "--threads", "1"]


def interrupted(source, destination, *options):
    """Kills a copy that has a checkpoint and is not whole. Returns nothing if that did not happen."""
    for _ in range(100):
        for name in ("m", destination):
            if not name.startswith("/dev") and os.path.exists(name):
                os.unlink(name)
        process = subprocess.Popen([PROGRAM, *LOG, *options, source, destination], stdout=subprocess.DEVNULL)
        while process.poll() is None and not (os.path.exists("m") and os.path.getsize("m") > 30000):
            pass
        process.kill()
        process.wait()
        if os.path.exists("m") and images.attempt(BLKHASH, "map", "show", "m").returncode != 0:
            return
    raise AssertionError("never interrupted in the middle")


@pytest.mark.root
def test_another_source_does_not_go_on(folder):
    """Of a device, whose change nothing tells, all that was copied is compared. Nothing is written before."""
    for name in ("a", "b"):
        (folder / name).write_bytes(os.urandom(32 * MIB))
    with loop("a") as one, loop("b") as other:
        interrupted(one, "copy")
        before = (folder / "copy").read_bytes()
        log = (folder / "m").read_bytes()
        fails(3, "m: is not the log of a copy of the source as it is now: 4096 bytes at 0 differ", *LOG, "--resume", other, "copy")
        with open("a", "r+b") as file:
            file.seek(100000)
            old = file.read(1)
            file.seek(100000)
            file.write(bytes([old[0] ^ 1]))
            file.flush()
        flush(one)
        fails(3, "4096 bytes at 98304 differ", *LOG, "--resume", one, "copy")
        with open("a", "r+b") as file:
            file.seek(100000)
            file.write(old)
        flush(one)
        assert (folder / "copy").read_bytes() == before and (folder / "m").read_bytes() == log
        succeeds(*LOG, "--resume", one, "copy")
        images.run("cmp", "a", "copy")
        # What is finished is not trusted either.
        for options in ([], ["--verify=source"]):
            fails(3, "is not the log of a copy of the source", *LOG, *options, "--resume", other, "copy")
            succeeds(*LOG, *options, "--resume", one, "copy")
        shutil.copy("b", "precious")
        for options in ([], ["--verify=source"]):
            fails(1, "holds something else than what was written", *LOG, *options, "--resume", one, "precious")
        images.run("cmp", "b", "precious")
        # A map of a device is not gone on with for another one.
        for place, device in (("1", one), ("2", other)):
            os.mkdir(place)
            os.symlink(device, f"{place}/disk")
        images.run(BLKHASH, "map", "create", "-o", "map", "1/disk")
        result = images.attempt(BLKHASH, "map", "create", "--resume", "-o", "map", "2/disk")
        assert result.returncode == 3 and b"is not the map of the image: 65536 bytes at " in result.stderr, result
        images.run(BLKHASH, "map", "create", "--resume", "-o", "map", "1/disk")


@pytest.mark.root
@pytest.mark.parametrize("kind", ["file", "device"])
def test_a_foreign_destination_does_not_go_on(folder, kind):
    """It has the right size, and even most of the content."""
    (folder / "a").write_bytes(os.urandom(32 * MIB))
    interrupted("a", "copy")
    content = bytearray((folder / "copy").read_bytes())
    content[300000] ^= 1
    foreign = [os.urandom(32 * MIB), bytes(content), bytes(32 * MIB)]
    for number, data in enumerate(foreign):
        (folder / "precious").write_bytes(data)
        with contextlib.ExitStack() as stack:
            name = stack.enter_context(loop("precious")) if kind == "device" else "precious"
            says = "4096 bytes at 299008 differ" if number == 1 else "4096 bytes at 0 differ"
            fails(1, f"{name}: holds something else than what was written: {says}", *LOG, "--resume", "a", name)
        assert (folder / "precious").read_bytes() == data
    (folder / "empty").touch()
    fails(3, "has 0 bytes, so it is not the interrupted copy", *LOG, "--resume", "a", "empty")
    succeeds(*LOG, "--resume", "a", "copy")
    images.run("cmp", "a", "copy")


def flush(device):
    with open(device, "rb") as file:
        fcntl.ioctl(file, BLKFLSBUF)


class World:
    """Files, and the names that lead to them: each to ranges of files, as (file, start, end)."""

    def __init__(self, place, stack):
        self.place, self.names, self.devices = place, {}, []
        self.contents = {}
        for file in ("a", "b", "e"):
            self.restore_file(file, random.randbytes(SIZE))
            self.add(f"{place}/{file}", (file, 0, SIZE), "file")
            os.link(f"{place}/{file}", f"{place}/{file}.hard")
            os.symlink(f"{place}/{file}", f"{place}/{file}.soft")
            self.add(f"{place}/{file}.hard", (file, 0, SIZE), "file")
            self.add(f"{place}/{file}.soft", (file, 0, SIZE), "file")
        for file in ("a", "b"):
            device = self.loop(stack, f"{place}/{file}", (file, 0, SIZE))
            self.loop(stack, device, (file, 0, SIZE))
            self.loop(stack, f"{place}/{file}", (file, 0, HALF), "--sizelimit", str(HALF))
            self.loop(stack, f"{place}/{file}", (file, HALF, SIZE), "--offset", str(HALF))
            uri = stack.enter_context(nbdkit(f"{place}/{file}", f"{place}/{file}.sock"))
            self.add(uri, (file, 0, SIZE), "export")
        command = ["qemu-nbd", "-t", "-f", "raw", "-k", f"{place}/e.sock", f"{place}/e"]
        self.add(stack.enter_context(served(command, unix_uri(f"{place}/e.sock"))), ("e", 0, SIZE), "export")
        images.create(f"{place}/q.qcow2", str(SIZE), "-b", f"{place}/a", "-F", "raw")
        self.sources = {f"{place}/q.qcow2": [("a", 0, SIZE)]}
        images.run("sh", "-c", f"gzip -c < {place}/b > {place}/z.gz")
        self.z = (pathlib.Path(f"{place}/z.gz").read_bytes(), self.contents["b"])
        self.contents["z"] = self.z[0]

    def add(self, name, piece, kind):
        self.names[name] = (piece, kind)

    def loop(self, stack, path, piece, *options):
        device = stack.enter_context(loop(path, *options))
        self.add(device, piece, "device")
        self.devices.append(device)
        return device

    def path(self, file):
        return f"{self.place}/{'z.gz' if file == 'z' else file}"

    def restore_file(self, file, content):
        """Writes what a file holds, and what it would be as a new one."""
        with open(self.path(file), "r+b" if os.path.exists(self.path(file)) else "wb") as target:
            target.write(content)
            target.truncate(len(content))
        self.contents[file] = content

    def restore(self, rng):
        for file in ("a", "b", "e"):
            with open(self.path(file), "rb") as held:
                if held.read() != self.contents[file]:
                    self.restore_file(file, self.contents[file])
        self.restore_file("z", self.z[0])
        if rng.random() < 0.2:
            self.restore_file(rng.choice(["a", "b"]), rng.randbytes(SIZE))
        for device in self.devices:
            flush(device)

    def now(self):
        found = {file: pathlib.Path(self.path(file)).read_bytes() for file in self.contents}
        found["new"] = pathlib.Path(f"{self.place}/new").read_bytes() if os.path.exists(f"{self.place}/new") else None
        return found


def one_case(world, rng):
    """Runs a random copy, and compares the verdict and all files with what the bytes beneath say. Returns the verdict."""
    world.restore(rng)
    place = world.place
    new, z = f"{place}/new", f"{place}/z.gz"
    for name in (new, f"{place}/m"):
        if os.path.exists(name):
            os.unlink(name)
    before = world.now()
    source = rng.choice([*world.names, f"{place}/q.qcow2", z])
    destination = rng.choice([*world.names, new, z])
    options = rng.choice([[], ["--force"], ["--force"], ["--update"], ["--force", "--verify=source"], ["--force", "--map", f"{place}/m"]])
    if source == z:
        content, reads = world.z[1], [("z", 0, len(world.z[0]))]
    elif source in world.names:
        (file, start, end), _ = world.names[source]
        content, reads = before[file][start:end], [(file, start, end)]
    else:
        content, reads = before["a"], [("a", 0, SIZE)]
    (file, start, end), kind = {new: (("new", 0, 0), "new"), z: (("z", 0, len(world.z[0])), "file")}.get(destination) or world.names[destination]
    shared = any(one == file and first < end and start < last for one, first, last in reads)
    # The server of QEMU has locked its file.
    locked = {name for name, ((it, *_), of) in world.names.items() if it == "e" and of == "file"}
    takes = bool(options)
    refused = (
        shared
        or {source, destination} & locked
        or (kind in ("file", "device", "export") and not takes)
        # A raw copy gets the name of a compressed file only by force.
        or (destination == z and "--force" not in options)
        or (kind in ("device", "export") and end - start < len(content))
    )
    result = attempt(*options, source, destination)
    after = world.now()
    case = (options, source, destination, result)
    if refused and source == z and not shared and takes and end - start < len(content):
        # A stream has no size, so that only its end tells that there is no room.
        assert result.returncode == 2 and {it for it in after if after[it] != before[it]} <= {file}, case
        return "refused"
    if refused:
        assert result.returncode not in (0, 1) and after == before, (case, [it for it in after if after[it] != before[it]])
        return "refused"
    assert result.returncode == 0 or (file in {it for it, *_ in reads} and is_own_write(result)), case
    old = before[file]
    expected = content if kind in ("file", "new") else old[:start] + content + old[start + len(content) :]
    assert after == before | {file: expected}, (case, [it for it in after if after[it] != before[it]])
    return "copied"


@pytest.mark.root
def test_read_only_devices(folder):
    """One can be opened for writing, and the first write would fail."""
    pathlib.Path("a").write_bytes(os.urandom(SIZE))
    pathlib.Path("b").write_bytes(bytes(SIZE))
    with loop("b", "--read-only") as device:
        fails(2, "is a read-only device", "--force", "a", device)
    with loop("b") as device:
        images.run("blockdev", "--setro", device)
        try:
            fails(2, "is a read-only device", "a", device)
        finally:
            # The next loop device with this number would be read-only, too.
            images.run("blockdev", "--setrw", device)
        succeeds("a", device)


def soaked(cases):
    return [
        pytest.param(kind, seed, marks=[pytest.mark.root, *([] if seed == 0 and kind == "overlay" else [mark])])
        for kind in ("ext4", "btrfs", "xfs", "tmpfs", "overlay")
        for seed, mark in enumerate([pytest.mark.slow] + [pytest.mark.soak] * cases)
    ]


def space(kind, folder, stack):
    """Returns a folder on a file system of this kind."""
    if kind == "tmpfs":
        return stack.enter_context(mounted(folder / "t", "-t", kind, "none"))
    if kind == "overlay":
        return f"{stack.enter_context(overlay(folder / 'o'))}/merged"
    with open("fs.img", "wb") as file:
        file.truncate((400 if kind == "xfs" else 160) * MIB)
    images.run(f"mkfs.{kind}", "-q", "fs.img")
    return stack.enter_context(mounted(folder / "f", "-o", "loop", "fs.img"))


@pytest.mark.parametrize(("kind", "seed"), soaked(19))
def test_random_sources_and_destinations(folder, kind, seed):
    """Nothing is lost that the rules protect, and nothing is refused that they allow."""
    rng = random.Random(f"{kind} {seed}")
    with contextlib.ExitStack() as stack:
        place = space(kind, folder, stack)
        world = World(str(place), stack)
        if kind == "overlay":
            # The files of the upper layer are the same ones.
            for file in ("a", "b"):
                world.add(f"{folder}/o/up/{file}", (file, 0, SIZE), "file")
        verdicts = [one_case(world, rng) for _ in range(20)]
    assert set(verdicts) == {"refused", "copied"} or len(verdicts) < 20
