"""Disks in OCI images: layouts, archives, archives of Docker, and hostile ones."""

import hashlib
import json
import pathlib
import random
import resource
import subprocess
import tarfile
import time

import pytest

import images
import oci_images
import tar_mutants
from commands import blksum_path, mostly_slow
from container_images import value
from oci_images import KUBEVIRT, LAYER, Layout, layer, title

MIB = 1 << 20
BLKHASH = str(blksum_path().with_name("blkhash"))
BLKCOPY = str(blksum_path().with_name("blkcopy"))


@pytest.fixture
def content():
    return random.Random(5).randbytes(MIB) + bytes(MIB)


@pytest.fixture
def qcow2(workdir, content):
    """A qcow2 image of the content."""
    pathlib.Path("disk.raw").write_bytes(content)
    images.qemu_img("convert", "-f", "raw", "-O", "qcow2", "disk.raw", "disk.qcow2")
    return pathlib.Path("disk.qcow2").read_bytes()


def run(*args):
    return subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)


def forms(layout):
    """Writes a layout as a folder and as archives, and returns their names."""
    layout.write("layout")
    return [
        "layout",
        "layout/",
        layout.archive("vm.oci.tar"),
        layout.archive("pax.tar", tarfile.PAX_FORMAT),
        layout.archive("gnu.tar", tarfile.GNU_FORMAT),
    ]


def test_exports_of_kubevirt(blksum, workdir, content):
    other = random.Random(6).randbytes(300 * 512)
    disks = {"rootdisk": content, "datadisk": other}
    for name in forms(oci_images.kubevirt(disks)):
        result = blksum(name)
        lines = f"{value(content)}  {name}:rootdisk\n{value(other)}  {name}:datadisk\n"
        assert (result.returncode, result.stdout.decode(), result.stderr) == (0, lines, b"")
        assert blksum.hex(f"{name}:datadisk") == value(other)
        check = blksum("-c", input=result.stdout)
        assert check.stdout.decode() == f"{name}:rootdisk: OK\n{name}:datadisk: OK\n"
        tagged = blksum("--tag", name)
        assert blksum("-c", input=tagged.stdout).returncode == 0
        # One image is wanted, and there are two.
        result = run(BLKHASH, "verity", "digest", name)
        assert result.returncode != 0 and f"{name}:rootdisk, {name}:datadisk".encode() in result.stderr
    # The archive itself, and a name that says nothing of disks.
    file = hashlib.sha256(pathlib.Path("vm.oci.tar").read_bytes()).hexdigest()
    assert blksum.hex("-B", "-a", "sha256", "vm.oci.tar") == file
    raw = value(pathlib.Path("vm.oci.tar").read_bytes())
    assert blksum.hex("-f", "raw", "vm.oci.tar") == raw
    pathlib.Path("vm.oci.tar").rename("guest.img")
    assert blksum.hex("-f", "raw", "guest.img") == raw
    assert b"guest.img: is a tar archive: tar -xOf guest.img NAME | blksum" in blksum("guest.img").stderr
    assert blksum.hex("guest.img:rootdisk") == value(content)


def test_a_qcow2_layer_for_every_command(blksum, workdir, qcow2, content):
    layout = Layout()
    blob = layout.blob(KUBEVIRT + "qcow2", qcow2, **title("vm.qcow2"))
    layout.index([layout.manifest([blob])])
    for name in forms(layout)[:3]:
        expected = value(content)
        assert blksum.hex(name) == blksum.hex(f"{name}:vm.qcow2") == expected
        assert run(BLKHASH, "map", "create", "-o", "m.blkmap", name).returncode == 0
        assert run(BLKHASH, "map", "verify", "m.blkmap", name).returncode == 0
        assert run(BLKHASH, "map", "verify", "m.blkmap", "disk.raw").returncode == 0
        pathlib.Path("m.blkmap").unlink()
        digests = [run(BLKHASH, "verity", "digest", it).stdout.split()[0] for it in (name, "disk.raw")]
        assert digests[0] == digests[1]
        copied = run(BLKCOPY, name, "copy.raw")
        assert copied.returncode == 0, copied.stderr
        assert pathlib.Path("copy.raw").read_bytes() == content
        pathlib.Path("copy.raw").unlink()
        info = json.loads(run(BLKHASH, "info", "--json", name).stdout)
        assert (info["format"], info["virtual_size"]) == ("qcow2", len(content))


