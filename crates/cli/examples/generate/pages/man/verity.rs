//! The text of the pages of `blkhash verity`, except their options.

use super::{Sections, Text};

pub const TEXTS: &[Text] = &[
    Text {
        command: "blkhash verity",
        what: "make and verify trees of fs-verity and dm-verity for any image",
        synopsis: &["COMMAND [OPTION]...", "help [COMMAND]"],
        before_options: VERITY,
        after_options: VERITY_AFTER,
    },
    Text {
        command: "blkhash verity digest",
        what: "print the fs-verity digest of images",
        synopsis: &["[OPTION]... IMAGE..."],
        before_options: DIGEST,
        after_options: DIGEST_AFTER,
    },
    Text {
        command: "blkhash verity format",
        what: "make the hash file of dm-verity for an image",
        synopsis: &["[OPTION]... DATA HASH"],
        before_options: FORMAT,
        after_options: FORMAT_AFTER,
    },
    Text {
        command: "blkhash verity verify",
        what: "find every block of an image that does not match its tree",
        synopsis: &["[OPTION]... DATA HASH [ROOT]"],
        before_options: VERIFY,
        after_options: VERIFY_AFTER,
    },
];

const VERITY: Sections = &[
    (
        "DESCRIPTION",
        &[
            "Commands for the Merkle trees with which the kernel verifies data as it is read: dm-verity for \
             block devices, fs-verity for files. They read images of any format, devices, partitions and \
             exports of NBD servers, use all processors, and do not hash zeros that nothing stores.",
        ],
    ),
    (
        "COMMANDS",
        &[
            "* blkhash-verity-digest(1): Print the fs-verity digest of images, like fsverity digest.",
            "* blkhash-verity-format(1): Make the hash file of dm-verity for an image, like veritysetup \
             format.",
            "* blkhash-verity-verify(1): Verify an image against its tree, and find every bad block.",
            "'blkhash verity help COMMAND' and 'blkhash verity COMMAND --help' print the usage of a command.",
        ],
    ),
];

const VERITY_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: Success.",
            "* 1: verify found blocks that do not match.",
            "* 2: Something could not be read or written, or the command line is wrong.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Print the root hash of dm-verity alone:",
            "    blksum --construction dm-verity disk.qcow2",
        ],
    ),
    (
        "SEE ALSO",
        &[
            "blkhash(1), blkhash-verity-digest(1), blkhash-verity-format(1), blkhash-verity-verify(1), \
             blksum(1), veritysetup(8), fsverity(1)",
        ],
    ),
];

const DIGEST: Sections = &[(
    "DESCRIPTION",
    &[
        "Prints the digest of fs-verity for the content of each image, in the form of fsverity digest. It is \
         the digest that fsverity measure prints for a file with this content.",
        "For an image that is not raw, fsverity digest prints another digest, that of the bytes of the file. \
         A note says so, unless an option selects the content (-f, --snapshot, --partition). With -f raw the \
         digest is that of the bytes of the file, as in fsverity digest.",
    ],
)];

const DIGEST_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &["* 0: Success.", "* 2: An image could not be read, or the command line is wrong."],
    ),
    (
        "EXAMPLES",
        &[
            "Print the digest of the content of an image:",
            "    blkhash verity digest disk.qcow2",
            "Print the digest of the file itself:",
            "    blkhash verity digest -f raw disk.qcow2",
            "Write the Merkle tree as well:",
            "    blkhash verity digest --out-merkle-tree disk.tree disk.img",
        ],
    ),
    ("SEE ALSO", &["blkhash-verity(1), blkhash-verity-verify(1), blksum(1), fsverity(1)"]),
];

const FORMAT: Sections = &[(
    "DESCRIPTION",
    &[
        "Makes the hash file of dm-verity for the content of DATA, and prints what veritysetup format prints. \
         With the same salt and UUID, the file is the same for all formats of an image, and the one that \
         veritysetup makes of its raw content.",
        "HASH is created if it is missing, with the mode of DATA. A file or device with other content than zeros is not \
         overwritten without --force, nor is one with hashes, whose root hash would change, nor \
         the file of --root-hash-file, if it is a regular file that is not empty. DATA and HASH may be one raw file, with --hash-offset behind the data.",
        "A size that is no multiple of the data block size is an error. --data-blocks leaves out the rest.",
    ],
)];

const FORMAT_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: Success.",
            "* 2: DATA could not be read, HASH could not be written, or the command line is wrong.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Make the hash file of an image:",
            "    blkhash verity format --root-hash-file disk.root disk.qcow2 disk.hash",
            "Make the same hash file each time:",
            "    blkhash verity format --salt - --uuid 01234567-89ab-4def-8123-456789abcdef disk.img disk.verity",
        ],
    ),
    ("SEE ALSO", &["blkhash-verity(1), blkhash-verity-verify(1), veritysetup(8)"]),
];

const VERIFY: Sections = &[(
    "DESCRIPTION",
    &[
        "Verifies the content of DATA against a hash file of dm-verity, or with --fs-verity against a Merkle \
         tree of fs-verity, and prints every block of the data and of the tree that does not match.",
        "The tree is verified from ROOT down. Where a block of the tree is damaged, the data below it is \
         verified as a whole: if a tree that is built from the data has the digest above the damaged block, \
         only the tree is damaged. Otherwise this data cannot be verified.",
        "If DATA has partitions, the output names the partition of each block.",
    ],
)];

const VERIFY_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: All data was verified, and the tree is intact.",
            "* 1: Something does not match.",
            "* 2: Something could not be read, or the command line is wrong.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Make a hash file, and verify an image against it:",
            "    blkhash verity format --root-hash-file disk.root disk.img disk.verity > disk.txt",
            "    blkhash verity verify --root-hash-file disk.root disk.qcow2 disk.verity",
        ],
    ),
    ("SEE ALSO", &["blkhash-verity(1), blkhash-verity-format(1), veritysetup(8), fsverity(1)"]),
];
