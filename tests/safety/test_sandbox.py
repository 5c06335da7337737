"""The sandbox in the commands: it is in force, and does not break any use.

crates/blksandbox/tests/sandbox.rs tests which calls the kernel refuses.
"""

import ctypes
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import time

import pytest

import blkhash
import foreign_images
import images
from changing import loop_device
from commands import ROOT
from formats import write_server
from references import letter_value, overlay, write_raw
from servers import Servers

MIB = 1 << 20
LANDLOCK_CREATE_RULESET = 444
SECCOMP = 317
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
FORBIDDEN = (ROOT / "tests/helpers/forbidden.py").read_text()
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
PR_SET_NO_NEW_PRIVS = 38
SANDBOX = b"blksum: sandbox: landlock ABI "

DENIED = (
    b"Permission denied, by the sandbox: --verbose shows what it allows, --no-sandbox disables it\n"
)


@pytest.fixture
def landlock():
    abi = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)
    if abi < 0:
        pytest.skip("this kernel has no Landlock")
    return abi


def in_force(result):
    """Returns the line of --verbose about the sandbox."""
    lines = [line for line in result.stderr.splitlines() if b": sandbox: " in line]
    assert len(lines) == 1, result
    return lines[0].decode()


def test_it_is_in_force_while_images_are_read(blksum, landlock, workdir):
    """A link is changed after the sandbox is in force, so only the kernel can refuse it."""
    os.mkfifo("first")
    os.mkdir("links")
    for name, letter in (("old", b"o"), ("new", b"n")):
        os.mkdir(name)
        write_raw(f"{name}/disk", letter)
    new = f"{letter_value(b'n')}  links/link\n".encode()
    expected = {
        (): (1, b"", b"blksum: links/link: " + DENIED),
        ("--no-sandbox",): (0, new, b""),
        # This allows reading everything.
        ("--follow=any",): (0, new, b""),
    }
    for options, (status, line, message) in expected.items():
        os.symlink("../old/disk", "links/link")
        process = blksum.start(*options, "first", "links/link", stdin=subprocess.DEVNULL)
        with open("first", "wb") as fifo:
            wait_until_it_reads(process)
            with open(f"/proc/{process.pid}/status") as file:
                privileges = [text for text in file if text.startswith("NoNewPrivs")]
            assert privileges == [f"NoNewPrivs:\t{int('--no-sandbox' not in options)}\n"]
            os.unlink("links/link")
            os.symlink("../new/disk", "links/link")
            fifo.write(b"x" * 512)
        stdout, stderr = process.communicate(timeout=60)
        first = f"{blkhash.checksum(b'x' * 512).hex()}  first\n".encode()
        assert (process.returncode, stdout, stderr) == (status, first + line, message), options
        os.unlink("links/link")


def test_it_holds_for_threads_that_start_later(blksum, landlock, workdir):
    """The same with enough small images that threads other than the first open them."""
    count = 200
    os.mkfifo("first")
    for name, letter in (("old", b"o"), ("new", b"n")):
        os.mkdir(name)
        write_raw(f"{name}/disk", letter)
    os.mkdir("links")
    links = [f"links/{index}" for index in range(count)]
    for link in links:
        os.symlink("../old/disk", link)
    small = ["old/disk"] * count
    args = ["--threads", "8", "first", *small, *links]
    process = blksum.start(*args, stdin=subprocess.DEVNULL)
    with open("first", "wb") as fifo:
        wait_until_it_reads(process)
        for link in links:
            os.unlink(link)
            os.symlink("../new/disk", link)
        fifo.write(b"x" * 512)
    stdout, stderr = process.communicate(timeout=60)
    old = f"{letter_value(b'o')}  old/disk\n".encode()
    assert stdout.splitlines(keepends=True)[1:] == [old] * count
    assert stderr == b"".join(f"blksum: {link}: ".encode() + DENIED for link in links)
    assert process.returncode == 1


