"""Commands in the documentation, and the folder in which they run.

Pages are all files in Markdown, including the sources of the manual pages. In a page:

- A block that begins with ```console has commands after `$ `, or `# ` for commands of root, each followed by
  its output. A block of ```json directly below it has the lines of this output that are JSON.
- A block that begins with ```sh has commands whose output is not shown.

Run as a program, this file fills in the output of the pages named on the command line, after the folder of
the commands: `documents.py target/release docs/use/cookbook.md`.
"""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "reference"))

import backups  # noqa: E402
import blkhash  # noqa: E402
import blkmap  # noqa: E402
import dmg_images  # noqa: E402
import filesystems  # noqa: E402
import images  # noqa: E402
import imagespec  # noqa: E402
import iso_images  # noqa: E402
import servers as nbd  # noqa: E402

# Commands that are not run, by their beginnings, and why.
NOT_RUN = {
    "cargo run --release": "builds the project",
    "cargo build": "builds the project",
    "git clone": "copies the project",
    "cd blkhash": "enters the copy",
    "make quick": "runs tests",
    "cargo test": "runs tests",
    "export BLKSUM": "chooses the program for tests",
    ".venv/bin/python -m pytest": "runs tests",
    "make build deb": "tests/packages/test_packages.py makes the packages and installs them",
    "make record": "builds a release and measures; tests/packages/test_record.py runs it for seconds",
    "python3 scripts/first-run": "builds and tests everything; tests/packages/test_first_run.py runs its parts",
    "podman": "needs an engine for containers; tests/packages/test_packages.py runs the root that the image has",
    "buildah": "pulls images of others; tests/packages/test_kubernetes.py runs the root that the image has",
    "kubectl": "needs a cluster; tests/packages/test_kubernetes.py runs the jobs",
    "sbatch": "needs a cluster",
    "virsh": "needs a virtual machine",
    "virt-v2v": "converts a virtual machine; the log is made from the values of its disks",
    "sudo": "changes the host; tests/packages/test_operations.py installs the units and runs them",
    "journalctl": "needs a host with systemd",
    "nbdkit": "needs a build of the filter; tests/libraries/test_nbdkit_filter.py runs it",
    "nbdcopy --blkhash": "needs a newer libnbd than Debian 12's",
    "bmaptool": "writes to a device; tests/maps/test_map_bmap.py runs it",
    "btrfs scrub": "needs a mounted btrfs; tests/btrfs/test_btrfs.py runs it next to blkhash",
    "btrfs subvolume": "needs a snapshot that has another name; tests/maps/test_reflink.py takes snapshots",
    "fsverity enable": "needs a file system with fs-verity",
    "fsverity measure": "needs a file system with fs-verity",
    "veritysetup open": "needs device mapper",
    "contrib/qemu/build": "builds QEMU; make test-qemu does",
    "qemu-nbd --fork": "leaves a server running; another one stands in for it",
}

# What stands in for names that are not on every host. Names in braces are known once the servers run.
STAND_INS = {
    # Folders and files of the host.
    "/var/lib/images": "images",
    "/var/lib/libvirt/images/vm.qcow2": "disk.qcow2",
    "/srv": "images",
    "/home": "{mounted}",
    # tests/libraries/test_qemu_img_checksum.py compares the lines of the command, which needs a build of QEMU.
    "qemu-img checksum": "blksum",
    "make help": f"make -C {ROOT} help",
    # Devices.
    "/dev/sda": "sda.img",
    "/dev/sdb": "sdb.img",
    "/dev/sdX": "sdx.img",
    "/dev/sdY": "sdy.img",
    # Servers on other hosts, and ports and sockets that may be in use. The URI with TLS names the folder with
    # the certificate of its CA.
    "nbd://localhost/disk": "{tcp}",
    "nbd://host/disk": "{writable}",
    "ssh host": "sh -c",
    "nbd://server/export": "{tcp}",
    "nbds://backup.example.com/disk": "{tls}",
    "disk.img 'nbd+unix:///disk?socket=/run/nbd.sock'": "disk.img {writable}",
    "nbd+unix:///disk?socket=/run/nbd.sock": "{unix}",
    "nbd+unix:///?socket=nbd-socket": "{unix}",
    # An image with an error, where the other commands of the page need one without.
    "verify --json disk.qcow2": "verify --json damaged.qcow2",
}

