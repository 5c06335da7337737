from collections.abc import Iterable
from typing import Literal, NamedTuple, Optional, Union

class Extent(NamedTuple):
    offset: int
    length: int
    kind: Literal["data", "zero"]

class File(NamedTuple):
    name: str
    size: int

class Member(NamedTuple):
    format: str
    size: Optional[int]
    files: tuple[File, ...]

class Partition(NamedTuple):
    number: int
    offset: int
    length: int

class Snapshot(NamedTuple):
    id: str
    name: str
    created: float
    size: int
    vm_state_size: int

class Difference(NamedTuple):
    offset: int
    length: int
    kind: Literal["changed", "written", "zeroed", "left-only", "right-only", "unreadable", "unknown"]

class Owner(NamedTuple):
    kind: Literal["file", "metadata", "journal", "free", "unknown"]
    structure: Optional[str]
    names: tuple[str, ...]
    object: Optional[int]
    file_offset: Optional[int]

class Differences(list[Difference]):
    in_files: Optional[int]
    in_metadata: Optional[int]
    in_journal: Optional[int]
    in_free_space: Optional[int]
    elsewhere: Optional[int]
    ignored: Optional[int]
    owners: Optional[list[tuple[Owner, ...]]]
    remarks: tuple[tuple[Optional[int], str], ...]
    def __init__(
        self,
        differences: Iterable[Difference] = (),
        in_files: Optional[int] = None,
        in_metadata: Optional[int] = None,
        in_journal: Optional[int] = None,
        in_free_space: Optional[int] = None,
        elsewhere: Optional[int] = None,
        ignored: Optional[int] = None,
        owners: Optional[list[tuple[Owner, ...]]] = None,
        remarks: tuple[tuple[Optional[int], str], ...] = (),
    ) -> None: ...

class Audit(NamedTuple):
    missed: list[Difference]
    listed: int
    needless: int
    clean: int
    unknown: int
    listed_bytes: int
    needless_bytes: int

class State(NamedTuple):
    commit: int
    created: Optional[str]
    image_size: int
    changed_blocks: Optional[int]
    changed_bytes: Optional[int]
    extents: Optional[int]

class Run(NamedTuple):
    offset: int
    length: int
    kind: Literal["data", "zero", "unknown"]
    digests: Optional[memoryview]

class Block(NamedTuple):
    offset: int
    length: int
    kind: Literal["data", "zero", "unknown"]
    digest: Optional[bytes]

class Copied(NamedTuple):
    checksum: str
    size: int
    format: str
    written: int
    zeroed: int
    equal: int
    verified: Literal["readback", "source"]
    read_back: Optional[str]
    destination_size: Optional[int]
    shared: int

class SentDelta(NamedTuple):
    checksum: str
    size: int
    changed: int
    length: int

class BtrfsFinding(NamedTuple):
    category: str
    subject: str
    reason: str
    device: Optional[str]
    offset: Optional[int]
    logical: Optional[int]
    length: int
    blocks: int
    mirror: Optional[int]
    mirrors: int
    good_mirrors: tuple[int, ...]
    rebuildable: Optional[bool]
    tree: Optional[int]
    inode: Optional[int]
    files: tuple[str, ...]
    files_complete: bool

class BtrfsFileSystem(NamedTuple):
    fsid: str
    label: str
    checksum: Literal["crc32c", "xxhash", "sha256", "blake2b"]
    devices: dict[int, str]
    missing_devices: tuple[int, ...]
    counts: dict[str, int]
    findings: tuple[BtrfsFinding, ...]
    data_bytes: int
    metadata_bytes: int
    unchecked_bytes: int
    missing_bytes: int
    is_complete: bool
    @property
    def is_clean(self) -> bool: ...

class BtrfsReport(NamedTuple):
    file_systems: tuple[BtrfsFileSystem, ...]
    problems: tuple[str, ...]
    others: tuple[str, ...]
    @property
    def is_clean(self) -> bool: ...
    @property
    def is_complete(self) -> bool: ...

class Verified(NamedTuple):
    structure: str
    # A field of the name `count` hides the method of tuple.
    count: int  # type: ignore[assignment]
    bytes: int

class Layer(NamedTuple):
    place: str
    partition: Optional[int]
    offset: int
    length: int
    layer: str
    label: Optional[str]
    uuid: Optional[str]
    verdict: Literal["clean", "incomplete", "damaged"]
    verified: tuple[Verified, ...]
    unprotected_bytes: Optional[int]
    mismatches: int
    damaged: int
    unreadable: int
    skipped: int
    leaks: Optional[int]
    outdated: Optional[int]
    remarks: tuple[str, ...]

class CheckFinding(NamedTuple):
    place: str
    partition: Optional[int]
    layer: str
    problem: Literal["mismatch", "damaged", "unreadable", "skipped"]
    structure: str
    offset: int
    layer_offset: int
    length: int
    object: Optional[int]
    files: tuple[str, ...]
    reason: str
    count: int  # type: ignore[assignment]

class Checked(NamedTuple):
    verdict: Literal["clean", "incomplete", "damaged"]
    layers: tuple[Layer, ...]
    findings: tuple[CheckFinding, ...]
    @property
    def is_clean(self) -> bool: ...

class Owned(NamedTuple):
    offset: int
    length: int
    partition: Optional[int]
    file_system: Optional[str]
    kind: Literal["file", "metadata", "journal", "unknown", "free"]
    structure: Optional[str]
    names: tuple[str, ...]
    object: Optional[int]
    file_offset: Optional[int]

class Owners(NamedTuple):
    extents: list[Owned]
    remarks: tuple[tuple[Optional[int], str], ...]

class Checksum(NamedTuple):
    hexdigests: dict[str, str]
    size: int
    format: str
    tag: Optional[str]
    @property
    def hexdigest(self) -> str: ...

class SumLine(NamedTuple):
    name: str
    hexdigest: str
    tag: Optional[str]
    algorithm: Optional[str]

class VerifiedSum(NamedTuple):
    name: str
    hexdigest: str
    tag: Optional[str]
    verdict: Literal["ok", "failed", "undecided", "missing", "error"]
    reason: Optional[str]

class Sums(list[SumLine]):
    malformed: tuple[int, ...]
    def __init__(self, lines: Iterable[SumLine] = (), malformed: tuple[int, ...] = ()) -> None: ...

class VerifiedSums(list[VerifiedSum]):
    malformed: tuple[int, ...]
    is_ok: bool
    def __init__(
        self, sums: Iterable[VerifiedSum] = (), malformed: tuple[int, ...] = (), is_ok: bool = False
    ) -> None: ...
