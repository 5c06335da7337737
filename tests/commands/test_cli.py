"""Options, output, standard input, exit statuses and signals."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

import blkhash
import images
import imagespec
import terminal
from commands import HANG, ROOT, blksum_path

SPEC = "100k:A 200k:- 64k:0 148k:#"

REQUIRED_DIGESTS = {
    *("crc32", "crc32c", "crc64", "crc64nvme", "xxh64", "xxh3", "xxh128", "md5", "sha1"),
    *("sha224", "sha256", "sha384", "sha512", "sha512-224", "sha512-256"),
    *("sha3-224", "sha3-256", "sha3-384", "sha3-512"),
    *("blake2b256", "blake2b512", "blake2s256", "blake3", "null"),
}


@pytest.fixture
def img(workdir):
    """`img`: a raw image in the current folder, `img.qcow2`: the same content."""
    imagespec.write(SPEC, "img")
    images.qemu_img("convert", "-O", "qcow2", "img", "img.qcow2")
    return workdir


def value(*args, spec=SPEC):
    return blkhash.checksum(imagespec.chunks(spec), *args).hex()


def line(name, *args):
    return f"{value(*args)}  {name}\n".encode()


def expect(result, status, stdout=b"", *words):
    """Checks the result. Standard error must contain `words`, and be empty if there are none."""
    assert (result.returncode, result.stdout) == (status, stdout), result
    for word in words:
        assert word in result.stderr.decode("utf-8", "replace"), result
    if not words:
        assert result.stderr == b"", result


def test_defaults(blksum, img):
    expect(blksum("img"), 0, line("img", "sha256", "streams:4", 65536))
    expect(blksum("img.qcow2"), 0, line("img.qcow2", "sha256", "streams:4", 65536))


@pytest.mark.parametrize("option", ["-d", "--digest=", "-a", "--algorithm="])
def test_digest_option(blksum, img, option):
    args = [option + "blake3"] if option.endswith("=") else [option, "blake3"]
    expect(blksum(*args, "img"), 0, line("img", "blake3"))


@pytest.mark.parametrize(
    "text, size",
    [("512", 512), ("4096", 4096), ("4k", 4096), ("64K", 65536), ("1M", 1 << 20), ("64m", 1 << 26)],
)
def test_block_size(blksum, img, text, size):
    expect(blksum("--block-size", text, "img"), 0, line("img", "sha256", "streams:4", size))


@pytest.mark.parametrize("construction", ["streams", "streams:1", "streams:128", "flat", "concat"])
def test_construction(blksum, img, construction):
    result = blksum("--construction", construction, "img")
    expect(result, 0, line("img", "sha256", construction))


@pytest.mark.parametrize(
    "args",
    [
        ["--block-size", "511"],
        ["--block-size", "256"],
        ["--block-size", "3k"],
        ["--block-size", "128M"],
        ["--block-size", "0"],
        ["--block-size", "-1"],
        ["--block-size", "many"],
        ["--block-size", "99999999999999999999"],
        ["--block-size", "17179869184G"],
        ["--construction", "streams:0"],
        ["--construction", "streams:129"],
        ["--construction", "streams:"],
        ["--construction", "tree"],
        ["--construction", "flat:4"],
        ["-d", "sha255"],
        ["-d", ""],
        ["--threads", "-1"],
        ["--threads", "many"],
        ["--cache=maybe"],
        ["--holes=some"],
        ["--holes"],
        ["--follow=some"],
        ["-f", "tape"],
        ["--backing-format", "tape"],
        ["--no-such-option"],
        ["-Q"],
    ],
    ids=" ".join,
)
def test_usage_errors(blksum, img, args):
    result = blksum(*args, "img")
    assert (result.returncode, result.stdout) == (2, b"") and result.stderr != b""


def test_force_is_no_abbreviation(blksum, img):
    result = blksum("--force", "img")
    assert result.returncode == 2 and b"--force-share reads an image that is open for writing" in result.stderr
    assert blksum("--force-s", "img").returncode == 0


def test_bare_blake2b_is_refused_and_both_are_named(blksum, img):
    expect(blksum("-d", "blake2b", "img"), 2, b"", "blake2b256", "blake2b512")


def test_siphash_is_refused_with_the_reason(blksum, img):
    expect(blksum("-d", "siphash", "img"), 2, b"", "siphash", "key")


@pytest.mark.parametrize("option", ["-l", "--list-digests"])
def test_list_digests(blksum, workdir, option):
    result = blksum(option)
    assert (result.returncode, result.stderr) == (0, b"")
    names = result.stdout.decode().splitlines()
    assert REQUIRED_DIGESTS <= set(names)
    # One name on each line and nothing else, for scripts.
    assert [name for name in names if not re.fullmatch(r"[a-z0-9-]+", name)] == []
    assert not {"siphash", "blake2b"} & set(names)
    assert len(names) == len(set(names))


def test_every_listed_digest_works(blksum, img):
    names = blksum("--list-digests").stdout.decode().splitlines()
    assert len(names) >= len(REQUIRED_DIGESTS)
    for name in names:
        expect(blksum("-d", name, "img"), 0, line("img", name))


@pytest.mark.parametrize("option", ["--cache", "--progress", "-p"])
def test_optional_value_does_not_eat_the_file(blksum, img, option):
    result = blksum(option, "img")
    assert (result.returncode, result.stdout) == (0, line("img"))


@pytest.mark.parametrize(
    "option",
    [
        *("--cache=auto", "--cache=yes", "--cache=no", "--holes=trust", "--holes=verify"),
        *("--holes=ignore", "--threads=1", "--threads=7", "--queue-depth=1", "--queue-depth=64"),
        *("--read-size=65536", "--read-size=1m", "-U", "--force-share", "--untrusted"),
        *("--follow=none", "--follow=any", "--backing-format=raw"),
    ],
)
def test_options_that_do_not_change_the_value(blksum, img, option):
    for name in ("img", "img.qcow2"):
        expect(blksum(option, name), 0, line(name))


@pytest.mark.parametrize("cache", ["auto", "yes", "no"])
def test_cache_on_a_disk(blksum, workdir, cache):
    """Other tests may run in a tmpfs, but direct reads need a real file system."""
    folder = ROOT / "target"
    folder.mkdir(exist_ok=True)
    path = folder / f"cache-test-{os.getpid()}.img"
    try:
        for spec in (SPEC, SPEC + " 511:#", "5m:# 3m:- 1:A"):
            imagespec.write(spec, path)
            assert blksum.hex(f"--cache={cache}", str(path)) == value(spec=spec)
    finally:
        path.unlink()


def test_text_and_binary_marks(blksum, img):
    expect(blksum("-t", "img"), 0, line("img"))
    expect(blksum("-b", "img"), 0, line("img").replace(b"  ", b" *"))


def test_tag(blksum, img):
    tagged = f"BLKSUM-SHA256-STREAMS4-64K (img.qcow2) = {value()}\n".encode()
    expect(blksum("--tag", "img.qcow2"), 0, tagged)


def test_zero_ends_lines_with_nul_and_escapes_nothing(blksum, img):
    os.rename("img", "new\nline\\")
    expect(blksum("-z", "new\nline\\"), 0, line("new\nline\\").replace(b"\\\n", b"\\\0"))
    escaped = line("new\\nline\\\\")
    expect(blksum("new\nline\\"), 0, b"\\" + escaped)


def test_json(blksum, img):
    result = blksum("--json", "-d", "blake2b512", "--construction", "flat", "img.qcow2", "img")
    assert (result.returncode, result.stderr) == (0, b"")
    objects = [json.loads(text) for text in result.stdout.splitlines()]
    assert [o["name"] for o in objects] == ["img.qcow2", "img"]
    for o, image_format in zip(objects, ("qcow2", "raw")):
        assert o["checksum"] == value("blake2b512", "flat")
        assert o["digest"] == "blake2b512"
        assert o["construction"] == "flat"
        assert o["block_size"] == 65536
        assert o["virtual_size"] == imagespec.size(SPEC)
        assert o["format"] == image_format
        assert 0 < o["bytes_read"] <= 2 * imagespec.size(SPEC)
        assert isinstance(o["seconds"], float) and o["seconds"] >= 0
        assert "error" not in o and "name_bytes" not in o


def test_order_is_as_asked_whatever_the_sizes(blksum, workdir):
    names = []
    for i in range(40):
        spec = f"{(i * 7919) % 3000 + 1}k:#"
        imagespec.write(spec, f"{i}.img")
        names.append((f"{i}.img", spec))
    expected = "".join(f"{value(spec=spec)}  {name}\n" for name, spec in names)
    expect(blksum("--threads", "4", *(name for name, _ in names)), 0, expected.encode())


@pytest.mark.parametrize("option", ["-r", "--recursive"])
def test_recursive(blksum, img, option):
    os.makedirs("tree/b/c")
    os.makedirs("tree/empty")
    for name in ("tree/z.img", "tree/b/y.img", "tree/b/c/x.img", "tree/a.img"):
        imagespec.write(SPEC, name)
    os.symlink("..", "tree/b/up")
    os.mkfifo("tree/b/pipe")
    result = blksum(option, "tree", timeout=60)
    names = [text.split("  ", 1)[1] for text in result.stdout.decode().splitlines()]
    assert names == ["tree/a.img", "tree/b/c/x.img", "tree/b/y.img", "tree/z.img"]
    assert {text[:64] for text in result.stdout.decode().splitlines()} == {value()}
    assert result.returncode == 0
    expect(blksum("tree"), 1, b"", "tree", "directory")
    # A plain file among the folders is hashed as without -r.
    assert blksum(option, "img", "tree").stdout.startswith(line("img"))


def test_empty_image(blksum, workdir):
    (workdir / "empty").touch()
    expect(blksum("empty"), 0, f"{blkhash.checksum(b'').hex()}  empty\n".encode())
    expect(blksum(input=b""), 0, f"{blkhash.checksum(b'').hex()}  -\n".encode())


# Standard input


@pytest.mark.parametrize("args", [[], ["-"]], ids=["none", "dash"])
def test_standard_input_file(blksum, img, args):
    for name in ("img", "img.qcow2"):
        with open(name, "rb") as file:
            expect(blksum(*args, stdin=file), 0, line("-"))


def test_standard_input_raw_file_from_the_current_offset(blksum, img):
    data = (img / "img").read_bytes()
    for offset in (512, 100_864, len(data) - 512, len(data)):
        with open("img", "rb", buffering=0) as file:
            file.seek(offset)
            expected = f"{blkhash.checksum(data[offset:]).hex()}  -\n".encode()
            expect(blksum(stdin=file), 0, expected)


def test_standard_input_pipe(blksum, img):
    expect(blksum(input=(img / "img").read_bytes()), 0, line("-"))
    expect(blksum("img", "-", input=(img / "img").read_bytes()), 0, line("img") + line("-"))


def test_pipe_that_trickles(blksum, img):
    data = (img / "img").read_bytes()
    process = blksum.start(stdin=subprocess.PIPE)
    for length in (1, 2, 511, 3, 70_000, 1):
        process.stdin.write(data[:length])
        process.stdin.flush()
        data = data[length:]
        time.sleep(0.02)
    stdout, stderr = process.communicate(data, timeout=60)
    assert (process.returncode, stdout, stderr) == (0, line("-"), b"")


# Formats


@pytest.mark.parametrize("fmt", ["qed", "qcow"])
def test_qcow2_beneath_other_formats(blksum, img, fmt):
    """The format is never guessed."""
    run = ("qemu-img", "create", "-q", "-f", fmt, "-b", "img.qcow2", "-F", "qcow2", "top")
    subprocess.run(run, check=True, capture_output=True)
    reason = 'names the backing file "img.qcow2", whose format is not recorded: give --backing-format'
    expect(blksum("top"), 1, b"", f"blksum: top: {reason}\n")
    expect(blksum("--backing-format", "qcow2", "top"), 0, line("top"))


def test_qcow2_in_the_place_of_a_vmdk(blksum, img):
    for args in (["base.vmdk"], ["-b", "base.vmdk", "-F", "vmdk", "top.vmdk"]):
        size = [] if "-b" in args else ["1M"]
        run = ("qemu-img", "create", "-q", "-f", "vmdk", *args, *size)
        subprocess.run(run, check=True, capture_output=True)
    os.replace("img.qcow2", "base.vmdk")
    expect(blksum("top.vmdk"), 1, b"", "blksum: top.vmdk: base.vmdk: is not a vmdk image\n")


@pytest.mark.slow
def test_luks_in_qcow2(blksum, img):
    """Encryption by the format, with the key and without. A guest's own encryption is content."""
    (img / "key").write_bytes(b"password")
    secret = ("--object", "secret,id=s,file=key")
    options = "encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10"
    images.qemu_img("create", "-q", *secret, "-f", "qcow2", "-o", options, "disk.qcow2", "1M")
    reason = "blksum: disk.qcow2: is encrypted with LUKS, which is not read"
    expect(blksum("disk.qcow2"), 1, b"", reason)
    expect(blksum("--secret-file", "key", "disk.qcow2"), 1, b"", reason)
    run = ("qemu-img", "create", "-q", "-u", "-f", "qcow2", "-b", "disk.qcow2", "-F", "qcow2", "top")
    subprocess.run([*run, "1M"], check=True, capture_output=True)
    reason = "blksum: top: disk.qcow2: is encrypted with LUKS, which is not read"
    expect(blksum("top"), 1, b"", reason)

    options = "key-secret=s,iter-time=10"
    images.qemu_img("create", "-q", *secret, "-f", "luks", "-o", options, "disk.luks", "1M")
    run = ("qemu-img", "convert", "-f", "raw", "-O", "qcow2", "disk.luks", "content.qcow2")
    subprocess.run(run, check=True, capture_output=True)
    assert blksum.hex("content.qcow2") == blksum.hex("-f", "raw", "disk.luks")


