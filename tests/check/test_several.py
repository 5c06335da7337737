"""Several checksums of one image in one pass."""

import hashlib
import json
import os
import subprocess

import pytest

import blkhash
import images

KIB = 1 << 10

# Argument of -d, tag, and value according to the reference.
CHECKSUMS = [
    ("sha256", "BLKSUM-SHA256-STREAMS4-64K", lambda content: blkhash.checksum(content)),
    ("blake3", "BLKSUM-BLAKE3-STREAMS4-64K", lambda content: blkhash.checksum(content, "blake3")),
    ("sha256:linear", "BLKSUM-SHA256-LINEAR", lambda content: hashlib.sha256(content).digest()),
    ("sha1:flat", "BLKSUM-SHA1-FLAT-64K", lambda content: blkhash.checksum(content, "sha1", "flat")),
    ("blake3:linear", "BLKSUM-BLAKE3-LINEAR", lambda content: blkhash.checksum(content, "blake3", "linear")),
    ("crc32c:streams:64", "BLKSUM-CRC32C-STREAMS64-64K", lambda content: blkhash.checksum(content, "crc32c", "streams:64")),
]
ASKED = [argument for name, _, _ in CHECKSUMS for argument in ("-d", name)]


@pytest.fixture
def content(workdir):
    """The content of disk.raw and disk.qcow2."""
    content = bytearray(5 << 20)
    content[100:] = os.urandom(len(content) - 100)
    content[1 << 20 : 3 << 20] = bytes(2 << 20)
    content[-70_000:] = bytes(70_000)
    (workdir / "disk.raw").write_bytes(content)
    images.convert(workdir / "disk.raw", workdir / "disk.qcow2", flags=("-c",))
    return bytes(content)


def lines(name, content):
    return b"".join(b"%s (%s) = %s\n" % (tag.encode(), name.encode(), of(content).hex().encode()) for _, tag, of in CHECKSUMS)


def bytes_read(workdir, *command):
    """Returns the result of the command, and how many bytes it read at offsets, which is how images are
    read."""
    trace = workdir / "trace"
    run = ["strace", "-f", "-qq", "-e", "trace=pread64,preadv,preadv2,mmap", "-o", str(trace), *command]
    result = subprocess.run(run, capture_output=True)
    calls = trace.read_text().splitlines()
    # Nothing is mapped, because digests without blocks are computed in turn.
    assert not any("MAP_SHARED" in call for call in calls)
    return result, sum(int(call.split("= ")[-1].split()[0]) for call in calls if "pread" in call and "= " in call)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_lines_say_what_they_are(blksum, workdir, content, threads):
    for name in ("disk.raw", "disk.qcow2"):
        result = blksum(*ASKED, "--threads", threads, name)
        assert (result.returncode, result.stdout) == (0, lines(name, content))
        for asked, tag, of in CHECKSUMS:
            assert blksum.hex("-d", asked, name) == of(content).hex()
    both = blksum(*ASKED, "disk.raw", "missing", "disk.qcow2")
    assert (both.returncode, both.stdout) == (1, lines("disk.raw", content) + lines("disk.qcow2", content))


def test_one_is_as_ever(blksum, content):
    """The same digest twice is one checksum and needs no tag."""
    assert blksum("-d", "sha256", "-d", "sha256:streams:4", "disk.raw").stdout == blksum("disk.raw").stdout


def test_objects(blksum, content):
    result = blksum("--json", *ASKED, "disk.qcow2")
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert [shown["checksum"] for shown in objects] == [of(content).hex() for _, _, of in CHECKSUMS]
    assert [shown["digest"] for shown in objects] == [name.split(":")[0] for name, _, _ in CHECKSUMS]
    assert len({(shown["seconds"], shown["bytes_read"]) for shown in objects}) == 1
    alone = json.loads(blksum("--json", "-d", "sha256", "disk.qcow2").stdout)
    assert objects[0]["bytes_read"] == alone["bytes_read"]


def test_a_pipe_is_read_once(blksum, content):
    result = blksum(*ASKED, input=content)
    assert (result.returncode, result.stdout) == (0, lines("-", content))


def test_raw_files_have_plain_tags(blksum, workdir, content):
    result = blksum("-f", "raw", "--construction", "linear", "-d", "sha256", "-d", "md5", "disk.qcow2")
    (workdir / "SUMS").write_bytes(result.stdout)
    for program in ("sha256sum", "md5sum"):
        assert subprocess.run([program, "-c", "--ignore-missing", "SUMS"], capture_output=True, text=True).stdout == "disk.qcow2: OK\n"


