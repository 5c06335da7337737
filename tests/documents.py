"""Commands in the documentation, and the folder in which they run.

A block that begins with ```console has commands behind `$ `, each followed by its output. Run as a program,
this file fills in the output of the pages named on the command line, where it is `@@`.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "reference"))

import imagespec  # noqa: E402
import images  # noqa: E402

PAGES = ["README.md", "docs/cookbook.md"]

# Commands that are not run, and why.
NOT_RUN = {
    "cargo run --release": "builds the project",
    "make test": "runs the tests themselves",
    "virsh": "needs a virtual machine",
}

CONTENT = "64k:A 1984k:- 64k:0 192k:B 5888k:-"
TABLE = """label: gpt
label-id: 00000000-0000-0000-0000-000000000001
first-lba: 2048
start=2048, size=4096, type=linux, uuid=00000000-0000-0000-0000-000000000002
"""


def make_folder(folder):
    """Makes every file that the pages name, in the current folder. Returns what must be stopped."""
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
    pathlib.Path("btrfs.img").touch()
    os.truncate("btrfs.img", 128 << 20)
    images.run("mkfs.btrfs", "-q", "btrfs.img")
    images.convert("btrfs.img", "btrfs.qcow2")
    os.remove("btrfs.img")
    return subprocess.Popen(
        ["qemu-nbd", "-r", "-t", "-f", "qcow2", "-k", f"{folder}/nbd-socket", "disk.qcow2"],
        stdin=subprocess.DEVNULL,
    )


def blocks(text):
    """The blocks of commands: each a list of pairs of a command and its output."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        yield [
            (command, output)
            for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)
        ]


def unrun(text):
    """Commands in blocks of other shells, which are not run."""
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
        yield from block.splitlines()


def run(command, path):
    """The output of a command in the current folder, errors included."""
    result = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )
    return result.stdout.decode()


def normalized(text):
    """Without what depends on the host: how much a file takes, how it is read."""
    return re.sub(r"[0-9.]+ [KMG]?i?B stored, read [^;\n]*", "N stored, read so", text)


def fill(pages, path):
    """Writes the output of all commands into the pages."""
    for page in pages:
        text = (ROOT / page).read_text()

        def filled(block):
            parts = ["```console\n"]
            for command, _ in next(blocks(block[0])):
                parts += [f"$ {command}\n", run(command, path)]
            return "".join([*parts, "```"])

        text = re.sub(r"^```console\n.*?^```$", filled, text, flags=re.M | re.S)
        (ROOT / page).write_text(text)


if __name__ == "__main__":
    import tempfile

    programs = os.path.abspath(sys.argv[1])
    for page in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            server = make_folder(folder)
            try:
                fill([page], programs)
            finally:
                os.chdir("/")
                server.kill()
