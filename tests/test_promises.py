"""Every test that docs/security.md names for a promise exists."""

import re

import pytest

from conftest import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()
ROWS = [row for row in PAGE.partition("## Promises and their tests")[2].splitlines() if row.startswith("| ")][1:]
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
