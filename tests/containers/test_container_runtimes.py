"""Disks in container archives are those that container runtimes give: podman, umoci, skopeo and GNU tar are asked about random ones."""

import collections
import hashlib
import json
import pathlib
import random

import pytest

import container_images
import oci_images
import tar_mutants
from container_images import Builder

# Rules of docs/reference/images.md, by the words of their errors.
RULES = [
    "in a folder that is a link, and it may be a disk",
    "in a layer, where only files are read",
    "which programs extract differently",
    "programs read differently",
    "that only some programs know",
    "some programs read as",
    "duplicate field",
    "which is no file and has a size",
    "a file with the name of a folder",
    "two members with the name",
    "in a folder that is a file",
    "after a member of the same layer",
    "a global header between the headers of a member",
    "a single one of zeros",
    "has no valid number in a tar header",
    "and no image of its configuration and layers in its index",
    "of the type '7'",
    "followed by other bytes",
    "does not match its digest",
    "in different files",
    " digests for ",
]


def disks_of(blksum, path):
    """Returns the digests of the disks by name, or None and the error. An archive without disks is like any other file."""
    result = blksum("-a", "sha256", "--construction", "linear", path)
    assert result.returncode in (0, 1), result
    if result.returncode:
        return None, result.stderr.decode()
    lines = [line.split("  ") for line in result.stdout.decode().splitlines()]
    return {name.removeprefix(f"{path}:disk/"): digest for digest, name in lines if name != path}, ""


def verdict(blksum, seed):
    """Returns what is wrong with the answer about an archive, the kind of the answer, and what was odd."""
    builder = Builder(random.Random(seed))
    path = f"vm{seed}.tar"
    is_docker = builder.archive(path)
    try:
        ours, error = disks_of(blksum, path)
        podman, reason = container_images.by_podman(path, f"podman{seed}")
        others = [container_images.by_umoci(path, f"umoci{seed}", is_docker), container_images.by_tar(builder.tars, f"tar{seed}")]
    finally:
        pathlib.Path(path).unlink()
    views = [view for view in (podman, *others) if view is not None]
    agree = bool(views) and all(view == views[0] for view in views)
    about = (seed, builder.odd, {"ours": ours, "podman": podman, "others": others}, error)
    if ours is None:
        is_ruled = any(rule in error for rule in RULES)
        return (f"refused: {about}" if agree and podman and not is_ruled else None), "refused", builder.odd
    if not ours:
        return (f"passed over: {about}" if podman else None), "without a disk", builder.odd
    # Podman may fail at what is not in the folder of disks. Another program has them then, unless a file has members.
    answer = "accepted" if podman else "accepted, without podman"
    if not views and "not a directory exit status 1" in reason:
        return None, answer, builder.odd
    return (f"another disk: {about}" if not agree or ours != views[0] else None), answer, builder.odd


def check(blksum, seeds):
    answers = collections.Counter()
    wrong = []
    for seed in seeds:
        problem, answer, _ = verdict(blksum, seed)
        answers[answer] += 1
        wrong += [problem] if problem else []
    assert not wrong, "\n".join(wrong)
    return answers


@pytest.mark.root
@pytest.mark.parametrize("seeds", [pytest.param(range(20), marks=pytest.mark.slow), pytest.param(range(100, 1100), marks=pytest.mark.soak)], ids=len)
def test_disks_are_those_of_runtimes(blksum, workdir, seeds):
    answers = check(blksum, seeds)
    # The comparison means something.
    assert answers["accepted"] > len(seeds) / 5 and answers["refused"] > len(seeds) / 5, answers


GOOD, EVIL = b"good" * 200, b"evil" * 200


def disk(content=GOOD, name=b"disk/a.img"):
    return container_images.node(b"disk/", b"5") + container_images.node(name, content=content)


def archive_of(path, layers, types=None, change=lambda text: text):
    """Writes an OCI archive of these layers, whose manifest is changed as text."""
    layout = oci_images.Layout()
    blobs = [layout.blob(kind, layer) for layer, kind in zip(layers, types or [oci_images.LAYER] * len(layers))]
    ids = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    config = layout.blob(oci_images.CONFIG, json.dumps({"os": "linux", "rootfs": {"type": "layers", "diff_ids": ids}}).encode())
    manifest = {"schemaVersion": 2, "mediaType": oci_images.MANIFEST, "config": config, "layers": blobs}
    text = change(json.dumps(manifest)).encode()
    layout.index([layout.blob(oci_images.MANIFEST, text, **{"annotations": {"org.opencontainers.image.ref.name": "vm"}})])
    layout.described, layout.blobs = config, blobs
    layout.archive(path)
    return layout


def of_types(kind):
    return lambda path: archive_of(path, [disk(), disk(EVIL)], [oci_images.LAYER, kind])


