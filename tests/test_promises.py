"""Every test that docs/security.md names for a promise exists, and every fuzz target is named there."""

import re

import pytest

from conftest import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()
ROWS = [row for row in PAGE.partition("## Promises and their tests")[2].splitlines() if row.startswith("| ")][1:]
CODE = PAGE.partition("## Code that sees hostile bytes")[2].partition("\n## ")[0]
NAMED = [name for row in ROWS for name in re.findall(r"`(\S+::\S+)`", row)]


def test_every_promise_has_a_test():
    assert len(ROWS) > 40
    assert [row for row in ROWS if "::" not in row] == []


@pytest.mark.parametrize("named", NAMED)
def test_it_is_there(named):
    path, name = named.split("::")
    text = (ROOT / path).read_text()
    keyword = "def" if path.endswith(".py") else "fn"
    assert re.search(rf"^ *{keyword} {name}\(", text, re.MULTILINE)


def test_every_fuzz_target_is_listed():
    targets = {path.stem for path in (ROOT / "fuzz" / "fuzz_targets").glob("*.rs")}
    fuzzed = re.findall(r"^\|.*\| (`.*)\|$", CODE, re.MULTILINE)
    assert targets == {name for row in fuzzed for name in re.findall(r"`(\w+)`", row.partition(":")[0])}
    assert targets == set(re.findall(r'name = "(\w+)"', (ROOT / "fuzz" / "Cargo.toml").read_text()))
