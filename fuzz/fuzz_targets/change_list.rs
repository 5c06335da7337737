//! Reads any text as a list of changed extents, in every form. An accepted list has the extents that a plain reading of
//! the text finds, and is the same after it is printed and read.

#![no_main]

use blksum::changes::{Form, List, Output};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/blksum/src/changes/list/model.rs"]
mod model;

fuzz_target!(|input: (u8, Vec<(u16, u8, Vec<u8>)>)| {
    let (start, changes) = input;
    let mut text = LISTS[usize::from(start) % LISTS.len()].as_bytes().to_vec();
    for (place, removed, bytes) in changes {
        let at = usize::from(place) % (text.len() + 1);
        let end = (at + usize::from(removed)).min(text.len());
        text.splice(at..end, bytes);
    }
    for form in Form::ALL.iter().copied().map(Some).chain([None]) {
        match List::parse(&text[..], form) {
            Err(error) => {
                let message = error.to_string();
                assert!(!message.chars().any(char::is_control), "{message}");
            }
            Ok(list) => check(&text, &list),
        }
    }
});

fn check(text: &[u8], list: &List) {
    let extents = model::extents(text, list.form.name());
    assert_eq!(list.changes.extents(), model::joined(&extents), "{}", text.escape_ascii());
    for output in Output::ALL {
        let mut printed = Vec::new();
        list.changes.print(*output, list.disk_size.unwrap_or(0), &mut printed).unwrap();
        let form = Some(output.name().parse().unwrap());
        assert_eq!(List::parse(&printed[..], form).unwrap().changes, list.changes);
    }
}

/// A list in each form.
const LISTS: [&str; 13] = [
    "",
    r#"[{"block_metadata_type":1,"volume_capacity_bytes":1048576,"block_metadata":[{"size_bytes":4096},{"byte_offset":8192,"size_bytes":4096}]}]"#,
    r#"{"blockMetadataType":"VARIABLE_LENGTH","volumeCapacityBytes":"1048576","blockMetadata":[{"byteOffset":"8192","sizeBytes":"4096"}]}"#,
    r#"[
{ "offset": 0, "length": 65536, "type": 1, "description": "dirty"},
{ "offset": 65536, "length": 983040, "type": 0, "description": "clean"}
]
"#,
    r#"[{"offset":0,"length":4194304,"exists":"true"},{"offset":8388608,"length":4096,"exists":"false"}]"#,
    r#"{"ChangedBlocks":[{"BlockIndex":0,"FirstBlockToken":"AAAB","SecondBlockToken":"AAAC"},{"BlockIndex":7}],"ExpiryTime":1790000000.0,"VolumeSize":8,"BlockSize":524288,"NextToken":"abc"}
{"Blocks":[{"BlockIndex":8,"BlockToken":"AAAC"}],"VolumeSize":8,"BlockSize":524288}"#,
    r#"<superblock uuid="" time="1" transaction="1" data_block_size="128" nr_data_blocks="1000">
  <diff left="1" right="3">
    <same begin="0" length="2"/>
    <different>
      <range begin="2" left_data_begin="2" right_data_begin="20" length="1"/>
    </different>
    <left_only begin="3" length="1"/>
    <right_only begin="9" length="3"/>
  </diff>
</superblock>
"#,
    r#"[{"offset":0,"length":512},{"offset":1024,"length":512}]"#,
    "offset,length\n0,512\n1024,512\n",
    "0 512\n1024 512\n",
    r#"{"startOffset":0,"length":65536,"changedArea":[{"start":512,"length":512}]}
{"StartOffset":65536,"Length":4096,"ChangedArea":[{"Start":66048,"Length":1024}]}"#,
    "(vim.VirtualMachine.DiskChangeInfo) {
   dynamicType = <unset>,
   dynamicProperty = (vmodl.DynamicProperty) [],
   startOffset = 0,
   length = 65536,
   changedArea = (vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent) [
      (vim.VirtualMachine.DiskChangeInfo.DiskChangeExtent) {
         dynamicType = <unset>,
         dynamicProperty = (vmodl.DynamicProperty) [],
         start = 512,
         length = 512
      }
   ]
}
",
    "gAEAAAD/",
];
