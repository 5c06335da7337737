"""Check files, compared with sha256sum and cksum, and plain output, compared with other tools.

With `-f raw --construction linear`, blksum computes the same values as these tools, so both read the same
check file in the same folder. Standard output and exit status must be equal. Each line of the tool's
standard error must be present, with the program's name changed. blksum may add lines with its assumptions
and with advice.
"""

import base64
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import zlib

import blake3
import pytest

import images
import imagespec

LINEAR = ["-f", "raw", "--construction", "linear"]

FILES = {
    "a": b"",
    "b": b"abc",
    "c.img": b"x" * 65536,
    "d.img": bytes(range(256)) * 999,
    "with space": b"space",
    " leading": b"leading blank",
    "*star": b"star",
    "(paren) = x": b"looks like a tag",
    "new\nline": b"newline",
    "back\\slash": b"backslash",
    "car\rreturn": b"carriage return",
    "-dash": b"dash",
    "latin-\udce9": b"not UTF-8",
    "é": b"UTF-8",
    "sub/file": b"in a folder",
}


@pytest.fixture
def files(workdir):
    os.mkdir("sub")
    os.mkdir("folder")
    os.symlink("nowhere", "dangling")
    os.symlink("circle", "circle")
    for name, data in FILES.items():
        with open(name, "wb") as file:
            file.write(data)
    return workdir


def sha256(name):
    return hashlib.sha256(FILES[name]).hexdigest()


def escape(name):
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return ("\\" if escaped != name else "", escaped)


def gnu(name, mode=" ", digest=None):
    mark, escaped = escape(name)
    return f"{mark}{digest or sha256(name)} {mode}{escaped}\n"


def bsd(name, tag="SHA256", digest=None):
    mark, escaped = escape(name)
    return f"{mark}{tag} ({escaped}) = {digest or sha256(name)}\n"


WRONG = "0" * 64
GOOD = "".join(gnu(name) for name in FILES)

CHECK_FILES = {
    "good": GOOD,
    "binary": "".join(gnu(name, "*") for name in FILES),
    "bsd": "".join(bsd(name) for name in FILES),
    "no-last-newline": gnu("b") + gnu("c.img").rstrip("\n"),
    "upper-case": gnu("b", digest=sha256("b").upper()) + bsd("b", digest=sha256("b").upper()),
    "crlf": (gnu("b") + gnu("c.img")).replace("\n", "\r\n"),
    "crlf-bsd": (bsd("b") + bsd("c.img")).replace("\n", "\r\n"),
    "comments": "# a comment\n" + gnu("b") + "#" + gnu("c.img") + "# " + WRONG + "  b\n",
    "only-comments": "# nothing\n# else\n",
    "blank-lines": "\n" + gnu("b") + "\n\n" + gnu("c.img") + "   \n\t\n",
    "leading-blanks": "  " + gnu("b") + "\t" + gnu("c.img") + " " + bsd("b"),
    "garbage": "garbage\n" + gnu("b") + "more garbage here\n" + WRONG + "\n",
    "only-garbage": "garbage\nfoo bar\n",
    "one-garbage": "garbage\n",
    "binary-garbage": "\x01\x02\udcff\udcfe\n" + gnu("b"),
    "wrong": gnu("b", digest=WRONG) + gnu("c.img"),
    "all-wrong": gnu("b", digest=WRONG) + gnu("c.img", digest=WRONG),
    "wrong-bsd": bsd("b", digest=WRONG) + bsd("c.img"),
    "missing": gnu("b") + f"{WRONG}  missing\n" + gnu("c.img"),
    "only-missing": f"{WRONG}  missing\n{WRONG}  missing2\n",
    "missing-in-folder": f"{WRONG}  sub/missing\n{WRONG}  nofolder/x\n{WRONG}  b/c\n" + gnu("b"),
    "missing-escaped": f"\\{WRONG}  miss\\ning\n\\{WRONG}  mis\\\\sing\n" + gnu("b"),
    "missing-and-wrong": f"{WRONG}  missing\n" + gnu("b", digest=WRONG) + gnu("c.img"),
    "folder": f"{WRONG}  folder\n" + gnu("b"),
    "only-folder": f"{WRONG}  folder\n",
    "dangling": f"{WRONG}  dangling\n{WRONG}  circle\n" + gnu("b"),
    "everything": "garbage\n"
    + gnu("b", digest=WRONG)
    + f"{WRONG}  missing\n{WRONG}  folder\n# comment\n"
    + gnu("new\nline", digest=WRONG)
    + gnu("c.img"),
    "too-short": sha256("b")[:62] + "  b\n" + gnu("b"),
    "too-long": sha256("b") + "00  b\n" + gnu("b"),
    "odd-length": sha256("b")[:63] + "  b\n" + gnu("b"),
    "not-hex": "g" * 64 + "  b\n" + gnu("b"),
    "one-blank": sha256("b") + " b\n" + sha256("c.img") + " c.img\n",
    "no-blank": sha256("b") + "b\n" + gnu("b"),
    "tab": sha256("b") + "\tb\n" + sha256("b") + " \tb\n" + gnu("b"),
    "no-name": sha256("b") + "  \n" + sha256("b") + " \n" + gnu("b"),
    "trailing-blank": sha256("b") + "  b \n" + gnu("c.img"),
    "three-blanks": sha256("b") + "   leading\n" + sha256(" leading") + "   leading\n",
    "bad-escape": f"\\{sha256('b')}  b\\x\n\\{sha256('b')}  b\\\n" + gnu("b"),
    "needless-escape": "\\" + gnu("b") + gnu("c.img"),
    "unescaped-backslash": sha256("back\\slash") + "  back\\slash\n",
    "bsd-openssl": f"SHA256(b)= {sha256('b')}\n",
    "bsd-blanks": f"SHA256 (b)={sha256('b')}\n"
    + f"SHA256 (b)  =  {sha256('b')}\nSHA256 (b) = {sha256('b')} \n",
    "bsd-broken": f"SHA256 b = {sha256('b')}\nSHA256 (b = {sha256('b')}\nSHA256 (b) {sha256('b')}\n"
    + f"SHA256 () = {WRONG}\nSHA256 (b) =\nSHA256 (b) = {sha256('b')[:-1]}\n"
    + f"SHA256 (b) = {sha256('b')}00\n"
    + gnu("b"),
    "bsd-paren-name": bsd("(paren) = x"),
    "empty": "",
    "newline-only": "\n",
    "twice": gnu("b") + gnu("b") + gnu("b", digest=WRONG),
    "dot-slash": f"{sha256('b')}  ./b\n{sha256('sub/file')}  sub/../sub/file\n",
    "pgp": "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n"
    + gnu("b")
    + gnu("c.img")
    + "-----BEGIN PGP SIGNATURE-----\n\niQEzBAEBCAAdFiEE\n=abcd\n-----END PGP SIGNATURE-----\n",
}

