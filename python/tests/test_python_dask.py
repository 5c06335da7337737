"""`blkhash.dask` with real clusters of two processes: retries, lost workers, damaged shards, and the merged map."""

import os
import pathlib
import random
import signal
import stat
import threading
import time

import pytest
from distributed import Client, LocalCluster

from blkhash import dask
from blkhash.dask import ShardError, _Job
from conftest import BLKSUM
import images

MIB = 1 << 20
PAGE = 128 * (64 << 10)

# Seconds for one call. A call takes less than a tenth of that here.
LIMIT = 300

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


def program():
    return str(BLKSUM.with_name("blkhash"))


def blkhash(*args):
    return images.run(program(), *map(str, args))


def create_map(*args, **kwargs):
    return dask.create_map(*args, **{"blkhash": program()} | kwargs)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dask")
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(folder)
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster, timeout=LIMIT) as client:
        client.wait_for_workers(2, timeout=LIMIT)
        yield client


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def disk(workdir):
    """disk.qcow2 with 403 pages, some of them with data, and the map that one machine makes."""
    source = random.Random(1)
    with open("disk.img", "wb") as file:
        for number in range(0, 400, 23):
            file.seek(number * PAGE + 4096)
            file.write(source.randbytes(MIB))
        file.truncate(402 * PAGE + 512)
    images.convert("disk.img", "disk.qcow2")
    blkhash("map", "create", "-o", "one.blkmap", "disk.qcow2")
    return str(workdir / "disk.qcow2")


