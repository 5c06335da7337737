"""vhdx images: equal checksums with QEMU and libvhdi, logs that were not replayed, parents, damage."""

import hashlib
import os
import pathlib
import random
import shutil
import struct

import pyvhdi

import guest_view
import images
import vhdx_images as vhdx
from commands import assert_refused
from random_vhdx import create

MIB = 1 << 20
LOG_GUID = bytes(range(16))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def one(blksum, path, *args):
    """Returns the checksum of one image, or fails with the message."""
    ((checksum, message),) = guest_view.ours(blksum, [path], *args)
    assert checksum is not None, (path, message)
    return checksum


def test_chunks_with_bitmap_entries(blksum, workdir):
    """QEMU leaves an entry for a bitmap after each 4 GiB."""
    options = "subformat=dynamic,block_size=256M"
    images.qemu_img("create", "-q", "-f", "vhdx", "-o", options, "disk.vhdx", "10G")
    images.create("disk.qcow2", "10G")
    places = [(0, 1), (4095, 2), (4096, 3), (8191, 4), (8192, 5), (10239, 6)]
    commands = [f"write -P {byte} {place}M 1M" for place, byte in places]
    images.qemu_io("disk.vhdx", *commands, fmt="vhdx")
    images.qemu_io("disk.qcow2", *commands)
    assert blksum.hex("disk.vhdx") == blksum.hex("disk.qcow2")


# Logs that were not replayed


def replayed(path):
    """Returns the content of an image after QEMU replayed its log, or None if it refuses that."""
    copy = pathlib.Path(f"{path}.replayed")
    shutil.copy(path, copy)
    images.attempt("qemu-img", "check", "-q", "-r", "all", "-f", "vhdx", str(copy))
    content = guest_view.theirs(copy, "vhdx")
    copy.unlink()
    return content


def is_dirty(path):
    """Returns whether QEMU refuses to read the image before its log is replayed."""
    run = images.attempt("qemu-io", "-r", "-f", "vhdx", "-c", "length", str(path))
    return b"needs to be replayed" in run.stderr + run.stdout


def test_write_of_the_bat_that_fails(blksum, workdir):
    """QEMU fails to write the BAT, after it wrote the log."""
    rng = random.Random(2)
    dirty = 0
    for index in range(guest_view.count(8)):
        path = pathlib.Path("disk.vhdx")
        size, block = create(rng, path, size=rng.randrange(8, 33) * MIB)
        images.qemu_io(path, *guest_view.random_writes(rng, size, block), fmt="vhdx")
        sector = vhdx.bat_of(path.read_bytes()) // 512
        error = "file.inject-error.0."
        target = (
            f"open -o driver=vhdx,file.driver=blkdebug,file.image.filename={path},"
            f"{error}event=none,{error}iotype=write,{error}sector={sector}"
        )
        commands = [target, *guest_view.random_writes(rng, size, block)]
        images.attempt("qemu-io", *(part for command in commands for part in ("-c", command)))
        expected = replayed(path) if is_dirty(path) else guest_view.theirs(path, "vhdx")
        assert expected is not None
        assert one(blksum, path) == expected, index
        assert one(blksum, path, "--cache=no", "--threads=1", "--read-size=64k") == expected, index
        dirty += is_dirty(path)
    assert dirty > 0


def test_qemu_is_killed(blksum, workdir):
    """QEMU is killed at the n-th write of one of its threads."""
    rng = random.Random(3)
    dirty, index = 0, 0
    # Which thread writes is up to the system, so that some more images may be needed.
    while index < guest_view.count(8) or dirty == 0:
        index += 1
        assert index < 400
        path = pathlib.Path("disk.vhdx")
        size, block = create(rng, path, size=rng.randrange(8, 33) * MIB)
        images.qemu_io(path, *guest_view.random_writes(rng, size, block), fmt="vhdx")
        commands = [f"write -P {rng.randint(1, 255)} {at}M 1M" for at in rng.sample(range(8), 8)]
        images.attempt(
            *("strace", "-f", "-qq", "-o", "trace", "-e", "trace=pwrite64"),
            *("-e", f"inject=pwrite64:signal=SIGKILL:when={rng.randint(1, 24)}"),
            *("qemu-io", "-f", "vhdx", str(path)),
            *(part for command in commands for part in ("-c", command)),
        )
        expected = replayed(path) if is_dirty(path) else guest_view.theirs(path, "vhdx")
        assert one(blksum, path) == expected, index
        dirty += is_dirty(path)


