"""The tuples that functions of this package return. Their types are in `_types.pyi`."""

from collections import namedtuple

Extent = namedtuple("Extent", "offset length kind")
Extent.__doc__ = "Adjacent bytes of an image of one kind: `data`, or `zero` for zeros that need not be read."

File = namedtuple("File", "name size")
File.__doc__ = "A file that an image is stored in, and its size in bytes."

Member = namedtuple("Member", "format size files")
Member.__doc__ = "An image of a chain. `size` is None if only the program that reads it knows."

Partition = namedtuple("Partition", "number offset length")
Partition.__doc__ = "A partition of a disk. Numbers are as in Linux."

Snapshot = namedtuple("Snapshot", "id name created size vm_state_size")
Snapshot.__doc__ = """An internal snapshot of an image, which `Image(name, snapshot=id)` opens.

`created` is in seconds since 1970 in UTC, `size` of the content in bytes, and `vm_state_size` of the saved state
of the virtual machine, 0 without one. All of it is the claim of the image. Bytes of `id` and `name` that are not UTF-8 are
U+FFFD.
"""

Difference = namedtuple("Difference", "offset length kind")
Difference.__doc__ = """Adjacent blocks that differ in the same way.

`kind` is `changed` (other data), `written` (data where there should be zeros), `zeroed` (zeros where there should be
data), `left-only` or `right-only` (the other side ends before), `unreadable` (an image cannot be read there), or `unknown` (one side has no digests of these blocks,
so they were not compared).
"""

Owner = namedtuple("Owner", "kind structure names object file_offset")
Owner.__doc__ = "What blocks belong to, with the fields of `Owned`."


class Differences(list):
    """A list of `Difference`, with what the blocks are used for if that was asked for.

    `in_files`, `in_metadata`, `in_journal`, `in_free_space` and `elsewhere` are numbers of blocks that differ, as in `blkhash map
    diff --json`, and `ignored` the number of blocks in free space that `ignore_free` leaves out. `owners` has, for each difference, a tuple of at
    most 16 files and 16 other `Owner`, and is None without `owners`. `remarks` are as in `Owners`. All but `remarks` are None if it was not
    asked for, or if there is no file system that is read.
    """

    def __init__(
        self,
        differences=(),
        in_files=None,
        in_metadata=None,
        in_journal=None,
        in_free_space=None,
        elsewhere=None,
        ignored=None,
        owners=None,
        remarks=(),
    ):
        super().__init__(differences)
        self.in_files = in_files
        self.in_metadata = in_metadata
        self.in_journal = in_journal
        self.in_free_space = in_free_space
        self.elsewhere = elsewhere
        self.ignored = ignored
        self.owners = owners
        self.remarks = remarks


Audit = namedtuple("Audit", "missed listed needless clean unknown listed_bytes needless_bytes")
Audit.__doc__ = """The judgement of a list of changes.

`missed` has a `Difference` for each extent that changed and is not listed. The other fields are numbers: blocks that changed
and are listed, that are listed and equal, that are not listed and equal, and that one side does not know; bytes of the list,
and bytes of it in equal blocks.
"""

State = namedtuple("State", "commit created image_size changed_blocks changed_bytes extents")
State.__doc__ = """A state of a map.

`commit` is the number with which `Map` opens it, and `created` the time at which it was made, if the map says it. The other
fields are the size of the image in bytes, and how much differs from the state before: blocks, their bytes, and the extents in
which they are. These are None for the first state.
"""

Run = namedtuple("Run", "offset length kind digests")
Run.__doc__ = """Adjacent blocks of a map.

`kind` is `data`, `zero`, or `unknown` if the map does not have them. `digests` of data is a memoryview with a row for
each block. `numpy.asarray(run.digests)` is an array over the same memory.
"""

Block = namedtuple("Block", "offset length kind digest")
Block.__doc__ = "A block of a map. `digest` is None unless `kind` is `data`."


