"""Runs `blkhash btrfs verify`."""

import json

from commands import blkhash


def verify(*args):
    """Returns the exit status, the errors and the summary of a verification."""
    result = blkhash("btrfs", "verify", "--json", *args)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    errors = [line for line in lines if line["type"] == "error"]
    summaries = [line for line in lines if line["type"] == "summary"]
    assert result.returncode == 2 or len(summaries) == 1, result
    return result.returncode, errors, summaries[0] if summaries else result.stderr.decode()


def assert_healthy(*paths):
    status, errors, summary = verify(*paths)
    assert (status, errors) == (0, []), (status, errors[:3], summary)
    assert summary["compared"]
    return summary
