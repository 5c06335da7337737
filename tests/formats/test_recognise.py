"""What would be read as a raw disk and is none: files with the name of a format, archives, pages of servers.

Each kind is made by the program that others use for it. All commands have the same words, and so has Python (python/tests).
"""

import os
import pathlib
import re
import subprocess
import zipfile

import pytest

import images
from changing import loop_device
from commands import blksum_path

MIB = 1 << 20
BLKCOPY = str(blksum_path().with_name("blkcopy"))
BLKHASH = str(blksum_path().with_name("blkhash"))

# Commands that make FILE of disk.raw, and words of the message.
MADE = {
    "base.img": ("zip -q x.zip disk.raw; mv x.zip FILE", "is a zip archive: unzip -p base.img NAME |"),
    "base.7z": ("7z a -bd -mx1 FILE disk.raw", "is a 7z archive: 7z x -so base.7z NAME |"),
    "gnu.img": ("tar -c --format=gnu -f FILE disk.raw", "is a tar archive: tar -xOf gnu.img NAME |"),
    "v7.img": ("tar -c --format=v7 -f FILE disk.raw", "is a tar archive: tar -xOf v7.img NAME |"),
    "oldgnu.img": ("tar -c --format=oldgnu -f FILE disk.raw", "is a tar archive"),
    "ustar.img": ("tar -c --format=ustar -f FILE disk.raw", "is a tar archive"),
    "posix.img": ("tar -c --format=posix -f FILE disk.raw", "is a tar archive"),
    "sparse.img": ("tar -cS -f FILE disk.raw", "is a tar archive"),
    "label.img": ("tar -c -V label -f FILE disk.raw", "is a tar archive"),
    "bsd.img": ("bsdtar -c -f FILE disk.raw", "is a tar archive"),
    "bsdv7.img": ("bsdtar -c --format=v7 -f FILE disk.raw", "is a tar archive"),
    "hidden.img": ("tar -c -f FILE disk.raw", "is a tar archive: tar -xOf hidden.img NAME |"),
    "gce.img": ("tar -czf FILE disk.raw", "is compressed by gzip: -f gzip reads its content; -f raw"),
    "disk.tgz": ("cp disk.raw FILE", "has the name of a tar archive, and nothing in it says that it is one: -f raw"),
    "xva.img": ("echo '<x/>' > ova.xml; tar -c -f FILE ova.xml disk.raw", "is an XVA archive (XenServer): xe vm-import"),
    "newc.cpio": ("echo disk.raw | cpio -o --quiet -H newc > FILE", "is a cpio archive: cpio -i --to-stdout NAME <"),
    "odc.cpio": ("echo disk.raw | cpio -o --quiet -H odc > FILE", "is a cpio archive"),
    "base.wim": ("mkdir d; cp disk.raw d; wimcapture d FILE --compress=none", "is a WIM archive (Windows): wimlib-imagex"),
    "disk.L01": ("printf 'LVF\\x09\\r\\n\\xff\\0\\001' > FILE; cat disk.raw >> FILE", "is an EWF archive of files (EnCase): ewfexport -u -f files -t OUTPUT disk.L01"),
    "disk.Ex01": ("printf 'EVF2\\r\\n\\x81\\0' > FILE; cat disk.raw >> FILE", "is an EWF image of version 2 (EnCase 7): ewfexport -u -t OUTPUT disk.Ex01"),
    "fake.E01": ("cp disk.raw FILE", "has the name of an EWF image, and nothing in it says that it is one: -f raw"),
    "fake.simg": ("cp disk.raw FILE", "has the name of an Android sparse image, and nothing in it says that it is one: -f raw"),
    "lzop.img": ("lzop -o FILE disk.raw", "is compressed by lzop: -f lzop reads its content; -f raw"),
    "disk.lz": ("lzip -c disk.raw > FILE", "is an lzip file: lzip -dc disk.lz |"),
    "disk.lzma": ("xz --format=lzma -0 -c disk.raw > FILE", "has the name of an lzma file: xz -dc disk.lzma |"),
    "zipped.raw": ("gzip -1 -c disk.raw > FILE", "is compressed by gzip: -f gzip reads its content; -f raw"),
    "packed.img": ("xz -0 -c disk.raw > FILE", "is compressed by xz: -f xz reads its content; -f raw"),
    "other.xz": ("zstd -q -c disk.raw > FILE", "is compressed by zstd, and has the name of an xz file: -f zstd"),
    "fake.xz": ("cp disk.raw FILE", "has the name of an xz file, and nothing in it says that it is one: -f raw"),
    "fake.qcow2": ("cp disk.raw FILE", "has the name of a qcow2 image, and nothing in it says that it is one: -f raw"),
    "fake.qcow2.gz": ("gzip -1 -c disk.raw > FILE", "has the name of a qcow2 image, and nothing in it"),
    "wiped.qcow2": (
        "qemu-img convert -O qcow2 disk.raw FILE; dd if=/dev/zero of=FILE bs=4 count=1 conv=notrunc",
        "has the name of a qcow2 image, and nothing in it says that it is one: -f raw",
    ),
    "empty.vmdk": ("touch FILE", "is empty, and has the name of a vmdk image: -f raw"),
    "disk.dmg": ("cp disk.raw FILE; dd if=/dev/zero of=FILE count=4 conv=notrunc", "has the name of a dmg image"),
    "sda1.ext4-ptcl-img.gz.aa": ("gzip -1 -c disk.raw > FILE", "is a part of a split image: cat joins all of its parts"),
    "sda1.ext4-ptcl-img.gz.ab": ("gzip -1 -c disk.raw | tail -c +1001 > FILE", "has the name of a part of a split image: cat joins"),
    "disk.img.gpg": ("cp disk.raw FILE", "has the name of an OpenPGP file: gpg -d disk.img.gpg |"),
}

