"""Images that must never be hashed by mistake: encrypted images, forbidden references."""

import json
import os
import pathlib
import struct
import subprocess

import pytest

import blkhash
import images
from commands import assert_refused
from references import letter_value, overlay, rename_data_file, write_raw

MIB = 1 << 20
SECRET = ("--object", "secret,id=s,data=password")


def test_in_a_list_the_other_images_go_on(blksum, workdir):
    images.create("b.img", "1M")
    set_incompatible("b.img", 40)
    for name in ("a.img", "c.img"):
        images.qemu_img("create", "-q", "-f", "raw", name, "1M")
    value = blkhash.checksum([MIB]).hex()
    result = blksum("a.img", "b.img", "c.img")
    assert result.returncode == 1
    assert result.stdout.decode() == f"{value}  a.img\n{value}  c.img\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["luks", "aes"])
def test_encrypted_qcow2(blksum, workdir, kind):
    extra = ",encrypt.iter-time=10" if kind == "luks" else ""
    options = f"encrypt.format={kind},encrypt.key-secret=s{extra}"
    images.qemu_img("create", "-q", *SECRET, "-f", "qcow2", "-o", options, "disk.qcow2", "1M")
    assert_refused(blksum("disk.qcow2"), "disk.qcow2", "encrypt")


def test_unknown_incompatible_feature(blksum, workdir):
    images.create("disk.qcow2", "1M")
    with open("disk.qcow2", "r+b") as file:
        file.seek(72)
        file.write(struct.pack(">Q", 1 << 40))
    assert_refused(blksum("disk.qcow2"), "disk.qcow2", "40")


def set_incompatible(path, bit):
    with open(path, "r+b") as file:
        file.seek(72)
        features = struct.unpack(">Q", file.read(8))[0]
        file.seek(72)
        file.write(struct.pack(">Q", features | 1 << bit))


def test_dirty_is_fine_to_read(blksum, workdir):
    images.create("disk.qcow2", "1M")
    images.qemu_io("disk.qcow2", "write -P 0x41 64k 64k")
    before = blksum("disk.qcow2")
    set_incompatible("disk.qcow2", 0)
    after = blksum("disk.qcow2")
    assert (after.returncode, after.stdout) == (0, before.stdout)


def test_corrupt_is_read_with_a_warning(blksum, workdir):
    images.create("disk.qcow2", "1M")
    images.qemu_io("disk.qcow2", "write -P 0x41 64k 64k")
    before = blksum("disk.qcow2")
    assert before.stderr == b""
    set_incompatible("disk.qcow2", 1)
    after = blksum("disk.qcow2")
    assert (after.returncode, after.stdout) == (0, before.stdout)
    assert b"disk.qcow2" in after.stderr and b"corrupt" in after.stderr


@pytest.mark.parametrize("extra", [1, 100, 511])
def test_virtual_size_that_is_no_multiple_of_512(blksum, workdir, extra):
    """The result is the same as with QEMU, or an error."""
    images.create("disk.qcow2", "1M")
    images.qemu_io("disk.qcow2", "write -P 0x41 0 1M")
    with open("disk.qcow2", "r+b") as file:
        file.seek(24)
        file.write(struct.pack(">Q", MIB - 512 + extra))
    raw = images.to_raw("disk.qcow2", workdir / "raw")
    result = blksum("disk.qcow2")
    if result.returncode == 0:
        assert result.stdout.split()[0].decode() == blkhash.file_checksum(raw).hex()
    else:
        assert_refused(result, "disk.qcow2", "512")


def test_feature_is_named_by_the_image_itself(blksum, workdir):
    """The feature name table gives the meaning of an unknown bit."""
    images.create("disk.qcow2", "1M")
    with open("disk.qcow2", "r+b") as file:
        header = file.read(4096)
        name = header.index(b"dirty bit")
        assert header[name - 2 : name] == b"\0\0"  # incompatible, bit 0
        file.seek(name - 1)
        file.write(bytes([50]) + b"flux condenser".ljust(46, b"\0"))
    set_incompatible("disk.qcow2", 50)
    assert_refused(blksum("disk.qcow2"), "disk.qcow2", "flux condenser")


