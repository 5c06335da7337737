"""Container archives at random, ordinary and hostile ones, and the disks that container programs find in them.

Each odd part is one that some program reads differently: names and links, whiteouts, headers of all dialects of tar, compressions,
media types, keys of JSON, and archives with an index and a list of Docker.
"""

import bz2
import gzip
import hashlib
import json
import lzma
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile

import blkhash
import oci_images
from tar_mutants import BLOCK, header, padded, record, seal

TYPES = [
    oci_images.LAYER,
    oci_images.LAYER + "+gzip",
    oci_images.LAYER + "+zstd",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
]
ODD_TYPES = ["application/octet-stream", oci_images.LAYER[:-3] + "TAR", "", "application/x-tar", oci_images.KUBEVIRT + "raw", "text/plain"]
MAGICS = {"ustar": b"ustar\x0000", "gnu": b"ustar  \0", "v7": bytes(8), "pax": b"ustar\x0000", "star": b"ustar\x0000"}
SKIPPED = b"\x50\x2a\x4d\x18"


def zstd(content):
    return subprocess.run(["zstd", "-qc"], input=content, stdout=subprocess.PIPE, check=True).stdout


def lz4(content):
    return subprocess.run(["lz4", "-qc"], input=content, stdout=subprocess.PIPE, check=True).stdout


def polyglot(tar, other):
    """Returns an archive that is `tar` after a member, and for programs that skip frames of zstd, `other`."""
    size = BLOCK + len(tar) + 2 * BLOCK
    return header(SKIPPED + (size - 8).to_bytes(4, "little"), 0) + tar + bytes(2 * BLOCK) + zstd(other)


def node(name, kind=b"0", content=b"", link=b"", dialect="ustar", size_field=None):
    """Returns a member in a dialect of tar."""
    before, prefix = b"", b""
    size = len(content)
    if dialect == "pax":
        records = record(b"path", name) + (record(b"linkpath", link) if link else b"") + record(b"mtime", b"1.5")
        before = header(b"PaxHeaders/x", len(records), b"x") + padded(records)
        name, link = b"short", b"short" if link else b""
    elif dialect == "gnu" and len(name) > 20:
        before = header(b"././@LongLink", len(name) + 1, b"L", MAGICS["gnu"]) + padded(name + b"\0")
        name = name[:20]
    elif dialect in ("ustar", "star") and b"/" in name[:-1]:
        prefix, name = name.rstrip(b"/").rsplit(b"/", 1)[0], name[len(name.rstrip(b"/").rsplit(b"/", 1)[0]) + 1 :]
    block = bytearray(header(name, size, kind, MAGICS[dialect], prefix, size_field))
    block[157 : 157 + len(link)] = link[:100]
    if dialect == "star":
        block[476:508] = b"%011o " % 0 + b"%011o " % 0 + bytes(8)
        block[508:512] = b"tar\0"
    return before + seal(block) + padded(content)


