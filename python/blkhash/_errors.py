"""The exceptions of this package, and the functions with which the extension module creates them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    _OfSystem = TypeVar("_OfSystem", bound=OSError)


class Error(Exception):
    """The base class of the exceptions of this package.

    `filename` is the file that the error is about, `offset` the offset in that file, and `errno` the number of the error
    of the system, if they are known. Otherwise they are None.
    """

    errno: int | None = None
    filename: str | None = None
    offset: int | None = None

    def __repr__(self) -> str:
        # OSError's leaves out the file.
        known = ("filename", self.filename), ("offset", self.offset)
        described = [f"{name}={value!r}" for name, value in known if value is not None]
        return f"{type(self).__name__}({', '.join([*(repr(it) for it in self.args), *described])})"


class ImageError(Error):
    """An image cannot be opened or read.

    If the system failed, the exception is also an `OSError` with `errno`, of the class that Python has for this
    error. So `except FileNotFoundError` and `except PermissionError` work as usual.

    `kind` says what failed: open, connect, io, directory, pipe, file-type, format, corrupt, unsupported, reference,
    server, snapshot, in-use, changed, truncated, holes, size, argument or other.
    """

    kind: str = "other"


class ChangedError(ImageError):
    """The image changed or became shorter since it was opened. Everything that was read from it is invalid."""


class InUseError(ImageError):
    """Another process may be writing to the image."""


class ReferenceRefusedError(ImageError):
    """The image refers to a file that may not be opened. `follow` decides which files may be."""


class MapError(Error):
    """A block map cannot be read or written, or does not belong to what it is compared with.

    Like `ImageError`, it is also an `OSError` if the system failed.
    """


class CopyError(Error):
    """The destination of a copy is refused, cannot be written, or holds something else afterwards.

    If the system failed, the exception is also an `OSError`, like `ImageError`, and `FileExistsError` if the file exists.

    `kind` says what failed: exists, holds (something would be lost), source (it is a file of the source, or overlaps it),
    format (its name), file-type, size, zeros, open, io, removed, differs, expected, undecided or other.
    """

    kind: str = "other"


class MismatchError(CopyError):
    """The destination holds something else than what was written, or an image has not the expected checksum or content.

    If `kind` is "undecided", the image has the value, which proves nothing.
    """


class SumsError(Error):
    """A file is no check file, or has no line of one."""


class CancelledError(Error):
    """The event of the caller was set."""


class ForkError(Error, RuntimeError):
    """An object was used in a process that was forked from the one that created it."""


class ImageOSError(ImageError, OSError):
    pass


class ImageNotFoundError(ImageOSError, FileNotFoundError):
    pass


class ImagePermissionError(ImageOSError, PermissionError):
    pass


class ImageIsADirectoryError(ImageOSError, IsADirectoryError):
    pass


class ImageConnectionRefusedError(ImageOSError, ConnectionRefusedError):
    pass


class ImageTimeoutError(ImageOSError, TimeoutError):
    pass


class MapOSError(MapError, OSError):
    pass


class MapNotFoundError(MapOSError, FileNotFoundError):
    pass


class MapPermissionError(MapOSError, PermissionError):
    pass


class MapIsADirectoryError(MapOSError, IsADirectoryError):
    pass


class MapExistsError(MapOSError, FileExistsError):
    pass


class CopyOSError(CopyError, OSError):
    pass


class CopyNotFoundError(CopyOSError, FileNotFoundError):
    pass


class CopyPermissionError(CopyOSError, PermissionError):
    pass


class CopyExistsError(CopyOSError, FileExistsError):
    pass


# They are members of the package. Those that are errors of the system, too, are documented with their base classes.
_PUBLIC = (
    Error,
    ImageError,
    ChangedError,
    InUseError,
    ReferenceRefusedError,
    MapError,
    CopyError,
    MismatchError,
    SumsError,
    CancelledError,
    ForkError,
    ImageOSError,
    ImageNotFoundError,
    ImagePermissionError,
    ImageIsADirectoryError,
    ImageConnectionRefusedError,
    ImageTimeoutError,
    MapOSError,
    MapNotFoundError,
    MapPermissionError,
    MapIsADirectoryError,
    MapExistsError,
    CopyOSError,
    CopyNotFoundError,
    CopyPermissionError,
    CopyExistsError,
)
for _class in _PUBLIC:
    _class.__module__ = "blkhash"

_BY_KIND: dict[str, type[ImageError]] = {
    "changed": ChangedError,
    "truncated": ChangedError,
    "in-use": InUseError,
    "reference": ReferenceRefusedError,
}


def image(
    kind: str, message: str, filename: str | None, offset: int | None, errno: int | None
) -> ImageError:
    error: ImageError
    special = _BY_KIND.get(kind)
    if errno is None or special is not None:
        error = (special or ImageError)(message)
    else:
        error = _with_errno(ImageOSError, errno, filename)
    error.kind = kind
    error.errno = errno
    error.filename = filename
    error.offset = offset
    return error


def map(message: str, filename: str, offset: int | None, errno: int | None) -> MapError:
    error: MapError
    error = MapError(message) if errno is None else _with_errno(MapOSError, errno, filename)
    error.errno = errno
    error.filename = filename
    error.offset = offset
    return error


def copy(kind: str, message: str, filename: str, offset: int | None, errno: int | None) -> CopyError:
    error: CopyError
    error = CopyError(message) if errno is None else _with_errno(CopyOSError, errno, filename)
    return _described(error, kind, filename, offset, errno)


def mismatch(kind: str, message: str, filename: str, offset: int | None) -> CopyError:
    return _described(MismatchError(message), kind, filename, offset, None)


def _described(
    error: CopyError, kind: str, filename: str, offset: int | None, errno: int | None
) -> CopyError:
    error.kind = kind
    error.errno = errno
    error.filename = filename
    error.offset = offset
    return error


def sums(message: str, filename: str) -> SumsError:
    error = SumsError(message)
    error.filename = filename
    return error


def cancelled() -> CancelledError:
    return CancelledError("cancelled")


def fork(message: str) -> ForkError:
    return ForkError(message)


def other(message: str) -> Error:
    return Error(message)


def _with_errno(base: type[_OfSystem], errno: int, filename: str | None) -> _OfSystem:
    """Returns an exception of the subclass of `base` that is also of the class of Python for `errno`."""
    wanted = type(OSError(errno, ""))
    found = (known for known in base.__subclasses__() if wanted is not OSError and issubclass(known, wanted))
    return next(found, base)(errno, os.strerror(errno), filename)
