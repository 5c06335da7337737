"""What a release wrote is read by this version: the golden files of tests/helpers/golden.py, which made them then, compared with the
reference, hashlib and other programs as well. Nothing here writes them again."""

import base64
import hashlib
import json
import pathlib
import re
import shutil
import xml.etree.ElementTree

import pytest

import blkhash
import blkmap
import digests
import golden
import images
import imagespec
import verity
from commands import blksum_path
from deltas import Decoded

VERSIONS = sorted(path.name for path in golden.GOLDEN.iterdir() if path.is_dir())
PROGRAMS = blksum_path().parent
CHECK_FILES = [*golden.CHECK_FILES, "others.sums", "bsd.sums"]
SIZES = {"K": 1 << 10, "M": 1 << 20}


@pytest.fixture(scope="module", params=VERSIONS)
def folder(request, tmp_path_factory):
    """The golden files of a version, among the images that they are of."""
    path = tmp_path_factory.mktemp("golden")
    golden.make_images(path)
    shutil.copytree(golden.GOLDEN / request.param, path, dirs_exist_ok=True)
    return path


def run(command, folder, status=0):
    return golden.run(command, folder, PROGRAMS, status)


def content(folder, name):
    """The content that a guest sees, as QEMU reads it, or a raw file's."""
    path = folder / name
    if path.suffix == ".img":
        return path.read_bytes()
    raw = folder / "content.raw"
    images.qemu_img("convert", "-O", "raw", path, raw)
    return raw.read_bytes()[: imagespec.size(golden.SPECS["disk"])]


def test_there_are_some():
    assert VERSIONS


# Check files and values


@pytest.mark.parametrize("name", CHECK_FILES)
def test_check_files(folder, name):
    lines = [line for line in (folder / name).read_bytes().split(b"\n") if line and line[:1] != b"#"]
    results = run(f"blksum -c --strict {name}", folder).decode().splitlines()
    assert len(results) == len(lines) > 0
    assert all(re.search(r": OK( \([^()]*\))?$", line) for line in results)


def test_check_files_and_other_content(folder, tmp_path):
    """Not one line is right of images of other content."""
    for image in folder.glob("*.img"):
        (tmp_path / image.name).write_bytes(bytes(byte ^ 1 for byte in image.read_bytes()))
    for image in [*(f"disk.{fmt}" for fmt in golden.FORMATS), "compressed.qcow2", "overlay.qcow2", "snapshots.qcow2"]:
        shutil.copy(tmp_path / "disk.img", tmp_path / image)
    for name in ("plain.sums", "tags.sums", "parts.sums", "bytes.sums"):
        shutil.copy(folder / name, tmp_path)
        assert b": OK" not in run(f"blksum -c --strict-construction {name}", tmp_path, status=1)


def test_tags_are_those_of_the_reference(folder):
    """Every line with a tag has the value that the model computes from the tag and the content."""
    seen = 0
    for name in ("tags.sums", "parts.sums"):
        for line in (folder / name).read_text().splitlines():
            escaped = line.startswith("\\")
            tag, image, value = re.fullmatch(r"\\?(BLKSUM-\S+) \((.*)\) = (\S+)", line).groups()
            if escaped:
                image = image.replace("\\n", "\n").replace("\\\\", "\\")
            parameters, *fields = tag.split("/")
            fields = dict(field.split("=") for field in fields)
            assert value == reference_value(parameters, part_of(folder, image, fields)), line
            seen += 1
    assert seen > 50


def part_of(folder, image, fields):
    """The content that the fields of a tag name."""
    if "SNAPSHOT" in fields:
        data = content_of_spec("before")
    elif image == "guest.img":
        data = golden.GUEST
    elif image in ("partitioned.img", "whole.img"):
        data = (folder / image).read_bytes()
    else:
        data = content(folder, image)
        assert data == content_of_spec("disk")
    if "PARTITION" in fields:
        data = data[1 << 20 : 2 << 20]
    start = int(fields.get("OFFSET", 0))
    return data[start : start + int(fields.get("LENGTH", len(data)))]


def content_of_spec(name):
    return b"".join(bytes(chunk) if isinstance(chunk, int) else chunk for chunk in imagespec.chunks(golden.SPECS[name]))


def reference_value(tag, data):
    """The checksum of data that the parameters of a tag name."""
    name, construction, size, salt = re.fullmatch(
        r"BLKSUM-(.+?)-(STREAMS\d+|FLAT|CONCAT|LINEAR|FSVERITY|DMVERITY)(?:-(\d+[KM]?))?(?:-SALT([0-9a-f]+))?", tag
    ).groups()
    how = {"FSVERITY": "fs-verity", "DMVERITY": "dm-verity"}.get(construction, construction.lower())
    how = re.sub(r"^streams", "streams:", how)
    if how == "linear":
        return blkhash.checksum(data, name.lower(), how).hex()
    number, unit = re.fullmatch(r"(\d+)([KM]?)", size).groups()
    return blkhash.checksum(data, name.lower(), how, int(number) * SIZES.get(unit, 1), bytes.fromhex(salt or "")).hex()


