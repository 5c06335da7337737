"""Formats read through qemu-nbd: equal checksums, references in headers, and cleanup."""

import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

import blkhash
import dmg_images
import foreign_images
import images
import imagespec
from conftest import mostly_slow

MIB = 1 << 20
SPEC = "192k:A 3m:- 1m:# 2m:0 832k:# 1m:-"
SECRET = b"open sesame"

# Format, options and flags of qemu-img convert for each name.
FORMATS = {
    "vmdk": ("vmdk", "", ()),
    "vmdk-flat": ("vmdk", "subformat=monolithicFlat", ()),
    "vmdk-split-sparse": ("vmdk", "subformat=twoGbMaxExtentSparse", ()),
    "vmdk-split-flat": ("vmdk", "subformat=twoGbMaxExtentFlat", ()),
    "vmdk-stream": ("vmdk", "subformat=streamOptimized", ()),
    "vdi": ("vdi", "", ()),
    "vdi-static": ("vdi", "static=on", ()),
    "vhdx": ("vhdx", "", ()),
    "vhdx-fixed": ("vhdx", "subformat=fixed", ()),
    "vpc": ("vpc", "force_size=on", ()),
    "vpc-fixed": ("vpc", "subformat=fixed,force_size=on", ()),
    "qed": ("qed", "", ()),
    "parallels": ("parallels", "", ()),
    "qcow1": ("qcow", "", ()),
    "qcow1-compressed": ("qcow", "", ("-c",)),
    "luks": ("luks", "key-secret=s,iter-time=10", ("--object", "secret,id=s,file=secret")),
}
FOREIGN = {
    "cloop": foreign_images.cloop,
    "bochs": foreign_images.bochs,
    "dmg": dmg_images.dmg,
}
SPLIT = ("vmdk-flat", "vmdk-split-sparse", "vmdk-split-flat")


def assert_refused(result, *words):
    """Checks for an error of one line with these words, and no checksum."""
    assert (result.returncode, result.stdout) == (1, b""), result
    message = result.stderr.decode("utf-8", "replace")
    for word in words:
        assert word in message, (word, message)
    assert message.count("\n") == 1 and "panic" not in message, message


@pytest.fixture(scope="module")
def content():
    return b"".join(
        bytes(piece) if isinstance(piece, int) else piece for piece in imagespec.chunks(SPEC)
    )


@pytest.fixture(scope="module")
def value(content):
    return blkhash.checksum(content).hex()


@pytest.fixture
def raw(workdir, content):
    path = workdir / "content.img"
    path.write_bytes(content)
    (workdir / "secret").write_bytes(SECRET)
    return path


def make(name, raw, path):
    """Converts the content to a format, at a path beside the file `secret`."""
    if name in FOREIGN:
        pathlib.Path(path).write_bytes(FOREIGN[name](raw.read_bytes()))
        return path
    fmt, options, flags = FORMATS[name]
    options = ("-o", options) if options else ()
    convert = ("convert", "-q", "-f", "raw", "-O", fmt, *flags, *options, raw, path)
    if name == "qcow1-compressed":
        # QEMU 7.2 fails at the very end without a message, so check whether the image is complete.
        images.attempt("qemu-img", *map(str, convert))
        images.qemu_img("compare", "-f", "raw", "-F", fmt, raw, path)
    elif name == "luks":
        # Key derivation is slow, so create one image for each content.
        made = raw.parent.parent / (blkhash.file_checksum(raw).hex() + ".luks")
        if not made.exists():
            images.qemu_img(*convert[:-1], made)
        shutil.copy(made, path)
    else:
        images.qemu_img(*convert)
    return path


def options_for(name):
    return ["--secret-file", "secret"] if name == "luks" else []


# QEMU derives the key of an encrypted image from its password for seconds.
@pytest.mark.parametrize("name", mostly_slow([*FORMATS, *FOREIGN], {*FORMATS, *FOREIGN} - {"luks"}))
def test_one_content_one_checksum(blksum, raw, content, value, name):
    path = make(name, raw, "disk.img")
    fmt = FORMATS[name][0] if name in FORMATS else name
    if name in FOREIGN:
        images.qemu_img("convert", "-f", fmt, "-O", "raw", path, "theirs.raw")
        assert pathlib.Path("theirs.raw").read_bytes() == content
    args = options_for(name)
    assert blksum.hex(*args, path) == value
    for extra in (["-f", fmt], ["--cache=no"], ["-U"], ["--holes=verify"], ["--threads=1"]):
        assert blksum.hex(*args, *extra, path) == value, extra
    result = json.loads(blksum(*args, "--json", path).stdout)
    assert (result["format"], result["virtual_size"]) == (fmt, len(content))
    # Only the descriptors of split disks name files.
    untrusted = blksum(*args, "--untrusted", path)
    if name in SPLIT:
        assert_refused(untrusted, path, "names the extent", "--follow")
    else:
        assert untrusted.stdout.startswith(value.encode()), untrusted
    # The file name does not matter. The end of a pipe is unknown, so only a fixed vpc would work there.
    os.rename(path, "disk.raw")
    assert blksum.hex(*args, "disk.raw") == value
    os.rename("disk.raw", path)
    if name not in ("vpc-fixed", "dmg"):
        piped = blksum(*args, input=pathlib.Path(path).read_bytes())
        assert_refused(piped, "standard input is a pipe", fmt, "-f raw")
    # The file's own bytes, read without QEMU.
    own = blkhash.file_checksum(path).hex()
    assert blksum.hex("-f", "raw", path, env={"PATH": "/nowhere"}) == own


