"""Tests of the reference, compared with other tools, packages and published values."""

import doctest
import hashlib
import json
import random
import re
import shutil
import subprocess
import sys

import pytest
import xxhash

import blkhash
import blkmap
import digests
import imagespec
from commands import ROOT


def one_shot(name, data):
    h = digests.new(name)
    h.update(data)
    return h.digest()


def test_doctest():
    assert doctest.testmod(blkhash).attempted == 1
    assert doctest.testmod(blkhash).failed == 0


@pytest.mark.parametrize("name", list(digests.ALGORITHMS))
def test_any_split_gives_the_same_digest(name):
    rng = random.Random(name)
    data = rng.randbytes(10000)
    h = digests.new(name)
    offset = 0
    while offset < len(data):
        length = rng.choice([0, 1, 7, 8, 31, 32, 33, 64, 1000])
        h.update(data[offset : offset + length])
        offset += length
    assert h.digest() == one_shot(name, data)


def test_xxh64_equals_the_package():
    data = random.Random(64).randbytes(300)
    for length in range(len(data)):
        assert one_shot("xxh64", data[:length]) == xxhash.xxh64(data[:length]).digest()


def test_siphash_as_published():
    # "SipHash: a fast short-input PRF", appendix A: key 00..0f, message 00..0e.
    h = digests.SipHash(bytes(range(16)))
    h.update(bytes(range(15)))
    assert int.from_bytes(h.digest(), "little") == 0xA129CA6149BE45E5


def test_siphash_equals_openssl():
    data = random.Random(2).randbytes(1000)
    args = ["-macopt", "hexkey:" + "0" * 32, "-macopt", "size:8", "-in", "/dev/stdin", "SipHash"]
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    output = subprocess.run(["openssl", "mac", *args], input=data, capture_output=True, check=True)
    assert output.stdout.strip().decode().lower() == one_shot("siphash", data).hex()


@pytest.mark.parametrize("block_size", [512, 4096])
@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 4096, 5 * 4096, 50001])
def test_constructions_in_one_line_each(length, block_size):
    def H(data):
        return hashlib.sha256(data).digest()

    data = random.Random(length).randbytes(length)
    d = [H(data[i : i + block_size]) for i in range(0, length, block_size)]
    value = {
        "streams:4": H(b"".join(H(b"".join(d[k::4])) for k in range(4))),
        "streams:7": H(b"".join(H(b"".join(d[k::7])) for k in range(7))),
        "flat": H(b"".join(d) + length.to_bytes(8, "little")),
        "concat": H(b"".join(d)),
        "linear": H(data),
    }
    for construction, expected in value.items():
        assert blkhash.checksum(data, "sha256", construction, block_size) == expected


@pytest.mark.parametrize("construction", ["streams:1", "streams:4", "streams:7", "flat", "concat"])
def test_runs_of_zeros_change_nothing(construction):
    rng = random.Random(construction)
    for _ in range(200):
        chunks = []
        for _ in range(rng.randrange(6)):
            length = rng.choice([0, 1, 511, 512, 513, 1024, 5000, rng.randrange(20000)])
            chunks.append(length if rng.random() < 0.5 else b"x" * length)
        plain = b"".join(bytes(c) if isinstance(c, int) else c for c in chunks)
        args = ("sha256", construction, 512)
        assert blkhash.checksum(chunks, *args) == blkhash.checksum(plain, *args)


def test_file_with_holes_equals_its_bytes(tmp_path):
    spec = "100k:- 4k:A 1m:- 300:# 3m:- 8192:0 4000:- 5:B 100k:-"
    imagespec.write(spec, tmp_path / "img")
    data = (tmp_path / "img").read_bytes()
    assert data == b"".join(bytes(c) if isinstance(c, int) else c for c in imagespec.chunks(spec))
    for construction in ("streams:4", "linear"):
        expected = blkhash.checksum(data, "sha256", construction)
        assert blkhash.file_checksum(tmp_path / "img", "sha256", construction) == expected


def test_command(tmp_path):
    (tmp_path / "img").write_bytes(b"abc")
    command = [sys.executable, ROOT / "reference/blkhash.py"]
    args = ["-d", "blake2b512", "--construction", "flat", "--block-size", "512", "img"]
    output = subprocess.run([*command, *args], cwd=tmp_path, capture_output=True, check=True).stdout
    value = blkhash.checksum(b"abc", "blake2b512", "flat", 512).hex()
    assert output.decode() == f"{value}  img\n"


