"""OVF appliances, as tar archives."""

import io
import tarfile

MIB = 1 << 20


def descriptor(files, disks):
    """Returns an OVF descriptor. `files` are ids, names and more attributes."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<!-- <File> -->"]
    lines += ['<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="o">', "  <References>"]
    lines += [f'    <File ovf:href="{name}" ovf:id="{number}" {more}/>' for number, name, more in files]
    lines += ["  </References>", "  <DiskSection><Info>Disks &amp; more</Info>"]
    lines += [f'    <Disk ovf:diskId="v" ovf:fileRef="{number}" ovf:capacity="1"/>' for number in disks]
    return "\n".join([*lines, "  </DiskSection>", "</Envelope>"]).encode()


def archive(path, members, kind=tarfile.USTAR_FORMAT):
    with tarfile.open(path, "w", format=kind) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