def test_btrfs_in_a_layer(blksum, workdir):
    size = 112 * MIB
    with open("disk.raw", "wb") as file:
        file.truncate(size)
    images.run("mkfs.btrfs", "-q", "disk.raw")
    layout = oci_images.kubevirt({"root": pathlib.Path("disk.raw").read_bytes()})
    layout.write("layout")
    result = run(BLKHASH, "btrfs", "verify", "layout")
    assert result.returncode == 0, result.stderr
    # Nothing of the file system is wrong.
    [blob] = [name for name, it in layout.files.items() if len(it) == size]
    with open(f"layout/{blob}", "r+b") as file:
        file.seek(size - 1)
        file.write(b"x")
    for verb in "verify", "info":
        result = run(BLKHASH, "btrfs", verb, "layout")
        assert result.returncode != 0 and b"does not match its digest" in result.stderr


def test_containers_as_a_runtime_sees_them(blksum, workdir, qcow2, content):
    old, other = b"old" * 400, random.Random(7).randbytes(5 * 512)
    layers = [
        layer(("disk/", "folder"), ("disk/vm.qcow2", old), ("disk/gone.raw", old), ("etc/x", b"")),
        layer(("disk/.wh.gone.raw", b""), ("./disk/other.raw", other), ("bin", "link")),
        layer(("disk/vm.qcow2", qcow2)),
    ]
    layout = oci_images.container(*layers)
    names = [*forms(layout)[1:3], oci_images.docker("docker.tar", *layers)]
    for name in names:
        lines = f"{value(other)}  {name}:disk/other.raw\n{value(content)}  {name}:disk/vm.qcow2\n"
        result = blksum(name)
        assert (result.returncode, result.stdout.decode(), result.stderr) == (0, lines, b"")
        check = blksum("-c", name)
        assert check.returncode == 0 and check.stdout.count(b": OK\n") == (5 if "docker" not in name else 4)
        made = run(BLKHASH, "map", "create", f"{name}:disk/vm.qcow2")
        assert made.returncode == 0, made.stderr
    assert pathlib.Path("docker.tar:disk%2Fvm.qcow2.blkmap").exists()
    # A container without a disk is an archive like any other.
    plain = oci_images.container(layer(("etc/x", b"1"))).archive("plain.tar")
    assert blksum.hex("-f", "raw", plain) == value(pathlib.Path(plain).read_bytes())
    assert b"plain.tar: is a tar archive: tar -xOf plain.tar NAME | blksum" in blksum(plain).stderr
    assert blksum("-c", plain).returncode == 0
    oci_images.container(layer(("etc/x", b"1"))).write("plain")
    assert b"is an OCI image without a disk" in blksum("plain").stderr


def test_indexes_of_platforms(blksum, workdir, content):
    layout = Layout()
    manifests = []
    for architecture, disk in (("amd64", content), ("arm64", content[::-1])):
        blob = layout.blob(KUBEVIRT + "raw", disk, **title("root"))
        platform = {"os": "linux", "architecture": architecture}
        manifests.append(layout.manifest([blob], platform=platform))
    inner = layout.blob(oci_images.INDEX, json.dumps({"schemaVersion": 2, "manifests": manifests}).encode())
    archive = layout.index([inner]).archive("vm.tar")
    lines = f"{value(content)}  vm.tar:linux/amd64/root\n{value(content[::-1])}  vm.tar:linux/arm64/root\n"
    assert blksum(archive).stdout.decode() == lines
    assert blksum("-c", archive).stdout.count(b": OK\n") == 6


def damaged(layout, size, change):
    """Changes the blob of this size."""
    [name] = [name for name, it in layout.files.items() if len(it) == size]
    layout.files[name] = change(layout.files[name])
    return layout


