"""`make setup` installs every program that tests start."""

import ast
import functools
import os
import re
import shutil
import subprocess

from commands import ROOT

# README and CONTRIBUTING name Rust and a C compiler, and a checkout comes by git and is tested by make. Go is optional. What
# setup installs comes by apt.
NEEDED_BEFORE = {"cargo", "rustc", "go", "gcc", "cc", "git", "make", "apt", "apt-get"}

# Words that are names of programs elsewhere. Here they are arguments, keys, or in commands of the docs that no test runs.
OTHER_WORDS = {"GET", "HEAD", "POST", "aws", "bc", "convert", "crc32", "docker", "file", "init", "kubectl", "less", "node", "open", "opt", "python", "rbd", "reboot", "route", "shutdown", "ssh", "sudo", "time"}

# Tests of packages and of Ceph, for which `make test-rest` installs what builds them.
SETUP, PACKAGING = "scripts/install-test-deps", ("packaging/install-deps", "Makefile")
OF_PACKAGES = {"test_packages.py", "c_project.py", "ceph.py", "roots.py"}


def listed(*names):
    """The programs that these scripts look for, and the packages that they install."""
    text = "".join((ROOT / name).read_text() for name in names)
    pairs = re.findall(r"(?<![\w.+/-])([\w.+-]+):([a-z][a-z0-9.+-]+)(?=[\s;])", text)
    return {program for program, _ in pairs}, {package for _, package in pairs} | set(re.findall(r"packages\+=\(([\w-]+)\)", text))


@functools.cache
def installed():
    """The installed packages: names to whether a minimal Debian has them, and to what they depend on."""
    fields = "${Package}\t${Essential}\t${Priority}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
    rows = subprocess.run(["dpkg-query", "-W", f"-f={fields}"], check=True, stdout=subprocess.PIPE, text=True).stdout
    found, provided = {}, {}
    for row in rows.splitlines():
        name, essential, priority, depends, provides = row.split("\t")
        # Of alternatives, apt installs the first one.
        names = {re.match(r"[\w.+-]*", it.strip())[0] for it in depends.split(",")}
        found[name] = essential == "yes" or priority == "required", names
        for virtual in re.findall(r"([\w.+-]+)(?: \([^)]*\))?", provides):
            provided.setdefault(virtual, set()).add(name)
    return found, provided


def closure(roots):
    """The packages that come with these."""
    found, provided = installed()
    seen, todo = set(), list(roots)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += provided.get(name, ())
            todo += found[name][1] if name in found else ()
    return seen


def owners(words):
    """The packages of programs. A program may be there under several names, because /bin is a link."""
    names = {}
    for word in words:
        path = shutil.which(word)
        for name in (path, os.path.realpath(path)):
            names.update({name: word, name.removeprefix("/usr"): word})
    done = subprocess.run(["dpkg-query", "-S", *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    rows = [line.split(": ") for line in done.stdout.splitlines() if not line.startswith("diversion ")]
    return {names[path]: packages.split(",")[0].split(":")[0] for packages, path in rows if path in names}


def started():
    """The programs of this machine with which a string of a test begins, and the files: commands are written in many ways."""
    words = {}
    for folder in (ROOT / "tests", ROOT / "python/tests"):
        for path in sorted(folder.rglob("*.py")):
            if path.name == "test_setup.py":
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip():
                    words.setdefault(node.value.split()[0], set()).add(path.name)
    for path in sorted((ROOT / "crates").rglob("*.rs")):
        if "tests" in path.as_posix():
            for word in re.findall(r'Command::new\("([\w.+-]+)"\)', path.read_text()):
                words.setdefault(word, set()).add(path.name)
    return {word: where for word, where in words.items() if re.fullmatch(r"[\w.+-]+", word) and shutil.which(word)}


def test_setup_installs_every_program_that_tests_start():
    minimal = {name for name, (is_minimal, _) in installed()[0].items() if is_minimal}
    words = started()
    owned = owners(words)

    def missing(words, *scripts):
        programs, packages = listed(*scripts)
        brought = closure(packages | minimal)
        others = {word for word in words if owned.get(word) not in brought} - NEEDED_BEFORE - OTHER_WORDS - programs
        return [f"{word} of {owned.get(word)}, in {sorted(words[word])}" for word in sorted(others)]

    assert missing({word: files for word, files in words.items() if not files <= OF_PACKAGES}, SETUP) == []
    assert missing(words, SETUP, *PACKAGING) == []


def test_programs_are_found():
    """Both kinds of tests and both spellings are read."""
    assert {"qemu-img", "mkfs.btrfs", "sha256sum"} <= started().keys()
    assert owners(["qemu-img", "sh"]) == {"qemu-img": "qemu-utils", "sh": "dash"}
    programs, packages = listed(SETUP, *PACKAGING)
    assert {"qemu-img", "dnf"} <= programs and {"qemu-utils", "g++", "python3-venv", "dnf"} <= packages
