//! The text of the pages of `blkhash map`, except their options.

use super::{Sections, Text};

pub const TEXTS: &[Text] = &[
    Text {
        command: "blkhash map",
        what: "make maps of the blocks of images, and find where images differ",
        synopsis: &["COMMAND [OPTION]...", "help [COMMAND]"],
        before_options: MAP,
        after_options: MAP_AFTER,
    },
    Text {
        command: "blkhash map create",
        what: "make the map of an image",
        synopsis: &["[OPTION]... IMAGE"],
        before_options: CREATE,
        after_options: CREATE_AFTER,
    },
    Text {
        command: "blkhash map show",
        what: "show what maps hold",
        synopsis: &["[OPTION]... MAP..."],
        before_options: SHOW,
        after_options: SHOW_AFTER,
    },
    Text {
        command: "blkhash map check",
        what: "check every byte of maps",
        synopsis: &["[OPTION]... MAP..."],
        before_options: CHECK,
        after_options: CHECK_AFTER,
    },
    Text {
        command: "blkhash map checksum",
        what: "print checksums of images from their maps",
        synopsis: &["[OPTION]... MAP..."],
        before_options: CHECKSUM,
        after_options: CHECKSUM_AFTER,
    },
    Text {
        command: "blkhash map verify",
        what: "find every block of an image that differs from its map",
        synopsis: &["[OPTION]... MAP IMAGE"],
        before_options: VERIFY,
        after_options: VERIFY_AFTER,
    },
    Text {
        command: "blkhash map diff",
        what: "find the blocks that differ between maps and images",
        synopsis: &["[OPTION]... LEFT RIGHT"],
        before_options: DIFF,
        after_options: DIFF_AFTER,
    },
    Text {
        command: "blkhash map merge",
        what: "make one map from the maps of parts of an image",
        synopsis: &["[OPTION]... -o FILE PART..."],
        before_options: MERGE,
        after_options: MERGE_AFTER,
    },
    Text {
        command: "blkhash map seal",
        what: "seal maps with a key",
        synopsis: &["--key-file FILE MAP..."],
        before_options: SEAL,
        after_options: SEAL_AFTER,
    },
    Text {
        command: "blkhash map dups",
        what: "count blocks that occur more than once",
        synopsis: &["[OPTION]... MAP..."],
        before_options: DUPS,
        after_options: DUPS_AFTER,
    },
    Text {
        command: "blkhash map export",
        what: "write a map in another format",
        synopsis: &["--to FORMAT [-o FILE] MAP"],
        before_options: EXPORT,
        after_options: EXPORT_AFTER,
    },
];

const MAP: Sections = &[
    (
        "DESCRIPTION",
        &[
            "A block map is a file with the digest of every block of an image, as its guest sees it. \
             Compared with its map, an image is verified, and every block that differs is found, without a \
             second copy of the image. Two maps are compared without reading any image. A map is made in one \
             piece, or in parts on several machines, and an interrupted map is continued. The checksums of \
             blksum(1) are computed from a map without the image.",
            "By default, a block has 64 KiB and its digest is sha256, which takes 541 MB for 1 TiB of data. \
             Zeros take no space.",
        ],
    ),
    (
        "COMMANDS",
        &[
            "* blkhash-map-create(1): Make the map of an image, or of a part of it.",
            "* blkhash-map-show(1): Show what maps hold.",
            "* blkhash-map-check(1): Check every byte of maps.",
            "* blkhash-map-checksum(1): Print checksums of images from their maps.",
            "* blkhash-map-verify(1): Compare an image with its map, and find every block that differs.",
            "* blkhash-map-diff(1): Find the blocks that differ between maps and images.",
            "* blkhash-map-merge(1): Make one map from the maps of parts of an image.",
            "* blkhash-map-seal(1): Seal maps with a key.",
            "* blkhash-map-dups(1): Count blocks that occur more than once.",
            "* blkhash-map-export(1): Write a map in another format.",
            "'blkhash map help COMMAND' and 'blkhash map COMMAND --help' print the usage of a command.",
        ],
    ),
    (
        "USES",
        &[
            "* Backups and migrations: blkhash map verify finds where a restored or copied image differs from \
             the map that was made of the original.",
            "* Changes: blkhash map diff finds what changed between two days from their maps. --extents lists \
             the bytes to copy.",
            "* Large images: blkhash map create --resume goes on after an interruption. --shard divides an \
             image over machines for blkhash map create, and over nights for blkhash map verify.",
            "* Checksums: blkhash map checksum prints the checksums of blksum(1) that a map has, without \
             reading the image again.",
            "* Deduplication: blkhash map dups counts the blocks that images share.",
            "* Protection: blkhash map seal authenticates a map with a key.",
        ],
    ),
    (
        "MAPS",
        &[
            "A finished map is only appended to, unless it is made anew, and a commit ends it. A file without a commit at \
             its end is not finished. A state that is appended later, such as a seal, leaves the states before it \
             readable. MAP@N is the state after the final commit N, which blkhash map show --log lists. A file whose name is \
             MAP@N takes precedence.",
            "The content id of a map identifies the digests of all blocks, the size of the image, and \
             how the digests were made. With a cryptographic digest, maps with the same content id are maps \
             of the same content.",
            "A map describes the files of its image by their names, sizes and times, unless it was made with \
             --no-source. Nothing opens a file because a map names it.",
        ],
    ),
    (
        "COMPARISONS",
        &[
            "A comparison has a left side, the older state, and a right side, the newer one. Each is a \
             map, MAP@N or an image, which is recognized by its content. For blkhash map verify, the map is \
             the left side, and the image the right one. Maps that are compared need the same digest, block \
             size and salt. Images may have different formats.",
            "Each block compares in one of these ways:",
            "* equal: It is the same on both sides.",
            "* written: It differs, and is zeros on the left.",
            "* zeroed: It differs, and is zeros on the right.",
            "* changed: It differs, and is zeros on neither side.",
            "* not known: A map does not have it, because it is the map of a part.",
            "Blocks behind the end of the smaller image are a difference as well. Digests that are not \
             cryptographic do not always tell blocks apart.",
        ],
    ),
];

