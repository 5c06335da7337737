"""Trees of fs-verity and dm-verity, compared with fsverity-utils and veritysetup.

Random cases have fixed seeds, which pytest shows with a failure. Sizes are around those at which a tree gets
another block or another level.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess

import pytest

import images
import imagespec
import servers
from commands import HANG, ROOT, blkhash, blksum_path, mostly_slow

MIB = 1 << 20
UUID = "01234567-89ab-cdef-0123-456789abcdef"
SUPERBLOCK = 512

# Names of veritysetup, and of blksum.
DIGESTS = {
    "md5": "md5",
    "sha1": "sha1",
    "sha224": "sha224",
    "sha256": "sha256",
    "sha384": "sha384",
    "sha512": "sha512",
    "sha512-224": "sha512-224",
    "sha512-256": "sha512-256",
    "sha3-224": "sha3-224",
    "sha3-256": "sha3-256",
    "sha3-384": "sha3-384",
    "sha3-512": "sha3-512",
    "blake2b-256": "blake2b256",
    "blake2b-512": "blake2b512",
    "blake2s-256": "blake2s256",
    "blake3": "blake3",
}

# The backend of veritysetup on Debian 12 is OpenSSL. These do not depend on it.
IN_EVERY_BACKEND = {"sha1", "sha224", "sha256", "sha384", "sha512"}


def verity(*args, **kwargs):
    """Runs blkhash verity, which must succeed. Returns its output."""
    result = blkhash("verity", *args, **kwargs)
    return images.succeeded(args, result)


def fsverity(*args, **kwargs):
    return images.run("fsverity", "digest", *map(str, args), **kwargs)


def veritysetup(*args, **kwargs):
    return images.attempt("veritysetup", *map(str, args), **kwargs)


def digest_size(digest):
    """Returns the length of a digest in bytes, by its name in veritysetup."""
    known = {"md5": 16, "sha1": 20, "blake3": 32}
    return known.get(digest) or int(digest.rsplit("-", 1)[-1].removeprefix("sha")) // 8


@pytest.fixture(scope="module")
def digests(tmp_path_factory):
    """The digests that veritysetup has, too."""
    folder = tmp_path_factory.mktemp("digests")
    (folder / "data").write_bytes(bytes(8192))
    found = []
    for name in DIGESTS:
        result = veritysetup("format", "--hash", name, "data", f"hash.{name}", cwd=folder)
        assert result.returncode == 0 or b"not supported" in result.stderr, (name, result)
        if result.returncode == 0:
            found.append(name)
    print("digests of veritysetup:", *found)
    assert IN_EVERY_BACKEND <= set(found)
    return found


# Random cases


@dataclasses.dataclass
class Tree:
    """Parameters of a tree, and where its blocks are."""

    blocks: int
    data_block: int = 4096
    hash_block: int = 4096
    digest: str = "sha256"
    salt: bytes = dataclasses.field(default=b"", repr=False)
    offset: int = 0
    has_superblock: bool = True

    def options(self):
        """Returns the options for making the tree."""
        return [*(["--uuid", UUID] if self.has_superblock else []), *self.bare_options()]

    def bare_options(self):
        """Returns the options that describe the tree without a superblock."""
        sizes = ["--data-block-size", self.data_block, "--hash-block-size", self.hash_block]
        options = [*sizes, "--hash", self.digest, "--data-blocks", self.blocks]
        options += ["--salt", self.salt.hex() or "-", *self.offset_options()]
        return options if self.has_superblock else ["--no-superblock", *options]

    def verify_options(self):
        return self.offset_options() if self.has_superblock else self.bare_options()

    def offset_options(self):
        return ["--hash-offset", self.offset] if self.offset else []

    @property
    def data_length(self):
        return self.blocks * self.data_block

    @property
    def arity(self):
        return arity(self.hash_block, self.digest)

    @property
    def start(self):
        start = self.offset + SUPERBLOCK * self.has_superblock
        return start + -start % self.hash_block

    @property
    def levels(self):
        """The number of blocks of each level, the lowest first."""
        levels, count = [], self.blocks
        while count > 1:
            count = -(-count // self.arity)
            levels.append(count)
        return levels

    def offset_of(self, level, index):
        return self.start + (sum(self.levels[level + 1 :]) + index) * self.hash_block

    def tree_blocks(self):
        return [(level, index) for level, n in enumerate(self.levels) for index in range(n)]

    def data_below(self, level, index):
        span = self.arity ** (level + 1)
        return range(index * span, min((index + 1) * span, self.blocks))


def arity(block_size, digest):
    return block_size // (1 << (digest_size(digest) - 1).bit_length())


def block_count(rng, arity, limit):
    """Returns a number of blocks around which a tree changes its shape."""
    around = [0, 1, 2, 3, arity, arity * arity, arity**3]
    fitting = [count for count in around if count <= limit]
    # The largest ones are the most interesting.
    count = rng.choice(fitting[-2:] if rng.random() < 0.6 else fitting)
    return min(limit, max(0, count + rng.choice([-1, 0, 1, rng.randrange(-3, arity)])))


def write_data(rng, path, size):
    """Writes holes, random bytes and blocks that repeat."""
    with open(path, "wb") as file:
        file.truncate(size)
        if size <= MIB and rng.random() < 0.4:
            file.write(rng.randbytes(size))
        for _ in range(rng.randrange(12) if size else 0):
            offset = rng.randrange(size)
            if rng.random() < 0.5:
                offset -= offset % 4096
            length = min(rng.randrange(1, 1 << rng.randrange(1, 18)), size - offset)
            file.seek(offset)
            file.write(rng.choice([rng.randbytes(length), b"A" * length, bytes(length)]))


def salt(rng, most):
    return rng.randbytes(rng.choice([0, 0, 1, 8, 32, most - 1, most, rng.randrange(most + 1)]))


FS_CASES = 10 * [30]
DM_CASES = 14 * [28]


def test_number_of_cases():
    assert sum(FS_CASES) + sum(DM_CASES) >= 500


@pytest.mark.parametrize("group", mostly_slow(range(len(FS_CASES)), [0]))
def test_fs_verity(blksum, workdir, group):
    seed = 1000 + group
    rng = random.Random(seed)
    for case in range(FS_CASES[group]):
        digest = rng.choice(["sha256", "sha512"])
        block_size = 1 << (rng.randrange(9, 17) if case % 8 else rng.randrange(17, 25))
        # 128 * 128 blocks of 4 KiB are 64 MiB.
        most = (65 * MIB if case == 1 else 3 * MIB) // block_size
        count = block_count(rng, arity(block_size, digest), max(most, 1))
        if case == 1:
            digest, block_size = "sha256", 4096
            count = 128 * 128 + rng.choice([-1, 0, 1])
        size = max(0, count * block_size + rng.choice([-block_size + 1, -1, 0, 0, 1, block_size // 3]))
        write_data(rng, "data", min(size, 68 * MIB))
        given = salt(rng, 32).hex()
        context = f"seed {seed}, case {case}: {digest}, {block_size}, salt {given!r}, {size} bytes"
        print(context)
        options = ["--hash-alg", digest, "--block-size", block_size]
        options += ["--salt", given] if given else []
        outputs = ["--out-merkle-tree=tree", "--out-descriptor=descriptor"]
        theirs = fsverity(*options, *outputs, "data")
        os.rename("tree", "tree.theirs")
        os.rename("descriptor", "descriptor.theirs")
        assert verity("digest", *options, *outputs, "data") == theirs, context
        assert read("tree") == read("tree.theirs"), context
        assert read("descriptor") == read("descriptor.theirs"), context
        assert verity("digest", *options, "data") == theirs, context
        forms = rng.choice([["--compact"], ["--for-builtin-sig"], ["--compact", "--for-builtin-sig"]])
        assert verity("digest", *options, *forms, "data") == fsverity(*options, *forms, "data")
        root = theirs.split()[0].split(b":")[1].decode()
        same = ["-d", digest, "--construction", "fs-verity", "--block-size", str(block_size)]
        assert blksum.hex(*same, "--salt", given, "data") == root, context
        result = blkhash("verity", "verify", "--fs-verity", *options, "data", "tree", root)
        assert result.returncode == 0, (context, result)


def random_tree(rng, digests, *, most=3 * MIB, plain=False):
    """Returns a tree of at least one block."""
    data_block, hash_block = (1 << rng.choice([9, 10, 11, 12, 12, 13, 16]) for _ in range(2))
    if rng.random() < 0.1:
        data_block, hash_block = (1 << rng.randrange(12, 20) for _ in range(2))
    elif rng.random() < 0.4:
        hash_block = data_block
    digest = rng.choice(digests)
    count = block_count(rng, arity(hash_block, digest), max(1, most // data_block))
    tree = Tree(max(1, count), data_block, hash_block, digest, salt(rng, 256))
    tree.has_superblock = plain or rng.random() < 0.7
    if not plain and rng.random() < 0.4:
        unit = SUPERBLOCK if tree.has_superblock else hash_block
        if count <= 1:
            # There is no tree, and veritysetup cannot write the superblock to a part of a page alone.
            unit = max(unit, 4096)
        tree.offset = unit * rng.randrange(1, 40)
    return tree


@pytest.mark.parametrize("group", mostly_slow(range(len(DM_CASES)), [0]))
def test_dm_verity(blksum, workdir, digests, group):
    seed = 2000 + group
    rng = random.Random(seed)
    os.mkdir("theirs")
    os.mkdir("ours")
    for case in range(DM_CASES[group]):
        tree = random_tree(rng, digests)
        if case == 0:
            tree = Tree(128 * 128 + rng.choice([-1, 0, 1]), salt=rng.randbytes(32))
        shared = case % 5 == 1
        # The rest is not covered.
        size = tree.data_length + rng.choice([0, 0, 1, 511, tree.data_block, 5 * tree.data_block + 7])
        write_data(rng, "data", size)
        hash_file = "hash"
        if shared:
            os.truncate("data", tree.data_length)
            tree.offset = tree.data_length + -tree.data_length % tree.hash_block
            hash_file = "data"
        context = f"seed {seed}, case {case}: {tree}, one file: {shared}"
        print(context)
        outputs = {}
        for folder, run in (("theirs", veritysetup), ("ours", lambda *args, **kw: blkhash("verity", *args, **kw))):
            shutil.copy("data", f"{folder}/data")
            args = [*tree.options(), "--root-hash-file=root", "data", hash_file]
            result = run("format", *args, cwd=folder)
            assert result.returncode == 0, (context, result)
            # It warns about blocks that are larger than a page of this machine.
            assert result.stderr == b"" or folder == "theirs", (context, result)
            outputs[folder] = result.stdout
        assert outputs["ours"] == outputs["theirs"], context
        assert read("ours/root") == read("theirs/root"), context
        if os.path.exists("theirs/hash") or os.path.exists("ours/hash"):
            assert read("ours/hash") == read("theirs/hash"), context
        assert read("ours/data") == read("theirs/data"), context
        root = read("ours/root").decode()
        verify = ["verify", *tree.verify_options(), "data", hash_file, root]
        result = veritysetup(*verify, cwd="ours")
        assert result.returncode == 0, (context, result)
        assert b"all match" in verity(*verify, cwd="ours"), context
        if tree.data_block == tree.hash_block:
            options = ["-d", DIGESTS[tree.digest], "--construction", "dm-verity"]
            options += ["--block-size", str(tree.data_block), "--salt", tree.salt.hex()]
            part = ["--length", str(tree.data_length)]
            assert blksum.hex(*options, *part, "data") == root, context
        for folder in ("theirs", "ours"):
            os.unlink(f"{folder}/root")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/hash")


@pytest.mark.parametrize("name", DIGESTS)
def test_every_digest(blksum, workdir, digests, name):
    """Digests that veritysetup lacks are compared with the definition only, in test-vectors/verity.json."""
    write_data(random.Random(3000), "data", 300 * 4096)
    size = digest_size(name)
    tree = Tree(300, digest=name, salt=b"salt")
    verity("format", *tree.options(), "--root-hash-file=root", "data", "ours")
    root = read("root").decode()
    assert len(root) == 2 * size
    again = dataclasses.replace(tree, digest=DIGESTS[name])
    assert json.loads(verity("format", *again.options(), "--json", "data", "again"))["hash"] == DIGESTS[name]
    assert read("again") == read("ours")
    options = ["-d", DIGESTS[name], "--construction", "dm-verity", "--salt", b"salt".hex()]
    assert blksum.hex(*options, "data") == root
    assert read("ours")[32:64].rstrip(b"\0").decode() == name
    if name in digests:
        assert veritysetup("format", *tree.options(), "data", "theirs").returncode == 0
        assert read("theirs") == read("ours")
    else:
        result = veritysetup("format", *tree.options(), "data", "theirs")
        assert result.returncode != 0 and b"not supported" in result.stderr


def read(path):
    with open(path, "rb") as file:
        return file.read()


# Damage


def run_format(tree, data="data", hash_file="hash"):
    """Returns the root hash."""
    output = verity("format", "--force", *tree.options(), "--json", data, hash_file)
    return json.loads(output)["root_hash"]


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x40]))


def verify_json(*args, status=1):
    """Returns the findings and the summary."""
    result = blkhash("verity", "verify", "--json", "--max-errors", "0", *args)
    assert result.returncode == status and result.stderr == b"", (args, result)
    *findings, summary = map(json.loads, result.stdout.splitlines())
    assert summary["type"] == "summary" and summary["errors_not_printed"] == 0
    assert all(finding["type"] == "error" for finding in findings)
    return findings, summary


def named(tree, findings, data_size):
    """Returns the blocks of findings, after checking their offsets and lengths."""
    blocks = set()
    for finding in findings:
        level, first, count = finding["level"], finding["block"], finding["blocks"]
        if finding["problem"] in ("tree", "spare"):
            assert finding["offset"] == tree.offset_of(level, first), finding
            assert finding["length"] == count * tree.hash_block, finding
        else:
            assert level is None
            assert finding["offset"] == first * tree.data_block, finding
            length = min(count * tree.data_block, data_size - finding["offset"])
            assert finding["length"] == length, finding
        new = {(finding["problem"], level, block) for block in range(first, first + count)}
        assert not new & blocks, f"{finding} twice"
        blocks |= new
    return blocks


def expected_names(tree, tree_damage, data_damage):
    """Returns the blocks that have to be named."""
    names = set()

    def visit(level, index):
        below = tree.data_below(level, index)
        if (level, index) in tree_damage:
            if data_damage.isdisjoint(below):
                names.update(
                    ("tree", low, number)
                    for low, number in tree_damage
                    if low <= level and number // tree.arity ** (level - low) == index
                )
            else:
                names.add(("tree", level, index))
                names.update(("unverified", None, block) for block in below)
        elif level == 0:
            names.update(("data", None, block) for block in data_damage.intersection(below))
        else:
            first = index * tree.arity
            for child in range(first, min(first + tree.arity, tree.levels[level - 1])):
                visit(level - 1, child)

    if tree.levels:
        visit(len(tree.levels) - 1, 0)
    else:
        names.update(("data", None, block) for block in data_damage)
    return names


def text_of(tree, name, data="data", hash_file="hash", root="root hash"):
    """Returns the line about a block."""
    problem, level, block = name
    if problem == "data":
        place = f"{data}: data block {block} at {block * tree.data_block}, {tree.data_block} bytes"
        return f"{place}: does not match\n".encode()
    place = f"{hash_file}: hash level {level} block {block} at {tree.offset_of(level, block)}"
    is_top = level + 1 == len(tree.levels)
    end = f"does not match the {root}" if is_top else "is damaged"
    return f"{place}, {tree.hash_block} bytes: {end}\n".encode()


@pytest.mark.parametrize("group", range(6))
def test_one_changed_byte(workdir, digests, group):
    seed = 4000 + group
    rng = random.Random(seed)
    for case in range(15):
        tree = random_tree(rng, digests)
        context = f"seed {seed}, case {case}: {tree}"
        print(context)
        write_data(rng, "data", tree.data_length)
        root = run_format(tree)
        args = [*tree.verify_options(), "data", "hash", root]
        assert veritysetup("verify", *args).returncode == 0, context
        blocks = tree.tree_blocks()
        places = [("data", None, rng.randrange(tree.blocks))]
        places += [("tree", *rng.choice(blocks)) for _ in range(2 if blocks else 0)]
        for place in places:
            problem, level, block = place
            if problem == "data":
                path, offset = "data", block * tree.data_block + rng.randrange(tree.data_block)
            else:
                path, offset = "hash", tree.offset_of(level, block) + rng.randrange(tree.hash_block)
            flip(path, offset)
            assert veritysetup("verify", *args).returncode != 0, (context, place, offset)
            findings, summary = verify_json(*args)
            assert named(tree, findings, tree.data_length) == {place}, (context, offset)
            counts = summary["bad_data_blocks"], summary["unverified_blocks"], summary["bad_hash_blocks"]
            assert counts == ((1, 0, 0) if problem == "data" else (0, 0, 1)), context
            result = blkhash("verity", "verify", *args)
            assert result.returncode == 1 and result.stderr == b""
            assert result.stdout.startswith(text_of(tree, place)), (context, result.stdout)
            assert result.stdout.count(b"\n") == 2
            flip(path, offset)
        assert b"all match" in verity("verify", *args)
        os.unlink("hash")


@pytest.mark.parametrize("kind", ["dm-verity", "fs-verity"])
@pytest.mark.parametrize("group", range(4))
def test_several_changed_blocks(workdir, group, kind):
    seed = 5000 + group
    rng = random.Random(seed)
    for case in range(20):
        digest = rng.choice(["sha256", "sha512"])
        unit = arity(512, digest)
        tree = Tree(rng.choice([unit, unit**2 - 1, unit**2 + 5, unit**3 - 1]), 512, 512, digest, rng.randbytes(5))
        size = tree.data_length
        if kind == "fs-verity":
            tree.has_superblock = False
            size -= rng.randrange(512)
        write_data(rng, "data", size)
        if kind == "fs-verity":
            options = ["--hash-alg", digest, "--block-size", 512, "--salt", tree.salt.hex()]
            output = verity("digest", *options, "--compact", "--out-merkle-tree=hash", "data")
            args = ["--fs-verity", *options, "data", "hash", output.decode().strip()]
        else:
            args = ["data", "hash", run_format(tree)]
        blocks = tree.tree_blocks()
        tree_damage = set(rng.sample(blocks, rng.randrange(min(6, len(blocks)))))
        data_damage = set(rng.sample(range(tree.blocks), rng.choice([0, 1, 3, min(60, tree.blocks)])))
        if rng.random() < 0.3:
            data_damage |= set(tree.data_below(*rng.choice(blocks))[:20])
        if rng.random() < 0.4:
            # Then the tree below damaged blocks can be compared.
            for place in tree_damage:
                data_damage -= set(tree.data_below(*place))
        print(f"seed {seed}, case {case}: {tree}, {size} bytes, {tree_damage}, {data_damage}")
        for place in tree_damage:
            flip("hash", tree.offset_of(*place) + rng.randrange(512))
        for block in data_damage:
            flip("data", block * 512 + rng.randrange(min(512, size - block * 512)))
        names = expected_names(tree, tree_damage, data_damage)
        findings, summary = verify_json(*args, status=1 if names else 0)
        assert named(tree, findings, size) == names
        counts = {
            "bad_data_blocks": "data",
            "unverified_blocks": "unverified",
            "bad_hash_blocks": "tree",
        }
        for field, problem in counts.items():
            assert summary[field] == sum(name[0] == problem for name in names), field
        os.unlink("hash")


def test_damage_on_every_level(workdir):
    tree = Tree(16 * 16 + 5, 512, 512, salt=b"s")
    assert tree.levels == [17, 2, 1]
    write_data(random.Random(1), "data", tree.data_length)
    root = run_format(tree)
    for place in tree.tree_blocks():
        flip("hash", tree.offset_of(*place) + 7)
        findings, _ = verify_json("data", "hash", root)
        assert named(tree, findings, tree.data_length) == {("tree", *place)}
        result = blkhash("verity", "verify", "data", "hash", root)
        assert result.stdout.startswith(text_of(tree, ("tree", *place)))
        assert veritysetup("verify", "data", "hash", root).returncode != 0
        flip("hash", tree.offset_of(*place) + 7)
    for place in tree.tree_blocks():
        flip("hash", tree.offset_of(*place) + 511)
    findings, _ = verify_json("data", "hash", root)
    assert named(tree, findings, tree.data_length) == {("tree", *it) for it in tree.tree_blocks()}


def test_limit_on_printed_errors(workdir):
    tree = Tree(400, 512, 512)
    (workdir / "data").write_bytes(bytes(tree.data_length))
    root = run_format(tree)
    for block in range(0, 400, 2):
        flip("data", block * 512)
    result = blkhash("verity", "verify", "--max-errors", "7", "data", "hash", root)
    lines = result.stdout.decode().splitlines()
    assert result.returncode == 1 and len(lines) == 8
    assert lines[-1] == "data: 400 blocks: 200 do not match, 193 errors are not printed (--max-errors)"


def test_zeros_do_not_fill_the_disk(workdir):
    """An image of a few bytes may claim a tree of any size."""
    images.create("huge.qcow2", "16T")
    commands = [
        ("digest", "--out-merkle-tree", "tree", "huge.qcow2"),
        ("format", "huge.qcow2", "hash"),
    ]
    for command in commands:
        result = blkhash("verity", *command)
        assert result.returncode == 2
        assert b"has more than 1099511627776 bytes of zeros" in result.stderr
    assert blkhash("verity", "digest", "huge.qcow2").returncode == 0


@pytest.mark.slow
def test_very_many_damaged_blocks(workdir):
    """They are all counted. Memory limits how many are named below one damaged block."""
    tree = Tree(16 * (2 * 65536 + 40), 512, 512)
    with open("data", "wb") as file:
        file.truncate(tree.data_length)
    root = run_format(tree)
    changed = bytearray(read("hash"))
    for index in range(0, 4 * 4000, 2):
        changed[tree.offset_of(0, index)] ^= 1
    changed[tree.offset_of(len(tree.levels) - 1, 0)] ^= 1
    (workdir / "hash").write_bytes(changed)
    findings, summary = verify_json("data", "hash", root)
    assert summary["bad_hash_blocks"] == len(named(tree, findings, tree.data_length)) == 8001
    for index in range(4 * 4000, tree.levels[0], 2):
        changed[tree.offset_of(0, index)] ^= 1
    (workdir / "hash").write_bytes(changed)
    result = blkhash("verity", "verify", "--max-errors", "0", "data", "hash", root)
    assert result.returncode == 1
    *lines, last = result.stdout.splitlines()
    count = 65536 + 20 + 1
    assert len(lines) == 65536 + 1
    assert last.endswith(b": %d of the hash tree are damaged, 20 of these are not named" % count)
    result = blkhash("verity", "verify", "--json", "data", "hash", root)
    summary = json.loads(result.stdout.splitlines()[-1])
    assert summary["bad_hash_blocks"] == count
    assert summary["errors_not_printed"] == count - 100


def test_wrong_root(workdir):
    tree = Tree(130)
    write_data(random.Random(2), "data", tree.data_length)
    root = run_format(tree)
    wrong = root[:-1] + ("0" if root[-1] != "0" else "1")
    findings, summary = verify_json("data", "hash", wrong)
    unverified = {("unverified", None, block) for block in range(130)}
    assert named(tree, findings, tree.data_length) == unverified | {("tree", 1, 0)}
    assert summary["unverified_blocks"] == 130 and summary["other_root"]
    last = blkhash("verity", "verify", "data", "hash", wrong).stdout.splitlines()[-1]
    why = b"as the root hash differs from hash, which matches the data"
    assert last == b"data: 130 blocks: 130 cannot be verified, " + why
    # The tree itself may be damaged as well, or the data.
    for path, offset in [("hash", tree.offset_of(1, 0)), ("hash", tree.offset_of(0, 1)), ("data", 4096)]:
        flip(path, offset)
        assert not verify_json("data", "hash", wrong)[1]["other_root"], (path, offset)
        flip(path, offset)
    assert verify_json("data", "hash", root.upper(), status=0)[1]["bad_hash_blocks"] == 0
    for bad in (root[:-2], root + "00", root + root):
        one_line_error(blkhash("verity", "verify", "data", "hash", bad), "hash")
    for bad in (root[:-1], "", "zz" * 32):
        result = blkhash("verity", "verify", "data", "hash", bad)
        assert result.returncode == 2 and result.stdout == b"", bad
    (workdir / "root").write_text(root + "\n")
    verity("verify", "--root-hash-file=root", "data", "hash")
    (workdir / "root").write_text("x" * 5000)
    one_line_error(blkhash("verity", "verify", "--root-hash-file=root", "data", "hash"), "root")


def one_line_error(result, name):
    """A run must end with one line on standard error that has the name, and exit status 2."""
    assert result.returncode == 2 and result.stdout == b"", result
    assert len(reasons(result)) == 1 and name.encode() in result.stderr, result
    assert result.stderr.startswith(b"blkhash: ")
    return result.stderr.decode()


def reasons(result):
    """Returns the lines on standard error without the pointer to the help."""
    return [line for line in result.stderr.splitlines() if not line.startswith(b"Try 'blkhash ")]


def make_tree(tree, data, spoil=None):
    """Returns the root and the blocks of a tree by its definition. spoil is (level, index, offset) of a byte
    that is set before the block is hashed."""

    def h(block):
        return hashlib.new(tree.digest, tree.salt + block).digest()

    cuts = range(0, len(data), tree.data_block)
    below = [h(data[at : at + tree.data_block]) for at in cuts]
    blocks = b""
    for level, count in enumerate(tree.levels):
        stride = tree.hash_block // tree.arity
        bytes_ = b"".join(digest.ljust(stride, b"\0") for digest in below)
        bytes_ = bytearray(bytes_.ljust(count * tree.hash_block, b"\0"))
        if spoil and spoil[0] == level:
            bytes_[spoil[1] * tree.hash_block + spoil[2]] = 1
        cuts = range(0, len(bytes_), tree.hash_block)
        below = [h(bytes_[at : at + tree.hash_block]) for at in cuts]
        blocks = bytes(bytes_) + blocks
    return below[0].hex(), blocks


@pytest.mark.parametrize("digest", ["sha256", "sha1", "sha384"])
def test_spare_bytes(workdir, digest):
    """Bytes next to the digests that are a part of the hashes: the kernel does not look at them."""
    tree = Tree(1, 512, 512, digest, b"salt")
    tree.blocks = tree.arity**2 + tree.arity + 3
    data = random.Random(7).randbytes(tree.data_length)
    (workdir / "data").write_bytes(data)
    root, blocks = make_tree(tree, data)
    assert root == run_format(tree)
    head = read("hash")[: tree.start]
    assert read("hash")[tree.start :] == blocks
    places = [(level, count - 1, 511) for level, count in enumerate(tree.levels)]
    if digest_size(digest) < 512 // tree.arity:
        places += [(0, 1, digest_size(digest)), (1, 0, 2 * 512 // tree.arity - 1)]
    for place in places:
        root, blocks = make_tree(tree, data, place)
        (workdir / "hash").write_bytes(head + blocks)
        findings, summary = verify_json("data", "hash", root)
        assert named(tree, findings, tree.data_length) == {("spare", *place[:2])}
        assert summary["bad_data_blocks"] == summary["unverified_blocks"] == 0
        result = blkhash("verity", "verify", "data", "hash", root)
        level, index = place[:2]
        line = f"hash: hash level {level} block {index} at {tree.offset_of(level, index)}, 512 bytes: "
        assert result.stdout.decode().startswith(line + "has nonzero padding after its hashes\n")
        assert veritysetup("verify", "data", "hash", root).returncode != 0


def test_hash_file_that_is_cut_off(workdir):
    tree = Tree(300)
    write_data(random.Random(3), "data", tree.data_length)
    root = run_format(tree)
    end = os.path.getsize("hash")
    for length in (end - 1, end - 4096, 4097, 4096, 512, 511, 8, 1, 0):
        os.truncate("hash", length)
        message = one_line_error(blkhash("verity", "verify", "data", "hash", root), "hash")
        assert length < 512 or f"is cut off: it has {length} bytes, and its tree ends at {end}" in message
        assert veritysetup("verify", "data", "hash", root).returncode != 0
    for name in ("missing", "."):
        one_line_error(blkhash("verity", "verify", "data", name, root), name)
    run_format(Tree(300), hash_file="whole")
    os.truncate("data", tree.data_length - 1)
    one_line_error(blkhash("verity", "verify", "data", "whole", root), "data")


MAX = (1 << 64) - 1

# Offset, new bytes, exit status.
FIELDS = [
    ("magic", 0, b"V", 2),
    ("magic", 7, b"\1", 2),
    *(("version", 8, n.to_bytes(4, "little"), 2) for n in (0, 2, 1 << 31)),
    *(("hash type", 12, n.to_bytes(4, "little"), 2) for n in (0, 2, (1 << 32) - 1)),
    ("uuid", 16, b"another", 0),
    *(("digest", 32, name.ljust(32, b"\0"), 2) for name in (b"", b"md6", b"crc32", b"xxh3", b"sha512", b"\xff\n")),
    ("digest", 32, b"sha256" + b"x" * 26, 2),
    ("digest", 32, b"sha3-256\0", 1),
    *(("data block size", 64, n.to_bytes(4, "little"), 2) for n in (0, 1, 256, 4097, 1 << 20, 1 << 31)),
    ("data block size", 64, (8192).to_bytes(4, "little"), 2),
    ("data block size", 64, (512).to_bytes(4, "little"), 1),
    *(("hash block size", 68, n.to_bytes(4, "little"), 2) for n in (0, 3, 256, 4095, 1 << 20)),
    ("hash block size", 68, (1 << 19).to_bytes(4, "little"), 2),
    ("hash block size", 68, (512).to_bytes(4, "little"), 1),
    *(("data blocks", 72, n.to_bytes(8, "little"), 2) for n in (0, 301, 1 << 40, 1 << 51, 1 << 52, 1 << 63, MAX)),
    ("data blocks", 72, (299).to_bytes(8, "little"), 1),
    ("data blocks", 72, (1).to_bytes(8, "little"), 1),
    *(("salt", 80, n.to_bytes(2, "little"), 2) for n in (257, 65535)),
    *(("salt", 80, n.to_bytes(2, "little"), 1) for n in (0, 1, 256)),
    ("salt", 88, b"\0", 1),
]


def test_changed_superblocks(workdir):
    tree = Tree(300, salt=b"salt")
    write_data(random.Random(4), "data", tree.data_length)
    root = run_format(tree)
    for name, offset, field, status in FIELDS:
        shutil.copy("hash", "changed")
        with open("changed", "r+b") as file:
            file.seek(offset)
            file.write(field)
        result = blkhash("verity", "verify", "data", "changed", root, timeout=10)
        assert result.returncode == status, (name, field, result)
        if status == 2:
            # Data that is too short is an error of the data.
            one_line_error(result, "data" if b"tree is for" in result.stderr else "changed")
        else:
            assert result.stderr == b"" and result.stdout.count(b"\n") <= 3
        # Without a number of blocks, veritysetup takes the whole device. It never writes such a superblock.
        if status and (name, field) != ("data blocks", bytes(8)):
            assert veritysetup("verify", "data", "changed", root).returncode != 0, (name, field)


@pytest.mark.slow
def test_random_superblocks(workdir):
    seed = 6000
    rng = random.Random(seed)
    tree = Tree(20, 512, 512, salt=b"salt")
    write_data(rng, "data", tree.data_length)
    root = run_format(tree)
    whole = read("hash")
    for case in range(150):
        changed = bytearray(whole)
        places = rng.sample(range(344), rng.choice([1, 1, 2, 4]))
        for place in places:
            changed[place] ^= rng.choice([1, 0x80, rng.randrange(1, 256)])
        (workdir / "hash").write_bytes(changed)
        result = blkhash("verity", "verify", "data", "hash", root, timeout=10)
        context = f"seed {seed}, case {case}: {places}: {result}"
        assert result.returncode in (0, 1, 2), context
        if result.returncode == 2:
            assert result.stderr.count(b"\n") == 1 and result.stdout == b"", context
        elif result.returncode == 1:
            assert result.stderr == b"", context
        else:
            assert veritysetup("verify", "data", "hash", root).returncode == 0, context


# Images


SPEC = "600k:# 1m:- 64k:A 300k:0 512:B 130560:- 3m:- 1m:# 64k:-"


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A raw image and what fsverity and veritysetup make of it."""
    folder = tmp_path_factory.mktemp("content")
    imagespec.write(SPEC, folder / "raw")
    return Content(folder / "raw", imagespec.size(SPEC))