OPTIONS = [
    [],
    ["--ignore-missing"],
    ["--quiet"],
    ["--status"],
    ["--strict"],
    ["-w"],
    ["--ignore-missing", "--quiet", "--strict", "-w"],
    ["--ignore-missing", "--status"],
    ["--status", "-w", "--strict"],
    ["--quiet", "-w"],
]


def run(*args, **kwargs):
    kwargs = {"stdin": subprocess.DEVNULL, "timeout": 60} | kwargs
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


def complaints(stderr, program):
    """Returns the lines of standard error without the names of program and algorithm."""
    lines = []
    for line in stderr.decode("utf-8", "surrogateescape").splitlines():
        line = line.removeprefix(f"{program}: ")
        lines.append(re.sub(r"\b(SHA256|SHA512|MD5|BLAKE2b) (?=checksum)", "", line))
    return lines


def assert_same(theirs, ours, program="sha256sum"):
    assert ours.stdout == theirs.stdout
    # Except for usage errors, which are 2.
    assert ours.returncode == theirs.returncode, ours.stderr
    wanted = complaints(theirs.stderr, program)
    said = iter(complaints(ours.stderr, "blksum"))
    for line in wanted:
        # Ours may continue with what to do.
        assert any(it.startswith(line) for it in said), (line, theirs.stderr, ours.stderr)
    if not wanted:
        assert ours.stderr == b""


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "".join(options) or "plain")
@pytest.mark.parametrize("name", CHECK_FILES)
def test_same_as_sha256sum(blksum, files, name, options):
    with open("SUMS", "wb") as file:
        file.write(CHECK_FILES[name].encode("utf-8", "surrogateescape"))
    theirs = run("sha256sum", *options, "-c", "SUMS")
    assert_same(theirs, blksum(*LINEAR, *options, "-c", "SUMS"))


@pytest.mark.parametrize("args", [["-c", "-"], ["-c"], ["--check"]], ids=" ".join)
def test_check_file_on_standard_input(blksum, files, args):
    data = CHECK_FILES["everything"].encode()
    theirs = run("sha256sum", *args, input=data, stdin=None)
    assert_same(theirs, blksum(*LINEAR, *args, input=data))


def test_several_check_files(blksum, files):
    for name in ("good", "wrong", "empty", "missing"):
        with open(f"SUMS.{name}", "wb") as file:
            file.write(CHECK_FILES[name].encode("utf-8", "surrogateescape"))
    args = ["-c", "SUMS.wrong", "SUMS.nowhere", "SUMS.good", "folder", "SUMS.empty", "SUMS.missing"]
    assert_same(run("sha256sum", *args), blksum(*LINEAR, *args))


def test_standard_input_named_in_a_check_file(blksum, files):
    with open("SUMS", "w") as file:
        file.write(f"{sha256('b')}  -\n")
    theirs = run("sha256sum", "-c", "SUMS", stdin=None, input=b"abc")
    assert theirs.stdout == b"-: OK\n"
    assert_same(theirs, blksum(*LINEAR, "-c", "SUMS", input=b"abc"))


