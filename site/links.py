"""Checks the links of built pages: each leads to a file, and each anchor to an element with this id."""

import html.parser
import urllib.parse

OUTSIDE = ("https://", "http://", "mailto:", "data:", "javascript:")


class Page(html.parser.HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        self.links += [values[name] for name in ("href", "src") if values.get(name)]


def broken(root):
    """Yields a message for each link below `root` that leads nowhere."""
    pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links:
            if link.startswith(OUTSIDE):
                continue
            name, _, anchor = link.partition("#")
            target = path.parent / urllib.parse.unquote(name.partition("?")[0]) if name else path
            target = target.resolve()
            if target.is_dir():
                target /= "index.html"
            where = f"{path.relative_to(root)}: {link}"
            if not target.exists():
                yield f"{where}: no such file"
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].ids:
                yield f"{where}: no such anchor"
