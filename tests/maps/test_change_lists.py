"""Lists of changed extents, as the programs print them that track changes.

Random cases have fixed seeds, which pytest shows with a failure.
"""

import base64
import csv
import io
import json
import os
import pathlib
import random
import re
import shutil

import numpy
import pytest
from pyVmomi import vim
from pyVmomi.VmomiJSONEncoder import VmomiJSONEncoder

import images
import roots
from commands import HANG, ROOT, blkhash
from servers import Servers

KIB = 1 << 10
MIB = 1 << 20
LISTER = "github.com/kubernetes-csi/external-snapshot-metadata"


@pytest.fixture(scope="module")
def servers():
    servers = Servers()
    yield servers
    servers.close()


def filtered(text, *command):
    """Returns the output of a program for an input."""
    return images.run(*map(str, command), input=text.encode(), stdin=None)


@pytest.fixture
def attempt(tmp_path):
    """Prints a list for a disk of this size."""

    def run(text, size, *options):
        (tmp_path / "list").write_bytes(text if isinstance(text, bytes) else text.encode())
        with open(tmp_path / "disk.raw", "wb") as file:
            file.truncate(size)
        return blkhash("map", "changes", "--changes", tmp_path / "list", *options, tmp_path / "disk.raw")

    return run


@pytest.fixture
def read(attempt):
    """Returns the extents of a list for a disk of this size, as offsets and lengths."""

    def run(text, size, form):
        done = attempt(text, size)
        demanded = attempt(text, size, "--changes-format", form)
        assert done.returncode == demanded.returncode == 0, (done, demanded)
        assert done.stdout == demanded.stdout
        return [tuple(map(int, line.split())) for line in done.stdout.decode().splitlines()]

    return run


@pytest.fixture
def refusal(attempt):
    """Returns the message for a list that is refused."""

    def run(text, *options):
        done = attempt(text, 16 * MIB, *options)
        assert done.returncode == 2 and done.stdout == b"", done
        [line] = done.stderr.decode().splitlines()
        return line

    return run


def joined(extents):
    """Returns offsets and lengths, sorted and joined."""
    result = []
    for offset, length in sorted(extents):
        if result and offset <= sum(result[-1]):
            start = result[-1][0]
            result[-1] = (start, max(sum(result[-1]), offset + length) - start)
        else:
            result.append((offset, length))
    return result


