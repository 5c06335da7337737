"""vhdx images that QEMU does not write: differencing images, and images whose log was not replayed.

Written after MS-VHDX, independently of the reader.
"""

import struct
import uuid

KIB = 1 << 10
MIB = 1 << 20
LOG_SECTOR = 4096

HEADERS = (64 * KIB, 128 * KIB)
REGION_TABLES = (192 * KIB, 256 * KIB)
LOG, BAT, METADATA = 1 * MIB, 2 * MIB, 3 * MIB

BAT_GUID = "2dc27766-f623-4200-9d64-115e9bfd4a08"
METADATA_GUID = "8b7ca206-4790-4b9a-b8fe-575f050f886e"
FILE_PARAMETERS = "caa16737-fa36-4d43-b3b6-33f0aa44e76b"
VIRTUAL_DISK_SIZE = "2fa54224-cd1b-4876-b211-5dbed83bf4b8"
VIRTUAL_DISK_ID = "beca12ab-b2e6-4523-93ef-c309e000c746"
LOGICAL_SECTOR_SIZE = "8141bf1d-a96f-4709-ba47-f233a8faab5f"
PHYSICAL_SECTOR_SIZE = "cda348c7-445d-4471-9cc9-e9885251c556"
PARENT_LOCATOR = "a8d35f2d-b30b-454d-abf7-d3d84834ab0c"
VHDX_PARENT = "b04aefb7-d19e-4a81-b789-25b8e9445913"

NOT_PRESENT, UNDEFINED, ZERO, UNMAPPED, PRESENT, PARTIAL = 0, 1, 2, 3, 6, 7


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def sealed(data):
    """Returns a structure with its checksum, which is computed with zeros in its place."""
    data = bytearray(data)
    data[4:8] = bytes(4)
    data[4:8] = struct.pack("<I", crc32c(data))
    return bytes(data)


def reseal(image):
    """Computes the checksums of the headers and region tables of an image that is long enough."""
    image = bytearray(image)
    for offset, length in [*((at, 4 * KIB) for at in HEADERS), *((at, 64 * KIB) for at in REGION_TABLES)]:
        if len(image) >= offset + length:
            image[offset : offset + length] = sealed(image[offset : offset + length])
    return image


def guid(text):
    return uuid.UUID(text).bytes_le


def header(sequence, data_write, log_guid=bytes(16), log_length=MIB, log_offset=LOG):
    head = b"head" + bytes(4) + struct.pack("<Q", sequence) + uuid.uuid5(data_write, "file").bytes_le
    head += data_write.bytes_le + log_guid + struct.pack("<HHIQ", 0, 1, log_length, log_offset)
    return sealed(head.ljust(4 * KIB, b"\0"))


def region_table(*regions):
    table = b"regi" + bytes(4) + struct.pack("<II", len(regions), 0)
    for kind, offset, length in regions:
        table += guid(kind) + struct.pack("<QII", offset, length, 1)
    return sealed(table.ljust(64 * KIB, b"\0"))


def locator(entries):
    head = guid(VHDX_PARENT) + struct.pack("<HH", 0, len(entries))
    strings, offset = b"", len(head) + 12 * len(entries)
    for key, value in entries.items():
        key, value = key.encode("utf-16-le"), value.encode("utf-16-le")
        at = offset + len(strings)
        head += struct.pack("<IIHH", at, at + len(key), len(key), len(value))
        strings += key + value
    return head + strings


def metadata(size, block_size, sector_size, disk, parent):
    items = [
        (FILE_PARAMETERS, struct.pack("<II", block_size, 2 if parent else 0), 4),
        (VIRTUAL_DISK_SIZE, struct.pack("<Q", size), 6),
        (VIRTUAL_DISK_ID, disk.bytes_le, 6),
        (LOGICAL_SECTOR_SIZE, struct.pack("<I", sector_size), 6),
        (PHYSICAL_SECTOR_SIZE, struct.pack("<I", 4096), 6),
    ]
    if parent:
        items.append((PARENT_LOCATOR, locator(parent), 4))
    table = b"metadata" + struct.pack("<HH", 0, len(items)) + bytes(20)
    data = b""
    for kind, item, flags in items:
        table += guid(kind) + struct.pack("<IIII", 64 * KIB + len(data), len(item), flags, 0)
        data += item
    return (table.ljust(64 * KIB, b"\0") + data).ljust(MIB, b"\0")