def test_forced_formats(blksum, img):
    data = (img / "img.qcow2").read_bytes()
    raw = f"{blkhash.checksum(data).hex()}  img.qcow2\n".encode()
    expect(blksum("-f", "raw", "img.qcow2"), 0, raw)
    expect(blksum("--format=qcow2", "img.qcow2"), 0, line("img.qcow2"))
    expect(blksum("-f", "qcow2", "img"), 1, b"", "img", "qcow2")


def test_snapshots(blksum, workdir):
    path = workdir / "disk.qcow2"
    images.create(path, "8M")
    for number, name in enumerate(("first", "2", "third one")):
        images.qemu_io(path, f"write -P {number + 1} {number}M 1M", f"write -z {number * 512}k 64k")
        images.qemu_img("snapshot", "-c", name, path)
    images.qemu_io(path, "write -P 0x77 0 8M")
    values = {}
    for number, name in enumerate(("first", "2", "third one")):
        raw = images.to_raw(path, workdir / "raw", "-l", f"snapshot.id={number + 1}")
        values[name] = blkhash.file_checksum(raw).hex()
        by_name = images.to_raw(path, workdir / "raw2", "-l", f"snapshot.name={name}")
        assert raw.read_bytes() == by_name.read_bytes()
    assert len(set(values.values())) == 3
    assert blksum.hex("--snapshot", "first", "disk.qcow2") == values["first"]
    assert blksum.hex("--snapshot", "1", "disk.qcow2") == values["first"]
    assert blksum.hex("--snapshot", "third one", "disk.qcow2") == values["third one"]
    assert blksum.hex("--snapshot", "3", "disk.qcow2") == values["third one"]
    # Id 2 and name 2 are the same snapshot here.
    assert blksum.hex("--snapshot", "2", "disk.qcow2") == values["2"]
    assert blksum.hex("disk.qcow2") == blkhash.checksum(b"\x77" * (8 << 20)).hex()
    expect(blksum("--snapshot", "none", "disk.qcow2"), 1, b"", "disk.qcow2", "none")


