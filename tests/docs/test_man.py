"""Manual pages: for each command, without mistakes of layout, with references that lead somewhere."""

import re
import subprocess

import pytest

from commands import BLKSUM, HANG, ROOT

PAGES = sorted((ROOT / "man").iterdir())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_layout(page):
    for command in [["mandoc", "-Tlint", "-Wwarning"], ["groff", "-mandoc", "-ww", "-Tutf8", "-z"]]:
        run = subprocess.run([*command, page], capture_output=True, text=True, timeout=HANG)
        assert run.stdout + run.stderr == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_references(page):
    text = subprocess.run(["mandoc", "-Tascii", page], capture_output=True, text=True, check=True).stdout
    text = re.sub(".\b", "", text)
    named = re.findall(r"\b(blk[a-z-]+)\(([138])\)", re.sub(r"-\n +", "-", text))
    assert {f"{name}.{section}" for name, section in named} <= {page.name for page in PAGES}


def commands(*words):
    """The commands of blkhash that have no commands of their own, and those that do."""
    yield "-".join(["blkhash", *words])
    run = [BLKSUM.parent / "blkhash", *words, "--help"]
    usage = subprocess.run(run, capture_output=True, text=True, check=True, timeout=HANG).stdout
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", usage, re.MULTILINE)
    for name in re.findall(r"^  (\S+)", listed[1], re.MULTILINE) if listed else []:
        if name != "help":
            yield from commands(*words, name)


def test_each_command_has_a_page():
    names = list(commands())
    assert len(names) > 5
    assert {f"{name}.1" for name in names} <= {page.name for page in PAGES}