def test_blobs_that_do_not_match(blksum, workdir, qcow2, content):
    """No command succeeds, although the content of the disk is what it was."""
    layout = Layout()
    blob = layout.blob(KUBEVIRT + "qcow2", qcow2 + b"behind the disk")
    layout.index([layout.manifest([blob])])
    damaged(layout, len(qcow2) + 15, lambda it: it[:-1] + b"!")
    name = layout.archive("vm.tar")
    says = b"does not match its digest"
    pathlib.Path("SUMS").write_text(f"{value(content)}  vm.tar\n")
    # Made of the disk itself.
    assert run(BLKHASH, "map", "create", "-o", "good.blkmap", "disk.qcow2").returncode == 0
    for command in [
        [str(blksum_path()), name],
        [str(blksum_path()), "-a", "sha256", "--construction=linear", name],
        [str(blksum_path()), "-c", "SUMS"],
        [str(blksum_path()), "-c", name],
        [BLKHASH, "map", "create", "-o", "m.blkmap", name],
        [BLKHASH, "map", "verify", "good.blkmap", name],
        [BLKHASH, "map", "diff", name, "disk.raw"],
        [BLKHASH, "map", "bitmaps", name],
        [BLKHASH, "verity", "digest", name],
        [BLKHASH, "info", name],
        [BLKCOPY, name, "copy.raw"],
    ]:
        result = run(*command)
        assert result.returncode != 0 and says in result.stderr, (command, result)
    assert not pathlib.Path("copy.raw").exists()
    for verdict in blksum("-c", name), blksum("-c", "SUMS"):
        assert b"FAILED" in verdict.stdout


def test_members_through_a_link(blksum, workdir, content):
    """A program may extract a member of a folder that is a link over a disk."""
    disk, link = layer(("disk/a.img", content)), layer(("data", "link"))
    for above in (layer(("data/a.img", content[::-1])), layer(("data/.wh.a.img", b""))):
        oci_images.container(disk, link, above).archive("vm.tar")
        result = blksum("vm.tar")
        assert result.returncode == 1 and b"in a folder that is a link, and it may be a disk" in result.stderr
    # The link is a folder again.
    oci_images.container(disk, link, layer(("data", b"")), layer(("data/b.img", content))).archive("vm.tar")
    assert blksum("vm.tar").stdout.decode() == f"{value(content)}  vm.tar\n".replace("vm.tar\n", "vm.tar:disk/a.img\n")
    oci_images.container(disk, link).archive("vm.tar")
    assert blksum("vm.tar").returncode == 0


def test_names_of_disks_are_no_paths(blksum, workdir):
    names = ["../../etc/passwd", "/etc/passwd", "a\nb", "a\x1b[2Jb", "x:y", "a b", "blobs/sha256/x"]
    layout = Layout()
    layers = [layout.blob(KUBEVIRT + "raw", bytes([at]) * 512, **title(name)) for at, name in enumerate(names)]
    layout.index([layout.manifest(layers)]).archive("vm.tar")
    result = blksum("vm.tar")
    digits = [it["digest"][7:19] for it in layers]
    digits[4] = "x:y"
    shown = [line.split(b"  ")[1].decode() for line in result.stdout.splitlines()]
    assert shown == [f"vm.tar:{name}" for name in digits] and result.returncode == 0
    # In a container, names are file names, and are escaped.
    odd = "disk/a\n\x1b[2J"
    oci_images.container(layer((odd, b"x" * 512))).archive("odd.tar")
    result = blksum("odd.tar")
    assert result.stdout.startswith(b"\\") and b"odd.tar:disk/a\\n" in result.stdout
    assert blksum("-c", input=result.stdout).returncode == 0


def hostile():
    """Yields names of hostile images, the error, and a function that makes the folder or the archive."""
    raw = KUBEVIRT + "raw"

    def with_layers(layers):
        layout = Layout()
        return layout.index([layout.manifest(layers)])

    def one(change):
        layout = oci_images.kubevirt({"d": b"x" * 5000})
        return damaged(layout, 5000, change)

    def without():
        layout = oci_images.kubevirt({"d": b"x" * 5000})
        layout.files = {name: it for name, it in layout.files.items() if len(it) != 5000}
        return layout

    def documents(content):
        layout = Layout()
        return layout.index([layout.blob(oci_images.MANIFEST, content)])

    def descriptor(digest, size=1):
        return {"mediaType": raw, "digest": digest, "size": size}

    zero = f"sha256:{'0' * 64}"
    yield "missing", "lacks the file", without
    yield "truncated", "has 100 bytes, and its descriptor says 5000", lambda: one(lambda it: it[:100])
    yield "longer", "has 5001 bytes", lambda: one(lambda it: it + b"x")
    yield "wrong", "does not match its digest", lambda: one(lambda it: b"y" + it[1:])
    yield "algorithm", 'algorithm "sha384"', lambda: with_layers([descriptor(f"sha384:{'0' * 96}")])
    yield "path", "no digest", lambda: with_layers([descriptor("sha256:../../../../etc/passwd")])
    yield "layers", "more than 512 layers", lambda: with_layers([descriptor(zero)] * 10_000)
    yield "bomb", "not understood", lambda: documents(b'{"layers":' * 300_000)
    yield "brackets", "not understood", lambda: documents(b"[" * (3 * MIB))
    yield "large", "more than 4 MiB", lambda: documents(b" " * (100 * MIB))
    yield "sizes", "not understood", lambda: with_layers([descriptor(zero, -1)])
    yield "astray", "programs extract differently", lambda: oci_images.container(layer(("disk/../../x", b"")))
    yield "link", "symbolic link", lambda: oci_images.container(layer(("disk", "link")))
    yield "no tar", "is not a header", lambda: oci_images.container(b"x" * 10_240)


