"""The content of helpers/formats.py."""

import pytest

import blkhash
import imagespec
from formats import SECRET, SPEC


@pytest.fixture(scope="module")
def content():
    return b"".join(
        bytes(piece) if isinstance(piece, int) else piece for piece in imagespec.chunks(SPEC)
    )


@pytest.fixture(scope="module")
def value(content):
    return blkhash.checksum(content).hex()


@pytest.fixture
def raw(workdir, content):
    path = workdir / "content.img"
    path.write_bytes(content)
    (workdir / "secret").write_bytes(SECRET)
    return path
