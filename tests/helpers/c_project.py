"""Packages with the names and the files of the C project blkhash 0.11: of its spec, of what its build installs.

They have no code of it. The library has one of its functions, and its command calls that one.
"""

import pathlib
import subprocess

import commands

VERSION = "0.11.0"

LIBRARY = f"libblkhash.so.{VERSION}"

# The pages of section 3.
FUNCTIONS = ["new", "update", "zero", "final", "free", "aio_update", "aio_completion_fd", "aio_completions", "opts_new",
             "opts_free", "opts_set_block_size", "opts_set_threads", "opts_set_queue_depth"]

SOURCE = "#include <stddef.h>\nsize_t blkhash_digests(const char **names, size_t count)"


def files(libdir):
    """Returns the files of each package."""
    return {
        "blkhash": ["usr/bin/blksum", "usr/share/man/man1/blksum.1.gz"],
        "blkhash-libs": [f"{libdir}/{LIBRARY}", f"{libdir}/libblkhash.so.0"],
        "blkhash-devel": [
            "usr/include/blkhash.h",
            f"{libdir}/libblkhash.so",
            f"{libdir}/pkgconfig/blkhash.pc",
            *(f"usr/share/man/man3/blkhash_{name}.3.gz" for name in FUNCTIONS),
        ],
    }


def compile(folder, output, code, *options):
    source = folder / f"{output.name}.c"
    source.write_text(code)
    command = ["gcc", "-o", str(output), str(source), *options]
    subprocess.run(command, check=True, timeout=commands.HANG)


def make_tree(folder, libdir):
    """Makes the files of all packages beneath FOLDER/tree."""
    tree = folder / "tree"
    for names in files(libdir).values():
        for name in names:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(b"")
    library = tree / libdir / LIBRARY
    compile(folder, library, f"{SOURCE} {{ return 0; }}\n", "-shared", "-fPIC", "-Wl,-soname,libblkhash.so.0")
    for name in ("libblkhash.so.0", "libblkhash.so"):
        (tree / libdir / name).unlink()
        (tree / libdir / name).symlink_to(LIBRARY)
    compile(
        folder,
        tree / "usr/bin/blksum",
        f'#include <stdio.h>\n{SOURCE};\nint main(void) {{ printf("%zu digests\\n", blkhash_digests(NULL, 0)); }}\n',
        f"-L{library.parent}",
        "-lblkhash",
    )
    return tree


def debs(folder):
    """Makes Debian packages."""
    libdir = f"usr/lib/{subprocess.check_output(['dpkg-architecture', '-qDEB_HOST_MULTIARCH'], text=True).strip()}"
    tree = make_tree(folder, libdir)
    needed = {"blkhash": "blkhash-libs", "blkhash-libs": "libc6", "blkhash-devel": f"blkhash-libs (= {VERSION})"}
    made = []
    for package, names in files(libdir).items():
        root = folder / package
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).rename(root / name)
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(
            f"Package: {package}\nVersion: {VERSION}\nArchitecture: amd64\nDepends: {needed[package]}\n"
            "Maintainer: Tests <tests@example.org>\nDescription: files of the C project\n"
        )
        made.append(folder / f"{package}_{VERSION}_amd64.deb")
        command = ["dpkg-deb", "--build", "--root-owner-group", str(root), str(made[-1])]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=commands.HANG)
    return made


def rpms(folder):
    """Makes RPM packages."""
    tree = make_tree(folder, "usr/lib64")
    sections = []
    for package, names in files("usr/lib64").items():
        option = "" if package == "blkhash" else f"-n {package}"
        if option:
            sections += [f"%package {option}", "Summary: Files of the C project"]
        if package == "blkhash-devel":
            sections += [f"Requires: blkhash-libs = {VERSION}"]
        sections += [f"%description {option}", "Stand-in.", f"%files {option}", *(f"/{name}" for name in names)]
    return rpm_of(folder, "blkhash", VERSION, [*sections, "%install", f"cp -a {tree}/. %{{buildroot}}"])


def rpm_of(folder, name, version, lines):
    """Makes the RPM packages of a spec file, given without its first lines."""
    spec = folder / f"{name}.spec"
    head = ["%global debug_package %{nil}", "%global __os_install_post %{nil}", f"Name: {name}", f"Version: {version}",
            "Release: 1", "Summary: Files of the C project", "License: LGPL-2.1-or-later"]
    spec.write_text("\n".join([*head, *lines, ""]))
    top = folder / f"{name}-rpm"
    command = ["rpmbuild", "-bb", "--quiet", "--define", f"_topdir {top}", str(spec)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=commands.HANG)
    return sorted(pathlib.Path(top).rglob("*.rpm"))
