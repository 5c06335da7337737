//! The manual pages, made from the argument parsers.

use std::io::{self, Write};

use blkhash_cli::{blkhash, blksum};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::{Kind, Page};

pub fn pages() -> io::Result<Vec<Page>> {
    Ok(vec![
        Page { kind: Kind::Man, file_name: "blksum.1".to_owned(), content: blksum_page()? },
        Page { kind: Kind::Man, file_name: "blkhash.1".to_owned(), content: blkhash_page()? },
    ])
}

fn blksum_page() -> io::Result<Vec<u8>> {
    let command = blksum::command()
        // What comes after the options in --help has sections of its own here.
        .after_help(None)
        .mut_arg("digest", |digest| {
            let help = digest.get_help().map(ToString::to_string).unwrap_or_default();
            digest.help(help + ". -a and --algorithm are the same.")
        });
    let man = Man::new(command);
    let mut page = Vec::new();
    let what = "print or check checksums of disk images";
    write_head(&mut page, "blksum", what, &[" [OPTION]... [IMAGE]..."])?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    write_sections(&mut page, BLKSUM)?;
    Ok(page)
}

/// One page for all subcommands, as there is one binary.
fn blkhash_page() -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let what = "show and measure what blksum hashes with, and verify btrfs";
    let synopsis = [
        " algorithms [OPTION]... [NAME]...",
        " bench [OPTION]...",
        " bench image [OPTION]... IMAGE",
        " btrfs verify [OPTION]... IMAGE...",
        " btrfs info [OPTION]... IMAGE|MOUNTPOINT...",
        " btrfs algorithms [OPTION]...",
        " btrfs obscure-name NAME...",
    ];
    write_head(&mut page, "blkhash", what, &synopsis)?;
    write_sections(&mut page, BLKHASH_BEFORE)?;
    for command in blkhash::command().get_subcommands() {
        write_options(&mut page, command, "OPTIONS OF")?;
    }
    write_sections(&mut page, BLKHASH)?;
    Ok(page)
}

/// The options of a subcommand, then those of its own subcommands.
fn write_options(page: &mut Vec<u8>, command: &Command, before: &str) -> io::Result<()> {
    let title = format!("{before} {}", command.get_name().to_uppercase());
    let mut section = Vec::new();
    // What comes after the options in --help has sections of its own here.
    Man::new(command.clone().after_help(None)).render_options_section(&mut section)?;
    let section = String::from_utf8_lossy(&section);
    let head = format!(".SH \"{title}\"");
    page.extend_from_slice(section.replacen(".SH OPTIONS", &head, 1).as_bytes());
    command.get_subcommands().try_for_each(|inner| write_options(page, inner, &title))
}

/// Everything before the description.
fn write_head(page: &mut Vec<u8>, command: &str, what: &str, synopsis: &[&str]) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let title = command.to_uppercase();
    writeln!(page, r#".TH {title} 1 "" "blkhash {version}" "User Commands""#)?;
    let mut name = Roff::new();
    name.control("SH", ["NAME"]);
    name.text([roman(format!("{command} - {what}"))]);
    name.to_writer(page)?;
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]);
    for (index, arguments) in synopsis.iter().enumerate() {
        if index > 0 {
            section.control("br", []);
        }
        section.text([bold(command), roman(*arguments)]);
    }
    section.to_writer(page)
}

fn write_sections(page: &mut Vec<u8>, sections: Sections) -> io::Result<()> {
    for (title, paragraphs) in sections {
        let mut section = Roff::new();
        section.control("SH", [*title]);
        for paragraph in *paragraphs {
            write_paragraph(&mut section, paragraph);
        }
        section.to_writer(page)?;
    }
    Ok(())
}

