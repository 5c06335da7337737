"""One content in each format, also those that a server reads."""

import os
import pathlib
import shutil

import blkhash
import dmg_images
import foreign_images
import images

SPEC = "192k:A 3m:- 1m:# 2m:0 832k:# 1m:-"
SECRET = b"open sesame"
FOREIGN = {
    "cloop": foreign_images.cloop,
    "bochs": foreign_images.bochs,
    "dmg": dmg_images.dmg,
}


# Format, options and flags of qemu-img convert for each name.
FORMATS = {
    "vmdk": ("vmdk", "", ()),
    "vmdk-flat": ("vmdk", "subformat=monolithicFlat", ()),
    "vmdk-split-sparse": ("vmdk", "subformat=twoGbMaxExtentSparse", ()),
    "vmdk-split-flat": ("vmdk", "subformat=twoGbMaxExtentFlat", ()),
    "vmdk-stream": ("vmdk", "subformat=streamOptimized", ()),
    "vdi": ("vdi", "", ()),
    "vdi-static": ("vdi", "static=on", ()),
    "vhdx": ("vhdx", "", ()),
    "vhdx-fixed": ("vhdx", "subformat=fixed", ()),
    "vpc": ("vpc", "force_size=on", ()),
    "vpc-fixed": ("vpc", "subformat=fixed,force_size=on", ()),
    "qed": ("qed", "", ()),
    "parallels": ("parallels", "", ()),
    "qcow1": ("qcow", "", ()),
    "qcow1-compressed": ("qcow", "", ("-c",)),
    "luks": ("luks", "key-secret=s,iter-time=10", ("--object", "secret,id=s,file=secret")),
}


def make(name, raw, path):
    """Converts the content to a format, at a path beside the file `secret`."""
    if name in FOREIGN:
        pathlib.Path(path).write_bytes(FOREIGN[name](raw.read_bytes()))
        return path
    fmt, options, flags = FORMATS[name]
    options = ("-o", options) if options else ()
    convert = ("convert", "-q", "-f", "raw", "-O", fmt, *flags, *options, raw, path)
    if name == "qcow1-compressed":
        # QEMU 7.2 fails at the very end without a message, so check whether the image is complete.
        images.attempt("qemu-img", *map(str, convert))
        images.qemu_img("compare", "-f", "raw", "-F", fmt, raw, path)
    elif name == "luks":
        # Key derivation is slow, so create one image for each content.
        made = raw.parent.parent / (blkhash.file_checksum(raw).hex() + ".luks")
        if not made.exists():
            images.qemu_img(*convert[:-1], made)
        shutil.copy(made, path)
    else:
        images.qemu_img(*convert)
    return path


def options_for(name):
    return ["--secret-file", "secret"] if name == "luks" else []


def write_server(code, folder="server", name="server"):
    """Creates a program in the folder that runs `code`, with its output on standard error."""
    os.makedirs(folder, exist_ok=True)
    path = pathlib.Path(folder, name).absolute()
    path.write_text(f"#!/usr/bin/python3 -I\nimport sys\nsys.stdout = sys.stderr\n{code}\n")
    path.chmod(0o755)
    return str(path)
