//! The text of blkhash(1) and of the pages of its subcommands, except their options.

use super::{Sections, Text};

pub const TEXTS: &[Text] = &[
    Text {
        command: "blkhash",
        what: "show and measure digest algorithms, verify btrfs, map blocks, make and verify trees of verity",
        synopsis: &["COMMAND [OPTION]...", "help [COMMAND]..."],
        before_options: BLKHASH,
        after_options: BLKHASH_AFTER,
    },
    Text {
        command: "blkhash algorithms",
        what: "list digest algorithms and their implementations",
        synopsis: &["[OPTION]... [NAME]..."],
        before_options: ALGORITHMS,
        after_options: ALGORITHMS_AFTER,
    },
    Text {
        command: "blkhash bench",
        what: "measure digest algorithms on this machine",
        synopsis: &["[OPTION]...", "image [OPTION]... IMAGE"],
        before_options: BENCH,
        after_options: BENCH_AFTER,
    },
    Text {
        command: "blkhash bench image",
        what: "measure the storage of an image beside digest algorithms",
        synopsis: &["[OPTION]... IMAGE"],
        before_options: BENCH_IMAGE,
        after_options: BENCH_IMAGE_AFTER,
    },
    Text {
        command: "blkhash info",
        what: "show format, size, backing files, snapshots and partitions of images",
        synopsis: &["[OPTION]... IMAGE..."],
        before_options: IMAGE_INFO,
        after_options: IMAGE_INFO_AFTER,
    },
    Text {
        command: "blkhash btrfs",
        what: "verify the checksums of btrfs file systems, and explain them",
        synopsis: &["COMMAND [OPTION]...", "help [COMMAND]"],
        before_options: BTRFS,
        after_options: BTRFS_AFTER,
    },
    Text {
        command: "blkhash btrfs verify",
        what: "verify every checksum of btrfs file systems that are not mounted",
        synopsis: &["[OPTION]... IMAGE..."],
        before_options: VERIFY,
        after_options: VERIFY_AFTER,
    },
    Text {
        command: "blkhash btrfs info",
        what: "show the checksum algorithm of a btrfs file system",
        synopsis: &["[OPTION]... IMAGE|MOUNTPOINT..."],
        before_options: INFO,
        after_options: INFO_AFTER,
    },
    Text {
        command: "blkhash btrfs algorithms",
        what: "compare the checksum algorithms of btrfs",
        synopsis: &["[OPTION]..."],
        before_options: BTRFS_ALGORITHMS,
        after_options: BTRFS_ALGORITHMS_AFTER,
    },
    Text {
        command: "blkhash btrfs obscure-name",
        what: "find another file name with the same CRC-32C",
        synopsis: &["NAME..."],
        before_options: OBSCURE_NAME,
        after_options: OBSCURE_NAME_AFTER,
    },
];

const BLKHASH: Sections = &[
    (
        "DESCRIPTION",
        &["blkhash shows the digest algorithms of blksum(1) and how fast they are on this \
             machine, verifies the checksums of btrfs file systems in images and on devices, maps the \
             blocks of images and finds where images differ, and makes and verifies trees of \
             fs-verity and dm-verity. \
             Without a command it prints its usage."],
    ),
    (
        "COMMANDS",
        &[
            "* blkhash-algorithms(1): List the digest algorithms and their implementations.",
            "* blkhash-bench(1): Measure every implementation of every algorithm.",
            "* blkhash-bench-image(1): Measure the storage of an image beside digest algorithms.",
            "* blkhash-info(1): Show format, size, backing files, snapshots and partitions of images.",
            "* blkhash-btrfs(1): Overview of the commands for btrfs.",
            "* blkhash-btrfs-verify(1): Verify every checksum of btrfs file systems.",
            "* blkhash-btrfs-info(1): Show the checksum algorithm of a btrfs file system.",
            "* blkhash-btrfs-algorithms(1): Compare the checksum algorithms of btrfs.",
            "* blkhash-btrfs-obscure-name(1): Find another file name with the same CRC-32C.",
            "* blkhash-map(1): Overview of the commands for block maps.",
            "* blkhash-map-create(1): Make the map of an image.",
            "* blkhash-map-show(1): Show what maps hold.",
            "* blkhash-map-check(1): Check every byte of maps.",
            "* blkhash-map-checksum(1): Print checksums of images from their maps.",
            "* blkhash-map-verify(1): Find every block of an image that differs from its map.",
            "* blkhash-map-diff(1): Find the blocks that differ between maps and images.",
            "* blkhash-map-merge(1): Make one map from the maps of parts of an image.",
            "* blkhash-map-seal(1): Seal maps with a key.",
            "* blkhash-map-dups(1): Count blocks that occur more than once.",
            "* blkhash-map-export(1): Write a map in another format.",
            "* blkhash-verity(1): Overview of the commands for fs-verity and dm-verity.",
            "* blkhash-verity-digest(1): Print the fs-verity digest of images.",
            "* blkhash-verity-format(1): Make the hash file of dm-verity for an image.",
            "* blkhash-verity-verify(1): Find every block of an image that does not match its tree.",
            "'blkhash help COMMAND' and 'blkhash COMMAND --help' print the usage of a command.",
        ],
    ),
];

