"""Messages that say what to do: rejected values, names and lists that were meant otherwise."""

import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import foreign_images
import images
import imagespec
import servers
from commands import HANG, blksum_path


@pytest.fixture
def files(workdir):
    (workdir / "file").write_bytes(b"content of the file")
    imagespec.write("64k:A 64k:- 64k:B", "disk.img")
    images.qemu_img("convert", "-O", "qcow2", "disk.img", "disk.qcow2")
    return workdir


REJECTED = [
    (["-d", "sha265"], "invalid value 'sha265' for --digest: did you mean sha256?"),
    (["-d", "SHA_265"], "did you mean sha256?"),
    (["-d", "foo"], "unknown digest 'foo': use null, crc32, crc32c,"),
    (["-d", "sha256:fla"], "use streams, streams:N (N from 1 to 128), flat, concat, linear, fs-verity or dm-verity"),
    (["--construction", "liner"], "invalid value 'liner' for --construction: unknown construction"),
    (["-f", "qcow3"], "invalid value 'qcow3' for --format: did you mean qcow2?"),
    (["-f", "tape"], "use raw, qcow2, qcow, vmdk, vdi, vhdx, vpc, qed, parallels, luks, bochs,"),
    (["--cache=maybe"], "invalid value 'maybe' for --cache: unknown name: use auto, yes or no"),
    (["--holes", "some"], "for --holes: unknown name: use trust, verify or ignore"),
    (["--follow", "all"], "for --follow: unknown name: use beneath, any or none"),
    (["--threads", "0"], "invalid value '0' for --threads: use a number from 1 to 1024"),
    (["--threads", "many"], "use a number from 1 to 1024"),
    (["--queue-depth", "65536"], "use a number from 1 to 65535"),
    (["--partition", "0"], "use a number from 1 to 4294967295"),
    (["--tagg"], "unrecognized option '--tagg': did you mean --tag?"),
    (["--block-size", "4k", "--construction", "linear"], "--block-size option is meaningless"),
    (["--block-size", "4k", "-d", "md5:linear"], "--block-size option is meaningless"),
    (["--block-size", "4k", "--bytes"], "cannot be used with"),
    (["-B", "-f", "qcow2"], "--bytes cannot be used with --format qcow2: --bytes is the same as --format raw"),
    (["-B", "--construction", "flat"], "--bytes cannot be used with --construction flat: --bytes is the same"),
    (["-B", "--snapshot", "x"], "cannot be used with"),
    (["-B", "--partition", "1"], "cannot be used with"),
    (["-B", "--offset", "1"], "cannot be used with"),
    (["-B", "--length", "1"], "cannot be used with"),
    (["-c", "--files0-from", os.devnull], "--files0-from: names no list of checksums to check"),
    (["-B", "-d", "sha256:flat"], "mutually exclusive"),
    (["--tls-certificates", "."], "--tls-certificates option is meaningful only for nbds:// URIs"),
    (["--tls-certificates", ".", "-c"], "meaningful only with --allow-uri"),
    (["--include", "*"], "--include option is meaningful only with --recursive"),
    (["--exclude", "*"], "--exclude option is meaningful only with --recursive"),
    (["-r", "--include", "["], "--include"),
]


@pytest.mark.parametrize("args, words", REJECTED, ids=[" ".join(args) for args, _ in REJECTED])
def test_rejected_options_say_what_is_valid(blksum, files, args, words):
    result = blksum(*args, *(["disk.img"] if "--files0-from" not in args else []))
    assert (result.returncode, result.stdout) == (2, b"")
    assert words in result.stderr.decode(), result.stderr
    assert b"..=" not in result.stderr and b"tip:" not in result.stderr


def test_patterns_that_are_too_large_together(blksum, files):
    result = blksum("-r", *["--exclude", "?" * 100_000] * 8, ".")
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"blksum: --exclude: the patterns are too large together\n" in result.stderr


def test_wild_suggestions_are_left_out(blksum, files):
    result = blksum("--output", "disk.img")
    assert result.stderr.startswith(b"blksum: unrecognized option '--output'\n")
    assert b"untrusted" not in result.stderr


def test_options_that_go_together_are_taken(blksum, files):
    for args in (
        ["--block-size", "4k", "-d", "md5:linear", "-d", "sha1"],
        ["-B", "-d", "md5", "-d", "sha1"],
        ["-B", "-f", "raw", "--construction", "linear"],
    ):
        assert blksum(*args, "disk.img").returncode == 0, args


