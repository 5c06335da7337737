"""blkhash.new(), compared with hashlib, the test vectors and the checksum of ovirt-imageio."""

import array
import hashlib
import json
import mmap
import pickle
import random
import sys
import threading

import imagespec
import numpy
import pytest
from conftest import ROOT
from ovirt_imageio._internal import blkhash as imageio

import blkhash

# The kernels in the wheel of the release build must have the same values.
pytestmark = pytest.mark.release

NAMES = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512", "blake2s"]


def pieces(data, rng):
    """Returns the same bytes in an object of another type."""
    kind = rng.randrange(6)
    if kind == 0:
        return bytearray(data)
    if kind == 1:
        return memoryview(bytes(3) + data)[3:]
    if kind == 2:
        return array.array("B", data)
    if kind == 3:
        return numpy.frombuffer(data, dtype=numpy.uint8)
    if kind == 4 and len(data) % 8 == 0 and data:
        return numpy.frombuffer(data, dtype="<u4").reshape(2, -1)
    return data


@pytest.mark.parametrize("name", NAMES)
def test_random_calls_give_what_hashlib_gives(name):
    rng = random.Random(name)
    for round in range(30):
        first = rng.randbytes(rng.choice([0, 1, 100, 70_000]))
        pairs = [
            (hashlib.new(name, first), blkhash.new(name, first, construction="linear", threads=1 + round % 3))
        ]
        for _ in range(20):
            theirs, ours = rng.choice(pairs)
            action = rng.randrange(6)
            if action < 3:
                data = rng.randbytes(rng.choice([0, 1, 63, 64, 65, 2047, 2048, 4096, 100_000]))
                theirs.update(data)
                assert ours.update(pieces(data, rng)) is None
            elif action == 3:
                length = rng.choice([0, 1, 100, 5000, 200_000])
                theirs.update(bytes(length))
                ours.zero(length)
            elif action == 4:
                pairs.append((theirs.copy(), ours.copy()))
            assert ours.digest() == theirs.digest()
            assert ours.hexdigest() == theirs.hexdigest()
        for theirs, ours in pairs:
            assert ours.digest() == theirs.digest()
            assert ours.digest_size == theirs.digest_size


def vectors(name):
    parsed = json.loads((ROOT / "test-vectors" / name).read_text())
    assert len(parsed["vectors"]) == parsed["count"]
    return parsed["vectors"]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("file", ["constructions.json", "verity.json"])
def test_vectors(file, threads):
    done = 0
    for vector in vectors(file):
        h = blkhash.new(
            vector["digest"],
            construction=vector["construction"],
            block_size=vector["block_size"] or None,
            salt=bytes.fromhex(vector.get("salt", "")),
            threads=threads,
        )
        for chunk in imagespec.chunks(vector["image"]):
            if isinstance(chunk, int):
                h.zero(chunk)
            else:
                h.update(chunk)
        assert h.hexdigest() == vector["hex"], vector
        assert h.digest().hex() == vector["hex"]
        done += 1
    assert done > 100


@pytest.mark.parametrize("length", [0, 1, 4 << 20, (4 << 20) + 1, (17 << 20) - 5])
def test_the_checksum_of_ovirt_imageio(tmp_path, length):
    data = bytearray(random.Random(length).randbytes(length))
    data[5 << 20 : 9 << 20] = bytes(len(data[5 << 20 : 9 << 20]))
    path = tmp_path / "image"
    path.write_bytes(data)
    expected = imageio.checksum(str(path))
    assert (expected["algorithm"], expected["block_size"]) == ("blake2b", 4 << 20)
    h = blkhash.new("blake2b256", data, construction="concat", block_size=4 << 20)
    assert h.hexdigest() == expected["checksum"]
    result = blkhash.checksum(path, "blake2b256", construction="concat", block_size=4 << 20)
    assert result.hexdigest == expected["checksum"]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [1 << 20, (4 << 20) - 1, 4 << 20, (9 << 20) + 12345])
def test_large_updates_in_place(reference, threads, size):
    data = numpy.frombuffer(random.Random(size).randbytes(size), dtype=numpy.uint8)
    expected = reference.checksum([b"abc", bytes(data), bytes(data), b"z"], "sha256", "streams:4", 65536)
    h = blkhash.new("sha256", b"abc", threads=threads)
    h.update(data)
    h.update(bytearray(data))
    h.update(b"z")
    assert h.hexdigest() == expected.hex()