def test_log_that_was_not_written(blksum, workdir):
    """QEMU announces a log in the header, then writes its only entry sector by sector."""
    image, _, _ = sample()
    bat, path = vhdx.bat_of(image), pathlib.Path("dirty.vhdx")
    value = one(blksum, "sample.vhdx")
    changes = [(bat + at * vhdx.LOG_SECTOR, b"new!" * 1024) for at in range(2)]
    entry = vhdx.log_entry(LOG_GUID, 1, 0, changes, len(image))
    # The entry of the session before has the same number and another GUID.
    earlier = [(bat + at * vhdx.LOG_SECTOR, image[bat : bat + vhdx.LOG_SECTOR]) for at in range(2)]
    earlier = vhdx.log_entry(bytes(16), 1, 0, earlier, len(image))
    for before in (bytes(len(entry)), earlier):
        for end in range(0, len(entry), vhdx.LOG_SECTOR):
            path.write_bytes(vhdx.with_log(image, [(0, entry[:end] + before[end:])], LOG_GUID))
            assert not is_dirty(path)
            assert b"was not closed, and its log holds no change" in blksum(str(path)).stderr
            assert one(blksum, path) == value == guest_view.theirs(path, "vhdx"), end
    for bit in (0, 33 * 8, 12288 * 8 - 1):
        damaged = bytearray(entry)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(vhdx.with_log(image, [(0, bytes(damaged))], LOG_GUID))
        assert_refused(blksum(str(path)), str(path), "its only entry is damaged")


