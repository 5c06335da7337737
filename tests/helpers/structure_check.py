"""Checks of the structure of images, by the program under test and by qemu-img."""

import json
import subprocess

from commands import HANG, blksum_path

# What qemu-img check does not look at.
NOT_OF_QEMU = ("zero flag in an image of version 2", "in the external data file is not the guest offset")

# Virtual memory that a check of a small image may take, in KiB.
MEMORY = 512 << 10


def check(path):
    """Returns the exit status, the findings and the summary. The summary is the message if the image is refused."""
    command = [str(blksum_path().with_name("blkhash")), "check", "--json", "--max-errors=0", "-f", "qcow2", str(path)]
    limited = ["sh", "-c", f'ulimit -v {MEMORY}; exec "$0" "$@"', *command]
    result = subprocess.run(limited, capture_output=True, stdin=subprocess.DEVNULL, timeout=HANG)
    assert result.returncode in (0, 1, 2) and b"panicked" not in result.stderr, result
    lines = [line for line in map(json.loads, result.stdout.splitlines()) if line.get("place") == "image"]
    if not lines:
        return 2, [], result.stderr.decode()
    *findings, layer = lines
    summary = {
        "errors": layer["damaged"],
        "outdated": layer["outdated"],
        "leaks": layer["leaks"],
        "unchecked": layer["unreadable"] + layer["skipped"],
        "complete": not any("leaks were not looked for" in remark for remark in layer["remarks"]),
        "dirty": any("was not closed" in remark for remark in layer["remarks"]),
    }
    return int(layer["damaged"] > 0), findings, summary


def counts(findings, summary):
    """Returns the numbers of errors and leaks that qemu-img check would count."""
    more = sum(it["count"] for it in findings if any(text in it["reason"] for text in NOT_OF_QEMU))
    return summary["errors"] + summary["outdated"] - more, summary["leaks"]


def qemu_counts(path, *options):
    """Returns the numbers of errors and leaks that qemu-img check counts, or None if it does not come to its end."""
    image = options or ("-f", "qcow2", str(path))
    args = ["qemu-img", "check", "--output=json", *image]
    result = subprocess.run(args, capture_output=True, stdin=subprocess.DEVNULL, timeout=HANG, cwd=path.parent)
    try:
        found = json.loads(result.stdout)
    except ValueError:
        return None
    return found.get("corruptions", 0), found.get("leaks", 0)
