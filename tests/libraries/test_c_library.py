"""libblksum in a small program (`verbs.c`), compared with the commands, over random images and maps."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import time

import pytest

import c_programs
import commands
import guest_view
import images
import random_images

KIB = 1 << 10
MIB = 1 << 20


class Verbs:
    """The program. Each call is a line, and its answer another one."""

    def __init__(self, program, environment):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([program], env=environment, **pipes)

    def __call__(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(timeout=commands.HANG) == 0


@pytest.fixture(scope="module")
def verbs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verbs")
    program = c_programs.build(folder, commands.ROOT / "tests/helpers/verbs.c")
    running = Verbs(program, c_programs.environment(folder))
    yield running
    running.close()


def blkhash(*args, status=0):
    command = [str(commands.BLKSUM.parent / "blkhash"), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=commands.HANG)
    assert done.returncode == status, done
    return done.stdout


def differences(*args):
    """The extents that a comparison of the command finds, in the words of the program."""
    command = [str(commands.BLKSUM.parent / "blkhash"), *map(str, args), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=commands.HANG)
    assert done.returncode in (0, 1), done
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return " ".join(f"{it['offset']}:{it['length']}:{it['kind']}" for it in lines if "offset" in it)


def make(rng, path):
    """Makes a random image. Returns its format."""
    fmt = rng.choice(["raw", *random_images.GENERATORS])
    if fmt == "raw":
        guest_view.create_base(rng, path, "raw")
    else:
        random_images.GENERATORS[fmt](rng, path)
    return fmt


def changed(rng, content, path):
    """Writes content with changes: some bytes, zeros, and another end."""
    content = bytearray(content)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(content))
        length = rng.choice((1, 1, 512, 70 * KIB))
        new = bytes(length) if rng.randrange(2) else rng.randbytes(length)
        content[at : at + length] = new[: len(content) - at]
    end = rng.choice((len(content), len(content), rng.randrange(1, len(content) + 1)))
    more = rng.randbytes(rng.choice((0, 0, 0, 1, 100 * KIB)))
    path.write_bytes(content[:end] + more)


@pytest.mark.parametrize("count", commands.mostly_slow([10, 30, 500], [10], [10, 30]))
def test_random_images_and_maps(blksum, verbs, workdir, count):
    rng = random.Random(count)
    found = 0
    for number in range(count):
        folder = workdir / str(number)
        folder.mkdir()
        image, raw, other = folder / "image", folder / "raw", folder / "other"
        # Some images name files next to them.
        os.chdir(folder)
        fmt = make(rng, pathlib.Path("image"))
        if fmt == "raw":
            # QEMU has whole sectors.
            shutil.copy(image, raw)
        else:
            images.qemu_img("convert", "-f", fmt, "-O", "raw", image, raw)
        content = raw.read_bytes()
        changed(rng, content, other)
        assert verbs("opt", "format", fmt) == ""

        # Checksums, and values without parameters.
        digest = rng.choice(("sha256", "sha256", "blake3", "sha512", "blake2b512"))
        construction = rng.choice(("streams:4", "flat", "concat", "linear"))
        size = rng.choice((512, 4 * KIB, 64 * KIB, 64 * KIB, MIB))
        for name, value in (("digest", digest), ("construction", construction), ("block-size", size)):
            assert verbs("opt", name, value) == ""
        options = ["-f", fmt, "-d", digest, "--construction", construction]
        options += ["--block-size", str(size)] if construction != "linear" else []
        expected = blksum.hex(*options, str(image))
        assert verbs("checksum", image) == f"{expected} {len(content)} {fmt}", (number, options)
        value = blksum.hex("-f", fmt, str(image))
        assert verbs("expect", image, value) == f"0 BLKSUM-SHA256-STREAMS4-64K/FORMAT={fmt}"
        assert verbs("expect", image, value[::-1]) == "1"

        # Extents, and the content in them.
        extents = verbs("extents", image, folder / "copy").split()
        lengths = [int(extent.split(":")[0]) for extent in extents]
        assert sum(lengths) == len(content)
        kinds = [extent.split(":")[1] for extent in extents]
        assert all(one != other for one, other in zip(kinds, kinds[1:]))
        with open(folder / "copy", "r+b") as copy:
            copy.truncate(len(content))
        assert (folder / "copy").read_bytes() == content

        # Maps.
        block = ["-d", digest, "--block-size", size]
        blkhash("map", "create", "-f", fmt, *block, "-o", folder / "theirs.blkmap", image)
        assert verbs("create", image, folder / "ours.blkmap") == ""
        assert verbs("make", image, folder / "made.blkmap", size) == ""
        assert blkhash("map", "diff", "--extents", folder / "theirs.blkmap", folder / "ours.blkmap") == ""
        assert blkhash("map", "diff", "--extents", folder / "theirs.blkmap", folder / "made.blkmap") == ""
        blkhash("map", "check", folder / "ours.blkmap", folder / "made.blkmap")
        assert verbs("verify", image, folder / "theirs.blkmap") == ""
        assert verbs("check", image, folder / "theirs.blkmap") == ""
        assert verbs("opt", "format", "raw") == ""
        expected = differences("map", "verify", "-f", "raw", folder / "theirs.blkmap", other)
        assert verbs("verify", other, folder / "theirs.blkmap") == expected
        assert verbs("create", other, folder / "other.blkmap") == ""
        maps = folder / "theirs.blkmap", folder / "other.blkmap"
        assert verbs("diff", *maps) == differences("map", "diff", *maps)
        found += bool(expected)

        # Single blocks differ where the content does.
        if other.stat().st_size == len(content):
            now = other.read_bytes()
            bad = [at // size for at in range(0, len(content), size) if now[at : at + size] != content[at : at + size]]
            assert verbs("check", other, folder / "theirs.blkmap").split() == [f"{at}:1" for at in reversed(bad)]
        shutil.rmtree(folder)
    assert found > count // 4


def test_a_map_that_is_not_complete_is_removed(verbs, workdir, servers):
    """Before the call ends, although its thread still waits for the server. What gets the name then stays."""
    pathlib.Path("disk").write_bytes(random.Random(7).randbytes(4 * MIB))
    slow = servers.nbdkit("--filter=delay", "file", "disk", "rdelay=3").uri()
    assert verbs("cancel", slow, workdir / "new").endswith(" cancelled")
    assert not os.path.exists("new")
    assert verbs("create", workdir / "disk", workdir / "new") == ""
    whole = pathlib.Path("new").read_bytes()
    # The thread ends when the server answers.
    time.sleep(4)
    assert pathlib.Path("new").read_bytes() == whole


def test_errors_name_the_image(verbs, workdir):
    for name in ("format", "digest", "construction", "block-size"):
        assert verbs("opt", name) == ""
    (workdir / "image").write_bytes(b"x" * 1000)
    assert verbs("checksum", "missing").startswith("error 10 missing: ")
    assert verbs("opt", "format", "qcow2") == ""
    assert verbs("checksum", workdir / "image").startswith(f"error 15 {workdir}/image: ")
    assert verbs("opt", "format") == ""
    assert verbs("diff", workdir / "image", workdir / "image").startswith("error 40 ")


def name_of(name):
    return bytes.fromhex(name["name_bytes"]).decode() if "name_bytes" in name else name["name"]


def fields(*values):
    """The fields of a record, in the words of the program."""
    return ["-" if value is None else str(value) for value in values]


def records(answer):
    """The records of an answer, and what follows them."""
    *found, rest = answer.split("\36")
    return [record.split("\37")[:-1] for record in found], rest


def health(*args, status):
    """The answer that the command gives for a check."""
    found = {"layer": [], "finding": []}
    for line in blkhash("check", "--json", *args, status=status).splitlines():
        it = json.loads(line)
        if it["type"] == "layer":
            verified = [sum(entry[key] for entry in it["verified"]) for key in ("count", "bytes")]
            found["layer"].append(fields(
                it["place"], it["layer"], it["label"], it["uuid"], it["verdict"], it["partition"], it["offset"], it["length"],
                *verified, it["unprotected_bytes"], it["mismatches"], it["damaged"], it["unreadable"], it["skipped"],
                it["leaks"], it["outdated"], *it["remarks"],
            ))
        elif it["type"] == "finding":
            found["finding"].append(fields(
                it["place"], it["layer"], it["problem"], it["structure"], it["reason"], it["offset"], it["layer_offset"],
                it["length"], it["object"], it["count"], *map(name_of, it["files"]),
            ))
    return found["layer"] + found["finding"], it["verdict"]


def owners(image, offset, length, *options):
    """The answer that the command gives for owners."""
    lines = blkhash("owners", "--json", *options, image, f"{offset}-{offset + length}").splitlines()
    return [
        fields(
            it["kind"], it["file_system"], it["structure"], it["partition"], it["offset"], it["length"], it["object"],
            it["file_offset"], *map(name_of, it["names"]),
        )
        for it in map(json.loads, lines)
    ]


@pytest.fixture
def disk(workdir):
    """A disk with an ext4 in a partition."""
    rng = random.Random(1)
    os.makedirs("root/deep/er")
    for number in range(20):
        (workdir / f"root/deep/file {number}").write_bytes(rng.randbytes(rng.randrange(1, 200_000)))
    os.link("root/deep/file 3", "root/deep/er/link")
    images.run("mkfs.ext4", "-q", "-d", "root", "-b", "4096", "-O", "metadata_csum", "-L", "label", "ext4", "32M")
    disk = workdir / "disk"
    disk.write_bytes(bytes(40 * MIB))
    images.run("sfdisk", "-q", disk, stdin=None, input=b"label: gpt\nstart=1MiB, size=32MiB\n")
    images.run("dd", "if=ext4", f"of={disk}", "bs=1M", "seek=1", "conv=notrunc")
    images.convert(disk, workdir / "disk.qcow2")
    return disk


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x5A]))


def test_checks(verbs, disk):
    assert records(verbs("health", disk)) == health(disk, status=0)
    image = disk.with_suffix(".qcow2")
    assert records(verbs("health", image)) == health(image, status=0)
    table = images.run("dumpe2fs", "ext4").decode().split("Inode table at ")[1]
    flip(disk, MIB + int(table.split("-")[0]) * 4096 + 256 * 11 + 8)
    flip(disk, 512 + 56)
    expected = health(disk, status=1)
    assert len(expected[0]) >= 4 and expected[1] == "damaged"
    assert records(verbs("health", disk)) == expected
    for name, value, option in (("partition", 1, "--partition=1"), ("limit", 1, "--max-errors=1")):
        assert verbs("opt", name, value) == ""
        assert records(verbs("health", disk)) == health(option, disk, status=1)
        assert verbs("opt", name) == ""


def test_owners(verbs, disk):
    for image in (disk, disk.with_suffix(".qcow2")):
        for offset, length in ((0, 40 * MIB), (MIB, 5000), (2 * MIB + 1, 1), (39 * MIB, 2 * MIB)):
            found, remarks = records(verbs("owners", image, offset, length))
            assert found == owners(image, offset, length) and remarks == "end"
    names = {name for record in records(verbs("owners", disk, 0, 40 * MIB))[0] for name in record[8:]}
    assert {"deep/file 3", "deep/er/link"} <= names
    assert verbs("opt", "partition", 1) == ""
    found, _ = records(verbs("owners", disk, 0, 32 * MIB))
    assert found == owners(disk, 0, 32 * MIB, "--partition=1") and found[0][3] == "-"
    assert verbs("opt", "limit", 3) == ""
    assert verbs("owners", disk, 0, 32 * MIB).startswith("error 44 there are more than 3 extents")
    assert verbs("opt", "limit") == verbs("opt", "partition") == ""
    disk.write_bytes(bytes(MIB))
    assert verbs("owners", disk, 0, MIB) == f"error 15 {disk}: has no file system that is read"