const IMAGE_INFO: Sections = &[(
    "DESCRIPTION",
    &[
        "Shows the format of each image, the size of its content, its files, and what --snapshot and --partition \
         of blksum(1) and of the commands of blkhash(1) can name: the internal snapshots of a qcow2 image, and the \
         partitions in a GPT or MBR. An .ova file is shown as the disks in it.",
        "Numbers of partitions are those of Linux. Their types and names, and all that is said about snapshots, are \
         claims of the image. No content is hashed, and the image is read as in blksum, with the sandbox. Tables \
         have at most 100 rows. --json has all.",
    ],
)];

const IMAGE_INFO_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &["* 0: Success.", "* 2: An image could not be read, or the command line is wrong."],
    ),
    (
        "EXAMPLES",
        &[
            "List the snapshots and partitions of an image:",
            "    blkhash info snapshots.qcow2",
            "Print the checksum of every partition:",
            "    for n in $(blkhash info --json partitioned.qcow2 | jq .partitions[].number); do blksum --partition $n partitioned.qcow2; done",
        ],
    ),
    ("SEE ALSO", &["blksum(1), blkhash(1), blkhash-btrfs-info(1), qemu-img(1), sfdisk(8)"]),
];

const BLKHASH_AFTER: Sections = &[
    (
        "ENVIRONMENT",
        &[
            "These variables apply to blksum(1) as well. A name without effect causes a warning.",
            "* BLKHASH_IMPLEMENTATION: Implementations to use instead of the fastest ones, separated by \
             commas. blkhash algorithms lists them. random is for tests: each batch of blocks is \
             hashed by another one.",
            "* BLKHASH_CPU_DISABLE: CPU features not to use: sha, avx2, avx512, sha-avx512 (kernels \
             that need both), separated by commas.",
        ],
    ),
    (
        "EXIT STATUS",
        &[
            "* 0: Success.",
            "* 1: An image could not be read, or the output could not be written.",
            "* 2: The command line is wrong.",
            "The commands for btrfs, maps and verity have exit statuses of their own: see their pages.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Print the usage, and that of a command:",
            "    blkhash help\nblkhash help btrfs verify",
            "Show the implementations of sha256, and which of them this CPU runs:",
            "    blkhash algorithms sha256",
            "Find out whether another digest algorithm makes a backup faster:",
            "    blkhash bench image /var/lib/images/disk.qcow2",
            "Verify the btrfs file systems in the image of a virtual machine:",
            "    blkhash btrfs verify disk.qcow2",
            "Make a map of an image, and find where a copy differs from it:",
            "    blkhash map create disk.qcow2\n\
             blkhash map verify disk.qcow2.blkmap /var/lib/images/disk.qcow2",
            "Measure without AVX-512:",
            "    BLKHASH_CPU_DISABLE=avx512 blkhash bench --filter sha256",
        ],
    ),
    (
        "SEE ALSO",
        &["blksum(1), blkhash-algorithms(1), blkhash-bench(1), blkhash-bench-image(1), \
             blkhash-btrfs(1), blkhash-btrfs-verify(1), blkhash-btrfs-info(1), \
             blkhash-btrfs-algorithms(1), blkhash-btrfs-obscure-name(1), blkhash-map(1), \
             blkhash-map-create(1), blkhash-map-show(1), blkhash-map-check(1), \
             blkhash-map-checksum(1), blkhash-map-verify(1), blkhash-map-diff(1), \
             blkhash-map-merge(1), blkhash-map-seal(1), blkhash-map-dups(1), \
             blkhash-map-export(1), blkhash-verity(1), blkhash-verity-digest(1), blkhash-verity-format(1), blkhash-verity-verify(1)"],
    ),
];

