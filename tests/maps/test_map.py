"""Block maps: compared with veritysetup, blksum, the reference, and a comparison byte by byte.

Random cases have fixed seeds, which pytest shows with a failure.
"""

import contextlib
import itertools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

import blkmap as reference
import images
import servers
from commands import HANG, ROOT, blksum_path, mostly_slow
from maps import attempt, blkmap, random_content, show

KIB = 1 << 10
MIB = 1 << 20
BLOCK = 64 * KIB


def blksum(*args):
    return images.run(str(blksum_path()), *map(str, args)).decode().split()[0]


def verity_root(raw, block_size):
    command = ["veritysetup", "format", "--salt", "-", "--hash-block-size", "4096"]
    command += ["--data-block-size", str(block_size), str(raw), f"{raw}.hash"]
    return re.search(r"Root hash:\s+(\w+)", images.run(*command).decode())[1]


def blocks_of(content, block_size):
    return [content[at : at + block_size] for at in range(0, len(content), block_size)]


def expected_kinds(left, right, block_size):
    """Compares two contents block by block, as far as both reach."""
    kinds = {}
    for index, (one, other) in enumerate(zip(blocks_of(left, block_size), blocks_of(right, block_size))):
        if one.ljust(block_size, b"\0") != other.ljust(block_size, b"\0"):
            if one.count(0) == len(one):
                kinds[index] = "written"
            elif other.count(0) == len(other):
                kinds[index] = "zeroed"
            else:
                kinds[index] = "changed"
    return kinds


def found_kinds(lines, block_size):
    """Returns the kinds that the objects of a comparison say, and the summary."""
    kinds, summary = {}, None
    for line in lines.splitlines():
        it = json.loads(line)
        if it["type"] == "summary":
            summary = it
        elif it["kind"] in ("changed", "zeroed", "written"):
            first = it["offset"] // block_size
            assert it["offset"] % block_size == 0
            for block in range(first, first + it["blocks"]):
                assert block not in kinds
                kinds[block] = it["kind"]
    return kinds, summary


def compare(command, left, right, *options):
    result = attempt(command, "--json", "--max-errors", 0, *options, left, right)
    assert result.returncode in (0, 1), result.stderr
    return result


# Maps of images


@pytest.mark.parametrize("block_size", [512, 4096, 65536, 524288])
@pytest.mark.parametrize("seed", range(2))
def test_roots_are_those_of_veritysetup(workdir, block_size, seed):
    rng = random.Random(f"{seed} {block_size}")
    content = random_content(rng, rng.choice([2, 3, 127, 128, 129, 200]), block_size)
    raw = images.write_sparse(workdir / "raw", content)
    blkmap("create", "--block-size", block_size, raw)
    map = show("raw.blkmap")
    assert map["root"] == verity_root(raw, block_size)
    model = reference.read(pathlib.Path("raw.blkmap").read_bytes())
    assert model.commit.root.hex() == map["root"]
    assert images.run("cat", "raw") == content


def test_formats_have_the_same_content_id(workdir):
    content = random_content(random.Random(1), 300)
    raw = images.write_sparse(workdir / "raw", content)
    images.convert(raw, "plain.qcow2")
    images.convert(raw, "small.qcow2", flags=["-c"])
    images.create("top.qcow2", len(content), "-F", "qcow2", "-b", "plain.qcow2")
    ids = set()
    for name in ["raw", "plain.qcow2", "small.qcow2", "top.qcow2"]:
        blkmap("create", name)
        ids.add(blkmap("show", "--id", f"{name}.blkmap"))
    with contextlib.closing(servers.Servers()) as started:
        uri = started.qemu_nbd("plain.qcow2", fmt="qcow2").uri()
        blkmap("create", "-o", "nbd.blkmap", uri)
    ids.add(blkmap("show", "--id", "nbd.blkmap"))
    assert len(ids) == 1
    assert show("raw.blkmap")["root"] == verity_root(raw, BLOCK)


CHECKSUMS = ["streams:4", "streams:7", "flat", "concat", "fs-verity", "dm-verity"]


@pytest.mark.parametrize("digest", ["sha256", "sha512", "sha1", "blake3", "xxh3", "crc32c", "sha384"])
def test_checksums_are_those_of_blksum(workdir, digest):
    content = random_content(random.Random(digest), 140)
    for size in [len(content), len(content) - 1000]:
        raw = images.write_sparse(workdir / "raw", content[:size])
        blkmap("create", "--force", "-d", digest, raw)
        for construction in CHECKSUMS:
            options = ["-d", digest, "--construction", construction, "--block-size", BLOCK]
            wanted = images.attempt(str(blksum_path()), *map(str, options), "raw")
            found = attempt("checksum", "--construction", construction, "raw.blkmap")
            if wanted.returncode == 0:
                assert found.stdout == wanted.stdout, (construction, found.stderr)
            else:
                assert found.returncode == 2, construction


