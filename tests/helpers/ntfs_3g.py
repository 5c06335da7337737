"""Mounts NTFS by ntfs-3g."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import time

import images
from commands import HANG


@contextlib.contextmanager
def mounted(path, options="streams_interface=windows,compression"):
    """Temporarily mounts a file system, in a process of which the end is awaited."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        args = ["ntfs-3g", "-o", f"no_detach,{options}", str(path), folder]
        with subprocess.Popen(args, stdout=log, stderr=log) as driver:
            deadline = time.monotonic() + HANG
            while not os.path.ismount(folder):
                if driver.poll() is not None:
                    raise OSError(f"not mounted, status {driver.returncode}")
                assert time.monotonic() < deadline
                time.sleep(0.01)
            try:
                yield pathlib.Path(folder)
            finally:
                images.run("umount", folder)
                driver.wait(HANG)
