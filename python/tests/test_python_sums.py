"""Check files, and ranges of images, compared with blksum, sha256sum and others."""

import hashlib
import os
import pathlib
import random
import subprocess
import threading

import images
import pytest
from conftest import BLKSUM, blksum, run

import blkhash


@pytest.fixture
def files(workdir):
    """Images with the same content, and with other content."""
    images.from_spec("64k:A 1m:- 100k:# 28k:0 3m:B", workdir / "spec.qcow2")
    images.to_raw(workdir / "spec.qcow2", workdir / "disk.raw")
    images.convert(workdir / "disk.raw", workdir / "disk.qcow2")
    # Noise alone may be a list of digests.
    (workdir / "other.raw").write_bytes(bytes(4096) + random.Random(1).randbytes(1 << 20))
    return workdir


def verdicts(*args, **kwargs):
    return [it.verdict for it in blkhash.verify_sums(*args, **kwargs)]


def status(*args):
    """The exit status of `blksum -c`."""
    return subprocess.run([BLKSUM, "-c", *args], stdin=subprocess.DEVNULL, capture_output=True).returncode


@pytest.mark.parametrize(
    "program",
    [
        ["sha256sum"],
        ["sha256sum", "-b"],
        ["sha256sum", "--tag"],
        ["md5sum"],
        ["sha512sum"],
        ["b2sum"],
        ["b2sum", "--tag", "-l", "256"],
        ["b3sum"],
        ["openssl", "dgst", "-sha256"],
        ["cksum", "-a", "sha224"],
        [BLKSUM],
        [BLKSUM, "--tag"],
        [BLKSUM, "--tag", "-d", "blake3", "--construction", "flat"],
        [BLKSUM, "--construction", "concat", "--block-size", "4M"],
        [BLKSUM, "--base64"],
        [BLKSUM, "--style", "oci", "-d", "sha512"],
    ],
    ids=lambda it: " ".join(pathlib.Path(part).name for part in it),
)
def test_lists_of_other_programs(files, program):
    names = ["disk.raw", "disk.qcow2", "other.raw"]
    pathlib.Path("SUMS").write_text(run(*program, *names))
    assert [it.name for it in blkhash.read_sums("SUMS")] == names
    verified = blkhash.verify_sums("SUMS")
    assert [(it.name, it.verdict, it.reason) for it in verified] == [(name, "ok", None) for name in names]
    assert verified.is_ok and verified.malformed == () and status("SUMS") == 0
    # What a line turned out to be of is a tag that the command takes for the same value.
    tagged = "".join(blkhash.sum_line(it.name, it.hexdigest, it.tag) for it in verified)
    pathlib.Path("TAGGED").write_text(tagged)
    assert run(BLKSUM, "-c", "TAGGED") == "".join(f"{name}: OK\n" for name in names)
    # Each image differs from its line.
    with open("disk.raw", "r+b") as file:
        file.write(b"?")
    images.qemu_io("disk.qcow2", "write -P 0x3f 0 1")
    with open("other.raw", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    verified = blkhash.verify_sums("SUMS")
    assert [it.verdict for it in verified] == ["failed"] * 3 and not verified.is_ok
    assert all(it.reason for it in verified)
    assert status("SUMS") == 1


def test_lines_say_what_they_are(files):
    digest = "0" * 64
    text = (
        f"# comment\n{digest}  a\nnonsense\nsha512:{'1' * 128}  b\nSHA1 (c) = {'2' * 40}\n"
        f"BLKSUM-SHA256-STREAMS4-64K/PARTITION=2 (d) = {digest}\n\\{digest}  e\\nf\n"
    )
    pathlib.Path("SUMS").write_text(text)
    sums = blkhash.read_sums("SUMS")
    assert sums.malformed == (3,)
    assert [tuple(it) for it in sums] == [
        ("a", digest, None, None),
        ("b", "1" * 128, None, "sha512"),
        ("c", "2" * 40, "SHA1", None),
        ("d", digest, "BLKSUM-SHA256-STREAMS4-64K/PARTITION=2", None),
        ("e\nf", digest, None, None),
    ]
    assert [it.tag for it in blkhash.read_sums("SUMS", of_files=True)][0] == "SHA256"


def test_text_of_windows(files):
    os.mkdir("folder")
    os.rename("disk.raw", "folder/disk.raw")
    value = blksum("folder/disk.raw")
    text = f"{value}  folder\\disk.raw\r\n"
    for encoding in ("utf-16", "utf-8-sig", "utf-8"):
        pathlib.Path("SUMS").write_bytes(text.encode(encoding))
        verified = blkhash.verify_sums("SUMS")
        assert [(it.name, it.verdict) for it in verified] == [("folder/disk.raw", "ok")], encoding
    pathlib.Path("SUMS").write_bytes(text.encode("utf-16-le"))
    with pytest.raises(blkhash.SumsError, match="UTF-16LE without a byte order mark"):
        blkhash.read_sums("SUMS")


def test_names_that_are_not_text(files):
    name = os.fsdecode(b"disk \xff\\\n.raw")
    os.rename("disk.raw", name)
    result = blkhash.checksum(name)
    line = blkhash.sum_line(name, result.hexdigest, result.tag)
    assert os.fsencode(line) == subprocess.run([BLKSUM, "--tag", os.fsencode(name)], capture_output=True, check=True).stdout
    pathlib.Path("SUMS").write_bytes(os.fsencode(line))
    assert [(it.name, it.verdict) for it in blkhash.verify_sums("SUMS")] == [(name, "ok")]


def test_names_are_relative_to_a_folder(files):
    os.mkdir("lists")
    pathlib.Path("lists/SUMS").write_text(run("sha256sum", "disk.qcow2"))
    assert verdicts("lists/SUMS") == ["ok"]
    os.chdir("lists")
    verified = blkhash.verify_sums("SUMS")
    assert [it.verdict for it in verified] == ["missing"] and not verified.is_ok
    assert blkhash.verify_sums(pathlib.Path("SUMS"), folder="..").is_ok
    assert blkhash.verify_sums("SUMS", folder=files).is_ok


def test_missing_images(files):
    pathlib.Path("SUMS").write_text(run("sha256sum", "disk.qcow2") + f"{'0' * 64}  missing\n")
    verified = blkhash.verify_sums("SUMS")
    assert [it.verdict for it in verified] == ["ok", "missing"] and not verified.is_ok
    assert "No such file" in verified[1].reason
    assert blkhash.verify_sums("SUMS", ignore_missing=True).is_ok
    os.remove("disk.qcow2")
    # Nothing was verified.
    assert not blkhash.verify_sums("SUMS", ignore_missing=True).is_ok


def test_lines_that_are_not_of_the_whole_image(files):
    pathlib.Path("partitioned.raw").write_bytes(random.Random(2).randbytes(8 << 20))
    run("sfdisk", "-q", "partitioned.raw", input="label: gpt\nsize=2MiB\nsize=1MiB\n", stdin=None)
    for options, arguments in [
        (["--partition", "2"], {"partition": 2}),
        (["--offset", "1M", "--length", "64k"], {"offset": 1 << 20, "length": 64 << 10}),
        (["--offset", "2M"], {"offset": 2 << 20}),
        (["-f", "raw"], {"format": "raw"}),
    ]:
        expected = run(BLKSUM, "--tag", *options, "partitioned.raw")
        result = blkhash.checksum("partitioned.raw", **arguments)
        assert blkhash.sum_line("partitioned.raw", result.hexdigest, result.tag) == expected
        with blkhash.Image("partitioned.raw", **arguments) as image:
            assert image.checksum() == result and image.size == result.size
        pathlib.Path("SUMS").write_text(expected)
        assert verdicts("SUMS") == ["ok"]
    pathlib.Path("SUMS").write_text(run(BLKSUM, "--tag", "--partition", "2", "partitioned.raw"))
    (it,) = blkhash.verify_sums("SUMS", partition=1)
    assert (it.verdict, it.reason) == ("error", "its checksum is of another part: leave out partition")
    pathlib.Path("SUMS").write_text(run("sha256sum", "--tag", "partitioned.raw"))
    (it,) = blkhash.verify_sums("SUMS", partition=1)
    assert it.verdict == "error" and "whole file" in it.reason


def test_snapshots(files):
    images.qemu_img("snapshot", "-c", "before upgrade", "disk.qcow2")
    images.qemu_io("disk.qcow2", "write -P 9 0 64k")
    result = blkhash.checksum("disk.qcow2", snapshot="before upgrade")
    line = blkhash.sum_line("disk.qcow2", result.hexdigest, result.tag)
    assert line == run(BLKSUM, "--tag", "--snapshot", "before upgrade", "disk.qcow2")
    pathlib.Path("SUMS").write_text(line + run(BLKSUM, "--tag", "disk.qcow2"))
    assert verdicts("SUMS") == ["ok", "ok"]


def test_the_sizes_of_a_vpc_image(files):
    """A tag says which of two sizes was read, as the command's does."""
    images.qemu_img("create", "-q", "-f", "vpc", "-o", "force_size=off", "disk.vhd", "5000000")
    for vpc_size in ("auto", "geometry", "current"):
        result = blkhash.checksum("disk.vhd", vpc_size=vpc_size)
        assert result.hexdigest == blksum("--vpc-size", vpc_size, "disk.vhd")
        pathlib.Path("SUMS").write_text(blkhash.sum_line("disk.vhd", result.hexdigest, result.tag))
        assert verdicts("SUMS") == ["ok"] and status("SUMS") == 0, result.tag


def test_ranges(files):
    content = pathlib.Path("disk.raw").read_bytes()
    rng = random.Random(1)
    for _ in range(20):
        offset = rng.randrange(len(content))
        length = rng.choice([None, rng.randrange(len(content) - offset)])
        part = content[offset:] if length is None else content[offset : offset + length]
        for name in ("disk.raw", "disk.qcow2"):
            result = blkhash.checksum(name, construction="linear", offset=offset, length=length)
            assert (result.hexdigest, result.size) == (hashlib.sha256(part).hexdigest(), len(part))
            with blkhash.Image(name, offset=offset, length=length) as image:
                assert (image.offset, image.size, image.partition) == (offset, len(part), None)
                assert image.read(0, 1 << 30) == part
    # A tag holds whole sectors.
    assert blkhash.checksum("disk.raw", offset=1).tag is None
    assert blkhash.checksum("disk.raw", offset=512, length=1024).tag == "BLKSUM-SHA256-STREAMS4-64K/OFFSET=512/LENGTH=1024"
    for arguments in ({"offset": len(content) + 1}, {"offset": 0, "length": len(content) + 1}, {"offset": 1 << 63, "length": 1 << 63}):
        with pytest.raises(ValueError, match="past the end of the image"):
            blkhash.checksum("disk.raw", **arguments)
    with pytest.raises(TypeError, match="excludes"):
        blkhash.Image("disk.raw", partition=1, offset=512)
    with pytest.raises(OverflowError):
        blkhash.Image("disk.raw", offset=-1)
    # These look at a disk, whose beginning would be elsewhere.
    map = blkhash.create_map("disk.raw", "disk.blkmap")
    with blkhash.Image("disk.raw", offset=512) as image:
        for work in (
            lambda: blkhash.check(image),
            lambda: blkhash.btrfs_verify(image),
            lambda: blkhash.create_map(image, "part.blkmap"),
            lambda: blkhash.update_map(map, image, "part.blkmap", []),
            lambda: map.verify(image),
            lambda: map.audit(image, []),
        ):
            with pytest.raises(ValueError, match="is a range of an image"):
                work()
    assert not os.path.exists("part.blkmap")


def test_uris_are_named_only_if_that_is_allowed(files, servers):
    uri = servers.qemu_nbd("disk.raw").uri()
    value = blksum("disk.raw")
    pathlib.Path("SUMS").write_text(f"BLKSUM-SHA256-STREAMS4-64K ({uri}) = {value}\n")
    (it,) = blkhash.verify_sums("SUMS")
    assert (it.verdict, it.reason) == ("error", "is a URI, which a check file may name only with allow_uri=True")
    (it,) = blkhash.verify_sums("SUMS", allow_uri=True)
    assert (it.verdict, it.reason) == ("ok", None)
    pathlib.Path("SUMS").write_text(f"{'0' * 64}  nbd+unix:///?socket=missing\n")
    (it,) = blkhash.verify_sums("SUMS", allow_uri=True)
    assert it.verdict in ("missing", "error") and "allow_uri" not in it.reason


def test_what_is_no_check_file(files):
    for content, reason in [
        (b"", "has no line"),
        (b"nothing\nof the kind\n", "has no line"),
        (pathlib.Path("disk.qcow2").read_bytes(), "is an image in the format qcow2"),
        (b"\x7fELF\0\0", "has NUL bytes"),
    ]:
        pathlib.Path("SUMS").write_bytes(content)
        for function in (blkhash.read_sums, blkhash.verify_sums):
            with pytest.raises(blkhash.SumsError, match=f"SUMS: {reason}") as caught:
                function("SUMS")
            assert caught.value.filename == "SUMS" and isinstance(caught.value, blkhash.Error)
        assert status("SUMS") == 1
    for function in (blkhash.read_sums, blkhash.verify_sums):
        with pytest.raises(FileNotFoundError) as caught:
            function("missing")
        assert (caught.value.filename, caught.value.errno) == ("missing", 2)
        with pytest.raises(IsADirectoryError):
            function(".")


def test_lines_of_later_versions_are_not_passed_over(files):
    text = run(BLKSUM, "--tag", "disk.raw")
    pathlib.Path("SUMS").write_text(text + f"BLKSUM-SHA999-STREAMS4-64K (disk.raw) = {'0' * 64}\n")
    verified = blkhash.verify_sums("SUMS")
    assert ([it.verdict for it in verified], verified.malformed, verified.is_ok) == (["ok"], (2,), False)
    assert status("SUMS") == 1
    pathlib.Path("SUMS").write_text(text + "nothing\n")
    verified = blkhash.verify_sums("SUMS")
    assert (verified.malformed, verified.is_ok) == ((2,), True) and status("SUMS") == 0


def test_values_that_prove_nothing(files):
    """A file that is the list of digests of the blocks of an image has the same value as that image."""
    block = pathlib.Path("other.raw").read_bytes()
    digests = b"".join(hashlib.sha256(block[at : at + 65536]).digest() for at in range(0, len(block), 65536))
    pathlib.Path("digests").write_bytes(digests)
    value = hashlib.sha256(digests).hexdigest()
    pathlib.Path("SUMS").write_text(f"{value}  digests\n")
    assert verdicts("SUMS") == ["undecided"] and status("SUMS") == 1


def test_images_whose_content_cannot_be_read(files):
    """The bytes of the file are compared all the same, as the command does."""
    images.qemu_img("create", "-q", "-f", "qcow2", "-b", "disk.qcow2", "-F", "qcow2", "overlay.qcow2")
    pathlib.Path("SUMS").write_text(run("sha256sum", "overlay.qcow2"))
    os.remove("disk.qcow2")
    (it,) = blkhash.verify_sums("SUMS")
    assert it.verdict == "ok" and status("SUMS") == 0
    pathlib.Path("SUMS").write_text(f"{'0' * 64}  overlay.qcow2\n")
    (it,) = blkhash.verify_sums("SUMS")
    assert it.verdict == "error" and "disk.qcow2" in it.reason


def test_lines_that_cannot_be_written(files):
    for arguments, reason in [
        (("a", "xyz"), "hexadecimal"),
        (("a", ""), "hexadecimal"),
        (("a", "00", "NOTHING"), "unknown tag"),
        (("a", "00", "SHA256"), "has 32 bytes"),
        (("", "00" * 32), "has a name"),
        (("a\0", "00" * 32), "null byte"),
    ]:
        with pytest.raises(ValueError, match=reason):
            blkhash.sum_line(*arguments)
    assert blkhash.sum_line("", "00" * 32, "SHA256") == f"SHA256 () = {'00' * 32}\n"
    assert blkhash.sum_line(pathlib.Path("a"), "AB" * 32) == f"{'ab' * 32}  a\n"


def test_tags_of_checksums(files):
    assert blkhash.checksum("disk.raw").tag == "BLKSUM-SHA256-STREAMS4-64K"
    assert blkhash.checksum("disk.raw", "null").tag is None
    assert blkhash.checksum("disk.raw", ["sha256", "md5"]).tag is None
    assert blkhash.checksum("disk.raw", construction="dm-verity", salt=b"\1\2").tag == "BLKSUM-SHA256-DMVERITY-4K-SALT0102"


def test_cancel_and_progress(files):
    pathlib.Path("SUMS").write_text(run("sha256sum", "disk.raw", "other.raw"))
    calls = []
    assert blkhash.verify_sums("SUMS", of_files=True, progress=lambda *call: calls.append(call)).is_ok
    total = sum(os.path.getsize(name) for name in ("disk.raw", "other.raw"))
    assert calls[-1] == (total, total)
    stop = threading.Event()
    stop.set()
    with pytest.raises(blkhash.CancelledError):
        blkhash.verify_sums("SUMS", cancel=stop)
