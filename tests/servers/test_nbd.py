"""NBD: the checksum of a content is the same from any server, and servers that lie are errors."""

import contextlib
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

import blkhash
import images
import servers as nbd
import terminal
from commands import assert_refused
from memory import peak_anonymous_memory_of
from rogue_server import RogueServer

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

# Expected answers take a fraction of this, even on a busy machine. Waiting for the default --timeout
# takes longer.
BOUND = 50


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return nbd.make_certificates(tmp_path_factory.mktemp("tls") / "pki")


def scattered(size, seed=1, runs=40):
    """Returns random data in some places, with zeros and zero pages between them."""
    rng = random.Random(seed)
    content = bytearray(size)
    for _ in range(runs if size else 0):
        start = rng.randrange(size)
        length = min(rng.choice([1, 511, 4 * KIB, 100 * KIB, 300 * KIB]), size - start)
        content[start : start + length] = rng.randbytes(length)
    return bytes(content)


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A sparse image of 20 MiB, and its checksum."""
    path = tmp_path_factory.mktemp("nbd") / "disk.img"
    content = scattered(20 * MIB)
    with open(path, "wb") as file:
        file.truncate(len(content))
        for start in range(0, len(content), 4 * KIB):
            page = content[start : start + 4 * KIB]
            if any(page):
                file.seek(start)
                file.write(page)
    return path, blkhash.checksum(content).hex()


# One checksum for one content


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
@pytest.mark.parametrize("shared", [0, 1, 2])
def test_qemu_nbd(blksum, servers, disk, tcp, shared):
    """Also works if the server announces more connections than it serves."""
    path, expected = disk
    server = servers.qemu_nbd(path, shared=shared, tcp=tcp)
    for threads in ("1", "2", "7") if shared == 0 else ("2",):
        assert blksum.hex("--threads", threads, server.uri()) == expected


@pytest.mark.parametrize("options", ["", "compression_type=zstd", "extended_l2=on", "cluster_size=512"])
def test_qemu_nbd_of_qcow2(blksum, servers, disk, tmp_path, options):
    path, expected = disk
    image = images.convert(path, tmp_path / "disk.qcow2", options)
    assert blksum.hex(servers.qemu_nbd(image, fmt="qcow2").uri()) == expected
    # An export is guest content, unless a format is given.
    export = servers.qemu_nbd(image).uri()
    assert blksum.hex(export) == blkhash.file_checksum(image).hex()
    assert blksum.hex("-f", "qcow2", export) == expected


@pytest.mark.parametrize("construction", ["streams:32", "flat", "concat", "linear"])
@pytest.mark.parametrize("block_size", ["512", "64K", "8M"])
def test_parameters(blksum, servers, disk, construction, block_size):
    path, _ = disk
    size = {"512": 512, "64K": 64 * KIB, "8M": 8 * MIB}[block_size]
    uri = servers.qemu_nbd(path).uri()
    args = ["--construction", construction]
    if construction != "linear":
        args += ["--block-size", block_size]
    expected = blkhash.file_checksum(path, construction=construction, block_size=size).hex()
    for more in ([], ["--read-size", "4K"], ["--queue-depth", "1", "--threads", "1"]):
        assert blksum.hex(*args, *more, uri) == expected
    assert blksum.hex(*args, "--holes=verify", uri) == expected
    assert blksum.hex(*args, "--holes=ignore", uri) == expected


FILTERS = {
    "plain": [],
    "noextents": ["--filter=noextents"],
    "nozero": ["--filter=nozero"],
    "noparallel": ["--filter=noparallel"],
    "serialised": ["--filter=noparallel", "serialize=all-requests"],
    "one-connection": ["--filter=multi-conn", "multi-conn-mode=disable"],
    "limit": ["--filter=limit", "limit=2"],
    "blocksize": ["--filter=blocksize-policy", "blocksize-minimum=4096", "blocksize-preferred=64K"]
    + ["blocksize-maximum=128K", "blocksize-error-policy=error"],
    "blocksize-small": ["--filter=blocksize-policy", "blocksize-minimum=512"]
    + ["blocksize-preferred=4096", "blocksize-maximum=4096", "blocksize-error-policy=error"],
    "blocksize-same": ["--filter=blocksize-policy", "blocksize-minimum=65536"]
    + ["blocksize-preferred=65536", "blocksize-maximum=65536", "blocksize-error-policy=error"],
    "rate": ["--filter=rate", "rate=800M"],
    "exitlast": ["--filter=exitlast"],
    "delay": ["--filter=delay", "delay-read=20ms", "delay-extents=20ms"],
    "error-extents": ["--filter=error", "error-extents-rate=1"],
    "error-extents-half": ["--filter=error", "error-extents-rate=0.5"],
    "cacheextents": ["--filter=cacheextents"],
    "no-structured-replies": ["--no-sr"],
    "old-style": ["--oldstyle"],
    "mask-handshake": ["--mask-handshake=0"],
}


@pytest.mark.parametrize("name", FILTERS)
def test_nbdkit_filters(blksum, servers, disk, name):
    path, expected = disk
    options = [arg for arg in FILTERS[name] if arg.startswith("--")]
    parameters = [arg for arg in FILTERS[name] if not arg.startswith("--")]
    server = servers.nbdkit(*options, "file", path, *parameters)
    assert blksum.hex(server.uri()) == expected
    if name == "exitlast":
        server.process.wait(timeout=BOUND)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 4095, 65535, 65537, MIB + 1, 3 * MIB - 7])
@pytest.mark.parametrize("minimum", [1, 512, 4096])
def test_odd_sizes(blksum, servers, tmp_path, size, minimum):
    """With a partial last block, nbdkit answers only requests that do not extend past the end."""
    path = tmp_path / "disk.img"
    path.write_bytes(scattered(size))
    options = ["--filter=blocksize-policy"]
    parameters = [f"blocksize-minimum={minimum}", "blocksize-preferred=4096"]
    parameters += ["blocksize-maximum=1M"]
    uri = servers.nbdkit(*options, "file", path, *parameters).uri()
    expected = blkhash.file_checksum(path).hex()
    assert blksum.hex(uri) == expected
    assert blksum.hex("--block-size=512", "--read-size=4K", uri) == (
        blkhash.file_checksum(path, block_size=512).hex()
    )


def test_tail_that_cannot_be_asked_for(blksum, servers, tmp_path):
    path = tmp_path / "disk.img"
    path.write_bytes(b"x" * 1000)
    uri = servers.nbdkit(
        *("--filter=blocksize-policy", "file", path, "blocksize-minimum=512"),
        *("blocksize-preferred=512", "blocksize-maximum=1M", "blocksize-error-policy=error"),
    ).uri()
    assert_refused(blksum(uri), "1000 bytes at 0", "Invalid argument")


def test_nbdkit_memory(blksum, servers, disk):
    path, expected = disk
    uri = servers.writable_nbdkit("memory", "20M").uri()
    images.run("nbdcopy", str(path), uri)
    assert blksum.hex(uri) == expected


@pytest.mark.parametrize("plugin", [["pattern", "12345K"], ["sparse-random", "200M", "seed=1"]])
def test_generated_content(blksum, servers, tmp_path, plugin):
    uri = servers.nbdkit(*plugin).uri()
    images.run("nbdcopy", uri, str(tmp_path / "copy"))
    expected = blkhash.file_checksum(tmp_path / "copy").hex()
    assert blksum.hex(uri) == expected
    assert blksum.hex("--threads=1", "--holes=ignore", uri) == expected


@pytest.mark.parametrize("name", ["disk", "a b", "ä/ö?#%&", "x" * 200])
def test_export_names(blksum, servers, disk, name):
    path, expected = disk
    server = servers.qemu_nbd(path, "-x", name)
    assert blksum.hex(server.uri(name)) == expected
    assert_refused(blksum(server.uri()), "no such export", "nbdinfo --list")
    result = blksum(server.uri("other"))
    assert_refused(result, "no such export")
    assert name[:60] in result.stderr.decode()


# Many extents, and large holes


def test_ten_thousand_extents(blksum, servers, tmp_path):
    """Every second cluster is data, and a few requests are enough for all of them."""
    path = tmp_path / "disk.img"
    with open(path, "wb") as file:
        file.truncate(20000 * 64 * KIB)
        for i in range(10000):
            os.pwrite(file.fileno(), b"x", 2 * i * 64 * KIB)
    expected = blkhash.file_checksum(path).hex()
    log = tmp_path / "log"
    options = ["--filter=log", "file", path, f"logfile={log}"]
    for uri in (servers.qemu_nbd(path).uri(), servers.nbdkit(*options).uri()):
        started = time.monotonic()
        assert blksum.hex(uri) == expected
        assert time.monotonic() - started < BOUND
    questions = log.read_text().count(" Extents id=")
    assert 0 < questions < 100


def test_every_other_sector(blksum, servers, tmp_path):
    path = tmp_path / "disk.qcow2"
    images.qemu_img("create", "-q", "-f", "qcow2", "-o", "cluster_size=512", path, "8M")
    raw = tmp_path / "disk.img"
    raw.write_bytes((b"y" + bytes(1023)) * (8 * KIB))
    images.convert(raw, path, "cluster_size=512", flags=["-S", "512"])
    started = time.monotonic()
    assert blksum.hex(servers.qemu_nbd(path, fmt="qcow2").uri()) == blkhash.file_checksum(raw).hex()
    assert time.monotonic() - started < BOUND


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qemu-nbd", "memory", "null"])
def test_eight_tebibytes_of_nothing(blksum, servers, tmp_path, kind):
    if kind == "qemu-nbd":
        image = images.create(tmp_path / "disk.qcow2", "8T")
        uri = servers.qemu_nbd(image, fmt="qcow2").uri()
    else:
        uri = servers.nbdkit(kind, "8T").uri()
    started = time.monotonic()
    assert blksum.hex("--digest=blake3", uri) == blkhash.checksum([8 * TIB], digest="blake3").hex()
    assert time.monotonic() - started < BOUND


# TLS


@pytest.fixture(scope="module")
def folders(tmp_path_factory, certificates):
    """Folders without what is needed to authenticate a server, and folders of untrusted servers."""
    root = tmp_path_factory.mktemp("tls-bad")
    made = {name: root / name for name in ("absent", "empty", "client-only", "unreadable", "folder")}
    for name in ("empty", "client-only", "unreadable", "folder"):
        made[name].mkdir()
    for name in ("client-cert.pem", "client-key.pem"):
        shutil.copy(certificates / name, made["client-only"])
    shutil.copy(certificates / "ca-cert.pem", made["unreadable"])
    (made["unreadable"] / "ca-cert.pem").chmod(0)
    (made["folder"] / "ca-cert.pem").mkdir()
    local = "dns_name = localhost\n"
    dates = 'activation_date = "{0}-01-01 00:00:00 UTC"\nexpiration_date = "{0}-02-01 00:00:00 UTC"\n'
    past, future = dates.format(2020), dates.format(2099)
    servers = {
        "wrong-name": (certificates, "dns_name = elsewhere.example\n"),
        "wrong-address": (certificates, "ip_address = 127.0.0.2\n"),
        "expired": (certificates, local + past),
        "not-yet": (certificates, local + future),
        "self-signed": (certificates, local),
        "wrong-ca": (nbd.make_certificates(root / "other"), local),
    }
    for name, (authority, template) in servers.items():
        made[name] = nbd.make_server_certificate(
            root / name, authority, template, self_signed=name == "self-signed"
        )
    return made


def tls_server(servers, path, kind, certificates, demands_client=False):
    """Starts a server that by default requires no client certificate, so failures are the client's."""
    if kind == "nbdkit":
        tls = ["--tls=require", f"--tls-certificates={certificates}"]
        tls += ["--tls-verify-peer"] if demands_client else []
        return servers.nbdkit(*tls, "file", path, tcp=True)
    tls = f"tls-creds-x509,id=t,dir={certificates},endpoint=server,sanity-check=no"
    tls += f",verify-peer={'on' if demands_client else 'off'}"
    return servers.qemu_nbd(path, "--object", tls, "--tls-creds=t", tcp=True)


