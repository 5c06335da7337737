"""packaging/sign, with a key that is thrown away: what it signs, and what it refuses."""

import hashlib
import os
import subprocess

import pytest

import images
from commands import ROOT

PROVENANCE = (ROOT / "docs/inside/provenance.md").read_text()


@pytest.fixture
def release(tmp_path):
    """A release of two files."""
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "blkhash-0.9.0.tar.gz").write_bytes(b"source")
    (folder / "blkhash-0.9.0.cdx.json").write_bytes(b"{}")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / "SHA256SUMS").write_text("".join(sums))
    return folder


def make_key(folder, name):
    """A key without a password."""
    images.run("minisign", "-G", "-W", "-p", str(folder / f"{name}.pub"), "-s", str(folder / f"{name}.key"))


def sign(release, secret="a", public="a"):
    keys = release.parent
    for name in {secret, public}:
        if name in "ab" and not (keys / f"{name}.key").exists():
            make_key(keys, name)
    keys = {"MINISIGN_KEY": str(keys / f"{secret}.key"), "MINISIGN_PUBLIC": str(keys / f"{public}.pub")}
    command = [str(ROOT / "packaging/sign"), str(release)]
    return subprocess.run(command, env=os.environ | keys, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def verify(release, key="a"):
    command = ["minisign", "-V", "-p", str(release.parent / f"{key}.pub"), "-m", str(release / "SHA256SUMS")]
    return images.attempt(*command)


def test_a_signature_is_verified(release):
    result = sign(release)
    assert result.returncode == 0, result
    assert b"SHA256SUMS of blkhash 0.9.0" in verify(release).stdout
    make_key(release.parent, "b")
    assert verify(release, "b").returncode != 0
    sums = release / "SHA256SUMS"
    sums.write_text(sums.read_text().replace("tar.gz", "tar.xz"))
    assert verify(release).returncode != 0


def change(release):
    (release / "blkhash-0.9.0.tar.gz").write_bytes(b"other source")


def remove(release):
    (release / "blkhash-0.9.0.tar.gz").unlink()


def add(release):
    (release / "blksum_0.9.0_amd64.deb").write_bytes(b"package")


@pytest.mark.parametrize("harm", [change, remove, add])
def test_a_release_that_is_not_whole_is_not_signed(release, harm):
    harm(release)
    assert sign(release).returncode != 0
    assert not (release / "SHA256SUMS.minisig").exists()


@pytest.mark.parametrize("keys", [("a", "b"), ("a", "missing"), ("missing", "a")])
def test_only_the_published_key_signs(release, keys):
    assert sign(release, *keys).returncode != 0
    assert not (release / "SHA256SUMS.minisig").exists()


def test_no_key_is_published_that_the_page_does_not_have():
    """The page has the key of packaging/minisign.pub, and says that there is none as long as there is none."""
    published = ROOT / "packaging/minisign.pub"
    if published.exists():
        assert published.read_text().splitlines()[1] in PROVENANCE
    else:
        assert "There is no key yet" in PROVENANCE
