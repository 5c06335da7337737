"""FAT and exFAT: owners compared with mshowfat, fsck.fat and small readers of its own, flipped bits with fsck, mutants."""

import collections
import contextlib
import itertools
import os
import pathlib
import random
import re
import struct
import subprocess
import tempfile

import pytest

import images
import owners
from commands import mostly_slow

MIB = 1 << 20

NAMES = [
    "A", "readme.txt", "README", "Mixed.Case", "lower.TXT", "a name with spaces", "ein längerer Name für eine Datei.bin",
    "日本語のファイル名.txt", "x" * 120, "emoji 😀 file", "foo.tar.gz", ".hidden", "n" * 200 + ".ext", "13charsabcdef", "12345678.123",
]

# Widths of entries, sizes of a sector, sectors of a cluster, copies of the table.
SHAPES = list(itertools.product((12, 16, 32), (512, 1024, 2048, 4096), (1, 2, 8), (1, 2, 3)))
QUICK_SHAPES = [(12, 512, 2, 2), (16, 512, 8, 2), (32, 512, 1, 2), (12, 1024, 1, 3), (16, 4096, 1, 1)]

# Sizes of a sector and of a cluster of exFAT.
EXFAT_SHAPES = [(sector, cluster) for sector in (512, 1024, 2048, 4096) for cluster in (512, 4096, 32768, MIB) if cluster >= sector]
QUICK_EXFAT_SHAPES = [(512, 4096), (512, 512), (4096, 32768)]


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("MTOOLSRC", "/dev/null")
    monkeypatch.setenv("MTOOLS_SKIP_CHECK", "1")


def make(path, bits, sector=512, cluster=2, copies=2, options=()):
    """Makes a file system, as large as the width needs."""
    size = {12: 3000, 16: 6000, 32: 70_000}[bits] * sector * cluster
    with open(path, "wb") as file:
        file.truncate(size)
    # A root directory of whole sectors, which mkfs.vfat makes only of 512 bytes.
    root = [] if bits == 32 else ["-r", "512"]
    shape = ["-F", str(bits), "-S", str(sector), "-s", str(cluster), "-f", str(copies)]
    images.run("mkfs.vfat", *shape, *root, *options, str(path))


def contents(rng, cluster):
    return rng.randbytes(rng.choice([0, 1, cluster - 1, cluster, cluster + 1, 2 * cluster, rng.randrange(6 * cluster)]))


def tree(root, rng, cluster, count):
    """Makes files and folders, of which no two names in a folder differ in case only."""
    folders = [root]
    for number in range(count):
        path = rng.choice(folders) / f"{number}{rng.choice(NAMES)}"
        if rng.random() < 0.25 and len(path.parts) < len(root.parts) + 5:
            folders.append(path.with_name(f"{number} folder"))
            folders[-1].mkdir()
        else:
            path.write_bytes(contents(rng, cluster))


