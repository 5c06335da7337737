"""Images on real HTTP servers: the value of the local file, the requests in the log, TLS, redirects, proxies."""

import json
import os
import pathlib
import random
import re

import pytest

import blkhash
import guest_view
import images
import servers as nbd
import web_servers
from commands import assert_refused
from random_images import GENERATORS
from web import KINDS, content, values

KIB = 1 << 10
MIB = 1 << 20


# Expected answers take a fraction of this, even on a busy machine.
BOUND = 100


NAMES = ["sparse.img", "full.img", "odd.img", "tiny.img", "a b ä%41?#&.img", "disk.qcow2", "compressed.qcow2", "zstd.qcow2", "long.qcow2"]
NAMES += ["below/chain.qcow2", "disk.vmdk", "stream.vmdk", "disk.vhdx", "disk.vdi", "disk.vhd", "disk.img.gz", "disk.img.xz", "disk.img.zst"]
NAMES += ["disk.img.bz2", "disk.qcow2.gz", "disk.ova", "disk.tar"]


def local(blksum, folder, name, *args):
    return values(blksum(*args, str(folder / name)))


# Values


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_values(blksum, served, folder, kind, name):
    url = served[kind].url(name)
    result = blksum(url, timeout=BOUND)
    assert values(result) == local(blksum, folder, name)
    # The name in the output is the URL.
    assert all(line.split(b"  ", 1)[1].startswith(url.encode()) for line in result.stdout.splitlines()), result


@pytest.mark.parametrize("way", [("--threads=1",), ("--queue-depth=1",), ("--read-size=4K",), ("--construction=flat",), ("-d", "blake3")])
def test_options(blksum, served, folder, way):
    names = ["sparse.img", "disk.qcow2", "below/chain.qcow2", "disk.img.gz"]
    urls = [served["nginx"].url(name) for name in names]
    assert values(blksum(*way, *urls, timeout=BOUND)) == values(blksum(*way, *(str(folder / name) for name in names)))


def test_empty_file(blksum, web, root):
    """A range of it cannot be satisfied."""
    pathlib.Path("empty.img").touch()
    for kind in [*KINDS, "python"]:
        assert blksum.hex("-f", "raw", web.start(kind, root).url("empty.img")) == blkhash.checksum(b"").hex(), kind


def test_no_such_file(blksum, served):
    for kind, server in served.items():
        assert_refused(blksum(server.url("missing.img")), "missing.img", "404")


def test_no_server(blksum):
    port = nbd.free_port()
    assert_refused(blksum(f"http://localhost:{port}/disk.img", timeout=BOUND), str(port), "refused")
    assert_refused(blksum("http://no-such-host.invalid/disk.img", timeout=BOUND), "no-such-host.invalid")


@pytest.mark.parametrize("name", ["sparse.img", "full.img", "odd.img", "tiny.img", "disk.img.gz", "disk.img.zst", "disk.img.xz"])
def test_without_ranges(blksum, served, folder, name):
    """These are read from the start to the end."""
    assert values(blksum(served["python"].url(name), timeout=BOUND)) == local(blksum, folder, name)


@pytest.mark.parametrize("name", ["disk.qcow2", "below/chain.qcow2", "disk.vhdx"])
def test_formats_need_ranges(blksum, served, name):
    assert_refused(blksum(served["python"].url(name), timeout=BOUND), name, "range")


RANDOM = [3, pytest.param(8, marks=pytest.mark.slow), pytest.param(38, marks=pytest.mark.soak)]


