"""Deltas of blkcopy: written by it and read by a decoder of docs/reference/delta-format.md in Python, and applied to files, devices and
servers, whole, damaged, twice and to what they were not made for."""

import hashlib
import json
import os
import pathlib
import random
import signal as signals
import subprocess
import time

import pytest

import images
from changing import loop_device
from commands import HANG, blksum_path, mostly_slow
from copies import PROGRAM, Copying, attempt, blksum, fails, run, same
from deltas import HEADER, Decoded
from servers import Servers

MIB = 1 << 20
BLOCK = 65536
BLKHASH = str(blksum_path().with_name("blkhash"))


def changed(rng, base):
    """Returns another state of a disk."""
    new = bytearray(base)
    for _ in range(rng.randrange(8)):
        length = rng.choice([1, 512, 4096, BLOCK, 300_000])
        data = rng.choice([bytes(length), rng.randbytes(length)])
        at = rng.randrange(max(len(new), 1))
        new[at : at + length] = data[: max(len(new) - at, 0)]
    match rng.randrange(4):
        case 0 if new:
            del new[rng.randrange(len(new)) // 512 * 512 :]
        case 1:
            size = rng.choice([512, 4096, 3 * MIB])
            new += rng.choice([bytes(size), rng.randbytes(size)])
    return bytes(new)


def map_of(path, *options):
    images.run(BLKHASH, "map", "create", "--force", *options, str(path), "-o", "base.blkmap")


def delta_of(source, *options):
    return run("--delta-from", "base.blkmap", *options, source, "-")


@pytest.mark.parametrize("seed", mostly_slow(range(150), range(12), range(60)))
def test_files(workdir, seed):
    """A copy of the old state becomes the new one, and the delta is what the format says."""
    rng = random.Random(f"delta {seed}")
    base = Copying(rng, workdir)
    old = base.raw.read_bytes()
    digest = rng.choice(["sha256", "sha256", "blake3", "crc32c"])
    block = rng.choice([4096, BLOCK, MIB])
    map_of(base.source, "--digest", digest, "--block-size", str(block))
    new = workdir / "new.raw"
    new.write_bytes(changed(rng, old))
    source = new
    if new.stat().st_size % 512 == 0 and rng.randrange(2):
        images.convert(new, workdir / "new.qcow2")
        source = workdir / "new.qcow2"
    options = rng.choice([[], ["-d", "blake3"], ["--construction", "linear"], ["--construction", "flat", "--block-size", "4096"]])
    line = blksum(*options, source).split()[0]
    delta = delta_of(source, *options)
    (workdir / "delta").write_bytes(delta)
    decoded = Decoded(delta)
    assert decoded.applied(old) == new.read_bytes()
    assert decoded.text.split()[3] == line
    # Nothing that is equal is sent, but at an end that moves.
    if len(old) == new.stat().st_size:
        for first, end, _, data in decoded.records:
            for at in range(first, end):
                mine = data[(at - first) * block :][:block]
                assert mine != old[at * block :][:block]
    destination = workdir / "copy.raw"
    destination.write_bytes(old)
    zeros = ["--zeros", rng.choice(["auto", "write", "punch"])]
    # Nothing of the old content is left to compare.
    force = ["--force"] if not new.stat().st_size and old else []
    assert run(*force, *zeros, *options, "--apply", "delta", destination).decode() == f"{line}  {destination}\n"
    images.run("cmp", destination, new)
    # It was applied already. What is past the old end is written again.
    again = json.loads(run("--json", *options, "--apply", "delta", destination))
    assert again["checksum"] == line
    if new.stat().st_size <= len(old):
        assert (again["written_bytes"], again["zeroed_bytes"]) == (0, 0)
    images.run("cmp", destination, new)


@pytest.fixture
def made(workdir):
    """base.raw, new.raw of the same size, and their delta."""
    rng = random.Random(5)
    old = rng.randbytes(3 * MIB) + bytes(2 * MIB) + rng.randbytes(MIB + 100)
    new = bytearray(old)
    for at in (0, 700_000, 2 * MIB, 4 * MIB, len(old) - 50):
        new[at : at + 5000] = rng.randbytes(min(5000, len(old) - at))
    new[MIB : 2 * MIB] = bytes(MIB)
    (workdir / "base.raw").write_bytes(old)
    (workdir / "new.raw").write_bytes(new)
    map_of("base.raw", "--block-size", "4096")
    (workdir / "delta").write_bytes(delta_of("new.raw"))
    return workdir


def blocks_are_old_or_new(path):
    content, old, new = (pathlib.Path(name).read_bytes() for name in (path, "base.raw", "new.raw"))
    assert len(content) == len(old)
    for at in range(0, len(old), 4096):
        block = slice(at, at + 4096)
        assert content[block] in (old[block], new[block]), at


@pytest.mark.parametrize("count", [3, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.soak])])
def test_damage_is_never_applied(made, count):
    """A delta that was cut or changed anywhere is refused, and what it wrote before is right."""
    rng = random.Random(count)
    delta = (made / "delta").read_bytes()
    cuts = [0, 1, HEADER, HEADER + 31, HEADER + 32, len(delta) - 1, len(delta) - 32, len(delta) - 33]
    damaged = [delta[:length] for length in cuts + rng.sample(range(len(delta)), count)]
    damaged += [delta + b"\0", delta + delta]
    for at in [9, 17, 25, HEADER + 33, *rng.sample(range(len(delta)), count)]:
        damaged.append(delta[:at] + bytes([delta[at] ^ 1 << rng.randrange(8)]) + delta[at + 1 :])
    for bytes_ in damaged:
        (made / "copy").write_bytes((made / "base.raw").read_bytes())
        pathlib.Path("damaged").write_bytes(bytes_)
        result = attempt("--apply", "damaged", "copy")
        assert result.returncode == 2 and result.stderr.startswith(b"blkcopy: damaged: the delta at "), result
        assert result.stderr.count(b"\n") == 1 and not result.stdout
        blocks_are_old_or_new("copy")


