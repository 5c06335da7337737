//! Archives as other programs write them, and hostile ones.

use std::path::Path;
use std::sync::Arc;

use super::{Container, KIND, Ova};
use crate::container::name::member_name;
use crate::container::open_only_disk;
use crate::{ErrorKind, Format, Memory, OpenOptions, Result, Source};

/// An archive that is built block by block.
#[derive(Clone, Default)]
struct Builder(Vec<u8>);

impl Builder {
    /// Adds a member with this type flag.
    fn add(mut self, kind: u8, name: &str, content: &[u8]) -> Self {
        let mut header = [0; 512];
        header[..name.len().min(100)].copy_from_slice(&name.as_bytes()[..name.len().min(100)]);
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[156] = kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        self.0.extend(sealed(header));
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, name: &str, content: &[u8]) -> Self {
        self.add(b'0', name, content)
    }

    /// Changes the last header, which has no content, by `change`.
    fn change(mut self, change: impl Fn(&mut [u8; 512])) -> Self {
        let at = self.0.len() - 512;
        let mut header: [u8; 512] = self.0[at..].try_into().unwrap();
        change(&mut header);
        self.0.truncate(at);
        self.0.extend(sealed(header));
        self
    }

    fn open(mut self) -> Result<Option<Ova>> {
        self.0.extend([0; 1024]);
        Ova::new(Arc::new(Memory(self.0)), Path::new("a.ova"))
    }

    fn disks(self) -> Vec<String> {
        let disks = self.open().unwrap().expect("an appliance").disks().unwrap();
        disks.into_iter().map(|name| String::from_utf8(name).unwrap()).collect()
    }

    #[track_caller]
    fn refused(self, says: &str) {
        let result = self.open().and_then(|appliance| appliance.expect("an appliance").disks());
        let error = result.expect_err("is refused");
        let text = error.to_string();
        assert!(text.starts_with("a.ova: ") && text.contains(says), "{error}");
        assert!(matches!(
            error.kind(),
            ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Format
        ));
    }
}