@pytest.mark.parametrize("number", RANDOM)
@pytest.mark.parametrize("fmt", GENERATORS)
def test_random_images(blksum, web, root, fmt, number):
    """With eight formats, 304 images in the long run."""
    rng = random.Random(f"{fmt} {number}")
    started = [web.start(kind, root) for kind in KINDS]
    names = [f"{at}.{fmt}" for at in range(guest_view.count(number))]
    for name in names:
        GENERATORS[fmt](rng, root / name)
    if fmt in ("qcow", "qcow2", "qed"):
        for at in range(len(names) // 3):
            name = f"overlay{at}.{fmt}"
            GENERATORS[fmt](rng, root / name, (names[at], fmt))
            names.append(name)
    args = ("-f", fmt, *(("--backing-format=" + fmt,) if fmt in ("qcow", "qed") else ()))
    expected = [value for value, _ in guest_view.ours(blksum, names, *args)]
    assert None not in expected
    for server in started:
        found = guest_view.ours(blksum, [server.url(name) for name in names], *args)
        for name, value, (checksum, message) in zip(names, expected, found):
            assert checksum == value, (server.kind, name, message)


# Requests


def stored(name):
    """Returns how many bytes of a qcow2 image QEMU reads, and the bytes of its tables."""
    extents = json.loads(images.qemu_img("map", "--output=json", name))
    about = json.loads(images.qemu_img("check", "--output=json", name))
    data = [(it["offset"], it["length"]) for it in extents if it["data"]]
    clusters = len({offset // (512 * MIB) for start, length in data for offset in range(start, start + length, 64 * KIB)})
    return sum(length for _, length in data), about, clusters * 64 * KIB + 4 * 64 * KIB


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_a_raw_image(blksum, web, root, kind):
    """HTTP has no holes. Each byte is sent once."""
    images.write_sparse("disk.img", content(40 * MIB + 512))
    server = web.start(kind, root)
    assert blksum.hex(server.url("disk.img")) == blksum.hex("disk.img")
    requests = server.requests("disk.img")
    sent = sum(it.bytes for it in requests)
    assert 40 * MIB + 512 <= sent <= 1.05 * (40 * MIB + 512), (sent, requests)
    # The last sector is read first, for the footer of a format.
    assert web_servers.repeated(requests) <= 512, requests
    assert all(it.method == "GET" for it in requests) and len(requests) <= 60, requests


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_a_qcow2_image(blksum, web, root, kind):
    """What was discarded is still in the file, and is not read."""
    images.create("disk.qcow2", "1G")
    writes = [f"write -P {1 + at % 255} {at * 4 * MIB} 2M" for at in range(20)]
    images.qemu_io("disk.qcow2", *writes)
    discards = [f"discard {at * 4 * MIB} 2M" for at in range(0, 20, 2)]
    images.qemu_io("disk.qcow2", *discards)
    data, _, tables = stored("disk.qcow2")
    assert data == 20 * MIB and os.path.getsize("disk.qcow2") > 1.9 * data
    server = web.start(kind, root)
    assert blksum.hex(server.url("disk.qcow2")) == blksum.hex("disk.qcow2")
    requests = server.requests("disk.qcow2")
    sent = sum(it.bytes for it in requests)
    assert data <= sent <= 1.05 * (data + tables), (sent, requests)
    assert web_servers.repeated(requests) <= 0.01 * sent, requests
    assert len(requests) <= 60, requests


def test_bytes_of_a_compressed_image(blksum, web, root):
    images.write_sparse("disk.img", content(40 * MIB))
    images.convert(pathlib.Path("disk.img"), pathlib.Path("disk.qcow2"), flags=("-c",))
    server = web.start("nginx", root)
    assert blksum.hex(server.url("disk.qcow2")) == blksum.hex("disk.img")
    requests = server.requests("disk.qcow2")
    sent, size = sum(it.bytes for it in requests), os.path.getsize("disk.qcow2")
    assert sent <= 1.05 * size, (sent, size)
    # Tables are read in pages, in which compressed clusters are as well.
    assert web_servers.repeated(requests) <= 0.02 * sent, requests


def test_bytes_of_a_chain(blksum, web, root):
    """What an overlay hides is not read."""
    images.create("base.qcow2", "64M")
    images.qemu_io("base.qcow2", "write -P 1 0 24M")
    images.create("top.qcow2", "64M", "-b", "base.qcow2", "-F", "qcow2")
    images.qemu_io("top.qcow2", "write -P 2 8M 16M")
    server = web.start("nginx", root)
    assert blksum.hex(server.url("top.qcow2")) == blksum.hex("top.qcow2")
    server.stop()
    for name, data in (("base.qcow2", 8 * MIB), ("top.qcow2", 16 * MIB)):
        requests = [it for it in web_servers.LOGS["nginx"](server.folder) if it.target == f"/{name}"]
        sent = sum(it.bytes for it in requests)
        assert data <= sent <= 1.05 * (data + 6 * 64 * KIB), (name, sent, requests)


def test_no_request_for_an_empty_image(blksum, web, root):
    """1 TiB of nothing takes a few requests."""
    images.create("disk.qcow2", "1T")
    server = web.start("nginx", root)
    assert blksum.hex(server.url("disk.qcow2")) == blksum.hex("disk.qcow2")
    requests = server.requests()
    assert len(requests) <= 4 and sum(it.bytes for it in requests) <= 2 * MIB, requests


# TLS


@pytest.mark.parametrize("kind", KINDS)
def test_tls(blksum, web, folder, tls, kind):
    server = web.start(kind, folder, tls=tls / "good")
    ca = f"--tls-ca={tls}/authority/ca-cert.pem"
    for name in ("sparse.img", "disk.qcow2", "below/chain.qcow2"):
        for host in ("localhost", "127.0.0.1"):
            assert values(blksum(ca, server.url(name, host=host))) == local(blksum, folder, name)
    assert_refused(blksum(server.url("sparse.img")), "certificate")


@pytest.mark.parametrize("kind", ["wrong-name", "expired", "not-yet", "self-signed", "wrong-authority"])
def test_tls_server_that_is_another(blksum, web, folder, tls, kind):
    server = web.start("nginx", folder, tls=tls / kind)
    for arguments in ([], [f"--tls-ca={tls}/authority/ca-cert.pem"]):
        assert_refused(blksum(*arguments, server.url("sparse.img"), timeout=BOUND), "certificate")
    assert [it for it in server.requests() if it.status in (200, 206)] == []


def test_tls_on_a_port_without_it(blksum, web, folder, tls):
    ca = f"--tls-ca={tls}/authority/ca-cert.pem"
    plain, encrypted = web.start("nginx", folder), web.start("nginx", folder, tls=tls / "good")
    assert_refused(blksum(ca, plain.url("sparse.img").replace("http:", "https:"), timeout=BOUND))
    assert_refused(blksum(ca, encrypted.url("sparse.img").replace("https:", "http:"), timeout=BOUND))


def test_tls_authority_that_is_none(blksum, web, folder, tls, root):
    server = web.start("nginx", folder, tls=tls / "good")
    pathlib.Path("empty.pem").touch()
    pathlib.Path("words.pem").write_text("no certificate\n")
    for name in ("empty.pem", "words.pem", "missing.pem"):
        assert_refused(blksum(f"--tls-ca={name}", server.url("sparse.img"), timeout=BOUND), name)


# Redirects, passwords


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects(blksum, web, folder, status):
    """To another server. Afterwards, that one is asked. Its port is none that the sandbox allows."""
    server = web.start("apache", folder)
    first = web.start("nginx", folder, more=f"location / {{ return {status} {server.url()[:-1]}$request_uri; }}")
    assert_refused(blksum(first.url("disk.qcow2"), timeout=BOUND), "--no-sandbox")
    found = values(blksum("--no-sandbox", first.url("disk.qcow2")))
    assert found == local(blksum, folder, "disk.qcow2")
    assert len(first.requests()) == 2
    assert server.requests("disk.qcow2")


def test_password(blksum, web, root):
    images.write_sparse("disk.img", content(3 * MIB))
    pathlib.Path("passwords").write_text("alice:{PLAIN}se cr@t\n")
    server = web.start("nginx", root, more=f"auth_basic tests; auth_basic_user_file {root}/passwords;")
    url = server.url("disk.img", user="alice:se%20cr%40t")
    result = blksum(url)
    assert values(result) == local(blksum, root, "disk.img")
    # The line has the name as it was given, so that it can be checked.
    assert result.stdout.endswith(f"  {url}\n".encode()), result
    for user in ("", "alice:wrong-word", "bob:se%20cr%40t"):
        result = blksum(server.url("disk.img", user=user), timeout=BOUND)
        assert_refused(result, "401")
        assert b"wrong-word" not in result.stderr and b"cr%40t" not in result.stderr, result
    requests = server.requests()
    assert {it.status for it in requests} == {206, 401} or {it.status for it in requests} == {200, 206, 401}
    # basic authentication is not tried without a password.
    assert any(it.authorization == "" and it.status == 401 for it in requests)


def test_password_is_not_sent_elsewhere(blksum, web, root):
    images.write_sparse("disk.img", content(3 * MIB))
    other = web.start("caddy", root)
    first = web.start("nginx", root, more=f"location / {{ return 302 {other.url()[:-1]}$request_uri; }}")
    url = first.url("disk.img", user="alice:secret")
    assert values(blksum("--no-sandbox", url)) == local(blksum, root, "disk.img")
    [request] = first.requests()
    assert request.authorization.startswith("Basic ")
    requests = other.requests()
    assert requests and {it.authorization for it in requests} == {""}


def test_redirect_from_https_to_http(blksum, web, folder, tls):
    plain = web.start("caddy", folder)
    first = web.start("nginx", folder, tls=tls / "good", more=f"location / {{ return 302 {plain.url()[:-1]}$request_uri; }}")
    assert_refused(blksum(f"--tls-ca={tls}/authority/ca-cert.pem", first.url("sparse.img")), "redirect")
    assert not (plain.folder / "log").exists() or plain.requests() == []


def test_redirect_to_a_server_with_another_certificate(blksum, web, folder, tls):
    other = web.start("caddy", folder, tls=tls / "wrong-authority")
    first = web.start("nginx", folder, more=f"location / {{ return 302 {other.url()[:-1]}$request_uri; }}")
    ca = f"--tls-ca={tls}/authority/ca-cert.pem"
    assert_refused(blksum("--no-sandbox", ca, first.url("sparse.img")), "certificate")


def test_redirects_in_circles(blksum, web, folder):
    server = web.start("nginx", folder, more="location /a { return 302 /b; } location /b { return 302 /a; }")
    assert_refused(blksum(server.url("a"), timeout=BOUND), "redirect")
    assert len(server.requests()) <= 30


# Proxies


def test_proxy(blksum, web, folder, monkeypatch):
    server, proxy = web.start("nginx", folder), web.start("tinyproxy", folder)
    # Not `localhost`, which programs may ask without a proxy.
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    url = server.url("disk.qcow2", host="127.0.0.1")
    assert values(blksum(url)) == local(blksum, folder, "disk.qcow2")
    asked = proxy.connections()
    assert asked and all(url == it or it == f"127.0.0.1:{server.port}" for it in asked), asked


def test_proxy_of_tls(blksum, web, folder, tls, monkeypatch):
    """The proxy sees the name of the host, and no URL."""
    server, proxy = web.start("nginx", folder, tls=tls / "good"), web.start("tinyproxy", folder)
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
    ca = f"--tls-ca={tls}/authority/ca-cert.pem"
    assert values(blksum(ca, server.url("disk.qcow2"))) == local(blksum, folder, "disk.qcow2")
    asked = proxy.connections()
    assert asked and set(asked) == {f"localhost:{server.port}"}, asked


@pytest.mark.parametrize("name", ["127.0.0.1", "*", "other.example,127.0.0.1"])
def test_no_proxy(blksum, web, folder, monkeypatch, name):
    server, proxy = web.start("nginx", folder), web.start("tinyproxy", folder)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("no_proxy", name)
    assert values(blksum(server.url("disk.qcow2", host="127.0.0.1"))) == local(blksum, folder, "disk.qcow2")
    assert proxy.connections() == [] and server.requests()


def test_proxy_that_is_not_there(blksum, web, folder, monkeypatch):
    server = web.start("nginx", folder)
    port = nbd.free_port()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
    assert_refused(blksum(server.url("disk.qcow2", host="127.0.0.1"), timeout=BOUND), str(port))
    assert server.requests() == []


def test_proxy_with_a_password(blksum, web, folder, monkeypatch):
    server, proxy = web.start("nginx", folder), web.start("tinyproxy", folder, more="BasicAuth alice secret")
    url = server.url("disk.qcow2", host="127.0.0.1")
    monkeypatch.setenv("http_proxy", f"http://alice:secret@127.0.0.1:{proxy.port}")
    assert values(blksum(url)) == local(blksum, folder, "disk.qcow2")
    monkeypatch.setenv("http_proxy", f"http://alice:other-word@127.0.0.1:{proxy.port}")
    result = blksum(url, timeout=BOUND)
    # The proxy says 401, as a server.
    assert_refused(result, "401")
    assert b"other-word" not in result.stderr


# References of images


def test_references_that_leave_the_folder(blksum, web, root):
    """Nothing is asked for, at any server."""
    (root / "inner").mkdir()
    data = random.Random(1).randbytes(MIB)
    for name in ("base.img", "inner/base.img"):
        pathlib.Path(name).write_bytes(data)
    server, other = web.start("nginx", root), web.start("caddy", root)
    names = ["../base.img", "/base.img", f"{root}/base.img", other.url("base.img"), server.url("base.img"), "file:base.img", "json:{}"]
    names += [f"//localhost:{other.port}/base.img", "%2e%2e/base.img", "..%2fbase.img", "inner/../../base.img", "nbd://localhost/", "./../base.img"]
    names += ["base.img?a", "base.img#a", "..\\base.img"]
    for at, name in enumerate(names):
        images.create(root / f"inner/{at}.qcow2", "1M", "-u", "-b", name, "-F", "raw")
    for at, name in enumerate(names):
        for option in ((), ("--follow=any",)) if "img?" not in name else ((),):
            result = blksum(*option, server.url(f"inner/{at}.qcow2"), timeout=BOUND)
            assert result.returncode == 1 and result.stdout == b"", (name, option, result)
    images.create(root / "inner/good.qcow2", "1M", "-b", "base.img", "-F", "raw")
    assert blksum.hex(server.url("inner/good.qcow2")) == blksum.hex("base.img")
    targets = {it.target for it in server.requests() if not re.fullmatch(r"/inner/(\d+|good)\.qcow2", it.target)}
    # The percent signs and others are characters of a name in the same folder, which does not exist.
    assert "/inner/base.img" in targets and "/base.img" not in targets
    assert all(it.startswith("/inner/") and "/../" not in it for it in targets), targets
    assert not (other.folder / "log").exists() or other.requests() == []


def test_local_image_over_a_url(blksum, web, root):
    """A file cannot send the reader to a server."""
    pathlib.Path("base.img").write_bytes(b"x" * MIB)
    server = web.start("nginx", root)
    images.create(root / "top.qcow2", "1M", "-u", "-b", server.url("base.img"), "-F", "raw")
    for option in ((), ("--follow=any",)):
        assert_refused(blksum(*option, "top.qcow2"), "top.qcow2")
    assert server.requests() == []
