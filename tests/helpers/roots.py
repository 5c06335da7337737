"""Root file systems with a release of Debian that is newer than this machine's."""

import subprocess

import pytest

import commands

# Seconds for what may wait for a network.
SLOW = 4 * commands.HANG


def make(release, root, *packages, variant="apt"):
    """Makes a root with packages. Skips the test if the mirror has nothing but the release of this machine."""
    command = ["mmdebstrap", f"--variant={variant}", f"--include={','.join(packages)}"]
    # Releases that change state for how long their index is valid. A mirror may be older.
    command += ["--aptopt=Acquire::Check-Valid-Until false", release, str(root)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SLOW)
    if done.returncode != 0 and b"Could not resolve" in done.stdout:
        pytest.skip(f"the mirror of Debian {release} cannot be reached")
    assert done.returncode == 0, done.stdout.decode()


def program(root, name):
    """Returns the command that runs a program of a root with the libraries of the root, and the files of this machine."""
    [loader] = root.glob("usr/lib*/ld-linux*.so.*")
    [libraries] = (folder.parent for folder in root.glob("usr/lib/*/libc.so.6"))
    [path] = root.glob(f"usr/*bin/{name}")
    return [str(loader), "--library-path", str(libraries), str(path)]
