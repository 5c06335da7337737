"""Values from elsewhere: --expect, --expect-log, and check files whose lines do not say how they were made.

Values come from hashlib, coreutils and the slow model (reference/blkhash.py), never from blksum.
"""

import base64
import hashlib
import json
import os
import random
import shutil
import struct
import subprocess

import pytest
from ovirt_imageio._internal import blkhash as ovirt

import blkhash
import digests
import images
import imagespec
import roots
import servers as nbd

KIB = 1 << 10
MIB = 1 << 20

# More than one block of 4 MiB, with zeros near the beginning, and an end that fills no block.
SPEC = "2k:# 1k:0 512k:# 2m:- 64k:A 2m:# 64k:0 600k:Z 512:#"
SMALL = "2k:# 1k:0 70k:# 64k:- 60k:A 512:#"

# Constructions that are tried, with the words that say so.
KINDS = {
    "streams:4": ("streams:4", 64 * KIB),
    "streams:32": ("streams:32", 64 * KIB),
    "streams:64": ("streams:64", 64 * KIB),
    "flat": ("flat", 64 * KIB),
    "concat": ("concat", 64 * KIB),
    "linear": ("linear", 64 * KIB),
    "concat, blocks of 4 MiB": ("concat", 4 * MIB),
}

# Digests that are tried for a value of their length. The key of siphash is secret elsewhere.
DIGESTS = [name for name in digests.ALGORITHMS if name not in ("null", "siphash", "xxh128")]

OK, FAILED, USAGE = 0, 1, 2
UNDECIDED = b"x: FAILED to decide\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images with the same content, except for other.raw, of which one byte differs."""
    folder = tmp_path_factory.mktemp("expect")
    raw = folder / "disk.raw"
    imagespec.write(SPEC, raw)
    images.convert(raw, folder / "disk.qcow2")
    images.convert(raw, folder / "compressed.qcow2", flags=("-c",))
    imagespec.write(SMALL, folder / "small.raw")
    other = bytearray(raw.read_bytes())
    other[4 * MIB] ^= 1
    (folder / "other.raw").write_bytes(other)
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def content():
    return b"".join(bytes(c) if isinstance(c, int) else c for c in imagespec.chunks(SPEC))


@pytest.fixture(scope="module")
def server():
    running = nbd.Servers()
    yield running
    running.close()


def model(spec, digest="sha256", construction="streams:4", block_size=64 * KIB):
    return blkhash.checksum(imagespec.chunks(spec), digest, construction, block_size)


def nbdcopy_value(data, digest="sha256"):
    """Returns what `nbdcopy --blkhash` prints, in one line: flat over blocks of 64 KiB."""
    blocks = (data[i : i + 64 * KIB] for i in range(0, len(data), 64 * KIB))
    outer = hashlib.new(digest, b"".join(hashlib.new(digest, block).digest() for block in blocks))
    outer.update(len(data).to_bytes(8, "little"))
    return outer.digest()


def parts_value(data, size, digest="sha256"):
    """Returns what S3 computes for an object that was sent in parts."""
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    digest_of = lambda part: hashlib.new(digest, part).digest()  # noqa: E731
    return hashlib.new(digest, b"".join(map(digest_of, parts))).digest(), len(parts)


def b64(value):
    return base64.b64encode(value).decode()


def flags(values, option="--expect"):
    return [f"{option}={value}" for value in values]


def found(blksum, image, *values, options=(), **kwargs):
    """Returns how each value was found. All of them must be."""
    names = [] if image is None else [image]
    result = blksum(*options, *flags(values), *map(str, names), **kwargs)
    assert result.returncode == OK, (values, result)
    assert result.stderr == b"", result
    lines = result.stdout.decode().splitlines()
    assert len(lines) == len(values)
    prefix = f"{'-' if image is None else image}: OK ("
    assert all(line.startswith(prefix) and line.endswith(")") for line in lines), lines
    return [line.removeprefix(prefix).removesuffix(")") for line in lines]


def is_found(blksum, image, value, options=(), **kwargs):
    """Returns whether the image has a value. Whatever the answer, output and exit status must agree."""
    result = blksum(*options, f"--expect={value}", str(image), **kwargs)
    if result.returncode == OK:
        assert result.stdout.startswith(f"{image}: OK (".encode()), (value, result)
        return True
    # What has the value and proves nothing is distinguished from what does not have it.
    status = "FAILED to decide" if b": has this value as " in result.stderr else "FAILED"
    assert (result.returncode, result.stdout) == (FAILED, f"{image}: {status}\n".encode()), (value, result)
    assert result.stderr.startswith((f"blksum: {image}: ".encode(), f"blksum: '{image}': ".encode())), result
    return False


def refused(blksum, *args):
    """Returns why a command line is refused. Nothing may be computed."""
    result = blksum(*args)
    assert (result.returncode, result.stdout) == (USAGE, b""), (args, result)
    message, hint = result.stderr.decode().splitlines()
    assert hint == "Try 'blksum --help' for more information."
    return message.removeprefix("blksum: ")


# Values that are right.


def test_forms_of_a_value(blksum, here, content):
    digest = hashlib.sha256(content).digest()
    assert b"+" in base64.b64encode(digest) or b"/" in base64.b64encode(digest)
    text = b64(digest)
    forms = [
        digest.hex(),
        digest.hex().upper(),
        text,
        text.rstrip("="),
        base64.urlsafe_b64encode(digest).decode(),
        base64.urlsafe_b64encode(digest).decode().rstrip("="),
        f"sha256-{text}",
        f"sha256:{digest.hex()}",
        f"sha256:{text}",
        f"{digest.hex()}  any name",
        f"{digest.hex()} *any name",
        f"{text}  any name",
        f"sha256:{digest.hex()}  any name",
        f"BLKSUM-SHA256-LINEAR (any name) = {digest.hex()}",
        f"BLKSUM-SHA256-LINEAR (any name) = {text}",
    ]
    for image in ["disk.raw", "disk.qcow2", "compressed.qcow2"]:
        assert found(blksum, image, *forms) == ["linear"] * len(forms)


def test_lines_of_coreutils_are_values(blksum, here):
    for command, word in [
        (["sha256sum"], "linear"),
        (["sha256sum", "--tag"], "bytes of the file"),
        (["sha512sum"], "sha512, linear"),
        (["md5sum"], "md5, linear"),
        (["b2sum"], "blake2b512, linear"),
        (["sha1sum", "--tag"], "sha1, bytes of the file"),
        (["cksum", "-a", "sha384"], "sha384, bytes of the file"),
        (["cksum", "-a", "sha224", "--untagged"], "sha224, linear"),
    ]:
        line = images.run(*command, "disk.raw").decode().rstrip("\n")
        assert found(blksum, "disk.raw", line) == [word], line
        line = images.run(*command, "disk.qcow2").decode().rstrip("\n")
        word = word.replace("linear", "bytes of the file")
        assert found(blksum, "disk.qcow2", line) == [word], line


@pytest.mark.parametrize("digest", DIGESTS)
def test_every_construction_of_every_digest_is_found(blksum, here, digest):
    values = [model(SMALL, digest, *kind).hex() for kind in KINDS.values()]
    words = ["" if digest == "sha256" else f"{digest}, "] * len(KINDS)
    assert found(blksum, "small.raw", *values) == [word + kind for word, kind in zip(words, KINDS)]
    assert found(blksum, "small.raw", *(f"{digest}:{value}" for value in values)) == [
        word + kind for word, kind in zip(words, KINDS)
    ]


@pytest.mark.parametrize("image", ["disk.raw", "disk.qcow2", "compressed.qcow2"])
def test_every_construction_is_found_in_every_format(blksum, here, image):
    values = [model(SPEC, "sha256", *kind).hex() for kind in KINDS.values()]
    assert found(blksum, image, *values) == list(KINDS)


