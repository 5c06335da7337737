"""Known attacks by hostile images, check files and guests, and their results.

Where possible, a test first demonstrates the attack without protection (--follow=any, another tool), so
that it proves something. More restrictions on images are tested in test_refused.py (loops, long chains,
protocols, no files) and in the unit tests of crates/blkimage.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import socket
import struct
import subprocess
import threading
import time
import types

import pytest

import blkhash
import images
from changing import LONG, finish, start_reading
from commands import assert_refused
from references import letter_value, overlay, rename_data_file, write_raw

MIB = 1 << 20


@pytest.fixture
def host(workdir):
    """A file of the host, `secret`, and a folder `in` for hostile images."""
    os.mkdir("in")
    write_raw("secret", b"s")
    os.symlink("../secret", "in/link")
    return workdir


def names_of_the_secret(host):
    return {"absolute": str(host / "secret"), "dots": "../secret", "link": "link"}


@pytest.mark.parametrize("name", ["absolute", "dots", "link"])
def test_guest_writes_a_qcow2_header_into_its_raw_disk(blksum, host, name):
    """The image is raw and writable by the guest. Its header names a file of the host."""
    reference = names_of_the_secret(host)[name]
    header = pathlib.Path(overlay("header.qcow2", reference)).read_bytes()
    disk = (header + b"the rest of the guest's disk").ljust(8 * MIB, b"g")
    pathlib.Path("in/disk.img").write_bytes(disk)
    # Without protection, QEMU and blksum open the file.
    theirs = images.qemu_img("info", "-U", "--backing-chain", "in/disk.img")
    assert theirs.count(b"image: ") == 2
    assert blksum.hex("--follow=any", "in/disk.img") == letter_value(b"s")

    for options in ([], ["--untrusted"], ["--no-sandbox"], ["-r"]):
        assert_refused(blksum(*options, "in/disk.img"), "in/disk.img", reference, "--follow=any")
    with open("in/disk.img", "rb") as file:
        assert_refused(blksum(stdin=file), reference, "--follow=any")
    expected = blkhash.checksum(disk).hex()
    assert blksum.hex("-f", "raw", "in/disk.img") == expected
    assert blksum.hex("-f", "raw", "--follow=any", "in/disk.img") == expected


@pytest.mark.parametrize("options", [[], ["-d", "md5", "-d", "blake3"], ["--construction", "linear"]])
def test_guest_makes_its_raw_disk_a_qcow2_of_the_same_content(blksum, host, options):
    """A line of the raw disk must not match then, because the hypervisor sees another content."""
    write_raw("disk.img", b"g")
    lines = blksum("-f", "raw", "--tag", *options, "disk.img").stdout
    images.qemu_img("convert", "-f", "raw", "-O", "qcow2", "disk.img", "disk.qcow2")
    assert blksum("-c", "-", input=lines).returncode == 0
    os.rename("disk.qcow2", "disk.img")
    result = blksum("-c", "-", input=lines)
    assert result.returncode == 1 and b"OK" not in result.stdout and b"disk.img: FAILED" in result.stdout


@pytest.mark.parametrize("name", ["absolute", "dots", "link"])
def test_data_file_is_a_file_of_the_host(blksum, host, name):
    reference = names_of_the_secret(host)[name]
    options = f"data_file={reference},data_file_raw=on"
    # QEMU writes the data file with the same content that it has already.
    write_raw("raw", b"s")
    images.convert(host / "raw", "disk.qcow2", options, cwd="in")
    assert blksum.hex("--follow=any", "in/disk.qcow2") == letter_value(b"s")
    for options in ([], ["--untrusted"], ["--no-sandbox"]):
        result = blksum(*options, "in/disk.qcow2")
        assert_refused(result, "in/disk.qcow2", reference, "--follow=any")


def test_image_is_its_own_data_file(blksum, workdir):
    write_raw("raw", b"r")
    images.convert_data_file(workdir / "raw", workdir / "disk.qcow", "data_file_raw=on")
    assert blksum.hex("disk.qcow") == letter_value(b"r")
    rename_data_file("disk.qcow", b"disk.data", b"disk.qcow")
    for options in ([], ["--follow=any"]):
        assert_refused(blksum(*options, "disk.qcow"), "disk.qcow", "its own")


@contextlib.contextmanager
def nobody_connects():
    """Yields the port of a server that must get no connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "name",
    [
        "nbd://127.0.0.1:{port}/disk",
        "nbd:127.0.0.1:{port}",
        'json:{{"driver":"nbd","server":{{"type":"inet","host":"127.0.0.1","port":"{port}"}}}}',
        "http://127.0.0.1:{port}/disk.img",
    ],
)
def test_backing_name_makes_no_connection(blksum, workdir, name):
    with nobody_connects() as port:
        reference = name.format(port=port)
        overlay("disk.qcow2", reference)
        for options in ([], ["--follow=any"], ["--follow=any", "--no-sandbox"]):
            assert_refused(blksum(*options, "disk.qcow2", timeout=20), "disk.qcow2", "followed")