@pytest.mark.parametrize("name", ["vmdk", "vmdk-split-flat", "vhdx", "luks"])
@pytest.mark.parametrize("folder", ["a, b: c", "it's \"x\"", "json:{}", "nbd:x", "100%25\\"])
def test_names_are_never_interpreted(blksum, raw, value, name, folder):
    os.mkdir(folder)
    shutil.copy("secret", f"{folder}/secret")
    cwd = os.getcwd()
    os.chdir(folder)
    path = make(name, raw, "disk,x.img")
    os.chdir(cwd)
    args = options_for(name)
    result = blksum(*args, f"./{folder}/{path}")
    assert (result.returncode, result.stdout.split()[0].lstrip(b"\\")) == (0, value.encode()), result
    assert blksum.hex(*args, path, cwd=folder) == value


@pytest.mark.parametrize("name", ["vmdk", "vmdk-flat", "vdi", "vpc-fixed", "cloop"])
def test_standard_input(blksum, raw, value, name):
    path = make(name, raw, "disk.img")
    with open(path, "rb") as file:
        assert blksum.hex(*options_for(name), stdin=file) == value


def test_check_mode(blksum, raw, value):
    names = ["vmdk-flat", "vdi", "vhdx", "qed", "dmg"]
    for name in names:
        make(name, raw, name)
    result = blksum("--tag", *names)
    assert result.returncode == 0
    assert blksum("-c", input=result.stdout).stdout == b"".join(
        f"{name}: OK\n".encode() for name in names
    )
    os.truncate("vdi", os.path.getsize("vdi") - MIB)
    result = blksum("-c", input=result.stdout)
    assert result.returncode == 1
    assert b"vdi: FAILED open or read\n" in result.stdout and result.stdout.count(b"OK") == 4


@pytest.mark.parametrize("name", ["vmdk", "vdi", "luks"])
def test_snapshots_are_refused(blksum, raw, name):
    path = make(name, raw, "disk.img")
    assert_refused(blksum(*options_for(name), "--snapshot", "x", path), path, "has no snapshots")


@pytest.mark.parametrize("name", ["vmdk", "vmdk-flat", "vhdx", "parallels", "bochs", "luks"])
def test_backing_file_of_a_qcow2(blksum, raw, content, name):
    make(name, raw, "base.img")
    fmt = FORMATS[name][0] if name in FORMATS else name
    size = len(content) + MIB
    images.create("top.qcow2", size, "-u", "-b", "base.img", "-F", fmt)
    # The sandbox knows only the format of the top image before it is in force.
    options = ["--backing-format", name] if name in FOREIGN else options_for(name)
    assert blksum.hex(*options, "top.qcow2") == blkhash.checksum(content + bytes(MIB)).hex()
    assert_refused(blksum("--untrusted", "top.qcow2"), "top.qcow2", "base.img", "--follow")


def test_vpc_has_the_size_that_qemu_gives_it(blksum, raw):
    images.qemu_img("convert", "-f", "raw", "-O", "vpc", raw, "disk.vpc")
    theirs = images.to_raw("disk.vpc", pathlib.Path("theirs"), "-f", "vpc")
    assert blksum.hex("disk.vpc") == blkhash.file_checksum(theirs).hex()


@pytest.mark.parametrize("name", [*FORMATS, *FOREIGN])
@pytest.mark.parametrize("lost", [1, 512, 40_000, 600_000])
def test_cut_off(blksum, raw, value, name, lost):
    """QEMU reads zeros past the end of a truncated file. blksum reports an error."""
    path = make(name, raw, "disk.img")
    if name in ("vmdk-flat", "vmdk-split-flat"):
        path = "disk-flat.img" if name == "vmdk-flat" else "disk-f001.img"
    elif name == "vmdk-split-sparse":
        path = "disk-s001.img"
    size = os.path.getsize(path)
    if size <= lost:
        pytest.skip("nothing would be left")
    os.truncate(path, size - lost)
    if name in ("luks", "vpc-fixed", "dmg"):
        # Their length is stored nowhere, or only at the end that is lost. Truncation gives another valid
        # image, as with raw images.
        pytest.skip("cannot be told")
    result = blksum("disk.img")
    if result.returncode == 0:
        assert result.stdout.split()[0].decode() == value, "what was lost was padding"
    else:
        assert_refused(result, "disk")


