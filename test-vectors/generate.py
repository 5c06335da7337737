#!/usr/bin/env python3
"""Generates the files of test vectors from the reference; --check only compares.

The published vectors come from the documents they name. The reference must agree with every one
of them before anything is written.
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "reference"))

import blkhash
import digests
import imagespec

import maps
from published import PUBLISHED
from refused_maps import refused_vectors

# In the crate, for it is compiled in.
KNOWN_ANSWERS = HERE.parent / "crates/blkhash/src/algo/known_answers.txt"

K = 1024
M = 1024 * K

# Around the block sizes, padding limits and internal switches of every algorithm.
LENGTHS = [
    *(0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 55, 56, 63, 64, 65),
    *(111, 112, 119, 120, 127, 128, 129, 135, 136, 137, 143, 144),
    *(239, 240, 241, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 65536, 102400),
]
ZERO_LENGTHS = [1, 8, 64, 512, 4096, 65536]

ALGORITHMS = list(digests.ALGORITHMS)

# Without a secret key it is no checksum: blksum refuses it.
KEYED = {"siphash"}

CONSTRUCTIONS = [
    *("streams:4", "flat", "concat", "linear"),
    *("streams:1", "streams:3", "streams:32", "streams:64", "streams:128"),
]

# Made for blocks of 64 KiB, but good for every block size.
IMAGES = [
    "",
    *("1:A", "1:0", "511:#", "512:#", "513:#"),
    *("65535:#", "64k:#", "65537:#", "64k:0", "64k:-", "65535:-", "65537:-", "65537:0"),
    *("128k:A", "128k:#", "131071:#", "131073:#"),
    *("192k:#", "256k:#", "320k:#"),
    "32k:A 64k:- 32k:0",
    "64k:A 64k:B 64k:C 64k:D",
    "64k:D 64k:C 64k:B 64k:A",
    "100k:- 1:A 100k:-",
    "64k:A 1m:- 64k:B 1m:0 64k:C",
    "1m:- 64k:A",
    "64k:A 1m:-",
    "1m:- 1:A",
    "1:A 1m:-",
    "3000:A 70000:- 512:0 100000:# 12345:-",
    "4095k:- 513:# 4097k:-",
    "2080k:#",
    "8256k:- 1000:#",
]

# For every algorithm: data, zeros in whole blocks, a short zero block at the end.
ALGORITHM_IMAGES = ["", "1:A", "10000:#", "4k:A 16k:- 4k:0 700:#", "64k:- 100:0"]

# Around one block, a full block of the tree, and a full tree of two levels.
VERITY_IMAGES = [
    "",
    *("1:A", "4095:#", "4k:#", "4k:-", "4097:#", "8k:#"),
    *("512k:#", "512k:-", "516k:#", "508k:A 4k:- 4k:B", "1m:- 64k:#"),
    *("64m:-", "64m:- 4k:#", "4k:# 64m:-", "33m:- 4k:A 31m:- 4k:B 1:A"),
]
VERITY_DIGESTS = [
    *("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3-224", "sha3-256", "sha3-384"),
    *("sha3-512", "blake2b256", "blake2b512", "blake2s256", "sha512-256", "blake3"),
]

BLOCK_SIZES = [512, 1 * K, 4 * K, 64 * K, 1 * M, 4 * M, 64 * M]
BLOCK_SIZE_IMAGES = [
    "",
    "1:#",
    "513:#",
    "1536:A 512:- 513:#",
    "1m:A 1m:- 1m:0 77:#",
    "4095k:- 1536:# 4095k:-",
    "4m:# 8m:- 4m:0 1:A",
    "4194303:#",
    "4194305:#",
    "65m:-",
]

# (image, block size): computed from one repeated digest; too long for linear.
LARGE_IMAGES = [
    ("8g:-", 64 * K),
    ("1:A 8g:- 1:B", 64 * K),
    ("100g:-", 64 * K),
    ("100g:- 1:A", 64 * K),
    ("100g:0", 4 * M),
    ("8t:-", 4 * M),
    ("8t:- 300k:#", 4 * M),
    ("100t:-", 64 * M),
]

# The checksum API of oVirt: blake2b with 32 bytes, 4 MiB blocks, concat.
OVIRT_IMAGES = ["6g:-", "4m:A 4m:- 4m:#", "10m:# 54m:-", "1g:- 64k:A 1023m:-", "5m:A"]


def digest_vectors():
    for name in ALGORITHMS:
        for pattern, lengths in (("counter251", LENGTHS), ("zeros", ZERO_LENGTHS)):
            for length in lengths:
                value = digest_of(name, pattern_bytes({"pattern": pattern, "length": length}))
                yield {"digest": name, "pattern": pattern, "length": length, "hex": value}


def published_vectors():
    for vector in PUBLISHED:
        value = digest_of(vector["digest"], pattern_bytes(vector))
        if value != vector["hex"]:
            raise SystemExit(f"the reference says {value}, not as published: {vector}")
        yield vector


def digest_of(name, data):
    h = digests.new(name)
    h.update(data)
    return h.digest().hex()


def pattern_bytes(vector):
    """The input of a vector: byte i is i mod 251, zero, or text[i mod len(text)]."""
    length = vector["length"]
    match vector["pattern"]:
        case "counter251":
            return imagespec.data("#", 0, length)
        case "zeros":
            return bytes(length)
        case "text":
            text = vector["text"].encode("ascii") or b"\0"
            return (text * (length // len(text) + 1))[:length]
    raise ValueError(f"unknown pattern: {vector}")


def known_answers():
    """What the self-test of each algorithm computes, as crates/blkhash/src/algo/self_test.rs has it:
    the digest of the digests of 16 inputs of each length."""
    for name in ALGORITHMS:
        h = digests.new(name)
        for length in (0, 1, 64, 200, 512):
            for input in range(16):
                data = bytes((31 * input + i) % 251 for i in range(length))
                h.update(bytes.fromhex(digest_of(name, data)))
        yield f"{name}: {h.digest().hex()}".rstrip() + "\n"


def construction_vectors():
    seen = set()
    for image, digest, construction, block_size in construction_cases():
        if construction == "linear":
            block_size = 0
        case = (image, digest, construction, block_size)
        if case in seen:
            continue
        seen.add(case)
        value = blkhash.checksum(
            imagespec.chunks(image), digest, construction, block_size or blkhash.DEFAULT_BLOCK_SIZE
        )
        yield {
            "image": image,
            "size": imagespec.size(image),
            "digest": digest,
            "construction": construction,
            "block_size": block_size,
            "hex": value.hex(),
        }


def construction_cases():
    for image in IMAGES:
        for construction in CONSTRUCTIONS:
            yield image, "sha256", construction, 64 * K
    for image in ALGORITHM_IMAGES:
        for digest in (name for name in ALGORITHMS if name not in KEYED):
            for construction in ("streams:4", "flat", "concat", "linear"):
                yield image, digest, construction, 4 * K
    for image in BLOCK_SIZE_IMAGES:
        for block_size in BLOCK_SIZES:
            for construction in ("streams:4", "flat"):
                yield image, "sha256", construction, block_size
        for block_size in (512, 64 * K, 4 * M):
            yield image, "blake2b512", "streams:32", block_size
            yield image, "blake3", "flat", block_size
    for image, block_size in LARGE_IMAGES:
        for construction in ("streams:4", "streams:64", "flat", "concat"):
            yield image, "sha256", construction, block_size
    for image in OVIRT_IMAGES:
        yield image, "blake2b256", "concat", 4 * M


def verity_vectors():
    for image, digest, construction, block_size, salt in verity_cases():
        size = imagespec.size(image)
        # dm-verity is defined for whole blocks.
        if construction == "dm-verity" and (size == 0 or size % block_size):
            continue
        value = blkhash.checksum(
            imagespec.chunks(image), digest, construction, block_size, bytes.fromhex(salt)
        )
        yield {
            "image": image,
            "size": size,
            "digest": digest,
            "construction": construction,
            "block_size": block_size,
            "salt": salt,
            "hex": value.hex(),
        }


def verity_cases():
    for image in VERITY_IMAGES:
        for salt in ("", "00", "73616c74" * 8):
            yield image, "sha256", "fs-verity", 4 * K, salt
            yield image, "sha256", "dm-verity", 4 * K, salt
            yield image, "sha512", "fs-verity", 1 * K, salt
            yield image, "sha512", "dm-verity", 512, salt
        yield image, "sha256", "dm-verity", 4 * K, "5a" * 256
        yield image, "sha256", "fs-verity", 64 * K, ""
    for digest in VERITY_DIGESTS:
        yield "1m:# 3m:- 4k:A", digest, "dm-verity", 4 * K, "00ff"


def document(about, lists):
    """JSON with one vector a line."""
    lines = ["{", f'  "about": {json.dumps(about)},', '  "generator": "test-vectors/generate.py",']
    lines.append(f'  "count": {sum(len(vectors) for vectors in lists.values())},')
    for name, vectors in lists.items():
        lines.append(f'  "{name}": [')
        lines.append(",\n".join(f"    {json.dumps(vector)}" for vector in vectors))
        lines.append("  ],")
    lines[-1] = "  ]"
    lines.append("}")
    return "\n".join(lines) + "\n"


def documents():
    """The path, the number of vectors and the text of each file."""
    digest_lists = {"vectors": list(digest_vectors()), "published": list(published_vectors())}
    construction_lists = {"vectors": list(construction_vectors())}
    verity_lists = {"vectors": list(verity_vectors())}
    map_lists = {
        "maps": list(maps.map_vectors()),
        "appended": list(maps.append_vectors()),
        "refused": list(refused_vectors()),
    }
    about_maps = "Block maps; see test-vectors/README.md."
    about_verity = "Checksums of fs-verity and dm-verity; see test-vectors/README.md."
    about_digests = "Digests of patterns; see test-vectors/README.md."
    about_constructions = "Checksums of images; see test-vectors/README.md."
    answers = list(known_answers())
    return [
        (HERE / "digests.json", *counted(about_digests, digest_lists)),
        (HERE / "constructions.json", *counted(about_constructions, construction_lists)),
        (HERE / "verity.json", *counted(about_verity, verity_lists)),
        (HERE / "maps.json", *counted(about_maps, map_lists)),
        (KNOWN_ANSWERS, len(answers), "".join(answers)),
    ]


def counted(about, lists):
    return sum(len(vectors) for vectors in lists.values()), document(about, lists)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a file differs")
    args = parser.parse_args()
    status = 0
    for path, count, text in documents():
        name = path.name
        if not args.check:
            path.write_text(text)
            print(f"{name}: {count} vectors written")
        elif path.exists() and path.read_text() == text:
            print(f"{name}: {count} vectors agree with the reference")
        else:
            print(f"{name}: differs from the reference, run test-vectors/generate.py")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
