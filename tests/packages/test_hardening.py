"""Hardening of the built programs and the library against bugs in their own code.

readelf and nm examine the same files that the other tests run, as built by `make build`.
"""

import os
import platform
import re
import subprocess

import pytest

import commands

pytestmark = pytest.mark.release

SUMS = [f"panic_const_{operation}_overflow" for operation in ("add", "sub", "mul")]
C_FUNCTIONS = ("ZSTD_decompressStream", "ZSTD_decompressDCtx", "libdeflate_deflate_decompress_ex")


def file_of(name):
    folder = commands.blksum_path().parent
    if name.endswith(".so"):
        # Built with a profile of its own.
        return folder.parent / "capi" / name
    return folder / name


@pytest.fixture(params=["blksum", "blkhash", "libblkhash_capi.so", "libblksum_capi.so"])
def file(request):
    path = file_of(request.param)
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{path} was not built")
        pytest.skip(f"{path} was not built: make build")
    return path


@pytest.fixture(params=["blksum", "blkhash"])
def program(request):
    return file_of(request.param)


def run(*args):
    return subprocess.run([*map(str, args)], check=True, capture_output=True, text=True).stdout


def test_layout(file):
    header = run("readelf", "-hW", file)
    segments = run("readelf", "-lW", file)
    dynamic = run("readelf", "-dW", file)
    # It is loaded at an unpredictable address.
    assert re.search(r"Type:\s+DYN ", header), header
    if not file.name.endswith(".so"):
        assert re.search(r"FLAGS_1\).* PIE", dynamic), dynamic
    # Stacks and heaps are not executable, and nothing is writable and executable.
    stack = re.search(r"GNU_STACK .* (\S+)\s+\w+$", segments, re.MULTILINE)
    assert stack[1] == "RW", segments
    assert not re.search(r"^\s+LOAD .* (RWE|WE)\s", segments, re.MULTILINE), segments
    # Symbols resolved by the loader are read-only.
    assert "GNU_RELRO" in segments, segments
    assert "BIND_NOW" in dynamic or re.search(r"FLAGS_1\).* NOW", dynamic), dynamic
    # Libraries are the system's, and code is not changed when it is loaded.
    assert not re.search(r"\((RPATH|RUNPATH|TEXTREL)\)|TEXTREL", dynamic), dynamic


def test_sums_are_checked(program):
    """Overflow checks are on in release builds, so the functions that they call are present."""
    symbols = run("nm", program)
    for name in SUMS:
        assert name in symbols, f"{program} has no {name}"


def test_c_code_is_built_with_canaries(program):
    """zstd and libdeflate call a function of the C library that checks canaries."""
    assert "__stack_chk_fail" in run("nm", "-D", program)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other CPUs have other instructions")
def test_c_code_can_only_be_jumped_to_at_its_functions(program):
    """A mark on the whole program would need one in Rust's standard library, which is built without it."""
    symbols = run("nm", program)
    names = [name for name in C_FUNCTIONS if re.search(rf" [tT] {name}$", symbols, re.MULTILINE)]
    assert names, "neither zstd nor libdeflate is there"
    for name in names:
        code = run("objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", program)
        first = code.split(f"<{name}>:\n", 1)[1].splitlines()[0]
        assert "endbr64" in first, (name, first)


def test_checked_copies():
    """The C library checks copies at run time if the compiler cannot. Only the flag is tested, because
    the linked code of neither library has such a copy."""
    config = (commands.ROOT / ".cargo/config.toml").read_text()
    flags = [line for line in config.splitlines() if line.startswith("CFLAGS_") and "_gnu" in line]
    assert len(flags) == 2 and all("-D_FORTIFY_SOURCE=3" in line for line in flags)
