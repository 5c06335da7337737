"""The commands with URLs: copies, maps, check files, the sandbox, and what a run without URLs does not do."""

import json
import os
import pathlib
import random
import re

import pytest

import dmg_images
import ewf_images
import images
import iso_images
from commands import BLKSUM, HANG
from web import MIB, content, values

BLKCOPY, BLKHASH = (str(BLKSUM.with_name(name)) for name in ("blkcopy", "blkhash"))

# Kinds of images, of which a command reads one in its own way.
SEVERAL = ["sparse.img", "disk.qcow2", "compressed.qcow2", "below/chain.qcow2", "stream.vmdk", "disk.vhdx", "disk.img.gz", "disk.img.zst"]


def attempt(*args, **kwargs):
    return images.attempt(*map(str, args), **({"timeout": HANG} | kwargs))


def run(*args, **kwargs):
    return images.succeeded(args, attempt(*args, **kwargs))


@pytest.mark.parametrize("name", SEVERAL)
def test_copy(served, folder, workdir, name):
    run(BLKCOPY, folder / name, "expected.img")
    run(BLKCOPY, served["nginx"].url(name), "copy.img")
    run("cmp", "expected.img", "copy.img")


def test_copy_without_ranges(served, folder, workdir):
    run(BLKCOPY, served["python"].url("full.img"), "copy.img")
    run("cmp", folder / "full.img", "copy.img")


def test_nothing_is_written_to_a_url(served, folder, workdir):
    """No request is sent."""
    result = attempt(BLKCOPY, folder / "full.img", served["nginx"].url("new.img"))
    assert result.returncode != 0 and not (folder / "new.img").exists(), result


@pytest.mark.parametrize("name", SEVERAL)
def test_maps(served, folder, workdir, name):
    url = served["apache"].url(name)
    run(BLKHASH, "map", "create", "-o", "local.blkmap", folder / name)
    run(BLKHASH, "map", "create", "-o", "url.blkmap", url)
    run(BLKHASH, "map", "verify", "url.blkmap", folder / name)
    run(BLKHASH, "map", "verify", "local.blkmap", url)
    run(BLKHASH, "map", "diff", "local.blkmap", "url.blkmap")


def test_map_finds_what_differs(web, root):
    data = bytearray(content(8 * MIB))
    pathlib.Path("disk.img").write_bytes(data)
    run(BLKHASH, "map", "create", "-o", "disk.blkmap", "disk.img")
    data[5 * MIB + 7] ^= 1
    pathlib.Path("disk.img").write_bytes(data)
    result = attempt(BLKHASH, "map", "verify", "--json", "disk.blkmap", web.start("nginx", root).url("disk.img"))
    assert result.returncode == 1 and str(5 * MIB).encode() in result.stdout, result


def test_info(served, folder):
    """The size and format are the file's."""
    url, name = served["nginx"].url("disk.qcow2"), folder / "disk.qcow2"
    ours, theirs = (json.loads(run(BLKHASH, "info", "--json", it)) for it in (url, name))
    for field in ("format", "virtual_size"):
        assert ours[field] == theirs[field], (ours, theirs)


# Check files


def test_check_file_with_urls(blksum, served, folder, root):
    urls = [served["nginx"].url(name) for name in SEVERAL]
    lines = blksum(*urls).stdout
    assert lines.count(b"\n") == len(urls)
    for given in ("-", "SUMS"):
        pathlib.Path("SUMS").write_bytes(lines)
        result = blksum("-c", "--allow-uri", given, input=lines)
        assert (result.returncode, result.stdout) == (0, b"".join(f"{url}: OK\n".encode() for url in urls)), result
    wrong = re.sub(rb"^.", lambda it: b"0" if it[0] != b"0" else b"1", lines)
    result = blksum("-c", "--allow-uri", "-", input=wrong)
    assert result.returncode == 1 and result.stdout.startswith(f"{urls[0]}: FAILED\n".encode()), result


def test_check_file_with_urls_needs_an_option(blksum, web, root):
    """Without it, the server is not asked."""
    pathlib.Path("disk.img").write_bytes(b"x" * MIB)
    server = web.start("nginx", root)
    line = f"{blksum.hex('disk.img')}  {server.url('disk.img')}\n".encode()
    result = blksum("-c", "-", input=line)
    assert result.returncode == 1 and result.stdout == f"{server.url('disk.img')}: FAILED open or read\n".encode(), result
    assert b"--allow-uri" in result.stderr
    assert server.requests() == []


def test_images_on_a_server_that_state_checksums(blksum, web, root):
    """Each is compared with itself, as on this host."""
    rng = random.Random(1)
    iso_images.create("disk.iso", [rng.randbytes(3 * MIB)])
    iso_images.implant("disk.iso")
    pathlib.Path("disk.dmg").write_bytes(dmg_images.dmg(rng.randbytes(3 * MIB)))
    pathlib.Path("disk.raw").write_bytes(rng.randbytes(3 * MIB))
    ewf_images.acquire(pathlib.Path("disk.raw"), pathlib.Path("disk"))
    names = ["disk.iso", "disk.dmg", "disk.E01"]
    server = web.start("nginx", root)
    for name in names:
        url = server.url(name)
        result = blksum("-c", url)
        assert (result.returncode, result.stdout) == (0, f"{url}: OK\n".encode()), result
        data = bytearray(pathlib.Path(name).read_bytes())
        data[MIB] ^= 1
        pathlib.Path(name).write_bytes(data)
        result = blksum("-c", url)
        assert result.returncode == 1 and result.stdout.startswith(f"{url}: FAILED".encode()), result
    # Other images are no check files, and state nothing.
    result = blksum("-c", server.url("disk.raw"))
    assert result.returncode == 1 and result.stdout == b"" and result.stderr.count(b"\n") == 1, result


