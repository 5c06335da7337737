"""vpc (vhd) images, against what QEMU and libvhdi read."""

import hashlib
import json
import os
import pathlib
import random
import struct

import pytest

import blkhash
import guest_view
import images
import vpc_images
from commands import assert_refused

KIB = 1 << 10
MIB = 1 << 20
SECTOR = 512
NEW = ("vbox", "wa\0\0", "xo  ", "*img")
SIZES = {"auto": None, "geometry": "chs", "current": "current_size"}


@pytest.fixture(autouse=True)
def sizes_of_qemu_10(monkeypatch):
    """QEMU 10.0 has another rule for the size than earlier versions, which are told what it is."""

    def theirs(path, fmt):
        data = pathlib.Path(path).read_bytes()
        footer = data if data.startswith(b"conectix") else data[-SECTOR:]
        size = "chs" if footer[28:32] in (b"vpc ", b"qemu") else "current_size"
        raw = pathlib.Path(f"{path}.theirs")
        options = f"driver={fmt},file.driver=file,file.filename={path},force_size_calc={size}"
        try:
            run = images.attempt("qemu-img", "convert", "--image-opts", options, "-O", "raw", str(raw))
            return guest_view.digest(raw) if run.returncode == 0 else None
        finally:
            raw.unlink(missing_ok=True)

    monkeypatch.setattr(guest_view, "theirs", theirs)


