//! Clusters that are holes of a file, in storages that count the queries.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::formats::qcow2::builder::Builder;
use crate::storage::{Memory, Storage};
use crate::{ErrorKind, Extent, ExtentKind, Holes, Image, OpenOptions, OriginKind, Source};

const CLUSTER: u64 = 64 << 10;

/// A file in memory that reports a hole, whatever is there.
struct Sparse {
    bytes: Memory,
    hole: Range<u64>,
    queue_depth: usize,
    queries: Arc<AtomicU64>,
}

impl Storage for Sparse {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read_at_most(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.bytes.read_at_most(buf, offset)
    }

    fn extent(&self, offset: u64, limit: u64) -> io::Result<Extent> {
        assert!(limit > 0 && offset + limit <= self.size());
        self.queries.fetch_add(1, Relaxed);
        let kind = match self.hole.contains(&offset) {
            true => ExtentKind::Zero,
            false => ExtentKind::Data,
        };
        let ends = [self.hole.start, self.hole.end, offset + limit];
        let end = ends.into_iter().filter(|end| *end > offset).min().unwrap();
        Ok(Extent { offset, length: end - offset, kind })
    }

    fn queue_depth(&self) -> usize {
        self.queue_depth
    }
}

/// An image whose clusters follow each other in the file, and its file.
struct Disk {
    builder: Builder,
    /// Offset of the first cluster in the file.
    data: u64,
    clusters: u64,
}

impl Disk {
    fn new(clusters: u64) -> Self {
        let mut builder = Builder::new(16, clusters * CLUSTER);
        builder.map(0, 0);
        let data = builder.append(&vec![7; (clusters * CLUSTER) as usize]);
        for cluster in 0..clusters {
            builder.map(cluster * CLUSTER, (data + cluster * CLUSTER) | 1 << 63);
        }
        Self { builder, data, clusters }
    }

    /// Opens the image. `hole` is relative to the first cluster. Returns the number of queries, too.
    fn open(&self, holes: Holes, hole: Range<u64>, queue_depth: usize) -> (Image, Arc<AtomicU64>) {
        let hole = self.data + hole.start..self.data + hole.end;
        let queries = Arc::new(AtomicU64::new(0));
        let bytes = Memory(self.builder.bytes.clone());
        let storage = Sparse { bytes, hole, queue_depth, queries: queries.clone() };
        let options = OpenOptions::new().holes(holes);
        (options.open_storage(Box::new(storage), "disk.qcow2").unwrap(), queries)
    }
}

/// Returns the kinds and lengths of all extents.
fn extents(image: &Image) -> Vec<(ExtentKind, u64)> {
    let mut all: Vec<(ExtentKind, u64)> = Vec::new();
    let mut offset = 0;
    while offset < image.size() {
        let extent = image.extent(offset, u64::MAX).unwrap();
        offset = extent.end();
        match all.last_mut() {
            Some((kind, length)) if *kind == extent.kind => *length += extent.length,
            _ => all.push((extent.kind, extent.length)),
        }
    }
    all
}

#[test]
fn holes_behind_clusters_are_zeros() {
    use ExtentKind::{Data, Zero};
    let disk = Disk::new(8);
    let (image, _) = disk.open(Holes::Trust, CLUSTER + 5..4 * CLUSTER + 9, 1);
    let expected = [(Data, CLUSTER + 5), (Zero, 3 * CLUSTER + 4), (Data, 4 * CLUSTER - 9)];
    assert_eq!(extents(&image), expected);
    let origin = image.origin(2 * CLUSTER, u64::MAX).unwrap();
    assert_eq!((origin.kind, origin.length), (OriginKind::Zero, 2 * CLUSTER + 9));
    assert_eq!(image.origin(0, u64::MAX).unwrap().length, CLUSTER + 5);
}

