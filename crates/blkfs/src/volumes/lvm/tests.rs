use blkimage::{Format, Memory, OpenOptions};

use super::crc::crc;
use super::*;

const UUID: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
const AREA: usize = 4096;
const AREA_SIZE: usize = 8192;

fn text(sequence: u64) -> String {
    format!(
        "vg {{ seqno = {sequence} extent_size = 8\nphysical_volumes {{ pv0 {{ id = \"{}\" pe_start = 32 pe_count = 8 }} }}\n\
         logical_volumes {{\n\
         b {{ status = [\"READ\", \"VISIBLE\"] segment_count = 2\n\
         segment1 {{ start_extent = 0 extent_count = 1 type = \"striped\" stripe_count = 1 stripes = [\"pv0\", 3] }}\n\
         segment2 {{ start_extent = 1 extent_count = 2 type = \"striped\" stripe_count = 1 stripes = [\"pv0\", 0] }} }}\n\
         a {{ status = [\"VISIBLE\"] segment_count = 1 segment1 {{ start_extent = 0 extent_count = 9 type = \"thin-pool\" }} }}\n\
         c {{ status = [\"VISIBLE\"] segment_count = 1\n\
         segment1 {{ start_extent = 0 extent_count = 9 type = \"striped\" stripe_count = 1 stripes = [\"pv0\", 0] }} }}\n\
         d {{ status = [\"VISIBLE\"] segment_count = 1\n\
         segment1 {{ start_extent = 0 extent_count = 1 type = \"striped\" stripe_count = 1 stripes = [\"pv1\", 0] }} }}\n\
         e {{ status = [\"VISIBLE\"] segment_count = 1\n\
         segment1 {{ start_extent = 0 extent_count = 1 type = \"striped\" stripe_count = 1 stripes = [\"pv0\", 7] }} }}\n\
         snapshot0 {{ status = [\"READ\"] segment_count = 1\n\
         segment1 {{ start_extent = 0 extent_count = 3 type = \"snapshot\" origin = \"b\" cow_store = \"e\" }} }}\n\
         }} }}\n# Generated\nversion = 1\n\0",
        dashed(UUID)
    )
}

/// Creates a physical volume whose text begins at this offset of its area.
fn disk(text: &str, offset: usize) -> Vec<u8> {
    let mut bytes = vec![0; 64 << 10];
    let size = bytes.len() as u64;
    let label = &mut bytes[512..1024];
    label[..8].copy_from_slice(b"LABELONE");
    label[8] = 1;
    label[20] = 32;
    label[24..32].copy_from_slice(b"LVM2 001");
    label[32..64].copy_from_slice(UUID);
    let numbers = [size, 16384, 0, 0, 0, AREA as u64, AREA_SIZE as u64, 0, 0];
    for (index, number) in numbers.into_iter().enumerate() {
        label[64 + 8 * index..][..8].copy_from_slice(&number.to_le_bytes());
    }
    let sum = crc(&[&label[20..]]);
    label[16..20].copy_from_slice(&sum.to_le_bytes());
    let area = &mut bytes[AREA..][..AREA_SIZE];
    for (index, byte) in text.bytes().enumerate() {
        let at = offset + index;
        area[if at < AREA_SIZE { at } else { at - AREA_SIZE + 512 }] = byte;
    }
    area[4..20].copy_from_slice(b" LVM2 x[5A%r0N*>");
    area[20] = 1;
    let numbers = [AREA as u64, AREA_SIZE as u64, offset as u64, text.len() as u64];
    for (index, number) in numbers.into_iter().enumerate() {
        area[24 + 8 * index..][..8].copy_from_slice(&number.to_le_bytes());
    }
    area[56..60].copy_from_slice(&crc(&[text.as_bytes()]).to_le_bytes());
    let sum = crc(&[&area[4..512]]);
    area[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn open(bytes: Vec<u8>) -> Option<PhysicalVolume> {
    let options = OpenOptions::new().format(Format::Raw);
    let source = options.open_storage(Box::new(Memory(bytes)), "disk").unwrap();
    PhysicalVolume::open(&(Arc::new(source) as Arc<dyn Source>)).unwrap()
}

#[test]
fn volumes_of_a_group() {
    for offset in [512, 1000, AREA_SIZE - 100] {
        let volume = open(disk(&text(7), offset)).unwrap();
        assert_eq!(volume.uuid, "012345-6789-abcd-efgh-ijkl-mnop-qrstuv");
        assert_eq!(volume.group.as_deref(), Some("vg"));
        assert!(volume.checks.mismatches.is_empty() && volume.checks.problems.is_empty());
        assert_eq!(volume.checks.matched.len(), 3);
        let [a, b, c, d, e] = volume.volumes.as_slice() else { panic!("{:?}", volume.volumes) };
        let segments = [(16384 + 3 * 4096, 4096), (16384, 8192)];
        let segments = segments.map(|(offset, length)| Segment { offset, length });
        assert_eq!(b.content, Content::Linear(segments.to_vec()));
        assert_eq!((b.size, a.size), (3 * 4096, 9 * 4096));
        assert_eq!(a.content, Content::Skipped("of the type thin-pool".to_owned()));
        assert!(matches!(c.content, Content::Damaged(_)));
        assert_eq!(d.content, Content::Elsewhere);
        assert_eq!(e.content, Content::Skipped("a snapshot of b".to_owned()));
    }
}

#[test]
fn every_bit_counts() {
    let text = text(7);
    let good = disk(&text, AREA_SIZE - 100);
    let label = 512..1024;
    let area = AREA..AREA + 512;
    let wrapped = AREA + AREA_SIZE - 100..AREA + AREA_SIZE;
    let rest = AREA + 512..AREA + 512 + text.len() - 100;
    for at in label.chain(area).chain(wrapped).chain(rest) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        let checks = open(bytes).unwrap().checks;
        assert!(checks.mismatches.len() + checks.problems.len() >= 1, "{at}");
    }
}

#[test]
fn other_disks() {
    assert!(open(Vec::new()).is_none());
    assert!(open(vec![0; 4096]).is_none());
    let mut short = disk(&text(7), 512);
    short.truncate(8000);
    let checks = open(short).unwrap().checks;
    assert_eq!(checks.problems.len(), 1);
    let invalid = open(disk("vg { seqno = 1", 512)).unwrap();
    assert_eq!((invalid.checks.problems.len(), invalid.group), (1, None));
    let none = open(disk("", 0)).unwrap();
    assert!(none.checks.problems.is_empty() && none.group.is_none());
}
