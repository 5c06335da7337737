"""scripts/record: the model that its checksums are compared with, its images, and a run of seconds."""

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import blake3 as package
import pytest

import blkhash
import commands
from commands import ROOT
from images import qemu_img

sys.path.append(str(ROOT / "scripts"))

from benchmark import expected, memory_images
from benchmark.blake3 import Blake3

PUBLISHED = json.loads((ROOT / "scripts/benchmark/published.json").read_text())
CHECKSUMS = [(name, it) for name, about in PUBLISHED["machines"].items() for it in about.get("checksums", [])]
PORTABLE = ["scripts/record", *ROOT.glob("scripts/benchmark/*.py"), *ROOT.glob("reference/*.py")]
# Takes away from Python what it has on Linux alone.
ELSEWHERE = """
import os, runpy, sys
del os.memfd_create, os.sched_getaffinity
exists, isdir = os.path.exists, os.path.isdir
os.path.exists = lambda path: not str(path).startswith("/proc") and exists(path)
os.path.isdir = lambda path: str(path) != "/dev/shm" and isdir(path)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    "name, it", [pytest.param(name, it, id=f"{name}, {it['case']}",
                              marks=[pytest.mark.slow] * (it["case"][0] == "b" and it["bytes"] > 3 << 30))
                 for name, it in CHECKSUMS]
)
def test_published_checksums(name, it):
    """What was hashed for the published results is what is hashed here."""
    digest, kind, blocks = it["case"].split()
    assert kind == "data" and blocks == "512K"
    assert expected.flat(digest, 0x55, it["bytes"], 512 << 10) == it["checksum"]


def test_published_cases():
    """Every case of scripts/record has published results."""
    record = {"__name__": "record", "__file__": str(ROOT / "scripts/record")}
    exec((ROOT / "scripts/record").read_text(), record)
    for part, cases in (("library", record["CASES"]), ("images", record["IMAGES"])):
        published = {case for about in PUBLISHED["machines"].values() for case in about.get(part, {})}
        assert {str(case) for case in cases} == published


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, 5000, 31744, 102401])
def test_blake3(length):
    content = random.Random(length).randbytes(length)
    h = Blake3()
    for start in range(0, length, 1000):
        h.update(content[start : start + 1000])
    assert h.digest() == package.blake3(content).digest()


@pytest.mark.parametrize("digest", ["sha256", "blake3"])
@pytest.mark.parametrize("size", [0, 1, 65536, 65537, 300000])
def test_flat(digest, size):
    for fill in (0, 0x55):
        wanted = blkhash.checksum(bytes([fill]) * size, digest, "flat").hex()
        assert expected.flat(digest, fill, size, 64 << 10) == wanted


@pytest.mark.parametrize("kind", ["data", "zero", "hole"])
@pytest.mark.parametrize("format", ["raw", "qcow2"])
@pytest.mark.parametrize("mib", [1, 3, pytest.param(700, marks=pytest.mark.slow)])
def test_images(blksum, workdir, kind, format, mib):
    name = f"{kind}.{format}"
    memory_images.make(name, kind, mib << 20)
    if format == "qcow2":
        qemu_img("check", "-q", "-f", "qcow2", name)
    memory_images.make("raw", kind, mib << 20)
    qemu_img("compare", "-q", "-f", format, "-F", "raw", name, "raw")
    assert blksum.hex("-f", format, name) == memory_images.checksum(kind, mib << 20)
    assert blkhash.file_checksum("raw").hex() == memory_images.checksum(kind, mib << 20)


def library():
    """Returns the static C library of the same build."""
    folder = commands.BLKSUM.parent
    built = folder.parent / "capi" if folder.name == "release" else folder
    assert (built / "libblkhash_capi.a").exists(), "the C library was not built: make capi"
    return built / "libblkhash_capi.a"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name in ("blksum", "blkhash"):
        (folder / name).symlink_to(commands.BLKSUM.with_name(name))
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-o", folder / "blkhash-cases", ROOT / "crates/capi/bench/cases.c"]
    libraries = [f"-I{ROOT}/crates/capi/include", library(), "-lpthread", "-ldl", "-lm"]
    subprocess.run([*command, *libraries], check=True, timeout=commands.HANG)
    # Lines of scripts/simulate: one of a case of the record, and one of another.
    (folder / "simulated").write_text("sha256 65536 262144 16 1:0.99 64:0.91\nsha256 65536 262144 4 1:0.98 64:0.5\n")
    return folder


def record(programs, *options, prefix=(sys.executable,)):
    command = [*prefix, ROOT / "scripts/record", programs, "out", "--quick", "--seconds", "0.01", *options]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=commands.HANG)


@pytest.mark.slow
def test_a_quick_record(programs, workdir):
    run = record(programs, "--threads", "1,2,5", "--image-size", "8")
    assert run.returncode == 0, run
    assert sorted(os.listdir("out")) == ["hashes.txt", "record.json", "record.md", "record.svg"]
    found = json.loads((workdir / "out/record.json").read_text())
    assert "--quick" in found["rehearsal"]
    assert found["machine"]["threads"] == [1, 2, 5]
    assert len(found["library"]) == 10 and len(found["images"]) == 5
    for name, it in {**found["library"], **found["images"]}.items():
        assert list(it["rates"]) == ["1", "2", "5"], name
        assert all(len(its) == 1 and its[0] > 0 for its in it["rates"].values()), name
        assert all(its[0] > 0 for its in it["cpu"].values()), name
    report = (workdir / "out/record.md").read_text()
    assert report.startswith("# A rehearsal, and no record\n") and report in run.stdout
    rows = [line.split("|")[1:-1] for line in report.splitlines() if line.startswith("| ")]
    header = next(row for row in rows if "Graviton3" in row[3])
    assert [it.strip() for it in header] == [
        "threads", "GiB/s", "times one thread", "Graviton3", "Sapphire Rapids", "M2 Max", "Cascade Lake"
    ]
    simulated = next(it for it in report.split("\n### ") if it.startswith("sha256, data, blocks of 64 KiB"))
    assert "| simulated, of the ideal |" in simulated and " | 0.91 |" in simulated
    assert report.count("simulated") == 1
    # The sizes of these images differ from the published results'.
    images = report.split("\n## ")[2]
    assert images.startswith("blksum: ") and images.count("\n| 5 |") == 5 and "M2 Max" not in images
    drawn = ElementTree.parse("out/record.svg")
    lines = drawn.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert sum(line.get("class") == "ours" for line in lines) == 15
    assert sum(line.get("class") == "peer" for line in lines) == sum(
        len([case for case in about.get("library", {})]) for about in PUBLISHED["machines"].values()
    )


def test_without_what_linux_alone_has(programs, workdir, monkeypatch):
    (workdir / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(workdir / "tmp"))
    run = record(
        programs, "--threads", "1", "--image-size", "2", "--only", "64K|qcow2|hole raw",
        prefix=(sys.executable, "-c", ELSEWHERE),
    )
    assert run.returncode == 0, run
    about = json.loads((workdir / "out/record.json").read_text())["machine"]
    assert about["images"] == {"folder": str(workdir / "tmp"), "size": 2 << 20, "in memory": False}
    assert about["cpu"] and about["memory"] > 0
    assert os.listdir("tmp") == []


@pytest.mark.parametrize("name, case", [("blkhash-cases", "sha256 data 64K"), ("blksum", "sha256 zero raw")])
def test_another_checksum(programs, workdir, name, case):
    """A run that prints another checksum than the model is no record."""
    shutil.copytree(programs, "wrong", symlinks=True)
    (workdir / "wrong" / name).unlink()
    script = f'#!/bin/sh\n{programs / name} "$@" | sed "s/[0-9a-f]\\{{63\\}}/$(printf %063d 0)/"\n'
    (workdir / "wrong" / name).write_text(script)
    (workdir / "wrong" / name).chmod(0o755)
    run = record("wrong", "--threads", "1", "--image-size", "1", "--only", case)
    assert run.returncode == 1 and "by another implementation" in run.stderr, run
    assert not os.path.exists("out/record.json")


def test_a_program_that_fails(programs, workdir):
    shutil.copytree(programs, "failing", symlinks=True)
    (workdir / "failing/blkhash-cases").unlink()
    (workdir / "failing/blkhash-cases").symlink_to(shutil.which("false"))
    run = record("failing", "--threads", "1", "--only", "64K")
    assert run.returncode == 1 and "blkhash-cases ended with 1" in run.stderr, run


@pytest.mark.parametrize("name", PORTABLE, ids=lambda name: str(name).rpartition("/")[2])
def test_syntax_of_python_3_9(name):
    """The oldest one that is in use, as on macOS."""
    ast.parse((ROOT / name).read_text(), feature_version=(3, 9))
