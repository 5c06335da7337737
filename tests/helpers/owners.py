"""What blkhash says of file systems in images: the owner of each byte, and which checksums do not match."""

import dataclasses
import json
import subprocess

from commands import HANG, blksum_path

PARTIAL = "parts of it could not be read"


@dataclasses.dataclass(frozen=True)
class Extent:
    offset: int
    length: int
    # `file`, `directory`, `journal`, `free`, or the name of another structure.
    kind: str
    object: int | None
    # Offset within the file.
    start: int | None
    paths: tuple[bytes, ...]


@dataclasses.dataclass(frozen=True)
class Listing:
    remarks: list[str]
    is_partial: bool
    extents: list[Extent]


def attempt(verb, image):
    """Runs the program, whatever its status."""
    args = [program(), verb, "-f", "raw", "--json", str(image)]
    return subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG)


def listing(image):
    """Returns the owners of all bytes by offset, without those that are not known."""
    result = attempt("owners", image)
    assert result.returncode == 0, result
    extents = [extent(json.loads(line)) for line in result.stdout.splitlines()]
    remarks = [line.split("note: ", 1)[1] for line in result.stderr.decode().splitlines()]
    is_partial = any(PARTIAL in remark for remark in remarks)
    remarks = [remark for remark in remarks if PARTIAL not in remark]
    return Listing(remarks, is_partial, [it for it in extents if it.kind != "unknown"])


def extent(it):
    kind = it["structure"] or it["kind"]
    paths = [bytes.fromhex(name["name_bytes"]) if "name_bytes" in name else name["name"].encode() for name in it["names"]]
    paths = tuple(path if path.startswith(b"/") else b"/" + path for path in paths)
    return Extent(it["offset"], it["length"], kind, it["object"], it["file_offset"], paths)


def check(image):
    """Returns whether all checksums match, and what was printed."""
    result = attempt("check", image)
    assert result.returncode in (0, 1, 2) and not result.stderr, result
    return result.returncode == 0, result.stdout.decode()


def program():
    """Returns the command that is tested."""
    return str(blksum_path().with_name("blkhash"))
