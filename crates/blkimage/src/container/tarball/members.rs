//! Which members an archive may have, and which of them are disks.

use std::borrow::Cow;

use crate::container::choice;
use crate::container::entries::Rules;
use crate::error::Result;
use crate::probe::PROBE_SIZE;
use crate::storage::HostFile;
use crate::tar::Entry;

/// Returns whether a file of an archive is a disk.
pub(super) fn is_disk(file: &HostFile, entry: &Entry) -> Result<bool> {
    Ok(is_disk_by(entry, &head_of(file, entry)?))
}

/// Returns whether a file of which `head` is stored first is a disk.
pub(super) fn is_disk_by(entry: &Entry, head: &[u8]) -> bool {
    choice::is_disk(&entry.name, &first_bytes(entry, head))
}

/// Returns the first bytes that are stored of a file.
pub(super) fn head_of(file: &HostFile, entry: &Entry) -> Result<Vec<u8>> {
    let mut head = vec![0; entry.size.min(PROBE_SIZE as u64) as usize];
    file.read_exact_at(&mut head, entry.offset)?;
    Ok(head)
}

/// Returns the first bytes of a file of which `stored` is stored first. Holes are zeros.
fn first_bytes<'a>(entry: &Entry, stored: &'a [u8]) -> Cow<'a, [u8]> {
    let Some(map) = &entry.sparse else { return Cow::Borrowed(stored) };
    let mut head = vec![0; map.size.min(PROBE_SIZE as u64) as usize];
    for (part, place) in &map.parts {
        let Some(buf) = usize::try_from(part.start).ok().and_then(|start| head.get_mut(start..))
        else {
            break;
        };
        let Some(bytes) = usize::try_from(*place).ok().and_then(|place| stored.get(place..)) else {
            break;
        };
        let length = (part.end - part.start).min(buf.len().min(bytes.len()) as u64) as usize;
        buf[..length].copy_from_slice(&bytes[..length]);
    }
    Cow::Owned(head)
}

/// Files and folders. What is extracted after a link may go where it leads.
pub(super) const RULES: Rules = Rules { max_headers: MAX_HEADERS, special: false, sparse: true };

/// Maximum number of headers of members of a tar archive with images. All headers are read whenever it is opened.
/// Limit in headers.
const MAX_HEADERS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar::{Node, Sparse};

    #[test]
    fn an_image_may_have_holes_in_its_header() {
        let parts = vec![(0..100, 0), (200..300, 100)];
        let sparse = Some(Sparse { size: 1 << 30, parts }.into());
        let (name, node) = (b"x".to_vec(), Node::File);
        let entry = Entry { name, offset: 512, size: 200, node, target: None, sparse };
        let head = first_bytes(&entry, &[[1; 100], [2; 100]].concat()).into_owned();
        assert_eq!(head.len(), PROBE_SIZE);
        assert_eq!(head[..300], [[1; 100], [0; 100], [2; 100]].concat());
        assert!(head[300..].iter().all(|byte| *byte == 0));
        assert_eq!(*first_bytes(&Entry { sparse: None, ..entry }, b"abc"), *b"abc");
    }
}