def test_values_that_programs_print(blksum, here, content):
    """nbdcopy, libvirt, oVirt, Glance and S3, each by hashlib."""
    blake2b = lambda data: hashlib.blake2b(data, digest_size=32).digest()  # noqa: E731
    of_ovirt = blake2b(b"".join(blake2b(content[i : i + 4 * MIB]) for i in range(0, len(content), 4 * MIB)))
    file = (here / "disk.qcow2").read_bytes()
    glance = hashlib.sha512(file).hexdigest()
    assert found(
        blksum,
        "disk.qcow2",
        nbdcopy_value(content).hex(),
        nbdcopy_value(content, "sha512").hex(),
        hashlib.md5(content).hexdigest(),
        of_ovirt.hex(),
        glance,
        f"sha256:{hashlib.sha256(file).hexdigest()}",
        b64(hashlib.md5(file).digest()),
    ) == [
        "flat",
        "sha512, flat",
        "md5, linear",
        "blake2b256, concat, blocks of 4 MiB",
        "sha512, bytes of the file",
        "bytes of the file",
        "md5, bytes of the file",
    ]


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a root file system")
def test_values_of_nbdcopy(blksum, here, tmp_path):
    """The program of the next Debian: the one of Debian 12 has no --blkhash."""
    root = tmp_path / "root"
    roots.make("testing", root, "libnbd-bin", variant="extract")
    nbdcopy = roots.program(root, "nbdcopy")

    def value(kind, source="disk.raw"):
        copy = tmp_path / "copy.raw"
        copy.unlink(missing_ok=True)
        done = subprocess.run([*nbdcopy, f"--blkhash={kind}", source, copy], capture_output=True, text=True)
        assert done.returncode == 0 and copy.read_bytes() == (here / source).read_bytes(), done
        return done.stdout

    for digest in ["md5", "sha1", "sha256", "sha512"]:
        text = value(digest).strip()
        assert found(blksum, "compressed.qcow2", text) == ["flat" if digest == "sha256" else f"{digest}, flat"]
        assert not is_found(blksum, "other.raw", text)
    for size, words in [("4k", "4 KiB"), ("1M", "1 MiB")]:
        text = value(f"sha256/{size}").strip()
        assert found(blksum, "disk.qcow2", text, options=[f"--block-size={size.upper()}"]) == [f"flat, blocks of {words}"]
    log = value("sha256", "small.raw") + value("sha256")
    done = blksum("--expect-log", "-", "disk.qcow2", "other.raw", "small.raw", input=log.encode())
    assert done.returncode == FAILED
    assert done.stdout.decode().splitlines() == [
        "disk.qcow2: OK (flat, line 2)",
        "other.raw: FAILED",
        "small.raw: OK (flat, line 1)",
    ]


def test_values_of_ovirt_imageio(blksum, here):
    """The package that oVirt's hosts run."""
    answer = ovirt.checksum("disk.raw")
    assert answer["block_size"] == 4 * MIB and answer["algorithm"] == "blake2b"
    assert found(blksum, "disk.qcow2", answer["checksum"]) == ["blake2b256, concat, blocks of 4 MiB"]


@pytest.mark.parametrize("image", ["disk.raw", "disk.qcow2"])
@pytest.mark.parametrize("size", [MIB, 2 * MIB, 4 * MIB, 8 * MIB])
def test_parts_of_s3(blksum, here, image, size):
    data = (here / image).read_bytes()
    for digest in ["sha256", "sha1", "md5"]:
        value, count = parts_value(data, size, digest)
        for text in [f"{b64(value)}-{count}", f"{value.hex()}-{count}"]:
            assert is_found(blksum, image, text)
            other = blksum(f"--expect={text.replace(f'-{count}', f'-{count + 1}')}", image)
            assert other.returncode == FAILED and b"OK" not in other.stdout, other
        assert not is_found(blksum, image, f"{parts_value(data[:-1], size, digest)[0].hex()}-{count}")


@pytest.mark.slow
def test_sources(blksum, here, content, server):
    """A pipe, an NBD server and a snapshot."""
    values = [model(SPEC, "sha256", *kind).hex() for kind in KINDS.values()]
    for value, kind in zip(values, KINDS):
        for name in [None, "-"]:
            assert found(blksum, name, value, input=content) == [kind]
    assert found(blksum, None, nbdcopy_value(content, "sha512").hex(), input=content) == ["sha512, flat"]
    for fmt, image in [("raw", "disk.raw"), ("qcow2", "compressed.qcow2")]:
        uri = server.qemu_nbd(here / image, fmt=fmt).uri()
        assert found(blksum, uri, *values) == list(KINDS)
        assert not is_found(blksum, uri, hashlib.sha256(content[:-1]).hexdigest())


def test_a_stream_is_read_once(blksum, here, content):
    for value in [hashlib.sha256(content).hexdigest(), hashlib.sha512(content).hexdigest()]:
        result = blksum("--expect", value, input=content)
        assert result.returncode == OK, result
    wrong = blksum("--expect", "0" * 64, input=content)
    assert (wrong.returncode, wrong.stdout) == (FAILED, b"-: FAILED\n")
    assert b"sha256" in wrong.stderr and b"blake3" not in wrong.stderr
    blake3 = model(SPEC, "blake3", "flat").hex()
    assert blksum("--expect", blake3, input=content).returncode == FAILED
    assert found(blksum, None, f"blake3:{blake3}", input=content) == ["blake3, flat"]
    assert found(blksum, None, blake3, options=["-d", "blake3"], input=content) == ["blake3, flat"]


def test_a_stream_in_a_check_file_is_read_once(blksum, workdir, content):
    """What is read after its end has the checksum of nothing, and that is not the content's."""
    for construction in ["linear", "flat", "streams:4", "streams:64", "concat"]:
        for digest in ["sha256", "sha512", "md5"]:
            nothing = blkhash.checksum(b"", digest, construction).hex()
            for name in ["-", "/dev/stdin", "/dev/fd/0"]:
                write_sums(f"{nothing}  {name}\n")
                result = blksum("-c", "SUMS", input=content)
                assert result.returncode == FAILED and b"OK" not in result.stdout, (construction, result)


def test_several_values_of_a_stream(blksum, content):
    """All are compared with what was read, or the command line is refused. Nothing is compared with nothing."""
    linear, flat = hashlib.sha256(content).hexdigest(), nbdcopy_value(content).hex()
    nothing = hashlib.sha256(b"").hexdigest()
    right = blksum(*flags([linear, flat, linear]), input=content)
    assert right.returncode == OK or b"is read only once: give one value\n" in right.stderr, right
    for values in [[linear, nothing], [nothing, linear], [flat, nothing]]:
        wrong = blksum(*flags(values), input=content)
        assert wrong.returncode in (FAILED, USAGE), (values, wrong)
    for names in [["-", "-"], ["/dev/stdin", "-"], ["-", "/dev/stdin"]]:
        wrong = blksum(*flags([linear, nothing]), *names, input=content)
        assert wrong.returncode in (FAILED, USAGE), (names, wrong)


def test_a_log_and_an_image_cannot_both_be_standard_input(blksum):
    nothing = hashlib.sha256(b"").hexdigest() + "\n"
    for names, reason in [([], b"name the images"), (["-"], b"standard input is the log, and cannot be an image")]:
        result = blksum("--expect-log=-", *names, input=nothing.encode())
        assert result.returncode != OK and result.stdout == b"", result
        assert reason in result.stderr


def test_a_file_on_standard_input(blksum, here, content):
    """It can be read again."""
    flat, linear = nbdcopy_value(content).hex(), hashlib.sha512(content).hexdigest()
    for name in ["disk.raw", "disk.qcow2"]:
        with open(name, "rb") as file:
            assert found(blksum, None, flat, linear, stdin=file) == ["flat", "sha512, linear"]


def test_snapshots(blksum, workdir, content):
    with open("raw", "wb") as file:
        file.write(content)
    images.convert(workdir / "raw", workdir / "x.qcow2")
    images.qemu_img("snapshot", "-c", "before", "x.qcow2")
    images.qemu_io("x.qcow2", "write -P 0x77 1M 64k")
    now = images.to_raw("x.qcow2", workdir / "now").read_bytes()
    old = [hashlib.sha256(content).hexdigest(), nbdcopy_value(content).hex()]
    assert hashlib.sha256(now).hexdigest() != old[0]
    assert found(blksum, "x.qcow2", *old, options=["--snapshot", "before"]) == ["linear", "flat"]
    assert found(blksum, "x.qcow2", nbdcopy_value(now).hex()) == ["flat"]
    assert not is_found(blksum, "x.qcow2", old[1])
    line = f"BLKSUM-SHA256-FLAT-64K/SNAPSHOT=before (y) = {old[1]}"
    assert found(blksum, "x.qcow2", line) == ["flat, snapshot before"]
    # The file is not the snapshot.
    whole = hashlib.sha256((workdir / "x.qcow2").read_bytes()).hexdigest()
    assert not is_found(blksum, "x.qcow2", whole, options=["--snapshot", "before"])


def test_partitions(blksum, workdir):
    data = random.Random(33).randbytes(700 * KIB) + bytes(324 * KIB)
    with open("disk.raw", "wb") as file:
        file.write(bytes(MIB) + data + bytes(MIB))
    table = b"label: dos\nstart=2048, size=2048, type=83\n"
    subprocess.run(["sfdisk", "-q", "disk.raw"], input=table, check=True, capture_output=True)
    images.convert(workdir / "disk.raw", workdir / "disk.qcow2")
    values = [hashlib.sha256(data).hexdigest(), nbdcopy_value(data).hex()]
    for image in ["disk.raw", "disk.qcow2"]:
        assert found(blksum, image, *values, options=["--partition=1"]) == ["linear", "flat"]
        for value in values:
            assert not is_found(blksum, image, value)
            line = f"BLKSUM-SHA256-FLAT-64K/PARTITION=1 (x) = {value}"
            expected = (OK, f"{image}: OK (flat, partition 1)\n")
            if value != values[1]:
                expected = (FAILED, f"{image}: FAILED (partition 1)\n")
            result = blksum("--expect", line, image)
            assert (result.returncode, result.stdout.decode()) == expected
            answer = json.loads(blksum("--json", "--expect", line, image).stdout)
            assert answer["partition"] == 1
            assert answer["tag_line"] == (line.replace("(x)", f"({image})") if value == values[1] else None)
        options = ["--offset", str(MIB), "--length", str(MIB)]
        assert found(blksum, image, *values, options=options) == ["linear", "flat"]


