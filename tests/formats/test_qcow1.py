"""qcow images of version 1 from QEMU and from a writer here, overlays, and mutants: the content is QEMU's,
or an error. libqcow is a second opinion."""

import pathlib
import random
import struct
import zlib

import pyqcow

import guest_view
import images
from random_qcow1 import create

KIB = 1 << 10
MIB = 1 << 20
SEED = 20241124
COMPRESSED = 1 << 63


def write(rng, path, cluster_bits, l2_bits, size, stored=None):
    """Writes an image that QEMU does not create, but reads: any geometry, tables between compressed
    clusters, and `stored` clusters in any order, several of them shared."""
    cluster, entries = 1 << cluster_bits, 1 << l2_bits
    l1_at = 512 + rng.choice((0, 0, 8, 1000))
    l1 = [0] * -(-size // (cluster * entries))
    image = bytearray(l1_at + len(l1) * 8)
    struct.pack_into(">4sIQIIQBBHIQ", image, 0, b"QFI\xfb", 1, 0, 0, 0, size, cluster_bits, l2_bits, 0, 0, l1_at)
    clusters = -(-size // cluster)
    content = bytearray(clusters * cluster)
    number = rng.randint(0, 60) if stored is None else stored
    known = []
    tables = {}
    for index in rng.sample(range(clusters), min(clusters, number)):
        table = index // entries
        if table not in tables:
            l1[table] = len(image)
            tables[table] = len(image)
            image += bytes(entries * 8)
        if known and rng.random() < 0.1:
            entry, data = rng.choice(known)
        else:
            entry, data = store(rng, image, cluster_bits)
            known.append((entry, data))
        struct.pack_into(">Q", image, tables[table] + index % entries * 8, entry)
        content[index * cluster : (index + 1) * cluster] = data
    struct.pack_into(f">{len(l1)}Q", image, l1_at, *l1)
    pathlib.Path(path).write_bytes(image)
    return bytes(content[: size // 512 * 512])


def store(rng, image, cluster_bits):
    """Appends a cluster to an image. Returns its entry and its content."""
    cluster = 1 << cluster_bits
    piece = rng.randbytes(rng.choice((1, 16, 100)))
    data = (piece * (cluster // len(piece) + 1))[:cluster]
    compressor = zlib.compressobj(rng.choice((1, 6, 9)), zlib.DEFLATED, -12)
    stream = compressor.compress(data) + compressor.flush() + rng.randbytes(rng.choice((0, 0, 3)))
    if rng.random() < 0.5 and len(stream) < cluster:
        entry = COMPRESSED | len(stream) << (63 - cluster_bits) | len(image)
        image += stream
        return entry, data
    image += bytes(-len(image) % 512)
    image += data
    return len(image) - cluster, data


def random_geometry(rng):
    cluster_bits, l2_bits = rng.randint(9, 16), rng.randint(6, 13)
    span = 1 << cluster_bits + l2_bits
    size = rng.randrange(2, min(3 * span, 24 * MIB))
    return cluster_bits, l2_bits, size


def test_geometries_that_qemu_does_not_create(blksum, workdir):
    rng = random.Random(SEED + 2)
    paths = [f"{index}.qcow" for index in range(guest_view.count(10))]
    contents = {path: write(rng, path, *random_geometry(rng)) for path in paths}
    guest_view.assert_same(blksum, paths, "qcow")
    for path, content in contents.items():
        pathlib.Path("raw").write_bytes(content)
        assert guest_view.ours(blksum, ["raw"], "-f", "raw") == guest_view.ours(blksum, [path])


def test_libqcow_reads_the_same(blksum, workdir):
    rng = random.Random(SEED + 3)
    paths = [f"{index}.qcow" for index in range(guest_view.count(5))]
    for path in paths:
        create(rng, path)
    for path, result in zip(paths, guest_view.ours(blksum, paths)):
        image = pyqcow.file()
        image.open(path)
        pathlib.Path("raw").write_bytes(image.read_buffer_at_offset(image.get_media_size(), 0))
        image.close()
        assert guest_view.ours(blksum, ["raw"], "-f", "raw") == [result], path


def test_encrypted(blksum, workdir):
    options = "encrypt.format=aes,encrypt.key-secret=s"
    secret = ("--object", "secret,id=s,data=abc")
    images.qemu_img("create", "-q", *secret, "-f", "qcow", "-o", options, "disk.qcow", "1M")
    [(checksum, message)] = guest_view.ours(blksum, ["disk.qcow"])
    assert checksum is None and "is encrypted" in message


def structures(path):
    """Returns the offsets and lengths of the header and of all tables."""
    content = pathlib.Path(path).read_bytes()
    size, cluster_bits, l2_bits = struct.unpack_from(">QBB", content, 24)
    (l1,) = struct.unpack_from(">Q", content, 40)
    entries = -(-size // (1 << cluster_bits + l2_bits))
    regions = [(0, 48), (0, 48), (l1, entries * 8)]
    tables = struct.unpack_from(f">{entries}Q", content, l1)
    return regions + [(l2, 8 << l2_bits) for l2 in tables if l2]


def test_cut_off_at_every_structure(blksum, workdir):
    """Nothing that the guest sees is lost without an error."""
    rng = random.Random(SEED + 5)
    for number, (bits, l2_bits, size) in enumerate([(9, 6, 100_000), (12, 7, 3 * MIB), (16, 6, 5 * MIB)]):
        path = f"{number}.qcow"
        write(rng, path, bits, l2_bits, size)
        content = pathlib.Path(path).read_bytes()
        [(expected, _)] = guest_view.ours(blksum, [path])
        ends = {at + more for at, length in structures(path) for more in (0, 1, length - 1, length)}
        ends |= {len(content) - lost for lost in (1, 511, 512, 513)}
        paths = []
        for end in sorted(end for end in ends if end < len(content)):
            paths.append(f"{number}.{end}.cut")
            pathlib.Path(paths[-1]).write_bytes(content[:end])
        results = guest_view.ours(blksum, paths, "-f", "qcow")
        # Bytes after the last cluster of a smaller disk are padding, and so are those after a stream.
        assert len(paths) > 10 and {checksum for checksum, _ in results} <= {None, expected}, results
        assert sum(checksum is None for checksum, _ in results) >= len(results) - 4


def test_mutants(blksum, workdir):
    rng = random.Random(SEED + 6)
    write(rng, "disk.qcow", 10, 6, 200_000, 40)
    image = pathlib.Path("disk.qcow").read_bytes()
    both, _ = guest_view.check_mutants(blksum, "qcow", image, structures("disk.qcow"), 50, rng)
    assert both > 0


def test_mutants_with_a_backing_file(blksum, workdir):
    rng = random.Random(SEED + 7)
    pathlib.Path("base").write_bytes(rng.randbytes(MIB))
    create(rng, "disk.qcow", ("base", "raw"))
    image = pathlib.Path("disk.qcow").read_bytes()
    regions = structures("disk.qcow")
    regions.append((struct.unpack_from(">Q", image, 8)[0], 4))
    args = ("--backing-format=raw",)
    both, _ = guest_view.check_mutants(blksum, "qcow", image, regions, 30, rng, args)
    assert both > 0


def test_mutants_of_compressed_clusters(blksum, workdir):
    """What both decode is the same. libdeflate accepts a few invalid codes at which zlib, and so QEMU,
    gives up."""
    rng = random.Random(SEED + 8)
    write(rng, "disk.qcow", 12, 6, 300_000, 40)
    image = pathlib.Path("disk.qcow").read_bytes()
    streams = []
    for at, length in structures("disk.qcow")[3:]:
        for (entry,) in struct.iter_unpack(">Q", image[at : at + length]):
            if entry & COMPRESSED:
                streams.append((entry & (1 << 51) - 1, entry >> 51 & 4095))
    assert len(streams) > 5
    both, _ = guest_view.check_mutants(
        blksum, "qcow", image, streams, 30, rng, accept=lambda path, _: guest_view.theirs(path, "qcow") is None
    )
    assert both > 0