/// A paragraph; one that is indented is shown as it stands, and `TERM: TEXT` that starts with `*` is
/// an item.
fn write_paragraph(section: &mut Roff, paragraph: &str) {
    if let Some(code) = paragraph.strip_prefix("    ") {
        section.control("PP", []);
        section.control("RS", ["4"]);
        section.control("nf", []);
        section.text([roman(code)]);
        section.control("fi", []);
        section.control("RE", []);
    } else if let Some((term, text)) =
        paragraph.strip_prefix("* ").and_then(|item| item.split_once(": "))
    {
        section.control("TP", []);
        section.text([bold(term)]);
        section.text([roman(text)]);
    } else {
        section.control("PP", []);
        section.text([roman(paragraph)]);
    }
}

/// Titles and paragraphs.
type Sections = &'static [(&'static str, &'static [&'static str])];

const BLKSUM: Sections = &[
    (
        "CONSTRUCTIONS",
        &[
            "Images are hashed in blocks, many at a time, and blocks of zeros are not hashed at \
             all. The construction says how the digests of the blocks become one checksum. It \
             changes the value, and so do the digest algorithm and the block size.",
            "* streams:4: The default, and the checksum of blksum 0.3 to 0.7. 0.8 had streams:32, \
             0.9 had streams:64.",
            "* flat: The checksum of blksum 0.10 and later.",
            "* concat: The digest of the blocks' digests, as oVirt has it (with blake2b256 and \
             blocks of 4M).",
            "* linear: The digest of the content itself. With -f raw it is what sha256sum, b3sum \
             and others print for the file.",
        ],
    ),
    (
        "CHECK FILES",
        &[
            "With --check the files hold lines as blksum writes them, or as sha256sum, openssl \
             dgst and the BSDs do:",
            "* CHECKSUM  NAME: The checksum is computed with the parameters on the command line or \
             their defaults. Its length must be that of the digest.",
            "* BLKSUM-SHA256-STREAMS4-64K (NAME) = CHECKSUM: The tag has all parameters, whatever \
             the command line says.",
            "* SHA256 (NAME) = CHECKSUM: A plain tag always means the bytes of the file itself \
             (-f raw --construction linear), as distributions publish them.",
            "Lines that start with # and empty lines are ignored. A line that starts with a \
             backslash has a name in which \\n, \\r and \\\\ are escapes. Names that are URIs are \
             refused without --allow-uri.",
        ],
    ),
    (
        "FORMATS",
        &[
            "raw and qcow2 are read by blksum itself. vmdk, vdi, vhdx, vpc, qed, parallels, qcow \
             (version 1), bochs, cloop, dmg and luks are read by qemu-nbd, which is started for the \
             image, confined to it, and gone afterwards. The format is told from the content.",
            "Files that an image names are opened by blksum as --follow says, and never by QEMU.",
        ],
    ),
    (
        "STANDARD INPUT",
        &["If standard input is a file, it is read like that file, raw from the current offset \
             if that is not 0. A pipe is raw; one that begins like an image of another format is \
             refused, unless -f raw says that its bytes are meant. The same holds for FIFOs."],
    ),
    (
        "NETWORK BLOCK DEVICES",
        &[
            "An IMAGE may be the URI of an export of an NBD server. It is raw unless --format says \
             otherwise. This needs libnbd.so.0 (Debian: libnbd0, Fedora: libnbd).",
            "* nbd://HOST[:PORT]/EXPORT: Over TCP, not encrypted.",
            "* nbds://[USER@]HOST[:PORT]/EXPORT: Over TCP, with TLS or not at all.",
            "* nbd+unix:///EXPORT?socket=PATH: Over a unix socket.",
            "* nbd+vsock://[CID][:PORT]/EXPORT: Over a socket of the hypervisor.",
            "nbds+unix and nbds+vsock are these with TLS. The parameters tls-certificates=DIR and \
             tls-psk-file=FILE name what it needs; in check files they are refused. There are as \
             many connections as --threads, if the server says that several are safe. What the \
             server calls zeros is not read.",
        ],
    ),
    (
        "SANDBOX",
        &["Before the first image is opened, blksum takes from itself the right to do anything \
             else: with Landlock, where the kernel has it (Linux 5.13; TCP from 6.7 on), it reads \
             beneath the folders of the images (with --follow=none the images alone, with \
             --follow=any everything), runs programs of the system, connects to the servers of \
             URIs that it was given, and neither writes nor listens anywhere. In check mode these \
             are the images that the check files list, if they can be read in advance: 16 MiB of \
             them at most, and of a pipe what comes within a second. Otherwise every file may be \
             read. --verbose says what is in force, --no-sandbox does without."],
    ),
    (
        "EXIT STATUS",
        &[
            "* 0: All images were hashed, or matched.",
            "* 1: An image or check file could not be read, an image did not match or changed while \
             it was read, or the output could not be written.",
            "* 2: The command line is wrong.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "One checksum, whatever the format:",
            "    blksum disk.raw disk.qcow2",
            "Write a file of checksums that say what they are, and check it later:",
            "    blksum --tag *.qcow2 > CHECKSUMS\nblksum -c CHECKSUMS",
            "Two checksums of an image that is read once, one of them as sha256sum has it:",
            "    blksum -d blake3 -d sha256:linear disk.qcow2",
            "Check what a distribution publishes, while the images are where they are:",
            "    blksum -c --construction linear -f raw --ignore-missing SHA256SUMS",
            "Compare with what blksum 0.11 printed:",
            "    blksum --construction flat disk.qcow2",
            "An image from somebody else: follow no file that it names.",
            "    blksum --untrusted upload.qcow2",
            "What a server exports, while it may be silent for no more than ten seconds:",
            "    blksum --timeout 10 nbd://localhost/disk",
            "All images of a folder, for a program:",
            "    blksum -r --json /var/lib/images",
        ],
    ),
    (
        "NOTES",
        &[
            "The released blksum of the blkhash project has -c for --cache and -t for --threads; \
             here they mean --check and --text, as in sha256sum.",
            "QEMU rounds a raw image up to a multiple of 512 bytes. The checksum is exact to the \
             byte, so a raw image of another size and its conversion to qcow2 have different \
             checksums; blksum says so.",
        ],
    ),
    ("SEE ALSO", &["blkhash(1), sha256sum(1), b3sum(1), qemu-img(1), qemu-nbd(8), nbdinfo(1)"]),
];

