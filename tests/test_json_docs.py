"""docs/reference/json.md: its tables name the fields that the commands print, all of them and no others."""

import contextlib
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

import filesystems
import ewf_images
import images
import dmg_images
import iso_images
import web_servers
import vpc_images
from conftest import HANG, blksum_path
from json_tables import DESCRIBED_BY, LINKS, TABLES, TEXT, tables_of

TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}

CATEGORIES = "Categories"

# A snapshot, a partition and a range of the images that image() makes.
PARTS = [
    ("--snapshot", "before", "disk.qcow2"),
    ("--partition", "1", "parts.img"),
    ("--offset", "1M", "--length", "64K", "parts.img"),
]

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


def sections():
    """The text below each heading, up to the next one of any level."""
    parts = re.split(r"^##+ (.*)\n", TEXT, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


SECTIONS = sections()
COMMANDS = [name for name in SECTIONS if name.endswith("--json")]


def objects(value, fields, path=""):
    """An object and those within it, each as its fields; not those that another table describes."""
    yield {f"{path}{key}": inner for key, inner in value.items()}
    for key, inner in value.items():
        name = f"{path}{key}"
        for inside, items in [(f"{name}.", [inner]), (f"{name}[].", inner)]:
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict) and not (name in fields and fields[name].link):
                    yield from objects(item, fields, inside)


def table_of(command, value):
    """The name of the table that describes an object."""
    described = DESCRIBED_BY[command]
    if isinstance(described, str):
        return described
    key, by_kind = described
    kind = value.get(key)
    return by_kind[kind if kind in by_kind else ...]


def check(command, lines):
    """Fails where an object and its table differ; gives the fields that were seen, each with its table."""
    seen = set()
    for line in lines:
        value = json.loads(line)
        seen |= check_object(command, table_of(command, value), value)
    return seen


def check_object(command, name, value):
    fields = TABLES[name]
    seen = set()
    for found in objects(value, fields):
        seen |= {(name, row) for row in check_fields(command, fields, found)}
        for field in found.keys() & fields.keys():
            if link := fields[field].link:
                inner = found[field]
                for item in inner if isinstance(inner, list) else [inner] if inner else []:
                    seen |= check_object(command, link, item)
    check_complete(command, fields, value)
    return seen


def check_fields(command, fields, found):
    """Fails if fields of an object are not those of the table or in another order; gives their names in the table."""
    rows = [check_field(command, fields, name, value) for name, value in found.items()]
    order = list(fields)
    places = [order.index(row) for row in rows]
    assert places == sorted(places), f"{command} prints {list(found)} in another order than docs/reference/json.md"
    return set(rows)


def check_field(command, fields, name, value):
    """Fails if a field is not in the table or of another type; gives its name in the table."""
    row = next((it for it in fields if fnmatch.fnmatchcase(name, escaped(it))), None)
    assert row, f"{command} prints '{name}', which docs/reference/json.md does not name"
    types = fields[row].types
    assert is_one_of(value, types), f"{command}: {name} is {value!r}, and not {types}"
    if isinstance(value, list):
        [items] = [it.removeprefix("array of ").removesuffix("s") for it in types if it.startswith("array of ")] or [None]
        assert items is None or all(is_one_of(item, [items]) for item in value), f"{command}: {name} is {value!r}"
    return row


def check_complete(command, fields, value):
    """Fails if a field is missing that is always present."""
    required = {name for name, field in fields.items() if not field.may_be_absent}
    missing = {name for name in required if "." not in name} - set(value)
    assert not missing, f"{command}: {value} has no {missing}, which docs/reference/json.md promises"


def escaped(pattern):
    """A name for fnmatch, which takes brackets for sets."""
    return pattern.replace("[", "[[]")


def is_one_of(value, names):
    if isinstance(value, bool):
        return "boolean" in names
    return isinstance(value, tuple(it for name in names for it in types_of(name)))


def types_of(name):
    types = TYPES[name.split(" of ")[0]]
    return types if isinstance(types, tuple) else (types,)


def run(*command, statuses=(0,), stdin=b"", **kwargs):
    """The lines that a command prints."""
    program, *arguments = command
    path = blksum_path().with_name(program)
    kwargs = {"capture_output": True, "timeout": HANG} | kwargs
    result = subprocess.run([path, *arguments], input=stdin, **kwargs)
    assert result.returncode in statuses, result
    return result.stdout.decode().splitlines()


