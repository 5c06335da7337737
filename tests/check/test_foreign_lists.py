"""Check files that other programs and other systems wrote: they are read, or the message says which command takes them."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import zlib

import pytest

import imagespec

CONTENT = {"disk.img": b"content of a disk" * 4096, "a b.img": b"content of a name with a blank\n" * 50}

HEX = {name: hashlib.sha256(data).hexdigest() for name, data in CONTENT.items()}

LINE = f"{HEX['disk.img']}  disk.img"


@pytest.fixture
def files(workdir):
    for name, data in CONTENT.items():
        (workdir / name).write_bytes(data)
    return workdir


def output(*command):
    return subprocess.run(command, check=True, capture_output=True).stdout


def passes(blksum, content, *names, options=()):
    """Whether all names are OK, names of damaged images are FAILED, and no line is lost."""
    with open("SUMS", "wb") as file:
        file.write(content)
    result = blksum("-c", "--strict", *options, "SUMS")
    wanted = "".join(f"{name}: OK\n" for name in names)
    assert (result.returncode, result.stdout.decode()) == (0, wanted), result.stderr
    assert b"improperly" not in result.stderr
    for name in set(names):
        data = bytearray(CONTENT[os.path.basename(name)])
        data[-1] ^= 1
        with open(name, "wb") as file:
            file.write(data)
        result = blksum("-c", *options, "SUMS")
        assert result.returncode == 1 and f"{name}: FAILED\n" in result.stdout.decode(), result.stderr
        with open(name, "wb") as file:
            file.write(CONTENT[os.path.basename(name)])


def both(form):
    return "".join(form(name) for name in CONTENT)


ENCODINGS = {
    "UTF-8 with a mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16LE": lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
    "UTF-16BE": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
}


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_of_windows(blksum, files, encoding, end):
    """No line is lost, on whatever way the list is read, and the first one is like the others."""
    encode = ENCODINGS[encoding]
    text = both(lambda name: f"{HEX[name]} *{name}{end}")
    passes(blksum, encode(text), *CONTENT)
    passes(blksum, encode("# comment" + end + end + text + text), *CONTENT, *CONTENT)
    tagged = both(lambda name: f"SHA256 ({name}) = {HEX[name]}{end}")
    passes(blksum, encode(tagged), *CONTENT)
    # From a pipe, and several of them, which are not read ahead.
    assert blksum("-c", "--strict", "-", input=encode(text)).returncode == 0
    (files / "SUMS").write_bytes(encode(text))
    script = '"$0" -c --strict <(cat SUMS) <(cat SUMS) SUMS'
    result = subprocess.run(["bash", "-c", script, blksum.path], capture_output=True)
    assert (result.returncode, result.stdout.count(b": OK\n")) == (0, 6), result.stderr
    # Names are made of the characters.
    (files / "größe 😀").write_bytes(CONTENT["disk.img"])
    result = blksum("-c", "--strict", "-", input=encode(f"{HEX['disk.img']}  größe 😀{end}"))
    assert (result.returncode, result.stdout.decode()) == (0, "größe 😀: OK\n")


def test_a_mark_in_a_list_that_was_put_together(blksum, files):
    passes(blksum, f"\ufeff{LINE}\r\n\ufeff{HEX['a b.img']}  a b.img\r\n".encode(), *CONTENT)


def test_a_long_list_in_utf_16(blksum, files):
    """More than is decoded at a time, and more than is held."""
    text = f"{LINE}\r\n" * 1000
    encoded = ENCODINGS["UTF-16LE"]("#" * 40000 + "\r\n" + text)
    result = blksum("-c", "--strict", "--quiet", "-", input=encoded)
    assert (result.returncode, result.stderr) == (0, b"")
    encoded = ENCODINGS["UTF-16LE"](f"{LINE}\r\n" + ("#" * 16000 + "\r\n") * 600 + f"{'0' * 64}  a b.img\r\n")
    assert len(encoded) > 17 << 20
    result = blksum("-c", "-", input=encoded)
    assert (result.returncode, result.stdout) == (1, b"disk.img: OK\na b.img: FAILED\n")


def test_utf_16_without_a_mark_is_named(blksum, files):
    for encoding in ("UTF-16LE", "UTF-16BE"):
        (files / "SUMS").write_bytes((LINE + "\r\n").encode(encoding))
        result = blksum("-c", "SUMS")
        assert result.returncode == 1
        [command] = re.findall(r"iconv -f UTF-16[LB]E -t UTF-8", result.stderr.decode())
        text = output(*command.split(), "SUMS")
        assert blksum("-c", "-", input=text).stdout == b"disk.img: OK\n"
    # Half of a pair of surrogates, and half of a character.
    for tail in (b"\x00\xd8", b"\x00\xd8a\x00", b"a", b"\x00\xdc"):
        result = blksum("-c", "-", input=ENCODINGS["UTF-16LE"](LINE + "\n") + tail)
        assert (result.returncode, result.stdout) == (0, b"disk.img: OK\n")
        assert b"1 line is improperly formatted" in result.stderr


def test_a_log_in_utf_16(blksum, files):
    log = f"nbdkit: done\r\n{HEX['disk.img']}\r\n"
    (files / "log").write_bytes(ENCODINGS["UTF-16LE"](log))
    result = blksum("--expect-log", "log", "disk.img")
    assert (result.returncode, result.stdout) == (0, b"disk.img: OK (linear, line 2)\n"), result.stderr


@pytest.mark.parametrize("encoding", [*ENCODINGS, None])
def test_backslashes_of_windows(blksum, files, encoding):
    encode = ENCODINGS.get(encoding, str.encode)
    (files / "sub").mkdir()
    shutil.copy("disk.img", "sub/disk.img")
    text = f"{HEX['disk.img']} *.\\sub\\disk.img\r\n{HEX['disk.img']} *sub\\disk.img\r\n"
    result = blksum("-c", "--strict", "-", input=encode(text))
    assert (result.returncode, result.stdout) == (0, b"./sub/disk.img: OK\nsub/disk.img: OK\n"), result.stderr
    # A file of that name comes first.
    (files / "sub\\disk.img").write_bytes(b"other")
    result = blksum("-c", "-", input=encode(text))
    assert (result.returncode, result.stdout) == (1, b"./sub/disk.img: OK\nsub\\disk.img: FAILED\n")
    # The name of another machine is none here.
    for name in ("C:\\sub\\disk.img", "\\\\server\\sub\\disk.img"):
        escaped = name.replace("\\", "\\\\")
        result = blksum("-c", "-", input=encode(f"\\{HEX['disk.img']} *{escaped}\r\n"))
        assert result.returncode == 1 and b"FAILED open or read" in result.stdout
        assert b"a name of Windows: blksum --expect VALUE IMAGE" in result.stderr
    result = blksum("-c", "-", input=encode(f"{HEX['disk.img']} *\\etc\\passwd\r\n"))
    assert (result.returncode, result.stdout) == (1, b"\\etc\\passwd: FAILED open or read\n")


def test_backslashes_in_other_lists_are_named(blksum, files):
    (files / "sub").mkdir()
    shutil.copy("disk.img", "sub/disk.img")
    text = f"{HEX['disk.img']}  sub\\disk.img\n".encode()
    result = blksum("-c", "-", input=text)
    assert (result.returncode, result.stdout) == (1, b"sub\\disk.img: FAILED open or read\n")
    assert rb"sub/disk.img is there: tr '\\' / translates the names of a list" in result.stderr
    translated = subprocess.run(["tr", "\\\\", "/"], input=text, capture_output=True, check=True).stdout
    assert blksum("-c", "-", input=translated).returncode == 0


# Lists that the programs themselves write.


@pytest.mark.parametrize(
    "options",
    [
        *("", "--sfv", "--sha256", "--md5", "--sha512 --simple", "--bsd --crc32"),
        "--bsd --md5 --sha1 --sha224 --sha256 --sha384 --sha512",
        "--bsd --sha3-224 --sha3-256 --sha3-384 --sha3-512 --blake2b --blake2s --crc32c",
    ],
)
def test_lists_of_rhash(blksum, files, options):
    options = options.split()
    content = output("rhash", *options, *CONTENT)
    count = sum(re.match(r"--(md5|sha|crc|blake)", option) is not None for option in options) or 1
    passes(blksum, content, *[name for name in CONTENT for _ in range(count)])


def test_lists_of_hashdeep(blksum, files):
    passes(blksum, output("sha256deep", "-j0", "-l", *CONTENT), *CONTENT)
    passes(blksum, output("md5deep", "-j0", "-l", *CONTENT), *CONTENT)
    (files / "SUMS").write_bytes(output("hashdeep", "-l", *CONTENT))
    result = blksum("-c", "SUMS")
    assert (result.returncode, result.stdout) == (1, b"")
    [words] = re.findall(r"line 1 is of hashdeep: (hashdeep -a -k) FILE", result.stderr.decode())
    assert b"Audit passed" in output(*words.split(), "SUMS", "-l", *CONTENT)


OPENSSL = [
    *("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha512-224", "sha512-256"),
    *("sha3-256", "sha3-512", "blake2b512", "blake2s256"),
]


@pytest.mark.parametrize("options", [[], ["-r"]], ids=["tag", "-r"])
def test_lists_of_openssl(blksum, files, options):
    lines = [output("openssl", "dgst", f"-{digest}", *options, "disk.img") for digest in OPENSSL]
    passes(blksum, b"".join(lines), *["disk.img"] * len(lines))


def hexdigest(name, data):
    return hashlib.new(name, data).hexdigest()


# Spellings of tags and lines, of programs that are not installed. OpenSSL 1.1 wrote BLAKE2b512(x)= and SHA256(x)=.
SPELLINGS = [
    *[(f"{tag} ({{}}) = ", "sha256") for tag in ("SHA-256", "sha256", "sha-256", "SHA2-256", "SHA256 ", "SHA256\t")],
    *[(f"{tag}({{}})= ", "sha256") for tag in ("SHA256", "sha256", "SHA-256")],
    *[(f"{tag}({{}})= ", "blake2b") for tag in ("BLAKE2b512", "BLAKE2B-512", "blake2b")],
    ("BLAKE2s256({})= ", "blake2s"),
    *[("SHA-1 ({}) = ", "sha1"), ("SHA-512 ({}) = ", "sha512"), ("SHA-512/256 ({}) = ", "sha512_256")],
    *[("MD5 ({})=", "md5"), ("md5({}) = ", "md5")],
]


@pytest.mark.parametrize("form, digest", SPELLINGS, ids=[form.format("x").strip() for form, _ in SPELLINGS])
def test_spellings_of_tags(blksum, files, form, digest):
    passes(blksum, both(lambda name: form.format(name) + hexdigest(digest, CONTENT[name]) + "\n").encode(), *CONTENT)
    # The digits fit this digest.
    result = blksum("-c", "-", input=(form.format("disk.img") + "00" * 9 + "\n").encode())
    assert (result.returncode, result.stdout) == (1, b"")
    # The value of a command line is the same line.
    value = form.format("x") + hexdigest(digest, CONTENT["disk.img"])
    assert blksum("--expect", value, "disk.img").returncode == 0


@pytest.mark.parametrize("form", ["sha256: {}  {}", "SHA-256: {} {}", "sha256:\t{} *{}", "sha256:  {}  {}"])
def test_digests_in_front_of_values(blksum, files, form):
    passes(blksum, both(lambda name: form.format(HEX[name], name) + "\n").encode(), *CONTENT)
    wrong = form.replace("256", "512", 1).format(HEX["disk.img"], "disk.img")
    assert blksum("-c", "-", input=wrong.encode()).stdout == b""
    assert blksum("--expect", f"sha256: {HEX['disk.img']}", "disk.img").returncode == 0


def test_lists_of_crc32(blksum, files):
    """Only after a comment with a semicolon: a line of text may end with a date."""
    lines = both(lambda name: f"{name}   {zlib.crc32(CONTENT[name]):08X}\r\n")
    passes(blksum, f"; Generated by cfv v3.0\r\n;\r\n{lines}; end\r\n".encode(), *CONTENT)
    (files / "plain").write_text(lines)
    (files / "list").write_text("; x\n" + LINE + "\n" + lines)
    result = blksum("-c", "plain")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"line 1 has its checksum after the name" in result.stderr and b";" in result.stderr
    # One list does not change how another one is read.
    for lists in (["list", "plain"], ["plain", "list"]):
        result = blksum("-c", *lists)
        assert (result.returncode, result.stdout.count(b": OK\n")) == (1, 3), result.stdout
        assert b"2 lines are improperly formatted" in result.stderr or b"no properly" in result.stderr
    dated = f"{LINE}\n; x\nReleased on 20260101\n"
    result = blksum("-c", "-", input=dated.encode())
    assert (result.returncode, result.stdout) == (0, b"disk.img: OK\n")
    assert b"2 lines are improperly formatted" in result.stderr


# What other programs print, as their documentation shows it: Get-FileHash of PowerShell as a table, a list and CSV, and
# certutil of Windows 7 and later.
PATH = "C:\\Users\\me\\disk.img"

PRINTED = {
    "bare": f"{HEX['disk.img']}\n",
    "bare with a digest": f"sha256:{HEX['disk.img']}\n",
    "name first": f"disk.img {HEX['disk.img']}\n",
    "name and colon": f"disk.img: {HEX['disk.img']}\n",
    "table": "\r\nAlgorithm       Hash                Path\r\n---------       ----          ----\r\n"
    f"SHA256          {HEX['disk.img'].upper()}       {PATH}\r\n",
    "list": f"\r\n\r\nAlgorithm : SHA256\r\nHash      : {HEX['disk.img'].upper()}\r\nPath      : {PATH}\r\n\r\n",
    "CSV": '#TYPE Microsoft.PowerShell.Commands.FileHashInfo\r\n"Algorithm","Hash","Path"\r\n'
    f'"SHA256","{HEX["disk.img"].upper()}","{PATH}"\r\n',
    "certutil": f"SHA256 hash of disk.img:\r\n{HEX['disk.img']}\r\n"
    "CertUtil: -hashfile command completed successfully.\r\n",
    "certutil 7": f"SHA256 hash of file disk.img:\r\n{HEX['disk.img']}\r\n",
}

PROGRAMS = {
    **dict.fromkeys(["table", "list", "CSV"], "Get-FileHash"),
    **dict.fromkeys(["certutil", "certutil 7"], "certutil"),
}


@pytest.mark.parametrize("encoding", [*ENCODINGS, None])
@pytest.mark.parametrize("form", PRINTED)
def test_what_is_no_list_names_the_command_that_takes_it(blksum, files, form, encoding):
    encode = ENCODINGS.get(encoding, str.encode)
    (files / "SUMS").write_bytes(encode(PRINTED[form]))
    result = blksum("-c", "SUMS")
    assert (result.returncode, result.stdout) == (1, b"")
    message = result.stderr.decode()
    assert "SUMS: no properly formatted checksum lines found\n" in message
    assert "blksum --expect CHECKSUM IMAGE" in message, message
    assert f"is of {PROGRAMS[form]}," in message if form in PROGRAMS else True, message
    # Next to other lines the command says the same.
    (files / "SUMS").write_bytes(encode(LINE + "\n" + PRINTED[form]))
    result = blksum("-c", "SUMS")
    assert (result.returncode, result.stdout) == (0, b"disk.img: OK\n")
    assert "blksum --expect CHECKSUM IMAGE" in result.stderr.decode()
    assert blksum("-c", "--strict", "SUMS").returncode == 1
    # What the message names takes the value as it is printed.
    [value] = re.findall(r"[0-9A-Fa-f]{64}", PRINTED[form])
    assert blksum("--expect", value, "disk.img").returncode == 0


@pytest.mark.parametrize("line", [LINE.replace("  ", "x  "), f"> {LINE}", f"\u200b{LINE}", f"\u00a0{LINE}", HEX["disk.img"]])
def test_a_checksum_that_was_not_compared_is_named(blksum, files, line):
    text = both(lambda name: f"{HEX[name]}  {name}\n") + line + "\n"
    result = blksum("-c", "-", input=text.encode())
    assert (result.returncode, result.stdout.count(b": OK\n")) == (0, 2)
    assert b"1 line is improperly formatted" in result.stderr and b"line 3 has a checksum" in result.stderr
    assert blksum("-c", "--strict", "-", input=text.encode()).returncode == 1


def test_lists_of_xxhsum(blksum, files):
    """xxh128 is as long as md5, and is not tried because it can be forged."""
    plain = output("xxhsum", "-H2", *CONTENT)
    (files / "SUMS").write_bytes(plain)
    result = blksum("-c", "SUMS")
    assert (result.returncode, result.stdout.count(b": FAILED\n")) == (1, 2)
    [option] = re.findall(r"and not as xxh128, which can be forged: (-d xxh128) does that", result.stderr.decode())
    passes(blksum, plain, *CONTENT, options=option.split())
    passes(blksum, output("xxhsum", "--tag", "-H2", *CONTENT), *CONTENT)
    # Where the digest is said, nothing else is named.
    wrong = f"md5:{'0' * 32}  disk.img\n".encode()
    other = f"{'0' * 64}  disk.img\n".encode()
    for options, lines in ([[], wrong], [["-d", "md5"], wrong[4:]], [[], other]):
        assert b"xxh128" not in blksum(*options, "-c", "-", input=lines).stderr


def test_a_list_in_another_folder(blksum, files):
    """Names are relative to the folder that blksum runs in. The hint can be typed."""
    folder = files / "my backup"
    folder.mkdir()
    for name in CONTENT:
        shutil.move(name, folder)
    (folder / "SUMS").write_text(both(lambda name: f"{HEX[name]}  {name}\n"))
    result = blksum("-c", "my backup/SUMS")
    assert result.returncode == 1 and result.stdout.count(b"FAILED open or read") == 2
    lines = [line for line in result.stderr.decode().splitlines() if "relative to the folder" in line]
    [hint] = lines
    command = hint.split("runs in: ")[1].replace("blksum", blksum.path)
    result = subprocess.run(["bash", "-c", command], capture_output=True)
    assert (result.returncode, result.stdout.count(b": OK\n")) == (0, 2), result.stderr
    result = blksum("-c", "--ignore-missing", "my backup/SUMS")
    assert result.returncode == 1 and hint in result.stderr.decode()
    for args in (["-c", "--status", "my backup/SUMS"], ["-c", "-"]):
        result = blksum(*args, input=(folder / "SUMS").read_bytes())
        assert result.returncode == 1 and b"relative" not in result.stderr
    # Names that are in neither folder are missing.
    (folder / "SUMS").write_text(f"{HEX['disk.img']}  gone\n")
    assert b"relative" not in blksum("-c", "my backup/SUMS").stderr


def test_digests_behind_a_name_may_have_any_base64(blksum, files):
    digest = hashlib.sha256(CONTENT["disk.img"]).digest()
    for text in (base64.b64encode(digest), base64.urlsafe_b64encode(digest).rstrip(b"=")):
        passes(blksum, b"sha256:" + text + b"  disk.img\n", "disk.img")


def test_lines_of_an_image_are_of_its_bytes_or_its_content(blksum, files):
    """A plain tag in any spelling is of the bytes of the file, not of the content."""
    imagespec.write("64k:A 64k:-", "raw.img")
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", "raw.img", "disk.qcow2"], check=True)
    data = (files / "disk.qcow2").read_bytes()
    content = (files / "raw.img").read_bytes()
    for form in ("sha-256 ({}) = ", "SHA256  ({}) = "):
        line = form.format("disk.qcow2")
        assert blksum("-c", "-", input=(line + hexdigest("sha256", data)).encode()).returncode == 0
        assert blksum("-c", "-", input=(line + hexdigest("sha256", content)).encode()).returncode == 1