def script(name, text):
    """A command in the place of blkhash. `$program` is the real one, `$shard` the number of the shard or `merge`."""
    head = f"""#!/bin/bash
program={program()}
folder={os.getcwd()}
shard=merge
for argument in "$@"; do
    case $argument in --shard=*) shard=${{argument#--shard=}}; shard=${{shard%%/*}} ;; esac
done
"""
    path = pathlib.Path(name).absolute()
    path.write_text(head + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


FAILS_ONCE = """
if [ "$shard" != merge ] && mkdir "$folder/failed-$shard" 2>/dev/null; then echo "blkhash: fails once" >&2; exit 2; fi
exec "$program" "$@"
"""


def assert_same_map(path="many.blkmap"):
    assert blkhash("map", "show", "--id", path) == blkhash("map", "show", "--id", "one.blkmap")
    blkhash("map", "check", path)


@pytest.mark.parametrize("results", ["files", "bytes"])
@pytest.mark.parametrize("shards", [9, 400])
def test_each_shard_fails_once(client, disk, shards, results):
    seen = []
    out = create_map(
        client,
        disk,
        shards,
        "many.blkmap",
        results=results,
        blkhash=script("fails-once", FAILS_ONCE),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert out == os.path.abspath("many.blkmap")
    assert_same_map()
    assert seen == [(done, shards) for done in range(1, shards + 1)]
    assert len(list(pathlib.Path(".").glob("failed-*"))) == shards
    assert not list(pathlib.Path(".").glob("many.blkmap.*"))


def test_options_are_those_of_the_command(client, disk):
    options = ["-d", "blake3", "--block-size", "4K"]
    create_map(client, pathlib.Path(disk), 5, pathlib.Path("many.blkmap"), options=options)
    blkhash("map", "create", *options, "-o", "one", disk)
    assert blkhash("map", "show", "--id", "one") == blkhash("map", "show", "--id", "many.blkmap")


def test_a_map_is_not_overwritten(client, disk):
    create_map(client, disk, 3, "many.blkmap", keep=True)
    assert len(list(pathlib.Path(".").glob("many.blkmap.*-of-3"))) == 3
    with pytest.raises(FileExistsError, match="force=True"):
        create_map(client, disk, 3, "many.blkmap")
    create_map(client, disk, 3, "many.blkmap", force=True)
    assert_same_map()
    for wrong in [{"shards": 0}, {"results": "both"}]:
        with pytest.raises(ValueError):
            create_map(client, disk, **{"shards": 3, "out": "x", **wrong})


def test_tasks_are_pinned(client, disk):
    workers = sorted(client.scheduler_info()["workers"])
    where = "echo $PPID >> \"$folder/parents\"\nexec \"$program\" \"$@\"\n"
    create_map(client, disk, 9, "many.blkmap", workers=workers[:1], blkhash=script("where", where))
    pids = client.run(os.getpid)
    assert {int(pid) for pid in pathlib.Path("parents").read_text().split()} == {pids[workers[0]]}


def test_a_worker_is_lost(client, disk):
    """It is killed while it waits for its command, which continues and holds the lock of the shard for a while."""
    slow = """
if mkdir "$folder/slow-$shard" 2>/dev/null && [ "$shard" = 4 ]; then
    ( exec 9>>"$folder/many.blkmap.4-of-9"; flock 9; echo $PPID > "$folder/waits.new"
      mv "$folder/waits.new" "$folder/waits"; sleep 5 )
    exit 2
fi
exec "$program" "$@"
"""
    killed = []

    def kill():
        until = time.monotonic() + LIMIT
        while not os.path.exists("waits") and time.monotonic() < until:
            time.sleep(0.05)
        pid = int(pathlib.Path("waits").read_text())
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    assert client.run(os.getpid)
    thread = threading.Thread(target=kill)
    thread.start()
    started = time.monotonic()
    create_map(client, disk, 9, "many.blkmap", blkhash=script("slow", slow))
    thread.join()
    assert killed and time.monotonic() - started < LIMIT
    assert_same_map()


def test_all_workers_are_restarted(client, disk):
    slow = "sleep 0.3\nexec \"$program\" \"$@\"\n"
    seen = []

    def restart(done, total):
        seen.append(done)
        if done == 3:
            client.restart_workers(list(client.scheduler_info()["workers"]), timeout=LIMIT)

    create_map(client, disk, 12, "many.blkmap", blkhash=script("slow", slow), progress=restart)
    assert seen == list(range(1, 13))
    assert_same_map()


def test_a_damaged_shard_is_named(client, disk):
    create_map(client, disk, 9, "many.blkmap", keep=True)
    with open("many.blkmap.4-of-9", "r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ShardError, match="many.blkmap.4-of-9: is damaged") as caught:
        create_map(client, disk, 9, "many.blkmap", force=True)
    assert (caught.value.shard, caught.value.status) == (4, 2)
    os.remove("many.blkmap.4-of-9")
    create_map(client, disk, 9, "many.blkmap", force=True)
    assert_same_map()


def test_two_tasks_for_one_shard(client, disk):
    slow = "sleep 0.2\nexec \"$program\" \"$@\"\n"
    command = script("slow", slow)
    name = os.path.abspath("part.{shard}")
    job = _Job(disk, 9, name, ("--checkpoint", "0.001"), False, 60.0, command)
    futures = [client.submit(job.make, 1, pure=False) for _ in range(2)]
    assert [future.result(timeout=LIMIT).error for future in futures] == [None, None]
    blkhash("map", "check", "part.1-of-9")
    # A file that stays locked is an error, in bounded time.
    lock = "exec 9>>\"$folder/part.2-of-9\"; flock -n 9; exec \"$program\" \"$@\"\n"
    job = job._replace(blkhash=script("lock", lock), lock_timeout=1.0)
    with pytest.raises(ShardError, match="is being written by another process") as caught:
        client.submit(job.make, 2, pure=False).result(timeout=LIMIT)
    assert (caught.value.shard, caught.value.status) == (2, 4)
    # What the command says does not decide.
    text = "echo 'is being written by another process' >&2; exit 2\n"
    job = job._replace(blkhash=script("text", text), lock_timeout=3600.0)
    with pytest.raises(ShardError):
        client.submit(job.make, 3, pure=False).result(timeout=LIMIT)


def test_a_change_is_not_tried_again(client, disk):
    """A shard of another state of the image is there."""
    create_map(client, disk, 9, "many.blkmap", keep=True)
    os.remove("many.blkmap")
    images.qemu_io("disk.qcow2", "write -P 5 0 64k")
    count = "echo $shard >> \"$folder/calls\"\nexec \"$program\" \"$@\"\n"
    with pytest.raises(ShardError, match="is not the map of the image as it is now") as caught:
        create_map(client, disk, 9, "many.blkmap", blkhash=script("count", count))
    assert caught.value.status == 3
    calls = pathlib.Path("calls").read_text().split()
    assert len(calls) == len(set(calls))


def test_what_fails_in_the_end_is_named(client, disk):
    fails = "if [ $shard = 7 ]; then echo 'blkhash: the disk is on fire' >&2; exit 2; fi\nexec \"$program\" \"$@\"\n"
    with pytest.raises(ShardError, match="shard 7/9: .*the disk is on fire") as caught:
        create_map(client, disk, 9, "many.blkmap", blkhash=script("fails", fails), retries=1)
    assert (caught.value.shard, caught.value.status) == (7, 2)
    # The next call continues.
    create_map(client, disk, 9, "many.blkmap")
    assert_same_map()


def test_a_shard_that_is_too_large_to_send(client, workdir):
    pathlib.Path("raw").write_bytes(random.Random(1).randbytes(140 * MIB))
    with pytest.raises(ShardError, match="results='files'"):
        create_map(client, os.path.abspath("raw"), 1, "x", options=["--block-size", "512", "-d", "sha512"], results="bytes")
