"""A systemd of its own, in namespaces over a view of this host (boot_systemd.sh)."""

import os
import pathlib

import pytest

import images
from commands import HANG


def require():
    """Skips a test where no systemd can be booted. CI must be able to."""
    if not os.access("/lib/systemd/systemd", os.X_OK):
        assert "CI" not in os.environ
        pytest.skip("needs systemd")


def output(folder, script):
    """Boots with the files in FOLDER/files added, runs a script of bash as root, and returns its output."""
    (folder / "script").write_text(script)
    boot = pathlib.Path(__file__).with_name("boot_systemd.sh")
    result = images.attempt("unshare", "--mount", str(boot), str(folder), timeout=HANG)
    assert (folder / "output").exists(), result
    return (folder / "output").read_text()