@pytest.mark.parametrize("order", ["by image", "by digest"])
def test_checking_reads_an_image_once(blksum, workdir, content, order):
    """Also if lines of an image are far apart, and small images are hashed ahead."""
    names = ["disk.raw", "disk.qcow2", "small1", "small2", "small3"]
    for name in names[2:]:
        (workdir / name).write_bytes(os.urandom(5120))
    made = blksum(*ASKED, *names).stdout.splitlines(keepends=True)
    count = len(CHECKSUMS)
    assert len(made) == count * len(names)
    if order == "by digest":
        made = [made[image * count + line] for line in range(count) for image in range(len(names))]
    (workdir / "SUMS").write_bytes(b"".join(made))
    result, read = bytes_read(workdir, blksum.path, "-c", "SUMS")
    assert (result.returncode, result.stdout.count(b": OK\n"), result.stderr) == (0, len(made), b"")
    assert read < 1.2 * sum((workdir / name).stat().st_size for name in names)

    # Only the wrong line fails.
    wrong = made[7].replace(b" = ", b" = 00")
    made[7] = wrong[: len(wrong) - 3] + b"\n"
    (workdir / "SUMS").write_bytes(b"".join(made))
    result = blksum("-c", "SUMS")
    shown = result.stdout.splitlines()
    assert result.returncode == 1
    assert [number for number, line in enumerate(shown) if line.endswith(b": FAILED")] == [7]
    assert len(shown) == len(made)


def test_the_file_and_its_content_are_two_things(blksum, workdir, content):
    own = subprocess.run(["sha256sum", "--tag", "disk.qcow2"], capture_output=True, check=True).stdout
    own += subprocess.run(["md5sum", "--tag", "disk.qcow2"], capture_output=True, check=True).stdout
    (workdir / "SUMS").write_bytes(lines("disk.qcow2", content) + own)
    result, read = bytes_read(workdir, blksum.path, "-c", "SUMS")
    assert (result.returncode, result.stdout) == (0, b"disk.qcow2: OK\n" * (len(CHECKSUMS) + 2))
    assert read < 2.2 * (workdir / "disk.qcow2").stat().st_size


def test_a_missing_image_fails_on_every_line(blksum, workdir, content):
    (workdir / "SUMS").write_bytes(lines("gone", content) + lines("disk.raw", content))
    result = blksum("-c", "SUMS")
    assert result.returncode == 1
    assert result.stdout == b"gone: FAILED open or read\n" * len(CHECKSUMS) + b"disk.raw: OK\n" * len(CHECKSUMS)
    assert result.stderr.count(b"gone: No such file or directory") == len(CHECKSUMS)
    assert blksum("-c", "--ignore-missing", "SUMS").returncode == 0


@pytest.mark.parametrize("order", [1, -1])
def test_what_fails_for_one_need_not_fail_for_others(blksum, workdir, order):
    """The zeros are too many for a digest of each byte, but not for a digest of blocks."""
    with open(workdir / "big", "wb") as file:
        file.truncate(5 << 40)
    made = blksum("-d", "crc32c", "--construction", "flat", "--block-size", "64M", "--tag", "big").stdout
    lines = [b"BLKSUM-SHA256-LINEAR (big) = %s\n" % (b"0" * 64), made]
    (workdir / "SUMS").write_bytes(b"".join(lines[::order]))
    result = blksum("-c", "SUMS")
    shown = [b"big: FAILED open or read\n", b"big: OK\n"]
    assert (result.returncode, result.stdout) == (1, b"".join(shown[::order]))


def test_any_number_of_lines(blksum, workdir, content):
    """More lines than are computed at once."""
    asked = [f"crc32:streams:{number}" for number in range(1, 60)]
    made = blksum(*[argument for name in asked for argument in ("-d", name)], "disk.raw")
    assert made.stdout.count(b"\n") == len(asked)
    (workdir / "SUMS").write_bytes(made.stdout)
    result = blksum("-c", "SUMS")
    assert (result.returncode, result.stdout) == (0, b"disk.raw: OK\n" * len(asked))


def test_refused(blksum, content):
    for args in (("-d", "sha256:"), ("-d", "sha256:no"), ("-d", "no:flat"), ("-d", "sha256", "-d", "md5", "-c", "SUMS")):
        result = blksum(*args, "disk.raw")
        assert (result.returncode, result.stdout) == (2, b"")