#[test]
fn an_overlay_over_a_hole_hides_its_backing_file() {
    // The overlay stores zeros as a hole, over data of the base.
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base.raw");
    std::fs::write(&base, vec![9; 2 * CLUSTER as usize]).unwrap();
    let mut disk = Disk::new(1);
    disk.builder.put64(24, 2 * CLUSTER);
    disk.builder.put64(8, 4096);
    disk.builder.put32(16, 8);
    disk.builder.put(4096, b"base.raw");
    disk.builder.extension(104, 0xe279_2aca, b"raw");
    let top = folder.path().join("top.qcow2");
    std::fs::write(&top, &disk.builder.bytes[..disk.data as usize]).unwrap();
    let file = std::fs::File::options().write(true).open(&top).unwrap();
    file.set_len(disk.data + CLUSTER).unwrap();
    let options = OpenOptions::new().follow(crate::Follow::Any);
    let image = options.open(&top).unwrap();
    let mut content = vec![0xee; 2 * CLUSTER as usize];
    image.read_exact_at(&mut content, 0).unwrap();
    assert!(content[..CLUSTER as usize].iter().all(|byte| *byte == 0));
    assert!(content[CLUSTER as usize..].iter().all(|byte| *byte == 9));
    assert_eq!(extents(&image), [(ExtentKind::Zero, CLUSTER), (ExtentKind::Data, CLUSTER)]);
}

#[test]
fn doubted_holes_are_read() {
    let disk = Disk::new(8);
    for holes in [Holes::Verify, Holes::Ignore] {
        let (image, _) = disk.open(holes, 9..CLUSTER, 1);
        assert_eq!(extents(&image), [(ExtentKind::Data, 8 * CLUSTER)]);
        assert_eq!(image.origin(0, u64::MAX).unwrap().kind, OriginKind::Other);
    }
    // The hole is none.
    let (image, _) = disk.open(Holes::Verify, 9..CLUSTER, 1);
    let error = image.read_exact_at(&mut [0; 100], 0).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Holes, Some(disk.data + 9)));
    assert!(image.read_exact_at(&mut [0; 9], 0).is_ok());
    assert!(image.read_exact_at(&mut [0; 100], CLUSTER).is_ok());
    let (image, _) = disk.open(Holes::Ignore, 9..CLUSTER, 1);
    assert!(image.read_exact_at(&mut [0; 100], 0).is_ok());
}

#[test]
fn clusters_in_disorder_take_one_query_for_many() {
    let mut disk = Disk::new(4096);
    for cluster in 0..disk.clusters {
        let place = cluster * 1001 % disk.clusters;
        disk.builder.map(cluster * CLUSTER, (disk.data + place * CLUSTER) | 1 << 63);
    }
    let (image, queries) = disk.open(Holes::Trust, 0..0, 1);
    assert_eq!(extents(&image), [(ExtentKind::Data, disk.clusters * CLUSTER)]);
    // A query answers for what follows, so that it takes the most to go backwards.
    assert!(queries.load(Relaxed) < disk.clusters / 8, "{queries:?}");
}

#[test]
fn bytes_past_the_end_are_no_hole() {
    let mut disk = Disk::new(4);
    let end = disk.data + 2 * CLUSTER + 100;
    disk.builder.bytes.truncate(end as usize);
    let (image, _) = disk.open(Holes::Trust, CLUSTER..2 * CLUSTER + 100, 1);
    let expected = [
        (ExtentKind::Data, CLUSTER),
        (ExtentKind::Zero, CLUSTER + 100),
        (ExtentKind::Data, 2 * CLUSTER - 100),
    ];
    assert_eq!(extents(&image), expected);
    for guest in [2 * CLUSTER + 100, 3 * CLUSTER] {
        let error = image.read_exact_at(&mut [0; 10], guest).unwrap_err();
        assert!(error.reason().contains("past the end"), "{error}");
    }
}

#[test]
fn servers_are_asked_for_long_runs_only() {
    let mut disk = Disk::new(64);
    // In reverse, except for the last cluster, which is a run up to the end.
    for cluster in 0..64 {
        disk.builder.map(cluster * CLUSTER, (disk.data + (63 - cluster) * CLUSTER) | 1 << 63);
    }
    let (image, queries) = disk.open(Holes::Trust, 0..64 * CLUSTER, 8);
    assert_eq!(extents(&image)[0], (ExtentKind::Data, 63 * CLUSTER));
    assert!(queries.load(Relaxed) <= 2, "{queries:?}");
    let (image, queries) = Disk::new(64).open(Holes::Trust, 0..64 * CLUSTER, 8);
    assert_eq!(extents(&image), [(ExtentKind::Zero, 64 * CLUSTER)]);
    assert_eq!(queries.load(Relaxed), 1);
}