fn sealed(mut header: [u8; 512]) -> [u8; 512] {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

fn descriptor(files: &[(&str, &str, &str)], disks: &[&str]) -> String {
    let mut text = String::from("<?xml version='1.0'?><!-- <File/> --><Envelope xmlns:ovf=\"x\">");
    for (id, href, more) in files {
        text += &format!("<ovf:File ovf:id=\"{id}\" ovf:href='{href}' {more}/>");
    }
    for id in disks {
        text += &format!("<Disk ovf:diskId = 'd' ovf:fileRef='{id}'></Disk>");
    }
    text + "<Disk ovf:diskId='empty'/><![CDATA[<Disk fileRef='x'/>]]></Envelope>"
}

fn appliance(files: &[(&str, &str, &str)], disks: &[&str]) -> Builder {
    Builder::default().file("x.ovf", descriptor(files, disks).as_bytes())
}

#[test]
fn disks_are_those_of_the_descriptor() {
    let files =
        [("f1", "a&amp;b.vmdk", ""), ("f2", "c.iso", ""), ("f3", "d", "ovf:compression=''")];
    let archive = appliance(&files, &["f3", "f1", "f3"])
        .file("a&b.vmdk", b"one")
        .file("c.iso", b"two")
        .file("d", &[7; 1000]);
    assert_eq!(archive.clone().disks(), ["d", "a&b.vmdk"]);
    let appliance = archive.open().unwrap().unwrap();
    let image = appliance.open(&OpenOptions::default(), b"d").unwrap();
    let mut bytes = vec![0; 1000];
    image.read_exact_at(&mut bytes, 0).unwrap();
    assert!(image.virtual_size() == 1000 && bytes == [7; 1000]);
    assert!(image.read_exact_at(&mut bytes, 1).is_err());
    let name = member_name(Path::new("a.ova"), b"d");
    assert_eq!(image.files().collect::<Vec<_>>(), [name]);
    assert!(appliance.open(&OpenOptions::default(), b"e").is_err());
    let error = appliance.manifest().err().unwrap();
    assert_eq!(error.reason(), "is an appliance without a manifest (.mf)");
}

#[test]
fn disks_that_the_descriptor_does_not_name() {
    let archive =
        appliance(&[("f", "f", "")], &[]).file("f", b"QED\0").file("g", b"KDMV").file("h", b"");
    assert_eq!(archive.disks(), ["f", "g"]);
}

#[test]
fn not_an_appliance() {
    let none =
        |bytes: Vec<u8>| Ova::new(Arc::new(Memory(bytes)), Path::new("a.ova")).unwrap().is_none();
    assert!(none(vec![]) && none(vec![0; 511]) && none(vec![0; 512]) && none(b"ustar".repeat(200)));
    assert!(none(Builder::default().file("x.txt", b"").file("x.ovf/", b"").0));
    assert!(none(Builder::default().file(".ovf", b"").file("a/.ovf", b"").0));
    let mut wrong_sum = appliance(&[], &[]).0;
    wrong_sum[0] ^= 1;
    assert!(none(wrong_sum));
}

#[test]
fn descriptor_cut_off() {
    let mut archive = appliance(&[], &[]).0;
    archive.truncate(600);
    let result = Ova::new(Arc::new(Memory(archive)), Path::new("a.ova"));
    assert_eq!(result.err().unwrap().kind(), ErrorKind::Corrupt);
}

#[test]
fn the_descriptor_may_be_any_member() {
    let folder = Builder::default().add(b'5', "./", b"").add(b'0', "old/", b"");
    let text = descriptor(&[("f", "d", "")], &["f"]);
    let archive = folder.file("./d", b"QED\0").file("./x.mf", b"").file("./x.OVF", text.as_bytes());
    assert_eq!(archive.clone().disks(), ["./d"]);
    let appliance = archive.clone().open().unwrap().unwrap();
    assert!(appliance.open(&OpenOptions::new().format(Format::Raw), b"d").is_ok());
    archive.file("y.ovf", b"").refused("more than one descriptor");
}

#[test]
fn a_single_disk_is_the_image() {
    let open = |archive: Builder| {
        let appliance = archive.open().unwrap().unwrap();
        let (options, path) = (OpenOptions::default(), Path::new("a.ova"));
        open_only_disk(&KIND, &appliance, &options, path)
            .map(|image| image.expect("a disk").virtual_size())
    };
    let files = [("f", "d", ""), ("g", "e", "")];
    let archive = |disks| appliance(&files, disks).file("d", &[1; 600]).file("e", &[2; 700]);
    assert_eq!(open(archive(&["g"])).unwrap(), 700);
    let says = "a.ova: is an appliance with 2 disks: name one, as in a.ova:d, a.ova:e";
    assert_eq!(open(archive(&["f", "g"])).unwrap_err().to_string(), says);
    assert!(open(archive(&[])).unwrap_err().reason().contains("without a disk"));
}

/// Members that different programs read as different bytes.
#[test]
fn ambiguous_members() {
    let archive = || appliance(&[("f", "d", "")], &["f"]);
    let sized = |header: &mut [u8; 512]| header[124..136].copy_from_slice(b"00000001000\0");
    let content = |archive: Builder| archive.0.clone();
    let mut hidden = archive().add(b'5', "folder", b"").change(sized);
    hidden.0.extend(content(Builder::default().file("d", b"QED\0")));
    hidden.refused("\"folder\", which is no file and has a size");
    let sized = archive().add(b'x', "p", b"12 size=512\n").add(b'5', "folder", b"");
    sized.file("d", b"QED\0").refused("no file and has a size");
    archive().file("d/", &[0; 512]).refused("no file and has a size");
    let long = archive().add(b'L', "l", b"d\0").add(0, "d/", b"QED\0");
    long.refused("no file and has a size");
    // Two names or sizes, of which programs take the first, the last, or all.
    let file = |archive: Builder| archive.file("d", b"QED\0");
    let record = b"9 path=e\n";
    file(archive().add(b'x', "p", record).add(b'x', "p", record)).refused("several PAX headers");
    file(archive().add(b'L', "l", b"e\0").add(b'L', "l", b"e\0")).refused("several long names");
    file(archive().add(b'L', "l", b"e\0").add(b'x', "p", record)).refused("two names");
    file(archive().add(b'L', "l", &[b'e'; 512])).refused("long names without an end");
    file(archive().add(b'L', "l", &[b'e'; 5000])).refused("longer than 4096 bytes");
    file(archive().add(b'x', "p", b"11 path=e\0\n")).refused("holds a NUL");
    let padded = |mut archive: Builder| {
        let at = archive.0.len() - 512 + record.len();
        archive.0[at..at + record.len()].copy_from_slice(record);
        archive
    };
    file(padded(archive().add(b'x', "p", record))).refused("invalid PAX records");
    // The padding of a long name belongs to it.
    let at = archive().0.len();
    let mut long = archive().add(b'L', "l", b"x");
    long.0[at + 512..at + 514].copy_from_slice(b"d\0");
    assert_eq!(long.file("short", b"QED\0").disks(), ["d"]);
    for kind in [b'L', b'K', b'x'] {
        let content: &[u8] = if kind == b'x' { record } else { b"d\0" };
        file(archive()).add(kind, "n", content).refused("lacks the member of its last header");
    }
}

/// An archive whose disk is `d`.
fn archive_of_d() -> Builder {
    appliance(&[("f", "d", "")], &["f"]).file("d", b"QED\0")
}

#[test]
fn members_of_other_types() {
    let at = archive_of_d().0.len();
    for (kind, what) in [
        (b'1', "hard link \"sub/x\""),
        (b'2', "symbolic link \"sub/x\""),
        (b'3', "device \"sub/x\""),
        (b'4', "device \"sub/x\""),
        (b'6', "FIFO \"sub/x\""),
        (b'A', "member \"sub/x\" of the type 'A'"),
        (b'D', "member \"sub/x\" of the type 'D'"),
        (1, "member \"sub/x\" of the type '\\u{1}'"),
        (0xff, "member \"sub/x\" of the type '\\xff'"),
    ] {
        let says = format!(
            "a.ova: has the {what} in a tar archive, of which only files and folders are read (offset {at})"
        );
        archive_of_d().add(kind, "sub/x", b"").refused(&says);
    }
    // A link in the place of a disk, and one through which a later member is written.
    appliance(&[("f", "d", "")], &["f"]).add(b'1', "d", b"").refused("hard link \"d\"");
    let target = |header: &mut [u8; 512]| header[157] = b'd';
    let through = archive_of_d().add(b'2', "x", b"").change(target).file("x", b"other");
    through.refused("symbolic link \"x\"");
    let long = archive_of_d().add(b'K', "k", b"d\0").add(b'L', "l", b"long\0").add(b'2', "x", b"");
    long.refused(&format!("symbolic link \"long\" in a tar archive, of which only files and folders are read (offset {})", at + 2048));
}

#[test]
fn names_that_lead_elsewhere() {
    let at = archive_of_d().0.len();
    for name in ["..", "../d", "sub/../d", "./sub/..", "sub//..//d"] {
        let says = format!(
            "a.ova: has the member \"{name}\", whose name has the component \"..\" (offset {at})"
        );
        archive_of_d().file(name, b"other").refused(&says);
        archive_of_d().add(b'5', name, b"").refused(&says);
    }
    for name in ["/", "/d", "//d", "/sub/x", "/../d"] {
        let says =
            format!("a.ova: has the member \"{name}\", whose name is absolute (offset {at})");
        archive_of_d().add(b'5', name, b"").refused(&says);
    }
    for name in ["", ".", "sub/.", "./."] {
        let says = format!(
            "a.ova: has the member \"{name}\", a file with the name of a folder (offset {at})"
        );
        archive_of_d().file(name, b"other").refused(&says);
        assert_eq!(archive_of_d().add(b'5', name, b"").disks(), ["d"]);
    }
    let pax = archive_of_d().add(b'x', "p", b"13 path=../d\n").file("e", b"other");
    pax.refused(&format!("\"../d\", whose name has the component \"..\" (offset {})", at + 1024));
    for name in ["..d", "d..", "...", "sub/...", "sub/..x/d", "a..b"] {
        assert_eq!(archive_of_d().file(name, b"other").disks(), ["d"], "{name}");
    }
}

#[test]
fn members_with_equal_names() {
    let at = archive_of_d().0.len();
    for name in ["d", "./d", ".//d", "././d"] {
        let says = format!("a.ova: has two members with the name \"{name}\" (offset {at})");
        archive_of_d().file(name, b"other").refused(&says);
        archive_of_d().file(name, b"QED\0").refused(&says);
        archive_of_d().add(b'5', name, b"").refused(&says);
        archive_of_d().add(0, &format!("{name}/"), b"").refused("two members with the name");
    }
    // Also of members that nothing names.
    archive_of_d()
        .file("sub/x", b"")
        .file("sub//x", b"")
        .refused("two members with the name \"sub//x\"");
    archive_of_d().add(b'5', "x", b"").file("x", b"").refused("two members with the name \"x\"");
    let folders = archive_of_d().add(b'5', "x", b"").add(b'5', "./x/", b"").add(0, "x//", b"");
    assert_eq!(folders.file("x/y", b"").add(b'5', "x/", b"").disks(), ["d"]);
    assert_eq!(archive_of_d().file("D", b"other").disks(), ["d"]);
}

#[test]
fn files_in_a_file() {
    let at = archive_of_d().0.len();
    for inner in ["d/x", "./d//x", "d/x/y"] {
        let says = format!(
            "a.ova: has the file \"d\", and \"{inner}\" in a folder of this name (offset {at})"
        );
        archive_of_d().file(inner, b"").refused(&says);
        archive_of_d().add(b'5', inner, b"").refused(&says);
    }
    let first = archive_of_d().file("x/y/z", b"").file("./x", b"");
    let says =
        format!("the file \"./x\", and \"x/y/z\" in a folder of this name (offset {})", at + 512);
    first.refused(&says);
    // Between them in the order of bytes.
    let between =
        archive_of_d().file("d-x", b"").file("d!", b"").file("d x/y", b"").file("d.x/y", b"");
    assert_eq!(between.clone().disks(), ["d"]);
    between.file("d/x", b"").refused("the file \"d\", and \"d/x\"");
    assert_eq!(
        archive_of_d().add(b'5', "x", b"").file("x/d", b"").file("x/d.x", b"").disks(),
        ["d"]
    );
}

/// A reference is resolved in the folder of the descriptor or of the archive, with escapes or without.
#[test]
fn references_of_one_member() {
    let archive = |href| {
        let text = descriptor(&[("f", href, "")], &["f"]);
        Builder::default().file("sub/x.ovf", text.as_bytes())
    };
    for (href, member) in
        [("d", "sub/d"), ("d", "d"), ("sub/d", "sub/d"), ("a%20b", "sub/a b"), ("a%20b", "a%20b")]
    {
        assert_eq!(archive(href).file(member, b"QED\0").disks(), [member], "{href}");
    }
    for (href, members) in [
        ("d", ["sub/d", "d"]),
        ("a%20b", ["sub/a%20b", "sub/a b"]),
        ("a%20b", ["sub/a%20b", "a b"]),
        ("a%20b", ["a%20b", "sub/a b"]),
        ("a%20b", ["a%20b", "a b"]),
    ] {
        let first = archive(href).file(members[0], b"QED\0");
        let says = format!(
            "a.ova: has the members \"{}\" and \"{}\", and \"{href}\" may name either (offset {})",
            members[0],
            members[1],
            first.0.len()
        );
        first.clone().file(members[1], b"QED\0").refused(&says);
        let [one, other] = members;
        archive(href).file(other, b"").file(one, b"").refused("may name either");
    }
    let both = archive("sub/d").file("sub/d", b"QED\0").file("d", b"other");
    assert_eq!(both.clone().disks(), ["sub/d"]);
    let appliance = both.open().unwrap().unwrap();
    let raw = OpenOptions::new().format(Format::Raw);
    assert!(appliance.open(&raw, b"sub/d").is_ok());
    let error = appliance.open(&raw, b"d").err().unwrap();
    assert!(error.to_string().contains("may name either"), "{error}");
}

/// Looking up every folder of every name would hash gigabytes.
#[test]
fn long_names_of_many_folders() {
    let mut archive = archive_of_d();
    for number in 0..490 {
        let name = format!("{}{number}", "a/".repeat(2040));
        archive = archive.add(b'L', "l", format!("{name}\0").as_bytes()).file("x", b"");
    }
    assert_eq!(archive.disks(), ["d"]);
}

#[test]
fn old_archives() {
    let archive = appliance(&[("f", "d", "")], &["f"]).file("d", b"QED\0");
    let mut bytes = archive.0;
    for at in (0..bytes.len()).step_by(512) {
        let header: [u8; 512] = bytes[at..at + 512].try_into().unwrap();
        if header[257..262] == *b"ustar" {
            let mut header = header;
            header[156] = 0;
            header[257..265].fill(0);
            bytes[at..at + 512].copy_from_slice(&sealed(header));
        }
    }
    assert_eq!(Builder(bytes).disks(), ["d"]);
    // A sum of signed bytes.
    let mut signed = appliance(&[("f", "d\u{e9}", "")], &["f"]).file("d\u{e9}", b"");
    let at = signed.0.len() - 512;
    let header = &mut signed.0[at..];
    header[148..156].fill(b' ');
    let sum: i32 = header.iter().map(|byte| i32::from(byte.cast_signed())).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert_eq!(signed.disks(), ["d\u{e9}"]);
}

#[test]
fn cut_off_in_padding_or_a_header() {
    let whole = appliance(&[("f", "d", "")], &["f"]).file("d", b"QED\0").0;
    for (length, says) in
        [(whole.len() - 1, "past the end"), (whole.len() + 511, "cut off in a tar header")]
    {
        let mut bytes = whole.clone();
        bytes.resize(length, 0);
        let result = Ova::new(Arc::new(Memory(bytes)), Path::new("a.ova"));
        assert!(result.err().unwrap().to_string().contains(says));
    }
    assert!(Ova::new(Arc::new(Memory(whole)), Path::new("a.ova")).unwrap().is_some());
}

#[test]
fn descriptors_of_many_elements() {
    let files: Vec<_> = (0..1001).map(|number| format!("f{number}")).collect();
    let text = |count: usize, disks: usize| {
        let files: Vec<_> = files[..count].iter().map(|id| (&**id, "d", "")).collect();
        descriptor(&files, &vec!["f0"; disks])
    };
    let archive =
        |text: String| Builder::default().file("x.ovf", text.as_bytes()).file("d", b"QED\0");
    assert_eq!(archive(text(1000, 256)).disks(), ["d"]);
    archive(text(1001, 1)).refused("more than 1000 files");
    archive(text(1, 257)).refused("more than 256 disks");
    let long = format!("<File id='f' href='{}'/>", "x".repeat((16 << 10) + 1));
    archive(long).refused("attribute of more than 16384 bytes");
    archive("<File ovf:href='a' x:href='b'/>".into())
        .refused("states href of a file or disk twice");
    archive("<File a:y='1' b:y='2'/><Item x:id='' y:id=''/>".into())
        .open()
        .unwrap()
        .unwrap()
        .disks()
        .unwrap();
    let mut many = appliance(&[], &[]);
    for number in 0..257 {
        many = many.file(&number.to_string(), b"QED\0");
    }
    many.refused("more than 256 disks");
}

#[test]
fn text_of_a_descriptor_in_messages() {
    let method = format!("ovf:compression='&#x1b;[31m{}'", "x".repeat(10_000));
    let archive = appliance(&[("f", "d", &method)], &["f"]).file("d", b"");
    let error = archive.open().unwrap().unwrap().disks().unwrap_err();
    let reason = error.reason();
    assert!(reason.contains(r"\u{1b}[31mxxx") && reason.len() < 2000, "{reason}");
}

#[test]
fn disks_that_cannot_be_read() {
    let image = |more| appliance(&[("f", "d", more)], &["f"]).file("d", b"QED\0");
    image("ovf:compression=\"gzip\"").refused("is compressed (gzip)");
    image("ovf:chunkSize=\"100\"").refused("several pieces");
    for size in ["3", "5", "", "4 ", "-4", "0x4", "99999999999999999999"] {
        let says = format!("has 4 bytes, and the descriptor says \"{size}\"");
        let more = format!("ovf:size='{size}'");
        appliance(&[("f", "d", &more)], &["f"]).file("d", b"QED\0").refused(&says);
    }
    assert_eq!(image("ovf:size='4'").disks(), ["d"]);
    appliance(&[("f", "d", "")], &["f"]).refused("no member with the name \"d\"");
    appliance(&[("f", "d", "")], &["g"]).refused("not among its references");
    appliance(&[("f", "d", ""), ("f", "e", "")], &["f"]).refused("or twice");
}

#[test]
fn invalid_descriptors() {
    for (text, says) in [
        ("<Envelope", "cut off"),
        ("<File a", "cut off"),
        ("<File a=>", "not valid XML"),
        ("<File a=x>", "not valid XML"),
        ("<File a=é>", "not valid XML"),
        ("<File a='x>", "cut off"),
        ("<File a='&x;'/>", "not valid XML"),
        ("<File a='&#xd800;'/>", "not valid XML"),
        ("<!-- <File", "cut off"),
        ("<!DOCTYPE x [<!ENTITY y 'z'>]>", "document type"),
        ("< File>", "not valid XML"),
        ("<File a='x' <id='y'/>", "not valid XML"),
        ("<File/x id='y'/>", "not valid XML"),
        ("<A></A'><Disk fileRef='>", "not valid XML"),
    ] {
        Builder::default().file("x.ovf", text.as_bytes()).refused(says);
    }
    Builder::default().file("x.ovf", b"\xff\xfe<").refused("not UTF-8");
    Builder::default().file("x.ovf", &vec![b' '; (4 << 20) + 1]).refused("more than 4 MiB");
}

#[test]
fn long_names() {
    let long = format!("{}/d.vmdk", "folder".repeat(30));
    let files = [("f", &*long, "")];
    let pax = format!("{} path={long}\n", long.len() + 10);
    assert_eq!(pax.len(), long.len() + 10);
    for archive in [
        appliance(&files, &["f"]).add(b'L', "././@LongLink", format!("{long}\0").as_bytes()),
        appliance(&files, &["f"]).add(b'x', "PaxHeader", pax.as_bytes()),
    ] {
        assert_eq!(archive.add(0, "short", b"QED\0").disks(), [&*long]);
    }
    let archive = appliance(&[("f", "folder/d", "")], &["f"]).file("d", b"");
    let prefixed = |header: &mut [u8; 512]| header[345..351].copy_from_slice(b"folder");
    assert_eq!(archive.clone().change(prefixed).disks(), ["folder/d"]);
    let gnu = archive.clone().change(|header| header[257..265].copy_from_slice(b"ustar  \0"));
    // Go reads a shorter prefix in the format of star.
    let star = archive.change(|header| header[508..].copy_from_slice(b"tar\0"));
    let at = gnu.0.len() - 512;
    for other in [gnu, star] {
        other.change(prefixed).refused(&format!(
            "a.ova: has a prefix of the name \"d\" in a tar header that is not ustar, which programs read differently (offset {at})"
        ));
    }
}

#[test]
fn sizes() {
    let archive = || appliance(&[], &[]).file("d", b"");
    let sized =
        |field: &[u8; 12]| archive().change(|header| header[124..136].copy_from_slice(field));
    for field in [
        b"7777777777\0\0",
        b"\x80\0\0\0\0\0\0\0\0\0\xff\xff",
        b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xfe\0",
    ] {
        sized(field).refused("past the end of the file");
    }
    for field in [
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"8\0\0\0\0\0\0\0\0\0\0\0",
        b"-1\0\0\0\0\0\0\0\0\0\0",
    ] {
        sized(field).refused("no valid size");
    }
    for field in [b"\x80\0\0\x01\0\0\0\0\0\0\0\0", b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"] {
        sized(field).refused("no valid size");
    }
    let pax = |records: &[u8]| appliance(&[], &[]).add(b'x', "p", records).file("d", b"abc");
    pax(b"14 size=99999\n").refused("past the end of the file");
    for records in
        [&b"12 size=99\n"[..], b"9", b"0 ", b"99999999999999999999 a=b\n", b"6 a=b ", b"5 ab\n"]
    {
        pax(records).refused("invalid PAX records");
    }
    pax(b"24 GNU.sparse.major=1.0\n").refused("sparse members");
    let global = |records: &[u8]| appliance(&[], &[]).add(b'g', "g", records).file("d", b"abc");
    for records in [b"10 size=3\n", b"10 path=d\n"] {
        global(records).refused("names or sizes for all members");
    }
    global(b"10 size=3 ").refused("invalid PAX records");
    appliance(&[], &[]).add(b'S', "d", b"").refused("sparse members");
    appliance(&[], &[]).add(b'x', "p", &vec![b'9'; 65537]).refused("more than 65536 bytes");
}

#[test]
fn other_members_are_skipped() {
    let archive = appliance(&[], &[]).add(b'5', "folder", b"").file("folder/readme", b"");
    let archive =
        archive.add(b'g', "global", b"15 comment=now\n").add(b'K', "k", b"x").file("d", b"QED\0");
    assert_eq!(archive.disks(), ["d"]);
}

#[test]
fn damage_after_the_descriptor() {
    let mut archive = appliance(&[], &[]);
    archive.0.extend([1; 512]);
    archive.refused("not a header of a tar archive");
    let mut many = appliance(&[], &[]);
    for _ in 0..1000 {
        many = many.add(b'5', "folder", b"");
    }
    many.refused("more than 1000 headers");
}

#[test]
fn manifest() {
    let archive = appliance(&[], &[]).file("x.mf", b"SHA1(d)= 00\n");
    let opened = archive.clone().open().unwrap().unwrap();
    let manifest = opened.manifest().unwrap();
    assert_eq!((&*manifest.text, manifest.disks.len()), (&b"SHA1(d)= 00\n"[..], 0));
    let error = archive.file("y.mf", b"").open().unwrap().unwrap().manifest().err().unwrap();
    assert!(error.reason().contains("more than one manifest"), "{error}");
    // A disk that is compressed is not read, and has to be listed.
    let named = descriptor(&[("f", "d", "ovf:compression='gzip'")], &["f"]);
    let named = Builder::default().file("sub/x.ovf", named.as_bytes()).file("sub/x.mf", b"");
    let missing = named.clone().open().unwrap().unwrap().manifest().err().unwrap();
    assert!(missing.reason().contains("no member with the name \"d\""), "{missing}");
    let opened = named.file("sub/d", b"").open().unwrap().unwrap();
    assert_eq!(opened.manifest().unwrap().disks, [b"sub/d"]);
    assert_eq!(opened.resolve(b"./d").unwrap(), b"sub/d");
    assert!(opened.disks().is_err() && opened.resolve(b"e").is_err());
}

#[test]
fn members_refer_to_no_file() {
    let qed = {
        let mut bytes = vec![0; 3 * 4096];
        bytes[..4].copy_from_slice(b"QED\0");
        for (at, number) in
            [(4, 4096_u32), (8, 2), (12, 1), (16, 5), (40, 4096), (56, 100), (60, 4)]
        {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[100..104].copy_from_slice(b"base");
        bytes
    };
    let appliance = appliance(&[], &[]).file("d", &qed).open().unwrap().unwrap();
    let error = appliance.open(&OpenOptions::default(), b"d").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Reference, "{error}");
    assert!(appliance.open(&OpenOptions::new().format(Format::Raw), b"d").is_ok());
}

#[test]
fn a_member_that_is_compressed_without_a_word() {
    let archive = appliance(&[("f", "d", "")], &["f"]).file("d", b"\x1f\x8b\x08 and more");
    let appliance = archive.open().unwrap().unwrap();
    let error = appliance.open(&OpenOptions::default(), b"d").err().unwrap();
    assert!(error.to_string().contains("compressed (gzip)"), "{error}");
    let raw = OpenOptions::new().format(Format::Raw);
    assert_eq!(appliance.open(&raw, b"d").unwrap().virtual_size(), 12);
}