@pytest.mark.parametrize(("says", "make"), [pytest.param(*rest, id=name) for name, *rest in hostile()])
def test_hostile_images(blksum, workdir, says, make):
    layout = make()
    for name in layout.write("layout"), layout.archive("vm.tar"):
        start = time.monotonic()
        for args in [name], ["-c", name], [f"{name}:d"]:
            result = blksum(*args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
            is_about_layers = "-c" in args and says in ("programs extract differently", "symbolic link", "is not a header")
            assert is_about_layers or (result.returncode == 1 and says.encode() in result.stderr), (args, result)
        assert time.monotonic() - start < 20


def test_a_manifest_that_is_a_hole(blksum, workdir):
    result = blksum(oci_images.sparse_manifest("layout", 1 << 40))
    assert result.returncode == 1 and b"has more than 4 MiB" in result.stderr


def test_members_beside_an_archive(blksum, workdir, content):
    """The archive names the disk, whatever file has the same name."""
    oci_images.kubevirt({"root": content}).archive("vm.tar")
    pathlib.Path("vm.tar:root").write_bytes(b"another")
    assert blksum.hex("vm.tar:root") == value(content)
    # Nor next to an archive that is no image, whose members are disks, too.
    oci_images.archive("plain.tar", [("root", b"x" * 512)])
    pathlib.Path("plain.tar:root").write_bytes(b"another")
    assert blksum.hex("plain.tar:root") == value(b"x" * 512)
    # A file that does not stand for its members by its name names none of them next to a file with the whole name.
    pathlib.Path("plain.tar").rename("plain.raw")
    pathlib.Path("plain.tar:root").rename("plain.raw:root")
    assert blksum.hex("plain.raw:root") == value(b"another")


def test_links_out_of_a_layout(blksum, workdir, content):
    layout = oci_images.kubevirt({"root": content})
    layout.write("good")
    layout.write("layout")
    [blob] = [name for name, it in layout.files.items() if it == content]
    pathlib.Path("layout", blob).unlink()
    pathlib.Path("layout", blob).symlink_to(pathlib.Path("good", blob).absolute())
    result = blksum("layout")
    assert result.returncode == 1 and b"cannot open" in result.stderr
    pathlib.Path("layout", blob).unlink()
    pathlib.Path("layout", blob).symlink_to("../../oci-layout")
    assert b"its descriptor says" in blksum("layout").stderr


def test_a_copy_does_not_overwrite_its_archive(workdir, content):
    oci_images.kubevirt({"root": content}).archive("vm.tar")
    before = pathlib.Path("vm.tar").read_bytes()
    for source in "vm.tar", "vm.tar:root":
        result = run(BLKCOPY, "--force", source, "vm.tar")
        assert result.returncode != 0, result
    assert pathlib.Path("vm.tar").read_bytes() == before
    layout = oci_images.kubevirt({"root": content})
    layout.write("layout")
    [blob] = [name for name, it in layout.files.items() if it == content]
    for source in "layout", "layout:root":
        result = run(BLKCOPY, "--force", source, f"layout/{blob}")
        assert result.returncode != 0 and b"is a file of the source" in result.stderr, result
    assert pathlib.Path("layout", blob).read_bytes() == content


TOOLS = {"gz": ["gzip", "-1c"], "zst": ["zstd", "-qc"], "xz": ["xz", "-0c"]}


def packed(end):
    """Returns a function that compresses, without stating the size of the content."""
    return lambda content: subprocess.run(TOOLS[end], input=content, stdout=subprocess.PIPE, check=True).stdout


@pytest.mark.parametrize("times", mostly_slow([2, 40], [2]))
@pytest.mark.parametrize("end", ["gz", "zst"])
def test_compressed_exports_of_kubevirt(blksum, workdir, content, end, times):
    disks = {"root": content * times, "data": content[:512]}
    layout = oci_images.kubevirt(disks, packed(end), f".{end}")
    for name in forms(layout)[:3]:
        result = blksum(name)
        lines = "".join(f"{value(disk)}  {name}:{it}\n" for it, disk in disks.items())
        assert (result.returncode, result.stdout.decode(), result.stderr) == (0, lines, b"")
        assert blksum("-c", input=result.stdout).returncode == 0
        copied = run(BLKCOPY, f"{name}:root", "copy.raw")
        assert copied.returncode == 0, copied.stderr
        assert pathlib.Path("copy.raw").read_bytes() == disks["root"]
        pathlib.Path("copy.raw").unlink()
    digests = [run(BLKHASH, "verity", "digest", f"{name}:root").stdout.split()[0]]
    pathlib.Path("root.raw").write_bytes(disks["root"])
    digests.append(run(BLKHASH, "verity", "digest", "root.raw").stdout.split()[0])
    assert digests[0] == digests[1]


@pytest.mark.parametrize("change", [-512, 512])
def test_sizes_of_disks_are_not_believed(blksum, workdir, content, change):
    for end, compress in (("", None), (".gz", packed("gz")), (".zst", packed("zst"))):
        layout = oci_images.kubevirt({"root": content}, compress, end)
        [manifest] = [it for it in layout.files.values() if b'"layers"' in it]
        document = json.loads(manifest)
        document["layers"][0]["annotations"]["io.kubevirt.disk.size"] = str(len(content) + change)
        layout.index([layout.blob(oci_images.MANIFEST, json.dumps(document).encode())])
        result = blksum(layout.archive("vm.tar"))
        assert result.returncode == 1 and b"size" in result.stderr or b"its layer says" in result.stderr, result


def test_a_type_that_is_not_that_of_the_blob(blksum, workdir, content):
    for suffix in ".gz", ".zst":
        oci_images.kubevirt({"root": content}, bytes, suffix).archive("vm.tar")
        result = blksum("vm.tar")
        assert result.returncode == 1 and b"as its type says" in result.stderr
    # Raw content that a guest compressed stays as it is.
    inner = packed("gz")(content)
    inner += bytes(-len(inner) % 512)
    oci_images.kubevirt({"root": inner}).archive("vm.tar")
    assert blksum.hex("vm.tar") == value(inner)


@pytest.mark.parametrize(
    ("end", "size"),
    [("gz", 1), ("zst", 1), ("xz", 1), *(pytest.param(end, 70, marks=pytest.mark.slow) for end in ("gz", "zst"))],
)
def test_compressed_layers(blksum, workdir, qcow2, content, end, size):
    """Of 70 MiB, a layer is read from start to end only."""
    other = random.Random(8).randbytes(size * MIB)
    layers = [layer(("disk/gone", b"x"), ("disk/other.raw", other)), layer(("disk/vm.qcow2", qcow2), ("disk/.wh.gone", b""))]
    kinds = {"gz": "+gzip", "zst": "+zstd", "xz": "+xz"}
    layout = oci_images.container(*layers, media_type=LAYER + kinds[end], compress=packed(end))
    for name in forms(layout)[1:3]:
        result = blksum(name)
        lines = f"{value(other)}  {name}:disk/other.raw\n{value(content)}  {name}:disk/vm.qcow2\n"
        assert (result.returncode, result.stdout.decode(), result.stderr) == (0, lines, b"")
        copied = run(BLKCOPY, f"{name}:disk/other.raw", "copy.raw")
        assert copied.returncode == 0, copied.stderr
        assert pathlib.Path("copy.raw").read_bytes() == other
        pathlib.Path("copy.raw").unlink()
    # Only bytes of the blob differ: bytes of the header that nothing looks at.
    [blob] = [it for it in layout.files if layout.files[it] == packed(end)(layers[1])]
    if end == "gz":
        layout.files[blob] = bytes([*layout.files[blob][:4], 1, *layout.files[blob][5:]])
        result = blksum(layout.archive("vm.tar"))
        assert result.returncode == 1 and result.stderr.count(b"does not match its digest") == 2


@pytest.mark.slow
def test_disks_that_cannot_seek(blksum, workdir):
    """A qcow2 image whose tables follow its content, in a layer of one piece."""
    images.qemu_img("create", "-q", "-f", "qcow2", "far.qcow2", "1G")
    pathlib.Path("part").write_bytes(random.Random(9).randbytes(MIB))
    # The end of the disk is stored before its middle, and not at the start, where decoding may begin again.
    commands = [f"write -q -s part {at}M 1M" for at in [*range(1, 10), *range(900, 930), *range(10, 46)]]
    images.qemu_io("far.qcow2", *commands)
    stored = layer(("disk/far.qcow2", pathlib.Path("far.qcow2").read_bytes()))
    oci_images.container(stored, media_type=LAYER + "+gzip", compress=packed("gz")).archive("vm.tar")
    assert blksum.hex("vm.tar") == blksum.hex("far.qcow2")
    # There is no memory for what is not read yet.
    result = blksum("--max-memory=16M", "vm.tar")
    assert result.returncode == 1 and b"which is read from start to end only" in result.stderr


def test_images_of_podman_machine(blksum, workdir, content, qcow2):
    layout = Layout()
    manifests = []
    for kind, name, disk in (("qemu", "m.qcow2.zst", qcow2), ("applehv", "m.raw.zst", content)):
        blob = layout.blob("application/zstd", packed("zst")(disk), **title(name))
        manifests.append(layout.manifest([blob], platform={"os": "linux", "architecture": "x86_64"}, annotations={"disktype": kind}))
    layout.index(manifests).archive("m.tar")
    lines = f"{value(content)}  m.tar:m.qcow2.zst\n{value(content)}  m.tar:m.raw.zst\n"
    assert blksum("m.tar").stdout.decode() == lines
    # Without a title.
    layout = Layout()
    layout.index([layout.manifest([layout.blob("application/zstd", packed("zst")(qcow2))])]).write("layout")
    assert blksum.hex("layout") == value(content)


def test_a_size_that_no_blob_has(blksum, workdir):
    """A size that would be decoded for hours."""
    layout = oci_images.kubevirt({"root": b""}, packed("gz"), ".gz")
    document = json.loads([it for it in layout.files.values() if b'"layers"' in it][0])
    document["layers"][0]["annotations"]["io.kubevirt.disk.size"] = "3000Gi"
    layout.index([layout.blob(oci_images.MANIFEST, json.dumps(document).encode())])
    result = blksum(layout.archive("vm.tar"))
    assert result.returncode == 1 and b"far more content than it stores" in result.stderr, result


@pytest.fixture
def storage(workdir):
    """Options of buildah for a storage of its own."""
    return ["--storage-driver=vfs", "--root", str(workdir / "storage"), "--runroot", str(workdir / "run")]


def unpacked(skopeo):
    """Copies an image to the folder form of skopeo, which is no layout."""
    folder = pathlib.Path("dir").absolute()
    skopeo("oci:made:vm", f"dir:{folder}")
    return folder


@pytest.mark.root
def test_archives_of_other_programs(blksum, workdir, qcow2, content, storage):
    """Images that umoci, skopeo and buildah made, also of several layers."""
    umoci = lambda *args: images.run("umoci", *args)
    umoci("init", "--layout", "made")
    umoci("new", "--image", "made:vm")
    pathlib.Path("root").mkdir()
    pathlib.Path("root/old.raw").write_bytes(b"old" * 500)
    umoci("insert", "--rootless", "--image", "made:vm", "root", "/disk")
    pathlib.Path("root/old.raw").unlink()
    pathlib.Path("root/disk.qcow2").write_bytes(qcow2)
    umoci("insert", "--rootless", "--opaque", "--image", "made:vm", "root", "/disk")
    buildah = lambda *args: images.run("buildah", *storage, *args).decode().strip()
    working = buildah("from", "scratch")
    buildah("copy", "-q", "--chown", "107:107", working, "disk.qcow2", "/disk/")
    buildah("commit", "-q", "--disable-compression=true", working, "oci-archive:buildah.tar:vm")
    buildah("commit", "-q", working, "oci:folder:vm")
    skopeo = lambda *args: images.run("skopeo", "copy", "-q", "--insecure-policy", *args)
    skopeo("oci-archive:buildah.tar:vm", "docker-archive:docker.tar:disk:vm")
    made = ["made", "buildah.tar", "folder", "docker.tar"]
    for source, compress in (("oci:made:vm", "zstd"), ("oci-archive:buildah.tar:vm", "gzip")):
        target = f"{compress}.tar"
        skopeo("--dest-compress-format", compress, "--dest-compress", source, f"oci-archive:{target}:vm")
        made.append(target)
    skopeo("dir:" + str(unpacked(skopeo)), "oci:again:vm")
    made.append("again")
    for name in made:
        result = blksum(name)
        expected = f"{value(content)}  {name}:disk/disk.qcow2\n"
        assert (result.returncode, result.stdout.decode(), result.stderr) == (0, expected, b""), name
        assert blksum("-c", name).returncode == 0


def numbered(count):
    """Returns the headers of links with short names."""
    block = bytearray(tar_mutants.header(b"000000", 0, b"2"))
    total = int(bytes(block[148:154]), 8)
    for number in range(count):
        block[:6] = digits = b"%06d" % number
        block[148:154] = b"%06o" % (total + sum(digits) - 6 * ord("0"))
        yield bytes(block)


def long_names(count, kind):
    """Returns members whose names have 4022 bytes."""
    for number in range(count):
        path = tar_mutants.record(b"path", b"%06d" % number + (b"/" + b"n" * 250) * 16)
        yield tar_mutants.header(b"x", len(path), b"x") + tar_mutants.padded(path) + tar_mutants.header(b"x", 0, kind)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("members", "times", "says"),
    [
        (lambda: numbered(200_001), 1, "more than 200000 symbolic links in layers"),
        (lambda: long_names(9_000, b"2"), 1, "32 MiB of their names"),
        (lambda: long_names(34_000, b"0"), 2, "listed several times and have more than 128 MiB of names"),
    ],
    ids=["links", "long", "repeated"],
)
def test_lists_of_layers_are_limited(blksum, workdir, members, times, says):
    blob = packed("zst")(b"".join(members()))
    layout = Layout()
    layers = [layout.blob(LAYER + "+zstd", blob)] * times + [layout.blob(LAYER, layer(("disk/a.img", b"x")))]
    layout.index([layout.manifest(layers)]).archive("vm.tar")
    assert pathlib.Path("vm.tar").stat().st_size < MIB
    result = blksum("vm.tar", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20)))
    assert result.returncode == 1 and says.encode() in result.stderr, result


