"""Images, compared with qemu-img and blksum."""

import concurrent.futures
import copyreg
import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import pathlib
import pickle
import random
import shutil
import socket
import subprocess
import tarfile
import threading

import images
import oci_images
import pytest
from conftest import BLKSUM, HANG, blksum, run, wait_for_threads
from images import qemu_img, qemu_io

import blkhash

SPEC = "64k:A 1m:- 100k:# 28k:0 3m:B 700k:- 5m:# 1k:C"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images with the same content, in folder/disk.*"""
    folder = tmp_path_factory.mktemp("images")
    chain = images.chain(SPEC, folder / "disk.overlay")
    raw = images.to_raw(chain, folder / "disk.raw")
    image = images.convert(raw, folder / "disk.qcow2")
    # Some file systems have holes within what it allocates, which QEMU does not list.
    image.write_bytes(image.read_bytes())
    images.convert(raw, folder / "disk.compressed", flags=["-c"])
    qemu_img("convert", "-O", "vmdk", raw, folder / "disk.vmdk")
    return folder


NAMES = ["raw", "qcow2", "compressed", "overlay", "vmdk"]


@pytest.mark.parametrize("name", NAMES)
def test_content(folder, name):
    expected = (folder / "disk.raw").read_bytes()
    with blkhash.Image(folder / f"disk.{name}") as image:
        size = image.size
        content = image.read(0, size)
        assert content[: len(expected)] == expected and not any(content[len(expected) :])
        rng = random.Random(name)
        for _ in range(200):
            offset, length = rng.randrange(size + 1000), rng.randrange(300_000)
            assert image.read(offset, length) == content[offset : offset + length]
            buffer = bytearray(b"?" * length)
            count = image.readinto(buffer, offset)
            assert buffer[:count] == content[offset : offset + length]
            assert buffer[count:] == b"?" * (length - count)
        image.check_unchanged()


@pytest.mark.parametrize("name", ["raw", "qcow2", "compressed", "overlay"])
def test_extents(folder, name):
    path = folder / f"disk.{name}"
    expected = []
    for it in json.loads(qemu_img("map", "--output=json", path)):
        kind = "zero" if it["zero"] else "data"
        if expected and expected[-1][2] == kind:
            start = expected.pop()[0]
            expected.append((start, it["start"] + it["length"] - start, kind))
        else:
            expected.append((it["start"], it["length"], kind))
    with blkhash.Image(path) as image:
        assert list(image.extents()) == expected
        assert [e.kind for e in image.extents()] == [kind for _, _, kind in expected]
        part = list(image.extents(70_000, 2_000_000))
        assert part[0].offset == 70_000 and part[-1].offset + part[-1].length == 2_070_000
        assert list(image.extents(image.size)) == []


@pytest.mark.parametrize("name", NAMES)
def test_file_objects(folder, name):
    with blkhash.Image(folder / f"disk.{name}") as image:
        content = image.read(0, image.size)
        raw = image.open()
        assert isinstance(raw, io.RawIOBase) and raw.readable() and raw.seekable() and not raw.writable()
        assert raw.read(10) == content[:10]
        assert raw.tell() == 10
        assert raw.seek(-5, os.SEEK_END) == len(content) - 5
        assert (raw.read(100), raw.read(100)) == (content[-5:], b"")
        assert raw.seek(1000) == 1000 and raw.seek(24, os.SEEK_CUR) == 1024
        assert raw.readall() == content[1024:]
        assert raw.seek(len(content) + 5) and raw.readall() == b""
        for bad in (lambda: raw.seek(-1), lambda: raw.seek(0, 7)):
            with pytest.raises(ValueError):
                bad()
        buffered = io.BufferedReader(raw, 10_000)
        rng = random.Random(1)
        for _ in range(100):
            offset, length = rng.randrange(len(content)), rng.randrange(30_000)
            buffered.seek(offset)
            assert buffered.read(length) == content[offset : offset + length]
        buffered.seek(0)
        h = blkhash.new("sha256", construction="linear")
        for block in iter(lambda: buffered.read(100_000), b""):
            h.update(block)
        assert h.hexdigest() == hashlib.sha256(content).hexdigest()
        if hasattr(hashlib, "file_digest"):
            buffered.seek(0)
            assert hashlib.file_digest(buffered, "sha256").digest() == h.digest()
        buffered.close()
        with pytest.raises(ValueError):
            raw.read(1)


def test_tar_in_qcow2(tmp_path):
    with tarfile.open(tmp_path / "disk.tar", "w") as tar:
        for number in range(20):
            path = tmp_path / f"file{number}"
            path.write_bytes(os.urandom(number * 5000))
            tar.add(path, path.name)
    images.convert(tmp_path / "disk.tar", tmp_path / "disk.qcow2")
    with blkhash.Image(tmp_path / "disk.qcow2") as image, tarfile.open(fileobj=image.open()) as tar:
        for number in range(20):
            expected = (tmp_path / f"file{number}").read_bytes()
            assert tar.extractfile(f"file{number}").read() == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "digest, construction, block_size",
    [
        ("sha256", "streams:4", 65536),
        ("blake3", "flat", 4096),
        ("sha512", "linear", 65536),
        ("blake2b256", "concat", 4 << 20),
        ("sha256", "fs-verity", 4096),
    ],
)
def test_checksums_are_those_of_blksum(folder, name, digest, construction, block_size):
    path = folder / f"disk.{name}"
    options = ["-d", digest, "--construction", construction]
    if construction != "linear":
        options += ["--block-size", str(block_size)]
    expected = blksum(*options, path)
    for threads in (None, 1, 3):
        result = blkhash.checksum(
            path, digest, construction=construction, block_size=block_size, threads=threads
        )
        assert result.hexdigest == expected
    with blkhash.Image(str(path)) as image:
        assert image.checksum(digest, construction=construction, block_size=block_size) == result
    assert result.format == {"overlay": "qcow2", "compressed": "qcow2"}.get(name, name)
    assert result.size >= (folder / "disk.raw").stat().st_size


def wrong(hex):
    return f"{int(hex[0], 16) ^ 1:x}{hex[1:]}"


@pytest.mark.parametrize("name", NAMES)
def test_values_that_do_not_say_what_they_are_of(folder, tmp_path, name):
    """As the command finds it, in each way in which an image is opened."""
    path = str(folder / f"disk.{name}")
    with blkhash.Image(path) as image:
        for options, tag in [
            (["--construction", "streams:32"], "BLKSUM-SHA256-STREAMS32-64K"),
            (["--construction", "linear"], "BLKSUM-SHA256-LINEAR"),
            (["-d", "blake3", "--construction", "flat"], "BLKSUM-BLAKE3-FLAT-64K"),
            (["-d", "md5", "--construction", "concat", "--block-size", "4M"], "BLKSUM-MD5-CONCAT-4M"),
        ]:
            value = blksum(*options, path)
            algorithm = tag.split("-")[1].lower()
            result = blkhash.checksum(path, expect=value)
            assert (result.hexdigests, result.tag) == ({algorithm: value}, tag)
            assert image.checksum(expect=f"{algorithm}:{value}") == result
            assert run(BLKSUM, "--expect", value, path).startswith(f"{path}: OK")
            # The tag is what the command takes for the same checksum.
            (tmp_path / "sums").write_text(f"{tag} ({path}) = {value}\n")
            assert run(BLKSUM, "-c", tmp_path / "sums") == f"{path}: OK\n"
        assert (result.size, result.format) == (image.size, image.format)
    if name != "raw":
        digest = hashlib.sha256((folder / f"disk.{name}").read_bytes()).hexdigest()
        assert blkhash.checksum(path, expect=digest).tag == "SHA256"
        # It is not a part's, nor of the bytes as a disk unless that is asked for.
        with pytest.raises(blkhash.MismatchError):
            blkhash.checksum(path, construction="linear", expect=digest)
        assert blkhash.checksum(path, format="raw", expect=digest).hexdigest == digest


def test_values_that_an_image_does_not_have(folder, tmp_path):
    path = str(folder / "disk.qcow2")
    value = wrong(blksum(path))
    with blkhash.Image(path) as image:
        for find in (image.checksum, lambda *args, **options: blkhash.checksum(path, *args, **options)):
            with pytest.raises(blkhash.MismatchError, match=r"disk\.qcow2: does not match as streams:4, .* and bytes of the file, with sha256, ") as caught:
                find(expect=value)
            assert (caught.value.kind, caught.value.filename) == ("expected", path)
            with pytest.raises(blkhash.MismatchError, match=r"does not match as flat with blocks of 4 KiB, with sha256$"):
                find("sha256", construction="flat", block_size=4096, expect=value)
            with pytest.raises(blkhash.MismatchError, match="has not this number of parts"):
                find(expect=value + "-9999")
            for refused in ("", "xyz", "12", value[1:], f"sha1:{value}"):
                with pytest.raises(ValueError, match="expect"):
                    find(expect=refused)
            with pytest.raises(ValueError, match="none of the digests is that long"):
                find("md5", expect=value)
            with pytest.raises(ValueError, match="no salt is tried"):
                find(salt=b"x", expect=value)
    # Any reader of an image can make this file, which has its checksum.
    listed = tmp_path / "list"
    listed.write_bytes(b"".join(hashlib.sha256(bytes([number])).digest() for number in range(4)))
    linear = hashlib.sha256(listed.read_bytes()).hexdigest()
    with pytest.raises(blkhash.MismatchError, match='list of the digests of another image: construction="linear" takes it') as caught:
        blkhash.checksum(listed, expect=linear)
    assert caught.value.kind == "undecided"
    assert blkhash.checksum(listed, construction="linear", expect=linear).hexdigest == linear


def test_values_of_images_with_very_many_zeros(tmp_path):
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.truncate(65 << 30)
    value = blkhash.checksum(path, construction="flat").hexdigest
    assert blkhash.checksum(path, expect=value).tag == "BLKSUM-SHA256-FLAT-64K"
    with pytest.raises(blkhash.MismatchError, match='linear of so many zeros takes long: construction="linear" tries it'):
        blkhash.checksum(path, "sha256", expect=wrong(value))


def write_appliance(path, disks, *more):
    """Writes an appliance of the files `disks`, and other members as pairs of name and content."""
    elements = "".join(f'<File id="{disk.name}" href="{disk.name}"/><Disk fileRef="{disk.name}"/>' for disk in disks)
    members = [("x.ovf", f"<E>{elements}</E>".encode()), *((disk.name, disk.read_bytes()) for disk in disks), *more]
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("name", ["raw", "qcow2", "vmdk"])
@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_an_appliance_of_one_disk_has_the_checksum_of_the_disk(folder, tmp_path, name, kind):
    disk, path = folder / f"disk.{name}", tmp_path / "vm.ova"
    write_appliance(path, [disk])
    expected = blkhash.checksum(disk)
    assert blkhash.checksum(kind(path)) == blkhash.checksum(f"{path}:{disk.name}") == expected
    with blkhash.Image(kind(path)) as image:
        assert (image.checksum(), image.read(0, image.size)) == (expected, blkhash.Image(disk).read(0, image.size))
    own = blkhash.checksum(kind(path), format="raw")
    copy = shutil.copy(path, tmp_path / "copy.img")
    with pytest.raises(blkhash.ImageError, match="is a tar archive"):
        blkhash.checksum(copy)
    assert own.hexdigest == blkhash.checksum(copy, format="raw").hexdigest != expected.hexdigest


def test_an_appliance_that_is_no_image(folder, tmp_path):
    path = tmp_path / "vm.ova"
    write_appliance(path, [folder / "disk.raw", folder / "disk.qcow2"])
    with pytest.raises(blkhash.Error, match="2 disks: name one, as in .*vm.ova:disk.raw, .*vm.ova:disk.qcow2"):
        blkhash.checksum(path)
    write_appliance(path, [folder / "disk.qcow2"], ("./disk.qcow2", b"other"))
    with pytest.raises(blkhash.Error, match="two members with the name"):
        blkhash.checksum(path)


def test_a_disk_of_an_oci_image(folder, tmp_path):
    disk = (folder / "disk.qcow2").read_bytes()
    layout = oci_images.Layout()
    blob = layout.blob(oci_images.KUBEVIRT + "qcow2", disk + b"behind the disk", **oci_images.title("vm"))
    layout.index([layout.manifest([blob])])
    expected = blkhash.checksum(folder / "disk.qcow2")
    for path in layout.write(tmp_path / "layout"), layout.archive(tmp_path / "vm.tar"):
        assert blkhash.checksum(path) == blkhash.checksum(f"{path}:vm") == expected
        with blkhash.Image(path) as image:
            assert image.read(0, image.size) == blkhash.Image(folder / "disk.qcow2").read(0, image.size)
            image.check_unchanged()
    [name] = [name for name, content in layout.files.items() if content.startswith(disk)]
    layout.files[name] = disk + b"behind another"[:14] + b"!"
    with pytest.raises(blkhash.Error, match="does not match its digest"):
        blkhash.checksum(layout.archive(tmp_path / "vm.tar"))


def test_several_digests(folder):
    path = folder / "disk.qcow2"
    names = ["sha256", "blake3", "SHA512"]
    result = blkhash.checksum(path, names)
    assert list(result.hexdigests) == names
    for name in names:
        assert result.hexdigests[name] == blksum("-d", name.lower(), path)
    with pytest.raises(ValueError, match="several"):
        result.hexdigest
    for bad in ([], ["sha256", "sha256"], ["sha256", "no"]):
        with pytest.raises(ValueError):
            blkhash.checksum(path, bad)


def test_snapshots(tmp_path):
    path = images.from_spec("1m:A 1m:-", tmp_path / "disk.qcow2")
    before = blksum(path)
    qemu_img("snapshot", "-c", "before", path)
    qemu_io(path, "write -P 0x55 0 1M")
    assert blkhash.checksum(path, snapshot="before").hexdigest == before == blksum("--snapshot", "before", path)
    assert blkhash.checksum(path).hexdigest == blksum(path) != before
    qemu_img("snapshot", "-c", "zwei \u00fc", path)
    described = json.loads(qemu_img("info", "--output=json", path))["snapshots"]
    with blkhash.Image(path) as image:
        for ours, theirs in zip(image.snapshots, described):
            assert (ours.id, ours.name, int(ours.created)) == (theirs["id"], theirs["name"], theirs["date-sec"])
            assert (ours.size, ours.vm_state_size) == (2 << 20, theirs["vm-state-size"])
        assert len(image.snapshots) == len(described) == 2
        for snapshot in image.snapshots:
            assert blkhash.checksum(path, snapshot=snapshot.id).size == snapshot.size
    (tmp_path / "disk.img").write_bytes(bytes(1 << 20))
    with blkhash.Image(tmp_path / "disk.img") as image:
        assert image.snapshots == ()
    with pytest.raises(blkhash.ImageError) as caught:
        blkhash.checksum(path, snapshot="after")
    assert caught.value.kind == "snapshot"


def test_partitions(tmp_path):
    path = tmp_path / "disk.img"
    path.write_bytes(random.Random(5).randbytes(8 << 20))
    run("sfdisk", "-q", path, input="label: gpt\nsize=2MiB\nsize=3MiB\n", stdin=None)
    with blkhash.Image(path) as image:
        partitions = image.partitions()
        assert [it.number for it in partitions] == [1, 2]
        for number, offset, length in partitions:
            expected = blksum("--partition", str(number), path)
            assert blkhash.checksum(path, partition=number).hexdigest == expected
            with blkhash.Image(path, partition=number) as part:
                assert (part.size, part.partition) == (length, number)
                assert part.read(0, length) == image.read(offset, length)
    with pytest.raises(ValueError, match="no partition 3"):
        blkhash.checksum(path, partition=3)


def test_chain(folder):
    with blkhash.Image(folder / "disk.overlay") as image:
        chain = json.loads(qemu_img("info", "--backing-chain", "--output=json", folder / "disk.overlay"))
        assert len(image.chain) == len(chain) == 4
        for member, info in zip(image.chain, chain):
            assert (member.format, member.size) == (info["format"], info["virtual-size"])
            (file,) = member.files
            assert os.path.samefile(file.name, info["filename"])
            assert file.size == os.stat(file.name).st_size
        assert image.name == str(folder / "disk.overlay")
        assert (image.format, image.snapshot, image.partition, image.warnings) == ("qcow2", None, None, ())


def test_progress(folder):
    calls = []
    result = blkhash.checksum(folder / "disk.qcow2", progress=lambda *args: calls.append(args))
    assert calls[-1] == (result.size, result.size)
    assert calls == sorted(calls)

    class Stop(Exception):
        pass

    def stop(done, total):
        raise Stop

    with pytest.raises(Stop):
        blkhash.checksum(folder / "disk.qcow2", progress=stop)


def test_cancel(tmp_path):
    path = tmp_path / "large"
    with open(path, "wb") as file:
        file.truncate(65 << 30)
    event = threading.Event()
    threading.Timer(0.5, event.set).start()
    with pytest.raises(blkhash.CancelledError):
        blkhash.checksum(path, "sha3-512", construction="linear", holes="ignore", cancel=event)
    with pytest.raises(blkhash.CancelledError):
        blkhash.checksum(path, cancel=event)
    # Also in one long hole, and no thread works on.
    event = threading.Event()
    threading.Timer(0.5, event.set).start()
    with pytest.raises(blkhash.CancelledError):
        blkhash.checksum(path, "sha3-512", construction="linear", cancel=event)
    wait_for_threads()


def test_a_served_image_outlives_the_thread_that_opened_it(folder):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        image = pool.submit(blkhash.Image, folder / "disk.vmdk").result()
    with image:
        assert image.read(0, 65536) == b"A" * 65536
        assert image.checksum().hexdigest == blksum(folder / "disk.vmdk")


def test_threads_read_one_image(folder):
    with blkhash.Image(folder / "disk.compressed") as image:
        content = image.read(0, image.size)

        def work(seed):
            rng = random.Random(seed)
            for _ in range(50):
                offset, length = rng.randrange(len(content)), rng.randrange(200_000)
                assert image.read(offset, length) == content[offset : offset + length]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(8)))


def errors_of(call, *classes):
    """Returns the exception of `call`, which is all of `classes` and survives pickling."""
    with pytest.raises(classes[0]) as caught:
        call()
    error = caught.value
    assert all(isinstance(error, it) for it in (blkhash.Error, *classes))
    # dask.distributed, which other tests import, changes how the exceptions that exist by then are pickled.
    copyreg.dispatch_table.pop(type(error), None)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.filename) == (type(error), str(error), error.filename)
    return error


def test_errors_of_the_system(tmp_path):
    missing = tmp_path / "missing"
    error = errors_of(lambda: blkhash.checksum(missing), FileNotFoundError, blkhash.ImageError)
    assert (error.errno, error.filename, error.kind) == (2, str(missing), "open")
    assert str(error) == f"[Errno 2] No such file or directory: '{missing}'"
    error = errors_of(lambda: blkhash.Image(tmp_path), IsADirectoryError, blkhash.ImageError)
    assert error.errno == errno.EISDIR
    error = errors_of(lambda: blkhash.Map(missing), FileNotFoundError, blkhash.MapError)
    assert (error.errno, error.filename) == (2, str(missing))


def test_errors_name_their_file(tmp_path):
    """In a log, too, and under the name that a program can import."""
    missing, exists = str(tmp_path / "missing"), str(tmp_path / "exists")
    for path in (exists, str(tmp_path / "source")):
        with open(path, "wb") as file:
            file.write(b"x" * 512)
    found = [
        errors_of(lambda: blkhash.checksum(missing), blkhash.ImageNotFoundError),
        errors_of(lambda: blkhash.Map(missing), blkhash.MapNotFoundError),
        errors_of(lambda: blkhash.copy(tmp_path / "source", exists), blkhash.CopyExistsError),
        errors_of(lambda: blkhash.checksum(tmp_path), blkhash.ImageError),
    ]
    for error, path in zip(found, [missing, missing, exists, str(tmp_path)]):
        assert f"filename={path!r}" in repr(error) and repr(error).startswith(f"{type(error).__name__}("), repr(error)
        assert getattr(blkhash, type(error).__name__) is type(error) and type(error).__module__ == "blkhash"
    assert repr(found[2]) == f"CopyExistsError(17, 'File exists', filename={exists!r})"


def test_corrupt_images(tmp_path):
    path = images.from_spec("1m:A", tmp_path / "disk.qcow2")
    damaged = bytearray(path.read_bytes())
    damaged[40:48] = b"\xff" * 8
    path.write_bytes(damaged)
    error = errors_of(lambda: blkhash.checksum(path), blkhash.ImageError)
    assert error.filename == str(path) and not isinstance(error, OSError)
    assert error.errno is None and error.kind != "other"
    assert error.kind in ("corrupt", "unsupported")


def test_changed_images(tmp_path):
    path = tmp_path / "disk.img"
    path.write_bytes(b"x" * 100_000)
    with blkhash.Image(path) as image:
        with open(path, "r+b") as file:
            file.write(b"y")
        error = errors_of(image.checksum, blkhash.ChangedError, blkhash.ImageError)
        assert error.filename == str(path)
        errors_of(image.check_unchanged, blkhash.ChangedError)


def test_images_in_use(tmp_path):
    path = images.create(tmp_path / "disk.qcow2", "1M")
    with subprocess.Popen(["qemu-io", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdin.write(b"read 0 512\n")
        holder.stdin.flush()
        while b"ops/sec" not in holder.stdout.readline():
            pass
        errors_of(lambda: blkhash.checksum(path), blkhash.InUseError, blkhash.ImageError)
        assert blkhash.checksum(path, force_share=True).size == 1 << 20
    assert blkhash.checksum(path).size == 1 << 20


def test_references(tmp_path):
    (tmp_path / "below").mkdir()
    base = images.from_spec("1m:A", tmp_path / "base.qcow2")
    overlay = tmp_path / "below" / "overlay.qcow2"
    qemu_img("create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", overlay)
    error = errors_of(lambda: blkhash.checksum(overlay), blkhash.ReferenceRefusedError, blkhash.ImageError)
    assert error.kind == "reference"
    assert blkhash.checksum(overlay, follow="any").hexdigest == blksum(base)
    shutil.copy(base, tmp_path / "below" / "base.qcow2")
    beside = tmp_path / "below" / "beside.qcow2"
    qemu_img("create", "-q", "-f", "qcow2", "-b", "base.qcow2", "-F", "qcow2", beside)
    assert blkhash.checksum(beside).hexdigest == blksum(base)
    errors_of(lambda: blkhash.checksum(beside, follow="none"), blkhash.ReferenceRefusedError)


def test_zeros_are_limited(tmp_path):
    path = tmp_path / "huge"
    with open(path, "wb") as file:
        file.truncate(1 << 43)
    error = errors_of(lambda: blkhash.checksum(path, max_zeros=1 << 40), blkhash.ImageError)
    assert error.kind == "size"
    assert blkhash.checksum(path).hexdigest == blksum(path)


def test_nbd(tmp_path, servers):
    path = images.from_spec("1m:A 3m:- 1m:#", tmp_path / "disk.qcow2")
    uri = servers.qemu_nbd(path, fmt="qcow2").uri()
    result = blkhash.checksum(uri)
    assert (result.hexdigest, result.format) == (blksum(path), "raw")
    with blkhash.Image(uri) as image:
        assert image.name == uri
        assert image.read(0, 10) == b"A" * 10


def test_limits_of_compressed_files(tmp_path):
    path = tmp_path / "disk.raw"
    path.write_bytes(bytes(4 << 20) + os.urandom(1 << 20))
    subprocess.run(["xz", "-k", "--lzma2=dict=4MiB", str(path)], check=True, timeout=HANG)
    packed = str(path) + ".xz"
    assert blkhash.checksum(packed).hexdigest == blksum(path)
    error = errors_of(lambda: blkhash.checksum(packed, max_memory=1 << 20), blkhash.ImageError)
    assert error.kind == "size" and str(error).endswith(": max_memory allows more"), error
    error = errors_of(lambda: blkhash.Image(packed, max_zeros=1 << 20).read(0, 5 << 20), blkhash.ImageError)
    assert error.kind == "size" and str(error).endswith(": max_zeros allows more"), error


def test_options_of_servers(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "socket"))
        silent.listen()
        uri = f"nbd+unix:///?socket={tmp_path / 'socket'}"
        error = errors_of(lambda: blkhash.checksum(uri, timeout=0.2), blkhash.ImageError)
        assert str(error).endswith(": timeout waits longer"), error
    # No server is asked without the certificate.
    missing = tmp_path / "missing"
    error = errors_of(lambda: blkhash.checksum("nbds://localhost:9/", tls_certificates=missing), blkhash.ImageError)
    assert str(missing / "ca-cert.pem") in str(error), error
    path = images.create(tmp_path / "disk.qcow2", "1M")
    error = errors_of(
        lambda: blkhash.checksum(path, reader="qemu", nbd_server=tmp_path / "server"), blkhash.ImageError
    )
    assert error.kind == "server" and error.filename == str(path), error


def test_closed_images(folder):
    image = blkhash.Image(folder / "disk.qcow2")
    extents = image.extents()
    assert not image.closed
    image.close()
    image.close()
    assert image.closed
    for call in (lambda: image.size, lambda: image.read(0, 1), image.checksum, image.open, image.extents):
        with pytest.raises(ValueError, match="closed"):
            call()
    # What was begun continues.
    assert len(list(extents)) > 2


def test_arguments(folder):
    path = folder / "disk.qcow2"
    for options in [
        {"format": "qcow3"}, {"follow": "all"}, {"holes": "x"}, {"cache": "x"},
        {"reader": "x"}, {"vpc_size": "x"}, {"construction": "x"},
        {"block_size": 3}, {"threads": 0}, {"timeout": -1}, {"timeout": float("nan")},
    ]:
        with pytest.raises(ValueError):
            blkhash.checksum(path, **options)
    with pytest.raises(TypeError, match="'formt' is an invalid keyword"):
        blkhash.checksum(path, formt="raw")
    with pytest.raises(TypeError, match="not a dict"):
        blkhash.checksum(path, {"sha256": 1})
    with pytest.raises(TypeError):
        blkhash.checksum(path, secret="not bytes")
    for bad in (5, None, b"bytes"):
        with pytest.raises(TypeError):
            blkhash.Image(bad)
    with pytest.raises(ValueError, match="^follow must be beneath, any or none, not 'all'$"):
        blkhash.checksum(path, follow="all")
    defaults = dict.fromkeys(["threads", *blkhash.OpenOptions.__annotations__])
    assert blkhash.checksum(path, **defaults) == blkhash.checksum(path)
    with blkhash.Image(path) as image:
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(image)
        with pytest.raises((TypeError, BufferError)):
            image.readinto(bytes(5))


def test_names_that_are_not_utf8(folder):
    path = pathlib.Path(os.fsdecode(os.fsencode(folder) + b"/\xff.qcow2"))
    shutil.copy(folder / "disk.qcow2", path)
    assert blkhash.checksum(path) == blkhash.checksum(str(path)) == blkhash.checksum(folder / "disk.qcow2")
    with blkhash.Image(path) as image:
        assert image.name == str(path)
        assert image.chain[0].files[0].name == str(path)


def test_a_secret_unlocks_luks(tmp_path):
    key, path, raw = tmp_path / "key", tmp_path / "disk.luks", tmp_path / "disk.raw"
    key.write_bytes(b"pass\nword\n")
    raw.write_bytes(os.urandom(1 << 20))
    secret = ["--object", f"secret,id=s,file={key}"]
    options = ["-o", "key-secret=s,iter-time=10"]
    qemu_img("convert", "-q", *secret, *options, "-f", "raw", "-O", "luks", raw, path)
    assert blkhash.checksum(path, secret=b"pass\nword\n").hexdigest == blkhash.checksum(raw).hexdigest
    with blkhash.Image(path, secret=bytearray(b"pass\nword\n")) as image:
        assert image.read(0, 1 << 20) == raw.read_bytes()
    for options in [{"secret": b"wrong"}, {}]:
        with pytest.raises(blkhash.ImageError, match="disk.luks"):
            blkhash.checksum(path, **options)


def test_names_with_a_null_byte(tmp_path):
    for name in ("a\0b", b"a\0b", pathlib.Path("a\0b")):
        for use in (blkhash.Image, blkhash.checksum):
            with pytest.raises((ValueError, TypeError)):
                use(name)
    with pytest.raises(ValueError, match="embedded null byte"):
        blkhash.Image("a\0b")


def test_compressed_files(tmp_path, monkeypatch):
    """A compressed file has the checksum of the content, by its name or by the format that is given."""
    monkeypatch.chdir(tmp_path)
    content = bytes(100_000) + os.urandom(31_072)
    (tmp_path / "disk.raw").write_bytes(content)
    (tmp_path / "disk.raw.gz").write_bytes(gzip.compress(content))
    (tmp_path / "other").write_bytes(lzma.compress(content))
    expected = blkhash.checksum("disk.raw")
    assert blkhash.checksum("disk.raw.gz") == expected
    assert blkhash.checksum("other", format="xz") == expected
    found = blkhash.checksum("other", format="raw+xz")
    assert (found.hexdigest, found.tag) == (expected.hexdigest, f"{expected.tag}/FORMAT=raw")
    assert blkhash.checksum("disk.raw.gz", format="raw") != expected
    with blkhash.Image("disk.raw.gz") as image:
        assert image.read(0, len(content)) == content
    with pytest.raises(ValueError):
        blkhash.checksum("other", format="raw+raw")