const ALGORITHMS: Sections = &[(
    "DESCRIPTION",
    &[
        "Lists the digest algorithms, each with the implementation that hashes many blocks at a \
         time. With NAMEs, shows everything that is known of these algorithms: their \
         implementations, and for how many blocks at a time each of them is used, or why it is not.",
        "The order of the implementations is a guess, from cycles that were measured on a few CPUs. \
         With --measure, all of them are measured on this CPU. blksum(1) measures as well: an image \
         with more than 64M of data times the implementations with its own blocks, and goes on with \
         the fastest. With --verbose it shows the result.",
        "Before its first use each implementation computes known digests. One that fails is not \
         used. The variables BLKHASH_IMPLEMENTATION and BLKHASH_CPU_DISABLE change the choice: see \
         blkhash(1).",
    ],
)];

const ALGORITHMS_AFTER: Sections = &[
    EXIT_STATUS,
    (
        "EXAMPLES",
        &[
            "List the algorithms:",
            "    blkhash algorithms",
            "Show the implementations of sha256 beside those of the kernel:",
            "    blkhash algorithms --kernel sha256",
            "Measure the implementations of sha256 on this CPU:",
            "    blkhash algorithms --measure sha256",
            "Print the names of the algorithms that are cryptographically strong:",
            "    blkhash algorithms --json | jq -r 'select(.strength == \"cryptographic\").name'",
        ],
    ),
    ("SEE ALSO", &["blkhash(1), blkhash-bench(1), blksum(1)"]),
];

const BENCH: Sections = &[(
    "DESCRIPTION",
    &[
        "Measures how long each implementation of each digest algorithm takes for blocks of data, as \
         file systems and blksum(1) hash them. With --quality, measures instead which errors the \
         checksums detect that are not cryptographic.",
        "blkhash bench image is another command: see blkhash-bench-image(1).",
    ],
)];

const BENCH_AFTER: Sections = &[
    (
        "FILTERS",
        &[
            "A GLOB is matched with the names of implementations and of algorithms, in upper or lower \
             case. * matches any text, ? one character. Names of rows of btrfs-progs' \
             hash-speedtest and of kernel drivers are known as well: CRC32C-SW and -ref (which \
             compute with tables), CRC32C-NI, -PCL and -arch, XXHASH, SHA256-ref, -NI, -AVX2, \
             -AVX512 and -arch, BLAKE2b-256-arch, BLAKE2-ref, -AVX2 and -AVX512.",
        ],
    ),
    (
        "FIGURES",
        &[
            "Cycles are cycles of the time stamp counter, which has the same rate whatever the clock \
             of the core does. Core cycles are shown as well where the kernel and the machine count \
             them. A row shows the median of ten samples and, after ±, the median distance from it. \
             Implementations are sampled in turns, so that a change of the clock affects all of them. \
             Nothing is subtracted: NULL-NOP is the cost of an empty call, NULL-MEMCPY that of \
             copying the blocks. The ratio is relative to crc32c in the same run.",
            "Below the table are the implementations that blksum(1) would choose for large images with \
             such blocks, and a line with all figures for a report. If the choice is not what \
             blkhash-algorithms(1) assumes for this CPU, please send that line to the project.",
            "With --cold the blocks come from a buffer of twice the size of the last-level cache, but \
             at most 1 GiB and a quarter of the free memory. The header says if it is smaller.",
        ],
    ),
    (
        "THE ANSWER",
        &[
            "The last line names the fastest algorithm for three uses, and in parentheses the fastest one \
             that withstands forgery: files in one stream and thread, images as blksum(1) hashes them \
             on all threads, and btrfs as its kernel computes checksums, if the kernel's driver is known \
             (see blkhash-btrfs-algorithms(1)). The table above it has their speeds.",
            "With --tools, other programs get 32 MiB as their standard input from memory, and as a file in \
             the page cache. Beside each is blksum --construction linear with the same digest. The best \
             of three runs counts. A program that fails or prints another value is an error, and one that \
             is not installed is named.",
        ],
    ),
    EXIT_STATUS,
    (
        "EXAMPLES",
        &[
            "Measure the checksums of btrfs, in the layout of its documentation:",
            "    blkhash bench --filter crc32c --filter xxhash --filter sha256 --filter BLAKE2b-256",
            "Print the same as hash-speedtest of btrfs-progs:",
            "    blkhash bench --format hash-speedtest --batch 1",
            "Hash blocks of 64K on one thread and on all, from the cache and from memory, and draw \
             a chart:",
            "    blkhash bench --block-size 64k --threads 1,all --cold --svg bench.svg",
            "Compare with sha256sum, b3sum and other programs:",
            "    blkhash bench --tools",
            "Measure which errors checksums detect:",
            "    blkhash bench --quality",
        ],
    ),
    ("SEE ALSO", &["blkhash(1), blkhash-algorithms(1), blkhash-bench-image(1)"]),
];