def test_checksum_lines_are_checked_by_blksum(workdir):
    images.write_sparse(workdir / "raw", random_content(random.Random(2), 20))
    blkmap("create", "raw")
    lines = blkmap("checksum", "--tag", "--construction", "flat", "--construction", "streams", "raw.blkmap")
    (workdir / "SUMS").write_text(lines)
    assert images.run(str(blksum_path()), "-c", "SUMS") == b"raw: OK\nraw: OK\n"


def test_checksum_lines_of_a_part_are_checked_by_blksum(workdir):
    """The tag says the snapshot and the partition that the map is of. Another part does not match."""
    images.write_sparse(workdir / "raw", random_content(random.Random(2), 200))
    images.run("sfdisk", "-q", "raw", stdin=None, input=b"label: gpt\nstart=2048,size=4096\nsize=2M\n")
    images.qemu_img("convert", "-O", "qcow2", "raw", "disk.qcow2")
    images.qemu_img("snapshot", "-c", "be fore", "disk.qcow2")
    images.run("qemu-io", "-f", "qcow2", "-c", "write -P 7 1M 64k", "disk.qcow2")
    lines = ""
    for parts, tag, content in [
        (("--partition", "1"), "/PARTITION=1", "partition 1"),
        (("--snapshot", "be fore"), "/SNAPSHOT=be%20fore", "snapshot 'be fore'"),
        (
            ("--snapshot", "be fore", "--partition", "1"),
            "/SNAPSHOT=be%20fore/PARTITION=1",
            "snapshot 'be fore', partition 1",
        ),
    ]:
        blkmap("create", "--force", *parts, "-o", "part.blkmap", "disk.qcow2")
        line = blkmap("checksum", "--tag", "part.blkmap")
        assert line.startswith(f"BLKSUM-SHA256-STREAMS4-64K{tag} (disk.qcow2) = ")
        assert images.run(str(blksum_path()), "--tag", *parts, "disk.qcow2").decode() == line
        (workdir / "SUMS").write_text(line)
        assert images.run(str(blksum_path()), "-c", "SUMS").decode() == f"disk.qcow2: OK ({content})\n"
        lines += line
    assert len({line.split()[-1] for line in lines.splitlines()}) == 3
    for other in ("", "/PARTITION=2", "/SNAPSHOT=be%20fore", "/SNAPSHOT=be%20fore/PARTITION=2"):
        wrong = lines.splitlines(keepends=True)[0].replace("/PARTITION=1", other)
        check = subprocess.run([str(blksum_path()), "-c"], input=wrong.encode(), capture_output=True)
        assert check.returncode == 1 and check.stdout.startswith(b"disk.qcow2: FAILED"), other


def test_checksum_beside_a_map(workdir):
    images.write_sparse(workdir / "raw", random_content(random.Random(3), 20))
    assert blkmap("create", "--checksum", "raw").split()[0] == blksum("raw")
    lines = blkmap("create", "--force", "--checksum=flat", "--checksum=concat", "raw").splitlines()
    assert [line.split(" (")[0] for line in lines] == [
        "BLKSUM-SHA256-FLAT-64K",
        "BLKSUM-SHA256-CONCAT-64K",
    ]


def test_a_map_goes_through_a_pipe(workdir):
    images.write_sparse(workdir / "raw", random_content(random.Random(4), 300))
    (workdir / "piped").write_bytes(attempt("create", "-o", "-", "raw").stdout)
    blkmap("create", "raw")
    assert blkmap("check", "piped") == "piped: OK\n"
    assert blkmap("show", "--id", "piped") == blkmap("show", "--id", "raw.blkmap")


def test_zeros_are_free(workdir):
    with open("empty", "wb") as file:
        file.truncate(8 << 40)
    blkmap("create", "empty", timeout=HANG)
    assert os.stat("empty.blkmap").st_size < 64 * KIB
    assert show("empty.blkmap")["zero_blocks"] == (8 << 40) // BLOCK


