"""Writers of VMA archives (Proxmox) and XVA archives (XenServer), from the descriptions of these formats."""

import hashlib
import io
import random
import struct
import tarfile

import xxhash

CLUSTER = 65536
BLOCK = 4096
MIB = 1 << 20


def vma(disks, *, uuid=b"u" * 16, configs=(), order=None, seed=0, ids=None):
    """Returns a VMA archive of disks {name: content}. `order` changes the list of (device, cluster) in place."""
    blob = bytearray(b"\0")

    def text(content):
        at = len(blob)
        blob.extend(struct.pack("<H", len(content)) + content)
        return at

    header = bytearray(12288)
    struct.pack_into(">4sI16sq", header, 0, b"VMA\0", 1, uuid, 1700000000)
    for index, (name, content) in enumerate(configs):
        struct.pack_into(">I", header, 2044 + 4 * index, text(name.encode() + b"\0"))
        struct.pack_into(">I", header, 3068 + 4 * index, text(content))
    ids = ids or range(1, len(disks) + 1)
    devices = dict(zip(ids, disks.items()))
    for number, (name, content) in devices.items():
        struct.pack_into(">IIQ", header, 4096 + 32 * number, text(name.encode() + b"\0"), 0, len(content))
    blob.extend(bytes(-len(blob) % 512))
    struct.pack_into(">III", header, 48, 12288, len(blob), 12288 + len(blob))
    header += blob
    header[32:48] = hashlib.md5(header).digest()
    clusters = [
        (number, cluster) for number, (_, content) in devices.items() for cluster in range(-(-len(content) // CLUSTER))
    ]
    if order:
        order(clusters)
    rng = random.Random(seed)
    archive = bytes(header)
    while clusters:
        count = min(rng.randint(40, 58), len(clusters))
        part, clusters = clusters[:count], clusters[count:]
        infos, data = [], b""
        for number, cluster in part:
            content = devices[number][1][cluster * CLUSTER :][:CLUSTER].ljust(CLUSTER, b"\0")
            blocks = [content[at : at + BLOCK] for at in range(0, CLUSTER, BLOCK)]
            mask = sum(1 << index for index, block in enumerate(blocks) if any(block))
            data += b"".join(block for block in blocks if any(block))
            infos.append(mask << 48 | number << 32 | cluster)
        # An entry may be unused.
        infos.insert(rng.randint(0, len(infos)), 0)
        infos += [0] * (59 - len(infos))
        head = bytearray(struct.pack(">4sHH16s16s", b"VMAE", 0, len(data) // BLOCK, uuid, bytes(16)))
        head += struct.pack(">59Q", *infos)
        head[24:40] = hashlib.md5(head).digest()
        archive += bytes(head) + data
    return archive


def seal(archive):
    """Returns a VMA archive with valid MD5 digests in its headers."""
    archive = bytearray(archive)
    size = struct.unpack_from(">I", archive, 56)[0]
    archive[32:48] = bytes(16)
    archive[32:48] = hashlib.md5(archive[:size]).digest()
    at = size
    while at + 512 <= len(archive) and archive[at : at + 4] == b"VMAE":
        archive[at + 24 : at + 40] = bytes(16)
        archive[at + 24 : at + 40] = hashlib.md5(archive[at : at + 512]).digest()
        at += 512 + 4096 * struct.unpack_from(">H", archive, at + 6)[0]
    return bytes(archive)


def machine(disks, sizes=None):
    """Returns the description of a machine with disks {reference: (content, userdevice, label)}."""

    def struct_of(**fields):
        members = "".join(f"<member><name>{k}</name><value>{v}</value></member>" for k, v in fields.items())
        return f"<struct>{members}</struct>"

    objects = []
    for index, (reference, (content, device, label)) in enumerate(disks.items()):
        size = (sizes or {}).get(reference, len(content))
        drive = struct_of(uuid="a-b", VM="Ref:0", VDI=reference, userdevice=device, type="Disk")
        objects.append(struct_of(**{"class": "VBD", "id": f"Ref:{100 + index}", "snapshot": drive}))
        vdi = struct_of(uuid="c-d", name_label=label, virtual_size=size, other=struct_of(a="b"))
        objects.append(struct_of(**{"class": "VDI", "id": reference, "snapshot": vdi}))
    cd = struct_of(VDI="OpaqueRef:NULL", userdevice="3", type="CD")
    objects.append(struct_of(**{"class": "VBD", "id": "Ref:99", "snapshot": cd}))
    values = "".join(f"<value>{value}</value>" for value in objects)
    version = struct_of(hostname="h", xapi_major="1")
    return f"<value>{struct_of(version=version, objects=f'<array><data>{values}</data></array>')}</value>".encode()


def blocks_of(content, empty=()):
    """Returns the blocks of a disk: pairs of numbers and bytes. `empty` are places of empty blocks."""
    count = -(-len(content) // MIB)
    blocks, number = [], 0
    for index in range(count):
        block = content[index * MIB :][:MIB]
        if index in empty:
            blocks.append((number, b""))
            number += 1
        if index in (0, count - 1) or any(block):
            blocks.append((number, block))
        number += 1
    return blocks


def xva(disks, sums="checksum", *, empty=(), text=None, sizes=None, change=None):
    """Returns an XVA archive of disks {reference: (content, userdevice, label)}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:

        def add(name, content):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))

        add("ova.xml", machine(disks, sizes) if text is None else text)
        members = []
        for reference, (content, _, _) in disks.items():
            for number, block in blocks_of(content, empty):
                digest = hashlib.sha1(block).hexdigest() if sums == "checksum" else xxhash.xxh64_hexdigest(block)
                members += [(f"{reference}/{number:08}", block), (f"{reference}/{number:08}.{sums}", digest.encode())]
        for name, content in change(members) if change else members:
            add(name, content)
    return out.getvalue()
