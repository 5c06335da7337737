"""Small images from one-line specs, in all formats and with all options that must not change the
checksum."""

import itertools
import subprocess

import pytest

import blkhash
import digests
import images
import imagespec
from commands import mostly_slow

BLOCK_SIZES = [512, 4096, 65536, 1 << 20]
CONSTRUCTIONS = ["streams:4", "streams:3", "flat", "concat", "linear"]
THREADS = [1, 2, 5]
READ_SIZES = [4096, 65536, 262144, 2097152]

# Blocks are 64 KiB by default. Sizes are multiples of 512, which every format supports.
SPECS = [
    "",
    "512:#",
    "512:-",
    "65024:#",
    "64k:#",
    "66048:#",
    "65024:-",
    "64k:-",
    "66048:-",
    "64k:0",
    "130560:#",
    "128k:#",
    "131584:#",
    "32k:A 64k:- 32k:0",
    "64k:A 64k:- 64k:B 64k:0 64k:C",
    "512:A 65024:- 512:B 130560:- 512:#",
    "1m:- 512:A",
    "512:A 1m:-",
    "3m:- 512:- 512:# 2m:0 1536:-",
    "60k:A 100k:- 100k:0 3k:B 1m:- 200k:# 1536:-",
    "64k:A 64k:- 64k:B 64k:0 64k:C 64k:- 64k:D 64k:# 64k:0 64k:E 512:F",
    "2m:# 5m:- 1m:A 512:0 3m:#",
    "512:A 512:- 512:B 512:0 512:C 2560:- 100k:A 512:- 7k:0 512:- 64k:#",
]

# Quick tests have these in every format.
QUICK = ["", "32k:A 64k:- 32k:0", "512:A 512:- 512:B 512:0 512:C 2560:- 100k:A 512:- 7k:0 512:- 64k:#"]

# Only raw files have these sizes, see docs/reference/constructions.md.
ODD_SPECS = [
    "1:A",
    "1:-",
    "511:#",
    "513:#",
    "65535:#",
    "65537:#",
    "65535:-",
    "65537:-",
    "131071:#",
    "131073:#",
    "64k:A 1:B",
    "100:A 65000:- 1000:0 77:#",
    "1m:- 1:A",
    "1:A 1m:-",
    "3000:A 70000:- 512:0 100000:# 12345:-",
]


def convert_with(options="", *flags):
    def build(spec, path):
        raw = path.with_suffix(".raw")
        imagespec.write(spec, raw)
        return images.convert(raw, path, options, flags)

    return build


def data_file(options):
    def build(spec, path):
        raw = path.with_suffix(".raw")
        imagespec.write(spec, raw)
        return images.convert_data_file(raw, path, options)

    return build


def written(options="", zero="write -z"):
    return lambda spec, path: images.from_spec(spec, path, options, zero)


def chained(depth, options=""):
    return lambda spec, path: images.chain(spec, path, depth, options)


FORMATS = {
    "v2": convert_with("compat=0.10"),
    "v3": convert_with(),
    "full-copy": convert_with("", "-S", "0"),
    "clusters-512": convert_with("cluster_size=512"),
    "clusters-4k": convert_with("cluster_size=4k"),
    "clusters-2m": convert_with("cluster_size=2m"),
    "metadata": convert_with("preallocation=metadata"),
    "falloc": convert_with("preallocation=falloc"),
    "full": convert_with("preallocation=full"),
    "refcount-1": convert_with("refcount_bits=1"),
    "zlib": convert_with("", "-c"),
    "zlib-v2": convert_with("compat=0.10", "-c"),
    "zlib-clusters-512": convert_with("cluster_size=512", "-c"),
    "zlib-clusters-2m": convert_with("cluster_size=2m", "-c"),
    "zstd": convert_with("compression_type=zstd", "-c"),
    "zstd-clusters-4k": convert_with("compression_type=zstd,cluster_size=4k", "-c"),
    "zstd-clusters-2m": convert_with("compression_type=zstd,cluster_size=2m", "-c"),
    "unordered": convert_with("", "-W", "-m", "16"),
    "extended-l2": convert_with("extended_l2=on,cluster_size=16k"),
    "extended-l2-zstd": convert_with("extended_l2=on,compression_type=zstd", "-c"),
    "data-file": data_file(""),
    "data-file-raw": data_file("data_file_raw=on"),
    "written": written(),
    "written-v2": written("compat=0.10"),
    "written-unmap": written(zero="write -z -u"),
    "written-clusters-512": written("cluster_size=512"),
    "written-extended-l2": written("extended_l2=on,cluster_size=64k"),
    "chain-1": chained(1),
    "chain-3": chained(3),
    "chain-3-extended-l2": chained(3, "extended_l2=on"),
    "chain-2-clusters-512": chained(2, "cluster_size=512"),
}


def expected(spec, digest, construction, block_size):
    return blkhash.checksum(imagespec.chunks(spec), digest, construction, block_size).hex()


