//! All data that is read was announced, once, and nothing else.

#[path = "../../../tests/common/recorder.rs"]
mod recorder;

#[cfg(feature = "compressed")]
use std::io::Write;
use std::sync::Arc;

use proptest::prelude::*;

use self::recorder::{Phase, Recorder, pass};
#[cfg(feature = "compressed")]
use crate::Compression;
use crate::caches::Caches;
use crate::chain::Chain;
use crate::formats::qcow2::builder::Builder;
use crate::formats::qcow2::{Qcow2, read_header};
use crate::formats::{vhdx, vmdk};
use crate::layer::Layer;
use crate::storage::HostFile;
use crate::{Format, Image, OpenOptions, Source};

const READ_AHEAD: u64 = 32 << 20;
const CLUSTER: u64 = 64 << 10;

/// Returns bytes that compress to about half of their length.
fn content(length: u64, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2) | 1;
    let bytes = (0..length).map(|_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) as u8 % 20
    });
    bytes.collect()
}

fn opened(options: &OpenOptions, bytes: &[u8], read_ahead: u64) -> (Image, Recorder) {
    let recorder = Recorder::new(bytes.to_vec(), read_ahead);
    (options.open_storage(Box::new(recorder.clone()), "disk").unwrap(), recorder)
}

/// Reads an image with several distances of announcements, and with none.
#[track_caller]
fn check(options: &OpenOptions, bytes: &[u8], expected: &[u8], is_shared: bool, more: u64) {
    for read_ahead in [READ_AHEAD, 3 << 20, 1] {
        let (image, recorder) = opened(options, bytes, read_ahead);
        assert!(!recorder.is_announced(), "opening announces");
        assert!(pass(&image, std::slice::from_ref(&recorder)) == expected);
        recorder.check(is_shared, more);
    }
    let (image, recorder) = opened(options, bytes, 0);
    image.will_need(0, image.size());
    recorder.begin(Phase::Reads);
    assert!(pass_without(&image) == expected);
    assert!(!recorder.is_announced());
}

fn pass_without(image: &Image) -> Vec<u8> {
    assert_eq!(image.read_ahead(), 0);
    pass(image, &[])
}

#[test]
fn raw() {
    let bytes = content(40 << 20, 1);
    check(&OpenOptions::new().format(Format::Raw), &bytes, &bytes, false, 0);
}

#[test]
fn vhdx_blocks() {
    let mut builder = vhdx::builder::Builder::new(12 << 20);
    let mut expected = vec![0; 12 << 20];
    for (number, block) in [(3, 1), (4, 2), (0, 3), (11, 4), (7, 5)] {
        let host = builder.block(block);
        builder.map(number as u64, host | 6);
        expected[number << 20..][..1 << 20].fill(block);
    }
    check(&OpenOptions::new(), &builder.sealed(), &expected, false, 0);
}

#[test]
fn compressed_grains() {
    let size = 20 << 20;
    let mut builder = vmdk::builder::Builder::compressed(size / 512, 128);
    let mut expected = vec![0; size as usize];
    for guest in (0..size).step_by(CLUSTER as usize).filter(|guest| *guest % (5 << 20) > 100_000) {
        let grain = content(CLUSTER, guest);
        builder.write_compressed(guest, guest / 512, &grain);
        expected[guest as usize..][..grain.len()].copy_from_slice(&grain);
    }
    // The entry of a grain does not have its length, so that the end of a run is a guess.
    check(&OpenOptions::new(), &builder.bytes, &expected, true, 8 * CLUSTER);
}

/// Compresses each part on its own.
#[cfg(feature = "compressed")]
fn compress(compression: Compression, parts: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    for part in parts {
        match compression {
            Compression::Gzip => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::GzEncoder::new(&mut file, level);
                encoder.write_all(part).unwrap();
                encoder.finish().unwrap();
            }
            Compression::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(&mut file, 0);
                encoder.write_all(part).unwrap();
                encoder.finish().unwrap();
            }
            _ => {
                let mut frame = vec![0; zstd_safe::compress_bound(part.len())];
                let length = zstd_safe::compress(&mut frame[..], part, 1).unwrap();
                file.extend(&frame[..length]);
            }
        }
    }
    file
}

#[cfg(feature = "compressed")]
#[test]
fn compressed_files() {
    let content = content(6 << 20, 5);
    for compression in [Compression::Gzip, Compression::Xz, Compression::Zstd] {
        for length in [2 << 20, 6 << 20] {
            let parts: Vec<_> = content.chunks(length).collect();
            let file = compress(compression, &parts);
            let options = OpenOptions::new().format(Format::Raw).compression(compression);
            for read_ahead in [READ_AHEAD, 1 << 20] {
                let recorder = Recorder::new(file.clone(), read_ahead);
                let image = options.open_storage(Box::new(recorder.clone()), "disk").unwrap();
                // A gzip file is decoded once to count its bytes.
                let is_counted = compression == Compression::Gzip;
                assert_eq!(recorder.is_announced(), is_counted, "{compression}");
                assert!(pass(&image, std::slice::from_ref(&recorder)) == content, "{compression}");
                recorder.check(false, 0);
            }
            let (image, recorder) = opened(&options, &file, 0);
            assert!(pass_without(&image) == content);
            assert!(!recorder.is_announced());
        }
    }
}

/// The content of a cluster.
#[derive(Clone, Copy, Debug)]
enum Kind {
    None,
    Zero,
    Data,
    Compressed,
}

