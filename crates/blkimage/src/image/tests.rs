//! A chain costs what it stores, however long it is.

use super::*;
use crate::caches::Caches;
use crate::formats::qcow2::builder::Builder;
use crate::formats::qcow2::{Qcow2, read_header};
use crate::options::OpenOptions;
use crate::storage::Memory;

const CLUSTER: u64 = 64 << 10;
const CLUSTERS: u64 = 1024;

/// Creates a chain from `builders`, top first. Returns it with its caches.
fn chain(builders: &[Builder]) -> (Image, Arc<Caches>) {
    let caches = Arc::new(Caches::default());
    let layers = builders.iter().map(|builder| -> Box<dyn Layer> {
        let storage = Box::new(Memory(builder.bytes.clone()));
        let file = Arc::new(HostFile::new("layer".into(), storage, Arc::default()));
        let header = read_header(&file).unwrap();
        Box::new(Qcow2::new(file, &header, None, None, caches.layer()).unwrap())
    });
    let options = OpenOptions::new();
    let mut chain = Chain::new(&options);
    chain.layers = layers.collect();
    (Image::new(chain, Format::Qcow2), caches)
}

/// Creates an image with data in every other cluster.
fn fragmented(size: u64) -> Builder {
    let mut builder = Builder::new(16, size);
    let data = builder.append_data(7);
    for cluster in (0..size / CLUSTER).step_by(2) {
        builder.map(cluster * CLUSTER, data | 1 << 63);
    }
    builder
}

/// Creates an overlay that stores nothing, with L2 tables.
fn empty(size: u64) -> Builder {
    let mut builder = Builder::new(16, size);
    builder.map(0, 0);
    builder
}

/// Returns the number of table lookups for all extents and then all bytes, read in pieces.
fn lookups((image, caches): &(Image, Arc<Caches>)) -> u64 {
    let mut offset = 0;
    let mut data = 0;
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        data += if extent.kind == ExtentKind::Data { extent.length } else { 0 };
        offset = extent.end();
    }
    assert_eq!(data, image.size() / 2);
    let mut buf = vec![0; 1 << 20];
    for offset in (0..image.size()).step_by(buf.len()) {
        image.read_exact_at(&mut buf, offset).unwrap();
        for (index, cluster) in buf.chunks(CLUSTER as usize).enumerate() {
            assert!(cluster.iter().all(|byte| *byte == if index % 2 == 0 { 7 } else { 0 }));
        }
    }
    caches.tables.lookups.load(Relaxed)
}

#[test]
fn empty_overlays_cost_a_few_lookups_each() {
    let size = CLUSTERS * CLUSTER;
    let base = lookups(&chain(&[fragmented(size)]));
    let mut layers: Vec<_> = (0..199).map(|_| empty(size)).collect();
    layers.push(fragmented(size));
    let all = lookups(&chain(&layers));
    // Two tables, and two walks: one for the extents and one for the bytes.
    assert!(all <= 2 * base + 199 * 8, "{all} for 200 layers, {base} for one");
}

#[test]
fn remembered_ranges_do_not_change_the_content() {
    let size = CLUSTERS * CLUSTER;
    let mut layers: Vec<_> = (0..20).map(|_| empty(size)).collect();
    layers.push(fragmented(size / 2));
    layers.push(fragmented(size));
    let mut expected = vec![0; CLUSTERS as usize];
    expected[..CLUSTERS as usize / 2].iter_mut().step_by(2).for_each(|byte| *byte = 7);
    // Each layer writes a few clusters. Some clusters are written twice.
    for (index, layer) in layers[..20].iter_mut().enumerate().rev() {
        for cluster in [index * 3, index * 3 + 1, 500 + index, 900 + index] {
            let value = if index % 4 == 3 { 0 } else { index as u8 + 100 };
            let entry = if value == 0 { 1 } else { layer.append_data(value) | 1 << 63 };
            layer.map(cluster as u64 * CLUSTER, entry);
            expected[cluster] = value;
        }
    }
    let (image, _) = chain(&layers);
    for step in [1, 3, 7, 1021] {
        let mut cluster = 0;
        loop {
            let mut byte = [0xee];
            image.read_exact_at(&mut byte, cluster * CLUSTER + 9).unwrap();
            let want = expected[cluster as usize];
            assert_eq!(byte[0], want, "cluster {cluster} in steps of {step}");
            let extent = image.extent(cluster * CLUSTER, u64::MAX).unwrap();
            let end = extent.end() / CLUSTER;
            let same = |byte: &u8| (*byte == 0) == (extent.kind == ExtentKind::Zero);
            assert!(expected[cluster as usize..end as usize].iter().all(same), "{extent:?}");
            cluster = (cluster + step) % CLUSTERS;
            if cluster == 0 {
                break;
            }
        }
    }
}
