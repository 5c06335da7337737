"""contrib/nbdkit: no content that differs from the map reaches a client, and maps of what passes."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

import c_programs
import commands
import images
from commands import blkhash

KIB = 1 << 10
MIB = 1 << 20


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Runs a client of an nbdkit that serves a file through the filter."""
    folder = tmp_path_factory.mktemp("filter")
    include = subprocess.check_output(["pkg-config", "--cflags", "nbdkit"], text=True).split()
    flags = ["-fPIC", "-shared", "-pthread", "-Wextra", *include]
    source = commands.ROOT / "contrib/nbdkit/blkmap-filter.c"
    name = "nbdkit-blkmap-filter.so"
    filter_path = c_programs.build(folder, source, *flags, name=name)
    environment = c_programs.environment(folder)

    def run(client, *parameters, filters=(), plugin=("file", "disk.img")):
        before = [f"--filter={name}" for name in filters]
        command = ["nbdkit", "-U", "-", f"--filter={filter_path}", *before, *plugin, *map(str, parameters)]
        command += ["--run", client]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=commands.HANG)

    run.path = filter_path
    return run


def content(rng):
    """Random content: data, zeros and an end within a block."""
    parts = []
    for _ in range(rng.randint(1, 8)):
        length = rng.choice((512, 4 * KIB, 64 * KIB, 200 * KIB, rng.randrange(1, 800) * 512))
        parts.append(rng.choice((bytes(length), rng.randbytes(length), bytes([rng.randrange(256)]) * length)))
    return b"".join(parts)


def damaged(rng, data):
    """Data with flips at random places: bits, zeros in place of data, and data in place of zeros."""
    data = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2))):
        at = rng.randrange(len(data))
        kind = rng.randrange(3)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        else:
            length = min(rng.choice((1, 512, 100 * KIB)), len(data) - at)
            data[at : at + length] = bytes(length) if kind == 1 else rng.randbytes(length)
    return bytes(data)


def create_map(rng, data):
    """Writes the map of the right content. Returns its block size."""
    pathlib.Path("right.img").write_bytes(data)
    size = rng.choice((512, 4 * KIB, 64 * KIB, 64 * KIB, MIB))
    digest = rng.choice(("sha256", "blake3"))
    pathlib.Path("disk.blkmap").unlink(missing_ok=True)
    done = blkhash("map", "create", "-f", "raw", "-d", digest, "--block-size", size, "-o", "disk.blkmap", "right.img")
    assert done.returncode == 0, done
    return size


def bytes_of(output):
    """The offsets and bytes that `qemu-io read -v` prints."""
    found = {}
    for line in output.splitlines():
        match = re.match(r"([0-9a-f]{8,}):\s+((?:[0-9a-f]{2} )+)", line)
        if match:
            found[int(match[1], 16)] = bytes.fromhex(match[2])
    return found


