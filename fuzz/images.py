#!/usr/bin/env python3
"""Writes the disks that fuzz targets change: real file systems and what is around them, small, in fuzz/images.

    fuzz/images.py [NAME...]

Runs the tools that make them, and mounts some, so it needs root. A file is a stream of zlib, of the size of the disk and, for
each run of sectors that are not zero, the number of the first one, how many there are, and their bytes. Numbers are 64 bits
long, little endian.
"""

import os
import pathlib
import struct
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/helpers"), str(ROOT / "reference")]

import filesystems  # noqa: E402
import images  # noqa: E402
import layers  # noqa: E402
import ntfs_3g  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
SECTOR = 512


# Content


def tree(root, names=40):
    """Fills a folder with every kind of file, whose content compresses well."""
    (root / "small").write_bytes(b"content\n")
    (root / "empty").touch()
    (root / "large").write_bytes(b"L" * 40_000)
    with open(root / "sparse", "wb") as file:
        for index in range(8):
            file.seek(index * 8 * KIB)
            file.write(b"S" * KIB)
    (root / "names").mkdir()
    for number in range(names):
        (root / "names" / f"a name of some length {number}").write_bytes(b"%d" % number)
    (root / "folder" / "deeper").mkdir(parents=True)
    (root / "folder" / "deeper" / "file").write_bytes(b"deep")


def links(root):
    """Adds what not every file system has."""
    os.link(root / "small", root / "folder" / "hard link")
    os.symlink("small", root / "short link")
    os.symlink("x" * 200, root / "long link")
    os.setxattr(root / "small", "user.name", b"value")
    os.setxattr(root / "large", "user.long", b"v" * 300)


