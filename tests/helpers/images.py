"""Images for the tests. Raw images come from specs (reference/imagespec.py), all others from qemu-img."""

import os
import subprocess

import imagespec

TIMEOUT = 600

# QEMU times the key derivation when it creates a LUKS header. It fails if no clock tick passed meanwhile,
# which happens one time in four on a fast CPU.
LUKS_FAILURE = b"Unable to get accurate CPU usage"
LUKS_TRIES = 50


def run(*args, **kwargs):
    """Runs a tool that must succeed, and returns its output."""
    return succeeded(args, attempt(*args, **kwargs))


def qemu_img(*args, **kwargs):
    args = ("qemu-img", *map(str, args))
    result = attempt(*args, **kwargs)
    for _ in range(LUKS_TRIES):
        if LUKS_FAILURE not in result.stderr:
            break
        result = attempt(*args, **kwargs)
    return succeeded(args, result)


def attempt(*args, **kwargs):
    kwargs = {"stdin": subprocess.DEVNULL, "timeout": TIMEOUT} | kwargs
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


def succeeded(args, result):
    assert result.returncode == 0, (args, result.stdout, result.stderr)
    return result.stdout


def write_sparse(path, data):
    """Writes data, with holes where a page is zero. Returns the path."""
    with open(path, "wb") as file:
        file.truncate(len(data))
        for at in range(0, len(data), 4096):
            page = data[at : at + 4096]
            if page.count(0) != len(page):
                os.pwrite(file.fileno(), page, at)
    return path


def qemu_io(image, *commands, fmt="qcow2", options=()):
    """Runs qemu-io commands. Also checks the output, because qemu-io exits with 0 when a command fails."""
    args = []
    for command in commands:
        args += ["-c", command]
    output = run("qemu-io", "-f", fmt, *options, *args, str(image))
    assert b"failed" not in output and b"rror" not in output, (commands, output)
    return output


def create(path, size, *args):
    qemu_img("create", "-q", "-f", "qcow2", *args, path, size)
    return path


def to_raw(image, path, *args):
    """Converts to the content that the guest sees, using QEMU."""
    qemu_img("convert", "-O", "raw", *args, image, path)
    return path


def convert(raw, path, options="", flags=(), **kwargs):
    """Converts a raw image to qcow2."""
    if options:
        flags = (*flags, "-o", options)
    qemu_img("convert", "-q", "-f", "raw", "-O", "qcow2", *flags, raw, path, **kwargs)
    return path


def convert_data_file(raw, path, options=""):
    """Converts like convert(), with the data in a file next to the image.

    QEMU looks for a relative data file in the current folder, hence cwd.
    """
    options = f"data_file={path.with_suffix('.data').name}" + (options and "," + options)
    convert(raw.absolute(), path.name, options, cwd=path.parent)
    return path


def from_spec(spec, path, options="", zero="write -z"):
    """Writes a qcow2 extent by extent. Holes stay unallocated, and `0` is written with `zero`."""
    size = imagespec.size(spec)
    create(path, size, *(("-o", options) if options else ()))
    commands = []
    sources = []
    for offset, length, kind in imagespec.parse(spec):
        if length == 0 or kind == "-":
            continue
        if kind == "0":
            commands.append(f"{zero} {offset} {length}")
        elif kind == "#":
            source = path.with_suffix(f".{offset}")
            source.write_bytes(imagespec.data(kind, offset, length))
            sources.append(source)
            commands.append(f"write -s {source} {offset} {length}")
        else:
            commands.append(f"write -P {ord(kind)} {offset} {length}")
    if commands:
        qemu_io(path, *commands)
    for source in sources:
        source.unlink()
    return path


def chain(spec, path, depth=3, options=""):
    """Creates a chain of `depth` overlays. Extent i is written in layer i mod (depth + 1), over garbage.

    Every layer above the base is needed for the content of the last.
    """
    extents = [extent for extent in imagespec.parse(spec) if extent[1] > 0]
    size = imagespec.size(spec)
    base = path.with_suffix(".0")
    create(base, size, *(("-o", options) if options else ()))
    first = [(o, n, "~" if i % (depth + 1) else k) for i, (o, n, k) in enumerate(extents)]
    write_layer(base, first)
    for layer in range(1, depth + 1):
        overlay = path.with_suffix(f".{layer}") if layer < depth else path
        args = ["-b", base.name, "-F", "qcow2"]
        create(overlay, size, *args, *(("-o", options) if options else ()))
        write_layer(overlay, [e for i, e in enumerate(extents) if i % (depth + 1) == layer])
        base = overlay
    return path


def write_layer(path, extents):
    commands = []
    for offset, length, kind in extents:
        if kind == "~":
            commands.append(f"write -P 0xee {offset} {length}")
        elif kind in "0-":
            commands.append(f"write -z {offset} {length}")
        else:
            source = path.with_suffix(f".source{offset}")
            source.write_bytes(imagespec.data(kind, offset, length))
            commands.append(f"write -s {source} {offset} {length}")
    if commands:
        qemu_io(path, *commands)
    for source in path.parent.glob("*.source*"):
        source.unlink()
