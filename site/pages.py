"""Copies the pages of the repository into a book, and mends the links that lead out of it."""

import os
import re

REPOSITORY = "https://github.com/blkhash/blkhash"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def assemble(root, book):
    """Writes the pages that site/SUMMARY.md lists, at the same paths below `book`."""
    summary = root / "site/SUMMARY.md"
    text = summary.read_text()
    pages = {(summary.parent / name).resolve() for _, name, _ in LINK.findall(text)}
    for page in pages:
        write(book / page.relative_to(root), rewritten(page, root, pages))
    # The links of the summary start at the folder of the book.
    write(book / "SUMMARY.md", LINK.sub(lambda it: f"]({os.path.relpath(summary.parent / it[2], root)})", text))


def rewritten(page, root, pages):
    """Returns the text of a page. Links to files that are no pages lead to the repository."""

    def mended(match):
        name, hash_sign, anchor = match[2].partition("#")
        if not name or "://" in name:
            return match[0]
        target = (page.parent / name).resolve()
        if not target.exists():
            raise FileNotFoundError(f"{page}: {match[2]}")
        if target.is_dir() and target / "README.md" in pages:
            target /= "README.md"
        if target in pages:
            # mdBook calls these pages index.html.
            name = re.sub(r"README\.md$", "index.md", os.path.relpath(target, page.parent))
        else:
            kind = "tree" if target.is_dir() else "blob"
            name = f"{REPOSITORY}/{kind}/main/{target.relative_to(root)}"
        return f"]({name}{hash_sign}{anchor})"

    parts = CODE.split(page.read_text())
    return "".join(part if part.startswith("```") else LINK.sub(mended, part) for part in parts)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
