"""Many images in one run. Lines, messages and status are as in one run for each, in that order."""

import json
import os
import random
import resource
import shutil
import subprocess

import pytest

import blkhash
import images
import imagespec

# One thread processes one image after the other.
THREADS = ["1", "2", "8"]

SEED = 20241122

COUNT = 500

# Content by the first part of a name. The odd ones get a note.
SPECS = {
    "small": "64k:A 32k:0 32k:B",
    "odd": "1000:A",
    "empty": "",
    "sparse": "1k:A 8m:-",
    "large": "3m:A 1m:0 100k:B",
    "edge": "1m:C",
    "beyond": "1m:C 1:D",
}

# Kinds of names, and how often they occur.
WEIGHTS = {
    "small": 60, "odd": 10, "missing": 8, "edge": 4, "beyond": 2, "large": 2, "empty": 2,
    "sparse": 2, "qcow2": 2, "broken": 2, "unreadable": 2, "folder": 1, "pipe": 1, "-": 1, "linked": 1,
}  # fmt: skip


@pytest.fixture
def mixed(workdir):
    """Creates each kind of name in the current folder, except missing ones."""
    for kind, spec in SPECS.items():
        imagespec.write(spec, kind)
    images.convert("small", "qcow2")
    images.create("broken", "1M", "-u", "-b", "nowhere", "-F", "raw")
    os.mkdir("folder")
    os.symlink("circle", "circle")
    os.symlink("small", "linked")
    return workdir


def name_of(kind, index):
    """Returns a name of a kind. Some names are repeated."""
    match kind:
        case "unreadable":
            return "circle"
        case "pipe":
            return "/dev/null"
        case "small" if index % 3:
            name = f"small {index}"
            os.link("small", name)
            return name
        case "missing":
            return f"missing{index % 5}"
    return kind


@pytest.fixture
def names(mixed):
    choice = random.Random(SEED)
    kinds = choice.choices(list(WEIGHTS), list(WEIGHTS.values()), k=COUNT)
    assert set(kinds) == set(WEIGHTS)
    return [name_of(kind, index) for index, kind in enumerate(kinds)]


