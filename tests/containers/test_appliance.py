"""Appliances (.ova): one line for each disk, and the manifest."""

import hashlib
import io
import json
import os
import pathlib
import random
import subprocess
import tarfile
import tempfile

import pytest

import blkhash
import images
import tar_mutants
from appliances import archive, descriptor

MIB = 1 << 20

@pytest.fixture
def disks(workdir):
    """The members `x.ovf`, `disk1.qcow2` and `disk 2.img`, and the contents of the disks."""
    rng = random.Random(1)
    contents = [rng.randbytes(MIB) + bytes(MIB), rng.randbytes(700_416)]
    pathlib.Path("raw").write_bytes(contents[0])
    images.qemu_img("convert", "-f", "raw", "-O", "qcow2", "raw", "disk1.qcow2")
    text = descriptor(
        [("f1", "disk1.qcow2", ""), ("f2", "cd.iso", ""), ("f3", "disk 2.img", "")], ["f1", "f3"]
    )
    members = [
        ("x.ovf", text),
        ("disk1.qcow2", pathlib.Path("disk1.qcow2").read_bytes()),
        ("cd.iso", b"no disk"),
        ("disk 2.img", contents[1]),
    ]
    return members, [blkhash.checksum(content).hex() for content in contents]


def manifest(members, digest):
    lines = [f"{digest.upper()}({name})= {hashlib.new(digest, content).hexdigest()}\n" for name, content in members]
    return "".join(lines).encode()


def lines_of(values, path="a.ova"):
    return f"{values[0]}  {path}:disk1.qcow2\n{values[1]}  {path}:disk 2.img\n".encode()


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_line_for_each_disk(blksum, disks, kind):
    members, values = disks
    archive("a.ova", members, kind)
    result = blksum("a.ova")
    assert (result.returncode, result.stdout, result.stderr) == (0, lines_of(values), b"")
    assert blksum.hex("a.ova:disk1.qcow2") == values[0]
    assert blksum.hex("./a.ova:disk 2.img") == values[1]
    check = blksum("-c", input=result.stdout)
    assert check.stdout == b"a.ova:disk1.qcow2: OK\na.ova:disk 2.img: OK\n" and check.returncode == 0
    assert blksum("-r", "--include=*.ova", ".").stdout == lines_of(values, "./a.ova")
    # The bytes of the file itself.
    own = blkhash.file_checksum("a.ova").hex()
    assert blksum.hex("-f", "raw", "a.ova") == own
    # A guest can write an archive into its raw disk, which -f raw reads.
    os.rename("a.ova", "disk.raw")
    refused = blksum("disk.raw")
    assert refused.returncode == 1 and b"is a tar archive" in refused.stderr and b"-f raw reads the bytes" in refused.stderr
    assert blksum.hex("-f", "raw", "disk.raw") == own
    assert blksum.hex("disk.raw:disk1.qcow2") == values[0]
    os.rename("disk.raw", "B.OVA")
    assert blksum("B.OVA").stdout == lines_of(values, "B.OVA")


def test_tar_program(blksum, disks):
    members, values = disks
    for name, content in members:
        pathlib.Path(name).write_bytes(content)
    names = [name for name, _ in members]
    for form in ("gnu", "oldgnu", "pax", "posix", "ustar"):
        subprocess.run(["tar", "-c", f"--format={form}", "-f", "a.ova", *names], check=True)
        assert blksum("a.ova").stdout == lines_of(values), form


def test_a_file_with_the_whole_name_wins_over_an_archive_of_another_name(blksum, disks):
    members, _ = disks
    archive("a.bin", members)
    assert blksum("a.bin:disk1.qcow2").returncode == 0
    pathlib.Path("a.bin:disk1.qcow2").write_bytes(b"x" * 1000)
    assert blksum.hex("-f", "raw", "a.bin:disk1.qcow2") == blkhash.checksum(b"x" * 1000).hex()