# Options for measurements that would take minutes.
SHORTER = {
    "blkhash bench": "--time 0.001",
    "blkhash bench --tools": "--time 0.001 --filter sha256",
    "blkhash bench --format hash-speedtest --batch 1": "--iterations 16",
    "blkhash bench --block-size 64k --threads 1,all --cold --svg bench.svg": "--time 0.001 --filter sha256",
    "blkhash bench --quality": "--filter crc32 --filter xxh64",
    "blkhash bench image /var/lib/images/disk.qcow2": "--time 0.01",
    "blkhash bench image disk.qcow2": "--time 0.01",
    "blkhash bench image -d sha256 -d blake3 --threads 1,2,4 disk.qcow2": "--time 0.01",
    "blkhash bench image --json --digest sha256 --threads 2 disk.img": "--time 0.01",
}

VERIFY = "blkhash verity verify --root-hash-file root.hash"

# The exit status of commands that find or meet an error.
STATUS = {
    "blksum -c monday.sums": 1,
    "blksum -c *.iso": 1,
    "sed 's/backup.qcow2/damaged.img/' backup.sums | blksum -c -": 1,
    "blksum --untrusted overlay.qcow2": 1,
    "blksum --json disk.qcow2 missing.img": 1,
    "blksum --check --json SUMS": 1,
    "blkhash btrfs verify disk.img": 1,
    "blkhash btrfs verify device1 device3 device4": 2,
    "blkhash btrfs verify --json btrfs.img": 1,
    "blkhash check --json ext4-damaged.img": 1,
    "blkhash map verify ext4.blkmap ext4-copy.img": 1,
    "blkhash map diff --ignore-free --block-size 4k --extents ext4-copy.img ext4.img": 1,
    "blkhash btrfs verify --json disk.qcow2 | jq -r '.owners[]?.paths[]?.name'": 1,
    f"{VERIFY} damaged.img disk.verity": 1,
    "blkhash verity verify --root-hash-file btrfs.root btrfs-damaged.img btrfs.verity": 1,
    f"{VERIFY} disk.img damaged.verity": 1,
    f"{VERIFY} damaged.img damaged.verity": 1,
    "blkhash verity verify --fs-verity --root-hash-file disk.digest damaged.img disk.tree": 1,
    "blkhash verity verify --json --root-hash-file root.hash damaged.img disk.verity": 1,
    "blkhash verity format odd.img odd.verity": 2,
    "blkhash map diff monday.blkmap tuesday.blkmap": 1,
    "blkhash map diff --picture monday.blkmap tuesday.blkmap": 1,
    "blkhash map diff --extents monday.blkmap tuesday.img": 1,
    "blkhash map diff --extents drive-scsi0.img.fidx tuesday.fidx": 1,
    "blkhash map diff --max-errors 1 vm.blkmap@1 vm.blkmap": 1,
    "blkhash map audit --changes list vm.blkmap@1 vm.qcow2": 1,
    "blkhash map audit --json --changes changes.list changes.blkmap changes.qcow2": 1,
    "blkhash map diff disk.blkmap@1 disk.blkmap": 1,
    "blkhash map verify --picture=where.svg disk.blkmap damaged.img": 1,
    "blkhash map verify disk.bmap disk.img": 2,
    "blkhash map verify monday.blkmap damaged.img": 1,
    "blkhash map verify --picture monday.blkmap damaged.img": 1,
    "blkhash map verify --key-file map.key forged.blkmap forged.img": 2,
    "blkhash map verify disk.blkmap damaged.img": 1,
    "blkhash map diff disk.blkmap today.blkmap": 1,
    "blkhash map verify --json disk.blkmap damaged.img": 1,
    "blkhash map diff --max-errors 1 monday.qcow2 tuesday.qcow2": 1,
    "blkhash map diff --json disk.blkmap damaged.blkmap": 1,
    "blkhash map merge -o merged.blkmap vm.*-of-4.blkmap": 1,
    "blkhash map show --id vm.blkmap": 2,
}

