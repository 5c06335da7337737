"""The seeds and dictionaries of the fuzz targets, and what OSS-Fuzz and ClusterFuzzLite build."""

import re
import subprocess
import sys

import pytest

from commands import ROOT

FUZZ = ROOT / "fuzz"
TARGETS = sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))
DICTIONARIES = sorted(path.stem for path in (FUZZ / "dictionaries").iterdir())


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_seeds_are_those_of_the_generator(tmp_path):
    subprocess.run([sys.executable, str(FUZZ / "seeds.py"), str(tmp_path)], check=True)
    assert files(tmp_path) == files(FUZZ / "seeds")


def test_every_target_has_seeds():
    assert sorted(path.name for path in (FUZZ / "seeds").iterdir()) == TARGETS
    for target in TARGETS:
        seeds = files(FUZZ / "seeds" / target).values()
        assert len(seeds) > 2 and len(set(seeds)) == len(seeds), target
        assert max(map(len, seeds)) < 40_000, target


@pytest.mark.parametrize("target", DICTIONARIES)
def test_dictionaries(target):
    """Lines are what libFuzzer reads: comments, and strings in quotes with its escapes. No word comes twice."""
    assert target in TARGETS
    lines = (FUZZ / "dictionaries" / f"{target}.dict").read_text().splitlines()
    words = [line for line in lines if not line.startswith("#")]
    for line in words:
        assert re.fullmatch(r'"([^"\\]|\\["\\]|\\x[0-9a-f]{2})+"', line), line
    assert len(words) > 10 and len(set(words)) == len(words)


def test_what_runs_elsewhere_needs_nothing():
    """fuzz/build leaves out the targets that run programs or load libraries, but for qemu-img, whose images it makes."""
    build = (FUZZ / "build").read_text()
    needs = set()
    for target in TARGETS:
        text = (FUZZ / "fuzz_targets" / f"{target}.rs").read_text()
        if re.search(r"liblzo2|blkbtrfs/tests/common/mod\.rs", text):
            needs.add(target)
        has_images = "static SEEDS: Seeds" in text
        assert has_images == bool(re.search(r"guest_view::.*seeds", text)) == (FUZZ / "seeds" / target / "cut").exists()
    assert set(re.search(r'elsewhere=" (.*) "', build)[1].split()) == needs


def test_both_projects_build_the_same():
    lite, oss = ROOT / ".clusterfuzzlite", FUZZ / "oss-fuzz"
    assert (lite / "build.sh").read_text() == (oss / "build.sh").read_text()
    shared = [set((folder / "Dockerfile").read_text().splitlines()) for folder in (lite, oss)]
    assert {line.split()[0] for line in shared[0] ^ shared[1]} == {"COPY", "RUN"}
    for folder in (lite, oss):
        assert re.search("^language: rust$", (folder / "project.yaml").read_text(), re.MULTILINE)