def test_a_file_beside_an_appliance_is_not_its_disk(blksum, disks):
    """The names of the members are those that the appliance gives them, so they must not name other files."""
    members, values = disks
    archive("a.ova", members)
    pathlib.Path("a.ova:disk1.qcow2").write_bytes(b"x" * 1000)
    assert blksum("a.ova").stdout == lines_of(values)
    os.makedirs("b.ova:/sub")
    pathlib.Path("neighbour").write_bytes(b"good" * 128)
    good = hashlib.sha256(b"good" * 128).hexdigest()
    for name in ("/../neighbour", "sub/../../neighbour"):
        text = f'<E><File id="a" href="{name}"/><Disk fileRef="a"/></E>'.encode()
        manifest = f"SHA256({name})= {good}\n".encode()
        archive("b.ova", [("b.ovf", text), ("b.mf", manifest), (name, b"evil" * 128)])
        for args in ((), ("--untrusted",), ("--no-sandbox",), ("-c",), ("-c", "--no-sandbox")):
            result = blksum(*args, "b.ova")
            assert (result.returncode, result.stdout) == (1, b"") and name.encode() in result.stderr, result


def test_names_of_nothing(blksum, disks):
    archive("a.ova", disks[0])
    for name, word in [
        ("a.ova:disk3", b'has no member with the name "disk3"'),
        ("a.ova:", b"No such file"),
        ("raw:disk1.qcow2", b"No such file"),
        ("b.ova:disk1.qcow2", b"No such file"),
    ]:
        result = blksum(name)
        assert (result.returncode, result.stdout) == (1, b"") and word in result.stderr, result


@pytest.mark.parametrize("more, word", [
    ('ovf:compression="gzip"', b"is compressed (gzip)"),
    ('ovf:chunkSize="1000"', b"in several pieces"),
])
def test_disks_that_are_not_read(blksum, workdir, more, word):
    archive("a.ova", [("x.ovf", descriptor([("f", "d", more)], ["f"])), ("d", b"x" * 600)])
    result = blksum("a.ova")
    assert (result.returncode, result.stdout) == (1, b""), result
    assert word in result.stderr and result.stderr.count(b"\n") == 1, result


def test_other_archives_are_no_disks(blksum, workdir):
    """A tar archive is no appliance: a descriptor in it names no disks, and is none."""
    members = [("readme", b"x"), ("x.ovf", descriptor([("f", "d", "")], ["f"])), ("d", b"x" * 512)]
    archive("a.tar", members)
    refused = blksum("a.tar")
    words = b"has no file with the content or the name of an image: name one after a colon, as readme, x.ovf, d"
    assert (refused.returncode, refused.stdout) == (1, b"") and words in refused.stderr, refused
    refused = blksum("-c", "a.tar")
    assert refused.returncode == 1 and b"others have no checksums" in refused.stderr, refused
    assert blksum.hex("-f", "raw", "a.tar") == blkhash.file_checksum("a.tar").hex()
    # Under another name, it is no disk, either.
    os.rename("a.tar", "a.img")
    refused = blksum("a.img")
    assert (refused.returncode, refused.stdout) == (1, b"") and b"is a tar archive" in refused.stderr, refused


def test_cut_off(blksum, disks):
    archive("a.ova", disks[0])
    size = os.path.getsize("a.ova")
    for length in (size - 20_000, 800_000, 5000, 1500):
        os.truncate("a.ova", length)
        result = blksum("a.ova")
        assert (result.returncode, result.stdout) == (1, b""), (length, result)
        assert result.stderr.startswith(b"blksum: a.ova: "), result


def test_references_are_not_followed(blksum, workdir):
    pathlib.Path("base").write_bytes(b"x" * MIB)
    images.qemu_img("create", "-q", "-f", "qcow2", "-b", "base", "-F", "raw", "top.qcow2")
    content = pathlib.Path("top.qcow2").read_bytes()
    archive("a.ova", [("x.ovf", descriptor([("f", "d", "")], ["f"])), ("d", content)])
    for option in ("--follow=beneath", "--follow=any"):
        result = blksum(option, "a.ova")
        assert (result.returncode, result.stdout) == (1, b"") and b"base" in result.stderr, result