def blksum_runs():
    image()
    lines = run("blksum", "--json", "raw.img", "disk.qcow2", b"caf\xe9.img")
    lines += run("blksum", "--json", "-d", "sha256:linear", "-d", "blake3", "raw.img")
    lines += run("blksum", "--json", "-d", "sha256", "-d", "md5:bytes", "disk.qcow2")
    lines += run("blksum", "--json", "--construction", "fs-verity", "--salt", "5e", "raw.img")
    lines += run("blksum", "--json", "--verbose", "disk.qcow2", b"caf\xe9.img", "disk.vhd")
    lines += run("blksum", "--json", "--verbose", "-d", "sha256", "-d", "xxh64", "large.img")
    for part in PARTS:
        lines += run("blksum", "--json", *part)
        lines += run("blksum", "--json", *part[:-1], b"caf\xe9.missing", statuses=(1,))
    blksum = shlex.quote(str(blksum_path()))
    served = images.run("nbdkit", "-U", "-", "memory", "1M", "--run", f'{blksum} --json --verbose "$uri"')
    lines += served.decode().splitlines()
    lines += served_object("blksum", "--json", "--verbose")
    lines += run("blksum", "--json", "missing.img", statuses=(1,))
    return lines + run("blksum", "--json", stdin=b"x")


def served_object(*command):
    """The lines of a command for an image on an HTTP server."""
    with contextlib.closing(web_servers.WebServers()) as servers:
        (servers.folder / "disk.img").write_bytes(b"x" * 4096)
        return run(*command, servers.start("nginx", servers.folder).url("disk.img"))


def check_runs():
    image()
    names = ["raw.img", "disk.qcow2", b"caf\xe9.img", "disk.vhd"]
    sums = run_bytes("blksum", "--tag", *names)
    sums += run_bytes("blksum", "--tag", "-d", "sha256:linear", "raw.img")
    sums += run_bytes("blksum", "--tag", "--construction", "fs-verity", "--salt", "5e", "raw.img")
    for part in PARTS:
        sums += run_bytes("blksum", "--tag", *part)
    wrong = re.sub(rb"= .*", b"= " + b"0" * 64, sums)
    missing = b"BLKSUM-SHA256-STREAMS4-64K (missing.img) = " + b"0" * 64 + b"\n"
    large = run_bytes("blksum", "--tag", "-d", "sha256", "-d", "xxh64", "large.img")
    lines = run("blksum", "--check", "--json", "--verbose", stdin=sums + large)
    lines += run("blksum", "--check", "--json", stdin=wrong + missing, statuses=(1,))
    implanted_image()
    tables = [dmg_images.Table([dmg_images.Run(dmg_images.RAW, bytes(512))], crc=crc) for crc in ("right", 1)]
    pathlib.Path("damaged.dmg").write_bytes(dmg_images.image(tables))
    names = ["x.iso", "damaged.iso", "damaged.dmg"]
    return lines + run("blksum", "--check", "--json", *names, statuses=(1,))


def expect_runs():
    """Values that match in several ways and not at all, of parts, and of a log."""
    image()
    command = ["blksum", "--json", "--expect"]
    lines = run(*command, value("raw.img"), "disk.qcow2")
    lines += run(*command, value("-d", "md5", "-B", "disk.qcow2"), "disk.qcow2")
    lines += run(*command, value(b"caf\xe9.img"), b"caf\xe9.img")
    for part in PARTS:
        lines += run(*command, value(*part), *part)
    lines += run(*command, "0" * 64, "raw.img", statuses=(1,))
    lines += run(*command, "0" * 64, "missing.img", statuses=(1,))
    log = f"virt-v2v: copying\n{value('raw.img')}\n".encode()
    names = ["disk.qcow2", "parts.img", "missing.img"]
    return lines + run("blksum", "--json", "--expect-log", "-", *names, stdin=log, statuses=(1,))


def value(*arguments):
    """The checksum alone."""
    [line] = run("blksum", "--json", *arguments)
    return json.loads(line)["checksum"]


def run_bytes(program, *arguments):
    return images.run(str(blksum_path().with_name(program)), *arguments)