CONTENT = "64k:A 1984k:- 64k:0 192k:B 5888k:-"
TABLE = """label: gpt
label-id: 00000000-0000-0000-0000-000000000001
first-lba: 2048
start=2048, size=4096, type=linux, uuid=00000000-0000-0000-0000-000000000002
"""
# The UUIDs are the halves of the root hash of disk.img with the salt 5e, as systemd-repart chooses them.
VERITY_PARTITIONS = """label: gpt
start=2048, size=16384, uuid=2a6f7942-94c8-4a87-ff19-2a5366169840
start=18432, size=2048, uuid=6a511911-e369-eb45-7c51-a4f692174621
"""
VM_PARTITION = """label: gpt
label-id: 00000000-0000-0000-0000-000000000001
start=2048, size=120832, type=linux, uuid=00000000-0000-0000-0000-000000000002
"""
THREE_PARTITIONS = """label: gpt
start=2048, size=2048
start=4096, size=2048
start=8192
"""
MIB = 1 << 20
ARCHIVE = b"mail\n" * 100_000

# Checksums in it depend on the UUID.
EXT4_UUID = "00000000-0000-0000-0000-000000000004"


class Command(NamedTuple):
    """A command of a page, and its output if the page shows it."""

    text: str
    output: str | None


# Languages of blocks that are not commands, and those that are. The tests of the package run Python.
LANGUAGES = {"c", "go", "ini", "json", "python", "rust", "rust,no_run", "text"} | {"console", "sh"}