TLS_SERVERS = pytest.mark.parametrize("kind", ["nbdkit", "qemu-nbd"])


@pytest.mark.slow
@TLS_SERVERS
@pytest.mark.parametrize("demands_client", [False, True])
def test_tls_certificates(blksum, servers, disk, certificates, tmp_path, kind, demands_client):
    path, expected = disk
    server = tls_server(servers, path, kind, certificates, demands_client)
    folder = f"--tls-certificates={certificates}"
    assert blksum.hex(folder, server.uri(tls=True)) == expected
    assert blksum.hex(folder, server.uri(tls=True, host="127.0.0.1")) == expected
    assert blksum.hex(server.uri(tls=True, tls_certificates=certificates)) == expected
    # The folder in the URI takes precedence.
    other = nbd.make_certificates(tmp_path / "other")
    uri = server.uri(tls=True, tls_certificates=other)
    assert_refused(blksum(folder, uri), "TLS", "certificate")
    # Without encryption, the server is refused.
    assert_refused(blksum(server.uri()), "TLS")
    if demands_client:
        only_ca = tmp_path / "only-ca"
        only_ca.mkdir()
        shutil.copy(certificates / "ca-cert.pem", only_ca)
        assert_refused(blksum(f"--tls-certificates={only_ca}", server.uri(tls=True)), "TLS")


