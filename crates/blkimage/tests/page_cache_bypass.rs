//! Files that are not in the page cache are read around it, with the same result.

#![cfg(not(blkhash_portable))] // cache

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use blkimage::{Cache, ErrorKind, Image, OpenOptions, Source};

const MIB: usize = 1 << 20;

/// Writes `bytes` to a file and evicts all but `kept` bytes of it from the page cache.
fn write_cold(path: &Path, bytes: &[u8], kept: usize) -> File {
    std::fs::write(path, bytes).unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    file.read_exact_at(&mut vec![0; kept], 0).unwrap();
    file
}

/// Returns how many bytes of a file are in the page cache. Returns `None` if this is unknown.
fn resident(path: &Path) -> Option<usize> {
    let told = Command::new("fincore").args(["-b", "-n", "-r", "-o", "RES"]).arg(path).output();
    String::from_utf8(told.ok()?.stdout).ok()?.trim().parse().ok()
}

fn read(image: &Image, offset: usize, length: usize) -> Result<Vec<u8>, ErrorKind> {
    let mut bytes = vec![0xee; length];
    image.read_exact_at(&mut bytes, offset as u64).map_err(|error| error.kind())?;
    Ok(bytes)
}

#[test]
fn uncached_files_are_read_around_the_page_cache() {
    // Usually not a tmpfs.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("disk.raw");
    let bytes: Vec<u8> =
        (0..70 * MIB as u32 / 4).flat_map(|i| i.wrapping_mul(i).to_le_bytes()).collect();
    let bytes = &bytes[..bytes.len() - 4000];
    let ways = [(0, Cache::Auto), (20 * MIB, Cache::Auto), (0, Cache::No), (0, Cache::Yes)];
    for (kept, cache) in ways {
        let file = write_cold(&path, bytes, kept);
        let is_cold = resident(&path) == Some(0);
        if kept == 0 && !is_cold {
            assert!(std::env::var_os("CI").is_none(), "CI must be able to read around the cache");
            println!("skipped: whether the page cache is left alone: it keeps what it should not");
        }
        let image = OpenOptions::new().cache(cache).open(&path).unwrap();
        let end = bytes.len();
        let pieces = [
            (0, MIB),
            (kept.saturating_sub(MIB), 2 * MIB),
            (4096, 512 << 10),
            (1, MIB),
            (MIB, 300_001),
            (MIB + 17, 100),
            (end - MIB, MIB),
            (end - 999_999, 999_999),
        ];
        for (offset, length) in pieces {
            let read = read(&image, offset, length).unwrap();
            assert!(read == bytes[offset..offset + length], "{length} at {offset}, {cache:?}");
        }
        assert!(image.check_unchanged().is_ok());
        if is_cold {
            // Except for pieces that are too small or not in the right place.
            let left_alone = resident(&path).is_some_and(|resident| resident < 8 * MIB);
            assert_eq!(left_alone, cache != Cache::Yes, "{cache:?}: {:?}", resident(&path));
        }
        file.set_len(end as u64 - 100).unwrap();
        assert_eq!(read(&image, end - MIB, MIB), Err(ErrorKind::Truncated), "{cache:?}");
    }
}
