use super::machine::disks;

/// The class and the reference of an object, and the fields of its snapshot.
type Object<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// Returns the description of a machine with these objects.
fn machine(objects: &[Object<'_>]) -> String {
    let field = |(name, value): &(&str, &str)| {
        format!("<member><name>{name}</name><value>{value}</value></member>")
    };
    let object = |(class, id, fields): &Object<'_>| {
        let fields: String = fields.iter().map(field).collect();
        let snapshot = format!("<struct>{fields}</struct>");
        let all = [("class", *class), ("id", *id), ("snapshot", &snapshot)];
        let all: String = all.iter().map(field).collect();
        format!("<value><struct>{all}</struct></value>")
    };
    let objects: String = objects.iter().map(object).collect();
    let objects = format!("<array><data>{objects}</data></array>");
    format!("<value><struct>{}</struct></value>", field(&("objects", &objects)))
}

#[test]
fn disks_of_a_machine() {
    let drive = [("VDI", "Ref:7"), ("type", "Disk"), ("userdevice", "0")];
    let cd = [("VDI", "Ref:8"), ("type", "CD")];
    let empty = [("VDI", "OpaqueRef:NULL"), ("type", "Disk")];
    let content =
        [("virtual_size", "4096"), ("name_label", "a &amp; b"), ("x", "<struct></struct>")];
    let text = machine(&[
        ("VM", "Ref:0", &[("name_label", "vm")]),
        ("VBD", "Ref:1", &drive),
        ("VBD", "Ref:2", &cd),
        ("VBD", "Ref:3", &empty),
        ("VDI", "Ref:7", &content),
    ]);
    let found = disks(text.as_bytes()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((&*found[0].reference, found[0].size), ("Ref:7", 4096));
    assert_eq!(found[0].label.as_deref(), Some("a & b"));
    assert_eq!(found[0].device.as_deref(), Some("0"));
}

#[test]
fn descriptions_that_are_wrong() {
    let drive = [("VDI", "Ref:7"), ("type", "Disk")];
    let odd = [("VDI", "../7"), ("type", "Disk")];
    for (text, word) in [
        (machine(&[("VBD", "Ref:1", &drive)]), "lacks the disk"),
        (machine(&[("VBD", "Ref:1", &drive), ("VDI", "Ref:7", &[])]), "valid size"),
        (
            machine(&[("VBD", "Ref:1", &drive), ("VDI", "Ref:7", &[("virtual_size", "-1")])]),
            "valid size",
        ),
        (
            machine(&[("VBD", "Ref:1", &odd), ("VDI", "../7", &[("virtual_size", "1")])]),
            "odd reference",
        ),
        (machine(&[("VDI", "Ref:7", &[("virtual_size", "1"), ("virtual_size", "2")])]), "twice"),
        ("<!DOCTYPE x><value/>".into(), "document type"),
        ("<member>".repeat(100), "too deep"),
        ("<value>&unknown;</value>".into(), "unknown entity"),
    ] {
        let error = disks(text.as_bytes()).unwrap_err();
        assert!(error.contains(word), "{word}: {error}");
    }
}

#[test]
fn errors_have_one_line() {
    let error = disks(b"<value><struct></a\x1b[2J\n></value>").unwrap_err();
    assert!(error.starts_with("is no XML: ") && !error.contains(char::is_control), "{error:?}");
}