@pytest.mark.slow
@TLS_SERVERS
@pytest.mark.parametrize(
    "name", ["wrong-name", "wrong-address", "expired", "not-yet", "self-signed", "wrong-ca"]
)
def test_tls_server_that_is_another(blksum, servers, disk, certificates, folders, kind, name):
    server = tls_server(servers, disk[0], kind, folders[name])
    uri = server.uri(tls=True, host="127.0.0.1" if name == "wrong-address" else "localhost")
    words = ["TLS", "certificate verification", "for the host of the URI"]
    assert_refused(blksum(f"--tls-certificates={certificates}", uri), *words)
    assert_refused(blksum(f"{uri}?tls-certificates={certificates}"), *words)
    off = f"{uri}?tls-certificates={certificates}&tls-verify-peer=false"
    assert_refused(blksum(off), "tls-verify-peer", "checked in any case")


@pytest.mark.slow
@TLS_SERVERS
def test_tls_folders_without_a_ca(blksum, servers, disk, certificates, folders, kind):
    """None of them may lead to an unauthenticated connection."""
    uri = tls_server(servers, disk[0], kind, certificates).uri(tls=True)
    for name in ("absent", "empty", "client-only", "folder", "unreadable"):
        if name == "unreadable" and os.geteuid() == 0:
            run = functools.partial(as_other_user, blksum)
        else:
            run = blksum
        # A folder in place of the file may be outside the folders allowed by the sandbox.
        reason = {"folder": "", "unreadable": "Permission denied"}
        reason = reason.get(name, "No such file or directory")
        folder = f"tls-certificates={folders[name]}"
        for args in ([f"--{folder}", uri], [f"{uri}?{folder}"]):
            assert_refused(run(*args), f"cannot read {folders[name]}/ca-cert.pem", reason, "CA")


