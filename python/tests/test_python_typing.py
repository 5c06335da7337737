"""The types of the package, checked by mypy."""

import sys

from conftest import HANG, PACKAGE, run

SAMPLE = """
import pathlib
import threading
from typing import Optional

import blkhash

h: blkhash.Hash = blkhash.new("sha256", bytearray(5), threads=2)
h.update(memoryview(b"x"))
text: str = h.copy().hexdigest()
result = blkhash.checksum(
    pathlib.Path("disk"), ["sha256"], progress=lambda done, total: None, cancel=threading.Event(), follow="any"
)
values: dict[str, str] = result.hexdigests
if blkhash.checksum("disk", expect="0" * 64).tag is None:
    print("none")
with blkhash.Image("disk", format="raw") as image:
    offsets: list[int] = [offset for offset, _, kind in image.extents() if kind == "data"]
    file: blkhash.ImageFile = image.open()
    names: list[str] = [snapshot.name for snapshot in image.snapshots]
    offsets = [it.offset for it in blkhash.diff(image, "other", block_size=4096)]
    data: bytes = file.read(5)
map = blkhash.create_map("disk", "map", key=b"0" * 16)
for run in map.runs():
    if run.digests is not None:
        print(run.digests.shape)
for difference in map.verify("disk") + map.diff(blkhash.Map("other")):
    print(difference.offset + difference.length, difference.kind)
report = blkhash.btrfs_verify("disk", image, limit=5, cancel=threading.Event(), partition=1)
for system in report.file_systems:
    counts: dict[str, int] = system.counts
    names += [name for finding in system.findings for name in finding.files]
    if system.is_clean and report.is_complete:
        print(system.devices[1])
checked = blkhash.check(image, max_findings=5, threads=1, cancel=threading.Event())
for layer in checked.layers:
    number: int = sum(it.count + it.bytes for it in layer.verified) + layer.mismatches
    names += [layer.place, *layer.remarks]
if not checked.is_clean and checked.findings[0].problem == "mismatch":
    names += checked.findings[0].files
owners = blkhash.owners("disk", 0, 4096, limit=10, partition=1)
names += [name for owned in owners.extents if owned.kind == "file" for name in owned.names]
names += [text for partition, text in owners.remarks if partition is not None]
part = blkhash.Image("disk", offset=512, length=4096)
tag: Optional[str] = blkhash.checksum("disk", offset=512).tag
line: str = blkhash.sum_line(pathlib.Path("disk"), "00" * 32, tag)
names += [it.name for it in blkhash.read_sums("SUMS", of_files=True) if it.algorithm == "sha256"]
verified = blkhash.verify_sums("SUMS", folder=pathlib.Path(), cancel=threading.Event(), follow="none")
names += [it.reason or it.hexdigest for it in verified if it.verdict != "ok"]
if not verified.is_ok:
    print(verified.malformed[0])
copied = blkhash.copy("disk", pathlib.Path("copy"), zeros="punch", expect="sha256:" + "0" * 64, snapshot="before")
blkhash.copy("disk", "copy", map=pathlib.Path("map"), resume=True, checkpoint=0.5)
blkhash.copy("disk", "copy", expect_map="disk.bmap")
sizes: list[int] = [copied.size, copied.written, copied.zeroed, copied.equal]
if copied.read_back is None and copied.verified == "source":
    print(copied.checksum)
try:
    blkhash.copy("disk", "copy", verify="source")
except blkhash.MismatchError as error:
    print(error.kind, error.offset)
try:
    map.check()
except blkhash.MapError as error:
    print(error.filename, error.offset)
"""

WRONG = {
    "blkhash.new('sha256', 'text')": "arg-type",
    "blkhash.new(5)": "arg-type",
    "blkhash.checksum('disk', follow='all')": "arg-type",
    "blkhash.checksum('disk', formt='raw')": "call-arg",
    "blkhash.checksum('disk', expect=b'0')": "arg-type",
    "blkhash.copy('disk', 'copy', verify='none')": "arg-type",
    "blkhash.btrfs_verify('disk', 5)": "arg-type",
    "blkhash.btrfs_verify('disk').findings": "attr-defined",
    "blkhash.check('disk', 'other')": "call-arg",
    "blkhash.owners('disk').extents[0].file_system.upper()": "union-attr",
    "blkhash.Map('map').root.hex()": "union-attr",
    "blkhash.copy('disk', 'copy', offset=512)": "call-arg",
    "blkhash.verify_sums('SUMS')[0].verdict == 'bad'": "comparison-overlap",
    "blkhash.nothing": "attr-defined",
}


def mypy(*args, status=0):
    return run(sys.executable, "-m", "mypy", *args, status=status, timeout=2 * HANG)


def test_the_package():
    assert "Success" in mypy("--strict", "--config-file", PACKAGE / "pyproject.toml", PACKAGE / "blkhash")


def test_a_program(workdir):
    (workdir / "sample.py").write_text(SAMPLE)
    assert "Success" in mypy("--strict", "sample.py")


def test_wrong_programs(workdir):
    lines = ["import blkhash", *WRONG]
    (workdir / "wrong.py").write_text("\n".join(lines) + "\n")
    output = mypy("--strict", "wrong.py", status=1)
    for number, code in enumerate(WRONG.values(), 2):
        found = [line for line in output.splitlines() if line.startswith(f"wrong.py:{number}:")]
        assert any(f"[{code}]" in line for line in found), output


def test_the_stubs_are_those_of_the_module():
    assert "Success" in run(sys.executable, "-m", "mypy.stubtest", "blkhash", timeout=2 * HANG)