Copied = namedtuple(
    "Copied", "checksum size format written zeroed equal verified read_back destination_size shared"
)
Copied.__doc__ = """The result of a copy.

`checksum` is of the content, of `size` bytes, and `format` the source's. `written`, `zeroed` and `equal` are numbers
of bytes: those that were written, that became or stayed zero without being written, and that the destination had already.
`verified` is "readback" or "source". `read_back` is how the destination was read: "direct" is around the page cache,
"page-cache" through it, "nbd" from the server. It is None for "source", and so is `destination_size`, the size of the destination
in bytes, which may be larger than the content. `shared` is the number of bytes whose storage it shares with the source.
"""


SentDelta = namedtuple("SentDelta", "checksum size changed length")
SentDelta.__doc__ = """The result of sending a delta.

`checksum` is of the image, of `size` bytes. `changed` is the number of bytes in blocks that differ from the map, and `length` the
number of bytes of the delta.
"""


BtrfsFinding = namedtuple(
    "BtrfsFinding",
    "category subject reason device offset logical length blocks mirror mirrors good_mirrors rebuildable tree inode files"
    " files_complete",
)
BtrfsFinding.__doc__ = """A place on a btrfs file system that differs from what was written, or cannot be read.

`category` is a key of `BtrfsFileSystem.counts`, `subject` is "superblock", "tree block", "data", "parity", "device", "chunk",
"tree", "inode" or "file system", and `reason` a sentence. `offset` is the place on the device with the name `device`, and
`logical` the address in the file system. `length` is in bytes, and `blocks` the number of adjacent blocks that it has. `mirror`
is the number of the copy, of `mirrors`, of which those in `good_mirrors` are good. `rebuildable` says whether parity gives what
was written. `tree` and `inode` are numbers. `files` has the names of the files that the data belongs to, from the top of the
file system, and all of them if `files_complete` is true. What a finding does not have is None.
"""


class BtrfsFileSystem(
    namedtuple(
        "BtrfsFileSystem",
        "fsid label checksum devices missing_devices counts findings data_bytes metadata_bytes unchecked_bytes missing_bytes"
        " is_complete",
    )
):
    """The result for a btrfs file system.

    `devices` is a dict from the numbers of the devices to their names, and `missing_devices` has the numbers of those that were
    not given. `counts` is a dict from each category to the number of wrong blocks, and `findings` has the first ones. Bytes are
    those that were verified on all mirrors: of data, of metadata, and of data without checksums, which was only read and compared
    with other mirrors. `missing_bytes` were on missing devices. `is_complete` is true if nothing is missing or out of reach.
    """

    __slots__ = ()

    @property
    def is_clean(self):
        """Whether there are no findings in what was verified."""
        return not any(self.counts.values())


class BtrfsReport(namedtuple("BtrfsReport", "file_systems problems others")):
    """The result of `btrfs_verify()`.

    `file_systems` has a `BtrfsFileSystem` for each one, and at least one. `problems` says what could not be verified, such as a
    partition that is cut off, and `others` names the partitions without btrfs.
    """

    __slots__ = ()

    @property
    def is_clean(self):
        """Whether there are no findings in what was verified."""
        return all(system.is_clean for system in self.file_systems)

    @property
    def is_complete(self):
        """Whether everything was verified."""
        return not self.problems and all(system.is_complete for system in self.file_systems)


Verified = namedtuple("Verified", "structure count bytes")
Verified.__doc__ = "Structures of one kind whose checksums match: their number, and the bytes that the checksums cover."

Layer = namedtuple(
    "Layer",
    "place partition offset length layer label uuid verdict verified unprotected_bytes mismatches damaged unreadable skipped"
    " leaks outdated remarks",
)
Layer.__doc__ = """A layer of an image, such as its partition table or a file system.

`place` is "image", "disk", "partition 2" or "partition 2: LV root", and `partition` the number if the layer is all of a partition.
`offset` and `length` are the part of the disk that it is in. `layer` is its kind, such as "gpt" or "ext4", or "unknown". `verdict`
is "clean", "incomplete" (something could not be verified) or "damaged". `verified` has a `Verified` for each kind of structure, and
`unprotected_bytes` is the size of content without a checksum. `mismatches`, `damaged`, `unreadable` and `skipped` are numbers of
findings. The layer "image" has numbers of clusters that nothing uses (`leaks`) and of reference counts that are computed anew when
the image is next opened for writing (`outdated`). `remarks` are sentences. What a layer does not have is None.
"""