const MAP_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "All commands have these exit statuses:",
            "* 0: Success, and nothing differs.",
            "* 1: Something differs, a map is damaged, or parts are missing.",
            "* 2: Something could not be read, written or compared, or the command line is wrong.",
            "* 3: Running the command again cannot help: an image changed while it was read or since it was \
             mapped, or parts do not belong together. A job should not be retried.",
            "* 4: Another process writes the map of create or merge. Trying again later helps.",
        ],
    ),
    FILES,
    (
        "EXAMPLES",
        &[
            "Make the map of an image, and show it:",
            "    blkhash map create disk.qcow2\nblkhash map show disk.qcow2.blkmap",
            "Verify a copy that was restored from a backup:",
            "    blkhash map verify disk.qcow2.blkmap restored.qcow2",
            "Find what changed from Monday to Tuesday:",
            "    blkhash map diff monday.blkmap tuesday.blkmap",
            "Check an image with the checksum from a map:",
            "    blkhash map checksum disk.qcow2.blkmap | blksum -c",
        ],
    ),
    (
        "SEE ALSO",
        &[
            "blkhash(1), blkhash-map-create(1), blkhash-map-show(1), blkhash-map-check(1), \
             blkhash-map-checksum(1), blkhash-map-verify(1), blkhash-map-diff(1), blkhash-map-merge(1), \
             blkhash-map-seal(1), blkhash-map-dups(1), blkhash-map-export(1), blksum(1)",
            "docs/map-format.md specifies the file format.",
        ],
    ),
];

const CREATE: Sections = &[
    (
        "DESCRIPTION",
        &[
            "Reads IMAGE and writes the digests of its blocks to a map. The map is IMAGE.blkmap, with --shard \
             IMAGE.K-of-N.blkmap, or the file of -o, which the map of a URI needs. Prints nothing without \
             --checksum.",
            "Digest and block size decide which checksums the map can give later. Maps with others cannot be \
             compared with it. Larger blocks make smaller maps, and coarser differences.",
            "Image and map must be different files, and only one process can write a map at a time.",
        ],
    ),
    (
        "INTERRUPTED MAPS",
        &[
            "A map is written in place, and is finished once a commit is at its end. Until then, a checkpoint \
             is written every 30 seconds. --resume continues a map behind its last checkpoint, makes it \
             if there is none, and does nothing if it is finished. So a job that may be killed can always be \
             run with --resume. It needs the same digest, block size, salt and shard as before, and an image \
             whose files have the same sizes, times and inodes. Otherwise the exit status is 3, and --force \
             makes the map anew.",
            "--if-changed does nothing if there is a finished map of the image as it is, and makes it anew \
             if the image changed since.",
            "Devices and exports of NBD servers have no time of their last change. --if-changed always makes \
             their maps anew, and --resume compares only their size.",
        ],
    ),
    (
        "SHARDS",
        &[
            "--shard K/N makes the map of the Kth of N parts, K from 1. The parts have about the same size, \
             do not overlap, and cover the image. They can be made at the same time on different machines. \
             blkhash-map-merge(1) makes one map of them.",
            "auto/N takes K from the job of an array (see ENVIRONMENT), so that all jobs run the same command. \
             {shard} in the name of -o becomes K-of-N.",
        ],
    ),
];