@pytest.mark.parametrize("size", [0, 1, BLOCK, BLOCK + 1])
def test_small_images(workdir, size):
    (workdir / "raw").write_bytes(random.Random(size).randbytes(size))
    blkmap("create", "raw")
    assert blkmap("check", "raw.blkmap") == "raw.blkmap: OK\n"
    model = reference.read((workdir / "raw.blkmap").read_bytes())
    assert model.commit.root.hex() == show("raw.blkmap")["root"]
    assert attempt("verify", "-q", "raw.blkmap", "raw").returncode == 0


# Comparing


def change(rng, content, block_size):
    """Returns a changed copy: blocks changed, zeroed and written, and sometimes another size."""
    content = bytearray(content)
    count = len(content) // block_size
    for _ in range(rng.choice([0, 1, 5])):
        first, length = rng.randrange(count), rng.choice([1, 1, 3, 140])
        end = min(first + length, count) * block_size
        kind = rng.choice(["byte", "zeros", "data"])
        if kind == "byte":
            content[rng.randrange(first * block_size, end)] ^= 1
        else:
            part = bytes if kind == "zeros" else rng.randbytes
            content[first * block_size : end] = part(end - first * block_size)
    cut = rng.choice([0, 0, 1, 100, block_size, 130 * block_size])
    return bytes(content[: len(content) - min(cut, len(content))])


