//! Valid and invalid descriptors.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const HEAD: &str = "# Disk DescriptorFile\nversion=1\nCID=0000002a\nparentCID=ffffffff\n\
                    createType=\"twoGbMaxExtentFlat\"\n";

fn parse(lines: &str) -> Result<Descriptor, Flaw> {
    Descriptor::parse(format!("{HEAD}{lines}").as_bytes())
}

#[track_caller]
fn invalid(lines: &str, says: &str) {
    match parse(lines) {
        Err(Flaw::Invalid(flaw)) if flaw.contains(says) => {}
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn unsupported(lines: &str, says: &str) {
    match parse(lines) {
        Err(Flaw::Unsupported(flaw)) if flaw.contains(says) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn extents_in_order() {
    let lines = "\r\n  RW 8 FLAT \"a b.vmdk\" 16\r\nRDONLY 9 VMFS \"b\"\nRW 1 SPARSE \"c:,'\"\n\
                 RW 2 VMFSSPARSE \"d\"\nRW 3 SESPARSE \"e\"\nRDONLY 4 ZERO\nddb.adapterType = \"ide\"\n\0garbage";
    let descriptor = parse(lines).unwrap();
    let extent = |sectors, kind, name: &str| DiskExtent { sectors, kind, name: name.into() };
    assert_eq!(descriptor.cid, Some(42));
    assert_eq!(
        descriptor.extents,
        [
            extent(8, DiskExtentKind::Flat { start: 16 }, "a b.vmdk"),
            extent(9, DiskExtentKind::Flat { start: 0 }, "b"),
            extent(1, DiskExtentKind::Sparse, "c:,'"),
            extent(2, DiskExtentKind::VmfsSparse, "d"),
            extent(3, DiskExtentKind::SeSparse, "e"),
            extent(4, DiskExtentKind::Zero, ""),
        ]
    );
}

#[test]
fn rendered_descriptors_parse_to_the_same_disk() {
    let lines = "RW 8 FLAT \"a\" 16\nRW 1 SPARSE \"c\"\nRW 2 VMFSSPARSE \"d\"\nRW 5 FLAT \"e\" 7\n";
    let descriptor = parse(lines).unwrap();
    let names = ["a", "c", "d", "e"].map(String::from);
    assert_eq!(Descriptor::parse(descriptor.render(&names).as_bytes()), Ok(descriptor.clone()));
    let paths = ["/dev/fd/10", "/dev/fd/11", "/dev/fd/12", "/dev/fd/13"].map(String::from);
    let text = descriptor.render(&paths);
    assert!(text.contains("RW 8 FLAT \"/dev/fd/10\" 16\nRW 1 SPARSE \"/dev/fd/11\"\n"), "{text}");
    assert!(text.len() < MAX_DESCRIPTOR / MAX_EXTENTS);
}

#[test]
fn extent_without_a_size() {
    for size in ["0", "-1", "+1", "x", "18446744073709551616", "18014398509481984", ""] {
        invalid(&format!("RW {size} FLAT \"a\" 0"), "without a size");
    }
}

#[test]
fn extent_without_a_name() {
    for rest in ["FLAT a 0", "FLAT \"a 0", "FLAT \"\" 0", "SPARSE", "FLAT"] {
        invalid(&format!("RW 1 {rest}"), "without a file name in quotes");
    }
}

#[test]
fn extent_without_an_offset() {
    for offset in ["", "-1", "0x", "1 2", "18014398509481984"] {
        invalid(&format!("RW 1 FLAT \"a\" {offset}"), "without an offset");
    }
    invalid("RW 1 SPARSE \"a\" 0", "more words");
    invalid("RW 1 SESPARSE \"a\" 0", "more words");
    invalid("RW 1 ZERO \"a\"", "more words");
}

#[test]
fn unsupported_extent_types() {
    for kind in ["VMFSRDM", "VMFSRAW", "flat", "zero"] {
        unsupported(&format!("RW 1 {kind} \"a\" 0"), kind);
    }
    unsupported("NOACCESS 63 ZERO", "without access");
}

#[test]
fn invalid_lines() {
    invalid("RW 1 FLAT \"a\" 0\nnonsense", "line 7 of its descriptor is neither");
    invalid("CID=2\nRW 1 FLAT \"a\" 0", "repeats");
    invalid("parentFileNameHint=base.vmdk\nRW 1 FLAT \"a\" 0", "not in quotes");
    invalid("", "no extents");
    unsupported("version=9\nRW 1 FLAT \"a\" 0", "version \"9\"");
}

#[test]
fn too_many_extents() {
    let line = "RW 1 FLAT \"a\" 0\n";
    assert_eq!(parse(&line.repeat(MAX_EXTENTS)).unwrap().extents.len(), MAX_EXTENTS);
    unsupported(&line.repeat(MAX_EXTENTS + 1), "more than 512 extents");
}

#[test]
fn types_whose_extents_are_not_files() {
    let parse = |name: &str| {
        let text = HEAD.replace("twoGbMaxExtentFlat", name) + "RW 1 FLAT \"a\" 0\n";
        Descriptor::parse(text.as_bytes())
    };
    for name in DEVICE_TYPES {
        let flaw = format!("its type \"{name}\" means a device, which is not read");
        assert_eq!(parse(name), Err(Flaw::Unsupported(flaw)));
    }
    for name in ["", "vmfssparse", "future"] {
        let flaw = format!("its type \"{name}\" is not read");
        assert_eq!(parse(name), Err(Flaw::Unsupported(flaw)));
    }
    for name in FILE_TYPES {
        assert_eq!(parse(name).unwrap().create_type, name);
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(lines in vec(line(), 0..12)) {
        let text = format!("{HEAD}{}", lines.join("\n"));
        if let Ok(descriptor) = Descriptor::parse(text.as_bytes()) {
            let fds = 10..10 + descriptor.extents.len();
            let names: Vec<_> = fds.map(|fd| format!("/dev/fd/{fd}")).collect();
            let again = Descriptor::parse(descriptor.render(&names).as_bytes()).unwrap();
            let expected = descriptor.extents.into_iter().zip(names);
            let expected = expected.map(|(extent, name)| {
                let is_zero = extent.kind == DiskExtentKind::Zero;
                DiskExtent { name: if is_zero { Vec::new() } else { name.into() }, ..extent }
            });
            prop_assert_eq!(again.extents, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_rejected(bytes in vec(any::<u8>(), 0..500)) {
        let _ = Descriptor::parse(&[HEAD.as_bytes(), &bytes].concat());
    }
}

/// Generates lines that are often valid, and often nearly so.
fn line() -> impl Strategy<Value = String> {
    let word = |words: &'static [&'static str]| select(words);
    let extent = (
        word(&["RW", "RDONLY", "RW ", "NOACCESS", "rw"]),
        word(&["1", "16384", "0", "-1", "18014398509481983", "18014398509481984"]),
        word(&["FLAT", "SPARSE", "VMFS", "VMFSSPARSE", "SESPARSE"]),
        word(&["\"a\"", "\"/etc/passwd\"", "\"", "\"a b\"", "\"\\\"\"", "\"json:{}\""]),
        word(&["0", "", "7", "-1", "0 0"]),
    );
    let extent = extent.prop_map(|(a, b, c, d, e)| format!("{a} {b} {c} {d} {e}"));
    prop_oneof![8 => extent, 1 => Just("RW 8 ZERO".into()), 1 => "[ -~]{0,20}", 1 => "[a-zA-Z]{1,12} ?= ?\"?[ -~]{0,8}\"?"]
}

#[test]
fn parents() {
    let head = HEAD.replace("parentCID=ffffffff", "parentCID=0000000b");
    let text = format!("{head}parentFileNameHint=\"base.vmdk\"\nRW 1 SPARSE \"a\"");
    let descriptor = Descriptor::parse(text.as_bytes()).unwrap();
    assert_eq!(descriptor.parent.as_deref(), Some(&b"base.vmdk"[..]));
    assert!(!descriptor.render(&["a".into()]).contains("base.vmdk"));
    let text = format!("{head}RW 1 SPARSE \"a\"");
    assert!(matches!(Descriptor::parse(text.as_bytes()), Err(Flaw::Invalid(_))));
}

#[test]
fn missing_or_misspelled_settings() {
    let line = "RW 8 FLAT \"a\" 0\n";
    let parse = |from, to| Descriptor::parse((HEAD.replace(from, to) + line).as_bytes());
    assert_eq!(parse("CID=0000002a\n", "").unwrap().cid, None);
    for (from, to, says) in [
        ("parentCID=ffffffff\n", "", "parentCID="),
        ("parentCID=", "parentcid=", "parentCID="),
        ("parentCID=", "parentCID =", "parentCID="),
        ("CID=0000002a", "Cid=0000002a", "CID="),
        ("createType=", "CREATETYPE=", "createType="),
        ("createType=", "createType= ", "not in quotes"),
    ] {
        let flaw = parse(from, to).unwrap_err();
        assert!(matches!(&flaw, Flaw::Invalid(flaw) if flaw.contains(says)), "{to} {flaw:?}");
    }
}

#[test]
fn settings_that_qemu_finds_elsewhere() {
    let line = "RW 8 FLAT \"a\" 0\n";
    let comment = |text: &str| HEAD.replace("version=1\n", &format!("version=1\n{text}\n")) + line;
    for text in [
        comment("# parentFileNameHint"),
        comment("# createType"),
        comment("# CID"),
        comment("ddb.comment = \"parentCID\""),
        format!("{HEAD}{line}ddb.comment = \"parentFileNameHint\"\n"),
        HEAD.replace("CID=0000002a\n", "") + "CID=0000002a\n" + line,
        comment(&format!("#{}", " ".repeat(SEARCHED))),
    ] {
        let flaw = Descriptor::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(&flaw, Flaw::Invalid(flaw) if flaw.contains("unusual place")), "{flaw:?}");
    }
    // After the settings, the text may be longer.
    let text = format!("{HEAD}{}{line}# CID\n", "#\n".repeat(SEARCHED));
    assert!(Descriptor::parse(text.as_bytes()).is_ok());
}