def test_zeros_are_looked_for_in_the_first_mib_of_a_pipe_too(blksum, workdir):
    data = random.Random(1).randbytes(512 * KIB) + bytes(512 * KIB)
    with open("disk.raw", "wb") as file:
        file.write(data)
    value = hashlib.sha256(data).hexdigest()
    assert found(blksum, "disk.raw", value) == ["linear"]
    assert found(blksum, None, value, input=data) == ["linear"]


# Values that are wrong.


def flipped(value):
    """Yields a value with each of its bits inverted in turn."""
    for bit in range(8 * len(value)):
        wrong = bytearray(value)
        wrong[bit // 8] ^= 1 << bit % 8
        yield bytes(wrong)


def none_found(blksum, image, values):
    """Asserts that an image has none of these values."""
    values = list(values)
    result = blksum("-q", *flags(values), image)
    assert result.returncode == FAILED, result
    assert result.stdout == f"{image}: FAILED\n".encode() * len(values)


@pytest.mark.parametrize(
    "digest, kind",
    [("md5", "linear"), ("sha1", "flat"), ("sha512", "concat"), *(("sha256", kind) for kind in KINDS)],
)
def test_every_bit_of_a_value_counts(blksum, workdir, digest, kind):
    spec = "1k:0 1k:#"
    imagespec.write(spec, "disk.raw")
    value = model(spec, digest, *KINDS[kind])
    assert is_found(blksum, "disk.raw", value.hex())
    none_found(blksum, "disk.raw", (wrong.hex() for wrong in flipped(value)))
    none_found(blksum, "disk.raw", map(b64, flipped(value)))
    none_found(blksum, "disk.raw", (f"{digest}:{wrong.hex()}" for wrong in flipped(value)))


def test_values_of_other_images(blksum, here, content):
    values = [model(SPEC, "sha256", *kind).hex() for kind in KINDS.values()]
    none_found(blksum, "small.raw", values)
    assert not is_found(blksum, "other.raw", values[0])
    assert not is_found(blksum, "other.raw", values[5])
    small = (here / "small.raw").read_bytes()
    for other in [small[:-1], small[1:], small + b"\0", small[:-512], small + bytes(512), small[::-1], b""]:
        none_found(blksum, "small.raw", [hashlib.sha256(other).hexdigest(), nbdcopy_value(other).hex()])


def test_prefixes_of_values(blksum, here):
    """A part of a value is never enough, in whatever encoding."""
    content = (here / "small.raw").read_bytes()
    values = [hashlib.new(name, content).digest() for name in ["md5", "sha256", "sha512"]]
    for value in values:
        for text in [value.hex(), b64(value)]:
            for end in range(len(text.rstrip("="))):
                result = blksum("--expect", text[:end], "small.raw")
                assert result.returncode in (FAILED, USAGE), (text[:end], result)


def test_lengths_of_values(blksum, workdir):
    imagespec.write("1k:0", "disk.raw")
    lengths = {len(digests.new(name).digest()) for name in DIGESTS}
    for length in range(1, 70):
        text = bytes(range(200, 200 + length - 1)).hex() + "ab" if length < 50 else "c7" * length
        if length in lengths:
            assert not is_found(blksum, "disk.raw", text)
            assert not is_found(blksum, "disk.raw", b64(bytes.fromhex(text)))
        else:
            assert "no digest is that long" in refused(blksum, "--expect", text, "disk.raw")
            assert "no digest is that long" in refused(blksum, "--expect", b64(bytes.fromhex(text)), "disk.raw")


def test_texts_that_are_no_values(blksum, here, content):
    digest = next(
        digest
        for kind in KINDS.values()
        for digest in [model(SPEC, "sha512", *kind)]
        if "+" in b64(digest) and "/" in b64(digest)
    )
    text, hexadecimal = b64(digest), digest.hex()
    assert is_found(blksum, "disk.raw", text)
    for wrong in [
        "",
        " ",
        "disk.raw",
        text.replace("+", "-"),
        text.replace("/", "_"),
        text[:-1],
        text + "=",
        "=" + text,
        text[:-3] + chr(ord(text[-3]) + 1) + "==",
        '"' + text,
        '""' + text + '""',
        f"{hexadecimal} {hexadecimal}",
        f"{hexadecimal},{hexadecimal}",
        f"other.raw={hexadecimal}",
        "0x" + hexadecimal,
        hexadecimal[:-1],
        hexadecimal[:-1] + "g",
        hexadecimal[:64] + ":" + hexadecimal[64:],
        f"sha256:{hexadecimal}",
        f"sha512:{hexadecimal[:64]}",
        f"sha512-{hexadecimal}",
        f"sha999:{hexadecimal}",
        f"{hexadecimal}-0",
        f"{hexadecimal}-",
        f"{hexadecimal}-x",
        f"{hexadecimal}--1",
        f"{hexadecimal}-10001",
        f"SHA256 (x) = {hexadecimal}",
        f"BLKSUM-SHA1024-FLAT-64K (x) = {hexadecimal}",
        f"# {hexadecimal}  x",
        b"\xff" * 64,
    ]:
        args = ["--expect", wrong, "disk.raw"]
        assert refused(blksum, *args).startswith("--expect: "), wrong


def test_several_lines_are_not_one_value(blksum, here):
    """As in --expect "$(sha256sum a b)"."""
    lines = images.run("sha256sum", "small.raw", "other.raw").decode().rstrip("\n")
    assert refused(blksum, "--expect", lines, "small.raw").startswith("--expect: ")


def test_checksums_that_anyone_can_forge(blksum, here):
    """xxh128 has as many bytes as md5, and takes nothing to match."""
    for kind in KINDS.values():
        value = model(SMALL, "xxh128", *kind).hex()
        assert not is_found(blksum, "small.raw", value)
        assert is_found(blksum, "small.raw", value, options=["-d", "xxh128"])
        assert is_found(blksum, "small.raw", f"xxh128:{value}")
        result = blksum("-c", input=f"{value}  small.raw\n".encode())
        assert (result.returncode, result.stdout) == (FAILED, b"small.raw: FAILED\n")
    # Shorter ones are not taken from a check file without their names.
    for digest in ["crc32", "crc32c", "crc64", "crc64nvme", "xxh64", "xxh3"]:
        value = model(SMALL, digest, "linear").hex()
        result = blksum("-c", input=f"{value}  small.raw\n".encode())
        assert result.returncode == FAILED and b"OK" not in result.stdout, result


def test_options_narrow(blksum, here):
    value = model(SMALL, "sha256", "flat").hex()
    right = [["-d", "sha256"], ["--construction", "flat"], ["--block-size", "64K"]]
    for options in [*right, [word for words in right for word in words]]:
        assert found(blksum, "small.raw", value, options=options) == ["flat"]
    for options in [["--construction", "linear"], ["--construction", "streams:4"], ["--block-size", "4K"]]:
        assert not is_found(blksum, "small.raw", value, options=options)
    assert not is_found(blksum, "small.raw", value, options=["-d", "blake3"])
    assert "--digest" in refused(blksum, "-d", "sha512", "--expect", value, "small.raw")
    for size in [512, 4 * KIB, MIB]:
        value = model(SMALL, "sha256", "flat", size).hex()
        assert not is_found(blksum, "small.raw", value)
        for options in [[f"--block-size={size}"], [f"--block-size={size}", "--construction=flat"]]:
            assert is_found(blksum, "small.raw", value, options=options)
    value = model(SMALL, "sha256", "streams:8").hex()
    assert not is_found(blksum, "small.raw", value)
    assert found(blksum, "small.raw", value, options=["--construction=streams:8"]) == ["streams:8"]


def test_digests_of_verity_are_not_those_of_other_files(blksum, workdir):
    """The digest that `fsverity digest` and `veritysetup` print belongs to a file which anyone can make."""
    data = b"".join(bytes([number]) * 4 * KIB for number in range(1, 41))
    with open("disk.raw", "wb") as file:
        file.write(data)
    hashes = [hashlib.sha256(data[i : i + 4 * KIB]).digest() for i in range(0, len(data), 4 * KIB)]
    block = b"".join(hashes).ljust(4 * KIB, b"\0")
    root = hashlib.sha256(block).digest()
    descriptor = struct.pack("<BBBBIQ64s176x", 1, 1, 12, 0, 0, len(data), root)
    for name, forged, construction in [
        ("descriptor", descriptor, "fs-verity"),
        ("hash-block", block, "dm-verity"),
        ("salted-hash-block", b"salt" + block, None),
    ]:
        value = hashlib.sha256(forged).hexdigest()
        if construction:
            assert value == blkhash.checksum(data, "sha256", construction, 4 * KIB).hex()
        with open(name, "wb") as file:
            file.write(forged)
        assert not is_found(blksum, name, value), name
        assert is_found(blksum, name, value, options=["--construction=linear"])


# Lists of digests: files that anyone can make of an image, and that have its checksum as their linear value.


def block_digests(data, digest="sha256", size=64 * KIB):
    return [hashlib.new(digest, data[i : i + size]).digest() for i in range(0, len(data), size)]


def streams_of(listed, count, digest="sha256"):
    """Returns the lists of the streams, and what the last step hashes."""
    streams = [b"".join(listed[first::count]) for first in range(count)]
    return streams, b"".join(hashlib.new(digest, stream).digest() for stream in streams)


def forged_lists(data, digest="sha256"):
    """Yields files that have a checksum of `data`, as their linear value."""
    listed = block_digests(data, digest)
    yield "flat", ("flat", 64 * KIB), b"".join(listed) + len(data).to_bytes(8, "little")
    yield "concat", ("concat", 64 * KIB), b"".join(listed)
    yield "oVirt", ("concat", 4 * MIB), b"".join(block_digests(data, digest, 4 * MIB))
    for count in [4, 32, 64]:
        yield f"streams:{count}", (f"streams:{count}", 64 * KIB), streams_of(listed, count, digest)[1]
    small = block_digests(data, digest, 4 * KIB)
    yield "blocks of 4 KiB", ("flat", 4 * KIB), b"".join(small) + len(data).to_bytes(8, "little")
    parts = block_digests(data, digest, MIB)
    yield "parts", ("concat", MIB), b"".join(parts)


@pytest.mark.parametrize("digest", ["sha256", "sha512", "md5", "sha1"])
def test_lists_of_digests_are_not_the_image(blksum, workdir, content, digest):
    word = "" if digest == "sha256" else f"{digest}, "
    message = (
        f"blksum: x: has this value as {word}linear, but it could be a list of the digests of another image: "
        "--construction linear takes it\n"
    )
    for name, kind, forged in forged_lists(content, digest):
        value = blkhash.checksum(content, digest, *kind).hex()
        assert value == hashlib.new(digest, forged).hexdigest(), name
        with open("x", "wb") as file:
            file.write(forged)
        for text in [value, f"{digest}:{value}", b64(bytes.fromhex(value)), f"{value}  x"]:
            result = blksum("-q", "--expect", text, "x")
            answer = (result.returncode, result.stdout, result.stderr.decode())
            assert answer == (FAILED, b"x: FAILED to decide\n", message), (name, text)
        for options in [[], ["-d", digest]]:
            result = blksum("-c", "-q", *options, input=f"{value}  x\n".encode())
            assert (result.returncode, result.stdout) == (FAILED, UNDECIDED), (name, result)
            assert options or message in result.stderr.decode(), (name, result)
        result = blksum("--expect-log=-", "-q", "x", input=f"{value}\n".encode())
        assert (result.returncode, result.stdout) == (FAILED, UNDECIDED), name
        assert message in result.stderr.decode()
        result = blksum("-q", "--expect", value, input=forged)
        assert (result.returncode, result.stdout) == (FAILED, b"-: FAILED to decide\n"), name
        result = blksum("--expect", value, "--construction=linear", "x")
        assert (result.returncode, result.stdout.decode()) == (OK, f"x: OK ({word}linear)\n")
        images.run("sh", "-c", f"echo {value} x | {digest}sum -c")


def test_lists_of_digests_in_formats_and_parts(blksum, workdir):
    """The content counts, whatever holds it."""
    data = random.Random(5).randbytes(128) * 512 * 32
    listed = block_digests(data)
    forged = b"".join(listed)
    assert len(forged) % 512 == 0
    value = hashlib.sha256(forged).hexdigest()
    assert value == blkhash.checksum(data, "sha256", "concat").hex()
    with open("list", "wb") as file:
        file.write(forged)
    for fmt in ["qcow2", "vmdk", "vdi", "vhdx"]:
        images.qemu_img("convert", "-f", "raw", "-O", fmt, "list", f"list.{fmt}")
        assert not is_found(blksum, f"list.{fmt}", value, options=[f"--length={len(forged)}"])
    assert not is_found(blksum, "list.qcow2", value)
    assert is_found(blksum, "list.qcow2", value, options=["--construction", "linear"])
    with open("disk.raw", "wb") as file:
        file.write(bytes(MIB) + forged + bytes(MIB))
    sectors = len(forged) // 512
    table = f"label: dos\nstart=2048, size={sectors}, type=83\n".encode()
    subprocess.run(["sfdisk", "-q", "disk.raw"], input=table, check=True, capture_output=True)
    assert not is_found(blksum, "disk.raw", value, options=["--partition=1"])
    assert not is_found(blksum, "disk.raw", value, options=[f"--offset={MIB}", f"--length={len(forged)}"])
    part = ["--partition=1", "--construction=linear"]
    assert is_found(blksum, "disk.raw", value, options=part)


def test_blocks_of_digests_are_not_the_image(blksum, workdir):
    """A file whose blocks are the lists of the streams has the checksum as its concat value."""
    digest_of_zeros = hashlib.sha256(bytes(64 * KIB)).digest()
    for size, count, kind in [
        (512 * MIB, 64 * KIB // 32, "concat"),
        (32 << 30, 4 * MIB // 32, "concat, blocks of 4 MiB"),
    ]:
        value = blkhash.checksum([size]).hex()
        stream = digest_of_zeros * count
        forged = stream * 4
        assert hashlib.sha256(hashlib.sha256(stream).digest() * 4).hexdigest() == value
        with open("x", "wb") as file:
            file.write(forged)
        result = blksum("--expect", value, "x")
        assert (result.returncode, result.stdout) == (FAILED, UNDECIDED)
        assert f"has this value as {kind}, but it could be a list".encode() in result.stderr
        result = blksum("-c", input=f"{value}  x\n".encode())
        assert (result.returncode, result.stdout) == (FAILED, UNDECIDED)
        assert f"has this value as {kind}, but it could be a list".encode() in result.stderr
        result = blksum("--expect", value, input=forged)
        assert (result.returncode, result.stdout) == (FAILED, b"-: FAILED to decide\n")
        options = ["--construction=concat", *(["--block-size=4M"] if size > 512 * MIB else [])]
        assert found(blksum, "x", value, options=options) == [kind]
        # The image itself.
        with open("image", "wb") as file:
            os.truncate(file.fileno(), size)
        assert found(blksum, "image", value) == ["streams:4"]


@pytest.mark.slow
def test_images_in_images_are_not_the_file(blksum, here, tmp_path):
    """A value of a file (Glance) does not belong to an image whose guest sees the file instead of its content."""
    for fmt in ["qcow2", "vmdk", "vdi", "vhdx", "vpc", "qed", "parallels"]:
        inner, outer = tmp_path / f"inner.{fmt}", tmp_path / "outer.qcow2"
        images.qemu_img("convert", "-f", "raw", "-O", fmt, "small.raw", inner)
        os.truncate(inner, -(-inner.stat().st_size // 512) * 512)
        images.convert(inner, outer)
        for digest in ["sha256", "sha512", "md5"]:
            value = hashlib.new(digest, inner.read_bytes()).hexdigest()
            assert is_found(blksum, inner, value), fmt
            assert not is_found(blksum, outer, value), fmt
            assert is_found(blksum, outer, value, options=["--construction=linear"]), fmt


def test_files_of_text_in_lists(blksum, workdir):
    """Only what is too short to be told from digests does not match."""
    text = b"a text file of some length\n" * 40
    lengths = [*range(0, 400), 512, 1000, 1023, 1024, 1025]
    for length in lengths:
        with open(f"{length}.txt", "wb") as file:
            file.write(text[:length])
    doubted = [32, 64, 96]
    names = [f"{length}.txt" for length in lengths]
    listed = images.run("sha256sum", *names)
    result = blksum("-c", "-q", input=listed)
    assert result.returncode == FAILED
    assert result.stdout.decode() == "".join(f"{length}.txt: FAILED to decide\n" for length in doubted)
    for length in doubted:
        assert f"blksum: {length}.txt: has this value as linear, but it could".encode() in result.stderr
    for options in [["-B"], ["--construction=linear"]]:
        result = blksum("-c", "-q", *options, input=listed)
        assert (result.returncode, result.stdout, result.stderr) == (OK, b"", b"")
    listed = images.run("sha256sum", *(name for name in names if int(name[:-4]) not in doubted))
    result = blksum("-c", "-q", input=listed)
    assert (result.returncode, result.stdout, result.stderr) == (OK, b"", b"")
    # A disk with zeros near its beginning can have any length.
    for length in [512, 32 * KIB, 64 * KIB, 1056]:
        with open("disk.raw", "wb") as file:
            file.write(bytes(446) + random.Random(1).randbytes(length - 446))
        assert is_found(blksum, "disk.raw", images.run("sha256sum", "disk.raw").decode().rstrip("\n"))


def test_zeros_behind_noise(blksum, workdir):
    """An encrypted disk begins with noise. A list of digests has no zeros anywhere."""
    rng = random.Random(8)
    for name, data in {
        "stored": rng.randbytes(3 * MIB) + bytes(128) + rng.randbytes(MIB - 128),
        "at the end": rng.randbytes(4 * MIB - 128) + bytes(128),
        "in two": rng.randbytes(MIB - 64) + bytes(128) + rng.randbytes(3 * MIB - 64),
    }.items():
        with open("x", "wb") as file:
            file.write(data)
        value = hashlib.sha256(data).hexdigest()
        for text in [value, f"sha256:{value}"]:
            assert found(blksum, "x", text) == ["linear"], name
            result = blksum("--expect", text, input=data)
            assert (result.returncode, result.stdout) == (OK, b"-: OK (linear)\n"), (name, result)
        result = blksum("-c", "-q", input=images.run("sha256sum", "x"))
        assert (result.returncode, result.stdout) == (OK, b""), (name, result)
        images.qemu_img("convert", "-f", "raw", "-O", "qcow2", "x", "x.qcow2")
        assert found(blksum, "x.qcow2", value) == ["linear"], name
    # A hole is read as zeros.
    with open("x", "wb") as file:
        file.write(rng.randbytes(2 * MIB))
        file.truncate(4 * MIB)
    assert found(blksum, "x", images.run("sha256sum", "x").split()[0].decode()) == ["linear"]


def test_what_stays_open_is_not_called_damaged(blksum, workdir):
    """Noise without any zeros may be a list of digests. The words are others than those for other content."""
    data = random.Random(9).randbytes(2 * MIB)
    for name in ["x", "y"]:
        with open(name, "wb") as file:
            file.write(data)
    with open("y", "r+b") as file:
        file.write(b"other")
    value = hashlib.sha256(data).hexdigest()
    result = blksum("-c", input=f"{value}  x\n{value}  y\n".encode())
    assert (result.returncode, result.stdout) == (FAILED, UNDECIDED + b"y: FAILED\n")
    says = result.stderr.decode()
    assert "WARNING: 1 computed checksum did NOT match\n" in says, says
    assert "WARNING: 1 computed checksum is equal, but it may belong to other content\n" in says, says
    result = blksum("-c", input=f"{value}  x\n".encode())
    assert result.returncode == FAILED and b"did NOT match" not in result.stderr
    for options in [["-c", "--json"], ["--json", "--expect", value, "x"]]:
        result = blksum(*options, input=f"{value}  x\n".encode())
        record = json.loads(result.stdout)
        assert (result.returncode, record["status"]) == (FAILED, "undecided"), result
        assert record.get("checksum", value) == value
    for options in [["-c", "-B"], ["-c", "--construction=linear"]]:
        assert blksum(*options, input=f"{value}  x\n".encode()).returncode == OK
    result = blksum("--expect", value, "--construction=linear", "x")
    assert (result.returncode, result.stdout) == (OK, b"x: OK (linear)\n")


# What else has a value.


def verity_block(workdir, digest, salt):
    """Returns the root hash of an image whose topmost block is full, and the input of the last hash."""
    with open("image", "wb") as file:
        file.write(random.Random(7).randbytes(4096 * 4096 // hashlib.new(digest).digest_size))
    options = ["--hash", digest, "--salt", salt.hex() or "-"]
    answer = images.run("veritysetup", "format", *options, "image", "tree").decode()
    root = next(line.split()[-1] for line in answer.splitlines() if line.startswith("Root hash"))
    return root, salt + (workdir / "tree").read_bytes()[4096:8192]


@pytest.mark.parametrize("salt", [b"", bytes(range(16)), bytes(range(20)), b"s" * 256])
@pytest.mark.parametrize("digest", ["sha256", "sha1", "sha512"])
def test_full_blocks_of_verity_are_no_content(blksum, workdir, digest, salt):
    root, block = verity_block(workdir, digest, salt)
    assert hashlib.new(digest, block).hexdigest() == root
    with open("forged.raw", "wb") as file:
        file.write(block)
    assert not is_found(blksum, "forged.raw", root)
    assert blksum("-c", input=f"{root}  forged.raw\n".encode()).returncode == FAILED
    how = f"--digest={digest}"
    assert is_found(blksum, "forged.raw", root, options=[how, "--construction=linear"])


@pytest.mark.parametrize("kind", ["vpc", "dmg", "tar", "gzip", "xz", "zstd", "bzip2", "lz4"])
def test_images_in_images_are_no_content(blksum, workdir, kind):
    """Their magic is in the last sector, or they are archives or compressed."""
    with open("disk", "wb") as file:
        file.write(bytes(MIB) + random.Random(3).randbytes(MIB))
    if kind == "vpc":
        images.qemu_img("convert", "-f", "raw", "-O", "vpc", "-o", "subformat=fixed,force_size=on", "disk", "inner")
    elif kind == "tar":
        images.run("tar", "cf", "inner", "disk")
    elif kind != "dmg":
        (workdir / "inner").write_bytes(images.run(kind, "-c", "disk"))
        # QEMU would add zeros, which no compressor takes.
        with open("inner", "ab") as file:
            file.write(bytes(-file.tell() % 512))
    else:
        with open("inner", "wb") as file:
            file.write((workdir / "disk").read_bytes() + b"koly".ljust(512, b"\0"))
    images.qemu_img("convert", "-f", "raw", "-O", "qcow2", "inner", "outer.qcow2")
    value = images.run("sha256sum", "inner").split()[0].decode()
    assert not is_found(blksum, "outer.qcow2", value)
    assert blksum("-c", input=f"{value}  outer.qcow2\n".encode()).returncode == FAILED
    assert is_found(blksum, "outer.qcow2", value, options=["--construction=linear"])


def test_images_behind_a_server_are_no_content(blksum, here, server):
    value = images.run("sha256sum", "disk.qcow2").split()[0].decode()
    uri = server.qemu_nbd(here / "disk.qcow2", fmt="raw").uri()
    assert not is_found(blksum, uri, value)
    assert is_found(blksum, uri, value, options=["--construction=linear"])


UNCOVERED = "warning: the value is of the bytes of this file, and not of its content: it "


def test_bytes_of_a_file_whose_content_is_elsewhere(blksum, workdir):
    with open("disk.raw", "wb") as file:
        file.write(bytes(MIB))
    images.qemu_img("create", "-f", "qcow2", "-b", "disk.raw", "-F", "raw", "over.qcow2")
    images.qemu_img("create", "-f", "vmdk", "-o", "subformat=monolithicFlat", "flat.vmdk", "1M")
    for image in ["over.qcow2", "flat.vmdk"]:
        listed = images.run("sha256sum", image)
        for options, why in [([], "is in other files too"), (["--untrusted"], "cannot be read: ")]:
            for args, text in [(["--expect", listed.split()[0].decode(), image], b""), (["-q", "-c"], listed)]:
                result = blksum(*options, *args, input=text)
                assert result.returncode == OK, result
                assert result.stderr.decode().startswith(f"blksum: {image}: {UNCOVERED}{why}"), result
    answer = json.loads(blksum("--json", "--expect", listed.split()[0].decode(), image).stdout)
    assert answer["uncovered"] == "it is in other files too"
    # It is tried after the bytes of the file.
    value = blksum("-d", "blake3", "over.qcow2").stdout.split()[0].decode()
    result = blksum("--expect", value, "over.qcow2")
    assert (result.returncode, result.stdout, result.stderr) == (OK, b"over.qcow2: OK (blake3, streams:4)\n", b"")


def test_bytes_of_files_whose_content_cannot_be_read(blksum, workdir):
    with open("gone.raw", "wb") as file:
        file.write(bytes(MIB))
    images.qemu_img("create", "-f", "qcow2", "-b", "gone.raw", "-F", "raw", "over.qcow2")
    os.unlink("gone.raw")
    listed = images.run("sha256sum", "over.qcow2")
    result = blksum("-c", input=listed)
    assert (result.returncode, result.stdout) == (OK, b"over.qcow2: OK\n")
    result = blksum("-c", input=listed.replace(listed[:1], b"g" if listed[:1] == b"f" else b"f"))
    assert result.returncode == FAILED


def test_bytes_of_large_thin_images(blksum, workdir):
    """The zeros of the content are not the file's."""
    images.qemu_img("create", "-f", "qcow2", "thin.qcow2", "100G")
    listed = images.run("sha256sum", "thin.qcow2")
    assert found(blksum, "thin.qcow2", listed.split()[0].decode()) == ["bytes of the file"]
    assert blksum("-c", input=listed).returncode == OK
    # A file can be larger than its content, too.
    images.qemu_img("create", "-f", "qcow2", "sparse.qcow2", "1M")
    os.truncate("sparse.qcow2", 100 << 30)
    result = blksum("--expect", "0" * 64, "sparse.qcow2")
    assert result.returncode == FAILED
    assert b"the bytes of so large a file take long: -B tries them" in result.stderr


def test_appliances(blksum, workdir):
    with open("disk", "wb") as file:
        file.write(bytes(MIB) + random.Random(3).randbytes(MIB))
    names = ["a.ovf"]
    for count, disk in enumerate(["one.vmdk", "two.vmdk"], 1):
        images.qemu_img("convert", "-f", "raw", "-O", "vmdk", "-o", "subformat=streamOptimized", "disk", disk)
        names.append(disk)
        files = "".join(f'<File ovf:href="{name}" ovf:id="{name}"/>' for name in names[1:])
        disks = "".join(f'<Disk ovf:fileRef="{name}" ovf:diskId="{name}"/>' for name in names[1:])
        with open("a.ovf", "w", encoding="utf-8") as file:
            file.write(
                '<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" '
                'xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1">'
                f"<References>{files}</References><DiskSection>{disks}</DiskSection></Envelope>"
            )
        archive = f"{count}.ova"
        images.run("tar", "cf", archive, "--format=ustar", *names)
        value = images.run("sha256sum", archive).split()[0].decode()
        assert found(blksum, archive, value, f"SHA256 ({archive}) = {value}") == ["bytes of the file"] * 2
        result = blksum("--expect", nbdcopy_value((workdir / "disk").read_bytes()).hex(), archive)
        assert result.returncode == (OK if count == 1 else FAILED), result


def test_parts_are_of_whole_files(blksum, here, content):
    value, count = parts_value(content, MIB, "sha256")
    text = f"{value.hex()}-{count}"
    assert found(blksum, "disk.raw", text) == ["concat, blocks of 1 MiB"]
    with open("disk.raw", "rb") as file:
        assert found(blksum, "-", text, stdin=file) == ["concat, blocks of 1 MiB"]
    for options in [["--partition=1"], ["--partition=77"], ["--offset=512"], ["--length=1M"], ["--snapshot=x"]]:
        assert blksum(*options, "--expect", text, "disk.raw").returncode == FAILED, options
        line = f"SHA256 (x) = {hashlib.sha256(content).hexdigest()}"
        assert b"leave out --partition" in blksum(*options, "--expect", line, "disk.raw").stderr, options
    result = blksum("--expect", text, input=content)
    assert (result.returncode, result.stdout) == (FAILED, b"-: FAILED open or read\n")
    assert b"needs the size of a file" in result.stderr
    assert blksum("--block-size=4M", "--expect", text, "disk.raw").returncode == FAILED
    assert found(blksum, "disk.raw", text, options=["--block-size=1M"]) == ["concat, blocks of 1 MiB"]


def test_names_in_lists_of_images_are_not_trusted(blksum, workdir):
    os.mkfifo("fifo")
    with open("names", "wb") as file:
        file.write(b"fifo\0")
    with open("log", "w", encoding="utf-8") as file:
        file.write("0" * 64 + "\n")
    result = blksum("--expect-log=log", "--files0-from=names", timeout=20)
    assert (result.returncode, result.stdout) == (FAILED, b"fifo: FAILED open or read\n")


def test_lines_name_their_images(blksum, three):
    a, b, c = three
    lines = [f"{nbdcopy_value(three[name]).hex()}  {name}" for name in (c, a, b)]
    flags = [f"--expect={line}" for line in lines]
    result = blksum(*flags, a, b, c)
    assert (result.returncode, result.stdout.count(b"OK (flat)")) == (OK, 3), result


def test_a_pipe_in_two_lines(blksum, workdir, content):
    lines = "".join(f"{model(SPEC, 'sha256', *KINDS[kind]).hex()}  -\n" for kind in ["streams:4", "flat"])
    with open("SUMS", "w", encoding="utf-8") as file:
        file.write(lines)
    result = blksum("-c", "SUMS", input=content)
    assert (result.returncode, result.stdout) == (FAILED, b"-: OK\n-: FAILED open or read\n")
    assert b"was read for an earlier line" in result.stderr


def test_logs_with_prefixes(blksum, three):
    """As journals, containers and colours have them."""
    values = {name: nbdcopy_value(data).hex() for name, data in three.items()}
    prefixes = ["2026-11-25T10:00:01.123456789Z stdout F {}", "Nov 25 10:00:01 host virt-v2v[77]: {}", "\x1b[32m{}\x1b[0m"]
    log = "".join(prefix.format(value) + "\n" for prefix, value in zip(prefixes, values.values()))
    result = blksum("--expect-log=-", *values, input=log.encode())
    lines = [f"{name}: OK (flat, line {line})" for line, name in enumerate(values, 1)]
    assert (result.returncode, result.stdout.decode().splitlines(), result.stderr) == (OK, lines, b"")


# Check files.

NOTE = (
    "blksum: SUMS: note: has lines without a tag that are {}: --strict-construction takes them only as the "
    "options say\n"
)


def write_sums(text):
    with open("SUMS", "w", encoding="utf-8") as file:
        file.write(text)


def gnu(name, value):
    return f"{value if isinstance(value, str) else value.hex()}  {name}\n"


@pytest.fixture
def three(workdir):
    """Three images, and the content of each."""
    contents = {}
    for number, name in enumerate(["a.qcow2", "b.qcow2", "c.raw"]):
        data = bytes(KIB) + random.Random(number).randbytes(200 * KIB) + bytes(55 * KIB)
        raw = workdir / "c.raw"
        raw.write_bytes(data)
        if name.endswith("qcow2"):
            images.convert(raw, workdir / name)
        contents[name] = data
    return contents


def damage(name, offset=100 * KIB):
    if name.endswith("qcow2"):
        images.qemu_io(name, f"write -P 0x77 {offset} 512")
    else:
        with open(name, "r+b") as file:
            file.seek(offset)
            file.write(b"damage")


LISTS = {
    "sha256sum": (lambda name, data: images.run("sha256sum", name).decode(), "bytes of the file"),
    "md5sum": (lambda name, data: images.run("md5sum", name).decode(), "md5, bytes of the file"),
    "b2sum": (lambda name, data: images.run("b2sum", name).decode(), "blake2b512, bytes of the file"),
    "flat": (lambda name, data: gnu(name, nbdcopy_value(data)), "flat"),
    "flat-sha1": (lambda name, data: gnu(name, nbdcopy_value(data, "sha1")), "sha1, flat"),
    "streams:64": (lambda name, data: gnu(name, blkhash.checksum(data, construction="streams:64")), "streams:64"),
    "linear": (lambda name, data: gnu(name, hashlib.sha256(data).hexdigest()), "linear"),
    "base64": (lambda name, data: gnu(name, b64(nbdcopy_value(data))), "flat"),
    "oci": (lambda name, data: gnu(name, f"sha512:{hashlib.sha512(data).hexdigest()}"), "sha512, linear"),
    "blake3": (lambda name, data: gnu(name, blkhash.checksum(data, "blake3", "flat")), "blake3, flat"),
}


@pytest.mark.parametrize("kind", LISTS)
def test_lists_without_tags(blksum, three, kind):
    line, how = LISTS[kind]
    write_sums("".join(line(name, data) for name, data in three.items()))
    names = list(three)
    if how.endswith("bytes of the file"):
        write_sums("".join(line(name, three[name]) for name in names[:2]))
        names = names[:2]
    right = "".join(f"{name}: OK\n" for name in names).encode()
    for threads in ["--threads=1", "--threads=4"]:
        result = blksum("-c", "SUMS", threads)
        assert (result.returncode, result.stdout, result.stderr.decode()) == (OK, right, NOTE.format(how))
    for options in [["-q"], ["--status"]]:
        result = blksum("-c", *options, "SUMS")
        assert (result.returncode, result.stdout, result.stderr) == (OK, b"", b"")
    result = blksum("-c", "--json", "SUMS")
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert [entry["status"] for entry in objects] == ["ok"] * len(names)
    construction = how.split(", ")[-1].replace("bytes of the file", "linear")
    digest = how.split(", ")[0] if ", " in how else "sha256"
    assert {(entry["digest"], entry["construction"]) for entry in objects} == {(digest, construction)}
    strict = blksum("-c", "--strict-construction", "SUMS")
    assert strict.returncode == FAILED and b"OK" not in strict.stdout, strict

    damage("b.qcow2")
    result = blksum("-c", "SUMS")
    assert (result.returncode, result.stdout) == (FAILED, right.replace(b"b.qcow2: OK", b"b.qcow2: FAILED"))
    assert result.stderr.decode() == NOTE.format(how) + "blksum: WARNING: 1 computed checksum did NOT match\n"
    result = blksum("-c", "-q", "SUMS")
    assert (result.returncode, result.stdout) == (FAILED, b"b.qcow2: FAILED\n")
    result = blksum("-c", "--status", "SUMS")
    assert (result.returncode, result.stdout, result.stderr) == (FAILED, b"", b"")
    objects = [json.loads(line) for line in blksum("-c", "--json", "SUMS").stdout.splitlines()]
    assert [entry["status"] for entry in objects] == ["ok", "failed", "ok"][: len(names)]


@pytest.mark.parametrize("kind", ["flat", "linear"])
def test_each_check_file_has_its_note(blksum, three, kind):
    line, how = LISTS[kind]
    write_sums("".join(line(name, data) for name, data in three.items()))
    result = blksum("-c", "SUMS", "SUMS")
    assert (result.returncode, result.stderr.decode()) == (OK, NOTE.format(how) * 2)


def test_a_list_in_which_nothing_matches(blksum, three):
    write_sums("".join(gnu(name, "0" * 63 + "1") for name in three))
    result = blksum("-c", "SUMS")
    assert (result.returncode, result.stdout) == (FAILED, b"".join(b"%s: FAILED\n" % n.encode() for n in three))
    assert result.stderr.decode() == (
        "blksum: WARNING: 3 computed checksums did NOT match\n"
        "blksum: lines without a tag were tried as streams:4, streams:32, streams:64, flat, concat, linear, "
        "concat with blocks of 4 MiB and bytes of the file, with sha256, blake3, blake2b256, sha512-256, sha3-256 "
        "and blake2s256\n"
    )


def test_mixed_lists(blksum, three):
    a, b, c = three
    flat = nbdcopy_value(three[a]).hex()
    lines = [
        (gnu(a, flat), a, True),
        (f"BLKSUM-SHA256-STREAMS4-64K ({b}) = {blkhash.checksum(three[b]).hex()}\n", b, True),
        (images.run("sha256sum", "--tag", b).decode(), b, True),
        (images.run("md5sum", b).decode(), b, True),
        # A tag says all: nothing else is tried.
        (f"BLKSUM-SHA256-STREAMS4-64K ({a}) = {flat}\n", a, False),
        (f"SHA256 ({a}) = {flat}\n", a, False),
        (gnu(b, flat), b, False),
        (gnu(c, blkhash.checksum(three[c])), c, True),
        (gnu(a, f"sha256:{flat}"), a, True),
        (gnu(a, f"blake3:{flat}"), a, False),
        (f"BLKSUM-SHA256-FLAT-64K ({a}) = {b64(bytes.fromhex(flat))}\n", a, True),
    ]
    write_sums("".join(line for line, _, _ in lines))
    expected = "".join(f"{name}: {'OK' if is_ok else 'FAILED'}\n" for _, name, is_ok in lines)
    for threads in ["--threads=1", "--threads=3"]:
        result = blksum("-c", "SUMS", threads)
        assert (result.returncode, result.stdout.decode()) == (FAILED, expected), result
        assert result.stderr.decode() == NOTE.format("flat") + "blksum: WARNING: 4 computed checksums did NOT match\n"
    write_sums("".join(line for line, _, is_ok in lines if is_ok))
    assert blksum("-c", "SUMS").returncode == OK


def test_options_that_say_what_a_line_is(blksum, three):
    a = next(iter(three))
    values = {kind: blkhash.checksum(three[a], "sha256", kind) for kind in ["flat", "streams:4", "concat"]}
    write_sums(gnu(a, values["flat"]))
    cases = [
        ([], OK),
        (["--strict-construction"], FAILED),
        (["--strict-construction", "--construction=flat"], OK),
        (["--construction=flat"], OK),
        (["--construction=streams:4"], FAILED),
        (["-B"], FAILED),
        (["-d", "sha256:flat"], OK),
        (["-d", "sha256:streams:4"], FAILED),
        (["-d", "sha256"], OK),
        (["-d", "blake3"], FAILED),
    ]
    for options, status in cases:
        result = blksum("-c", *options, "SUMS")
        answer = f"{a}: OK\n" if status == OK else f"{a}: FAILED\n"
        assert (result.returncode, result.stdout.decode()) == (status, answer), (options, result)
    write_sums(gnu(a, values["streams:4"]))
    result = blksum("-c", "SUMS")
    assert (result.returncode, result.stdout.decode(), result.stderr) == (OK, f"{a}: OK\n", b"")


def test_missing_images_in_lists(blksum, three):
    a = next(iter(three))
    write_sums(gnu(a, nbdcopy_value(three[a])) + gnu("missing", "0" * 64) + gnu("gone", "0" * 128))
    result = blksum("-c", "SUMS")
    assert result.returncode == FAILED
    assert result.stdout.decode() == f"{a}: OK\nmissing: FAILED open or read\ngone: FAILED open or read\n"
    result = blksum("-c", "--ignore-missing", "SUMS")
    assert (result.returncode, result.stdout.decode()) == (OK, f"{a}: OK\n")


# Logs.


def log_of(values):
    """Returns a log as `virt-v2v -v` writes it, with nbdcopy's progress on lines that end in CR."""
    lines = [
        "virt-v2v: virt-v2v 2.9.3 (x86_64)",
        "libguestfs: trace: v2v: checksum \"sha256\" \"/boot/vmlinuz\" = \"" + "ab" * 32 + "\"",
        "ab" * 32 + "  /a/file/in/the/guest",
    ]
    for number, value in enumerate(values, 1):
        lines += [
            f"[  {40 + number}.3] Copying disk {number}/{len(values)}",
            "running nbdcopy '--blkhash' '--progress' '--flush' 'nbd+unix:///?socket=/tmp/v2v/in0' ...",
            "\r".join(f"█ {percent}% [{'*' * percent}{'-' * (100 - percent)}]" for percent in range(0, 101, 10)),
            value,
            "nbdcopy: nbd+unix:///?socket=/tmp/v2v/in0: nbd_close: pending=0 deadbeef",
        ]
    return "\n".join([*lines, "[  99.0] Finishing off", "rm -rf -- '/tmp/v2v'", ""]).encode()


def line_of(log, value):
    return 1 + [line.strip() for line in log.split(b"\n")].index(value.encode())


def test_log_of_virt_v2v(blksum, three):
    values = {name: nbdcopy_value(data).hex() for name, data in three.items()}
    a, b, c = three
    log = log_of([values[c], values[a], values[b]])
    with open("log", "wb") as file:
        file.write(log)
    right = {name: f"{name}: OK (flat, line {line_of(log, value)})\n" for name, value in values.items()}
    everything = "".join(right.values()).encode()
    result = blksum("--expect-log", "log", a, b, c)
    assert (result.returncode, result.stdout, result.stderr) == (OK, everything, b"")
    result = blksum("--expect-log", "-", a, b, c, input=log.replace(b"\n", b"\r\n"))
    assert (result.returncode, result.stdout, result.stderr) == (OK, everything, b"")
    result = blksum("--expect-log", "log", "-q", a, b, c)
    assert (result.returncode, result.stderr) == (OK, b"")
    # A line without an image is said.
    result = blksum("--expect-log", "log", b, a)
    assert (result.returncode, result.stdout.decode()) == (OK, right[b] + right[a])
    line = line_of(log, values[c])
    assert result.stderr.decode() == f"blksum: log: line {line}: no image that was named has {values[c]}\n"

    damage(b)
    result = blksum("--expect-log", "log", a, b, c)
    assert (result.returncode, result.stdout.decode()) == (FAILED, right[a] + f"{b}: FAILED\n" + right[c])
    said = result.stderr.decode().splitlines()
    assert said[0].startswith(f"blksum: {b}: does not match as streams:4, ") and len(said) == 2
    assert said[1] == f"blksum: log: line {line_of(log, values[b])}: no image that was named has {values[b]}"
    result = blksum("--expect-log", "log", "--json", a, b, c)
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == FAILED
    assert [entry["status"] for entry in objects] == ["ok", "failed", "ok"]
    assert objects[0]["digest"] == "sha256" and objects[0]["construction"] == "flat"
    assert objects[0]["tag_line"] == f"BLKSUM-SHA256-FLAT-64K ({a}) = {values[a]}"
    assert objects[1]["tag_line"] is None and objects[1]["construction"] is None


def test_digests_in_logs(blksum, three):
    """All that nbdcopy has: md5, sha1, sha256 and sha512, next to each other."""
    a, b, c = three
    values = [nbdcopy_value(three[a], "md5"), nbdcopy_value(three[b], "sha1"), nbdcopy_value(three[c], "sha512")]
    log = log_of([value.hex() for value in values])
    result = blksum("--expect-log=-", a, b, c, input=log)
    words = ["md5", "sha1", "sha512"]
    assert result.stdout.decode() == "".join(
        f"{name}: OK ({word}, flat, line {line_of(log, value.hex())})\n"
        for name, word, value in zip(three, words, values)
    )
    assert (result.returncode, result.stderr) == (OK, b"")


def test_equal_disks_in_logs(blksum, three):
    a, b, c = three
    shutil.copy(a, "same.qcow2")
    shutil.copy(a, "again.qcow2")
    value = nbdcopy_value(three[a]).hex()
    log = log_of([value, nbdcopy_value(three[b]).hex(), value])
    first = line_of(log, value)
    second = first + 10
    result = blksum("--expect-log=-", a, b, "same.qcow2", input=log)
    assert (result.returncode, result.stderr) == (OK, b"")
    assert f"{a}: OK (flat, line {first})\n".encode() in result.stdout
    assert f"same.qcow2: OK (flat, line {second})\n".encode() in result.stdout
    # One disk twice in the log, one image.
    result = blksum("--expect-log=-", a, b, input=log)
    assert result.returncode == OK
    assert result.stderr == b""
    # Three images, and two lines.
    result = blksum("--expect-log=-", "-q", a, "same.qcow2", "again.qcow2", input=log)
    warning = f"warning: line {first} is of {a}, same.qcow2 and again.qcow2"
    assert (result.returncode, result.stdout) == (OK, b"")
    assert result.stderr.decode() == f"blksum: standard input: {warning}\n"


def test_logs_without_values(blksum, three):
    a = next(iter(three))
    value = nbdcopy_value(three[a]).hex()
    for log in [
        b"",
        b"nothing\n",
        b"0" * 63 + b"\n",
        value[:16].encode() + b"\n",
        f"{value}  {a}\n".encode(),
        f"sha256:{value}\n".encode(),
        f"nbdcopy: {value}.\n".encode(),
        os.urandom(1000),
    ]:
        result = blksum("--expect-log=-", a, input=log)
        assert (result.returncode, result.stdout) == (FAILED, b""), log
        reason = "no line ends with a checksum of 32 to 128 hexadecimal digits"
        assert result.stderr.decode() == f"blksum: standard input: {reason}\n"
    for log, reason in [("missing", "No such file or directory"), (".", "Is a directory")]:
        result = blksum("--expect-log", log, a)
        assert (result.returncode, result.stdout) == (FAILED, b""), log
        assert result.stderr.decode() == f"blksum: {log}: {reason}\n"


# Output of values in the forms of others.


def test_base64_and_oci(blksum, three):
    a, b, c = three
    for digest in ["sha256", "sha512", "md5", "sha1", "blake3"]:
        linear = [digests.new(digest) for _ in three]
        for hasher, data in zip(linear, three.values()):
            hasher.update(data)
        values = dict(zip(three, (hasher.digest() for hasher in linear)))
        plain = "".join(f"{b64(value)}  {name}\n" for name, value in values.items())
        oci = "".join(f"{digest}:{value.hex()}  {name}\n" for name, value in values.items())
        tag = "".join(f"BLKSUM-{digest.upper()}-LINEAR ({name}) = {b64(v)}\n" for name, v in values.items())
        for options, text in [
            (["--base64"], plain),
            (["--base64", "--style=plain"], plain),
            (["--style=oci"], oci),
            (["--base64", "--tag"], tag),
            (["--base64", "--style=tag"], tag),
            (["--base64", "-z"], plain.replace("\n", "\0")),
        ]:
            result = blksum("-d", digest, "--construction=linear", *options, a, b, c)
            assert (result.returncode, result.stdout.decode()) == (OK, text), options
            if "-z" in options:
                continue
            for how in [[], ["-d", digest], ["-d", digest, "--construction=linear"]]:
                check = blksum("-c", *how, input=text.encode())
                answer = "".join(f"{name}: OK\n" for name in three)
                assert (check.returncode, check.stdout.decode()) == (OK, answer), (how, text, check)
            line = text.splitlines()[0]
            assert blksum("--expect", line, a).returncode == OK, line
    text = images.run("sh", "-c", f"openssl dgst -sha256 -binary {c} | base64").decode().strip()
    line = f"{text}  {c}\n".encode()
    assert blksum("--base64", "-B", c).stdout == line
    damage(c)
    assert blksum("-c", "-B", input=line).returncode == FAILED
    assert blksum("-c", input=line).returncode == FAILED


def test_default_construction_in_base64_and_oci(blksum, three):
    for name, data in three.items():
        value = blkhash.checksum(data)
        assert blksum("--base64", name).stdout.decode() == f"{b64(value)}  {name}\n"
        assert blksum("--style=oci", name).stdout.decode() == f"sha256:{value.hex()}  {name}\n"
        for options in [["--base64"], ["--style=oci"], ["--base64", "--tag"]]:
            output = blksum(*options, name).stdout
            check = blksum("-c", "--strict-construction", input=output)
            assert (check.returncode, check.stderr) == (OK, b""), output
            damaged = blksum("-c", input=output.replace(output[8:9], b"0" if output[8:9] != b"0" else b"1"))
            assert damaged.returncode == FAILED


# Which value is whose.


def test_several_images(blksum, three):
    a, b, c = three
    x, y, z = (nbdcopy_value(data).hex() for data in three.values())
    right = "".join(f"{name}: OK (flat)\n" for name in three)
    for values in [
        [x, y, z],
        [f"{c}={z}", f"{a}={x}", f"{b}={y}"],
        [f"{b}={y}", x, z],
        [x, z, f"{b}={y}"],
        [f"{b}={b64(bytes.fromhex(y))}", f"sha256:{x}", z],
    ]:
        result = blksum(*flags(values), a, b, c)
        assert (result.returncode, result.stdout.decode(), result.stderr) == (OK, right, b""), values
    result = blksum(*flags([y, x, z]), a, b, c)
    assert result.returncode == FAILED
    assert result.stdout.decode() == f"{a}: FAILED\n{b}: FAILED\n{c}: OK (flat)\n"
    # One image may have several values, and must have them all.
    linear = hashlib.sha512(three[a]).hexdigest()
    result = blksum(*flags([f"{a}={x}", f"{b}={y}", f"{a}={linear}"]), a, b)
    assert (result.returncode, result.stdout.decode()) == (
        OK,
        f"{a}: OK (flat)\n{a}: OK (sha512, linear)\n{b}: OK (flat)\n",
    )
    result = blksum(*flags([x, y]), a)
    assert (result.returncode, result.stdout.decode()) == (FAILED, f"{a}: OK (flat)\n{a}: FAILED\n")


def test_values_and_images_that_do_not_fit(blksum, three):
    a, b, c = three
    x, y, z = (nbdcopy_value(data).hex() for data in three.values())
    for args in [
        [*flags([x]), a, b],
        [*flags([x, y, z]), a, b],
        [*flags([f"{a}={x}"]), a, b],
        [*flags([f"{a}={x}", f"{b}={y}", z]), a, b],
        [*flags([f"{c}={z}"]), a],
        [*flags([f"{a}="]), a],
        [*flags([f"{a}={a}"]), a],
        [*flags([f"={x}"]), a],
        ["--expect", a],
        ["--expect", a, b],
        ["--expect", x, "-c", a],
        ["--expect", x, "--expect-log=log", a],
        ["--expect-log=log", "-c", a],
        ["--expect", x, "--tag", a],
        ["--expect", x, "--base64", a],
    ]:
        assert refused(blksum, *args), args


def test_names_with_odd_characters(blksum, workdir):
    data = bytes(KIB) + b"x" * 1000
    value = hashlib.sha256(data).hexdigest()
    for name in ["new\nline", "back\\slash", "a=b", f"{value}", " "]:
        with open(name, "wb") as file:
            file.write(data)
        # As sha256sum -c prints them: a backslash alone is no reason.
        escaped = name.replace("\n", "\\n")
        mark = "\\" if escaped != name else ""
        for text in [value, f"{name}={value}"]:
            result = blksum("--expect", text, "--", name)
            assert (result.returncode, result.stdout.decode()) == (OK, f"{mark}{escaped}: OK (linear)\n"), result
        result = blksum("--json", "--expect", value, "--", name)
        assert json.loads(result.stdout)["name"] == name
        wrong = blksum("--expect", "0" * 64, "--", name)
        assert (wrong.returncode, wrong.stdout.decode()) == (FAILED, f"{mark}{escaped}: FAILED\n")
        assert wrong.stderr.count(b"\n") == 1, wrong.stderr


def test_json(blksum, here, content):
    value = nbdcopy_value(content, "sha512").hex()
    result = blksum("--json", "--expect", value, "disk.qcow2")
    entry = json.loads(result.stdout)
    assert result.returncode == OK
    assert {key: entry[key] for key in ["name", "status", "expected", "digest", "construction", "block_size"]} == {
        "name": "disk.qcow2",
        "status": "ok",
        "expected": value,
        "digest": "sha512",
        "construction": "flat",
        "block_size": 64 * KIB,
    }
    assert entry["tag_line"] == f"BLKSUM-SHA512-FLAT-64K (disk.qcow2) = {value}"
    # The line to keep is one that -c and --expect take.
    for text in [value, hashlib.md5(content).hexdigest(), hashlib.sha1((here / "disk.qcow2").read_bytes()).hexdigest()]:
        line = json.loads(blksum("--json", "--expect", text, "disk.qcow2").stdout)["tag_line"]
        assert line.endswith(text)
        assert blksum("-c", input=line.encode()).stdout == b"disk.qcow2: OK\n"
        assert blksum("--expect", line, "disk.qcow2").returncode == OK
    wrong = json.loads(blksum("--json", "--expect", "0" * 64, "disk.qcow2").stdout)
    assert (wrong["status"], wrong["digest"], wrong["tag_line"]) == ("failed", None, None)
    tried = {(entry["digest"], entry["construction"], entry["block_size"], entry["bytes"]) for entry in wrong["tried"]}
    assert {("sha256", "flat", 64 * KIB, False), ("sha256", "linear", None, True)} <= tried
    missing = json.loads(blksum("--json", "--expect", "0" * 64, "missing").stdout)
    assert missing["status"] == "error"