@pytest.mark.parametrize("construction", ["streams:4", "flat", "linear"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bytes_are_hashed_after_update_has_returned(reference, construction, threads):
    rng = random.Random(f"{construction} {threads}")
    pieces = []
    for _ in range(100):
        size = rng.choice([1, 65_535, 65_536, 100_000, 1 << 20, (1 << 20) + 1])
        pieces.append(rng.choice([rng.randbytes, bytes])(size))
    references = [sys.getrefcount(piece) for piece in pieces]
    h = blkhash.new("sha256", construction=construction, threads=threads)
    for index, piece in enumerate(pieces):
        h.update(piece)
        if index == 50:
            copy = h.copy()
            half = reference.checksum(pieces[:51], "sha256", construction, 65536)
    assert h.digest() == reference.checksum(pieces, "sha256", construction, 65536)
    del piece
    # Nothing is kept.
    assert [sys.getrefcount(piece) for piece in pieces] == references
    assert copy.digest() == half
    # Only the hash has a reference to the last object, and is dropped before its threads have hashed it.
    h.update(rng.randbytes(5 << 20))
    del h


def test_bytes_that_wait_are_bounded():
    h = blkhash.new("sha256", threads=2)
    pieces = [bytes([index]) * (1 << 20) for index in range(200)]
    kept = 0
    for index, piece in enumerate(pieces):
        h.update(piece)
        kept = max(kept, sum(sys.getrefcount(earlier) > 4 for earlier in pieces[:index]))
    assert 0 < kept <= 6, kept


def test_a_mapped_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100_000)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        h = blkhash.new("sha512", mapped, construction="linear")
    assert h.hexdigest() == hashlib.sha512(b"x" * 100_000).hexdigest()


def test_attributes():
    h = blkhash.new("sha256")
    assert (h.name, h.digest_size, h.block_size, h.construction) == ("sha256", 32, 65536, "streams:4")
    assert blkhash.new("SHA3_256", construction="flat").name == "sha3-256"
    assert blkhash.new("sha256", construction="fs-verity").block_size == 4096
    assert blkhash.new("sha256", block_size=512).block_size == 512
    assert repr(h) == "<blkhash.Hash sha256 streams:4 block_size=65536>"
    assert "sha256" in blkhash.algorithms_available
    for name in blkhash.algorithms_available:
        assert len(blkhash.new(name).digest()) == blkhash.new(name).digest_size


def test_invalid_arguments():
    for args, kwargs in [
        (["sha257"], {}),
        (["blake2b"], {}),
        (["sha256"], {"construction": "streams:0"}),
        (["sha256"], {"block_size": 1000}),
        (["sha256"], {"block_size": 0}),
        (["sha256"], {"salt": b"1"}),
        (["sha256"], {"salt": bytes(257), "construction": "dm-verity"}),
        (["sha256"], {"threads": 0}),
        (["crc32"], {"construction": "fs-verity"}),
    ]:
        with pytest.raises(ValueError):
            blkhash.new(*args, **kwargs)
    with pytest.raises(ValueError, match="unknown digest 'sha257': use null, .*, sha256, .*blake3"):
        blkhash.new("sha257")
    for args, kwargs in [
        ([], {}),
        ([1], {}),
        (["sha256", "text"], {}),
        (["sha256", 5], {}),
        (["sha256", b"", "flat"], {}),
        (["sha256"], {"usedforsecurity": False}),
    ]:
        with pytest.raises(TypeError):
            blkhash.new(*args, **kwargs)
    h = blkhash.new("sha256")
    for bad in ("text", None, 7, [1, 2]):
        with pytest.raises(TypeError):
            h.update(bad)
    with pytest.raises(OverflowError):
        h.zero(-1)
    with pytest.raises(TypeError):
        h.zero(1.5)
    assert h.digest() == blkhash.new("sha256").digest()


def test_dm_verity_needs_whole_blocks():
    h = blkhash.new("sha256", bytes(5000), construction="dm-verity")
    with pytest.raises(ValueError, match="whole blocks"):
        h.digest()
    h.zero(3192)
    assert len(h.digest()) == 32


def test_the_length_is_limited():
    # The checksum of a run of zeros costs nothing.
    h = blkhash.new("crc32c", construction="linear")
    h.zero(2**64 - 1)
    before = h.digest()
    for grow in (lambda: h.update(b"x"), lambda: h.zero(1), lambda: h.update(bytes(5000))):
        with pytest.raises(OverflowError):
            grow()
    assert h.digest() == before


def test_strided_buffers_are_refused():
    h = blkhash.new("sha256")
    with pytest.raises(BufferError):
        h.update(memoryview(bytes(100))[::2])
    with pytest.raises((BufferError, ValueError)):
        h.update(numpy.zeros((4, 4), dtype=numpy.uint8).T[1:])
    assert h.digest() == blkhash.new("sha256").digest()


def test_hashes_are_not_pickled():
    with pytest.raises(TypeError, match="cannot pickle 'blkhash.Hash'"):
        pickle.dumps(blkhash.new("sha256"))


def long_update(h, data):
    """Starts an update that takes a while."""
    thread = threading.Thread(target=h.update, args=(data,))
    thread.start()
    return thread


def test_a_buffer_is_not_resized_meanwhile():
    data = bytearray(64 << 20)
    refused = 0
    thread = long_update(blkhash.new("sha3-512", construction="linear"), data)
    while thread.is_alive():
        try:
            data.append(0)
            data.pop()
        except BufferError:
            refused += 1
    thread.join()
    assert refused > 0
    data.append(0)


def test_the_gil_is_released():
    h = blkhash.new("sha3-512", construction="linear")
    thread = long_update(h, bytearray(64 << 20))
    turns = 0
    while thread.is_alive():
        turns += 1
    assert turns > 1000


def test_threads_share_a_hash():
    h = blkhash.new("sha256", threads=2)
    sizes = [1, 100, 3000, 70_000, 5 << 20]

    def work():
        for size in sizes * 4:
            h.update(bytes(size))
            h.update(bytearray(size))
            h.zero(size)
            h.digest()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = blkhash.new("sha256")
    expected.zero(4 * 3 * 4 * sum(sizes))
    assert h.digest() == expected.digest()


def test_threads_with_hashes_of_their_own():
    failures = []

    def work(seed):
        rng = random.Random(seed)
        data = rng.randbytes(300_000)
        for name in NAMES:
            h = blkhash.new(name, construction="linear", threads=2)
            for start in range(0, len(data), 10_000):
                h.update(data[start : start + 10_000])
            if h.digest() != hashlib.new(name, data).digest():
                failures.append((seed, name))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