def options(digest, construction, block_size):
    args = ["-d", digest, "--construction", construction]
    return args if construction == "linear" else [*args, "--block-size", str(block_size)]


@pytest.mark.parametrize("spec", mostly_slow(SPECS, QUICK), ids=lambda spec: spec or "empty")
@pytest.mark.parametrize("name", FORMATS)
def test_qcow2(blksum, tmp_path, name, spec):
    path = FORMATS[name](spec, tmp_path / "img")
    # Combines every construction with every block size. Threads and read sizes alternate, so that all of
    # their pairs occur.
    turns = itertools.cycle(itertools.product(THREADS, READ_SIZES))
    for construction, block_size in itertools.product(CONSTRUCTIONS, BLOCK_SIZES):
        threads, read_size = next(turns)
        args = options("sha256", construction, block_size)
        args += ["--threads", str(threads), "--read-size", str(read_size), str(path)]
        assert blksum.hex(*args) == expected(spec, "sha256", construction, block_size), args


@pytest.mark.parametrize("spec", mostly_slow(SPECS + ODD_SPECS, QUICK), ids=lambda spec: spec or "empty")
def test_raw(blksum, tmp_path, spec):
    path = tmp_path / "img"
    imagespec.write(spec, path)
    for construction, block_size in itertools.product(CONSTRUCTIONS, BLOCK_SIZES):
        value = expected(spec, "sha256", construction, block_size)
        for threads, read_size in itertools.product(THREADS, READ_SIZES):
            args = options("sha256", construction, block_size)
            args += ["--threads", str(threads), "--read-size", str(read_size), str(path)]
            assert blksum.hex(*args) == value, args


@pytest.mark.parametrize("spec", mostly_slow(SPECS + ODD_SPECS, QUICK), ids=lambda spec: spec or "empty")
def test_pipe(blksum, tmp_path, spec):
    path = tmp_path / "img"
    imagespec.write(spec, path)
    for construction, block_size, threads in itertools.product(CONSTRUCTIONS, BLOCK_SIZES, [1, 2]):
        args = [*options("sha256", construction, block_size), "--threads", str(threads)]
        with open(path, "rb") as file:
            # cat turns it into a pipe.
            cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
            value = blksum.hex(*args, stdin=cat.stdout)
            cat.stdout.close()
            assert cat.wait() == 0
        assert value == expected(spec, "sha256", construction, block_size), args


@pytest.mark.parametrize("mode", ["trust", "verify", "ignore"])
@pytest.mark.parametrize("cache", ["auto", "yes", "no"])
def test_holes_and_cache_do_not_matter(blksum, tmp_path, mode, cache):
    for spec in SPECS + ODD_SPECS:
        path = tmp_path / "img"
        imagespec.write(spec, path)
        args = [f"--holes={mode}", f"--cache={cache}", str(path)]
        assert blksum.hex(*args) == expected(spec, "sha256", "streams:4", 65536), (spec, args)


DIGESTS = [*(name for name in digests.ALGORITHMS if name not in ("null", "siphash")), "xxhash"]


@pytest.mark.parametrize("digest", mostly_slow(DIGESTS, ["sha256", "blake3", "crc32c"]))
def test_digests(blksum, tmp_path, digest):
    specs = ["", "512:#", "60k:A 100k:- 100k:0 3k:B 200k:# 1536:-"]
    for number, spec in enumerate(specs):
        raw = tmp_path / f"{number}.raw"
        imagespec.write(spec, raw)
        qcow2 = images.convert(raw, tmp_path / f"{number}.qcow2")
        for construction, block_size in itertools.product(CONSTRUCTIONS, [512, 65536]):
            value = expected(spec, digest, construction, block_size)
            for path in (raw, qcow2):
                args = [*options(digest, construction, block_size), str(path)]
                assert blksum.hex(*args) == value, args


def test_null_reads_all_and_prints_an_empty_digest(blksum, workdir):
    imagespec.write("100k:#", workdir / "img")
    result = blksum("-d", "null", "img")
    assert (result.returncode, result.stdout) == (0, b"  img\n")


LARGE = ["8g:-", "1:A 8g:- 1:B", "100g:-", "100g:- 1:A", "8t:-"]


@pytest.mark.parametrize("spec", LARGE)
@pytest.mark.parametrize("construction", ["streams:4", "streams:64", "flat", "concat"])
def test_large_holes(blksum, tmp_path, spec, construction):
    block_size = 4 << 20 if spec == "8t:-" else 65536
    args = options("sha256", construction, block_size)
    value = expected(spec, "sha256", construction, block_size)
    if ":B" not in spec and ":A" not in spec:
        qcow2 = images.create(tmp_path / "qcow2", imagespec.size(spec))
        assert blksum.hex(*args, str(qcow2)) == value
    imagespec.write(spec, tmp_path / "raw")
    assert blksum.hex(*args, str(tmp_path / "raw")) == value