# Files of programs that are not in Debian, by their specifications.
WRITTEN = {
    "vma.img": (b"VMA\0\0\0\0\x01" + bytes(12280), "is a VMA archive (Proxmox): vma extract vma.img DIRECTORY"),
    "disk.rar": (b"Rar!\x1a\x07\x01\0" + bytes(1000), "is a RAR archive: unrar p -inul disk.rar NAME |"),
    "mac.img": (b"shdw\0\0\0\x01\0\0\x02\0" + bytes(10000), "is an ASIF image (macOS): -f raw"),
    "disk.dmgpart": (b"koly\0\0\0\x04\0\0\x02\0" + bytes(10000), "is a part of a dmg image: hdiutil convert"),
    "disk-sesparse.vmdk": (
        b"\xbe\xba\xfe\xca\0\0\0\0" + bytes(10000),
        "is an extent of a vmdk image (seSparse), and has the name of a vmdk image: give the .vmdk file that names it",
    ),
    "lfs.qcow2": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
        "is a git-lfs pointer, and has the name of a qcow2 image: git lfs pull",
    ),
    "page.img": (b"<!DOCTYPE html>\n<html><title>404</title></html>\n", "is an HTML page: if it was downloaded, its server"),
    "page.img.xz": (b"<html><title>404 Not Found</title></html>\n", "is an HTML page, and has the name of an xz file: if it was"),
    "s3.raw": (b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code></Error>', "is an XML document"),
    "token.img": (b'{"errors":[{"code":"UNAUTHORIZED"}]}\n', "is a JSON document"),
    "raw.img": (b"404: Not Found", "is a message of a server"),
}