def test_a_check_says_which_blobs_do_not_match(blksum, workdir, content):
    layout = oci_images.kubevirt({"d": content})
    name = damaged(layout, len(content), lambda it: it[:-1] + b"!").archive("vm.tar")
    lines = blksum("-c", name).stdout.decode().splitlines()
    assert [line.split(": ")[1] for line in lines].count("FAILED") == 1 and len(lines) == 3, lines
    # A check file of the disk has the same words.
    pathlib.Path("SUMS").write_text(f"{value(content)}  vm.tar\n")
    assert blksum("-c", "SUMS").stdout == b"vm.tar: FAILED\n"


def test_two_layers_with_one_digest(blksum, workdir, content):
    """The second one has another content."""
    good, other = layer(("disk/a.img", content)), layer(("disk/b.img", content))
    config = json.dumps({"rootfs": {"diff_ids": [f"sha256:{hashlib.sha256(good).hexdigest()}"] * 2}}).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "Layers": ["a.tar", "b.tar"]}]).encode()
    oci_images.archive("vm.tar", [("a.tar", good), ("b.tar", other), (name, config), ("manifest.json", manifest)])
    for command in [str(blksum_path()), "vm.tar"], [BLKCOPY, "vm.tar:disk/b.img", "copy"], [BLKHASH, "info", "vm.tar:disk/b.img"]:
        result = run(*command)
        assert result.returncode != 0 and b"has two layers with the digest" in result.stderr, result
    assert not pathlib.Path("copy").exists()