def as_other_user(blksum, *args, script='exec "$@"', map_root=False, **env):
    """Runs blksum in its own namespaces, without privileges or with its own view of /etc."""
    command = ["unshare", "--user"] + (["--map-root-user", "--mount"] if map_root else [])
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        assert "CI" not in os.environ, "no user namespaces here"
        pytest.skip("no user namespaces here")
    command += ["sh", "-ec", script, "sh", blksum.path, *args]
    return subprocess.run(command, capture_output=True, env=os.environ | env, timeout=BOUND * 3)


@pytest.mark.parametrize("place", [".pki/libnbd", ".config/pki/libnbd"])
def test_tls_default_folders_of_users(blksum, servers, disk, certificates, folders, tmp_path, place):
    path, expected = disk
    right = tls_server(servers, path, "nbdkit", certificates).uri(tls=True)
    wrong = tls_server(servers, path, "nbdkit", folders["wrong-ca"]).uri(tls=True)
    home = tmp_path / "home"
    (home / place).mkdir(parents=True)
    # Without the user's own CA, the system's are used. None of them signs for tests.
    for uri in (right, wrong):
        assert_refused(as_other_user(blksum, uri, HOME=str(home)), "certificate")
    shutil.copy(certificates / "ca-cert.pem", home / place)
    found = as_other_user(blksum, right, HOME=str(home))
    assert (found.returncode, found.stdout.decode()) == (0, f"{expected}  {right}\n"), found
    assert_refused(as_other_user(blksum, wrong, HOME=str(home)), "TLS", "certificate")
    (home / place / "ca-cert.pem").chmod(0)
    assert_refused(as_other_user(blksum, right, HOME=str(home)), "ca-cert.pem", "Permission denied")


def test_tls_default_folder_of_root(blksum, servers, disk, certificates, tmp_path):
    path, expected = disk
    uri = tls_server(servers, path, "nbdkit", certificates).uri(tls=True)
    etc = tmp_path / "etc"
    (etc / "pki/libnbd").mkdir(parents=True)
    for name in ("hosts", "nsswitch.conf", "passwd", "ld.so.cache"):
        if os.path.exists(f"/etc/{name}"):
            shutil.copy(f"/etc/{name}", etc)
    options = {"script": f'mount --bind {etc} /etc; exec "$@"', "map_root": True, "HOME": "/nowhere"}
    assert_refused(as_other_user(blksum, uri, **options), "certificate")
    # As in docs/use/nbd.md: the CAs of the system in a folder of the user.
    bundle = etc / "ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True)
    shutil.copy(certificates / "ca-cert.pem", bundle)
    link = tmp_path / "link"
    link.mkdir()
    (link / "ca-cert.pem").symlink_to("/etc/ssl/certs/ca-certificates.crt")
    found = as_other_user(blksum, f"--tls-certificates={link}", uri, **options)
    assert (found.returncode, found.stdout.decode()) == (0, f"{expected}  {uri}\n"), found
    shutil.copy(certificates / "ca-cert.pem", etc / "pki/libnbd")
    found = as_other_user(blksum, uri, **options)
    assert (found.returncode, found.stdout.decode()) == (0, f"{expected}  {uri}\n"), found


def test_tls_without_a_host_name(blksum, servers, disk, certificates):
    """There is no name to compare a certificate with."""
    tls = ["--tls=require", f"--tls-certificates={certificates}"]
    server = servers.nbdkit(*tls, "file", disk[0])
    for uri in (server.uri(tls=True), "nbds+vsock://1:1/"):
        result = blksum(f"--tls-certificates={certificates}", uri)
        assert_refused(result, "no host that a certificate could be checked for", "tls-psk-file")


@TLS_SERVERS
def test_tls_keys_are_no_reason_to_take_a_certificate(blksum, servers, disk, certificates, kind):
    server = tls_server(servers, disk[0], kind, certificates)
    keys = certificates / "keys.psk"
    assert_refused(blksum(server.uri(tls=True, user="alice", tls_psk_file=keys)), "TLS", "shared key")