CheckFinding = namedtuple(
    "CheckFinding",
    "place partition layer problem structure offset layer_offset length object files reason count",
)
CheckFinding.__doc__ = """What is wrong with a layer of an image.

`place`, `partition` and `layer` are the `Layer`'s. `problem` is "mismatch" (a checksum does not match), "damaged" (bytes
violate the rules of the layer), "unreadable" or "skipped" (a limit was reached, or a feature is not read). `offset` is of
the `structure` in the content of the image, or in its file if `place` is "image", and `layer_offset` in the layer. `length` is
0 if unknown. `object` is the number of the inode or file record, or None, and `files` has at most 16 names of files that are hit. The
finding stands for `count` of them.
"""


class Checked(namedtuple("Checked", "verdict layers findings")):
    """The result of `check()`.

    `verdict` is the worst of the `layers`, which are in the order of the disk. `findings` has the first ones.
    """

    __slots__ = ()

    @property
    def is_clean(self):
        """Whether all checksums match, and everything was verified."""
        return self.verdict == "clean"


Owned = namedtuple(
    "Owned", "offset length partition file_system kind structure names object file_offset"
)
Owned.__doc__ = """Bytes of an image that belong to one thing.

`kind` is "file" (content), "metadata" (of a file system), "journal", "free" or "unknown", `structure` the name of a structure of
metadata, such as "directory" or "inode table", and `names` has the names of the file or directory from the top of the file system,
several if it has hard links. `object` is the number of the inode or file record, and `file_offset` the offset of the first byte in
the content of the file. `partition` is a number, and `file_system` a kind such as "ext4". What the bytes do not have is None.
"""

Owners = namedtuple("Owners", "extents remarks")
Owners.__doc__ = """The result of `owners()`.

`extents` has an `Owned` for each extent, by offset. `remarks` has pairs of the number of a partition, or None, and a sentence about
its file system, such as that its journal was not replayed.
"""


class Checksum(namedtuple("Checksum", "hexdigests size format tag")):
    """Checksums of an image: `hexdigests` by the name of the digest, the size in bytes, and the format.

    `tag` is how the checksum was computed, as in check files, such as "BLKSUM-SHA256-STREAMS4-64K", or with `expect` "SHA256"
    for the bytes of the file. It is None if there are several, if a tag cannot say it, and for the digest "null".
    """

    __slots__ = ()

    @property
    def hexdigest(self):
        """The checksum, if there is one."""
        if len(self.hexdigests) != 1:
            raise ValueError("there are several checksums: use hexdigests")
        return next(iter(self.hexdigests.values()))


SumLine = namedtuple("SumLine", "name hexdigest tag algorithm")
SumLine.__doc__ = """A line of a check file.

`tag` is how the checksum was computed, and None for a line that does not say it. `algorithm` is the digest that such a line may
name, as in "sha256:HEX  NAME".
"""

VerifiedSum = namedtuple("VerifiedSum", "name hexdigest tag verdict reason")
VerifiedSum.__doc__ = """A line of a check file that was compared with its image.

`verdict` is "ok", "failed" (the image has another checksum), "undecided" (it has this one, which proves nothing), "missing" or
"error" (it cannot be read). `reason` says more, unless it is ok. `tag` is the line's, or how the checksum turned out to be
computed.
"""


class Sums(list):
    """A list of `SumLine`. `malformed` has the numbers of lines that have no known form."""

    def __init__(self, lines=(), malformed=()):
        super().__init__(lines)
        self.malformed = malformed


class VerifiedSums(list):
    """A list of `VerifiedSum`. `malformed` has the numbers of lines that have no known form.

    `is_ok` says whether `blksum -c` ends with 0: some image matches, and nothing else happened.
    """

    def __init__(self, sums=(), malformed=(), is_ok=False):
        super().__init__(sums)
        self.malformed = malformed
        self.is_ok = is_ok
