"""Source packages of distributions, without building them: `make deb-source-test` builds that of Debian."""

import subprocess
import tomllib

import conftest
from conftest import ROOT


def crates():
    """The crates of Cargo.lock that come from the registry, as the folders of packaging/vendor."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {f"{crate['name']}-{crate['version']}" for crate in lock["package"] if "source" in crate}


def test_copyright_has_every_crate_and_every_licence():
    command = [ROOT / "packaging/deb/copyright"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=conftest.HANG).stdout
    paragraphs = [paragraph.splitlines() for paragraph in text.split("\n\n")]
    files = {lines[0].removeprefix("Files: "): lines for lines in paragraphs if lines[0].startswith("Files: ")}
    assert {f"vendor/{name}/*" for name in crates()} | {"*"} <= files.keys()
    licences = {lines[0].removeprefix("License: ") for lines in paragraphs if lines[0].startswith("License: ")}
    used = set()
    for lines in files.values():
        assert lines[1].startswith("Copyright: ") and len(lines[1]) > len("Copyright: "), lines
        licence = lines[-1].removeprefix("License: ")
        used |= set(licence.replace(", and ", " or ").split(" or "))
    assert used == licences


def test_debian_asks_for_the_rust_that_cargo_asks_for():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    control = (ROOT / "packaging/deb/debian/control").read_text()
    for tool in ("cargo", "rustc"):
        assert f" {tool} (>= {version}) | {tool}-web (>= {version}),\n" in control
    assert f"rust-version in Cargo.toml is {version}." in (ROOT / "packaging/deb/debian/README.source").read_text()
