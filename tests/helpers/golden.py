"""Golden files: what a release wrote, and later ones must read.

Run as a program, this file writes test-vectors/golden/VERSION with the programs in the folder that is named, whose version
that is: `golden.py target/release`. It never changes a folder that is there. tests/commands/test_golden.py reads all of them.
"""

import base64
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "test-vectors" / "golden"
sys.path.insert(0, str(ROOT / "reference"))

import images  # noqa: E402
import imagespec  # noqa: E402
import interfaces  # noqa: E402
import json_tables  # noqa: E402

# The images of which the files are: raw ones by their specs. They never change; other files get new ones.
SPECS = {
    "disk": "96k:# 928k:- 64k:0 20k:B 940k:- 512:C",
    "before": "64k:# 4k:A 28k:# 928k:- 60k:0 4k:D 20k:B 940k:- 512:C",
    "short": "96k:# 928k:- 64k:0",
    "long": "96k:# 928k:- 64k:0 20k:B 940k:- 512:C 300k:- 40k:E",
    "whole": "96k:# 928k:- 64k:0 20k:B 940k:-",
}
TABLE = """label: gpt
label-id: 00000000-0000-0000-0000-000000000001
first-lba: 2048
start=2048, size=2048, type=linux, uuid=00000000-0000-0000-0000-000000000002
"""
FORMATS = ("qcow2", "vmdk", "vhdx", "vdi", "vpc", "qed", "parallels", "qcow")
ODD_NAME = "new\nline (1) = \\.img"
# A raw disk whose guest wrote the magic of qcow2 to its beginning.
GUEST = b"QFI\xfb" + bytes(4092)
KEY = b"golden key, which is no secret.\n"

DIGESTS = (
    *("crc32", "crc32c", "crc64", "crc64nvme", "xxh64", "xxh3", "xxh128", "md5", "sha1", "sha224", "sha256", "sha384"),
    *("sha512", "sha512-224", "sha512-256", "sha3-224", "sha3-256", "sha3-384", "sha3-512", "blake2b256", "blake2b512"),
    *("blake2s256", "blake3"),
)

# File, and the commands that wrote it. Lines of other programs follow in `write_lines_of_others`.
CHECK_FILES = {
    "plain.sums": ["blksum disk.img {formats} compressed.qcow2 overlay.qcow2", "blksum -b disk.img", "blksum {odd}"],
    "base64.sums": ["blksum --base64 disk.img disk.qcow2"],
    "oci.sums": ["blksum --style oci disk.img", "blksum -d blake3 --style oci disk.qcow2"],
    "tags.sums": [
        "blksum --tag disk.img {formats} {odd}",
        *(f"blksum --tag -d {digest} disk.qcow2" for digest in DIGESTS),
        *(f"blksum --tag --construction {how} disk.qcow2" for how in ("streams:1", "streams:64", "flat", "concat", "linear")),
        *(f"blksum --tag --block-size {size} disk.qcow2" for size in ("512", "4K", "64M")),
        "blksum --tag --construction fs-verity disk.qcow2",
        "blksum --tag --construction fs-verity -d sha512 --salt 00ff disk.qcow2",
        "blksum --tag --construction dm-verity --salt 5e whole.img",
    ],
    "parts.sums": [
        "blksum --tag --snapshot 'before upgrade' snapshots.qcow2",
        "blksum --tag --partition 1 partitioned.img",
        "blksum --tag --offset 512 --length 131072 disk.qcow2",
        "blksum --tag --length 65536 disk.img",
        "blksum --tag --offset 65536 disk.qcow2",
        "blksum --tag -f raw guest.img",
        "blksum --tag --vpc-size current disk.vpc",
        "blksum --tag -f raw --offset 512 guest.img",
    ],
    "bytes.sums": ["blksum -B disk.img", *(f"blksum -B --tag -d {digest} disk.img" for digest in DIGESTS)],
    # How these were computed is not in the lines.
    "unknown.sums": [
        *(f"blksum --construction {how} disk.img" for how in ("streams:32", "streams:64", "flat", "concat", "linear")),
        *(f"blksum -d {digest} disk.qcow2" for digest in ("md5", "sha1", "sha512", "blake3")),
        "blksum --construction concat -d blake2b256 --block-size 4M disk.img",
    ],
}

