"""The pages of the project fit together: their links, their lists of each other and of the tests."""

import re

import documents
from commands import ROOT


def test_the_readme_is_read_to_its_end():
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_every_page_is_in_the_list():
    """docs/README.md has all pages but single decisions, and each is in one of the folders for users, programmers and developers."""
    linked = set(re.findall(r"\]\((\w+/[\w-]+\.md)\)", (ROOT / "docs/README.md").read_text()))
    assert linked == {f"{path.parent.name}/{path.name}" for path in (ROOT / "docs").glob("*/*.md")}
    assert [path.name for path in (ROOT / "docs").glob("*.md")] == ["README.md"]


def test_every_file_of_the_tests_is_listed():
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "tests/README.md").read_text(), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+\.(?:py|sh))`", row)]
    files = {path.name for path in (ROOT / "tests").rglob("*") if path.suffix in (".py", ".sh")}
    assert sorted(listed) == sorted(files - {"conftest.py"})


def test_no_test_imports_another():
    for path in (ROOT / "tests").rglob("test_*.py"):
        imports = re.findall(r"^(?:import|from) (test_\w+)", path.read_text(), re.MULTILINE)
        assert imports in ([], [path.stem]), path


def test_every_page_is_in_the_site():
    summary = ROOT / "site/SUMMARY.md"
    linked = {(summary.parent / name).resolve() for name in re.findall(r"\]\(([^)]+)\)", summary.read_text())}
    assert set((ROOT / "docs").rglob("*.md")) <= linked


def anchors(text):
    """The anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_headings():
    for path in documents.markdown():
        for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
            if not link.startswith("https://"):
                name, _, anchor = link.partition("#")
                target = path.parent / name if name else path
                assert target.exists(), (path, link)
                assert not anchor or anchor in anchors(target.read_text()), (path, link)


def programs():
    return re.search(r"^PROGRAMS = (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()


def test_pages_know_how_many_commands_there_are():
    number = {3: "three"}[len(programs())]
    for path in documents.markdown():
        for found in re.findall(r"\b(both|two|three|four) (?:commands|programs) (?:and|on|for|of this)\b", path.read_text()):
            assert found == number, (path, found)


def test_what_lists_the_commands_has_all():
    """Sentences that name two commands with `and` name the third as well."""
    for path in documents.markdown():
        if path.name != "CHANGELOG.md":
            assert "commands `blksum` and `blkhash`" not in path.read_text(), path
    for name in ("README.md", "docs/use/alternatives.md", "docs/use/platforms.md", "docs/reference/json.md", "SECURITY.md", "crates/cli/README.md"):
        text = (ROOT / name).read_text()
        assert all(re.search(rf"`{it}\b", text) for it in programs()), name


def test_every_crate_has_a_place():
    """ARCHITECTURE.md says what a crate knows, stability.md whether its items stay."""
    rows = re.findall(r"^\| \[`([\w-]+)`\]\((?:crates/[\w-]+|python)\)", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    stability = (ROOT / "docs/reference/stability.md").read_text()
    manifests = sorted((ROOT / "crates").glob("*/Cargo.toml"))
    names = [re.search(r'^name = "(.*)"$', it.read_text(), re.MULTILINE)[1] for it in manifests]
    folders = [it.parent.name for it in manifests]
    assert len(rows) == len(set(rows)) == len(names) + 1  # and the Python package
    for name, folder in zip(names, folders):
        assert name in rows or folder in rows, name
        assert name.endswith(("-capi", "-cli")) or f"`{name}`" in stability, name


def test_every_decision_has_a_row_of_files_that_are_there():
    text = (ROOT / "docs/inside/decisions/README.md").read_text()
    rows = re.findall(r"^\| \[.*?\]\(([\w-]+\.md)\) \| (.*) \|$", text, re.MULTILINE)
    assert sorted(page for page, _ in rows) == sorted(it.name for it in (ROOT / "docs/inside/decisions").glob("*.md") if it.name != "README.md")
    for page, files in rows:
        folder = None
        for file in re.findall(r"`([^`]+)`", files):
            path = ROOT / file if "/" in file else folder / file
            assert path.exists(), (page, file)
            folder = path.parent


def test_figures_are_not_those_of_versions_before_the_first_release():
    for path in (ROOT / "docs").rglob("*.md"):
        assert "0.1.0" not in path.read_text(), path
