"""VMware disks: the content of random and of handmade disks, by several readers, and damaged disks."""

import hashlib
import io
import json
import os
import pathlib
import random
import re
import struct

import pytest
import pyvmdk

import guest_view
import images
import vmdk_images as vmdk
from random_vmdk import SPARSE, create, random_content, random_disk, random_options, write

KIB = 1 << 10
MIB = 1 << 20
SECTOR = 512
GRAIN = 64 * KIB


@pytest.fixture(autouse=True)
def folder(workdir):
    """Every test runs in a folder of its own."""
    return workdir


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_random_chains(blksum):
    """Overlays of every kind that can have a parent, over disks of every kind."""
    rng = random.Random(2)
    paths = []
    for index in range(guest_view.count(5)):
        parent = f"base{index}.vmdk"
        size = random_disk(rng, parent)
        for depth in range(rng.randint(1, 3)):
            path = f"chain{index}.{depth}.vmdk"
            kind = rng.choice(SPARSE)
            # A larger overlay has zeros past the end of its parent.
            size += rng.choice((0, 0, 0, GRAIN, MIB + SECTOR))
            create(path, kind, size, random_options(rng, kind), parent)
            write(rng, path, size)
            parent = path
        paths.append(parent)
    guest_view.assert_same(blksum, paths, "vmdk")


def test_several_extents_of_two_gigabytes(blksum):
    """qemu-img splits such disks after 2 GiB less 64 KiB."""
    size, border = (2 << 30) + 3 * MIB, 2147418112
    for index, kind in enumerate(("twoGbMaxExtentSparse", "twoGbMaxExtentFlat")):
        path = f"split{index}.vmdk"
        create(path, kind, size)
        writes = (f"write -P 1 {border - 4096} 8k", f"write -P 2 0 {GRAIN}", f"write -P 3 {size - SECTOR} {SECTOR}")
        images.qemu_io(path, *writes, fmt="vmdk")
        assert len(list(pathlib.Path(".").glob(f"split{index}-*.vmdk"))) == 2
        options = ("-d", "crc32c", "--construction=linear")
        images.to_raw(path, "raw", "-f", "vmdk")
        assert blksum.hex(*options, path) == blksum.hex(*options, "-f", "raw", "raw")
        os.unlink("raw")


# Disks that qemu-img does not create


def by_libvmdk(path, extents=(), parent=None):
    """Returns the SHA-256 of the content as libvmdk reads it."""
    handle = pyvmdk.handle()
    handle.open(str(path))
    if extents:
        handle.open_extent_data_files_as_file_objects([io.BytesIO(data) for data in extents])
    else:
        handle.open_extent_data_files()
    if parent is not None:
        below = pyvmdk.handle()
        below.open(str(parent))
        below.open_extent_data_files()
        handle.set_parent(below)
    size = handle.get_media_size()
    content = hashlib.sha256()
    while size > 0:
        piece = handle.read_buffer(min(size, MIB))
        assert piece
        content.update(piece)
        size -= len(piece)
    return content.hexdigest()


def put(name, data):
    pathlib.Path(name).write_bytes(data)
    return name


def check(blksum, path, content, qemu=True, libvmdk=True, parent=None):
    """Compares blksum with the content, with QEMU and with libvmdk."""
    expected = sha256(content)
    for way in ((), ("--cache=no", "--threads=1"), ("--read-size=64k", "--holes=verify")):
        assert guest_view.ours(blksum, [path], *way) == [(expected, None)], (path, way)
    if qemu:
        assert guest_view.theirs(path, "vmdk") == expected, path
    if libvmdk:
        assert by_libvmdk(path, parent=parent) == expected, path


def line(sectors, kind, name, access="RW"):
    return f'{access} {sectors} {kind} "{name}"'


def monolithic(name, grains, capacity, **fields):
    text = vmdk.descriptor([line(capacity, "SPARSE", name)], "monolithicSparse")
    return put(name, vmdk.sparse(grains, capacity, text, **fields))


def streamed(name, grains, capacity, **fields):
    text = vmdk.descriptor([line(capacity, "SPARSE", name, "RDONLY")], "streamOptimized")
    return put(name, vmdk.stream(grains, capacity, text, **fields))


def shuffled(rng, count):
    order = list(range(count))
    rng.shuffle(order)
    return order


