"""`qemu-img checksum` of contrib/qemu prints what blksum prints, and fails where the image cannot be read.

`make test-qemu` builds it and runs these tests. QEMU_IMG_CHECKSUM names the program, in the folder of a build of QEMU.
Tests of add-to-tree need neither, and run with the quick tests.
"""

import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import blkhash
import commands
import formats
import guest_view
import images
import random_images
import random_qcow2

KIB = 1 << 10
MIB = 1 << 20
SECTOR = 512

CONTRIB = commands.ROOT / "contrib/qemu"
PROGRAM = os.environ.get("QEMU_IMG_CHECKSUM")

# Formats in which the iotest runs.
IOTEST_FORMATS = ("raw", "qcow2", "qed", "parallels", "vdi", "vhdx", "vmdk")

# A line for each parameter of a checksum, and some that few programs use.
PARAMETERS = (
    ("-d", "sha256", "--construction", "streams:4"),
    ("-d", "sha512", "--construction", "streams:13"),
    ("-d", "blake3", "--construction", "flat"),
    ("-d", "blake2b256", "--construction", "concat"),
    ("-d", "sha1", "--construction", "linear"),
    ("-d", "sha256", "--construction", "fs-verity"),
    ("-d", "SHA512_256", "--construction", "streams"),
    ("-d", "crc32c", "--construction", "streams:128"),
)


class QemuImg:
    """Runs `qemu-img checksum`."""

    def command(self, *args):
        return [PROGRAM, "checksum", *map(str, args)]

    def __call__(self, *args, **kwargs):
        return images.attempt(*self.command(*args), **kwargs)

    def line(self, *args):
        """Returns the only line that a run without a message prints."""
        result = self(*args)
        assert (result.returncode, result.stderr) == (0, b""), (args, result)
        assert result.stdout.count(b"\n") == 1, (args, result)
        return result.stdout

    def hex(self, *args):
        return self.line(*args).split()[0].decode()

    def fails(self, *args, status=1):
        """Returns the message of a run that has to fail. It has one line, and there is no checksum."""
        result = self(*args)
        assert (result.returncode, result.stdout) == (status, b""), (args, result)
        message = result.stderr.decode()
        assert message.startswith("qemu-img: ") and message.count("\n") == 1, (args, result)
        return message


@pytest.fixture
def checksum():
    if PROGRAM is None:
        pytest.skip("QEMU_IMG_CHECKSUM names no qemu-img: make test-qemu")
    return QemuImg()


def assert_same(blksum, checksum, paths, fmt, *blksum_args):
    """Compares both programs for images of a format, by default and with parameters in turn."""
    for number, path in enumerate(paths):
        expected = blksum("-q", "-f", fmt, *blksum_args, path)
        assert expected.returncode == 0, expected
        assert checksum.line("-f", fmt, path) == expected.stdout, path
        args = PARAMETERS[number % len(PARAMETERS)]
        cache = ("writeback", "none", "unsafe", "directsync")[number % 4]
        other = blksum("-q", "-f", fmt, *blksum_args, *args, "--tag", path)
        assert checksum.line("-T", cache, *args, "--tag", "-f", fmt, path) == other.stdout, (path, args)


