"""scripts/first-run: what passes, fails and is not run is in the report and in the exit status."""

import ast
import json
import os
import subprocess
import sys
import time

import pytest

import commands
from commands import ROOT

# What it imports of this project, without scripts/benchmark (test_record.py).
SOURCES = ["scripts/first-run", *(f"tests/helpers/{kind}_images.py" for kind in ("vhdx", "vmdk", "vpc"))]
PROGRAMS = ("blksum", "blkhash", "blkcopy")


@pytest.fixture
def first_run(workdir):
    """Runs some parts on the programs of a folder. Returns the exit status and the report."""

    def run(*parts, programs=commands.BLKSUM.parent, options=()):
        only = [f"--only={part}" for part in parts]
        command = [sys.executable, ROOT / "scripts/first-run", "--report", "report.json", "--programs", programs]
        done = subprocess.run([*command, *only, *options], capture_output=True, text=True, timeout=2 * commands.HANG)
        report = json.loads((workdir / "report.json").read_text())
        counts = {it: 0 for it in ("passed", "failed", "not run")}
        for part in report["parts"].values():
            counts[part["status"]] += 1
        assert ", ".join(f"{count} {name}" for name, count in counts.items()) in done.stdout, done
        assert all(name in parts or it["reason"] == "--only" for name, it in report["parts"].items())
        return done.returncode, report

    return run


def test_commands(first_run):
    status, report = first_run("commands")
    assert status == 0
    assert report["parts"]["commands"]["status"] == "passed"
    assert "sandbox: " in report["parts"]["commands"]["details"]["blksum -v"][0]
    assert set(report["about"]) >= {"version", "commit", "system", "cpu", "processors", "memory", "rustc", "qemu-img"}


@pytest.mark.slow
def test_values(first_run):
    status, report = first_run("vectors", "formats")
    assert status == 0
    assert report["parts"]["vectors"]["details"]["compared"] > 900
    formats = report["parts"]["formats"]["details"]
    assert len(formats["images"]) == 22 and formats["left out"] is None


@pytest.mark.slow
def test_without_qemu_img(first_run, monkeypatch, workdir):
    """Python makes the images."""
    (workdir / "bin").mkdir()
    monkeypatch.setenv("PATH", str(workdir / "bin"))
    status, report = first_run("formats")
    formats = report["parts"]["formats"]["details"]
    assert status == 0 and len(formats["images"]) == 10
    assert "qemu-img is not installed" in formats["left out"]


@pytest.mark.slow
@pytest.mark.soak
def test_the_tests_of_a_crate(first_run):
    """Cargo's output is understood. The crate with the fewest dependencies needs no long build."""
    status, report = first_run("tests", options=["--crate=blkhash-map"])
    assert status == 0
    found = report["parts"]["tests"]["details"]["blkhash-map"]
    assert found["passed"] > 20 and found["failed"] == []
    status, report = first_run("tests", options=["--crate=no-such-crate"])
    assert status == 1 and report["parts"]["tests"]["reason"] == "tests of no-such-crate failed"
    assert "no-such-crate" in str(report["parts"]["tests"]["details"])


@pytest.fixture
def wrong(workdir):
    """Programs of which blksum prints other checksums."""
    folder = workdir / "wrong"
    folder.mkdir()
    for name in PROGRAMS[1:]:
        (folder / name).symlink_to(commands.BLKSUM.with_name(name))
    (folder / "blksum").write_text(f'#!/bin/sh\n{commands.BLKSUM} "$@" | tr 0-8 1-9\n')
    (folder / "blksum").chmod(0o755)
    return folder


@pytest.mark.parametrize("part", ["commands", pytest.param("formats", marks=pytest.mark.slow),
                                  pytest.param("vectors", marks=pytest.mark.slow)])
def test_wrong_checksums(first_run, wrong, part):
    status, report = first_run(part, programs=wrong)
    assert status == 1
    assert report["parts"][part]["status"] == "failed" and report["parts"][part]["reason"]


def test_a_program_that_crashes(first_run, wrong):
    (wrong / "blksum").write_text("#!/bin/sh\necho broken >&2\nkill -SEGV $$\n")
    status, report = first_run("commands", programs=wrong)
    assert status == 1
    assert "ended with -11" in report["parts"]["commands"]["reason"]
    assert report["parts"]["commands"]["details"] == [["broken"]]


def test_nothing_to_run(first_run, workdir):
    """A run that tests nothing is no success."""
    status, report = first_run("commands", "formats", "vectors", programs=workdir)
    assert status == 1
    for part in ("commands", "formats", "vectors"):
        assert report["parts"][part]["status"] == "not run"
        assert "there is no blksum in " in report["parts"][part]["reason"]


def test_an_interruption(wrong, workdir):
    """The report says what was not run, and the program that ran is gone."""
    (wrong / "blksum").write_text(f"#!/bin/sh\necho $$ > {workdir}/pid\nexec sleep 1000\n")
    command = [sys.executable, ROOT / "scripts/first-run", "--report", "report.json", "--programs", wrong]
    process = subprocess.Popen([*command, "--only=commands"], stdout=subprocess.DEVNULL)
    pid = workdir / "pid"
    while not (pid.exists() and pid.read_text().endswith("\n")):
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()
    assert process.wait(commands.HANG) == 143
    # It was killed. A busy system takes a moment.
    until = time.monotonic() + commands.HANG
    while os.path.exists(f"/proc/{pid.read_text().strip()}"):
        assert time.monotonic() < until
        time.sleep(0.01)
    report = json.loads((workdir / "report.json").read_text())
    assert report["parts"]["commands"] == {"status": "not run", "reason": "interrupted"}


def test_a_build_that_fails(first_run, workdir, monkeypatch):
    """Programs of an earlier build are not tested instead."""
    (workdir / "bin").mkdir()
    (workdir / "bin/cargo").write_text("#!/bin/sh\necho 'error: nothing works' >&2\nexit 101\n")
    (workdir / "bin/cargo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{workdir}/bin:/usr/bin:/bin")
    status, report = first_run("build", "commands", "libraries", "tests", "benchmark")
    assert status == 1
    assert report["parts"]["build"]["reason"] == "the commands do not build"
    assert report["parts"]["build"]["details"] == [["error: nothing works"]]
    for part in ("commands", "benchmark"):
        assert (report["parts"][part]["status"], report["parts"][part]["reason"]) == ("not run", "the commands do not build")
    for part in ("libraries", "tests"):
        assert report["parts"][part]["status"] == "failed"


@pytest.mark.parametrize("name", SOURCES)
def test_syntax_of_python_3_9(name):
    ast.parse((ROOT / name).read_text(), feature_version=(3, 9))