def image():
    """Small images, one of them with a name that is not UTF-8."""
    with open("raw.img", "wb") as file:
        file.write(b"A" * 300_000)
        file.truncate(1 << 20)
    with open(b"caf\xe9.img", "wb") as file:
        file.write(b"B" * 4096)
    images.qemu_img("convert", "-O", "qcow2", "raw.img", "disk.qcow2")
    images.qemu_img("snapshot", "-c", "before", "disk.qcow2")
    with open("parts.img", "wb") as file:
        file.truncate(8 << 20)
    images.run("sfdisk", "-q", "parts.img", stdin=None, input=b"label: gpt\nsize=2M\nsize=2M,name=x\n")
    with open("disk.vhd", "wb") as file:
        file.write(vpc_images.fixed(bytes(40960), creator=b"vpc ", geometry=(10, 2, 2)))
    # Large enough to measure which implementation is the fastest.
    with open("large.img", "wb") as file:
        file.write(b"C" * (96 << 20))


def algorithms_runs():
    lines = run("blkhash", "algorithms", "--json") + run("blkhash", "algorithms", "--json", "--kernel")
    return lines + run("blkhash", "algorithms", "--json", "--measure", "sha256", "md5")


def measures():
    """Whether this CPU has implementations to choose from: several that could be the fastest."""
    if os.environ.get("BLKHASH_IMPLEMENTATION"):
        return False
    for line in run("blkhash", "algorithms", "--json", "sha256", "xxh64"):
        known = [it for it in json.loads(line)["implementations"] if it["selftest"] == "passed"]
        cycles = sorted(it["assumed_cycles_per_byte"] for it in known)
        if len(cycles) > 1 and cycles[1] < 2 * cycles[0]:
            return True
    return False


def bench_runs():
    common = ["bench", "--json", "--iterations", "32", "--filter", "md5", "--filter", "null-*"]
    lines = run("blkhash", *common, "--tools") + run("blkhash", *common, "--cold", "--threads", "1,2")
    return lines + run("blkhash", *common, "--tools", env={"PATH": ""})


def quality_runs():
    return run("blkhash", *"bench --quality --json --filter crc32 --filter xxh3".split())


def image_runs():
    image()
    command = "bench image --json --time 0.01 -d md5 --threads 1,2".split()
    return run("blkhash", *command, "raw.img") + run("blkhash", *command, b"caf\xe9.img")


def file_system():
    """A file system with a few files, made without a mount, and where data and trees lie on it."""
    os.makedirs("root")
    for name, size in [(b"caf\xe9", 40_000), (b"data", 50_000), (b"inline", 10)]:
        with open(os.path.join(b"root", name), "wb") as file:
            file.write(os.urandom(size))
    filesystems.of_folder("fs", "root", "-L", b"caf\xe9", "-m", "single")
    return filesystems.Layout("fs")


def verify_runs():
    layout = file_system()
    lines = run("blkhash", "btrfs", "verify", "--json", "fs")
    shutil.copy("fs", b"caf\xe9.fs")
    with filesystems.changed(b"caf\xe9.fs", layout.places(layout.data[0][0])[0]):
        lines += run("blkhash", "btrfs", "verify", "--json", b"caf\xe9.fs", statuses=(1,))
    for logical, _ in layout.data:
        with filesystems.changed("fs", layout.places(logical)[0]):
            lines += run("blkhash", "btrfs", "verify", "--json", "fs", statuses=(1,))
    for logical, _ in layout.blocks:
        # Some of these leave nothing that can be verified.
        with filesystems.changed("fs", layout.places(logical)[0] + 200):
            lines += run("blkhash", "btrfs", "verify", "--json", "fs", statuses=(1, 2))
    with filesystems.changed("fs", filesystems.SUPERBLOCKS[1] + 300):
        lines += run("blkhash", "btrfs", "verify", "--json", "fs", statuses=(1,))
    return lines