def test_a_record_moved_left_out_or_repeated(made):
    """Each digest covers everything before it, so no two records can be exchanged."""
    delta = (made / "delta").read_bytes()
    decoded, at, records = Decoded(delta), HEADER + 32, []
    for first, end, old, data in decoded.records:
        is_data = int.from_bytes(delta[at:][:8], "little") == 1
        length = 24 + len(old) + (len(data) if is_data else 0) + 32
        records.append(delta[at : at + length])
        at += length
    head, tail = delta[: HEADER + 32], delta[at:]
    assert head + b"".join(records) + tail == delta and len(records) > 4
    orders = [records[1:], records[:2] + records[3:], [records[1], records[0], *records[2:]], [records[0], *records], []]
    for order in orders:
        (made / "copy").write_bytes((made / "base.raw").read_bytes())
        pathlib.Path("damaged").write_bytes(head + b"".join(order) + tail)
        fails(2, "the delta at ", "--apply", "damaged", "copy")
        blocks_are_old_or_new("copy")


def encoded(parts):
    """Returns a delta of these strings, each with its digest."""
    delta = chain = b""
    for part in parts:
        chain = hashlib.sha256(chain + part).digest()
        delta += part + chain
    return delta


@pytest.mark.parametrize("seed", mostly_slow(range(12), range(2)))
def test_hostile_deltas(made, seed):
    """With digests that are right, it writes at most what it says, to its destination, and ends with one line."""
    rng = random.Random(f"hostile {seed}")
    delta = (made / "delta").read_bytes()
    decoded, at, parts = Decoded(delta), HEADER + 32, [delta[:HEADER]]
    for _, _, old, data in decoded.records:
        is_data = int.from_bytes(delta[at:][:8], "little") == 1
        length = 24 + len(old) + (len(data) if is_data else 0)
        parts.append(delta[at : at + length])
        at += length + 32
    parts.append(delta[at:-32])
    assert encoded(parts) == delta
    for _ in range(25):
        changed = [bytearray(part) for part in parts]
        for _ in range(rng.randrange(1, 4)):
            part = rng.choice(changed)
            field = rng.choice([0, 8, 16, 24, 32 + 32, 32 + 72, rng.randrange(len(part))])
            if rng.randrange(3):
                value = rng.choice([0, 1, 2, 3, 4095, 1 << 16, 1 << 32, 1 << 62, (1 << 64) - 1, rng.getrandbits(20)])
                part[field : field + 8] = value.to_bytes(8, "little")
            elif field < len(part):
                part[field] ^= 1 << rng.randrange(8)
        if rng.randrange(4) == 0:
            rng.shuffle(changed)
        (made / "hostile").write_bytes(encoded(bytes(part) for part in changed))
        (made / "copy").write_bytes((made / "base.raw").read_bytes())
        force = rng.choice([[], ["--force"]])
        limits = ["prlimit", "--as=2000000000", "--fsize=100000000"]
        result = images.attempt(*limits, PROGRAM, *force, "--apply", "hostile", "copy", timeout=HANG)
        assert result.returncode in (0, 1, 2, 3, -signals.SIGXFSZ) and b"panicked" not in result.stderr, result
        assert result.stderr.count(b"\n") == (result.returncode > 0), result
        if result.returncode == 0:
            assert result.stdout.decode().split()[0] == decoded.text.split()[3]
            images.run("cmp", "copy", "new.raw")