def image(size, blocks, name, parent=None, block_size=MIB, sector_size=512):
    """Returns the bytes of an image.

    `blocks` has a pair for each block that is described: its state and its content, None if it has none,
    and for partially present blocks the set of sectors that are present. `name` determines the identity.
    `parent` has the entries of the parent locator.
    """
    ratio = (1 << 23) * sector_size // block_size
    per_block = block_size // sector_size
    count = -(-size // block_size)
    entries = [0] * (-(-count // ratio) * (ratio + 1))
    data, end = [], 4 * MIB
    bitmaps = {}
    for block, (state, content, sectors) in blocks.items():
        entry = state
        if content is not None:
            assert len(content) == block_size
            entry |= end
            data.append(content)
            end += block_size
        entries[block + block // ratio] = entry
        if state == PARTIAL:
            bitmap = bitmaps.setdefault(block // ratio, bytearray(MIB))
            for sector in sectors:
                bit = block % ratio * per_block + sector
                bitmap[bit // 8] |= 1 << bit % 8
    for chunk, bitmap in bitmaps.items():
        entries[chunk * (ratio + 1) + ratio] = end | PRESENT
        data.append(bytes(bitmap))
        end += MIB
    bat = struct.pack(f"<{len(entries)}Q", *entries)
    assert len(bat) <= MIB
    table = region_table((BAT_GUID, BAT, MIB), (METADATA_GUID, METADATA, MIB))
    disk = uuid.uuid5(uuid.NAMESPACE_DNS, name)
    head = b"vhdxfile".ljust(64 * KIB, b"\0")
    head += header(1, data_write(name)).ljust(64 * KIB, b"\0")
    head += header(2, data_write(name)).ljust(64 * KIB, b"\0") + table + table
    return b"".join(
        [
            *(head.ljust(2 * MIB, b"\0"), bat.ljust(MIB, b"\0")),
            *(metadata(size, block_size, sector_size, disk, parent), *data),
        ]
    )


def data_write(name):
    """Returns the identity of the content of an image."""
    return uuid.uuid5(uuid.NAMESPACE_URL, name)


def parent_entries(name, path, other=None):
    """Returns the entries of a parent locator, as Hyper-V writes them."""
    entries = {"parent_linkage": f"{{{data_write(name)}}}", "relative_path": path}
    if other is not None:
        entries["parent_linkage"] = f"{{{data_write(other)}}}"
        entries["parent_linkage2"] = f"{{{data_write(name)}}}"
    entries["absolute_win32_path"] = "C:\\disks\\" + path.rsplit("\\", 1)[-1]
    return entries


# The log


def log_entry(log_guid, sequence, tail, changes, file_size):
    """Returns an entry of the log.

    `changes` are offsets, each with the new content of a sector, or with a number of zero bytes.
    """
    descriptors, data = b"", b""
    for offset, content in changes:
        if isinstance(content, int):
            descriptors += b"zero" + bytes(4) + struct.pack("<QQQ", content, offset, sequence)
            continue
        assert len(content) == LOG_SECTOR
        descriptors += b"desc" + content[-4:] + content[:8] + struct.pack("<QQ", offset, sequence)
        data += b"data" + struct.pack("<I", sequence >> 32) + content[8:-4]
        data += struct.pack("<I", sequence & 0xFFFFFFFF)
    descriptors = descriptors.ljust(-(-(64 + len(descriptors)) // LOG_SECTOR) * LOG_SECTOR - 64, b"\0")
    length = 64 + len(descriptors) + len(data)
    head = b"loge" + bytes(4) + struct.pack("<IIQII", length, tail, sequence, len(changes), 0)
    head += log_guid + struct.pack("<QQ", file_size, file_size)
    return sealed(head + descriptors + data)


def with_log(image, pieces, log_guid):
    """Returns an image with a log that has to be replayed.

    `pieces` are offsets in the ring, each with the bytes there. They wrap around its end.
    """
    image = bytearray(image)
    for at in HEADERS:
        image[at + 48 : at + 64] = log_guid
    length, offset = struct.unpack_from("<IQ", image, HEADERS[0] + 68)
    for at, data in pieces:
        for start in range(0, len(data), LOG_SECTOR):
            place = offset + (at + start) % length
            image[place : place + LOG_SECTOR] = data[start : start + LOG_SECTOR]
    return reseal(image)


def bat_of(image):
    """Returns the offset of the BAT of an image."""
    table = REGION_TABLES[0]
    for index in range(struct.unpack_from("<I", image, table + 8)[0]):
        at = table + 16 + index * 32
        if bytes(image[at : at + 16]) == guid(BAT_GUID):
            return struct.unpack_from("<Q", image, at + 16)[0]
    raise AssertionError("no BAT")