@pytest.mark.parametrize("seed", range(12))
def test_differences_are_those_of_the_bytes(workdir, seed):
    rng = random.Random(seed)
    block_size = rng.choice([512, 4096, BLOCK])
    base = random_content(rng, rng.choice([3, 128, 300]), block_size)
    left, right = change(rng, base, block_size), change(rng, base, block_size)
    images.write_sparse(workdir / "left", left)
    images.write_sparse(workdir / "right", right)
    images.convert("left", "left.qcow2")
    images.convert("right", "right.qcow2", flags=["-c"])
    for side in ["left", "right"]:
        blkmap("create", "--block-size", block_size, side)
    expected = expected_kinds(left, right, block_size)
    status = 1 if expected or len(left) != len(right) else 0
    counts = [-(-len(content) // block_size) for content in (left, right)]
    # The sizes of qcow2 images are multiples of 512, and of convert too.
    pairs = [("left.blkmap", "right.blkmap"), ("left.blkmap", "right"), ("left", "right.blkmap")]
    pairs += [("left", "right")]
    if len(left) % 512 == len(right) % 512 == 0:
        pairs += [("left.blkmap", "right.qcow2"), ("left.qcow2", "right.qcow2"), ("left", "right.qcow2")]
    for one, other in pairs:
        sizes = [] if "blkmap" in one + other else ["--block-size", block_size]
        result = compare("diff", one, other, *sizes)
        assert result.returncode == status, (one, other, result)
        kinds, summary = found_kinds(result.stdout, block_size)
        assert kinds == expected, (one, other)
        assert summary["different"] == len(expected) + abs(counts[0] - counts[1]), (one, other)
    result = compare("verify", "left.blkmap", "right")
    assert (result.returncode, found_kinds(result.stdout, block_size)[0]) == (status, expected)


@pytest.mark.parametrize("seed", range(3))
def test_first_difference_is_that_of_qemu_img(workdir, seed):
    rng = random.Random(f"first {seed}")
    base = random_content(rng, 200)
    at = rng.randrange(len(base))
    other = base[:at] + bytes([base[at] ^ 1]) + base[at + 1 :]
    images.write_sparse(workdir / "left", base)
    images.write_sparse(workdir / "right", other)
    output = images.attempt("qemu-img", "compare", "-f", "raw", "-F", "raw", "left", "right")
    offset = int(re.search(rb"offset (\d+)", output.stdout)[1])
    extents = attempt("diff", "--extents", "left", "right").stdout.split()
    assert int(extents[0]) == offset // BLOCK * BLOCK


TAILS = [b"", bytes(1), bytes(600), bytes(3 * MIB), bytes(MIB) + b"x", b"x" + bytes(MIB), bytes(BLOCK - 1) + b"x"]


@pytest.mark.parametrize("size", [0, 512, BLOCK - 512, BLOCK, 2 * MIB + 512])
def test_zeros_at_the_end_are_ignored_as_qemu_img_does(workdir, size):
    content = random.Random(size).randbytes(size)
    images.write_sparse("short", content)
    blkmap("create", "-o", "short.blkmap", "short")
    for number, tail in enumerate(TAILS):
        name = f"long{number}"
        images.write_sparse(name, content + tail)
        blkmap("create", "-o", f"{name}.blkmap", name)
        # It compares whole sectors.
        expected = images.attempt("qemu-img", "compare", "-f", "raw", "-F", "raw", "short", name).returncode
        pairs = [(f"short{one}", f"{name}{other}") for one in ["", ".blkmap"] for other in ["", ".blkmap"]]
        for left, right in pairs + [(right, left) for left, right in pairs]:
            result = attempt("diff", "--ignore-zero-tail", left, right)
            assert result.returncode == expected, (left, right, result)
            if expected == 0 and tail:
                assert b"all zeros\n" in result.stdout and b"; " in result.stdout, result.stdout
            summary = attempt("diff", "--ignore-zero-tail", "--json", left, right).stdout.decode()
            assert json.loads(summary.splitlines()[-1])["same_content"] == (expected == 0)
            assert attempt("diff", "-q", left, right).returncode == (1 if tail else 0)
        for left, right in [("short.blkmap", name), (f"{name}.blkmap", "short")]:
            assert attempt("verify", "-q", "--ignore-zero-tail", left, right).returncode == expected
    blkmap("create", "--shard", "1/2", "-o", "part.blkmap", "long3")
    assert attempt("diff", "--ignore-zero-tail", "part.blkmap", "short").returncode == (1 if size else 1)


@pytest.mark.parametrize("size", [512, BLOCK - 512, BLOCK, 2 * MIB + 512])
def test_what_follows_the_first_image_is_ignored(workdir, size):
    """As on a card that is larger than its image, and holds old data there."""
    content = random.Random(size).randbytes(size)
    images.write_sparse("image", content)
    blkmap("create", "-o", "image.blkmap", "image")
    changed = content[:-1] + bytes([content[-1] ^ 1])
    for number, (start, tail) in enumerate(itertools.product((content, changed, content[:-1]), TAILS)):
        name = f"card{number}"
        images.write_sparse(name, start + tail)
        expected = int((start + tail)[:size] != content)
        for command, left in [("verify", "image.blkmap"), ("diff", "image.blkmap"), ("diff", "image")]:
            result = attempt(command, "--ignore-tail", left, name)
            assert result.returncode == expected, (number, result)
    result = attempt("diff", "--ignore-tail", "image", "image.blkmap")
    assert result.returncode == 2 and b"RIGHT is a map" in result.stderr
    images.write_sparse("nothing", b"")
    blkmap("create", "-o", "nothing.blkmap", "nothing")
    for command, left in [("verify", "nothing.blkmap"), ("diff", "nothing")]:
        result = attempt(command, "--ignore-tail", left, "image")
        assert (result.returncode, result.stdout) == (2, b"") and b"nothing would be left" in result.stderr, result


def test_extents_are_what_has_to_be_copied(workdir):
    rng = random.Random(8)
    base = random_content(rng, 200)
    images.write_sparse(workdir / "left", base)
    images.write_sparse(workdir / "right", change(random.Random(3), base, BLOCK))
    right = (workdir / "right").read_bytes()
    result = attempt("diff", "--extents", "left", "right")
    copy = bytearray(base)
    for line in result.stdout.decode().splitlines():
        offset, length = map(int, line.split())
        copy[offset : offset + length] = right[offset : offset + length]
    assert bytes(copy[: len(right)]) == right


def test_part_of_an_image_is_verified(workdir):
    content = bytearray(random.Random(9).randbytes(128 * 10 * 512))
    (workdir / "raw").write_bytes(content)
    blkmap("create", "--block-size", 512, "raw")
    content[128 * 512 * 7] ^= 1
    (workdir / "raw").write_bytes(content)
    found = [
        attempt("verify", "-q", "--shard", f"{shard}/5", "raw.blkmap", "raw").returncode
        for shard in range(1, 6)
    ]
    assert found == [0, 0, 0, 1, 0]
    for where, status in [("0-400K", 0), ("448K-449K", 1), ("449K-", 1), ("512K-", 0)]:
        result = attempt("verify", "-q", "--range", where, "raw.blkmap", "raw")
        assert result.returncode == status, where


def test_maps_that_cannot_be_compared(workdir):
    (workdir / "raw").write_bytes(random.Random(1).randbytes(MIB))
    for name, options in [("a", []), ("b", ["-d", "sha1"]), ("c", ["--block-size", "4K"])]:
        blkmap("create", "-o", f"{name}.blkmap", *options, "raw")
    for other in "bc":
        result = attempt("diff", "a.blkmap", f"{other}.blkmap")
        assert result.returncode == 2
        assert f"a.blkmap: compared with {other}.blkmap: the digests cannot be compared".encode() in result.stderr


# Shards


@pytest.mark.parametrize("count", [1, 2, 7])
def test_shards_make_the_whole(workdir, count):
    content = random_content(random.Random(count), 700, 512) + b"tail"
    images.write_sparse(workdir / "raw", content)
    names = []
    for shard in range(1, count + 1):
        blkmap("create", "--block-size", 512, "--shard", f"{shard}/{count}", "-o", "s{shard}", "raw")
        names.append(f"s{shard}-of-{count}")
    random.Random(count).shuffle(names)
    blkmap("merge", "-o", "merged", *names)
    blkmap("create", "--block-size", 512, "raw")
    assert blkmap("show", "--id", "merged") == blkmap("show", "--id", "raw.blkmap")
    assert blkmap("check", "merged") == "merged: OK\n"
    reference.read((workdir / "merged").read_bytes())
    if count > 1:
        result = attempt("merge", "--force", "-o", "merged", *names[1:])
        missing = names[0][1:].replace("-of-", "/")
        assert (result.returncode, result.stderr.decode()) == (
            1,
            f"blkhash: missing shards: {missing}\n",
        )


def test_shards_by_number(workdir):
    images.write_sparse("raw", random_content(random.Random(7), 1000))
    blkmap("create", "raw")
    merge = ["merge", "--force", "--shards", 4, "-o", "all", "part {shard}.blkmap"]
    assert attempt(*merge).stderr == b"blkhash: 'part {shard}.blkmap': none of the shards is there\n"
    for number in [1, 3]:
        blkmap("create", "--shard", f"{number}/4", "-o", "part {shard}.blkmap", "raw")
    whole = pathlib.Path("raw.blkmap").read_bytes()
    blkmap("create", "--shard", "4/4", "-o", "part {shard}.blkmap", "raw")
    result = attempt(*merge)
    assert (result.returncode, result.stderr) == (1, b"blkhash: missing shards: 2/4\n")
    blkmap("create", "--shard", "2/4", "-o", "part {shard}.blkmap", "raw")
    blkmap(*merge)
    assert blkmap("show", "--id", "all") == blkmap("show", "--id", "raw.blkmap")
    assert pathlib.Path("raw.blkmap").read_bytes() == whole
    for parts in [["raw.blkmap"], ["part {shard}.blkmap", "raw.blkmap"]]:
        result = attempt("merge", "--shards", 4, "-o", "other", *parts)
        assert result.returncode == 2 and b"--shards needs one name with {shard} in it" in result.stderr


def test_interrupted_shards_are_missing(workdir):
    """A full disk stands for the interruption."""
    images.write_sparse("raw", random.Random(1).randbytes(20 * MIB))
    make = ["create", "--block-size", "512", "--checkpoint", "0.001", "-o", "{shard}.blkmap"]
    limit = "trap '' XFSZ; ulimit -f 256; exec \"$0\" map \"$@\""
    program = str(blksum_path().with_name("blkhash"))
    images.attempt("bash", "-c", limit, program, *make, "--shard", "1/2", "raw")
    blkmap(*make, "--shard", "2/2", "raw")
    merge = ["merge", "--force", "--shards", 2, "-o", "all", "{shard}.blkmap"]
    result = attempt(*merge)
    assert (result.returncode, result.stderr) == (1, b"blkhash: missing shards: 1/2\n")
    blkmap(*make, "--resume", "--shard", "1/2", "raw")
    blkmap(*merge)
    assert attempt("verify", "-q", "all", "raw").returncode == 0


def test_shards_of_jobs(workdir):
    (workdir / "raw").write_bytes(random.Random(1).randbytes(MIB))
    for index in range(2):
        environment = os.environ | {"JOB_COMPLETION_INDEX": str(index)}
        blkmap("create", "--shard", "auto/2", "-o", "{shard}", "raw", env=environment)
    blkmap("merge", "-o", "merged", "1-of-2", "2-of-2")
    assert attempt("create", "--shard", "auto/2", "raw").returncode != 0


def test_a_part_is_not_overwritten(workdir):
    (workdir / "raw").write_bytes(random.Random(1).randbytes(MIB))
    blkmap("create", "raw")
    os.link("raw.blkmap", "linked")
    before = (workdir / "raw.blkmap").read_bytes()
    for name in ["raw.blkmap", "linked"]:
        result = attempt("merge", "--force", "-o", name, "raw.blkmap")
        assert (result.returncode, b"is one of the parts" in result.stderr) == (2, True)
    assert (workdir / "raw.blkmap").read_bytes() == before


def test_shards_of_other_images_are_refused(workdir):
    (workdir / "raw").write_bytes(random.Random(1).randbytes(40 * MIB))
    blkmap("create", "--shard", "1/2", "-o", "one", "raw")
    with open("raw", "r+b") as file:
        file.write(b"another image")
    blkmap("create", "--shard", "2/2", "-o", "two", "raw")
    result = attempt("merge", "-o", "merged", "one", "two")
    assert (result.returncode, b"two: is of another state of the image" in result.stderr) == (3, True)


# Interruptions


def wait_for_pages(path, process, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.005)


@pytest.mark.parametrize("seed", mostly_slow(range(20), range(3)))
def test_killed_and_resumed(workdir, seed):
    rng = random.Random(seed)
    content = random_content(rng, 40_000, 512) + b"odd"
    images.write_sparse(workdir / "raw", content)
    blkmap("create", "--block-size", 512, "-o", "whole.blkmap", "raw")
    program = str(blksum_path().with_name("blkhash"))
    command = [program, "map", "create", "--block-size", "512", "--checkpoint", "0.001", "-o", "map.blkmap", "raw"]
    for attempt_number in range(3):
        resume = ["--resume"] if attempt_number else []
        process = subprocess.Popen([*command, *resume], stderr=subprocess.DEVNULL)
        wait_for_pages("map.blkmap", process, rng.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if not os.path.exists("map.blkmap"):
            continue
        if os.stat("map.blkmap").st_size and rng.random() < 0.5:
            with open("map.blkmap", "ab") as file:
                file.write(rng.randbytes(rng.choice([1, 4096, 100_000])))
            # After a map that is finished, it counts as an update that was interrupted.
            found = attempt("show", "--id", "map.blkmap")
            is_finished = found.stdout.decode() == blkmap("show", "--id", "whole.blkmap")
            assert (found.returncode, b"note: an update" in found.stderr) == ((0, True) if is_finished else (2, False))
    blkmap("create", "--block-size", 512, "--resume", "-o", "map.blkmap", "raw")
    assert blkmap("check", "map.blkmap") == "map.blkmap: OK\n"
    assert blkmap("show", "--id", "map.blkmap") == blkmap("show", "--id", "whole.blkmap")
    assert attempt("diff", "map.blkmap", "whole.blkmap").returncode == 0
    reference.read((workdir / "map.blkmap").read_bytes())


def test_only_the_same_image_is_resumed(workdir):
    images.write_sparse(workdir / "raw", random_content(random.Random(1), 40_000, 512))
    blkmap("create", "--block-size", 512, "--checkpoint", "0.001", "-o", "map", "raw")
    whole = (workdir / "map").read_bytes()
    commits = reference.read(whole).commit.sequence
    assert commits > 1
    (workdir / "map").write_bytes(whole[:-4096])
    result = attempt("create", "--block-size", 512, "-o", "map", "raw")
    assert (result.returncode, b"--resume continues" in result.stderr) == (2, True)
    for options in [["--block-size", 4096], ["--block-size", 512, "-d", "sha1"]]:
        result = attempt("create", "--resume", *options, "-o", "map", "raw")
        assert (result.returncode, b"another digest" in result.stderr) == (3, True)
    os.utime("raw", (1, 1))
    result = attempt("create", "--resume", "--block-size", 512, "-o", "map", "raw")
    assert (result.returncode, b"as it is now" in result.stderr) == (3, True)
    blkmap("create", "--force", "--block-size", 512, "-o", "map", "raw")


def test_unchanged_images_are_not_read_again(workdir):
    images.write_sparse(workdir / "raw", random_content(random.Random(1), 100))
    blkmap("create", "--if-changed", "raw")
    before = (workdir / "raw.blkmap").read_bytes()
    blkmap("create", "--if-changed", "raw")
    assert (workdir / "raw.blkmap").read_bytes() == before
    with open("raw", "r+b") as file:
        file.write(b"changed")
    blkmap("create", "--if-changed", "raw")
    assert attempt("verify", "-q", "raw.blkmap", "raw").returncode == 0
    assert (workdir / "raw.blkmap").read_bytes() != before


def test_servers_show_no_changes(workdir):
    images.write_sparse(workdir / "raw", random_content(random.Random(1), 100))
    with contextlib.closing(servers.Servers()) as started:
        uri = started.qemu_nbd("raw").uri()
        blkmap("create", "-o", "map", uri)
        before = blkmap("show", "--id", "map")
        with open("raw", "r+b") as file:
            file.write(b"changed")
        blkmap("create", "--if-changed", "-o", "map", uri)
        assert blkmap("show", "--id", "map") != before


def test_other_files_are_not_overwritten(workdir):
    (workdir / "raw").write_bytes(bytes(MIB))
    (workdir / "other").write_text("mine")
    for options in [[], ["--force"], ["--resume"], ["--if-changed"]]:
        result = attempt("create", *options, "-o", "other", "raw")
        assert (result.returncode, (workdir / "other").read_text()) == (2, "mine")
    blkmap("create", "raw")
    result = attempt("create", "raw")
    assert (result.returncode, b"exists: --force" in result.stderr) == (2, True)
    result = attempt("create", "--force", "-o", "raw", "raw")
    assert (result.returncode, (workdir / "raw").read_bytes()) == (2, bytes(MIB))


def test_a_full_disk(workdir):
    """The map is written to a file system that is too small, and what is there continues elsewhere."""
    images.write_sparse(workdir / "raw", random.Random(1).randbytes(20 * MIB))
    limit = "ulimit -f 256; exec \"$0\" map create --block-size 512 --checkpoint 0.001 -o map raw"
    program = str(blksum_path().with_name("blkhash"))
    result = images.attempt("bash", "-c", f"trap '' XFSZ; {limit}", program)
    assert (result.returncode, b"File too large" in result.stderr) == (2, True), result.stderr
    assert attempt("show", "map").returncode == 2
    blkmap("create", "--block-size", 512, "--resume", "-o", "map", "raw")
    assert attempt("verify", "-q", "map", "raw").returncode == 0


# Damage


def small_map(workdir):
    content = random_content(random.Random(5), 300, 512) + b"tail"
    images.write_sparse(workdir / "raw", content)
    blkmap("create", "--block-size", 512, "raw")
    return (workdir / "raw.blkmap").read_bytes()


def test_changed_bytes_are_found(workdir):
    data = small_map(workdir)
    rng = random.Random(6)
    for _ in range(60):
        at = rng.randrange(len(data))
        changed = bytearray(data)
        changed[at] ^= 1 << rng.randrange(8)
        (workdir / "bad").write_bytes(changed)
        assert attempt("check", "bad").returncode in (1, 2), at
        for command in [("verify", "-q", "bad", "raw"), ("checksum", "bad"), ("merge", "-o", "-", "bad")]:
            result = attempt(*command)
            if result.returncode == 0 and command[0] == "checksum":
                assert result.stdout.split()[0].decode() == blksum("--block-size", 512, "raw")
            elif command[0] == "merge":
                assert result.returncode != 0 or reference.read(result.stdout)


def test_cut_off_maps_are_refused(workdir):
    data = small_map(workdir)
    for length in [0, 1, 4095, 4096, 8192, len(data) // 2, len(data) - 4096, len(data) - 1]:
        (workdir / "bad").write_bytes(data[:length])
        for command in [("show", "bad"), ("check", "bad"), ("checksum", "bad"), ("verify", "bad", "raw")]:
            assert attempt(*command).returncode in (1, 2), (length, command)


# Seals


def test_seals(workdir):
    small_map(workdir)
    (workdir / "key").write_bytes(bytes(range(32)))
    (workdir / "other").write_bytes(bytes(range(1, 33)))
    result = attempt("check", "--key-file", "key", "raw.blkmap")
    assert (result.returncode, b"is not sealed" in result.stderr) == (1, True)
    blkmap("seal", "--key-file", "key", "raw.blkmap")
    assert blkmap("check", "--key-file", "key", "raw.blkmap") == "raw.blkmap: OK (seal OK)\n"
    assert blkmap("check", "raw.blkmap") == "raw.blkmap: OK (sealed, not checked)\n"
    result = attempt("check", "--key-file", "other", "raw.blkmap")
    assert (result.returncode, b"another key" in result.stderr) == (1, True)
    reference.read((workdir / "raw.blkmap").read_bytes(), key=bytes(range(32)))
    blkmap("create", "--block-size", 512, "--key-file", "key", "-o", "sealed", "raw")
    reference.read((workdir / "sealed").read_bytes(), key=bytes(range(32)))
    assert attempt("verify", "-q", "--key-file", "key", "sealed", "raw").returncode == 0
    assert attempt("verify", "-q", "--key-file", "other", "sealed", "raw").returncode == 2
    (workdir / "short").write_bytes(bytes(15))
    result = attempt("seal", "--key-file", "short", "raw.blkmap")
    assert b"16 to 4096 bytes" in result.stderr
    # A seal does not make parts of others genuine.
    result = attempt("merge", "--key-file", "key", "-o", "merged", "raw.blkmap@1")
    assert (result.returncode, b"raw.blkmap@1: is not sealed" in result.stderr) == (2, True)
    blkmap("merge", "--force", "--key-file", "key", "-o", "merged", "raw.blkmap")
    assert blkmap("check", "--key-file", "key", "merged") == "merged: OK (seal OK)\n"
    # The state before the seal is still there.
    assert json.loads(blkmap("show", "--json", "raw.blkmap@1"))["sealed_with"] is None


# Progress


def test_work_on_maps_has_progress(workdir):
    images.write_sparse("raw", random.Random(1).randbytes(4 * MIB))
    for shard in [1, 2]:
        blkmap("create", "--block-size", 512, "--shard", f"{shard}/2", "-o", "{shard}.blkmap", "raw")
    merge = ["merge", "-o", "all.blkmap", "1-of-2.blkmap", "2-of-2.blkmap"]
    pages = 4 * MIB // 512 // 128
    for command in [merge, [*merge, "--force"], ["check", "all.blkmap"]]:
        result = attempt(*command, "--progress=json")
        assert result.returncode == 0, result
        last = json.loads(result.stderr.splitlines()[-1])
        assert (last["done"], last["total"]) == (pages * 4096, pages * 4096), last


def fields(value, prefix=""):
    """Yields the names of all fields of an object, as docs/reference/map-format.md writes them."""
    for name, inner in value.items():
        yield prefix + name
        first = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(first, dict) and name != "made":
            yield from fields(first, f"{prefix}{name}{'[]' if isinstance(inner, list) else ''}.")


def test_the_page_lists_the_fields_that_are_written(workdir):
    page = (ROOT / "docs/reference/map-format.md").read_text().split("\n## Info\n")[1]
    written, how, reserved = re.findall(r"^\|--.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    with open("disk", "wb") as file:
        file.truncate(8 * MIB)
    images.run("sfdisk", "-q", "disk", stdin=None, input=b"label: gpt\nsize=2M\nsize=2M\n")
    blkmap("create", "--shard", "1/1", "-o", "disk.blkmap", "disk")
    blkmap("create", "--partition", 1, "-o", "part.blkmap", "disk")
    blkmap("merge", "-o", "merged.blkmap", "disk.blkmap")
    images.create(workdir / "disk.qcow2", 8 * MIB)
    images.qemu_img("bitmap", "--add", "disk.qcow2", "changes")
    blkmap("create", "-o", "updated.blkmap", "disk.qcow2")
    images.run("qemu-io", "-c", "write 0 64k", "disk.qcow2")
    blkmap("update", "--bitmap", "changes", "updated.blkmap", "disk.qcow2")
    names = ("disk.blkmap", "part.blkmap", "merged.blkmap", "updated.blkmap")
    infos = [show(name)["info"] for name in names]
    found = {field for info in infos for field in fields(info)}
    named = set(re.findall(r"^\| `([^`]+)`", written, re.MULTILINE))
    assert {field for field in found if not field.startswith("made.")} == named
    *made, update = [info["made"] for info in infos]
    assert made == ["read", "read", {"merge": 1}]
    assert {f"update.{field}" for field in update["update"]} == set(re.findall(r"^\| `(update\.\w+)`", how, re.MULTILINE))
    (workdir / "index").write_text(blkmap("export", "--to", "lines", "disk.blkmap"))
    blkmap("import", "--from", "lines", "--block-size", "64K", "-o", "imported.blkmap", "index")
    assert show("imported.blkmap")["info"]["made"] == {"import": "lines"}
    assert len(how.splitlines()) == 8
    assert not found & set(re.findall(r"^\| `([^`]+)`", reserved, re.MULTILINE))


@pytest.mark.parametrize("digest", ["crc32", "crc32c", "crc64nvme"])
def test_crc_of_the_whole_from_those_of_blocks(tmp_path, digest):
    name, made = tmp_path / "disk.raw", tmp_path / "disk.blkmap"
    for size in (0, 1, 3 * 512, 5 * BLOCK + 700):
        content = random.Random(size).randbytes(size)
        name.write_bytes(content[:BLOCK] + bytes(len(content[BLOCK : 4 * BLOCK])) + content[4 * BLOCK :])
        for block_size in (512, BLOCK):
            blkmap("create", "--force", "-d", digest, "--block-size", block_size, "-o", made, name)
            line = blkmap("checksum", "--construction", "linear", made).split()[0]
            assert line == blksum("-d", digest, "--construction", "linear", name)
    blkmap("create", "--force", "-o", made, name)
    refused = attempt("checksum", "--construction", "linear", made)
    assert (refused.returncode, b"a CRC does" in refused.stderr) == (2, True)