def test_unreadable_file(blksum, files):
    """Runs as the user nobody if the tests run as root, because root can read everything."""
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    os.chmod("c.img", 0)
    os.chmod(".", 0o755)
    with open("SUMS", "w") as file:
        file.write(gnu("b") + gnu("c.img"))
    for options in OPTIONS:
        theirs = run("sha256sum", *options, "-c", "SUMS", **other)
        assert theirs.returncode == 1
        assert_same(theirs, blksum(*LINEAR, *options, "-c", "SUMS", **other))
    os.chmod("SUMS", 0)
    theirs = run("sha256sum", "-c", "SUMS", **other)
    assert b"Permission denied" in theirs.stderr
    assert_same(theirs, blksum(*LINEAR, "-c", "SUMS", **other))


@pytest.mark.parametrize(
    "args",
    [
        *(["--status", "b"], ["--ignore-missing", "b"], ["--strict", "b"]),
        *(["-w", "b"], ["-c", "--tag", "b"], ["-c", "-b", "b"], ["-c", "-z", "b"]),
        *(["--no-such-option"], ["--tag", "-t", "b"]),
    ],
    ids=" ".join,
)
def test_usage_errors_are_usage_errors(blksum, files, args):
    theirs = run("sha256sum", *args)
    assert theirs.returncode == 1 and theirs.stdout == b""
    ours = blksum(*args)
    assert ours.returncode == 2 and ours.stdout == b"" and ours.stderr != b""


CKSUM_TAGS = {
    "MD5": "md5",
    "SHA1": "sha1",
    "SHA224": "sha224",
    "SHA256": "sha256",
    "SHA384": "sha384",
    "SHA512": "sha512",
    "BLAKE2b": "blake2b",
}


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "".join(options) or "plain")
def test_mixed_tags_same_as_cksum(blksum, files, options):
    """cksum takes the algorithm from the tag, and so does blksum, without other options."""
    lines = ""
    for tag, name in CKSUM_TAGS.items():
        for file_name, data in FILES.items():
            lines += bsd(file_name, tag, hashlib.new(name, data).hexdigest())
        lines += bsd("b", tag, hashlib.new(name, b"wrong").hexdigest())
    lines += bsd("b", "BLAKE2b-256", hashlib.blake2b(b"abc", digest_size=32).hexdigest())
    lines += bsd("b", "SHA999", WRONG) + "garbage\n"
    with open("SUMS", "wb") as file:
        file.write(lines.encode("utf-8", "surrogateescape"))
    theirs = run("cksum", *options, "-c", "SUMS")
    assert theirs.stdout.count(b": OK\n") in (0, len(FILES) * len(CKSUM_TAGS) + 1)
    assert_same(theirs, blksum(*options, "-c", "SUMS"), "cksum")


# Tools whose output is compared, and the digest of blksum.
TOOLS = {
    "md5sum": "md5",
    "sha1sum": "sha1",
    "sha224sum": "sha224",
    "sha256sum": "sha256",
    "sha384sum": "sha384",
    "sha512sum": "sha512",
    "b2sum": "blake2b512",
}


@pytest.mark.parametrize("options", [[], ["-b"], ["-t"], ["--tag"], ["-z"], ["--tag", "-z"]])
@pytest.mark.parametrize("tool", TOOLS)
def test_output_same_as_coreutils(blksum, files, tool, options):
    args = [*options, "--", *FILES]
    theirs = run(tool, *args)
    assert theirs.returncode == 0
    ours = blksum("-d", TOOLS[tool], *LINEAR, *args)
    assert (ours.returncode, ours.stdout) == (0, theirs.stdout)


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_check_our_output(blksum, files, tool):
    for options in ([], ["-b"], ["--tag"]):
        ours = blksum("-d", TOOLS[tool], *LINEAR, *options, "--", *FILES)
        theirs = run(tool, "-c", "-", stdin=None, input=ours.stdout)
        assert (theirs.returncode, theirs.stdout.count(b": OK\n")) == (0, len(FILES))


def test_output_with_a_missing_file_and_a_folder(blksum, files):
    args = ["b", "missing", "folder", "dangling", "c.img"]
    assert_same(run("sha256sum", *args), blksum(*LINEAR, *args))


def test_output_of_standard_input(blksum, files):
    for args in ([], ["-"], ["b", "-"], ["--tag"], ["-b", "-"]):
        theirs = run("sha256sum", *args, stdin=None, input=b"pipe")
        ours = blksum(*LINEAR, *args, input=b"pipe")
        assert (ours.returncode, ours.stdout) == (0, theirs.stdout), args


@pytest.mark.parametrize(
    "digest, option", [("xxh64", "-H1"), ("xxh128", "-H2"), ("xxh3", "-H3")]
)
def test_value_same_as_xxhsum(blksum, files, digest, option):
    for name in ("a", "b", "c.img", "d.img"):
        theirs = run("xxhsum", option, name)
        assert theirs.returncode == 0
        value = re.search(r"\b[0-9a-f]{16,32}\b", theirs.stdout.decode())[0]
        assert blksum.hex("-d", digest, *LINEAR, name) == value


