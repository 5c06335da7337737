#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: a folder for each target in fuzz/seeds, with small inputs from which a fuzzer begins.

    fuzz/seeds.py [FOLDER]

Inputs of targets that take values, and not bytes, are written as the crate `arbitrary` reads them: integers little endian, and
before each item of a list a byte that is odd, and after the last one a byte that is even.
"""

import hashlib
import pathlib
import struct
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "reference"), str(ROOT / "tests/helpers")]

import blkmap  # noqa: E402
import dmg_images  # noqa: E402
import verity  # noqa: E402

TEXT = b"blkhash blkhash blkhash blkhash\n"

# The text, as the tools of today compress it.
COMPRESSED = {
    "xz": "fd377a585a0000016922de360200210116000000742fe5a3e0001f00105d00311b09a97f65d8f6cbf2bad4bbcc00000073800c5c0001"
    "2820493bb5469042990d010000000001595a",
    "zstd": "28b52ffd24207d000048626c6b68617368200a0100ab0b1756578906",
    "bzip2": "425a683931415926535932df7d82000005d18000104000304c08002000310c080aa8d19a7c572a184210d17724538509032df7d820",
    "lz4": "04224d186440a7120000008f626c6b686173682008000050686173680a000000002c7e2779",
}
# The text sixteen times.
LZFSE = bytes.fromhex(
    "6276786e000200001f000000e8626c6b68617368203808fd68200af0fff0b6e373680a060000000000000062767824"
)
COMPRESSIONS = ("gzip", "xz", "zstd", "bzip2", "lz4")


# Encoding


def u8(value):
    return struct.pack("<B", value)


def u16(value):
    return struct.pack("<H", value)


def u32(value):
    return struct.pack("<I", value)


def u64(value):
    return struct.pack("<Q", value)


def items(*encoded):
    """A list."""
    return b"".join(b"\x01" + item for item in encoded) + b"\0"


def text(content):
    """A list of bytes."""
    return items(*map(u8, content))


# Files


def stored(content):
    """A stream of deflate that stores the content."""
    return b"\x01" + struct.pack("<HH", len(content), len(content) ^ 0xFFFF) + content


def gzip(content):
    return bytes.fromhex("1f8b08000000000000ff") + stored(content) + u32(zlib.crc32(content)) + u32(len(content))


def adler(data):
    """Data with their Adler-32."""
    return data + u32(zlib.adler32(data))


def ewf(kind="fast", chunks=3, digests=True, errors=False):
    """A segment of an EWF image with chunks of 512 bytes, and the byte before it that repairs no checksum."""
    file = b"EVF\x09\r\n\xff\0\x01" + u16(1) + u16(0)

    def section(name, data=b""):
        following = len(file) if name == b"done" else len(file) + 76 + len(data)
        return file + adler(name.ljust(16, b"\0") + u64(following) + u64(76 + len(data)) + bytes(40)) + data

    content = [(TEXT * 16)[:512], bytes(512), bytes(range(256)) * 2]
    pieces = [(adler(it), 0) if kind == "stored" or number == 2 else (packed(it), 1 << 31) for number, it in enumerate(content[:chunks])]
    file = section(b"header", packed(b"1\nmain\nc\tn\ta\tm\nA\tB\tC\t2026 1 2 3 4 5\n\n"))
    is_short = kind == "smart"
    if is_short:
        file = section(b"volume", adler(u32(1) + u32(chunks) + u32(1) + u32(512) + u32(chunks) + bytes(65) + b"SMART"))
    else:
        file = section(b"volume", adler(u32(1) + u32(chunks) + u32(1) + u32(512) + u64(chunks) + bytes(1048 - 24)))
    base = 0 if is_short else len(file)
    at = len(file) + 76 + 24 + 4 * chunks if is_short else 76
    entries = b""
    for data, flag in pieces:
        entries += u32(at | flag)
        at += len(data)
    header = adler(u32(chunks) + u32(0) + u64(base) + u32(0))
    data = b"".join(data for data, _ in pieces)
    if is_short:
        file = section(b"table", header + entries + data)
    else:
        file = section(b"sectors", data)
        file = section(b"table", header + adler(entries))
        file = section(b"table2", header + adler(entries))
    if errors:
        file = section(b"error2", adler(u32(1) + bytes(512)) + adler(u32(1) + u32(2)))
    if digests:
        raw = b"".join(content[:chunks])
        md5 = hashlib.md5(raw).digest()
        file = section(b"digest", adler(md5 + hashlib.sha1(raw).digest() + bytes(40)))
        file = section(b"hash", adler(md5 + bytes(16)))
    return b"\0" + section(b"done")


def packed(content):
    """A stream of zlib that stores the content, so that it is the same with every library."""
    return b"\x78\x01" + stored(content) + struct.pack(">I", zlib.adler32(content))


def qcow2(version=3, incompatible=0, compressed=b"", snapshot=False):
    """An image of 16 clusters of 512 bytes, with data, zeros, a compressed cluster and empty ones."""
    cluster, tables = 512, 4
    data = tables * cluster
    entries = [0] * (cluster // 8)
    entries[0] = 1 << 63 | data
    entries[2] = 1 if version == 3 else 0
    at = data + cluster
    image = {0: b"", 3 * cluster: bytes(cluster), data: b"data".ljust(cluster, b"D")}
    if compressed:
        # With clusters of 512 bytes, 61 bits are for the offset, and 1 for more sectors.
        entries[3] = 1 << 62 | at
        image[at] = compressed.ljust(cluster, b"\0")
        at += cluster
    header = b"QFI\xfb" + struct.pack(">IQIIQIIQQIIQ", version, 0, 0, 9, 16 * cluster, 0, 1, cluster, 3 * cluster, 1, 0, 0)
    if snapshot:
        name = struct.pack(">QIHHIIQII", cluster, 1, 1, 1, 0, 0, 0, 0, 16) + struct.pack(">QQ", 0, 16 * cluster) + b"1s"
        image[at] = name.ljust(cluster, b"\0")
        header = header[:60] + struct.pack(">IQ", 1, at)
    if version == 3:
        header += struct.pack(">QQQII", incompatible, 0, 0, 4, 104) + bytes(8)
    image[0] = header.ljust(cluster, b"\0")
    image[cluster] = struct.pack(">Q", 1 << 63 | 2 * cluster).ljust(cluster, b"\0")
    image[2 * cluster] = struct.pack(f">{cluster // 8}Q", *entries)
    return b"".join(image[at] for at in sorted(image))


def check_file():
    digest = hashlib.sha256(TEXT)
    value = digest.hexdigest()
    lines = {
        "text": f"{value}  disk.img\n{value} *disk.qcow2\n",
        "bsd": f"{value} disk.img\n",
        "escaped": f"\\{value}  new\\nline \\\\ \\r\n",
        "oci": f"sha256:{value}  disk.img\n",
        "tag": f"BLKSUM-SHA256-STREAMS4-64K (disk.img) = {value}\nBLKSUM-SHA256-LINEAR (disk (1).img) = {value}\n",
        "salt": f"BLKSUM-SHA256-DMVERITY-4K-SALT5e (disk.img) = {value}\nBLKSUM-SHA512-256-FLAT-1M (disk.img) = {value}\n",
        "content": "".join(
            f"BLKSUM-SHA256-STREAMS4-64K{field} (disk.qcow2) = {value}\n"
            for field in ("/FORMAT=raw", "/SNAPSHOT=before%20upgrade", "/PARTITION=2", "/OFFSET=512/LENGTH=1024", "/VPCSIZE=current")
        ),
        "plain-tags": f"SHA256 (disk.img) = {value}\nSHA2-256(disk.img)= {value}\nCRC32 (disk.img) = 01020304\n",
        "odd": f"# comment\r\n\n \t{value.upper()}  disk.img\r\n{value[:-1]}  short\nno line\n",
    }
    return {name: content.encode() for name, content in lines.items()}


def map_seeds():
    runs = items(u8(1) + u8(100), u8(0) + u8(255), u8(2) + u8(30))
    whole = blkmap.write(bytes(2048), "sha256", 512, file_id=bytes(16), info="{}")
    yield "changed", runs + items(u16(0x8020) + u64(2), u16(4) + u64(1)) + b"\x01" + text(b"")
    yield "repaired", runs + items(u16(16) + u64(4096)) + b"\0" + text(b"")
    yield "whole", items() + items() + b"\0" + text(whole)


def guest_view(seeds):
    """Changes of real images: the sector, the place, the width, and the value."""
    for number in range(seeds):
        yield f"image-{number}", u8(number)
    for sector in range(3):
        fields = [u16(sector) + u16(place) + u8(2 << 3 | 3) + u64(1 << 62) for place in range(0, 64, 8)]
        yield f"sector-{sector}", u8(0) + fields[0]
        yield f"fields-of-sector-{sector}", u8(0) + b"".join(fields)
    yield "cut", u8(0) + u16(2) + u16(100) + u8(0) + u64(0)
    yield "bits", u8(0) + b"".join(u16(0) + u16(place) + u8(1 << 3) + u64(place) for place in range(0, 112, 4))


def disk_change(sector, place, kind, width, value, is_big=False):
    return u16(sector) + u16(place) + u8(kind << 3 | is_big << 2 | width) + u64(value)


def disks(count, is_big=False, head=b""):
    """Changes of the disks of fuzz/images.py: all as they are, and numbers in the first structures of each."""
    for number in range(count):
        yield f"disk-{number}", head + u8(number)
        fields = [disk_change(sector, place, 3, 2, 1, is_big) for sector in range(4) for place in range(0, 128, 32)]
        yield f"numbers-of-disk-{number}", head + u8(number) + b"".join(fields)
        copies = [disk_change(sector, 0, 2, 0, sector + 1) for sector in (2, 9)]
        yield f"copies-in-disk-{number}", head + u8(number) + b"".join(copies)
        yield f"cut-disk-{number}", head + u8(number) + disk_change(60, 0, 0, 0, 0)
    yield "bytes", head + u8(count) + TEXT * 64


def qcow2_counted(counts):
    """An image with reference counts of 16 bits, in clusters after the clusters of the other seeds."""
    image = bytearray(qcow2())
    table = len(image)
    image[48:60] = struct.pack(">QI", table, 1)
    image += struct.pack(">Q", table + 512).ljust(512, b"\0")
    return bytes(image + struct.pack(">256H", *counts, *[0] * (256 - len(counts))))


def compressed():
    for number, name in enumerate(COMPRESSIONS):
        file = gzip(TEXT) if name == "gzip" else bytes.fromhex(COMPRESSED[name])
        yield name, u8(number) + u8(0) + text(file) + items() + items() + items(u16(3) + u16(9))
        twice = text(file + file)
        yield f"{name}-twice", u8(number) + u8(0) + twice + items() + items() + items(u16(30) + u16(9))
    for number, name in ((0, "gzip"), (2, "zstd")):
        parts = text(TEXT) + items(u16(50), u16(100))
        yield f"{name}-made", u8(number) + u8(1) + parts + items() + items(u16(0) + u16(224))
        yield f"{name}-changed", u8(number) + u8(1) + parts + items(u16(9) + u8(1)) + items()
    # Two frames, of which the second one states 3 bytes, has 2, and ends with an empty block.
    frames = [bytes.fromhex("28b52ffd20%02x1000006162010000" % stated) for stated in (2, 3)]
    yield "zstd-other-size", u8(2) + u8(0) + text(b"".join(frames)) + items() + items() + items(u16(0) + u16(1))


def clusters():
    for is_zstd, name in ((0, "deflate"), (1, "zstd")):
        yield f"{name}-made", u8(is_zstd) + u8(6) + u8(1) + text(TEXT) + items()
        yield f"{name}-changed", u8(is_zstd) + u8(1) + u8(1) + text(TEXT) + items(u16(5) + u8(255))
    yield "stored", u8(0) + u8(0) + u8(0) + text(stored(TEXT)) + items()
    yield "zstd", u8(1) + u8(0) + u8(0) + text(bytes.fromhex(COMPRESSED["zstd"])) + items()


def verity_seeds():
    head = struct.pack("<8sII16s32sIIQH6x256s", b"verity\0\0", 1, 1, bytes(16), b"sha256", 4096, 4096, 2, 2, b"\0\xff")
    _, tree = verity.dm_verity([(bytes(512), 20)], "sha256", 512)
    whole = items(u8(1) + u8(40), u8(0) + u8(200), u8(2) + u8(3))
    for name, shape, changes, data, root in (
        ("whole", 0, [], [], 0),
        ("salted", 0xC1, [], [], 0),
        ("tree", 0, [u16(70) + u8(1) + u8(0), u16(600) + u8(2) + u8(1)], [], 0),
        ("data", 2, [], [u16(3) + u8(9), u16(60) + u8(1)], 0),
        ("root", 4, [], [], 1),
    ):
        yield name, u64(0) + text(head) + u8(shape) + whole + items(*changes) + items(*data) + u8(7) + u8(root)
    yield "tree-as-superblock", u64(512) + text(tree[:128]) + u8(0) + items() + items() + items() + u8(0) + u8(0)


def member(kind, name, content, changes=()):
    return u8(kind) + u8(name) + u8(len(content)) + text(content) + items(*changes)


def appliance():
    described = items(u8(0) + u8(0) + u8(0), u8(2) + u8(0) + u8(0))
    file = member(0, 0, b"content")
    yield "one-disk", described + items() + items(file) + items()
    yield "two-disks", items(*(u8(kind) + u8(id) + u8(id) for kind in (0, 2) for id in (0, 1))) + items() + items(
        file, member(0, 1, b"other")
    ) + items()
    yield "comment", items(u8(4) + u8(0) + u8(0), u8(0) + u8(0) + u8(0), u8(2) + u8(0) + u8(0)) + items() + items(file) + items()
    yield "links", described + items() + items(member(5, 0, b""), member(6, 2, b""), file) + items()
    yield "long-name", described + items() + items(member(8, 0, b"x/a.raw\0"), file) + items()
    yield "pax", described + items() + items(member(9, 0, b"16 path=x/a.raw\n"), file) + items()
    yield "entity", described + items(u16(30) + text(b"&amp;&#x2e;")) + items(file) + items()
    yield "changed-header", described + items() + items(member(0, 0, b"content", [u8(1) + u8(0x80)])) + items(u16(700) + u8(1))


def oci():
    disk = u8(1) + u8(0) + text(b"disk") + items()
    layer = u8(0) + u8(1) + text(b"") + items(u8(0) + u8(0) + text(b"lower"), u8(0) + u8(1) + text(b"other"))
    upper = u8(0) + u8(1) + text(b"") + items(u8(0) + u8(3) + text(b""), u8(0) + u8(0) + text(b"upper"))
    yield "disk", items(disk) + items() + items()
    yield "container", items(layer) + items() + items()
    yield "whiteout", items(layer, upper) + items() + items()
    yield "disk-and-container", items(disk, layer) + items() + items()
    yield "changed-blob", items(disk) + items(u16(1536) + u8(1)) + items()
    yield "changed-manifest", items(disk) + items() + items(u16(20) + text(b'"size":-1'))


def flag(value):
    return u8(int(value))


def zip_members():
    def one(name, deflate, late, content):
        return u8(name) + flag(deflate) + flag(late) + text(content)

    for deflate in (False, True):
        for late in (False, True):
            yield f"member-{deflate}-{late}", items(one(0, deflate, late, b"content" * 100)) + text(b"") + items()
    yield "two", items(one(0, True, False, b"first"), one(1, False, True, b"second")) + text(b"a comment") + items()
    yield "changed", items(one(0, True, False, b"first")) + text(b"") + items(u16(8) + u8(9))


def vma():
    clusters = items(*(flag(second) + u16(mask) for second, mask in [(0, 0xFFFF), (1, 0x0F0F), (0, 0), (0, 1)]))
    yield "plain", u8(58) + clusters + items() + items() + flag(True)
    yield "disorder", u8(1) + clusters + items(u8(0) + u8(2)) + items() + flag(True)
    yield "changed", u8(58) + clusters + items() + items(u16(71) + u8(1)) + flag(True)
    yield "unsealed", u8(58) + clusters + items() + items(u16(700) + u8(1)) + flag(False)


def xva():
    yield "one", items() + u16(5000) + items() + items()
    yield "holes", items(flag(True), flag(False), flag(True)) + u16(512) + items() + items()
    yield "text", items(flag(True)) + u16(512) + items(u8(100) + text(b"<a>")) + items()
    yield "changed", items(flag(True)) + u16(512) + items() + items(u16(9000) + u8(1))


def simg(*chunks, blocks=4):
    """An Android sparse image with blocks of 512 bytes, and chunks of a kind, a number of blocks and data."""
    file = u32(0xED26FF3A) + u16(1) + u16(0) + u16(28) + u16(12) + u32(512) + u32(blocks) + u32(len(chunks)) + u32(0)
    for kind, count, data in chunks:
        file += u16(kind) + u16(0) + u32(count) + u32(12 + len(data)) + data
    return file


def dmg(*kinds, lists=("plist",)):
    """An Apple disk image with a table of two runs for each kind."""
    text = TEXT * 16
    run = dmg_images.Run
    tables = []
    for kind in kinds:
        content = bytes(len(text)) if kind in (dmg_images.ZERO, dmg_images.IGNORE) else text
        tables.append(dmg_images.Table([run(kind, content, LZFSE if kind == dmg_images.LZFSE else None)] * 2, str(kind)))
    return dmg_images.image(tables, lists=lists)


def partclone(per_sum=0, reseed=True, bits=0b1011_0110):
    """An image of partclone with 8 blocks of 512 bytes, whose checksums the target may repair."""

    def crc(data):
        return u32(zlib.crc32(data) ^ 0xFFFFFFFF)

    used = bin(bits).count("1")
    head = b"partclone-image\0" + b"0.3.23".ljust(14, b"\0") + b"0002" + u16(0xC0DE) + b"EXTFS".ljust(16, b"\0")
    head += u64(4100) + u64(8) + u64(used) + u64(used) + u32(512) + u32(18) + u16(2) + u16(64)
    head += u16(0x20 if per_sum else 0) + u16(4 if per_sum else 0) + u32(per_sum) + u8(reseed) + u8(1)
    file, state = u8(1) + head + crc(head) + u8(bits) + crc(u8(bits)), b""
    for number in range(1, used + 1):
        block = (TEXT * 16)[number:] + bytes(number)
        file, state = file + block, state + block
        if per_sum and (number % per_sum == 0 or number == used):
            file += crc(state)
            state = b"" if reseed else state
    return file


def rbd(*diffs):
    """An export of rbd with these differences, each of which is records of a tag and a body."""

    def record(tag, body):
        return tag + u64(8 if tag == b"p" else len(body)) + body

    def name(text):
        return u32(len(text)) + text

    head = [(b"O", u64(22)), (b"U", u64(1 << 16)), (b"M", name(b"note") + name(b"value"))]
    file = b"rbd image v2\n" + b"".join(record(*one) for one in head) + b"Erbd image diffs v2\n" + u64(len(diffs))
    for number, records in enumerate(diffs):
        records = [(b"f", name(b"s%d" % number))] * (number > 0) + records
        if number + 1 < len(diffs):
            records = [(b"t", name(b"s%d" % (number + 1))), (b"p", b"\0"), *records]
        file += b"rbd diff v2\n" + b"".join(record(*one) for one in records) + b"e"
    return file


def all_seeds():
    """The seeds of each target, by name."""
    change = items(u16(10) + u8(2) + text(b"99"))
    return {
        "appliance": appliance(),
        "vma": vma(),
        "xva": xva(),
        "zip": zip_members(),
        "btrfs": [(f"disk-{number}", u8(number)) for number in range(4)]
        + [
            (f"{kind}-of-block-{block}", u8(1) + u16(block) + u8(number) + u8(0) + u16(9) + u8(1))
            for number, kind in enumerate(("byte", "head", "item"))
            for block in (0, 3, 9)
        ],
        "change_list": [(f"list-{number}", u8(number) + items()) for number in range(13)] + [("changed", u8(1) + change)],
        "check_file": check_file().items(),
        "check": disks(10),
        "clusters": clusters(),
        "compressed": compressed(),
        "contents": disks(4, head=u8(200) + u8(15) + u32(1 << 20) + u8(3)),
        "dmg": [
            ("stored", dmg(dmg_images.RAW, dmg_images.ZERO, dmg_images.IGNORE)),
            ("compressed", dmg(dmg_images.ADC, dmg_images.ZLIB, dmg_images.BZIP2, dmg_images.LZFSE, dmg_images.XZ)),
            ("fork", dmg(dmg_images.ZLIB, dmg_images.RAW, lists=("fork",))),
            ("both", dmg(dmg_images.ZERO, lists=("plist", "fork"))),
        ],
        "ewf": [
            ("stored", ewf("stored")),
            ("compressed", ewf()),
            ("smart", ewf("smart", digests=False)),
            ("errors", ewf(errors=True)),
            ("empty", ewf(chunks=0)),
        ],
        "ext": disks(6),
        "fat": disks(4),
        "hasher": [
            (f"construction-{how}", u8(how) + u8(how) + u8(1) + items(u8(1) + u16(3000), u8(0) + u16(9000), u8(2) + u16(513)))
            for how in range(5)
        ],
        "index": [(f"index-{number}", u8(number) + items()) for number in range(24)] + [("changed", u8(3) + change)],
        "inline": [
            (f"compression-{how}-{'made' if made else 'bytes'}", u8(how) + u8(made) + text(TEXT) + items())
            for how in range(3)
            for made in (0, 1)
        ],
        "kernels": [
            (f"algorithm-{number}", u8(number) + text(b"head") + u8(16) + text(TEXT * 12)) for number in range(25)
        ],
        "lzo": [("text", TEXT * 4), ("zeros", bytes(300)), ("counter", bytes(range(256)))],
        "map": map_seeds(),
        "ntfs": disks(2),
        "oci": oci(),
        "parallels": guest_view(2),
        "qcow1": guest_view(1),
        "qcow2": {
            "version-2": qcow2(2),
            "version-3": qcow2(),
            "compressed": qcow2(compressed=bytes.fromhex("4bcac9ce482cce50481aa547240d00")),
            "snapshot": qcow2(snapshot=True),
            "dirty": qcow2(incompatible=1),
            "data-file": qcow2(incompatible=4),
        }.items(),
        "partclone": [
            ("plain", partclone()),
            ("sums", partclone(2)),
            ("not-reseeded", partclone(2, reseed=False)),
            ("all", partclone(1000, bits=0xFF)),
            ("empty", partclone(3, bits=0)),
        ],
        "qcow2_check": {
            "without-counts": qcow2(),
            "counted": qcow2_counted([1] * 7),
            "leak": qcow2_counted([1] * 9),
            "missing": qcow2_counted([1, 0, 2, 1]),
            "snapshot": qcow2(snapshot=True),
            "compressed": qcow2(compressed=bytes.fromhex("4bcac9ce482cce50481aa547240d00")),
            "dirty": qcow2(incompatible=1),
            "data-file": qcow2(incompatible=4),
            "version-2": qcow2(2),
        }.items(),
        "qed": guest_view(2),
        "rbd": [
            ("empty", rbd([(b"s", u64(0))])),
            ("one", rbd([(b"s", u64(2000)), (b"w", u64(600) + u64(512) + (TEXT * 16)[:512]), (b"z", u64(1200) + u64(100))])),
            (
                "three",
                rbd(
                    [(b"s", u64(2000)), (b"w", u64(100) + u64(1024) + (TEXT * 32)[:1024])],
                    [(b"s", u64(700)), (b"s", u64(1500)), (b"z", u64(200) + u64(50))],
                    [(b"w", u64(90) + u64(20) + b"x" * 20), (b"w", u64(1400) + u64(100) + b"y" * 100)],
                ),
            ),
        ],
        "simg": [
            ("stored", simg((0xCAC1, 4, (TEXT * 64)[:2048]))),
            ("kinds", simg((0xCAC1, 1, (TEXT * 16)[:512]), (0xCAC2, 1, b"word"), (0xCAC2, 1, bytes(4)), (0xCAC3, 1, b""), (0xCAC4, 0, b"sum."))),
            ("empty", simg(blocks=0)),
        ],
        "vdi": guest_view(2),
        "verity": verity_seeds(),
        "vhdx": guest_view(2),
        "vmdk": guest_view(2),
        "vmdk_descriptor": [
            ("zeros", items(*(u8(line) + u32(8) for line in (0, 1, 2, 3, 4, 6))) + items()),
            ("two-extents", items(*(u8(line) + u32(63) for line in (0, 1, 2, 3, 4, 6, 7, 10))) + items()),
            ("flat", items(*(u8(line) + u32(8) for line in (0, 1, 2, 3, 5, 8))) + items()),
            ("parent", items(*(u8(line) + u32(8) for line in (0, 1, 2, 3, 4, 9, 11))) + items()),
            ("changed", items(*(u8(line) + u32(8) for line in (0, 1, 2, 3, 4, 6))) + items(u16(30) + text(b"\t= \"\r\n"))),
        ],
        "vpc": guest_view(3),
        "xfs": disks(2, is_big=True),
    }


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "fuzz/seeds"
    for target, seeds in all_seeds().items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, content in seeds:
            (folder / target / name).write_bytes(content)


if __name__ == "__main__":
    main()