def markdown():
    """All files in Markdown."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name != "target" and not name.startswith(".")]
        yield from (pathlib.Path(folder, name) for name in names if name.endswith(".md"))


def pages():
    """The paths of all pages that have commands, relative to the root folder."""
    names = sorted(str(path.relative_to(ROOT)) for path in markdown())
    return [name for name in names if commands(name)]


def commands(page):
    """The commands of a page, in order."""
    return [command for block in blocks((ROOT / page).read_text()) for command in block]


BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$(?:\n```json\n(.*?)^```$)?", re.M | re.S)


def blocks(text):
    """The commands of each block of a page in Markdown."""
    for kind, block, objects in BLOCK.findall(text):
        if kind == "sh":
            yield [Command(line.split("  #")[0].rstrip(), None) for line in block.splitlines()]
            continue
        found = re.findall(r"^[$#] (.*)\n((?:(?![$#] ).*\n)*)", block, re.M)
        *before, (last, output) = found
        yield [*(Command(*pair) for pair in before), Command(last, output + objects)]


def reason_not_run(command):
    """Why a command is not run, or None if it is."""
    return next((why for text, why in NOT_RUN.items() if command.startswith(text)), None)


@contextlib.contextmanager
def folder_of(page, programs):
    """Makes every file that the page names in the current folder, and starts the servers. Gives a Shell with
    the commands in the folder `programs`."""
    with contextlib.ExitStack() as stack:
        text = "\n".join(command.text for command in commands(page))
        make_images()
        path = os.environ["PATH"]
        stack.callback(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{programs}:{path}"
        if page in MORE:
            MORE[page]()
        places = {}
        if "nbd" in text:
            places |= start_servers(stack)
        if "/home" in text:
            filesystems.require()
            places["mounted"] = str(stack.enter_context(filesystems.mounted(["btrfs.img"])))
        if "--reflink" in text:
            make_two_snapshots(pathlib.Path(places["mounted"]))
        yield Shell(programs, places)


def make_two_snapshots(root):
    """Makes two states of a disk that share extents, and the map of the first one."""
    for day in ("monday", "tuesday"):
        (root / f".{day}").mkdir()
    monday, tuesday = (root / f".{day}/disk.img" for day in ("monday", "tuesday"))
    images.run("cp", "disk.img", str(monday))
    images.run("cp", "--reflink=always", str(monday), str(tuesday))
    with open(tuesday, "r+b") as file:
        file.write(b"changed")
    images.run("blkhash", "map", "create", "-o", str(root / "monday.blkmap"), str(monday))


def make_images():
    imagespec.write(CONTENT, "disk.img")
    for name in ("disk.qcow2", "upload.qcow2", "snapshots.qcow2"):
        images.convert("disk.img", name)
    images.qemu_img("snapshot", "-c", "before-upgrade", "snapshots.qcow2")
    images.qemu_img("convert", "-O", "qcow2", "-c", "disk.img", "compressed.qcow2")
    images.create("overlay.qcow2", "8M", "-b", "disk.qcow2", "-F", "qcow2")
    for fmt in ("vmdk", "vhdx"):
        images.qemu_img("convert", "-O", fmt, "disk.img", f"disk.{fmt}")
    images.run("gzip", "-nk", "disk.img")
    imagespec.write("1024k:- 512k:C 6656k:-", "partitioned.img")
    images.run("sfdisk", "-q", "partitioned.img", stdin=None, input=TABLE.encode())
    images.convert("partitioned.img", "partitioned.qcow2")
    os.mkdir("images")
    for name in ("a.img", "b.img"):
        imagespec.write(CONTENT, f"images/{name}")
    images.convert("disk.img", "images/c.qcow2")
    pathlib.Path("SHA256SUMS").write_bytes(images.run("sha256sum", "disk.img", "disk.qcow2"))
    make_btrfs("btrfs.img")
    images.convert("btrfs.img", "btrfs.qcow2")
    make_ext4("ext4.img")


def make_ext4(path):
    """Makes a file system with the file home/user/mail/archive, without a mount."""
    os.makedirs("root/home/user/mail")
    pathlib.Path("root/home/user/mail/archive").write_bytes(ARCHIVE)
    images.run("mke2fs", "-q", "-t", "ext4", "-b", "4096", "-O", "metadata_csum,^resize_inode", "-U", EXT4_UUID, "-d", "root", path, "32M")
    shutil.rmtree("root")


def make_btrfs(path):
    """Makes a file system with the file home/user/mail/archive, without a mount."""
    shutil.rmtree("root", ignore_errors=True)
    os.makedirs("root/home/user/mail")
    pathlib.Path("root/home/user/mail/archive").write_bytes(ARCHIVE)
    filesystems.of_folder(path, "root")
    shutil.rmtree("root")


def damage(path):
    """Changes the first byte of the file home/user/mail/archive in a file system."""
    filesystems.damage(path, ARCHIVE[:4096])


def make_for_alternatives():
    images.convert("disk.img", "backup.qcow2")
    shutil.copy("btrfs.img", "sdy.img")


def make_bmap():
    images.run("bmaptool", "create", "-o", "disk.bmap", "disk.img")


def make_for_copies():
    """A compressed image, a damaged one, a device, and a bmap."""
    make_bmap()
    images.run("zstd", "-q", "-o", "disk.raw.zst", "disk.img")
    shutil.copy("disk.img", "damaged.img")
    with open("damaged.img", "r+b") as file:
        file.seek(4 * MIB)
        file.write(b"x" * 65536)
    shutil.copy("disk.img", "sdx.img")


def make_for_btrfs():
    """A file system with a damaged file, and one on five devices."""
    filesystems.require()
    filesystems.make(["disk.img"])
    with filesystems.mounted(["disk.img"]) as root:
        (root / "home/user/mail").mkdir(parents=True)
        (root / "home/user/mail/archive").write_bytes(ARCHIVE)
        (root / "nodatasum").touch()
        images.run("chattr", "+C", str(root / "nodatasum"))
        (root / "nodatasum").write_bytes(b"X" * 300_000)
        images.run("fallocate", "-l", "960K", str(root / "preallocated"))
    damage("disk.img")
    devices = [f"device{number}" for number in range(1, 6)]
    filesystems.make(devices, "-d", "raid6", "-m", "raid6")
    with filesystems.mounted(devices) as root:
        (root / "file").write_bytes(b"content\n" * (1 << 20))


def make_for_json():
    make_changes()
    checksum = blkhash.checksum(imagespec.chunks(CONTENT)).hex()
    lines = [f"BLKSUM-SHA256-STREAMS4-64K ({name}) = {checksum}\n" for name in ("disk.img", "gone.img")]
    pathlib.Path("SUMS").write_text("".join(lines))
    damage("btrfs.img")
    root = images.run("veritysetup", "format", "--salt=5e", "disk.img", "disk.verity")
    pathlib.Path("root.hash").write_bytes(re.search(rb"Root hash:\s+(\w+)", root)[1])
    shutil.copy("disk.img", "damaged.img")
    with open("damaged.img", "r+b") as file:
        file.seek(70_000)
        file.write(b"x")


def make_migration():
    """Two disks, a damaged one, and a log with their values as virt-v2v prints them, in another order."""
    for number, fill in [(1, "A"), (2, "D")]:
        imagespec.write(CONTENT.replace("64k:A", f"64k:{fill}"), "migrated.img")
        images.convert("migrated.img", f"disk{number}.qcow2")
    damaged = CONTENT.replace("192k:B", "128k:B 64k:-")
    imagespec.write(damaged, "migrated.img")
    images.convert("migrated.img", "damaged.qcow2")
    values = [
        blkhash.checksum(imagespec.chunks(CONTENT.replace("64k:A", f"64k:{fill}")), construction="flat").hex()
        for fill in ("D", "A")
    ]
    lines = ["[   0.0] Setting up the source", "[  41.2] Copying disks", *values, "[  58.7] Finishing off"]
    pathlib.Path("v2v.log").write_text("".join(f"{line}\n" for line in lines))
    pathlib.Path("disk.blkhash").write_text(f"{values[1]}\n")


def make_btrfs_disks():
    """Images of virtual machines with btrfs, one of them damaged, and two disks with one file system."""
    for name in ("disk.qcow2", "upload.qcow2", "images/disk.qcow2"):
        images.convert("btrfs.img", name)
    images.to_raw("disk.qcow2", "disk.raw")
    shutil.copy("btrfs.img", "damaged.img")
    damage("damaged.img")
    images.convert("damaged.img", "damaged.qcow2")
    devices = ["one", "two"]
    for name in devices:
        pathlib.Path(name).touch()
        os.truncate(name, 200 * MIB)
    images.run("mkfs.btrfs", "-q", "-d", "raid1", "-m", "raid1", *devices)
    for name, disk in zip(devices, ["sda.img", "sdb.img"]):
        pathlib.Path(disk).touch()
        os.truncate(disk, 208 * MIB)
        images.run("sfdisk", "-q", disk, stdin=None, input=THREE_PARTITIONS.encode())
        images.run("dd", f"if={name}", f"of={disk}", "bs=1M", "count=199", "seek=4", "conv=notrunc,sparse")


def make_for_verity():
    """The image of a disk with a partition of data and one of its hashes, and a damaged file system."""
    shutil.copy("btrfs.img", "btrfs-damaged.img")
    damage("btrfs-damaged.img")
    imagespec.write("12m:-", "os.img")
    images.run("sfdisk", "-q", "os.img", stdin=None, input=VERITY_PARTITIONS.encode())
    images.run("veritysetup", "format", "--salt=5e", "disk.img", "hashes")
    for name, start in [("disk.img", 1), ("hashes", 9)]:
        images.run("dd", f"if={name}", "of=os.img", "bs=1M", f"seek={start}", "conv=notrunc,sparse")
    os.remove("hashes")


def fidx(content):
    """Returns the fixed index of a disk in a Proxmox backup."""
    size, chunk = len(content), 4 * MIB
    digests = b"".join(hashlib.sha256(content[at : at + chunk]).digest() for at in range(0, size, chunk))
    head = bytes.fromhex("2f7f41ed91fd0fcd") + bytes(24) + hashlib.sha256(digests).digest()
    return (head + struct.pack("<QQ", size, chunk)).ljust(4096, b"\0") + digests


def make_two_days():
    """An image of a virtual machine with one partition on two days, a bmap, and a card."""
    make_bmap()
    shutil.copy("disk.img", "sdx.img")
    imagespec.write("1m:- 3m:A 4m:- 2m:B 18m:- 4m:C 32m:-", "monday.raw")
    images.run("sfdisk", "-q", "monday.raw", stdin=None, input=VM_PARTITION.encode())
    shutil.copy("monday.raw", "tuesday.raw")
    with open("tuesday.raw", "r+b") as file:
        for offset, byte, length in [(2 * MIB, b"D", 100_000), (30 * MIB, b"\0", MIB), (44 * MIB, b"E", MIB)]:
            file.seek(offset)
            file.write(byte * length)
    for day in ("monday", "tuesday"):
        images.convert(f"{day}.raw", f"{day}.qcow2")
        if day == "monday":
            pathlib.Path("drive-scsi0.img.fidx").write_bytes(fidx(pathlib.Path("monday.raw").read_bytes()))
        os.remove(f"{day}.raw")


def make_for_blksum():
    shutil.copy("disk.img", "disk.raw")
    with open("SHA256SUMS", "a") as file:
        file.write("0" * 64 + "  missing.img\n")


def make_isos():
    """Makes an image of ISO 9660 with an MD5 of itself, and one with a byte that differs."""
    iso_images.create("installer.iso", [bytes(range(256)) * 4096])
    iso_images.implant("installer.iso")
    content = bytearray(pathlib.Path("installer.iso").read_bytes())
    content[500_000] ^= 1
    pathlib.Path("damaged.iso").write_bytes(content)


def make_appliance():
    """An appliance with one disk, and a manifest of its members."""
    disk = pathlib.Path("disk.qcow2").read_bytes()
    descriptor = (
        b'<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="o">'
        b'<References><File ovf:href="disk1.qcow2" ovf:id="f"/></References>'
        b'<DiskSection><Disk ovf:diskId="d" ovf:fileRef="f" ovf:capacity="1"/></DiskSection></Envelope>'
    )
    members = {"vm.ovf": descriptor, "disk1.qcow2": disk}
    lines = [f"SHA256({name})= {hashlib.sha256(content).hexdigest()}\n" for name, content in members.items()]
    with tarfile.open("vm.ova", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in {**members, "vm.mf": "".join(lines).encode()}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def make_archives():
    """Archives with one disk, a backup of it, and its map."""
    disk = pathlib.Path("disk.img").read_bytes()
    pathlib.Path("backup.vma").write_bytes(backups.vma({"drive-scsi0": disk}))
    images.run("zstd", "-q", "--rm", "backup.vma")
    images.run("zip", "-q", "download.zip", "disk.img")
    images.run("tar", "-czf", "disk.raw.tar.gz", "disk.img")
    images.run("blkhash", "map", "create", "-o", "vm.blkmap", "disk.img")


def make_for_tasks():
    make_bmap()
    pathlib.Path("installer.dmg").write_bytes(dmg_images.dmg(pathlib.Path("disk.img").read_bytes()))
    make_archives()
    make_isos()
    shutil.copy("disk.img", "sdx.img")


def make_for_maps():
    """Maps of two days, and of an image that changed on the second one, and copies of it."""
    make_bmap()
    tuesday = CONTENT.replace("64k:0", "64k:C")
    parameters = {"algorithm": "sha256", "block_size": 65536, "file_id": bytes(16)}
    info = json.dumps({"source": {"name": "disk.img", "format": "raw"}})
    first, second = list(imagespec.chunks(tuesday)), list(imagespec.chunks(CONTENT))
    key = b"k" * 32
    maps = {
        "disk": blkmap.append(blkmap.write(first, info=info, **parameters), second, info),
        "monday": blkmap.write(second, info=info, **parameters),
        "tuesday": blkmap.write(first, info=info, **parameters),
        "sealed": blkmap.write(second, info=info, key=key, **parameters),
    }
    for name, content in maps.items():
        pathlib.Path(f"{name}.blkmap").write_bytes(content)
    pathlib.Path("backup.key").write_bytes(key)
    imagespec.write(tuesday, "tuesday.img")
    imagespec.write(tuesday, "damaged.img")
    pathlib.Path("backup.fidx").write_bytes(fidx(pathlib.Path("disk.img").read_bytes()))
    shutil.copy("disk.img", "sda.img")
    shutil.copy("disk.img", "restored.img")
    images.convert("disk.img", "restored.qcow2")


def make_changes():
    """An image with a bitmap, its map, two blocks that changed since, and a list with one of them."""
    images.create("changes.qcow2", "8M")
    images.qemu_io("changes.qcow2", "write -P 65 0 64k", "write -P 66 1M 1M")
    images.qemu_img("bitmap", "--add", "changes.qcow2", "changes")
    images.run("blkhash", "map", "create", "-o", "changes.blkmap", "changes.qcow2")
    images.qemu_io("changes.qcow2", "write -P 67 64k 128k")
    pathlib.Path("changes.list").write_text("65536 65536\n")


def make_for_updates():
    """What the pages of update, audit, changes and bitmaps name."""
    images.qemu_img("bitmap", "--add", "disk.qcow2", "changes")
    images.run("blkhash", "map", "create", "-o", "disk.blkmap", "disk.qcow2")
    images.run("blkhash", "map", "create", "-o", "monday.blkmap", "disk.qcow2")
    images.create("template.qcow2", "8M")
    images.run("blkhash", "map", "create", "-o", "template.blkmap", "template.qcow2")
    images.create("vm.qcow2", "8M", "-b", "template.qcow2", "-F", "qcow2")
    images.qemu_io("disk.qcow2", "write -P 67 64k 128k")
    images.run("blkhash", "map", "create", "-o", "tuesday.blkmap", "disk.qcow2")
    pathlib.Path("list").write_text("65536 131072\n")


def make_for_incremental():
    """A backup of a disk that has a bitmap since."""
    os.mkdir("backup")
    images.convert("disk.img", "backup/monday.qcow2")
    images.qemu_img("bitmap", "--add", "disk.qcow2", "monday")
    images.qemu_img("bitmap", "--add", "images/c.qcow2", "changes")
    images.run("blkhash", "map", "create", "images/c.qcow2")


# The commands of `blkhash map` whose examples begin with maps.
MAP_COMMANDS = [
    "check", "checksum", "create", "diff", "dups", "export", "history", "import", "seal", "show", "verify",
]

# What pages need besides the common images.
MORE = {
    "crates/cli/README.md": make_btrfs_disks,
    "crates/cli/man/blkhash-bench-image.md": make_btrfs_disks,
    "crates/cli/man/blkhash-btrfs-info.md": make_btrfs_disks,
    "crates/cli/man/blkhash-btrfs-verify.md": make_btrfs_disks,
    "crates/cli/man/blkhash-btrfs.md": make_btrfs_disks,
    **{
        f"crates/cli/man/blkhash-map{name}.md": make_for_maps
        for name in ["", *(f"-{command}" for command in MAP_COMMANDS)]
    },
    **{
        f"crates/cli/man/blkhash-map-{command}.md": make_for_updates
        for command in ["audit", "bitmaps", "changes", "update"]
    },
    "crates/cli/man/blkcopy.md": make_for_copies,
    "crates/cli/man/blkhash.md": make_btrfs_disks,
    "crates/cli/man/blksum.md": make_for_blksum,
    "docs/use/alternatives.md": make_for_alternatives,
    "docs/use/btrfs.md": make_for_btrfs,
    "docs/reference/check-file.md": make_appliance,
    "docs/use/cookbook.md": make_for_tasks,
    "docs/use/copy.md": make_for_copies,
    "docs/use/incremental.md": make_for_incremental,
    "docs/reference/json.md": make_for_json,
    "docs/use/maps.md": make_two_days,
    "docs/use/migrations.md": make_migration,
    "docs/use/verity.md": make_for_verity,
}


def start_servers(stack):
    """Serves disk.img under any name of an export. Gives the URIs."""
    servers = nbd.Servers()
    stack.callback(servers.close)
    keys = nbd.make_certificates(pathlib.Path("pki").absolute())
    tls = ["--tls=require", f"--tls-certificates={keys}"]
    tls = servers.nbdkit(*tls, "file", "disk.img", tcp=True)
    return {
        "unix": servers.nbdkit("file", "disk.img").uri("disk"),
        "tcp": servers.nbdkit("file", "disk.img", tcp=True).uri("disk"),
        "writable": servers.writable_nbdkit("memory", "8M").uri("disk"),
        "tls": tls.uri("disk", tls=True, tls_certificates=keys),
    }


class Shell:
    """Runs commands in the current folder, with what stands in for places that are not on every host."""

    def __init__(self, programs, places):
        self.programs = programs
        self.places = places

    def run(self, command):
        """The exit status and the output of a command, errors included."""
        stand_ins = {
            text: instead.format(**self.places)
            for text, instead in STAND_INS.items()
            if text in command
        }
        shell = f"{command} {SHORTER[command]}" if command in SHORTER else command
        for text, instead in stand_ins.items():
            shell = shell.replace(text, instead)
        result = subprocess.run(
            ["bash", "-o", "pipefail", "-c", shell],
            env={**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
        )
        output = result.stdout.decode()
        for text, instead in stand_ins.items():
            output = output.replace(instead, text)
        return result.returncode, output


def normalized(command, output):
    """The output without what depends on the host or the run. Lines of JSON come last."""
    lines = output.splitlines()
    objects = [comparable(command, json.loads(line)) for line in lines if is_object(line)]
    if command.startswith(MEASUREMENTS):  # What the kernel computes, it may lack.
        objects = kinds(objects)
    is_random = command.startswith("blkhash verity format") and "--salt" not in command
    lines = [normalized_line(line) for line in lines if not is_object(line)]
    return [re.sub(SALTED, r"\1\2HEX", line) if is_random else line for line in lines] + objects


def is_object(line):
    return line.startswith("{")


# The lines of `verity format` that depend on the salt, which is random by default.
SALTED = r"^(Salt|Root hash)(:\s+)\w+$"

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

# The lines of a summary of `blkhash btrfs verify` that have amounts.
AMOUNTS = r"  (verified|checksums|time|in use|no checksums|rebuilt)  "


def normalized_line(line):
    """Without how much a file takes, how it is read, and where a file system has what."""
    line = re.sub(r"[0-9.]+ [KMG]?i?B stored, read [^;]*", "N stored, read so", line)
    line = re.sub(r"read back (around|through) the page cache", "read back", line)
    line = re.sub(r"[0-9.]+ [KMG]?i?B stored, (?!read)", "N stored, ", line)
    line = re.sub(r"^( +\d+  )\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", r"\1TIME", line)
    line = re.sub(r"^blksum: sandbox: .*", "blksum: sandbox: RULES", line)
    line = re.sub(r": hashing: (\w+)-[\w-]+; \d+ threads?", r": hashing: \1-IMPLEMENTATION; N threads", line)
    line = re.sub(UUID, "UUID", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, blkhash [0-9.]+", "TIME, blkhash VERSION", line)
    line = re.sub(r"\b(logical|physical|inode) \d+", r"\1 N", line)
    line = re.sub(r"\bis 0x[0-9a-f]+, expected 0x[0-9a-f]+", "is N, expected N", line)
    if re.match(AMOUNTS, line):
        line = re.sub(r"[0-9][0-9.]*( [KMGT]?i?B\b| s\b)?", "N", line)
    return line


# Fields that depend on the host or the run.
VARYING = {
    "created",
    "read_back",
    "stored",
    "file_id",
    "program",
    "seconds",
    "bytes_read",
    "fsid",
    "computed",
    "expected",
    "problem",
    "features",
    "implementation",
    "kernel",
    "kernel_advice",
    "storage",
}

# Commands of which every value depends on the CPU.
MEASUREMENTS = ("blkhash algorithms", "blkhash bench", "blkhash btrfs algorithms")


def comparable(command, value):
    """A value of JSON without what depends on the host: of measurements the names of all fields, of file
    systems all but numbers."""
    is_measured = command.startswith(MEASUREMENTS)
    if isinstance(value, dict):
        return {
            key: "varies" if key in VARYING else comparable(command, inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        items = [comparable(command, item) for item in value]
        return kinds(items) if is_measured else items
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_measured or (is_number and command.startswith("blkhash")):
        return "varies"
    return value


def kinds(items):
    """The kinds of objects in a list, each once."""
    return [
        item
        for number, item in enumerate(items)
        if isinstance(item, dict) and item not in items[:number]
    ]


def fill(page, shell):
    """Writes the output of all commands into a page."""

    def filled(match):
        (block,) = blocks(match[0])
        if match[1] == "sh":
            return match[0]
        parts, objects = ["```console\n"], []
        for command, _ in block:
            prompt = re.search(rf"^([$#]) {re.escape(command)}$", match[0], re.M)[1]
            parts.append(f"{prompt} {command}\n")
            if reason_not_run(command):
                continue
            for line in shell.run(command)[1].splitlines(keepends=True):
                (objects if match[3] and is_object(line) else parts).append(line)
        end = ["```\n```json\n", *objects, "```"] if match[3] else ["```"]
        return "".join([*parts, *end])

    text = (ROOT / page).read_text()
    (ROOT / page).write_text(BLOCK.sub(filled, text))


if __name__ == "__main__":
    import tempfile

    programs = os.path.abspath(sys.argv[1])
    for page in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with folder_of(page, programs) as shell:
                    fill(page, shell)
            finally:
                os.chdir("/")