def test_snapshot_of_another_size(blksum, workdir):
    path = workdir / "disk.qcow2"
    images.create(path, "1M")
    images.qemu_io(path, "write -P 1 0 1M")
    images.qemu_img("snapshot", "-c", "small", path)
    images.qemu_img("resize", "-q", path, "3M")
    images.qemu_io(path, "write -P 2 0 3M")
    small = blkhash.checksum(b"\x01" * (1 << 20)).hex()
    assert blksum.hex("--snapshot", "small", "disk.qcow2") == small
    assert blksum.hex("disk.qcow2") == blkhash.checksum(b"\x02" * (3 << 20)).hex()


def test_snapshot_of_a_raw_image_is_an_error(blksum, img):
    result = blksum("--snapshot", "1", "img")
    assert result.returncode in (1, 2) and result.stdout == b""
    assert b"img" in result.stderr and b"raw" in result.stderr


# Parts


@pytest.mark.slow
def test_partitions(blksum, workdir):
    """The checksum of a partition equals the checksum of a file with its bytes, for any format of the image."""
    content = bytearray(os.urandom(24 << 20))
    for label, table in (("gpt", "1MiB,4MiB\n6MiB,9MiB\n"), ("dos", "1MiB,4MiB,83\n6MiB,17MiB,5\n7MiB,9MiB,83\n")):
        path = workdir / label
        path.write_bytes(content)
        subprocess.run(["sfdisk", "-q", str(path)], input=f"label: {label}\n{table}".encode(), check=True)
        content = bytearray(path.read_bytes())
        images.convert(path, workdir / f"{label}.qcow2", flags=("-c",))
        last = 2 if label == "gpt" else 5
        start = 6 << 20 if label == "gpt" else 7 << 20
        for number, offset, length in ((1, 1 << 20, 4 << 20), (last, start, 9 << 20)):
            expected = blkhash.checksum(bytes(content[offset : offset + length])).hex()
            for name in (label, f"{label}.qcow2"):
                assert blksum.hex("--partition", str(number), name) == expected
                assert blksum.hex("--offset", str(offset), "--length", str(length), name) == expected
        (workdir / "SUMS").write_bytes(blksum("--partition", "1", "--tag", label, f"{label}.qcow2").stdout)
        assert blksum("-c", "--partition", "1", "SUMS").returncode == 0
        assert blksum("-c", "SUMS").returncode == 0
        there_are = "it has 1, 2" if label == "gpt" else "it has 1, 5"
        expect(blksum("--partition", "9", label), 1, b"", label, f"no partition 9: {there_are}")
    # A plain tag is the checksum of the whole file, which a part must not pass for.
    sums = subprocess.run(["sha256sum", "--tag", "gpt"], capture_output=True, check=True).stdout
    (workdir / "SUMS").write_bytes(sums)
    assert blksum("-c", "--partition", "1", "SUMS").returncode == 1
    assert blksum("-c", "SUMS").returncode == 0