def test_check_file_makes_no_connection(blksum, workdir):
    with nobody_connects() as port:
        pathlib.Path("SUMS").write_text(f"{'0' * 64}  nbd://127.0.0.1:{port}/disk\n")
        result = blksum("-c", "SUMS", timeout=20)
    assert result.returncode == 1
    assert b"--allow-uri" in result.stderr


def test_check_file_is_not_told_what_files_hold(blksum, host):
    """A check file may name any file. The output shows only that a guess was wrong."""
    names = ["secret", str(host / "secret"), "/etc/passwd"]
    pathlib.Path("SUMS").write_text("".join(f"{'0' * 64}  {name}\n" for name in names))
    result = blksum("-c", "SUMS")
    assert result.stdout.decode() == "".join(f"{name}: FAILED\n" for name in names)
    assert letter_value(b"s").encode() not in result.stdout + result.stderr


def test_a_check_file_guesses_no_single_bytes(blksum, host):
    """Ranges are of whole sectors. Shorter ones would tell a file byte by byte to the reader of the result."""
    guess = blksum("--offset", "512", "--length", "1", "secret").stdout.split()[0].decode()
    for part in ("OFFSET=512/LENGTH=1", "OFFSET=511", "LENGTH=513", "LENGTH=0", "OFFSET=512/LENGTH=01"):
        pathlib.Path("SUMS").write_text(f"BLKSUM-SHA256-STREAMS4-64K/{part} (secret) = {guess}\n")
        result = blksum("-c", "SUMS")
        assert (result.returncode, result.stdout) == (1, b""), part
        assert b"no properly formatted checksum lines found" in result.stderr
    # Nor are they the last bytes of a file.
    pathlib.Path("odd").write_bytes(bytes(1024) + b"tail")
    for offset, is_known in [(512, True), (1024, False)]:
        guess = blksum("--offset", str(offset), "odd").stdout.split()[0].decode()
        pathlib.Path("SUMS").write_text(f"BLKSUM-SHA256-STREAMS4-64K/OFFSET={offset} (odd) = {guess}\n")
        result = blksum("-c", "SUMS")
        content = f" (offset {offset} to the end)\n"
        assert result.stdout.decode() == f"odd: {'OK' if is_known else 'FAILED open or read'}{content}"
        assert (b"the part has 4 bytes" in result.stderr) != is_known
        result = blksum("--tag", "--offset", str(offset), "odd")
        assert (result.returncode, b"/OFFSET=" in result.stdout) == (0 if is_known else 1, is_known)


# Images that are swapped


def test_image_is_replaced_while_read(blksum, workdir):
    """The name is moved to another file of the same size. A result must belong to the first one."""
    size = LONG // 8
    for name, letter in (("disk", b"A"), ("other", b"B")):
        write_raw(name, letter)
        os.truncate(name, size)
    expected = blkhash.checksum([b"A" * MIB, size - MIB]).hex()
    process = start_reading(blksum, "--holes=ignore", "disk")
    os.rename("other", "disk")
    result = finish(process)
    if result.returncode == 0:
        assert result.stdout.decode() == f"{expected}  disk\n"
    else:
        assert_refused(result, "disk")


