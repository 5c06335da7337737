"""Which files are hashed: folders, patterns, lists of names."""

import os
import subprocess

import pytest

import images


@pytest.fixture(scope="module")
def qcow2(tmp_path_factory):
    path = tmp_path_factory.mktemp("qcow2") / "disk.qcow2"
    return images.create(path, 512).read_bytes()


@pytest.fixture
def tree(workdir, qcow2):
    for path in ("a.img", "b.qcow2", "key.pem", "x/c.img", "x/old/d.img", "x/SUMS", "tmp/e.img"):
        (workdir / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (workdir / "tree" / path).write_bytes(qcow2 if path == "b.qcow2" else b"\0" * 512)
    return workdir


def names(result):
    return [line.split("  ", 1)[1] for line in result.stdout.decode().splitlines()]


@pytest.mark.parametrize(
    "args, expected",
    [
        ([], "a.img b.qcow2 key.pem tmp/e.img x/SUMS x/c.img x/old/d.img"),
        (["--include", "*.img"], "a.img tmp/e.img x/c.img x/old/d.img"),
        (["--include=*.img", "--include=*.qcow2"], "a.img b.qcow2 tmp/e.img x/c.img x/old/d.img"),
        (["--include", "*.{img,qcow2}", "--exclude", "tmp"], "a.img b.qcow2 x/c.img x/old/d.img"),
        (["--exclude", "*.img"], "b.qcow2 key.pem x/SUMS"),
        (["--include", "*.img", "--exclude", "x/old"], "a.img tmp/e.img x/c.img"),
        (["--include", "x/*"], "x/SUMS x/c.img"),
        (["--include", "x/**"], "x/SUMS x/c.img x/old/d.img"),
        (["--include", "/*.img"], "a.img"),
        (["--include", "*.img", "--exclude", "x/"], "a.img tmp/e.img"),
        (["--include", "*.img", "--exclude", "tree/x"], "a.img tmp/e.img"),
        (["--include", "tree/x/*"], "x/SUMS x/c.img"),
        (["--include", "[ab].*"], "a.img b.qcow2"),
    ],
)
def test_patterns(blksum, tree, args, expected):
    for folder in ("tree", "tree/"):
        result = blksum("-r", "-f", "raw", *args, folder)
        prefix = folder.rstrip("/")
        assert names(result) == [f"{prefix}/{name}" for name in expected.split()], result
        assert (result.returncode, result.stderr) == (0, b"")


def test_patterns_do_not_apply_to_operands(blksum, tree):
    result = blksum("-r", "--include", "*.none", "tree/a.img")
    assert names(result) == ["tree/a.img"]


def test_nothing_to_hash_is_said(blksum, tree):
    result = blksum("-r", "--include", "*.none", "tree")
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr == b"blksum: tree: note: no file to hash here\n"
    assert blksum("-r", "-q", "--include", "*.none", "tree").stderr == b""


def test_symbolic_links_are_said(blksum, tree):
    os.mkdir("links")
    os.symlink("../tree/a.img", "links/a")
    result = blksum("-r", "links")
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr == b"blksum: links: note: a symbolic link was not followed\n"
    os.symlink("../tree", "links/b")
    (tree / "links/file").write_bytes(b"")
    result = blksum("-r", "links")
    assert names(result) == ["links/file"]
    assert result.stderr == b"blksum: links: note: 2 symbolic links were not followed\n"
    assert blksum("-r", "-q", "links").stderr == b""
    # As an operand a link is followed, as by other commands.
    assert names(blksum("-r", "links/b"))[0] == "links/b/a.img"
    assert names(blksum("-r", "links/a")) == ["links/a"]


def test_lists_of_names(blksum, tree):
    everything = [os.path.join(folder, file) for folder, _, files in os.walk("tree") for file in files]
    (tree / "tree/new\nline").write_bytes(b"\0" * 512)
    everything.append("tree/new\nline")
    content = "\0".join(everything).encode()
    expected = blksum(*everything)
    for list_, end in ((content, "no end"), (content + b"\0", "an end")):
        (tree / "list").write_bytes(list_)
        result = blksum("--files0-from", "list")
        assert (result.returncode, result.stdout) == (0, expected.stdout), end
        result = blksum("--files0-from=-", input=list_)
        assert (result.returncode, result.stdout) == (0, expected.stdout), end
    # Folders in it are walked as operands are.
    (tree / "list").write_bytes(b"tree/x\0tree/a.img")
    result = blksum("-r", "--include=*.img", "--files0-from", "list")
    assert names(result) == ["tree/x/c.img", "tree/x/old/d.img", "tree/a.img"]


def test_lists_of_check_files(blksum, tree):
    for number, name in enumerate(("tree/a.img", "tree/b.qcow2")):
        (tree / f"SUMS{number}").write_bytes(blksum("--tag", name).stdout)
    (tree / "list").write_bytes(b"SUMS0\0SUMS1\0")
    result = blksum("-c", "--files0-from", "list")
    assert (result.returncode, result.stdout) == (0, b"tree/a.img: OK\ntree/b.qcow2: OK\n")


def test_several_lists(blksum, tree):
    (tree / "one").write_bytes(b"tree/a.img")
    (tree / "two").write_bytes(b"tree/b.qcow2\0tree/x/c.img\0")
    result = blksum("--files0-from", "one", "--files0-from", "two")
    assert names(result) == ["tree/a.img", "tree/b.qcow2", "tree/x/c.img"]


def test_standard_input_is_the_list_and_no_image(blksum, tree):
    (tree / "SUMS").write_bytes(blksum("--tag", input=b"").stdout)
    result = blksum("-c", "--files0-from=-", input=b"SUMS")
    assert (result.returncode, result.stdout) == (1, b"-: FAILED open or read\n")
    assert b"standard input is the list of names" in result.stderr


def test_an_empty_list(blksum, tree):
    for args in (["--files0-from", os.devnull], ["--files0-from=-"]):
        result = blksum(*args)
        assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "content, words",
    [
        (b"a\0\0b", "--files0-from: list: name 2 is empty"),
        (b"\0", "--files0-from: list: name 1 is empty"),
        (None, "--files0-from: list: No such file or directory"),
    ],
)
def test_wrong_lists(blksum, tree, content, words):
    if content is not None:
        (tree / "list").write_bytes(content)
    result = blksum("--files0-from", "list")
    assert (result.returncode, result.stdout) == (2, b"")
    assert words in result.stderr.decode()


