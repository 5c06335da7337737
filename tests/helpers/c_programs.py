"""Compiles programs in C that use libblksum as it was built next to blksum."""

import os
import subprocess

import pytest

import commands


def library():
    """Returns the library of the same build."""
    folder = commands.BLKSUM.parent
    for path in (folder / "libblksum_capi.so", folder.parent / "capi/libblksum_capi.so"):
        if path.exists() and (folder.name != "release" or path.parent.name == "capi"):
            return path
    if os.environ.get("CI"):
        pytest.fail("libblksum was not built")
    pytest.skip("libblksum was not built: make capi")


def environment(folder):
    """Makes the library known under its name, and returns the environment of a program that uses it."""
    link = folder / "libblksum.so.0"
    if not link.exists():
        link.symlink_to(library())
    return {**os.environ, "LD_LIBRARY_PATH": str(folder)}


def build(folder, source, *flags, name=None):
    """Compiles a program into a folder, and returns its path."""
    environment(folder)
    program = folder / (name or source.stem)
    include = commands.ROOT / "crates/capi-images/include"
    command = ["gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, source, f"-I{include}"]
    subprocess.run([*command, *flags, folder / "libblksum.so.0"], check=True, timeout=commands.HANG)
    return program
