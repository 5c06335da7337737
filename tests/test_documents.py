"""The commands of the documentation do what it says."""

import pytest

import documents
from conftest import ROOT, blksum_path


@pytest.fixture
def folder(workdir):
    server = documents.make_folder(workdir)
    yield workdir
    server.kill()
    server.wait()


@pytest.mark.parametrize("page", documents.PAGES)
def test_output(blksum, folder, page):
    """Every command of the page, in order, in one folder."""
    text = (ROOT / page).read_text()
    commands = [pair for block in documents.blocks(text) for pair in block]
    assert len(commands) > 10
    for command, output in commands:
        found = documents.run(command, blksum_path().parent)
        assert documents.normalized(found) == documents.normalized(output), command


@pytest.mark.parametrize("page", documents.PAGES)
def test_what_is_not_run_is_known(page):
    for command in documents.unrun((ROOT / page).read_text()):
        known = (*documents.NOT_RUN, "blksum --tag /var/lib/libvirt")
        assert command.startswith(known), command


def test_equal_content_has_equal_checksums(folder):
    """The pages show one checksum for the images of one content."""
    text = (ROOT / "README.md").read_text()
    _, output = next(documents.blocks(text))[0]
    assert len({line.split()[0] for line in output.splitlines()}) == 1
    assert len(output.splitlines()) == 4
