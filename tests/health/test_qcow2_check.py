"""Checks of the structure of qcow2 images: as many errors and leaks as qemu-img check finds."""

import collections
import pathlib
import random
import subprocess
import threading
import time

import pytest

import images
import structure_check
from commands import mostly_slow

KIB = 1 << 10
MIB = 1 << 20
SIZE = 16 * MIB
CLUSTERS = [512, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 2 * MIB]
OFFSETS = 0x00FF_FFFF_FFFF_FE00
SECRET = ["--object", "secret,id=key,data=secret"]


def assert_same(path, *options):
    """Asserts that qemu-img counts the same, and returns the summary."""
    status, findings, summary = structure_check.check(path)
    assert status != 2, summary
    expected = structure_check.qemu_counts(path, *options)
    assert structure_check.counts(findings, summary) == expected, (findings[-5:], summary)
    return summary


def assert_clean(path, *options):
    summary = assert_same(path, *options)
    assert (summary["errors"], summary["outdated"], summary["leaks"], summary["unchecked"]) == (0, 0, 0, 0)
    assert summary["complete"]


def write(rng, path, count=20, size=SIZE, options=("-f", "qcow2"), is_plain=False):
    """Writes at random. Compressed writes to clusters that are allocated fail, which does not matter here."""
    commands = []
    for _ in range(count):
        offset = rng.randrange(size >> 9) << 9
        length = min(rng.choice((512, 4 * KIB, 64 * KIB, 100 * 512, MIB)), size - offset)
        kind = rng.randrange(8)
        if kind == 0:
            commands.append(f"discard {offset} {length}")
        elif kind == 1 and not is_plain:
            commands.append(f"write -z {offset} {length}")
        elif kind < 4 and not is_plain:
            offset &= -2 * MIB
            commands.append(f"write -c -P {rng.randrange(256)} {offset} {min(2 * MIB, size - offset)}")
        else:
            commands.append(f"write -P {rng.randrange(256)} {offset} {length}")
    args = [arg for command in commands for arg in ("-c", command)]
    files = [] if options != ("-f", "qcow2") else [str(path)]
    subprocess.run(["qemu-io", *options, *args, *files], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=path.parent)


def busy_image(rng, path, options):
    """Makes an image with snapshots, one of which is deleted, and bitmaps."""
    is_old = "compat=0.10" in options
    images.create(path, SIZE, "-o", options)
    write(rng, path, is_plain=is_old)
    for name in ("first", "second"):
        images.qemu_img("snapshot", "-c", name, path)
        write(rng, path, 5, is_plain=is_old)
    images.qemu_img("snapshot", "-c", "third", path)
    images.qemu_img("snapshot", "-d", "second", path)
    if not is_old:
        images.qemu_img("bitmap", "--add", path, "a")
        write(rng, path, 5)
        images.qemu_img("bitmap", "--add", "-g", "64k", path, "b")
    return path


@pytest.mark.parametrize("cluster", mostly_slow(CLUSTERS, [512, 4 * KIB, 64 * KIB]))
@pytest.mark.parametrize(
    "option", ["", "lazy_refcounts=on", "compression_type=zstd", "compat=0.10", "extended_l2=on", "preallocation=metadata"]
)
def test_clusters(tmp_path, cluster, option):
    if option == "extended_l2=on" and cluster < 16 * KIB:
        pytest.skip("clusters are too small for subclusters")
    options = f"cluster_size={cluster}" + (option and f",{option}")
    assert_clean(busy_image(random.Random(cluster), tmp_path / "disk.qcow2", options))


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32, 64])
def test_refcount_bits(tmp_path, bits):
    rng, path = random.Random(bits), tmp_path / "disk.qcow2"
    images.create(path, SIZE, "-o", f"refcount_bits={bits},cluster_size=4k")
    write(rng, path, is_plain=bits < 16)
    if bits > 1:
        images.qemu_img("snapshot", "-c", "first", path)
        write(rng, path, is_plain=bits < 16)
    assert_clean(path)


def test_many_snapshots(tmp_path):
    rng, path = random.Random(1), tmp_path / "disk.qcow2"
    images.create(path, SIZE)
    for number in range(12):
        write(rng, path, 3)
        images.qemu_img("snapshot", "-c", f"s{number}", path)
    images.qemu_img("snapshot", "-a", "s4", path)
    assert_clean(path)


def test_data_file(tmp_path):
    path = images.create(tmp_path / "disk.qcow2", SIZE, "-o", f"data_file={tmp_path}/disk.data")
    write(random.Random(2), path, is_plain=True)
    assert_clean(path)
    # The check needs neither the data file nor the backing file.
    (tmp_path / "disk.data").unlink()
    status, findings, summary = structure_check.check(path)
    assert (status, findings) == (0, []), summary