@pytest.mark.parametrize("digest", ["sha1", "sha256", "sha512"])
def test_manifest(blksum, disks, digest):
    members, _ = disks
    text = manifest(members, digest)
    archive("a.ova", [*members[:1], ("x.mf", text), *members[1:]])
    result = blksum("-c", "a.ova")
    expected = b"".join(f"a.ova:{name}: OK\n".encode() for name, _ in members)
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, b"")
    # Next to the members.
    for name, content in members:
        pathlib.Path(name).write_bytes(content)
    pathlib.Path("x.mf").write_bytes(text)
    result = blksum("-c", "x.mf")
    expected = b"".join(f"{name}: OK\n".encode() for name, _ in members)
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, b"")
    # A change.
    content = bytearray(pathlib.Path("a.ova").read_bytes())
    content[content.index(b"no disk")] ^= 1
    pathlib.Path("a.ova").write_bytes(content)
    result = blksum("-c", "a.ova")
    assert result.returncode == 1 and b"a.ova:cd.iso: FAILED\n" in result.stdout
    assert result.stdout.count(b"OK") == 3 and b"1 computed checksum did NOT match" in result.stderr
    report = [json.loads(line) for line in blksum("--json", "-c", "a.ova").stdout.splitlines()]
    assert len(report) == 4


def test_a_line_of_a_manifest_that_is_not_understood(blksum, disks):
    """It may be of a member that is then not checked, such as the descriptor."""
    members, _ = disks
    lines = manifest(members, "sha256").splitlines(keepends=True)
    text = b"\r\n" + lines[0].replace(b"SHA256", b"SHA-9") + b"".join(lines[1:])
    archive("part.ova", [*members[:1], ("x.mf", text), *members[1:]])
    result = blksum("-c", "part.ova")
    assert result.returncode == 1 and result.stdout.count(b": OK\n") == len(members) - 1, result
    assert b"part.ova: line 2 of its manifest is not understood: what it is of was not checked\n" in result.stderr
    assert blksum("-c", "--status", "part.ova").returncode == 1
    # A disk.
    text = b"".join(lines[:-1]) + lines[-1].replace(b"SHA256", b"SHA-9")
    archive("disk.ova", [*members[:1], ("x.mf", text), *members[1:]])
    result = blksum("-c", "disk.ova")
    assert (result.returncode, result.stdout) == (1, b"")
    says = f"which its manifest does not list: line {len(lines)} of it is not understood, 'SHA-9(".encode()
    assert says in result.stderr, result


@pytest.mark.parametrize("form", ["SHA-{}", "SHA{}", "SHA2-{}"])
def test_spellings_of_manifests(blksum, disks, form):
    """Spellings of VMware, and of Oracle Linux Virtualization Manager, with blanks and the folder."""
    members, _ = disks
    text = manifest(members, "sha256").decode()
    text = text.replace("SHA256(", form.format(256) + " (./").encode()
    archive("a.ova", [*members[:1], ("x.mf", text), *members[1:]])
    result = blksum("-c", "a.ova")
    expected = b"".join(f"a.ova:./{name}: OK\n".encode() for name, _ in members)
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, b"")


def test_a_manifest_that_does_not_list_a_disk(blksum, disks):
    members, _ = disks
    archive("a.ova", [*members[:1], ("x.mf", manifest(members[:3], "sha256")), *members[1:]])
    result = blksum("-c", "a.ova")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"a.ova: has the disk 'disk 2.img', which its manifest does not list" in result.stderr


def test_a_manifest_is_checked_by_the_names_of_members_alone(blksum, disks):
    """A file that is called like a member of a.tar would be checked in its place."""
    members, _ = disks
    text = manifest(members, "sha256")
    archive("a.tar", [*members[:1], ("x.mf", text), *members[1:]])
    result = blksum("-c", "a.tar")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"a.tar: is a tar archive: the manifest of an appliance is checked if its name ends in .ova" in result.stderr
    archive("b.ova", [*members[:1], ("x.mf", text + text), *members[1:]])
    result = blksum("-c", "b.ova")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"b.ova: has a manifest that lists x.ovf twice" in result.stderr, result


