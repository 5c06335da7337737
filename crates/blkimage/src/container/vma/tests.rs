use std::io::{Cursor, Read};

use md5::{Digest as _, Md5};

use super::header::{BLOCK, CLUSTER};
use super::*;
use crate::storage::Memory;

fn seal(bytes: &mut [u8], at: usize) {
    bytes[at..at + 16].fill(0);
    let sum = Md5::digest(&*bytes);
    bytes[at..at + 16].copy_from_slice(&sum);
}

/// Returns an archive of a disk with these clusters, each a number and a mask, three in an extent.
fn archive(size: u64, clusters: &[(u32, u16)]) -> Vec<u8> {
    let mut bytes = vec![0; FIXED + 512];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[48..60].copy_from_slice(&[0, 0, 0x30, 0, 0, 0, 2, 0, 0, 0, 0x32, 0]);
    bytes[FIXED + 1..FIXED + 8].copy_from_slice(b"\x05\0disk\0");
    bytes[4096 + 32 + 3] = 1;
    bytes[4096 + 40..4096 + 48].copy_from_slice(&size.to_be_bytes());
    seal(&mut bytes, 32);
    for part in clusters.chunks(3) {
        let mut extent = vec![0; 512];
        extent[..4].copy_from_slice(b"VMAE");
        let mut content = Vec::new();
        for (index, (number, mask)) in part.iter().enumerate() {
            let info = u64::from(*mask) << 48 | 1 << 32 | u64::from(*number);
            extent[40 + 8 * index..][..8].copy_from_slice(&info.to_be_bytes());
            for bit in (0..16).filter(|bit| mask & 1 << bit != 0) {
                content.extend([*number as u8 * 16 + bit + 1; BLOCK as usize]);
            }
        }
        extent[6..8].copy_from_slice(&((content.len() as u64 / BLOCK) as u16).to_be_bytes());
        seal(&mut extent, 24);
        bytes.extend(extent);
        bytes.extend(content);
    }
    bytes
}

/// Reads the disk in both ways.
fn read(bytes: &[u8], max_held: u64) -> [Result<Vec<u8>, String>; 2] {
    let storage: Arc<dyn Storage> = Arc::new(Memory(bytes.to_vec()));
    let file = whole(storage.clone(), Path::new("x.vma"));
    let mut stream: Stream = Box::new(Cursor::new(bytes.to_vec()));
    let header = match read_header(&file, &mut stream) {
        Ok(header) => header,
        Err(error) => return [(); 2].map(|()| Err(error.to_string())),
    };
    let device = &header.devices[0];
    let plain = Disk::new(&file, &header, device).map_err(|error| error.to_string());
    let plain = plain.and_then(|map| {
        let disk = Runs { storage, map };
        let mut content = vec![0; disk.size() as usize];
        disk.read_exact_at(&mut content, 0).map(|()| content).map_err(|error| error.to_string())
    });
    let mut content = Vec::new();
    let mut ordered = InOrder::new(stream, &header, device, max_held);
    let ordered = ordered.read_to_end(&mut content).map(|_| content);
    [plain, ordered.map_err(|error| error.to_string())]
}

#[test]
fn clusters_in_any_order() {
    let size = 4 * CLUSTER - 5000;
    let mut expected = vec![0; 4 * CLUSTER as usize];
    let clusters = [(0, 0xffff), (1, 0), (2, 0x8001), (3, 0x0ff0)];
    for (number, mask) in clusters {
        for bit in (0..16).filter(|bit| mask & 1 << bit != 0) {
            let at = number as usize * CLUSTER as usize + usize::from(bit) * BLOCK as usize;
            expected[at..at + BLOCK as usize].fill(number as u8 * 16 + bit + 1);
        }
    }
    expected.truncate(size as usize);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let archive = archive(size, &order.map(|index| clusters[index]));
        for found in read(&archive, 1 << 20) {
            assert!(found.unwrap() == expected, "{order:?}");
        }
        for length in (0..archive.len()).step_by(97) {
            assert!(read(&archive[..length], 1 << 20).iter().all(Result::is_err), "{length}");
        }
    }
    let reversed = archive(size, &[(3, 1), (2, 1), (1, 1), (0, 1)]);
    assert!(read(&reversed, CLUSTER)[1].as_ref().unwrap_err().contains("decompress it first"));
}

#[test]
fn clusters_that_are_wrong() {
    for (clusters, word) in [
        (&[(0, 1), (0, 1)][..], "twice"),
        (&[(0, 1), (1, 0), (0, 0)], "twice"),
        (&[(1, 1)], "lacks cluster 0"),
        (&[(0, 1)], "lacks cluster 1"),
        (&[(0, 1), (1, 1), (2, 0)], "past the end"),
    ] {
        for found in read(&archive(2 * CLUSTER, clusters), 1 << 20) {
            let error = found.unwrap_err();
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}