def random_blocks(rng, size, block_size, keep=0.7, bitmap_of=None):
    """Returns blocks for vpc_images.sparse, in any order, with random bitmaps and content."""
    blocks = []
    for index in range(-(-size // block_size)):
        if rng.random() < keep:
            bitmap = (bitmap_of or random_bitmap)(rng, block_size // SECTOR)
            blocks.append((index, bitmap, rng.randbytes(block_size)))
    rng.shuffle(blocks)
    return blocks


def random_bitmap(rng, sectors):
    kind = rng.choice(("all", "none", "runs", "single"))
    if kind in ("all", "none"):
        return [kind == "all"] * sectors
    if kind == "single":
        return [rng.random() < 0.5 for _ in range(sectors)]
    bitmap, value = [], rng.random() < 0.5
    while len(bitmap) < sectors:
        bitmap += [value] * rng.randrange(1, 200)
        value = not value
    return bitmap[:sectors]


def rising_bitmap(rng, sectors):
    """Returns a bitmap without a 0 after a 1 within a byte, which libvhdi 20260901 takes for a 1."""
    counts = [rng.choice((0, 8, rng.randrange(9))) for _ in range(sectors // 8)]
    return [bit >= 8 - count for count in counts for bit in range(8)]


def cleared(blocks):
    """Clears the sectors that a bitmap omits, so that it does not matter whether it is used."""
    return [
        (index, bitmap, b"".join(
            content[i * SECTOR : (i + 1) * SECTOR] if is_stored else bytes(SECTOR)
            for i, is_stored in enumerate(bitmap)
        ))
        for index, bitmap, content in blocks
    ]


def test_dynamic_images_with_bitmaps(blksum, workdir):
    rng = random.Random(2)
    paths = []
    for index in range(guest_view.count(12)):
        block_size = rng.choice((4 * KIB, 32 * KIB, 512 * KIB, 4 * MIB))
        size = rng.randrange(1, 6 * block_size // SECTOR) * SECTOR
        blocks = cleared(random_blocks(rng, size, block_size))
        path = pathlib.Path(f"{index}.vhd")
        path.write_bytes(vpc_images.sparse(size, blocks, block_size))
        paths.append(path)
        if len(paths) == 20:
            guest_view.assert_same(blksum, paths, "vpc")
            paths = []
    if paths:
        guest_view.assert_same(blksum, paths, "vpc")


def test_unused_sectors_that_are_not_zero(blksum, workdir):
    """Other programs read zeros there, and QEMU reads the bytes."""
    bitmap = [True] * 7 + [False]
    image = vpc_images.sparse(4096, [(0, bitmap, b"x" * 4096)])
    pathlib.Path("disk.vhd").write_bytes(image)
    assert_refused(blksum("disk.vhd"), "disk.vhd", "guest offset 3584 is unused and not zero")


# Differencing images


def chain_of(rng, depth, block_size, folder=".", bitmap_of=None, grows=True):
    """Makes a chain in a folder. Returns the name of the image on top, and its size."""
    size = rng.randrange(1, 6 * block_size // SECTOR) * SECTOR
    uuid = rng.randbytes(16)
    blocks = random_blocks(rng, size, block_size, bitmap_of=bitmap_of)
    if rng.random() < 0.3:
        image = vpc_images.fixed(rng.randbytes(size), uuid=uuid)
    else:
        image = vpc_images.sparse(size, cleared(blocks), block_size, uuid=uuid)
    pathlib.Path(folder, "disk0.vhd").write_bytes(image)
    for level in range(1, depth + 1):
        parent = {"uuid": uuid, rng.choice(("relative", "name")): f"disk{level - 1}.vhd"}
        if "relative" in parent:
            parent["relative"] = ".\\" + parent["relative"]
            parent["absolute"] = "C:\\disks\\other.vhd"
        uuid = rng.randbytes(16)
        # Some programs make the child larger.
        size += rng.choice((0, 0, SECTOR, block_size)) if grows else 0
        blocks = random_blocks(rng, size, block_size, 0.5, bitmap_of)
        image = vpc_images.sparse(size, blocks, block_size, uuid=uuid, parent=parent)
        pathlib.Path(folder, f"disk{level}.vhd").write_bytes(image)
    return f"disk{depth}.vhd", size


def libvhdi(depth):
    """Returns the SHA-256 of the content that libvhdi reads, sector by sector: it misplaces longer reads."""
    import pyvhdi

    below = None
    for level in range(depth + 1):
        file = pyvhdi.file()
        file.open(f"disk{level}.vhd")
        if below is not None:
            file.set_parent(below)
        below = file
    digest = hashlib.sha256()
    for offset in range(0, below.get_media_size(), SECTOR):
        digest.update(below.read_buffer_at_offset(SECTOR, offset))
    return digest.hexdigest()


def test_differencing_images(blksum, workdir):
    """By the specification."""
    rng = random.Random(3)
    for _ in range(guest_view.count(12)):
        depth = rng.randint(1, 4)
        block_size = rng.choice((4 * KIB, 64 * KIB, 512 * KIB))
        name, size = chain_of(rng, depth, block_size)
        value = model(depth, size)
        for args in ((), ("--cache=no", "--threads=1"), ("--read-size=64k",)):
            assert guest_view.ours(blksum, [name], *args) == [(value, None)], args


def test_differencing_images_against_libvhdi(blksum, workdir):
    rng = random.Random(6)
    for _ in range(guest_view.count(12)):
        depth = rng.randint(1, 3)
        block_size = rng.choice((4 * KIB, 64 * KIB, 512 * KIB))
        # libvhdi has no children that are larger than their parents.
        name, size = chain_of(rng, depth, block_size, bitmap_of=rising_bitmap, grows=False)
        assert guest_view.ours(blksum, [name]) == [(libvhdi(depth), None)]
        assert model(depth, size) == libvhdi(depth)


def media_size(name):
    return struct.unpack(">Q", pathlib.Path(name).read_bytes()[-SECTOR + 48 : -SECTOR + 56])[0]


def model(depth, size):
    """Returns the SHA-256 of the content of a chain, by the specification."""
    content = bytearray()
    for level in range(depth + 1):
        data = pathlib.Path(f"disk{level}.vhd").read_bytes()
        content = content[: media_size(f"disk{level}.vhd")].ljust(media_size(f"disk{level}.vhd"), b"\0")
        if struct.unpack_from(">I", data, len(data) - SECTOR + 60)[0] == vpc_images.FIXED:
            content[:] = data[:-SECTOR]
            continue
        entries, block_size = struct.unpack_from(">II", data, SECTOR + 28)
        (table,) = struct.unpack_from(">Q", data, SECTOR + 16)
        for index, entry in enumerate(struct.unpack_from(f">{entries}I", data, table)):
            if entry == vpc_images.UNUSED:
                continue
            start = entry * SECTOR
            sectors = start + -(-block_size // (8 * SECTOR * SECTOR)) * SECTOR
            for i in range(min(block_size, len(content) - index * block_size) // SECTOR):
                if data[start + i // 8] & 0x80 >> i % 8:
                    at = index * block_size + i * SECTOR
                    content[at : at + SECTOR] = data[sectors + i * SECTOR : sectors + (i + 1) * SECTOR]
    assert len(content) == size
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def pair(workdir):
    """A folder with an image and its parent, and next to it another parent."""
    os.mkdir("in")
    chain_of(random.Random(4), 1, 4096, "in")
    pathlib.Path("outside.vhd").write_bytes(pathlib.Path("in/disk0.vhd").read_bytes())
    return rename_parent


def rename_parent(name, key="relative", uuid=None):
    data = pathlib.Path("in/disk0.vhd").read_bytes()
    parent = {"uuid": uuid or data[-SECTOR + 68 : -SECTOR + 84], key: name}
    size = media_size("in/disk1.vhd")
    pathlib.Path("in/disk1.vhd").write_bytes(vpc_images.sparse(size, [], parent=parent))
    return "in/disk1.vhd"


@pytest.mark.parametrize(
    "name",
    [
        *("..\\outside.vhd", "\\etc\\passwd", "up\\outside.vhd", "link.vhd", "missing.vhd", "/etc/passwd"),
        *("json:{}", "nbd://localhost/x", "C:\\disks\\disk0.vhd", "\\\\server\\share\\x.vhd", "."),
    ],
)
def test_names_that_lead_out(blksum, pair, name):
    os.symlink("../outside.vhd", "in/link.vhd")
    os.symlink("..", "in/up")
    path = pair(name)
    assert_refused(blksum(path), path, "backing file")
    assert_refused(blksum("--untrusted", path), path)
    if name in ("..\\outside.vhd", "link.vhd"):
        assert blksum.hex("--follow=any", path) == blksum.hex("in/disk0.vhd")


def test_a_parent_beneath_the_folder(blksum, pair):
    os.mkdir("in/sub")
    os.rename("in/disk0.vhd", "in/sub/b\u00e4se disk.vhd")
    os.symlink("sub/b\u00e4se disk.vhd", "in/disk0.vhd")
    value = blksum.hex("in/disk0.vhd")
    for name in ("sub\\b\u00e4se disk.vhd", ".\\sub\\b\u00e4se disk.vhd", "disk0.vhd"):
        assert blksum.hex(pair(name)) == value
    assert blksum.hex(pair("C:\\disks\\disk0.vhd", "name")) == value
    assert_refused(blksum("--untrusted", pair("disk0.vhd")), "in/disk1.vhd", "--follow")


def test_another_parent_is_refused(blksum, pair):
    path = pair("disk0.vhd", uuid=bytes(16))
    assert_refused(blksum(path), "in/disk0.vhd", "is not the parent")


# Sizes


@pytest.mark.parametrize("creator", ["qemu", "qem2", "win ", "vpc ", "d2v ", "CTXS", "tap\0", *NEW])
@pytest.mark.parametrize("geometry", [(10, 4, 17), (20, 4, 17), (65535, 16, 255)], ids=["less", "more", "max"])
def test_vpc_size(blksum, workdir, creator, geometry):
    """The sizes of QEMU, with each value of its option."""
    product = geometry[0] * geometry[1] * geometry[2] * SECTOR
    current = 500 * KIB
    blocks = cleared(random_blocks(random.Random(creator), current, 64 * KIB))
    kinds = {"creator": creator.encode(), "geometry": geometry}
    # The table has an entry for each block of the larger size.
    table = max(current, product) if product < MIB else current
    image = bytearray(vpc_images.sparse(table, blocks, 64 * KIB, **kinds))
    for at in (0, len(image) - SECTOR):
        struct.pack_into(">QQ", image, at + 40, current, current)
        image[at : at + SECTOR] = vpc_images.checksum(image[at : at + SECTOR], 64)
    pathlib.Path("disk.vhd").write_bytes(image)
    is_max = product > MIB
    for ours, theirs in SIZES.items():
        # The rule of QEMU 10.0. Earlier versions have another one.
        theirs = theirs or ("chs" if creator in ("vpc ", "qemu") else "current_size")
        options = f"driver=vpc,file.filename=disk.vhd,force_size_calc={theirs}"
        images.qemu_img("convert", "--image-opts", options, "-O", "raw", "raw")
        value = blkhash.file_checksum("raw").hex()
        result = blksum(f"--vpc-size={ours}", "disk.vhd")
        assert result.returncode == 0, result
        assert result.stdout.split()[0].decode() == value, ours
        is_doubtful = ours == "auto" and os.path.getsize("raw") != current
        assert (b"--vpc-size=current" in result.stderr) == is_doubtful, result
        is_new = ours == "auto" and creator in NEW and not is_max
        assert (b"earlier versions read" in result.stderr) == is_new, result
        # By QEMU, whose version may have another rule.
        assert blksum.hex("--reader=qemu", f"--vpc-size={ours}", "disk.vhd") == value
    tag = blksum("--tag", "disk.vhd").stdout
    size = "geometry" if creator in ("vpc ", "qemu") else "current"
    assert tag.startswith(b"BLKSUM-SHA256-STREAMS4-64K (" if is_max else f"BLKSUM-SHA256-STREAMS4-64K/VPCSIZE={size} (".encode())
    assert blksum("-c", input=tag).returncode == 0


def test_both_sizes_are_shown(blksum, workdir):
    """An image of Azure. QEMU before 10.0 reads the geometry, and so do checksums of that time."""
    content = random.Random(8).randbytes(40 * KIB)
    pathlib.Path("disk.vhd").write_bytes(vpc_images.fixed(content, creator=b"wa\0\0", geometry=(10, 2, 2)))
    pathlib.Path("raw").write_bytes(content)
    result = blksum("disk.vhd")
    assert result.stdout.split()[0].decode() == blksum.hex("raw")
    assert b"with the 40960 bytes that its header states: earlier versions read the 20480 bytes" in result.stderr
    sizes = {"current": 40960, "geometry": 20480, "read": "current"}
    assert json.loads(blksum("--json", "disk.vhd").stdout)["vpc_sizes"] == sizes
    info = [str(pathlib.Path(blksum.path).with_name("blkhash")), "info", "disk.vhd"]
    text = images.run(*info).decode()
    assert "40.00 KiB (40960 bytes)\n" in text and "or 20.00 KiB (20480 bytes) with --vpc-size=geometry\n" in text, text
    assert json.loads(images.run(*info, "--json"))["chain"][0]["vpc_sizes"] == sizes
    assert b"or 20.00 KiB (20480 bytes) with --vpc-size=geometry" in blksum("-v", "disk.vhd").stderr
    # What an earlier version wrote is compared with the other size, and is not called damage without a word.
    old = blksum("--vpc-size=geometry", "disk.vhd").stdout
    tagged = b"BLKSUM-SHA256-STREAMS4-64K (disk.vhd) = " + old.split()[0] + b"\n"
    for line in (old, tagged):
        result = blksum("-c", input=line)
        assert (result.returncode, result.stdout) == (1, b"disk.vhd: FAILED\n")
        assert b"of the 20480 bytes of its geometry size" in result.stderr and b"--vpc-size=geometry compares" in result.stderr
        assert blksum("-c", "--vpc-size=geometry", input=line).returncode == 0
    result = blksum("--expect", old.split()[0].decode(), "disk.vhd")
    assert result.returncode == 1 and b"--vpc-size=geometry compares" in result.stderr
    # A size that was chosen leaves nothing to say.
    tag = blksum("--tag", "disk.vhd").stdout.replace(b"= ", b"= 00")[:-3] + b"\n"
    assert b"--vpc-size" not in blksum("-c", input=tag).stderr


def test_vpc_size_of_a_fixed_disk(blksum, workdir):
    content = random.Random(5).randbytes(40 * KIB)
    image = vpc_images.fixed(content, creator=b"vpc ", geometry=(10, 2, 2))
    pathlib.Path("disk.vhd").write_bytes(image)
    pathlib.Path("raw").write_bytes(content)
    assert blksum.hex("--vpc-size=current", "disk.vhd") == blksum.hex("raw")
    assert blksum.hex("disk.vhd") == blksum.hex("--length=20k", "raw")
    assert blksum.hex("--vpc-size=geometry", "disk.vhd") == blksum.hex("--length=20k", "raw")
    # QEMU would read the footer as content.
    image = vpc_images.fixed(content, creator=b"vpc ", geometry=(81, 1, 1))
    pathlib.Path("disk.vhd").write_bytes(image)
    assert_refused(blksum("disk.vhd"), "disk.vhd", "--vpc-size=current")
    assert blksum.hex("--vpc-size=current", "disk.vhd") == blksum.hex("raw")
    result = blksum("--vpc-size=large", "disk.vhd")
    assert result.returncode == 2 and b"auto, geometry or current" in result.stderr, result


# Damage


def dynamic():
    """A small image, made by QEMU, with one block of 2 MiB of two."""
    images.qemu_img("create", "-q", "-f", "vpc", "-o", "force_size=on", "disk.vhd", 4 * MIB)
    images.qemu_io("disk.vhd", f"write -P 1 {2 * MIB} {MIB}", fmt="vpc")
    return pathlib.Path("disk.vhd").read_bytes()


def mend(image):
    """Makes all checksums of an image valid."""
    image = bytearray(image)
    for at, length, place in ((0, 512, 64), (512, 1024, 36), (len(image) - 512, 512, 64)):
        if image[at : at + 8] in (b"conectix", b"cxsparse") and at + length <= len(image):
            image[at : at + length] = vpc_images.checksum(image[at : at + length], place)
    return bytes(image)


@pytest.mark.parametrize("kind", ["dynamic", "fixed"])
@pytest.mark.parametrize("is_mended", [False, True], ids=["damaged", "mended"])
def test_mutants(blksum, workdir, monkeypatch, kind, is_mended):
    """Also with valid checksums, so that what is past these is tested as well."""
    if kind == "dynamic":
        blocks = [(1, [True] * 8, b"b" * 4096), (0, [True] * 8, b"a" * 4096)]
        image = vpc_images.sparse(3 * 4096, blocks, geometry=(1, 1, 9))
        regions = [(0, 88), (512, 64), (1536, 12), (len(image) - 512, 88)]
    else:
        image = vpc_images.fixed(b"f" * 8192, geometry=(1, 1, 9))
        regions = [(0, 8), (8192, 88), (8192, 88)]
    if is_mended:
        mutate = guest_view.mutate

        def mended(rng, image, regions):
            content, change = mutate(rng, image, regions)
            return mend(content), change

        monkeypatch.setattr(guest_view, "mutate", mended)
    rng = random.Random(f"{kind} {is_mended}")
    both, stricter = guest_view.check_mutants(blksum, "vpc", image, regions, 60, rng)
    assert both > 0 or not is_mended
    expected = (
        *("is not a", "past the end", "checksum", "footer", "larger than its table", "not read", "not known"),
        *("difference to another disk", "unknown disk type", "and stores", "begins", "unused and not zero"),
    )
    assert not [it for it in stricter if not any(words in it for words in expected)]


def test_truncation(blksum, workdir):
    """A dynamic image ends with its footer, so that any loss is an error."""
    data = dynamic()
    cuts = [0, 8, 511, 512, 1024, 1535, 1536, 1543, 1544, 2048, 2560, 2560 + MIB, len(data) - 513]
    for cut in (*cuts, len(data) - 512, len(data) - 511, len(data) - 1):
        pathlib.Path("cut.vhd").write_bytes(data[:cut])
        (result,) = guest_view.ours(blksum, ["cut.vhd"], "-f", "vpc")
        assert result[0] is None and result[1], cut
    # The file system's bytes after the image are no part of it.
    pathlib.Path("cut.vhd").write_bytes(data + bytes(512))
    assert_refused(blksum("cut.vhd"), "cut.vhd", "end with its footer")


def test_footers_that_contradict(blksum, workdir):
    """QEMU ignores the one at the end."""
    data = bytearray(dynamic())
    struct.pack_into(">Q", data, len(data) - SECTOR + 48, 2 * MIB)
    data[-SECTOR:] = vpc_images.checksum(data[-SECTOR:], 64)
    pathlib.Path("disk.vhd").write_bytes(data)
    assert guest_view.theirs("disk.vhd", "vpc")
    assert_refused(blksum("disk.vhd"), "disk.vhd", "ends with another footer")
    data[-SECTOR:] = data[:SECTOR]
    # A time stamp is no content.
    struct.pack_into(">I", data, len(data) - SECTOR + 24, 1)
    data[-SECTOR:] = vpc_images.checksum(data[-SECTOR:], 64)
    pathlib.Path("disk.vhd").write_bytes(data)
    guest_view.assert_same(blksum, ["disk.vhd"], "vpc")


@pytest.mark.parametrize("entries", [[0xFFFFFFFF], [0, 4]])
def test_a_bitmap_in_the_table(blksum, workdir, entries):
    """The bitmap of block 0 is the last part of the block allocation table. Nothing forbids this."""
    count = 16384 + 128
    data = vpc_images.sparse(count * 4096, [], 4096)
    [table] = struct.unpack_from(">Q", data, 528)
    image = bytearray(data[: table + count * 4])
    for index in range(128):
        struct.pack_into(">I", image, table + (16384 + index) * 4, entries[index % len(entries)])
    struct.pack_into(">I", image, table, (table + 65536) // SECTOR)
    image += bytes(-len(image) % SECTOR + 5 * 4096) + data[:SECTOR]
    pathlib.Path("disk.vhd").write_bytes(image)
    results = guest_view.ours(blksum, ["disk.vhd"], "-f", "vpc", "--threads=1")
    [(checksum, message)] = results
    assert checksum == guest_view.theirs("disk.vhd", "vpc") or message, results


def test_a_guest_cannot_choose_another_table(blksum, workdir):
    """The guest of a fixed disk writes a dynamic one to its start. QEMU reads that."""
    evil = vpc_images.sparse(4096, [(0, [True] * 8, b"evil" * 1024)])
    pathlib.Path("disk.vhd").write_bytes(vpc_images.fixed(evil.ljust(16 * KIB, b"\0")))
    for args in ((), ("-f", "vpc")):
        assert_refused(blksum(*args, "disk.vhd"), "disk.vhd", "ends like a fixed one")