const CREATE_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: The map is finished.",
            "* 2: The image could not be read, the map could not be written or exists already, or the command \
             line is wrong.",
            "* 3: The image changed while it was read, or is not the one of the map to continue.",
            "* 4: Another process writes the map.",
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            "--shard auto/N uses the first one that is set:",
            "* JOB_COMPLETION_INDEX: The number of a pod in an indexed job of Kubernetes, from 0.",
            "* SLURM_ARRAY_TASK_ID: The number of a task in an array of Slurm. Arrays must be 1-N.",
        ],
    ),
    FILES,
    (
        "EXAMPLES",
        &[
            "Make the map of an image, disk.qcow2.blkmap:",
            "    blkhash map create disk.qcow2",
            "Make it anew if the image changed:",
            "    blkhash map create --if-changed disk.qcow2",
            "Make the map of a device, and go on with it if the job was killed:",
            "    blkhash map create --resume -o sda.blkmap /dev/sda",
            "Make a map, and print the checksum of blksum(1) of the same pass:",
            "    blkhash map create --checksum disk.img",
            "Make the first of two parts, part-1-of-2.blkmap:",
            "    blkhash map create --shard 1/2 -o part-{shard}.blkmap disk.img",
        ],
    ),
    ("SEE ALSO", &["blkhash-map(1), blkhash-map-merge(1), blkhash-map-verify(1), blksum(1)"]),
];

const SHOW: Sections = &[(
    "DESCRIPTION",
    &[
        "Shows the image of each map, the digest, the numbers of blocks, the root and the content id, when and \
         how the map was made, and whether it is sealed. The root is that of a Merkle tree over the digests. \
         For sha256 without a salt, and an image of at least two whole blocks and no short one, it is the \
         root hash of veritysetup format with --salt -, --hash-block-size 4096 and the block size of the map as --data-block-size.",
        "Reads only the tables of a map. blkhash-map-check(1) checks all of it.",
    ],
)];

const SHOW_AFTER: Sections = &[
    READ_EXIT_STATUS,
    (
        "EXAMPLES",
        &[
            "Show a map:",
            "    blkhash map show disk.blkmap",
            "List its commits, and show the first one:",
            "    blkhash map show --log disk.blkmap\nblkhash map show disk.blkmap@1",
            "Print the content id, to keep it elsewhere:",
            "    blkhash map show --id disk.blkmap",
        ],
    ),
    ("SEE ALSO", &["blkhash-map(1), blkhash-map-check(1), blkhash-map-create(1), veritysetup(8)"]),
];

const CHECK: Sections = &[(
    "DESCRIPTION",
    &[
        "Reads all of each map and checks every page and table with its hash, everything that must be zeros, \
         the root, and all commits before the last one. Does not read an image: see blkhash-map-verify(1).",
        "With --key-file, a map must be sealed with this key. Without it, a seal is not checked, and the \
         output says so. A map without a seal is not protected from other users that can write to it.",
    ],
)];

const CHECK_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: All maps are as they were written.",
            "* 1: A map is damaged or not finished, or is not sealed with the key.",
            "* 2: A file could not be read or is not a map, or the command line is wrong.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Check a map:",
            "    blkhash map check disk.blkmap",
            "Check that a map was sealed with a key:",
            "    blkhash map check --key-file backup.key sealed.blkmap",
        ],
    ),
    ("SEE ALSO", &["blkhash-map(1), blkhash-map-seal(1), blkhash-map-verify(1)"]),
];

const CHECKSUM: Sections = &[(
    "DESCRIPTION",
    &[
        "Computes checksums of images from their maps, without reading the images, and prints them as \
         blksum(1) does. The lines name the image that a map records, in the folder of the map, or \
         the map without .blkmap.",
        "blksum -c needs the same --digest, --construction and --block-size to check a line without a tag, \
         unless they are its defaults. With --tag, or several constructions, the lines name them.",
        "A map has the checksums with its own digest and block size: streams:N, flat and concat of any map \
         without a salt, dm-verity if the image consists of whole blocks, fs-verity for sha256 and sha512 \
         without a salt, linear for CRCs without a salt. It must be the map of the whole image.",
    ],
)];

