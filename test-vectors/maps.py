"""The vectors of block maps, and of maps to which another state was appended."""

import hashlib

import blkhash
import blkmap
import digests
import imagespec

K = 1024
FILE_ID = "000102030405060708090a0b0c0d0e0f"
INFO = '{"program":"test"}'
KEY = "6b" * 32

# image, digest, block size, and the options that differ from the defaults
MAPS = {
    "empty": ("", "sha256", 64 * K, {}),
    "empty, sealed": ("", "sha256", 64 * K, {"key": KEY}),
    "one byte": ("1:A", "sha256", 64 * K, {}),
    "one block": ("64k:#", "sha256", 64 * K, {}),
    "one block of zeros": ("64k:0", "sha256", 64 * K, {}),
    "short last block": ("65537:#", "sha256", 64 * K, {}),
    "short last block of zeros": ("64k:- 100:-", "sha256", 64 * K, {}),
    "one block less than a page": ("65024:#", "sha256", 512, {}),
    "one page": ("64k:#", "sha256", 512, {}),
    "one block more than a page": ("66048:#", "sha256", 512, {}),
    "one byte more than a page": ("65537:#", "sha256", 512, {}),
    "two pages, the second one short": ("130000:A", "sha256", 512, {}),
    "zeros": ("1g:-", "sha256", 64 * K, {}),
    "zeros, the last page not full": ("100k:-", "sha256", 4 * K, {}),
    "zeros, the last block short": ("1g:- 1:-", "sha256", 64 * K, {}),
    "zeros in the middle": ("64k:A 192k:- 1k:B", "sha256", 512, {}),
    "zeros that are stored": ("64k:A 128k:0 64k:- 1k:B", "sha256", 512, {}),
    "zeros within a page": ("512:A 62k:- 1k:B 63k:- 512:C 512:0", "sha256", 512, {}),
    "zeros at the ends": ("100m:- 64k:A 200m:-", "sha256", 64 * K, {}),
    "many zeros": ("8t:- 64k:A 1g:-", "sha256", 64 * K, {}),
    "largest image": (f"{2**63 - 1}:-", "sha256", 64 * K, {}),
    "largest blocks": ("64m:- 1:A", "sha256", 64 << 20, {}),
    "largest page": ("512k:- 512:A 512k:- 512:B", "crc32c", 512, {}),
    "zeros with the digest 0": ("256k:- 100:-", "crc64", 512, {}),
    "salt": ("512:A 512:- 100:B", "sha256", 512, {"salt": "73616c74"}),
    "largest salt": ("4k:A 8k:-", "sha512", 4 * K, {"salt": "5a" * 256}),
    "salt of zeros": ("64k:-", "blake3", 512, {"salt": "00" * 3}),
    "first shard": ("64k:A 128k:- 100:C", "sha256", 512, {"pages": [0, 1]}),
    "middle shard": ("64k:A 128k:- 64k:B 100:C", "sha256", 512, {"pages": [2, 4]}),
    "last shard": ("64k:A 128k:- 100:C", "sha256", 512, {"pages": [2, 4]}),
    "shard of zeros": ("64k:A 128k:- 100:C", "sha256", 512, {"pages": [1, 2]}),
    "shard without pages": ("64k:A", "sha256", 512, {"pages": [1, 1]}),
    "shard that is the whole": ("64k:- 1:A", "sha256", 512, {"pages": [0, 2]}),
    "two checkpoints": ("128k:A 128k:- 100:C", "sha256", 512, {"checkpoints": [0, 2]}),
    "checkpoint after the last page": ("64k:- 100:C", "sha256", 512, {"checkpoints": [1]}),
    "checkpoints in zeros": ("1g:-", "sha256", 64 * K, {"checkpoints": [9, 99]}),
    "sealed": ("512:A 512:- 100:C", "sha256", 512, {"key": KEY}),
    "sealed with the shortest key": ("4k:A", "sha1", 4 * K, {"key": "00" * 16}),
    "sealed, a shard with checkpoints": (
        *("64k:- 1k:A 255k:- 64k:-", "sha256", 512),
        {"pages": [1, 5], "checkpoints": [1, 2], "key": KEY, "salt": "01"},
    ),
    "info": ("4k:A", "sha256", 4 * K, {"info": '{ "name": "gr\u00f6\u00dfe", "n": [1, null] }\n'}),
}
for name in digests.ALGORITHMS:
    if name not in blkmap.NO_MAP:
        MAPS[f"digest {name}"] = ("4k:A 16k:- 4k:0 700:#", name, 4 * K, {})