# Map, and the commands that write it. The options of `blkhash map create` are the header's.
MAPS = {
    "sha256": ["blkhash map create -o {} disk.qcow2"],
    "blake3-salt": ["blkhash map create -o {} --no-source -d blake3 --salt 00ff disk.img"],
    "sha512": ["blkhash map create -o {} --no-source -d sha512 disk.img"],
    "crc32c": ["blkhash map create -o {} --no-source -d crc32c --block-size 16K disk.img"],
    "sealed": ["blkhash map create -o {} --no-source --key-file key disk.img"],
    "history": [
        "blkhash map create -o {} --no-source before.img",
        "blkhash map update -q --trust --no-source --changes changes.list {} disk.img",
    ],
    "part-1-of-2": ["blkhash map create -o {} --no-source --block-size 4K --shard 1/2 disk.img"],
    "part-2-of-2": ["blkhash map create -o {} --no-source --block-size 4K --shard 2/2 disk.img"],
}

# Delta, the content that it is for, and the options of the map of that.
DELTAS = {
    "same-size": ("before", "--block-size 4K"),
    "grows": ("short", "--block-size 4K -d blake3"),
    "shrinks": ("long", "--block-size 4K --salt 5e"),
}

# Each format of `blkhash map export`, and what `import` has to be told.
EXPORTS = {
    "lines": "--from lines --block-size 64K",
    "csv": "--from csv --block-size 64K",
    "json": "--from json",
    "bmap": "--from bmap",
    "fidx": "--from fidx",
    "caibx": "--from caibx",
    "raw": "--from raw --block-size 64K --size 2097664",
}

VERITY = [
    "blkhash verity digest --salt 5e --out-merkle-tree disk.tree --out-descriptor disk.descriptor disk.img > disk.digest",
    "blkhash verity format --salt 00ff --uuid 01234567-89ab-4def-8123-456789abcdef --root-hash-file whole.root"
    " whole.img whole.verity > whole.txt",
]

# Exit statuses of docs/reference/check-file.md, docs/use/maps.md, docs/use/verity.md, docs/use/btrfs.md and blkcopy(1).
STATUSES = {
    "blksum disk.qcow2": 0,
    "blksum missing.img": 1,
    "blksum --no-such-option disk.img": 2,
    "blksum -c plain.sums": 0,
    "sed s/disk.img/before.img/ tags.sums | blksum -c -": 1,
    "blksum -c disk.img": 1,
    "echo 'BLKSUM-NEW-FLAT-64K (disk.img) = 00' | cat tags.sums - | blksum -c -": 1,
    "echo no line | cat tags.sums - | blksum -c -": 0,
    "echo no line | cat tags.sums - | blksum -c --strict -": 1,
    "blksum -c --ignore-missing no.sums": 1,
    "blksum --expect 00112233445566778899aabbccddeeff disk.img": 1,
    "blksum --expect nonsense disk.img": 2,
    "blksum --untrusted overlay.qcow2": 1,
    "blkhash map check sha256.blkmap sealed.blkmap": 0,
    "blkhash map check --key-file other.key sealed.blkmap": 1,
    "blkhash map check damaged.blkmap": 1,
    "blkhash map check disk.img": 2,
    "blkhash map verify sha256.blkmap disk.vmdk": 0,
    "blkhash map verify sha256.blkmap before.img": 1,
    "blkhash map verify sha256.blkmap missing.img": 2,
    "blkhash map diff history.blkmap@1 history.blkmap": 1,
    "blkhash map diff sha256.blkmap blake3-salt.blkmap": 2,
    "blkhash map merge -o half.blkmap part-1-of-2.blkmap": 1,
    "blkhash map merge -o mixed.blkmap part-1-of-2.blkmap sha256.blkmap": 3,
    "blkhash map show --no-such-option sha256.blkmap": 2,
    "blkhash verity verify --root-hash-file whole.root whole.img whole.verity": 0,
    "blkhash verity verify --root-hash-file whole.root disk-whole.img whole.verity": 1,
    "blkhash verity verify --root-hash-file whole.root whole.img missing.verity": 2,
    "blkhash btrfs verify disk.img": 2,
    "blkhash info missing.img": 2,
    "blkcopy -q disk.qcow2 new.img": 0,
    "blkcopy -q --expect 00112233445566778899aabbccddeeff -d md5 disk.qcow2 other.img": 1,
    "blkcopy -q missing.img none.img": 2,
    "blkcopy -q --apply same-size.delta whole.img": 3,
}