NAMES = [
    (".", "Is a directory: use -r to hash the files in it"),
    ("ftp://host/x", "only URIs of NBD, HTTP and S3 servers can be read"),
    ("nbd:host:10809", "as a URI it is nbd://host:10809"),
    ("nbd:unix:/p/n.sock:exportname=vm1", "as a URI it is 'nbd+unix:///vm1?socket=/p/n.sock'"),
    ("nbd:unix:/a b.sock", "as a URI it is 'nbd+unix:///?socket=/a%20b.sock'"),
    ("nbd:host:10809:exportname=a b", "as a URI it is nbd://host:10809/a%20b"),
    ("nbd:\x1b[2J", "as a URI it is nbd://"),
]


@pytest.mark.parametrize("name, words", NAMES, ids=["folder", "ftp", "nbd", "unix", "blank", "export", "control"])
def test_names_that_were_meant_otherwise(blksum, files, name, words):
    result = blksum(name)
    assert (result.returncode, result.stdout) == (1, b"")
    assert words in result.stderr.decode() and b"\x1b" not in result.stderr


def test_a_value_without_its_equals_sign(blksum, files):
    for args, words in [
        (["--cache", "yes"], "yes: No such file or directory: to give --cache this value, use --cache=yes"),
        (["-p", "always"], "always: No such file or directory: to give --progress this value, use --progress="),
        (["-c", "--cache", "no"], "no: No such file or directory: to give --cache this value, use --cache=no"),
    ]:
        result = blksum(*args)
        assert (result.returncode, result.stdout) == (1, b"")
        assert words in result.stderr.decode(), result.stderr
    assert b"--cache" not in blksum("yes").stderr


def test_an_unused_secret_is_said(blksum, files):
    (files / "key").write_bytes(b"x")
    result = blksum("--secret-file", "key", "disk.qcow2")
    assert result.returncode == 0
    assert b"disk.qcow2: warning: is not encrypted" in result.stderr


@pytest.mark.slow
def test_encrypted_qcow2_says_what_reads_it(blksum, files):
    (files / "key").write_bytes(b"password")
    options = "encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10"
    secret = ["--object", "secret,id=s,file=key"]
    images.qemu_img("create", "-q", *secret, "-f", "qcow2", "-o", options, "luks.qcow2", "1M")
    result = blksum("luks.qcow2")
    assert result.returncode == 1 and b"have qemu-nbd decrypt it" in result.stderr


def as_nobody(blksum, *args, **kwargs):
    """Where the tests run as root, as a user without its privileges."""
    if os.geteuid() == 0:
        kwargs.update(user=65534, group=65534, extra_groups=[])
    return blksum(*args, **kwargs)


def test_a_program_that_the_sandbox_stops_is_said(blksum, files, tmp_path_factory):
    folder = files / "programs"
    folder.mkdir()
    shutil.copy(shutil.which("qemu-nbd"), folder / "qemu-nbd")
    (files / "disk.bochs").write_bytes(foreign_images.bochs(bytes(1 << 20)))
    path = f"{folder}:{os.environ['PATH']}"
    result = blksum("disk.bochs", env={**os.environ, "PATH": path})
    assert result.returncode == 1
    assert b"qemu-nbd: Permission denied: if it is executable, the sandbox may prevent it: name" in (
        result.stderr
    )
    assert blksum("--nbd-server", f"{folder}/qemu-nbd", "disk.bochs").returncode == 0


@pytest.mark.parametrize("tool, name", [("sha256sum", "sha256"), ("md5sum", "md5"), ("b2sum", "blake2b512")])
def test_lists_of_other_programs(blksum, files, tool, name):
    """A list without tags passes. Taken as the options say it fails, the summary says what to type, and that passes."""
    lines = subprocess.run([tool, "file", "disk.qcow2"], check=True, capture_output=True).stdout
    (files / "SUMS").write_bytes(lines)
    assert blksum("-c", "SUMS").stdout == b"file: OK\ndisk.qcow2: OK\n"
    result = blksum("-d", name, "--strict-construction", "-c", "SUMS")
    assert (result.returncode, result.stdout) == (1, b"file: FAILED\ndisk.qcow2: FAILED\n")
    hint = [line for line in result.stderr.decode().splitlines() if "without a tag" in line]
    assert len(hint) == 1 and " -B for lines of " in hint[0], result.stderr
    result = blksum("-d", name, "-B", "-c", "SUMS")
    assert (result.returncode, result.stdout, result.stderr) == (
        *(0, b"file: OK\ndisk.qcow2: OK\n", b""),
    )
    # It prints what it checks, and without the option the guest's content is meant.
    assert blksum("-d", name, "--bytes", "file", "disk.qcow2").stdout == lines
    assert blksum("-d", name, "disk.qcow2").stdout not in lines