const BENCH_IMAGE: Sections = &[(
    "DESCRIPTION",
    &[
        "Reads the beginning of an image several times, through the page cache and around it, with \
         each digest algorithm, on one thread and on all. Shows how fast the storage is, how fast \
         each digest algorithm is, and which of the two limits a checksum. Where the storage is the \
         slower one, the choice of the algorithm makes no difference.",
        "The process restricts itself to reading the image, like blksum(1).",
    ],
)];

const BENCH_IMAGE_AFTER: Sections = &[
    EXIT_STATUS,
    (
        "EXAMPLES",
        &[
            "Find out whether another digest algorithm makes a backup faster:",
            "    blkhash bench image /var/lib/images/disk.qcow2",
            "Compare two algorithms on one, two and four threads:",
            "    blkhash bench image -d sha256 -d blake3 --threads 1,2,4 disk.qcow2",
        ],
    ),
    ("SEE ALSO", &["blkhash(1), blkhash-bench(1), blksum(1)"]),
];

const BTRFS: Sections = &[
    (
        "DESCRIPTION",
        &["Commands for the checksums that btrfs stores for its data and metadata. None of them \
             writes to a file system."],
    ),
    (
        "COMMANDS",
        &[
            "* blkhash-btrfs-verify(1): Verify every checksum of file systems on devices or in \
             images.",
            "* blkhash-btrfs-info(1): Show the checksum algorithm of a file system, and what \
             computes it.",
            "* blkhash-btrfs-algorithms(1): Compare the checksum algorithms that btrfs offers, on \
             this CPU.",
            "* blkhash-btrfs-obscure-name(1): Find another file name with the same CRC-32C.",
            "'blkhash btrfs help COMMAND' and 'blkhash btrfs COMMAND --help' print the usage of a \
             command.",
        ],
    ),
];

const BTRFS_AFTER: Sections = &[
    BTRFS_EXIT_STATUS,
    (
        "EXAMPLES",
        &[
            "Verify the file systems in the image of a virtual machine:",
            "    blkhash btrfs verify disk.qcow2",
            "Show which checksum algorithm a mounted file system has:",
            "    blkhash btrfs info /home",
        ],
    ),
    (
        "SEE ALSO",
        &["blkhash(1), blkhash-btrfs-verify(1), blkhash-btrfs-info(1), \
             blkhash-btrfs-algorithms(1), blkhash-btrfs-obscure-name(1), btrfs(5)"],
    ),
];

const VERIFY: Sections = &[(
    "DESCRIPTION",
    &[
        "Verifies every checksum of btrfs file systems that are not mounted: superblocks, tree \
         blocks and data, on all mirrors, on devices, in raw files or in images of whole disks. \
         Compares trees with each other as well. Never writes.",
        "The devices of a file system may be given in any order. A missing device is reported. In \
         an image of a whole disk every partition with btrfs is verified.",
        "For each error the output says what is wrong, where it is, whether another mirror is good, \
         and which files it belongs to. A summary says what was verified and what has no \
         checksums.",
        "A file system that is mounted for writing changes while it is read, which can cause errors \
         that are not there. Verify a snapshot of its image or device instead.",
    ],
)];

const VERIFY_AFTER: Sections = &[
    (
        "EXIT STATUS",
        &[
            "* 0: Everything that a mount could return is what was written, as far as anything in \
             the file system tells.",
            "* 1: Errors were found.",
            "* 2: Something could not be verified, a device is missing, or the command line is \
             wrong.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Verify the file systems in the image of a virtual machine:",
            "    blkhash btrfs verify disk.qcow2",
            "Verify the third partition of two disks that belong together:",
            "    blkhash btrfs verify --partition 3 /dev/sda /dev/sdb",
            "Verify an image from an unknown source, and follow no file that it names:",
            "    blkhash btrfs verify --untrusted upload.qcow2",
            "Print the paths of the files that are damaged:",
            "    blkhash btrfs verify --json disk.qcow2 | jq -r '.owners[]?.paths[]?.name'",
        ],
    ),
    (
        "SEE ALSO",
        &["blkhash(1), blkhash-btrfs(1), blkhash-btrfs-info(1), blksum(1), btrfs(5), \
             btrfs-check(8), btrfs-scrub(8)"],
    ),
];

