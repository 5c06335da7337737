//! The text of blksum(1), except its options.

use clap::Command;

use super::{Sections, Text};

pub const TEXT: Text = Text {
    command: "blksum",
    what: "print or check checksums of disk images",
    synopsis: &["[OPTION]... [IMAGE]..."],
    before_options: &[],
    after_options: SECTIONS,
};

/// Returns the parser, with names of options that --help leaves out.
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
            "blksum hashes the blocks of an image, several at a time, and does not hash blocks of \
             zeros. The construction defines how the digests of the blocks become one checksum. It \
             changes the checksum, like the digest algorithm and the block size.",
            "* streams:4: The default, and the checksum of blksum 0.3 to 0.7. 0.8 had streams:32, \
             0.9 had streams:64.",
            "* flat: The checksum of blksum 0.10 and later.",
            "* concat: The digest of the digests of all blocks, as in oVirt (with blake2b256 and \
             blocks of 4M).",
            "* linear: The digest of the content itself. With --bytes it is the checksum that \
             sha256sum, b3sum and others print for the file.",
            "* fs-verity: The file digest of fs-verity, as fsverity digest prints it, with blocks of 4K \
             and an optional --salt.",
            "* dm-verity: The root hash of dm-verity, as veritysetup format prints it, with blocks of 4K \
             and an optional --salt. The size must be a multiple of the block size.",
        ],
    ),
    (
        "CHECK FILES",
        &[
            "With --check the files contain lines as blksum, sha256sum, openssl dgst or the BSDs \
             write them:",
            "* CHECKSUM  NAME: The checksum has the parameters on the command line or their \
             defaults. If it is none with the defaults, other constructions and digests of its \
             length are tried, and the bytes of the file. --strict-construction, --construction and \
             --bytes end this search. With --bytes it is the digest of the file itself, as \
             sha256sum, b2sum, b3sum or md5sum write it.",
            "* BLKSUM-SHA256-STREAMS4-64K (NAME) = CHECKSUM: The tag holds all parameters, and \
             overrides the command line.",
            "* BLKSUM-SHA256-STREAMS4-64K/SNAPSHOT=before/PARTITION=2 (NAME) = CHECKSUM: Fields \
             behind the parameters record what --format, --vpc-size, --snapshot, --partition, \
             --offset and --length asked for. They are not given again.",
            "* SHA256 (NAME) = CHECKSUM: A plain tag always means the bytes of the file itself \
             (as with --bytes), as distributions publish them.",
            "Lines that start with # and empty lines are ignored. In a line that starts with a \
             backslash, \\n, \\r and \\\\ are escapes in the name. Names that are URIs are refused \
             without --allow-uri.",
        ],
    ),
    (
        "FORMATS",
        &[
            "blksum reads raw, qcow2, qcow (version 1), vmdk, vhdx, vpc (vhd), vdi, qed and parallels \
             images itself. For luks, bochs, cloop and dmg it starts a qemu-nbd that is confined to \
             this image, and stops it afterwards. With --reader=qemu, qemu-nbd reads all formats but \
             raw. The format is detected from the content.",
            "If IMAGE is an appliance (.ova), each of its disks gets a line, as in \
             appliance.ova:disk1.vmdk. Such a name is also that of an image. -c appliance.ova checks \
             the manifest in the appliance. With --map, and in check files, appliance.ova stands for \
             its disk if it has only one.",
            "Files that an image names are opened by blksum as --follow allows, never by QEMU.",
        ],
    ),
    (
        "STANDARD INPUT",
        &["If standard input is a file, it is read like that file, or as raw from the current \
             offset if that is not 0. A pipe or FIFO is read as raw. If it begins like an image of \
             another format it is refused; -f raw hashes its bytes."],
    ),
    (
        "NETWORK BLOCK DEVICES",
        &[
            "An IMAGE may be the URI of an export of an NBD server. It is read as raw unless --format is \
             given. This needs libnbd.so.0 (Debian: libnbd0, Fedora: libnbd).",
            "* nbd://HOST[:PORT]/EXPORT: TCP without encryption.",
            "* nbds://[USER@]HOST[:PORT]/EXPORT: TCP with TLS, which is required.",
            "* nbd+unix:///EXPORT?socket=PATH: A unix socket.",
            "* nbd+vsock://[CID][:PORT]/EXPORT: A socket between a virtual machine and its host.",
            "nbds+unix and nbds+vsock are the same with TLS. The parameters tls-certificates=DIR and \
             tls-psk-file=FILE name the credentials; in check files they are refused. If the server \
             supports several connections, there are as many as --threads. Extents that the server \
             reports as zeros are not read.",
        ],
    ),
    (
        "SANDBOX",
        &[
            "Before blksum opens the first image it restricts itself with Landlock, where the kernel \
             supports it (Linux 5.13; TCP from 6.7 on). It can then read beneath the folders of the \
             images (with --follow=none only the images, with --follow=any everything), run programs \
             of the system and connect to the servers of the URIs on the command line. It cannot \
             write or listen anywhere.",
            "With --check these are the images that the check files list, if the files can be read \
             in advance: at most 16 MiB of them, and of a pipe what arrives within a second. \
             Otherwise every file can be read. --verbose shows what is in force, --no-sandbox \
             disables it.",
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            "* BLKHASH_IMPLEMENTATION, BLKHASH_CPU_DISABLE: Implementations to use instead of the \
             fastest ones, and CPU features not to use: see blkhash(1). They change the speed, never \
             the checksum.",
            "* PATH: Folders in which qemu-nbd, or the program of --nbd-server, is searched, and after \
             them /usr/sbin. Folders that are not absolute are skipped.",
            "* HOME: The home folder, whose .pki/libnbd or .config/pki/libnbd has the certificates for \
             nbds URIs by default. For root, and without HOME, the folder is /etc/pki/libnbd.",
            "* TERM: On a terminal of the type dumb there is no line of progress.",
        ],
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
            "Compare images of different formats:",
            "    blksum disk.raw disk.qcow2",
            "Write checksums with tags that hold all parameters, and check them later:",
            "    blksum --tag *.qcow2 > CHECKSUMS\nblksum -c CHECKSUMS",
            "Compute two checksums in one pass, the second that of sha256sum for a raw copy:",
            "    blksum -d blake3 -d sha256:linear disk.qcow2",
            "Check downloaded files with the list of a distribution:",
            "    blksum -c --bytes --ignore-missing SHA256SUMS",
            "Show the backing chain of an image and how it would be read, without reading it:",
            "    blksum -v --length 0 overlay.qcow2",
            "Hash the images that find lists:",
            "    find /srv -name '*.qcow2' -print0 | blksum --tag --files0-from=-",
            "Compare with the checksum of blksum 0.11:",
            "    blksum --construction flat disk.qcow2",
            "Hash an image from an unknown source, and follow no file that it names:",
            "    blksum --untrusted upload.qcow2",
            "Hash the export of a server, and fail if the server is silent for ten seconds:",
            "    blksum --timeout 10 nbd://localhost/disk",
            "Hash all images in a folder, with output for programs:",
            "    blksum -r --json /var/lib/images",
        ],
    ),
    (
        "NOTES",
        &[
            "In the blksum of the blkhash project, -c is --cache and -t is --threads. Here they are \
             --check and --text, as in sha256sum.",
            "QEMU rounds the size of a raw image up to a multiple of 512 bytes, blksum does not. A \
             raw image of another size and its conversion to qcow2 therefore have different \
             checksums. blksum warns about such images.",
        ],
    ),
    ("SEE ALSO", &["blkhash(1), sha256sum(1), b3sum(1), qemu-img(1), qemu-nbd(8), nbdinfo(1)"]),
];