def test_encrypted(tmp_path):
    path = tmp_path / "disk.qcow2"
    options = "encrypt.format=luks,encrypt.key-secret=key,encrypt.iter-time=10"
    images.create(path, SIZE, *SECRET, "-o", options)
    image = f"driver=qcow2,file.filename={path},encrypt.key-secret=key"
    write(random.Random(3), path, options=[*SECRET, "--image-opts", image], is_plain=True)
    assert_clean(path, *SECRET, "--image-opts", image)


def test_resized_and_rebased(tmp_path):
    rng, path = random.Random(4), tmp_path / "disk.qcow2"
    images.create(path, SIZE)
    write(rng, path)
    for size in ("40M", "10M"):
        images.qemu_img("resize", "-q", "--shrink", path, size)
        assert_clean(path)
    bases = [images.create(tmp_path / f"base{number}.qcow2", SIZE) for number in range(2)]
    for base in bases:
        write(rng, base)
    overlay = tmp_path / "overlay.qcow2"
    images.create(overlay, SIZE, "-b", bases[0], "-F", "qcow2")
    write(rng, overlay)
    images.qemu_img("rebase", "-b", bases[1], "-F", "qcow2", overlay)
    assert_clean(overlay)


@pytest.mark.parametrize("part", mostly_slow(range(20), [0]))
def test_crashed(tmp_path, part):
    """Images whose writer was killed. Those with lazy reference counts are dirty, and their errors are no damage."""
    rng = random.Random(part)
    for number in range(10):
        path, is_lazy = tmp_path / f"{number}.qcow2", number % 2 == 0
        cluster = rng.choice((512, 4 * KIB, 64 * KIB, 64 * KIB))
        lazy = "on" if is_lazy else "off"
        images.create(path, SIZE, "-o", f"cluster_size={cluster},lazy_refcounts={lazy}")
        if rng.randrange(2):
            write(rng, path, 5)
            images.qemu_img("snapshot", "-c", "first", path)
        kill_while_writing(rng, path)
        summary = assert_same(path)
        # QEMU 7.2 may leave a cluster with two owners if it is killed after a discard.
        assert summary["dirty"] == is_lazy or summary["outdated"] == 0
        assert summary["errors"] == 0 or not is_lazy
        path.unlink()


def kill_while_writing(rng, path):
    args = ["qemu-io", "-f", "qcow2", "-t", "writeback", path]
    commands = []
    for _ in range(2000):
        offset = rng.randrange(SIZE >> 9) << 9
        length = min(rng.choice((512, 4 * KIB, 64 * KIB, 200 * 512)), SIZE - offset)
        verb = rng.choice(("aio_write -P 1", "aio_write -P 2", "write -P 3", "write -P 4", "discard", "write -z"))
        commands.append("flush" if rng.randrange(30) == 0 else f"{verb} {offset} {length}")
    script = "\n".join([*commands, ""]).encode()

    def feed():
        try:
            writer.stdin.write(script)
        except BrokenPipeError:
            pass

    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0) as writer:
        feeder = threading.Thread(target=feed)
        feeder.start()
        time.sleep(rng.uniform(0.02, 0.3))
        writer.kill()
        feeder.join()


