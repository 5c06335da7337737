"""The tables of docs/reference/json.md, and the commands that print what they describe."""

import pathlib
import re
from typing import NamedTuple

TEXT = (pathlib.Path(__file__).resolve().parents[2] / "docs/reference/json.md").read_text()

# The key that an object is distinguished by from others of the same command, and the table for each of its values: ...
# is any other value, and None is no such key. Where there is one table, it is a name.
DESCRIBED_BY = {
    "blksum --json": ("error", {None: "checksum", ...: "no checksum"}),
    "blksum --check --json": ("error", {None: "checksum", ...: "no checksum"}),
    "blksum --expect --json": ("error", {None: "verdict", ...: "no checksum"}),
    "blkhash algorithms --json": "algorithm",
    "blkhash bench --json": ("kind", {it: it for it in ["run", "row", "tool", "fastest"]}),
    "blkhash bench --quality --json": "quality",
    "blkhash bench image --json": ("digest", {None: "measured image", ...: "measured digest"}),
    "blkhash info --json": "image",
    "blkhash owners --json": "owned extent",
    "blkhash check --json": (
        "type",
        {"finding": "check finding", "layer": "layer", "summary": "check summary", "error": "check error"},
    ),
    "blkhash btrfs verify --json": ("type", {"error": "finding", "summary": "verification"}),
    "blkhash btrfs info --json": ("fsid", {None: "kernel", ...: "file system"}),
    "blkhash btrfs algorithms --json": "btrfs checksum",
    "blkhash map show --json": ("type", {"map": "map", "commit": "commit", "run": "pages"}),
    "blkhash map history --json": "state",
    "blkhash map verify --json": ("type", {"range": "difference", "summary": "comparison"}),
    "blkhash map diff --json": ("type", {"range": "difference", "summary": "comparison"}),
    "blkhash map update --json": "update",
    "blkhash map audit --json": ("type", {"range": "difference", "summary": "audit"}),
    "blkhash map changes --json": "extent",
    "blkhash map bitmaps --json": "bitmap",
    "blkhash map dups --json": "repeated blocks",
    "blkhash verity digest --json": "verity digest",
    "blkhash verity format --json": "hash file",
    "blkhash verity verify --json": ("type", {"error": "verity error", "summary": "verity summary"}),
    "blkcopy --json": ("error", {None: "copy", ...: "failed copy"}),
}


class Field(NamedTuple):
    """A row of a table of fields."""

    types: list
    may_be_absent: bool
    # The table that describes the objects in it, if that is another one.
    link: str


def table(text):
    """The fields of a table, by name."""
    fields = {}
    for line in text.strip().splitlines()[2:]:
        name, types, meaning, absent = [cell.strip() for cell in line.strip("|").split("|")]
        name = name.strip("`")
        assert meaning and name not in fields, line
        types = types.split(" or ")
        link = re.search(r"; see \[(.*)\]", meaning)
        fields[name] = Field(types, bool(absent), link and LINKS[link[1]])
    return fields


# The tables that have headings of their own.
LINKS = {"Names": "names", "Sizes of vpc images": "vpc sizes", "Chains": "chain", "Spreads": "spread", "Owners": "owner", "Objects on servers": "object on a server"}

TABLES = {
    name: table(text)
    for name, text in re.findall(r"<!-- ([a-z ]+): generated -->\n(.*?)<!-- end of \1 -->", TEXT, re.DOTALL)
}


def tables_of(command):
    """The names of the tables of all objects of a command."""
    described = DESCRIBED_BY[command]
    return [described] if isinstance(described, str) else described[1].values()
