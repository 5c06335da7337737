"""Fixtures of the tests of servers."""

import bz2
import contextlib
import gzip
import lzma
import random

import pytest

import appliances
import images
import oci_images
import servers as nbd
import web_servers
from web import KINDS, MIB, content

# Variables that select a proxy.
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxy_of_the_user(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def web():
    started = web_servers.WebServers()
    with contextlib.closing(started):
        yield started


@pytest.fixture
def root(workdir):
    """An empty current folder, which servers can read."""
    workdir.chmod(0o755)
    return workdir


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A folder with authorities and certificates of servers, by their names."""
    root = tmp_path_factory.mktemp("tls")
    root.chmod(0o755)
    authority = nbd.make_certificates(root / "authority")
    dates = 'dns_name = localhost\nactivation_date = "{0}-01-01 00:00:00 UTC"\nexpiration_date = "{0}-02-01 00:00:00 UTC"\n'
    web_servers.server_certificates(root / "good", authority)
    web_servers.server_certificates(root / "wrong-name", authority, "dns_name = elsewhere.example\n")
    web_servers.server_certificates(root / "expired", authority, dates.format(2020))
    web_servers.server_certificates(root / "not-yet", authority, dates.format(2099))
    web_servers.server_certificates(root / "self-signed", authority, "dns_name = localhost\n", self_signed=True)
    other = nbd.make_certificates(root / "other-authority")
    web_servers.server_certificates(root / "wrong-authority", other)
    return root


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the images of NAMES."""
    root = tmp_path_factory.mktemp("images")
    root.chmod(0o755)
    data = content(9 * MIB + 512)
    images.write_sparse(root / "sparse.img", data)
    (root / "full.img").write_bytes(random.Random(2).randbytes(5 * MIB))
    (root / "odd.img").write_bytes(random.Random(3).randbytes(2 * MIB + 12345))
    (root / "tiny.img").write_bytes(b"x")
    (root / "a b ä%41?#&.img").write_bytes(b"y" * 70_000)
    raw = root / "sparse.img"
    images.convert(raw, root / "disk.qcow2")
    images.convert(raw, root / "compressed.qcow2", flags=("-c",))
    images.convert(raw, root / "zstd.qcow2", "compression_type=zstd", flags=("-c",))
    images.convert(raw, root / "long.qcow2", "cluster_size=512")
    (root / "below").mkdir()
    images.chain("1m:A 1m:# 512k:0 700k:B 3m:- 1m:#", root / "below/chain.qcow2")
    for name, options in (("disk.vmdk", ""), ("stream.vmdk", "subformat=streamOptimized"), ("disk.vhdx", ""), ("disk.vdi", ""), ("disk.vhd", "force_size=on")):
        fmt = {"vhd": "vpc"}.get(name[-3:], name.rpartition(".")[2])
        images.qemu_img("convert", "-q", "-f", "raw", "-O", fmt, *(("-o", options) if options else ()), raw, root / name)
    (root / "disk.img.gz").write_bytes(gzip.compress(data, 1))
    (root / "disk.img.xz").write_bytes(lzma.compress(data, preset=0))
    (root / "disk.img.bz2").write_bytes(bz2.compress(data, 1))
    images.run("zstd", "-q", str(raw), "-o", str(root / "disk.img.zst"))
    (root / "disk.qcow2.gz").write_bytes(gzip.compress((root / "disk.qcow2").read_bytes(), 1))
    disk = (root / "disk.qcow2").read_bytes()
    text = appliances.descriptor([("f1", "disk1.qcow2", ""), ("f2", "disk2.img", "")], ["f1", "f2"])
    appliances.archive(root / "disk.ova", [("x.ovf", text), ("disk1.qcow2", disk), ("disk2.img", data)])
    oci_images.kubevirt({"disk": data}).archive(root / "disk.tar")
    return root


@pytest.fixture(scope="module")
def served(folder):
    """A server of each kind for the folder."""
    started = web_servers.WebServers()
    with contextlib.closing(started):
        yield {kind: started.start(kind, folder) for kind in [*KINDS, "python"]}
