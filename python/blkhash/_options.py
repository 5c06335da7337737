"""The options for opening images. Generated from the table of blkimage."""

from os import PathLike
from typing import Literal, Optional, TypedDict, Union


class OpenOptions(TypedDict, total=False):
    """Keyword arguments that say how an image is opened. `None` is the default of each."""

    partition: Optional[int]
    format: Optional[str]
    snapshot: Optional[str]
    vpc_size: Optional[Literal["auto", "geometry", "current"]]
    secret: Optional[Union[bytes, bytearray, memoryview]]
    follow: Optional[Literal["beneath", "any", "none"]]
    backing_format: Optional[str]
    force_share: bool
    tls_certificates: Optional[Union[str, PathLike[str]]]
    tls_ca: Optional[Union[str, PathLike[str]]]
    max_zeros: Optional[int]
    max_memory: Optional[int]
    cache: Optional[Literal["auto", "yes", "no"]]
    holes: Optional[Literal["trust", "verify", "ignore"]]
    reader: Optional[Literal["auto", "qemu"]]
    nbd_server: Optional[Union[str, PathLike[str]]]
    s3_endpoint: Optional[str]
    s3_region: Optional[str]
    s3_profile: Optional[str]
    timeout: Optional[float]