def info_runs():
    devices = [os.fsdecode(b"\xff"), "two"]
    for name in devices:
        with open(name, "wb") as file:
            file.truncate(200 << 20)
    images.run("mkfs.btrfs", "-q", "-L", b"caf\xe9", "-d", "raid1", "-m", "raid1", *devices)
    command = ["btrfs", "info", "--json"]
    lines = run("blkhash", *command, *devices) + run("blkhash", *command, devices[0])
    with filesystems.mounted(devices) as root:
        os.chmod(root, 0o755)
        lines += run("blkhash", *command, root)
        # The devices are root's.
        return lines + run("blkhash", *command, root, statuses=(2,), **NOBODY)


def btrfs_algorithms_runs():
    command = ["btrfs", "algorithms", "--json"]
    return run("blkhash", *command) + run("blkhash", *command, "--data", "1T")


def digest_runs():
    image()
    command = ["verity", "digest", "--json"]
    lines = run("blkhash", *command, "raw.img", "disk.qcow2", b"caf\xe9.img")
    lines += run("blkhash", *command, "--hash-alg", "sha512", "--salt", "5e", "raw.img")
    return lines + run("blkhash", *command, "missing.img", "raw.img", statuses=(2,))


def format_runs():
    image()
    command = ["verity", "format", "--json"]
    lines = run("blkhash", *command, "disk.qcow2", b"caf\xe9.hashes")
    return lines + run("blkhash", *command, "--no-superblock", "--salt", "-", b"caf\xe9.img", "tree")


def verify_verity_runs():
    """Errors in the data, in each level of the tree, and behind its digests. The topmost block is at 4096."""
    image()
    run("blkhash", "verity", "format", "--salt", "-", "--root-hash-file", "root.hash", "raw.img", "tree")
    verify = ["verity", "verify", "--json", "raw.img", "tree"]
    lines = run("blkhash", *verify, "--root-hash-file", "root.hash")
    for name, other in [("raw.img", b"caf\xe9.img"), ("tree", b"caf\xe9.tree")]:
        shutil.copy(name, other)
    with filesystems.changed(b"caf\xe9.img", 5):
        names = [b"caf\xe9.img", b"caf\xe9.tree", "--root-hash-file", "root.hash"]
        lines += run("blkhash", "verity", "verify", "--json", *names, statuses=(1,))
    places = [("raw.img", 5)], [("tree", 4096)], [("tree", 8192)], [("tree", 8192), ("raw.img", 5)]
    for damaged in places:
        with contextlib.ExitStack() as stack:
            for name, place in damaged:
                stack.enter_context(filesystems.changed(name, place))
            lines += run("blkhash", *verify, "--root-hash-file", "root.hash", statuses=(1,))
    with filesystems.changed("tree", 8191):
        with open("tree", "rb") as file:
            root = hashlib.sha256(file.read()[4096:8192]).hexdigest()
        lines += run("blkhash", *verify, root, statuses=(1,))
    problems = {json.loads(line).get("problem") for line in lines}
    assert problems == {None, "data", "unverified", "tree", "spare"}
    cut = ["verity", "verify", "--json", "--root-hash-file", "root.hash", cut_off("raw.img"), "tree"]
    return lines + run("blkhash", *cut, statuses=(1,)) + files_of_verity_errors()


def cut_off(name):
    """Makes an image that lacks the end of its file."""
    cut = b"caf\xe9.qcow2"
    images.run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", name, cut)
    os.truncate(cut, os.stat(cut).st_size - (64 << 10))
    return cut


def files_of_verity_errors():
    layout = file_system()
    run("blkhash", *"verity format --root-hash-file fs.root fs fs.verity".split())
    lines = []
    for logical, _ in layout.data:
        with filesystems.changed("fs", layout.places(logical)[0]):
            verify = "verity verify --json --root-hash-file fs.root fs fs.verity"
            lines += run("blkhash", *verify.split(), statuses=(1,))
    return lines


def show_runs():
    """A whole map, a sealed one, and one of a part, with names that are not UTF-8."""
    make_maps()
    show = ["map", "show", "--json"]
    names = ["left.blkmap", "part.blkmap", b"caf\xe9.blkmap"]
    lines = run("blkhash", *show, *names, "left.blkmap@1")
    lines += run("blkhash", *show, "missing.blkmap", "raw.img", statuses=(2,))
    return lines + run("blkhash", *show, "--log", *names) + run("blkhash", *show, "--list", *names)