@pytest.mark.parametrize("length", [4, 71, 72, 103, 104, 4096, 65536, 131072, 262143])
def test_truncated_qcow2(blksum, workdir, length):
    images.create("disk.qcow2", "1M")
    images.qemu_io("disk.qcow2", "write -P 1 0 64k")
    assert os.path.getsize("disk.qcow2") > 262144
    os.truncate("disk.qcow2", length)
    assert_refused(blksum("disk.qcow2"), "disk.qcow2")


# References to other files


@pytest.fixture
def tree(workdir):
    """outside.img, and a folder `in` whose images refer to it and to each other."""
    os.makedirs("in/deeper")
    write_raw("outside.img", b"o")
    write_raw("in/base.img", b"b")
    write_raw("in/deeper/base.img", b"d")
    return workdir


@pytest.mark.parametrize(
    "name", ["base.img", "./base.img", "deeper/base.img", "deeper/../base.img"]
)
def test_backing_beneath_the_folder(blksum, tree, name):
    path = overlay("in/top.qcow2", name)
    expected = letter_value(b"d" if name == "deeper/base.img" else b"b")
    assert blksum.hex(path) == expected
    assert blksum.hex("--follow=any", path) == expected
    # Relative to the image, not to the current folder.
    assert blksum.hex("top.qcow2", cwd="in") == expected
    assert blksum.hex(str(tree / path), cwd="/") == expected
    for option in ("--untrusted", "--follow=none"):
        assert_refused(blksum(option, path), path, name, "--follow")


def test_backing_outside_the_folder(blksum, tree):
    os.symlink("../outside.img", "in/link.img")
    os.symlink("..", "in/deeper/up")
    os.symlink(str(tree / "in/base.img"), "in/absolute-link.img")
    for name in ("../outside.img", "link.img", "deeper/up/../outside.img"):
        path = overlay("in/top.qcow2", name)
        assert_refused(blksum(path), path, name, "--follow=any")
        assert_refused(blksum("--untrusted", path), path, name, "--follow")
        assert blksum.hex("--follow=any", path) == letter_value(b"o"), name
    path = overlay("in/top.qcow2", str(tree / "outside.img"))
    assert_refused(blksum(path), path, str(tree / "outside.img"), "--follow=any")
    assert blksum.hex("--follow=any", path) == letter_value(b"o")


@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_a_filter_that_does_not_know_openat2(blksum, tree, error):
    """Older container runtimes answer calls that they do not know with EPERM, which is no permission of a file."""
    write_raw("in/base.raw", b"a")
    overlay("in/disk.qcow2", "base.raw")
    result = images.attempt("strace", "-f", "-o", "/dev/null", "-e", f"inject=openat2:error={error}", blksum.path, "in/disk.qcow2")
    assert result.returncode == 1 and result.stdout == b"", result
    assert b"openat2 (Linux 5.6)" in result.stderr and b"--follow=any" in result.stderr, result


def test_symbolic_link_that_stays_beneath(blksum, tree):
    os.symlink("deeper/base.img", "in/link.img")
    assert blksum.hex(overlay("in/top.qcow2", "link.img")) == letter_value(b"d")


def test_image_named_by_a_symbolic_link(blksum, tree):
    """As in QEMU, names are relative to the given name, not to the target of the link."""
    overlay("in/top.qcow2", "base.img")
    os.symlink("in/top.qcow2", "link.qcow2")
    theirs = subprocess.run(
        ["qemu-img", "convert", "-O", "raw", "link.qcow2", "raw"], capture_output=True
    )
    assert theirs.returncode == 1
    assert_refused(blksum("link.qcow2"), "link.qcow2", "base.img")


