"""`make install` and `make uninstall`, of what is built."""

import os
import shutil
import subprocess

import pytest

import commands
from shells import START, Shell

pytestmark = pytest.mark.release

# Not ours: other packages have files there, too.
SHARED = {
    "bin",
    "include",
    "lib",
    "lib/pkgconfig",
    "share",
    "share/bash-completion",
    "share/bash-completion/completions",
    "share/doc",
    "share/fish",
    "share/fish/vendor_completions.d",
    "share/man",
    "share/man/man1",
    "share/man/man3",
    "share/zsh",
    "share/zsh/site-functions",
}


def make(target, root):
    built = commands.BLKSUM.parent
    arguments = [f"TARGET_DIR={built.parent}", f"PROFILE={built.name}", f"DESTDIR={root}", "PREFIX=/usr"]
    # A make that runs the tests has flags of its own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-s", "-C", commands.ROOT, target, *arguments]
    subprocess.run(command, check=True, env=environment, timeout=commands.HANG)


def content(root):
    """The names of folders, and the names of other files."""
    folders, files = set(), set()
    for path in (root / "usr").rglob("*"):
        (folders if path.is_dir() else files).add(str(path.relative_to(root / "usr")))
    return folders, files


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    for name in ("libblkhash_capi.so", "libblksum_capi.so"):
        library = commands.BLKSUM.parent.parent / "capi" / name
        assert library.exists(), f"no {library}: make capi"
    root = tmp_path_factory.mktemp("installed")
    make("install", root)
    return root


def test_what_is_installed(installed):
    _, files = content(installed)
    docs = [str(path.relative_to(commands.ROOT)) for path in (commands.ROOT / "docs").rglob("*.md")]
    docs += ["README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]
    # The page of the nightly check comes with `make install-systemd`.
    pages = [path.name for path in (commands.ROOT / "man").iterdir() if path.suffix != ".8"]
    library = {path for path in files if path.startswith(("lib/libblkhash.so", "lib/libblksum.so"))}
    assert len(library) == 6, files
    assert files == library | {f"share/doc/blkhash/{name}" for name in docs} | {
        f"share/man/man{name[-1]}/{name}" for name in pages
    } | {
        "bin/blkcopy",
        "bin/blkhash",
        "bin/blksum",
        "include/blkhash.h",
        "include/blksum.h",
        "lib/libblkhash.a",
        "lib/pkgconfig/blkhash.pc",
        "lib/pkgconfig/blksum.pc",
        "share/bash-completion/completions/blkcopy",
        "share/bash-completion/completions/blkhash",
        "share/bash-completion/completions/blksum",
        "share/fish/vendor_completions.d/blkcopy.fish",
        "share/fish/vendor_completions.d/blkhash.fish",
        "share/fish/vendor_completions.d/blksum.fish",
        "share/zsh/site-functions/_blkcopy",
        "share/zsh/site-functions/_blkhash",
        "share/zsh/site-functions/_blksum",
    }
    for name in files:
        mode = (installed / "usr" / name).stat().st_mode & 0o777
        is_program = name.startswith("bin/") or name in library
        assert mode == (0o755 if is_program else 0o644), name


def test_what_is_installed_runs(installed):
    for name in ["blksum", "blkhash", "blkcopy"]:
        run = [installed / "usr/bin" / name, "--version"]
        assert subprocess.check_output(run).startswith(name.encode())


@pytest.mark.parametrize("kind", list(START))
def test_shells_find_the_completions(installed, tmp_path, kind):
    shell = Shell(kind, tmp_path, tmp_path, installed / "usr/share")
    assert shell.press("blksum --follow=b\t")[0] == "blksum --follow=beneath "
    assert shell.press("blkhash btrfs ver\t")[0] == "blkhash btrfs verify "
    shell.close()


def test_uninstall(installed, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(installed, root, symlinks=True)
    others = [root / "usr/bin/other", root / "usr/share/man/man1/other.1", root / "usr/lib/libother.so"]
    for other in others:
        other.write_bytes(b"")
    make("uninstall", root)
    folders, files = content(root)
    assert files == {str(other.relative_to(root / "usr")) for other in others}
    assert folders == SHARED
    # There is nothing to remove.
    make("uninstall", root)


def test_files_of_others_in_our_folder_stay(installed, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(installed, root, symlinks=True)
    note = root / "usr/share/doc/blkhash/NOTE"
    note.write_bytes(b"")
    make("uninstall", root)
    assert content(root)[1] == {"share/doc/blkhash/NOTE"}
