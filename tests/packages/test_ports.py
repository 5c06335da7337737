"""The formula of Homebrew and the port of FreeBSD, which were built on neither system, agree with `make install`."""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile

import pytest

import blkhash
import commands
from commands import ROOT

FORMULA = (ROOT / "packaging/homebrew/blkhash.rb").read_text()
PORT = (ROOT / "packaging/freebsd/Makefile").read_text()
PLIST = (ROOT / "packaging/freebsd/pkg-plist").read_text().splitlines()
VERSION = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
LIBRARIES = ["blkhash-capi", "blksum-capi"]
# install(1) of FreeBSD and macOS, as far as `make install` needs it: other options are errors.
BSD_INSTALL = """#!/bin/sh
for argument; do
    case $argument in -d|-m) ;; -*) echo "install: illegal option $argument" >&2; exit 64 ;; esac
done
exec /usr/bin/install "$@"
"""


def make(target, root, folder, *variables):
    tools = folder / "tools"
    if not tools.exists():
        tools.mkdir()
        (tools / "install").write_text(BSD_INSTALL)
        (tools / "install").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment["PATH"] = f"{tools}:{environment['PATH']}"
    command = ["make", "-s", "-C", ROOT, target, f"DESTDIR={root}", *variables]
    subprocess.run(command, check=True, env=environment, timeout=commands.HANG)


def files_in(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink() or not path.is_dir()}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """The target folder of a build, with libraries and programs in the places of a release."""
    folder = tmp_path_factory.mktemp("target")
    built = commands.BLKSUM.parent
    libraries = built.parent / "capi" if built.name == "release" else built
    assert (libraries / "libblksum_capi.so").exists(), "the C libraries were not built: make capi"
    (folder / "release").symlink_to(built)
    (folder / "capi").symlink_to(libraries)
    return folder


def test_the_port_has_what_make_install_installs(target, tmp_path):
    make("install", tmp_path / "root", tmp_path, f"TARGET_DIR={target}", "PREFIX=/usr/local")
    installed = files_in(tmp_path / "root/usr/local")
    docs = {name for name in installed if name.startswith("share/doc/blkhash/")}
    assert docs and re.search(r"^PORTDOCS=\t\*$", PORT, re.MULTILINE)
    # What the port does after `make install`, and the framework with manual pages.
    wanted = {
        re.sub(r"^lib/pkgconfig/", "libdata/pkgconfig/", re.sub(r"^(share/man/.*)", r"\1.gz", name))
        for name in installed - docs
    }
    assert sorted(name.replace("%%VERSION%%", VERSION) for name in PLIST) == sorted(wanted)
    assert PLIST == sorted(PLIST)
    assert re.search(r"^PLIST_SUB=\tVERSION=\$\{DISTVERSION\}$", PORT, re.MULTILINE)


def test_what_is_built(target):
    """Both build the packages that `make capi` and `make build` build, and call `make install`."""
    capi = (ROOT / "Makefile").read_text().partition("\ncapi: ")[2].partition("\n\n")[0]
    assert re.findall(r"--profile capi -p (\S+)", capi) == LIBRARIES

    assert re.search(r"^\.for library in (.*)$", PORT, re.MULTILINE)[1].split() == ["blkhash", "blksum"]
    assert "--profile capi -p ${library}-capi" in PORT and "CARGO_BUILD_ARGS=\t-p blkhash-cli\n" in PORT
    assert "${MAKE_CMD} install" in PORT and "PREFIX=${PREFIX}" in PORT

    assert re.search(r"%w\[(.*)\]", FORMULA)[1].split() == LIBRARIES
    assert '"--profile", "capi", "--package", library' in FORMULA
    assert '"cargo", "install", *std_cargo_args(path: "crates/cli")' in FORMULA
    install = re.search(r'system "make", "install", (.*)$', FORMULA, re.MULTILINE)[1]
    variables = dict(re.findall(r'"(\w+)=(.*?)"', install))
    assert variables == {"PREFIX": "#{prefix}", "BASHDIR": "#{bash_completion}"}
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{name} [?]?= ", makefile, re.MULTILINE) for name in variables)