const INFO: Sections = &[(
    "DESCRIPTION",
    &["Shows the checksum algorithm of a file system, the space that its checksums take, and the \
         implementation that blkhash btrfs verify uses for it. For a file system that is mounted, \
         shows what the kernel uses. If the kernel uses a slow driver although there is a faster \
         one for this CPU, names the module to load."],
)];

const INFO_AFTER: Sections = &[
    BTRFS_EXIT_STATUS,
    (
        "EXAMPLES",
        &[
            "Show the checksum algorithm of the file system in an image:",
            "    blkhash btrfs info disk.qcow2",
            "Show what the kernel uses for one that is mounted:",
            "    blkhash btrfs info /home",
        ],
    ),
    (
        "SEE ALSO",
        &["blkhash(1), blkhash-btrfs(1), blkhash-btrfs-algorithms(1), blkhash-btrfs-verify(1), \
             btrfs(5)"],
    ),
];

const BTRFS_ALGORITHMS: Sections = &[
    (
        "DESCRIPTION",
        &[
            "Compares the four checksum algorithms that btrfs offers: their size, whether collisions \
             are hard to make, and their speed on this host.",
            "Kernel is the speed of the file system, in MiB/s on one core. The kernel computes one block \
             after the other, with the driver of the highest priority in /proc/crypto. Its code cannot be \
             measured from a program, so code of the same kind is measured. Where no driver is loaded, \
             or nothing resembles it, the speed is unknown.",
            "Verify is the speed of blkhash btrfs verify, which computes 16 blocks at a time. It says \
             nothing about the file system. The last line says what follows from the column Kernel.",
        ],
    ),
    (
        "CHECKSUMS OF BTRFS",
        &[
            "* crc32c: The default, 4 bytes. It detects what hardware does to data: bits that flip, \
             blocks that get lost.",
            "* xxhash: 8 bytes. Errors on large and busy file systems do not go unnoticed by chance.",
            "* sha256, blake2b: 32 bytes that cannot be forged. Two blocks with the same checksum \
             are the same, which deduplication can rely on. sha256 is a standard of NIST. Where the CPU \
             has instructions for it and the kernel a driver that uses them, it is faster than blake2b, \
             otherwise blake2b is faster.",
            "All of them detect that data changed by accident. None of them proves that it was not \
             changed on purpose: a checksum is stored beside the data and can be replaced with it. The algorithm is chosen once, by mkfs.btrfs --csum.",
        ],
    ),
];

const BTRFS_ALGORITHMS_AFTER: Sections = &[
    BTRFS_EXIT_STATUS,
    (
        "EXAMPLES",
        &[
            "Compare the algorithms:",
            "    blkhash btrfs algorithms",
            "Show the space and the time that the checksums of 10 TiB take:",
            "    blkhash btrfs algorithms --data 10T",
        ],
    ),
    ("SEE ALSO", &["blkhash(1), blkhash-bench(1), blkhash-btrfs(1), btrfs(5), mkfs.btrfs(8)"]),
];

const OBSCURE_NAME: Sections = &[(
    "DESCRIPTION",
    &[
        "Finds for each NAME another name of the same length that has the same CRC-32C, and prints \
         it on a line of its own. The names consist of letters and digits where that is possible.",
        "Folders of btrfs find names by their CRC-32C. Dumps of file systems (btrfs-image -ss) \
         replace names by such other names, to hide them while folders still work.",
    ],
)];

const OBSCURE_NAME_AFTER: Sections = &[
    BTRFS_EXIT_STATUS,
    ("EXAMPLES", &["Hide two names:", "    blkhash btrfs obscure-name passwd id_rsa.pub"]),
    ("SEE ALSO", &["blkhash(1), blkhash-btrfs(1), btrfs-image(8)"]),
];

const EXIT_STATUS: (&str, &[&str]) = (
    "EXIT STATUS",
    &[
        "* 0: Success.",
        "* 1: An image could not be read, or the output could not be written.",
        "* 2: The command line is wrong.",
    ],
);

const BTRFS_EXIT_STATUS: (&str, &[&str]) = (
    "EXIT STATUS",
    &[
        "* 0: Success.",
        "* 1: Errors were found.",
        "* 2: Something could not be read or written, or the command line is wrong.",
    ],
);