def test_value_same_as_blake3(blksum, files):
    for name in ("a", "b", "c.img", "d.img"):
        assert blksum.hex("-d", "blake3", *LINEAR, name) == blake3.blake3(FILES[name]).hexdigest()


def test_value_same_as_crc32(blksum, files):
    for name in ("a", "b", "c.img", "d.img"):
        assert blksum.hex("-d", "crc32", *LINEAR, name) == f"{zlib.crc32(FILES[name]):08x}"


@pytest.mark.parametrize(
    "digest, name",
    [
        *(("sha512-224", "sha512-224"), ("sha512-256", "sha512-256"), ("sha3-224", "sha3-224")),
        *(("sha3-256", "sha3-256"), ("sha3-384", "sha3-384"), ("sha3-512", "sha3-512")),
        ("blake2s256", "blake2s256"),
    ],
)
def test_value_same_as_openssl(blksum, files, digest, name):
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    for file in ("a", "b", "c.img", "d.img"):
        theirs = run("openssl", "dgst", f"-{name}", "-r", file)
        assert theirs.returncode == 0
        assert blksum.hex("-d", digest, *LINEAR, file) == theirs.stdout.decode().split()[0]


def test_value_same_as_b2sum_of_256_bits(blksum, files):
    theirs = run("b2sum", "-l", "256", "d.img")
    ours = blksum("-d", "blake2b256", *LINEAR, "d.img")
    assert ours.stdout == theirs.stdout


# Tags of blksum that no other tool supports.

TAGS = [
    ("BLKSUM-SHA256-STREAMS4-64K", []),
    ("BLKSUM-SHA256-FLAT-64K", ["--construction", "flat"]),
    ("BLKSUM-SHA256-CONCAT-4M", ["--construction", "concat", "--block-size", "4M"]),
    ("BLKSUM-SHA256-STREAMS32-512", ["--construction", "streams:32", "--block-size", "512"]),
    ("BLKSUM-SHA256-STREAMS4-1K", ["--construction", "streams", "--block-size", "1k"]),
    ("BLKSUM-SHA256-LINEAR", ["--construction", "linear"]),
    ("BLKSUM-BLAKE2B512-STREAMS64-64K", ["-d", "blake2b512", "--construction", "streams:64"]),
    ("BLKSUM-BLAKE2B256-CONCAT-4M", "-d blake2b256 --construction concat --block-size 4M".split()),
    ("BLKSUM-SHA512-224-FLAT-4K", "-d sha512-224 --construction flat --block-size 4k".split()),
    ("BLKSUM-SHA3-256-LINEAR", ["-d", "sha3-256", "--construction", "linear"]),
    ("BLKSUM-XXH3-STREAMS4-64M", ["-d", "xxh3", "--block-size", "64M"]),
    ("SHA256", ["-f", "raw", "--construction", "linear"]),
]


@pytest.mark.parametrize("tag, options", TAGS, ids=[tag for tag, _ in TAGS])
def test_own_tags_round_trip(blksum, files, tag, options):
    names = ["c.img", "new\nline", "back\\slash", "(paren) = x", "sub/file"]
    written = blksum(*options, "--tag", "--", *names)
    assert written.returncode == 0
    lines = written.stdout.decode().splitlines()
    assert len(lines) == len(names)
    for line, name in zip(lines, names):
        mark, escaped = escape(name)
        value = blksum.hex(*options, "--", name)
        assert line == f"{mark}{tag} ({escaped}) = {value}"
    # Only the tag determines the checksum. Options must not change it.
    for other in ([], ["-d", "md5", "--construction", "flat", "--block-size", "4k"]):
        checked = blksum(*other, "-c", "-", input=written.stdout)
        assert (checked.returncode, checked.stdout.count(b": OK\n")) == (0, len(names))
    broken = written.stdout.replace(lines[0][-8:].encode(), b"00000000")
    checked = blksum("-c", "-", input=broken)
    assert checked.returncode == 1
    assert checked.stdout.startswith(b"c.img: FAILED\n")


@pytest.mark.parametrize(
    "tag",
    [
        *("BLKSUM-SHA256-STREAMS0-64K", "BLKSUM-SHA256-STREAMS129-64K", "BLKSUM-SHA256-STREAMS4"),
        *("BLKSUM-SHA256-FLAT-100", "BLKSUM-SHA256-FLAT-128M", "BLKSUM-SHA256-FLAT-256"),
        *("BLKSUM-SHA256-LINEAR-64K", "BLKSUM-SHA256-TREE-64K", "BLKSUM-SHA255-FLAT-64K"),
        *("BLKSUM-NULL-FLAT-64K", "BLKSUM-SIPHASH-FLAT-64K", "BLKSUM-SHA256-FLAT-99999999999999G"),
    ],
)
def test_impossible_tags_are_improper_lines(blksum, files, tag):
    result = blksum("--strict", "-c", "-", input=f"{tag} (b) = {sha256('b')}\n{bsd('b')}".encode())
    assert (result.returncode, result.stdout) == (1, b"b: OK\n")
    assert b"improperly formatted" in result.stderr