const CHECKSUM_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: Success.",
            "* 2: A map could not be read or does not have the checksum, or the command line is wrong.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Check an image with the checksum from its map:",
            "    blkhash map checksum disk.blkmap | blksum -c",
            "Print other checksums:",
            "    blkhash map checksum --construction flat --construction dm-verity disk.blkmap",
        ],
    ),
    ("SEE ALSO", &["blkhash-map(1), blkhash-map-create(1), blksum(1)"]),
];

const VERIFY: Sections = &[(
    "DESCRIPTION",
    &[
        "Reads IMAGE and compares each block with its digest in MAP. Prints a summary, with --picture where \
         the differences are, and every range of blocks that differs, with the partition that it is in. \
         The image may have another format than the one that was mapped, and any name. blkhash-map(1) \
         explains the differences.",
        "With --shard K/N, verifies the Kth of N parts. N runs verify all of the image, for \
         example one on each day of the week. --range verifies the pages of the map that have these bytes. \
         A page has 128 blocks with sha256.",
        "If other users can write to the map, seal it with blkhash-map-seal(1), and pass --key-file.",
    ],
)];

const VERIFY_AFTER: Sections = &[
    COMPARE_EXIT_STATUS,
    (
        "ENVIRONMENT",
        &[
            "--shard auto/N uses JOB_COMPLETION_INDEX and SLURM_ARRAY_TASK_ID as blkhash-map-create(1) does.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Verify a copy that was restored from a backup:",
            "    blkhash map verify disk.blkmap restored.qcow2",
            "Verify another seventh on each day of the week:",
            "    blkhash map verify --shard $(date +%u)/7 disk.blkmap /dev/sda",
            "Verify the first 4 MiB:",
            "    blkhash map verify --range 0-4M disk.blkmap disk.qcow2",
            "Draw where a copy differs:",
            "    blkhash map verify --picture=where.svg disk.blkmap damaged.img",
        ],
    ),
    (
        "SEE ALSO",
        &["blkhash-map(1), blkhash-map-create(1), blkhash-map-diff(1), blkhash-map-seal(1)"],
    ),
];

const DIFF: Sections = &[(
    "DESCRIPTION",
    &[
        "Compares LEFT, the older state, with RIGHT, the newer one. Prints a summary, with --picture where the \
         differences are, and every range of blocks that differs, with the partition that it is in. \
         blkhash-map(1) explains sides and differences.",
        "Two maps are compared without reading an image, and where their pages are equal, without reading the \
         digests. Of a map and an image, the image is read. Two images are compared byte by byte, whatever \
         their formats.",
        "--partition, --snapshot and --format apply to both sides if both are images, and are refused for two \
         maps. To compare a snapshot with the current state of its image, make a map of the snapshot with \
         blkhash-map-create(1), and compare the image with it.",
        "--extents prints what a copy of LEFT needs from RIGHT, as offset and length in bytes. Where RIGHT is \
         smaller, the copy must be cut as well.",
    ],
)];

const DIFF_AFTER: Sections = &[
    COMPARE_EXIT_STATUS,
    (
        "EXAMPLES",
        &[
            "Find what changed from Monday to Tuesday, and draw it:",
            "    blkhash map diff --picture monday.blkmap tuesday.blkmap",
            "Find what changed since the first state in a map:",
            "    blkhash map diff disk.blkmap@1 disk.blkmap",
            "Find whether two images have the same content:",
            "    blkhash map diff --quiet disk.img disk.qcow2",
            "List the bytes to copy in order to update a copy:",
            "    blkhash map diff --extents monday.blkmap tuesday.img",
        ],
    ),
    ("SEE ALSO", &["blkhash-map(1), blkhash-map-create(1), blkhash-map-verify(1)"]),
];

const MERGE: Sections = &[(
    "DESCRIPTION",
    &[
        "Makes one map from maps of parts of an image, such as those of blkhash map create --shard. The parts \
         may come in any order, and may overlap if they agree. They need the same digest, block size, salt \
         and size of the image, and must not be of different states of the image, by the sizes and times of \
         its files. Reads no image.",
        "If parts are missing, the map is that of the parts that are there, and the missing shards are \
         listed. It can be merged with them later.",
        "Merging a single map makes one without its older states.",
    ],
)];

