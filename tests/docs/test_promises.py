"""Every test that docs/reference/security.md and docs/reference/stability.md name for a promise exists, and every fuzz target is named in the
first."""

import pathlib
import re

import pytest

from commands import ROOT

PAGE = (ROOT / "docs/reference/security.md").read_text()
ROWS = [row for row in PAGE.partition("## Promises and their tests")[2].splitlines() if row.startswith("| ")][1:]
CODE = PAGE.partition("## Code that sees hostile bytes")[2].partition("\n## ")[0]
STABILITY = (ROOT / "docs/reference/stability.md").read_text()
STABLE = STABILITY.partition("## Stable\n")[2].partition("\n## ")[0]
STABLE = [row for row in STABLE.splitlines() if row.startswith("| ")][1:]
NAMED = [name for row in ROWS + STABLE for name in re.findall(r"`(\S+::\S+)`", row)]
KEYWORDS = {".py": "def", ".rs": "fn", ".go": "func"}


def test_every_promise_has_a_test():
    assert len(ROWS) > 40
    assert [row for row in ROWS if "::" not in row] == []


def test_what_is_stable_has_a_test():
    assert len(STABLE) > 15
    for row in STABLE:
        *_, tests = row.removesuffix(" |").split(" | ")
        named = re.findall(r"`(\S+)`", tests)
        assert named, row
        for path in named:
            assert (ROOT / path.partition("::")[0]).is_file(), path


@pytest.mark.parametrize("named", NAMED)
def test_it_is_there(named):
    path, name = named.split("::")
    keyword = KEYWORDS[pathlib.Path(path).suffix]
    assert re.search(rf"^ *{keyword} {name}\(", (ROOT / path).read_text(), re.MULTILINE)


def test_pages_name_the_oldest_rust():
    """Every page that says which Rust a build needs names the one in Cargo.toml."""
    oldest = re.search(r'^rust-version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    for page in ("README.md", "CONTRIBUTING.md", "docs/reference/stability.md"):
        assert re.findall(r"Rust (\d+\.\d+) or later", (ROOT / page).read_text()) == [oldest], page
    assert f"| Rust, for a build | {oldest} |" in (ROOT / "docs/use/platforms.md").read_text()


def test_every_fuzz_target_is_listed():
    targets = {path.stem for path in (ROOT / "fuzz" / "fuzz_targets").glob("*.rs")}
    fuzzed = re.findall(r"^\|.*\| (`.*)\|$", CODE, re.MULTILINE)
    assert targets == {name for row in fuzzed for name in re.findall(r"`(\w+)`", row.partition(":")[0])}
    assert targets == set(re.findall(r'name = "(\w+)"', (ROOT / "fuzz" / "Cargo.toml").read_text()))
