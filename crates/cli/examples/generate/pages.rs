//! The manual page and the completions, made from the argument parser.

use std::io::{self, Write};

use blkhash_cli::blksum;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// A file to be written.
pub struct Page {
    pub kind: Kind,
    pub file_name: &'static str,
    pub content: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Man,
    Completion,
}

pub fn pages() -> io::Result<Vec<Page>> {
    let completions =
        [(Shell::Bash, "blksum.bash"), (Shell::Zsh, "_blksum"), (Shell::Fish, "blksum.fish")];
    let mut pages = vec![Page { kind: Kind::Man, file_name: "blksum.1", content: manual_page()? }];
    for (shell, file_name) in completions {
        let mut content = Vec::new();
        clap_complete::generate(shell, &mut blksum::command(), "blksum", &mut content);
        pages.push(Page { kind: Kind::Completion, file_name, content });
    }
    Ok(pages)
}

fn manual_page() -> io::Result<Vec<u8>> {
    let command = blksum::command()
        // What comes after the options in --help has sections of its own here.
        .after_help(None)
        .mut_arg("digest", |digest| {
            let help = digest.get_help().map(ToString::to_string).unwrap_or_default();
            digest.help(help + ". -a and --algorithm are the same.")
        });
    let man = Man::new(command);
    let mut page = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    writeln!(page, r#".TH BLKSUM 1 "" "blkhash {version}" "User Commands""#)?;
    let mut name = Roff::new();
    name.control("SH", ["NAME"]);
    name.text([roman("blksum - print or check checksums of disk images")]);
    name.to_writer(&mut page)?;
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]);
    synopsis.text([bold("blksum"), roman(" [OPTION]... [IMAGE]...")]);
    synopsis.to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    for (title, paragraphs) in SECTIONS {
        let mut section = Roff::new();
        section.control("SH", [*title]);
        for paragraph in *paragraphs {
            write_paragraph(&mut section, paragraph);
        }
        section.to_writer(&mut page)?;
    }
    Ok(page)
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

const SECTIONS: &[(&str, &[&str])] = &[
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
        "STANDARD INPUT",
        &["If standard input is a file, it is read like that file, raw from the current offset \
             if that is not 0. A pipe is raw; one that begins like an image of another format is \
             refused, unless -f raw says that its bytes are meant. The same holds for FIFOs."],
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
            "Check what a distribution publishes, while the images are where they are:",
            "    blksum -c --construction linear -f raw --ignore-missing SHA256SUMS",
            "Compare with what blksum 0.11 printed:",
            "    blksum --construction flat disk.qcow2",
            "An image from somebody else: follow no file that it names.",
            "    blksum --untrusted upload.qcow2",
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
    ("SEE ALSO", &["sha256sum(1), b3sum(1), qemu-img(1)"]),
];
