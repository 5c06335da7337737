//! Opens any text as the descriptor of a vmdk disk. A disk of zeros has the size of its lines, and no other disk can
//! be opened, because there are no files.

#![no_main]

use blkimage::{ExtentKind, Format, Memory, OpenOptions, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<(u8, u32)>, Vec<(u16, Vec<u8>)>)| {
    let (lines, changes) = input;
    let mut text = Vec::new();
    for (kind, number) in lines {
        let number = number.to_string();
        let line = LINES[usize::from(kind) % LINES.len()].replace('N', &number);
        text.extend(line.bytes());
        text.push(b'\n');
    }
    for (place, bytes) in changes {
        let at = usize::from(place) % (text.len() + 1);
        let end = (at + bytes.len()).min(text.len());
        text.splice(at..end, bytes);
    }
    let options = OpenOptions::new().format(Format::Vmdk);
    match options.open_storage(Box::new(Memory(text.clone())), "fuzz") {
        Err(error) => {
            let message = error.to_string();
            assert!(
                message.starts_with("fuzz: ") && !message.chars().any(char::is_control),
                "{message}"
            );
        }
        Ok(image) => {
            let sectors = sectors(&text).expect("a size in every line");
            assert_eq!(u128::from(image.size()), 512 * sectors, "{}", text.escape_ascii());
            let mut offset = 0;
            while offset < image.size() {
                let extent = image.extent(offset, image.size() - offset).unwrap();
                assert!(
                    extent.offset == offset && extent.kind == ExtentKind::Zero && extent.length > 0
                );
                offset = extent.end();
            }
        }
    }
});

/// Returns the sum of the sectors in the lines of extents, by their words.
fn sectors(text: &[u8]) -> Option<u128> {
    let text = text.split(|byte| *byte == 0).next()?;
    let mut sum = 0;
    for line in text.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let ["RW" | "RDONLY", sectors, kind] = words[..] {
            assert_eq!(kind, "ZERO");
            sum += sectors.parse::<u128>().ok()?;
        }
    }
    Some(sum)
}

/// Lines of a descriptor, with a number in place of `N`.
const LINES: [&str; 12] = [
    "# Disk DescriptorFile",
    "version=1",
    "CID=N",
    "parentCID=ffffffff",
    "createType=\"custom\"",
    "createType=\"monolithicFlat\"",
    "RW N ZERO",
    "RDONLY N ZERO",
    "RW N FLAT \"file\" N",
    "RW N SPARSE \"file\"",
    "ddb.adapterType = \"ide\"",
    "parentFileNameHint=\"file\"",
];