def test_tls_pre_shared_key(blksum, servers, disk, certificates, tmp_path):
    path, expected = disk
    keys = certificates / "keys.psk"
    server = servers.nbdkit("--tls=require", f"--tls-psk={keys}", "file", path)
    uri = server.uri(tls=True, user="alice", tls_psk_file=keys)
    assert blksum.hex(uri) == expected
    images.run("psktool", "-u", "alice", "-p", str(tmp_path / "wrong.psk"))
    wrong = server.uri(tls=True, user="alice", tls_psk_file=tmp_path / "wrong.psk")
    assert_refused(blksum(wrong), "TLS")
    missing = server.uri(tls=True, user="alice", tls_psk_file=tmp_path / "missing.psk")
    assert_refused(blksum(missing), "missing.psk", "No such file or directory")
    assert_refused(blksum(server.uri(tls=True, user="bob", tls_psk_file=keys)), "bob")
    qemu = f"tls-creds-psk,id=t,dir={certificates},endpoint=server"
    server = servers.qemu_nbd(path, "--object", qemu, "--tls-creds=t")
    assert blksum.hex(server.uri(tls=True, user="alice", tls_psk_file=keys)) == expected
    # A check file may name servers, if the user allows it, but no files of this host.
    uri = server.uri(tls=True, user="alice", tls_psk_file=keys)
    line = f"{expected}  {uri}\n".encode()
    result = blksum("-c", "--allow-uri", input=line)
    assert result.returncode == 1 and b"FAILED open or read" in result.stdout, result


@pytest.mark.parametrize("kind", ["qemu-nbd", "nbdkit"])
def test_no_fall_back_to_plain(blksum, servers, disk, certificates, kind):
    path, _ = disk
    start = {"qemu-nbd": servers.qemu_nbd, "nbdkit": functools.partial(servers.nbdkit, "file")}
    server = start[kind](path, tcp=True)
    assert_refused(
        blksum(f"--tls-certificates={certificates}", server.uri(tls=True)), "server refused TLS"
    )


# The command


def test_check_mode(blksum, servers, disk, tmp_path):
    path, expected = disk
    uri = servers.qemu_nbd(path).uri()
    for style in ([], ["--tag"]):
        printed = blksum(*style, uri)
        assert printed.returncode == 0
        checked = blksum("-c", "--allow-uri", input=printed.stdout)
        assert (checked.returncode, checked.stdout) == (0, f"{uri}: OK\n".encode()), checked
        refused = blksum("-c", input=printed.stdout)
        assert refused.returncode == 1 and b"only with --allow-uri" in refused.stderr
    wrong = printed.stdout.replace(expected.encode(), b"0" * 64)
    assert blksum("-c", "--allow-uri", input=wrong).stdout == f"{uri}: FAILED\n".encode()


def test_json(blksum, servers, disk):
    path, expected = disk
    uri = servers.qemu_nbd(path).uri()
    result = json.loads(blksum("--json", uri).stdout)
    assert (result["name"], result["checksum"], result["format"]) == (uri, expected, "raw")
    assert result["virtual_size"] == 20 * MIB
    allocated = path.stat().st_blocks * 512
    assert 0 < result["bytes_read"] <= allocated + MIB < 20 * MIB
    missing = json.loads(blksum("--json", "nbd+unix:///?socket=/nowhere").stdout)
    assert "No such file or directory" in missing["error"]


def test_other_names_go_on(blksum, servers, disk):
    path, expected = disk
    uri = servers.qemu_nbd(path).uri()
    gone = "nbd+unix:///?socket=/nowhere"
    result = blksum(uri, gone, "-r", path, "-", input=b"")
    lines = [f"{expected}  {uri}", f"{expected}  {path}", f"{blkhash.checksum(b'').hex()}  -"]
    assert result.stdout.decode().splitlines() == lines
    assert (result.returncode, result.stderr.count(b"\n")) == (1, 1)


def test_progress(blksum, servers, disk):
    path, expected = disk
    uri = servers.nbdkit("--filter=delay", "file", path, "delay-read=100ms").uri()
    status, output, shown = terminal.run(blksum, "--progress", uri)
    assert (status, output.decode().startswith(expected)) == (0, True)
    assert b"%" in shown


def test_without_the_library(blksum, servers, disk, tmp_path):
    """As on a machine without libnbd, where the linker does not find it."""
    path, expected = disk
    uri = servers.qemu_nbd(path).uri()
    library = subprocess.run(
        ["sh", "-c", "ldconfig -p | sed -n 's/.*libnbd.so.0 .*=> //p'"], capture_output=True
    ).stdout.decode().split()
    assert library
    hide = "; ".join(f"mount --bind /dev/null {path}" for path in library)
    script = f'{hide}; exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        pytest.skip("no user namespaces here")
    result = subprocess.run([*command, blksum.path, uri, path], capture_output=True)
    assert result.stdout.decode() == f"{expected}  {path}\n"
    assert result.returncode == 1 and result.stderr.count(b"\n") == 1
    for word in (b"libnbd.so.0", b"install libnbd0", b"libnbd (Fedora)"):
        assert word in result.stderr