@pytest.mark.parametrize("folder, reference", [("", "my%20disk.img"), ("./", "my disk.img"), ("sub/", "my%20disk.img")])
def test_references_are_resolved(blksum, workdir, folder, reference):
    """As URIs, in the folder of the descriptor."""
    content = b"content" * 1000
    inner = [("x.ovf", descriptor([("f", reference, "")], ["f"])), ("my disk.img", content)]
    members = [(f"{folder}{name}", data) for name, data in inner]
    archive("a.ova", [members[0], (f"{folder}x.mf", manifest(inner, "sha256")), members[1]])
    result = blksum("a.ova")
    assert result.stdout == f"{blkhash.checksum(content).hex()}  a.ova:{folder}my disk.img\n".encode(), result
    result = blksum("-c", "a.ova")
    assert (result.returncode, result.stdout) == (0, b"a.ova:x.ovf: OK\na.ova:my disk.img: OK\n"), result


def run_blkhash(blksum, *args):
    program = str(pathlib.Path(blksum.path).with_name("blkhash"))
    return subprocess.run([program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def test_an_appliance_of_several_disks_is_no_image(blksum, disks):
    """Where one image is wanted, a disk has to be named."""
    members, values = disks
    archive("a.ova", members)
    word = b"is an appliance with 2 disks: name one, as in a.ova:disk1.qcow2, a.ova:disk 2.img"
    for command in (["map", "create", "-o", "m"], ["verity", "digest"], ["bench", "image"], ["btrfs", "verify"]):
        result = run_blkhash(blksum, *command, "a.ova")
        assert result.returncode != 0 and word in result.stderr, result
    pathlib.Path("m").unlink(missing_ok=True)
    assert run_blkhash(blksum, "map", "create", "-o", "m", "a.ova:disk1.qcow2").returncode == 0
    assert run_blkhash(blksum, "map", "verify", "m", "a.ova:disk1.qcow2").returncode == 0
    os.mkdir("maps")
    result = blksum("--map", "maps", "a.ova")
    assert (result.returncode, result.stdout) == (1, b"") and word in result.stderr, result
    assert blksum("--map", "maps", "a.ova:disk1.qcow2", "a.ova:disk 2.img").stdout == lines_of(values)
    assert {"a.ova:disk 2.img.blkmap", "a.ova:disk1.qcow2.blkmap"} <= set(os.listdir("maps"))


def test_an_appliance_of_one_disk_is_an_image(blksum, workdir):
    content = b"content!" * 100_000
    archive("a.ova", [("x.ovf", descriptor([("f", "d", "")], ["f"])), ("d", content)])
    value = blkhash.checksum(content).hex()
    assert blksum("a.ova").stdout == f"{value}  a.ova:d\n".encode()
    check = blksum("-c", "-", input=f"{value}  a.ova\n".encode())
    assert (check.returncode, check.stdout) == (0, b"a.ova: OK\n"), check
    assert run_blkhash(blksum, "map", "create", "a.ova").returncode == 0
    assert run_blkhash(blksum, "map", "verify", "a.ova.blkmap", "a.ova").returncode == 0
    assert run_blkhash(blksum, "map", "verify", "a.ova.blkmap", "a.ova:d").returncode == 0
    os.mkdir("maps")
    result = blksum("--map", "maps", "a.ova")
    assert (result.returncode, result.stdout) == (0, f"{value}  a.ova\n".encode()), result
    assert os.listdir("maps") == ["a.ova.blkmap"]
    result = run_blkhash(blksum, "verity", "digest", "a.ova:d")
    assert result.returncode == 0
    assert run_blkhash(blksum, "verity", "digest", "a.ova").stdout.split()[0] == result.stdout.split()[0]


def test_a_small_appliance_in_a_check_file_is_not_raw(blksum, workdir):
    """Small raw files take another way."""
    archive("a.ova", [("x.ovf", descriptor([("f", "d", ""), ("g", "e", "")], ["f", "g"])), ("d", b"x"), ("e", b"y")])
    own = blkhash.file_checksum("a.ova").hex()
    result = blksum("-c", "-", input=f"{own}  a.ova\n".encode())
    assert (result.returncode, result.stdout) == (1, b"a.ova: FAILED open or read\n"), result
    result = blksum("-f", "raw", "-c", "-", input=f"{own}  a.ova\n".encode())
    assert (result.returncode, result.stdout) == (0, b"a.ova: OK\n"), result


@pytest.mark.parametrize("form", ["v7", "gnu", "ustar", "posix"])
@pytest.mark.parametrize("order", [["."], ["x.mf", "x.ovf", "cd.iso", "disk1.qcow2", "disk 2.img"],
                                   ["disk1.qcow2", "disk 2.img", "cd.iso", "x.ovf", "x.mf"]])
def test_any_order_and_form(blksum, disks, form, order):
    """The manifest is never read as a check file of the files here, which are good."""
    members, values = disks
    os.mkdir("dir")
    for name, content in [*members, ("x.mf", manifest(members, "sha256"))]:
        pathlib.Path("dir", name).write_bytes(content)
        pathlib.Path(name).write_bytes(content)
    pack = ["tar", "-C", "dir", f"--format={form}", "-c", "-f", "a.ova", *order]
    subprocess.run(pack, check=True)
    prefix = "./" if order == ["."] else ""
    result = blksum("a.ova")
    expected = f"{values[0]}  a.ova:{prefix}disk1.qcow2\n{values[1]}  a.ova:{prefix}disk 2.img\n".encode()
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, b"")
    result = blksum("-c", "a.ova")
    assert (result.returncode, result.stdout.count(b": OK\n"), result.stderr) == (0, len(members), b""), result
    content = pathlib.Path("dir/cd.iso")
    content.write_bytes(b"NO DISK")
    subprocess.run(pack, check=True)
    result = blksum("-c", "a.ova")
    assert result.returncode == 1 and b"a.ova:cd.iso: FAILED\n" in result.stdout, result
    # Not named as an appliance.
    os.rename("a.ova", "a.tar")
    result = blksum("-c", "a.tar")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"a.tar: is a tar archive: the manifest of an appliance is checked if its name ends in .ova" in result.stderr


def test_what_is_no_check_file(blksum, disks):
    members, _ = disks
    archive("a.ova", members[1:])
    for args in ((), ("-c",)):
        result = blksum(*args, "a.ova")
        assert (result.returncode, result.stdout) == (1, b""), result
        assert b"a.ova: is a tar archive without a descriptor (.ovf)" in result.stderr
    pathlib.Path("a.img").write_bytes(pathlib.Path("a.ova").read_bytes())
    assert blksum.hex("-f", "raw", "a.ova") == blksum.hex("-f", "raw", "a.img")
    assert b"a.img: is a tar archive: tar -xOf a.img NAME | blksum hashes it; -f raw" in blksum("a.img").stderr
    pathlib.Path("d").write_bytes(b"")
    line = manifest([("d", b"")], "sha256")
    pathlib.Path("b.ova").write_bytes(line)
    result = blksum("-c", "b.ova")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"b.ova: is named as an appliance (.ova), and is none" in result.stderr
    result = blksum("-c", "-", input=b"\0\n" + line)
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"is not a check file: it has NUL bytes" in result.stderr


def test_a_member_names_no_map(blksum, workdir):
    os.makedirs("maps")
    content = b"evil" * 1000
    names = ["sub/victim.raw", "sub/..%2Fup"]
    files = [(f"f{number}", name.replace("%", "%25"), "") for number, name in enumerate(names)]
    members = [("x.ovf", descriptor(files, ["f0", "f1"])), *((name, content) for name in names)]
    archive("evil.ova", members)
    names = [f"evil.ova:{name}" for name in names]
    assert [line.split("  ")[1] for line in blksum("evil.ova").stdout.decode().splitlines()] == names
    assert blksum("--map", "maps", *names).returncode == 0
    written = ["evil.ova:sub%2F..%252Fup.blkmap", "evil.ova:sub%2Fvictim.raw.blkmap"]
    assert sorted(os.listdir("maps")) == written
    for name in names:
        assert run_blkhash(blksum, "map", "create", name).returncode == 0
    assert sorted(name for name in os.listdir() if name.endswith(".blkmap")) == written
    info = json.loads(run_blkhash(blksum, "map", "show", "--json", written[1]).stdout)
    assert "evil.ova:sub/victim.raw" in json.dumps(info)


def test_more_maps_than_open_files(blksum, workdir):
    os.mkdir("images")
    os.mkdir("maps")
    for number in range(60):
        pathlib.Path(f"images/{number}.img").write_bytes(b"x" * 512)
    limited = ["prlimit", "--nofile=64:64", blksum.path, "-r", "--map", "maps", "images"]
    result = subprocess.run(limited, capture_output=True)
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"60 maps are too many to be open at once" in result.stderr and result.stderr.count(b"\n") == 1
    assert os.listdir("maps") == []
    assert subprocess.run([limited[0], "--nofile=128:128", *limited[2:]], capture_output=True).returncode == 0
    assert len(os.listdir("maps")) == 60


def test_manifest_of_many_lines(blksum, disks):
    members, _ = disks
    text = manifest(members, "sha256") + b"\n" * 2000
    archive("a.ova", [*members, ("x.mf", text)])
    result = blksum("-c", "a.ova")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"a.ova: has a manifest of more than 2000 lines" in result.stderr


def test_many_disks_of_one_file(blksum, workdir):
    files = [(f"f{index}", "d.img", "") for index in range(1000)]
    archive("a.ova", [("x.ovf", descriptor(files, [name for name, _, _ in files[:256]])), ("d.img", bytes(65536))])
    assert blksum("a.ova").stdout == f"{blkhash.checksum(bytes(65536)).hex()}  a.ova:d.img\n".encode()
    files = [(f"f{index}", f"{index}", "") for index in range(300)]
    members = [(name, b"") for _, name, _ in files]
    archive("b.ova", [("x.ovf", descriptor(files, [name for name, _, _ in files])), *members])
    result = blksum("b.ova")
    assert result.returncode == 1 and b"names more than 256 disks" in result.stderr


def test_manifest_names_only_members(blksum, disks):
    members, _ = disks
    secret = b"secret"
    pathlib.Path("secret").write_bytes(secret)
    path = os.path.abspath("secret")
    text = f"{hashlib.sha256(secret).hexdigest()}  {path}\n".encode()
    text += b"BLKHASH-SHA256 (secret) = " + b"0" * 64 + b"\n" + manifest([(path, secret), ("../secret", secret)], "sha256")
    archive("a.ova", [("x.ovf", b"<E/>"), ("x.mf", text)])
    result = blksum("-c", "a.ova")
    assert result.returncode == 1 and b"OK" not in result.stdout, result
    assert b"2 lines are improperly formatted" in result.stderr
    archive("a.ova", members)
    result = blksum("-c", "a.ova")
    assert result.returncode == 1 and b"without a manifest" in result.stderr


def check_mutants(blksum, seeds):
    """Compares what is read with what others extract. Returns how many disks were read, refused, and read here but
    not by both others."""
    read = refused = alone = 0
    for seed in seeds:
        content = tar_mutants.mutant(random.Random(seed))
        pathlib.Path("m.ova").write_bytes(content)
        disks = [f"m.ova:{name}" for name in tar_mutants.NAMES]
        result = blksum("-f", "raw", "--construction", "linear", *disks)
        assert result.returncode in (0, 1) and b"panicked" not in result.stderr, (seed, result)
        values = {line.split(b"  ")[1].decode(): line.split()[0].decode() for line in result.stdout.splitlines()}
        for disk in disks:
            if disk not in values:
                refused += 1
                continue
            read += 1
            name = disk.split(":")[1]
            others = [tar_mutants.by_tar("m.ova", name), tar_mutants.by_tarfile("m.ova", name)]
            alone += None in others
            for other in others:
                assert other is None or hashlib.sha256(other).hexdigest() == values[disk], (seed, name, others)
    return read, refused, alone


def test_archives_have_one_content(blksum, workdir):
    """That which GNU tar and Python's tarfile extract, or none."""
    read, refused, _ = check_mutants(blksum, [*range(150), 4664])
    assert read > 60 and refused > 60


def by_extraction(path, name, how):
    """Returns what is in the file `name` after the archive was extracted into a folder, and whether that failed."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        failed = False
        if how == "tar":
            failed = subprocess.run(["tar", "-xf", path, "-C", folder], capture_output=True).returncode != 0
        else:
            options = {"filter": how} if hasattr(tarfile, "data_filter") else {}
            try:
                with tarfile.open(path, "r:") as opened:
                    opened.extractall(folder, **options)
            except (tarfile.TarError, OSError):
                failed = True
        file = pathlib.Path(folder, name)
        return file.read_bytes() if file.is_file() else None, failed


EXTRACTORS = ["tar", "fully_trusted", "data"]
GOOD, EVIL = b"good" * 128, b"evil" * 128


def parts_of_a_disk(name="d"):
    """Returns the members of an appliance with one disk, beginning with the descriptor and the manifest."""
    text = f'<E><File id="a" href="{name}"/><Disk fileRef="a"/></E>'.encode()
    listed = [("x.ovf", text), (name, GOOD)]
    members = [listed[0], ("x.mf", manifest(listed, "sha256")), listed[1]]
    return [tar_mutants.member(member.encode(), content) for member, content in members]


def link(name, target, kind):
    header = bytearray(tar_mutants.header(name, 0, kind))
    header[157 : 157 + len(target)] = target
    return tar_mutants.seal(header)


FOLDER = tar_mutants.header(b"sub/", 0, b"5")
EVIL_X = tar_mutants.member(b"x", EVIL)

# Members after the disk `d`, which is then not what an extractor leaves, or extraction fails. With the number
# of the member that is refused, and words of the message.
ASTRAY = {
    "symbolic link": ([link(b"x", b"d", b"2"), EVIL_X], 0, 'has the symbolic link "x"'),
    "hard link": ([link(b"x", b"d", b"1"), EVIL_X], 0, 'has the hard link "x"'),
    "hard links": ([link(b"x", b"d", b"1"), link(b"y", b"x", b"1"), EVIL_X], 0, 'has the hard link "x"'),
    "link to a folder": ([link(b"sub", b".", b"2"), tar_mutants.member(b"sub/d", EVIL)], 0, 'has the symbolic link "sub"'),
    "hard link over the disk": ([EVIL_X, link(b"d", b"x", b"1")], 1, 'has the hard link "d"'),
    "symbolic link over the disk": ([EVIL_X, link(b"d", b"x", b"2")], 1, 'has the symbolic link "d"'),
    "FIFO over the disk": ([tar_mutants.header(b"d", 0, b"6")], 0, 'has the FIFO "d"'),
    "..": ([FOLDER, tar_mutants.member(b"sub/../d", EVIL)], 1, '"sub/../d", whose name has the component ".."'),
    "absolute": ([tar_mutants.member(b"/d", EVIL)], 0, '"/d", whose name is absolute'),
    "the same name": ([tar_mutants.member(b"d", EVIL)], 0, 'has two members with the name "d"'),
    "an equal name": ([FOLDER, tar_mutants.member(b".//./d", EVIL)], 1, 'has two members with the name ".//./d"'),
    "a folder": ([tar_mutants.header(b"d/", 0, b"5")], 0, 'has two members with the name "d/"'),
    "in the disk": ([tar_mutants.member(b"d/x", EVIL)], 0, 'has the file "d", and "d/x" in a folder of this name'),
    "name of a folder": ([FOLDER, tar_mutants.member(b"sub/.", EVIL)], 1, '"sub/.", a file with the name of a folder'),
}


@pytest.mark.parametrize("shape", ASTRAY)
def test_members_that_are_extracted_astray(blksum, workdir, shape):
    more, refused, words = ASTRAY[shape]
    parts = [*parts_of_a_disk(), *more]
    pathlib.Path("a.ova").write_bytes(b"".join(parts) + bytes(1024))
    assert any(by_extraction("a.ova", "d", how) != (GOOD, False) for how in EXTRACTORS)
    offset = len(b"".join(parts[: 3 + refused]))
    for args in (["a.ova"], ["a.ova:d"], ["-c", "a.ova"], ["--map", "maps", "a.ova"]):
        os.makedirs("maps", exist_ok=True)
        result = blksum(*args)
        assert (result.returncode, result.stdout) == (1, b""), (args, result)
        message = result.stderr.decode()
        assert "a.ova" in message and words in message and message.endswith(f"(offset {offset})\n"), (args, message)
        assert message.count("\n") == 1, (args, message)


LONG = "folder/" * 30 + "disk"
PAX = tar_mutants.record(b"path", LONG.encode())
# A disk, and members after the descriptor and the manifest.
ORDINARY = {
    "alone": ("d", []),
    "in a folder": ("sub/d", [FOLDER]),
    "in a folder that comes later": ("sub/d", [tar_mutants.member(b"sub/x", b""), FOLDER]),
    "folders": ("d", [tar_mutants.header(name, 0, b"5") for name in (b"./", b".", b"sub/", b"./sub", b"sub//")]),
    "folders of V7": ("d", [tar_mutants.header(b"sub/", 0, b"\0", magic=bytes(8)), tar_mutants.member(b"sub/x", b"")]),
    "names alike": ("d", [tar_mutants.member(name, EVIL) for name in (b"D", b"d.x", b"d-x/y", b"..d", b"sub/...")]),
    "empty components": ("d", [tar_mutants.member(name, EVIL) for name in (b"./x", b".//y", b"sub//z")]),
    "a long name of GNU tar": (LONG, [tar_mutants.member(b"././@LongLink", LONG.encode() + b"\0", kind=b"L")]),
    "a long name of PAX": (LONG, [tar_mutants.member(b"././@PaxHeader", PAX, kind=b"x")]),
}


@pytest.mark.parametrize("shape", ORDINARY)
def test_members_that_are_extracted_as_they_are_read(blksum, workdir, shape):
    name, more = ORDINARY[shape]
    parts = parts_of_a_disk(name)
    parts[2:2] = more
    pathlib.Path("a.ova").write_bytes(b"".join(parts) + bytes(1024))
    for how in EXTRACTORS:
        assert by_extraction("a.ova", name, how) == (GOOD, False), how
    assert blksum("a.ova").stdout == f"{blkhash.checksum(GOOD).hex()}  a.ova:{name}\n".encode()
    result = blksum("-c", "a.ova")
    assert (result.returncode, result.stdout.count(b": OK\n"), result.stderr) == (0, 2, b""), result


@pytest.mark.parametrize("form", ["ovftool", "VirtualBox", "oVirt", "gnu", "oldgnu", "posix", "ustar", "v7"])
def test_archives_of_exporters(blksum, disks, form):
    """The forms of headers, the owners and the order that exporters write, and `tar` with folders."""
    members, values = disks
    names = [name for name, _ in members]
    mf = ("x.mf", manifest(members, "sha256"))
    owner = {"ovftool": "someone", "VirtualBox": "vboxovf20"}.get(form, "")
    if form in ("ovftool", "VirtualBox", "oVirt"):
        kind = {"ovftool": tarfile.USTAR_FORMAT, "oVirt": tarfile.PAX_FORMAT}.get(form, tarfile.GNU_FORMAT)
        with tarfile.open("a.ova", "w", format=kind) as tar:
            for name, content in [members[0], mf, *members[1:], ("x.cert", b"certificate"), ("x.nvram", b"")]:
                info = tarfile.TarInfo(name)
                info.size, info.uname, info.gname = len(content), owner, owner
                info.mtime = 1.5 if kind == tarfile.PAX_FORMAT else 1
                tar.addfile(info, io.BytesIO(content))
    else:
        os.makedirs("dir/empty")
        for name, content in [*members, mf]:
            pathlib.Path("dir", name).write_bytes(content)
        command = ["tar", "-C", "dir", f"--format={form}", "-cf", "a.ova", "x.ovf", "x.mf", *names[1:], "empty"]
        subprocess.run(command, check=True)
    assert blksum("a.ova").stdout == lines_of(values)
    result = blksum("-c", "a.ova")
    assert (result.returncode, result.stdout.count(b": OK\n"), result.stderr) == (0, len(members), b""), result
    for name, content in members:
        assert by_extraction("a.ova", name, "tar") == (content, False)