def run(blksum, *args):
    """Runs once with both outputs combined, to show their order, and once with separate outputs.

    Without notes, which are printed once in a run.
    """
    if "--check" not in args:
        args = ("-q", *args)
    with open("small", "rb") as stdin:
        both = subprocess.run(
            [blksum.path, *args], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    with open("small", "rb") as stdin:
        result = blksum(*args, stdin=stdin)
    assert result.returncode == both.returncode
    return both.stdout, result.stdout, result.stderr, result.returncode


def one_by_one(blksum, names, *args):
    """Returns the combined results of one run for each name."""
    known = {name: run(blksum, *args, name) for name in dict.fromkeys(names)}
    results = [known[name] for name in names]
    outputs = [b"".join(result[index] for result in results) for index in range(3)]
    return *outputs, max(result[3] for result in results)


@pytest.mark.slow
@pytest.mark.parametrize("args", [(), ("--tag", "-d", "blake3"), ("-z", "--holes", "ignore")])
def test_mixed(blksum, names, args):
    expected = one_by_one(blksum, names, *args)
    assert expected[3] == 1 and expected[2]
    for threads in THREADS:
        assert run(blksum, "--threads", threads, *args, *names) == expected, threads


def test_values(blksum, mixed):
    """Both ways could be wrong together, so compare with the reference."""
    names = [kind for kind in SPECS for _ in range(20)]
    random.Random(SEED).shuffle(names)
    values = {kind: blkhash.checksum(imagespec.chunks(spec)).hex() for kind, spec in SPECS.items()}
    expected = "".join(f"{values[name]}  {name}\n" for name in names).encode()
    for threads in THREADS:
        result = blksum("--threads", threads, *names)
        assert (result.returncode, result.stdout) == (0, expected)


def test_json(blksum, names):
    def objects(threads):
        lines = run(blksum, "--json", "--threads", threads, *names)[1].splitlines()
        return [{**json.loads(line), "seconds": None} for line in lines]

    expected = objects("1")
    assert len(expected) == COUNT
    assert [item["name"] for item in expected] == names
    for threads in THREADS[1:]:
        assert objects(threads) == expected


@pytest.mark.slow
@pytest.mark.parametrize("args", [(), ("-d", "xxh3")])
def test_folder(blksum, mixed, args):
    """In the order of names in folders, like the output of `find` sorted by path components."""
    for index in range(300):
        folder = f"tree/{index % 7}/{index % 11}"
        os.makedirs(folder, exist_ok=True)
        kind = ["small", "odd", "small", "large", "qcow2"][index % 5]
        shutil.copy(kind, f"{folder}/{index}")
    os.symlink("small", "tree/0/linked")
    files = subprocess.run(["find", "tree", "-type", "f"], stdout=subprocess.PIPE, check=True)
    names = sorted(files.stdout.split(), key=lambda name: name.split(b"/"))
    assert len(names) == 300
    expected = one_by_one(blksum, names, *args)
    for threads in THREADS:
        assert run(blksum, "-r", "--threads", threads, *args, "tree") == expected, threads


@pytest.fixture
def listed(blksum, names):
    """Creates check files that list all names, with and without tags, right and wrong, among other lines.

    Returns their names, and the expected output for all images.
    """
    digests = {name: blksum(name, stdin=subprocess.DEVNULL).stdout[:64] for name in set(names)}
    with open("small", "rb") as stdin:
        digests["-"] = blksum("-", stdin=stdin).stdout[:64]
    # Read as a pipe, and only if the command line names it.
    digests["/dev/null"] = b""
    tag = blksum("--tag", "small").stdout.split(b" (")[0]
    lines, said = [], []
    for index, name in enumerate(names):
        digest, name = digests[name] or digests["small"], name.encode()
        status = b"OK" if digests[names[index]] else b"FAILED open or read"
        if index % 10 == 1:
            digest = b"0" * 64
            status = b"FAILED" if status == b"OK" else status
        said.append(name + b": " + status + b"\n")
        if index % 3 == 0:
            lines.append(tag + b" (" + name + b") = " + digest + b"\n")
        else:
            lines.append(digest + b"  " + name + b"\n")
        lines += [b"# comment\n"] * (index % 40 == 2) + [b"nonsense\n"] * (index % 50 == 3)
    half = len(lines) // 2
    for name, part in [("sums1", lines[:half]), ("sums2", lines[half:])]:
        with open(name, "wb") as file:
            file.writelines(part)
    return ["sums1", "gone", "sums2", "empty", "small"], b"".join(said)


CHECK_OPTIONS = [
    (), ("--quiet",), ("--status",), ("--ignore-missing",), ("--warn", "--strict"),
    ("--ignore-missing", "--quiet"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("options", CHECK_OPTIONS)
def test_check(blksum, listed, options):
    files, said = listed
    expected = run(blksum, "--check", "--threads", "1", *options, *files)
    assert expected[3] == 1
    if not options:
        assert expected[1] == said
    for threads in THREADS[1:]:
        assert run(blksum, "--check", "--threads", threads, *options, *files) == expected


@pytest.mark.slow
def test_check_json(blksum, listed):
    def objects(threads):
        output = run(blksum, "--check", "--json", "--threads", threads, *listed[0])[1]
        return [{**json.loads(line), "seconds": None} for line in output.splitlines()]

    expected = objects("1")
    assert len(expected) == COUNT
    for threads in THREADS[1:]:
        assert objects(threads) == expected


def test_check_file_that_grows(blksum, mixed):
    """Each line is answered before the next one is written."""
    line = blksum("small").stdout
    process = blksum.start("--check", "--threads", "8", stdin=subprocess.PIPE)
    for _ in range(20):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == b"small: OK\n"
    assert process.communicate() == (b"", b"")
    assert process.returncode == 0


def test_output_among_the_images(blksum, mixed):
    """No check could match the output file, so it is left out."""
    os.mkdir("tree")
    for index in range(200):
        os.link("small", f"tree/{index:03}")

    def sums(threads):
        with open("tree/100sums", "wb") as file:
            args = ["-r", "--threads", threads, "tree"]
            subprocess.run([blksum.path, *args], stdout=file, check=True)
        with open("tree/100sums", "rb") as file:
            return file.read()

    expected = sums("1")
    assert expected.count(b"\n") == 200
    for threads in THREADS[1:]:
        assert sums(threads) == expected


def test_closed_pipe(blksum, mixed):
    with blksum.start("--threads", "8", *["small"] * COUNT) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_few_descriptors(blksum, mixed):
    """Too few descriptors for all threads. A thread without one waits for its turn."""
    names = ["small", "odd", "qcow2", "missing"] * 100
    expected = run(blksum, "--threads", "1", *names)

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))

    for threads in ["8", "64"]:
        result = blksum("-q", "--threads", threads, *names, preexec_fn=limit)
        assert (result.stdout, result.stderr, result.returncode) == expected[1:]
