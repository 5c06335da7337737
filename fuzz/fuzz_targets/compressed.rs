//! Reads a compressed file: any bytes, or a file of the compressors with changes. Reading it in parts and from start to end must
//! have one verdict and one content, which is what was compressed where nothing was changed. What is not read counts as well.

#![no_main]

use std::io::{Read, Write};
use std::path::Path;

use blkimage::{Compression, Decompressed, Format, Memory, OpenOptions, Source};
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;

type Input = (u8, bool, Vec<u8>, Vec<u16>, Vec<(u16, u8)>, Vec<(u16, u16)>);

fuzz_target!(|input: Input| {
    let (which, is_compressed, bytes, cuts, changes, reads) = input;
    let compression = [
        Compression::Gzip,
        Compression::Xz,
        Compression::Zstd,
        Compression::Bzip2,
        Compression::Lz4,
        Compression::Lzop,
    ][usize::from(which) % 6];
    let content: Vec<u8> = bytes.iter().copied().cycle().take(bytes.len() * 7).collect();
    let can_compress = matches!(compression, Compression::Gzip | Compression::Zstd);
    let mut file = match is_compressed && can_compress {
        true => compress(compression, &content, &cuts),
        false => bytes,
    };
    for (place, value) in &changes {
        if let Some(length) = std::num::NonZero::new(file.len()) {
            file[usize::from(*place) % length] = *value;
        }
    }
    let options = OpenOptions::new()
        .format(Format::Raw)
        .compression(compression)
        .max_memory(1 << 20)
        .max_zeros(1 << 24);
    let mut streamed = Vec::new();
    let stream = Decompressed::new(compression, &file[..], &options, Path::new("disk"));
    let streamed = stream.and_then(|mut it| it.read_to_end(&mut streamed)).ok().map(|_| streamed);
    if is_compressed && can_compress && changes.is_empty() {
        assert!(streamed.as_ref() == Some(&content));
    }
    let size = file.len() as u64;
    let Ok(image) = options.open_storage(Box::new(Memory(file)), "disk") else {
        // A file without an index of its parts must be one for reading from start to end only because of its size.
        assert!(streamed.is_none_or(|it| it.len() as u64 > size + (1 << 24)));
        return;
    };
    let all = (which < 128).then_some((0, 1 << 26));
    let mut failure = None;
    for (at, length) in
        reads.into_iter().map(|(at, length)| (u64::from(at), u64::from(length))).chain(all)
    {
        let at = at.min(image.size());
        let length = length.min(image.size() - at);
        let mut found = vec![0; length as usize];
        match image.read_exact_at(&mut found, at) {
            Ok(()) => {
                let expected = streamed.as_ref().map(|it| &it[at as usize..][..length as usize]);
                assert!(expected.is_none_or(|it| it == found));
            }
            Err(error) => failure = Some(error),
        }
    }
    failure = failure.or(image.check_unchanged().err());
    assert_eq!(failure.is_none(), streamed.is_some(), "{failure:?}");
});

/// Compresses `content` in parts.
fn compress(compression: Compression, content: &[u8], cuts: &[u16]) -> Vec<u8> {
    let mut ends: Vec<_> = cuts.iter().map(|&cut| usize::from(cut).min(content.len())).collect();
    ends.sort_unstable();
    ends.push(content.len());
    let (mut start, mut file) = (0, Vec::new());
    for end in ends {
        let part = &content[std::mem::replace(&mut start, end)..end];
        if compression == Compression::Gzip {
            let mut encoder = GzEncoder::new(&mut file, flate2::Compression::fast());
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap();
        } else {
            let mut frame = vec![0; zstd_safe::compress_bound(part.len())];
            let length = zstd_safe::compress(&mut frame[..], part, 1).unwrap();
            file.extend(&frame[..length]);
        }
    }
    file
}