def test_nul_in_a_name_is_an_improper_line(blksum, files):
    """sha256sum ends the name at the NUL."""
    lines = b"#" * 511 + f"\n{sha256('b')}  b\0c\n{gnu('c.img')}".encode()
    result = blksum(*LINEAR, "--strict", "-c", "-", input=lines)
    assert (result.returncode, result.stdout) == (1, b"c.img: OK\n")
    assert b"improperly formatted" in result.stderr
    # In the first block, it is no text.
    result = blksum(*LINEAR, "-c", "-", input=lines[512:])
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"'standard input': is not a check file: it has NUL bytes" in result.stderr


@pytest.mark.parametrize("options", [[], ["--construction", "flat"], ["-d", "blake2b512"]])
def test_untagged_lines_use_options_or_defaults(blksum, files, options):
    written = blksum(*options, "c.img", "d.img").stdout
    checked = blksum(*options, "-c", "-", input=written)
    assert (checked.returncode, checked.stdout) == (0, b"c.img: OK\nd.img: OK\n")
    checked = blksum("--construction", "streams:32", *options[2:], "-c", "-", input=written)
    assert checked.returncode == 1 and b"OK" not in checked.stdout


def test_summary_names_what_it_assumed_where_every_line_fails(blksum, files):
    written = blksum("--construction", "flat", "c.img", "d.img").stdout
    checked = blksum("--strict-construction", "-c", "-", input=written)
    assert checked.returncode == 1
    assert checked.stdout == b"c.img: FAILED\nd.img: FAILED\n"
    words = checked.stderr.decode().lower()
    assert "sha256" in words and "streams:4" in words and "--construction flat" in words


def test_plain_tag_means_the_bytes_of_the_file(blksum, files):
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "disk.qcow2", "1M"], check=True)
    tagged = run("sha256sum", "--tag", "disk.qcow2").stdout
    for options in ([], ["--construction", "flat"], ["-f", "qcow2"]):
        checked = blksum(*options, "-c", "-", input=tagged)
        assert (checked.returncode, checked.stdout) == (0, b"disk.qcow2: OK\n"), options
    # The checksum of the guest's content has another tag.
    assert blksum("--construction", "linear", "--tag", "disk.qcow2").stdout.startswith(
        b"BLKSUM-SHA256-LINEAR (disk.qcow2) = "
    )
    assert blksum(*LINEAR, "--tag", "disk.qcow2").stdout == tagged


@pytest.mark.parametrize("digest", ["null", "siphash"])
def test_digests_that_prove_nothing_are_refused_in_check_mode(blksum, files, digest):
    result = blksum("-d", digest, "-c", "-", input=b"  b\n")
    assert result.returncode in (1, 2) and result.stdout == b""
    assert digest.encode() in result.stderr


def test_base64_has_all_of_its_padding(blksum, files):
    value = base64.b64encode(hashlib.sha256(b"abc").digest()).decode()
    for text in [value.rstrip("="), value.replace("=", "==")]:
        result = blksum(*LINEAR, "-c", "-", input=f"{text}  b\n".encode())
        assert (result.returncode, result.stdout) == (1, b""), text


@pytest.mark.parametrize("uri", ["nbd://localhost/x", "nbd+unix:///x?socket=/nowhere"])
def test_uri_in_a_check_file_needs_allow_uri(blksum, files, uri):
    result = blksum("-c", "-", input=f"{WRONG}  {uri}\n".encode())
    assert result.returncode == 1
    assert result.stdout == f"{uri}: FAILED open or read\n".encode()
    assert b"--allow-uri" in result.stderr


def test_check_never_says_ok_for_an_image_in_doubt(blksum, files):
    """A check file names an image whose backing file may not be followed."""
    subprocess.run(["qemu-img", "create", "-q", "-f", "raw", "base", "1M"], check=True)
    os.mkdir("inner")
    create = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", "../base"]
    subprocess.run([*create, "inner/top"], check=True)
    line = blksum("--follow=any", "inner/top").stdout
    assert blksum("--follow=any", "-c", "-", input=line).stdout == b"inner/top: OK\n"
    result = blksum("-c", "-", input=line)
    assert (result.returncode, result.stdout) == (1, b"inner/top: FAILED open or read\n")


def test_status_and_json(blksum, files):
    lines = (gnu("b") + gnu("c.img", digest=WRONG) + f"{WRONG}  missing\n").encode()
    result = blksum(*LINEAR, "--json", "-c", "-", input=lines)
    assert result.returncode == 1
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert [o["name"] for o in objects] == ["b", "c.img", "missing"]
    assert [o["status"] for o in objects] == ["ok", "failed", "error"]
    assert [("error" in o) for o in objects] == [False, False, True]


