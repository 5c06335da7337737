"""Fixtures of the whole-program tests.

The programs to test are in helpers/commands.py.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import tempfile

import pytest

import portable
import slow
from commands import ROOT, Blksum, blksum_path
from servers import Servers

TESTS = pathlib.Path(__file__).resolve().parent
os.environ["PATH"] = f"{TESTS}/bin:{os.environ['PATH']}:/usr/sbin:/sbin:{ROOT}/.servers/usr/bin:{ROOT}/.servers/usr/sbin"
os.environ["LC_ALL"] = "C"
# What a user has set for terminals of his own.
os.environ["TERM"] = "xterm"
os.environ.pop("NO_COLOR", None)

# Background processes of a script ignore these signals, and all programs of the tests would inherit that.
for ignored in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)

# The largest test has a 6 GiB image, fully allocated, beside its sparse source.
SHM_NEEDED = 10 << 30


def pytest_configure(config):
    binary = blksum_path()
    if not os.access(binary, os.X_OK):
        pytest.exit(f"no blksum at {binary}: cargo build --release, or set BLKSUM", returncode=2)
    if config.option.basetemp is None:
        config.option.basetemp = tempfile.mkdtemp(prefix="blksum-tests.", dir=temp_folder())
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    portable.expect_weaker(config, items)
    slow.mark(config, items)


def pytest_runtest_setup(item):
    if os.geteuid() != 0 and item.get_closest_marker("root"):
        assert "CI" not in os.environ, "CI runs the tests as root"
        pytest.skip("needs root")


def pytest_report_header(config):
    return f"blksum: {blksum_path()}, images in {config.option.basetemp}"


def temp_folder():
    """Returns /dev/shm if it and the available memory are large enough, or the usual folder otherwise."""
    shm = "/dev/shm"
    if os.path.isdir(shm) and shutil.disk_usage(shm).free >= SHM_NEEDED:
        with open("/proc/meminfo") as meminfo:
            for line in meminfo:
                if line.startswith("MemAvailable:") and int(line.split()[1]) * 1024 >= SHM_NEEDED:
                    return shm
    return os.environ.get("TMPDIR", "/var/tmp")


@pytest.fixture(scope="session")
def blksum():
    return Blksum(blksum_path())


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def servers():
    """Servers of NBD, which end with the test."""
    with contextlib.closing(Servers()) as started:
        yield started


@pytest.fixture(scope="session", autouse=True)
def passable_basetemp(tmp_path_factory):
    """Lets other users traverse the folder, because some tests run as the user nobody."""
    folder = tmp_path_factory.getbasetemp()
    os.chmod(folder, 0o755)
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.chmod(folder.parent, 0o755)