@pytest.mark.parametrize("count", commands.mostly_slow([8, 60, 300], [8], [8, 60]))
def test_no_flipped_byte_reaches_a_client(served, workdir, count):
    rng = random.Random(count)
    refused = 0
    for _ in range(count):
        right = content(rng)
        wrong = damaged(rng, right)
        block_size = create_map(rng, right)
        images.write_sparse("disk.img", wrong)
        differing = {at // block_size for at in range(0, len(right)) if right[at] != wrong[at]} if right != wrong else set()
        for client in ('qemu-img convert -f raw -O raw "$uri" out', 'nbdcopy "$uri" out', 'nbdcopy --no-extents "$uri" out'):
            pathlib.Path("out").unlink(missing_ok=True)
            done = served(client, "map=disk.blkmap")
            assert (done.returncode == 0) == (right == wrong), (client, done)
            if differing:
                block = int(re.search(r"block (\d+) at offset (\d+) differs from the map", done.stderr)[1])
                assert block in differing, (done.stderr, differing)
            else:
                # QEMU rounds the size up.
                assert pathlib.Path("out").read_bytes()[: len(right)] == right

        # Parts of blocks.
        reads = []
        for _ in range(10):
            at = rng.randrange(len(right)) // 512 * 512
            length = min(rng.choice((512, 1 * KIB, 4 * KIB)), (len(right) - at) // 512 * 512)
            if length:
                reads.append((at, length))
        commands = " ".join(f"-c 'read -v {at} {length}'" for at, length in reads)
        done = served(f'qemu-io -r -f raw {commands} "$uri"', "map=disk.blkmap")
        shown = bytes_of(done.stdout)
        for at, part in shown.items():
            assert part == right[at : at + len(part)], (at, done.stdout)
        expected = set()
        for at, length in reads:
            if not differing & set(range(at // block_size, (at + length - 1) // block_size + 1)):
                expected |= set(range(at, at + length, 16))
        assert set(shown) == expected, (reads, differing, done)
        refused += bool(differing)
    assert count // 4 < refused < count


def test_policies(served, workdir):
    data = random.Random(1).randbytes(300 * KIB)
    create_map(random.Random(1), data)
    wrong = bytearray(data)
    wrong[70000] ^= 1
    images.write_sparse("disk.img", wrong)
    done = served('nbdcopy "$uri" out', "map=disk.blkmap", "map-policy=log")
    assert done.returncode == 0 and "differs from the map" in done.stderr, done
    assert pathlib.Path("out").read_bytes() == wrong
    done = served('nbdcopy "$uri" out', "map=disk.blkmap", "map-policy=fail")
    assert done.returncode != 0 and "differs from the map" in done.stderr, done


def test_many_connections(served, workdir):
    rng = random.Random(16)
    data = b"".join(rng.choice((rng.randbytes(MIB), bytes(MIB))) for _ in range(48)) + rng.randbytes(777 * 512)
    create_map(rng, data)
    images.write_sparse("disk.img", data)
    copy = 'nbdcopy --connections=16 --threads=16 --requests=8 --request-size=65536 "$uri" out'
    done = served(copy, "map=disk.blkmap", "map-make=made.blkmap")
    assert done.returncode == 0, done
    assert pathlib.Path("out").read_bytes() == data
    assert blkhash("map", "diff", "--extents", "disk.blkmap", "made.blkmap").stdout == b""
    wrong = bytearray(data)
    wrong[len(data) - 5] ^= 4
    images.write_sparse("disk.img", wrong)
    assert served(copy, "map=disk.blkmap").returncode != 0


@pytest.mark.parametrize("count", commands.mostly_slow([6, 60], [6], [6]))
def test_maps_of_what_passes(served, workdir, count):
    rng = random.Random(count)
    for _ in range(count):
        data = content(rng)
        size = create_map(rng, data)
        images.write_sparse("disk.img", data)
        digest = re.search(r"(sha256|blake3)", blkhash("map", "show", "disk.blkmap").stdout.decode())[1]
        client = rng.choice(('qemu-img convert -f raw -O raw "$uri" out', 'nbdcopy "$uri" out'))
        done = served(client, "map-make=made.blkmap", f"map-digest={digest}", f"map-block-size={size}")
        assert done.returncode == 0, done
        found = blkhash("map", "diff", "--extents", "disk.blkmap", "made.blkmap")
        assert (found.returncode, found.stdout) == (0, b""), found
        assert blkhash("map", "check", "made.blkmap").returncode == 0
        os.unlink("made.blkmap")
        # In any order, and not all of it.
        reads = [(at, min(size, len(data) - at)) for at in range(0, len(data) // 512 * 512, size)][:50]
        rng.shuffle(reads)
        if len(reads) * size < len(data) or len(data) % 512:
            commands = " ".join(f"-c 'read {at} {length // 512 * 512}'" for at, length in reads[:-1])
            done = served(f'qemu-io -r -f raw {commands} "$uri"', "map-make=made.blkmap", f"map-block-size={size}")
            assert not os.path.exists("made.blkmap"), done


def test_incomplete_and_sealed_maps(served, workdir):
    data = random.Random(2).randbytes(20 * MIB)
    pathlib.Path("disk.img").write_bytes(data)
    assert blkhash("map", "create", "-f", "raw", "--shard", "1/2", "-o", "half.blkmap", "disk.img").returncode == 0
    done = served('nbdcopy "$uri" out', "map=half.blkmap")
    assert done.returncode != 0 and "is not in the map" in done.stderr, done
    done = served("qemu-io -r -f raw -c 'read 0 1M' \"$uri\"", "map=half.blkmap")
    assert done.returncode == 0 and "error" not in done.stderr, done
    pathlib.Path("key").write_bytes(b"k" * 32)
    pathlib.Path("other").write_bytes(b"o" * 32)
    made = blkhash("map", "create", "-f", "raw", "--key-file", "key", "-o", "sealed.blkmap", "disk.img")
    assert made.returncode == 0, made
    assert served('nbdcopy "$uri" out', "map=sealed.blkmap", "map-key-file=key").returncode == 0
    done = served('nbdcopy "$uri" out', "map=sealed.blkmap", "map-key-file=other")
    assert done.returncode != 0 and "sealed.blkmap" in done.stderr, done


def read(at, name=""):
    """A client that prints 512 bytes of an export."""
    return f"qemu-io -r -f raw -c 'read -v {at} 512' \"nbd+unix:///{name}?socket=$unixsocket\""


def test_a_map_that_is_overwritten(served, workdir):
    right = random.Random(4).randbytes(4 * MIB)
    wrong = bytearray(right)
    wrong[3 * MIB] ^= 1
    pathlib.Path("disk.img").write_bytes(wrong)
    pathlib.Path("right.img").write_bytes(right)
    pathlib.Path("key").write_bytes(b"k" * 32)
    pathlib.Path("other").write_bytes(b"o" * 32)
    for name, key, image in [("sealed", "key", "right.img"), ("forged", "other", "disk.img")]:
        arguments = ("-f", "raw", "--block-size", 512, "--key-file", key, "-o", f"{name}.blkmap", image)
        assert blkhash("map", "create", *arguments).returncode == 0
    client = f"{read(0)} && cat forged.blkmap > sealed.blkmap; {read(0)}; {read(3 * MIB)}; {read(2 * MIB)}"
    done = served(client, "map=sealed.blkmap", "map-key-file=key")
    assert "sealed.blkmap: is damaged at" in done.stderr and "changed after it was checked" in done.stderr, done
    # What was verified before may still be there.
    assert set(bytes_of(done.stdout)) == set(range(0, 512, 16)), done


def test_only_verified_blocks_are_kept(served, workdir):
    os.mkdir("exports")
    for name in "ab":
        pathlib.Path("exports", name).write_bytes(name.encode() * 200 * KIB)
    blkhash("map", "create", "-f", "raw", "-o", "a.blkmap", "exports/a")
    for parameters in [("map-make=made.blkmap",), ("map=a.blkmap", "map-policy=log"), ("map=a.blkmap",)]:
        plugin = ("file", "dir=exports")
        done = served(f"{read(1024, 'a')}; {read(1024, 'a')}", *parameters, plugin=plugin)
        assert bytes_of(done.stdout)[1024] == b"a" * 16, done
        done = served(f"{read(1024, 'a')} > /dev/null; {read(1024, 'b')}", *parameters, plugin=plugin)
        # What the map has may go to the client of either.
        expected = (b"a", b"b") if "map=a.blkmap" in parameters else (b"b",)
        assert bytes_of(done.stdout)[1024][:1] in expected, done
        assert not os.path.exists("made.blkmap")
    # Content that is not in the map is read again.
    pathlib.Path("disk.img").write_bytes(b"b" * 200 * KIB)
    client = f"{read(0)} > /dev/null; printf ccc | dd of=disk.img conv=notrunc status=none; {read(0)}"
    for parameters in [("map-make=made.blkmap",), ("map=a.blkmap", "map-policy=log")]:
        pathlib.Path("disk.img").write_bytes(b"b" * 200 * KIB)
        assert bytes_of(served(client, *parameters).stdout)[0][:4] == b"cccb", parameters


def test_zeros_of_an_incomplete_map(served, workdir):
    with open("disk.img", "wb") as file:
        file.truncate(512 * MIB)
    for shard in ("1/2", "2/2"):
        arguments = ("-f", "raw", "--shard", shard, "--block-size", 512, "-o", "half.blkmap", "disk.img")
        pathlib.Path("half.blkmap").unlink(missing_ok=True)
        assert blkhash("map", "create", *arguments).returncode == 0
        # This took hours.
        done = served('timeout 60 qemu-img map -f raw --output=json "$uri"', "map=half.blkmap")
        assert done.returncode == 0, done
        zeros = sum(extent["length"] for extent in json.loads(done.stdout) if extent["zero"])
        assert 240 * MIB < zeros <= 256 * MIB, done


def test_what_comes_after_the_last_block(served, workdir):
    pathlib.Path("disk.img").write_bytes(b"1" * 200 * KIB)
    change = "printf 2 | dd of=disk.img bs=1 seek=70000 conv=notrunc status=none"
    client = f'nbdcopy "$uri" out; {change}; nbdcopy "$uri" out'
    done = served(client, "map-make=made.blkmap")
    assert "no map was written: block 1 came with two contents" in done.stderr, done
    assert not os.path.exists("made.blkmap")
    assert pathlib.Path("out").read_bytes()[70000:70001] == b"2"
    done = served('nbdcopy "$uri" out; nbdcopy "$uri" out', "map-make=made.blkmap")
    assert blkhash("map", "verify", "made.blkmap", "-f", "raw", "disk.img").returncode == 0, done


def test_an_empty_disk(served, workdir):
    done = served('qemu-img info "$uri"', "map-make=made.blkmap", plugin=("memory", "0"))
    assert blkhash("map", "check", "made.blkmap").returncode == 0, done


def test_reads_that_the_plugin_limits(served, workdir):
    data = random.Random(5).randbytes(3 * MIB + 512)
    pathlib.Path("disk.img").write_bytes(data)
    assert blkhash("map", "create", "-f", "raw", "--block-size", MIB, "-o", "disk.blkmap", "disk.img").returncode == 0
    limit = ("blocksize-maximum=64K", "blocksize-error-policy=error")
    done = served('qemu-img convert -f raw -O raw "$uri" out', "map=disk.blkmap", *limit, filters=("blocksize-policy",))
    assert done.returncode == 0 and pathlib.Path("out").read_bytes() == data, done


def test_what_is_refused(served, workdir):
    data = random.Random(3).randbytes(200 * KIB)
    create_map(random.Random(3), data)
    shutil.copy("right.img", "disk.img")
    pathlib.Path("short").write_bytes(b"k")
    for parameters, reason in [
        ([], "map=FILE or map-make=FILE is needed"),
        (["map=missing.blkmap"], "missing.blkmap"),
        (["map=disk.img"], "disk.img"),
        (["map=disk.blkmap", "map-policy=ignore"], "map-policy"),
        (["map-make=disk.blkmap"], "exists"),
        (["map-make=x.blkmap", "map-digest=sha"], "digest"),
        (["map-make=x.blkmap", "map-block-size=1000"], "block-size"),
        (["map=disk.blkmap", "map-make=x.blkmap", "map-digest=sha256"], "with map=FILE"),
        (["map=disk.blkmap", "map-key-file=missing"], "missing"),
        (["map=disk.blkmap", "map-key-file=short"], "short"),
        (["map=disk.blkmap", "map-key-file=."], "Is a directory"),
        (["map=disk.blkmap", "map-digest=sha256"], "map-make=FILE is needed"),
        (["map=disk.blkmap", "map-block-size=4K"], "map-make=FILE is needed"),
        (["map-make=missing/x.blkmap"], "missing/x.blkmap cannot be written"),
    ]:
        done = served('nbdcopy "$uri" out', *parameters)
        assert done.returncode != 0 and reason in done.stderr, (parameters, done)
    done = served('nbdcopy "$uri" out', "map=disk.blkmap", filters=(served.path,))
    assert done.returncode != 0 and "the filter was given twice" in done.stderr, done
    # It cannot be written.
    done = served("qemu-io -f raw -c 'write 0 512' \"$uri\"", "map=disk.blkmap")
    assert done.returncode != 0, done
    assert pathlib.Path("disk.img").read_bytes() == data
    # Another size.
    pathlib.Path("disk.img").write_bytes(data + b"x" * 512)
    done = served('nbdcopy "$uri" out', "map=disk.blkmap")
    assert done.returncode != 0 and "the map is of 204800 bytes, and there are 205312" in done.stderr, done