def make_maps():
    """Maps of two states of an image of eight pages, the second with more at its end, and of a part."""
    states = {
        "left.img": (64, {0: b"A", 30: b"B", 40: b"C"}),
        "right.img": (70, {0: b"A", 30: b"D", 50: b"E"}),
    }
    for name, (size, places) in states.items():
        with open(name, "wb") as file:
            file.truncate(size << 20)
            for place, byte in places.items():
                file.seek(place << 20)
                file.write(byte * 300_000)
        run("blkhash", "map", "create", "-o", name.replace("img", "blkmap"), name)
    images.run("sfdisk", "-q", "right.img", stdin=None, input=b"label: gpt\nstart=2048\n")
    shutil.copy("right.img", b"caf\xe9.img")
    run("blkhash", "map", "create", b"caf\xe9.img", "-o", b"caf\xe9.blkmap")
    run("blkhash", "map", "create", "--shard", "3/4", "-o", "part.blkmap", "left.img")
    with open("key", "wb") as file:
        file.write(b"k" * 16)
    run("blkhash", "map", "seal", "--key-file", "key", "left.blkmap")
    with open("raw.img", "wb") as file:
        file.truncate(1 << 20)


COMPARISONS = [
    # Equal, the larger image on either side, and maps that do not know every block.
    ("left.blkmap", "left.img", 0),
    ("left.blkmap", b"caf\xe9.img", 1),
    (b"caf\xe9.blkmap", "left.img", 1),
    ("part.blkmap", "left.img", 2),
]


def verify_map_runs():
    make_maps()
    return comparisons("verify", COMPARISONS)


def diff_runs():
    make_maps()
    maps = [("left.blkmap", "part.blkmap", 2), ("left.blkmap", "left.blkmap", 0), ("left.img", "right.img", 1)]
    return comparisons("diff", COMPARISONS + maps)


def comparisons(command, sides):
    lines = []
    for left, right, status in sides:
        lines += run("blkhash", "map", command, "--json", left, right, statuses=(status,))
    kinds = {json.loads(line).get("kind") for line in lines}
    assert kinds == {None, "changed", "written", "zeroed", "left-only", "right-only", "unknown"}
    results = [json.loads(line).get("same_content") for line in lines]
    assert {True, False, None} <= set(results)
    lines += run("blkhash", "map", command, "--json", "left.blkmap", cut_off("left.img"), statuses=(1,))
    lines += run("blkhash", "map", command, "--json", "left.blkmap", "missing.img", statuses=(2,))
    return lines + files_of_map_ranges(command)


def files_of_map_ranges(command):
    layout = file_system()
    run("blkhash", *"map create --block-size 4k -o fs.blkmap fs".split())
    lines = []
    for logical, _ in layout.data:
        with filesystems.changed("fs", layout.places(logical)[0]):
            lines += run("blkhash", "map", command, "--json", "fs.blkmap", "fs", statuses=(1,))
    return lines


def make_tracked():
    """Images with bitmaps, their maps from before changes, a list without one of these, and a map of a part."""
    for name in [b"caf\xe9", b"left"]:
        image = os.fsdecode(name + b".qcow2")
        images.qemu_img("create", "-q", "-f", "qcow2", image, "64M")
        images.qemu_io(image, "write -P 1 0 1M", "write -P 2 30M 1M")
        images.qemu_img("bitmap", "--add", image, "changes")
        for part in ["", "--shard=1/4"]:
            output = b"part.blkmap" if part else name + b".blkmap"
            run("blkhash", *"map create -o".split(), output, *filter(None, [part, "--force"]), image)
        images.qemu_io(image, "write -P 3 1M 64k", "write -z 30M 64k", "write -P 4 0 128k")
        run("blkhash", "map", "create", "-o", name + b"-new.blkmap", image)
    with open("list", "w") as file:
        print(0, 65536, file=file)


def update_runs():
    make_tracked()
    options = ["map", "update", "--json", "--bitmap", "changes"]
    lines = []
    for name in [b"caf\xe9", b"left"]:
        lines += run("blkhash", *options, name + b".blkmap", name + b".qcow2")
    return lines + run("blkhash", *options, "left.blkmap", "missing.qcow2", statuses=(2,))