@pytest.mark.parametrize("name", ["vdi", "vmdk-flat"])
def test_image_in_use(blksum, raw, value, name):
    """QEMU locks the image, or a file that it names."""
    path = make(name, raw, "disk.img")
    run = ["qemu-io", "-f", FORMATS[name][0], path]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdin.write(b"read 0 512\n")
        holder.stdin.flush()
        assert b"read 512/512" in holder.stdout.readline() + holder.stdout.readline()
        assert_refused(blksum(path), path, "in use")
        assert blksum.hex("-U", path) == value
        holder.stdin.close()
        assert holder.wait() == 0


# Secrets


def test_luks2_is_refused_without_a_secret(blksum, workdir):
    """QEMU reads LUKS1 only, and says so after it was given the secret."""
    pathlib.Path("secret").write_bytes(SECRET)
    with open("disk.luks", "wb") as file:
        file.truncate(32 * MIB)
    options = ["--type", "luks2", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file", "secret"]
    images.run("cryptsetup", "luksFormat", "-q", *options, "disk.luks")
    secret = ["--object", "secret,id=s,file=secret", "--image-opts", "driver=luks,file.filename=disk.luks,key-secret=s"]
    assert images.attempt("qemu-img", "info", *secret).returncode != 0
    for args in ((), ("--secret-file", "secret")):
        assert_refused(blksum(*args, "disk.luks"), "disk.luks", "LUKS2, and only LUKS1 is read", "cryptsetup")
    assert blksum("-f", "raw", "disk.luks").returncode == 0


def test_luks_needs_its_secret(blksum, raw, value):
    path = make("luks", raw, "disk.img")
    assert_refused(blksum(path), path, "encrypted", "--secret-file", "-f raw")
    pathlib.Path("wrong").write_bytes(SECRET + b"\n")
    assert_refused(blksum("--secret-file", "wrong", path), path, "Invalid password")
    result = blksum("--secret-file", "missing", path)
    assert result.returncode == 2 and b"missing: No such file" in result.stderr
    # A pipe, for several images.
    shutil.copy(path, "other.img")
    script = f'{blksum.path} --secret-file <(printf "%s" "{SECRET.decode()}") disk.img other.img'
    result = subprocess.run(["bash", "-c", script], capture_output=True)
    assert result.stdout.decode() == f"{value}  disk.img\n{value}  other.img\n", result
    # Never in the arguments of a process.
    server = write_server("print(sys.argv)")
    message = words(blksum, server, path, "--secret-file", "secret")
    assert SECRET.decode() not in message and "secret,id=sec0,file=" in message, message


# Files that headers name


@pytest.fixture
def tree(raw, content):
    """A folder `in`, and beside it a file that no image in it may reach."""
    os.mkdir("in")
    pathlib.Path("outside.img").write_bytes(b"o" * len(content))
    shutil.copy(raw, "in/inside.img")
    return raw


def descriptor(*extents, kind="monolithicFlat", more=""):
    lines = ["# Disk DescriptorFile", "version=1", "CID=1", "parentCID=ffffffff"]
    text = "\n".join([*lines, f'createType="{kind}"', *extents]) + "\n" + more
    pathlib.Path("in/disk.vmdk").write_text(text)
    return "in/disk.vmdk"


def flat(name, size=8 * MIB, start=0):
    return f'RW {size // 512} FLAT "{name}" {start}'


def test_vmdk_extents_beneath_the_folder(blksum, tree, value):
    os.makedirs("in/deeper")
    shutil.copy(tree, "in/deeper/it's a, b.img")
    absolute = str(pathlib.Path("in/inside.img").absolute())
    for name in ("inside.img", "./inside.img", "deeper/it's a, b.img", absolute):
        path = descriptor(flat(name))
        assert blksum.hex(path) == value, name
        assert blksum.hex("disk.vmdk", cwd="in") == value, name


def test_vmdk_extents_in_pieces(blksum, tree, content):
    """One file may contain several extents, in any order. QEMU would omit read-only ones."""
    half = 4 * MIB
    path = descriptor(
        flat("inside.img", half, half // 512), flat("inside.img", half), kind="vmfs"
    )
    expected = blkhash.checksum(content[half:] + content[:half]).hex()
    assert blksum.hex(path) == expected
    path = descriptor(flat("inside.img").replace("RW", "RDONLY"))
    assert blksum.hex(path) == blkhash.checksum(content).hex()


@pytest.mark.parametrize(
    "name",
    [
        *("../outside.img", "/etc/passwd", "link.img", "up/outside.img"),
        *("json:{}", 'json:{"driver":"file"}', "nbd://localhost/x", "nbd+unix:///x?socket=/y"),
        *("file:inside.img", "fat:/etc", "host_device:/dev/sda", "http://localhost/x"),
        *("/dev/zero", "missing.img", "/proc/self/environ", "/dev/fd/3", "."),
    ],
)
@pytest.mark.parametrize("header", ["vmdk-flat", "vmdk-sparse", "vmdk-parent", "qed", "qcow1"])
def test_names_that_lead_out(blksum, tree, name, header):
    os.symlink("../outside.img", "in/link.img")
    os.symlink("..", "in/up")
    path = name_a_file(header, name)
    if '"' in name and header.startswith("vmdk"):
        # The name ends at the quote. The rest is an invalid extent, or another name.
        assert_refused(blksum(path), path)
        return
    shown = json.dumps(name)[1:-1] if header.startswith("vmdk") else name
    assert_refused(blksum("--backing-format=raw", path), path, shown)
    assert_refused(blksum("--backing-format=raw", "--untrusted", path), path)
    if name in ("../outside.img", "link.img") and header in ("vmdk-flat", "qed"):
        # Followed if the user asks for it.
        options = ["--follow=any", "--backing-format=raw"]
        assert blksum.hex(*options, path) == blkhash.checksum(b"o" * 8 * MIB).hex()


def name_a_file(header, name):
    """Creates an image whose header names a file."""
    if header == "vmdk-flat":
        return descriptor(flat(name))
    if header == "vmdk-sparse":
        return descriptor(f'RW {8 * MIB // 512} SPARSE "{name}"', kind="twoGbMaxExtentSparse")
    if header == "vmdk-parent":
        images.qemu_img("create", "-q", "-f", "vmdk", "in/disk.vmdk", "8M")
        with open("in/disk.vmdk", "r+b") as file:
            file.seek(512)
            text = file.read(10240).rstrip(b"\0")
            file.seek(512)
            file.write(text + f'\nparentFileNameHint="{name}"\n'.encode())
        return "in/disk.vmdk"
    fmt = {"qed": "qed", "qcow1": "qcow"}[header]
    if header == "qed":
        images.qemu_img("create", "-q", "-f", "qed", "in/disk.img", "8M")
        with open("in/disk.img", "r+b") as file:
            file.seek(16)
            file.write(struct.pack("<Q", 1))
            file.seek(56)
            file.write(struct.pack("<II", 1000, len(name)))
            file.seek(1000)
            file.write(name.encode())
    else:
        images.qemu_img("create", "-q", "-f", fmt, "in/disk.img", "8M")
        with open("in/disk.img", "r+b") as file:
            assert not any(file.read()[200 : 200 + len(name)])
            file.seek(8)
            file.write(struct.pack(">QI", 200, len(name)))
            file.seek(200)
            file.write(name.encode())
    return "in/disk.img"


@pytest.mark.parametrize("fmt", ["qed", "qcow"])
def test_backing_files(blksum, tree, content, fmt):
    """Uses the recorded or given format like QEMU, but never guesses."""
    size = str(len(content))
    images.qemu_img("create", "-q", "-f", fmt, "-b", "inside.img", "-F", "raw", "disk.img", size, cwd="in")
    images.qemu_io("in/disk.img", "write -P 0x58 1M 100k", fmt=fmt)
    expected = content[:MIB] + b"X" * 102400 + content[MIB + 102400 :]
    args = [] if fmt == "qed" else ["--backing-format=raw"]
    assert blksum.hex(*args, "in/disk.img") == blkhash.checksum(expected).hex()
    if args:
        assert_refused(blksum("in/disk.img"), "in/disk.img", "inside.img", "--backing-format")


def test_backing_files_of_other_formats(blksum, tree, content):
    images.qemu_img("convert", "-f", "raw", "-O", "vdi", "in/inside.img", "in/base.img")
    size = str(len(content))
    images.qemu_img("create", "-q", "-f", "qed", "-b", "base.img", "-F", "vdi", "disk.img", size, cwd="in")
    assert_refused(blksum("in/disk.img"), "--backing-format")
    value = blkhash.checksum(content).hex()
    assert blksum.hex("--backing-format=vdi", "in/disk.img") == value
    images.qemu_img("convert", "-f", "raw", "-O", "qcow2", "in/inside.img", "in/base.img")
    assert blksum.hex("--backing-format=qcow2", "in/disk.img") == value


def test_vmdk_chain(blksum, tree, content):
    """Three layers over a disk in two files, all of which are needed."""
    images.qemu_img(
        *("convert", "-f", "raw", "-O", "vmdk", "-o", "subformat=monolithicFlat"),
        *("in/inside.img", "in/0.vmdk"),
    )
    expected = bytearray(content)
    for n in (1, 2):
        kind = "subformat=twoGbMaxExtentSparse" if n == 1 else "subformat=monolithicSparse"
        images.qemu_img(
            *("create", "-q", "-f", "vmdk", "-o", kind, "-b", f"{n - 1}.vmdk", "-F", "vmdk"),
            f"{n}.vmdk",
            cwd="in",
        )
        images.qemu_io(f"in/{n}.vmdk", f"write -P {n} {n}M 64k", fmt="vmdk")
        expected[n * MIB : n * MIB + 65536] = bytes([n]) * 65536
    value = blkhash.checksum(bytes(expected)).hex()
    assert blksum.hex("in/2.vmdk") == value
    assert_refused(blksum("--untrusted", "in/2.vmdk"), "in/2.vmdk", "1.vmdk", "--follow")
    theirs = images.to_raw("in/2.vmdk", pathlib.Path("theirs"), "-f", "vmdk")
    assert blkhash.file_checksum(theirs).hex() == value
    # A parent that was changed since is another disk.
    data = pathlib.Path("in/0.vmdk").read_bytes()
    pathlib.Path("in/0.vmdk").write_bytes(with_content_id(data, b"12345678"))
    assert_refused(blksum("in/2.vmdk"), "0.vmdk", "content")


def with_content_id(data, digits):
    """Replaces the CID in a sparse vmdk. QEMU writes 8 digits or fewer. The text keeps its place."""
    start = data.index(b"\nCID=") + 5
    end = data.index(b"\n", start)
    padding = data.index(b"\0", end)
    return data[:start] + digits + data[end:padding] + data[padding + len(digits) - (end - start) :]


def test_chains_that_loop(blksum, tree):
    for name, below in (("a", "b"), ("b", "a"), ("self", "self")):
        data = pathlib.Path(name_a_file("vmdk-parent", f"{below}.vmdk")).read_bytes()
        pathlib.Path(f"in/{name}.vmdk").write_bytes(with_content_id(data, b"ffffffff"))
    for name in ("a", "self"):
        assert_refused(blksum(f"in/{name}.vmdk", timeout=20), "its own backing chain")
    path = descriptor(flat("disk.vmdk", 512))
    assert_refused(blksum(path), path, "its own backing chain")


def test_descriptor_of_hostile_size(blksum, tree):
    lines = [flat("inside.img", 512)] * 600
    assert_refused(blksum(descriptor(*lines)), "in/disk.vmdk", "more than 512 extents")
    path = descriptor(flat("inside.img"), more="#" * (300 << 10))
    assert_refused(blksum(path), path, "is not a vmdk image")
    path = descriptor(flat("inside.img", 1 << 62))
    assert_refused(blksum(path), path, "inside.img", "past the end")
    path = descriptor(flat("inside.img", 512, -1))
    assert_refused(blksum(path), path, "line 6", "offset")


@pytest.mark.parametrize(
    "line", ['RW 8 VMFSRAW "inside.img"', "RW 8 ZERO x", "NOACCESS 8 ZERO", "R 8 FLAT", "garbage"]
)
def test_what_qemu_leaves_out_of_a_disk_is_an_error(blksum, tree, line):
    path = descriptor(flat("inside.img"), line)
    assert_refused(blksum(path), path, "line 7")


def test_sparse_file_that_names_others(blksum, tree):
    """QEMU follows a descriptor inside a sparse file whose capacity is 0."""
    text = b'# Disk DescriptorFile\nversion=1\ncreateType="monolithicFlat"\nRW 8 FLAT "/etc/passwd" 0\n'
    head = b"KDMV" + struct.pack("<IIQQQQ", 1, 3, 0, 128, 1, 20)
    data = head.ljust(512, b"\0") + text.ljust(20 * 512, b"\0")
    pathlib.Path("in/disk.vmdk").write_bytes(data)
    assert_refused(blksum("in/disk.vmdk"), "names others")
    os.rename("in/disk.vmdk", "in/extent.vmdk")
    path = descriptor('RW 8 SPARSE "extent.vmdk"', kind="twoGbMaxExtentSparse")
    assert_refused(blksum(path), "names others")


@pytest.mark.parametrize("name", ["vdi", "vpc", "vhdx"])
def test_differences_are_refused(blksum, raw, name):
    """A disk that contains only the differences from another one."""
    path = make(name, raw, "disk.img")
    data = bytearray(pathlib.Path(path).read_bytes())
    if name == "vdi":
        struct.pack_into("<I", data, 0x4C, 4)
    elif name == "vpc":
        for footer in (0, len(data) - 512):
            assert data[footer : footer + 8] == b"conectix"
            struct.pack_into(">I", data, footer + 60, 4)
    else:
        # The file parameters are a block size of 8 or 16 MiB and its flags.
        table = data.index(b"metadata")
        parameters = data.index(struct.pack("<II", 8 << 20, 0), table)
        struct.pack_into("<I", data, parameters + 4, 2)
    pathlib.Path(path).write_bytes(data)
    assert_refused(blksum(path), path)


def test_a_guest_cannot_turn_its_disk_into_an_image(blksum, tree, value):
    """The guest writes the header of a qcow2 image to the start of its fixed vpc disk."""
    images.create("in/evil.qcow2", "8M", "-u", "-b", "inside.img", "-F", "raw")
    with open(tree, "r+b") as file:
        file.write(pathlib.Path("in/evil.qcow2").read_bytes()[:65536])
    path = make("vpc-fixed", tree, "in/disk.vpc")
    assert_refused(blksum(path), path, "begins like a qcow2 image and ends like a vpc image")
    assert blksum.hex("-f", "vpc", path) == blkhash.file_checksum(tree).hex()


# The server


def write_server(code, folder="server", name="server"):
    """Creates a program in the folder that runs `code`, with its output on standard error."""
    os.makedirs(folder, exist_ok=True)
    path = pathlib.Path(folder, name).absolute()
    path.write_text(f"#!/usr/bin/python3 -I\nimport sys\nsys.stdout = sys.stderr\n{code}\n")
    path.chmod(0o755)
    return str(path)


def words(blksum, server, path, *options):
    result = blksum("--nbd-server", server, *options, path)
    assert_refused(result, path)
    return result.stderr.decode()


def test_server_sees_nothing_that_it_need_not(blksum, raw):
    make("bochs", raw, "disk.img")
    server = write_server(
        "import os, resource, socket\n"
        "def is_open(number):\n"
        "    try:\n"
        "        return bool(os.fstat(number))\n"
        "    except OSError:\n"
        "        return False\n"
        "print(sorted(os.environ), os.getcwd())\n"
        "import re\n"
        "image = int(re.search('/dev/fd/([0-9]+)', sys.argv[-1])[1])\n"
        "print([n for n in range(1000) if is_open(n) and n != image])\n"
        "print([os.readlink(f'/proc/self/fd/{n}') for n in (0, 1, 3, image)])\n"
        "print(int(os.environ['LISTEN_PID']) == os.getpid(), os.getpgid(0) == os.getpid())\n"
        "print('core', resource.getrlimit(resource.RLIMIT_CORE))\n"
        "print(socket.socket(fileno=3).getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))"
    )
    extra = os.open("secret", os.O_RDONLY)
    os.set_inheritable(extra, True)
    try:
        result = blksum(
            *("--nbd-server", server, "disk.img"),
            env={"TMPDIR": "/x", "LD_PRELOAD": "", "SECRET": "x", "PATH": os.environ["PATH"]},
            close_fds=False,
        )
    finally:
        os.close(extra)
    message = result.stderr.decode()
    assert "['LC_ALL', 'LISTEN_FDS', 'LISTEN_PID', 'PATH'] /; " in message, message
    # /dev/null, standard error, the socket and the image.
    assert "; [0, 1, 2, 3]; " in message, message
    assert "['/dev/null', '/memfd:stderr (deleted)', 'socket:" in message and "disk.img']" in message, message
    assert "True True; core (0, 0); 1" in message, message


def test_server_is_confined(blksum, raw):
    """Landlock, tested by a program in place of the server."""
    make("bochs", raw, "disk.img")
    os.mkdir("other")
    shutil.copy("secret", "other/secret")
    listener = socket.create_server(("127.0.0.1", 0))
    here = os.getcwd()
    server = write_server(
        "import os, socket\n"
        "def tries(what, action):\n"
        "    try:\n"
        "        action()\n"
        "        print(what, 'works')\n"
        "    except OSError as error:\n"
        "        print(what, type(error).__name__)\n"
        f"tries('image', lambda: open('/dev/fd/10', 'rb').read(100))\n"
        f"tries('write', lambda: open('/dev/fd/10', 'r+b'))\n"
        f"tries('secret', lambda: open('{here}/other/secret'))\n"
        f"tries('passwd', lambda: open('/etc/passwd'))\n"
        f"tries('list', lambda: os.listdir('{here}'))\n"
        f"tries('create', lambda: open('{here}/new', 'w'))\n"
        f"tries('unlink', lambda: os.unlink('{here}/other/secret'))\n"
        f"tries('tcp', lambda: socket.create_connection(('127.0.0.1', {listener.getsockname()[1]})))\n"
        "tries('signal', lambda: os.kill(os.getppid(), 0))\n"
        "tries('status', lambda: open('/proc/self/status'))"
    )
    message = words(blksum, server, "disk.img")
    listener.close()
    assert "image works" in message, message
    if "secret works" in message:
        pytest.skip("this kernel has no landlock")
    for what in ("write", "secret", "passwd", "list", "create", "unlink", "tcp"):
        assert f"{what} PermissionError" in message, (what, message)
    assert os.path.exists("other/secret") and not os.path.exists("new")


def test_server_gets_a_secret_that_it_cannot_change(blksum, raw):
    """The secret is in memory, and no byte of it is in a file with a name."""
    path = make("luks", raw, "disk.img")
    server = write_server(
        "import sys\n"
        "for number in (10, 11):\n"
        f"    if open(f'/dev/fd/{{number}}', 'rb').read(400) == {SECRET!r}:\n"
        "        try:\n"
        "            print(open(f'/dev/fd/{number}', 'r+b', buffering=0).write(b'x'), 'written')\n"
        "        except OSError as error:\n"
        "            print('sealed', error.strerror)"
    )
    message = words(blksum, server, path, "--secret-file", "secret")
    assert "sealed Operation not permitted" in message, message


def test_qemu_opens_no_other_file(blksum, raw, value):
    """Files that the real server opens, as traced by strace."""
    path = make("luks", raw, "disk.img")
    run = ["strace", "-ff", "-qq", "-e", "trace=execve,openat,open", "-o", "trace", blksum.path]
    result = subprocess.run([*run, "--secret-file", "secret", path], capture_output=True)
    assert result.stdout.startswith(value.encode()), result

    def is_exec(line):
        return line.startswith("execve(") and "/qemu-nbd" in line

    # Threads of blksum and of the server have separate traces.
    traces = [path.read_text().splitlines() for path in pathlib.Path(".").glob("trace.*")]
    (lines,) = [lines for lines in traces if lines and is_exec(lines[0])]
    opened = [line.split('"')[1] for line in lines if line.startswith("open") and " = -1 " not in line]
    ours = [name for name in opened if name.startswith("/dev/fd/")]
    assert len(ours) >= 2 and len(set(ours)) == 2, opened
    system = ("/usr/", "/lib/", "/lib64/", "/etc/ld.so", "/dev/urandom", "/proc/sys/crypto")
    assert all(name.startswith(system) for name in opened if name not in ours), opened


@pytest.mark.parametrize(
    "code, words",
    [
        ("sys.exit(3)", ["ended with exit status: 3"]),
        ("print('server: no luck\\x1b[2J\\nnone\\n'); sys.exit(1)", ["no luck\\u{1b}[2J; none"]),
        ("import os; os.kill(os.getpid(), 11)", ["signal: 11"]),
        ("import time; time.sleep(60)", []),
        ("print('x' * 10_000_000); sys.exit(1)", ["xxx..."]),
        ("import socket; s = socket.socket(fileno=3)\n"
         "while True: s.accept()[0].send(b'garbage' * 100)", []),
        ("import socket, time; s = socket.socket(fileno=3)\n"
         "a = s.accept()[0]; a.send(b'NBDMAGICIHAVEOPT\\0\\3'); time.sleep(60)", []),
    ],
    ids=["exits", "complains", "crashes", "hangs", "floods", "garbage", "stalls"],
)
def test_server_that_fails(blksum, raw, code, words):
    make("bochs", raw, "disk.img")
    server = write_server(code)
    started = time.monotonic()
    result = blksum("--nbd-server", server, "--timeout=1", "disk.img", timeout=30)
    assert_refused(result, "disk.img", *words)
    assert len(result.stderr) < 2000 and time.monotonic() - started < 15
    assert processes_of(server) == []


def test_server_that_is_none(blksum, raw):
    make("bochs", raw, "disk.img")
    pathlib.Path("plain").write_text("#!/bin/sh\n")
    pathlib.Path("nonsense").write_text("nonsense")
    os.chmod("nonsense", 0o755)
    for server, word in [
        ("./missing", "No such file"),
        ("./plain", "Permission denied"),
        ("/", "Permission denied"),
        ("./nonsense", "Exec format error"),
    ]:
        assert_refused(blksum("--nbd-server", server, "disk.img"), "disk.img", "cannot run", word)
    for env in ({"PATH": "/nowhere"}, {"PATH": ""}):
        result = blksum("--nbd-server", "no-such-qemu-nbd", "disk.img", env=env)
        assert_refused(result, "disk.img", "no-such-qemu-nbd", "qemu-utils", "qemu-img")


# Cleanup


def processes_of(program, deadline=5):
    """Returns the processes that run the program, after giving them time to exit."""
    end = time.monotonic() + deadline
    while True:
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except (OSError, IndexError):
                continue
            if program.encode() in arguments and not {b"--nbd-server"} & set(arguments):
                found.append((entry.name, state))
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.02)


@pytest.fixture
def own_server(workdir):
    """A private qemu-nbd that can be told from others, and an empty TMPDIR."""
    os.mkdir("bin")
    os.mkdir("tmp")
    path = workdir / "bin/qemu-nbd"
    shutil.copy(shutil.which("qemu-nbd"), path)
    return str(path)


def environment():
    return os.environ | {"TMPDIR": os.path.abspath("tmp")}


def snapshot():
    sockets = pathlib.Path("/proc/net/unix").read_text().count(os.getcwd())
    folders = {name for name in os.listdir("/tmp") if "blksum" in name or "blkhash" in name}
    return sorted(os.listdir(".")), os.listdir("tmp"), sockets, folders


def test_nothing_is_left_after_success_and_error(blksum, raw, own_server, value):
    make("bochs", raw, "disk.img")
    shutil.copy("disk.img", "bad.img")
    os.truncate("bad.img", 1000)
    before = snapshot()
    args = ["--nbd-server", own_server, "disk.img", "bad.img", "disk.img"]
    result = blksum(*args, env=environment())
    assert (result.returncode, result.stdout.count(value.encode())) == (1, 2), result
    assert processes_of(own_server, 0) == [] and snapshot() == before


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGKILL", "SIGABRT", "SIGHUP"])
@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_nothing_is_left_after_a_signal(blksum, raw, own_server, number, stopped):
    make("bochs", raw, "disk.img")
    before = snapshot()
    args = ["--nbd-server", own_server, "-d", "sha3-512", *["disk.img"] * 5000]
    process = blksum.start(*args, env=environment(), stdout=subprocess.DEVNULL)
    try:
        stop_child(own_server) if stopped else wait_for_child(own_server)
        process.send_signal(getattr(signal, number))
        process.communicate(timeout=20)
        assert process.returncode == -getattr(signal, number)
        assert processes_of(own_server) == [] and snapshot() == before
    finally:
        process.kill()
        process.communicate()


def stop_child(program):
    """Each image has a server of its own, so one that was found may be gone."""
    while True:
        try:
            return os.kill(wait_for_child(program), signal.SIGSTOP)
        except ProcessLookupError:
            pass


def wait_for_child(program):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = processes_of(program, 0)
        if found:
            return int(found[0][0])
    raise AssertionError("no child")


def test_extent_that_changes_while_it_is_read(blksum, tree):
    with open("in/inside.img", "wb") as file:
        for _ in range(64):
            file.write(os.urandom(MIB))
    path = descriptor(flat("inside.img", 64 * MIB))
    for attempt in range(40):
        process = blksum.start("--threads=1", "-d", "sha3-512", path)
        wait_until_open(process, "inside.img")
        time.sleep(0.02 * (1 + attempt % 5))
        os.utime("in/inside.img")
        stdout, stderr = process.communicate(timeout=30)
        if process.returncode != 0:
            break
    assert (process.returncode, stdout) == (1, b""), "it was always too late"
    assert b"changed while it was read" in stderr and b"inside.img" in stderr, stderr


def wait_until_open(process, name):
    while process.poll() is None:
        for entry in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            try:
                if os.readlink(entry).endswith(name):
                    return
            except OSError:
                pass


@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP"])
def test_server_that_dies_or_stalls_while_it_is_read(blksum, workdir, own_server, number):
    """The result is an error with the reason, never zeros."""
    raw = workdir / "big.img"
    with open(raw, "wb") as file:
        for _ in range(64):
            file.write(os.urandom(MIB))
    make("bochs", raw, "disk.img")
    args = ["--nbd-server", own_server, "--timeout=1", "--threads=1", "-d", "md5"]
    for _ in range(20):
        process = blksum.start(*args, "disk.img")
        child = wait_for_child(own_server)
        time.sleep(0.02)
        try:
            os.kill(child, getattr(signal, number))
        except ProcessLookupError:
            pass
        stdout, stderr = process.communicate(timeout=30)
        assert processes_of(own_server) == []
        if process.returncode != 0:
            break
    assert (process.returncode, stdout) == (1, b""), "it was always too late"
    assert stderr.startswith(b"blksum: disk.img: ") and stderr.count(b"\n") == 1, stderr