# name of the map, image, key
APPENDED = {
    "equal": ("zeros in the middle", "64k:A 192k:- 1k:B", ""),
    "changed page": ("zeros in the middle", "512:A 512:B 63k:A 192k:- 1k:B", ""),
    "written and zeroed": ("zeros in the middle", "64k:- 64k:- 512:A 65024:- 64k:- 1k:B", ""),
    "longer": ("one byte more than a page", "64k:# 1024:#", ""),
    "longer by zeros": ("zeros, the last block short", "1g:- 128k:-", ""),
    "shorter": ("zeros in the middle", "64k:A 512:-", ""),
    "the rest of a shard": ("shard of zeros", "64k:A 128k:- 100:C", ""),
    "behind checkpoints, sealed": ("two checkpoints", "128k:A 64k:- 1k:B 63k:- 100:C", KEY),
    "only sealed": ("two checkpoints", None, KEY),
}


def map_vectors():
    for name in MAPS:
        image, digest, block_size, options = MAPS[name]
        data, pages = build(name)
        map = blkmap.read(data, bytes.fromhex(options.get("key", "")) or None)
        yield {
            "name": name,
            "image": image,
            "size": imagespec.size(image),
            "digest": digest,
            "block_size": block_size,
            "salt": options.get("salt", ""),
            "file_id": FILE_ID,
            "info": options.get("info", INFO),
            "pages": [pages.start, pages.stop],
            "checkpoints": options.get("checkpoints", []),
            "key": options.get("key", ""),
            **result(data, map),
            "checksums": dict(checksums(map, image)),
            "file": pieces(data),
        }


def build(name):
    image, digest, block_size, options = MAPS[name]
    salt = bytes.fromhex(options.get("salt", ""))
    parameters = blkmap.Parameters(digest, block_size, salt)
    pages = range(*options.get("pages", (0, parameters.pages(imagespec.size(image)))))
    data = blkmap.write(
        *(imagespec.chunks(image), digest, block_size, salt, pages),
        file_id=bytes.fromhex(FILE_ID),
        info=options.get("info", INFO),
        checkpoints=options.get("checkpoints", []),
        key=bytes.fromhex(options.get("key", "")) or None,
    )
    return data, pages


def result(data, map):
    return {
        "length": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "root": map.commit.root.hex(),
        "content_id": map.commit.content_id.hex(),
    }


def checksums(map, image):
    """The checksums that follow from a complete map, compared with the content's."""
    digest, block_size, salt = map.parameters
    for construction in ("streams:4", "streams:3", "flat", "concat", "fs-verity", "dm-verity"):
        is_tree = construction.endswith("verity")
        # The others take a digest for each block.
        if not is_tree and map.size // block_size > 1 << 20:
            continue
        try:
            value = blkmap.checksum(map, construction)
        except blkmap.MapError:
            continue
        # The model of trees keeps all digests.
        if map.size // block_size <= 1 << 16:
            arguments = digest, construction, block_size, salt
            assert value == blkhash.checksum(imagespec.chunks(image), *arguments), (image, arguments)
        yield construction, value.hex()


def append_vectors():
    for name, (base, image, key) in APPENDED.items():
        before, _ = build(base)
        secret = bytes.fromhex(key) or None
        if image is None:
            data = blkmap.seal(before, secret)
        else:
            data = blkmap.append(before, imagespec.chunks(image), INFO, secret)
        map = blkmap.read(data, secret)
        older = blkmap.read(data, None, map.commit.sequence - 1)
        yield {
            "name": name,
            "base": base,
            "image": image,
            "info": map.info_text,
            "key": key,
            "sequence": map.commit.sequence,
            **result(data, map),
            "diff": differences(older, map),
            "file": pieces(data, len(before)),
        }


def differences(left, right):
    """Runs of blocks that differ: the first, how many, and how."""
    runs = []
    for block, kind in blkmap.diff(left, right):
        if runs and runs[-1][0] + runs[-1][1] == block and runs[-1][2] == kind:
            runs[-1][1] += 1
        else:
            runs.append([block, 1, kind])
    return runs


def pieces(data, start=0, zeros=32):
    """[offset, bytes] of everything after start that is not zero, but with short runs of zeros."""
    found = []
    at = start
    while at < len(data):
        if data[at] == 0:
            at += 1
            continue
        end = data.find(bytes(zeros), at)
        end = len(data) if end < 0 else end
        found.append([at, data[at:end].rstrip(b"\0").hex()])
        at = end
    return found
