"""blkcopy: what the destination holds afterwards, compared by qemu-img and cmp, and what it never does."""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal as signals
import stat
import struct
import subprocess
import time

import pytest

import blkmap
import filesystems
import images
from changing import loop_device
from commands import HANG, blksum_path, mostly_slow
from copies import PROGRAM, Copying, attempt, blksum, fails, run, same, write

MIB = 1 << 20
BLOCK = 65536
OLD = ["new", "ones", "random", "larger", "shorter", "older", "sparse", "equal"]


def done(*args, **kwargs):
    result = attempt(*args, **kwargs)
    assert result.returncode == 0, (args, result)
    return result


def gone(name):
    """Whether a file is not there, or is removed soon: a process that a signal ended leaves that to its child."""
    deadline = time.monotonic() + 10
    while os.path.exists(name) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not os.path.exists(name)


def fill(rng, path, old, size, pieces):
    """Makes what a destination held before."""
    if old == "new":
        return
    if old in ("older", "equal"):
        write(path, pieces)
        with open(path, "r+b") as file:
            for _ in range(rng.randrange(1, 6) if old == "older" else 0):
                file.seek(rng.randrange(size))
                file.write(rng.choice([bytes(3000), rng.randbytes(5000)]))
            file.truncate(size)
        return
    length = size + {"larger": 3 * MIB, "shorter": -min(size, MIB)}.get(old, 0)
    with open(path, "wb") as file:
        if old == "sparse":
            file.truncate(length)
            return
        for _ in range(length // MIB + 1):
            file.write(b"\xff" * MIB if old == "ones" else rng.randbytes(MIB))
        file.truncate(length)


@pytest.mark.parametrize("seed", mostly_slow(range(100), [0, 1, 2], range(40)))
def test_files(workdir, seed):
    """Ten copies to files of all kinds."""
    rng = random.Random(seed)
    for number in range(10):
        folder = workdir / str(number)
        folder.mkdir()
        case = Copying(rng, folder)
        old = rng.choice(OLD)
        destination = folder / "copy"
        fill(rng, destination, old, case.size, case.pieces)
        case.copy(case.options(old), destination)
        assert destination.stat().st_size == case.size
        same(destination, case.raw, case.size)
        images.qemu_img("compare", "-f", "raw", "-F", "raw", destination, case.raw)
        shutil.rmtree(folder)


@contextlib.contextmanager
def mounted(kind, folder):
    """Mounts a new file system."""
    image, place = folder / f"{kind}.fs", folder / kind
    with open(image, "wb") as file:
        file.truncate(400 * MIB)
    images.run(f"mkfs.{kind}", *(["-q"] if kind != "btrfs" else ["-q", "-m", "single"]), str(image))
    place.mkdir()
    images.run("mount", "-o", "loop", str(image), str(place))
    try:
        yield place
    finally:
        images.run("umount", str(place))


@pytest.mark.root
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
@pytest.mark.parametrize("seed", mostly_slow(range(8), []))
def test_file_systems(workdir, kind, seed):
    rng = random.Random(f"{kind} {seed}")
    with mounted(kind, workdir) as place:
        for number in range(8):
            case = Copying(rng, workdir)
            destination, old = place / f"copy{number}", rng.choice(OLD)
            fill(rng, destination, old, case.size, case.pieces)
            case.copy(case.options(old), destination)
            same(destination, case.raw, case.size)
            assert destination.stat().st_size == case.size
            destination.unlink()


@pytest.mark.root
@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("seed", mostly_slow(range(8), [0]))
def test_devices(workdir, sector, seed):
    rng = random.Random(f"{sector} {seed}")
    for _ in range(8):
        case = Copying(rng, workdir)
        old = rng.choice(OLD[1:])
        size = (case.size + rng.choice([0, 0, 5 * MIB])).__ceil__()
        size = -(-size // sector) * sector
        backing = workdir / "device"
        fill(rng, backing, old if old not in ("larger", "shorter") else "random", size, case.pieces)
        os.truncate(backing, size)
        before = backing.read_bytes()
        with loop_device(backing, "-b", str(sector)) as device:
            case.copy(case.options(old), device)
            same(device, case.raw, case.size)
            # Its node is in memory, and its content is not.
            found = json.loads(run("--json", "--update", case.raw, device))
            assert found["read_back"] == "direct"
        # What follows the copy stays.
        assert backing.read_bytes()[case.size :] == before[case.size :]


FILTERS = [
    [],
    ["--filter=nozero"],
    ["--filter=nozero", "zeromode=emulate"],
    ["--filter=nozero", "zeromode=notrim"],
    ["--filter=fua", "fuamode=emulate"],
    ["--filter=noextents"],
    ["--filter=multi-conn", "multi-conn-mode=disable"],
    ["--filter=noparallel"],
    ["--filter=blocksize-policy", "blocksize-minimum=4096", "blocksize-preferred=65536", "blocksize-maximum=1M"],
    ["--filter=blocksize-policy", "blocksize-minimum=64K", "blocksize-preferred=64K", "blocksize-maximum=256K"],
]


@pytest.mark.parametrize("seed", mostly_slow(range(30), [0, 1]))
def test_servers(workdir, servers, seed):
    rng = random.Random(f"nbd {seed}")
    for _ in range(4):
        case = Copying(rng, workdir, 512)
        size, old = case.size + rng.choice([0, 0, 2 * MIB]), rng.choice(["ones", "random", "sparse", "equal", "older"])
        backing = workdir / "export"
        fill(rng, backing, old, case.size, case.pieces)
        options = case.options(old)
        if "punch" in options:
            options[1] = "auto"
        if rng.randrange(3) == 0:
            fmt = rng.choice(["raw", "qcow2"])
            os.truncate(backing, size)
            if fmt == "qcow2":
                images.convert(backing, workdir / "export.qcow2")
                backing = workdir / "export.qcow2"
            discard = rng.choice([["--discard=unmap", "--detect-zeroes=unmap"], []])
            server = servers.writable_qemu_nbd(backing, *discard, fmt=fmt)
        else:
            fmt, filters = "raw", rng.choice(FILTERS)
            whole = 65536 if any("64K" in it for it in filters) else 4096
            size = -(-size // whole) * whole
            os.truncate(backing, size)
            names = [it for it in filters if it.startswith("--")]
            server = servers.writable_nbdkit(*names, "file", str(backing), *[it for it in filters if it not in names])
        case.copy(options, server.uri())
        server.process.terminate()
        server.process.wait()
        if fmt == "qcow2":
            images.to_raw(backing, workdir / "export.raw")
            backing = workdir / "export.raw"
        same(backing, case.raw, case.size)


# A server of nbdkit's eval plugin over a file. What is given replaces one of its answers.
HONEST = {
    "get_size": 'stat -c %s "$EXPORT"',
    "pread": 'dd if="$EXPORT" bs=1 skip=$4 count=$3 status=none',
    "pwrite": 'dd of="$EXPORT" bs=1 seek=$4 conv=notrunc status=none',
    "can_write": "exit 0",
    "can_zero": "exit 0",
    "zero": 'head -c $3 /dev/zero | dd of="$EXPORT" bs=1 seek=$4 conv=notrunc status=none',
    "can_flush": "exit 0",
    "flush": "exit 0",
}

FAULTS = {
    "drops writes": {"pwrite": "cat > /dev/null"},
    "drops a part of a write": {"pwrite": 'head -c 100 | dd of="$EXPORT" bs=1 seek=$4 conv=notrunc status=none; cat > /dev/null'},
    "writes elsewhere": {"pwrite": 'dd of="$EXPORT" bs=1 seek=$(($4 + 512)) conv=notrunc status=none'},
    "lies about zeros": {"zero": "exit 0"},
    "zeros too little": {"zero": 'head -c $(($3 - 1)) /dev/zero | dd of="$EXPORT" bs=1 seek=$4 conv=notrunc status=none'},
    "zeros too much": {"zero": 'head -c $(($3 + 1)) /dev/zero | dd of="$EXPORT" bs=1 seek=$4 conv=notrunc status=none'},
    "forgets at the flush": {"flush": 'tr "\\0" "\\1" < "$EXPORT" > "$EXPORT.new"; cat "$EXPORT.new" > "$EXPORT"'},
    "reads zeros": {"pread": "head -c $3 /dev/zero"},
    "fails to write": {"pwrite": "cat > /dev/null; echo ENOSPC >&2; exit 1"},
    "fails to zero": {"zero": "echo EIO >&2; exit 1"},
    "fails to flush": {"flush": "echo EIO >&2; exit 1"},
    "fails to read": {"pread": "echo EIO >&2; exit 1"},
}


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_faults_of_servers(workdir, servers, fault):
    """Whatever the server does: the exit status is not 0 unless the export has the content."""
    content = os.urandom(BLOCK) + bytes(BLOCK) + os.urandom(BLOCK)
    (workdir / "disk.raw").write_bytes(content)
    (workdir / "export").write_bytes(b"\xff" * len(content))
    answers = HONEST | FAULTS.get(fault, {})
    answers = [f"{name}={answer}".replace("$EXPORT", str(workdir / "export")) for name, answer in answers.items()]
    uri = servers.writable_nbdkit("eval", *answers).uri()
    result = attempt("--force", "disk.raw", uri)
    # What a server zeroed too much may be written afterwards.
    if fault is None or (fault == "zeros too much" and result.returncode == 0):
        assert result.returncode == 0 and (workdir / "export").read_bytes() == content, result
        return
    assert result.returncode == (2 if fault.startswith("fails") else 1), (fault, result)
    assert result.stdout == b"" and result.stderr.count(b"\n") == 1, (fault, result)
    if not fault.startswith("fails"):
        assert b"holds something else than what was written: " in result.stderr, result


@pytest.mark.parametrize("slow", ["flush", "pwrite", "pread"])
def test_a_server_that_takes_long(disk, servers, slow):
    """The message says how to wait for it."""
    (disk / "export").write_bytes(bytes(8 * MIB))
    answers = HONEST | {slow: f"sleep 1; {HONEST[slow]}"}
    answers = [f"{name}={answer}".replace("$EXPORT", str(disk / "export")) for name, answer in answers.items()]
    uri = servers.writable_nbdkit("eval", *answers).uri()
    (disk / "small").write_bytes(b"x" * 512)
    says = "the server did not answer for 0.3 seconds: --timeout=SECONDS waits longer\n"
    fails(2, says, "--force", "--timeout=0.3", "small", uri)
    run("--force", "--timeout=20", "small", uri)


def test_a_full_file_system(workdir):
    (workdir / "small").mkdir()
    (workdir / "disk.raw").write_bytes(os.urandom(3 * MIB))
    images.run("mount", "-t", "tmpfs", "-o", "size=2M", "none", "small")
    try:
        fails(2, "cannot be written: No space left on device", "disk.raw", "small/copy")
        assert not os.listdir("small")
    finally:
        images.run("umount", "small")


@pytest.fixture
def disk(workdir):
    """disk.qcow2, and its content in disk.raw."""
    images.create("disk.qcow2", "8M")
    images.qemu_io("disk.qcow2", "write -P 7 1M 300k", "write -P 8 5M 64k")
    images.to_raw("disk.qcow2", "disk.raw")
    return workdir


def test_output(disk):
    line = blksum("disk.qcow2")
    assert run("disk.qcow2", "copy").decode() == line.replace("disk.qcow2", "copy")
    tag = run("--force", "--tag", "disk.qcow2", "copy").decode()
    assert images.run(str(blksum_path()), "-c", "-", input=tag.encode(), stdin=None) == b"copy: OK (format raw)\n"
    found = json.loads(run("--update", "--json", "disk.qcow2", "copy"))
    assert (found["checksum"], found["verified"]) == (line.split()[0], "readback")
    assert (found["written_bytes"], found["zeroed_bytes"], found["equal_bytes"]) == (0, 0, 8 * MIB)
    nothing = json.loads(run("--force", "--json", "--verify=none", "disk.qcow2", "copy"))
    assert (nothing["checksum"], nothing["verified"], nothing["read_back"]) == (None, "none", None)
    assert nothing["written_bytes"] + nothing["zeroed_bytes"] == 8 * MIB
    assert run("-q", "--force", "disk.qcow2", "copy") == b""
    verbose = attempt("-v", "--force", "disk.qcow2", "copy").stderr.decode()
    how = "around" if found["read_back"] == "direct" else "through"
    assert verbose == f"blkcopy: copy: 364.00 KiB written, 7.64 MiB of zeros, 0 B left as they were; read back {how} the page cache, and equal\n"


def test_standard_output(disk):
    result = attempt("disk.qcow2", "-")
    assert result.stdout == (disk / "disk.raw").read_bytes()
    assert result.stderr.decode() == blksum("disk.qcow2").replace("disk.qcow2", "-")
    result = attempt("--quiet", "disk.qcow2", "-")
    assert result.stderr == b""
    with open("/dev/full", "wb") as full:
        result = subprocess.run([PROGRAM, "disk.qcow2", "-"], stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 2 and b"No space left on device" in result.stderr
    for option in ["--update", "--zeros=write", "--map=m", "--verify=readback"]:
        assert attempt(option, "disk.qcow2", "-").returncode == 2


@pytest.mark.parametrize("kind", ["new", "ones", pytest.param("device", marks=pytest.mark.root), "server"])
def test_standard_input(disk, servers, kind):
    """A pipe is copied as it comes, and a file like that file."""
    content = os.urandom(300000) + bytes(MIB) + os.urandom(512 - 300000 % 512)
    (disk / "content").write_bytes(content)
    value = blksum("content").split()[0]
    with contextlib.ExitStack() as stack:
        destination, options = "copy", ["--force"]
        if kind != "new":
            (disk / "copy").write_bytes(b"\xff" * (2 * MIB))
        if kind == "device":
            destination = stack.enter_context(loop_device("copy"))
        if kind == "server":
            destination = servers.writable_nbdkit("file", str(disk / "copy")).uri()
        line = run(*options, "-", destination, input=content, stdin=None).decode()
        assert line == f"{value}  {destination}\n"
    copied = (disk / "copy").read_bytes()
    rest = b"" if kind in ("new", "ones") else b"\xff" * (2 * MIB - len(content))
    assert copied == content + rest
    with open("disk.qcow2", "rb") as file:
        run("--force", "-", "other", stdin=file)
    images.run("cmp", "other", "disk.raw")
    with open("disk.qcow2", "rb") as file:
        piped = attempt("--force", "-", "other", input=file.read(), stdin=None)
    assert piped.returncode == 2 and b"looks like qcow2" in piped.stderr
    for option in ["--update", "--zeros=keep-if-zero", "--map=m", "--partition=1"]:
        result = attempt("--force", option, "-", "other", input=content, stdin=None)
        assert result.returncode == 2 and b"is a pipe, for which there is no" in result.stderr, result
    images.run("cmp", "other", "disk.raw")


def test_expect(disk):
    value = blksum("disk.qcow2").split()[0]
    run("--expect", value, "disk.qcow2", "copy")
    run("--force", "--expect", "blake3:" + blksum("-d", "blake3", "disk.qcow2").split()[0], "disk.qcow2", "copy")
    result = attempt("--force", "--expect", value[:-1] + "0", "disk.qcow2", "copy")
    assert result.returncode == 1 and result.stdout == b""
    assert b", and not the one of --expect: tried as streams:4, streams:32, " in result.stderr, result
    wrong = value[:-1] + "0"
    assert attempt("--map", "m", "--expect", wrong, "disk.qcow2", "new").returncode == 1
    assert not os.path.exists("new") and not os.path.exists("m")
    assert attempt("--expect", value[:-1] + "0", "disk.qcow2", "new").returncode == 1 and not os.path.exists("new")
    # A line of a check file says how its value was made.
    sha1 = images.run("sha1sum", "--tag", "disk.raw").decode()
    for options in [["--tag"], ["-d", "blake3", "--tag"], ["--construction=flat", "--block-size=4096", "--tag"], []]:
        run("--force", "--expect", blksum(*options, "disk.qcow2"), "disk.qcow2", "copy")
    run("--force", "--expect", sha1, "disk.qcow2", "copy")
    run("--force", "--construction=linear", "--expect", images.run("sha256sum", "disk.raw").decode(), "disk.qcow2", "copy")
    assert blksum("--tag", "copy") == blksum("--tag", "disk.raw").replace("disk.raw", "copy")
    salted = blksum("--tag", "--salt=00ff", "--construction=fs-verity", "disk.qcow2")
    tag = blksum("--tag", "disk.qcow2")
    for options, says in [
        ((salted,), "has a salt"),
        ((sha1, "--digest=md5"), "--expect is sha1, and --digest md5"),
        ((sha1, "--construction=flat"), "--expect is linear, and --construction flat"),
        ((tag, "--block-size=4096"), "has blocks of 65536 bytes, and --block-size is another one"),
        ((tag + tag,), "is more than one line"),
        (("hello",), "or a line of a check file"),
    ]:
        result = attempt("--force", "--expect", *options, "disk.qcow2", "copy")
        assert result.returncode == 2 and says in result.stderr.decode(), (options, result)
    result = attempt("--force", "--expect", sha1[:-41] + 40 * "0", "disk.qcow2", "copy")
    assert result.returncode == 1 and result.stderr.endswith(b", and not the one of --expect\n"), result
    for options in [("--expect", "12"), ("--expect", value, "--digest", "sha1"), ("--expect", value, "--verify=none")]:
        assert attempt("--force", *options, "disk.qcow2", "copy").returncode == 2


def test_what_a_value_is_of(disk, servers):
    """As blksum --expect finds it out, in the passes of a copy."""
    sums = {name: images.run(f"{name}sum", "disk.raw").decode() for name in ("sha256", "sha512", "md5", "b2")}
    sums["sha256 of the text"] = "sha256:" + sums["sha256"].split()[0]
    for construction in ["streams:32", "flat", "concat"]:
        sums[construction] = blksum("--construction", construction, "disk.raw").split()[0]
    sums["blake3"] = blksum("-d", "blake3", "disk.raw").split()[0]
    sums["oVirt"] = blksum("--construction=concat", "--block-size=4M", "disk.raw").split()[0]
    content = (disk / "disk.raw").read_bytes()
    images.run("xz", "-k", "--block-size=1MiB", "disk.raw")
    images.run("gzip", "-k", "disk.raw")
    sources = ["disk.raw", "disk.qcow2", "disk.raw.xz", "disk.raw.gz"]
    for number, (name, text) in enumerate(sums.items()):
        value = text.split()[0].removeprefix("sha256:")
        assert blksum("--expect", text, "disk.raw").startswith("disk.raw: OK"), name
        # What comes once is compared with what is likely.
        is_likely = name not in ("blake3", "b2")
        source = sources[number % (4 if is_likely else 3)]
        run("--force", "--expect", text, source, "copy")
        images.run("cmp", "copy", "disk.raw")
        source = sources[number % 3]
        options = ["--verify=source"] if number % 2 else ["--map", f"m{number}"]
        line = done("--force", *options, "--expect", text, source, "copy").stdout
        assert line.decode() == f"{value}  copy\n", (name, source, line)
        if is_likely:
            sent = done("--expect", text, source, "-")
            assert sent.stdout == content and sent.stderr.decode() == f"{value}  -\n", (name, source)
            verify = ["readback", "source"][number % 2]
            run("--force", f"--verify={verify}", "--expect", text, "-", "copy", input=content, stdin=None)
            images.run("cmp", "copy", "disk.raw")
    for source in sources:
        for options in [[], ["--map=wrong"]] if source != "disk.raw.gz" else [[]]:
            result = attempt(*options, "--expect", "0" * 64, source, "new")
            assert result.returncode == 1 and b"not the one of --expect" in result.stderr, (source, result)
            assert gone("new") and gone("wrong")


def test_a_value_of_the_compressed_file(disk):
    """Vendors publish the digest of what is downloaded."""
    images.run("xz", "-k", "disk.raw")
    images.run("zstd", "-q", "disk.raw")
    for source in ["disk.raw.xz", "disk.raw.zst", "disk.qcow2"]:
        for program in ["sha256sum", "sha512sum", "md5sum"]:
            text = images.run(program, source).decode()
            result = done("--force", "--expect", text, source, "copy")
            assert b"--expect is the checksum of the bytes of this file" in result.stderr, (source, result)
            images.run("cmp", "copy", "disk.raw")
            own = {"sha256sum": [], "sha512sum": ["-d", "sha512"], "md5sum": ["-d", "md5"]}[program]
            assert result.stdout.decode() == blksum(*own, "copy")
        assert done("-q", "--force", "--expect", text, source, "copy").stderr == b""
        # The sum of a part covers its content.
        other = "0" + text[1:] if text[0] != "0" else "1" + text[1:]
        assert attempt("--force", "--expect", other, source, "copy").returncode == 1
    # The sum of an overlay says nothing about its backing file.
    images.create("overlay.qcow2", "8M", "-b", "disk.qcow2", "-F", "qcow2")
    result = attempt("--expect", images.run("sha256sum", "overlay.qcow2").decode(), "overlay.qcow2", "new")
    assert result.returncode == 1 and b"its content is in other files too" in result.stderr, result
    assert not os.path.exists("new")


def test_a_value_of_a_list_of_digests(disk):
    """Its content may be another disk, so it is not taken without the construction."""
    listed = b"".join(hashlib.sha256(bytes([number]) * BLOCK).digest() for number in range(64))
    (disk / "list").write_bytes(listed)
    value = hashlib.sha256(listed).hexdigest()
    result = attempt("--expect", value, "list", "new")
    assert result.returncode == 1 and b"could be a list of the digests of another image" in result.stderr, result
    result = attempt("--expect", value, "-", "new", input=listed, stdin=None)
    assert result.returncode == 1 and b"could be a list of the digests of another image" in result.stderr, result
    run("--construction=linear", "--expect", value, "list", "new")


def test_a_resumed_copy_has_the_expected_checksum(interrupted):
    wrong = "0" * 64
    result = attempt(*LOG, "--resume", "--expect", wrong, "disk.raw", "copy")
    assert result.returncode == 1 and b"not the one of --expect" in result.stderr, result
    flat = blksum("--construction=flat", "--block-size=4096", "disk.raw").split()[0]
    run(*LOG, "--resume", "--expect", flat, "disk.raw", "copy")


def test_digests_that_prove_nothing(disk):
    """The empty digest of null is equal for all content."""
    for options in [[], ["--json"], ["--tag"], ["--update"], ["--verify=source"]]:
        fails_usage = attempt(*options, "-d", "null", "disk.qcow2", "copy")
        assert fails_usage.returncode == 2 and b"nothing would be compared" in fails_usage.stderr, fails_usage
        assert fails_usage.stdout == b"" and not os.path.exists("copy")
    result = done("-v", "--verify=none", "-d", "null", "disk.qcow2", "copy")
    assert result.stdout == b"" and result.stderr.endswith(b"; not verified\n")
    # The sum of a CRC shows accidents.
    result = done("-v", "--force", "-d", "crc32c", "disk.qcow2", "copy")
    assert result.stderr.endswith(b", and equal by crc32c\n"), result
    result = done("-v", "--force", "-d", "md5", "disk.qcow2", "copy")
    assert result.stderr.endswith(b", and equal\n"), result


def test_map(disk):
    blkhash = str(blksum_path().with_name("blkhash"))
    run("--map", "copy.blkmap", "disk.qcow2", "copy")
    images.run(blkhash, "map", "check", "copy.blkmap")
    images.run(blkhash, "map", "verify", "copy.blkmap", "copy")
    images.run(blkhash, "map", "create", "-o", "own.blkmap", "disk.qcow2")
    ids = [images.run(blkhash, "map", "show", "--id", name) for name in ("copy.blkmap", "own.blkmap")]
    assert ids[0] == ids[1]
    fails(2, "exists: remove it", "--force", "--map", "copy.blkmap", "disk.qcow2", "copy")
    line = run("--force", "--map", "other.blkmap", "--construction=linear", "disk.qcow2", "copy").decode()
    assert line.split()[0] == hashlib.sha256((disk / "disk.raw").read_bytes()).hexdigest()


LOG = ["--map", "copy.blkmap", "--block-size", "4096", "--checkpoint", "0"]


def known(path):
    """Returns how many bytes the checkpoints of a map cover."""
    data = pathlib.Path(path).read_bytes()
    parameters, file_id = blkmap.read_header(data)
    offset, total = blkmap.resume_point(data) - blkmap.PAGE, 0
    while offset >= blkmap.PAGE:
        commit = blkmap.read_commit(data, offset, parameters, file_id)
        total, offset = total + commit.known, commit.previous
    return total * 4096


@pytest.mark.parametrize("kind", ["new", "device"])
@pytest.mark.parametrize("signal", ["KILL", "INT"])
@pytest.mark.parametrize("seed", mostly_slow(range(10), [0], range(4)))
@pytest.mark.root
def test_interruptions(workdir, kind, signal, seed):
    """Killed at random moments and resumed, the copy equals the source, and checkpoints are not copied again."""

    def holds(name):
        # Another process may remove it at any time.
        with contextlib.suppress(FileNotFoundError):
            return os.path.getsize(name) > 0
        return False

    rng = random.Random(f"{kind} {signal} {seed}")
    pieces = [(MIB, rng.choice([None, rng.randbytes(MIB), rng.randbytes(MIB)])) for _ in range(48)]
    write(workdir / "disk.raw", pieces)
    images.convert(workdir / "disk.raw", workdir / "disk.qcow2")
    line = blksum("--block-size", "4096", "disk.qcow2").split()[0]
    started = 0
    with contextlib.ExitStack() as stack:
        destination, force = "copy", []
        if kind == "device":
            (workdir / "device").write_bytes(rng.randbytes(50 * MIB))
            destination, force = stack.enter_context(loop_device("device")), ["--force"]
        while True:
            options = ["--resume"] if started else []
            command = [PROGRAM, *LOG, *force, *options, "disk.qcow2", destination]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            started += 1
            try:
                # The more often, the later, so that it comes to an end.
                out, err = process.communicate(timeout=rng.random() * 0.05 * started)
            except subprocess.TimeoutExpired:
                process.send_signal(getattr(signals, f"SIG{signal}"))
                _, err = process.communicate()
                assert process.returncode in (0, -getattr(signals, f"SIG{signal}"))
                says = f"blkcopy: {destination}: interrupted: continue with --resume\n"
                # The copy may be whole, so that only the end of the process is missing.
                # Another thread may write a note at the same time.
                lines = [line for line in err.decode().splitlines(True) if f": {destination}: note: " not in line]
                text = "".join(lines)
                is_lost = ": interrupted before the first checkpoint, so " in text and gone("copy.blkmap")
                assert process.returncode == 0 or is_lost or text in ("", says), text
                # Another process removes both files or none.
                deadline = time.monotonic() + HANG
                while kind == "new" and holds("copy.blkmap") != holds("copy"):
                    assert time.monotonic() < deadline
                continue
            assert process.returncode == 0, (started, err)
            assert out.decode() == f"{line}  {destination}\n"
            break
        same(destination, workdir / "disk.raw", 48 * MIB)
    blkhash = str(blksum_path().with_name("blkhash"))
    images.run(blkhash, "map", "verify", "copy.blkmap", "disk.qcow2")
    images.run(blkhash, "map", "check", "copy.blkmap")


def test_a_new_copy_and_its_map_are_kept_together(workdir):
    """Killed at any write, it leaves both or none: a map alone is of no use, and a copy alone is not gone on with."""
    (workdir / "disk.raw").write_bytes(os.urandom(20 * MIB))
    left = set()
    for number in range(1, 40):
        inject = f"--inject=write:signal=KILL:when={number}"
        traced = ["strace", "-f", "-o", "trace", "--trace=write", inject, PROGRAM, *LOG, "disk.raw", "copy"]
        assert subprocess.run(traced, capture_output=True).returncode == -signals.SIGKILL
        # The process that removes files has ended as well, as it was traced.
        left.add((os.path.exists("copy"), os.path.exists("copy.blkmap")))
        for name in ("copy", "copy.blkmap"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
        if (True, True) in left:
            break
    assert left == {(False, False), (True, True)}


def test_what_an_interruption_says_stays_true(workdir, servers):
    """No first checkpoint is made after the message that there is none."""
    (workdir / "disk.raw").write_bytes(os.urandom(4 * MIB))
    uri = servers.nbdkit("--filter=delay", "file", "disk.raw", "rdelay=300ms").uri()
    # The message takes longer than the reads before a checkpoint.
    slowly = ["strace", "-D", "-f", "-o", "trace", "--trace=write", "-P", "err", "--inject=write:delay_exit=2500000"]
    with open("err", "wb") as err:
        process = subprocess.Popen([*slowly, PROGRAM, *LOG, uri, "copy"], stdout=subprocess.DEVNULL, stderr=err)
        deadline = time.monotonic() + HANG
        while not os.path.exists("copy.blkmap"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signals.SIGINT)
        assert process.wait(timeout=HANG) == -signals.SIGINT
    text = pathlib.Path("err").read_text()
    assert text.count("blkcopy: copy: interrupted before the first checkpoint, so the new file is removed: ") == 1
    assert gone("copy")
    assert gone("copy.blkmap")


@pytest.fixture
def interrupted(workdir):
    """A copy of disk.raw to copy that was killed, with a checkpoint in copy.blkmap."""
    (workdir / "disk.raw").write_bytes(os.urandom(64 * MIB))
    for _ in range(50):
        for name in ("copy", "copy.blkmap"):
            if os.path.exists(name):
                os.unlink(name)
        process = subprocess.Popen([PROGRAM, *LOG, "--threads=1", "disk.raw", "copy"], stdout=subprocess.DEVNULL)
        while process.poll() is None and (not os.path.exists("copy.blkmap") or os.path.getsize("copy.blkmap") < 100000):
            pass
        process.kill()
        process.wait()
        if os.path.exists("copy.blkmap") and 0 < known("copy.blkmap") < 64 * MIB:
            return workdir
    raise AssertionError("never interrupted in the middle")


def test_a_checkpoint_is_not_copied_again(interrupted):
    """What was copied before the last checkpoint is only read back."""
    before = known("copy.blkmap")
    found = json.loads(run("--json", *LOG, "--resume", "disk.raw", "copy"))
    assert found["written_bytes"] + found["zeroed_bytes"] == 64 * MIB - before
    images.run("cmp", "copy", "disk.raw")
    # Nothing is left but to read it back.
    again = json.loads(run("--json", *LOG, "--resume", "disk.raw", "copy"))
    assert (again["checksum"], again["written_bytes"], again["verified"]) == (found["checksum"], 0, "readback")
    (interrupted / "precious").write_bytes(b"precious" * 9000000)
    fails(3, "so it is not the interrupted copy", *LOG, "--resume", "disk.raw", "precious")
    assert os.path.getsize("precious") == 72000000


def ended_at(*args, **kwargs):
    """Returns the bytes done and the total of the last object of --progress=json."""
    result = attempt("--progress=json", *args, **kwargs)
    assert result.returncode == 0, result
    objects = [json.loads(line) for line in result.stderr.splitlines() if line.startswith(b"{\"name\"")]
    assert all(it["total"] is None or it["done"] <= it["total"] for it in objects)
    return objects[-1]["done"], objects[-1]["total"]


def test_progress_ends_at_its_total(disk):
    """Whatever the passes read."""
    size, extent = 8 * MIB, 300 * 1024
    images.qemu_img("bitmap", "--add", "disk.qcow2", "b")
    images.qemu_io("disk.qcow2", f"write -P 9 1M {extent}")
    (disk / "list").write_text(f"{MIB} {extent}\n{6 * MIB} {9 * MIB}\n")
    images.to_raw("disk.qcow2", "now.raw")
    content = (disk / "now.raw").read_bytes()
    for verify, passes in (("readback", 2), ("source", 1)):

        def whole(*args, verify=verify, passes=passes, **kwargs):
            assert ended_at(f"--verify={verify}", *args, **kwargs) == (passes * size, passes * size), (verify, args)

        whole("--force", "--map", f"m.{verify}", "disk.raw", "copy")
        (disk / "delta").write_bytes(attempt("-q", "--delta-from", f"m.{verify}", "disk.qcow2", "-").stdout)
        whole("--apply", "delta", "copy")
        whole("--apply", "delta", "copy")
        whole("--destination-map", f"m.{verify}", "disk.qcow2", "copy")
        whole("--update", "disk.qcow2", "copy")
        granularity = 5 * BLOCK
        for options, some in ((["--bitmap=b"], granularity), (["--changes=list"], extent + 2 * MIB)):
            expected = some if passes == 1 else size + 2 * some
            assert ended_at(f"--verify={verify}", *options, "disk.qcow2", "copy") == (expected, expected)
        images.run("cmp", "copy", "now.raw")
    assert ended_at("disk.qcow2", "-") == (size, size)
    assert ended_at("--delta-from", "m.source", "disk.qcow2", "-") == (size, size)
    assert ended_at("--force", "-", "copy", input=content, stdin=None) == (2 * size, 2 * size)
    assert ended_at("--force", "--verify=source", "-", "copy", input=content, stdin=None) == (size, None)
    with open("empty", "wb"):
        assert ended_at("--force", "empty", "copy") == (0, 0)


def test_progress_of_a_resumed_copy(interrupted):
    size = 64 * MIB
    # What was copied before is compared with the map first.
    assert ended_at(*LOG, "--resume", "disk.raw", "copy") == (2 * size, 2 * size)
    assert ended_at(*LOG, "--resume", "disk.raw", "copy") == (size, size)


@pytest.mark.root
def test_a_device_is_resumed_without_force(interrupted):
    """It holds what the interrupted copy wrote. A map without a checkpoint is no reason to overwrite it."""
    with open("copy", "r+b") as file:
        file.truncate(65 * MIB)
    with loop_device("copy") as device:
        fails(2, "holds ", "--map", "new.blkmap", "--resume", "disk.raw", device)
        result = attempt(*LOG, "--resume", "disk.raw", device)
        assert result.returncode == 0, result
        note = f"blkcopy: {device}: note: has {65 * MIB} bytes: the checksum covers the first {64 * MIB}\n"
        assert result.stderr.decode() == note
        same(device, "disk.raw", 64 * MIB)


def test_a_checkpoint_that_the_destination_lost(interrupted):
    """What a crash of the host or something else took from the destination is found, and the map is not finished."""
    with open("copy", "r+b") as file:
        file.seek(4096)
        file.write(bytes(4096))
    result = fails(1, "holds something else than what was written: ", *LOG, "--resume", "disk.raw", "copy")
    assert b" at 0 differ" in result.stderr or b" at 4096 differ" in result.stderr, result
    shown = images.attempt(str(blksum_path().with_name("blkhash")), "map", "show", "copy.blkmap")
    assert b"is not finished" in shown.stderr


def test_what_cannot_be_resumed(interrupted):
    fails(2, "copy.blkmap: is not finished: --resume continues", *LOG, "--force", "disk.raw", "copy")
    fails(3, "has another digest or block size", *LOG[:2], "--resume", "disk.raw", "copy")
    os.rename("copy.blkmap", "log")
    fails(2, "exists, and the map has no checkpoint: --force", *LOG, "--resume", "disk.raw", "copy")
    if os.path.exists("copy.blkmap"):
        os.unlink("copy.blkmap")
    os.rename("log", "copy.blkmap")
    fails(3, "is new, and the map has a checkpoint", *LOG, "--resume", "disk.raw", "other")
    assert not os.path.exists("other")
    (interrupted / "precious").write_bytes(b"precious" * 9000000)
    fails(3, "so it is not the interrupted copy", *LOG, "--resume", "disk.raw", "precious")
    assert os.path.getsize("precious") == 72000000
    fails(2, "exists: --resume continues an interrupted copy", *LOG, "disk.raw", "copy")
    with open("disk.raw", "r+b") as file:
        file.write(b"x")
    fails(3, "is not the log of a copy of the source as it is now", *LOG, "--resume", "disk.raw", "copy")
    for options in [["--resume"], [*LOG, "--resume", "--update"], [*LOG, "--resume", "--construction=linear"]]:
        assert attempt(*options, "disk.raw", "copy").returncode == 2


def test_parts_of_a_source(disk):
    images.run("sfdisk", "-q", "disk.raw", stdin=None, input=b"label: gpt\nstart=2048, size=4096\n")
    images.qemu_img("snapshot", "-c", "before", "disk.qcow2")
    images.to_raw("disk.qcow2", "before.raw")
    images.qemu_io("disk.qcow2", "write -P 99 0 2M")
    run("--snapshot", "before", "disk.qcow2", "copy")
    images.run("cmp", "copy", "before.raw")
    run("--partition", "1", "disk.raw", "part")
    assert (disk / "part").read_bytes() == (disk / "disk.raw").read_bytes()[MIB : 3 * MIB]


def test_what_is_refused(disk):
    (disk / "copy").write_bytes(b"x")
    before = sorted((path.name, path.read_bytes()) for path in disk.iterdir())
    images.run("ln", "-s", "disk.qcow2", "link")
    images.create("overlay", "8M", "-b", "disk.qcow2", "-F", "qcow2")
    fails(2, "exists: --update writes only what differs, --force overwrites it", "disk.qcow2", "copy")
    fails(2, "is a file of the source", "--force", "disk.qcow2", "disk.qcow2")
    fails(2, "is a file of the source", "--force", "disk.qcow2", "link")
    fails(2, "is a file of the source", "--force", "overlay", "disk.qcow2")
    fails(2, "has the name of a qcow2 image", "disk.raw", "new.qcow2")
    fails(2, "No such file", "missing", "new")
    fails(2, "neither a regular file nor a block device", "disk.raw", "/dev/null")
    fails(2, "neither a regular file nor a block device", "disk.raw", str(disk))
    fails(2, "cannot connect", "disk.raw", "nbd+unix:///?socket=none")
    os.unlink("link")
    os.unlink("overlay")
    assert sorted((path.name, path.read_bytes()) for path in disk.iterdir()) == before
    assert attempt("disk.raw").returncode == 2 and attempt("--zeros=none", "disk.raw", "new").returncode == 2


@pytest.mark.root
def test_devices_that_are_refused(disk):
    (disk / "device").write_bytes(bytes(16 * MIB))
    with loop_device("device") as device:
        images.run("mkfs.ext4", "-q", device)
        held = (disk / "device").read_bytes()
        fails(2, "holds an ext file system: --force overwrites it", "disk.qcow2", device)
        (disk / "m").mkdir()
        images.run("mount", "-o", "ro", device, "m")
        fails(2, "Device or resource busy: a device must not be mounted", "--force", "disk.qcow2", device)
        images.run("umount", "m")
        images.run("sfdisk", "-q", device, stdin=None, input=b"label: dos\nstart=2048\n")
        images.run("wipefs", "-q", "-t", "ext4", "-a", device)
        fails(2, "holds a partition table with 1 partition", "disk.qcow2", device)
        assert len(held) == 16 * MIB
    (disk / "short").write_bytes(bytes(4 * MIB))
    with loop_device("short") as device:
        fails(2, "has 4194304 bytes, and the source 8388608", "disk.qcow2", device)
    assert (disk / "short").read_bytes() == bytes(4 * MIB)


@pytest.mark.root
def test_files_that_are_in_use(disk, servers):
    """Nothing is written to what is mounted, or what QEMU writes."""
    images.run("mkfs.ext4", "-q", "file.img", "16M")
    (disk / "m").mkdir()
    images.run("mount", "-o", "loop", "file.img", "m")
    before = (disk / "file.img").read_bytes()
    fails(2, "mounted", "--force", "disk.raw", "file.img")
    images.run("umount", "m")
    (disk / "vm.img").write_bytes(b"\xff" * (16 * MIB))
    server = servers.writable_qemu_nbd(disk / "vm.img")
    for options in [["--force"], ["--update"], ["--force", "--verify=source"]]:
        fails(2, "is in use", *options, "disk.raw", "vm.img")
    assert server.process.poll() is None
    assert (disk / "vm.img").read_bytes() == b"\xff" * (16 * MIB)
    assert len(before) == os.path.getsize("file.img")


@pytest.mark.root
@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
@pytest.mark.parametrize("is_partition", [False, True])
def test_what_is_mounted_from_another_loop_device(disk, kind, is_partition):
    """Read-only as well. A file system does not expect that its device changes."""
    size = 160 * MIB
    with open("file.img", "wb") as file:
        file.truncate(size)
    if is_partition:
        images.run("sfdisk", "-q", "file.img", stdin=None, input=b"label: gpt\nstart=2048\n")
    with loop_device("file.img") as mounted, loop_device("file.img") as other:
        if is_partition:
            images.run("partx", "-a", mounted)
        try:
            part = mounted + ("p1" if is_partition else "")
            images.run(f"mkfs.{kind}", "-q", part)
            (disk / "m").mkdir()
            images.run("mount", "-o", "ro", part, "m")
            with open("file.img", "rb") as file:
                before = hashlib.sha256(file.read()).digest()
            name = os.path.basename(mounted)
            for options in (["--force"], ["--update"]):
                fails(2, f"file.img: is the file of {name}, which is mounted\n", *options, "disk.raw", "file.img")
                fails(2, f"{other}: is stored in the file of {name}, which is mounted\n", *options, "disk.raw", other)
            with open("file.img", "rb") as file:
                assert hashlib.sha256(file.read()).digest() == before
            images.run("umount", "m")
            run("--force", "disk.raw", other)
        finally:
            if is_partition:
                images.run("partx", "-d", mounted)


@pytest.mark.parametrize("options", [["--update"], ["--force"], ["--bitmap=b"], ["--resume", "--map=m"], ["--apply"]])
@pytest.mark.parametrize("how", [["-f", "raw"], ["-f", "qcow2"], ["-f", "qcow2", "-r"]])
def test_what_qemu_has_open_is_refused(disk, how, options):
    """Whatever the option, and with -U, which is about the source. A guest may rely on what it only reads."""
    images.create("vm", "8M")
    if "raw" in how:
        (disk / "vm").write_bytes(b"\xff" * (8 * MIB))
    images.qemu_img("bitmap", "--add", "disk.qcow2", "b")
    source = "disk.qcow2"
    if "--apply" in options:
        run("-q", "--map=base", "disk.raw", "there")
        (disk / "delta").write_bytes(attempt("-q", "--delta-from=base", "disk.raw", "-").stdout)
        source = "delta"
    before = (disk / "vm").read_bytes()
    with subprocess.Popen(["qemu-io", *how, "vm"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        wait_for_locks("vm", lambda found: 100 in found)
        says = "relies on what it holds" if "-r" in how else "may write to it"
        for more in [[], ["-U"]] if source != "delta" else [[]]:
            fails(2, f"vm: is in use by a process that {says}\n", *options, *more, source, "vm")
        process.communicate(b"quit\n")
    assert (disk / "vm").read_bytes() == before and not os.path.exists("m")


def locks_of(path):
    """Returns the bytes of QEMU's locks that others hold."""
    found = set()
    with open(path, "r+b") as file:
        for byte in [*range(100, 104), *range(200, 204)]:
            lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
            answer = fcntl.fcntl(file, F_OFD_GETLK, lock)
            if struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK:
                found.add(byte)
    return found


F_OFD_GETLK = 36


def wait_for_locks(path, are_right):
    deadline = time.monotonic() + HANG
    while not are_right(found := locks_of(path)):
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


def test_qemu_is_refused_meanwhile(disk):
    """While the copy is written, QEMU opens it neither for writing nor for reading. While it is read back, not for writing."""

    def refused(*command):
        result = images.attempt(*command)
        assert result.returncode == 1 and b"Failed to get" in result.stderr, (command, result)

    (disk / "copy").write_bytes(bytes(8 * MIB))
    content = (disk / "disk.raw").read_bytes()
    slowly = ["strace", "-D", "-f", "-o", "/dev/null", "--trace=pread64", "--inject=pread64:delay_enter=300000"]
    copying = [*slowly, PROGRAM, "--force", "--threads=1", "-", "copy"]
    with subprocess.Popen(copying, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(content[: 4 * MIB])
        wait_for_locks("copy", lambda found: 101 in found)
        refused("qemu-io", "-f", "raw", "-c", "quit", "copy")
        refused("qemu-io", "-r", "-f", "raw", "-c", "quit", "copy")
        refused("qemu-img", "convert", "-f", "raw", "-O", "raw", "copy", "other")
        fails(4, "is being written by another process", "--force", "disk.raw", "copy")
        reading = images.attempt(str(blksum_path()), "copy")
        assert reading.returncode == 1 and b"is in use by a process that may write to it" in reading.stderr, reading
        process.stdin.write(content[4 * MIB :])
        process.stdin.close()
        wait_for_locks("copy", lambda found: 101 not in found)
        # However long the other programs take.
        process.send_signal(signals.SIGSTOP)
        try:
            assert locks_of("copy") == {100, 201, 203}
            refused("qemu-io", "-f", "raw", "-c", "quit", "copy")
            images.run("qemu-io", "-r", "-f", "raw", "-c", "quit", "copy")
            fails(4, "is being written by another process", "--force", "disk.raw", "copy")
        finally:
            process.send_signal(signals.SIGCONT)
        assert process.stdout.read().decode().endswith("  copy\n") and process.wait() == 0
    assert not locks_of("copy")
    images.run("cmp", "copy", "disk.raw")


@pytest.mark.root
def test_a_source_that_is_beneath_the_destination(disk):
    images.run("truncate", "-s", "24M", "table.img")
    images.run("sfdisk", "-q", "table.img", stdin=None, input=b"label: gpt\nstart=2048, size=16384\nstart=20480, size=16384\n")
    with open("table.img", "r+b") as file:
        file.seek(MIB)
        file.write(os.urandom(8 * MIB))
    before = (disk / "table.img").read_bytes()
    with loop_device("table.img") as device, loop_device("table.img") as other:
        images.run("partx", "-a", device)
        try:
            for source, destination in [
                (device, "table.img"),
                ("table.img", device),
                (device, other),
                (f"{device}p1", device),
                (device, f"{device}p1"),
            ]:
                result = attempt("--force", "-f", "raw", source, destination)
                assert result.returncode == 2, (source, destination, result)
                assert (disk / "table.img").read_bytes() == before, (source, destination)
            run("--force", "-f", "raw", f"{device}p1", f"{device}p2")
        finally:
            images.run("partx", "-d", device)
    after = (disk / "table.img").read_bytes()
    assert after[10 * MIB : 18 * MIB] == before[MIB : 9 * MIB]


def test_a_destination_that_is_something_else(disk):
    """What is printed, the map, the secret and standard input are not the destination."""
    with open("out", "wb") as out:
        result = subprocess.run([PROGRAM, "--force", "disk.raw", "out"], stdout=out, stderr=subprocess.PIPE)
    assert result.returncode == 2 and b"is standard output" in result.stderr and os.path.getsize("out") == 0
    with open("out", "wb") as out:
        result = subprocess.run([PROGRAM, "-v", "--force", "disk.raw", "out"], stdout=subprocess.PIPE, stderr=out)
    assert result.returncode == 2 and b"is standard output" in (disk / "out").read_bytes()
    (disk / "m").write_bytes(b"")
    for options in (["--force"], ["--verify=source", "--force"]):
        fails(2, "is the file of --map", *options, "--map", "m", "disk.raw", "./m")
    result = attempt("--map", "new", "disk.raw", "new")
    assert result.returncode == 2 and b"--map: is the destination" in result.stderr and not os.path.exists("new")
    with open("disk.raw", "rb") as source:
        before = source.read()
        fails(2, "disk.raw: is a file of the source", "--force", "-", "disk.raw", stdin=source)
    assert (disk / "disk.raw").read_bytes() == before
    (disk / "key").write_bytes(b"secret")
    fails(2, "is the file of --secret-file", "--force", "--secret-file", "key", "disk.raw", "key")
    assert (disk / "key").read_bytes() == b"secret"


def test_a_file_is_not_emptied_for_one_that_does_not_fit(disk):
    (disk / "copy").write_bytes(b"precious")
    with open("huge", "wb") as file:
        file.truncate(1 << 50)
    limit = "ulimit -f 1000; exec \"$0\" --force huge copy"
    result = subprocess.run(["bash", "-c", limit, PROGRAM], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert result.returncode != 0 and (disk / "copy").read_bytes() == b"precious", result


def test_a_destination_that_is_removed_meanwhile(disk, servers):
    """A name that leads elsewhere at the end is no copy."""
    (disk / "big.raw").write_bytes(os.urandom(4 * MIB))
    uri = servers.nbdkit("--filter=delay", "file", "big.raw", "rdelay=2").uri()
    process = subprocess.Popen([PROGRAM, uri, "gone"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not os.path.exists("gone"):
        pass
    os.unlink("gone")
    out, err = process.communicate()
    assert process.returncode == 3 and b"was removed or replaced" in err and out == b"", (out, err)


@pytest.mark.root
def test_update_repairs_what_the_page_cache_hides(disk):
    """The block was damaged beneath the file system, which has the old one in memory."""
    images.run("mkfs.ext4", "-q", "fs.img", "64M")
    (disk / "m").mkdir()
    images.run("mount", "-o", "loop", "fs.img", "m")
    try:
        (disk / "data.raw").write_bytes(os.urandom(4 * MIB))
        run("data.raw", "m/copy")
        place = (disk / "fs.img").read_bytes().index((disk / "data.raw").read_bytes()[MIB : MIB + 4096])
        (disk / "m/copy").read_bytes()
        with open("fs.img", "r+b") as file:
            file.seek(place)
            file.write(bytes(4096))
        device = images.run("findmnt", "-n", "-o", "SOURCE", "m").decode().strip()
        images.run("blockdev", "--flushbufs", device)
        run("--update", "data.raw", "m/copy")
        with open("m/copy", "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert file.read() == (disk / "data.raw").read_bytes()
    finally:
        images.run("umount", "m")


@pytest.mark.root
def test_update_repairs_a_file_that_cannot_be_read(disk):
    """Btrfs refuses to read what does not match its checksum."""
    images.run("truncate", "-s", "300M", "fs.img")
    images.run("mkfs.btrfs", "-q", "fs.img")
    (disk / "data.raw").write_bytes(os.urandom(4 * MIB))
    content = (disk / "data.raw").read_bytes()
    (disk / "m").mkdir()
    images.run("mount", "-o", "loop", "fs.img", "m")
    try:
        run("data.raw", "m/copy")
        images.run("sync", "-f", "m/copy")
        with open("fs.img", "r+b") as file:
            file.seek(file.read().index(content[MIB : MIB + 4096]))
            file.write(bytes(4096))
        images.run("umount", "m")
        images.run("mount", "-o", "loop", "fs.img", "m")
        with open("m/copy", "rb") as file, pytest.raises(OSError, match="Input/output error"):
            file.read()
        run("--update", "data.raw", "m/copy")
        images.run("umount", "m")
        images.run("mount", "-o", "loop", "fs.img", "m")
        assert (disk / "m/copy").read_bytes() == content
    finally:
        images.attempt("umount", "m")


def test_read_only_exports(disk, servers):
    fails(2, "the export is read-only", "disk.qcow2", servers.nbdkit("memory", "8M").uri())


def test_an_image_of_another_format_is_not_updated(disk):
    images.run("cp", "disk.qcow2", "vm.img")
    fails(2, "is a qcow2 image, and the copy is raw", "--update", "disk.raw", "vm.img")
    images.run("cmp", "disk.qcow2", "vm.img")
    # The content of the source is such an image.
    run("--update", "-f", "raw", "disk.qcow2", "vm.img")
    run("--update", "--force", "disk.raw", "vm.img")
    images.run("cmp", "disk.raw", "vm.img")


def test_no_new_file_in_the_folder_of_devices(disk):
    fails(2, "is no device", "disk.raw", "/dev/no-such-device")
    assert not os.path.exists("/dev/no-such-device")


def test_a_compressed_source_of_another_name(disk):
    images.run("gzip", "-k", "-S", ".packed", "disk.raw")
    result = attempt("disk.raw.packed", "copy")
    assert result.returncode == 2 and b"is compressed by gzip: -f gzip reads its content; -f raw" in result.stderr
    assert attempt("-f", "raw", "disk.raw.packed", "copy").stderr == b""
    images.run("cmp", "copy", "disk.raw.packed")
    assert attempt("--force", "-f", "gzip", "disk.raw.packed", "copy").stderr == b""
    images.run("cmp", "copy", "disk.raw")


def test_a_delta_or_a_map_is_no_disk(disk):
    """It is refused, and copied as it is with -f raw."""
    run("-q", "--map", "map", "disk.raw", "copy")
    (disk / "delta").write_bytes(attempt("-q", "--delta-from", "map", "disk.raw", "-").stdout)
    for name, says in (("delta", "is a delta: blkcopy --apply"), ("map", "is a block map")):
        for source, stdin in ((name, {}), ("-", {"input": (disk / name).read_bytes(), "stdin": None})):
            before = (disk / "copy").read_bytes()
            result = attempt("--force", source, "copy", **stdin)
            assert result.returncode == 2 and f"blkcopy: {source}: {says}" in result.stderr.decode(), result
            assert (disk / "copy").read_bytes() == before
            result = attempt("--force", "-f", "raw", source, "copy", **stdin)
            assert result.returncode == 0 and result.stderr == b"", result
            images.run("cmp", "copy", name)


def test_names_of_other_hosts(disk):
    """They are files of this host, and a note says how to copy to the other one."""
    way = "blkcopy SOURCE - | ssh me@host 'blkcopy - disks/copy.raw' copies to another one\n"
    fails(2, f"No such file or directory: {way}", "disk.raw", "me@host:disks/copy.raw")
    fails(2, f"No such file or directory: {way}", "disk.raw", "ssh://me@host/disks/copy.raw")
    result = attempt("disk.raw", "host:copy")
    assert result.returncode == 0
    says = "is a file of this host: blkcopy SOURCE - | ssh host 'blkcopy - copy' copies to another one"
    assert result.stderr.decode() == f"blkcopy: 'host:copy': note: {says}\n"
    assert attempt("--force", "disk.raw", "host:copy").stderr == b""
    assert attempt("disk.raw", "./host:other").stderr == b"" and attempt("-q", "disk.raw", "host:more").stderr == b""


def test_failures_as_objects(disk):
    (disk / "copy").write_bytes(b"x")
    for options in (["disk.raw", "copy"], ["missing", "copy"], ["--force", "--expect", 64 * "0", "disk.raw", "copy"], ["missing", "-"]):
        plain, result = attempt(*options), attempt("--json", *options)
        assert result.returncode == plain.returncode != 0
        message, text = plain.stderr.decode().removeprefix("blkcopy: ").rstrip("\n"), result.stdout
        if options[-1] == "-":
            text = result.stderr.splitlines()[0]
        else:
            assert result.stderr == plain.stderr
        names = {"source": options[-2], "destination": options[-1]}
        assert json.loads(text) == {"type": "copy", **names, "error": message}


def test_a_new_file_is_private_as_its_source(disk):
    os.chmod("disk.qcow2", 0o640)
    run("disk.qcow2", "copy")
    assert stat.S_IMODE(os.stat("copy").st_mode) & 0o137 == 0


def test_a_new_file_is_as_private_as_all_files_of_its_source(disk):
    """The content of a backing file is in the copy, and its blocks are in the map."""
    images.create("overlay.qcow2", "8M", "-b", "disk.qcow2", "-F", "qcow2")
    blkhash = str(blksum_path().with_name("blkhash"))
    commands = {
        "copy": [PROGRAM, "--map", "map", "overlay.qcow2", "copy"],
        "map": None,
        "created": [blkhash, "map", "create", "-o", "created", "overlay.qcow2"],
        "beside": [str(blksum_path()), "--map", "beside", "overlay.qcow2"],
        "tree": [blkhash, "verity", "format", "overlay.qcow2", "tree", "--root-hash-file", "root"],
        "root": None,
        "merkle": [blkhash, "verity", "digest", "--out-merkle-tree=merkle", "--out-descriptor=desc", "overlay.qcow2"],
        "desc": None,
    }
    for base, overlay, expected in [
        (0o600, 0o644, 0o600),
        (0o640, 0o666, 0o640),
        (0o644, 0o644, 0o644),
        (0o644, 0o600, 0o600),
        (0o604, 0o640, 0o600),
    ]:
        os.chmod("disk.qcow2", base)
        os.chmod("overlay.qcow2", overlay)
        for command in filter(None, commands.values()):
            images.run(*command)
        modes = {name: stat.S_IMODE(os.stat(name).st_mode) for name in commands}
        assert modes == dict.fromkeys(commands, expected & ~0o022), (oct(base), oct(overlay))
        for name in commands:
            os.unlink(name)


def test_a_mode_that_is_widened_late_is_no_change(disk):
    """Another process gives the new file its mode, which would change the file while it is read back."""
    slowly = ["strace", "-f", "-o", "trace", "--trace=fchmod,fsync", "--inject=fchmod:delay_enter=300000"]
    done = subprocess.run([*slowly, PROGRAM, "disk.raw", "copy"], capture_output=True, timeout=HANG)
    assert (done.returncode, done.stderr) == (0, b""), done
    trace = (disk / "trace").read_text()
    assert 0 < trace.index("(DELAYED)") < trace.index("fsync("), trace
    assert stat.S_IMODE(os.stat("copy").st_mode) == stat.S_IMODE(os.stat("disk.raw").st_mode) & ~0o022


def interrupt(*args, name, signal=signals.SIGINT, pause=0):
    """Interrupts a copy from a pipe or a slow server once the destination is there. Returns its messages."""
    process = subprocess.Popen(
        [PROGRAM, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    if "-" in args:
        process.stdin.write(b"x" * 3 * MIB)
        process.stdin.flush()
    deadline = time.monotonic() + HANG
    while not os.path.exists(name) or not os.path.getsize(name):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    # A destination that was there before does not show whether it is open.
    time.sleep(pause)
    process.send_signal(signal)
    _, says = process.communicate(timeout=HANG)
    assert process.returncode == -signal, says
    return says.decode()


@pytest.mark.parametrize("signal", [signals.SIGINT, signals.SIGTERM])
def test_what_an_interruption_leaves_is_said(disk, signal):
    says = interrupt("-", "new", name="new", signal=signal)
    assert says == "blkcopy: new: interrupted: the new file is removed: with --map=FILE, --resume could continue\n"
    assert gone("new")
    (disk / "old").write_bytes(b"old")
    assert interrupt("--force", "-", "old", name="old", signal=signal) == (
        "blkcopy: old: interrupted: it may hold a part of the copy\n"
    )
    assert os.path.exists("old")
    assert interrupt("-q", "-", "new", name="new", signal=signal) == ""
    assert gone("new")


def test_an_interruption_before_the_first_checkpoint(disk, servers):
    """Neither file stays, so --resume could not continue."""
    uri = servers.nbdkit("--filter=delay", "file", "disk.raw", "rdelay=3").uri()
    says = interrupt("--map=m", "--threads=1", uri, "new", name="new")
    assert says.startswith("blkcopy: new: interrupted before the first checkpoint, so the new file is removed"), says
    assert gone("new") and gone("m")
    (disk / "old").write_bytes(bytes(8 * MIB))
    says = interrupt("--force", "--map=m", "--threads=1", uri, "old", name="old", pause=1)
    assert says.startswith("blkcopy: old: interrupted before the first checkpoint, so it cannot be resumed"), says
    assert os.path.exists("old") and gone("m")


def test_an_update_from_another_source_is_noted(disk):
    """Half of the destination differed from the source."""
    (disk / "other").write_bytes(random.Random(3).randbytes(8 * MIB))
    result = done("--update", "disk.raw", "other")
    assert b"other: note: " in result.stderr and b"were other than in the source" in result.stderr, result
    images.run("cmp", "other", "disk.raw")
    with open("other", "r+b") as file:
        file.write(b"one page")
    for options in [[], ["--zeros=punch"]]:
        assert done("--update", *options, "disk.raw", "other").stderr == b""
    assert done("--update", "disk.raw", "new").stderr == b""
    (disk / "other").write_bytes(random.Random(3).randbytes(8 * MIB))
    assert done("-q", "--update", "disk.raw", "other").stderr == b""


def test_a_list_that_ends_behind_the_disk_is_noted(disk):
    run("disk.raw", "copy")
    (disk / "list").write_text(f"{7 * MIB} {2 * MIB}\n")
    result = done("--changes=list", "--changes-format=lines", "disk.raw", "copy")
    says = f"list: note: the last extent ends at {9 * MIB}, and the image at {8 * MIB}: is it the list of another disk?"
    assert says in result.stderr.decode(), result
    (disk / "list").write_text(f"{7 * MIB} {MIB}\n")
    assert done("--changes=list", "--changes-format=lines", "disk.raw", "copy").stderr == b""


def test_progress_says_which_pass_it_is(disk):
    for options, passes in [([], {"read-back"}), (["--verify=source"], {None})]:
        result = done("--progress=json", "--force", *options, "disk.raw", "copy")
        found = [json.loads(line).get("pass") for line in result.stderr.splitlines()]
        assert {found[-1]} == passes, found


def test_zeros_need_a_destination_with_places(disk):
    usage = attempt("--zeros=auto", "disk.raw", "-")
    assert usage.returncode == 2 and b"--zeros: all bytes are written to standard output" in usage.stderr


def test_a_failed_copy_leaves_no_new_file(disk):
    with open("disk.qcow2", "r+b") as file:
        file.truncate(300 << 10)
    result = attempt("disk.qcow2", "copy")
    assert result.returncode in (2, 3) and not os.path.exists("copy"), result


@pytest.mark.parametrize("options", [[], ["--update"], ["--map=m"]])
def test_only_the_destination_is_written(disk, options):
    """A hostile source names other files. Nothing but the destination is opened for writing."""
    images.create("hostile", "8M", "-b", str(disk / "disk.qcow2"), "-F", "qcow2")
    (disk / "copy").write_bytes(b"x")
    trace = ["strace", "-f", "-o", "trace", "-e", "trace=open,openat,openat2,creat,rename,renameat,renameat2,unlink,unlinkat,link,linkat"]
    images.run(*trace, PROGRAM, *(options or ["--force"]), *(["--force"] if "--map=m" in options else []), "hostile", "copy")
    allowed = {'"copy"', '"m"', '"/dev/null"'}
    for line in (disk / "trace").read_text().splitlines():
        if re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)|rename|link|creat\(", line) and "ENOENT" not in line:
            assert any(name in line for name in allowed), line


@contextlib.contextmanager
def file_system(kind):
    if kind == "xfs":
        with filesystems.xfs("fs.img") as root:
            yield root
    else:
        filesystems.make(["fs.img"], size=512 * MIB)
        with filesystems.mounted(["fs.img"]) as root:
            yield root


@pytest.mark.root
@pytest.mark.parametrize("kind", ["btrfs", "xfs"])
def test_storage_is_shared(workdir, kind):
    """One reading, of the destination, on which both files depend no more than on any other."""
    with file_system(kind) as root:
        content = os.urandom(3 * MIB + 777) + bytes(2 * MIB) + os.urandom(12345)
        (root / "disk.raw").write_bytes(content)
        os.truncate(root / "disk.raw", 9 * MIB + 4321)
        (root / "copy.raw").write_bytes(os.urandom(20 * MIB))
        # A file for each thread, because calls of one file may be interrupted by calls of others.
        trace = ["strace", "-ff", "-y", "-o", "trace", "-e", "trace=pread64", PROGRAM]
        result = images.attempt(*trace, "--force", "--cache=no", "-v", str(root / "disk.raw"), str(root / "copy.raw"))
        assert result.returncode == 0, result
        assert "copy.raw: 9.00 MiB shared with the source; read once, " in result.stderr.decode()
        images.run("cmp", str(root / "disk.raw"), str(root / "copy.raw"))
        lengths = {"disk.raw": [], "copy.raw": []}
        calls = "".join(path.read_text() for path in workdir.glob("trace.*"))
        for name, length in re.findall(r"pread64\(\d+<[^>]*/(\S+\.raw)>, .*, (\d+), \d+\) = ", calls):
            lengths[name].append(int(length))
        # Of the source, only the beginning is examined.
        assert sum(lengths["disk.raw"]) < MIB < max(lengths["copy.raw"]) * 4, lengths
        assert b"shared" in images.run("filefrag", "-v", str(root / "copy.raw"))
        checksum = images.run(str(blksum_path()), str(root / "disk.raw")).split()[0]
        assert result.stdout.split()[0] == checksum
        # Each of both can be written to.
        with open(root / "copy.raw", "r+b") as file:
            file.write(b"other")
        assert (root / "disk.raw").read_bytes()[: len(content)] == content
        for what in ("source", "none"):
            about = json.loads(run("--json", f"--verify={what}", root / "disk.raw", root / what))
            assert about["shared_bytes"] == 9 * MIB + 4321 and about["read_back"] is None
            assert about["checksum"] == (checksum.decode() if what == "source" else None)
            images.run("cmp", str(root / "disk.raw"), str(root / what))
        fails(1, "wrong: has the checksum", "--expect", "0" * 64, root / "disk.raw", root / "wrong")
        run("--expect", hashlib.sha256((root / "disk.raw").read_bytes()).hexdigest(), root / "disk.raw", root / "right")
        images.run("cmp", str(root / "disk.raw"), str(root / "right"))


@pytest.mark.root
def test_what_shares_no_storage(disk):
    """Options and sources of which the destination is no copy byte by byte, and other file systems."""
    with file_system("xfs") as root:
        images.run("cp", "disk.raw", "disk.qcow2", str(root))
        for number, (source, *options) in enumerate([
            ("disk.raw", "--reflink=never"), ("disk.raw", "--zeros=write"), ("disk.raw", "--update"),
            ("disk.raw", "--map", "map"), ("disk.qcow2",), (disk / "disk.raw",),
        ]):
            about = json.loads(run("--json", *options, root / source, root / f"copy{number}"))
            assert about["shared_bytes"] == 0 and about["verified"] == "readback", options
            images.run("cmp", "disk.raw", str(root / f"copy{number}"))
        # The system refuses.
        refused = ["strace", "-f", "-o", "trace", "-e", "trace=ioctl", "--inject=ioctl:error=EIO", PROGRAM]
        about = json.loads(images.run(*refused, "--json", str(root / "disk.raw"), str(root / "refused")))
        assert "FICLONE" in pathlib.Path("trace").read_text()
        assert about["shared_bytes"] == 0
        images.run("cmp", "disk.raw", str(root / "refused"))


@pytest.mark.root
def test_a_source_that_changes_while_its_storage_is_shared(disk):
    with file_system("xfs") as root:
        images.run("cp", "disk.raw", str(root))
        slowly = ["strace", "-f", "-o", "trace", "-e", "trace=ioctl", "--inject=ioctl:delay_exit=700000"]
        command = [*slowly, PROGRAM, root / "disk.raw", root / "copy"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + HANG
            trace = pathlib.Path("trace")
            while not (trace.exists() and "FICLONE" in trace.read_text()) and time.monotonic() < deadline:
                time.sleep(0.01)
            with open(root / "disk.raw", "r+b") as file:
                file.write(b"other")
            errors = process.communicate(timeout=HANG)[1].decode()
        assert process.returncode == 3 and "changed" in errors, errors
