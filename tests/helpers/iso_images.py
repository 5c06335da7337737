"""Images of ISO 9660 with an MD5 that implantisomd5 writes, and the fields of the text that states it."""

import hashlib
import pathlib
import re
import struct

import images

SECTOR = 2048
DESCRIPTOR = 16 * SECTOR
TEXT, TEXT_END = DESCRIPTOR + 883, DESCRIPTOR + 1395
STEP = 32 << 10

# Ways to write an image, by the arguments before its name and the folder with its files.
WRITERS = {
    "genisoimage": ["genisoimage", "-quiet"],
    "rock ridge": ["genisoimage", "-quiet", "-R", "-J"],
    "udf": ["genisoimage", "-quiet", "-udf"],
    "xorriso": ["xorriso", "-as", "mkisofs", "-quiet", "-r", "-J"],
    "mbr": ["xorriso", "-as", "mkisofs", "-quiet", "--protective-msdos-label"],
    "gpt": [
        *("xorriso", "-as", "mkisofs", "-quiet", "-r", "-partition_offset", "16"),
        *("-appended_part_as_gpt", "-append_partition", "2", "0xef", "efi.img"),
    ],
}


def create(path, contents, writer="genisoimage"):
    """Writes an image of files with these contents, without an MD5."""
    folder = pathlib.Path(f"{path}.files")
    folder.mkdir()
    for number, content in enumerate(contents):
        (folder / f"f{number}").write_bytes(content)
    pathlib.Path("efi.img").write_bytes(bytes(range(256)) * 4096)
    images.run(*WRITERS[writer], "-o", path, folder)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def implant(path, *options):
    images.run("implantisomd5", *options, path)


def verdict(path):
    """Whether checkisomd5 says that the image is as its MD5 says. It fails as well if there is none."""
    result = images.attempt("checkisomd5", path)
    assert result.returncode in (0, 1), result
    return result.returncode == 0


def text(content):
    return bytes(content[TEXT:TEXT_END])


def with_text(content, stated):
    assert len(stated) <= TEXT_END - TEXT
    return content[:TEXT] + stated.ljust(TEXT_END - TEXT) + content[TEXT_END:]


def state(content, skipped=15, count=20):
    """The image with a text for this number of skipped sectors and of fragments."""
    blank = with_text(content, b"")
    length = struct.unpack_from(">I", content, DESCRIPTOR + 84)[0] * SECTOR - skipped * SECTOR
    md5, sums, current = hashlib.md5(), "", 0
    for at in range(0, length, STEP):
        md5.update(blank[at : min(at + STEP, length)])
        number = at // (length // (count + 1))
        if number != current and number <= count:
            sums += "".join(f"{byte:x}"[0] for byte in md5.digest()[: 60 // count])
        current = number
    fields = {
        "ISO MD5SUM": md5.hexdigest(),
        "SKIPSECTORS": skipped,
        "RHLISOSTATUS": "1",
        "FRAGMENT SUMS": sums,
        "FRAGMENT COUNT": count,
    }
    stated = ";".join(f"{name} = {value}" for name, value in fields.items()).replace("STATUS = ", "STATUS=")
    return with_text(content, f"{stated};THIS IS NOT THE SAME AS RUNNING MD5SUM ON THIS ISO!!".encode())


def field(content, name):
    """Offset and length of the value of a field."""
    found = re.search(name.encode() + rb" ?= ?([^;]*)", text(content))
    return TEXT + found.start(1), len(found[1])


def first_that_differs(content, other, count=20):
    """The number of the first fragment, from 0, of which two images state other sums, if there is one."""
    texts = [image[slice(*_range(field(image, "FRAGMENT SUMS")))] for image in (content, other)]
    digits = 60 // count
    differ = (n for n in range(count) if len({it[n * digits : (n + 1) * digits] for it in texts}) > 1)
    return next(differ, None)


def fragments(content, count=20):
    """The ranges of bytes between the places of which an image has sums, and the range after the last one."""
    skipped = int(content[slice(*_range(field(content, "SKIPSECTORS")))])
    length = struct.unpack_from(">I", content, DESCRIPTOR + 84)[0] * SECTOR - skipped * SECTOR
    ends, current = [], 0
    for at in range(0, length, STEP):
        number = at // (length // (count + 1))
        if number != current and number <= count:
            ends.append(min(at + STEP, length))
        current = number
    return list(zip([0, *ends], [*ends, length]))


def _range(field):
    return field[0], sum(field)
