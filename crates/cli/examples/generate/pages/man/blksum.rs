//! The text of blksum(1) beside the options.

use clap::Command;

use super::{Sections, Text};

pub const TEXT: Text = Text {
    command: "blksum",
    what: "print or check checksums of disk images",
    synopsis: &["[OPTION]... [IMAGE]..."],
    before_options: &[],
    after_options: SECTIONS,
};

/// The parser, with names of options that --help leaves out.
pub fn command() -> Command {
    blkhash_cli::blksum::command().mut_arg("digest", |digest| {
        let help = digest.get_help().map(ToString::to_string).unwrap_or_default();
        digest.help(help + ". -a and --algorithm are the same.")
    })
}

const SECTIONS: Sections = &[
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
