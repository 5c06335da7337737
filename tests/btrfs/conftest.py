"""Fixtures of all tests of btrfs."""

import pytest

import filesystems


@pytest.fixture(autouse=True, scope="module")
def possible():
    filesystems.require()
