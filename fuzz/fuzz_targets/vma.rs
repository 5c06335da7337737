//! Reads the disks of a backup of Proxmox VE, some bytes of whose headers are changed and have valid digests. The archive and its
//! compressed form have the same disks, or are both refused; without changes, they have the content that was written.

#![no_main]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use blkimage::{OpenOptions, Source};
use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use md5::{Digest, Md5};
use tempfile::TempDir;

/// Clusters: a device, and a mask of blocks.
type Input = (u8, Vec<(bool, u16)>, Vec<(u8, u8)>, Vec<(u16, u8)>, bool);

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir_in("/dev/shm").unwrap());

fuzz_target!(|input: Input| {
    let (order, clusters, swaps, changes, is_sealed) = input;
    let clusters: Vec<_> = clusters.into_iter().take(100).collect();
    let mut archive = archive(&clusters, usize::from(order), &swaps);
    let intact = archive.clone();
    for (place, value) in &changes {
        // The fields in use of the header, its texts, and what follows.
        let place = usize::from(*place);
        let at = match place {
            0..60 => place,
            60..160 => 4096 + 32 + place - 60,
            _ => 12_288 + place - 160,
        };
        if let Some(byte) = archive.get_mut(at) {
            *byte = *value;
        }
    }
    if is_sealed {
        seal(&mut archive);
    }
    let is_changed = archive != intact;
    let (plain, packed) = (FOLDER.path().join("fuzz.vma"), FOLDER.path().join("fuzz.vma.gz"));
    fs::write(&plain, &archive).unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&archive).unwrap();
    fs::write(&packed, encoder.finish().unwrap()).unwrap();
    let (one, other) = (read(&plain), read(&packed));
    assert_eq!(one, other);
    if !is_changed {
        let devices = [false, true].into_iter().filter(|it| !of_device(&clusters, *it).is_empty());
        let contents: Vec<_> = devices.map(|device| Some(written(&clusters, device))).collect();
        assert!(one.expect("is valid") == contents, "another content");
    }
});

/// Returns the content of each disk that can be read.
fn read(path: &Path) -> Option<Vec<Option<Vec<u8>>>> {
    let options = OpenOptions::new();
    let container = match options.open_container(path) {
        Ok(container) => container?,
        Err(error) => {
            assert_one_line(&error);
            return None;
        }
    };
    let content = |name: Vec<u8>| {
        let image = container.open(&options, &name)?;
        // The archive lacks most clusters of a large disk, which a compressed one says at its end.
        if image.size() > 64 << 20 {
            return Ok(None);
        }
        let mut content = vec![0; image.size() as usize];
        image.read_exact_at(&mut content, 0)?;
        image.check_unchanged().map(|()| Some(content))
    };
    let disks = container.disks().unwrap().into_iter();
    let read = |name| {
        content(name).unwrap_or_else(|error: blkimage::Error| {
            assert_one_line(&error);
            None
        })
    };
    Some(disks.map(read).collect())
}

/// Returns the clusters of a device, with their bytes.
fn of_device(clusters: &[(bool, u16)], is_second: bool) -> Vec<u16> {
    clusters.iter().filter(|it| it.0 == is_second).map(|it| it.1).collect()
}

fn block(cluster: usize, block: usize) -> Vec<u8> {
    vec![(cluster * 16 + block) as u8 | 1; 4096]
}

fn written(clusters: &[(bool, u16)], is_second: bool) -> Vec<u8> {
    let mut content = Vec::new();
    for (index, mask) in of_device(clusters, is_second).iter().enumerate() {
        for bit in 0..16 {
            content.extend(if mask & 1 << bit == 0 { vec![0; 4096] } else { block(index, bit) });
        }
    }
    content
}

fn archive(clusters: &[(bool, u16)], first: usize, swaps: &[(u8, u8)]) -> Vec<u8> {
    let mut header = vec![0; 12_288 + 512];
    header[..8].copy_from_slice(b"VMA\0\0\0\0\x01");
    header[8..24].copy_from_slice(b"0123456789abcdef");
    header[48..60].copy_from_slice(&[0, 0, 0x30, 0, 0, 0, 2, 0, 0, 0, 0x32, 0]);
    let mut at = 1;
    for (id, is_second) in [(1, false), (2, true)] {
        let count = of_device(clusters, is_second).len() as u64;
        if count == 0 {
            continue;
        }
        header[12_288 + at..][..8].copy_from_slice(&[6, 0, b'd', b'i', b's', b'k', b'0' + id, 0]);
        let place = 4096 + 32 * usize::from(id);
        header[place + 3] = at as u8;
        header[place + 8..place + 16].copy_from_slice(&(count << 16).to_be_bytes());
        at += 8;
    }
    let mut numbered = Vec::new();
    for (id, is_second) in [(1_u64, false), (2, true)] {
        let masks = of_device(clusters, is_second);
        numbered.extend(masks.into_iter().enumerate().map(|(index, mask)| (id, index, mask)));
    }
    for (one, other) in swaps {
        if !numbered.is_empty() {
            let length = numbered.len();
            numbered.swap(usize::from(*one) % length, usize::from(*other) % length);
        }
    }
    let mut archive = header;
    for part in numbered.chunks(1 + first % 59) {
        let mut extent = vec![0; 512];
        extent[..4].copy_from_slice(b"VMAE");
        extent[8..24].copy_from_slice(b"0123456789abcdef");
        let mut data = Vec::new();
        for (place, (id, index, mask)) in part.iter().enumerate() {
            let info = u64::from(*mask) << 48 | id << 32 | *index as u64;
            extent[40 + 8 * place..][..8].copy_from_slice(&info.to_be_bytes());
            for bit in (0..16).filter(|bit| mask & 1 << bit != 0) {
                data.extend(block(*index, bit));
            }
        }
        extent[6..8].copy_from_slice(&((data.len() / 4096) as u16).to_be_bytes());
        archive.extend(extent);
        archive.extend(data);
    }
    seal(&mut archive);
    archive
}

/// Corrects the digests of all headers.
fn seal(archive: &mut [u8]) {
    let sum = |bytes: &mut [u8], at: usize| {
        bytes[at..at + 16].fill(0);
        let sum = Md5::digest(&*bytes);
        bytes[at..at + 16].copy_from_slice(&sum);
    };
    let size = u32::from_be_bytes(archive[56..60].try_into().unwrap()) as usize;
    if size < 12_288 || size > archive.len() {
        return;
    }
    sum(&mut archive[..size], 32);
    let mut at = size;
    while at + 512 <= archive.len() && archive[at..].starts_with(b"VMAE") {
        sum(&mut archive[at..at + 512], 24);
        at += 512 + 4096 * usize::from(u16::from_be_bytes([archive[at + 6], archive[at + 7]]));
    }
}

fn assert_one_line(error: &blkimage::Error) {
    let message = error.to_string();
    assert!(!message.chars().any(char::is_control), "{message}");
}