@pytest.mark.parametrize("option", [[], ["--follow=any"]], ids=["beneath", "any"])
@pytest.mark.parametrize(
    "name",
    [
        "json:{}",
        'json:{"driver":"raw","file":{"driver":"file","filename":"in/base.img"}}',
        *("nbd://localhost/disk", "nbd+unix:///disk?socket=/x", "nbd:localhost:10809"),
        *("http://localhost/disk.img", "https://localhost/disk.img", "ftp://localhost/x"),
        *("ssh://localhost/disk", "rbd:pool/disk", "iscsi://localhost/x/1", "gluster://h/v/i"),
        *("fat:/tmp", "file:base.img", "host_device:/dev/null", "blkdebug::base.img"),
        "null-co://",
    ],
)
def test_protocols_are_always_refused(blksum, tree, name, option):
    path = overlay("in/top.qcow2", name)
    # Even if a file of that name exists.
    if "/" not in name:
        write_raw(f"in/{name}", b"x")
    result = blksum(*option, path)
    assert_refused(result, path)
    assert name in result.stderr.decode() or json.dumps(name)[1:-1] in result.stderr.decode()


@pytest.mark.parametrize("option", [[], ["--follow=any"]], ids=["beneath", "any"])
def test_backing_file_that_is_no_file(blksum, tree, option):
    os.mkfifo("in/fifo")
    os.mkdir("in/folder")
    for name in ("fifo", "folder", "/dev/zero", "/dev/null", "missing.img"):
        path = overlay("in/top.qcow2", name)
        assert_refused(blksum(*option, path, timeout=20), path, name)


def test_backing_without_a_recorded_format(blksum, tree):
    path = overlay("in/top.qcow2", "base.img")
    forget_backing_format(path)
    assert b"backing file format" not in images.qemu_img("info", "-U", path)
    assert_refused(blksum(path), path, "base.img", "--backing-format")
    assert_refused(blksum("--follow=any", path), path, "base.img", "--backing-format")
    assert blksum.hex("--backing-format", "raw", path) == letter_value(b"b")
    assert_refused(blksum("--backing-format=raw", "--untrusted", path), path, "--follow")
    # The format is not guessed from the content.
    images.create("in/base.qcow2", "1M")
    path = overlay("in/top2.qcow2", "base.qcow2", "qcow2")
    forget_backing_format(path)
    assert_refused(blksum(path), path, "base.qcow2", "--backing-format")
    assert blksum.hex("--backing-format=qcow2", path) == letter_value(b"\0")


def forget_backing_format(path):
    """Ends the list of extensions before the one with the format."""
    with open(path, "r+b") as file:
        header = file.read(4096)
        file.seek(header.index(bytes.fromhex("e2792aca")))
        file.write(bytes(4))


def test_recorded_format_is_believed_not_probed(blksum, tree):
    """A guest that writes a qcow2 header into its raw disk gains nothing."""
    images.create("in/evil.img", "2M")
    os.truncate("in/evil.img", MIB)
    path = overlay("in/top.qcow2", "evil.img", "raw")
    data = pathlib.Path("in/evil.img").read_bytes()
    assert data.startswith(b"QFI\xfb") and len(data) == MIB
    assert blksum.hex(path) == blkhash.checksum(data).hex()
    # Conversely, a backing file recorded as qcow2 must be qcow2.
    path = overlay("in/top.qcow2", "base.img", "qcow2")
    assert_refused(blksum(path), "base.img", "qcow2")


@pytest.mark.parametrize("base_size, top_size", [("1M", "3M"), ("3M", "1M"), ("1000k", "3333k")])
def test_backing_of_another_size(blksum, workdir, base_size, top_size):
    images.create("base.qcow2", base_size)
    images.qemu_io("base.qcow2", f"write -P 0x41 0 {base_size}")
    images.create("top.qcow2", top_size, "-b", "base.qcow2", "-F", "qcow2")
    images.qemu_io("top.qcow2", "write -P 0x42 100k 1k")
    raw = images.to_raw("top.qcow2", workdir / "raw")
    assert blksum.hex("top.qcow2") == blkhash.file_checksum(raw).hex()