def audit_runs():
    make_tracked()
    options = ["map", "audit", "--json", "--changes", "list"]
    lines = []
    for name in [b"caf\xe9", b"left"]:
        lines += run("blkhash", *options, name + b".blkmap", name + b".qcow2", statuses=(1,))
    lines += run("blkhash", *options, "left.blkmap", b"caf\xe9-new.blkmap", statuses=(1,))
    lines += run("blkhash", *options, "part.blkmap", "left.qcow2", statuses=(1,))
    kinds = {json.loads(line).get("kind") for line in lines}
    assert kinds == {None, "changed", "written", "zeroed", "unknown"}
    # Files of btrfs, and partitions.
    layout = file_system()
    run("blkhash", *"map create --block-size 4k -o fs.blkmap fs".split())
    for logical, _ in layout.data:
        with filesystems.changed("fs", layout.places(logical)[0]):
            lines += run("blkhash", "map", "audit", "--json", "--changes", "list", "fs.blkmap", "fs", statuses=(1,))
    with open("table.img", "wb") as file:
        file.truncate(16 << 20)
    images.run("sfdisk", "-q", "table.img", stdin=None, input=b"label: gpt\nstart=2048\n")
    run("blkhash", *"map create -o table.blkmap table.img".split())
    with filesystems.changed("table.img", 5 << 20):
        lines += run("blkhash", *options, "table.blkmap", "table.img", statuses=(1,))
    return lines


def changes_runs():
    make_tracked()
    return run("blkhash", *"map changes --json --bitmap changes left.qcow2".split())


def history_runs():
    make_tracked()
    run("blkhash", *"map create -o history.blkmap left.qcow2".split())
    run("blkhash", *"map update --bitmap changes history.blkmap left.qcow2".split())
    os.rename("history.blkmap", b"caf\xe9.blkmap")
    return run("blkhash", "map", "history", "--json", b"caf\xe9.blkmap")


def copy_runs():
    image()
    with open(b"caf\xe9.raw", "wb") as file:
        file.write(b"x" * 100000)
    lines = run("blkcopy", "--json", "disk.qcow2", "copy")
    lines += run("blkcopy", "--json", b"caf\xe9.raw", b"caf\xe9.copy")
    lines += run("blkcopy", "--json", "disk.qcow2", "copy", statuses=(2,))
    lines += run("blkcopy", "--json", b"caf\xe9.missing", b"caf\xe9.new", statuses=(2,))
    return lines + run("blkcopy", "--json", "--force", "--verify=none", "disk.qcow2", "copy")


def bitmaps_runs():
    make_tracked()
    images.qemu_img("bitmap", "--add", "--disable", "left.qcow2", "off")
    images.qemu_img("bitmap", "--add", "left.qcow2", os.fsdecode(b"caf\xe9"))
    return run("blkhash", "map", "bitmaps", "--json", "left.qcow2", b"caf\xe9.qcow2")


def dups_runs():
    make_maps()
    lines = run("blkhash", "map", "dups", "--json", "left.blkmap", b"caf\xe9.blkmap", "part.blkmap")
    return lines + run("blkhash", "map", "dups", "--json", "left.blkmap", "raw.img", statuses=(2,))


def implanted_image():
    """An image of ISO 9660 that states an MD5 of itself, and one with a byte that differs."""
    iso_images.create("x.iso", [bytes(range(256)) * 4096])
    iso_images.implant("x.iso")
    content = bytearray(pathlib.Path("x.iso").read_bytes())
    content[500_000] ^= 1
    pathlib.Path("damaged.iso").write_bytes(content)


def image_info_runs():
    image()
    os.rename("disk.qcow2", b"caf\xe9.qcow2")
    for name in ["plain", b"caf\xe9"]:
        images.run("qemu-img", "snapshot", "-c", name, b"caf\xe9.qcow2")
    with open(b"caf\xe9.qcow2", "r+b") as file:
        # The name of a snapshot follows its id, and QEMU makes only ids that are numbers.
        file.seek(file.read().index(b"3caf\xe9"))
        file.write(b"\xff")
    lines = run("blkhash", "info", "--json", b"caf\xe9.qcow2", "parts.img", "disk.vhd", "missing.img", statuses=(2,))
    content = bytes(range(256)) * 128
    ewf_images.write("case.E01", [ewf_images.stored(content)], md5=hashlib.md5(content).digest(), errors=[(3, 2)])
    lines += run("blkhash", "info", "--json", "case.E01")
    lines += served_object("blkhash", "info", "--json")
    implanted_image()
    return lines + run("blkhash", "info", "--json", "parts.img", "x.iso")


