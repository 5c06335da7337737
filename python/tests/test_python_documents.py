"""The examples in the documentation, and the programs in examples/."""

import doctest
import inspect
import io
import os
import random
import re
import sys
import tarfile

import filesystems
import images
import pytest
from conftest import PACKAGE, ROOT, run

import blkhash


@pytest.fixture
def files(workdir):
    """The images that README.md uses."""
    data = random.Random(1).randbytes(8 << 20)
    raw = workdir / "disk.img"
    raw.write_bytes(data)
    images.convert(raw, workdir / "disk.qcow2")
    damaged = bytearray(data)
    damaged[2_000_000] ^= 1
    (workdir / "damaged.img").write_bytes(damaged)
    images.from_spec("8m:-", workdir / "base.qcow2")
    images.qemu_img("create", "-q", "-f", "qcow2", "-b", "base.qcow2", "-F", "qcow2", workdir / "overlay.qcow2")
    images.qemu_io(workdir / "overlay.qcow2", "write -P 0x41 1M 2M")
    with tarfile.open(workdir / "files.tar", "w") as tar:
        member = tarfile.TarInfo("etc/hostname")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"host\n"))
    images.convert(workdir / "files.tar", workdir / "files.qcow2")
    os.makedirs("root/home/user/mail")
    (workdir / "root/home/user/mail/archive").write_bytes(data[:100_000])
    filesystems.of_folder("damaged-btrfs.img", "root")
    images.convert(workdir / "damaged-btrfs.img", workdir / "btrfs.qcow2")
    filesystems.damage("damaged-btrfs.img", data[:4096])
    (workdir / "SHA256SUMS").write_text(run("sha256sum", "disk.img", "disk.qcow2"))
    return workdir


def test_readme(files):
    failed, attempted = doctest.testfile(str(PACKAGE / "README.md"), module_relative=False)
    assert failed == 0 and attempted >= 30


def test_docstrings(files):
    failed, attempted = doctest.testmod(blkhash, extraglobs={"blkhash": blkhash})
    assert failed == 0 and attempted > 3


def example(name, *args, **kwargs):
    return run(sys.executable, "-X", "dev", "-W", "error", PACKAGE / "examples" / name, *args, **kwargs)


def test_backup(files):
    os.mkdir("backups")
    expected = blkhash.checksum("disk.img").hexdigest
    assert example("backup.py", "disk.img", "backups") == f"backups/disk.qcow2: {expected}\n"
    assert example("backup.py", "--verify", "backups") == "backups/disk.qcow2: OK\n"
    images.qemu_io(files / "backups" / "disk.qcow2", "write -P 0 1M 64k")
    output = example("backup.py", "--verify", "backups", status=1)
    assert output == "backups/disk.qcow2: FAILED\n  zeroed at 1048576, 65536 bytes\n"
    example("backup.py", "missing.img", "backups", status=1)
    assert sorted(os.listdir("backups")) == ["disk.blkmap", "disk.qcow2"]


def test_where(files):
    assert example("where.py", "disk.img", "disk.qcow2") == "no differences\n"
    output = example("where.py", "disk.img", "damaged.img", status=1).splitlines()
    assert output[0] == f"|{'.' * 15}#{'.' * 48}|"
    assert output[1].split() == [str(2_000_000 // 4096 * 4096), "4096", "changed"]
    # qemu-img finds the same sector.
    output = run("qemu-img", "compare", "-f", "raw", "-F", "raw", "disk.img", "damaged.img", status=1)
    assert f"offset {2_000_000 // 512 * 512}!" in output


def test_where_prints_its_usage(files):
    assert "where.py [-h] left right" in example("where.py", "--help")
    for arguments in ([], ["disk.img"]):
        assert example("where.py", *arguments, status=2) == ""


def test_readme_of_the_project(files):
    os.rename("disk.img", "copy.img")
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    found = {}
    exec(blocks[0], found)
    assert [(extent.offset, extent.length) for extent in found["data"]] == [(0, 8 << 20)]


def public():
    """The functions and classes of the package, and the methods that Rust defines, by name."""
    for name in blkhash.__all__:
        member = getattr(blkhash, name)
        if callable(member):
            yield name, member
    for cls in (blkhash.Hash, blkhash.Image, blkhash.Map):
        for name, member in vars(cls).items():
            if not name.startswith("_"):
                yield f"{cls.__name__}.{name}", member


def test_docstrings_describe_every_parameter():
    described = 0
    for name, member in public():
        text = inspect.getdoc(member)
        assert text and text.strip().endswith((".", "'", "True", "]", ")", "128")), name
        if "\nArgs:\n" in text:
            listed = re.findall(r"^ {4}(\w+): ", text.split("\nArgs:\n")[1].split("\n\n")[0], re.MULTILINE)
            parameters = [it for it in inspect.signature(member).parameters if it != "self"]
            if parameters[-1] == "options":
                parameters[-1:] = blkhash.OpenOptions.__annotations__
            assert listed == parameters, name
            assert "\nRaises" in text, name
            described += 1
    assert described >= 6


def test_examples_in_docstrings(files):
    attempted = 0
    for name, member in public():
        test = doctest.DocTestParser().get_doctest(inspect.getdoc(member), {"blkhash": blkhash}, name, None, 0)
        result = doctest.DocTestRunner().run(test)
        assert result.failed == 0, name
        attempted += result.attempted
    assert attempted >= 8
