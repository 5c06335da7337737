"""OCI images: layouts, archives and archives of Docker, as specifications and other programs describe them."""

import hashlib
import io
import json
import os
import pathlib
import tarfile

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
KUBEVIRT = "application/vnd.kubevirt.disk."

TYPES = {"folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


class Layout:
    """The files of an image layout."""

    def __init__(self):
        self.files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def blob(self, media_type, content, algorithm="sha256", **more):
        """Adds a blob, and returns its descriptor."""
        digest = hashlib.new(algorithm, content).hexdigest()
        self.files[f"blobs/{algorithm}/{digest}"] = content
        return {"mediaType": media_type, "digest": f"{algorithm}:{digest}", "size": len(content), **more}

    def manifest(self, layers, config=(CONFIG, b"{}"), media_type=MANIFEST, **more):
        """Adds a manifest, and returns its descriptor."""
        document = {"schemaVersion": 2, "mediaType": media_type, "config": self.blob(*config), "layers": layers}
        return self.blob(media_type, json.dumps(document).encode(), **more)

    def index(self, manifests):
        self.files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
        return self

    def write(self, folder):
        for name, content in self.files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder

    def archive(self, path, kind=tarfile.USTAR_FORMAT):
        return archive(path, self.files.items(), kind)


def archive(path, members, kind=tarfile.USTAR_FORMAT):
    with tarfile.open(path, "w", format=kind) as tar:
        add(tar, members)
    return path


def add(tar, members):
    """Adds files, and members of other types, whose content is the name of the type."""
    for name, content in members:
        info = tarfile.TarInfo(name)
        if isinstance(content, bytes):
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        else:
            info.type = TYPES[content]
            info.linkname = "elsewhere"
            tar.addfile(info)


def layer(*members):
    """Returns the tar archive of a layer."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        add(tar, members)
    return out.getvalue()


def title(name):
    return {"annotations": {"org.opencontainers.image.title": name}}


def kubevirt(disks, compress=None, suffix=""):
    """Returns an export of KubeVirt: an artifact whose layers are raw disks, here by name."""
    layout = Layout()
    layers = []
    for name, content in disks.items():
        about = {"io.kubevirt.disk.name": name, "io.kubevirt.disk.size": str(len(content))}
        about["org.opencontainers.image.title"] = f"{name}.raw{suffix}"
        blob = compress(content) if compress else content
        kind = {"": "raw", ".zst": "raw+zstd", ".gz": "raw+gzip"}[suffix]
        layers.append(layout.blob(KUBEVIRT + kind, blob, annotations=about))
    config = ("application/vnd.kubevirt.virtualmachine.config.v1+json", b'{"kind":"VirtualMachine"}')
    platform = {"architecture": "amd64", "os": "linux"}
    return layout.index([layout.manifest(layers, config, platform=platform)])


def container(*layers, media_type=LAYER, compress=None):
    """Returns a container image of these tar archives."""
    layout = Layout()
    blobs = [layout.blob(media_type, compress(one) if compress else one) for one in layers]
    ids = [f"sha256:{hashlib.sha256(one).hexdigest()}" for one in layers]
    config = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ids}}
    return layout.index([layout.manifest(blobs, (CONFIG, json.dumps(config).encode()))])


def docker(path, *layers):
    """Writes an archive of `docker save`, with the links to layers that it had before version 25."""
    ids = [hashlib.sha256(one).hexdigest() for one in layers]
    config = json.dumps({"os": "linux", "rootfs": {"type": "layers", "diff_ids": [f"sha256:{it}" for it in ids]}}).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": ["disk:latest"], "Layers": [f"{it}.tar" for it in ids]}]
    members = [(f"{number}.tar", content) for number, content in zip(ids, layers)]
    members += [(f"legacy{at}/layer.tar", "link") for at in range(len(ids))]
    members += [(name, config), ("manifest.json", json.dumps(manifest).encode())]
    return archive(path, members)


def sparse_manifest(folder, size):
    """Writes a layout whose manifest is a hole of this size."""
    digest = "0" * 64
    layout = Layout().index([{"mediaType": MANIFEST, "digest": f"sha256:{digest}", "size": size}])
    layout.files[f"blobs/sha256/{digest}"] = b""
    layout.write(folder)
    os.truncate(pathlib.Path(folder, "blobs/sha256", digest), size)
    return folder
