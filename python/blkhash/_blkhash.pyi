from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Optional, Protocol, Union, final, type_check_only

from _typeshed import ReadableBuffer, WriteableBuffer
from typing_extensions import Self, Unpack

from blkhash._file import ImageFile
from blkhash._options import OpenOptions
from blkhash._types import (
    Audit,
    Block,
    BtrfsReport,
    Checked,
    Checksum,
    Copied,
    Differences,
    Extent,
    Member,
    Owners,
    Partition,
    Run,
    SentDelta,
    Snapshot,
    State,
    Sums,
    VerifiedSums,
)

__version__: str
__all__ = [
    "Hash",
    "Image",
    "Map",
    "__version__",
    "_algorithms_available",
    "_create_map",
    "_forked",
    "_import_map",
    "_update_map",
    "apply_delta",
    "btrfs_verify",
    "check",
    "checksum",
    "copy",
    "diff",
    "new",
    "owners",
    "read_sums",
    "send_delta",
    "sum_line",
    "verify_sums",
]

@type_check_only
class Event(Protocol):
    def is_set(self) -> bool: ...

_Progress = Callable[[int, int], object]
_Zeros = Literal["auto", "write", "punch", "keep-if-zero"]

@final
class Hash:
    @property
    def name(self) -> str: ...
    @property
    def digest_size(self) -> int: ...
    @property
    def block_size(self) -> int: ...
    @property
    def construction(self) -> str: ...
    def update(self, data: ReadableBuffer) -> None: ...
    def zero(self, length: int) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...
    def copy(self) -> Hash: ...

def new(
    name: str,
    data: Optional[ReadableBuffer] = b"",
    *,
    construction: str = "streams:4",
    block_size: Optional[int] = None,
    salt: Optional[ReadableBuffer] = b"",
    threads: Optional[int] = None,
) -> Hash: ...
def btrfs_verify(
    *images: Union[str, PathLike[str], Image],
    limit: int = 100,
    max_files: int = 16,
    threads: Optional[int] = None,
    progress: Optional[_Progress] = None,
    cancel: Optional[Event] = None,
    **options: Unpack[OpenOptions],
) -> BtrfsReport: ...
def check(
    image: Union[str, PathLike[str], Image],
    *,
    max_findings: int = 100,
    threads: Optional[int] = None,
    progress: Optional[_Progress] = None,
    cancel: Optional[Event] = None,
    **options: Unpack[OpenOptions],
) -> Checked: ...
def checksum(
    name: Union[str, PathLike[str]],
    digests: Union[str, Iterable[str]] = "sha256",
    *,
    construction: str = "streams:4",
    block_size: Optional[int] = None,
    salt: Optional[ReadableBuffer] = b"",
    expect: Optional[str] = None,
    threads: Optional[int] = None,
    progress: Optional[_Progress] = None,
    cancel: Optional[Event] = None,
    offset: int = 0,
    length: Optional[int] = None,
    **options: Unpack[OpenOptions],
) -> Checksum: ...
def copy(
    source: Union[str, PathLike[str]],
    destination: Union[str, PathLike[str]],
    *,
    digest: str = "sha256",
    construction: str = "streams:4",
    block_size: Optional[int] = None,
    zeros: _Zeros = "auto",
    verify: Literal["readback", "source"] = "readback",
    reflink: Literal["auto", "never"] = "auto",
    update: bool = False,
    force: bool = False,
    changes: Optional[Iterable[tuple[int, int]]] = None,
    bitmap: Optional[str] = None,
    destination_map: Optional[Union[str, PathLike[str]]] = None,
    map: Optional[Union[str, PathLike[str]]] = None,
    resume: bool = False,
    checkpoint: Optional[float] = None,
    expect: Optional[str] = None,
    expect_map: Optional[Union[str, PathLike[str]]] = None,
    threads: Optional[int] = None,
    progress: Optional[_Progress] = None,
    cancel: Optional[Event] = None,
    **options: Unpack[OpenOptions],
) -> Copied: ...
def apply_delta(
    delta: Union[str, PathLike[str]],
    destination: Union[str, PathLike[str]],
    *,
    digest: str = "sha256",
    construction: str = "streams:4",
    block_size: Optional[int] = None,
    zeros: _Zeros = "auto",
    force: bool = False,
    threads: Optional[int] = None,
    progress: Optional[_Progress] = None,
    cancel: Optional[Event] = None,
) -> Copied: ...
def send_delta(
    base: Union[str, PathLike[str]],
    source: Union[str, PathLike[str]],
    delta: Union[str, PathLike[str]],
    *,
    digest: str = "sha256",
    construction: str = "streams:4",
    block_size: Optional[int] = None,
    expect: Optional[str] = None,
    threads: Optional[int] = None,
    progress: Optional[_Progress] = None,
    cancel: Optional[Event] = None,
    **options: Unpack[OpenOptions],
) -> SentDelta: ...
def diff(
    left: Union[str, PathLike[str], Image],
    right: Union[str, PathLike[str], Image],
    *,
    block_size: int = 65536,
    ignore_tail: bool = False,
    ignore_free: bool = False,
    owners: bool = False,
    limit: int = 262144,
    threads: Optional[int] = None,
    progress: Optional[_Progress] = None,
    cancel: Optional[Event] = None,
) -> Differences: ...
def owners(
    image: Union[str, PathLike[str], Image],
    offset: int = 0,
    length: Optional[int] = None,
    *,
    limit: int = 262144,
    **options: Unpack[OpenOptions],
) -> Owners: ...
def read_sums(path: Union[str, PathLike[str]], *, of_files: bool = False) -> Sums: ...
def sum_line(name: Union[str, PathLike[str]], hexdigest: str, tag: Optional[str] = None) -> str: ...
def verify_sums(
    path: Union[str, PathLike[str]],
    *,
    folder: Optional[Union[str, PathLike[str]]] = None,
    of_files: bool = False,
    ignore_missing: bool = False,
    allow_uri: bool = False,
    threads: Optional[int] = None,
    progress: Optional[_Progress] = None,
    cancel: Optional[Event] = None,
    **options: Unpack[OpenOptions],
) -> VerifiedSums: ...