def fill(image, rng, cluster, count=25):
    """Fills a volume with mtools, and leaves holes that the last file fills."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "tree").mkdir()
        tree(folder / "tree", rng, cluster, count)
        for name in ("lower.txt", "Upper", "A"):
            (folder / "tree" / name).write_bytes(contents(rng, cluster))
        copy = ["mcopy", "-Q", "-i", str(image)]
        images.run(*copy, "-s", *map(str, sorted((folder / "tree").iterdir())), "::")
        short = [folder / f"t{number}" for number in range(12)]
        for path in short:
            path.write_bytes(rng.randbytes(rng.choice([1, cluster, 3 * cluster])))
        images.run(*copy, *map(str, short), "::")
        images.run("mdel", "-i", str(image), *(f"::{path.name}" for path in short[::2]))
        (folder / "fragments").write_bytes(rng.randbytes(16 * cluster))
        images.run(*copy, str(folder / "fragments"), "::")


class Fat:
    """A reader of its own: the owner of each cluster, and the clusters of each path."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        sector, factor, reserved, copies, entries = struct.unpack_from("<HBHBH", self.bytes, 11)
        sectors = self.field("<H", 19) or self.field("<I", 32)
        narrow = self.field("<H", 22)
        size = (narrow or self.field("<I", 36)) * sector
        self.cluster, self.table = sector * factor, reserved * sector
        area = self.table + copies * size
        self.data = area + -(-entries * 32 // sector) * sector
        self.count = (sectors * sector - self.data) // self.cluster
        self.bits = 32 if narrow == 0 else 12 if self.count < 4085 else 16
        self.count = min(self.count, size * 8 // self.bits - 2)
        self.owners, self.paths = {}, {}
        for cluster in range(2, self.count + 2):
            value = self.entry(cluster)
            if value == 0 or value == (1 << min(self.bits, 28)) - 9:
                self.owners[cluster] = ("bad cluster" if value else "free", None, None)
        if narrow:
            self.read(self.bytes[area:self.data], "")
        else:
            self.follow("/", True, self.field("<I", 44))
            self.read(self.content(self.chain(self.field("<I", 44))), "")

    def field(self, form, at):
        return struct.unpack_from(form, self.bytes, at)[0]

    def entry(self, cluster):
        if self.bits == 12:
            pair = self.field("<H", self.table + cluster * 3 // 2)
            return pair >> 4 if cluster % 2 else pair & 0xFFF
        if self.bits == 16:
            return self.field("<H", self.table + 2 * cluster)
        return self.field("<I", self.table + 4 * cluster) & 0xFFFFFFF

    def chain(self, cluster):
        chain = []
        while 2 <= cluster < self.count + 2:
            chain.append(cluster)
            cluster = self.entry(cluster)
        return chain

    def content(self, clusters):
        return b"".join(self.bytes[self.offset(it) : self.offset(it + 1)] for it in clusters)

    def offset(self, cluster):
        return self.data + (cluster - 2) * self.cluster

    def own(self, path, is_folder, clusters):
        self.paths[path] = clusters
        for index, cluster in enumerate(clusters):
            place = None if is_folder else index * self.cluster
            self.owners[cluster] = ("directory" if is_folder else "file", path, place)

    def follow(self, path, is_folder, first):
        self.own(path, is_folder, self.chain(first))

    def read(self, entries, path):
        parts = []
        for at in range(0, len(entries), 32):
            entry = entries[at : at + 32]
            if entry[0] == 0:
                break
            if entry[0] == 0xE5 or entry[11] == 15:
                parts = [entry, *parts] if entry[0] != 0xE5 else []
                continue
            name, parts = self.name(entry, parts), []
            if entry[11] & 8 or name in (".", ".."):
                continue
            first, = struct.unpack_from("<H", entry, 26)
            if self.bits == 32:
                first |= struct.unpack_from("<H", entry, 20)[0] << 16
            self.follow(f"{path}/{name}", bool(entry[11] & 16), first)
            if entry[11] & 16:
                self.read(self.content(self.chain(first)), f"{path}/{name}")

    @staticmethod
    def name(entry, parts):
        total = 0
        for byte in entry[:11]:
            total = ((total >> 1 | total << 7) + byte) & 0xFF
        if parts and all(part[13] == total for part in parts):
            units = b"".join(part[1:11] + part[14:26] + part[28:32] for part in parts)
            return units.decode("utf-16le").split("\0")[0]
        base, extension = entry[:8].rstrip(), entry[8:11].rstrip()
        base = base.lower() if entry[12] & 8 else base
        extension = extension.lower() if entry[12] & 16 else extension
        return (base + b"." * bool(extension) + extension).decode("latin-1")


class ExFat(Fat):
    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        table, _, heap, self.count, root = struct.unpack_from("<5I", self.bytes, 80)
        sector = 1 << self.bytes[108]
        self.table, self.data, self.cluster = table * sector, heap * sector, sector << self.bytes[109]
        self.owners, self.paths, self.chains = {}, {}, 0
        self.follow("/", True, root)
        content = self.content(self.chain(root))
        for at in range(0, len(content), 32):
            kind, (first, length) = content[at], struct.unpack_from("<IQ", content, at + 20)
            if kind == 0x81:
                bits = self.content(self.chain(first))
                free = (it for it in range(self.count) if not bits[it // 8] >> it % 8 & 1)
                self.owners.update({it + 2: ("free", None, None) for it in free})
            if kind in (0x81, 0x82):
                name = {0x81: "allocation bitmap", 0x82: "up-case table"}[kind]
                self.owners.update({it: (name, None, None) for it in self.chain(first)})
        self.read(content, "")

    def entry(self, cluster):
        return self.field("<I", self.table + 4 * cluster)

    def read(self, entries, path):
        for at in range(0, len(entries), 32):
            if entries[at] == 0:
                break
            if entries[at] != 0x85:
                continue
            flags, _, length = entries[at + 33 : at + 36]
            first, size = struct.unpack_from("<IQ", entries, at + 52)
            rest = range(at + 64, at + 32 + 32 * entries[at + 1], 32)
            name = b"".join(entries[it + 2 : it + 32] for it in rest)[: 2 * length].decode("utf-16le")
            clusters = list(range(first, first + -(-size // self.cluster))) if flags & 2 else self.chain(first)
            self.chains += not flags & 2 and size > 0
            self.own(f"{path}/{name}", bool(entries[at + 4] & 16), clusters if size else [])
            if entries[at + 4] & 16:
                self.read(self.content(clusters), f"{path}/{name}")


def compare(image, model):
    """Compares the owner of each cluster, and returns the extents."""
    listing = owners.listing(image)
    assert not listing.is_partial
    found, end = {}, 0
    for extent in listing.extents:
        assert extent.offset >= end
        end = extent.offset + extent.length
        if extent.offset < model.data or extent.kind == "excess space":
            continue
        assert (extent.offset - model.data) % model.cluster == extent.length % model.cluster == 0
        for index in range(extent.length // model.cluster):
            path = extent.paths[0].decode() if extent.paths else None
            start = None if extent.start is None else extent.start + index * model.cluster
            found[2 + (extent.offset - model.data) // model.cluster + index] = (extent.kind, path, start)
    assert found == model.owners
    return listing.extents


@pytest.mark.parametrize("shape", mostly_slow(SHAPES, QUICK_SHAPES), ids=str)
def test_owners_and_names(workdir, shape):
    bits, sector, cluster, copies = shape
    rng = random.Random(f"{bits} {sector} {cluster} {copies}")
    options = rng.choice([[], ["-n", "A LABEL"], ["-a"], ["--mbr=y"], ["-M", "0xf0"]])
    if bits == 32 or rng.random() < 0.5:
        options += ["-R", rng.choice(["8", "33"])]
    make("fat", bits, sector, cluster, copies, options)
    fill("fat", rng, cluster * sector)
    model = Fat("fat")
    assert model.bits == bits
    extents = compare("fat", model)
    files = [path for path in model.paths if path != "/"]
    for path in rng.sample(files, 12):
        printed = images.run("mshowfat", "-i", "fat", f"::{path}").decode().rpartition("::")[2][len(path) :]
        runs = [(int(first), int(last or first)) for first, last in re.findall(r"<(\d+)(?:-(\d+))?>", printed)]
        clusters = [it for first, last in runs if first for it in range(first, last + 1)]
        assert clusters == model.paths[path], (path, printed)
    assert owners.check("fat")[0]
    if copies < 3:
        report = images.run("fsck.fat", "-n", "fat").decode()
        count, used, total = map(int, re.search(r"(\d+) files, (\d+)/(\d+) clusters", report).groups())
        free = sum(extent.length for extent in extents if extent.kind == "free") // model.cluster
        assert (count, total - used, total) == (len(files) + ("-n" in options), free, model.count)


def test_bad_clusters(workdir):
    for bits in (12, 16, 32):
        make("fat", bits)
        model = Fat("fat")
        first = model.offset(5) // 1024
        pathlib.Path("bad").write_text("".join(f"{first + index}\n" for index in (0, 1, 90)))
        make("fat", bits, options=["-l", "bad"])
        extents = compare("fat", Fat("fat"))
        assert sum(extent.kind == "bad cluster" for extent in extents) >= 2
        assert owners.check("fat")[0]


@contextlib.contextmanager
def attached(path, sector):
    result = subprocess.run(["losetup", "-f", "--show", "-b", str(sector), path], capture_output=True, text=True)
    if result.returncode != 0 or not os.path.exists("/dev/fuse"):
        assert "CI" not in os.environ, result
        pytest.skip(f"needs FUSE and loop devices: {result.stderr}")
    try:
        yield result.stdout.strip()
    finally:
        images.run("losetup", "-d", result.stdout.strip())


def exfat(path, rng, sector, cluster, options=()):
    """Makes a file system, and fills it with the driver of exfat-fuse."""
    with open(path, "wb") as file:
        file.truncate(max(8 * MIB, 150 * cluster))
    with attached(path, sector) as device:
        images.run("mkfs.exfat", "-c", str(cluster), *options, device)
        os.makedirs("mounted", exist_ok=True)
        images.run("mount.exfat-fuse", device, "mounted")
        try:
            root = pathlib.Path("mounted").absolute()
            tree(root, rng, cluster, 25)
            # Files that grow in turn have chains.
            with contextlib.ExitStack() as stack:
                files = [stack.enter_context(open(root / f"chain {number}", "wb", 0)) for number in range(3)]
                for turn in range(12):
                    files[turn % 3].write(rng.randbytes(cluster))
            files = [path for path in sorted(root.rglob("*")) if path.is_file() and "chain" not in path.name]
            for path in rng.sample(files, 6):
                path.unlink()
        finally:
            images.run("umount", "mounted")
        images.run("fsck.exfat", "-n", device)


@pytest.mark.root
@pytest.mark.parametrize("shape", mostly_slow(EXFAT_SHAPES, QUICK_EXFAT_SHAPES), ids=str)
def test_exfat(workdir, shape):
    sector, cluster = shape
    rng = random.Random(f"{sector} {cluster}")
    exfat("exfat", rng, sector, cluster, rng.choice([[], ["-L", "Größe"], ["--pack-bitmap"]]))
    model = ExFat("exfat")
    assert model.chains > 1 and len(model.paths) > 15
    compare("exfat", model)
    clean, printed = owners.check("exfat")
    assert clean, printed


def flips(rng, path, places, count):
    """Yields what is printed for the file with one byte changed, and the place."""
    content = pathlib.Path(path).read_bytes()
    with open(path, "r+b", 0) as file:
        for _ in range(count):
            name, start, length = rng.choice(places)
            at = start + rng.randrange(length)
            if name == "directory" and not any(content[at & -32 : (at & -32) + 32]):
                continue
            os.pwrite(file.fileno(), bytes([content[at] ^ 1 << rng.randrange(8)]), at)
            yield name, at
            os.pwrite(file.fileno(), content[at : at + 1], at)


OBJECTIONS = re.compile("FATs differ|bad magic|differences between boot sector|Wrong checksum for long|Checksum in long file")


@pytest.mark.parametrize("bits", [12, 16, 32])
@pytest.mark.parametrize("count", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_flipped_bits(workdir, bits, count):
    """Every checksum and copy that fsck.fat objects to is reported, and nothing that it calls clean."""
    rng = random.Random(bits)
    make("fat", bits, cluster=1)
    fill("fat", rng, 512)
    model = Fat("fat")
    size = 512 * (model.field("<H", 22) or model.field("<I", 36))
    places = [("boot sector", 0, 512), ("FAT", model.table, 300), ("FAT", model.table + size, 300)]
    places += [("information", 512, 512), ("backup", 6 * 512, 512)] if bits == 32 else [("directory", model.data - 512 * 32, 2000)]
    folders = [it for it, (kind, _, _) in model.owners.items() if kind == "directory"]
    places += [("directory", model.offset(it), 512) for it in folders[: len(places)]]
    verdicts = collections.Counter()
    for place in flips(rng, "fat", places, count):
        report = images.attempt("fsck.fat", "-n", "fat")
        lines = report.stdout.decode(errors="replace").splitlines()
        is_clean = report.returncode == 0 and len(lines) == 2
        is_objection = OBJECTIONS.search("\n".join(lines))
        result = owners.attempt("check", "fat")
        verdicts[bool(is_objection), result.returncode] += 1
        if is_clean:
            assert result.returncode == 0, (place, result)
        if is_objection:
            assert result.returncode == 1 and b'"problem":"mismatch"' in result.stdout, (place, lines, result)
    assert min(verdicts[True, 1], verdicts[False, 0]) > count // 16, verdicts


@pytest.mark.root
@pytest.mark.parametrize("count", [80, pytest.param(1000, marks=pytest.mark.slow)])
def test_flipped_bits_of_exfat(workdir, count):
    rng = random.Random(count)
    exfat("exfat", rng, 512, 4096)
    model = ExFat("exfat")
    places = [("region", 0, 512), ("region", 0, 12 * 512), ("FAT", model.table, 300)]
    places += [("bitmap or table", model.data, 2 * model.cluster + 2000)]
    folders = [it for it, (kind, _, _) in model.owners.items() if kind == "directory"]
    places += [("directory", model.offset(it), model.cluster) for it in folders]
    verdicts = collections.Counter()
    for place in flips(rng, "exfat", places, count):
        report = images.attempt("fsck.exfat", "-n", "exfat")
        is_clean = report.returncode == 0 and b": clean" in report.stdout
        result = owners.attempt("check", "exfat")
        assert is_clean == (result.returncode == 0), (place, report, result)
        verdicts[is_clean] += 1
    assert min(verdicts.values()) > count // 8, verdicts


@pytest.mark.parametrize("bits", [12, 16, 32])
@pytest.mark.parametrize("count", [15, pytest.param(400, marks=pytest.mark.slow)])
def test_mutants(workdir, bits, count):
    """No panic, no circle, no memory, whatever is in the structures."""
    rng = random.Random(f"{bits} {count}")
    make("fat", bits, cluster=1)
    fill("fat", rng, 512)
    model, content = Fat("fat"), pathlib.Path("fat").read_bytes()
    hot = [(0, 512), (model.table, 1000), (model.data - 512 * 32, 20_000), (model.data, 60_000)]
    for _ in range(count):
        mutant = bytearray(content)
        for _ in range(rng.choice([1, 5, 50, 500])):
            start, length = rng.choice(hot)
            at, width = start + rng.randrange(length), rng.choice([1, 2, 4, 32])
            source = model.data + rng.randrange(60_000)
            values = [rng.randbytes(width), struct.pack("<I", rng.randrange(40)), content[source : source + width]]
            mutant[at : at + width] = rng.choice(values)[:width].ljust(width, b"\xff")
        pathlib.Path("mutant").write_bytes(mutant)
        for verb in ("check", "owners"):
            command = f"ulimit -v 1000000; exec timeout 20 {owners.program()} {verb} mutant"
            result = images.attempt("bash", "-c", command)
            assert result.returncode in (0, 1, 2) and b"panicked" not in result.stderr, result