class Fields:
    """The fields of an image whose change may be damage, by the structure that they are in."""

    def __init__(self, rng, content):
        self.rng, self.content = rng, content
        self.cluster = 1 << self.number(20, 4)
        self.places = collections.defaultdict(list)
        is_new = self.number(4, 4) >= 3
        header = [(4, 4), (8, 8), (16, 4), (20, 4), (24, 8), (32, 4), (36, 4), (40, 8), (48, 8), (56, 4), (60, 4), (64, 8)]
        self.places["header"] = header + ([(72, 8), (80, 8), (88, 8), (96, 4), (100, 4), (104, 1)] if is_new else [])
        if is_new:
            self.extensions(self.number(100, 4))
        self.l1(self.number(40, 8), self.number(36, 4))
        self.snapshots(self.number(64, 8), self.number(60, 4))
        self.refcounts(self.number(48, 8), self.number(56, 4) * self.cluster)

    def number(self, offset, length):
        return int.from_bytes(self.content[offset : offset + length], "big")

    def words(self, offset, count):
        return [(offset + index * 8, 8) for index in range(count)]

    def extensions(self, offset):
        while offset < self.cluster and (kind := self.number(offset, 4)):
            length = self.number(offset + 4, 4)
            self.places["extensions"] += [(offset, 4), (offset + 4, 4)]
            if kind == 0x2385_2875:
                self.places["extensions"] += [(offset + 8, 4), (offset + 16, 8), (offset + 24, 8)]
                directory = self.number(offset + 24, 8)
                self.places["bitmaps"] = self.words(directory, self.number(offset + 16, 8) // 8)
            offset += 8 + -(-length // 8) * 8

    def l1(self, offset, entries):
        for at, length in self.words(offset, entries):
            table = self.number(at, length) & OFFSETS
            self.places["L1"].append((at, length))
            if table:
                self.places["L2"] += [it for it in self.words(table, self.cluster // 8) if self.number(*it)]

    def snapshots(self, offset, count):
        for _ in range(count):
            offset = -(-offset // 8) * 8
            self.places["snapshots"] += [(offset + at, size) for at, size in ((0, 8), (8, 4), (12, 2), (14, 2), (36, 4), (40, 8))]
            self.l1(self.number(offset, 8), self.number(offset + 8, 4))
            offset += 40 + self.number(offset + 36, 4) + self.number(offset + 12, 2) + self.number(offset + 14, 2)

    def refcounts(self, offset, length):
        for at, size in self.words(offset, length // 8):
            block = self.number(at, size)
            if block:
                self.places["refcount table"].append((at, size))
                self.places["refcount block"] += self.rng.sample(self.words(block, self.cluster // 8), 8)

    def random_place(self):
        return self.rng.choice(self.places[self.rng.choice(list(self.places))])

    def random_value(self, offset, length):
        rng, old, cluster = self.rng, self.number(offset, length), self.cluster
        value = rng.choice(
            (
                rng.getrandbits(length * 8),
                old ^ 1 << rng.randrange(length * 8),
                old ^ rng.choice((1 << 63, 1 << 62, 1, 2, 1 << 56)),
                0,
                rng.randrange(16),
                rng.randrange(len(self.content) // cluster + 2) * cluster | rng.randrange(2) << 63,
                old + rng.choice((1, -1, 512, -512, cluster, -cluster)),
                len(self.content) + rng.choice((-cluster, -512, 0, 512, cluster)) | 1 << 63,
                self.number(*self.random_place()),
            )
        )
        return (value % (1 << length * 8)).to_bytes(length, "big")


MUTANTS = [
    "cluster_size=512",
    "cluster_size=4k",
    "cluster_size=64k,lazy_refcounts=on",
    "cluster_size=4k,compat=0.10",
    "cluster_size=16k,extended_l2=on",
    "cluster_size=4k,refcount_bits=64",
    "cluster_size=1k,refcount_bits=32",
]


@pytest.mark.parametrize("part", mostly_slow(range(20), [0], range(5)))
def test_mutants(tmp_path, part):
    """Images with random fields. There are as many errors as for QEMU, unless the snapshot table is cut off: QEMU takes the
    rest of it for zeros, and all that belongs to the snapshots for leaks."""
    rng = random.Random(part)
    path = busy_image(rng, tmp_path / "disk.qcow2", MUTANTS[part % len(MUTANTS)])
    content = path.read_bytes()
    fields = Fields(rng, content)
    compared = 0
    for _ in range(50):
        places = [fields.random_place() for _ in range(rng.choice((1, 1, 2, 4)))]
        edits = [(at, fields.random_value(at, length)) for at, length in places]
        with path.open("r+b") as file:
            for at, value in edits:
                file.seek(at)
                file.write(value)
        compared += compare_damaged(path, edits)
        with path.open("r+b") as file:
            for at, value in edits:
                file.seek(at)
                file.write(content[at : at + len(value)])
    assert compared > 20


def compare_damaged(path, edits):
    """Returns whether qemu-img came to its end, after asserting that it found the same."""
    status, findings, summary = structure_check.check(path)
    expected = structure_check.qemu_counts(path)
    if expected is None:
        return False
    assert status != 2, (edits, summary)
    if not summary["complete"]:
        assert status == 1, (edits, findings)
        return True
    assert structure_check.counts(findings, summary) == expected, (edits, findings[-5:], summary)
    return True


def test_finding(tmp_path):
    path = images.create(tmp_path / "disk.qcow2", SIZE)
    images.qemu_io(path, "write 0 64k", "write 128k 64k")
    entry = {64 * KIB * 4 + 16: 0}
    [offset] = entry
    with path.open("r+b") as file:
        file.seek(offset)
        cluster = int.from_bytes(file.read(8), "big") & OFFSETS
        file.seek(offset)
        file.write((cluster - 64 * KIB | 1 << 63).to_bytes(8, "big"))
    status, findings, summary = structure_check.check(path)
    assert status == 1 and (summary["errors"], summary["leaks"]) == (1, 1)
    # The leak is counted, and is no finding.
    [shared] = findings
    assert (shared["problem"], shared["offset"], shared["length"]) == ("damaged", cluster - 64 * KIB, 64 * KIB)
    assert shared["reason"].startswith("reference count 1, references 2")


def test_refused(tmp_path):
    path = pathlib.Path(tmp_path / "disk.qcow2")
    path.write_bytes(b"QFI\xfb" + bytes(100))
    status, _, message = structure_check.check(path)
    assert status == 2 and "version 0" in message