def test_raw_backing_of_odd_size(blksum, workdir):
    write_raw("base.img", b"b", 100_001)
    overlay("top.qcow2", "base.img")
    raw = images.to_raw("top.qcow2", workdir / "raw")
    assert blksum.hex("top.qcow2") == blkhash.file_checksum(raw).hex()


def test_chain_of_sixteen(blksum, workdir):
    images.create("0.qcow2", "2M")
    for n in range(1, 17):
        images.create(f"{n}.qcow2", "2M", "-b", f"{n - 1}.qcow2", "-F", "qcow2")
        images.qemu_io(f"{n}.qcow2", f"write -P {n} {n * 100}k 64k")
    raw = images.to_raw("16.qcow2", workdir / "raw")
    assert blksum.hex("16.qcow2") == blkhash.file_checksum(raw).hex()


def test_chain_of_two_thousand_is_an_answer_or_an_error(blksum, workdir):
    """Needs no recursion and few descriptors. The result is the value, or an error that names the limit."""
    template = overlay("n00000.qcow2", "n00001.qcow2", "qcow2", "64k")
    data = pathlib.Path(template).read_bytes()
    for n in range(2000):
        with open(f"n{n:05}.qcow2", "wb") as file:
            file.write(data.replace(b"n00001.qcow2", b"n%05d.qcow2" % (n + 1)))
    images.create("n02000.qcow2", "64k")
    result = blksum("n00000.qcow2", timeout=60)
    if result.returncode == 0:
        assert result.stdout.split()[0].decode() == letter_value(b"\0", 65536)
    else:
        assert_refused(result, "n00000.qcow2", "chain")


@pytest.mark.parametrize("names", [["a"], ["a", "b"], ["a", "b", "c"]], ids="".join)
def test_chain_that_is_a_loop(blksum, workdir, names):
    for name, below in zip(names, [*names[1:], names[0]]):
        # qemu-img refuses to name an image as its own backing file.
        os.rename(overlay("new", f"{below}.qcow2", "qcow2"), f"{name}.qcow2")
    for option in ([], ["--follow=any"]):
        assert_refused(blksum(*option, "a.qcow2", timeout=20), "a.qcow2")


def test_loop_through_a_hard_link(blksum, workdir):
    overlay("a.qcow2", "b.qcow2", "qcow2")
    os.link("a.qcow2", "b.qcow2")
    assert_refused(blksum("a.qcow2", timeout=20), "a.qcow2")


# External data files


@pytest.fixture
def data_file(workdir):
    """in/disk.qcow2 with its data in in/disk.data."""
    os.mkdir("in")
    write_raw("raw", b"r")
    images.convert_data_file(workdir / "raw", workdir / "in/disk.qcow2", "data_file_raw=on")
    return workdir


def test_data_file(blksum, data_file):
    assert blksum.hex("in/disk.qcow2") == letter_value(b"r")
    assert_refused(blksum("--untrusted", "in/disk.qcow2"), "in/disk.qcow2", "disk.data", "--follow")


def test_data_file_missing(blksum, data_file):
    os.unlink("in/disk.data")
    assert_refused(blksum("in/disk.qcow2"), "in/disk.qcow2", "disk.data", "No such file")


def test_data_file_that_is_no_file(blksum, data_file):
    os.unlink("in/disk.data")
    os.mkfifo("in/disk.data")
    assert_refused(blksum("in/disk.qcow2", timeout=20), "in/disk.qcow2", "disk.data")
    rename_data_file("in/disk.qcow2", b"disk.data", b"/dev/zero")
    assert_refused(blksum("--follow=any", "in/disk.qcow2", timeout=20), "/dev/zero")


def test_data_file_shorter_than_the_tables_say(blksum, data_file):
    os.truncate("in/disk.data", MIB // 2)
    assert_refused(blksum("in/disk.qcow2"), "disk.data")