def test_another_destination_is_left_alone(made):
    """No block is overwritten that is neither in the map nor in the image."""
    other = bytearray((made / "base.raw").read_bytes())
    other[0] ^= 1
    (made / "copy").write_bytes(other)
    result = fails(3, "4096 bytes at 0 are not those that the delta was made for", "--apply", "delta", "copy")
    assert b"--force" in result.stderr and (made / "copy").read_bytes() == other
    # What is outside of the delta is found at the end.
    other[0] ^= 1
    other[300_000] ^= 1
    (made / "copy").write_bytes(other)
    fails(1, "holds something else", "--apply", "delta", "copy")
    other = bytes(1000) + bytes(other)
    (made / "copy").write_bytes(other)
    fails(3, f"has {len(other)} bytes, and not ", "--apply", "delta", "copy")
    assert (made / "copy").read_bytes() == other
    fails(2, "does not exist", "--apply", "delta", "none")
    assert not (made / "none").exists()
    fails(2, "is the delta", "--apply", "delta", "delta")
    fails(3, "the delta was made for something else", "--force", "--apply", "delta", "copy")
    assert (made / "copy").read_bytes() == other
    # By force it is overwritten, and the end says whether that made it right.
    (made / "copy").write_bytes(os.urandom((made / "base.raw").stat().st_size))
    fails(1, "did not have the content", "--force", "--apply", "delta", "copy")


def test_another_destination_is_not_resized(made):
    """What would be cut off stays until the rest is right, and what is where a file would grow is not overwritten."""
    old = (made / "base.raw").read_bytes()
    (made / "new.raw").write_bytes(old[: 4 * MIB])
    (made / "shrink").write_bytes(delta_of("new.raw"))
    other = os.urandom(len(old))
    (made / "copy").write_bytes(other)
    fails(1, "holds something else", "--apply", "shrink", "copy")
    assert (made / "copy").read_bytes() == other
    (made / "copy").write_bytes(old)
    run("--apply", "shrink", "copy")
    images.run("cmp", "copy", "new.raw")
    (made / "new.raw").write_bytes(old + os.urandom(MIB) + bytes(MIB))
    (made / "grow").write_bytes(delta_of("new.raw"))
    for other in (old + os.urandom(2 * MIB), old[:-100] + bytes(100) + os.urandom(2 * MIB)):
        (made / "copy").write_bytes(other)
        fails(3, "are not those that the delta was made for", "--apply", "grow", "copy")
        assert (made / "copy").read_bytes()[: len(old)] in (other[: len(old)], old)
        assert (made / "copy").read_bytes()[len(old) + 4096 :] == other[len(old) + 4096 :]
    for there in (old, old + bytes(MIB), (made / "new.raw").read_bytes()[: len(old) + 300_000]):
        (made / "copy").write_bytes(there)
        run("--apply", "grow", "copy")
        images.run("cmp", "copy", "new.raw")