@pytest.mark.slow
def test_image_is_rewritten_and_its_time_put_back(blksum, workdir):
    write_raw("disk", b"A")
    os.truncate("disk", LONG)
    before = os.stat("disk")
    process = start_reading(blksum, "--holes=ignore", "disk")
    with open("disk", "r+b") as file:
        file.write(b"B")
    os.utime("disk", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat("disk").st_mtime_ns == before.st_mtime_ns
    assert_refused(finish(process), "disk")


def test_backing_file_is_replaced_while_read(blksum, workdir):
    for name, letter in (("base", b"A"), ("other", b"B")):
        write_raw(name, letter)
        os.truncate(name, LONG // 8)
    overlay("top.qcow2", "base", size=str(LONG // 8))
    expected = blkhash.checksum([b"A" * MIB, LONG // 8 - MIB]).hex()
    process = start_reading(blksum, "--holes=ignore", "top.qcow2")
    os.rename("other", "base")
    result = finish(process)
    if result.returncode == 0:
        assert result.stdout.decode() == f"{expected}  top.qcow2\n"
    else:
        assert_refused(result, "base")


@pytest.mark.slow
def test_backing_file_turns_into_a_link_to_the_host(blksum, host):
    """The file is swapped as fast as possible, between any two steps of blksum."""
    write_raw("in/base", b"b")
    write_raw("in/spare", b"b")
    path = overlay("in/top.qcow2", "base")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            os.symlink("../secret", "in/new")
            os.replace("in/new", "in/base")
            os.link("in/spare", "in/new")
            os.replace("in/new", "in/base")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        results = [blksum("--no-sandbox", path) for _ in range(100)]
    finally:
        stop.set()
        thread.join()
    good = [result for result in results if result.returncode == 0]
    for result in good:
        assert result.stdout.split()[0].decode() == letter_value(b"b")
    for result in results:
        if result.returncode != 0:
            assert_refused(result, "in/")


# Terminal commands: a title, clearing the screen in seven and in eight bits, erasing a line.
ESCAPES = "\x1b]0;owned\x07 \x1b[2J \x9b2J \r\b\x7f"


def assert_harmless(shown, *words):
    text = shown.decode("utf-8", "replace").replace("\r\n", "\n")
    controls = [c for c in text if c != "\n" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0)]
    assert controls == [], shown
    for word in words:
        assert word in text, (word, text)


HOSTILE_NAMES = {
    "missing image": lambda: [f"gone{ESCAPES}"],
    "backing file": lambda: [overlay("disk.qcow2", f"owned{ESCAPES}")],
    "backing protocol": lambda: [overlay("disk.qcow2", f"x{ESCAPES}:owned")],
    "backing format": lambda: [hostile_backing_format()],
    "feature": lambda: [hostile_feature()],
    "data file": lambda: [hostile_data_file()],
    "snapshot": lambda: ["--snapshot", f"owned{ESCAPES}", images.create("disk.qcow2", "1M")],
    "missing check file": lambda: ["-c", f"owned{ESCAPES}"],
    "digest": lambda: ["-d", f"owned{ESCAPES}", "disk"],
    "verbose": lambda: ["-v", "--untrusted", f"in{ESCAPES}/disk", "missing"],
}


def hostile_backing_format():
    images.create("base", "1M")
    overlay("disk.qcow2", "base", "qcow2")
    patch("disk.qcow2", b"qcow2\0\0\0", b"\x1b[2Jown\x07")
    return "disk.qcow2"


def hostile_feature():
    images.create("disk.qcow2", "1M")
    name = b"owned\x1b[2J\x07\xc2\x9b2J\r\x08"
    patch("disk.qcow2", b"dirty bit".ljust(20, b"\0"), name.ljust(20, b"\0"))
    with open("disk.qcow2", "r+b") as file:
        header = file.read(4096)
        at = header.index(b"owned") - 1
        file.seek(at)
        file.write(bytes([50]))
        file.seek(72)
        file.write(struct.pack(">Q", 1 << 50))
    return "disk.qcow2"


def hostile_data_file():
    write_raw("raw", b"r")
    images.convert_data_file(pathlib.Path("raw").absolute(), pathlib.Path("disk.qcow2").absolute())
    rename_data_file("disk.qcow2", b"disk.data", b"\x1b[2J\x07own\r")
    return "disk.qcow2"


def patch(path, old, new):
    assert len(old) == len(new)
    with open(path, "r+b") as file:
        header = file.read(4096)
        file.seek(header.index(old))
        file.write(new)


@pytest.mark.parametrize("where", HOSTILE_NAMES)
def test_escape_sequences_in_messages(blksum, workdir, where):
    os.mkdir(f"in{ESCAPES}")
    write_raw(f"in{ESCAPES}/disk", b"x")
    result = blksum(*HOSTILE_NAMES[where]())
    assert result.returncode != 0
    assert_harmless(result.stderr, "in" if where == "verbose" else "own")


def test_escape_sequences_in_a_check_file_on_a_terminal(blksum, workdir):
    """In a pipe, names are unchanged. On a terminal, they have no effect."""
    write_raw(f"disk{ESCAPES}", b"x")
    lines = [f"{letter_value(b'x')}  disk{ESCAPES}\n", f"{'0' * 64}  gone{ESCAPES}\n"]
    # A carriage return must be written as an escape here.
    lines = ["\\" + line.replace("\r", "\\r") for line in lines]
    lines.append(f"nonsense{ESCAPES}\n")
    pathlib.Path("SUMS").write_bytes("".join(lines).encode())
    controller, terminal = pty.openpty()
    everywhere = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    process = subprocess.run([blksum.path, "-c", "-w", "SUMS"], timeout=60, **everywhere)
    os.close(terminal)
    shown = read_all(controller)
    assert process.returncode == 1
    assert_harmless(shown, "disk", ": OK", "gone", ": FAILED open or read", "improperly formatted")


def read_all(controller):
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(controller, 65536):
            shown += data
    os.close(controller)
    return shown


# Pipes, devices and files generated by the kernel


def waits_in(process, function):
    """Waits until the process sleeps in this function of the kernel."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if function in pathlib.Path(f"/proc/{process.pid}/wchan").read_text():
            return
        time.sleep(0.001)
    raise AssertionError(f"it does not wait in {function}")


@contextlib.contextmanager
def waiting_writer(fifo):
    """A writer that must not be released, neither by opening the FIFO nor by reading from it."""
    os.mkfifo(fifo)
    writer = subprocess.Popen(["sh", "-c", 'echo precious > "$1"', "sh", fifo])
    try:
        waits_in(writer, "wait_for_partner")
        yield
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        assert writer.wait(timeout=60) == 0
        assert os.read(reader, 100) == b"precious\n", "it was opened, and what was written is lost"
        os.close(reader)
    finally:
        writer.kill()
        writer.wait()


@pytest.mark.parametrize("follow", ["beneath", "any"])
def test_a_reference_opens_no_fifo(blksum, workdir, follow):
    os.mkdir("in")
    with waiting_writer("in/fifo"):
        overlay("in/disk.qcow2", "fifo")
        options = (f"--follow={follow}", "--no-sandbox")
        result = blksum(*options, "in/disk.qcow2", timeout=60)
        assert_refused(result, "in/disk.qcow2", "fifo", "not a regular file")


@pytest.mark.parametrize("options", [[], ["--json"], ["--no-sandbox"]])
def test_a_check_file_opens_no_fifo(blksum, workdir, options):
    tagged = f"SHA256 (fifo) = {'0' * 64}\nBLKSUM-SHA256-FLAT-64K (fifo) = {'0' * 64}\n"
    pathlib.Path("SUMS").write_text(f"{'0' * 64}  fifo\n{tagged}")
    with waiting_writer("fifo"):
        result = blksum("-c", *options, "SUMS", timeout=60)
    assert result.returncode == 1
    if not options:
        assert result.stdout == 3 * b"fifo: FAILED open or read\n"
    message = b"blksum: fifo: is a pipe, which is read only where the command line names it\n"
    assert result.stderr.count(message) == 3


def test_images_of_other_commands_are_no_fifos(blksum, workdir):
    blkhash_command = pathlib.Path(blksum.path).with_name("blkhash")
    with waiting_writer("fifo"):
        for command in (["btrfs", "verify"], ["btrfs", "info"], ["bench", "image"]):
            run = [blkhash_command, *command, "fifo"]
            result = subprocess.run(run, capture_output=True, timeout=60)
            assert result.returncode != 0 and b"is a pipe" in result.stderr, (command, result)


def test_a_check_file_reads_no_device_and_nothing_made_up(blksum, workdir):
    """The first are endless, others block, and reading /proc/kmsg consumes its content."""
    write_raw("disk", b"x")
    devices = ["/dev/zero", "/dev/null", "/dev/tty", "/dev/random"]
    made_up = ["/proc/kmsg", "/proc/version", "/proc/self/environ", "/sys/kernel/uevent_seqnum"]
    names = [name for name in devices + made_up if os.path.exists(name)]
    assert "/dev/zero" in names and "/proc/version" in names
    lines = [f"{'0' * 64}  {name}\n" for name in names]
    lines += [f"SHA256 ({name}) = {'0' * 64}\n" for name in names]
    lines.append(f"{letter_value(b'x')}  disk\n")
    pathlib.Path("SUMS").write_text("".join(lines))
    for options in ([], ["--no-sandbox"], ["--threads", "1"]):
        result = blksum("-c", *options, "SUMS", timeout=60)
        assert result.returncode == 1
        failed = "".join(f"{name}: FAILED open or read\n" for name in 2 * names)
        assert result.stdout.decode() == failed + "disk: OK\n"
        for name in names:
            kind = "is generated by the kernel" if name in made_up else "is neither a regular file"
            assert f"blksum: {name}: {kind}" in result.stderr.decode()
        assert result.stderr.count(b"read only where the command line names it") == 2 * len(names)


def test_what_the_command_line_names_is_read_as_a_pipe(blksum, workdir):
    plain = ("--construction", "linear", "-f", "raw")
    for name in ("/proc/version", "/sys/devices/system/cpu/possible", "/dev/null"):
        theirs = subprocess.run(["sha256sum", name], capture_output=True, check=True)
        assert blksum(*plain, name).stdout == theirs.stdout
        assert blksum(*plain, "-r", name).stdout == theirs.stdout


@pytest.mark.parametrize("what", ["fifo", "/dev/zero", "/proc/version"])
def test_a_listed_file_turns_into_something_else(blksum, workdir, what):
    """The file changes between listing and opening. blksum has listed the whole folder, and waits for its
    reader."""
    os.mkdir("in")
    for index in range(100):
        write_raw(f"in/{index:03}{'x' * 200}", b"x", 4096)
    write_raw("in/last", b"x", 4096)
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    args = ("--threads", "1", "-r", "in")
    process = blksum.start(*args, stdin=subprocess.DEVNULL, stdout=write)
    os.close(write)
    waits_in(process, "pipe_write")
    os.unlink("in/last")
    with contextlib.ExitStack() as stack:
        if what == "fifo":
            stack.enter_context(waiting_writer("in/last"))
        else:
            os.symlink(what, "in/last")
        with open(read, "rb") as lines:
            assert len(lines.readlines()) == 100
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    reason = {
        "fifo": b"is a pipe, which is read only where the command line names it",
        "/dev/zero": b"is neither a regular file nor a block device, which is",
        "/proc/version": b"is generated by the kernel when it is read",
    }
    assert stderr.startswith(b"blksum: in/last: " + reason[what]), stderr


def test_a_folder_of_files_that_are_swapped_for_fifos(blksum, workdir):
    os.mkdir("in")
    for name in "abcd":
        write_raw(f"in/{name}", b"x", 4096)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            os.mkfifo("new")
            os.replace("new", "in/c")
            write_raw("new", b"x", 4096)
            os.replace("new", "in/c")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(50):
            result = blksum("-r", "in", timeout=60)
            assert result.stdout.count(b"\n") >= 3
            assert (result.returncode == 0) == (result.stderr == b"")
    finally:
        stop.set()
        thread.join()


# Names on a terminal and in JSON

BIDI = "\u202eoob\u2066"


def on_a_terminal(blksum, *args, **kwargs):
    controller, terminal = pty.openpty()
    everywhere = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    process = subprocess.Popen([blksum.path, *args], **everywhere, **kwargs)
    os.close(terminal)
    shown = read_all(controller)
    return process.wait(timeout=60), shown


@pytest.mark.parametrize("options", [[], ["--tag"], ["--json"], ["-v"], ["--progress"], ["--expect=" + "0" * 64]])
def test_escape_sequences_in_names_that_are_copied(blksum, workdir, options):
    """On a terminal, names have no effect. In a pipe, lines are unchanged."""
    write_raw(f"disk{ESCAPES}", b"x")
    blkcopy = types.SimpleNamespace(path=pathlib.Path(blksum.path).with_name("blkcopy"))
    status, shown = on_a_terminal(blkcopy, *options, f"disk{ESCAPES}", f"copy{ESCAPES}{BIDI}")
    assert status == (1 if "--expect" in str(options) else 0)
    # What a status line draws is its own.
    assert_harmless(re.sub(rb"\r?\x1b\[K|\r(?!\n)", b"", shown), "copy")
    assert BIDI[0] not in shown.decode()
    # A copy that is not as expected is gone.
    write_raw(f"copy{ESCAPES}{BIDI}", b"x")
    for name in [f"disk{ESCAPES}", f"other{ESCAPES}"]:
        status, shown = on_a_terminal(blkcopy, name, f"copy{ESCAPES}{BIDI}")
        assert status == 2
        assert_harmless(shown, "owned")
    if options in ([], ["--tag"]):
        line = images.run(str(blkcopy.path), "--force", *options, f"disk{ESCAPES}", f"copy{ESCAPES}{BIDI}")
        plain = images.run(blksum.path, "-f", "raw", *options, f"copy{ESCAPES}{BIDI}")
        assert line.replace(b"/FORMAT=raw", b"") == plain.replace(b"/FORMAT=raw", b"")


@pytest.mark.parametrize(
    "options",
    [[], ["--tag"], ["-b"], ["-r"], ["-v", "-r"], ["--json"], ["--json", "-r"], ["-p"], ["-z"]],
)
def test_escape_sequences_in_names_that_are_hashed(blksum, workdir, options):
    """On a terminal, names have no effect. In a pipe, lines are unchanged."""
    name = f"in/disk{ESCAPES}{BIDI}"
    os.mkdir("in")
    write_raw(name, b"x", 512)
    pathlib.Path("in/odd").write_bytes(b"x")
    args = [*options, "in"] if "-r" in options else [*options, name, f"gone{ESCAPES}", "in/odd"]
    status, shown = on_a_terminal(blksum, *args)
    assert status == (0 if "-r" in options else 1)
    # The progress bar consists of terminal commands.
    if "-p" not in options:
        assert_harmless(shown.replace(b"\0", b"\n") if "-z" in options else shown, "in/disk")
    assert ESCAPES.split(" ")[0].encode() not in shown
    assert not any(char in shown.decode() for char in BIDI if not char.isalpha())

    piped = blksum(*args)
    if "--json" in options:
        objects = [json.loads(text) for text in piped.stdout.splitlines()]
        assert objects[0]["name"] == name
        assert_harmless(piped.stdout)
        assert not any(char in piped.stdout.decode() for char in BIDI if not char.isalpha())
    elif "-z" in options:
        assert piped.stdout.split(b"\0")[0].endswith(f"  {name}".encode())
    else:
        escaped = name.replace("\r", "\\r").encode()
        first = piped.stdout.splitlines()[0]
        assert escaped in first and first.startswith(b"\\")
    # A harmless name looks the same on a terminal and in a pipe.
    if options in ([], ["--tag"], ["-b"]):
        status, shown = on_a_terminal(blksum, *options, "in/odd")
        assert blksum(*options, "in/odd").stdout in shown.replace(b"\r\n", b"\n")


@pytest.mark.root
def test_without_procfs(blksum, workdir):
    """Without /proc, an examined file has no name there, and is looked up again."""
    write_raw("base", b"x")
    overlay("disk.qcow2", "base")
    os.mkfifo("fifo")
    overlay("fifo.qcow2", "fifo")
    script = 'mount -t tmpfs none /proc && exec "$@"'
    hide = ["unshare", "-m", "sh", "-c", script, "sh", blksum.path]
    result = subprocess.run([*hide, "disk.qcow2", "base"], capture_output=True, timeout=60)
    value = letter_value(b"x").encode()
    assert (result.returncode, result.stdout) == (0, value + b"  disk.qcow2\n" + value + b"  base\n")
    result = subprocess.run([*hide, "fifo.qcow2"], capture_output=True, timeout=60)
    assert_refused(result, "fifo.qcow2", "not a regular file")