def test_bytes_beside_tags(blksum, files):
    """Tags say themselves what they are of."""
    (files / "SUMS").write_bytes(
        blksum("-B", "disk.qcow2").stdout
        + blksum("-B", "--tag", "disk.qcow2").stdout
        + blksum("--tag", "disk.qcow2", "disk.img").stdout
    )
    content = (files / "SUMS").read_text()
    assert "SHA256 (disk.qcow2) = " + hashlib.sha256((files / "disk.qcow2").read_bytes()).hexdigest() in content
    result = blksum("-B", "-c", "SUMS")
    assert (result.returncode, result.stdout) == (0, b"disk.qcow2: OK\n" * 3 + b"disk.img: OK\n")
    with open("disk.qcow2", "r+b") as file:
        # The version of a header that is not compared: other bytes, the same content.
        file.seek(0, os.SEEK_END)
        file.write(b"\0" * 65536)
    result = blksum("-B", "-c", "SUMS")
    lines = [b"disk.qcow2: FAILED", b"disk.qcow2: FAILED", b"disk.qcow2: OK", b"disk.img: OK"]
    assert (result.returncode, result.stdout.splitlines()) == (1, lines)


def test_the_likeliest_digest_is_named(blksum, files):
    strict = ["--strict-construction", "-c", "-"]
    written = blksum("-d", "blake3", "file").stdout
    result = blksum(*strict, input=written)
    assert result.returncode == 1 and b"-d blake3, blake2b256," in result.stderr
    written = blksum("-d", "sha512", "file").stdout
    result = blksum(*strict, input=written)
    assert result.returncode == 1
    assert b"have 128 digits, and sha256 has 64: try -d sha512, blake2b512 or sha3-512" in result.stderr
    assert b"--cache" not in result.stderr
    # Next to good lines they are said as well.
    result = blksum(*strict, input=blksum("file").stdout + written)
    assert result.stdout == b"file: OK\n" and b"try -d sha512" in result.stderr


def test_no_hint_where_some_untagged_line_matches(blksum, files):
    good = blksum("file").stdout
    bad = b"0" * 64 + b"  disk.img\n"
    result = blksum("-c", "-", input=good + bad)
    assert result.returncode == 1 and b"without a tag" not in result.stderr
    result = blksum("-B", "-c", "-", input=bad)
    assert result.returncode == 1 and b"without a tag" not in result.stderr


def test_odd_sizes_are_noted_once_and_can_be_silenced(blksum, files):
    for name in ("odd1", "odd2"):
        (files / name).write_bytes(b"x" * 700)
    note = b"note: size is not a multiple of 512 bytes"
    assert blksum("odd1", "odd2").stderr.count(note) == 1
    for args in (["-q"], ["--quiet"], ["-B"], ["-f", "raw"]):
        assert blksum(*args, "odd1", "odd2").stderr == b"", args
    tagged = blksum("--tag", "odd1", "odd2").stdout
    assert blksum("-c", "-", input=tagged).stderr == b""
    wrong = b"".join(line[:-2] + (b"1\n" if line[-2:-1] == b"0" else b"0\n") for line in tagged.splitlines(True))
    result = blksum("-c", "-", input=wrong)
    assert result.returncode == 1 and result.stderr.count(note) == 1


@pytest.mark.parametrize("name", ["a.qcow2", "a.VMDK", "a-flat.vmdk.vhd", "a-1.vmdk", "a.vhdx", "a.dmg"])
def test_raw_with_the_name_of_another_format_is_refused(blksum, files, name):
    """A fixed vhd without its footer, or a cut off dmg, is only known by its name."""
    (files / name).write_bytes(b"x" * 512)
    result = blksum(name)
    reason = f"has the name of a {name.split('.')[-1].lower()} image, and nothing in it says that it is one"
    hint = "-f raw reads the bytes of the file itself"
    assert (result.returncode, result.stderr) == (1, f"blksum: {name}: {reason}: {hint}\n".encode())
    for args in (["-B"], ["-f", "raw"]):
        assert (blksum(*args, name).returncode, blksum(*args, name).stderr) == (0, b""), args


@pytest.mark.parametrize("name", ["a-flat.vmdk", "a-f001.vmdk", "a.img", "qcow2"])
def test_raw_with_its_own_name_is_not_noted(blksum, files, name):
    (files / name).write_bytes(b"x" * 512)
    assert blksum(name).stderr == b""