def test_lists_and_other_names(blksum, tree):
    (tree / "list").write_bytes(b"tree/a.img")
    result = blksum("--files0-from", "list", "tree/b.qcow2")
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"tree/b.qcow2: --files0-from takes no other names" in result.stderr
    result = blksum("--files0-from=-", input=b"-")
    assert result.returncode == 2 and b"name 1 is -, and standard input is the list" in result.stderr


def test_lists_open_no_pipe(blksum, tree):
    """A name in a list may come from anywhere: a FIFO would be waited for."""
    os.mkfifo("fifo")
    (tree / "list").write_bytes(b"fifo\0tree/a.img")
    result = blksum("--files0-from", "list", timeout=60)
    assert result.returncode == 1 and names(result) == ["tree/a.img"]
    assert b"fifo" in result.stderr


def test_a_list_of_too_many_names(blksum, tree):
    """Each name takes more memory than its bytes."""
    (tree / "list").write_bytes(b"a\0" * 4_000_001)
    result = blksum("--files0-from", "list")
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"list: has more than 4000000 names: split it" in result.stderr


def test_what_is_no_image_in_a_folder_is_left_out(blksum, tree):
    """Block maps, and the list that is being written, which no check could match."""
    program = blksum.path.replace("blksum", "blkhash")
    subprocess.run([program, "map", "create", "tree/a.img"], check=True, capture_output=True)
    with open("tree/SUMS", "wb") as kept:
        command = [blksum.path, "-r", "--tag", "tree"]
        result = subprocess.run(command, stdout=kept, stderr=subprocess.PIPE, check=True)
    listed = (tree / "tree/SUMS").read_bytes()
    assert b"(tree/SUMS)" not in listed and b"(tree/a.img.blkmap)" not in listed
    assert b"(tree/a.img)" in listed
    assert b"tree/SUMS: note: is where the checksums are written, and is left out" in result.stderr
    assert b"tree: note: a block map was left out" in result.stderr
    assert blksum("-c", "tree/SUMS").returncode == 0
    assert b"is a block map: blkhash map checksum tree/a.img.blkmap" in blksum("tree/a.img.blkmap").stderr
    assert b"blkmap" in blksum("-f", "raw", "tree/a.img.blkmap").stdout