def run(command, folder, programs, status=0):
    """Runs a command of the shell with the programs, and returns its output."""
    path = f"{programs}:{os.environ['PATH']}"
    odd = shlex.quote(ODD_NAME)
    command = command.replace("{formats}", " ".join(f"disk.{it}" for it in FORMATS)).replace("{odd}", odd)
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
    )
    assert result.returncode == status, (command, result)
    return result.stdout


def make_images(folder):
    """Makes the images and other files of the commands. Only their content counts: QEMU decides about the files."""
    here = os.getcwd()
    os.chdir(folder)
    try:
        for name, spec in SPECS.items():
            imagespec.write(spec, f"{name}.img")
        shutil.copy("disk.img", ODD_NAME)
        for fmt in FORMATS:
            options = ["-o", "force_size=on"] if fmt == "vpc" else []
            images.qemu_img("convert", "-f", "raw", "-O", fmt, *options, "disk.img", f"disk.{fmt}")
        images.qemu_img("convert", "-O", "qcow2", "-c", "disk.img", "compressed.qcow2")
        images.create("overlay.qcow2", imagespec.size(SPECS["disk"]), "-b", "disk.qcow2", "-F", "qcow2")
        images.convert("before.img", "snapshots.qcow2")
        images.qemu_img("snapshot", "-c", "before upgrade", "snapshots.qcow2")
        images.qemu_io("snapshots.qcow2", "write -P 88 64k 64k")
        imagespec.write("1024k:- 512k:F 1536k:-", "partitioned.img")
        images.run("sfdisk", "-q", "partitioned.img", stdin=None, input=TABLE.encode())
        pathlib.Path("guest.img").write_bytes(GUEST)
        pathlib.Path("key").write_bytes(KEY)
        pathlib.Path("other.key").write_bytes(KEY[::-1])
        pathlib.Path("changes.list").write_text("65536 4096\n1110016 4096\n")
        shutil.copy("whole.img", "disk-whole.img")
        with open("disk-whole.img", "r+b") as file:
            file.write(b"?")
    finally:
        os.chdir(here)


def options_of(programs):
    """The options of each command and of those below it, from their usage."""
    found, todo = {}, ["blksum", "blkhash", "blkcopy"]
    while todo:
        command = todo.pop(0)
        usage = run(f"{command} --help", ROOT, programs).decode()
        lines = re.findall(r"^ +(-.*?)(?:  |$)", usage, re.MULTILINE)
        names = {name for line in lines for name in re.findall(r"(?:^|, )(--?[A-Za-z0-9][\w-]*)", line)}
        found[command] = sorted(names)
        commands = re.search(r"^Commands:\n((?:  .*\n)+)", usage, re.MULTILINE)
        below = re.findall(r"^  (\w[\w-]*)", commands[1], re.MULTILINE) if commands else []
        todo += [f"{command} {name}" for name in below if name != "help"]
    return found


def json_fields():
    """The fields of each command in docs/reference/json.md, with their types."""
    commands = [command for command in json_tables.DESCRIBED_BY if not command.startswith("blkhash bench")]
    return {
        command: [line for name in json_tables.tables_of(command) for line in fields_of(json_tables.TABLES[name])]
        for command in commands
    }


def fields_of(table):
    """Each field of a table, and the fields of objects that another table describes."""
    for name, field in table.items():
        yield f"{name}: " + " or ".join(kind.split(" of ")[0] for kind in field.types)
        if field.link:
            inside = "[]." if any(kind.startswith("array") for kind in field.types) else "."
            for line in fields_of(json_tables.TABLES[field.link]):
                yield f"{name}{inside}{line}"


def symbols():
    """The symbols of both C libraries."""
    folders = {"libblkhash": "crates/capi", "libblksum": "crates/capi-images"}
    return {name: (ROOT / folder / "symbols.txt").read_text().split() for name, folder in folders.items()}