def test_every_option_pair_is_accepted(blksum, files):
    """No two check options exclude each other, as with sha256sum."""
    flags = ["--ignore-missing", "--quiet", "--status", "--strict", "-w"]
    with open("SUMS", "w") as file:
        file.write(CHECK_FILES["everything"])
    for pair in itertools.permutations(flags, 2):
        assert_same(run("sha256sum", *pair, "-c", "SUMS"), blksum(*LINEAR, *pair, "-c", "SUMS"))


# Standard descriptors that are closed, full or open in the wrong direction

LINES = {
    "hash": ["a"],
    "standard input": [],
    "standard input by name": ["a", "-", "b"],
    "missing": ["a", "gone"],
    "check": ["-c", "SUMS"],
    "check quietly": ["-c", "--quiet", "SUMS"],
    "check silently": ["-c", "--status", "SUMS"],
    "check standard input": ["-c"],
    "listed standard input": ["-c", "INPUT"],
    "listed and a malformed line": ["-c", "WARN"],
    "nothing but failures": ["-c", "--quiet", "FAILED"],
    "version": ["--version"],
}

DESCRIPTORS = [
    *("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-", ">&- 2>&-", "</dev/null >&-"),
    *("<>/dev/null", "<>/dev/null >&0", ">/dev/full", "2>/dev/full", "1</dev/null", "0>/dev/null"),
]