class Content:
    """The values of raw content."""

    def __init__(self, raw, size):
        self.raw = raw
        self.tree = Tree(size // 4096, salt=b"\1\2\3")
        assert size == self.tree.data_length
        folder = raw.parent
        outputs = ["--out-merkle-tree=tree", "--out-descriptor=descriptor"]
        output = fsverity("--salt=010203", *outputs, raw, cwd=folder)
        self.fs = output.split()[0].split(b":")[1].decode()
        args = [*self.tree.options(), "--root-hash-file=root", raw, "hash"]
        assert veritysetup("format", *args, cwd=folder).returncode == 0
        self.files = {name: read(folder / name) for name in ("tree", "descriptor", "hash")}
        self.dm = read(folder / "root").decode()

    def check(self, blksum, name, *options):
        """Compares all values of an image."""
        name = str(name)
        for construction, value in (("fs-verity", self.fs), ("dm-verity", self.dm)):
            given = ["--construction", construction, "--salt", "010203"]
            assert blksum.hex(*given, *options, name) == value
        outputs = ["--out-merkle-tree=tree", "--out-descriptor=descriptor"]
        args = ["--salt=010203", "--compact", *outputs, *options, name]
        assert verity("digest", *args).decode() == self.fs + "\n"
        whole = self.tree.options()
        whole.remove("--data-blocks")
        whole.remove(self.tree.blocks)
        with contextlib.suppress(FileNotFoundError):
            os.unlink("hash")
        result = json.loads(verity("format", "--force", *whole, "--json", *options, name, "hash"))
        assert result["root_hash"] == self.dm and result["data_blocks"] == self.tree.blocks
        for file, bytes_ in self.files.items():
            assert read(file) == bytes_, file
        verity("verify", *options, name, "hash", self.dm)
        fs = ["--fs-verity", "--salt", "010203"]
        verity("verify", *fs, *options, name, "tree", self.fs)


FORMATS = {
    "qcow2": ["-O", "qcow2"],
    "compressed": ["-O", "qcow2", "-c"],
    "zstd": ["-O", "qcow2", "-c", "-o", "compression_type=zstd"],
    "clusters-4k": ["-O", "qcow2", "-o", "cluster_size=4k"],
    "vmdk": ["-O", "vmdk"],
    "vhdx": ["-O", "vhdx", "-o", "block_size=1M"],
}


@pytest.mark.parametrize("name", ["raw", *FORMATS])
def test_formats(blksum, workdir, content, name):
    path = content.raw
    if name in FORMATS:
        path = workdir / f"disk.{name}"
        images.qemu_img("convert", "-f", "raw", *FORMATS[name], content.raw, path)
    if name == "vhdx":
        # Its size is a multiple of 1 MiB.
        raw = images.to_raw(path, workdir / "raw")
        content = Content(raw, os.path.getsize(raw))
    content.check(blksum, path)


def test_a_note_tells_the_content_from_the_file(workdir):
    """`fsverity digest` knows no formats, so its digest of such an image covers the file."""
    imagespec.write("64k:A 64k:-", "disk.img")
    images.convert("disk.img", "disk.qcow2")
    note = b"blkhash: disk.qcow2: qcow2: digest of the content; -f raw prints the digest of the file\n"
    result = blkhash("verity", "digest", "disk.img", "disk.qcow2")
    [raw, content] = result.stdout.split()[::2]
    assert raw == content and result.stderr == note
    of_file = blkhash("verity", "digest", "-f", "raw", "disk.qcow2")
    assert of_file.stdout == fsverity("disk.qcow2") and of_file.stderr == b""
    for options in [["-q"], ["-f", "qcow2"]]:
        result = blkhash("verity", "digest", *options, "disk.qcow2")
        assert result.stdout.split()[0] == content and result.stderr == b""


def test_backing_chain(blksum, workdir, content):
    content.check(blksum, images.chain(SPEC, workdir / "disk.qcow2"))


def test_internal_snapshot(blksum, workdir, content):
    path = images.convert(content.raw, workdir / "disk.qcow2")
    images.qemu_img("snapshot", "-c", "before", path)
    images.qemu_io(path, "write -P 0x77 0 1M", "write -z 2M 64k")
    assert blksum.hex("--construction", "dm-verity", "--salt", "010203", path) != content.dm
    content.check(blksum, path, "--snapshot", "before")


@pytest.mark.parametrize("tool", ["qemu-nbd", "nbdkit"])
def test_nbd(blksum, workdir, content, tool):
    with contextlib.closing(servers.Servers()) as started:
        if tool == "nbdkit":
            server = started.nbdkit("file", content.raw)
        else:
            path = images.convert(content.raw, workdir / "disk.qcow2")
            server = started.qemu_nbd(path, fmt="qcow2")
        content.check(blksum, server.uri())


@pytest.mark.parametrize("form", ["raw", "qcow2"])
def test_partition(blksum, workdir, content, form):
    size = content.tree.data_length
    with open("disk.raw", "wb") as file:
        file.truncate(size + 4 * MIB)
    table = f"label: gpt\nstart=2048, size={MIB // 512}\nstart=4096, size={size // 512}\n"
    images.run("sfdisk", "-q", "disk.raw", input=table.encode(), stdin=None)
    with open("disk.raw", "r+b") as file:
        file.seek(2 * MIB)
        file.write(read(content.raw))
    path = workdir / "disk.raw"
    if form == "qcow2":
        path = images.convert(path, workdir / "disk.qcow2")
    content.check(blksum, path, "--partition", "2")
    # No offset is known to be after all partitions.
    message = refused([path], "--partition", "1", "--hash-offset", size + 4 * MIB, path, path)
    assert "is a file of the image" in message
    # In a verification of the whole image, findings name the partition.
    root = run_format(Tree((size + 4 * MIB) // 4096), "disk.raw", "whole")
    flip("disk.raw", 2 * MIB + 4097)
    findings, _ = verify_json("disk.raw", "whole", root)
    assert [(it["block"], it["partition"]) for it in findings] == [(513, 2)]
    # A tree of the partition does not match the whole image.
    root = run_format(Tree(size // 4096), content.raw, "part")
    result = blkhash("verity", "verify", "-f", form, path, "part", root)
    *_, note, last = result.stdout.decode().splitlines()
    whole = size + 4 * MIB
    assert note == f"{path}: the tree is of {size} bytes, the image has {whole}: is it of a partition?"
    assert result.returncode == 1 and " do not match" in last
    result = blkhash("verity", "verify", "-f", form, "--partition", "2", path, "part", root)
    assert b"is it of" not in result.stdout and (form == "qcow2") == (result.returncode == 0)


def test_vectors(blksum, workdir):
    with open(ROOT / "test-vectors/verity.json", encoding="utf-8") as file:
        table = json.load(file)
    assert table["count"] == len(table["vectors"]) > 200
    written = None
    for vector in sorted(table["vectors"], key=lambda it: it["image"]):
        if vector["image"] != written:
            imagespec.write(vector["image"], workdir / "image")
            written = vector["image"]
        options = ["-d", vector["digest"], "--construction", vector["construction"]]
        options += ["--block-size", str(vector["block_size"]), "--salt", vector["salt"]]
        assert blksum.hex(*options, "image") == vector["hex"], vector


# Length, block size, root of dm-verity, digest of fs-verity. crates/blkhash/tests/tree.rs has the same values.
ZEROS = [
    (
        1 << 20,
        4096,
        "5d98121f8aeff2a38a3fffee013f85980078507a0ffbd99e5a8d616ecfe7db6a",
        "feb19a23e72cb1b8f935d668a09ecaad0bf7c5b9cdfa6dbba7c88a9998ed2b87",
    ),
    (
        8 << 30,
        4096,
        "49936c344f6aa75858a76450764e666075ad1c7f47a5858111f8b6c6a3435740",
        "00dd23905fe4ddc4dc5b9a5c0d86139377c38361e64f8312da6ef8f461d1b0c5",
    ),
    (
        8 << 30,
        65536,
        "572aaf555351b8c5d49faf18164153295af8afca8a1d295c2bdc156b9fa46374",
        "996a67a8664db4deef92de4bd2e12877948f2305dc3a0378741c748cad073833",
    ),
    (
        8 << 40,
        4096,
        "b587ed8d01b3559bb0b8e0ef8890fd5b86b4a28342422c07db54d791a82b8c86",
        "0a2c1a7d9f27d060c9d0ddc20c9eb3d72d1296f20a0883c83856911e2618b4f6",
    ),
    (
        (1 << 63) - 65536,
        4096,
        "ae49e7e23ff641700751429f06139d6a84a5791491fa2374d75b295c87bd0f19",
        "20c42257883a6816af4272207cb43ef9245730ee2d685aa942b24cb30d5e5b0b",
    ),
]


@pytest.fixture
def huge_files(workdir):
    """A folder whose files may have 2^63 - 65536 bytes, which tmpfs can."""
    for folder in (str(workdir), "/dev/shm"):
        path = os.path.join(folder, f"huge.{os.getpid()}")
        try:
            with open(path, "wb") as file:
                file.truncate((1 << 63) - 65536)
        except OSError as error:
            print(f"{folder}: {error}")
        else:
            yield path
            os.unlink(path)
            return
    pytest.skip("no tmpfs for files of 2^63 - 65536 bytes in the temporary folder or /dev/shm")


@pytest.mark.parametrize("length,block_size,root,digest", ZEROS, ids=lambda it: str(it)[:20])
def test_zeros(blksum, huge_files, length, block_size, root, digest):
    path = huge_files
    os.truncate(path, length)
    common = ["--block-size", str(block_size), "--max-zeros", "8E"]
    for construction, value in (("dm-verity", root), ("fs-verity", digest)):
        assert blksum.hex("--construction", construction, *common, path, timeout=60) == value
    options = [*common, "--compact"]
    assert verity("digest", *options, path, timeout=60).decode() == digest + "\n"
    if length <= 1 << 30:
        output = verity("format", "--force", "--salt=-", "--json", path, "hash")
        assert json.loads(output)["root_hash"] == root


# Check files


def test_tags(blksum, workdir):
    write_data(random.Random(8), "data", 50 * 4096)
    lines = []
    for construction, digest, size, given in [
        ("fs-verity", "sha256", "4K", ""),
        ("fs-verity", "sha512", "1K", "00" * 32),
        ("dm-verity", "sha256", "4K", "00ff"),
        ("dm-verity", "sha3-256", "512", "ab" * 256),
        ("dm-verity", "blake2b512", "4K", ""),
        ("dm-verity", "sha512-256", "1K", "0123"),
    ]:
        options = ["--construction", construction, "-d", digest, "--block-size", size]
        result = blksum("--tag", *options, "--salt", given, "data")
        assert result.returncode == 0
        salted = f"-SALT{given}" if given else ""
        tag = f"BLKSUM-{digest.upper()}-{construction.replace('-', '').upper()}-{size}{salted} (data) = "
        assert result.stdout.decode().startswith(tag), result
        lines.append(result.stdout)
    (workdir / "SUMS").write_bytes(b"".join(lines))
    # The tags count, not the options.
    for options in ([], ["--construction", "linear"], ["-d", "md5"]):
        result = blksum("-c", *options, "SUMS")
        assert result.returncode == 0 and result.stdout == b"data: OK\n" * len(lines), (options, result)
    for line in lines:
        if b"-SALT" not in line:
            continue
        for wrong in (
            re.sub(rb"-SALT(..)", lambda it: b"-SALT%02x" % (int(it[1], 16) ^ 1), line),
            re.sub(rb"-SALT\w+", b"", line),
            re.sub(rb"-SALT", b"-SALT77", line) if line.startswith(b"BLKSUM-SHA256-DMVERITY") else b"",
        ):
            if wrong:
                (workdir / "SUMS").write_bytes(wrong)
                result = blksum("-c", "SUMS")
                assert result.returncode == 1 and result.stdout == b"data: FAILED\n", (wrong, result)
    # Salts that no tree has are no tags.
    for wrong in (b"-SALT", b"-SALT0", b"-SALTzz", b"-SALT" + b"00" * 257):
        (workdir / "SUMS").write_bytes(re.sub(rb"-SALT\w+", wrong, lines[2]))
        result = blksum("-c", "SUMS")
        assert result.returncode == 1 and b"OK" not in result.stdout, (wrong, result)


def test_salt_with_other_constructions(blksum, workdir):
    (workdir / "data").write_bytes(bytes(4096))
    for options in (
        ["--salt", "00"],
        ["--construction", "flat", "--salt", "00"],
        ["--construction", "fs-verity", "--salt", "00" * 33],
        ["--construction", "dm-verity", "--salt", "00" * 257],
        ["--construction", "dm-verity", "--salt", "0"],
        ["--construction", "dm-verity", "--salt", "zz"],
        ["--construction", "fs-verity", "-d", "blake3"],
        ["--construction", "dm-verity", "-d", "crc32"],
    ):
        result = blksum(*options, "data")
        assert result.returncode == 2 and result.stdout == b"" and result.stderr, (options, result)


@pytest.mark.parametrize("size", [0, 1, 511, 4095, 4097, 5000, 4096 * 3 + 512])
def test_sizes_that_dm_verity_would_cut(blksum, workdir, size):
    (workdir / "data").write_bytes(b"A" * size)
    result = blksum("--construction", "dm-verity", "data")
    assert result.returncode == 1 and result.stdout == b""
    message = result.stderr.decode().splitlines()[0]
    assert message.startswith("blksum: data: dm-verity is defined for ") and "fs-verity" in message
    whole = size - size % 4096
    result = blkhash("verity", "format", "data", "hash")
    line = one_line_error(result, "data")
    assert not os.path.exists("hash")
    if whole:
        assert f"--length {whole}" in message and f"--data-blocks {whole // 4096}" in line
        root = blksum.hex("--construction", "dm-verity", "--length", str(whole), "data")
        output = verity("format", "--salt=-", "--data-blocks", whole // 4096, "--json", "data", "hash")
        assert json.loads(output)["root_hash"] == root
        assert veritysetup("verify", "data", "hash", root).returncode == 0
    assert len(blksum.hex("--construction", "fs-verity", "data")) == 64


# What format leaves alone


def state(*paths):
    """Returns the contents and times of files."""
    return [(read(path), os.stat(path).st_mtime_ns, os.stat(path).st_ino) for path in paths]


def refused(paths, *args, status=2):
    """A run of format must fail and change none of the files."""
    before = state(*paths)
    result = blkhash("verity", "format", *args)
    assert result.returncode == status and result.stdout == b"", (args, result)
    assert len(reasons(result)) == 1, (args, result)
    assert state(*paths) == before, args
    return result.stderr.decode()


def test_other_content_is_kept(workdir):
    write_data(random.Random(9), "data", 8192)
    for other in (b"text", b"QFI\xfb" + bytes(4096), bytes(511) + b"x", b"verity\0", b"verity\0\0" + b"x" * 5000):
        (workdir / "other").write_bytes(other)
        message = refused(["data", "other"], "data", "other")
        assert "is not empty and not a hash file of dm-verity: --force overwrites it" in message
    verity("format", "--force", "data", "other")
    # Another salt makes another root hash, and the one that was published would be of no use.
    for options in ([], ["--salt", "5e"], ["--no-superblock"]):
        message = refused(["data", "other"], *options, "data", "other")
        assert "other: exists, and new hashes have another root hash: --force overwrites it" in message
    verity("format", "--force", "data", "other")
    (workdir / "zeros").write_bytes(bytes(4096))
    verity("format", "data", "zeros")
    (workdir / "offset").write_bytes(b"x" * 4096)
    assert "--force" in refused(["offset"], "--hash-offset", "512", "data", "offset")
    verity("format", "--hash-offset", "4096", "data", "offset")
    assert read("offset")[:4096] == b"x" * 4096


def test_the_root_hash_of_others_is_kept(workdir):
    """Another hash file is useless without it."""
    write_data(random.Random(14), "data", 8192)
    verity("format", "--root-hash-file", "root", "data", "first")
    message = refused(["data", "root", "first"], "--root-hash-file", "root", "data", "second")
    assert "--root-hash-file: root: exists and is not empty: --force overwrites it\n" in message
    assert not os.path.exists("second")
    before = read("root")
    output = verity("format", "--force", "--root-hash-file", "root", "data", "second")
    assert read("root") != before and b"\t" + read("root") + b"\n" in output
    open("empty", "w").close()
    verity("format", "--root-hash-file", "empty", "data", "third")
    assert len(read("empty")) == 64
    # What keeps nothing is written.
    with open("appended", "wb") as file:
        file.write(b"kept\n")
    command = f"{blksum_path().parent / 'blkhash'} verity format --root-hash-file /dev/stdout data fourth | cat >> appended"
    images.run("sh", "-c", command)
    assert re.match(rb"kept\n[0-9a-f]{64}VERITY ", read("appended"))


@pytest.mark.parametrize("tool", ["mke2fs", "mkfs.btrfs"])
def test_file_systems_are_kept(workdir, tool):
    """Their first bytes are zeros, as in many partitions and disks."""
    write_data(random.Random(12), "data", 64 << 20)
    with open("fs", "wb") as file:
        file.truncate(128 << 20)
    images.run(tool, "-q", "fs")
    assert not any(read("fs")[:512])
    for options in ([], ["--no-superblock"], ["--hash-offset", "512"]):
        assert "--force" in refused(["fs"], *options, "data", "fs")


def test_outputs_do_not_overwrite_the_image(workdir):
    """Also not where fsverity and veritysetup do."""
    write_data(random.Random(13), "disk", 16 * 4096)
    os.link("disk", "hard")
    images.convert("disk", "base.qcow2")
    images.create("top.qcow2", "64k", "-b", "base.qcow2", "-F", "qcow2")
    (workdir / "kept").write_text("kept")
    files = ["disk", "base.qcow2", "top.qcow2", "kept"]
    before = state(*files)
    for image, output in [("disk", "disk"), ("disk", "hard"), ("top.qcow2", "base.qcow2"), ("top.qcow2", "top.qcow2")]:
        for option in ("--out-merkle-tree", "--out-descriptor"):
            result = blkhash("verity", "digest", option, output, image)
            assert f"{option}: is a file of the image" in one_line_error(result, image)
        result = blkhash("verity", "format", "--force", "--root-hash-file", output, image, "hash")
        assert "--root-hash-file: is a file of the image" in one_line_error(result, image)
    # Nothing is emptied before an error.
    for option in ("--out-merkle-tree", "--out-descriptor"):
        one_line_error(blkhash("verity", "digest", option, "kept", "missing"), "missing")
        one_line_error(blkhash("verity", "digest", option, "kept", "-f", "qcow2", "disk"), "disk")
    one_line_error(blkhash("verity", "format", "--force", "--root-hash-file", "kept", "missing", "hash"), "missing")
    args = ["--force", "--root-hash-file", "kept", "--data-blocks", "99", "disk", "hash"]
    one_line_error(blkhash("verity", "format", *args), "disk")
    assert state(*files) == before
    outputs = ["--out-merkle-tree", "same", "--out-descriptor", "same"]
    one_line_error(blkhash("verity", "digest", *outputs, "disk"), "--out-descriptor")
    one_line_error(blkhash("verity", "format", "--root-hash-file", "hash", "disk", "hash"), "--root-hash-file")
    # Outputs are shortened, and may be pipes.
    (workdir / "long").write_bytes(b"x" * 100000)
    verity("digest", "--out-merkle-tree", "long", "disk")
    assert os.path.getsize("long") == 4096
    (workdir / "long").write_bytes(b"x" * 100000)
    verity("format", "--force", "--root-hash-file", "long", "disk", "hash")
    assert os.path.getsize("long") == 64
    output = verity("digest", "--out-descriptor=/dev/stdout", "disk")
    assert len(output) > 256 and output.endswith(b" disk\n")


def test_the_image_is_not_overwritten(workdir):
    (workdir / "zeros").write_bytes(bytes(16 * 4096))
    os.link("zeros", "hard")
    os.symlink("zeros", "soft")
    for name in ("zeros", "hard", "soft", "./zeros", str(workdir / "zeros")):
        for options in ([], ["--force"], ["--hash-offset", "4096"], ["--no-superblock"]):
            message = refused(["zeros"], *options, "zeros", name)
            assert "65536" in message, message
    # The data may also end earlier.
    message = refused(["zeros"], "--data-blocks", "9", "--hash-offset", 8 * 4096, "zeros", "zeros")
    assert str(9 * 4096) in message
    images.convert("zeros", "disk.qcow2")
    images.create("top.qcow2", "64k", "-b", "disk.qcow2", "-F", "qcow2")
    for data, name in [("disk.qcow2", "disk.qcow2"), ("top.qcow2", "disk.qcow2"), ("top.qcow2", "top.qcow2")]:
        for options in (["--force"], ["--force", "--hash-offset", 1 << 20]):
            message = refused(["disk.qcow2", "top.qcow2"], *options, data, name)
            assert "is a file of the image" in message
    images.create("raw-below.qcow2", "64k", "-b", "zeros", "-F", "raw")
    refused(["zeros", "raw-below.qcow2"], "--force", "raw-below.qcow2", "zeros")


def test_hash_is_no_file(workdir):
    (workdir / "data").write_bytes(bytes(8192))
    os.mkfifo("fifo")
    os.mkdir("folder")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name in ("fifo", "folder", "socket", "/dev/null", "missing/hash"):
            refused(["data"], "data", name)
            refused(["data"], "--force", "data", name)
    assert stat.S_ISFIFO(os.stat("fifo").st_mode)
    assert sorted(os.listdir()) == ["data", "fifo", "folder", "socket"]


def test_wrong_options(workdir):
    write_data(random.Random(10), "data", 8192)
    for options in (
        ["--data-blocks", "3"],
        ["--data-blocks", str(1 << 63)],
        ["--data-blocks", str(MAX)],
        ["--hash-offset", "100"],
        ["--no-superblock", "--hash-offset", "512"],
        ["--hash-offset", str((1 << 63) - 512)],
        ["--partition", "1"],
        ["--format", "qcow2"],
        ["--snapshot", "x"],
    ):
        refused(["data"], *options, "data", "hash")
    for options in (
        ["--salt", "00" * 257],
        ["--salt", "0"],
        ["--data-blocks", "0"],
        ["--data-blocks", str(1 << 64)],
        ["--data-block-size", "1M"],
        ["--hash-block-size", "256"],
        ["--hash", "crc32"],
        ["--uuid", "0123"],
        ["--uuid", UUID.replace("-", "+")],
    ):
        result = blkhash("verity", "format", *options, "data", "hash")
        assert result.returncode == 2 and result.stdout == b"" and b"panic" not in result.stderr
    for options in (["--fs-verity", "--hash", "sha1"], ["--hash-alg", "sha256"], ["--salt", "00"]):
        result = blkhash("verity", "verify", *options, "data", "data", "00" * 32)
        assert result.returncode == 2 and result.stdout == b"" and b"panic" not in result.stderr


def test_output_that_cannot_be_written(workdir):
    write_data(random.Random(11), "data", 300 * 4096)
    root = run_format(Tree(300))
    flip("data", 5)
    with open("/dev/full", "wb") as full:
        program = str(blksum_path().with_name("blkhash"))
        for args in (["format", "data", "new"], ["verify", "data", "hash", root], ["digest", "data"]):
            result = subprocess.run(
                [program, "verity", *args], stdout=full, stderr=subprocess.PIPE, timeout=HANG
            )
            assert result.returncode == 2 and result.stderr.count(b"\n") == 1, (args, result)
            assert b"No space left" in result.stderr
    os.truncate("data", 1 << 30)
    for args in (
        ["format", "--data-blocks", "300", "data", "limited"],
        ["format", "data", "limited"],
        ["digest", "--out-merkle-tree=limited", "data"],
    ):
        result = subprocess.run(
            ["prlimit", "--fsize=8192", program, "verity", *args],
            capture_output=True,
            timeout=HANG,
            preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
            restore_signals=False,
        )
        name = "--out-merkle-tree" if args[0] == "digest" else "limited"
        assert one_line_error(result, name) == f"blkhash: data: {name}: File too large\n"


def test_quiet_prints_only_what_is_wrong(workdir):
    write_data(random.Random(13), "data", 16384)
    root = json.loads(verity("format", "--json", "data", "hash"))["root_hash"]
    good = blkhash("verity", "verify", "-q", "data", "hash", root)
    assert (good.returncode, good.stdout, good.stderr) == (0, b"", b"")
    flip("data", 5000)
    bad = blkhash("verity", "verify", "-q", "data", "hash", root)
    assert bad.stdout == blkhash("verity", "verify", "data", "hash", root).stdout
    assert bad.returncode == 1 and b"block 1 " in bad.stdout
    assert blkhash("verity", "verify", "-q", "--json", "data", "hash", root).returncode == 2