def test_ranges(blksum, workdir):
    content = os.urandom(300_001)
    (workdir / "disk").write_bytes(content)
    for options, part in (
        (("--offset", "4097"), content[4097:]),
        (("--length", "70000"), content[:70_000]),
        (("--offset", "1K", "--length", "0"), b""),
        (("--offset", "300001"), b""),
    ):
        assert blksum.hex(*options, "disk") == blkhash.checksum(part).hex(), options
    shown = json.loads(blksum("--json", "--offset", "4097", "disk").stdout)
    assert shown["virtual_size"] == 300_001 - 4097
    for options in (("--offset", "300002"), ("--offset", "5", "--length", "299997"), ("--length", "1T")):
        expect(blksum(*options, "disk"), 1, b"", "disk", "reaches past the end of the image at 300001")
    expect(blksum("--partition", "1", "disk"), 1, b"", "disk", "it has no partition table")


def test_parts_that_are_not_there(blksum, workdir):
    """A truncated partition has no checksum, and a stream has no parts."""
    path = workdir / "disk"
    with open(path, "wb") as file:
        file.truncate(24 << 20)
    subprocess.run(["sfdisk", "-q", str(path)], input=b"label: gpt\n1MiB,4MiB\n6MiB,9MiB\n", check=True)
    os.truncate(path, 8 << 20)
    assert blksum("--partition", "1", "disk").returncode == 0
    expect(blksum("--partition", "2", "disk"), 1, b"", "disk", "partition 2 at 6291456 reaches past the end")
    expect(blksum("--partition", "1", input=b"x" * 5000), 1, b"", "-", "has no partitions")
    expect(blksum("--offset", "1", input=b"x" * 5000), 1, b"", "-", "has no offsets")
    assert blksum("--partition", "1", "--offset", "1", "disk").returncode == 2


