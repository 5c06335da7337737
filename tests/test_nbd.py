"""NBD: one checksum for one content whatever serves it, and an error for everything that lies."""

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time

import pytest

import blkhash
import images
import servers as nbd
import terminal
from rogue_server import RogueServer

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

# An answer that is expected comes in a fraction of this, and none takes longer than a --timeout of 1
# and a second attempt.
BOUND = 20


@pytest.fixture
def servers():
    started = nbd.Servers()
    with contextlib.closing(started):
        yield started


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return nbd.make_certificates(tmp_path_factory.mktemp("tls") / "pki")


def scattered(size, seed=1, runs=40):
    """Random data in places, zeros and explicit zero pages between."""
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


def assert_refused(result, *words):
    """One line that says why, and no checksum."""
    assert (result.returncode, result.stdout) == (1, b""), result
    message = result.stderr.decode()
    assert message.startswith("blksum: ") and message.count("\n") == 1, message
    assert "panic" not in message and "\x1b" not in message, message
    for word in words:
        assert word in message, (word, message)


# One checksum for one content


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
@pytest.mark.parametrize("shared", [0, 1, 2])
def test_qemu_nbd(blksum, servers, disk, tcp, shared):
    """Also where it announces more connections than it serves."""
    path, expected = disk
    server = servers.qemu_nbd(path, shared=shared, tcp=tcp)
    for threads in ("1", "2", "7") if shared == 0 else ("2",):
        assert blksum.hex("--threads", threads, server.uri()) == expected


@pytest.mark.parametrize("options", ["", "compression_type=zstd", "extended_l2=on", "cluster_size=512"])
def test_qemu_nbd_of_qcow2(blksum, servers, disk, tmp_path, options):
    path, expected = disk
    image = images.convert(path, tmp_path / "disk.qcow2", options)
    assert blksum.hex(servers.qemu_nbd(image, fmt="qcow2").uri()) == expected
    # What a server exports is guest content, unless somebody says what it is.
    export = servers.qemu_nbd(image).uri()
    assert blksum.hex(export) == blkhash.file_checksum(image).hex()
    assert blksum.hex("-f", "qcow2", export) == expected


@pytest.mark.parametrize("construction", ["streams:32", "flat", "concat", "linear"])
@pytest.mark.parametrize("block_size", ["512", "64K", "8M"])
def test_parameters(blksum, servers, disk, construction, block_size):
    path, _ = disk
    size = {"512": 512, "64K": 64 * KIB, "8M": 8 * MIB}[block_size]
    uri = servers.qemu_nbd(path).uri()
    args = ["--construction", construction, "--block-size", block_size]
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
    """Where the last block is not whole, nbdkit answers all the same, if asked for no more."""
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


# Many extents, much nothing


def test_ten_thousand_extents(blksum, servers, tmp_path):
    """One cluster in two, and no more requests than a few for them all."""
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


def test_tls_certificates(blksum, servers, disk, certificates, tmp_path):
    path, expected = disk
    tls = ["--tls=require", f"--tls-certificates={certificates}", "--tls-verify-peer"]
    server = servers.nbdkit(*tls, "file", path, tcp=True)
    folder = f"--tls-certificates={certificates}"
    assert blksum.hex(folder, server.uri(tls=True)) == expected
    assert blksum.hex(server.uri(tls=True, tls_certificates=certificates)) == expected
    # Who is not known is not trusted.
    other = nbd.make_certificates(tmp_path / "other")
    assert_refused(blksum(f"--tls-certificates={other}", server.uri(tls=True)))
    assert_refused(blksum(f"--tls-certificates={tmp_path / 'none'}", server.uri(tls=True)))
    # Without encryption there is nothing.
    assert_refused(blksum(server.uri()), "TLS")


def test_tls_of_qemu_nbd(blksum, servers, disk, certificates):
    path, expected = disk
    tls = f"tls-creds-x509,id=t,dir={certificates},endpoint=server,verify-peer=yes"
    server = servers.qemu_nbd(path, "--object", tls, "--tls-creds=t", tcp=True)
    assert blksum.hex(f"--tls-certificates={certificates}", server.uri(tls=True)) == expected
    assert_refused(blksum(server.uri()), "TLS")