KINDS = {name: words for name, (_, words) in (MADE | WRITTEN).items()}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """A folder with a file of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    content = bytearray(MIB)
    content[1000:200_000] = os.urandom(199_000)
    (folder / "disk.raw").write_bytes(content)
    for name, (command, _) in MADE.items():
        command = command.replace("FILE", name)
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, capture_output=True)
        assert result.returncode == 0 and (folder / name).exists(), (name, result)
    for name, (content, _) in WRITTEN.items():
        (folder / name).write_bytes(content)
    subprocess.run([BLKHASH, "map", "create", "disk.raw"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def at(kinds, monkeypatch):
    monkeypatch.chdir(kinds)
    return kinds


def said(result):
    """Returns the messages without what depends on the command: its name, and the end of a pipe."""
    return re.sub(r"\| bl\S+.*? it;|writes .*? standard output;", "|", result.stderr.decode())


# With the exit status.
COMMANDS = {
    "blksum": ([str(blksum_path()), "FILE"], 1),
    "blkcopy": ([BLKCOPY, "FILE", "copy"], 2),
    "map create": ([BLKHASH, "map", "create", "FILE", "-o", "new.blkmap"], 2),
    "map verify": ([BLKHASH, "map", "verify", "disk.raw.blkmap", "FILE"], 2),
    "map diff": ([BLKHASH, "map", "diff", "disk.raw", "FILE"], 2),
    "info": ([BLKHASH, "info", "FILE"], 2),
    "verity format": ([BLKHASH, "verity", "format", "FILE", "new.hash"], 2),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_no_disk_is_refused(at, command):
    args, status = COMMANDS[command]
    wrong = []
    for name, words in KINDS.items():
        before = sorted(os.listdir())
        result = images.attempt(*(word.replace("FILE", name) for word in args))
        if (result.returncode, result.stdout) != (status, b"") or f"{name}: {words}" not in said(result):
            wrong.append((name, result.returncode, result.stderr))
        assert sorted(os.listdir()) == before, name
    assert not wrong


def test_with_a_format_it_is_a_disk(at):
    for name in KINDS:
        assert images.run(BLKCOPY, "-q", "-f", "raw", "--force", name, "copy") is not None
        assert pathlib.Path("copy").read_bytes() == pathlib.Path(name).read_bytes(), name
    os.unlink("copy")


def test_a_line_with_the_format_is_checked(blksum, at):
    """The tag records that the bytes of the file were hashed."""
    for name in KINDS:
        line = blksum("-f", "raw", "--tag", name).stdout
        assert b"/FORMAT=raw (" in line
        assert blksum("-c", "-", input=line).stdout == f"{name}: OK (format raw)\n".encode(), name
        result = blksum("-c", "-", input=line.replace(b"/FORMAT=raw", b""))
        assert (result.returncode, result.stdout) == (1, f"{name}: FAILED open or read\n".encode()), name
        assert KINDS[name].rstrip("|") in result.stderr.decode()


def test_digests_of_bytes_are_of_any_file(blksum, at):
    """What vendors publish is of the file that is downloaded."""
    files = sorted(KINDS)
    sums = images.run("sha256sum", *files)
    # Noise of some lengths could be a list of the digests of another image, unless the option says that it is none.
    result = blksum("-B", "-c", "-", input=sums)
    assert (result.returncode, result.stdout.count(b": OK\n")) == (0, len(files)), result.stderr.decode()
    for name in ("fake.qcow2", "gnu.img", "page.img", "vma.img"):
        result = blksum("-c", "-", input=images.run("sha256sum", name))
        assert result.stdout == f"{name}: OK\n".encode() and b"of the bytes of this file" in result.stderr, result
    assert blksum("-B", *files).stdout == sums
    assert blksum("-c", "-", input=images.run("sha256sum", "--tag", *files)).returncode == 0
    for name in ("fake.qcow2", "gnu.img", "page.img", "vma.img"):
        value = sums.splitlines()[files.index(name)].split()[0].decode()
        assert blksum("--expect", value, name).returncode == 0, name


# What can only be told by a name, or by the end of the content, and compressed files.
NAMED = [name for name, words in KINDS.items() if words.startswith(("has the name", "is empty", "is a part of a split"))]
OF_CONTENT = [name for name in KINDS if name not in NAMED]


def test_pipes_and_standard_input(blksum, at):
    """They have no name. What comes through them is known by its beginning."""
    for name in OF_CONTENT:
        words = KINDS[name].split(":")[0].split(", and has")[0]
        content = pathlib.Path(name).read_bytes()
        with open(name, "rb") as file:
            results = [
                blksum("-", stdin=file),
                blksum(input=content),
                images.attempt(BLKCOPY, "-", "copy", input=content, stdin=None),
            ]
        for result, status in zip(results, (1, 1, 2)):
            assert (result.returncode, result.stdout) == (status, b""), (name, result)
            assert f"-: {words}" in result.stderr.decode(), (name, result)
        assert blksum("-f", "raw", "-", input=content).returncode == 0
    for name in NAMED:
        # The first part of a compressed image begins like a whole one.
        if not name.endswith((".gz", ".gz.aa")):
            assert blksum(input=pathlib.Path(name).read_bytes()).returncode == 0, name
    assert not os.path.exists("copy")


@pytest.mark.parametrize("name", ["base.img", "base.7z", "gnu.img", "disk.lz", "disk.lzma", "newc.cpio"])
def test_the_way_out(at, name):
    """The command of the message, with the name of the disk in it."""
    message = images.attempt(BLKCOPY, name, "copy").stderr.decode()
    command = re.search(r": ([^:]*) \| blkcopy - DESTINATION copies it; -f raw", message).group(1)
    command = command.replace("NAME", "disk.raw") + f" | {BLKCOPY} - copy"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True)
    assert result.returncode == 0, (command, result)
    images.run("cmp", "copy", "disk.raw")
    os.unlink("copy")


def test_the_way_has_the_whole_name(blksum, workdir):
    with zipfile.ZipFile("a; b.img", "w") as archive:
        archive.writestr("disk.raw", bytes(4096))
    result = blksum("a; b.img")
    assert b": unzip -p 'a; b.img' NAME | blksum hashes it; -f raw reads the bytes of the file itself\n" in result.stderr, result


def test_untrusted_files_are_not_decompressed(blksum, workdir):
    """The tag says what was hashed, so that it is the same with the option and without it."""
    (workdir / "disk.raw").write_bytes(b"disk" * 1024)
    images.run("xz", "-k", "disk.raw")
    refusal = b"disk.raw.xz: is compressed by xz: -f xz reads its content; -f raw reads the bytes of the file itself\n"
    for options in (["--tag"], ["-c"]):
        line = blksum("--tag", "disk.raw.xz").stdout
        name = ["-"] if options == ["-c"] else ["disk.raw.xz"]
        result = blksum("--untrusted", *options, *name, input=line)
        assert result.returncode == 1 and refusal in result.stderr, result
    for fmt in ("raw", "xz"):
        line = blksum("--untrusted", "-f", fmt, "--tag", "disk.raw.xz").stdout
        assert (b"/FORMAT=raw (" in line) == (fmt == "raw")
        for options in ([], ["--untrusted"] if fmt == "raw" else ["--untrusted", "-f", "xz"]):
            assert blksum(*options, "-c", "-", input=line).stdout.startswith(b"disk.raw.xz: OK"), (fmt, options)


def test_untrusted_archives(blksum, workdir):
    """They refer to nothing. Those that are compressed as a whole are not decompressed."""
    (workdir / "disk.raw").write_bytes(b"disk" * 1024)
    value = blksum("disk.raw").stdout.split()[0]
    images.run("zip", "-q", "a.zip", "disk.raw")
    images.run("tar", "-cf", "a.tar", "disk.raw")
    images.run("tar", "-czf", "a.tar.gz", "disk.raw")
    for name in ("a.zip", "a.tar"):
        for member in ("", ":disk.raw"):
            assert blksum("--untrusted", name + member).stdout.split()[:1] == [value]
    refusal = b"compressed by gzip, and files that are not trusted are not decompressed: decompress it first"
    for args in (["a.tar.gz"], ["a.tar.gz:disk.raw"], ["-f", "raw", "a.tar.gz:disk.raw"], ["-c", "a.tar.gz"]):
        result = blksum("--untrusted", *args)
        assert (result.returncode, result.stdout) == (1, b"") and refusal in result.stderr, result
    assert blksum("--untrusted", "-f", "raw", "a.tar.gz").returncode == 0


def test_block_maps_and_deltas(blksum, at):
    for command in ([str(blksum_path())], [BLKHASH, "info"]):
        result = images.attempt(*command, "disk.raw.blkmap")
        assert b"disk.raw.blkmap: is a block map: blkhash map checksum disk.raw.blkmap" in result.stderr
    delta = images.run(BLKCOPY, "--delta-from", "disk.raw.blkmap", "disk.raw", "-")
    result = images.attempt(BLKCOPY, "-", "other", input=delta, stdin=None)
    assert result.returncode == 2 and b"-: is a delta: blkcopy --apply FILE DESTINATION" in result.stderr


DESTINATIONS = ["qcow2", "vmdk", "vhd", "vhdx", "vdi", "img.gz", "img.xz", "img.zst", "img.bz2", "img.lz4", "zip", "7z"]
DESTINATIONS += ["tar", "tgz", "ova", "blkmap", "E01", "simg", "vma", "dmg", "rar", "XZ", "img.gpg"]


def test_destinations_with_the_name_of_something_else(at):
    for extension in DESTINATIONS:
        name = f"new.{extension}"
        result = images.attempt(BLKCOPY, "disk.raw", name)
        assert result.returncode == 2 and f"{name}: has the name of a" in result.stderr.decode(), result
        assert b"and the copy is raw" in result.stderr and not os.path.exists(name)
    result = images.attempt(BLKCOPY, "disk.raw", "new.img.xz")
    assert b"an xz file, and the copy is raw: blkcopy SOURCE - | xz > FILE compresses it, --force writes" in result.stderr
    for name in ("new.xz", "new-flat.vmdk", "new.iso", "new.bin", "new"):
        images.run(BLKCOPY, *(["--force"] if name.endswith("xz") else []), "disk.raw", name)
        images.run("cmp", "disk.raw", name)
        os.unlink(name)


@pytest.mark.root
def test_devices(blksum, at):
    """A volume may have any name. What it holds is known from its content."""
    with open("volume", "wb") as file:
        file.truncate(2 * MIB)
    with loop_device("volume") as device:
        for name in ["base.img", "gnu.img", "page.img", "wiped.qcow2", "lfs.qcow2"]:
            result = images.attempt(BLKCOPY, "--force", name, device)
            assert result.returncode == 2 and KINDS[name].rstrip("|") in result.stderr.decode()
        assert not any(pathlib.Path("volume").read_bytes())
        for options in ([], ["-f", "raw"]):
            (at / "nothing.img").write_bytes(b"")
            result = images.attempt(BLKCOPY, "--force", *options, "nothing.img", device)
            assert result.returncode == 2 and b"would stay as it is: the source is empty" in result.stderr, result
            result = images.attempt(BLKCOPY, "--force", *options, "-", device, input=b"", stdin=None)
            assert result.returncode == 2 and b"is empty, so there is nothing to copy" in result.stderr, result
        link = at / "volume.qcow2"
        link.symlink_to(device)
        assert blksum(str(link)).returncode == 0
        assert images.attempt(BLKCOPY, "disk.raw", str(link)).returncode == 0
        images.run(BLKCOPY, "-q", "--force", "-f", "raw", "base.img", device)
        result = blksum(device)
        assert result.returncode == 1 and f"{device}: is a zip archive" in result.stderr.decode()
        assert blksum("-f", "raw", device).returncode == 0
    link.unlink()


def test_an_empty_disk_is_one(blksum, workdir):
    for name in ("empty", "empty.raw", "empty.img"):
        (workdir / name).write_bytes(b"")
        assert blksum(name).returncode == 0
        images.run(BLKCOPY, name, "copy")
        assert os.path.getsize("copy") == 0
        os.unlink("copy")


# Commands that make a disk of FILE, which has 64 MiB of zeros.
DISKS = {
    "ext4": "mkfs.ext4 -q FILE",
    "xfs": "truncate -s 320M FILE; mkfs.xfs -q FILE",
    "btrfs": "truncate -s 128M FILE; mkfs.btrfs -q FILE",
    "fat": "mkfs.vfat FILE",
    "fat32": "mkfs.vfat -F 32 FILE",
    "exfat": "mkfs.exfat FILE",
    "ntfs": "mkfs.ntfs -qFf FILE",
    "f2fs": "mkfs.f2fs -q FILE",
    "minix": "mkfs.minix FILE",
    "udf": "mkudffs FILE",
    "nilfs2": "truncate -s 160M FILE; mkfs.nilfs2 -q FILE",
    "jfs": "mkfs.jfs -q FILE",
    "hfs": "hformat FILE",
    "erofs": "mkdir d-FILE; echo x > d-FILE/x; rm FILE; mkfs.erofs --quiet FILE d-FILE",
    "squashfs": "mkdir d-FILE; echo x > d-FILE/x; rm FILE; mksquashfs d-FILE FILE -quiet",
    "cramfs": "mkdir d-FILE; echo x > d-FILE/x; mkfs.cramfs d-FILE FILE",
    "iso": "mkdir d-FILE; echo x > d-FILE/x; rm FILE; xorriso -as mkisofs -quiet -J -r -o FILE d-FILE",
    "mbr": "echo ',32M,L' | sfdisk -q FILE",
    "gpt": "printf 'label: gpt\\n,32M,L\\n' | sfdisk -q FILE",
    "apm": "printf 'ER\\2\\0' | dd of=FILE conv=notrunc; printf 'PM' | dd of=FILE bs=512 seek=1 conv=notrunc",
    "swap": "mkswap FILE",
    "zeros": "true",
    "noise": "dd if=/dev/urandom of=FILE bs=1M count=2 conv=notrunc",
    "text": "yes hello | head -c 8192 > FILE",
    "line": "echo hello > FILE",
    "lzma2": "yes | head -c 100000 | xz --format=raw -0 > FILE",
}


def test_ordinary_disks_are_no_other_files(blksum, workdir):
    """No disk is refused, whatever is on it."""
    names = []
    for kind, command in DISKS.items():
        name = f"{kind}.img"
        with open(name, "wb") as file:
            file.truncate(64 * MIB)
        command = command.replace("FILE", name)
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True)
        assert result.returncode in (0, 141), (kind, result)
        names += [name, kind]
        os.link(name, kind)
    for extension in ("raw", "bin", "dd", "iso", "vfd", "img.bak"):
        names.append(f"mbr.{extension}")
        os.link("mbr", names[-1])
    names.append("mbr-flat.vmdk")
    os.link("mbr", names[-1])
    for name in ("gpt", "apm", "hfs", "mbr"):
        names.append(f"{name}.dmg")
        os.link(name, names[-1])
    result = blksum(*names)
    assert (result.returncode, result.stdout.count(b"\n")) == (0, len(names)), result.stderr.decode()
    for kind in DISKS:
        with open(kind, "rb") as file:
            assert blksum("-", stdin=file).returncode == 0, kind
            head = pathlib.Path(kind).read_bytes()[: MIB]
        assert blksum(input=head).returncode == 0, kind
        images.run(BLKCOPY, "-q", "--force", kind, "copy")


@pytest.mark.root
def test_physical_volumes(blksum, workdir):
    with open("volume", "wb") as file:
        file.truncate(64 * MIB)
    with loop_device("volume") as device:
        images.run("pvcreate", "-qq", "-y", "--config", "devices { use_devicesfile=0 }", device)
        assert blksum(device).returncode == 0 and blksum("volume").returncode == 0
    assert b"LABELONE" in pathlib.Path("volume").read_bytes()[:2048]


URIS = {
    "file:///srv/disk.img": "give the path, /srv/disk.img",
    "docker://fedora": "skopeo copy docker://NAME oci-archive:vm.oci.tar fetches an image",
}


@pytest.mark.parametrize("uri", URIS)
def test_uris_of_other_schemes(workdir, uri):
    commands = [[str(blksum_path())], [BLKHASH, "info"], [BLKHASH, "verity", "digest"]]
    for args in [[*command, uri] for command in commands] + [[BLKCOPY, uri, "copy"]]:
        result = images.attempt(*args)
        assert result.returncode in (1, 2) and URIS[uri] in result.stderr.decode(), (args, result)
    (workdir / "disk.raw").write_bytes(bytes(512))
    result = images.attempt(BLKCOPY, "disk.raw", uri)
    assert result.returncode == 2 and result.stderr.count(b": ") > 2, result
    assert os.listdir() == ["disk.raw"]


def test_options_that_were_meant_otherwise(blksum, at):
    result = images.attempt(BLKCOPY, "-O", "qcow2", "disk.raw", "copy")
    assert result.returncode == 2 and b"invalid option -- 'O': a copy is raw: to write another format" in result.stderr
    result = images.attempt(BLKHASH, "map", "verify", "disk.raw", "disk.raw.blkmap")
    assert result.returncode == 2 and b"the map comes first: blkhash map verify MAP IMAGE" in result.stderr
    images.create("real.qcow2", "1M")
    for fmt in ("qcow", "vmdk", "vdi", "vhdx", "qed", "parallels"):
        result = blksum("-f", fmt, "real.qcow2")
        words = f"real.qcow2: is a qcow2 image, and was to be read as {fmt}: say with --format what it is".encode()
        assert result.returncode == 1 and words in result.stderr, result
    os.unlink("real.qcow2")