def ext4_disk():
    """A disk with an ext4, in which a file has a name that is not UTF-8, in a partition. Returns the offset of the file."""
    os.mkdir("folder")
    with open(b"folder/caf\xe9", "wb") as file:
        file.write(b"caf" * 5000)
    with open("ext4", "wb") as file:
        file.truncate(4 << 20)
    images.run("mke2fs", "-q", "-t", "ext4", "-L", "label", "-O", "metadata_csum", "-d", "folder", "ext4")
    with open("ext4.img", "wb") as file:
        file.truncate(8 << 20)
    images.run("sfdisk", "-q", "ext4.img", stdin=None, input=b"label: gpt\nstart=2048, size=8192\n")
    images.run("dd", "if=ext4", "of=ext4.img", "bs=1M", "seek=1", "conv=notrunc", "status=none")
    return (1 << 20) + pathlib.Path("ext4").read_bytes().index(b"caf" * 100)


def owners_runs():
    ext4_disk()
    return run("blkhash", "owners", "--json", "ext4.img") + run("blkhash", "owners", "--json", "ext4", "0-2M")


def health_runs():
    ext4_disk()
    (inode,) = [
        json.loads(line) for line in run("blkhash", "owners", "--json", "ext4") if '"inode table"' in line
    ]
    image()
    lines = run("blkhash", "check", "--json", "ext4.img", "disk.qcow2", "raw.img", statuses=(2,))
    with open("ext4", "r+b") as file:
        # The inode of the file, and the superblock.
        for offset in (inode["offset"] + 11 * 256 + 8, 1024 + 0x30):
            file.seek(offset)
            file.write(b"x")
    images.run("dd", "if=ext4", "of=ext4.img", "bs=1M", "seek=1", "conv=notrunc", "status=none")
    with open("ext4.img", "r+b") as file:
        file.seek(512 + 24)
        file.write(b"x")
    os.rename("ext4", b"caf\xe9.img")
    return lines + run("blkhash", "check", "--json", "ext4.img", b"caf\xe9.img", "missing.img", b"\xff", statuses=(1,))


RUNS = {
    "blksum --json": blksum_runs,
    "blksum --check --json": check_runs,
    "blksum --expect --json": expect_runs,
    "blkhash algorithms --json": algorithms_runs,
    "blkhash bench --json": bench_runs,
    "blkhash bench --quality --json": quality_runs,
    "blkhash bench image --json": image_runs,
    "blkhash info --json": image_info_runs,
    "blkhash owners --json": owners_runs,
    "blkhash check --json": health_runs,
    "blkhash btrfs verify --json": verify_runs,
    "blkhash btrfs info --json": info_runs,
    "blkhash btrfs algorithms --json": btrfs_algorithms_runs,
    "blkhash map show --json": show_runs,
    "blkhash map history --json": history_runs,
    "blkhash map verify --json": verify_map_runs,
    "blkhash map diff --json": diff_runs,
    "blkhash map update --json": update_runs,
    "blkhash map audit --json": audit_runs,
    "blkhash map changes --json": changes_runs,
    "blkhash map bitmaps --json": bitmaps_runs,
    "blkhash map dups --json": dups_runs,
    "blkhash verity digest --json": digest_runs,
    "blkhash verity format --json": format_runs,
    "blkhash verity verify --json": verify_verity_runs,
    "blkcopy --json": copy_runs,
}


def test_every_command_has_a_section():
    assert set(COMMANDS) == set(RUNS)
    listed = re.findall(r"^\| \[`(.* --json)`\]", TEXT, re.MULTILINE)
    assert listed == COMMANDS


# Commands that have a table in common print all of its fields together.
TOGETHER = [
    ["blksum --json", "blksum --check --json", "blksum --expect --json"],
    ["blkhash map verify --json", "blkhash map diff --json", "blkhash map audit --json"],
]
ALONE = [[command] for command in RUNS if not any(command in commands for commands in TOGETHER)]