def test_lines_of_bytes_are_those_of_the_reference(folder):
    data = content_of_spec("disk")
    first, *tagged = (folder / "bytes.sums").read_text().splitlines()
    assert first == f"{hashlib.sha256(data).hexdigest()}  disk.img"
    assert len(tagged) == len(golden.DIGESTS)
    for digest, line in zip(golden.DIGESTS, tagged):
        h = digests.new(digest)
        h.update(data)
        assert line.endswith(f" (disk.img) = {h.digest().hex()}"), digest


def test_lines_without_tags_are_those_of_the_reference(folder):
    """Each value is one of the model, and no two lines are of one construction and digest."""
    data = content_of_spec("disk")
    ways = [("sha256", how, 65536) for how in ("streams:4", "streams:32", "streams:64", "flat", "concat", "linear")]
    ways += [(digest, "streams:4", 65536) for digest in ("md5", "sha1", "sha512", "blake3")] + [("blake2b256", "concat", 4 << 20)]
    model = {blkhash.checksum(data, *way).hex(): way for way in ways}
    unknown = [line.split()[0] for line in (folder / "unknown.sums").read_text().splitlines()]
    assert sorted(unknown) == sorted(value for value, way in model.items() if way != ways[0])
    default = blkhash.checksum(data)
    plain = {line.split()[0].lstrip("\\") for line in (folder / "plain.sums").read_text().splitlines()}
    assert plain == {default.hex()}
    coded = {line.split()[0] for line in (folder / "base64.sums").read_text().splitlines()}
    assert coded == {base64.b64encode(default).decode()}
    prefixed = [line.split()[0] for line in (folder / "oci.sums").read_text().splitlines()]
    assert prefixed == [f"{name}:{blkhash.checksum(data, name).hex()}" for name in ("sha256", "blake3")]


def test_values_are_recognised(folder):
    texts = json.loads((folder / "values.json").read_text())
    assert len(texts) > 8
    for text in texts:
        assert run(f"blksum --expect '{text}' disk.img", folder).startswith(b"disk.img: OK"), text
        assert b"OK" not in run(f"blksum --expect '{text}' before.img", folder, status=1), text


# Maps


@pytest.mark.parametrize("name", golden.MAPS)
def test_maps(folder, name):
    """A map is whole, has what the model makes of the content, and finds each block that differs."""
    sealed = " --key-file key" if name == "sealed" else ""
    assert run(f"blkhash map check{sealed} {name}.blkmap", folder).startswith(f"{name}.blkmap: OK".encode())
    data = (folder / f"{name}.blkmap").read_bytes()
    read = blkmap.read(data, key=golden.KEY if sealed else None)
    pages = range(read.runs[0].first, read.runs[-1].end)
    model = blkmap.write(content_of_spec("disk"), *read.parameters, pages, file_id=bytes(16), info="{}")
    expected = blkmap.read(model)
    assert read.digests() == expected.digests()
    assert (read.commit.root, read.commit.content_id) == (expected.commit.root, expected.commit.content_id)
    show = json.loads(run(f"blkhash map show --json {name}.blkmap", folder))
    assert show["digest"] == read.parameters.algorithm and show["virtual_size"] == read.size
    if read.is_complete:
        assert bytes.fromhex(show["content_id"]) == expected.commit.content_id
        assert run(f"blkhash map verify{sealed} {name}.blkmap disk.vmdk", folder)
        found = run(f"blkhash map diff --extents {name}.blkmap before.img", folder, status=1)
        block = read.parameters.block_size
        assert [tuple(map(int, line.split())) for line in found.splitlines()] == differences(block)
    if read.is_complete and not read.parameters.salt:
        value = run(f"blkhash map checksum {name}.blkmap", folder).decode().split()[0]
        assert value == blkhash.checksum(content_of_spec("disk"), read.parameters.algorithm, block_size=block).hex()


def differences(block):
    """The extents in which the images `disk` and `before` differ, in whole blocks."""
    left, right = (content_of_spec(name) for name in ("disk", "before"))
    extents = []
    for at in range(0, len(left), block):
        if left[at : at + block] == right[at : at + block]:
            continue
        if extents and sum(extents[-1]) == at:
            extents[-1] = (extents[-1][0], extents[-1][1] + block)
        else:
            extents.append((at, block))
    return extents


def test_states_of_a_map(folder):
    assert run("blkhash map verify history.blkmap@1 before.img", folder)
    assert len(run("blkhash map show --log history.blkmap", folder).splitlines()) == 3
    states = [blkmap.read((folder / "history.blkmap").read_bytes(), sequence=number) for number in (1, 2)]
    for state, name in zip(states, ("before", "disk")):
        model = blkmap.write(content_of_spec(name), "sha256", 65536, file_id=bytes(16), info="{}")
        assert state.commit.content_id == blkmap.read(model).commit.content_id