def create_raw(rng, path):
    """Makes a raw file of whole sectors with data, holes and stored zeros."""
    size = rng.randrange(1, 12 * MIB // SECTOR) * SECTOR
    with open(path, "wb") as file:
        file.truncate(size)
    images.qemu_io(path, *guest_view.random_writes(rng, size, 64 * KIB), fmt="raw")


@pytest.mark.qemu
@pytest.mark.parametrize("fmt", ["raw", *random_images.GENERATORS])
def test_random_images_are_equal(blksum, checksum, workdir, fmt):
    rng = random.Random(f"checksum {fmt}")
    create = random_images.GENERATORS.get(fmt, create_raw)
    paths = [workdir / f"{number}.{fmt}" for number in range(guest_view.count(25))]
    for path in paths:
        create(rng, path)
        assert_same(blksum, checksum, [path], fmt)
    assert_same(blksum, checksum, paths[:4], fmt)


@pytest.mark.qemu
@pytest.mark.parametrize("fmt, recorded", random_images.OVERLAYS)
def test_overlays_are_equal(blksum, checksum, workdir, fmt, recorded):
    rng = random.Random(f"checksum over {fmt}")
    create = random_images.GENERATORS[fmt]
    for number in range(guest_view.count(12)):
        below = ("raw", "qcow2", fmt, "vdi")[number % 4]
        base, overlay = f"{number}.base", f"{number}.{fmt}"
        if below == fmt:
            create(rng, base)
        else:
            guest_view.create_base(rng, base, below)
        create(rng, overlay, (base, below))
        args = () if below in recorded else (f"--backing-format={below}",)
        assert_same(blksum, checksum, [overlay], fmt, *args)


@pytest.mark.qemu
def test_chains_are_equal(blksum, checksum, workdir):
    """Chains of qcow2 over raw files and compressed images, with zlib and zstd, data files and snapshots."""
    rng = random.Random("checksum chains")
    for number in range(guest_view.count(12)):
        name = f"{number}.base"
        below = (name, random_qcow2.create_base(rng, name))
        for level in range(rng.randint(1, 3)):
            path = f"{number}.{level}.qcow2"
            random_qcow2.create(rng, path, below)
            assert_same(blksum, checksum, [path], "qcow2")
            below = (path, "qcow2")


@pytest.fixture(scope="module")
def content():
    rng = random.Random("content")
    pieces = [rng.randbytes(700 * KIB), bytes(3 * MIB), b"A" * 128 * KIB, bytes(256 * KIB), rng.randbytes(MIB)]
    # Images of some formats end at multiples of 64 KiB only.
    return b"".join(pieces) + bytes(-sum(map(len, pieces)) % (64 * KIB))


@pytest.mark.qemu
@pytest.mark.parametrize("name", [*formats.FORMATS, *formats.FOREIGN])
def test_one_content_one_checksum(blksum, checksum, workdir, content, name):
    """The same content in every format and variant, also those that blksum reads through qemu-nbd."""
    pathlib.Path("content.img").write_bytes(content)
    pathlib.Path("secret").write_bytes(formats.SECRET)
    path = formats.make(name, workdir / "content.img", workdir / "disk.img")
    expected = blkhash.checksum(content).hex()
    assert blksum.hex(*formats.options_for(name), path) == expected
    if name == "luks":
        path = "driver=luks,key-secret=s,file.filename=disk.img"
        args = ("--object", "secret,id=s,file=secret", "--image-opts")
        assert "Parameter 'key-secret' is required" in checksum.fails("-f", "luks", "disk.img")
    else:
        args = ("-f", formats.FORMATS.get(name, [name])[0])
    assert checksum.line(*args, path) == f"{expected}  {path}\n".encode()


@pytest.mark.qemu
def test_parameters_are_equal(blksum, checksum, workdir):
    pathlib.Path("disk").write_bytes(random.Random(1).randbytes(300 * KIB) + bytes(700 * KIB))
    names = [line.split()[0] for line in blksum("--list-digests").stdout.decode().splitlines()]
    digests = [name for name in names if blksum("-d", name, "disk").returncode == 0]
    assert len(digests) > 20
    for digest in digests:
        for construction in ("streams", "streams:1", "flat", "concat", "linear", "fs-verity", "dm-verity"):
            args = ("-d", digest, "--construction", construction, "disk")
            expected = blksum("-q", *args)
            if expected.returncode != 0:
                checksum.fails(*args, status=2)
                continue
            assert checksum.line(*args) == expected.stdout
            assert checksum.line("--tag", *args) == blksum("-q", "--tag", *args).stdout
    # Aliases are for values only: a tag has the name.
    assert checksum.line("-d", "sha-256", "disk") == blksum("-q", "disk").stdout
    assert "alias" in checksum.fails("-d", "sha-256", "--tag", "disk", status=2)


@pytest.mark.qemu
@pytest.mark.parametrize("args", [(), ("--tag",)])
@pytest.mark.parametrize("name", ["a b", "a\nb", "a\\b", "a\rb\\\n", "\xe9", "-"])
def test_names_are_escaped_as_by_blksum(blksum, checksum, workdir, name, args):
    path = workdir / name
    path.write_bytes(b"A" * SECTOR)
    assert checksum.line(*args, path) == blksum("-q", *args, path).stdout


@pytest.mark.qemu
@pytest.mark.parametrize("size", [0, 1, 511, 513, 64 * KIB - 1, 64 * KIB + 1, 5 * MIB + 100])
def test_raw_files_end_at_whole_sectors(blksum, checksum, workdir, size):
    """QEMU adds zeros up to the next sector, and blksum does not."""
    content = random.Random(size).randbytes(size)
    pathlib.Path("disk").write_bytes(content)
    padded = content + bytes(-size % SECTOR)
    assert checksum.hex("-f", "raw", "disk") == blkhash.checksum(padded).hex()
    assert blksum.hex("-q", "-f", "raw", "disk") == blkhash.checksum(content).hex()


def blkdebug(image, sector, rules="rules"):
    """Returns the options of an image that cannot be read in one place."""
    pathlib.Path(rules).write_text(
        f'[inject-error]\nevent = "none"\nerrno = "5"\niotype = "read"\nsector = "{sector}"\n'
    )
    return f"driver=raw,file.driver=blkdebug,file.config={rules},file.image.filename={image}"


@pytest.mark.qemu
def test_failed_read(checksum, workdir):
    """The message names the first part that failed, although reads end in any order."""
    rng = random.Random("failed")
    size = 40 * MIB
    pathlib.Path("disk").write_bytes(rng.randbytes(size))
    for sector in [0, size // SECTOR - 1] + [rng.randrange(size // SECTOR) for _ in range(20)]:
        offset = sector * SECTOR // (256 * KIB) * (256 * KIB)
        name = blkdebug("disk", sector)
        for args in ((), ("--construction", "linear")):
            message = checksum.fails(*args, "--image-opts", name)
            assert message == f"qemu-img: {name}: read at offset {offset}: Input/output error\n"
    # The error is on a line of its own.
    result = checksum("-p", "--image-opts", blkdebug("disk", size // SECTOR - 1))
    assert (result.returncode, result.stdout) == (1, b"")
    lines = result.stderr.splitlines()
    assert lines[-1].startswith(b"qemu-img: ") and b"100%" in lines[-3], lines


@pytest.mark.qemu
def test_failing_server(checksum, workdir, servers):
    pathlib.Path("disk").write_bytes(os.urandom(20 * MIB))
    value = checksum.hex("-f", "raw", "disk")
    good = servers.nbdkit("file", "disk").uri()
    assert checksum.hex("-f", "raw", good) == value
    for rate in ("100%", "3%"):
        uri = servers.nbdkit("--filter=error", "file", "disk", f"error-pread-rate={rate}", "error=EIO").uri()
        assert "Input/output error" in checksum.fails("-f", "raw", uri)
    # Without extents, all is data or it is an error, but never zeros.
    uri = servers.nbdkit("--filter=error", "file", "disk", "error-extents-rate=100%").uri()
    result = checksum("-f", "raw", uri)
    assert result.returncode == 1 and not result.stdout or result.stdout.startswith(value.encode()), result


@pytest.mark.qemu
def test_server_that_dies(checksum, workdir, servers):
    pathlib.Path("disk").write_bytes(os.urandom(8 * MIB))
    server = servers.nbdkit("--filter=delay", "file", "disk", "rdelay=100ms")
    with subprocess.Popen(
        checksum.command("-f", "raw", server.uri()), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        time.sleep(0.15)
        server.process.kill()
        out, err = process.communicate(timeout=commands.HANG)
    assert (process.returncode, out) == (1, b"") and err.startswith(b"qemu-img: "), err


@pytest.mark.qemu
def test_damaged_image(blksum, checksum, workdir):
    """Clusters that are past the end of the file are zeros in QEMU and an error in blksum; bad tables are errors."""
    images.create("disk.qcow2", "8M")
    images.qemu_io("disk.qcow2", "write -P 1 0 1M")
    data = bytearray(pathlib.Path("disk.qcow2").read_bytes())
    table = int.from_bytes(data[40:48], "big")
    data[table : table + 8] = ((1 << 63) | 0x12345).to_bytes(8, "big")
    pathlib.Path("disk.qcow2").write_bytes(data)
    assert blksum("disk.qcow2").returncode == 1
    result = checksum("disk.qcow2")
    assert (result.returncode, result.stdout) == (1, b""), result
    assert b"offset 0: Input/output error" in result.stderr


@pytest.mark.qemu
def test_image_in_use(blksum, checksum, workdir):
    images.create("disk.qcow2", "8M")
    images.qemu_io("disk.qcow2", "write -P 1 0 1M")
    command = ["qemu-io", "-f", "qcow2", "disk.qcow2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdin.write(b"write -P 2 1M 1M\nflush\n")
        holder.stdin.flush()
        while b"wrote" not in (line := holder.stdout.readline()):
            assert line
        # QEMU adds a line about the other process.
        result = checksum("disk.qcow2")
        assert (result.returncode, result.stdout) == (1, b"") and b"lock" in result.stderr, result
        values = [checksum.hex(option, "disk.qcow2") for option in ("-U", "--force-share")]
        name = "driver=qcow2,file.filename=disk.qcow2"
        values.append(checksum.hex("-U", "--image-opts", name))
        assert values == [blksum.hex("-U", "disk.qcow2")] * 3
        holder.stdin.close()
        holder.wait()
    assert checksum.hex("disk.qcow2") == values[0]


@pytest.mark.qemu
def test_objects(checksum, workdir):
    pathlib.Path("disk").write_bytes(os.urandom(2 * MIB))
    value = checksum.hex("-f", "raw", "disk")
    name = "driver=throttle,throttle-group=t,file.driver=raw,file.file.filename=disk"
    for limit in ("x-bps-total=8000000", "x-iops-total=100"):
        assert checksum.hex("--object", f"throttle-group,id=t,{limit}", "--image-opts", name) == value
    assert "throttle-group" in checksum.fails("--image-opts", name)
    checksum.fails("--object", "unknown,id=t", "disk", status=2)
    checksum.fails("--object", "secret,id=t,file=missing", "disk", status=2)


@pytest.mark.qemu
def test_interrupt(checksum, workdir):
    """^C ends it at once, without a checksum."""
    pathlib.Path("disk").write_bytes(os.urandom(4 * MIB))
    name = "driver=throttle,throttle-group=t,file.driver=raw,file.file.filename=disk"
    command = checksum.command("-p", "--object", "throttle-group,id=t,x-bps-total=200000", "--image-opts", name)
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            time.sleep(0.3)
            process.send_signal(number)
            start = time.monotonic()
            out, _ = process.communicate(timeout=commands.HANG)
        assert (process.returncode, out) == (-number, b"")
        # The rest would take 20 seconds.
        assert time.monotonic() - start < 10
    # No lock is left.
    images.qemu_io("disk", "write 0 512", fmt="raw")


@pytest.mark.qemu
def test_errors(checksum, workdir):
    pathlib.Path("disk").write_bytes(bytes(MIB))
    assert "No such file or directory" in checksum.fails("missing")
    assert "not in qcow2 format" in checksum.fails("-f", "qcow2", "disk")
    assert "Unknown driver 'unknown'" in checksum.fails("-f", "unknown", "disk")
    assert "missing" in checksum.fails("--image-opts", "driver=raw,file.filename=missing")
    checksum.fails(".")
    images.qemu_img("create", "-q", "-u", "-f", "qcow2", "-b", "missing", "-F", "raw", "overlay", "1M")
    assert "missing" in checksum.fails("overlay")
    for args, word in (
        ((), "one image"),
        (("disk", "disk"), "one image"),
        (("--unknown", "disk"), "'--unknown'"),
        (("-d",), "'-d'"),
        (("-T", "unknown", "disk"), "cache mode 'unknown'"),
        (("-d", "unknown", "disk"), "digest 'unknown'"),
        (("-d", "siphash", "disk"), "siphash"),
        (("--construction", "streams:0", "disk"), "'streams:0'"),
        (("-f", "raw", "--image-opts", "disk"), "mutually exclusive"),
    ):
        assert word in checksum.fails(*args, status=2)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(checksum.command("disk"), stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"qemu-img: write error: No space left on device\n")
    shown = checksum("--help")
    assert shown.returncode == 0 and shown.stdout.startswith(b"Usage: qemu-img checksum "), shown


@pytest.mark.qemu
def test_progress(checksum, workdir):
    images.create("disk.qcow2", "8G")
    images.qemu_io("disk.qcow2", "write -P 1 1G 20M", "write -P 2 6G 20M")
    plain, shown = checksum("disk.qcow2"), checksum("-p", "disk.qcow2")
    assert (shown.returncode, shown.stdout) == (0, plain.stdout)
    percents = [int(number) for number in re.findall(rb" {4}\((\d+)/100%\)\r", shown.stderr)]
    assert percents == sorted(set(percents)) and percents[-1] == 100 and len(percents) > 10
    assert shown.stderr.endswith(b"\r\n") and shown.stderr.count(b"\n") == 1


@pytest.mark.qemu
def test_sparse_disk_is_not_read(blksum, checksum, workdir):
    images.create("disk.qcow2", "4T")
    images.qemu_io("disk.qcow2", "write -P 1 3T 1M")
    start = time.monotonic()
    value = checksum.hex("disk.qcow2")
    assert time.monotonic() - start < 20
    assert value == blksum.hex("disk.qcow2")


@pytest.mark.qemu
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_memory(checksum, workdir):
    """Nothing is lost or used after it was freed, also if a read fails while other buffers are in use."""
    pathlib.Path("disk").write_bytes(os.urandom(6 * MIB) + bytes(MIB))
    try:
        images.attempt("valgrind", "-q", PROGRAM, "info", "disk", timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip("this version of QEMU hangs in valgrind, also without the command")
    valgrind = ("valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite")
    for args, status in (
        (["-f", "raw", "disk"], 0),
        (["--image-opts", blkdebug("disk", 5000)], 1),
        (["--image-opts", blkdebug("disk", 12)], 1),
        (["-f", "qcow2", "disk"], 1),
        (["-d", "unknown", "disk"], 2),
    ):
        done = images.attempt(*valgrind, "--error-exitcode=99", *checksum.command(*args))
        assert done.returncode == status, done.stderr.decode()


@pytest.mark.qemu
def test_iotest(checksum, workdir):
    """The test in the form of QEMU's own, with what it asks an emulator answered by a script."""
    build = pathlib.Path(PROGRAM).parent / "tests/qemu-iotests"
    emulator = workdir / "emulator"
    formats = " ".join(IOTEST_FORMATS)
    emulator.write_text(f"#!/bin/sh\nfor line in 1 2; do echo 'Supported formats: {formats}'; done\necho virtio-blk\n")
    emulator.chmod(0o755)
    programs = {"QEMU_PROG": str(emulator), "QSD_PROG": str(emulator)}
    environment = os.environ | programs | {"TEST_DIR": str(workdir / "test")}
    for fmt in IOTEST_FORMATS:
        run = images.attempt("./check", f"-{fmt}", "img-checksum", cwd=build, env=environment)
        assert run.returncode == 0 and b"Passed all 1 iotests" in run.stdout, run.stdout.decode()


# add-to-tree

# The lines next to which it adds something, in the form of QEMU 7 and of QEMU 10.
OLD_TREE = {
    "meson.build": "a = 1\n  qemu_img = executable('qemu-img', [files('qemu-img.c'), hxdep],\n"
    "             dependencies: [block, qemuutil], install: true)\n",
    "qemu-img.c": "    int (*handler)(int argc, char **argv);\n"
    'static const img_cmd_t img_cmds[] = {\n#include "qemu-img-cmds.h"\n};\n',
    "qemu-img-cmds.hx": 'DEF("check", img_check,\n    "x")\n\nDEF("commit", img_commit,\n    "y")\n',
    "docs/tools/qemu-img.rst": ".. option:: check [\n\n  A.\n\n.. option:: commit [\n\n  B.\n",
}
NEW_TREE = OLD_TREE | {
    "meson.build": "  qemu_img = executable('qemu-img', [files('qemu-img.c'), hxdep],\n"
    "             link_args: '@block.syms', link_depends: block_syms,\n"
    "             dependencies: [block, qemuutil], install: true)\n",
    "qemu-img.c": "    int (*handler)(const struct img_cmd_t *ccmd, int argc, char **argv);\n"
    'static const img_cmd_t img_cmds[] = {\n    { "check", img_check,\n    "x" },\n'
    '    { "commit", img_commit,\n    "y" },\n};\n',
}
ADDED = {"qemu-img-checksum.c", *(f"tests/qemu-iotests/tests/img-checksum{end}" for end in ("", ".out"))}


def make_tree(files):
    for name, text in files.items():
        path = pathlib.Path("tree", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    pathlib.Path("tree/tests/qemu-iotests/tests").mkdir(parents=True)


def read_tree():
    files = [path for path in pathlib.Path("tree").rglob("*") if path.is_file()]
    return {str(path.relative_to("tree")): path.read_text() for path in files}


def add(*args):
    return images.attempt(sys.executable, str(CONTRIB / "add-to-tree"), *args)


@pytest.mark.parametrize("files", [OLD_TREE, NEW_TREE], ids=["old", "new"])
def test_command_is_added_once(workdir, files):
    make_tree(files)
    done = add("tree")
    assert (done.returncode, done.stderr) == (0, b""), done
    once = read_tree()
    assert set(done.stdout.decode().split()) == set(once) == set(files) | ADDED
    program = once["qemu-img.c"]
    parameters = "const img_cmd_t *ccmd, " if files is NEW_TREE else ""
    assert f"static int img_checksum({parameters}int argc, char **argv)\n" in program
    assert ('{ "checksum", img_checksum,' in program) == (files is NEW_TREE)
    assert "'qemu-img-checksum.c'" in once["meson.build"] and "dependency('blkhash'" in once["meson.build"]
    # Between check and commit, as the lists are sorted.
    for name, pattern in (("qemu-img-cmds.hx", r'^DEF\("(\w+)'), ("docs/tools/qemu-img.rst", r"option:: (\w+)")):
        assert re.findall(pattern, once[name], re.MULTILINE) == ["check", "checksum", "commit"], name
    assert once["qemu-img-checksum.c"] == (CONTRIB / "checksum.c").read_text()
    assert os.access("tree/tests/qemu-iotests/tests/img-checksum", os.X_OK)
    # Again, and after a change of the command only.
    assert add("tree").stdout == b"" and read_tree() == once
    pathlib.Path("tree/qemu-img-checksum.c").write_text("older")
    assert add("tree").stdout == b"qemu-img-checksum.c\n" and read_tree() == once


@pytest.mark.parametrize("files", [OLD_TREE, NEW_TREE], ids=["old", "new"])
@pytest.mark.parametrize("name", OLD_TREE)
def test_unknown_tree_is_left_as_it_was(workdir, files, name):
    """Each file in turn is missing, is empty, or has its line twice."""
    for text in ("", files[name] * 2, None):
        shutil.rmtree("tree", ignore_errors=True)
        make_tree(files | {name: text or ""})
        if text is None:
            pathlib.Path("tree", name).unlink()
        before = read_tree()
        done = add("tree")
        assert (done.returncode, done.stdout) == (1, b"") and read_tree() == before
        problem, end = done.stderr.decode().splitlines()
        assert problem.startswith(f"add-to-tree: tree/{name}: ") and end == "add-to-tree: nothing was changed"


def test_wrong_folder(workdir):
    assert add().returncode == 2
    done = add("missing")
    assert done.returncode == 1 and b"missing/meson.build: cannot be read: No such file" in done.stderr
