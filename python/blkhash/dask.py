"""Makes the map of one image on the workers of a Dask cluster.

Each task makes one shard with the command `blkhash map create --resume`, and the last one merges them. The workers
need the command and this package, and see the image under one name: a device of shared storage, a file of a network
file system, an NBD URI. It must not change meanwhile, so give it a snapshot.

    from dask.distributed import Client, LocalCluster
    from blkhash.dask import create_map

    with LocalCluster(n_workers=4, threads_per_worker=1) as cluster, Client(cluster) as client:
        create_map(client, "/dev/snapshots/vm1", 64, "/maps/vm1.blkmap")

It works with every cluster that has a `distributed.Client`, such as the clusters of dask-jobqueue for Slurm.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from distributed import Client, as_completed

from blkhash import Error

__all__ = ["ShardError", "create_map"]

#: Seconds between two attempts to lock the file of a shard.
_PAUSE = 0.5

#: The exit status of the command where trying again cannot help.
_USELESS = 3

#: The exit status of the command where another process writes to the file.
_BUSY = 4

#: A shard of more bytes is not sent to the client.
MAX_BYTES = 16 << 20


class ShardError(Error):
    """A shard could not be made, or does not belong to the others.

    `shard` is its number, from 1, or None if the merge failed, and `status` the exit status of the command. With 3,
    trying again cannot help: the image changed.
    """

    def __init__(self, message: str, shard: Optional[int], status: int):
        super().__init__(message)
        self.shard = shard
        self.status = status

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.shard, self.status)


class _Made(NamedTuple):
    """The result of a task: where the shard is, its bytes if they are asked for, or why there is none."""

    shard: int
    content: Optional[bytes] = None
    error: Optional[ShardError] = None


def create_map(
    client: Client,
    image: Union[str, "os.PathLike[str]"],
    shards: int,
    out: Union[str, "os.PathLike[str]"],
    *,
    options: Sequence[str] = (),
    results: str = "files",
    workers: Optional[Iterable[str]] = None,
    retries: int = 3,
    resources: Optional[Dict[str, float]] = None,
    progress: Optional[Callable[[int, int], object]] = None,
    lock_timeout: float = 600,
    force: bool = False,
    keep: bool = False,
    blkhash: str = "blkhash",
) -> str:
    """Makes the map `out` of `image` in `shards` parts, and returns its name.

    With `results="files"`, the shards are files next to `out`, `OUT.K-of-N`, on storage that all workers and this
    process share. If the call fails or is interrupted, the next one continues with them. They are removed at the end
    unless `keep` is set. With `results="bytes"`, workers share nothing but the image: they send each shard, of at
    most 16 MiB, to this process.

    `options` are as in `blkhash map create`, such as `["--block-size", "1M", "-d", "blake3"]`. `workers` pins the
    tasks to these workers. `resources` are Dask's that a task needs. A task that fails is tried `retries`
    times, and not again where that cannot help. One whose file is written by another process, as after a worker was
    lost, waits for it up to `lock_timeout` seconds. `progress` is called with the number of shards that are done, and
    of all. `force` overwrites a map that exists.

    Raises `ShardError`, which names the shard.
    """
    if shards < 1:
        raise ValueError("shards: at least one")
    if results not in ("files", "bytes"):
        raise ValueError(f"results: {results!r} is not 'files' or 'bytes'")
    image, out = os.fspath(image), os.path.abspath(out)
    if os.path.exists(out) and not force:
        raise FileExistsError(f"{out}: exists: force=True overwrites it")
    job = _Job(image, shards, f"{out}.{{shard}}", tuple(options), results == "bytes", lock_timeout, blkhash)
    placing: Dict[str, Any] = {"workers": list(workers)} if workers is not None else {}
    placing["resources"] = resources
    # A task writes a file, so it is no function of its arguments alone.
    futures: List[Any] = client.map(job.make, range(1, shards + 1), retries=retries, pure=False, **placing)
    try:
        with tempfile.TemporaryDirectory(dir=os.path.dirname(out)) as folder:
            job = job._replace(pattern=os.path.join(folder, "{shard}") if results == "bytes" else job.pattern)
            done = 0
            for future in as_completed(futures):  # type: ignore[no-untyped-call]
                made = future.result()
                if made.error is not None:
                    raise made.error
                if made.content is not None:
                    with open(job.name(made.shard), "wb") as file:
                        file.write(made.content)
                # The bytes do not stay in the memory of the worker.
                future.release()
                done += 1
                if progress is not None:
                    progress(done, shards)
            if results == "bytes":
                job.merge(out, force)
            else:
                merge = client.submit(job.merge, out, force, retries=retries, pure=False, **placing)
                futures.append(merge)
                error = merge.result()
                if error is not None:
                    raise error
    finally:
        client.cancel(futures)  # type: ignore[no-untyped-call]
    if results == "files" and not keep:
        for shard in range(1, shards + 1):
            os.remove(job.name(shard))
    return out


class _Job(NamedTuple):
    """What the tasks need to know."""

    image: str
    shards: int
    #: Name of the file of a shard, with `{shard}` in it.
    pattern: str
    options: Tuple[str, ...]
    sends: bool
    lock_timeout: float
    blkhash: str

    def name(self, shard: int) -> str:
        return self.pattern.replace("{shard}", f"{shard}-of-{self.shards}")

    def make(self, shard: int) -> _Made:
        """Makes a shard on a worker. Raises what may be tried again."""
        if not self.sends:
            return self._create(shard, self.name(shard))
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "shard")
            made = self._create(shard, name)
            if made.error is not None:
                return made
            size = os.path.getsize(name)
            if size > MAX_BYTES:
                reason = f"has {size} bytes: more shards, or results='files'"
                return made._replace(error=ShardError(f"shard {shard}/{self.shards}: {reason}", shard, 2))
            with open(name, "rb") as file:
                return made._replace(content=file.read())

    def _create(self, shard: int, name: str) -> _Made:
        until = time.monotonic() + self.lock_timeout
        number = f"{shard}/{self.shards}"
        command = [self.blkhash, "map", "create", "--resume", *self.options]
        command += [f"--shard={number}", f"--output={name}", "--", self.image]
        while True:
            status, text = _run(command)
            if status != _BUSY or time.monotonic() > until:
                break
            time.sleep(_PAUSE)
        if status == 0:
            return _Made(shard)
        error = ShardError(f"shard {number}: {text}", shard, status)
        if status == _USELESS:
            return _Made(shard, error=error)
        raise error

    def merge(self, out: str, force: bool) -> Optional[ShardError]:
        """Merges the shards. Returns the error if trying again cannot help."""
        command: List[str] = [self.blkhash, "map", "merge", f"--shards={self.shards}", f"--output={out}"]
        command += [*(["--force"] if force else []), "--", self.pattern]
        status, text = _run(command)
        if status == 0:
            return None
        error = ShardError(f"merge: {text}", self._named(text), status)
        # What a shard has does not change.
        if self.sends:
            raise error
        return error

    def _named(self, text: str) -> Optional[int]:
        """Returns the shard that a message is about."""
        names = ((shard, os.path.basename(self.name(shard))) for shard in range(1, self.shards + 1))
        return next((shard for shard, name in names if name in text), None)


def _run(command: Sequence[str]) -> Tuple[int, str]:
    """Runs a command. Returns its exit status and what it says, on one line."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    lines = done.stdout.decode(errors="replace").splitlines()
    return done.returncode, "; ".join(line[len("blkhash: ") :] if line.startswith("blkhash: ") else line for line in lines)