@final
class Image:
    def __new__(
        cls,
        name: Union[str, PathLike[str]],
        *,
        offset: int = 0,
        length: Optional[int] = None,
        **options: Unpack[OpenOptions],
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def format(self) -> str: ...
    @property
    def snapshot(self) -> Optional[str]: ...
    @property
    def partition(self) -> Optional[int]: ...
    @property
    def snapshots(self) -> tuple[Snapshot, ...]: ...
    def changes(
        self, bitmap: Optional[str] = None, *, reflink: Optional[Image] = None
    ) -> list[tuple[int, int]]: ...
    @property
    def chain(self) -> tuple[Member, ...]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def closed(self) -> bool: ...
    def partitions(self) -> list[Partition]: ...
    def extents(self, offset: int = 0, length: Optional[int] = None) -> Iterator[Extent]: ...
    def read(self, offset: int, length: int) -> bytes: ...
    def readinto(self, buffer: WriteableBuffer, offset: int = 0) -> int: ...
    def open(self) -> ImageFile: ...
    def check_unchanged(self) -> None: ...
    def checksum(
        self,
        digests: Union[str, Iterable[str]] = "sha256",
        *,
        construction: str = "streams:4",
        block_size: Optional[int] = None,
        salt: Optional[ReadableBuffer] = b"",
        expect: Optional[str] = None,
        threads: Optional[int] = None,
        max_zeros: Optional[int] = None,
        progress: Optional[_Progress] = None,
        cancel: Optional[Event] = None,
    ) -> Checksum: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: Optional[type[BaseException]],
        exc_value: Optional[BaseException],
        traceback: Optional[TracebackType],
        /,
    ) -> None: ...

@final
class Map:
    def __new__(cls, path: Union[str, PathLike[str]], *, commit: Optional[int] = None) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def digest_size(self) -> int: ...
    @property
    def block_size(self) -> int: ...
    @property
    def salt(self) -> bytes: ...
    @property
    def image_size(self) -> int: ...
    @property
    def block_count(self) -> int: ...
    @property
    def commit(self) -> int: ...
    @property
    def is_complete(self) -> bool: ...
    @property
    def is_sealed(self) -> bool: ...
    @property
    def root(self) -> Optional[bytes]: ...
    @property
    def content_id(self) -> Optional[bytes]: ...
    @property
    def info(self) -> dict[str, Any]: ...
    def check_seal(self, key: ReadableBuffer) -> None: ...
    def check(self) -> None: ...
    def runs(self) -> Iterator[Run]: ...
    def blocks(self) -> Iterator[Block]: ...
    def diff(self, other: Map, *, limit: int = 262144) -> Differences: ...
    def verify(
        self,
        image: Union[str, PathLike[str], Image],
        *,
        ignore_tail: bool = False,
        ignore_free: bool = False,
        owners: bool = False,
        limit: int = 262144,
        threads: Optional[int] = None,
        progress: Optional[_Progress] = None,
        cancel: Optional[Event] = None,
    ) -> Differences: ...
    def audit(
        self,
        image: Union[str, PathLike[str], Image],
        changes: Sequence[tuple[int, int]],
        *,
        limit: int = 262144,
        threads: Optional[int] = None,
        progress: Optional[_Progress] = None,
        cancel: Optional[Event] = None,
    ) -> Audit: ...
    def history(self, offset: int = 0, length: Optional[int] = None) -> list[State]: ...
    def checksum(self, construction: str = "streams:4", *, threads: Optional[int] = None) -> str: ...
    def export(self, path: Union[str, PathLike[str]], format: str) -> None: ...

def _import_map(
    index: Union[str, PathLike[str]],
    output: Union[str, PathLike[str]],
    format: Optional[str],
    digest: Optional[str],
    block_size: Optional[int],
    image_size: Optional[int],
    key: Optional[ReadableBuffer],
) -> None: ...
def _update_map(
    base: Map,
    image: Union[str, PathLike[str], Image],
    output: Union[str, PathLike[str]],
    changes: list[tuple[int, int]],
    sample: float,
    key: Optional[ReadableBuffer],
    threads: Optional[int],
    progress: Optional[_Progress],
    cancel: Optional[Event],
) -> None: ...
def _algorithms_available() -> list[str]: ...
def _forked() -> None: ...
def _create_map(
    image: Union[str, PathLike[str], Image],
    output: Union[str, PathLike[str]],
    digest: str,
    block_size: int,
    salt: ReadableBuffer,
    key: Optional[ReadableBuffer],
    threads: Optional[int],
    progress: Optional[_Progress],
    cancel: Optional[Event],
) -> None: ...