def torn(rng, entry):
    """Returns an entry of which a part was not written."""
    cut = rng.randrange(1, len(entry) // 512) * 512
    return rng.choice((entry[:cut] + bytes(len(entry) - cut), bytes(cut) + entry[cut:]))


def crafted_log(rng, image):
    """Returns an image with entries in its log, the image after they were replayed, and whether QEMU
    finds all of them.
    """
    bat = vhdx.bat_of(image)
    blocks = [(len(image) - MIB * at) // MIB * MIB for at in (1, 2, 3)]
    ring = MIB // vhdx.LOG_SECTOR
    start = rng.choice((0, 1, ring - 1, ring - 2, ring - 3, rng.randrange(ring)))
    sequence = rng.choice((1, 2, (1 << 32) - 1, 1 << 40))
    whole, pieces, at = bytearray(image), [], start
    for number in range(rng.randint(1, 4)):
        changes = []
        for _ in range(rng.choice((0, 1, 2, 5, 40))):
            block = rng.choice(blocks)
            place = block + rng.randrange(ring) * vhdx.LOG_SECTOR
            kind = rng.choice(("data", "data", "zeros", "bat"))
            if kind == "data":
                content = rng.randbytes(vhdx.LOG_SECTOR)
            elif kind == "zeros":
                content = rng.randint(1, (block + MIB - place) // vhdx.LOG_SECTOR) * vhdx.LOG_SECTOR
            else:
                entries = bytearray(whole[bat : bat + vhdx.LOG_SECTOR])
                entry = rng.choice((*(block | vhdx.PRESENT for block in blocks), 0, 2, 3))
                struct.pack_into("<Q", entries, rng.randrange(4) * 8, entry)
                place, content = bat, bytes(entries)
            new = bytes(content) if isinstance(content, int) else content
            whole[place : place + len(new)] = new
            changes.append((place, content))
        entry = vhdx.log_entry(LOG_GUID, sequence + number, start * vhdx.LOG_SECTOR, changes, len(image))
        pieces.append((at, entry))
        at = (at + len(entry) // vhdx.LOG_SECTOR) % ring
    # QEMU takes the sequence whose first entry is the newest, so it does not look past the end.
    known_to_qemu = all(at >= start for at, _ in pieces)
    end = rng.choice(("nothing", "torn", "guid"))
    if end != "nothing":
        log_guid = bytes(16) if end == "guid" else LOG_GUID
        lost = [(bat, bytes(vhdx.LOG_SECTOR))]
        tail = start * vhdx.LOG_SECTOR
        entry = vhdx.log_entry(log_guid, sequence + len(pieces), tail, lost, len(image))
        entry = entry if end == "guid" else torn(rng, entry)
        pieces.append((at, entry))
    pieces = [(at * vhdx.LOG_SECTOR, entry) for at, entry in pieces]
    return vhdx.with_log(image, pieces, LOG_GUID), whole, known_to_qemu


def test_crafted_logs(blksum, workdir):
    """Several entries, around the end of the ring, zeros, and a last entry that is not whole."""
    rng = random.Random(4)
    compared = 0
    for index in range(guest_view.count(12)):
        path, other = pathlib.Path("disk.vhdx"), pathlib.Path("other.vhdx")
        options = "subformat=dynamic,block_size=1M"
        path.unlink(missing_ok=True)
        images.qemu_img("create", "-q", "-f", "vhdx", "-o", options, path, rng.randrange(4, 9) * MIB)
        images.qemu_io(path, *(f"write -P {at + 1} {at}M 1M" for at in range(4)), fmt="vhdx")
        dirty, whole, known_to_qemu = crafted_log(rng, path.read_bytes())
        path.write_bytes(dirty)
        other.write_bytes(whole)
        expected = guest_view.theirs(other, "vhdx")
        assert expected is not None and is_dirty(path), index
        assert one(blksum, path) == expected, index
        if known_to_qemu:
            assert replayed(path) == expected, index
            compared += 1
    assert compared > 0


def test_damage_of_each_entry(blksum, workdir):
    """One bit of five entries: the content after all of them, or an error that names the entry."""
    image, _, _ = sample()
    bat, size = vhdx.bat_of(image), len(image)
    offsets, pieces, log = [], [], b""
    for number in range(1, 6):
        entries = bytearray(image[bat : bat + vhdx.LOG_SECTOR])
        struct.pack_into("<Q", entries, number % 3 * 8, size - MIB | vhdx.PRESENT)
        changes = [(bat, bytes(entries)), (size - MIB + number * vhdx.LOG_SECTOR, bytes([number]) * vhdx.LOG_SECTOR)]
        offsets.append(len(log))
        log += vhdx.log_entry(LOG_GUID, number, 0, changes, size)
    path = pathlib.Path("dirty.vhdx")
    path.write_bytes(vhdx.with_log(image, [(0, log)], LOG_GUID))
    assert one(blksum, path) == replayed(path)
    rng = random.Random(12)
    for number, start in enumerate(offsets, 1):
        for place in (0, 6, 9, 17, 33, 70, 100, rng.randrange(4096), 4096 + rng.randrange(4096), 12287):
            damaged = bytearray(log)
            damaged[start + place] ^= 1 << rng.randrange(8)
            path.write_bytes(vhdx.with_log(image, [(0, bytes(damaged))], LOG_GUID))
            says = "no valid sequence" if number == 1 else f"entry {number}"
            assert_refused(blksum(str(path)), str(path), says)


def test_size_zero(blksum, workdir):
    images.qemu_img("create", "-q", "-f", "vhdx", "disk.vhdx", 0)
    assert one(blksum, "disk.vhdx") == guest_view.theirs("disk.vhdx", "vhdx") == sha256(b"")


# Parents


STATES = (vhdx.NOT_PRESENT, vhdx.ZERO, vhdx.PRESENT, vhdx.PARTIAL, vhdx.PARTIAL)

# libvhdi reads the parent where a block is zero, and a wrong bitmap where an image has none.
STATES_OF_LIBVHDI = (vhdx.NOT_PRESENT, vhdx.PRESENT, vhdx.PARTIAL)


def random_layer(rng, name, size, block_size, sector_size, parent, below, states=STATES):
    """Returns an image and its content. `below` is the content of the parent, or None."""
    count, per_block = -(-size // block_size), block_size // sector_size
    content = bytearray(below[:size] if below is not None else b"").ljust(count * block_size, b"\0")
    blocks = {}
    always = rng.randrange(count)
    for block in range(count):
        state = vhdx.PARTIAL if block == always else rng.choice(states)
        at = block * block_size
        if state == vhdx.NOT_PRESENT or state == vhdx.PARTIAL and below is None:
            continue
        data = rng.randbytes(4096) * (block_size // 4096)
        if state == vhdx.PARTIAL:
            sectors = random_sectors(rng, per_block)
            for sector in sectors:
                place = at + sector * sector_size
                content[place : place + sector_size] = data[sector * sector_size :][:sector_size]
            blocks[block] = (state, data, sectors)
        elif state == vhdx.PRESENT:
            content[at : at + block_size] = data
            blocks[block] = (state, data, None)
        else:
            content[at : at + block_size] = bytes(block_size)
            blocks[block] = (state, None, None)
    image = vhdx.image(size, blocks, name, parent, block_size, sector_size)
    return image, bytes(content[:size])


def random_sectors(rng, per_block):
    """Returns some runs of sectors of a block."""
    sectors = set()
    for _ in range(rng.randint(0, 6)):
        start = rng.choice((0, per_block - 1, rng.randrange(per_block), rng.randrange(per_block) // 64 * 64))
        length = rng.choice((1, 1, 2, 7, 8, 63, 64, 65, 500, per_block))
        sectors |= set(range(start, min(start + length, per_block)))
    return sectors


def libvhdi(paths):
    """Returns the checksum of the content that libvhdi reads. `paths` begin with the image itself."""
    files = []
    for path in paths:
        file = pyvhdi.file()
        file.open(str(path))
        files.append(file)
    for child, parent in zip(files, files[1:]):
        child.set_parent(parent)
    content = files[0].read_buffer_at_offset(files[0].get_media_size(), 0)
    for file in files:
        file.close()
    return sha256(content)


def test_random_chains(blksum, workdir):
    rng = random.Random(5)
    compared = 0
    for index in range(guest_view.count(12)):
        sector_size = rng.choice((512, 512, 4096))
        size = rng.randrange(1, 6 * MIB // sector_size) * sector_size
        below, paths = None, []
        for_libvhdi = rng.random() < 0.5
        states = STATES_OF_LIBVHDI if for_libvhdi else STATES
        for depth in range(rng.randint(1, 3)):
            name = f"{index}-{depth}"
            parent = rng.choice((f".\\{index}-{depth - 1}.vhdx", f"{index}-{depth - 1}.vhdx"))
            # libvhdi compares only the first of two identifiers.
            other = None if for_libvhdi else rng.choice((None, None, None, "another"))
            entries = vhdx.parent_entries(f"{index}-{depth - 1}", parent, other) if depth else None
            block_size = rng.choice((1, 1, 2)) * MIB
            sizes = (size, block_size, sector_size)
            image, below = random_layer(rng, name, *sizes, entries, below, states)
            paths.insert(0, pathlib.Path(f"{name}.vhdx"))
            paths[0].write_bytes(image)
        expected = sha256(below)
        assert one(blksum, paths[0]) == expected, paths
        args = ("--cache=no", "--threads=1", "--read-size=64k")
        assert one(blksum, paths[0], *args) == expected, paths
        if len(paths) > 1:
            assert_refused(blksum("--untrusted", str(paths[0])), str(paths[0]), "--follow")
            if for_libvhdi:
                assert libvhdi(paths) == expected, paths
                compared += 1
        elif sector_size == 512:
            assert guest_view.theirs(paths[0], "vhdx") == expected
        for path in paths:
            path.unlink()
    assert compared > 0


def test_parent_that_was_changed(blksum, workdir):
    rng = random.Random(6)
    base, below = random_layer(rng, "base", 2 * MIB, MIB, 512, None, None)
    parent = vhdx.parent_entries("base", ".\\base.vhdx")
    top, content = random_layer(rng, "top", 2 * MIB, MIB, 512, parent, below)
    pathlib.Path("base.vhdx").write_bytes(base)
    pathlib.Path("top.vhdx").write_bytes(top)
    assert one(blksum, "top.vhdx") == sha256(content)
    # QEMU sets a new identifier when it writes.
    images.qemu_io("base.vhdx", "write -P 1 0 512", fmt="vhdx")
    assert_refused(blksum("top.vhdx"), "base.vhdx", "is not the parent of top.vhdx")


def test_parent_that_was_not_closed(blksum, workdir):
    """The log of a parent is replayed as well."""
    rng = random.Random(7)
    block = rng.randbytes(4096) * 256
    base = vhdx.image(2 * MIB, {0: (vhdx.PRESENT, block, None)}, "base")
    entry = vhdx.log_entry(LOG_GUID, 1, 0, [(4 * MIB + 8192, b"z" * 4096)], len(base))
    pathlib.Path("base.vhdx").write_bytes(vhdx.with_log(base, [(0, entry)], LOG_GUID))
    top = vhdx.image(2 * MIB, {}, "top", vhdx.parent_entries("base", "base.vhdx"))
    pathlib.Path("top.vhdx").write_bytes(top)
    expected = block[:8192] + b"z" * 4096 + block[12288:] + bytes(MIB)
    assert one(blksum, "top.vhdx") == sha256(expected)


def test_vhdx_beneath_a_qcow2(blksum, workdir):
    """A chain of three: qcow2, differencing vhdx, vhdx."""
    rng = random.Random(8)
    base, below = random_layer(rng, "base", 2 * MIB, MIB, 512, None, None)
    middle, content = random_layer(
        rng, "middle", 2 * MIB, MIB, 512, vhdx.parent_entries("base", "base.vhdx"), below
    )
    pathlib.Path("base.vhdx").write_bytes(base)
    pathlib.Path("middle.vhdx").write_bytes(middle)
    images.create("top.qcow2", 2 * MIB, "-u", "-b", "middle.vhdx", "-F", "vhdx")
    assert one(blksum, "top.qcow2") == sha256(content)


# Damage


def sample(path="sample.vhdx"):
    """Creates an image with blocks in all states that QEMU writes. Returns its bytes and structures."""
    options = "subformat=dynamic,block_size=1M,block_state_zero=on"
    images.qemu_img("create", "-q", "-f", "vhdx", "-o", options, path, 5 * MIB + 512)
    images.qemu_io(path, "write -P 1 0 1M", "write -P 2 3M 512", "write -P 3 5M 512", fmt="vhdx")
    image = pathlib.Path(path).read_bytes()
    bat = vhdx.bat_of(image)
    metadata = image.index(b"metadata\0")
    tables = [(0, 8), *((at, 80) for at in vhdx.HEADERS), *((at, 80) for at in vhdx.REGION_TABLES)]
    return image, tables, [(metadata, 192), (metadata + 65536, 40), (bat, 48), (bat, 48)]


def test_cut_off(blksum, workdir):
    """The result is an error, or the checksum of the whole image if only padding is lost."""
    image, tables, structures = sample()
    value = one(blksum, "sample.vhdx")
    assert value == guest_view.theirs("sample.vhdx", "vhdx")
    ends = {len(image)} | {at * MIB for at in range(len(image) // MIB)}
    for offset, length in tables + structures:
        ends |= {offset, offset + length}
    ends = sorted({end + more for end in ends for more in (-512, -1, 0, 1)} & set(range(8, len(image))))
    paths = []
    for end in ends:
        paths.append(pathlib.Path(f"{end}.vhdx"))
        paths[-1].write_bytes(image[:end])
    refused = 0
    for path, (checksum, message) in zip(paths, guest_view.ours(blksum, paths, "-f", "vhdx")):
        assert checksum in (None, value), (path, checksum)
        refused += checksum is None
    # At most the padding of the last block can be lost.
    assert refused > len(ends) - 16, (refused, len(ends))


def test_mutants(blksum, workdir):
    """Structures without checksum."""
    image, _, structures = sample()
    both, stricter = guest_view.check_mutants(
        blksum, "vhdx", image, structures, 60, random.Random(9)
    )
    assert both > 0


def check(blksum, number, rng, image, regions, finish, expected):
    """Checks the mutants of an image after `finish` completed them. Their values are the ones of
    `expected`, or an error.
    """
    for start in range(0, number, 20):
        mutants = {}
        for index in range(start, min(start + 20, number)):
            mutant, change = guest_view.mutate(rng, image, regions)
            path = pathlib.Path(f"mutant{index}.vhdx")
            path.write_bytes(finish(mutant))
            mutants[path] = change
        for path, (checksum, _) in zip(mutants, guest_view.ours(blksum, mutants, "-f", "vhdx")):
            assert checksum is None or expected(path, checksum), (path, mutants[path])
            path.unlink()


def test_mutants_with_valid_checksums(blksum, workdir):
    image, tables, _ = sample()
    check(
        *(blksum, int(os.environ.get("MUTANTS", 60)), random.Random(10), image, tables, vhdx.reseal),
        lambda path, checksum: checksum == guest_view.theirs(path, "vhdx"),
    )


def test_mutants_of_a_log(blksum, workdir):
    """A log that is damaged is an error, or gives the content of the whole log or what QEMU replays."""
    image, _, _ = sample()
    bat = vhdx.bat_of(image)
    sector = image[bat : bat + 4096]
    entries = bytearray(sector)
    struct.pack_into("<Q", entries, 8, struct.unpack_from("<Q", sector, 0)[0])
    first = vhdx.log_entry(LOG_GUID, 5, 0, [(bat, bytes(entries))], len(image))
    second = vhdx.log_entry(LOG_GUID, 6, 0, [(bat, sector), (bat + 8192, 4096)], len(image))
    log = struct.unpack_from("<Q", image, vhdx.HEADERS[0] + 72)[0]
    dirty = vhdx.with_log(image, [(0, first), (len(first), second)], LOG_GUID)
    pathlib.Path("dirty.vhdx").write_bytes(dirty)
    value = one(blksum, "dirty.vhdx")
    assert value == replayed("dirty.vhdx")
    pathlib.Path("dirty.vhdx").write_bytes(vhdx.with_log(image, [(0, first)], LOG_GUID))
    assert one(blksum, "dirty.vhdx") != value
    rng = random.Random(11)

    def seal_some(mutant):
        if len(mutant) == len(dirty) and rng.random() < 0.7:
            for at, entry in ((log, first), (log + len(first), second)):
                mutant[at : at + len(entry)] = vhdx.sealed(mutant[at : at + len(entry)])
        return mutant

    def is_possible(path, checksum):
        return checksum in (value, replayed(path))

    regions = [(log, 96), (log + len(first), 128), (log + 4096, 12), (log + len(first) + 4092, 16)]
    check(blksum, int(os.environ.get("MUTANTS", 60)), rng, dirty, regions, seal_some, is_possible)