class Builder:
    """Builds one archive. `odd` names the odd parts that were chosen."""

    def __init__(self, rng):
        self.rng = rng
        self.odd = []

    def maybe(self, name, one_in=8):
        if self.rng.randrange(one_in):
            return False
        self.odd.append(name)
        return True

    def dialect(self):
        return self.rng.choice(["ustar", "ustar", "gnu", "v7", "pax", "pax"] if self.rng.randrange(12) else ["star"])

    def content(self):
        return self.rng.randbytes(self.rng.choice([1, 511, 512, 700]))

    def names(self, count):
        """Returns different names of files, some of them spelled otherwise."""
        names = [b"disk/a.img", b"disk/b.img", b"disk/c.img", b"disk/" + b"n" * 120, b"disk/sub/a.img", b"etc/f"]
        names.append(self.rng.choice([b"x/a.img", b"c/a.img", b"l/a.img", b"l", b"c", b"x"]))
        spell = lambda name: self.rng.choice([name, name, b"./" + name, b"/" + name, name.replace(b"/", b"//")])
        return [spell(name) for name in self.rng.sample(names, count)]

    def file(self, name):
        return node(name, content=self.content(), dialect=self.dialect())

    def links(self):
        """Returns a symbolic link, perhaps a hard link to it, and perhaps a member through one of them."""
        target = self.rng.choice([b"disk", b"/disk", b"./disk", b"etc", b"x", b"x/../disk"])
        parts = [node(b"l", b"2", link=target, dialect=self.dialect())]
        if self.maybe("hard link to a link", 2):
            source = self.rng.choice([b"l", b"./l", b"/l", b"x/../l"])
            parts.append(node(b"c", b"1", link=source, dialect=self.dialect()))
        if self.maybe("through a link", 2):
            parts.append(self.file(self.rng.choice([b"l/a.img", b"c/a.img", b"l/.wh.a.img", b"c/new.img"])))
        return parts

    def odd_parts(self):
        """Returns the members of one odd part."""
        rng, choice = self.rng, self.rng.choice
        kind = rng.randrange(16)
        self.odd.append(f"part {kind}")
        evil = self.file(b"disk/a.img")
        whiteouts = [b".wh.a.img", b".wh..wh..opq", b".wh.", b".wh..", b".wh...", b".wh..wh.plnk", b".wh.b.img"]
        if kind < 4:
            return self.links()
        if kind == 4:
            return [node(choice([b"disk/", b"", b"disk/sub/", b"etc/"]) + choice(whiteouts), dialect=self.dialect())]
        if kind == 5:
            return [node(choice([b".wh.disk", b".wh..wh..opq", b".wh.l", b".wh.x", b".wh..wh.plnk/x"]), dialect=self.dialect())]
        if kind == 6:
            return [node(choice([b"pax_global_header", b"disk/a.img", b".wh.disk", b"disk", b"x"]), b"g", record(b"comment", b"1"))]
        if kind == 7:
            long = header(b"pax", 24, b"x") + padded(record(b"path", b"disk/evil.img"))
            return [long[:BLOCK] + padded(record(b"path", b"disk/evil.img")), node(b"g", b"g", record(b"comment", b"1")), self.file(b"x")]
        if kind == 8:
            return [node(b"s", choice([b"2", b"3", b"6", b"1"]), link=b"etc", size_field=b"%011o\0" % len(evil)) + evil]
        if kind == 9:
            return [node(b"disk/a.img/", choice([b"0", b"7", b"\0"])), node(b"disk/a.img", b"7", self.content())]
        if kind == 10:
            return [bytes(BLOCK), evil]
        if kind == 11:
            return [node(choice([b"disk/a.img/x", b"disk/sub", b"disk/b.img/"]), choice([b"0", b"5"]))]
        if kind == 12:
            return [node(choice([b"disk", b"disk/a.img", b"", b"."]), choice([b"0", b"2", b"5", b"6"]), link=b"x")]
        if kind == 13:
            block = bytearray(evil[:BLOCK])
            block[choice([range(100, 107), range(108, 115), range(136, 147), range(329, 336)])[0]] = choice(b"x-+ \x80\xff")
            return [seal(block) + evil[BLOCK:]]
        if kind == 14:
            return [node(b"disk/a.img", b"1", link=b"disk/b.img", dialect=self.dialect())]
        return [evil, self.file(b"disk/a.img")]

    def layer(self, is_first):
        """Returns a tar archive, and the layer, which may be compressed."""
        rng = self.rng
        parts = [node(b"disk/", b"5", dialect=self.dialect())] if is_first or rng.randrange(2) else []
        parts += [self.file(name) for name in self.names(rng.randrange(1, 4))]
        while self.maybe("odd", 5):
            at = rng.randrange(len(parts) + 1)
            parts[at:at] = self.odd_parts()
        tar = b"".join(parts) + bytes(rng.choice([0, 512, 1024, 10240]))
        if self.maybe("polyglot", 25):
            tar = polyglot(b"".join(parts), oci_images.layer(("disk/a.img", self.content())))
            return tar, tar
        if self.maybe("named like bzip2", 60):
            return (tar := node(b"BZh9", content=b"x") + tar), tar
        if self.maybe("frames to skip", 40):
            return tar, SKIPPED + (5).to_bytes(4, "little") + b"12345" + rng.choice([zstd, lz4])(tar)
        return tar, rng.choice([bytes, bytes, bytes, bytes, gzip.compress, gzip.compress, zstd, lzma.compress, bz2.compress])(tar)

    def layers(self):
        count = self.rng.choice([1, 2, 2, 3])
        layers = [self.layer(at == 0) for at in range(count)]
        if self.maybe("a layer twice"):
            layers.append(self.rng.choice(layers))
        return layers

    def config(self, tars):
        ids = [f"sha256:{hashlib.sha256(it).hexdigest()}" for it in tars]
        if len(ids) > 1 and self.maybe("equal diff_ids", 12):
            ids[-1] = ids[0]
        config = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ids}}
        return self.document(config, "rootfs")

    def document(self, document, *keys):
        """Returns JSON, perhaps with a key in another case or folded otherwise, or twice."""
        text = json.dumps(document)
        if self.maybe("key", 20):
            key = self.rng.choice(keys)
            other = self.rng.choice([key.capitalize(), key.upper(), key.lower(), key.replace("s", "\u017f", 1), key])
            value = json.dumps(self.rng.choice([document[key], [], {}]))
            text = text[:-1] + f',"{other}":{value}}}' if self.rng.randrange(2) else f'{{"{other}":{value},' + text[1:]
        return text.encode()

    def layout(self, layers, reference="vm"):
        layout = oci_images.Layout()
        blobs = []
        for _, stored in layers:
            kinds = [oci_images.LAYER + ("+gzip" if stored.startswith(b"\x1f\x8b") else "")] if self.rng.randrange(4) else TYPES
            kind = self.rng.choice(ODD_TYPES if self.maybe("type", 12) else kinds)
            blobs.append(layout.blob(kind, stored))
        config = self.config([tar for tar, _ in layers])
        described = layout.blob(oci_images.CONFIG, config)
        manifest = {"schemaVersion": 2, "mediaType": oci_images.MANIFEST, "config": described, "layers": blobs}
        text = self.document(manifest, "layers", "config", "mediaType")
        name = {"annotations": {"org.opencontainers.image.ref.name": reference}}
        index = {"schemaVersion": 2, "manifests": [layout.blob(oci_images.MANIFEST, text, **name)]}
        layout.files["index.json"] = self.document(index, "manifests")
        return layout, described, blobs

    def docker(self, layers):
        config = self.config([tar for tar, _ in layers])
        name = f"{hashlib.sha256(config).hexdigest()}.json"
        files = {f"{hashlib.sha256(stored).hexdigest()}.tar": stored for _, stored in layers}
        listed = [f"{hashlib.sha256(stored).hexdigest()}.tar" for _, stored in layers]
        image = json.loads(json.dumps({"Config": name, "RepoTags": ["localhost/vm:latest"], "Layers": listed}))
        return {**files, name: config, "manifest.json": b"[" + self.document(image, "Layers", "Config") + b"]"}

    def archive(self, path):
        """Writes the archive. Returns whether it is one of Docker."""
        layers = self.layers()
        is_docker = not self.rng.randrange(3)
        if is_docker:
            files = self.docker(layers)
        else:
            layout, config, blobs = self.layout(layers)
            files = layout.files
            if self.maybe("manifest.json", 8):
                path_of = lambda it: "blobs/" + it["digest"].replace(":", "/")
                listed = [path_of(it) for it in blobs]
                if self.maybe("of other layers", 2):
                    other, described, blobs = self.layout(self.layers())
                    files = {**other.files, **files}
                    config, listed = self.rng.choice([(config, listed[:-1]), (described, [path_of(it) for it in blobs])])
                image = {"Config": path_of(config), "RepoTags": ["localhost/vm:latest"], "Layers": listed}
                files["manifest.json"] = b"[" + json.dumps(image).encode() + b"]"
                if self.maybe("no oci-layout", 4):
                    del files["oci-layout"]
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            oci_images.add(tar, files.items())
        self.tars = [tar for tar, _ in layers]
        return is_docker


