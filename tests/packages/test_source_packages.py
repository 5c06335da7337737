"""Source packages of distributions, without building them: `make deb-source-test` builds Debian's."""

import re
import subprocess
import tomllib

import commands
from commands import ROOT


def crates():
    """The crates of Cargo.lock that come from the registry, as the folders of packaging/vendor."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {f"{crate['name']}-{crate['version']}" for crate in lock["package"] if "source" in crate}


def test_copyright_has_every_crate_and_every_licence():
    command = [ROOT / "packaging/deb/copyright"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=commands.HANG).stdout
    paragraphs = [paragraph.splitlines() for paragraph in text.split("\n\n")]
    files = {lines[0].removeprefix("Files: "): lines for lines in paragraphs if lines[0].startswith("Files: ")}
    assert {f"vendor/{name}/*" for name in crates()} | {"*"} <= files.keys()
    licences = {lines[0].removeprefix("License: ") for lines in paragraphs if lines[0].startswith("License: ")}
    used = set()
    for lines in files.values():
        assert lines[1].startswith("Copyright: ") and len(lines[1]) > len("Copyright: "), lines
        licence = lines[-1].removeprefix("License: ")
        used |= set(re.split(",? and | or ", licence))
    assert used == licences


def test_debian_asks_for_the_rust_that_cargo_asks_for():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    control = (ROOT / "packaging/deb/debian/control").read_text()
    for tool in ("cargo", "rustc"):
        assert f" {tool} (>= {version}) | {tool}-web (>= {version}),\n" in control
    assert f"rust-version in Cargo.toml is {version}." in (ROOT / "packaging/deb/debian/README.source").read_text()


def test_rpm_has_the_licences_of_what_is_linked():
    """The expression has each licence of a crate, and the licences of the libraries in C that crates have in them."""
    command = ["cargo", "tree", "--locked", "--edges=normal", "--no-dedupe", "--prefix=none", "--format={p} {l}",
               "--target=x86_64-unknown-linux-gnu", "-p", "blkhash-cli", "-p", "blkhash-capi", "-p", "blksum-capi"]
    tree = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=commands.HANG).stdout
    # The name, its version, where it is or what it is, and the licence.
    lines = {re.sub(r" \(/[^)]*\)| \(proc-macro\)", "", line) for line in tree.splitlines() if line}
    wanted = {"0BSD", "BSD-2-Clause"}
    for line in lines:
        for term in line.split(" ", 2)[2].replace("/", " OR ").split(" AND "):
            term = term.strip("()")
            wanted.add(frozenset(term.split(" OR ")) if " OR " in term else term)
    spec = (ROOT / "packaging/rpm/blksum.spec").read_text()
    expression = re.search(r"^License: %\{shrink:(.*?)\}$", spec, re.DOTALL | re.MULTILINE)[1]
    terms = [term.strip().strip("()") for term in expression.split(" AND")]
    assert {frozenset(term.split(" OR ")) if " OR " in term else term for term in terms} == wanted


def test_the_version_is_that_of_cargo():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"%global upstream_version {version}}}\n" in (ROOT / "packaging/rpm/blksum.spec").read_text()
    assert f"\npkgver={version}\n" in (ROOT / "packaging/arch/PKGBUILD").read_text()


def test_bundled_libraries_have_the_versions_of_their_crates():
    spec = (ROOT / "packaging/rpm/blksum.spec").read_text()
    for crate in crates():
        match = re.fullmatch(r"(lz4|zstd)-sys-.*\+(?:lz4-|zstd\.)(.*)", crate)
        if match:
            assert f"Provides: bundled({match[1]}) = {match[2]}\n" in spec