def of_members(*members):
    """Returns a function that makes an archive whose second layer has these members."""
    layer = b"".join(container_images.node(*it) if isinstance(it, tuple) else it for it in members)
    return lambda path: archive_of(path, [disk() + container_images.node(b"l", b"2", link=b"disk"), layer])


def folded(key):
    def make(path):
        other = json.dumps([{"mediaType": oci_images.LAYER, "digest": f"sha256:{hashlib.sha256(disk()).hexdigest()}", "size": len(disk())}])
        archive_of(path, [disk(), disk(EVIL)], change=lambda text: text[:-1] + f', "{key}": {other}}}')

    return make


def polyglot(path):
    archive_of(path, [container_images.polyglot(disk(), disk(EVIL))])


def with_list(has_layout):
    """Returns a function that makes an archive with an index, and a `manifest.json` of another layer."""

    def make(path):
        layout = archive_of(path, [disk()])
        other = archive_of(path, [disk(EVIL)])
        path_of = lambda it: "blobs/" + it["digest"].replace(":", "/")
        image = {"Config": path_of(other.described), "RepoTags": ["localhost/vm:latest"], "Layers": [path_of(it) for it in other.blobs]}
        layout.files = {**other.files, **layout.files, "manifest.json": json.dumps([image]).encode()}
        if not has_layout:
            del layout.files["oci-layout"]
        layout.archive(path)

    return make


# A prefix of 131 bytes in Go, and another one in programs that do not know star.
STAR = tar_mutants.header(b"a.img", len(EVIL), prefix=b"disk" + b"/" * 127 + b"7")[:508] + b"tar\0"
STAR = tar_mutants.seal(STAR) + tar_mutants.padded(EVIL)
PATH = tar_mutants.record(b"path", b"disk/a.img")
NAMED = tar_mutants.header(b"x", len(PATH), b"x") + tar_mutants.padded(PATH)
COMMENT = tar_mutants.record(b"comment", b"x")
# GNU tar skips the size, in which other programs find a member.
SIZED = tar_mutants.header(b"s", 1024, b"2") + container_images.node(b"disk/a.img", content=EVIL)[:1024] + bytes(512)
# With what podman gives: the good disk, the one of the second layer or archive, something else, nothing, or an error. A
# check of what blksum reads without the rules: the other one.
ATTACKS = {
    "octets": (of_types("application/octet-stream"), "evil"),
    "case of a type": (of_types(oci_images.LAYER[:-3] + "TAR"), "evil"),
    "no type": (of_types(""), "evil"),
    "type of others": (of_types("application/x-tar"), "evil"),
    "type of a disk": (of_types(oci_images.KUBEVIRT + "raw"), "evil"),
    "skipped frame": (polyglot, "good"),
    "Layers": (folded("Layers"), "good"),
    "long s": (folded("layer\u017f"), "good"),
    "hard link to a link": (of_members((b"c", b"1", b"", b"l"), (b"c/a.img", b"0", EVIL)), "evil"),
    "prefix of star": (of_members(STAR), "evil"),
    # Docker reads the list.
    "index and list": (with_list(True), "good"),
    "list and no layout": (with_list(False), "good"),
    "global header": (of_members((b"disk/a.img", b"g", COMMENT)), "nothing"),
    "global whiteout": (of_members((b"disk/.wh.a.img", b"g", COMMENT)), "nothing"),
    "whiteout of the folder": (of_members((b"disk/.wh.",)), "nothing"),
    "whiteout of the folder around": (of_members((b"disk/sub/.wh...",)), "nothing"),
    # The file is there in umoci.
    "late whiteout": (of_members((b"disk/b.img", b"0", GOOD), (b"disk/.wh.b.img",)), "good"),
    "late whiteout of everything": (of_members((b"disk/b.img", b"0", GOOD), (b".wh..wh..opq",)), "nothing"),
    "dropped name": (of_members(NAMED, (b"g", b"g", COMMENT), (b"z", b"0", EVIL)), "good"),
    "file with the name of a folder": (of_members((b"disk/a.img/",)), "other"),
    "link with a size": (of_members(SIZED), "error"),
    "under a file": (of_members((b"disk/a.img/x", b"0", EVIL)), "error"),
    "the root": (of_members((b".", b"0", EVIL)), "error"),
}


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_on_disks_of_containers(blksum, workdir, name):
    make, expected = ATTACKS[name]
    make("vm.tar")
    podman, _ = container_images.by_podman("vm.tar", "podman")
    named = {hashlib.sha256(GOOD).hexdigest(): "good", hashlib.sha256(EVIL).hexdigest(): "evil"}
    found = "error" if podman is None else named.get(podman.get("a.img"), "other") if podman else "nothing"
    assert found == expected, podman
    ours, error = disks_of(blksum, "vm.tar")
    assert ours is None and any(rule in error for rule in RULES), (ours, error)
