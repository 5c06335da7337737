"""Fixtures of the whole-program tests.

BLKSUM in the environment names the binary, by default target/release/blksum.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import portable
import pytest
import slow

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "reference"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
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

# Made absolute before a test changes its current folder.
BLKSUM = pathlib.Path(os.environ.get("BLKSUM", ROOT / "target/release/blksum")).absolute()

GIB = 1 << 30

# The largest test has a 6 GiB image, fully allocated, besides its sparse source.
SHM_NEEDED = 10 * GIB

# Seconds after which a run counts as hanging. No run needs a tenth of it.
HANG = 300


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


def blksum_path():
    return BLKSUM


def temp_folder():
    """Returns /dev/shm if it and the available memory are large enough, or the usual folder otherwise."""
    shm = "/dev/shm"
    if os.path.isdir(shm) and shutil.disk_usage(shm).free >= SHM_NEEDED:
        with open("/proc/meminfo") as meminfo:
            for line in meminfo:
                if line.startswith("MemAvailable:") and int(line.split()[1]) * 1024 >= SHM_NEEDED:
                    return shm
    return os.environ.get("TMPDIR", "/var/tmp")


def mostly_slow(values, quick, slow=None):
    """Returns parameters of a test, of which only those in `quick` are quick. With `slow`, others than these soak as well."""

    def marks(value):
        if value in quick:
            return []
        return [pytest.mark.slow] if slow is None or value in slow else [pytest.mark.slow, pytest.mark.soak]

    return [pytest.param(value, marks=marks(value)) for value in values]


class Blksum:
    """Runs blksum. Outputs are bytes."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self, *args, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        if "input" in kwargs:
            del kwargs["stdin"]
        kwargs.setdefault("timeout", HANG)
        return subprocess.run(
            [self.path, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs
        )

    def start(self, *args, **kwargs):
        """Starts a process, with both of its outputs in pipes by default."""
        kwargs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | kwargs
        return subprocess.Popen([self.path, *args], **kwargs)

    def hex(self, *args, **kwargs):
        """Returns the checksum of a single image. The run must succeed."""
        result = self(*args, **kwargs)
        assert result.returncode == 0, (args, result)
        lines = result.stdout.splitlines()
        assert len(lines) == 1, (args, result)
        return lines[0].removeprefix(b"\\").split(b" ", 1)[0].decode("ascii")


@pytest.fixture(scope="session")
def blksum():
    return Blksum(blksum_path())


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def passable_basetemp(tmp_path_factory):
    """Lets other users traverse the folder, because some tests run as the user nobody."""
    folder = tmp_path_factory.getbasetemp()
    os.chmod(folder, 0o755)
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.chmod(folder.parent, 0o755)