@pytest.mark.parametrize(
    "uri, words",
    [
        ("nbd+tcp://host/", "use nbd://HOST:PORT/EXPORT"),
        ("nbds+tcp://host/", "use nbds://HOST:PORT/EXPORT"),
        ("nbd+ssh://host/", "nbd+unix:"),
        ("nbds://me:secret@host/", "password"),
        ("nbds://host/?tls-verify-peer=false", "checked in any case"),
        ("nbds://host/?tls-hostname=other", "not supported"),
        ("nbd://host/?tls-certificates=/", "has no TLS"),
        ("nbd+unix:///", "socket"),
        ("nbd+unix:///?socket=/nowhere", "No such file or directory"),
        ("nbd+unix:///?socket=/dev/null", "Connection refused"),
        ("nbd://localhost:1/", "Connection refused"),
        ("nbd://host.invalid/", "host.invalid"),
        ("nbd+vsock://x/", "x"),
        ("nbd:///?\x1b[2J\n", ""),
    ],
)
def test_bad_uris(blksum, uri, words):
    assert_refused(blksum(uri), words)


def test_memory(blksum, servers, tmp_path):
    """Each waiting thread costs one buffer."""
    path = tmp_path / "disk.img"
    with open(path, "wb") as file:
        for _ in range(128):
            file.write(os.urandom(MIB))
    server = servers.qemu_nbd(path)
    peak = peak_anonymous_memory(blksum, "--threads=2", server.uri())
    assert peak < 24 * MIB


def peak_anonymous_memory(blksum, *args):
    process = blksum.start(*args)
    peak = peak_anonymous_memory_of(process)
    assert process.returncode == 0 and peak > 0
    process.communicate()
    return peak


# Servers that fail


@pytest.mark.parametrize("errno", ["EIO", "ENOMEM", "ESHUTDOWN", "EPERM", "EINVAL"])
def test_read_errors(blksum, servers, disk, errno):
    path, _ = disk
    options = ["error-pread-rate=1", f"error={errno}"]
    uri = servers.nbdkit("--filter=error", "file", path, *options).uri()
    words = {"EIO": "Input/output error", "ENOMEM": "Cannot allocate", "EPERM": "not permitted"}
    assert_refused(blksum(uri), words.get(errno, ""), "offset")


def test_rare_read_errors(blksum, servers, disk):
    path, expected = disk
    options = ["error-pread-rate=0.05", "error=EIO"]
    uri = servers.nbdkit("--filter=error", "file", path, *options).uri()
    for _ in range(10):
        result = blksum(uri)
        if result.returncode != 0:
            assert_refused(result, "Input/output error")
        else:
            assert result.stdout.decode().startswith(expected)


@pytest.mark.slow
def test_delay_beyond_the_timeout(blksum, servers, disk):
    path, expected = disk
    for slow in ("delay-read=5", "delay-extents=5", "delay-open=5"):
        uri = servers.nbdkit("--filter=delay", "file", path, slow).uri()
        started = time.monotonic()
        assert_refused(blksum("--timeout=0.5", uri), "did not answer for 0.5 seconds")
        assert time.monotonic() - started < BOUND
    uri = servers.nbdkit("--filter=delay", "file", path, "delay-read=100ms").uri()
    assert blksum.hex("--timeout=0", "--threads=8", uri) == expected


