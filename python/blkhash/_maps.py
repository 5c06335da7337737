"""Functions about block maps that need no Rust."""

from __future__ import annotations

import os
import stat

from blkhash import _blkhash
from blkhash._types import Block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from _typeshed import ReadableBuffer

    from blkhash._blkhash import Event, Image, Map
    from blkhash._types import File


def blocks(map: Map) -> Iterator[Block]:
    """Yields the blocks of a map."""
    size = map.block_size
    for run in map.runs():
        end = run.offset + run.length
        offsets = range(run.offset, end, size)
        if run.digests is None:
            for offset in offsets:
                yield Block(offset, min(size, end - offset), run.kind, None)
            continue
        digests = run.digests.tobytes()
        step = map.digest_size
        for index, offset in enumerate(offsets):
            digest = digests[index * step : (index + 1) * step]
            yield Block(offset, min(size, end - offset), run.kind, digest)


def create_map(
    image: str | os.PathLike[str] | Image,
    path: str | os.PathLike[str],
    digest: str = "sha256",
    *,
    block_size: int = 65536,
    salt: ReadableBuffer = b"",
    key: ReadableBuffer | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    cancel: Event | None = None,
) -> Map:
    """Writes the map of an image to a new file, and returns the map.

    If the work fails or is cancelled, the file is removed.

    Args:
        image: an `Image` or the name of one.
        path: path of the new file.
        digest: name of a digest, as in `algorithms_available`.
        block_size: bytes of a block, a power of two from 512 to 64 MiB.
        salt: bytes that are hashed before each block.
        key: 16 to 4096 bytes that seal the map.
        threads: number of threads, by default that of the processors.
        progress: called a few times a second and at the end, with the bytes done and their total.
        cancel: an object like `threading.Event`, which ends the work once it is set.

    Raises:
        FileExistsError: `path` exists. It is also a `MapError`.
        MapError: the map cannot be written. It is also an `OSError` if the system failed.
        ImageError: the image cannot be opened or read, or changed meanwhile (`ChangedError`).
        CancelledError: `cancel` was set.
        ValueError, TypeError: an argument is invalid.

    >>> blkhash.create_map("disk.qcow2", "new.blkmap").block_count
    128
    """
    import json

    if not isinstance(image, _blkhash.Image):
        with _blkhash.Image(image) as opened:
            return create_map(
                opened,
                path,
                digest,
                block_size=block_size,
                salt=salt,
                key=key,
                threads=threads,
                progress=progress,
                cancel=cancel,
            )
    info = json.dumps(_info(image))
    _blkhash._create_map(
        image, path, info, os.urandom(16), digest, block_size, salt, key, threads, progress, cancel
    )
    return _blkhash.Map(path)


def _info(image: Image) -> dict[str, Any]:
    """Describes the image of a map, as docs/map-format.md specifies it."""
    import time

    files = []
    for index, member in enumerate(image.chain):
        for number, file in enumerate(member.files):
            role = "data" if number else "backing" if index else "image"
            files.append(_file(file, role))
    source: dict[str, Any] = {
        "name": _split(image.name)[1],
        "format": image.format,
        "snapshot": image.snapshot,
        "files": files,
    }
    if image.partition is not None:
        source["partition"] = image.partition
    partitions = [partition._asdict() for partition in image.partitions()]
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "program": f"blkhash {_blkhash.__version__}",
        "made": "read",
        "source": source,
        **({"partitions": partitions} if partitions else {}),
    }


def _file(file: File, role: str) -> dict[str, Any]:
    path, name = _split(file.name)
    described: dict[str, Any] = {"name": name, "role": role, "size": file.size}
    try:
        status = os.stat(path)
    except OSError:
        # A URI is no file.
        return described
    # The node of a device is another one on each host.
    if stat.S_ISREG(status.st_mode):
        described.update(mtime_ns=status.st_mtime_ns, ino=status.st_ino, dev=status.st_dev)
    return described


def _split(name: str) -> tuple[str, str]:
    """Returns the path of the file that holds an image, and the name of the image without its folder.

    A disk in an appliance is in the file before a colon, as `split_member` of blkimage splits it.
    """
    ends = [index for index, letter in enumerate(name) if letter == ":" and index + 1 < len(name)]
    ends = [end for end in ends if os.path.isfile(name[:end])]
    of_appliances = [end for end in ends if name[:end].lower().endswith(".ova")]
    if ends and (of_appliances or not os.path.lexists(name)):
        end = (of_appliances or ends)[0]
        return name[:end], os.path.basename(name[:end]) + name[end:]
    return name, os.path.basename(name)