const BLKHASH_BEFORE: Sections = &[(
    "DESCRIPTION",
    &[
        "* blkhash algorithms: Lists the digest algorithms, each with the implementation that is \
         used for many blocks at a time. With NAMEs, shows all that is known of these, and which \
         of their implementations is used for how many blocks at a time, or why not.",
        "* blkhash bench: Measures how long every implementation takes for blocks of data, as \
         file systems and blksum hash them. With --quality it measures instead which errors the \
         checksums detect that are not cryptographic.",
        "* blkhash bench image: Reads the beginning of an image several times, from the page cache \
         and past it, with each digest on one thread and on all. It says how fast the storage is, \
         how fast each digest, and which of the two a checksum waits for: where the storage \
         does not keep up, the algorithm does not matter.",
        "* blkhash btrfs verify: Verifies every checksum of btrfs file systems that are not mounted: \
         superblocks, tree blocks and data, all mirrors of them, on devices, in raw files or in \
         images of whole disks. Nothing is ever written. The devices of one file system may come in \
         any order; those that are missing are told of. For each error it says what it is, where it \
         is, whether another mirror is good, and which files it belongs to; at the end, what was \
         verified and what no checksum protects.",
        "* blkhash btrfs info: Shows what the checksums of a file system are, what they take, which \
         implementation verifies them, and for one that is mounted what the kernel computes them \
         with.",
        "* blkhash btrfs algorithms: Compares the four checksums that btrfs offers: their size, \
         whether collisions are hard to make, and the cycles they take on this CPU.",
        "* blkhash btrfs obscure-name: Finds another name of the same length that has the same \
         CRC-32C, by which folders of btrfs find names: dumps of file systems replace names by such \
         ones to hide them.",
    ],
)];

