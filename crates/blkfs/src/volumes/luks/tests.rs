use blkhash::{Algorithm, Digester};
use blkimage::{Memory, OpenOptions};

use super::*;

const SIZE: usize = 0x4000;

/// Creates a disk with both headers.
fn disk(sequence: [u64; 2]) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    for (index, role) in [Role::Primary, Role::Secondary].into_iter().enumerate() {
        let header = &mut bytes[index * SIZE..][..SIZE];
        header[..6].copy_from_slice(role.magic());
        header[7] = 2;
        header[8..16].copy_from_slice(&(SIZE as u64).to_be_bytes());
        header[16..24].copy_from_slice(&sequence[index].to_be_bytes());
        header[24..28].copy_from_slice(b"name");
        header[72..78].copy_from_slice(b"sha256");
        header[168..172].copy_from_slice(b"uuid");
        header[256..264].copy_from_slice(&((index * SIZE) as u64).to_be_bytes());
        header[4096..4098].copy_from_slice(b"{}");
        seal(header);
    }
    bytes
}

fn seal(header: &mut [u8]) {
    header[448..512].fill(0);
    let digest = Digester::new(Algorithm::Sha256).digest(header);
    header[448..480].copy_from_slice(digest.as_bytes());
}

fn source(bytes: Vec<u8>) -> Arc<dyn Source> {
    let options = OpenOptions::new().format(blkimage::Format::Raw);
    Arc::new(options.open_storage(Box::new(Memory(bytes)), "disk").unwrap())
}

fn open(bytes: Vec<u8>) -> Luks {
    Luks::open(&source(bytes)).unwrap().unwrap()
}

#[test]
fn intact_headers() {
    let luks = open(disk([3, 3]));
    assert_eq!((luks.version, luks.uuid.as_deref()), (2, Some("uuid")));
    assert_eq!(luks.label.as_deref(), Some(&b"name"[..]));
    assert_eq!(luks.headers, 2 * SIZE as u64);
    assert_eq!(luks.checks.matched.len(), 2);
    assert!(luks.checks.mismatches.is_empty() && luks.checks.problems.is_empty());
    assert!(luks.checks.remarks.is_empty());
}

#[test]
fn headers_that_differ() {
    assert_eq!(open(disk([3, 4])).checks.remarks.len(), 1);
    let mut bytes = disk([3, 3]);
    bytes[SIZE + 4096 + 2] = b' ';
    seal(&mut bytes[SIZE..2 * SIZE]);
    let checks = open(bytes).checks;
    assert_eq!((checks.problems.len(), checks.matched.len()), (1, 2));
}

#[test]
fn every_byte_counts() {
    let good = disk([3, 3]);
    for at in (0..512).chain([4000, 4096, SIZE - 1]) {
        for header in [0, SIZE] {
            let mut bytes = good.clone();
            bytes[header + at] ^= 4;
            let source = source(bytes);
            let opened = match Luks::open(&source).unwrap() {
                Some(opened) => opened,
                None => Luks::open_secondary(&source).unwrap().unwrap(),
            };
            // The field of the checksum is longer than a SHA-256.
            if (480..512).contains(&at) {
                continue;
            }
            let Checks { matched, mismatches, problems, .. } = opened.checks;
            assert_eq!((matched.len(), mismatches.len() + problems.len()), (1, 1), "{at}");
            assert_eq!(opened.uuid.as_deref(), Some("uuid"));
        }
    }
}

#[test]
fn no_headers() {
    for bytes in [vec![], vec![0; 100], vec![0; 8192], b"LUKS\xba\xbe\0\x01".to_vec()] {
        let source = source(bytes);
        assert!(Luks::open(&source).unwrap().is_none());
        assert!(Luks::open_secondary(&source).unwrap().is_none());
    }
    let mut first = disk([3, 3]);
    first[7] = 1;
    let luks = open(first);
    assert_eq!((luks.version, luks.headers, luks.uuid.as_deref()), (1, 0, Some("uuid")));
}
