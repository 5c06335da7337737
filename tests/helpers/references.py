"""Overlays over names of any kind."""

import os

import blkhash
import images

MIB = 1 << 20


def write_raw(path, letter, size=MIB):
    with open(path, "wb") as file:
        file.write(letter * size)


def overlay(path, backing, backing_format="raw", size="1M"):
    """Creates an overlay over a name that need not exist."""
    args = ["-q", "-f", "qcow2", "-u", "-b", backing, "-F", backing_format]
    folder, name = os.path.split(path)
    images.qemu_img("create", *args, name, size, cwd=folder or ".")
    return path


def letter_value(letter, size=MIB):
    return blkhash.checksum(letter * size).hex()


def rename_data_file(path, old, new):
    """Replaces a name with one of equal length, so that no table moves."""
    assert len(old) == len(new)
    with open(path, "r+b") as file:
        header = file.read(65536)
        assert header.count(old) == 1
        file.seek(header.index(old))
        file.write(new)