@pytest.mark.parametrize("descriptors", DESCRIPTORS)
@pytest.mark.parametrize("what", LINES)
def test_descriptors_beside_sha256sum(blksum, files, what, descriptors):
    """A closed input is not an empty one, and a failed write is an error."""
    contents = {
        "SUMS": gnu("a") + gnu("b"),
        "INPUT": gnu("a") + f"{sha256('a')}  -\n",
        "WARN": gnu("a") + "nonsense\n",
        "FAILED": gnu("a", digest=WRONG),
    }
    for name, content in contents.items():
        (files / name).write_text(content)

    def run(command):
        line = f'exec "$@" {descriptors}'
        process = subprocess.run(
            ["bash", "-c", line, "bash", *command],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        # sha256sum closes standard input at its end, and then reports the error again.
        again = b"standard input: Bad file descriptor"
        stderr = [text for text in process.stderr.splitlines() if again not in text]
        return process.returncode, process.stdout, stderr

    status, stdout, stderr = run(["sha256sum", *LINES[what]])
    ours = run([blksum.path, *LINEAR, *LINES[what]])
    assert ours[0] == status, ours
    if what != "version":
        assert ours[1] == stdout
    if any(b"write error" in text for text in stderr):
        # sha256sum reports this only at its end, and not always with the reason.
        if "2>&-" not in descriptors:
            assert b"blksum: write error: " in ours[2][-1], ours
        return
    for text in stderr:
        assert text.replace(b"sha256sum", b"blksum") in ours[2], (text, ours)


@pytest.mark.parametrize("options", [["--json"], ["--tag"], ["-z"], ["-r"], ["-l"], ["--help"]])
@pytest.mark.parametrize("output", [">&-", ">/dev/full", "1</dev/null"])
def test_every_output_fails_if_it_is_lost(blksum, files, options, output):
    line = f'exec "$@" {output}'
    run = ["bash", "-c", line, "bash", blksum.path, *options, "c.img"]
    result = subprocess.run(run, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    reason = "No space left on device" if "full" in output else "Bad file descriptor"
    assert result.returncode == 1
    assert result.stderr.decode() == f"blksum: write error: {reason}\n"


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_closed_input_by_name(blksum, name):
    """The name must not lead to the /dev/null that the runtime opens in its place."""
    result = subprocess.run(["sh", "-c", '"$0" "$1" <&-', blksum.path, name], capture_output=True)
    assert (result.returncode, result.stdout) == (1, b"") and result.stderr, result


def test_json_of_a_closed_input(blksum, files):
    for options, status in (([], None), (["-c"], "error")):
        (files / "INPUT").write_text(f"{sha256('a')}  -\n")
        names = ["INPUT"] if options else ["-"]
        run = ["bash", "-c", 'exec "$@" <&-', "bash", blksum.path, "--json", *options, *names]
        result = subprocess.run(run, capture_output=True, timeout=60)
        assert result.returncode == 1
        found = json.loads(result.stdout)
        assert found["error"] == "Bad file descriptor" and found.get("status") == status
        assert "checksum" not in found


@pytest.mark.parametrize("output", [">&-", ">/dev/full", "1</dev/null"])
@pytest.mark.parametrize(
    "command",
    [
        ["--version"],
        ["--help"],
        ["algorithms"],
        ["algorithms", "--json"],
        ["bench", "--filter", "null", "--time", "0.01"],
        ["bench", "image", "--help"],
        ["btrfs", "algorithms"],
        ["btrfs", "obscure-name", "file name"],
    ],
    ids=" ".join,
)
def test_lost_output_of_blkhash(blksum, workdir, command, output):
    binary = os.path.join(os.path.dirname(blksum.path), "blkhash")
    line = f'exec "$@" {output}'
    run = ["bash", "-c", line, "bash", binary, *command]
    result = subprocess.run(run, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    reason = "No space left on device" if "full" in output else "Bad file descriptor"
    assert result.returncode in (1, 2)
    assert f"blkhash: write error: {reason}\n" in result.stderr.decode()


SNAPSHOTS = ["before", "be fore (x) = /?%\\n", "größe"]


@pytest.fixture
def disk(workdir):
    """A qcow2 with two partitions and snapshots, all of which have other content."""
    imagespec.write("8192k:-", "disk.img")
    subprocess.run(["sfdisk", "-q", "disk.img"], input=b"label: gpt\n,2M\n,1M\n", check=True)
    images.qemu_img("convert", "-O", "qcow2", "disk.img", "disk.qcow2")
    for number, name in enumerate(SNAPSHOTS):
        images.qemu_img("snapshot", "-c", name, "disk.qcow2")
        for offset in (1, 3):
            write = f"write -P {number + offset} {offset}M 1M"
            subprocess.run(["qemu-io", "-f", "qcow2", "-c", write, "disk.qcow2"], check=True, capture_output=True)
    return workdir


PARTS = [
    *([["--snapshot", name] for name in [*SNAPSHOTS, "1"]]),
    *([["--partition", number] for number in "12"]),
    ["--snapshot", "before", "--partition", "2"],
    ["--offset", "1M", "--length", "64K"],
    ["--snapshot", "2", "--offset", "2M"],
    ["--length", "1M"],
    ["-f", "raw"],
    ["-f", "raw", "--offset", "512"],
    ["-f", "raw", "--construction", "linear", "--length", "512"],
    ["--construction", "linear", "--partition", "1"],
    ["-d", "md5", "-d", "sha1", "--partition", "1"],
]


def test_every_line_with_a_tag_is_checked(blksum, disk):
    """A disk, its partitions, its snapshots and the bytes of its file are in one list, and differ."""
    written = [blksum("--tag", *args, "disk.qcow2") for args in [[], ["-B"], *PARTS]]
    assert all(result.returncode == 0 and result.stderr == b"" for result in written)
    lines = b"".join(result.stdout for result in written)
    assert len({line.rsplit(b"= ")[-1] for line in lines.splitlines()}) > 12
    result = blksum("-c", "--strict", "-", input=lines)
    assert (result.returncode, result.stderr) == (0, b"")
    assert all(line.startswith(b"disk.qcow2: OK") for line in result.stdout.splitlines())
    assert len(result.stdout.splitlines()) == len(lines.splitlines())
    assert b"disk.qcow2: OK (snapshot 'be fore (x) = /?%\\n')\n" in result.stdout
    assert b"disk.qcow2: OK (snapshot before, partition 2)\n" in result.stdout
    # Another content does not match.
    change = ["qemu-io", "-f", "qcow2", "-c", "write -P 9 1M 1M", "disk.qcow2"]
    subprocess.run(change, check=True, capture_output=True)
    result = blksum("-c", "-", input=lines)
    assert result.returncode == 1 and b"disk.qcow2: FAILED (partition 1)\n" in result.stdout
    assert b"disk.qcow2: OK (snapshot before)\n" in result.stdout


def test_lines_of_whole_images_are_as_before(blksum, disk):
    for args in ([], ["-f", "qcow2"], ["--offset", "0"], ["--vpc-size", "current"], ["--holes=ignore"]):
        line = blksum("--tag", *args, "disk.qcow2").stdout
        assert line.startswith(b"BLKSUM-SHA256-STREAMS4-64K (disk.qcow2) = "), args
    assert blksum("--tag", "disk.img").stdout.startswith(b"BLKSUM-SHA256-STREAMS4-64K (disk.img) = ")
    with open("disk.qcow2", "rb") as file:
        line = blksum("--tag", "-f", "qcow2", stdin=file).stdout
    assert line.startswith(b"BLKSUM-SHA256-STREAMS4-64K (-) = ")


def test_a_name_that_looks_like_a_part(blksum, disk):
    os.symlink("disk.img", "disk.qcow2?snapshot=before")
    line = blksum("--tag", "--length", "512", "disk.qcow2?snapshot=before").stdout
    result = blksum("-c", "-", input=line)
    assert result.stdout == b"disk.qcow2?snapshot=before: OK (512 bytes at 0)\n"


def test_options_that_ask_for_another_part_than_the_line(blksum, disk):
    partition = blksum("--tag", "--partition", "2", "disk.qcow2").stdout
    for args, option in [
        (["--partition", "1"], "--partition"),
        (["--snapshot", "before"], "--snapshot"),
        (["--length", "512"], "--offset and --length"),
    ]:
        result = blksum("-c", *args, "-", input=partition)
        assert (result.returncode, result.stdout) == (1, b"disk.qcow2: FAILED open or read (partition 2)\n")
        assert f"its checksum is of partition 2: leave out {option}\n".encode() in result.stderr
    assert blksum("-c", "--partition", "2", "-", input=partition).returncode == 0
    raw = blksum("--tag", "-f", "raw", "disk.qcow2").stdout
    assert b"leave out --format" in blksum("-c", "-f", "qcow2", "-", input=raw).stderr
    # The options are for lines that do not say it.
    for args in (["--partition", "2"], ["--snapshot", "before"]):
        for lines in (blksum(*args, "disk.qcow2").stdout, blksum("--tag", "disk.qcow2").stdout):
            result = blksum("-c", *args, "-", input=lines)
            assert result.returncode == (0 if b"BLKSUM" not in lines else 1)


def test_the_size_of_a_vpc_image_is_in_its_tag(blksum, workdir):
    images.qemu_img("create", "-q", "-f", "vpc", "disk.vhd", "10000000")
    for size in ("geometry", "current"):
        line = blksum("--tag", "--vpc-size", size, "disk.vhd").stdout
        assert line.startswith(f"BLKSUM-SHA256-STREAMS4-64K/VPCSIZE={size} (disk.vhd)".encode())
        assert blksum("-c", "-", input=line).returncode == 0
    assert b"leave out --vpc-size" in blksum("-c", "--vpc-size", "geometry", "-", input=line).stderr
    assert blksum("--tag", "disk.vhd").stdout.startswith(b"BLKSUM-SHA256-STREAMS4-64K (disk.vhd)")


def test_the_part_is_in_json(blksum, disk):
    args = ("--snapshot", "before", "--offset", "512", "--length", "1024")
    whole = json.loads(blksum("--json", "disk.qcow2").stdout)
    assert not {"snapshot", "partition", "offset", "length"} & whole.keys()
    found = json.loads(blksum("--json", *args, "disk.qcow2").stdout)
    checked = json.loads(blksum("-c", "--json", "-", input=blksum("--tag", *args, "disk.qcow2").stdout).stdout)
    for entry in (found, checked):
        assert (entry["snapshot"], entry["offset"], entry["length"]) == ("before", 512, 1024)
    missing = json.loads(blksum("--json", "--partition", "9", "disk.qcow2").stdout)
    assert missing["partition"] == 9 and "error" in missing


@pytest.mark.parametrize(
    "args", [["--offset", "1"], ["--length", "1000"], ["--length", "0"], ["--snapshot", "x" * 1025]]
)
def test_a_part_that_no_line_records_has_no_tag(blksum, disk, args):
    result = blksum("--tag", *args, "disk.qcow2")
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"a tag holds " in result.stderr and b"use --json" in result.stderr


def test_parts_are_read_once_for_all_of_their_lines(blksum, disk):
    lines = blksum("-d", "md5", "-d", "sha1", "--partition", "1", "disk.qcow2").stdout
    once = json.loads(blksum("--json", "--partition", "1", "disk.qcow2").stdout)["bytes_read"]
    for line in blksum("-c", "--json", "-", input=lines).stdout.splitlines():
        assert json.loads(line)["bytes_read"] == once


@pytest.mark.parametrize(
    "line",
    [
        "BLKSUM-SHA256-STREAMS4-64K/LATER=1 (disk.qcow2) = {}",
        "BLKSUM-SHA256-STREAMS4-64K/PARTITION=1/LATER=1 (disk.qcow2) = {}",
        "BLKSUM-SHA256-LATER-64K (disk.qcow2) = {}",
        "\\BLKSUM-SHA256-STREAMS4-64K/LATER=1 (disk.qcow2\\n) = {}",
        " BLKSUM-SHA256-STREAMS4-64K (disk.qcow2) = abcd",
        "BLKSUM-SHA256-STREAMS4-64K (disk.qcow2",
    ],
)
def test_a_tag_that_is_not_known_fails_the_check(blksum, disk, line):
    """It may be of a later version. Its checksum was not checked, also without --strict."""
    known = blksum("--tag", "disk.qcow2").stdout
    unknown = line.format("0" * 64).encode() + b"\n"
    warning = b"1 line with a tag of blksum was not checked: it may be damaged or of a later version\n"
    for lines in (known + unknown, b"garbage\n" + unknown + known):
        result = blksum("-c", "-", input=lines)
        assert (result.returncode, result.stdout) == (1, b"disk.qcow2: OK\n")
        assert warning in result.stderr
        for option, output in (("--ignore-missing", b"disk.qcow2: OK\n"), ("--quiet", b""), ("--status", b"")):
            result = blksum("-c", option, "-", input=lines)
            assert (result.returncode, result.stdout) == (1, output)
            assert (warning in result.stderr) == (option != "--status")
        [found] = blksum("-c", "--json", "-", input=lines).stdout.splitlines()
        assert json.loads(found)["status"] == "ok"
    result = blksum("-c", "-", input=unknown)
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"line 1 has a tag of blksum, and may be damaged or of a later version\n" in result.stderr
    # Other malformed lines fail only with --strict, as in sha256sum.
    assert blksum("-c", "-", input=known + b"SHA256/LATER=1 (disk.qcow2) = 00\n").returncode == 0
    assert blksum("-c", "-", input=known + b"# " + unknown).returncode == 0
