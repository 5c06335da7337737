"""Functions about block maps that need no Rust."""

from __future__ import annotations

from blkhash import _blkhash
from blkhash._types import Block

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from _typeshed import ReadableBuffer

    from blkhash._blkhash import Event, Image, Map


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
        threads: number of threads, by default one per processor.
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
    _blkhash._create_map(
        image, path, digest, block_size, salt, key, threads, progress, cancel
    )
    return _blkhash.Map(path)


def import_map(
    index: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    digest: str | None = None,
    block_size: int | None = None,
    image_size: int | None = None,
    key: ReadableBuffer | None = None,
) -> Map:
    """Writes the map of an index of another program to a new file, and returns the map.

    If the index is damaged, the file is removed. `Map` opens an index, too.

    Args:
        index: path of the index.
        path: path of the new file.
        format: name of the format, as in `blkhash map import --from`, by default as recognised.
        digest: name of the digest, if the index does not have it.
        block_size: bytes of a block, if the index does not have it.
        image_size: bytes of the image, if the index does not have it.
        key: 16 to 4096 bytes that seal the map.

    Raises:
        FileExistsError: `path` exists. It is also a `MapError`.
        MapError: the index cannot be read or is damaged, or the map cannot be written.
        ValueError, TypeError: an argument is invalid.
    """
    _blkhash._import_map(index, path, format, digest, block_size, image_size, key)
    return _blkhash.Map(path)


def update_map(
    base: Map,
    image: str | os.PathLike[str] | Image,
    path: str | os.PathLike[str],
    changes: Iterable[tuple[int, int]],
    *,
    sample: float = 0.1,
    key: ReadableBuffer | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    cancel: Event | None = None,
) -> Map:
    """Writes the map of an image to a new file, from a map of an earlier state and what changed since.

    Blocks that changed are read. The others have the digests of `base`, and a random sample of them is compared with it.
    Nothing shows that the changes belong to `base`. If the work fails or is cancelled, the file is removed.

    Args:
        base: the map of an earlier state of the image. It knows every block.
        image: an `Image` or the name of one.
        path: path of the new file.
        changes: the extents that may have changed, each as offset and length in bytes, in any order, as
            `Image.changes(bitmap)` returns them.
        sample: how many of the other blocks are compared with `base`, in percent; 0 is none.
        key: 16 to 4096 bytes that seal the map, with which `base` must be sealed.
        threads: number of threads, by default one per processor.
        progress: called a few times a second and at the end, with the bytes done and their total.
        cancel: an object like `threading.Event`, which ends the work once it is set.

    Raises:
        FileExistsError: `path` exists. It is also a `MapError`.
        MapError: a block of the sample changed, so that `changes` are not complete; or a map cannot be read or written.
        ImageError: the image cannot be opened or read, or changed meanwhile (`ChangedError`).
        CancelledError: `cancel` was set.
        ValueError, TypeError: an argument is invalid.
    """
    _blkhash._update_map(base, image, path, list(changes), sample, key, threads, progress, cancel)
    return _blkhash.Map(path)