def test_parts_are_merged(folder, tmp_path):
    run(f"blkhash map merge -o {tmp_path}/whole.blkmap part-1-of-2.blkmap part-2-of-2.blkmap", folder)
    assert run(f"blkhash map verify {tmp_path}/whole.blkmap disk.img", folder)


def test_a_map_is_continued(folder, tmp_path):
    """This version appends to the map of another."""
    path = shutil.copy(folder / "history.blkmap", tmp_path)
    run(f"blkhash map update -q --trust --changes changes.list {path} before.img", folder)
    assert run(f"blkhash map verify {path} before.img", folder) and run(f"blkhash map check {path}", folder)
    assert run(f"blkhash map verify {path}@2 disk.img", folder)


def test_exports(folder, tmp_path):
    """Every format is read back as the map of the content."""
    for form, options in golden.EXPORTS.items():
        path = tmp_path / f"{form}.blkmap"
        run(f"blkhash map import {options} -o {path} disk.{form}", folder)
        verified = run(f"blkhash map verify {path} disk.img", folder, status=2 if form == "bmap" else 0)
        assert (b"unknown" in verified or b"not known" in verified) == (form == "bmap"), (form, verified)
    data = content_of_spec("disk")
    blocks = [hashlib.sha256(data[at : at + 65536]).digest() for at in range(0, len(data), 65536)]
    assert (folder / "disk.raw").read_bytes() == b"".join(blocks)
    ranges = xml.etree.ElementTree.parse(folder / "disk.bmap").findall("BlockMap/Range")
    for entry in ranges:
        first, _, last = entry.text.strip().partition("-")
        piece = data[int(first) * 65536 : (int(last or first) + 1) * 65536]
        assert entry.get("chksum") == hashlib.sha256(piece).hexdigest()


# Deltas, verity


@pytest.mark.parametrize("name", golden.DELTAS)
def test_deltas(folder, tmp_path, name):
    base, _ = golden.DELTAS[name]
    copy = shutil.copy(folder / f"{base}.img", tmp_path)
    run(f"blkcopy -q --apply {name}.delta {copy}", folder)
    assert pathlib.Path(copy).read_bytes() == content_of_spec("disk")
    decoded = Decoded((folder / f"{name}.delta").read_bytes())
    if decoded.name == "sha256" and name == "same-size":
        assert decoded.applied(content_of_spec(base)) == content_of_spec("disk")
    assert decoded.text == f"sha256 streams:4 65536 {blkhash.checksum(content_of_spec('disk')).hex()}"


def test_fs_verity(folder, tmp_path):
    blocks = blkhash.blocks([content_of_spec("disk")], 4096)
    digest, tree, descriptor = verity.fs_verity(blocks, "sha256", 4096, b"\x5e")
    assert (folder / "disk.digest").read_text() == f"sha256:{digest.hex()} disk.img\n"
    assert (folder / "disk.tree").read_bytes() == tree
    assert (folder / "disk.descriptor").read_bytes() == descriptor
    assert images.run("fsverity", "digest", "--salt=5e", "--compact", str(folder / "disk.img")).decode().strip() == digest.hex()
    run(f"blkhash verity verify --fs-verity --salt 5e disk.qcow2 disk.tree {digest.hex()}", folder)


def test_dm_verity(folder):
    blocks = blkhash.blocks([content_of_spec("whole")], 4096)
    root, tree = verity.dm_verity(blocks, "sha256", 4096, b"\0\xff")
    assert (folder / "whole.root").read_text() == root.hex()
    assert (folder / "whole.verity").read_bytes()[4096:] == tree
    run("blkhash verity verify --root-hash-file whole.root whole.img whole.verity", folder)
    images.run("veritysetup", "verify", str(folder / "whole.img"), str(folder / "whole.verity"), root.hex())


# Statuses and names


def test_exit_statuses(folder, tmp_path):
    damaged = bytearray((folder / "sha256.blkmap").read_bytes())
    damaged[4096] ^= 1
    here = shutil.copytree(folder, tmp_path / "here")
    (here / "damaged.blkmap").write_bytes(damaged)
    (here / "no.sums").write_text(f"{'0' * 64}  missing.img\n")
    statuses = json.loads((folder / "statuses.json").read_text())
    assert len(statuses) > 30
    for command, status in statuses.items():
        run(command, here, status)


def test_nothing_that_is_stable_is_gone(folder):
    """Each option, JSON field, symbol, and name of a library is still there, with the types that it had."""
    stable = json.loads((folder / "interface.json").read_text())
    now = golden.interface(PROGRAMS)
    for kind, named in stable.items():
        assert len(named) > 1
        for name, items in named.items():
            # 0.9.0 wrote each list as one text.
            items = items.split("; " if kind == "json" else " ") if isinstance(items, str) else items
            gone = set(items) - set(now[kind].get(name, []))
            assert not gone, (kind, name, gone)