def test_the_expected_checksum_is_that_of_the_destination(made):
    """A delta chooses what it states. What is expected and printed is computed as the command line says."""
    line = blksum("new.raw").split()[0]
    (made / "linear").write_bytes(delta_of("new.raw", "--construction", "linear"))
    linear = hashlib.sha256((made / "new.raw").read_bytes()).hexdigest()
    for name in ("delta", "linear"):
        (made / "copy").write_bytes((made / "base.raw").read_bytes())
        assert run("--expect", line, "--apply", name, "copy").decode() == f"{line}  copy\n"
        fails(1, "not the one of --expect", "--expect", linear, "--apply", name, "copy")
        assert run("--construction", "linear", "--expect", linear, "--apply", name, "copy").decode() == f"{linear}  copy\n"
    # The stated one must be right as well.
    delta = (made / "delta").read_bytes()
    end = f"sha256 linear 65536 {line}".encode()
    records = delta[: delta.rindex((3).to_bytes(8, "little") + bytes(8))]
    part = (3).to_bytes(8, "little") + bytes(8) + len(end).to_bytes(8, "little") + end
    (made / "lie").write_bytes(records + part + hashlib.sha256(records[-32:] + part).digest())
    fails(1, "holds something else", "--expect", line, "--apply", "lie", "copy")
    # Without reading it back, nothing is printed.
    assert run("--verify", "source", "--apply", "delta", "copy") == b""
    result = attempt("--verify", "source", "--expect", line, "--apply", "delta", "copy")
    assert result.returncode == 2 and b"there is no checksum" in result.stderr
    result = attempt("-d", "null", "--delta-from", "base.blkmap", "new.raw", "-")
    assert result.returncode == 2 and not result.stdout, result
    # A delta of a source that is not the expected one has no end.
    sent = attempt("--expect", "00" * 32, "--delta-from", "base.blkmap", "new.raw", "-")
    assert sent.returncode == 1 and b"not the one of --expect" in sent.stderr
    (made / "cut").write_bytes(sent.stdout)
    fails(2, "is not complete", "--apply", "cut", "copy")


def test_standard_streams_that_are_other_files(made):
    """What is read is never printed to, and a list on standard input is no destination."""
    for name in ("base.blkmap", "new.raw"):
        before = pathlib.Path(name).read_bytes()
        for mode in ("ab", "r+b"):
            with open(name, mode) as file:
                command = [PROGRAM, "--delta-from", "base.blkmap", "new.raw", "-"]
                result = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, timeout=HANG)
            assert result.returncode == 2 and result.stderr.count(b"\n") == 1, result
            assert pathlib.Path(name).read_bytes() == before
    (made / "list").write_bytes(b"0 4096\n")
    lines = ["--changes", "-", "--changes-format", "lines"]
    with open("list", "rb") as file:
        fails(2, "is the list of --changes", *lines, "new.raw", "list", stdin=file)
        result = attempt(*lines, "-", "base.raw", stdin=file)
        assert result.returncode == 2 and b"standard input is the source" in result.stderr
    assert (made / "list").read_bytes() == b"0 4096\n"


