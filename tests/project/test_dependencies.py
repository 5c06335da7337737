"""docs/inside/dependencies.md matches Cargo.lock, and deny.toml has a reason for each crate with two versions."""

import importlib.machinery
import importlib.util
import re
import tomllib

import pytest

from commands import ROOT


@pytest.fixture(scope="module")
def dependencies():
    """scripts/dependencies as a module."""
    loader = importlib.machinery.SourceFileLoader("dependencies", str(ROOT / "scripts/dependencies"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("dependencies", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def page(dependencies, tmp_path, monkeypatch):
    """A copy of the page."""
    copy = tmp_path / "dependencies.md"
    copy.write_text(dependencies.PAGE.read_text())
    monkeypatch.setattr(dependencies, "PAGE", copy)
    monkeypatch.setattr(dependencies.sys, "argv", ["dependencies", "--check"])
    return copy


def test_the_page_is_up_to_date(dependencies, page):
    assert dependencies.main() == 0


@pytest.mark.parametrize(
    ("found", "instead", "said"),
    [
        (r"^\| `landlock` .*\n", "", "`landlock`"),
        (r"^\| `memchr` .*\n", "", "`memchr`"),
        (r"^(\| `rustix` .* \| )\d+( \|)", r"\g<1>1\2", "`rustix`"),
        (r"^(\| `hmac` \| [^|]* \| )[^|]*\|", r"\1GPL-2.0 |", "`hmac`"),
        (r"^(\| `zstd-safe` .*) \| [^|]*\|$", r"\1 | ? |", "`zstd-safe`"),
        (r"(?=^\| `landlock` )", "| `leftpad` | commands | MIT | none | x | padding | keep |\n", "out of date"),
    ],
)
def test_what_is_wrong_is_found(dependencies, page, capsys, found, instead, said):
    text, count = re.subn(found, instead, page.read_text(), count=1, flags=re.MULTILINE)
    assert count == 1
    page.write_text(text)
    assert dependencies.main() == 1 and said in capsys.readouterr().err


def test_every_duplicate_has_a_reason():
    """The versions that deny.toml excuses are all but the newest one of the crates that have several."""
    versions = {}
    for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]:
        versions.setdefault(package["name"], []).append(tuple(map(int, re.findall(r"\d+", package["version"])[:2])))
    older = {(name, version) for name, found in versions.items() for version in sorted(found)[:-1]}
    skips = tomllib.loads((ROOT / "deny.toml").read_text())["bans"]["skip"]
    assert all(len(skip["reason"]) > 10 for skip in skips)
    excused = [skip["crate"].partition("@")[::2] for skip in skips]
    excused = {(name, tuple(map(int, version.split(".")))) for name, version in excused}
    assert {(name, version[: 1 + (version[0] == 0)]) for name, version in older} == excused