def test_tls_pre_shared_key(blksum, servers, disk, certificates, tmp_path):
    path, expected = disk
    keys = certificates / "keys.psk"
    server = servers.nbdkit("--tls=require", f"--tls-psk={keys}", "file", path)
    uri = server.uri(tls=True, user="alice", tls_psk_file=keys)
    assert blksum.hex(uri) == expected
    images.run("psktool", "-u", "alice", "-p", str(tmp_path / "wrong.psk"))
    wrong = server.uri(tls=True, user="alice", tls_psk_file=tmp_path / "wrong.psk")
    assert_refused(blksum(wrong))
    qemu = f"tls-creds-psk,id=t,dir={certificates},endpoint=server"
    server = servers.qemu_nbd(path, "--object", qemu, "--tls-creds=t")
    assert blksum.hex(server.uri(tls=True, user="alice", tls_psk_file=keys)) == expected
    # A check file may name servers, if the user says so, but no files of this host.
    uri = server.uri(tls=True, user="alice", tls_psk_file=keys)
    line = f"{expected}  {uri}\n".encode()
    result = blksum("-c", "--allow-uri", input=line)
    assert result.returncode == 1 and b"FAILED open or read" in result.stdout, result


@pytest.mark.parametrize("kind", ["qemu-nbd", "nbdkit"])
def test_no_fall_back_to_plain(blksum, servers, disk, certificates, kind):
    path, _ = disk
    server = servers.qemu_nbd(path) if kind == "qemu-nbd" else servers.nbdkit("file", path)
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
    """As on a machine without libnbd: nothing lies where the linker finds it."""
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
    """Threads that wait cost a buffer each."""
    path = tmp_path / "disk.img"
    with open(path, "wb") as file:
        for _ in range(128):
            file.write(os.urandom(MIB))
    server = servers.qemu_nbd(path)
    peak = peak_anonymous_memory(blksum, "--threads=2", server.uri())
    assert peak < 24 * MIB


def peak_anonymous_memory(blksum, *args):
    process = blksum.start(*args)
    peak = 0
    while process.poll() is None:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{process.pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
            peak = max(peak, int(fields.get("RssAnon", "0 kB").split()[0]) * KIB)
        time.sleep(0.002)
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


def test_delay_beyond_the_timeout(blksum, servers, disk):
    path, expected = disk
    for slow in ("delay-read=5", "delay-extents=5", "delay-open=5"):
        uri = servers.nbdkit("--filter=delay", "file", path, slow).uri()
        started = time.monotonic()
        assert_refused(blksum("--timeout=0.5", uri), "did not answer for 0.5 seconds")
        assert time.monotonic() - started < 4
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
        # A qemu-nbd that is as slow as what it reads.
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
    assert time.monotonic() - started < 5


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
# libnbd takes no notice of block sizes that break the rules.
HONEST += ["blocks-odd", "blocks-huge", "blocks-backwards"]
# Several connections are announced, and one is served.
HONEST += ["good-second-stalls", "good-second-closes"]
HONEST += ["good-read-pieces", "good-read-holes", "good-read-drops"]
HONEST += ["good-status-error", "good-status-late-error", "good-status-short"]
HONEST += ["good-status-in-bytes", "good-status-hole-data"]


@pytest.mark.parametrize("way", HONEST)
@pytest.mark.parametrize("cut", [0, 1, 511])
def test_odd_but_honest(blksum, way, cut):
    content = CONTENT[: len(CONTENT) - cut]
    with rogue(way, content) as (server, _):
        uri = server.uri()
        assert blksum.hex("--threads=3", "--timeout=0.3", uri) == blkhash.checksum(content).hex()


@pytest.mark.parametrize("size", [0, 1, 511, 512, 70001])
def test_requests_are_aligned(blksum, size):
    """By the rogue server's own record of what it was asked."""
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


LIES = {
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
        result = blksum("--threads=3", "--timeout=5", server.uri())
    assert_refused(result, LIES[way])
    assert time.monotonic() - started < 4


@pytest.mark.parametrize("way", [*(f"stall-at-{s}" for s in STAGES), "read-half-then-stall"])
def test_stalls(blksum, way):
    started = time.monotonic()
    with rogue(way, CONTENT) as (server, _):
        assert_refused(blksum("--timeout=0.5", server.uri()), "did not answer for 0.5 seconds")
    assert time.monotonic() - started < 4


@pytest.mark.parametrize("way", ["go-flood", "read-endless", "read-endless-errors", "status-endless"])
def test_answers_without_an_end(blksum, way):
    started = time.monotonic()
    with rogue(way, CONTENT) as (server, _):
        assert_refused(blksum("--timeout=0.1", server.uri()))
    assert time.monotonic() - started < 4


@pytest.mark.parametrize("way", ["honest", "list-flood", "list-long", "stall-at-list", "close-at-list"])
def test_names_of_exports_in_errors(blksum, way):
    started = time.monotonic()
    with rogue(way, CONTENT) as (server, _):
        result = blksum("--timeout=0.5", server.uri("other"))
    assert_refused(result, "no such export", "nbdinfo --list")
    assert len(result.stderr) < 1000
    if way == "honest":
        assert b'"a", "\\xff\\n\\u{1b}[2J"' in result.stderr
    assert time.monotonic() - started < 4
