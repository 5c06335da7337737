use std::io::Read;

use proptest::prelude::*;

use super::super::{Changes, Output};
use super::{Form, List, ListError, model};

fn parse(text: &str) -> List {
    List::parse(text.as_bytes(), None).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns the message for a text that is to have a form.
fn refusal(text: &str, form: Option<Form>) -> String {
    let message = List::parse(text.as_bytes(), form).expect_err(text).to_string();
    assert!(message.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{message:?}");
    message
}

#[track_caller]
fn assert_list(text: &str, form: Form, disk_size: Option<u64>, extents: &[(u64, u64)]) {
    for given in [None, Some(form)] {
        let list = List::parse(text.as_bytes(), given).unwrap_or_else(|it| panic!("{text}: {it}"));
        assert_eq!((list.form, list.disk_size), (form, disk_size), "{text}");
        assert_eq!(list.changes.extents(), model::joined(extents), "{text}");
    }
    let others = Form::ALL.iter().filter(|given| ![form, Form::Xenserver].contains(given));
    for given in others.filter(|_| form != Form::Json) {
        let error = List::parse(text.as_bytes(), Some(*given)).expect_err(text);
        assert!(matches!(error, ListError::OtherForm { .. }), "{given}: {error}");
    }
}

#[track_caller]
fn assert_refused(text: &str, message: &str) {
    assert_eq!(refusal(text, None), message, "{text}");
}

#[test]
fn names() {
    for form in Form::ALL {
        assert_eq!(form.to_string().parse(), Ok(*form));
    }
    assert!("CSI".parse::<Form>().is_err());
    for form in Output::ALL {
        assert_eq!(form.to_string().parse(), Ok(*form));
    }
    assert!("csv".parse::<Output>().is_err());
}

#[test]
fn csi() {
    let text = r#"[{"block_metadata_type":1,"volume_capacity_bytes":100000,"block_metadata":[{"size_bytes":1000},{"byte_offset":5000,"size_bytes":1000}]}]"#;
    assert_list(text, Form::Csi, Some(100_000), &[(0, 1000), (5000, 1000)]);
    // Several records, an empty one, several arrays.
    let records = r#"[{"block_metadata_type":2,"volume_capacity_bytes":9000,"block_metadata":[{"size_bytes":1}]},
        {"block_metadata_type":0,"volume_capacity_bytes":0,"block_metadata":null}]
        [{"block_metadata_type":2,"volume_capacity_bytes":9000,"block_metadata":[{"byte_offset":8000,"size_bytes":4096}]}]"#;
    assert_list(records, Form::Csi, Some(9000), &[(0, 1), (8000, 4096)]);
    // As protobuf's JSON, one message after another.
    let messages = r#"{"blockMetadataType":"VARIABLE_LENGTH","volumeCapacityBytes":"100000","blockMetadata":[{"sizeBytes":"512"}]}
        {"blockMetadataType":"VARIABLE_LENGTH","volumeCapacityBytes":"100000","blockMetadata":[{"byteOffset":"1024","sizeBytes":"512"}]}"#;
    assert_list(messages, Form::Csi, Some(100_000), &[(0, 512), (1024, 512)]);
    assert_list("[][{\"block_metadata\":[{\"size_bytes\":7}]}]", Form::Csi, None, &[(0, 7)]);
}

#[test]
fn csi_refused() {
    let with = |block: &str| format!(r#"[{{"block_metadata_type":1,"block_metadata":[{block}]}}]"#);
    for (block, message) in [
        (r#"{"byte_offset":5}"#, "missing field `size_bytes`"),
        ("{}", "missing field `size_bytes`"),
        ("[0,5]", "invalid type: sequence, expected a record"),
        (r#"{"size_bytes":0}"#, "the extent at 0 has no bytes"),
        (r#"{"size_bytes":5,"offset":5}"#, "unknown field `offset`, expected"),
        (r#"{"byte_offset":-1,"size_bytes":5}"#, "invalid type: integer `-1`, expected a number"),
        (r#"{"byte_offset":null,"size_bytes":5}"#, "invalid type: null, expected a number"),
        (r#"{"byte_offset":"0x10","size_bytes":5}"#, "invalid value: string \"0x10\""),
        (r#"{"byte_offset":1,"byteOffset":2,"size_bytes":5}"#, "duplicate field `byte_offset`"),
        (
            r#"{"byte_offset":9223372036854775800,"size_bytes":8}"#,
            "the extent at 9223372036854775800 is too long: 8",
        ),
    ] {
        let refusal = refusal(&with(block), None);
        assert!(refusal.starts_with("line 1, byte ") && refusal.contains(message), "{refusal}");
    }
    let record = |fields: &str| format!(r#"[{{"block_metadata":[{{"size_bytes":5}}],{fields}}}]"#);
    for (fields, message) in [
        (r#""block_metadata_type":3"#, "invalid value: integer `3`, expected 1 (FIXED_LENGTH)"),
        (r#""block_metadata_type":"FIXED""#, "invalid value: string \"FIXED\""),
        (r#""block_metadata":[]"#, "duplicate field"),
        (r#""volume_capacity_bytes":9223372036854775808"#, "is too large"),
        (r#""volume_capacity_bytes":true"#, "invalid type: boolean `true`"),
        (r#""more":[]"#, "unknown field `more`"),
    ] {
        let refusal = refusal(&record(fields), None);
        assert!(refusal.contains(message), "{refusal}");
    }
    assert_refused(
        r#"[{"volume_capacity_bytes":9,"block_metadata":[{"byte_offset":9,"size_bytes":1}]}]"#,
        "the extent at 9 starts past the end of the disk of 9 bytes",
    );
    assert_refused(
        r#"[{"volume_capacity_bytes":9},{"volume_capacity_bytes":10}]"#,
        "line 1, byte 57: states two sizes of the disk, 9 and 10 bytes",
    );
    assert_refused(
        r#"[{"block_metadata":{}}]"#,
        "line 1, byte 21: a record where an array of records is expected",
    );
}

/// A page as pyVmomi 9.1 prints it.
const PYVMOMI: &str = "(vim.VirtualMachine.DiskChangeInfo) {
   dynamicType = <unset>,
   dynamicProperty = (vmodl.DynamicProperty) [],
   startOffset = 0,
   length = 1073741824,
   changedArea = (vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent) [
      (vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent) {
         dynamicType = <unset>,
         dynamicProperty = (vmodl.DynamicProperty) [],
         start = 0,
         length = 65536
      },
      (vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent) {
         dynamicType = <unset>,
         dynamicProperty = (vmodl.DynamicProperty) [],
         start = 131072,
         length = 65536
      }
   ]
}
";

#[test]
fn vmware() {
    let extents = [(0, 65536), (131_072, 65536)];
    let govmomi = r#"{"StartOffset":0,"Length":1073741824,"ChangedArea":[{"Start":0,"Length":65536},{"Start":131072,"Length":65536}]}"#;
    assert_list(govmomi, Form::Vmware, Some(1 << 30), &extents);
    let python = r#"{"dynamicType": null, "dynamicProperty": [], "startOffset": 0, "length": 1073741824, "changedArea": [{"dynamicType": null, "dynamicProperty": [], "start": 0, "length": 65536, "_vimtype": "vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent"}, {"dynamicType": null, "dynamicProperty": [], "start": 131072, "length": 65536, "_vimtype": "vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent"}], "_vimtype": "vim.VirtualMachine.DiskChangeInfo"}"#;
    assert_list(python, Form::Vmware, Some(1 << 30), &extents);
    assert_list(PYVMOMI, Form::Vmware, Some(1 << 30), &extents);
    let unchanged = "(vim.VirtualMachine.DiskChangeInfo) {
   dynamicType = <unset>,
   dynamicProperty = (vmodl.DynamicProperty) [],
   startOffset = 1073741824,
   length = 512,
   changedArea = (vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent) []
}";
    let both = format!("{PYVMOMI}\n{unchanged}");
    assert_list(&both, Form::Vmware, Some((1 << 30) + 512), &extents);
    let pages = r#"[{"startOffset":0,"length":10,"changedArea":null},{"startOffset":10,"length":5,"changedArea":[{"start":12,"length":3}]}]"#;
    assert_list(pages, Form::Vmware, Some(15), &[(12, 3)]);
}

#[test]
fn vmware_refused() {
    let page = |start: u64, area: &str| {
        format!(r#"{{"startOffset":{start},"length":10,"changedArea":[{area}]}}"#)
    };
    let area = r#"{"start":5,"length":5}"#;
    for (text, message) in [
        (page(10, ""), "the page from 10 on does not follow the end of the last, 0"),
        (page(0, area) + &page(20, ""), "the page from 20 on does not follow the end of"),
        (page(0, area) + &page(0, area), "the page from 0 on does not follow the end of"),
        (page(0, area) + &page(10, area), "the area of 5 to 10 is not within the page of 10 to 20"),
        (page(0, r#"{"start":5,"length":6}"#), "the area of 5 to 11 is not within the page of 0"),
        (page(0, r#"{"start":5,"length":0}"#), "the extent at 5 has no bytes"),
        (page(0, r#"{"start":5}"#), "missing field `length`"),
        (page(0, r#"{"start":5,"length":1,"x":1}"#), "unknown field `x`"),
        (page(0, "").replace("10", "0"), "the extent at 0 has no bytes"),
        (page(0, "").replace("]}", ""), "the list is cut"),
        (r#"{"startOffset":0,"changedArea":[]}"#.into(), "missing field `length`"),
        (r#"{"startOffset":0,"length":1,"length":1}"#.into(), "duplicate field"),
        (r#"{"startOffset":0,"length":1,"dynamicProperty":[1]}"#.into(), "trailing characters"),
    ] {
        let refusal = refusal(&text, None);
        assert!(refusal.contains(message), "{text}: {refusal}");
    }
    // A text that is cut, or lacks any line, but for the two that say nothing.
    let lines: Vec<_> = PYVMOMI.lines().collect();
    for left_out in 0..lines.len() {
        let kept = |at: &usize| *at != left_out;
        let text: Vec<_> = (0..lines.len()).filter(kept).map(|at| lines[at]).collect();
        let read = List::parse(text.join("\n").as_bytes(), Some(Form::Vmware));
        assert_eq!(read.is_ok(), lines[left_out].contains("dynamic"), "{left_out}: {read:?}");
        let cut = lines[..left_out].join("\n");
        assert!(List::parse(cut.as_bytes(), Some(Form::Vmware)).is_err(), "{left_out}");
    }
    assert!(refusal(&PYVMOMI.replace("65536\n", "65536,\n"), None).starts_with("line 11: "));
    assert!(refusal(&PYVMOMI.replace("131072", "-1"), None).contains("'-1' is not a number"));
}

#[test]
fn xenserver() {
    let read = |text: &str| {
        let list = List::parse(text.as_bytes(), Some(Form::Xenserver)).unwrap();
        assert_eq!((list.form, list.disk_size), (Form::Xenserver, None));
        (list.changes.extents().to_vec(), list.covered.unwrap())
    };
    let block = 64 << 10;
    let expected = |extents: &[(u64, u64)], blocks| (model::joined(extents), blocks * block);
    assert_eq!(read("gAE="), expected(&[(0, block), (15 * block, block)], 16));
    assert_eq!(read(" AAAA\nAAA= \n"), expected(&[], 40));
    let long = "AAAA".repeat(100_000) + "/w==";
    let start = 300_000 * 8;
    assert_eq!(read(&long), expected(&[(start * block, 8 * block)], start + 8));
}

#[test]
fn xenserver_refused() {
    for (text, message) in [
        ("gA", "no base64: "),
        ("gA=", "no base64: "),
        ("gB==", "no base64: "),
        ("gA==gA==", "the base64 continues after its padding"),
        ("g-A=", "no base64: "),
        ("[{\"offset\":0,\"length\":1}]", "no base64: "),
        (" \n", "the text is empty"),
        (&("AAAA".repeat((1 << 14) - 1) + "gA==" + "AAAA"), "continues after its padding"),
    ] {
        let refusal = refusal(text, Some(Form::Xenserver));
        assert!(refusal.contains(message), "{refusal}");
    }
    assert_refused("gAE=", "not a list of changed extents in a known form");
}

#[test]
fn nbdinfo() {
    let text = r#"[
{ "offset": 0, "length": 65536, "type": 1, "description": "dirty"},
{ "offset": 65536, "length": 983040, "type": 0, "description": "clean"},
{ "offset": 1048576, "length": 512, "type": 1, "description": "dirty"}
]
"#;
    assert_list(text, Form::Nbdinfo, Some(1_049_088), &[(0, 65536), (1_048_576, 512)]);
    let clean = r#"[{"offset":0,"length":9,"type":0,"description":"clean"}]"#;
    assert_list(clean, Form::Nbdinfo, Some(9), &[]);
}

#[test]
fn nbdinfo_refused() {
    let map = |kind: &str| format!(r#"[{{"offset":0,"length":65536,{kind}}}]"#);
    for (kind, message) in [
        (r#""type":0,"description":"data""#, "a map of base:allocation does not tell changes"),
        (r#""type":3,"description":"hole,zero""#, "a map of base:allocation does not"),
        (r#""type":1,"description":"local""#, "a map of qemu:allocation-depth does not"),
        (r#""type":2,"description":"backing depth 2""#, "a map of qemu:allocation-depth does not"),
        (r#""type":1"#, "a map of an unknown context does not tell changes"),
        (r#""type":1,"description":"clean""#, "type 1, 'clean', is neither clean nor dirty"),
        (r#""type":3,"description":"dirty""#, "type 3, 'dirty', is neither clean nor dirty"),
        (r#""type":"1","description":"dirty""#, "invalid type: string \"1\", expected u64"),
    ] {
        let refusal = refusal(&map(kind), None);
        assert!(refusal.contains(message), "{refusal}");
    }
    let gap = r#"[{"offset":0,"length":512,"type":1,"description":"dirty"},
{"offset":1024,"length":512,"type":1,"description":"dirty"}]"#;
    assert_refused(
        gap,
        "line 2, byte 59: the extent at 1024 does not follow the end of the last, 512",
    );
}

#[test]
fn rbd() {
    let text = r#"[{"offset":0,"length":4194304,"exists":"true"},{"offset":8388608,"length":4096,"exists":"false"}]"#;
    assert_list(text, Form::Rbd, None, &[(0, 4_194_304), (8_388_608, 4096)]);
    assert_refused(
        r#"[{"offset":0,"length":5,"exists":"maybe"}]"#,
        "line 1, byte 40: unknown variant `maybe`, expected `true` or `false`",
    );
    assert_refused(
        r#"[{"offset":0,"length":5,"exists":"true"},{"offset":8,"length":5}]"#,
        "line 1, byte 64: missing field `exists`",
    );
}

#[test]
fn ebs() {
    let changed = r#"{
    "ChangedBlocks": [
        {"BlockIndex": 0, "FirstBlockToken": "AAAB", "SecondBlockToken": "AAAC"},
        {"BlockIndex": 7, "SecondBlockToken": "AAAC"}
    ],
    "ExpiryTime": 1790000000.0,
    "VolumeSize": 8,
    "BlockSize": 524288,
    "NextToken": "abc"
}
{"ChangedBlocks":[{"BlockIndex":8}],"ExpiryTime":"2026-11-26T00:00:00+00:00","VolumeSize":8,"BlockSize":524288,"NextToken":null}"#;
    assert_list(changed, Form::Ebs, Some(8 << 30), &[(0, 524_288), (7 * 524_288, 1_048_576)]);
    let blocks =
        r#"[{"Blocks":[{"BlockIndex":3,"BlockToken":"AAA="}],"VolumeSize":1,"BlockSize":524288}]"#;
    assert_list(blocks, Form::Ebs, Some(1 << 30), &[(3 * 524_288, 524_288)]);
}

#[test]
fn ebs_refused() {
    assert_refused(
        r#"{"ChangedBlocks":[{"BlockIndex":0}],"VolumeSize":1,"BlockSize":524288,"NextToken":"abc"}"#,
        "the list is cut: its last page has a NextToken",
    );
    for (page, message) in [
        (r#"{"VolumeSize":1,"BlockSize":524288}"#, "a page without ChangedBlocks or Blocks"),
        (r#"{"ChangedBlocks":[{"BlockIndex":0}]}"#, "missing field `BlockSize`"),
        (r#"{"ChangedBlocks":[{"FirstBlockToken":"A"}],"BlockSize":512}"#, "missing field"),
        (r#"{"ChangedBlocks":[{"BlockIndex":0}],"BlockSize":0}"#, "has no bytes"),
        (
            r#"{"ChangedBlocks":[{"BlockIndex":9223372036854775806}],"BlockSize":524288}"#,
            "BlockIndex 9223372036854775806 is too large",
        ),
        (r#"{"Blocks":[],"BlockSize":512,"VolumeSize":9999999999999}"#, "VolumeSize is too large"),
        (r#"{"Blocks":[],"BlockSize":512,"ExpiryTime":[[]]}"#, "expected a string or a number"),
        (r#"{"Blocks":[{"BlockIndex":2048}],"BlockSize":524288,"VolumeSize":1}"#, "past the end"),
    ] {
        let refusal = refusal(page, None);
        assert!(refusal.contains(message), "{refusal}");
    }
}

const THIN_DELTA: &str = r#"<superblock uuid="" time="1" transaction="1" data_block_size="128" nr_data_blocks="1000">
  <diff left="1" right="3">
    <same begin="0" length="2"/>
    <different begin="2" length="1"/>
    <left_only begin="3" length="1"/>
    <right_only begin="9" length="3"/>
  </diff>
</superblock>
"#;

#[test]
fn thin_delta() {
    let block = 128 * 512;
    let extents = [(2 * block, 2 * block), (9 * block, 3 * block)];
    assert_list(THIN_DELTA, Form::ThinDelta, None, &extents);
    let verbose = r#"<superblock uuid="" time="1" transaction="1" data_block_size="128" nr_data_blocks="1000">
  <diff left="1" right="3">
    <same>
      <range begin="0" data_begin="0" length="2"/>
    </same>
    <different>
      <range begin="2" left_data_begin="2" right_data_begin="20" length="1"/>
    </different>
    <left_only>
      <range begin="3" data_begin="3" length="1"/>
    </left_only>
    <right_only>
      <range begin="9" data_begin="21" length="2"/>
      <range begin="11" data_begin="40" length="1"/>
    </right_only>
  </diff>
</superblock>"#;
    assert_list(verbose, Form::ThinDelta, None, &extents);
    let empty =
        r#"<superblock data_block_size="128"><diff left="1" right="1"></diff></superblock>"#;
    assert_list(empty, Form::ThinDelta, None, &[]);
}

#[test]
fn thin_delta_refused() {
    let other = |from, to| refusal(&THIN_DELTA.replace(from, to), None);
    for (from, to, message) in [
        ("data_block_size", "block_size", "line 1: no attribute data_block_size"),
        ("\"128\"", "\"0\"", "line 1: data_block_size is not a size of blocks"),
        ("<different", "<changed", "line 4: unknown element <changed>"),
        ("<different", "<different data_end=\"1\"", "line 4: unknown attribute data_end"),
        ("<different", "<different begin=\"1\"", "line 4: attribute begin is there twice"),
        ("begin=\"2\"", "", "line 4: no attribute begin"),
        ("begin=\"2\"", "begin=\"-2\"", "line 4: '-2' is not a number of bytes"),
        ("length=\"3\"", "length=\"0\"", "line 6: the extent at 589824 has no bytes"),
        ("length=\"2\"", "length=\"0\"", "line 3: the extent at 0 has no bytes"),
        (
            "length=\"3\"",
            "length=\"140737488355328\"",
            "line 6: the extent at 589824 is too long: ",
        ),
        (
            "length=\"3\"",
            "length=\"999999999999999\"",
            "line 6: length 999999999999999 is too large",
        ),
        ("</diff>", "</diff><diff/>", "line 7: unexpected element <diff>"),
        ("<diff ", "<!-- --><diff ", "line 2: unknown element <!-->"),
        ("<diff ", "<!DOCTYPE a [<!ENTITY b 'b'>]><diff ", "line 2: unknown element <!-->"),
        ("<diff ", "<?xml version='1.0'?><diff ", "line 2: unknown element <?>"),
        ("<diff ", "&b;<diff ", "line 2: text between elements"),
        ("<diff ", "\u{c}<diff ", "line 2: an unexpected character"),
        ("</superblock>", "</superblock>\u{c}", "line 9: an unexpected character"),
        ("<diff ", "x<diff ", "line 2: text between elements"),
        ("</diff>", "", "line 8: </superblock> ends no element"),
        ("</superblock>", "</superblock><superblock>", "line 8: text after the end of the list"),
        ("</superblock>", "</superblock>x", "line 9: text after the end of the list"),
        ("</superblock>", "", "line 9: the list is cut"),
        ("<diff ", "<range begin=\"0\" length=\"1\"/><diff ", "line 2: unexpected element <range>"),
        ("left=\"1\"", "left=\"&lt;\"", "line 2: an attribute is not NAME=\"VALUE\""),
        ("left=\"1\"", "left=\"\u{1b}\"", "line 2: an unexpected character"),
    ] {
        let refusal = other(from, to);
        assert!(refusal.starts_with(message), "{refusal}");
    }
    let long = THIN_DELTA.replace("uuid=\"\"", &format!("uuid=\"{}\"", "x".repeat(5000)));
    assert_refused(&long, "line 1: an element of more than 4096 bytes");
    for start in ["<superblock a='", "<!-- ", "<![CDATA[", "<!DOCTYPE a [", "&", " "] {
        let head = &b"<superblock data_block_size=\"128\">"[..];
        let endless = head.chain(start.as_bytes()).chain(std::io::repeat(b' '));
        let error = List::parse(endless, None).unwrap_err();
        assert_eq!(error.to_string(), "line 1: an element of more than 4096 bytes", "{start}");
    }
    let empty = r#"<superblock data_block_size="128"></superblock>"#;
    assert_refused(empty, "line 1: the list is cut");
}

#[test]
fn columns() {
    assert_list("0 512\n\n4096\t8192\r\n", Form::Lines, None, &[(0, 512), (4096, 8192)]);
    assert_list("   0   512  \n", Form::Lines, None, &[(0, 512)]);
    assert_list("0,512\n4096, 8192\r\n", Form::Csv, None, &[(0, 512), (4096, 8192)]);
    assert_list("Offset,Length\r\n0,512\r\n", Form::Csv, None, &[(0, 512)]);
    assert_list("offset,length\n", Form::Csv, None, &[]);
}

#[test]
fn columns_refused() {
    for (text, message) in [
        ("0 512\n4096 819", "line 2: the list is cut: its last line has no line break"),
        ("0 512\n4096\n", "line 2: is not OFFSET LENGTH"),
        ("0 512 1\n", "line 1: is not OFFSET LENGTH"),
        ("0 512\n# more\n", "line 2: '#' is not a number of bytes"),
        ("0 512\n0,5\n", "line 2: is not OFFSET LENGTH"),
        ("0 0x200\n", "line 1: '0x200' is not a number of bytes"),
        ("0 +512\n", "line 1: '+512' is not a number of bytes"),
        ("-1 512\n", "line 1: '-1' is not a number of bytes"),
        ("0 1e3\n", "line 1: '1e3' is not a number of bytes"),
        ("0 5\u{1b}[0m\n", "line 1: '5\\x1b[0m' is not a number of bytes"),
        ("0 18446744073709551616\n", "line 1: '18446744073709551616' is not a number of bytes"),
        ("0 9223372036854775808\n", "line 1: the extent at 0 is too long: 9223372036854775808"),
        ("0 0\n", "line 1: the extent at 0 has no bytes"),
        ("0,512\n1024,\n", "line 2: '' is not a number of bytes"),
        ("0,512,data\n", "line 1: is not OFFSET,LENGTH"),
        ("0,512\noffset,length\n", "line 2: 'offset' is not a number of bytes"),
        ("offset,length,type\n", "not a list of changed extents in a known form"),
        ("Offset       Length\n", "not a list of changed extents in a known form"),
    ] {
        assert_refused(text, message);
    }
    let long = format!("0 512{}\n", " ".repeat(5000));
    assert_refused(&long, "line 1: has more than 4096 bytes");
}

#[test]
fn empty_texts() {
    for text in ["", " \n"] {
        for form in Form::ALL {
            let list = List::parse(text.as_bytes(), Some(*form));
            match form {
                Form::Lines | Form::Csv => assert!(list.unwrap().changes.is_empty()),
                _ => assert!(matches!(list, Err(ListError::Empty)), "{form}"),
            }
        }
        assert!(matches!(List::parse(text.as_bytes(), None), Err(ListError::Empty)));
    }
    let list = parse("[\n]\n");
    assert!((list.form, list.changes.is_empty(), list.disk_size) == (Form::Json, true, None));
    for form in Form::ALL.iter().filter(|form| form.is_json()) {
        let list = List::parse(&b"[]"[..], Some(*form)).unwrap();
        assert!(list.changes.is_empty() && list.form == *form);
    }
}

#[test]
fn texts_that_are_no_lists() {
    for text in ["hello\n", "\0\0", "\u{feff}[]", "null", "\"text\"", "true"] {
        assert_refused(text, "not a list of changed extents in a known form");
    }
    assert_refused("[1,2]", "line 1, byte 3: invalid type: integer `1`, expected a record");
    assert_refused("[", "line 1, byte 1: the list is cut");
    assert_refused("[] x", "line 1, byte 4: expected value");
    assert_refused("[[]]", "line 1, byte 3: invalid type: sequence, expected a record");
    assert_refused(
        r#"[{"start":0,"length":5}]"#,
        "line 1, byte 10: unknown field `start`, expected `offset` or `length`",
    );
    assert_refused(
        r#"[{"offset":0.5,"length":5}]"#,
        "line 1, byte 15: invalid type: floating point `0.5`, expected u64",
    );
    let text = r#"[{"offset":0,"length":5}]"#;
    let message = refusal(text, Some(Form::Csi));
    assert!(message.starts_with("line 1, byte 11: unknown field `offset`, expected"), "{message}");
    assert_eq!(
        refusal("0 512\n", Some(Form::Csv)),
        "not a list in the form csv, but in the form lines"
    );
    // A field with a terminal's controls, and one that is too long.
    assert_refused(
        "[{\"a\\u001b[0m\\n\":0}]",
        "line 1, byte 17: unknown field `a\\u{1b}[0m\\n`, expected `offset` or `length`",
    );
    assert_refused(
        &format!("[{{\"offset\":0,\"length\":5}},{{\"{}\":1}}]", "\\\"".repeat(3000)),
        "a string of more than 4096 bytes",
    );
    let refusal = refusal(&format!("[{{\"{}\":1}}]", "a".repeat(4000)), None);
    assert!(refusal.len() < 400, "{refusal}");
}

#[test]
fn read_errors() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the cable is out"))
        }
    }
    for text in ["", "[{\"offset\":0,", "0 512\n", "<superblock"] {
        // The error comes after the head.
        let text = format!("{text}{}", " ".repeat(5000));
        let error = List::parse(text.as_bytes().chain(Failing), Some(Form::Lines));
        let error = error.or_else(|_| List::parse(text.as_bytes().chain(Failing), None));
        match error {
            Err(ListError::Read(error)) => assert_eq!(error.to_string(), "the cable is out"),
            Err(ListError::Invalid { .. } | ListError::Empty) => {}
            other => panic!("{other:?}"),
        }
    }
    let json = format!("[{{\"offset\":0,{}", " ".repeat(5000));
    let error = List::parse(json.as_bytes().chain(Failing), None).unwrap_err();
    assert!(matches!(error, ListError::Read(_)), "{error}");
}

#[test]
fn deep_json() {
    for text in ["[".repeat(100_000), "{\"a\":".repeat(100_000), "[{\"offset\":".repeat(50_000)] {
        refusal(&text, None);
        refusal(&text, Some(Form::Ebs));
    }
}

/// A list of extents of whole blocks, in the form.
fn written(form: Form, extents: &[(u64, u64)], block: u64) -> String {
    let each = |write: &dyn Fn(u64, u64) -> String, between: &str| {
        let texts: Vec<_> = extents.iter().map(|it| write(it.0, it.1)).collect();
        texts.join(between)
    };
    match form {
        Form::Csi => {
            let blocks = each(
                &|offset, length| match offset {
                    0 => format!(r#"{{"size_bytes":{length}}}"#),
                    _ => format!(r#"{{"byte_offset":{offset},"size_bytes":{length}}}"#),
                },
                ",",
            );
            format!(
                r#"[{{"block_metadata_type":2,"volume_capacity_bytes":1000000,"block_metadata":[{blocks}]}}]"#
            )
        }
        Form::Rbd => {
            let records = each(
                &|offset, length| {
                    format!(r#"{{"offset":{offset},"length":{length},"exists":"true"}}"#)
                },
                ",",
            );
            format!("[{records}]")
        }
        Form::Json => {
            let records = each(
                &|offset, length| format!("{{\"length\":{length},\"offset\":{offset}}}"),
                ", ",
            );
            format!("[{records}]")
        }
        Form::Nbdinfo => {
            let changes: Changes = extents.iter().map(|it| it.0..it.0 + it.1).collect();
            let mut text = Vec::new();
            changes.print(Output::Nbdinfo, 1_000_000, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        }
        Form::Ebs => {
            let numbers: Vec<_> = extents
                .iter()
                .flat_map(|it| it.0 / block..(it.0 + it.1) / block)
                .map(|index| format!(r#"{{"BlockIndex":{index},"BlockToken":"AA=="}}"#))
                .collect();
            let blocks = numbers.join(",");
            format!(r#"{{"Blocks":[{blocks}],"BlockSize":{block},"VolumeSize":1}}"#)
        }
        Form::Vmware => {
            let areas =
                each(&|offset, length| format!(r#"{{"start":{offset},"length":{length}}}"#), ",");
            format!(r#"{{"startOffset":0,"length":1000000,"changedArea":[{areas}]}}"#)
        }
        Form::ThinDelta => {
            let blocks = each(
                &|offset, length| {
                    let kind = ["different", "left_only", "right_only"][(offset % 3) as usize];
                    let (begin, length) = (offset / block, length / block);
                    format!(
                        r#"<{kind} begin="{begin}" length="{length}"/><same begin="0" length="9"/>"#
                    )
                },
                "\n",
            );
            let sectors = block / 512;
            format!(
                r#"<superblock uuid="" data_block_size="{sectors}"><diff left="1" right="2">{blocks}</diff></superblock>"#
            )
        }
        Form::Csv => {
            "offset,length\n".to_owned()
                + &each(&|offset, length| format!("{offset},{length}\n"), "")
        }
        Form::Lines => each(&|offset, length| format!("{offset} {length}\n"), ""),
        Form::Xenserver => unreachable!("its blocks have another size"),
    }
}

prop_compose! {
    fn extents(block: u64)(
        extents in prop::collection::vec((0_u64..100, 1_u64..9), 0..12)
    ) -> Vec<(u64, u64)> {
        extents.into_iter().map(|(offset, length)| (offset * block, length * block)).collect()
    }
}

/// A form whose lists have extents of any size, and an end.
fn form() -> impl Strategy<Value = Form> {
    let forms = Form::ALL.iter().copied().filter(|form| *form != Form::Xenserver);
    prop::sample::select(forms.collect::<Vec<_>>())
}

/// Checks that an accepted text has the extents that the model finds.
fn check(text: &[u8], form: Option<Form>) {
    let Ok(list) = List::parse(text, form) else { return };
    let extents = model::extents(text, list.form.name());
    assert_eq!(list.changes.extents(), model::joined(&extents), "{}", text.escape_ascii());
}

const BLOCK: u64 = 4096;

proptest! {
    #[test]
    fn all_forms_have_the_same_extents(form in form(), extents in extents(BLOCK)) {
        let text = written(form, &extents, BLOCK);
        let list = List::parse(text.as_bytes(), Some(form)).unwrap();
        prop_assert_eq!(list.changes.extents(), model::joined(&extents));
        check(text.as_bytes(), None);
    }

    #[test]
    fn printed_lists_are_read(
        form in prop::sample::select(Output::ALL), extents in extents(1), disk_size in 0_u64..200
    ) {
        let changes: Changes = extents.iter().map(|it| it.0..it.0 + it.1).collect();
        let mut text = Vec::new();
        changes.print(form, disk_size, &mut text).unwrap();
        let list = List::parse(&text[..], Some(form.name().parse().unwrap())).unwrap();
        prop_assert_eq!(&list.changes, &changes);
        let size = (form == Output::Nbdinfo).then(|| disk_size.max(changes.end()));
        prop_assert_eq!(list.disk_size, size);
    }

    #[test]
    fn cut_lists_are_refused(form in form(), extents in extents(BLOCK), cut in any::<prop::sample::Index>()) {
        let text = written(form, &extents, BLOCK);
        let cut = &text[..cut.index(text.trim_end().len().max(1))];
        // The end of a line could be the end of the list.
        let can_end = matches!(form, Form::Lines | Form::Csv) && (cut.is_empty() || cut.ends_with('\n'));
        prop_assert_eq!(List::parse(cut.as_bytes(), Some(form)).is_ok(), can_end, "{}", cut);
    }

    #[test]
    fn mutants_have_the_extents_of_the_model(
        form in form(),
        extents in extents(BLOCK),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 1..4),
        pieces in prop::sample::select(&b"0123456789,,{}[]\"\"<>/= \n\n-.e\\"[..]),
        is_given in any::<bool>(),
    ) {
        let mut text = written(form, &extents, BLOCK).into_bytes();
        for (place, change, byte) in changes {
            if text.is_empty() {
                break;
            }
            let at = place.index(text.len());
            match change {
                0 => text[at] = byte,
                1 => text[at] = pieces,
                2 => text.insert(at, pieces),
                _ => drop(text.remove(at)),
            }
        }
        check(&text, is_given.then_some(form));
    }

    #[test]
    fn bitmaps(bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        let text = data_encoding::BASE64.encode(&bytes);
        let list = List::parse(text.as_bytes(), Some(Form::Xenserver)).unwrap();
        prop_assert_eq!(list.covered, Some(bytes.len() as u64 * 8 * 65536));
        check(text.as_bytes(), Some(Form::Xenserver));
    }

    #[test]
    fn any_characters_of_base64(text in "[A-Za-d/+=0-3 \n]{1,16}") {
        check(text.as_bytes(), Some(Form::Xenserver));
    }

    #[test]
    fn any_bytes(text in prop::collection::vec(any::<u8>(), 0..200), form in prop::option::of(form())) {
        check(&text, form);
    }
}