const BLKHASH: Sections = &[
    (
        "FILTERS",
        &["A GLOB is matched with the names of implementations and of algorithms, in any case: * \
             is any text, ? one letter. These names of rows of btrfs-progs' hash-speedtest and of \
             the kernel's drivers are known, too: CRC32C-SW and -ref (which compute with tables), \
             CRC32C-NI, -PCL and -arch, XXHASH, SHA256-ref, -NI, -AVX2, -AVX512 and -arch, \
             BLAKE2b-256-arch, BLAKE2-ref, -AVX2 and -AVX512."],
    ),
    (
        "FIGURES",
        &[
            "Cycles are those of the time stamp counter, which goes at one pace whatever the core's \
             clock does; core cycles are shown beside them where the kernel and the machine have \
             them. A row shows the median of ten samples, and behind ± the median distance from \
             it. Contestants are sampled in turns, so that a clock that drifts hits all alike. \
             Nothing is subtracted: NULL-NOP is the cost of an empty call, NULL-MEMCPY that of \
             copying the blocks. The ratio is to crc32c in the same run.",
            "With --cold the blocks come from a buffer of twice the last-level cache, but at most 1 \
             GiB and a quarter of the memory that is free; the header says so where that is less.",
        ],
    ),
    (
        "CHECKSUMS OF BTRFS",
        &[
            "* crc32c: The default: 4 bytes, the fastest. It detects what hardware does to data: bits \
             that flip, blocks that get lost.",
            "* xxhash: 8 bytes, about as fast: errors of large and busy file systems do not go unseen \
             by chance.",
            "* sha256, blake2b: 32 bytes that cannot be forged, so that two blocks with the same \
             checksum are the same: for deduplication that trusts checksums. sha256 is a standard of \
             NIST and fast where the CPU has instructions for it, blake2b is fast without.",
            "All of them show that data changed, none who changed it. The choice is made once, by \
             mkfs.btrfs --csum.",
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            "blksum heeds these, too. A name without effect is warned of.",
            "* BLKHASH_IMPLEMENTATION: Implementations to use instead of the best ones, a list with \
             commas.",
            "* BLKHASH_CPU_DISABLE: Features of the CPU to leave alone: sha, avx2, avx512, a list \
             with commas.",
        ],
    ),
    (
        "EXIT STATUS",
        &[
            "* 0: All is well; with btrfs verify, everything that a mount could return is what was written.",
            "* 1: An image could not be read, or the output could not be written; with btrfs, errors \
             were found.",
            "* 2: The command line is wrong; with btrfs, something could not be looked at.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "Whether the file system in the image of a virtual machine is what was written:",
            "    blkhash btrfs verify disk.qcow2",
            "One of two devices, and only its third partition:",
            "    blkhash btrfs verify --partition 3 /dev/sda /dev/sdb",
            "What sha256 runs on here, and what the kernel would use:",
            "    blkhash algorithms --kernel sha256",
            "All checksums of btrfs, as its documentation compares them:",
            "    blkhash bench --filter crc32c --filter xxhash --filter sha256 --filter BLAKE2b-256",
            "The same as btrfs-progs prints it:",
            "    blkhash bench --format hash-speedtest --batch 1",
            "Blocks of 64K on one thread and on all, hot and cold, with a chart:",
            "    blkhash bench --block-size 64k --threads 1,all --cold --svg bench.svg",
            "Whether another digest would make the backup any faster:",
            "    blkhash bench image /var/lib/images/disk.qcow2",
        ],
    ),
    ("SEE ALSO", &["blksum(1), btrfs(5), btrfs-scrub(8), btrfs-check(8)"]),
];