@pytest.mark.parametrize("part", [["--partition", "9"], ["--offset", "1"], ["--length", "0"], ["--snapshot", "x"]])
def test_a_part_of_a_whole_file_is_an_error(blksum, files, part):
    """A plain tag is of the bytes of the whole file, so a part must not be ignored."""
    tagged = blksum("-B", "--tag", "disk.img").stdout
    result = blksum("-c", *part, "-", input=tagged)
    assert (result.returncode, result.stdout) == (1, b"disk.img: FAILED open or read\n")
    assert b"bytes of the whole file: leave out --partition" in result.stderr


def test_a_part_has_no_plain_tag(blksum, files):
    args = ("-f", "raw", "--construction", "linear", "--tag", "disk.img")
    assert blksum(*args).stdout.startswith(b"SHA256 (")
    assert blksum("--length", "512", *args).stdout.startswith(b"BLKSUM-SHA256-LINEAR/FORMAT=raw/LENGTH=512 (")


def test_no_hint_names_the_digest_that_is_in_use(blksum, files):
    """Lines that end with NUL are malformed for another reason."""
    result = blksum("-c", "-", input=blksum("-z", "file", "disk.img").stdout)
    assert result.returncode == 1 and b"try -d" not in result.stderr
    result = blksum("-c", "-", input=b"7 file\n")
    assert result.returncode == 1 and b"digits" not in result.stderr


@pytest.mark.parametrize(
    "command, missing",
    [
        ("info", "IMAGE..."),
        ("map verify", "MAP and IMAGE"),
        ("verity format disk.img", "HASH"),
        ("map export disk.blkmap", "--to FORMAT"),
    ],
)
def test_missing_operands_are_named_in_one_line(workdir, command, missing):
    program = str(blksum_path().with_name("blkhash"))
    result = images.attempt(program, *command.split(), timeout=HANG)
    assert result.returncode == 2
    [line, advice] = result.stderr.decode().splitlines()
    assert line == f"blkhash: missing {missing}" and advice.startswith("Try ")


HEX = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

LISTS = [
    (b"", "it has no lines"),
    (HEX.encode(), "line 1 has a checksum and no name: a line is CHECKSUM  IMAGE"),
    (b"# " + HEX.encode() + b"\n" + HEX.encode() + b"\r\n", "line 2 has a checksum and no name"),
    (f"sha512:{HEX}  disk.img\n".encode(), "line 1 begins with the name of a digest: write CHECKSUM  IMAGE, and -d sha"),
    (b"garbage\n", "a line is CHECKSUM  IMAGE, or TAG (IMAGE) = CHECKSUM"),
]


@pytest.mark.parametrize("content, words", LISTS, ids=["empty", "bare", "second", "prefix", "garbage"])
def test_a_list_without_lines_says_what_a_line_needs(blksum, files, content, words):
    (files / "SUMS").write_bytes(content)
    result = blksum("-c", "SUMS")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"SUMS: no properly formatted checksum lines found\n" in result.stderr
    assert words in result.stderr.decode()
    # The hint for users of the C program is for files that may be images.
    assert b"--cache" not in result.stderr
    beside = blksum("-c", "-", input=blksum("file").stdout + content)
    assert beside.stdout == b"file: OK\n"
    if b"name" in words.encode() and HEX.encode() in content:
        assert words.split(" ", 2)[2] in beside.stderr.decode()


def test_the_sha256_of_the_content_is_offered(blksum, files):
    content = hashlib.sha256((files / "disk.img").read_bytes()).hexdigest()
    assert blksum("-c", "-", input=f"{content}  disk.qcow2\n".encode()).stdout == b"disk.qcow2: OK\n"
    result = blksum("--strict-construction", "-c", "-", input=f"{content}  disk.qcow2\n".encode())
    assert result.returncode == 1
    hint = result.stderr.decode()
    assert "--construction linear for lines of sha256sum of the content as raw" in hint and "-B for lines" in hint
    args = ("--construction", "linear", "-c", "-")
    assert blksum(*args, input=f"{content}  disk.qcow2\n".encode()).stdout == b"disk.qcow2: OK\n"
    assert b"linear for" not in blksum(*args, input=f"{'0' * 64}  disk.qcow2\n".encode()).stderr