def blank(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


# Disks


def ext(path, size, *options, index=False):
    blank(path, size)
    with tempfile.TemporaryDirectory() as folder:
        tree(pathlib.Path(folder))
        links(pathlib.Path(folder))
        images.run("mke2fs", "-q", "-F", "-d", folder, *options, str(path))
    if index:
        assert images.attempt("e2fsck", "-fyD", str(path)).returncode < 2


def ext4(path):
    ext(path, 4 * MIB, "-t", "ext4", "-b", "1024", "-N", "96", "-J", "size=1", "-O", "metadata_csum,64bit,orphan_file", index=True)


def ext4_features(path):
    features = "inline_data,bigalloc,quota,mmp,^has_journal,metadata_csum_seed,project,ea_inode"
    ext(path, 1 * MIB, "-t", "ext4", "-b", "1024", "-C", "4096", "-I", "256", "-N", "96", "-O", features)


def ext4_journal(path):
    """One with transactions that were not replayed."""
    ext(path, 4 * MIB, "-t", "ext4", "-b", "1024", "-N", "96", "-J", "size=1", "-O", "metadata_csum")
    with tempfile.TemporaryDirectory() as folder:
        block = pathlib.Path(folder) / "block"
        block.write_bytes(b"J" * 2 * KIB)
        requests = f"jo -c\njw -b 3500,3501 {block}\njw -r 3500\njc\n"
        images.run("debugfs", "-w", "-f", "-", str(path), input=requests.encode(), stdin=None)


def ext3(path):
    ext(path, 4 * MIB, "-t", "ext3", "-b", "1024", "-N", "96", "-J", "size=1", "-O", "uninit_bg", "-g", "1024", index=True)


def ext2(path):
    ext(path, 512 * KIB, "-t", "ext2", "-b", "1024", "-N", "96", "-O", "^ext_attr,meta_bg,^resize_inode", "-g", "256")


def journal_device(path):
    blank(path, 1280 * KIB)
    images.run("mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "1024", str(path))


def xfs(path, *options):
    with filesystems.xfs(path, *options, size=300 * MIB) as root:
        tree(root, 200)
        links(root)
        with open(root / "fragments", "wb") as file:
            for index in range(60):
                file.seek(index * 16 * KIB)
                file.write(b"F" * KIB)
        for number in range(12):
            os.setxattr(root / "small", f"user.{number}", b"w" * 200)


def xfs5(path):
    xfs(path, "-b", "size=1k", "-d", "agcount=2", "-m", "rmapbt=1,reflink=1")


def xfs4(path):
    """Version 4, which new kernels do not mount, with the files of a prototype."""
    blank(path, 300 * MIB)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "file"
        file.write_bytes(b"F" * 20_000)
        names = "".join(f"name{number} ---644 0 0 {file}\n" for number in range(40))
        prototype = pathlib.Path(folder) / "prototype"
        prototype.write_text(f"/\n0 0\nd--755 0 0\nlink l--777 0 0 target\nfolder d--755 0 0\n{names}$\n$\n")
        images.run("mkfs.xfs", "-q", "-p", str(prototype), "-b", "size=1k", "-d", "agcount=2", "-m", "crc=0,finobt=0", str(path))


def ntfs(path, cluster=512, size=1536 * KIB):
    blank(path, size)
    images.run("mkntfs", "-F", "-Q", "-q", "-c", str(cluster), str(path))
    with ntfs_3g.mounted(path) as root:
        tree(root)
        (root / "small:stream").write_bytes(b"a stream")
        (root / "folder" / "compressed").mkdir()
        os.setxattr(root / "folder" / "compressed", "system.ntfs_attrib_be", struct.pack(">I", 0x810))
        (root / "folder" / "compressed" / "file").write_bytes(b"C" * 9_000)


def ntfs_4k(path):
    ntfs(path, 4096, 4 * MIB)


def fat(path, bits, size, *options):
    blank(path, size)
    images.run("mkfs.vfat", "-F", str(bits), *options, str(path))
    with tempfile.TemporaryDirectory() as folder:
        tree(pathlib.Path(folder), 12)
        copied = sorted(map(str, pathlib.Path(folder).iterdir()))
        environment = {**os.environ, "MTOOLSRC": "/dev/null", "MTOOLS_SKIP_CHECK": "1"}
        images.run("mcopy", "-Q", "-s", "-i", str(path), *copied, "::", env=environment)
        images.run("mdel", "-i", str(path), "::empty", env=environment)


def fat12(path):
    fat(path, 12, 360 * KIB)


def fat16(path):
    fat(path, 16, 2200 * KIB, "-s", "1")


def fat32(path):
    fat(path, 32, 34 * MIB, "-s", "1", "-f", "1")


def exfat(path):
    blank(path, 1 * MIB)
    images.run("mkfs.exfat", "-c", "512", "-b", "4096", str(path))
    with filesystems.attached(path) as device, tempfile.TemporaryDirectory() as folder:
        images.run("mount.exfat-fuse", device, folder)
        try:
            tree(pathlib.Path(folder), 12)
        finally:
            images.run("umount", folder)


def btrfs(path):
    with tempfile.TemporaryDirectory() as folder:
        tree(pathlib.Path(folder), 12)
        filesystems.of_folder(path, folder, "--mixed", "-n", "4096", "-s", "4096", size=16 * MIB)


def luks2(path):
    layers.luks(path, "--luks2-keyslots-size", "256k", "--luks2-metadata-size", "16k", size=2 * MIB)
    # The key material is random, and has no checksum.
    with open(path, "r+b") as file:
        file.seek(32 * KIB)
        file.write(bytes(256 * KIB))


def lvm(path):
    with layers.physical_volume(path, "--metadatasize", "64k", size=16 * MIB) as (tool, device):
        tool.create("a", "-l", "1", "vg")
        tool.create("b", "-l", "1", "vg")
        tool("lvextend", "-q", "-l", "+1", "vg/a")
    put(path, 1 * MIB, ext2)


def verity(path):
    blank(path, 64 * KIB)
    with open(path, "r+b") as file:
        file.write(b"data" * 8 * KIB)
    place = ["--data-blocks=8", "--hash-offset=32768", "--uuid=00000000-0000-0000-0000-000000000001", "--salt=00ff"]
    images.run("veritysetup", "format", *place, str(path), str(path))


def put(path, offset, make):
    """Writes a disk into another one, and returns its size."""
    with tempfile.TemporaryDirectory() as folder:
        inner = pathlib.Path(folder) / "inner"
        make(inner)
        content = inner.read_bytes()
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content)
    return len(content)


def table(path, parts, label="gpt"):
    """A disk with a partition for each of other disks."""
    blank(path, 64 * MIB)
    offset, lines = MIB, [f"label: {label}", "label-id: 00000000-0000-0000-0000-00000000000a" if label == "gpt" else ""]
    for make in parts:
        size = put(path, offset, make)
        lines.append(f"start={offset // SECTOR}, size={size // SECTOR}")
        offset += -(-size // MIB) * MIB
    offset += MIB
    os.truncate(path, offset)
    images.run("sfdisk", "-q", "--no-reread", "--no-tell-kernel", str(path), input="\n".join(lines).encode(), stdin=None)


def gpt(path):
    table(path, [fat12, ext4, luks2, verity, lvm, exfat])


def mbr(path):
    table(path, [ntfs, ext2, fat16, btrfs], "dos")


DISKS = [
    ext4, ext4_features, ext4_journal, ext3, ext2, journal_device, xfs5, xfs4, ntfs, ntfs_4k, fat12, fat16, fat32, exfat, btrfs,
    luks2, lvm, verity, gpt, mbr,
]  # fmt: skip


# Encoding


def encode(content):
    parts, start = [struct.pack("<Q", len(content))], None
    sectors = -(-len(content) // SECTOR)
    for sector in range(sectors + 1):
        has_bytes = sector < sectors and any(content[sector * SECTOR : (sector + 1) * SECTOR])
        if has_bytes and start is None:
            start = sector
        elif not has_bytes and start is not None:
            parts.append(struct.pack("<QQ", start, sector - start))
            parts.append(content[start * SECTOR : sector * SECTOR].ljust((sector - start) * SECTOR, b"\0"))
            start = None
    plain = b"".join(parts)
    return zlib.compress(bytes((byte - before) & 0xFF for byte, before in zip(plain, b"\0\0" + plain)), 9)


def main():
    names = sys.argv[1:]
    for make in DISKS:
        if names and make.__name__ not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "disk"
            make(path)
            encoded = encode(path.read_bytes())
        (ROOT / "fuzz/images" / f"{make.__name__}.z").write_bytes(encoded)
        print(f"{make.__name__}: {len(encoded)} bytes")


if __name__ == "__main__":
    main()
