"""Maps that are updated from bitmaps, overlays and lists of changes, compared with maps that are made anew. The bitmaps are QEMU's."""

import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest

import images
from commands import HANG, blksum_path, mostly_slow
from maps import attempt, blkmap
from servers import wait_for

KIB = 1 << 10
MIB = 1 << 20
BLOCK = 64 * KIB

PROGRAM = str(blksum_path().with_name("blkhash"))


def fails(status, says, *args):
    result = attempt(*args)
    assert result.returncode == status, (args, result)
    assert says in result.stderr.decode() and result.stderr.count(b"\n") == 1, (says, result)
    return result


def content(path):
    """Returns what a map holds: its id, and the digest of every block."""
    return blkmap("show", "--id", path), blkmap("export", "--to", "lines", path)


def changes(image, bitmap):
    lines = blkmap("changes", "--bitmap", bitmap, image).splitlines()
    return [tuple(map(int, line.split())) for line in lines]


def blocks(extents, size=BLOCK):
    """Returns the numbers of the blocks that extents touch."""
    return {block for at, length in extents for block in range(at // size, (at + length - 1) // size + 1)}


def random_writes(rng, size, count, unit=512):
    """Returns commands of qemu-io."""
    commands = []
    for _ in range(count):
        length = min(rng.choice([unit, 4 * KIB, BLOCK, 300 * KIB]), size) // unit * unit
        offset = rng.randrange((size - length) // unit + 1) * unit
        if length:
            how = rng.choice([f"write -P {rng.randrange(1, 256)}", "write -z", "write -z -u", "discard"])
            commands.append(f"{how} {offset} {length}")
    return commands


def test_bitmaps_of_an_export_have_no_list(disk, servers):
    server = servers.qemu_nbd(disk, "--bitmap=b", fmt="qcow2")
    assert b"qemu:dirty-bitmap:b" in images.run("nbdinfo", "--list", server.uri())
    fails(2, "'nbdinfo --list URI' names them, and --bitmap NAME", "bitmaps", server.uri())
    blkmap("changes", "--bitmap", "b", server.uri())


def write(rng, image, commands):
    """Writes with qemu-io, directly or through qemu-nbd, which keep the bitmaps of the image up to date."""
    if not commands:
        return
    if rng.random() < 0.7:
        images.qemu_io(image, *commands)
        return
    socket = f"{image}.socket"
    server = subprocess.Popen(["qemu-nbd", "-f", "qcow2", "-k", os.path.abspath(socket), str(image)])
    assert wait_for(os.path.abspath(socket), server)
    images.qemu_io(f"nbd+unix:///?socket={os.path.abspath(socket)}", *commands, fmt="raw")
    assert server.wait(HANG) == 0


def random_image(rng, path):
    """Creates an image with content, perhaps over a backing file, and returns its size."""
    # Maps of some 100 blocks, of which some end with a short one.
    size = rng.choice([rng.randrange(1, 20_000) * 512, rng.randrange(1, 150) * BLOCK])
    cluster = rng.choice([512, 4 * KIB, BLOCK, 2 * MIB])
    args = ["-o", f"cluster_size={cluster}"]
    if rng.random() < 0.3:
        base = path.with_suffix(".base")
        images.create(base, rng.choice([size, size // 2 // 512 * 512 + 512, size + 5 * BLOCK]))
        images.qemu_io(base, *random_writes(rng, size // 2 // 512 * 512 + 512, 5))
        args += ["-b", base.name, "-F", "qcow2"]
    images.create(path, size, *args)
    images.qemu_io(path, *(random_writes(rng, size, 8) or ["read 0 512"]))
    return size


@pytest.mark.parametrize("seed", mostly_slow(range(60), quick=range(4), slow=range(20)))
def test_an_updated_map_is_a_map_made_anew(workdir, seed):
    rng = random.Random(seed)
    for number in range(8):
        image = workdir / f"{number}.qcow2"
        size = random_image(rng, image)
        granularity = 1 << rng.choice([9, 12, 16, 16, 21])
        images.qemu_img("bitmap", "--add", "-g", granularity, image, "b")
        options = ["--block-size", rng.choice(["512", "4K", "64K", "64K", "1M"])]
        options += rng.choice([[], ["-d", "sha1"], ["-d", "crc32c"], ["--salt", "00ff"]])
        blkmap("create", *options, "-o", "m.blkmap", image)
        for _ in range(rng.randrange(1, 4)):
            write(rng, image, random_writes(rng, size, rng.randrange(6)))
            if rng.random() < 0.2:
                size += rng.randrange(1, 300) * 512
                images.qemu_img("resize", "-q", image, size)
            place = rng.choice([[], ["-o", "n.blkmap"]])
            sample = rng.choice([[], ["--sample", "0"], ["--sample", "100"], ["--sample", "33.3"]])
            blkmap("update", "--bitmap", "b", *place, *sample, "m.blkmap", image)
            if place:
                os.replace("n.blkmap", "m.blkmap")
            blkmap("create", *options, "-o", "f.blkmap", "--force", image)
            assert content("m.blkmap") == content("f.blkmap"), (seed, number)
            assert blkmap("check", "m.blkmap") == "m.blkmap: OK\n"
        for name in workdir.iterdir():
            name.unlink()


@pytest.mark.parametrize("seed", mostly_slow(range(10), quick=range(1)))
def test_an_overlay_updates_the_map_of_its_backing_file(workdir, seed):
    rng = random.Random(seed)
    for number in range(6):
        base = workdir / f"{number}.qcow2"
        size = random_image(rng, base)
        blkmap("create", "-o", "m.blkmap", base)
        top, below = base, base
        for layer in range(rng.randrange(1, 4)):
            below, top = top, workdir / f"{number}.{layer}.qcow2"
            size = max(512, size + rng.choice([0, 0, 700 * 512, -(size // 3) // 512 * 512]))
            images.create(top, size, "-b", below.name, "-F", "qcow2")
            images.qemu_io(top, *(random_writes(rng, size, 4) or ["read 0 512"]))
        blkmap("update", "--overlay", "-o", "n.blkmap", "m.blkmap", top)
        blkmap("create", "-o", "f.blkmap", "--force", top)
        assert content("n.blkmap") == content("f.blkmap"), (seed, number)
        # The map of another image is refused, and so is the base after a write.
        fails(3, "not the map of a backing file", "update", "--overlay", "f.blkmap", top)
        images.qemu_io(base, "write -P 7 0 512")
        fails(3, "not the map of a backing file", "update", "--overlay", "m.blkmap", top)
        for name in workdir.iterdir():
            name.unlink()


@pytest.fixture
def disk(workdir):
    """An image with a bitmap, its map, and 40 blocks that changed since."""
    image = images.create(workdir / "d.qcow2", 64 * MIB)
    images.qemu_io(image, "write -P 1 0 20M", "write -P 2 40M 3M")
    images.qemu_img("bitmap", "--add", "-g", BLOCK, image, "b")
    blkmap("create", "-o", "m.blkmap", image)
    rng = random.Random(5)
    for block in rng.sample(range(1024), 40):
        images.qemu_io(image, f"write -P {rng.randrange(3, 256)} {block * BLOCK + 512} 1k")
    return image


def bitmap_place(path):
    """Returns where the bits of the only bitmap of an image are, and the offset of its flags. Reads the header by
    QEMU's specification (docs/interop/qcow2.rst)."""
    data = path.read_bytes()
    at = struct.unpack_from(">I", data, 100)[0]
    while True:
        kind, length = struct.unpack_from(">II", data, at)
        if kind == 0x23852875:
            break
        at += 8 + (length + 7) // 8 * 8
    count, _, _, directory = struct.unpack_from(">IIQQ", data, at + 8)
    assert count == 1
    table, _, flags = struct.unpack_from(">QII", data, directory)
    entry = struct.unpack_from(">Q", data, table)[0]
    assert flags & ~2 == 0 and entry > 1
    return entry, directory + 12


def patch(path, offset, value):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(value)


def test_what_a_bitmap_misses_is_named(disk):
    listed = blocks(changes(disk, "b"))
    assert len(listed) == 40
    text = blkmap("audit", "--bitmap", "b", "m.blkmap", disk)
    assert text == "every change is listed: 40 blocks changed\n"
    bits, _ = bitmap_place(disk)
    data = bytearray(disk.read_bytes()[bits : bits + 128])
    missed = sorted(random.Random(1).sample(sorted(listed), 3))
    for block in missed:
        data[block // 8] &= ~(1 << block % 8)
    patch(disk, bits, data)
    result = attempt("audit", "--bitmap", "b", "--json", "m.blkmap", disk)
    assert result.returncode == 1 and result.stderr == b"", result
    *ranges, summary = map(json.loads, result.stdout.splitlines())
    assert blocks([(it["offset"], it["length"]) for it in ranges]) == set(missed)
    expected = {"missed": 3, "listed": 37, "needless": 0, "unknown": 0, "clean": 1024 - 40}
    assert expected.items() <= summary.items()
    extents = attempt("audit", "--bitmap", "b", "--extents", "m.blkmap", disk).stdout.decode()
    assert blocks([tuple(map(int, line.split())) for line in extents.splitlines()]) == set(missed)
    # A map is not updated from it if all other blocks are compared.
    before = content("m.blkmap")
    length = os.path.getsize("m.blkmap")
    result = attempt("update", "--bitmap", "b", "--sample", "100", "m.blkmap", disk)
    assert result.returncode == 1 and f"{BLOCK} bytes at {missed[0] * BLOCK} changed".encode() in result.stderr
    assert content("m.blkmap") == before and os.path.getsize("m.blkmap") == length


def test_what_is_copied_for_nothing_is_counted(disk):
    # Writes of what was there, and bits of 64 KiB of which little changed.
    images.qemu_io(disk, "write -P 1 0 512")
    result = attempt("audit", "--bitmap", "b", "--json", "m.blkmap", disk)
    summary = json.loads(result.stdout.splitlines()[-1])
    assert (summary["missed"], summary["needless"], summary["needless_bytes"]) == (0, 1, BLOCK)
    with open("list", "w") as file:
        print(0, 64 * MIB, file=file)
    result = attempt("audit", "--changes", "list", "--json", "m.blkmap", disk)
    summary = json.loads(result.stdout.splitlines()[-1])
    assert (summary["missed"], summary["listed"], summary["needless"]) == (0, 40, 984)
    assert (summary["listed_bytes"], summary["needless_bytes"]) == (64 * MIB, 984 * BLOCK)
    # Two maps are judged like a map and an image.
    blkmap("create", "-o", "n.blkmap", disk)
    assert attempt("audit", "--changes", "list", "--json", "m.blkmap", "n.blkmap").stdout.splitlines()[-1].startswith(
        b'{"type":"summary","block_size":65536,"blocks":1024,"missed":0,"bytes":0,"ranges":0,"listed":40'
    )
    for number, (offset, length) in enumerate(changes(disk, "b")):
        with open("list", "w") as file:
            others = [it for index, it in enumerate(changes(disk, "b")) if index != number]
            file.writelines(f"{at} {size}\n" for at, size in others)
        result = attempt("audit", "--changes", "list", "--extents", "m.blkmap", "n.blkmap")
        if offset > 0:
            assert result.returncode == 1 and result.stdout.decode() == f"{offset} {length}\n"
        else:
            assert result.returncode == 0 and (offset, length) == (0, BLOCK)
        if number == 5:
            break


def test_bitmaps_that_do_not_belong_to_the_map_are_refused(disk, workdir):
    _, flags = bitmap_place(disk)
    patch(disk, flags, struct.pack(">I", 3))
    fails(2, "is in use", "update", "--bitmap", "b", "--trust", "m.blkmap", disk)
    fails(3, "is older than bitmap", "update", "--bitmap", "b", "m.blkmap", disk)
    assert "in use" in blkmap("bitmaps", disk)
    patch(disk, flags, struct.pack(">I", 0))
    fails(3, "did not record changes", "update", "--bitmap", "b", "m.blkmap", disk)
    assert "disabled" in blkmap("bitmaps", disk)
    patch(disk, flags, struct.pack(">I", 2))
    images.qemu_img("bitmap", "--add", disk, "late")
    fails(3, "is older than bitmap", "update", "--bitmap", "late", "m.blkmap", disk)
    fails(2, "has no bitmap", "update", "--bitmap", "other", "--trust", "m.blkmap", disk)
    shutil.copy(disk, "copy.qcow2")
    fails(3, "is the map of another file", "update", "--bitmap", "b", "m.blkmap", "copy.qcow2")
    blkmap("update", "--bitmap", "b", "--trust", "-o", "n.blkmap", "m.blkmap", "copy.qcow2")
    blkmap("create", "-o", "f.blkmap", disk)
    assert content("n.blkmap") == content("f.blkmap")
    images.qemu_img("bitmap", "--clear", disk, "b")
    blkmap("create", "--force", "-o", "m.blkmap", disk)
    images.qemu_io(disk, "write -P 99 0 1M")
    blkmap("update", "--bitmap", "b", "m.blkmap", disk)
    images.qemu_img("bitmap", "--clear", disk, "b")
    fails(3, "was cleared, or made anew", "update", "--bitmap", "b", "m.blkmap", disk)
    # A program that does not know bitmaps clears the flag of the header that says that they are valid.
    patch(disk, 88, struct.pack(">Q", 0))
    fails(2, "is not valid", "update", "--bitmap", "b", "--trust", "m.blkmap", disk)
    images.to_raw(disk, "d.raw")
    fails(2, "raw image has no bitmaps", "update", "--bitmap", "b", "--trust", "m.blkmap", "d.raw")
    fails(2, "format without bitmaps", "bitmaps", "d.raw")


@pytest.fixture
def thin(workdir):
    """An image with 4 MiB of content, and a bitmap from before the map `m.blkmap`."""
    images.create("thin.qcow2", 32 * MIB)
    images.qemu_io("thin.qcow2", "write -P 1 0 4M")
    images.qemu_img("bitmap", "--add", "thin.qcow2", "b")
    blkmap("create", "-o", "m.blkmap", "thin.qcow2")
    return "thin.qcow2"


def clear(image):
    images.qemu_img("bitmap", "--clear", image, "b")


def test_a_cleared_bitmap_that_had_marks(thin):
    """It may have more bits than before, but not all of those."""
    for number in range(100):
        images.qemu_io(thin, f"write -P 2 {number * 2 * BLOCK} 512")
    blkmap("update", "--bitmap", "b", "m.blkmap", thin)
    images.qemu_io(thin, "write -P 3 0 64k")
    clear(thin)
    images.qemu_io(thin, "write -P 4 16M 12M")
    for sample in ([], ["--sample", "0"]):
        result = fails(3, "marked offset 0, and it does not now: it was cleared, or made anew", "update", *sample, "--bitmap", "b", "m.blkmap", thin)
        assert b"--trust" in result.stderr
    # One bit of many.
    blkmap("update", "--trust", "--sample", "0", "--bitmap", "b", "m.blkmap", thin)
    clear(thin)
    images.qemu_io(thin, f"write -P 5 16M 6M", f"write -P 5 {22 * MIB + BLOCK} 8M")
    fails(3, f"marked offset {22 * MIB}, and it does not now", "update", "--bitmap", "b", "m.blkmap", thin)


@pytest.mark.parametrize("lost", ["write -P 2 8M 1M", "write -P 2 5M 64k", "write -z -u 1M 64k", "discard 2M 64k", "write -P 2 20M 512"])
def test_a_bitmap_that_was_empty_and_cleared(thin, lost):
    """Nothing in the bitmap shows it. Where blocks came or went, the image does."""
    images.qemu_io(thin, lost)
    clear(thin)
    images.qemu_io(thin, "write -P 3 16M 1M")
    before = content("m.blkmap")
    fails(1, "changed, and the changes do not include them", "update", "--bitmap", "b", "m.blkmap", thin)
    assert content("m.blkmap") == before


def test_a_cleared_bitmap_and_content_that_was_overwritten(thin):
    """Blocks that stay where they are show nothing: docs/use/incremental.md says so. A sample of all finds them."""
    images.qemu_io(thin, "write -P 2 1M 64k")
    clear(thin)
    fails(1, f"{BLOCK} bytes at {MIB} changed", "update", "--sample", "100", "--bitmap", "b", "m.blkmap", thin)


def test_a_bitmap_of_another_granularity(thin):
    images.qemu_img("bitmap", "--remove", thin, "b")
    images.qemu_img("bitmap", "--add", "-g", "4k", thin, "b")
    fails(3, "had another granularity: it was made anew", "update", "--bitmap", "b", "m.blkmap", thin)


def test_zeros_that_are_stored_are_no_change(workdir):
    """They are compared, and not many of them."""
    images.create("full.qcow2", 64 * MIB, "-o", "preallocation=full")
    images.qemu_img("bitmap", "--add", "full.qcow2", "b")
    blkmap("create", "-o", "f.blkmap", "full.qcow2")
    images.qemu_io("full.qcow2", "write -P 3 16M 1M")
    result = json.loads(blkmap("update", "--json", "--bitmap", "b", "f.blkmap", "full.qcow2"))
    assert result["read"] == 16 and 200 <= result["sampled"] <= 258, result


def test_a_killed_writer_leaves_a_bitmap_in_use(disk):
    writer = subprocess.Popen(["qemu-io", "-f", "qcow2", str(disk)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writer.stdin.write(b"write -P 9 0 64k\nflush\n")
    writer.stdin.flush()
    while b"wrote" not in writer.stdout.readline():
        pass
    writer.kill()
    writer.wait()
    writer.stdin.close()
    writer.stdout.close()
    fails(3, "is older than bitmap", "update", "--bitmap", "b", "m.blkmap", disk)
    fails(2, "is in use", "changes", "--bitmap", "b", disk)


def test_a_changed_backing_file_is_noticed(workdir):
    base = images.create(workdir / "base.qcow2", 4 * MIB)
    image = images.create(workdir / "d.qcow2", 4 * MIB, "-b", "base.qcow2", "-F", "qcow2")
    images.qemu_img("bitmap", "--add", image, "b")
    blkmap("create", "-o", "m.blkmap", image)
    images.qemu_io(base, "write -P 1 0 64k")
    fails(3, "other backing files", "update", "--bitmap", "b", "m.blkmap", image)


def test_lists_and_shapes_of_the_image(disk, workdir):
    listed = changes(disk, "b")
    (workdir / "list").write_text("".join(f"{at} {length}\n" for at, length in listed))
    images.to_raw(disk, "d.raw")
    for image in ["d.raw", disk]:
        blkmap("update", "--changes", "list", "-o", "n.blkmap", "--force", "m.blkmap", image)
        blkmap("create", "-o", "f.blkmap", "--force", image)
        assert content("n.blkmap") == content("f.blkmap")
    text = (workdir / "list").read_bytes()
    result = attempt("update", "--changes", "-", "--json", "m.blkmap", "d.raw", input=text, stdin=None)
    found = json.loads(result.stdout)
    assert (found["type"], found["blocks"], found["read"], found["sampled"]) == ("update", 1024, 40, 1)
    assert content("m.blkmap") == content("f.blkmap")
    assert blkmap("diff", "-q", "m.blkmap", "f.blkmap") == ""
    assert attempt("diff", "-q", "m.blkmap@1", "f.blkmap").returncode == 1
    # The image was cut, and has grown again.
    for size in [50 * MIB + 700, 64 * MIB, 64 * MIB + 1]:
        os.truncate("d.raw", size)
        (workdir / "none").write_text("")
        blkmap("update", "--changes", "none", "--changes-format", "lines", "m.blkmap", "d.raw")
        blkmap("create", "-o", "f.blkmap", "--force", "d.raw")
        assert content("m.blkmap") == content("f.blkmap")
    (workdir / "far").write_text(f"{65 * MIB} 100\n")
    fails(2, "past the end", "update", "--changes", "far", "m.blkmap", "d.raw")


def test_a_partition_is_updated_from_the_bitmap_of_the_disk(workdir):
    image = images.create(workdir / "d.qcow2", 16 * MIB)
    with open("t.raw", "wb") as file:
        file.truncate(16 * MIB)
    images.run("sfdisk", "-q", "t.raw", stdin=None, input=b"label: gpt\nstart=2048, size=8192\n")
    images.qemu_img("convert", "-n", "-f", "raw", "-O", "qcow2", "t.raw", image)
    images.qemu_img("bitmap", "--add", image, "b")
    blkmap("create", "--partition", "1", "-o", "m.blkmap", image)
    images.qemu_io(image, "write -P 3 900k 300k", "write -P 4 5M 2M")
    blkmap("update", "--partition", "1", "--bitmap", "b", "m.blkmap", image)
    blkmap("create", "--partition", "1", "-o", "f.blkmap", image)
    assert content("m.blkmap") == content("f.blkmap")
    # Of the partition, from 1 MiB to 5 MiB, only a part of the first write is there, up to a bit of 64 KiB.
    assert blkmap("changes", "--bitmap", "b", "--partition", "1", image) == f"0 {192 * KIB}\n"
    fails(3, "another snapshot, partition or format", "update", "--bitmap", "b", "m.blkmap", image)


def test_only_what_changed_is_read(disk, workdir):
    """Counts the bytes that system calls read from the image."""
    args = ["--cache=no", "--sample", "0", "--bitmap", "b", "m.blkmap", str(disk)]
    trace = ["strace", "-f", "-y", "-e", "trace=pread64,preadv,preadv2,read", "-o", "trace"]
    images.run(*trace, PROGRAM, "map", "update", "--no-sandbox", *args)
    read = 0
    for line in (workdir / "trace").read_text().splitlines():
        if "d.qcow2>" in line and (match := re.search(r"\) += (\d+)$", line)):
            read += int(match[1])
    # Blocks have holes, which are not read, and the tables of the image are.
    assert 40 * 4 * KIB <= read <= 40 * BLOCK + 8 * BLOCK, read
    assert json.loads(blkmap("show", "--json", "m.blkmap"))["info"]["made"]["update"]["read"] == 40


@pytest.mark.parametrize("seed", mostly_slow(range(10), [1]))
def test_history(workdir, seed):
    """Each state changed what `map diff` finds between the two, in the whole image and in a part of it."""
    rng = random.Random(seed)
    size = rng.randrange(1, 40) * MIB + rng.choice([0, 512])
    images.create("d.qcow2", str(size))
    blkmap("create", "-o", "m.blkmap", "d.qcow2")
    for _ in range(6):
        size = max(size + rng.choice([0, 0, MIB, 1536, -MIB, -512]), 512)
        images.qemu_img("resize", "-q", "--shrink", "d.qcow2", str(size))
        images.qemu_io("d.qcow2", *random_writes(rng, size, rng.randrange(4)))
        blkmap("update", "--changes", all_of(size), "m.blkmap", "d.qcow2")
    if seed % 2:
        (workdir / "key").write_bytes(bytes(range(32)))
        blkmap("seal", "--key-file", "key", "m.blkmap")
        assert blkmap("history", "--key-file", "key", "m.blkmap") == blkmap("history", "m.blkmap")
        (workdir / "other").write_bytes(bytes(32))
        fails(2, "is sealed with another key", "history", "--key-file", "other", "m.blkmap")
    for first, end in [(0, None), (MIB, 3 * MIB), (5 * BLOCK + 1, 5 * BLOCK + 2)]:
        shown = blkmap("history", "--json", *(["--range", f"{first}-{end}"] if end else []), "m.blkmap")
        states = {state["sequence"]: state for state in map(json.loads, shown.splitlines())}
        assert states.pop(1)["changed_blocks"] is None
        last = json.loads(blkmap("show", "--json", "m.blkmap"))["sequence"]
        for number in range(2, last + 1):
            expected = differing(f"m.blkmap@{number - 1}", f"m.blkmap@{number}", first, end)
            state = states.pop(number, {"changed_blocks": 0, "changed_bytes": 0})
            assert (state["changed_blocks"], state["changed_bytes"]) == expected, (number, first, end)
        assert not states


def differing(left, right, first, end):
    """Returns the number of blocks that differ and touch a range, and of the bytes in them."""
    result = attempt("diff", "--json", left, right)
    extents = [line for line in map(json.loads, result.stdout.splitlines()) if line["type"] == "range"]
    count = total = 0
    for extent in extents:
        stop = extent["offset"] + extent["length"]
        for at in range(extent["offset"], stop, BLOCK):
            if end is None or (at < end and at + BLOCK > first):
                count += 1
                total += min(BLOCK, stop - at)
    return count, total


def all_of(size):
    with open("all", "w") as file:
        file.write(f"0 {size}\n")
    return "all"


def test_a_sealed_map_is_updated_with_its_key(disk, workdir):
    (workdir / "key").write_bytes(bytes(range(32)))
    (workdir / "other").write_bytes(bytes(32))
    blkmap("seal", "--key-file", "key", "m.blkmap")
    fails(2, "is sealed: give its --key-file", "update", "--bitmap", "b", "m.blkmap", disk)
    fails(2, "another key", "update", "--bitmap", "b", "--key-file", "other", "m.blkmap", disk)
    blkmap("update", "--bitmap", "b", "--key-file", "key", "m.blkmap", disk)
    blkmap("check", "--key-file", "key", "m.blkmap")
    blkmap("verify", "--key-file", "key", "m.blkmap", str(disk))
    # What an interrupted update left is removed by the next commit, whatever it is.
    length = os.path.getsize("m.blkmap")
    with open("m.blkmap", "ab") as file:
        file.write(bytes(10_000))
    assert b"note: an update" in attempt("show", "m.blkmap").stderr
    blkmap("seal", "--key-file", "other", "m.blkmap")
    assert blkmap("check", "--key-file", "other", "m.blkmap") == "m.blkmap: OK (seal OK)\n"
    # A commit and its tables take pages of 4096 bytes.
    assert (os.path.getsize("m.blkmap") - length) % 4096 == 0


def test_an_output_is_not_overwritten(disk):
    blkmap("update", "--bitmap", "b", "-o", "n.blkmap", "m.blkmap", disk)
    fails(2, "exists", "update", "--bitmap", "b", "-o", "n.blkmap", "m.blkmap", disk)
    blkmap("update", "--bitmap", "b", "-o", "n.blkmap", "--force", "m.blkmap", disk)
    fails(2, "is the map to update", "update", "--bitmap", "b", "-o", "m.blkmap", "--force", "m.blkmap", disk)
    fails(2, "is not a block map", "update", "--bitmap", "b", "-o", str(disk), "--force", "m.blkmap", disk)
    blkmap("create", "--shard", "1/4", "-o", "part.blkmap", disk)
    fails(2, "knows only", "update", "--bitmap", "b", "--trust", "part.blkmap", disk)


@pytest.mark.parametrize("count", mostly_slow([10, 100], quick=[10]))
def test_a_killed_update_leaves_the_old_or_the_new_map(workdir, count):
    rng = random.Random(count)
    with open("d.raw", "wb") as file:
        file.write(rng.randbytes(24 * MIB))
    # Blocks of 512 bytes make a map of 2 MiB, to which an update adds as much.
    blkmap("create", "--block-size", "512", "-o", "m.blkmap", "d.raw")
    with open("list", "w") as file:
        print(0, 24 * MIB, file=file)
    with open("d.raw", "r+b") as file:
        for place in range(0, 24 * MIB, MIB):
            file.seek(place)
            file.write(b"x")
    blkmap("create", "--block-size", "512", "-o", "new.blkmap", "d.raw")
    old, new = content("m.blkmap"), content("new.blkmap")
    start = time.monotonic()
    shutil.copy("m.blkmap", "c.blkmap")
    blkmap("update", "--changes", "list", "c.blkmap", "d.raw")
    whole = time.monotonic() - start
    ends = []
    for _ in range(count):
        shutil.copy("m.blkmap", "c.blkmap")
        process = subprocess.Popen(
            [PROGRAM, "map", "update", "--changes", "list", "c.blkmap", "d.raw"], stdout=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0, whole * 1.1))
        process.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        process.wait()
        found = attempt("show", "--id", "c.blkmap")
        assert found.returncode == 0, found
        assert found.stdout.decode() in (old[0], new[0])
        ends.append(found.stdout.decode() == new[0])
        is_torn = os.path.getsize("c.blkmap") not in (os.path.getsize("m.blkmap"),) and not ends[-1]
        assert is_torn == (b"update" in found.stderr), found
        # The next update removes what is left of this one.
        if rng.random() < 0.2:
            blkmap("update", "--changes", "list", "c.blkmap", "d.raw")
            assert content("c.blkmap") == new
            assert blkmap("check", "c.blkmap") == "c.blkmap: OK\n"
    assert not all(ends)


def test_the_bitmap_of_a_server_is_that_of_the_image(disk, servers):
    uri = servers.qemu_nbd(disk, "-B", "b", fmt="qcow2").uri()
    assert changes(uri, "b") == changes(disk, "b") != []
    fails(3, "is the map of another", "update", "--bitmap", "b", "m.blkmap", uri)
    blkmap("audit", "--bitmap", "b", "m.blkmap", uri)
    blkmap("update", "--bitmap", "b", "--trust", "m.blkmap", uri)
    blkmap("create", "-o", "f.blkmap", disk)
    assert content("m.blkmap") == content("f.blkmap")
    fails(2, "the server has no bitmap other", "changes", "--bitmap", "other", uri)
    fails(2, "the server has no bitmap b", "changes", "--bitmap", "b", servers.qemu_nbd(disk, fmt="qcow2").uri())
    # A server that knows no bitmaps of QEMU.
    images.to_raw(disk, "d.raw")
    fails(2, "the server has no bitmap b", "changes", "--bitmap", "b", servers.nbdkit("file", "d.raw").uri())


def test_more_extents_than_one_reply_of_a_server_has(workdir, servers):
    image = images.create(workdir / "d.qcow2", 160 * MIB)
    images.qemu_img("bitmap", "--add", "-g", "512", image, "b")
    images.qemu_io(image, "write 0 512")
    bits, _ = bitmap_place(image)
    # Every other block of 512 bytes, and some runs, in the first cluster of the bitmap.
    pattern = bytearray(random.Random(2).choices([0x55, 0x00, 0xFF, 0xAA], [20, 1, 1, 1], k=64 * KIB))
    pattern[160 * MIB // 512 // 8 :] = bytes(64 * KIB - 160 * MIB // 512 // 8)
    patch(image, bits, pattern)
    found = changes(image, "b")
    expected = {index * 8 + bit for index, byte in enumerate(pattern) for bit in range(8) if byte >> bit & 1}
    assert blocks(found, 512) == expected and len(found) > 100_000
    assert changes(servers.qemu_nbd(image, "-B", "b", fmt="qcow2").uri(), "b") == found