const MERGE_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: The map is complete.",
            "* 1: Parts are missing.",
            "* 2: A part could not be read, the map could not be written or exists already, or the command \
             line is wrong.",
            "* 3: The parts do not belong together.",
            "* 4: Another process writes the map.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Make a map in two parts, and merge them:",
            "    blkhash map create --shard 1/2 -o part-{shard}.blkmap disk.img\n\
             blkhash map create --shard 2/2 -o part-{shard}.blkmap disk.img\n\
             blkhash map merge -o whole.blkmap part-*.blkmap",
        ],
    ),
    ("SEE ALSO", &["blkhash-map(1), blkhash-map-create(1)"]),
];

const SEAL: Sections = &[(
    "DESCRIPTION",
    &[
        "Checks each map, and appends a commit with an HMAC-SHA-256 of it, which cannot be computed without \
         the key. A map that was changed since does not pass the commands that take --key-file. The states \
         before are not sealed.",
        "The key is the content of a file of 16 to 4096 bytes, which should be random. Keep it where other users that \
         can write to the map cannot read it. The digests in the map are not secret.",
        "A seal does not say that a map is the newest one: an older sealed map can take its place. Keep the \
         content id of blkhash map show --id elsewhere to detect that.",
        "blkhash map create and blkhash map merge seal with --key-file from the start. The parts that merge \
             takes must then be sealed with the same key.",
    ],
)];

const SEAL_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: All maps were sealed.",
            "* 2: A map or the key could not be read, a map is damaged or could not be written, or the command \
             line is wrong.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Make a key, seal a map with it, and check the seal:",
            "    (umask 077 && head -c 32 /dev/urandom > backup.key)\n\
             blkhash map seal --key-file backup.key disk.blkmap\n\
             blkhash map check --key-file backup.key disk.blkmap",
        ],
    ),
    ("SEE ALSO", &["blkhash-map(1), blkhash-map-check(1), blkhash-map-verify(1)"]),
];

const DUPS: Sections = &[(
    "DESCRIPTION",
    &[
        "Counts the blocks of all maps together: those with zeros, the different ones among the others, and \
         those that repeat another one. The size of the last is what deduplication with this block \
         size could save. Reads no image.",
        "The maps need the same digest, block size and salt, and a digest that is cryptographic. The counts of \
         many blocks are estimated from some of the digests. The output says so.",
    ],
)];

const DUPS_AFTER: Sections = &[
    READ_EXIT_STATUS,
    (
        "EXAMPLES",
        &[
            "Show what deduplication of two images could save:",
            "    blkhash map dups monday.blkmap tuesday.blkmap",
        ],
    ),
    ("SEE ALSO", &["blkhash-map(1), blkhash-map-create(1), blkhash-map-export(1)"]),
];

const EXPORT: Sections = &[
    (
        "DESCRIPTION",
        &["Writes the digests of a map in another format, to standard output or a file."],
    ),
    (
        "FORMATS",
        &[
            "* lines: Offset, length and digest of each block with data. A run of zeros is one line with zero, \
             a run of blocks that are not known one with unknown.",
            "* csv: The same as a table with the columns block, offset, length, kind and digest.",
            "* json: The same as JSON objects, one on each line, and a summary on the last one.",
            "* bmap: The file that bmaptool takes to copy an image and verify it. Each block with data is a \
             range. It leaves out zeros, so bmaptool does not write them. Needs the map of a whole image, \
             without a salt, and a digest that bmaptool knows, such as sha256.",
        ],
    ),
];

const EXPORT_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: Success.",
            "* 2: The map could not be read or does not fit the format, the output could not be written, or \
             the command line is wrong.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "List the blocks that have data:",
            "    blkhash map export --to lines disk.blkmap | grep -v zero",
            "Write the file for bmaptool:",
            "    blkhash map export --to bmap -o disk.bmap disk.blkmap",
        ],
    ),
    ("SEE ALSO", &["blkhash-map(1), blkhash-map-create(1), blkhash-map-show(1)"]),
];

const READ_EXIT_STATUS: (&str, &[&str]) = (
    "EXIT STATUS",
    &["* 0: Success.", "* 2: A map could not be read, or the command line is wrong."],
);

const COMPARE_EXIT_STATUS: (&str, &[&str]) = (
    "EXIT STATUS",
    &[
        "* 0: Nothing differs.",
        "* 1: Something differs.",
        "* 2: Something could not be read or compared, some blocks are not known and no others differ, or the \
         command line is wrong.",
        "* 3: An image changed while it was read.",
    ],
);

const FILES: (&str, &[&str]) = (
    "FILES",
    &["* IMAGE.blkmap: The map of IMAGE.", "* IMAGE.K-of-N.blkmap: The map of its Kth of N parts."],
);