@pytest.mark.parametrize("kind", ["qemu-nbd", "nbdkit"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_killed_while_it_serves(blksum, servers, tmp_path, kind, how):
    path = tmp_path / "disk.img"
    with open(path, "wb") as file:
        file.truncate(20 * MIB)
        for i in range(20):
            os.pwrite(file.fileno(), os.urandom(MIB // 2), i * MIB)
    slow = ["--filter=rate", "file", path, "rate=10M"]
    if kind == "nbdkit":
        server = servers.nbdkit(*slow)
    else:
        # A qemu-nbd that is as slow as its source.
        behind = servers.nbdkit(*slow).uri()
        server = servers.qemu_nbd(behind)
    process = blksum.start("--timeout=1", server.uri())
    time.sleep(0.5)
    assert process.poll() is None
    server.process.send_signal(how)
    started = time.monotonic()
    output, errors = process.communicate(timeout=BOUND)
    result = subprocess.CompletedProcess([], process.returncode, output, errors)
    assert_refused(result, "did not answer" if how == signal.SIGSTOP else "")
    assert time.monotonic() - started < BOUND


@pytest.mark.slow
def test_file_that_shrinks_under_the_server(blksum, servers, tmp_path):
    path = tmp_path / "disk.img"
    path.write_bytes(os.urandom(20 * MIB))
    slow = ["--filter=noextents", "--filter=rate", "file", path, "rate=10M"]
    process = blksum.start(servers.nbdkit(*slow).uri())
    time.sleep(0.3)
    os.truncate(path, MIB)
    output, errors = process.communicate(timeout=BOUND)
    result = subprocess.CompletedProcess([], process.returncode, output, errors)
    assert_refused(result, "Input/output error")


# Servers that lie


@contextlib.contextmanager
def rogue(way, content, **options):
    folder = nbd.Servers()
    place = folder.socket()
    server = RogueServer(place, content, way, **options)
    try:
        yield nbd.Server(place), server
    finally:
        server.close()
        folder.close()


CONTENT = scattered(3 * MIB, seed=7, runs=12)

HONEST = ["honest", "no-structured", "no-contexts", "other-context", "blocks-512"]
# libnbd ignores invalid block sizes.
HONEST += ["blocks-odd", "blocks-huge", "blocks-backwards"]
# Several connections are announced, and one is served.
HONEST += ["good-second-stalls", "good-second-closes"]
HONEST += ["good-read-pieces", "good-read-holes", "good-read-drops"]
HONEST += ["good-status-error", "good-status-late-error", "good-status-short"]
HONEST += ["good-status-in-bytes", "good-status-hole-data"]


@pytest.mark.slow
@pytest.mark.parametrize("way", HONEST)
@pytest.mark.parametrize("cut", [0, 1, 511])
def test_odd_but_honest(blksum, way, cut):
    content = CONTENT[: len(CONTENT) - cut]
    with rogue(way, content) as (server, _):
        uri = server.uri()
        assert blksum.hex("--threads=3", "--timeout=3", uri) == blkhash.checksum(content).hex()


@pytest.mark.parametrize("size", [0, 1, 511, 512, 70001])
def test_requests_are_aligned(blksum, size):
    """Checks the requests recorded by the rogue server."""
    content = random.Random(size).randbytes(size)
    with rogue("blocks-512", content) as (server, log):
        for options in ([], ["--block-size=512", "--read-size=4K"]):
            size_of_block = 512 if options else 64 * KIB
            expected = blkhash.checksum(content, block_size=size_of_block).hex()
            assert blksum.hex(*options, server.uri()) == expected
        for kind, offset, length in log.requests:
            if kind != 2:
                assert offset % 512 == 0
                assert length % 512 == 0 or offset + length == size
                assert kind != 0 or length <= 64 * KIB


@pytest.mark.parametrize(
    "way, threads, expected",
    [("honest", 1, 1), ("honest", 3, 3), ("honest", 40, 16), ("no-multi-conn", 3, 1)],
)
def test_connections_and_requests(blksum, way, threads, expected):
    with rogue(way, CONTENT) as (server, log):
        assert blksum.hex(f"--threads={threads}", server.uri()) == blkhash.checksum(CONTENT).hex()
        assert len(log.connections) == expected
        reads = [length for kind, _, length in log.requests if kind == 0]
    assert max(reads) == 256 * KIB


@pytest.mark.slow
def test_connection_that_never_comes_about(blksum):
    """The wait for it is shorter than the default --timeout of a minute."""
    with rogue("good-second-stalls", CONTENT) as (server, _):
        started = time.monotonic()
        assert blksum.hex("--threads=2", server.uri()) == blkhash.checksum(CONTENT).hex()
        assert time.monotonic() - started < BOUND


def test_failed_reads_are_not_repeated(blksum):
    with rogue("read-error", CONTENT) as (server, log):
        assert_refused(blksum("--threads=1", "--holes=ignore", server.uri()), "Input/output error")
        reads = [offset for kind, offset, _ in log.requests if kind == 0]
    assert reads and len(reads) == len(set(reads))


LIES = {
    "others-close-at-read": "",
    "no-nbd": "magic",
    "greeting-magic": "",
    "size-2^63": "8 EiB",
    "size-2^64": "",
    "second-is-shorter": "another size",
    "go-huge": "",
    "go-magic": "magic",
    "go-other-option": "",
    "go-no-info": "",
    "read-magic": "invalid reply magic",
    "read-cookie": "cookie",
    "read-simple": "",
    "read-half-then-close": "",
    "read-gap": "leaves gaps",
    "read-gap-at-start": "leaves gaps",
    "read-gap-at-end": "leaves gaps",
    "read-nothing": "leaves gaps",
    "read-overlap": "overlapping pieces",
    "read-twice": "overlapping pieces",
    "read-overlap-hole": "overlapping pieces",
    "read-past": "",
    "read-before": "",
    "read-elsewhere": "",
    "read-empty-piece": "",
    "read-many-pieces": "too many pieces",
    "read-huge": "",
    "read-as-status": "",
    "read-unknown-chunk": "",
    "read-error": "Input/output error",
    "read-error-at-end": "Input/output error",
    "read-error-zero": "",
    "status-zero-length": "without a length",
    "status-zero-length-last": "without a length",
    "status-past-end": "past the end of the export",
    "status-huge": "past the end of the export",
    "status-more-than-asked": "",
    "status-empty": "",
    "status-none": "",
    "status-wrong-id": "",
    "status-twice": "",
    "status-cut": "",
    "status-as-data": "",
}
STAGES = ["start", "flags", "structured", "context", "go", "read", "status"]
LIES |= {f"close-at-{stage}": "" for stage in STAGES}


@pytest.mark.parametrize("way", LIES)
def test_lies(blksum, way):
    started = time.monotonic()
    with rogue(way, CONTENT) as (server, _):
        result = blksum("--threads=3", server.uri())
    # It must fail without waiting.
    assert_refused(result, LIES[way])
    assert time.monotonic() - started < BOUND


@pytest.mark.slow
@pytest.mark.parametrize("way", [*(f"stall-at-{s}" for s in STAGES), "read-half-then-stall"])
def test_stalls(blksum, way):
    started = time.monotonic()
    with rogue(way, CONTENT) as (server, _):
        assert_refused(blksum("--timeout=0.5", server.uri()), "did not answer for 0.5 seconds")
    assert time.monotonic() - started < BOUND


# Slower than the minimum rate in the long run, but never silent for as long as --timeout.
DRIPS = ["read", "read-pieces", "read-holes", "read-errors", "read-message", "read-after-some"]
DRIPS += ["read-blocks", "status", "statuses"]


@pytest.mark.slow
@pytest.mark.parametrize("way", DRIPS)
def test_drips(blksum, way):
    started = time.monotonic()
    with rogue(f"drip-{way}", CONTENT) as (server, _):
        result = blksum("--timeout=0.4", server.uri())
    assert_refused(result)
    # On a busy machine, it may be silent for that long.
    words = (b"less than 1024 bytes in a second", b"did not answer for 0.4 seconds")
    assert any(word in result.stderr for word in words), result.stderr
    assert time.monotonic() - started < BOUND


@pytest.mark.parametrize("way", ["greeting", "contexts", "infos", "error"])
def test_drips_before_there_is_an_export(blksum, way):
    """The whole negotiation shares one --timeout."""
    started = time.monotonic()
    with rogue(f"drip-{way}", CONTENT) as (server, _):
        export = "other" if way == "error" else ""
        assert_refused(blksum("--timeout=0.3", server.uri(export)), "did not answer for 0.3 seconds")
    assert time.monotonic() - started < BOUND


def test_a_slow_line_is_no_drip(blksum):
    """Each answer takes longer than --timeout, but the rate is above the minimum."""
    content = CONTENT[: 200 * KIB]
    with rogue("good-drip-read", content) as (server, _):
        assert blksum.hex("--timeout=2", server.uri()) == blkhash.checksum(content).hex()


@pytest.mark.parametrize("way", ["contexts", "small-contexts", "infos"])
def test_greetings_without_an_end(blksum, way):
    """There is always something to receive, and the library would keep a part of it."""
    with rogue(f"pour-{way}", CONTENT) as (server, _):
        process = blksum.start("--timeout=60", server.uri())
        peak = peak_anonymous_memory_of(process)
        output, errors = process.communicate(timeout=BOUND)
    result = subprocess.CompletedProcess([], process.returncode, output, errors)
    assert_refused(result, "does not come to the end of its greeting")
    assert peak < 64 * MIB


def test_memory_for_the_largest_answer(blksum):
    """8 Mi extents. The library holds them all at once, but little of what it passes on is kept."""
    with rogue("status-many", CONTENT) as (server, _):
        process = blksum.start("--timeout=60", server.uri())
        peak = peak_anonymous_memory_of(process)
        output, errors = process.communicate(timeout=BOUND)
    result = subprocess.CompletedProcess([], process.returncode, output, errors)
    assert_refused(result, "more than was asked for")
    assert peak < 96 * MIB


@pytest.mark.parametrize("way", ["go-flood", "read-endless", "read-endless-errors", "status-endless"])
def test_answers_without_an_end(blksum, way):
    started = time.monotonic()
    with rogue(way, CONTENT) as (server, _):
        assert_refused(blksum("--timeout=0.1", server.uri()))
    assert time.monotonic() - started < BOUND


LISTS = ["honest", "list-flood", "list-long", "stall-at-list", "close-at-list"]


@pytest.mark.parametrize("way", [*LISTS, "pour-list", "drip-list"])
def test_names_of_exports_in_errors(blksum, way):
    started = time.monotonic()
    with rogue(way, CONTENT) as (server, _):
        result = blksum("--timeout=0.5", server.uri("other"))
    assert_refused(result, "no such export", "nbdinfo --list")
    assert len(result.stderr) < 1000
    if way == "honest":
        assert b'"a", "\\xff\\n\\u{1b}[2J"' in result.stderr
    assert time.monotonic() - started < BOUND