def write_lines_of_others(folder):
    """Lines of openssl, BSD and old tools, with what people add to them, from hashlib."""
    content = (folder / "disk.img").read_bytes()
    sha256, md5, sha1 = (hashlib.new(name, content).hexdigest() for name in ("sha256", "md5", "sha1"))
    lines = [
        *("# a comment", "", f"SHA256(disk.img)= {sha256}", f"SHA2-256 (disk.img) = {sha256}\r", f"  MD5 (disk.img) = {md5.upper()}"),
        f"SHA1 (disk.img) = {base64.b64encode(bytes.fromhex(sha1)).decode()}",
        *(f"{sha256}  disk.img\r", f"{sha1} *disk.img"),
    ]
    (folder / "others.sums").write_text("\n".join(lines))
    (folder / "bsd.sums").write_text(f"{sha256} disk.img\n{md5} disk.img\n")


def values(folder):
    """Texts for --expect, each of disk.img: what programs and clouds write."""
    content = (folder / "disk.img").read_bytes()
    sha256, sha512, md5 = (hashlib.new(name, content) for name in ("sha256", "sha512", "md5"))
    text = base64.b64encode(sha256.digest()).decode()
    parts = [hashlib.sha256(content[at : at + 524288]).digest() for at in range(0, len(content), 524288)]
    composite = base64.b64encode(hashlib.sha256(b"".join(parts)).digest()).decode()
    return [
        *(sha256.hexdigest(), sha256.hexdigest().upper(), text, text.rstrip("="), f"sha256-{text}", f"sha256:{sha256.hexdigest()}"),
        *(f"sha512={sha512.hexdigest()}", md5.hexdigest(), f"{sha256.hexdigest()}  some name", f"{composite}-{len(parts)}"),
    ]


def write(folder, programs):
    """Writes the golden files of the programs to the folder, among the images."""
    make_images(folder)
    for name, commands in CHECK_FILES.items():
        (folder / name).write_bytes(b"".join(run(command, folder, programs) for command in commands))
    write_lines_of_others(folder)
    for name, commands in MAPS.items():
        for command in commands:
            run(command.replace("{}", f"{name}.blkmap"), folder, programs)
    for name, (base, options) in DELTAS.items():
        run(f"blkhash map create {options} -o base-{name}.blkmap {base}.img", folder, programs)
        run(f"blkcopy -q --delta-from base-{name}.blkmap disk.img - > {name}.delta", folder, programs)
    for form in EXPORTS:
        run(f"blkhash map export --to {form} -o disk.{form} sha256.blkmap", folder, programs)
    for command in VERITY:
        run(command, folder, programs)
    (folder / "values.json").write_text(json.dumps(values(folder), indent=1) + "\n")
    (folder / "statuses.json").write_text(json.dumps(STATUSES, indent=1) + "\n")
    (folder / "interface.json").write_text(json.dumps(interface(programs), indent=1) + "\n")


def interface(programs):
    """What scripts and programs rely on, by kind and by the item that has it."""
    return {
        "options": options_of(programs),
        "json": json_fields(),
        "symbols": symbols(),
        "rust": interfaces.rust(),
        "go": interfaces.go(),
        "python": interfaces.python(),
    }


def golden_names():
    """The files of a folder of golden files."""
    yield from (*CHECK_FILES, "others.sums", "bsd.sums", "values.json", "statuses.json", "interface.json")
    yield from (f"{name}.blkmap" for name in MAPS)
    yield from (f"{name}.delta" for name in DELTAS)
    yield from (f"disk.{form}" for form in EXPORTS)
    yield from ("disk.tree", "disk.descriptor", "disk.digest", "whole.verity", "whole.root", "whole.txt")


def main():
    import tempfile

    programs = pathlib.Path(sys.argv[1]).resolve()
    version = run("blksum --version", ROOT, programs).decode().split()[1]
    target = GOLDEN / version
    if target.exists():
        sys.exit(f"{target} is there, and golden files never change")
    with tempfile.TemporaryDirectory() as folder:
        write(pathlib.Path(folder), programs)
        target.mkdir(parents=True)
        for name in golden_names():
            shutil.copy(pathlib.Path(folder, name), target / name)


if __name__ == "__main__":
    main()