# Ends


def endless(blksum, workdir, *args, **kwargs):
    """Starts a run that would take hours, reading a hole of 8 TiB, and waits until it reads."""
    with open("endless", "wb") as file:
        file.truncate(8 << 40)
    process = blksum.start(*args, "--holes=verify", "endless", **kwargs)
    wait_until_it_reads(process)
    return process


def wait_until_it_reads(process):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        with open(f"/proc/{process.pid}/io") as io:
            if int(io.readline().split()[1]) > 16 << 20:
                return
        time.sleep(0.01)
    process.kill()
    raise AssertionError("it does not read")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_at_once(blksum, workdir, number):
    temporary = workdir / "temporary"
    temporary.mkdir()
    environment = os.environ | {"TMPDIR": str(temporary)}
    process = endless(blksum, workdir, env=environment, start_new_session=True)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=10)
    assert (process.returncode, stdout) == (-number, b"")
    assert b"panic" not in stderr
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in workdir.iterdir()) == ["endless", "temporary"]
    # No process of its session is left.
    assert session_members(process.pid) == []


def session_members(session):
    members = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    if int(file.read().rsplit(")", 1)[1].split()[3]) == session:
                        members.append(entry)
            except OSError:
                continue
    return members


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_wait_for_a_pipe(blksum, workdir, number):
    process = blksum.start(stdin=subprocess.PIPE)
    process.stdin.write(b"x" * 100_000)
    process.stdin.flush()
    time.sleep(0.3)
    process.send_signal(number)
    process.wait(timeout=10)
    stdout, _ = process.communicate()
    assert (process.returncode, stdout) == (-number, b"")