@pytest.mark.parametrize("commands", TOGETHER + ALONE, ids=" ".join)
def test_fields(workdir, commands):
    seen = set()
    for number, command in enumerate(commands):
        os.mkdir(f"run{number}")
        with contextlib.chdir(f"run{number}"):
            seen |= check(command, RUNS[command]())
    promised = {(name, field) for command in commands for name in tables_of(command) for field in TABLES[name]}
    promised |= {(name, field) for name in {name for name, _ in seen} for field in TABLES[name]}
    unseen = promised - seen
    if not measures():
        unseen = {(name, field) for name, field in unseen if not field.startswith("measured[]")}
    assert not unseen, f"{commands} never print {unseen}, which docs/reference/json.md names"


def test_every_table_is_of_a_command_or_linked():
    of_commands = {name for command in DESCRIBED_BY for name in tables_of(command)}
    assert of_commands | set(LINKS.values()) | {"progress"} == set(TABLES)


@pytest.mark.parametrize("command", RUNS)
def test_examples(command):
    examples = re.findall(r"```json\n(.*?)```", SECTIONS[command], re.DOTALL)
    assert examples, command
    for example in examples:
        check(command, example.splitlines())


def test_names_that_are_not_text(workdir):
    """A name with the byte 0xff has its bytes beside it in each command."""
    name = b"\xff"
    layout = file_system()
    os.rename("fs", name)
    run("blkhash", "map", "create", "-o", b"\xff.blkmap", name)
    run("blkhash", "verity", "format", "--root-hash-file", "root.hash", name, b"\xff.hash")
    [info] = map(json.loads, run("blkhash", "btrfs", "info", "--json", name))
    assert info["devices"][0] == {"id": 1, "name": "\ufffd", "name_bytes": "ff", "size": 128 << 20}
    assert (info["label"], info["label_bytes"]) == ("caf\ufffd", "636166e9")
    [digest] = map(json.loads, run("blkhash", "verity", "digest", "--json", name))
    [show] = map(json.loads, run("blkhash", "map", "show", "--json", b"\xff.blkmap"))
    assert (digest["name_bytes"], show["name_bytes"]) == ("ff", b"\xff.blkmap".hex())
    with filesystems.changed(name, layout.places(layout.data[0][0])[0]):
        error, summary = map(json.loads, run("blkhash", "btrfs", "verify", "--json", name, statuses=(1,)))
        hashes = [b"\xff.hash", "--root-hash-file", "root.hash"]
        verity = run("blkhash", "verity", "verify", "--json", name, *hashes, statuses=(1,))
        *_, difference = run("blkhash", "map", "verify", "--json", b"\xff.blkmap", name, statuses=(1,))
    assert error["device_name"] == error["name"] == summary["name"] == "\ufffd"
    assert error["device_name_bytes"] == error["name_bytes"] == summary["name_bytes"] == "ff"
    for line in map(json.loads, verity):
        assert (line["name_bytes"], line["hash_file_bytes"]) == ("ff", b"\xff.hash".hex())
    sides = json.loads(difference)
    assert (sides["left"]["name_bytes"], sides["right"]["name_bytes"]) == (b"\xff.blkmap".hex(), "ff")


def test_categories(workdir):
    file_system()
    summary = json.loads(run("blkhash", "btrfs", "verify", "--json", "fs")[-1])
    named = re.findall(r"^\| `(\w+)` \|", SECTIONS[CATEGORIES], re.MULTILINE)
    assert sorted(named) == sorted(summary["errors"]) == sorted(summary["errors_not_printed"])


def test_a_field_that_is_not_named_fails():
    with pytest.raises(AssertionError, match="prints 'surprise'"):
        check("blksum --json", ['{"name": "a", "error": "b", "surprise": 1}'])
    with pytest.raises(AssertionError, match="name is 1, and not"):
        check("blksum --json", ['{"name": 1}'])
    with pytest.raises(AssertionError, match="has no {'length'}"):
        check("blkhash map changes --json", ['{"type": "extent", "offset": 0}'])
    with pytest.raises(AssertionError, match="in another order"):
        check("blksum --json", ['{"error": "b", "name": "a"}'])
    with pytest.raises(AssertionError, match="tried is"):
        check("blksum --expect --json", ['{"name": "a", "tried": [1]}'])