def test_versions_and_values():
    assert f"releases/download/v{VERSION}/blkhash-{VERSION}.tar.gz" in FORMULA
    assert f"DISTVERSION=\t{VERSION}\n" in PORT
    assert blkhash.checksum(b"A" * 65536).hex() in FORMULA and '"A" * 65536' in FORMULA


def test_libraries_of_macos(tmp_path):
    """Their names are other ones there. `make uninstall` removes them, too."""
    built = tmp_path / "target/capi"
    built.mkdir(parents=True)
    for name in ("libblkhash_capi.dylib", "libblksum_capi.dylib", "libblkhash_capi.a"):
        (built / name).write_text(name)
    (tmp_path / "target/release").symlink_to(commands.BLKSUM.parent)
    root = tmp_path / "root"
    make("install", root, tmp_path, f"TARGET_DIR={tmp_path}/target", "PREFIX=/opt")
    names = {
        f"lib/lib{name}{end}" for name in ("blkhash", "blksum") for end in (".dylib", ".0.dylib", f".{VERSION}.dylib")
    }
    assert {name for name in files_in(root / "opt") if name.startswith("lib/lib")} == {*names, "lib/libblkhash.a"}
    for name in ("blkhash", "blksum"):
        assert (root / f"opt/lib/lib{name}.dylib").read_text() == f"lib{name}_capi.dylib"
        assert os.readlink(root / f"opt/lib/lib{name}.0.dylib") == f"lib{name}.{VERSION}.dylib"
    make("uninstall", root, tmp_path, "PREFIX=/opt")
    assert files_in(root) == set()


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A folder with a source archive, as packaging/release makes it, and what is made from that."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")

    def run(name):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"blkhash-{VERSION}.tar.gz").write_bytes(b"the source")
        for kind in ("homebrew", "freebsd"):
            subprocess.run([ROOT / f"packaging/{kind}/build", folder], check=True, timeout=commands.HANG)
        return folder

    return run


@pytest.mark.network
@pytest.mark.slow
def test_release(release):
    folder = release("one")
    assert {it.name for it in folder.iterdir()} == {
        f"blkhash-{VERSION}.tar.gz", f"blkhash-{VERSION}-freebsd-port.tar.gz", "blkhash.rb"
    }
    digest = hashlib.sha256(b"the source").hexdigest()
    assert (folder / "blkhash.rb").read_text() == FORMULA.replace("0" * 64, digest)

    with tarfile.open(folder / f"blkhash-{VERSION}-freebsd-port.tar.gz") as archive:
        files = {entry.name: archive.extractfile(entry).read().decode() for entry in archive}
    assert {name.removeprefix("sysutils/blkhash/") for name in files} == {
        "Makefile", "Makefile.crates", "distinfo", "pkg-descr", "pkg-plist"
    }
    assert files["sysutils/blkhash/Makefile"] == PORT
    crates = re.findall(r'^name = "(.*)"\nversion = "(.*)"\nsource', (ROOT / "Cargo.lock").read_text(), re.MULTILINE)
    named = files["sysutils/blkhash/Makefile.crates"].removeprefix("CARGO_CRATES=").replace("\\\n", " ").split()
    assert named == sorted("-".join(it) for it in crates)
    info = files["sysutils/blkhash/distinfo"].splitlines()
    assert info[:3] == [
        "TIMESTAMP = 1700000000",
        f"SHA256 (blkhash-{VERSION}.tar.gz) = {digest}",
        f"SIZE (blkhash-{VERSION}.tar.gz) = 10",
    ]
    assert [re.match(r"SHA256 \(rust/crates/(.*)\.crate\) = [0-9a-f]{64}$", line)[1] for line in info[3::2]] == named
    assert all(re.match(r"SIZE \(rust/crates/.*\.crate\) = [1-9]\d*$", line) for line in info[4::2])

    other = release("two")
    assert all((other / it.name).read_bytes() == it.read_bytes() for it in folder.iterdir())


def test_the_shell_scripts_find_bash(tmp_path):
    """FreeBSD has none in /bin."""
    assert shutil.which("env") == "/usr/bin/env"
    for name in ("install-capi", "uninstall-capi"):
        assert (ROOT / "scripts" / name).read_text().startswith("#!/usr/bin/env bash\n")