@pytest.mark.parametrize("tool", ["gzip", "xz", "zstd", "bzip2", "lz4"])
def test_a_compressed_file_of_another_name_is_refused(blksum, files, tool):
    heads = {"gzip": "1f8b0800", "xz": "fd377a585a00", "zstd": "28b52ffd", "bzip2": "425a6839314159265359"}
    content = bytes.fromhex(heads.get(tool, "04224d18")).ljust(1024, b"x")
    (files / "disk.raw.packed").write_bytes(content)
    reason = f"is compressed by {tool}: -f {tool} reads its content; -f raw reads the bytes of the file itself".encode()
    for result in (blksum("disk.raw.packed"), blksum(input=content)):
        assert (result.returncode, result.stdout) == (1, b"") and reason in result.stderr, result
    for args in (["-B"], ["-f", "raw"]):
        assert (blksum(*args, "disk.raw.packed").returncode, blksum(*args, "disk.raw.packed").stderr) == (0, b""), args
    tagged = blksum("-f", "raw", "--tag", "disk.raw.packed").stdout
    assert blksum("-c", "-", input=tagged).stderr == b""


def test_a_line_that_loses_its_part_is_noted(blksum, files):
    note = b"blksum: note: the lines do not say that they are of 512 bytes at 0: --tag records it\n"
    for args, expected in [([], note), (["-q"], b""), (["--tag"], b""), (["--json"], b"")]:
        with open("SUMS", "wb") as kept:
            command = [blksum.path, *args, "--length", "512", "disk.img"]
            result = subprocess.run(command, stdout=kept, stderr=subprocess.PIPE, check=True)
        assert result.stderr == expected, args
    assert blksum("--length", "512", "disk.img").stderr == b""


OTHER_COMMANDS = [
    (["map", "verify", "m", "a", "b"], "unexpected argument 'b': usage: blkhash map verify [OPTION]... MAP IMAGE"),
    (["map", "diff", "a", "b", "c"], "unexpected argument 'c': usage: blkhash map diff "),
    (["bench", "sha256"], "unrecognized command 'sha256': use blkhash bench --filter sha256"),
    (["diff", "a", "b"], "unrecognized command 'diff': use blkhash map diff"),
    (["compare", "a", "b"], "unrecognized command 'compare': use blkhash map diff"),
    (["verify"], "use blkhash btrfs verify, blkhash map verify or blkhash verity verify"),
]


@pytest.mark.parametrize("args, words", OTHER_COMMANDS, ids=[" ".join(args) for args, _ in OTHER_COMMANDS])
def test_commands_that_were_meant_otherwise(blksum, files, args, words):
    program = blksum_path().with_name("blkhash")
    result = subprocess.run([program, *args], capture_output=True)
    assert (result.returncode, result.stdout) == (2, b"")
    assert words in result.stderr.decode(), result.stderr
    # The command that is named can be typed.
    for command in re.findall(r"blkhash [a-z][a-z0-9 -]*?(?=,| or |: |$)", words):
        if "usage" not in words:
            page = subprocess.run([program, *command.split()[1:], "--help"], capture_output=True)
            assert (page.returncode, page.stderr) == (0, b""), command


def test_the_size_of_a_larger_target_is_said(blksum, files):
    """A checksum does not tell the length of its content."""
    tagged = blksum("--tag", "disk.img").stdout
    (files / "volume").write_bytes((files / "disk.img").read_bytes() + bytes(65536))
    with contextlib.closing(servers.Servers()) as started:
        uri = started.nbdkit("file", "volume").uri()
        lines = tagged.replace(b"disk.img", uri.encode())
        result = blksum("-c", "--allow-uri", "-", input=lines)
        assert result.returncode == 1
        assert b"note: 262144 bytes were read: if the image that was copied here is smaller, --length" in result.stderr
        for quiet in ("--quiet", "--status"):
            assert b"note:" not in blksum("-c", quiet, "--allow-uri", "-", input=lines).stderr
        result = blksum("-c", "--allow-uri", "--length", "196608", "-", input=lines)
        assert (result.returncode, result.stderr) == (0, b"")
        # A line with its length needs no option.
        lines = blksum("--tag", "--length", "196608", "disk.img").stdout.replace(b"disk.img", uri.encode())
        assert blksum("-c", "--allow-uri", "-", input=lines).returncode == 0
    result = blksum("-c", "-", input=tagged.replace(b"disk.img", b"file"))
    assert result.returncode == 1 and b"were read" not in result.stderr


def test_a_raw_image_in_place_of_a_list(blksum, workdir):
    """-c was --cache in the released blksum."""
    pathlib.Path("disk.img").write_bytes(b"A" * 65536 + bytes(65536))
    result = blksum("-c", "disk.img")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"it is no text" in result.stderr and b"--cache" in result.stderr, result