@pytest.mark.parametrize(
    "digest, construction, block_size",
    [
        ("blake2b", "flat", 4096),
        ("sha255", "flat", 4096),
        ("sha256", "streams:0", 4096),
        ("sha256", "streams:129", 4096),
        ("sha256", "streams:x", 4096),
        ("sha256", "streams:", 4096),
        ("sha256", "tree", 4096),
        ("sha256", "flat", 4095),
        ("sha256", "flat", 256),
        ("sha256", "flat", 1 << 27),
    ],
)
def test_bad_parameters_are_refused(digest, construction, block_size):
    with pytest.raises(ValueError):
        blkhash.checksum(b"x", digest, construction, block_size)


def test_published_vectors_come_from_others():
    document = json.loads((ROOT / "test-vectors/digests.json").read_text())
    assert len(document["vectors"]) + len(document["published"]) == document["count"]
    named = {vector["digest"] for vector in document["published"]}
    # siphash has its own tests above, and null has no published values.
    assert named == set(digests.ALGORITHMS) - {"siphash", "null"}


def test_vectors_are_what_the_generator_writes():
    command = [sys.executable, ROOT / "test-vectors/generate.py", "--check"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def test_doctest_of_maps():
    result = doctest.testmod(blkmap)
    assert (result.attempted, result.failed) == (4, 0)


def small_map(content, digest="sha256", block_size=512, **options):
    return blkmap.write(content, digest, block_size, file_id=b"f" * 16, info="{}", **options)


@pytest.mark.parametrize("block_size", [512, 4096, 64 << 10])
@pytest.mark.parametrize("blocks", [2, 127, 128, 129])
def test_the_root_of_a_map_is_that_of_veritysetup(block_size, blocks, tmp_path):
    spec = f"{block_size}:# {(blocks - 1) * block_size}:-"
    imagespec.write(spec, tmp_path / "img")
    command = ["veritysetup", "format", "--salt", "-", "--hash-block-size", "4096"]
    command += ["--data-block-size", str(block_size), tmp_path / "img", tmp_path / "hashes"]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    root = re.search(r"Root hash:\s*(\w+)", output)[1]
    data = small_map(imagespec.chunks(spec), block_size=block_size)
    assert blkmap.read(data).commit.root.hex() == root


@pytest.mark.parametrize("length", [0, 1, 511, 512, 513, 65535, 65536, 65537, 200000])
def test_checksums_from_a_map_are_those_of_the_content(length):
    content = imagespec.data("#", 0, length // 2) + bytes(length - length // 2)
    map = blkmap.read(small_map(content, checkpoints=[0, 1]))
    for construction in ("streams:4", "streams:1", "flat", "concat", "fs-verity"):
        expected = blkhash.checksum(content, "sha256", construction, 512)
        assert blkmap.checksum(map, construction) == expected


def test_every_changed_byte_of_a_map_is_found():
    rng = random.Random(1)
    key = b"k" * 16
    content = rng.randbytes(70000) + bytes(140000) + rng.randbytes(1000)
    data = blkmap.append(small_map(content, checkpoints=[1], key=key), content[:-1] + b"x", "{}", key)
    assert blkmap.read(data, key).seal == "checked"
    for place in rng.sample(range(len(data)), 300):
        changed = bytearray(data)
        changed[place] ^= 1 << rng.randrange(8)
        with pytest.raises(blkmap.MapError):
            blkmap.read(bytes(changed), key)


def test_a_map_is_resumed_behind_its_last_commit():
    rng = random.Random(2)
    data = small_map(rng.randbytes(300000), checkpoints=[0, 2])
    commits = [at for at in range(0, len(data), 4096) if data[at:].startswith(blkmap.COMMIT_MAGIC)]
    assert len(commits) == 3
    for cut in (4096, len(data), *(rng.randrange(4096, len(data)) for _ in range(50))):
        garbage = rng.randbytes(rng.randrange(9000))
        expected = max([4096, *(at + 4096 for at in commits if at + 4096 <= cut)])
        assert blkmap.resume_point(data[:cut] + garbage) == expected


def test_seals_of_maps():
    key, other = b"k" * 16, b"o" * 4096
    plain = small_map(b"x" * 1000)
    later = blkmap.seal(plain, key)
    assert blkmap.read(later).seal == "not checked"
    assert blkmap.read(later, key).seal == "checked"
    first, last = blkmap.read(later, sequence=1), blkmap.read(later, key, sequence=2)
    assert first.seal == "none" and first.commit.content_id == last.commit.content_id
    forged = bytearray(later)
    forged[-4096 + 480] ^= 1
    forged[-32:] = hashlib.sha256(forged[-4096:-32]).digest()
    assert blkmap.read(bytes(forged)).seal == "not checked"
    refused = [(plain, key, None), (later, other, None), (later, key, 1), (bytes(forged), key, None)]
    for data, secret, sequence in [*refused, (later, b"k" * 15, None), (later, b"k" * 4097, None)]:
        with pytest.raises(blkmap.MapError):
            blkmap.read(data, secret, sequence)