def test_closed_standard_output_ends_it_quietly(blksum, img):
    blksum_lines = blksum("img").stdout
    (img / "SUMS").write_bytes(blksum_lines * 2000)
    for args in (["img"] * 2000, ["--json", "img"], ["-c", "SUMS"], ["-l"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        process = blksum.start(*args, stdout=writer)
        os.close(writer)
        _, stderr = process.communicate(timeout=60)
        assert stderr == b""
        # A crash has another status, and unchecked lines must not count as good.
        quiet = {1, -signal.SIGPIPE} | ({0} if args[0] in ("-l", "--help") else set())
        assert process.returncode in quiet, args


@pytest.mark.slow
def test_progress_on_a_terminal(blksum, img):
    imagespec.write("16g:-", "disk")
    value = blkhash.checksum([16 << 30]).hex()
    for option, is_shown in (("--progress", True), ("-p", True), ("--progress=never", False)):
        status, stdout, shown = terminal.run(blksum, option, "--holes=ignore", "disk")
        assert (status, stdout.decode()) == (0, f"{value}  disk\n")
        assert (b"%" in shown) == is_shown, option


@pytest.mark.slow
def test_progress_appears_by_itself_when_the_work_is_long(blksum, workdir):
    imagespec.write("64g:-", "disk")
    value = blkhash.checksum([64 << 30]).hex()
    status, stdout, shown = terminal.run(blksum, "--threads", "1", "--holes=ignore", "disk")
    assert (status, stdout.decode()) == (0, f"{value}  disk\n")
    assert b"%" in shown or b"iB" in shown


def test_help_and_version(blksum, workdir):
    result = blksum("--help")
    assert (result.returncode, result.stderr) == (0, b"")
    text = result.stdout.decode()
    for option in (
        *("--digest", "--construction", "--block-size", "--format", "--snapshot"),
        *("--list-digests", "--threads", "--cache", "--holes", "--queue-depth", "--read-size"),
        *("--follow", "--untrusted", "--force-share", "--backing-format", "--tag", "--zero"),
        *("--json", "--progress", "--binary", "--text", "--check", "--ignore-missing", "--quiet"),
        *("--status", "--strict", "--warn", "--allow-uri", "--recursive"),
    ):
        assert re.search(rf"{option}\b", text), option
    result = blksum("--version")
    assert result.returncode == 0 and re.match(rb"blksum \d+\.\d+\.\d+", result.stdout)


def page(words, columns=80):
    """The lines of a page of help."""
    program = blksum_path().with_name(words[0])
    environment = os.environ | {"COLUMNS": str(columns)}
    run = subprocess.run([program, *words[1:]], capture_output=True, text=True, env=environment, timeout=HANG)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.splitlines()


def options(lines):
    """The long options that lines of help describe."""
    return {name for line in lines for name in re.findall(r"^ {2,6}(?:-\w, )?(--[\w-]+)", line)}


def test_short_help_has_the_common_options():
    lines = page(["blksum", "-h"])
    assert 24 <= len(lines) <= 40 and max(map(len, lines)) <= 80, lines
    assert lines[-1] == MORE
    common = "digest tag check recursive bytes format progress quiet json map snapshot partition untrusted threads"
    assert {f"--{name}" for name in f"{common} verbose help version".split()} <= options(lines)
    assert len(options(lines)) < 20 and options(lines) < options(page(["blksum", "--help"]))


PAGES = ["blksum", *sorted(path.stem for path in (ROOT / "man").glob("blkhash*.1"))]


@pytest.mark.parametrize("name", PAGES)
def test_long_help_has_the_options_of_the_manual_page(name):
    text = (ROOT / "man" / f"{name}.1").read_text().replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
    documented = set(re.findall(r"^\.TP\n(?:-\w, )?(--[a-z0-9-]+).*\n\w", text, re.MULTILINE))
    words = [word.replace("_", "-") for word in name.replace("obscure-", "obscure_").split("-")]
    lines = page([*words, "--help"], 100)
    assert documented and documented == options(lines)
    assert MORE not in lines
    short = page([*words, "-h"], 100)
    # Commands with few options have one page.
    assert short == lines or (options(short) < options(lines) and short[-1] == MORE)
    if words[0] == "blkhash":
        assert page(["blkhash", "help", *words[1:]], 100) == lines


# The last line of a short page.
MORE = "--help lists all options."