/// Creates an image, and applies its content to the image below.
fn layer(kinds: &[Kind], seed: u64, below: &mut [u8], snapshot: bool) -> Builder {
    let size = kinds.len() as u64 * CLUSTER;
    let mut builder = Builder::new(16, size);
    let mut streams = Vec::new();
    let mut entries = Vec::new();
    let mut hosts: Vec<u64> = Vec::new();
    for (number, kind) in kinds.iter().enumerate() {
        let guest = number as u64 * CLUSTER;
        let place = &mut below[guest as usize..][..CLUSTER as usize];
        let bytes = content(CLUSTER, seed + guest);
        match kind {
            Kind::None => continue,
            Kind::Zero => {
                place.fill(0);
                entries.push((guest, 1));
                continue;
            }
            Kind::Data => {
                let host = builder.append(&bytes);
                hosts.push(host);
                entries.push((guest, host | 1 << 63));
            }
            Kind::Compressed => {
                let mut compressor =
                    libdeflater::Compressor::new(libdeflater::CompressionLvl::fastest());
                let mut stream = vec![0; compressor.deflate_compress_bound(bytes.len())];
                let length = compressor.deflate_compress(&bytes, &mut stream).unwrap();
                entries.push((guest, 1 << 62 | streams.len() as u64));
                streams.extend(&stream[..length]);
                let sectors = (streams.len() as u64).div_ceil(512) - 1;
                let first = (entries[entries.len() - 1].1 & !(1 << 62)) / 512;
                entries.last_mut().unwrap().1 |= (sectors - first) << 54;
            }
        }
        place.copy_from_slice(&bytes);
    }
    // Streams follow each other, so that they share sectors.
    let start = builder.append(&streams);
    for (guest, entry) in entries {
        builder.map(guest, if entry & 1 << 62 != 0 { entry + start } else { entry });
    }
    if snapshot {
        // The snapshot has the tables, and the active state has none.
        let (l1, l1_entries) = (builder.l1_entry_at(0), size.div_ceil(512 << 20) as u32);
        let entry = [&l1.to_be_bytes()[..], &l1_entries.to_be_bytes(), &[0, 1, 0, 1], &[0; 20]];
        let mut entry = [&entry.concat()[..], &16_u32.to_be_bytes(), &[0; 8]].concat();
        entry.extend(size.to_be_bytes());
        entry.extend(*b"1s");
        let at = builder.append(&entry);
        builder.put32(60, 1);
        builder.put64(64, at);
        let empty = builder.append(&vec![0; (l1_entries * 8) as usize]);
        builder.put64(40, empty);
    }
    builder
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    let kind = prop_oneof![
        2 => Just(Kind::None),
        1 => Just(Kind::Zero),
        3 => Just(Kind::Data),
        3 => Just(Kind::Compressed),
    ];
    let run = (kind, 1..20_usize).prop_map(|(kind, count)| vec![kind; count]);
    prop::collection::vec(run, 1..12).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn chains_of_qcow2(
        layers in prop::collection::vec(kinds(), 1..4),
        read_ahead in prop::sample::select(vec![1, 1 << 20, READ_AHEAD]),
    ) {
        let size = layers.iter().map(Vec::len).max().unwrap_or(0);
        let mut expected = vec![0; size * CLUSTER as usize];
        let mut files = Vec::new();
        let caches = Arc::new(Caches::default());
        let mut opened: Vec<Box<dyn Layer>> = Vec::new();
        for (seed, mut kinds) in layers.into_iter().enumerate() {
            kinds.resize(size, Kind::None);
            let builder = layer(&kinds, seed as u64 + 1, &mut expected, false);
            let recorder = Recorder::new(builder.bytes, read_ahead);
            let storage = Box::new(recorder.clone());
            let file = Arc::new(HostFile::new("layer".into(), storage, Arc::default()));
            let header = read_header(&file).unwrap();
            let qcow2 = Qcow2::new(file, &header, None, None, caches.layer()).unwrap();
            opened.insert(0, Box::new(qcow2));
            files.push(recorder);
        }
        let options = OpenOptions::new();
        let mut chain = Chain::new(&options);
        chain.layers = opened;
        let image = Image::new(chain, Format::Qcow2);
        prop_assert!(pass(&image, &files) == expected);
        files.iter().for_each(|file| file.check(true, 0));
    }
}

#[test]
fn snapshots() {
    let kinds: Vec<_> = (0..200)
        .map(|number| match number % 5 {
            0 => Kind::Zero,
            1 => Kind::None,
            2 => Kind::Compressed,
            _ => Kind::Data,
        })
        .collect();
    let mut expected = vec![0; 200 * CLUSTER as usize];
    let builder = layer(&kinds, 1, &mut expected, true);
    let options = OpenOptions::new().snapshot("s".to_owned());
    check(&options, &builder.bytes, &expected, true, 0);
}

/// Tables far away take a round trip each, unless they are announced together.
#[test]
fn tables_are_announced() {
    let size = 400 << 20;
    let mut builder = Builder::new(12, size);
    let data = builder.append_data(7);
    for guest in (0..size).step_by(8192) {
        builder.map(guest, data | 1 << 63);
    }
    // The end of the file is read to recognise it.
    builder.append_data(0);
    let (image, recorder) = opened(&OpenOptions::new(), &builder.bytes, READ_AHEAD);
    let before = recorder.tables();
    let mut offset = 0;
    while offset < size {
        offset = image.extent(offset, size - offset).unwrap().end();
    }
    let (missed, all) = recorder.tables();
    // The first L2 table, and a window of the L1 table.
    assert_eq!(all - before.1, 200 * 4096 + 200 * 8);
    assert_eq!(missed - before.0, 4096 + 200 * 8);
    // A look at a few bytes announces no tables.
    let (image, recorder) = opened(&OpenOptions::new(), &builder.bytes, READ_AHEAD);
    image.read_exact_at(&mut [0; 4096], 9 << 20).unwrap();
    assert!(!recorder.is_announced());
}