def rounded(extents, size):
    """Returns extents rounded outwards to multiples of a size."""
    return joined((at // size * size, -(-(at + length) // size) * size - at // size * size) for at, length in extents)


def random_extents(rng, size, unit):
    """Returns extents in multiples of a unit, the first of which often starts at 0."""
    extents = []
    for _ in range(rng.randrange(20)):
        at = rng.choice([0, rng.randrange(size // unit)])
        extents.append((at * unit, rng.randint(1, min(9, size // unit - at)) * unit))
    return extents


def dirty_image(path, rng, size, granularity):
    """Makes a qcow2 image with the bitmap `since`. Returns what was written then."""
    images.run("qemu-img", "create", "-q", "-f", "qcow2", str(path), str(size))
    images.run("qemu-img", "bitmap", "--add", "-g", str(granularity), str(path), "since")
    extents = random_extents(rng, size, 512)
    writes = [option for at, length in extents for option in ("-c", f"write -P {rng.randrange(256)} {at} {length}")]
    if writes:
        images.run("qemu-io", "-f", "qcow2", *writes, str(path))
    return extents


@pytest.mark.parametrize("seed", range(6))
def test_nbdinfo(read, attempt, servers, tmp_path, seed):
    rng = random.Random(seed)
    size, granularity = rng.randint(1, 200) * 64 * KIB, rng.choice([512, 4 * KIB, 64 * KIB])
    written = dirty_image(tmp_path / "disk.qcow2", rng, size, granularity)
    server = servers.qemu_nbd(tmp_path / "disk.qcow2", "-B", "since", fmt="qcow2")
    command = ["nbdinfo", "--map=qemu:dirty-bitmap:since"]
    text = images.run(*command, "--json", server.uri()).decode()
    expected = [(at, min(length, size - at)) for at, length in rounded(written, granularity)]
    assert read(text, size, "nbdinfo") == expected
    # nbdinfo itself, in columns.
    columns = images.run(*command, server.uri()).decode()
    assert attempt(columns, size).stderr.endswith(b"what nbdinfo prints for people is no list: --json prints one\n")
    rows = [row.split() for row in columns.splitlines()]
    assert joined((int(at), int(length)) for at, length, kind, _ in rows if kind == "1") == expected


def test_maps_of_other_contexts(refusal, servers, tmp_path):
    dirty_image(tmp_path / "disk.qcow2", random.Random(1), 4 * MIB, 64 * KIB)
    server = servers.qemu_nbd(tmp_path / "disk.qcow2", "-A", fmt="qcow2")
    for context in ["base:allocation", "qemu:allocation-depth"]:
        text = images.run("nbdinfo", f"--map={context}", "--json", server.uri())
        assert f"a map of {context} does not tell changes" in refusal(text)


def thin_pool(path, rng, block_size):
    """Makes the metadata of a pool with a thin device, 1, and a snapshot, 2. Returns the data block of each block of them."""
    left, right = {}, {}
    free = iter(rng.sample(range(1000), 400))
    for block in range(80):
        kind = rng.choice(["none", "same", "same", "different", "left", "right"]) if block % 3 == 0 else kind
        # Blocks that follow each other on the device often do so in the pool.
        data = block + 1000 if rng.random() < 0.7 else next(free)
        if kind in ("same", "different", "left"):
            left[block] = data
        if kind in ("same", "right"):
            right[block] = data
        if kind == "different":
            right[block] = next(free)
    text = f'<superblock uuid="" time="1" transaction="1" flags="0" version="2" data_block_size="{block_size // 512}"'
    text += ' nr_data_blocks="2000">'
    for device, blocks in [(1, left), (2, right)]:
        text += f'<device dev_id="{device}" mapped_blocks="{len(blocks)}" transaction="0" creation_time="0" snap_time="1">'
        for block, data in blocks.items():
            text += f'<single_mapping origin_block="{block}" data_block="{data}" time="0"/>'
        text += "</device>"
    (path / "pool.xml").write_text(text + "</superblock>")
    with open(path / "pool", "wb") as file:
        file.truncate(4 * MIB)
    images.run("thin_restore", "-i", str(path / "pool.xml"), "-o", str(path / "pool"))
    return left, right


def check_thin_delta(read, path, program, seed):
    rng = random.Random(seed)
    block_size = rng.choice([64 * KIB, 192 * KIB, MIB])
    left, right = thin_pool(path, rng, block_size)
    different = [block for block in range(80) if left.get(block) != right.get(block)]
    expected = joined((block * block_size, block_size) for block in different)
    for options in [[], ["--verbose"]]:
        command = [*program, "--snap1", "1", "--snap2", "2", *options, path / "pool"]
        text = images.run(*map(str, command))
        assert read(text, 80 * block_size, "thin-delta") == expected, text


@pytest.mark.parametrize("seed", range(6))
def test_xenserver(attempt, seed):
    """The bitmap of VDI.list_changed_blocks, as numpy packs it."""
    rng = random.Random(seed)
    count = rng.randrange(1, 3000)
    size = count * 64 * KIB - rng.choice([0, 512])
    bits = [rng.random() < 0.2 for _ in range(count)]
    text = base64.b64encode(numpy.packbits(bits).tobytes()).decode() + rng.choice(["", "\n"])
    done = attempt(text, size, "--changes-format", "xenserver")
    assert done.returncode == 0, done
    extents = [tuple(map(int, line.split())) for line in done.stdout.decode().splitlines()]
    assert extents == joined((at * 64 * KIB, 64 * KIB) for at, bit in enumerate(bits) if bit)
    # One of a smaller disk, and one without its form.
    covered = -(-count // 8) * 8 * 64 * KIB
    done = attempt(text, covered + 1, "--changes-format", "xenserver")
    assert done.returncode == 3 and f"covers {covered} bytes of a disk, and the image has {covered + 1}" in done.stderr.decode()
    assert attempt(text, size).returncode == 2


@pytest.mark.parametrize("seed", range(6))
def test_vmware(read, seed):
    """Pages of QueryChangedDiskAreas, as pyVmomi prints them and as its JSON."""
    rng = random.Random(seed)
    info = vim.VirtualMachine.DiskChangeInfo
    pages, expected, end = [], [], 0
    for _ in range(rng.randrange(1, 4)):
        start, end = end, end + rng.randrange(1, 40) * 64 * KIB
        areas = [(at, 64 * KIB) for at in range(start, end, 64 * KIB) if rng.random() < 0.3]
        changed = [info.DiskChangeExtent(start=at, length=length) for at, length in areas]
        pages.append(info(startOffset=start, length=end - start, changedArea=changed))
        expected += areas
    for text in "\n".join(map(str, pages)), json.dumps(pages, cls=VmomiJSONEncoder):
        assert read(text, end, "vmware") == joined(expected), text


@pytest.mark.parametrize("seed", range(6))
def test_thin_delta(read, tmp_path, seed):
    check_thin_delta(read, tmp_path, ["thin_delta"], seed)


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a root file system")
def test_thin_delta_of_the_next_debian(read, tmp_path):
    """The program of Debian 12 is written in C++, and later ones in Rust."""
    root = tmp_path / "root"
    roots.make("testing", root, "thin-provisioning-tools", variant="extract")
    program = roots.program(root, "thin_delta")
    for seed in range(6):
        check_thin_delta(read, tmp_path, program, seed)


@pytest.fixture(scope="module")
def lister(tmp_path_factory):
    """Compiles the emitter of snapshot-metadata-lister. Returns its output for records."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs Go 1.24 or later, which Debian 12 does not have")
    folder = tmp_path_factory.mktemp("lister")
    for name in ["go.mod", "go.sum", "main.go"]:
        shutil.copy(ROOT / "tests/helpers/csi_lister" / name, folder)
    done = images.attempt(go, "mod", "download", "-json", f"{LISTER}@v1.1.0", cwd="/", timeout=HANG)
    module = json.loads(done.stdout)
    assert module.get("Sum") == "h1:qp0t1Du6ZrBRyzit73rIRPBXliNxSV3YwVYuJ+9XKdU=", done
    source = pathlib.Path(module["Dir"]) / "pkg"
    # Without the client of Kubernetes, which takes minutes to compile.
    (folder / "pkg/api").mkdir(parents=True)
    (folder / "pkg/iterator").mkdir()
    (folder / "pkg/api/schema.pb.go").write_bytes((source / "api/schema.pb.go").read_bytes())
    (folder / "pkg/iterator/emitters.go").write_bytes((source / "iterator/emitters.go").read_bytes())
    record = re.search(r"^type IteratorMetadata struct \{.*?^\}", (source / "iterator/iter.go").read_text(), re.M | re.S)[0]
    header = f'package iterator\n\nimport "{LISTER}/pkg/api"\n\n'
    (folder / "pkg/iterator/metadata.go").write_text(header + record + "\n")
    images.run(go, "build", "-o", "lister", ".", cwd=folder)
    return lambda records: filtered(json.dumps(records), folder / "lister")


@pytest.mark.slow
@pytest.mark.network
def test_snapshot_metadata_lister(read, attempt, lister):
    assert read(lister([]), MIB, "csi") == []
    for seed in range(20):
        rng = random.Random(seed)
        size = rng.randint(1, 500) * 64 * KIB
        extents = random_extents(rng, size, rng.choice([512, 4 * KIB, 64 * KIB]))
        kind = rng.choice([1, 2])
        cuts = sorted(rng.randrange(len(extents) + 1) for _ in range(rng.randrange(4)))
        parts = [extents[start:end] for start, end in zip([0, *cuts], [*cuts, len(extents)])]
        text = lister([{"Type": kind, "Capacity": size, "Blocks": part} for part in parts])
        assert (b'{"size_bytes"' in text) == any(offset == 0 for offset, _ in extents)
        assert read(text, size, "csi") == joined(extents)
        # Cut anywhere, it is an error.
        assert attempt(text[: rng.randrange(1, len(text))], size).returncode == 2


def test_rbd(read, refusal):
    """As in src/tools/rbd/action/Diff.cc of Ceph: `exists` is a string. There is no rbd without a cluster."""
    extents = [(0, 4 * MIB), (8 * MIB, 4 * KIB), (12 * MIB, 512)]
    records = [{"offset": at, "length": length, "exists": "false" if at == 0 else "true"} for at, length in extents]
    for text in [json.dumps(records, separators=(",", ":")), json.dumps(records, indent=4) + "\n"]:
        assert read(text, 16 * MIB, "rbd") == extents
    assert "the list is cut" in refusal(json.dumps(records)[:-1])


# Output of version 1.45 of the AWS command for answers of a server.
CHANGED_BLOCKS = """{
    "ChangedBlocks": [
        {
            "BlockIndex": 0,
            "FirstBlockToken": "AAAB",
            "SecondBlockToken": "AAAC"
        },
        {
            "BlockIndex": 7,
            "SecondBlockToken": "AAAC"
        }
    ],
    "ExpiryTime": 1790000000.0,
    "VolumeSize": 1,
    "BlockSize": 524288,
    "NextToken": "abc"
}
"""


def test_ebs(read, refusal):
    last = CHANGED_BLOCKS.replace(',\n    "NextToken": "abc"', "").replace('"BlockIndex": 0', '"BlockIndex": 9')
    expected = joined((index * 512 * KIB, 512 * KIB) for index in [0, 7, 9])
    assert read(CHANGED_BLOCKS + last, 1 << 30, "ebs") == expected
    pages = filtered(CHANGED_BLOCKS + last, "jq", "-s", ".")
    assert read(pages, 1 << 30, "ebs") == expected
    assert "its last page has a NextToken" in refusal(last + CHANGED_BLOCKS)


@pytest.mark.parametrize("header", [False, True])
def test_csv(read, refusal, header):
    extents = [(0, 512), (4096, 8192)]
    text = io.StringIO()
    csv.writer(text).writerows([("offset", "length"), *extents] if header else extents)
    assert read(text.getvalue(), MIB, "csv") == extents
    assert "the list is cut" in refusal(text.getvalue()[:-2])


def test_extents_of_map_diff(read, tmp_path):
    rng = random.Random(1)
    content = bytearray(rng.randbytes(4 * MIB))
    (tmp_path / "before.raw").write_bytes(content)
    for at in [0, 70 * KIB, 2 * MIB, 4 * MIB - 1]:
        content[at] ^= 1
    (tmp_path / "after.raw").write_bytes(content)
    done = blkhash("map", "diff", "--extents", tmp_path / "before.raw", tmp_path / "after.raw")
    assert done.returncode == 1
    assert read(done.stdout, 4 * MIB, "lines") == [(0, 128 * KIB), (2 * MIB, 64 * KIB), (4 * MIB - 64 * KIB, 64 * KIB)]


def test_forms_that_are_not_there(refusal):
    assert "line 1" in refusal("0 512 1\n")
    assert "known form" in refusal("hello\n")
    assert "what rbd prints for people is no list: --format json" in refusal("Offset       Length      Type \n0  4194304  data\n")
    lister = "Record#   VolCapBytes  BlockMetadataType   ByteOffset     SizeBytes   \n-------\n"
    assert "what snapshot-metadata-lister prints for people is no list: -o json" in refusal(lister)
    assert "csv" in refusal("0 512\n", "--changes-format", "csv")
    message = refusal('[{"offset":0,"length":512,"\\u001b[31m\\n":1}]')
    assert "unknown field" in message and message.isprintable()
