"""Checksums, block maps and copies of disk images.

>>> import blkhash
>>> h = blkhash.new("sha256", b"boot sector")
>>> h.zero(10 * 2**30)
>>> h.hexdigest()
'bb16f6fb950a8d2f49a073f4e6bdb914a187b7561344b5388bf42946b016e0d8'
"""

import os as _os

from blkhash import _blkhash
from blkhash._blkhash import (
    Hash,
    Image,
    Map,
    apply_delta,
    btrfs_verify,
    check,
    checksum,
    copy,
    diff,
    new,
    owners,
    read_sums,
    send_delta,
    sum_line,
    verify_sums,
)
from blkhash._errors import (
    CancelledError,
    ChangedError,
    CopyError,
    Error,
    ForkError,
    ImageError,
    InUseError,
    MapError,
    MismatchError,
    ReferenceRefusedError,
    SumsError,
)
# These are errors of the system, too. `except FileNotFoundError` and the like need none of them.
from blkhash._errors import (
    CopyExistsError as CopyExistsError,
    CopyNotFoundError as CopyNotFoundError,
    CopyOSError as CopyOSError,
    CopyPermissionError as CopyPermissionError,
    ImageConnectionRefusedError as ImageConnectionRefusedError,
    ImageIsADirectoryError as ImageIsADirectoryError,
    ImageNotFoundError as ImageNotFoundError,
    ImageOSError as ImageOSError,
    ImagePermissionError as ImagePermissionError,
    ImageTimeoutError as ImageTimeoutError,
    MapExistsError as MapExistsError,
    MapIsADirectoryError as MapIsADirectoryError,
    MapNotFoundError as MapNotFoundError,
    MapOSError as MapOSError,
    MapPermissionError as MapPermissionError,
)
from blkhash._file import ImageFile
from blkhash._maps import create_map, import_map, update_map
from blkhash._options import OpenOptions
from blkhash._types import (
    Audit,
    Block,
    BtrfsFileSystem,
    BtrfsFinding,
    BtrfsReport,
    Checked,
    CheckFinding,
    Checksum,
    Copied,
    Difference,
    Differences,
    Extent,
    File,
    Layer,
    Member,
    Owned,
    Owner,
    Owners,
    Partition,
    Run,
    SentDelta,
    Snapshot,
    State,
    SumLine,
    Sums,
    Verified,
    VerifiedSum,
    VerifiedSums,
)

__all__ = [
    "Audit",
    "Block",
    "BtrfsFileSystem",
    "BtrfsFinding",
    "BtrfsReport",
    "CancelledError",
    "ChangedError",
    "CheckFinding",
    "Checked",
    "Checksum",
    "Copied",
    "CopyError",
    "Difference",
    "Differences",
    "Error",
    "Extent",
    "File",
    "ForkError",
    "Hash",
    "Image",
    "ImageError",
    "ImageFile",
    "InUseError",
    "Layer",
    "Map",
    "MapError",
    "Member",
    "MismatchError",
    "OpenOptions",
    "Owned",
    "Owner",
    "Owners",
    "Partition",
    "ReferenceRefusedError",
    "Run",
    "SentDelta",
    "Snapshot",
    "State",
    "SumLine",
    "Sums",
    "SumsError",
    "Verified",
    "VerifiedSum",
    "VerifiedSums",
    "algorithms_available",
    "apply_delta",
    "btrfs_verify",
    "check",
    "checksum",
    "copy",
    "create_map",
    "diff",
    "import_map",
    "new",
    "owners",
    "read_sums",
    "send_delta",
    "sum_line",
    "update_map",
    "verify_sums",
]

__version__ = _blkhash.__version__

#: The names that `new()` and others take, apart from aliases.
algorithms_available = frozenset(_blkhash._algorithms_available())

_os.register_at_fork(after_in_child=_blkhash._forked)
