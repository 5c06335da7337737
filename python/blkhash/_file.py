"""The content of an image as a file object."""

from __future__ import annotations

import io
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from blkhash._blkhash import Image


class ImageFile(io.RawIOBase):
    """A read-only file object with the content of an image.

    It is not buffered: wrap it in `io.BufferedReader` if you read a few bytes at a time. Closing it does not close
    the image.
    """

    def __init__(self, image: Image) -> None:
        super().__init__()
        self._image = image
        self._size = image.size
        self._position = 0

    @property
    def name(self) -> str:
        """Name of the image."""
        return self._image.name

    @property
    def mode(self) -> str:
        return "rb"

    def readable(self) -> bool:
        self._check_open()
        return True

    def seekable(self) -> bool:
        self._check_open()
        return True

    def tell(self) -> int:
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._check_open()
        if whence == os.SEEK_SET:
            position = offset
        elif whence == os.SEEK_CUR:
            position = self._position + offset
        elif whence == os.SEEK_END:
            position = self._size + offset
        else:
            raise ValueError(f"invalid whence: {whence}")
        if position < 0:
            raise ValueError(f"negative seek position: {position}")
        self._position = position
        return position

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._check_open()
        count = self._image.readinto(buffer, self._position)
        self._position += count
        return count

    def readall(self) -> bytes:
        self._check_open()
        data = self._image.read(self._position, max(0, self._size - self._position))
        self._position += len(data)
        return data

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")
