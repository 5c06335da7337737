"""blkhash bench: the order of rows, the answer in the last line, and the values of other programs."""

import json
import os
import re

import pytest

import images
from commands import HANG, blksum_path


def bench(*args, path=None):
    env = dict(os.environ, **({} if path is None else {"PATH": str(path)}))
    blkhash = str(blksum_path().with_name("blkhash"))
    return images.attempt(blkhash, "bench", "--time", "0.001", *args, env=env, timeout=HANG)


def test_sorted_rows_and_the_answer_in_the_last_lines():
    filters = [f"--filter={name}" for name in ("md5", "crc32c", "sha256", "xxh64")]
    result = bench(*filters)
    assert result.returncode == 0, result
    lines = result.stdout.decode().splitlines()
    rule = next(index for index, line in enumerate(lines) if line.startswith("----"))
    rows = [line.split() for line in lines[rule + 1 : lines.index("", rule)]]
    cycles = [float(row[1]) for row in rows]
    assert len(rows) >= 5 and cycles == sorted(cycles), lines
    # What is not known of the kernel has no answer.
    answers = r"files \w+, images \w+(, btrfs \w+)?"
    assert re.fullmatch(f"Against forgery: {answers}", lines[-2]), lines
    assert re.fullmatch(f"Fastest on this CPU: {answers}", lines[-1]), lines


def test_answers_are_the_fastest():
    result = bench("--json", "--filter", "sha256", "--filter", "crc32c")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    answers = {(it["use"], it["against"]): it for it in found if it["kind"] == "fastest"}
    assert answers["files", "forgery"]["algorithm"] == answers["images", "forgery"]["algorithm"] == "sha256"
    # One stream of sha256 is many times slower on every CPU.
    assert answers["files", "errors"]["algorithm"] == "crc32c"
    assert all(it["mib_per_second"] > 0 for it in answers.values())


def tools(*args, path=None):
    result = bench("--tools", "--json", *args, path=path)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return result, {it["tool"]: it for it in found if it["kind"] == "tool"}


@pytest.mark.slow
def test_values_of_installed_programs():
    result, found = tools()
    assert result.returncode == 0, result
    assert set(found) == {
        *["sha256sum", "openssl dgst -sha256", "sha1sum", "md5sum", "b2sum", "b3sum", "cksum", "xxhsum -H1"]
    }
    for name in ("sha256sum", "sha1sum", "md5sum", "b2sum", "b3sum", "cksum", "xxhsum -H1"):
        tool = found[name]
        assert tool["installed"] and tool["error"] is None, tool
        for field in ("memory", "file", "blksum_memory", "blksum_file"):
            assert tool[f"{field}_mib_per_second"] > 0, tool


def test_wrong_missing_and_failing_programs(workdir):
    for name, script in [("md5sum", "echo 0123 -"), ("sha1sum", "printf 'a\\033[2Jb'; exit 3")]:
        (workdir / name).write_text(f"#!/bin/sh\n{script}\n")
        (workdir / name).chmod(0o755)
    args = ["--filter", "md5", "--filter", "sha1", "--filter", "blake3"]
    result, found = tools(*args, path=workdir)
    message = result.stderr.decode()
    assert result.returncode == 1 and 'md5sum: gives "0123 -", not ' in message, result
    assert "sha1sum: exit status: 3" in message and "\033" not in message
    assert not found["b3sum"]["installed"] and found["b3sum"]["error"] is None
    assert "b3sum" not in message and found["md5sum"]["installed"]
    result = bench("--tools", *args, path=workdir)
    text = result.stdout.decode()
    assert "\nb3sum (not installed) " in text and "\nmd5sum (failed) " in text, text
    # The file of the data is gone.
    path = re.search(r"file: (\S+),", text)[1]
    assert not os.path.exists(path)