@pytest.mark.parametrize("kind", ["nginx", "python"])
def test_check_file_on_a_server(blksum, web, root, tls, kind):
    """Its names belong to images next to it."""
    (root / "below").mkdir()
    for name in ("disk.img", "below/disk 2.img"):
        images.write_sparse(name, content(2 * MIB, seed=name))
    pathlib.Path("SUMS").write_bytes(blksum("disk.img", "below/disk 2.img").stdout)
    encrypted = tls / "good" if kind == "nginx" else None
    server = web.start(kind, root, tls=encrypted)
    options = [f"--tls-ca={tls}/authority/ca-cert.pem"] if encrypted else []
    os.mkdir("elsewhere")
    result = blksum(*options, "-c", server.url("SUMS"), cwd="elsewhere")
    assert result.returncode == 0, result
    assert [line.endswith(b": OK") for line in result.stdout.splitlines()] == [True, True], result
    pathlib.Path("below/disk 2.img").write_bytes(b"other")
    result = blksum(*options, "-c", server.url("SUMS"), cwd="elsewhere")
    assert result.returncode == 1 and [line.rpartition(b": ")[2] for line in result.stdout.splitlines()] == [b"OK", b"FAILED"], result


def test_check_file_on_a_server_names_no_other_place(blksum, web, root):
    pathlib.Path("disk.img").write_bytes(b"x" * MIB)
    (root / "inner").mkdir()
    value = blksum.hex("disk.img")
    other = web.start("caddy", root)
    server = web.start("nginx", root)
    names = ["../disk.img", "/disk.img", f"{root}/disk.img", other.url("disk.img"), server.url("disk.img"), f"//localhost:{other.port}/disk.img"]
    names += ["%2e%2e/disk.img", "file:///etc/passwd", "nbd://localhost/"]
    (root / "inner/SUMS").write_text("".join(f"{value}  {name}\n" for name in names))
    result = blksum("-c", server.url("inner/SUMS"))
    assert result.returncode == 1 and b": OK" not in result.stdout, result
    targets = {it.target for it in server.requests()} - {"/inner/SUMS"}
    assert all(it.startswith("/inner/") and "/../" not in it for it in targets), targets
    assert not (other.folder / "log").exists() or other.requests() == []


# The sandbox, threads and sockets


def test_sandbox_is_in_force(blksum, served, folder):
    result = blksum("--verbose", served["nginx"].url("below/chain.qcow2"))
    lines = [line for line in result.stderr.splitlines() if b": sandbox: " in line]
    assert result.returncode == 0 and len(lines) == 1, result
    # The same value without it.
    value = result.stdout.split()[0].decode()
    assert blksum.hex("--no-sandbox", served["nginx"].url("below/chain.qcow2")) == value


def traced(arguments, *calls):
    """Returns the calls of a run of blksum, as strace prints them, and the result."""
    command = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=" + ",".join(calls), str(BLKSUM), *arguments]
    result = attempt(*command)
    assert result.returncode == 0, result
    return pathlib.Path("trace").read_text().splitlines()


CALLS = ("socket", "connect", "prctl")


@pytest.mark.parametrize("name", ["sparse.img", "disk.qcow2", "below/chain.qcow2"])
def test_a_run_without_urls_has_no_socket_and_no_other_thread(folder, served, workdir, name):
    """Threads are told apart by their names."""
    calls = traced([folder / name], *CALLS)
    assert not any("socket(" in call or "connect(" in call or "blkhttp" in call for call in calls), calls
    with_url = traced([served["nginx"].url(name)], *CALLS)
    assert any('PR_SET_NAME, "blkhttp"' in call for call in with_url), with_url
    assert any("socket(AF_INET" in line for line in with_url), with_url


def test_only_the_server_is_connected_to(web, root):
    """Of all servers of this machine, by their addresses in the trace."""
    images.write_sparse("disk.img", content(3 * MIB))
    server = web.start("nginx", root)
    lines = traced([server.url("disk.img", host="127.0.0.1")], "connect")
    connects = [line for line in lines if "AF_INET" in line]
    assert connects and all(f"sin_port=htons({server.port})" in line and '"127.0.0.1"' in line for line in connects), lines


def test_many_images_in_one_run(blksum, web, root):
    """Connections are shared, and the values equal the values of one run for each."""
    rng = random.Random(1)
    names = [f"{at}.img" for at in range(40)]
    for name in names:
        images.write_sparse(name, content(rng.choice([512, 70_000, MIB, 3 * MIB]) // 512 * 512, seed=name))
    server = web.start("nginx", root)
    urls = [server.url(name) for name in names]
    assert values(blksum(*urls)) == values(blksum(*names))
    # One that is missing fails alone.
    result = blksum(urls[0], server.url("missing.img"), urls[1])
    assert result.returncode == 1 and [line.split(b"  ")[1].decode() for line in result.stdout.splitlines()] == urls[:2], result
    assert len(server.requests()) < 200


def test_json(blksum, served, folder):
    report = json.loads(blksum("--json", served["nginx"].url("disk.qcow2")).stdout)
    expected = json.loads(blksum("--json", str(folder / "disk.qcow2")).stdout)
    for field in ("checksum", "virtual_size", "format"):
        assert report[field] == expected[field], (report, expected)