def wait_until_it_reads(process):
    """Waits until it sleeps in the pipe. The sandbox is in force before that."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with open(f"/proc/{process.pid}/wchan") as file:
            if "pipe_read" in file.read():
                return
        time.sleep(0.001)
    raise AssertionError("it does not wait for the pipe")


def test_verbose_says_what_is_in_force(blksum, landlock, workdir):
    os.mkdir("in")
    write_raw("in/disk", b"x")
    expected = f"{letter_value(b'x')}  in/disk\n".encode()
    for options, words, others in [
        ([], ["reading beneath in"], ["reading in/disk", "everything", "TCP", "programs"]),
        (["--untrusted"], ["reading in/disk"], ["beneath", "programs"]),
        (["--reader=qemu"], ["reading beneath in", "programs"], []),
        (["-f", "raw"], ["reading in/disk"], ["beneath", "programs"]),
        (["--follow=any"], ["reading everything"], ["beneath"]),
        (["--no-sandbox"], ["none, as --no-sandbox says"], ["landlock"]),
    ]:
        result = blksum("-v", *options, "in/disk")
        assert (result.returncode, result.stdout) == (0, expected)
        said = in_force(result)
        assert all(word in said for word in words), said
        assert not any(word in said for word in others), said
    assert f"landlock ABI {landlock}," in in_force(blksum("-v", "in/disk"))
    assert "reading beneath in" in in_force(blksum("-v", "-r", "in"))
    assert "TCP port 10810" in in_force(blksum("-v", "nbd://localhost:10810/x"))
    assert blksum("in/disk").stderr == b""


def test_programs_run_only_for_formats_that_need_one(blksum, landlock, workdir):
    """The formats of images in folders, and of a check file without an end, are not known before."""
    write_raw("disk.img", b"x")
    images.qemu_img("convert", "-f", "raw", "-O", "qcow2", "disk.img", "disk.qcow2")
    pathlib.Path("disk.bochs").write_bytes(foreign_images.bochs(pathlib.Path("disk.img").read_bytes()))
    value = letter_value(b"x")
    for args, runs in [
        (["disk.img", "disk.qcow2"], False),
        (["-U", "disk.qcow2"], False),
        (["-f", "qcow2", "disk.qcow2"], False),
        (["disk.img", "disk.bochs"], True),
        (["-f", "bochs", "disk.bochs"], True),
        (["--nbd-server=qemu-nbd", "disk.img"], True),
        (["--reader=qemu", "disk.qcow2"], True),
        (["-r", "."], True),
        (["-f", "raw", "-r", "."], False),
    ]:
        result = blksum("-v", *args)
        assert result.returncode == 0, result
        assert ("running programs" in in_force(result)) == runs, (args, result)
    for name, runs in (("disk.img", False), ("disk.qcow2", False), ("disk.bochs", True)):
        with open(name, "rb") as stdin:
            result = blksum("-v", stdin=stdin)
        assert result.stdout.startswith(value.encode()), result
        assert ("running programs" in in_force(result)) == runs, (name, result)
        line = f"{value}  {name}\n".encode()
        result = blksum("-v", "-c", input=line)
        assert (result.returncode, result.stdout) == (0, f"{name}: OK\n".encode()), result
        assert ("running programs" in in_force(result)) == runs, (name, result)


def test_a_backing_file_that_needs_a_program(blksum, landlock, workdir):
    """Only the format of the top image is known before the sandbox is in force."""
    write_raw("disk.img", b"x")
    pathlib.Path("base").write_bytes(foreign_images.bochs(pathlib.Path("disk.img").read_bytes()))
    images.create("top.qcow2", os.path.getsize("disk.img"), "-u", "-b", "base", "-F", "bochs")
    result = blksum("top.qcow2")
    assert result.returncode == 1 and b"base: cannot be handed to qemu-nbd" in result.stderr, result
    assert b"--nbd-server=" in result.stderr, result
    for option in ("--nbd-server=qemu-nbd", "--backing-format=bochs", "--no-sandbox"):
        assert blksum.hex(option, "top.qcow2") == letter_value(b"x")


def without(*calls):
    """Makes system calls unavailable for the process with a seccomp filter, as in a kernel without them."""
    load, equal, answer = 0x20, 0x15, 0x06
    allow, no_such_call = 0x7FFF0000, 0x00050000 | 38
    instructions = [(load, 0, 0, 0)]
    for call in calls:
        instructions += [(equal, 0, 1, call), (answer, 0, 0, no_such_call)]
    instructions.append((answer, 0, 0, allow))
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0) == 0


def without_landlock():
    without(LANDLOCK_CREATE_RULESET)


def without_anything():
    without(LANDLOCK_CREATE_RULESET, SECCOMP)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter knows x86-64")
@pytest.mark.parametrize(
    "prepare, said",
    [
        (without_landlock, "no landlock, which this kernel lacks, no new privileges, "
         "system calls filtered, no capabilities"),
        (lambda: without(SECCOMP), "system calls not filtered, which this kernel cannot, no capabilities"),
        (without_anything, "no landlock, which this kernel lacks, no new privileges, "
         "system calls not filtered, which this kernel cannot, no capabilities"),
    ],
    ids=["landlock", "seccomp", "both"],
)  # fmt: skip
def test_kernels_that_lack_a_layer(blksum, workdir, prepare, said):
    write_raw("disk", b"x")
    write_bochs("disk.bochs", bytes(4 << 20))
    expected = f"{letter_value(b'x')}  disk\n"
    result = blksum("disk", preexec_fn=prepare)
    assert (result.returncode, result.stdout.decode(), result.stderr) == (0, expected, b"")
    result = blksum("-v", "disk", preexec_fn=prepare)
    assert result.stdout.decode() == expected
    assert said in in_force(result)
    # The server has the same layers.
    assert blksum("disk.bochs", preexec_fn=prepare).returncode == 0


# System calls and capabilities. crates/blksandbox/tests/sandbox.rs tests them for the process itself.


def write_bochs(path, content):
    """Writes an image of a format that qemu-nbd reads."""
    pathlib.Path(path).write_bytes(foreign_images.bochs(content))


def tries(blksum, *options, **kwargs):
    """Runs forbidden.py as the server, and returns the error message with its results."""
    head, tail = FORBIDDEN.split("\nfor name, action in", 1)
    # The message has little room, so print only numbers and results.
    tail = tail.replace('print(f"{name}: done"', 'print("ok"').replace(
        'print(f"{name}: {errno.errorcode.get(error.errno, error.errno)}"', "print(error.errno"
    )
    code = f"sys.argv[1:] = ['/dev/fd/10']\n{head}\nfor name, action in{tail}"
    server = write_server(code)
    result = blksum("--nbd-server", server, *options, "disk.bochs", **kwargs)
    return result.stderr.decode()


@pytest.mark.parametrize("as_user", [pytest.param("root", marks=pytest.mark.root), "nobody"])
@pytest.mark.parametrize("options", [[], ["--no-sandbox"]], ids=["sandbox", "no-sandbox"])
def test_server_changes_nothing_and_connects_nowhere(blksum, workdir, as_user, options):
    """Also with --no-sandbox, because the server has its own restrictions."""
    os.chmod(".", 0o755)
    write_bochs("disk.bochs", bytes(4 << 20))
    os.chmod("disk.bochs", 0o644)
    user = NOBODY if as_user == "nobody" and os.getuid() == 0 else {}
    message = tries(blksum, *options, **user)
    names = {}
    exec(FORBIDDEN.split("\nfor name, action in", 1)[0].replace("sys.argv", "['x']"), names)
    assert "server: " in message, message
    words = message.split("server: ", 1)[1].split("; ")
    expected = {"clone3": "38", "a call of the future": "38"}
    tried = [*names["CALLS"], *names["NETWORK"]]
    assert dict(zip(tried, words)) == {name: expected.get(name, "1") for name in tried}, message
    last = words[len(tried)].strip()
    if as_user == "root":
        assert last == "capabilities: 4 4 0 0", message
    else:
        assert last == "capabilities: 0 0 0 0", message


@pytest.mark.skipif(platform.machine() != "x86_64", reason="calls of 32 bits are x86's")
def test_calls_of_32_bits_are_the_end_of_the_server(blksum, workdir):
    write_bochs("disk.bochs", bytes(4 << 20))
    os.mkdir("server")
    pathlib.Path("server.c").write_text(
        # getpid, as called by a process of 32 bits.
        'int main(void) { int r; __asm__ volatile("int $0x80" : "=a"(r) : "0"(20)); return 0; }\n'
    )
    subprocess.run(["gcc", "-O1", "-o", "server/server", "server.c"], check=True)
    result = blksum("--nbd-server", os.path.abspath("server/server"), "disk.bochs")
    assert result.returncode == 1 and b"signal: 31 (SIGSYS)" in result.stderr, result


@pytest.mark.root
def test_root_reads_images_of_others(blksum, workdir):
    """Root can read them without the capability to write them."""
    os.mkdir("in")
    write_raw("in/base.img", b"b")
    overlay("in/top.qcow2", "base.img")
    write_bochs("in/disk.bochs", pathlib.Path("in/base.img").read_bytes())
    for name in ("base.img", "top.qcow2", "disk.bochs"):
        os.chmod(f"in/{name}", 0o600)
        shutil.chown(f"in/{name}", 65534, 65534)
    os.chmod("in", 0o700)
    shutil.chown("in", 65534, 65534)
    for name in ("base.img", "top.qcow2", "disk.bochs"):
        assert blksum.hex(f"in/{name}") == letter_value(b"b")
    result = blksum("-v", "-r", "in")
    assert len(result.stdout.splitlines()) == 3
    assert ", no capabilities but DAC_READ_SEARCH and FOWNER, " in in_force(result)


@pytest.mark.root
def test_root_connects_to_sockets_of_others(blksum, workdir):
    write_raw("disk", b"x")
    servers = Servers()
    try:
        server = servers.qemu_nbd("disk")
        os.chmod(server.place, 0o700)
        shutil.chown(server.place, 65534, 65534)
        assert blksum.hex(server.uri()) == letter_value(b"x")
        assert " but DAC_OVERRIDE and DAC_READ_SEARCH and" in in_force(blksum("-v", server.uri()))
    finally:
        servers.close()


@pytest.mark.root
def test_root_reads_a_block_device(blksum, workdir):
    write_raw("disk", b"x")
    with loop_device("disk") as device:
        assert blksum.hex(device) == letter_value(b"x")
    write_bochs("disk.bochs", pathlib.Path("disk").read_bytes())
    with loop_device("disk.bochs") as device:
        assert blksum.hex("-f", "bochs", device) == letter_value(b"x")


def test_users_have_no_capabilities(blksum, workdir):
    os.chmod(".", 0o755)
    write_raw("disk", b"x")
    os.chmod("disk", 0o644)
    user = NOBODY if os.getuid() == 0 else {}
    result = blksum("-v", "disk", **user)
    assert result.returncode == 0
    assert ", system calls filtered, no capabilities, " in in_force(result)


def test_check_file_that_lists_folders_opens_none(blksum, landlock, workdir):
    write_raw("disk", b"x")
    digest = letter_value(b"x")
    lines = [f"{digest}  {name}\nSHA256 ({name}) = {digest}\n" for name in ("/", "/etc", "..")]
    (workdir / "SUMS").write_text("".join(lines) + f"{digest}  disk\n")
    said = in_force(blksum("-v", "-c", "SUMS"))
    assert said.endswith(", reading beneath .") and said.count("reading") == 1, said


# Uses that must keep working


@pytest.fixture
def tree(workdir):
    """Images that refer to others beneath their folders, and the value of each."""
    os.makedirs("real/sub/deep")
    os.makedirs("named")
    write_raw("real/base.img", b"b")
    write_raw("named/base.img", b"n")
    write_raw("real/sub/deep/base.img", b"d")
    overlay("real/top.qcow2", "base.img")
    overlay("real/sub/deep/middle.qcow2", "base.img")
    overlay("real/chain.qcow2", "sub/deep/middle.qcow2", "qcow2")
    overlay("real/absolute.qcow2", str(workdir / "real/sub/deep/base.img"))
    os.symlink("../real/top.qcow2", "named/link.qcow2")
    os.symlink("real", "alias")
    os.symlink(str(workdir / "alias/sub/../base.img"), "named/far.img")
    os.symlink("far.img", "named/further.img")
    return workdir


PLACES = {
    "real/top.qcow2": b"b",
    "alias/top.qcow2": b"b",
    "real/sub/../top.qcow2": b"b",
    "./real//top.qcow2": b"b",
    "real/chain.qcow2": b"d",
    "alias/chain.qcow2": b"d",
    "real/absolute.qcow2": b"d",
    "alias/absolute.qcow2": b"d",
    # References start at the folder of the name.
    "named/link.qcow2": b"n",
    "named/far.img": b"b",
    "named/further.img": b"b",
}


def test_names_of_all_kinds(blksum, tree):
    expected = [letter_value(letter) for letter in PLACES.values()]
    names = list(PLACES)
    for names in (names, [str(tree / name) for name in names]):
        result = blksum(*names)
        assert result.stderr == b""
        assert [line.split()[0].decode() for line in result.stdout.splitlines()] == expected
        # As a check file, in a file and in a pipe.
        (tree / "SUMS").write_bytes(result.stdout)
        for args, kwargs in (["-c", "SUMS"], {}), (["-c"], {"input": result.stdout}):
            checked = blksum("-v", *args, **kwargs)
            assert checked.returncode == 0, checked
            assert checked.stdout.count(b": OK\n") == len(names)
            assert "reading everything" not in in_force(checked)
    for name, value in zip(PLACES, expected):
        folder, name = os.path.split(name)
        assert blksum.hex(name, cwd=folder) == value


def test_image_on_standard_input(blksum, tree):
    for name in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "-"):
        with open("real/base.img", "rb") as file:
            assert blksum.hex(name, stdin=file) == letter_value(b"b")
        assert blksum.hex(name, input=b"b" * MIB) == letter_value(b"b")
    # Opened by its own path, it has a folder.
    with open("named/link.qcow2", "rb") as file:
        assert blksum.hex("-", stdin=file, cwd="/") == letter_value(b"b")
    # A file without a name.
    with open("real/base.img", "rb") as file:
        os.unlink("real/base.img")
        assert blksum.hex("-", stdin=file) == letter_value(b"b")


def test_link_to_a_block_device(blksum, workdir):
    """Its references start at the folder of the link, which may contain other images."""
    os.mkdir("in")
    write_raw("in/base.img", b"b")
    overlay("disk", "base.img")
    os.truncate("disk", 4 * MIB)
    with loop_device("disk") as device:
        os.symlink(device, "in/link")
        assert blksum.hex("in/link") == letter_value(b"b")


def test_names_that_lead_nowhere(blksum, workdir):
    os.symlink("gone", "dangling")
    os.symlink("loop", "loop")
    write_raw("disk", b"x")
    names = ["missing", "missing/disk", "dangling", "loop", "disk/", ".", "", "/", "disk"]
    with_it, without = blksum(*names), blksum("--no-sandbox", *names)
    assert with_it.stdout.decode() == f"{letter_value(b'x')}  disk\n"
    assert (with_it.returncode, with_it.stderr) == (without.returncode, without.stderr)
    assert b"Permission" not in with_it.stderr


def test_thousands_of_folders(blksum, workdir):
    names = []
    for number in range(3000):
        os.mkdir(f"{number}")
        os.symlink("../disk", f"{number}/disk")
        names.append(f"{number}/disk")
    write_raw("disk", b"x", 4096)
    result = blksum("-v", *names)
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 3000
    assert len(in_force(result)) < 1000


# Check files that cannot be read in advance


def test_check_file_without_an_end_is_answered_line_by_line(blksum, workdir):
    write_raw("disk", b"x")
    line = f"{letter_value(b'x')}  disk\n".encode()
    process = blksum.start("-v", "-c", stdin=subprocess.PIPE)
    for _ in range(3):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == b"disk: OK\n"
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, b"")
    assert b"reading everything" in stderr or SANDBOX not in stderr


def test_check_file_of_a_slow_writer(blksum, workdir):
    """As with sha256sum, partial lines are handled in order, whenever they arrive."""
    for name in "ab":
        write_raw(name, name.encode())
    process = blksum.start("-c", stdin=subprocess.PIPE)
    text = f"{letter_value(b'a')}  a\n{letter_value(b'b')}  b\n".encode()
    for piece in (text[:30], text[30:80], text[80:]):
        process.stdin.write(piece)
        process.stdin.flush()
        time.sleep(0.6)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (0, b"a: OK\nb: OK\n", b"")


def test_several_check_files_in_pipes(blksum, workdir):
    write_raw("disk", b"x")
    line = f"{letter_value(b'x')}  disk\n"
    script = f"'{blksum.path}' -c <(echo '{line}') <(sleep 0.1; echo '{line}') -"
    result = images.attempt("bash", "-c", script, input=line.encode(), stdin=None)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"disk: OK\n" * 3, b"")


def test_check_file_that_is_too_long_to_hold(blksum, workdir):
    os.mkdir("in")
    write_raw("in/disk", b"x")
    line = f"{letter_value(b'x')}  in/disk\n".encode()
    comment = b"#" * 1023 + b"\n"
    (workdir / "SUMS").write_bytes(line + comment * (17 << 10) + line)
    (workdir / "MORE").write_bytes(line)
    result = blksum("-v", "-c", "SUMS", "MORE")
    assert (result.returncode, result.stdout) == (0, b"in/disk: OK\n" * 3)
    assert b"reading everything" in result.stderr or SANDBOX not in result.stderr


def test_more_check_files_than_descriptors(blksum, workdir):
    write_raw("disk", b"x", 4096)
    names = [f"SUMS{number}" for number in range(1500)]
    for name in names:
        (workdir / name).write_text(f"{letter_value(b'x', 4096)}  disk\n")
    result = blksum("-c", *names)
    assert (result.returncode, result.stdout) == (0, b"disk: OK\n" * 1500)


def test_the_uri_of_a_check_file_opens_no_files(blksum, landlock, workdir):
    """Files named in such a URI are not read, and the sandbox does not allow it either."""
    os.mkdir("keys")
    parameters = ["tls-certificates=/", f"tls-certificates={workdir}/keys", "tls-psk-file=/"]
    for scheme in ("nbds://127.0.0.1:1/", "nbds+unix:///", "nbd+unix:///"):
        for parameter in parameters:
            uri = f"{scheme}?socket=/nowhere&{parameter}"
            (workdir / "SUMS").write_text(f"{'0' * 64}  {uri}\n")
            result = blksum("-v", "-c", "--allow-uri", "SUMS", timeout=60)
            assert result.returncode == 1
            assert result.stdout.decode() == f"{uri}: FAILED open or read\n"
            shown = in_force(result)
            assert "reading" not in shown and "keys" not in shown, shown
            # Names on the command line are trusted.
            shown = in_force(blksum("-v", uri, timeout=60))
            assert f"reading {parameter.split('=')[1]}" in shown, shown