def run(*args, **more):
    return subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **more)


def disks_in(root):
    """Returns the digests of the files in the folder of disks by name. Other nodes than files and folders have their type."""
    found = {}
    folder = pathlib.Path(root, "disk")
    if not os.path.lexists(folder):
        return found
    if not stat.S_ISDIR(folder.lstat().st_mode):
        return found if stat.S_ISREG(folder.lstat().st_mode) else {"": "no folder"}
    for it in sorted(folder.iterdir()):
        mode = it.lstat().st_mode
        if stat.S_ISREG(mode):
            found[it.name] = hashlib.sha256(it.read_bytes()).hexdigest()
        elif not stat.S_ISDIR(mode):
            found[it.name] = oct(stat.S_IFMT(mode))
    return found


def by_podman(path, folder):
    """Returns what podman mounts, and None if it cannot load the archive, with the reason."""
    podman = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--storage-driver", "vfs"]
    try:
        loaded = run(*podman, "load", "-q", "-i", path)
        if loaded.returncode:
            return None, loaded.stderr.decode()
        [name] = [line.split(b": ", 1)[1] for line in loaded.stdout.splitlines() if b": " in line]
        mounted = run(*podman, "image", "mount", name)
        if b"layer not known" in mounted.stderr:
            # An image without layers.
            return {}, ""
        assert mounted.returncode == 0, mounted
        return disks_in(mounted.stdout.decode().strip()), ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def by_umoci(path, folder, is_docker):
    """Returns what umoci unpacks, from an archive of Docker after skopeo converted it, or None if one of them fails."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    try:
        layout = folder / "layout"
        if is_docker:
            source = ["skopeo", "copy", "-q", "--insecure-policy", f"docker-archive:{path}", f"oci:{layout}:vm"]
        else:
            layout.mkdir()
            source = ["tar", "-xf", path, "-C", str(layout)]
        if run(*source).returncode or run("umoci", "raw", "unpack", "--image", f"{layout}:vm", str(folder / "rootfs")).returncode:
            return None
        return disks_in(folder / "rootfs")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def by_tar(tars, folder):
    """Returns what GNU tar extracts from the layers, with whiteouts applied to what lower layers have, or None if it fails."""
    disks = {}
    folder = pathlib.Path(folder)
    try:
        for tar in tars:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            result = subprocess.run(
                ["tar", "-xf", "-", "-C", str(folder), "--no-same-owner"], input=tar, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            if result.returncode:
                return None
            here = disks_in(folder)
            if (folder / "disk").is_symlink() or not (folder / "disk").is_dir():
                inner = []
                disks = {} if os.path.lexists(folder / "disk") else disks
            else:
                inner = os.listdir(folder / "disk")
            outer = os.listdir(folder)
            if ".wh.disk" in outer or ".wh..wh..opq" in [*outer, *inner]:
                disks = {}
            for name in inner:
                disks.pop(name.removeprefix(".wh."), None)
            disks.update({name: digest for name, digest in here.items() if not name.startswith(".wh.")})
        return disks
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def value(content):
    return blkhash.checksum(content).hex()
