"""The pages of the project fit together: their links, their lists of each other and of the tests."""

import re

import documents
from conftest import ROOT


def test_the_readme_is_read_to_its_end():
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_every_page_is_in_the_list():
    """docs/README.md has all pages that are there for users."""
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs/README.md").read_text()))
    assert linked == {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}


def test_every_file_of_the_tests_is_listed():
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "tests/README.md").read_text(), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+\.(?:py|sh))`", row)]
    files = [path.name for path in (ROOT / "tests").iterdir() if path.suffix in (".py", ".sh")]
    assert sorted(listed) == sorted(files)


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