def test_hosted_sparse_disks(blksum):
    """Grains in any order and of any size, with one or two directories, and tables that are missing."""
    rng = random.Random(3)
    for index in range(guest_view.count(8)):
        grain = rng.choice((1, 8, 16, 128, 256))
        unit = grain * SECTOR
        content = random_content(rng, rng.randrange(1, 60) * unit, unit)
        if grain <= 16:
            content += bytes(rng.choice((0, 600)) * unit)
        grains = vmdk.grains_of(content, grain)
        path = monolithic(
            *(f"disk{index}.vmdk", grains, len(content) // SECTOR),
            grain=grain,
            redundant=rng.random() < 0.6,
            all_tables=rng.random() < 0.5,
            order=shuffled(rng, len(grains)) if rng.randrange(2) else None,
            version=rng.choice((1, 2, 3)),
        )
        # libvmdk refuses grains of up to 8 sectors.
        check(blksum, path, content, libvmdk=grain > 8)


def test_tables_of_other_sizes(blksum):
    """QEMU reads tables with up to 512 entries."""
    content = random_content(random.Random(4), 300 * 8192, 8192)
    for entries in (1, 2, 100, 128, 256, 512):
        path = monolithic(f"{entries}.vmdk", vmdk.grains_of(content, 16), len(content) // SECTOR,
                          grain=16, entries=entries)
        check(blksum, path, content, libvmdk=entries == 512)
    grains = vmdk.grains_of(content, 16)
    monolithic("large.vmdk", grains, len(content) // SECTOR, grain=16, entries=1024)
    assert_refused(blksum, "large.vmdk", "impossible sizes")


def test_streams(blksum):
    """As in OVA files: tables at the end, and grains in any order."""
    rng = random.Random(5)
    for index in range(guest_view.count(8)):
        grain = rng.choice((16, 128, 128, 256))
        unit = grain * SECTOR
        content = random_content(rng, rng.randrange(1, 30) * unit, unit)
        if grain <= 16:
            content += bytes(rng.choice((0, 600)) * unit)
        content = content[: len(content) - rng.choice((0, 0, SECTOR, unit // 2))]
        grains = vmdk.grains_of(content, grain)
        short_end = rng.random() < 0.5
        path = streamed(
            *(f"disk{index}.vmdk", grains, len(content) // SECTOR),
            grain=grain,
            order=shuffled(rng, len(grains)) if rng.randrange(2) else None,
            at_end=rng.random() < 0.7,
            level=rng.choice((0, 1, 6, 9)),
            version=rng.choice((1, 3)),
            short_end=short_end,
        )
        check(blksum, path, content, libvmdk=len(content) % unit == 0)


def test_zero_grains_hide_the_parent(blksum):
    rng = random.Random(6)
    below = random_content(rng, 40 * GRAIN)
    capacity = len(below) // SECTOR
    text = vmdk.descriptor([line(capacity, "SPARSE", "base.vmdk")], "monolithicSparse", cid=0xC0FFEE)
    put("base.vmdk", vmdk.sparse(vmdk.grains_of(below), capacity, text))
    grains, content = [], bytearray(below)
    for index in range(40):
        kind = rng.choice((None, vmdk.ZERO, rng.randbytes(GRAIN)))
        grains.append(kind)
        if kind is not None:
            content[index * GRAIN : (index + 1) * GRAIN] = bytes(GRAIN) if kind == vmdk.ZERO else kind
    text = vmdk.descriptor([line(capacity, "SPARSE", "top.vmdk")], "monolithicSparse",
                           parent_cid=0xC0FFEE, parent="base.vmdk")
    put("top.vmdk", vmdk.sparse(grains, capacity, text))
    # libvmdk does not know grains of zeros.
    check(blksum, "top.vmdk", content, libvmdk=False)


def described(name, extents, kind, **fields):
    """Creates a descriptor. An extent is a line, or (sectors, kind of extent, content of its file)."""
    lines = []
    for index, extent in enumerate(extents):
        if not isinstance(extent, str):
            sectors, encoding, data = extent
            file = put(f"{name}-{index}.vmdk", data)
            extent = line(sectors, encoding, file) + (" 0" if encoding == "FLAT" else "")
        lines.append(extent)
    return put(f"{name}.vmdk", vmdk.descriptor(lines, kind, **fields))


def test_esx_sparse_disks(blksum):
    rng = random.Random(7)
    for index in range(guest_view.count(5)):
        grain = rng.choice((1, 1, 8, 128))
        unit = grain * SECTOR
        content = random_content(rng, rng.randrange(1, 100) * unit, unit) + bytes(rng.choice((0, 5000)) * unit)
        capacity = len(content) // SECTOR
        grains = vmdk.grains_of(content, grain)
        order = shuffled(rng, len(grains)) if rng.randrange(2) else None
        data = vmdk.cowd(grains, capacity, grain, order=order)
        path = described(f"disk{index}", [(capacity, "VMFSSPARSE", data)], "vmfsSparse")
        check(blksum, path, content)


def test_esx_difference(blksum):
    """A snapshot of ESX: grains of a sector over a flat disk."""
    rng = random.Random(8)
    below = rng.randbytes(MIB)
    described("base", [(2048, "VMFS", below)], "vmfs", cid=0xAB)
    grains = [rng.choice((None, None, rng.randbytes(SECTOR))) for _ in range(2048)]
    content = b"".join(piece or below[i * SECTOR : (i + 1) * SECTOR] for i, piece in enumerate(grains))
    described("top", [(2048, "VMFSSPARSE", vmdk.cowd(grains, 2048))], "vmfsSparse", parent_cid=0xAB,
              parent="base.vmdk")
    check(blksum, "top.vmdk", content, parent="base.vmdk")


def test_esxi_sparse_disks(blksum):
    """libvmdk does not read them."""
    rng = random.Random(9)
    for index in range(guest_view.count(5)):
        unit = 4096
        content = random_content(rng, rng.randrange(1, 200) * unit, unit)
        content += bytes(rng.choice((0, 0, 5000)) * unit)
        grains = [piece or rng.choice((None, vmdk.ZERO)) for piece in vmdk.grains_of(content, 8)]
        order = shuffled(rng, len(grains)) if rng.randrange(2) else None
        capacity = len(content) // SECTOR
        data = vmdk.se_sparse(grains, capacity, order=order, unmapped=rng.randrange(2))
        path = described(f"disk{index}", [(capacity, "SESPARSE", data)], "seSparse")
        check(blksum, path, content, libvmdk=False)


def test_esxi_difference(blksum):
    rng = random.Random(10)
    below = rng.randbytes(MIB)
    described("base", [(2048, "VMFS", below)], "vmfs", cid=0xAB)
    grains = [rng.choice((None, vmdk.ZERO, rng.randbytes(4096))) for _ in range(256)]
    pieces = []
    for index, piece in enumerate(grains):
        if piece is None:
            piece = below[index * 4096 : (index + 1) * 4096]
        pieces.append(bytes(4096) if piece == vmdk.ZERO else piece)
    described("top", [(2048, "SESPARSE", vmdk.se_sparse(grains, 2048))], "seSparse", parent_cid=0xAB,
              parent="base.vmdk")
    check(blksum, "top.vmdk", b"".join(pieces), libvmdk=False)


def test_extents_of_every_kind(blksum):
    """Extents of zeros, which QEMU leaves out without a word, and extents of all other kinds."""
    rng = random.Random(11)
    parts = [random_content(rng, 33 * GRAIN) for _ in range(5)]
    sectors = 33 * GRAIN // SECTOR
    grains = vmdk.grains_of(parts[1])
    extents = [
        (sectors, "FLAT", parts[0]),
        (sectors, "SPARSE", vmdk.sparse(grains, sectors)),
        (sectors, "VMFSSPARSE", vmdk.cowd(vmdk.grains_of(parts[2], 1), sectors)),
        (sectors, "VMFS", parts[3]),
        (sectors, "SESPARSE", vmdk.se_sparse(vmdk.grains_of(parts[4], 8), sectors)),
    ]
    path = described("mixed", extents, "twoGbMaxExtentSparse")
    check(blksum, path, b"".join(parts), libvmdk=False)
    zeros = bytes(77 * SECTOR)
    path = described("custom", [extents[0], "RW 77 ZERO", extents[1], "RDONLY 77 ZERO"], "custom")
    check(blksum, path, parts[0] + zeros + parts[1] + zeros, qemu=False, libvmdk=False)
    # libvmdk reads extents of zeros only at the end.
    path = described("zeros", [extents[0], "RW 77 ZERO"], "monolithicFlat")
    check(blksum, path, parts[0] + zeros, qemu=False, libvmdk=False)


def test_sparse_file_that_is_listed_twice(blksum):
    """512 extents of one file cost what 512 files would. A flat file may have several parts of a disk."""
    content = random_content(random.Random(13), 4 * GRAIN)
    sectors = len(content) // SECTOR
    for kind, data in (("SPARSE", vmdk.sparse(vmdk.grains_of(content), sectors)),
                       ("VMFSSPARSE", vmdk.cowd(vmdk.grains_of(content, 1), sectors)),
                       ("SESPARSE", vmdk.se_sparse(vmdk.grains_of(content, 8), sectors))):
        put("part.vmdk", data)
        os.link("part.vmdk", "link.vmdk")
        for other, says in (("part.vmdk", "lists more than once"), ("link.vmdk", "of its own backing chain")):
            lines = [line(sectors, kind, "part.vmdk"), line(sectors, kind, other)]
            put("disk.vmdk", vmdk.descriptor(lines, "custom"))
            assert_refused(blksum, "disk.vmdk", other, says)
        os.unlink("link.vmdk")
    put("part.vmdk", content)
    lines = [line(sectors, "FLAT", "part.vmdk") + " 0"] * 2
    put("disk.vmdk", vmdk.descriptor(lines, "monolithicFlat"))
    check(blksum, "disk.vmdk", content * 2, libvmdk=False)


@pytest.mark.parametrize("kind", ["vmfsThin", "vmfsPreallocated", "vmfsEagerZeroedThick", "custom"])
def test_types_that_qemu_does_not_know(blksum, kind):
    content = random_content(random.Random(12), MIB)
    path = described("disk", [(2048, "VMFS", content)], kind)
    assert guest_view.theirs(path, "vmdk") is None
    check(blksum, path, content, qemu=False, libvmdk=False)


def test_sizes_that_virtualbox_rounds_up(blksum):
    """The file has whole grains, the descriptor the size of the disk. QEMU reads all of the file."""
    content = random.Random(13).randbytes(3 * GRAIN)
    text = vmdk.descriptor([line(300, "SPARSE", "disk.vmdk")], "monolithicSparse")
    put("disk.vmdk", vmdk.sparse(vmdk.grains_of(content), 384, text))
    check(blksum, "disk.vmdk", content, libvmdk=False)
    assert b"its descriptor says 153600" in blksum("disk.vmdk").stderr
    text = vmdk.descriptor([line(200, "SPARSE", "disk.vmdk")], "monolithicSparse")
    put("disk.vmdk", vmdk.sparse(vmdk.grains_of(content), 384, text))
    assert_refused(blksum, "disk.vmdk", "its descriptor says 102400")


def test_file_that_was_not_closed(blksum):
    content = random_content(random.Random(14), MIB)
    monolithic("disk.vmdk", vmdk.grains_of(content), 2048, unclean=1)
    result = blksum("disk.vmdk")
    assert result.returncode == 0 and b"disk.vmdk: warning: was not closed" in result.stderr, result
    described("esx", [(2048, "VMFSSPARSE", vmdk.cowd(vmdk.grains_of(content, 1), 2048, unclean=1))], "vmfsSparse")
    result = blksum("esx.vmdk")
    assert result.returncode == 0 and b"was not closed" in result.stderr, result
    # A line for each of hundreds of files would hide everything else.
    parts = [(2048, "VMFSSPARSE", vmdk.cowd(vmdk.grains_of(content, 1), 2048, unclean=1)) for _ in range(9)]
    described("split", parts, "vmfsSparse")
    result = blksum("split.vmdk")
    assert result.returncode == 0 and result.stderr.count(b"was not closed") == 4, result
    assert b"split.vmdk: warning: 6 more of its files: was not closed" in result.stderr, result


# Errors


def assert_refused(blksum, path, *words):
    result = blksum(path)
    assert (result.returncode, result.stdout) == (1, b""), result
    message = result.stderr.decode()
    assert message.count("\n") == 1 and "panic" not in message, message
    for word in words:
        assert word in message, (word, message)


def changed(data, at, fmt, *values):
    data = bytearray(data)
    struct.pack_into(fmt, data, at, *values)
    return bytes(data)


@pytest.fixture
def disk():
    """A monolithic sparse disk of 1 MiB, half of it stored."""
    grains = [bytes([index + 1]) * GRAIN if index % 2 else None for index in range(16)]
    return pathlib.Path(monolithic("disk.vmdk", grains, 2048)).read_bytes()


# Offset, format and value of a field of the header, and the error.
HEADERS = [
    *((4, "<I", version, "unknown vmdk version") for version in (0, 4, 1 << 31)),
    *((8, "<I", 3 | 1 << bit, "unknown flags") for bit in (3, 15, 18, 31)),
    (8, "<I", 3 | vmdk.COMPRESSED, "contradict"),
    (8, "<I", 3 | vmdk.COMPRESSED | vmdk.MARKERS, "contradict"),
    *((77, "<H", number, "compression") for number in (1, 2, 65535)),
    *((73, "4s", ends, "transferred as text") for ends in (b"\n \n\n", b"\r\n \r", bytes(4), b"\r \r\n")),
    (12, "<Q", 0, "names others"),
    *((12, "<Q", sectors, "impossible sizes") for sectors in (1 << 55, (1 << 64) - 1, 1 << 63)),
    (12, "<Q", 4096, "its descriptor says 1048576"),
    *((20, "<Q", grain, "impossible sizes") for grain in (0, 0x200001, 1 << 63)),
    (28, "<Q", 0, "part of a disk"),
    *((28, "<Q", place, "unusual place") for place in (2, 1 << 60)),
    *((36, "<Q", sectors, "longer than the place") for sectors in (0,)),
    *((44, "<I", entries, "impossible sizes") for entries in (0, 513, (1 << 32) - 1)),
    *((48, "<Q", sector, "grain directory") for sector in (1 << 40, 1 << 54)),
    *((56, "<Q", sector, "grain directory") for sector in (1 << 40,)),
    *((56, "<Q", sector, "impossible") for sector in (0, 1 << 55, (1 << 64) - 2)),
    (56, "<Q", (1 << 64) - 1, "does not end with its footer"),
    *((64, "<Q", sectors, "is cut off") for sectors in (1 << 20, (1 << 64) - 1)),
]


@pytest.mark.parametrize("at, fmt, value, word", HEADERS)
def test_wrong_headers(blksum, disk, at, fmt, value, word):
    put("disk.vmdk", changed(disk, at, fmt, value))
    assert_refused(blksum, "disk.vmdk", word)


def test_tables_that_differ(blksum):
    """Some programs read the first copy of the tables, some the second one."""
    content = random_content(random.Random(15), 2 * MIB)
    grains = vmdk.grains_of(content)
    data = pathlib.Path(monolithic("disk.vmdk", grains, 4096)).read_bytes()
    redundant, directory = struct.unpack_from("<QQ", data, 48)
    paths = []
    for start in (redundant, directory):
        (table,) = struct.unpack_from("<I", data, start * SECTOR)
        for index in range(32):
            at = table * SECTOR + 4 * index
            (old,) = struct.unpack_from("<I", data, at)
            for new in {0, old ^ 128, old + 1} - {old, 1}:
                paths.append(put(f"{start}.{index}.{new}.vmdk", changed(data, at, "<I", new)))
        paths.append(put(f"{start}.vmdk", changed(data, start * SECTOR, "<I", 0)))
    for path, (checksum, message) in zip(paths, guest_view.ours(blksum, paths)):
        assert checksum is None and "two copies of its grain tables differ" in message, (path, message)
    # Without the flag, there is only one copy.
    single = changed(data, 8, "<I", vmdk.NEWLINES)
    (table,) = struct.unpack_from("<I", data, redundant * SECTOR)
    put("disk.vmdk", changed(single, table * SECTOR, "<I", 77))
    check(blksum, "disk.vmdk", content, libvmdk=False)


def test_wrong_entries(blksum):
    grains = vmdk.grains_of(bytes(GRAIN) + b"x" * GRAIN)
    data = pathlib.Path(monolithic("disk.vmdk", grains, 256, redundant=False)).read_bytes()
    (directory,) = struct.unpack_from("<Q", data, 56)
    (table,) = struct.unpack_from("<I", data, directory * SECTOR)
    end = len(data) // SECTOR
    for at, value, word in [
        (directory * SECTOR, end, "past the end"),
        (directory * SECTOR, (1 << 32) - 1, "past the end"),
        (table * SECTOR, 1, "data in the header"),
        (table * SECTOR, end, "past the end"),
        (table * SECTOR, end - 127, "past the end"),
        (table * SECTOR + 4, (1 << 32) - 1, "past the end"),
    ]:
        put("disk.vmdk", changed(data, at, "<I", value))
        assert_refused(blksum, "disk.vmdk", word)
    zeros = changed(changed(data, 8, "<I", 5), directory * SECTOR, "<I", 1)
    put("disk.vmdk", zeros)
    assert_refused(blksum, "disk.vmdk", "marked as zeros")


def test_wrong_streams(blksum):
    content = random_content(random.Random(16), 8 * GRAIN)
    grains = vmdk.grains_of(content)
    for fields, word in [
        ({"lba": lambda sector: sector + 128}, "is marked as the grain of sector"),
        ({"lba": lambda sector: 1 << 60}, "is marked as the grain of sector"),
        ({"size": lambda length: 0}, "impossible length"),
        ({"size": lambda length: 2 * GRAIN - 11}, "impossible length"),
        ({"size": lambda length: (1 << 32) - 1}, "impossible length"),
        ({"size": lambda length: length - 1}, "cannot be decompressed"),
    ]:
        streamed("disk.vmdk", grains, len(content) // SECTOR, **fields)
        assert_refused(blksum, "disk.vmdk", word)
    data = pathlib.Path(streamed("disk.vmdk", grains, len(content) // SECTOR)).read_bytes()
    first = next(at for at in range(128 * SECTOR, len(data), SECTOR) if any(data[at : at + SECTOR]))
    (length,) = struct.unpack_from("<I", data, first + 8)
    # The checksum after the compressed bytes, and the header before them.
    for at in (first + 12 + length - 1, first + 12 + length - 4, first + 12, first + 13):
        put("disk.vmdk", changed(data, at, "B", data[at] ^ 1))
        assert_refused(blksum, "disk.vmdk", "cannot be decompressed")
    for at, word in [
        (len(data) - 3 * SECTOR + 8, "does not end with its footer"),
        (len(data) - 3 * SECTOR + 12, "does not end with its footer"),
        (len(data) - 2 * SECTOR, "does not end with its footer"),
        (len(data) - SECTOR, "does not end with its footer"),
        (len(data) - SECTOR + 8, "does not end with its footer"),
        (len(data) - SECTOR + 12, "does not end with its footer"),
        (len(data) - 2 * SECTOR + 12, "contradicts"),
        (len(data) - 2 * SECTOR + 20, "contradicts"),
        (len(data) - 2 * SECTOR + 74, "transferred as text"),
    ]:
        put("disk.vmdk", changed(data, at, "B", data[at] ^ 1))
        assert_refused(blksum, "disk.vmdk", word)
    put("disk.vmdk", changed(data, len(data) - 2 * SECTOR + 56, "<Q", (1 << 64) - 1))
    assert_refused(blksum, "disk.vmdk", "does not say where the tables are")
    for lost in (1, SECTOR, 2 * SECTOR, 3 * SECTOR, 10 * SECTOR):
        put("disk.vmdk", data[:-lost])
        assert_refused(blksum, "disk.vmdk", "does not end with its footer")
    put("disk.vmdk", data + bytes(SECTOR))
    assert_refused(blksum, "disk.vmdk", "does not end with its footer")


def test_compressed_grains_of_hostile_size(blksum):
    """The bytes of a grain are bounded, whatever the header and the stream say."""
    content = bytes(4 * MIB)
    streamed("disk.vmdk", [b"x" * (4 * MIB)], 8192, grain=8192)
    assert_refused(blksum, "disk.vmdk", "more than 4096 sectors")
    content = b"x" * (2 * MIB)
    check(blksum, streamed("large.vmdk", [content], 4096, grain=4096), content)
    # Streams that hold more, or less, than their grain.
    for size in (GRAIN + 1, 2 * GRAIN, GRAIN - 1, 1):
        streamed("disk.vmdk", [b"x" * size, b"y" * GRAIN], 256, short_end=True)
        assert_refused(blksum, "disk.vmdk", "cannot be decompressed")


def test_compressed_part_of_a_disk(blksum):
    content = random_content(random.Random(17), GRAIN)
    text = vmdk.descriptor([line(128, "SPARSE", "x")], "streamOptimized")
    data = vmdk.stream(vmdk.grains_of(content), 128, text)
    path = described("one", [(128, "SPARSE", data)], "streamOptimized")
    check(blksum, path, content, qemu=False)
    described("two", [(128, "SPARSE", data), (128, "SPARSE", data)], "twoGbMaxExtentSparse")
    assert_refused(blksum, "two.vmdk", "two-0.vmdk", "compressed part of a disk")


def test_wrong_esx_sparse_disks(blksum):
    data = vmdk.cowd(vmdk.grains_of(b"x" * 8192, 1), 16)
    put("part.vmdk", data)
    assert_refused(blksum, "part.vmdk", "part of a disk")
    for at, fmt, value, word in [
        (0, "4s", b"COWX", "is not a vmdk image"),
        (4, "<I", 2, "unknown version 2"),
        (12, "<I", 0, "impossible"),
        (12, "<I", 17, "its descriptor says 8192"),
        (12, "<I", 4097, "too small for its size"),
        (16, "<I", 0, "too small for its size"),
        (16, "<I", 1 << 20, "impossible"),
        (20, "<I", 0, "impossible"),
        (20, "<I", 1 << 30, "past the end"),
        (24, "<I", 0, "too small for its size"),
        (4 * SECTOR, "<I", 1 << 30, "past the end"),
        (5 * SECTOR, "<I", 1, "data in the header"),
        (5 * SECTOR, "<I", len(data) // SECTOR, "past the end"),
    ]:
        described("disk", [(16, "VMFSSPARSE", changed(data, at, fmt, value))], "vmfsSparse")
        assert_refused(blksum, "disk.vmdk", word)


def test_wrong_esxi_sparse_disks(blksum):
    data = vmdk.se_sparse(vmdk.grains_of(b"x" * 16384, 8), 32)
    directory, tables, grains = (struct.unpack_from("<Q", data, at)[0] for at in (128, 144, 192))
    for at, fmt, value, word in [
        (0, "<Q", 0xCAFEBABF, "is not a sparse file of ESXi"),
        (8, "<Q", 0x2_0000_0002, "unknown version"),
        (16, "<Q", 0, "impossible"),
        (16, "<Q", 1 << 60, "impossible"),
        (16, "<Q", 64 * 32768 + 1, "too small for its size"),
        (24, "<Q", 16, "unknown grain size"),
        (32, "<Q", 32, "unknown size of grain tables"),
        (40, "<Q", 1, "unknown flag"),
        *((at, "<Q", 1, "unknown feature") for at in (48, 56, 64, 72, 208, 504)),
        (80, "<Q", 0, "lacks the second header"),
        (80, "<Q", 1 << 40, "past the end"),
        (80, "<Q", 1 << 60, "past the end"),
        (128, "<Q", 0, "impossible"),
        (128, "<Q", 1 << 40, "past the end"),
        (136, "<Q", 0, "too small for its size"),
        (144, "<Q", 1 << 31, "past the end"),
        (144, "<Q", 1 << 32, "impossible place"),
        (144, "<Q", (1 << 64) - 1, "impossible place"),
        (192, "<Q", 1 << 40, "past the end"),
        (192, "<Q", (1 << 64) - 1, "impossible place"),
        (192, "<Q", (1 << 55) - 1, "impossible place"),
        (SECTOR, "<Q", 0xCAFEBABE, "lacks the second header"),
        (SECTOR + 24, "<Q", 1, "journal"),
        (SECTOR + 32, "<Q", 1, "unknown feature"),
        (directory * SECTOR, "<Q", 1, "unknown type"),
        (directory * SECTOR, "<Q", 0x10000001_00000000, "unknown type"),
        (directory * SECTOR, "<Q", 0x10000000_ffffffff, "impossible place"),
        (directory * SECTOR, "<Q", 0x10000000_00010000, "past the end"),
        (tables * SECTOR, "<Q", 1, "unknown type"),
        (tables * SECTOR, "<Q", 4 << 60, "unknown type"),
        (tables * SECTOR, "<Q", 0xF << 60, "unknown type"),
        (tables * SECTOR, "<Q", 0x3FFFFFFF_FFFFFFFF, "impossible place"),
        (tables * SECTOR, "<Q", 0x3004_0000_0000_0000, "past the end"),
    ]:
        described("disk", [(32, "SESPARSE", changed(data, at, fmt, value))], "seSparse")
        assert_refused(blksum, "disk.vmdk", word)


def test_parents_that_changed(blksum):
    """The parent must have the content id that the difference records."""
    content = random_content(random.Random(18), MIB)
    for cid, parent_cid, word in [
        (0xAB, 0xAC, "its content id is 000000ab, not 000000ac"),
        (0xAB, vmdk.NO_PARENT, "not ffffffff"),
    ]:
        described("base", [(2048, "VMFS", content)], "vmfs", cid=cid)
        data = vmdk.sparse([None] * 16, 2048)
        described("top", [(2048, "SPARSE", data)], "twoGbMaxExtentSparse", parent_cid=parent_cid,
                  parent="base.vmdk")
        assert_refused(blksum, "top.vmdk", "base.vmdk", word)
        assert guest_view.theirs("top.vmdk", "vmdk") is None
    text = pathlib.Path("base.vmdk").read_bytes()
    put("base.vmdk", text.replace(b"CID=000000ab\n", b"", 1))
    assert_refused(blksum, "top.vmdk", "base.vmdk", "its content id is none")


def test_descriptors_that_qemu_reads_otherwise(blksum):
    """QEMU searches the text for names of settings, also in comments and other values."""
    content = random_content(random.Random(19), MIB)
    good = pathlib.Path(described("disk", [(2048, "FLAT", content)], "monolithicFlat")).read_bytes()
    check(blksum, "disk.vmdk", content)
    for old, new, word in [
        (b"version=1\n", b'version=1\n# parentFileNameHint="x"\n', "parentFileNameHint at an unusual place"),
        (b"#DDB", b'ddb.comment = "parentFileNameHint"', "parentFileNameHint at an unusual place"),
        (b"version=1\n", b'version=1\n# createType="vmfs"\n', "createType at an unusual place"),
        (b"version=1\n", b"version=1\n# parentCID=1\n", "CID at an unusual place"),
        (b"createType=", b"createtype=", "does not spell createType="),
        (b"createType=", b"createType =", "does not spell createType="),
        (b'createType="', b'createType= "', "not in quotes"),
        (b"CID=1234", b"cid=1234", "does not spell CID="),
        # A blank for C, and QEMU reads an extent.
        (b"#DDB", b'\x0bRW 2048 FLAT "x=y" 0', "has a vertical tab"),
        (b"RW 2048", b"RW\x0b2048", "has a vertical tab"),
        # QEMU opens a file whose name is cut off.
        (b'FLAT "', b'FLAT "' + b"./" * 256, "a file name of more than 511 bytes"),
        (b" FLAT ", b" VMFS ", "has more words than an extent"),
        (b"#DDB", b"#" * 10240 + b'\nparentFileNameHint="x"', "parentFileNameHint at an unusual place"),
    ]:
        assert good.count(old) >= 1
        put("disk.vmdk", good.replace(old, new, 1))
        assert_refused(blksum, "disk.vmdk", word)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_versions_of_descriptors(blksum, version):
    content = random_content(random.Random(23), MIB)
    good = pathlib.Path(described("disk", [(2048, "FLAT", content)], "monolithicFlat")).read_bytes()
    put("disk.vmdk", good.replace(b"version=1", b"version=%d" % version))
    check(blksum, "disk.vmdk", content)


@pytest.mark.parametrize("name, encoding", [("磁盘", "GBK"), ("ソ表", "Shift_JIS"), ("Dätenträger", "windows-1252"), ("磁盘", "UTF-8")])
def test_names_in_other_encodings(blksum, name, encoding):
    """A name is bytes, as in QEMU, whatever its encoding is called. In Shift_JIS, a backslash is a half of a character."""
    content = random_content(random.Random(24), MIB)
    good = pathlib.Path(described("disk", [(2048, "FLAT", content)], "monolithicFlat")).read_bytes()
    [old] = re.findall(rb'FLAT "(.*)" 0', good)
    new = name.encode(encoding) + b"-flat.vmdk"
    os.rename(old, new)
    text = good.replace(old, new).replace(b'"UTF-8"', b'"%s"' % encoding.encode())
    put("disk.vmdk", text)
    check(blksum, "disk.vmdk", content, libvmdk=encoding == "UTF-8")


# The label that VMware or VirtualBox writes, the codec of Python, and a name. libvmdk knows all labels but two.
ENCODINGS = [
    ("GBK", "gbk", "磁盘"),
    ("windows-936", "gbk", "磁盘"),
    ("Shift_JIS", "shift_jis", "ソ表"),
    ("windows-932", "cp932", "ソ表"),
    ("big5", "big5", "磁碟"),
    ("windows-1252", "cp1252", "Dätenträger €"),
    ("ISO-8859-1", "latin-1", "Dätenträger"),
    ("windows-1251", "cp1251", "Диск"),
    ("UTF-8", "utf-8", "磁盘"),
]


@pytest.mark.parametrize("label, codec, name", ENCODINGS)
def test_files_with_names_in_unicode(blksum, label, codec, name):
    """VMware decodes the names in a descriptor, and the file has the name in UTF-8. QEMU does not find it."""
    rng = random.Random(label)
    content, changed = random_content(rng, MIB), random_content(rng, MIB)
    described(name, [(2048, "FLAT", content)], "monolithicFlat", cid=0xC0FFEE)
    base = f"{name}.vmdk"
    text = pathlib.Path(base).read_text().replace('"UTF-8"', f'"{label}"')
    put(base, text.encode(codec))
    assert pathlib.Path(f"{name}-0.vmdk").exists() and (label == "UTF-8" or name.encode() not in text.encode(codec))
    check(blksum, base, content, qemu=label == "UTF-8", libvmdk=label not in ("big5", "ISO-8859-1"))
    grains = [piece if rng.randrange(2) else None for piece in vmdk.grains_of(changed)]
    merged = b"".join(piece or content[at * GRAIN : at * GRAIN + GRAIN] for at, piece in enumerate(grains))
    text = vmdk.descriptor([line(2048, "SPARSE", f"{name}-top.vmdk")], "monolithicSparse", parent_cid=0xC0FFEE, parent=base)
    text = text.decode().replace('"UTF-8"', f'"{label}"').encode(codec)
    put("top.vmdk", vmdk.sparse(grains, 2048, text))
    check(blksum, "top.vmdk", merged, qemu=label == "UTF-8", libvmdk=False)
    # A file whose name has the bytes of the descriptor comes first, as in QEMU.
    other = name.encode(codec) + b"-0.vmdk"
    if label != "UTF-8":
        with open(other, "wb") as file:
            file.write(changed)
        check(blksum, base, changed, libvmdk=False)
        os.unlink(other)
    # No other file is opened because of its name.
    os.rename(f"{name}-0.vmdk", "elsewhere")
    os.symlink(os.path.abspath("elsewhere"), f"{name}-0.vmdk")
    assert_refused(blksum, base, "leads out of the image's own folder")


def test_unknown_encodings(blksum):
    content = random_content(random.Random(25), MIB)
    good = pathlib.Path(described("disk", [(2048, "FLAT", content)], "monolithicFlat")).read_bytes()
    for label in ("x-unknown", "", "UTF-7", "GBK\x1b"):
        text = good.replace(b'"UTF-8"', b'"%s"' % label.encode())
        # Names in ASCII need no encoding.
        put("disk.vmdk", text)
        check(blksum, "disk.vmdk", content, libvmdk=False)
        put("disk.vmdk", text.replace(b"disk-0", b"d\xefsk-0"))
        assert_refused(blksum, "disk.vmdk", "which is not known")
    put("disk.vmdk", good.replace(b'"UTF-8"', b'"GBK"').replace(b"disk-0", b"d\xff\xff-0"))
    assert_refused(blksum, "disk.vmdk", "which is no text in its encoding, GBK")


def test_a_part_that_ends_within_a_grain_is_the_last(blksum):
    """For QEMU and libvmdk, its last grain continues over the next part."""
    first, second = b"A" * 51200 + b"X" * 14336, b"B" * GRAIN
    parts = [(100, "SPARSE", vmdk.sparse([first], 100)), (128, "SPARSE", vmdk.sparse([second], 128))]
    for follower in (parts[1], (128, "FLAT", second)):
        path = described("disk", [parts[0], follower], "twoGbMaxExtentSparse")
        assert_refused(blksum, path, "ends within a grain, and another part of the disk follows")
    path = described("disk", [parts[1], parts[0]], "twoGbMaxExtentSparse")
    check(blksum, path, second + first[:51200])


def test_a_blank_line_is_no_extent(blksum):
    """QEMU reads the extent after it twice."""
    content = random_content(random.Random(21), MIB)
    good = pathlib.Path(described("disk", [(2048, "FLAT", content)], "monolithicFlat")).read_bytes()
    put("disk.vmdk", good.replace(b"RW 2048", b"\nRW 2048"))
    check(blksum, "disk.vmdk", content, qemu=False, libvmdk=False)


def test_devices_are_refused(blksum):
    for kind in ("fullDevice", "partitionedDevice", "vmfsRaw", "vmfsRDM", "vmfsRDMP"):
        described("disk", [(2048, "FLAT", bytes(MIB))], kind)
        assert_refused(blksum, "disk.vmdk", f'its type "{kind}" means a device')
    described("disk", [(2048, "FLAT", bytes(MIB))], "future")
    assert_refused(blksum, "disk.vmdk", 'its type "future" is not read')


def test_embedded_descriptors(blksum, disk):
    text = disk[SECTOR : 21 * SECTOR].rstrip(b"\0")
    for old, new, word in [
        (b"parentCID=ffffffff", b"parentCID=0000000b", "difference to a disk that it does not name"),
        (b" SPARSE ", b" VMFSSPARSE ", "does not describe one sparse file"),
        (b'RW 2048 SPARSE "disk.vmdk"', b'RW 2048 FLAT "disk.vmdk" 0', "does not describe one sparse file"),
        (b'"disk.vmdk"', b'"disk.vmdk"\nRW 2048 SPARSE "more.vmdk"', "does not describe one sparse file"),
        (b"parentCID=ffffffff\n", b"", "parentCID="),
        (b"version=1", b"version=9", "unknown version"),
        (text, b"", "is a part of a disk"),
        (text, text + b"#" * 10240, "longer than the place"),
    ]:
        assert old in text
        changed_text = text.replace(old, new, 1)[: 20 * SECTOR].ljust(20 * SECTOR, b"\0")
        put("disk.vmdk", disk[:SECTOR] + changed_text + disk[21 * SECTOR :])
        assert_refused(blksum, "disk.vmdk", word)


# Cut off and damaged files


def samples():
    """Names, files and expected contents of small disks of every kind."""
    rng = random.Random(20)
    content = random_content(rng, 12 * GRAIN) + b"end " * 128
    sectors = len(content) // SECTOR
    grains = vmdk.grains_of(content)
    text = vmdk.descriptor([line(sectors, "SPARSE", "disk.vmdk")], "monolithicSparse")
    streamed_text = vmdk.descriptor([line(sectors, "SPARSE", "disk.vmdk")], "streamOptimized")
    zeroed = [piece or vmdk.ZERO for piece in grains]
    return content, {
        "hosted": ("", vmdk.sparse(grains, sectors, text)),
        "single": ("", vmdk.sparse(zeroed, sectors, text, redundant=False)),
        "stream": ("", vmdk.stream(grains, sectors, streamed_text)),
        "stream-start": ("", vmdk.stream(grains, sectors, streamed_text, at_end=False)),
        "esx": ("VMFSSPARSE", vmdk.cowd(vmdk.grains_of(content, 1), sectors)),
        "esxi": ("SESPARSE", vmdk.se_sparse(vmdk.grains_of(content, 8), sectors)),
        "flat": ("FLAT", content),
    }


NAMES = ("hosted", "single", "stream", "stream-start", "esx", "esxi", "flat")
TYPES = {"VMFSSPARSE": "vmfsSparse", "SESPARSE": "seSparse", "FLAT": "monolithicFlat"}


def write_sample(name, encoding, data, sectors):
    """Writes a disk, which may need a descriptor beside it. Returns the path to read."""
    if not encoding:
        return put(f"{name}.vmdk", data)
    return described(name, [(sectors, encoding, data)], TYPES[encoding])


def structures(name, data):
    """Returns offsets and lengths of everything in a file that is not content."""
    if name in ("hosted", "single"):
        redundant, directory = struct.unpack_from("<QQ", data, 48)
        found = [(0, 80), (0, SECTOR)]
        for start in {redundant or directory, directory}:
            (table,) = struct.unpack_from("<I", data, start * SECTOR)
            found += [(start * SECTOR, 8), (table * SECTOR, 64)]
        return found
    if name.startswith("stream"):
        size = len(data)
        grains = [at for at in range(128 * SECTOR, size - 8 * SECTOR, SECTOR) if data[at + 12] == 0x78]
        at = size - 3 * SECTOR
        return [(0, 80), (at, 16), (at + SECTOR, 80), (at + 2 * SECTOR, 16), (at - 2 * SECTOR, 2 * SECTOR),
                (at - 6 * SECTOR, 80), *((at, 40) for at in grains[:4])]
    if name == "esx":
        return [(0, 64), (4 * SECTOR, 8), (5 * SECTOR, 4096)]
    if name == "esxi":
        return [(0, 208), (SECTOR, 40), (2 * SECTOR, 16), (3 * SECTOR, 2048)]
    return []


@pytest.mark.parametrize("name", NAMES)
def test_cut_off_anywhere(blksum, name):
    """QEMU reads zeros past the end of a file. blksum reports an error, or loses nothing."""
    content, disks = samples()
    encoding, data = disks[name]
    ends = {0, 1, 4, 79, SECTOR - 1, SECTOR, 4 * SECTOR, len(data) - 1}
    for start, length in structures(name, data):
        ends |= {start, start + 1, start + 4, start + length - 1, start + length}
    ends |= {end + more for end in range(0, len(data), GRAIN) for more in (-1, 0, 1, 100, SECTOR)}
    expected, refused = sha256(content), 0
    paths = []
    for end in sorted(end for end in ends if 0 <= end < len(data)):
        paths.append(write_sample(f"cut{end}", encoding, data[:end], len(content) // SECTOR))
    for path, (checksum, message) in zip(paths, guest_view.ours(blksum, paths, "-f", "vmdk")):
        assert checksum in (expected, None), path
        refused += checksum is None
    assert refused > len(paths) // 2
    path = write_sample("whole", encoding, data, len(content) // SECTOR)
    check(blksum, path, content, libvmdk=False)


@pytest.mark.parametrize("name", NAMES[:-1])
def test_mutants(blksum, name):
    """Every change of a structure is an error, or has the value that QEMU reads."""
    content, disks = samples()
    encoding, data = disks[name]
    regions, rng = structures(name, data), random.Random(name)
    number = 30
    if not encoding:
        # libdeflate accepts some streams that QEMU's zlib does not, and the checksum of the content is
        # verified.
        accept = (lambda _, checksum: checksum == sha256(content)) if name.startswith("stream") else None
        both, stricter = guest_view.check_mutants(blksum, "vmdk", data, regions, number, rng, accept=accept)
    else:
        both, stricter = check_part_mutants(blksum, encoding, data, regions, number, rng, len(content) // SECTOR)
    assert both > 0 and stricter


def check_part_mutants(blksum, encoding, data, regions, number, rng, sectors):
    """Does the same as check_mutants for a file that needs a descriptor beside it."""
    mutants = {}
    for index in range(int(os.environ.get("MUTANTS", number))):
        mutant, change = guest_view.mutate(rng, data, regions)
        if bytes(mutant) != data:
            mutants[write_sample(f"mutant{index}", encoding, bytes(mutant), sectors)] = change
    both, stricter = 0, []
    for path, (checksum, message) in zip(mutants, guest_view.ours(blksum, mutants, "-f", "vmdk")):
        expected = guest_view.theirs(path, "vmdk")
        if checksum is None:
            stricter += [message] * (expected is not None)
        else:
            assert checksum == expected, (path, mutants[path])
            both += 1
    return both, stricter


# Large disks


def test_large_disks(blksum):
    """qemu-img writes all tables of a disk, most of them as holes of the file, which are not read."""
    create("empty.vmdk", "monolithicSparse", "1T")
    report = json.loads(blksum("--json", "-d", "crc32c", "empty.vmdk").stdout)
    assert report["virtual_size"] == 1 << 40 and report["bytes_read"] < MIB, report
    rng = random.Random(21)
    size = 16 << 30
    for _ in range(guest_view.count(1)):
        writes = []
        for n in range(12):
            start = rng.randrange(size // SECTOR) * SECTOR
            length = min(rng.choice((SECTOR, GRAIN, 40 * MIB)), size - start)
            writes.append(f"write -P {n + 1} {start} {length}")
        create("disk.vmdk", "monolithicSparse", size)
        images.create("disk.qcow2", size)
        images.qemu_io("disk.vmdk", *writes, fmt="vmdk")
        images.qemu_io("disk.qcow2", *writes)
        expected = blksum.hex("-d", "crc32c", "disk.qcow2")
        assert blksum.hex("-d", "crc32c", "disk.vmdk") == expected
        assert blksum.hex("-d", "crc32c", "--holes=ignore", "disk.vmdk") == expected
        os.unlink("disk.vmdk")
