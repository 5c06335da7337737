"""Progress: a line that fits every terminal, objects for programs, an answer to SIGUSR1.

The work of these tests is slow because something holds it up that the test controls, or so long that it
is ended before its end; nothing here depends on how fast the machine is.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import unicodedata

import pytest
from wcwidth import wcswidth

import blkhash
import images
import imagespec
import terminal
from commands import HANG, blksum_path

BLKHASH = str(blksum_path().with_name("blkhash"))

MIB = 1 << 20
COLUMNS = [40, 60, 80, 132]

# Names of 5 and 200 characters, as a path where no file name may be as long.
NAMES = {
    "narrow-5": "d.img",
    "narrow-200": "/".join(["a" * 66, "b" * 66, "c" * 66]),
    "wide-5": "磁盘映像一",
    "wide-200": "/".join(["磁" * 66, "盘" * 66, "像" * 66]),
    "emoji-5": "💾📀💽💿📼",
    "combining-200": "e\u0301" * 50 + "/" + "o\u0308" * 50,
    "quoted": "it's a $disk",
}

NUMBER = r"[0-9.]+"
BYTES = rf"{NUMBER} (B|[KMGTPE]iB)"
TIME = r"([0-9]+[dhms]){1,2}"
# The parts of a line after the name, each of which may be missing.
BAR = r"\[(?P<bar>=*>? *)\]"
DETAILS = rf"(?P<amount> +{BYTES}( of {BYTES})?)?,?(?P<rate> +{BYTES}/s)?,?(?P<left> +{TIME} left)?"
LINE = re.compile(rf"(?P<name>\S.*?)??( *(?P<percent>\d+)%( {BAR})?)?{DETAILS}")
SENTENCE = re.compile(
    rf"(?P<program>blk(sum|hash)): (?P<name>[^:]+|'.*'): ((?P<place>image \d+( of \d+)?), )?"
    rf"((opening|done|\d+%), )?({BYTES}( of {BYTES})?, )?({BYTES}/s, )?after {TIME}(, {TIME} left)?\n"
)
KEYS = ["name", "image", "images", "done", "total", "data", "seconds", "left"]


@pytest.fixture
def start(blksum):
    """Starts blksum, and ends it and closes its pipes with the test."""
    with contextlib.ExitStack() as stack:

        def run(*args, **kwargs):
            process = stack.enter_context(blksum.start(*args, **kwargs))
            stack.callback(process.kill)
            return process

        yield run


def endless(name):
    """An image that takes much longer to read than any test: holes that are not trusted."""
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.truncate(64 << 40)
    return ["--holes=ignore", "--threads", "1", name]


def assert_line(row, columns):
    """`row` is a whole line of progress that does not use the last column."""
    assert wcswidth(row) < columns, row
    match = LINE.fullmatch(row)
    assert match, row
    bar = match["bar"]
    assert bar is None or len(bar) >= 8, row
    return match


def ends_like(shown, name):
    """Whether a shortened name, which may be quoted, has the end of `name`."""
    end = unicodedata.normalize("NFC", name)[-2:]
    return unicodedata.normalize("NFC", shown).rstrip("'\"").endswith(end)


# The line


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_line_fits(blksum, workdir, name, columns):
    with terminal.Terminal([blksum.path, "-p", *endless(name)], columns) as shown:
        lines = 0
        for rows in shown.frames():
            assert len(rows) == 1, rows
            match = assert_line(rows[0], columns)
            assert match["percent"] and ends_like(match["name"], name), rows
            # At 40 columns the speed says more than a bar.
            assert match["bar"] or columns == 40, rows
            assert match["amount"] or columns < 80, rows
            lines += 1
            if lines == 8:
                break


@pytest.mark.parametrize("columns", [4, 5, 10, 20, 30, 39])
def test_narrow_terminals(blksum, workdir, columns):
    with terminal.Terminal([blksum.path, "-p", *endless("disk.img")], columns) as shown:
        [row] = next(shown.frames())
        match = assert_line(row, columns)
        assert match["percent"]


def test_line_follows_a_resize(blksum, workdir):
    with terminal.Terminal([blksum.path, "-p", *endless(NAMES["narrow-200"])], 132) as shown:
        frames = shown.frames()
        for _ in range(3):
            [row] = next(frames)
        assert wcswidth(row) > 80
        for columns in (45, 100):
            shown.resize(columns)
            for _ in range(HANG * 10):
                rows = next(frames)
                # What was drawn before is cut off, or too short.
                if len(rows) == 1 and columns - 20 < wcswidth(rows[0]) < columns:
                    break
            for _ in range(3):
                [row] = next(frames)
                assert_line(row, columns)


@pytest.mark.parametrize("columns", COLUMNS)
def test_nothing_is_left_in_the_end(blksum, workdir, columns):
    """Nor is anything mixed with lines and messages."""
    for name in "ab":
        imagespec.write("3m:A", name)
    command = [blksum.path, "-p", "a", "missing", "b", "a"]
    with terminal.Terminal(command, columns) as shown:
        frames = list(shown.frames())
        assert shown.process.wait(timeout=HANG) == 1
    value = blkhash.checksum(imagespec.chunks("3m:A")).hex()
    message = "blksum: missing: No such file or directory\n"
    text = f"{value}  a\n{message}{value}  b\n{value}  a\n".encode()
    assert frames[-1] == terminal.screen_of(text, columns)
    assert any(LINE.fullmatch(row) and row.startswith("1/4 ") for rows in frames for row in rows)


def test_line_of_many_images(blksum, workdir):
    """They are hashed side by side, and one line is for all of them."""
    os.mkdir("tree")
    names = [f"tree/{number:03}" for number in range(300)]
    for name in names:
        imagespec.write("64k:A", name)
    expected = blksum(*names).stdout
    pathlib.Path("sums").write_bytes(expected)
    runs = {
        "names": ["-p", *names],
        "listed": ["-p", "-c", "--quiet", "sums"],
        "folder": ["-p", "-r", "tree"],
    }
    for kind, args in runs.items():
        with open("output", "w+b") as output, terminal.Terminal(
            [blksum.path, *args], 80, stdout=output
        ) as shown:
            total = "?" if kind == "folder" else "300"
            number = 0
            for rows in shown.frames():
                assert len(rows) <= 1, rows
                if rows:
                    assert_line(rows[0], 80)
                    place = re.match(rf"(\d+)/{re.escape(total)} ", rows[0])
                    assert place and int(place[1]) >= number, rows
                    number = int(place[1])
            assert rows == [] and number > 0
            assert shown.process.wait(timeout=HANG) == 0
            if kind == "names":
                output.seek(0)
                assert output.read() == expected


@pytest.mark.slow
def test_left_is_about_data(blksum, servers, workdir):
    """A disk of 8 TiB that stores little is done soon, and is never said to take long."""
    with open("disk", "wb") as file:
        file.write(os.urandom(4 * MIB))
        file.truncate(8 << 40)
    for image in ("disk", servers.nbdkit("--filter=delay", "file", "disk", "rdelay=100ms").uri()):
        result = blksum("--progress=json", image)
        assert result.returncode == 0
        objects = [json.loads(line) for line in result.stderr.splitlines()]
        assert (objects[-1]["done"], objects[-1]["total"]) == (8 << 40, 8 << 40)
        assert 4 * MIB <= objects[-1]["data"] < 64 * MIB
        seconds = objects[-1]["seconds"]
        for known in objects:
            # Even where nothing tells how much there is, no more than nine times what it took, or what
            # it took after ten seconds.
            assert known["left"] is None or known["left"] < 20 * max(seconds, 1), objects


def test_time_left_appears(blksum, servers, workdir):
    """Where all is data, it is known after a tenth and half a second."""
    pathlib.Path("disk").write_bytes(os.urandom(64 * MIB))
    server = servers.nbdkit("--filter=rate", "file", "disk", "rate=80M")
    command = [blksum.path, "-p", server.uri()]
    with terminal.Terminal(command, 80) as shown:
        for rows in shown.frames():
            if rows and (match := assert_line(rows[0], 80))["left"]:
                break
        assert match["left"], "it never appeared"


def test_opening_is_shown(blksum, workdir):
    os.mkfifo("pipe")
    with terminal.Terminal([blksum.path, "pipe"], 80) as shown:
        assert next(shown.frames()) == ["pipe opening"]
        with open("pipe", "wb") as pipe:
            pipe.write(b"\0" * 4096)
            pipe.flush()
            assert any(
                rows[0].startswith("pipe 4.00 KiB") for rows in shown.frames() if rows
            )


@pytest.mark.parametrize("options", [[], ["-c"], ["--expect=" + "0" * 64]])
def test_a_terminal_as_input_is_told(blksum, workdir, options):
    """It is read to its first end, not to another one after that."""
    keys, slave = os.openpty()
    typed = b"k" * 511 + b"\n"
    with subprocess.Popen([blksum.path, *options], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        note = process.stderr.readline()
        os.write(keys, typed + b"\x04")
        stdout, stderr = process.communicate(timeout=HANG)
    assert note == b"blksum: note: standard input is a terminal, and is read until Ctrl-D\n"
    assert process.returncode == len(options) and b"is a terminal" not in stderr
    if options == ["-c"]:
        assert b"no properly formatted checksum lines" in stderr
    elif not options:
        assert (stdout.decode(), stderr) == (f"{blkhash.checksum(typed).hex()}  -\n", b"")
    os.close(keys)
    os.close(slave)


def test_work_that_is_done_at_once_shows_nothing(blksum, workdir):
    imagespec.write("100k:A", "disk")
    started = time.monotonic()
    status, _, shown = terminal.run(blksum, "disk")
    assert status == 0
    # Unless the machine is so busy that it took long.
    assert shown == b"" or time.monotonic() - started > 1


@pytest.mark.parametrize("option", ["-p", "--progress=always", "--progress=auto", "--progress=never"])
def test_nothing_where_standard_error_is_no_terminal(start, workdir, option):
    process = start(option, stdin=subprocess.PIPE)
    process.stdin.write(bytes(MIB))
    process.stdin.flush()
    # Longer than it takes to show something on a terminal.
    time.sleep(1.5)
    stdout, stderr = process.communicate(timeout=HANG)
    assert (process.returncode, stderr) == (0, b"")
    assert stdout.decode() == f"{blkhash.checksum(bytes(MIB)).hex()}  -\n"


def test_nothing_on_a_dumb_terminal(blksum, workdir):
    imagespec.write("3m:A", "disk")
    command = [blksum.path, "-p", "disk"]
    with terminal.Terminal(command, 132, env=os.environ | {"TERM": "dumb"}) as shown:
        rows, status = shown.finish()
    assert (status, len(rows)) == (0, 1)


def test_lines_that_do_not_end_stay(blksum, workdir):
    imagespec.write("3m:A", "disk")
    value = blkhash.checksum(imagespec.chunks("3m:A")).hex()
    with terminal.Terminal([blksum.path, "-p", "-z", *["disk"] * 3], 132) as shown:
        rows, status = shown.finish()
    assert status == 0 and "".join(rows).count(value) == 3


# Objects for programs


def test_objects(start, workdir):
    """About one a second while there is work, and one in the end."""
    process = start("--progress=json", stdin=subprocess.PIPE)
    process.stdin.write(bytes(MIB))
    process.stdin.flush()
    known = {"done": 0}
    while known["done"] < MIB:
        known = json.loads(process.stderr.readline())
        assert list(known) == KEYS
    assert (known["name"], known["image"], known["images"]) == ("-", 1, 1)
    assert (known["total"], known["data"], known["left"]) == (None, MIB, None)
    process.stdin.write(bytes(MIB))
    process.stdin.close()
    last = [json.loads(line) for line in process.stderr][-1]
    assert (last["done"], last["data"]) == (2 * MIB, 2 * MIB)
    assert last["seconds"] >= known["seconds"] > 0
    assert process.wait(timeout=HANG) == 0


def last_object(result):
    return json.loads(result.stderr.splitlines()[-1])


def test_last_object(blksum, workdir):
    imagespec.write("1m:A 9m:-", "disk")
    result = blksum("--progress=json", "disk")
    assert result.returncode == 0
    known = last_object(result)
    del known["seconds"]
    assert known == {
        "name": "disk",
        "image": 1,
        "images": 1,
        "done": 10 * MIB,
        "total": 10 * MIB,
        "data": MIB,
        "left": 0.0,
    }
    # Among messages.
    result = blksum("--progress=json", "disk", "missing", "disk")
    assert b"blksum: missing: No such file" in result.stderr
    known = last_object(result)
    assert (known["image"], known["images"], known["name"]) == (3, 3, "disk")
    # Of how many is not known in a folder; check files tell.
    os.mkdir("folder")
    for number in range(5):
        imagespec.write("64k:A", f"folder/{number}")
    result = blksum("--progress=json", "-r", "folder")
    known = last_object(result)
    assert (known["image"], known["images"], known["name"]) == (5, None, "folder/4")
    pathlib.Path("sums").write_bytes(result.stdout * 2)
    known = last_object(blksum("--progress=json", "-c", "sums"))
    assert (known["image"], known["images"], known["name"]) == (10, 10, "folder/4")
    # Nothing was begun.
    pathlib.Path("empty").touch()
    assert b"{" not in blksum("--progress=json", "-c", "empty").stderr


def test_names_in_objects(blksum, workdir):
    name = b"a\n\x1b\xff"
    imagespec.write("64k:A", name)
    result = blksum("--progress=json", name)
    assert b"\x1b" not in result.stderr and b"\xff" not in result.stderr
    known = last_object(result)
    assert (known["name"], known["name_bytes"]) == ("a\n\x1b\ufffd", "610a1bff")


def test_objects_on_a_terminal(blksum, workdir):
    imagespec.write("3m:A", "disk")
    status, _, shown = terminal.run(blksum, "--progress=json", "disk")
    assert status == 0 and b"\x1b" not in shown
    assert all(list(json.loads(line)) == KEYS for line in shown.splitlines())


# Signals


def is_held(process):
    """Whether the process has begun to hold SIGUSR1, which it does before anything else."""
    with contextlib.suppress(OSError), open(f"/proc/{process.pid}/status") as status:
        for line in status:
            if line.startswith("SigBlk:"):
                return int(line.split()[1], 16) >> signal.SIGUSR1 - 1 & 1
    return False


def wait_until_held(process):
    deadline = time.monotonic() + HANG
    while not is_held(process) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0)


class Storm(threading.Thread):
    """Sends a signal every 10 ms until the process ends."""

    def __init__(self, process):
        super().__init__()
        self.process = process
        self.sent = 0
        self.start()

    def run(self):
        wait_until_held(self.process)
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)
            self.sent += 1
            time.sleep(0.01)


def test_signal_asks_for_a_line(start, workdir):
    process = start(stdin=subprocess.PIPE)
    wait_until_held(process)
    process.stdin.write(bytes(MIB))
    process.stdin.flush()
    line = ""
    while "1.00 MiB" not in line:
        process.send_signal(signal.SIGUSR1)
        line = process.stderr.readline().decode()
        assert SENTENCE.fullmatch(line) or line == "blksum: no image has begun\n", line
        # Each signal is answered, unless it comes before the answer to another one.
        time.sleep(0.05)
    assert line.startswith("blksum: -: 1.00 MiB, ")
    process.stdin.close()
    assert process.wait(timeout=HANG) == 0
    assert process.stdout.read().decode() == f"{blkhash.checksum(bytes(MIB)).hex()}  -\n"


def test_signal_while_an_image_is_opened(start, workdir):
    os.mkfifo("pipe")
    process = start("missing", "pipe")
    assert process.stderr.readline() == b"blksum: missing: No such file or directory\n"
    line = b""
    while b"opening" not in line:
        process.send_signal(signal.SIGUSR1)
        line = process.stderr.readline()
        assert SENTENCE.fullmatch(line.decode()), line
        time.sleep(0.05)
    assert line.startswith(b"blksum: pipe: image 2 of 2, opening, ")
    with open("pipe", "wb"):
        pass
    assert process.communicate(timeout=HANG)[0].endswith(b"  pipe\n")


def test_signal_just_after_the_start(blksum, start, workdir):
    imagespec.write("64k:A", "disk")
    expected = blksum("disk").stdout
    for _ in range(50):
        process = start("disk")
        wait_until_held(process)
        process.send_signal(signal.SIGUSR1)
        stdout, stderr = process.communicate(timeout=HANG)
        assert (process.returncode, stdout) == (0, expected), stderr
    for args in ([blksum.path, "-l"], [blksum.path, "--help"], [BLKHASH, "algorithms"]):
        process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until_held(process)
        process.send_signal(signal.SIGUSR1)
        assert process.wait(timeout=HANG) == 0, args


@pytest.mark.parametrize("args", [[], ["--no-sandbox"], ["--json"], ["--progress=json"]])
def test_signals_break_no_reading(start, servers, workdir, args):
    content = os.urandom(8 * MIB)
    pathlib.Path("raw").write_bytes(content)
    images.qemu_img("convert", "-c", "-O", "qcow2", "raw", "qcow2")
    images.qemu_img("convert", "-O", "vmdk", "raw", "vmdk")
    expected = blkhash.checksum(content).hex()
    uri = servers.nbdkit("--filter=delay", "file", "raw", "rdelay=50ms").uri()
    os.mkfifo("pipe")
    for name in ("raw", "qcow2", "vmdk", uri, "-", "pipe"):
        process = start(*args, name, stdin=subprocess.PIPE)
        storm = Storm(process)
        errors = []
        reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
        reader.start()
        if name in ("-", "pipe"):
            wait_until_held(process)
            with process.stdin if name == "-" else open("pipe", "wb") as pipe:
                for offset in range(0, len(content), MIB):
                    pipe.write(content[offset : offset + MIB])
                    pipe.flush()
                    time.sleep(0.05)
        stdout = process.stdout.read()
        assert process.wait(timeout=HANG) == 0, (name, errors)
        storm.join()
        reader.join()
        assert expected in stdout.decode(), name
        lines = errors[0].decode().splitlines(keepends=True)
        if args == ["--progress=json"]:
            lines = [line for line in lines if not line.startswith("{")]
        for line in lines:
            assert SENTENCE.fullmatch(line) or line == "blksum: no image has begun\n", line
        if name in ("-", "pipe"):
            assert lines and storm.sent > len(content) // MIB


def test_signal_while_check_files_are_read(blksum, start, workdir):
    imagespec.write("3m:A", "disk")
    line = blksum("disk").stdout
    process = start("-c", stdin=subprocess.PIPE)
    storm = Storm(process)
    for _ in range(3):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == b"disk: OK\n"
    process.stdin.close()
    assert process.wait(timeout=HANG) == 0
    storm.join()
    for line in process.stderr.read().decode().splitlines(keepends=True):
        assert SENTENCE.fullmatch(line) or line == "blksum: no image has begun\n", line


def test_signal_on_a_terminal(blksum, workdir):
    """The answer takes the place of the line, which comes back below."""
    with terminal.Terminal([blksum.path, "-p", *endless("disk")], 80) as shown:
        frames = shown.frames()
        next(frames)
        shown.process.send_signal(signal.SIGUSR1)
        rows = next(rows for rows in frames if len(rows) == 2)
    assert SENTENCE.fullmatch(rows[0] + "\n") and assert_line(rows[1], 80)


# The other command


def blkhash_on(columns, *args):
    with terminal.Terminal([BLKHASH, *args], columns, stdout=subprocess.DEVNULL) as shown:
        frames = list(shown.frames())
        return frames, shown.process.wait(timeout=HANG)


@pytest.mark.parametrize("columns", COLUMNS)
def test_btrfs_verify(workdir, columns):
    folder = pathlib.Path("x" * 200)
    folder.mkdir()
    disk = folder / "disk"
    with open(disk, "wb") as file:
        file.truncate(256 * MIB)
    images.run("mkfs.btrfs", "-q", str(disk))
    frames, status = blkhash_on(columns, "btrfs", "verify", "-p", disk)
    assert (status, frames[-1]) == (0, [])
    lines = [assert_line(row, columns) for rows in frames for row in rows]
    assert lines and all(line["percent"] for line in lines)
    result = images.attempt(BLKHASH, "btrfs", "verify", "--progress=json", str(disk))
    known = last_object(result)
    assert list(known) == KEYS and known["done"] == known["total"] > 0


@pytest.mark.parametrize("columns", COLUMNS)
def test_bench_image(workdir, columns):
    pathlib.Path("disk").write_bytes(os.urandom(MIB))
    for args in (["image", "--time", "0.01", "disk"], ["--filter", "null", "--time", "0.01"]):
        frames, status = blkhash_on(columns, "bench", *args)
        assert (status, frames[-1]) == (0, [])
        lines = [assert_line(row, columns) for rows in frames for row in rows]
        assert lines and all(line["name"] == "measuring" and line["bar"] for line in lines)
