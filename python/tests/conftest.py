"""Fixtures of the tests of the Python package, which test what is installed.

They run in a process of their own, because the model in reference/ is a module that is also called `blkhash`.
BLKSUM in the environment names the binary to compare with, by default target/release/blksum.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python"
sys.path += [str(ROOT / "tests/helpers"), str(ROOT / "reference")]
os.environ["PATH"] = f"{ROOT}/tests/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
os.environ["LC_ALL"] = "C"

BLKSUM = pathlib.Path(os.environ.get("BLKSUM", ROOT / "target/release/blksum")).absolute()

# Seconds after which a process counts as hanging.
HANG = 120


def pytest_configure(config):
    if not os.access(BLKSUM, os.X_OK):
        pytest.exit(f"no blksum at {BLKSUM}: cargo build --release, or set BLKSUM", returncode=2)
    # Without it, `import blkhash` would find the model in reference/.
    if importlib.util.find_spec("blkhash").submodule_search_locations is None:
        reason = "the package is not installed (make pytest), or the tests of tests/ run in the same process"
        pytest.exit(reason, returncode=2)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    # In tests/helpers.
    import portable
    import slow

    portable.expect_weaker(config, items)
    slow.mark(config, items)


def run(*args, status=0, **kwargs):
    """Runs a program and returns its output."""
    kwargs = {"stdin": subprocess.DEVNULL, "timeout": HANG} | kwargs
    result = subprocess.run(list(map(str, args)), capture_output=True, text=True, **kwargs)
    assert result.returncode == status, (args, result)
    return result.stdout


def wait_for_threads():
    """Waits for the threads of work that was cancelled."""

    def name(thread):
        try:
            return (thread / "comm").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return ""

    deadline = time.monotonic() + HANG
    while any("blkhash" in name(thread) for thread in pathlib.Path("/proc/self/task").iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def script(code, *args, **kwargs):
    """Runs Python code in a process of its own, in development mode. Warnings are errors."""
    result = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code, *map(str, args)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=HANG, **kwargs,
    )
    assert (result.returncode, result.stderr) == (0, ""), result
    return result.stdout


def blksum(*args):
    """Returns the checksum that blksum prints."""
    return run(BLKSUM, *args).split()[0]


def blkmap(*args, status=0):
    """Returns the output of `blkhash map`."""
    return run(BLKSUM.with_name("blkhash"), "map", *args, status=status)


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def load_reference():
    """Returns reference/blkhash.py, under another name."""
    spec = importlib.util.spec_from_file_location("reference_blkhash", ROOT / "reference" / "blkhash.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def reference():
    return load_reference()


@pytest.fixture
def servers():
    # In tests/helpers.
    from servers import Servers

    servers = Servers()
    yield servers
    servers.close()


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