def test_killed_and_applied_again(made):
    """A delta that was applied in part is applied again."""
    rng, new = random.Random(7), (made / "new.raw").read_bytes()
    for _ in range(20):
        (made / "copy").write_bytes((made / "base.raw").read_bytes())
        process = subprocess.Popen([PROGRAM, "--apply", "delta", "copy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(rng.random() * 0.06)
        process.send_signal(rng.choice([signals.SIGKILL, signals.SIGINT]))
        process.communicate(timeout=HANG)
        blocks_are_old_or_new("copy")
        run("--apply", "delta", "copy")
        assert (made / "copy").read_bytes() == new


def test_options_that_do_not_go_together(made):
    for status, says, *args in [
        (2, "the destination is -", "--delta-from", "base.blkmap", "new.raw", "x"),
        (2, "cannot be used with", "--delta-from", "base.blkmap", "--apply", "new.raw", "-"),
        (2, "cannot be used with", "--apply", "--update", "delta", "base.raw"),
        (2, "has a checksum", "--apply", "--verify=none", "delta", "base.raw"),
        (2, "there are no options of images", "--apply", "-f", "raw", "delta", "base.raw"),
        (2, "cannot be applied to a pipe", "--apply", "delta", "-"),
        (2, "is a URI", "--apply", "nbd://host/x", "base.raw"),
        (2, "not a block map", "--delta-from", "new.raw", "new.raw", "-"),
        (2, "is not a delta", "--apply", "base.blkmap", "base.raw"),
    ]:
        result = attempt(*args)
        assert result.returncode == status and says in result.stderr.decode(), (args, result)
    expected = blksum("new.raw").split()[0]
    fails(1, "not the one of --expect", "--apply", "--expect", "00" * 32, "delta", "base.raw")
    assert run("--apply", "--tag", "--expect", expected, "delta", "base.raw").decode().endswith(f"{expected}\n")


def test_a_map_that_does_not_know_every_block(made):
    images.run(BLKHASH, "map", "create", "--block-size", "4096", "--shard", "1/2", "base.raw", "-o", "part.blkmap")
    result = fails(2, "knows only", "--delta-from", "part.blkmap", "new.raw", "-")
    assert b"part.blkmap" in result.stderr


def test_a_source_that_changes(made):
    """Each block is read twice, and the receiver finds the one that was another the second time."""
    (made / "base.raw").write_bytes(bytes(6 * MIB))
    map_of("base.raw", "--block-size", str(MIB))
    command = ["nbdkit", "-U", "-", "eval", "get_size=echo 6M", "pread=head -c $3 /dev/urandom", "--run"]
    shell = f'{PROGRAM} --delta-from base.blkmap "$uri" - > delta'
    images.run(*command, shell)
    (made / "copy").write_bytes(bytes(6 * MIB))
    fails(1, "holds something else", "--apply", "delta", "copy")


@pytest.mark.root
@pytest.mark.parametrize("sector", [512, 4096])
def test_devices(made, sector):
    """A larger device keeps what follows, and a smaller one is refused."""
    for path in (made / "base.raw", made / "new.raw"):
        os.truncate(path, 7 * MIB)
    map_of("base.raw", "--block-size", "4096")
    (made / "delta").write_bytes(delta_of("new.raw"))
    behind = os.urandom(MIB)
    (made / "device").write_bytes((made / "base.raw").read_bytes() + behind)
    with loop_device("device", "-b", str(sector)) as device:
        run("--apply", "delta", device)
        same(device, "new.raw", 7 * MIB)
    assert (made / "device").read_bytes()[7 * MIB :] == behind
    (made / "device").write_bytes(bytes(6 * MIB))
    with loop_device("device", "-b", str(sector)) as device:
        fails(2, f"{device}: has 6291456 bytes, and the delta needs {7 * MIB}\n", "--apply", "delta", device)


@pytest.mark.root
@pytest.mark.parametrize("size", [7 * MIB, 7 * MIB + 512])
def test_a_delta_grows_over_nothing_on_a_device(made, size):
    """What a larger device holds after the content before is no content that a delta was made for."""
    (made / "old").write_bytes(os.urandom(size))
    map_of("old")
    (made / "new.raw").write_bytes((made / "old").read_bytes() + os.urandom(BLOCK) + bytes(MIB) + os.urandom(512))
    (made / "grow").write_bytes(delta_of("new.raw"))
    new = (made / "new.raw").read_bytes()
    for at in (size, size + BLOCK + 5000, len(new) - 1):
        before = bytearray((made / "old").read_bytes() + bytes(2 * MIB))
        before[at] = 1
        (made / "device").write_bytes(before)
        with loop_device("device") as device:
            says = "are not those that the delta was made for: nothing is written to another disk"
            fails(3, says, "--apply", "grow", device)
            assert pathlib.Path(device).read_bytes()[at] == 1
            run("--force", "--apply", "grow", device)
            same(device, "new.raw", len(new))
    for behind in (bytes(2 * MIB), new[size:] + bytes(2 * MIB)):
        (made / "device").write_bytes((made / "old").read_bytes() + behind)
        with loop_device("device") as device:
            run("--apply", "grow", device)
            same(device, "new.raw", len(new))


def test_a_delta_that_leaves_nothing(made):
    """No digest tells whether it was made for what the file holds."""
    (made / "nothing").write_bytes(b"")
    (made / "delta").write_bytes(delta_of("nothing"))
    for content in ((made / "base.raw").read_bytes(), os.urandom((made / "base.raw").stat().st_size)):
        (made / "copy").write_bytes(content)
        fails(3, "the delta leaves no content", "--apply", "delta", "copy")
        assert (made / "copy").read_bytes() == content
    for options in (["--force"], []):
        run(*options, "--apply", "delta", "copy")
        assert (made / "copy").read_bytes() == b""


def test_what_is_no_delta(made):
    (made / "copy").write_bytes((made / "base.raw").read_bytes())
    for text in (b"", b"hello\n", b"text " * 5000):
        (made / "text").write_bytes(text)
        fails(2, "blkcopy: text: the delta at 0: is not a delta\n", "--apply", "text", "copy")
        fails(2, "blkcopy: -: the delta at 0: is not a delta\n", "--apply", "-", "copy", input=text, stdin=None)
    fails(2, "blkcopy: .: Is a directory\n", "--apply", ".", "copy")
    images.run("cmp", "copy", "base.raw")


def test_pipes_that_do_not_block(made):
    """Another process that has a pipe may have made it one that does not block."""
    delta = (made / "delta").read_bytes()
    (made / "copy").write_bytes((made / "base.raw").read_bytes())
    for options, content in ((["--apply"], delta), (["--force"], (made / "new.raw").read_bytes())):
        read, write = os.pipe()
        os.set_blocking(read, False)
        with subprocess.Popen([PROGRAM, "-q", *options, "-", "copy"], stdin=read) as process:
            os.close(read)
            with open(write, "wb") as pipe:
                for at in range(0, len(content), 1 << 20):
                    time.sleep(0.05)
                    pipe.write(content[at : at + (1 << 20)])
            assert process.wait() == 0
        images.run("cmp", "copy", "new.raw")
    read, write = os.pipe()
    os.set_blocking(write, False)
    with subprocess.Popen([PROGRAM, "-q", "new.raw", "-"], stdout=write) as process:
        os.close(write)
        time.sleep(0.2)
        with open(read, "rb") as pipe:
            assert pipe.read() == (made / "new.raw").read_bytes()
        assert process.wait() == 0


def test_servers(made):
    """Over a pipe to an export of qemu-nbd, which is qcow2."""
    for path in (made / "base.raw", made / "new.raw"):
        os.truncate(path, 7 * MIB)
    map_of("base.raw")
    images.convert(made / "base.raw", made / "copy.qcow2")
    servers = Servers()
    try:
        uri = servers.writable_qemu_nbd("copy.qcow2", fmt="qcow2").uri()
        line = blksum("new.raw").split()[0]
        script = f'set -o pipefail; "$0" --delta-from base.blkmap new.raw - | "$0" --apply - "{uri}"'
        assert images.run("bash", "-c", script, PROGRAM).decode() == f"{line}  {uri}\n"
    finally:
        servers.close()
    images.qemu_img("compare", "-f", "raw", "-F", "qcow2", "new.raw", "copy.qcow2")


def test_a_delta_opens_nothing(made):
    """Nothing in a delta names a file: those that are opened after its first byte is read are the destination's."""
    trace = ["strace", "-f", "-o", "trace", "-e", "trace=openat,open,creat,unlink,unlinkat,rename,renameat2,connect,execve"]
    images.run(*trace, PROGRAM, "--apply", "delta", "base.raw")
    lines = pathlib.Path("trace").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if 'openat' in line and '"delta"' in line)
    opened = [line for line in lines[start + 1 :] if '("' in line or ', "' in line]
    assert all("/proc/" in line or "/sys/" in line or '"base.raw"' in line for line in opened), opened


@pytest.mark.parametrize("seed", mostly_slow(range(60), range(8), range(30)))
def test_the_map_of_the_destination(workdir, seed):
    """What differs from it is written, and nothing else."""
    rng = random.Random(f"destination map {seed}")
    old = bytes(rng.choice([100, 4096, 2 * MIB + 512]))
    for _ in range(10):
        old = changed(rng, old)[: 8 * MIB]
    (workdir / "old.raw").write_bytes(old)
    map_of("old.raw", "--block-size", "4096")
    new = changed(rng, old)
    (workdir / "new.raw").write_bytes(new)
    (workdir / "copy").write_bytes(old)
    zeros = ["--zeros", rng.choice(["auto", "write", "keep-if-zero"])]
    found = json.loads(run("--json", *zeros, "--destination-map", "base.blkmap", "new.raw", "copy"))
    assert (workdir / "copy").read_bytes() == new
    assert found["checksum"] == blksum("new.raw").split()[0]
    assert found["written_bytes"] + found["zeroed_bytes"] + found["equal_bytes"] == len(new)
    if len(old) == len(new):
        blocks = [slice(at, at + 4096) for at in range(0, len(new), 4096)]
        equal = sum(len(new[block]) for block in blocks if new[block] == old[block])
        assert found["equal_bytes"] == equal


def test_a_map_of_another_destination(made):
    other = bytearray((made / "base.raw").read_bytes())
    other[1] ^= 1
    other[300_000] ^= 1
    (made / "copy").write_bytes(other)
    # The first difference is overwritten, and the second is found.
    result = fails(1, "holds something else", "--destination-map", "base.blkmap", "new.raw", "copy")
    assert b" at 262144 differ" in result.stderr
    (made / "copy").write_bytes(other + b"more")
    fails(3, "and not ", "--destination-map", "base.blkmap", "new.raw", "copy")
    fails(2, "does not exist", "--destination-map", "base.blkmap", "new.raw", "none")
    fails(2, "is the map of --destination-map", "--force", "--destination-map", "base.blkmap", "new.raw", "base.blkmap")


@pytest.mark.parametrize("seed", mostly_slow(range(40), range(6), range(20)))
def test_lists_of_changes(workdir, seed):
    """What the list names is copied and compared, and nothing else is touched."""
    rng = random.Random(f"list {seed}")
    old = rng.randbytes(3 * MIB + 512) if rng.randrange(2) else bytes(2 * MIB)
    new, extents = bytearray(old), []
    for _ in range(rng.randrange(1, 6)):
        length = rng.choice([1, 512, 4096, 200_000])
        at = rng.randrange(len(new) - length)
        new[at : at + length] = rng.choice([bytes(length), rng.randbytes(length)])
        extents.append((at, length))
    (workdir / "new.raw").write_bytes(new)
    (workdir / "list").write_text("".join(f"{at} {length}\n" for at, length in extents))
    # Elsewhere, the destination has something of its own.
    own = bytearray(old)
    own[MIB] ^= 1
    is_named = any(at <= MIB < at + length for at, length in extents)
    (workdir / "copy").write_bytes(own)
    for at, length in extents:
        own[at : at + length] = new[at : at + length]
    options = rng.choice([[], ["--update"], ["--zeros", "write"]])
    line = run(*options, "--changes", "list", "--changes-format", "lines", "new.raw", "copy").decode()
    assert (workdir / "copy").read_bytes() == own
    (workdir / "longer").write_bytes(own + b"x")
    fails(3, "and not ", "--force", "--changes", "list", "--changes-format", "lines", "new.raw", "longer")
    assert (workdir / "longer").read_bytes() == own + b"x"
    assert line == blksum("copy") and (line.split()[0] == blksum("new.raw").split()[0]) == is_named
    result = attempt("--expect", blksum("new.raw").split()[0], "--changes", "list", "--changes-format", "lines", "new.raw", "copy")
    assert result.returncode == (0 if is_named else 1)
    assert run("--verify", "source", "--changes", "list", "--changes-format", "lines", "new.raw", "copy") == b""
    # As for map update: the last extent may be rounded up, and none begins past the end.
    (workdir / "list").write_text(f"{len(own) - 1} 100000\n")
    run("--changes", "list", "--changes-format", "lines", "new.raw", "copy")
    (workdir / "list").write_text(f"0 512\n{len(own)} 1\n")
    fails(2, f"list: an extent begins at {len(own)}, past the end", "--changes", "list", "--changes-format", "lines", "new.raw", "copy")


def test_a_bitmap_of_an_image(workdir):
    """What was written since it was made gets to the copy, also where it grew."""
    images.create(workdir / "disk.qcow2", "4M")
    images.qemu_io(workdir / "disk.qcow2", "write -P 7 0 1M")
    run(workdir / "disk.qcow2", "copy")
    images.qemu_img("bitmap", "--add", workdir / "disk.qcow2", "since")
    images.qemu_io(workdir / "disk.qcow2", "write -P 9 70000 3000", "write -z 512K 64K")
    found = json.loads(run("--json", "--bitmap", "since", workdir / "disk.qcow2", "copy"))
    assert found["equal_bytes"] == 4 * MIB - 2 * BLOCK
    assert found["checksum"] == blksum("disk.qcow2").split()[0]
    images.qemu_img("compare", "-f", "raw", "-F", "qcow2", "copy", "disk.qcow2")
    fails(2, "no bitmap", "--bitmap", "other", workdir / "disk.qcow2", "copy")
    result = attempt("--bitmap", "since", "--verify", "source", "--tag", workdir / "disk.qcow2", "copy")
    assert result.returncode == 2 and b"there is no checksum" in result.stderr
