//! Opens any bytes as an image. The result must be a one-line error, or content that does not depend on
//! the size of the reads and is zero where the extents say so.

#![allow(dead_code, reason = "each target uses a part of it")]

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

use blkimage::{ExtentKind, Format, Memory, OpenOptions, Source};

pub fn check(data: &[u8], format: Format) {
    let options = OpenOptions::new().format(format);
    let image = match options.open_storage(Box::new(Memory(data.to_vec())), "fuzz") {
        Ok(image) => image,
        Err(error) => return assert_one_line(&error),
    };
    let size = image.size();
    let mut offset = 0;
    for _ in 0..MAX_EXTENTS {
        if offset == size {
            break;
        }
        let extent = match image.extent(offset, size - offset) {
            Ok(extent) => extent,
            Err(error) => return assert_one_line(&error),
        };
        assert!(extent.offset == offset && extent.length > 0 && extent.end() <= size);
        let length = extent.length.min(MAX_READ);
        let whole = read(&image, offset, length, length);
        for piece in [511, 512, 4096, 70_001] {
            let pieces = read(&image, offset, length, piece);
            match (&whole, &pieces) {
                (Some(whole), Some(pieces)) => assert!(whole == pieces),
                // If both fail, the bytes read before the error depend on the size of the reads.
                (None, None) => {}
                _ => panic!("read in pieces of {piece} bytes and as a whole, only one works"),
            }
        }
        if let (ExtentKind::Zero, Some(bytes)) = (extent.kind, &whole) {
            assert!(blkhash::is_zero(bytes));
        }
        offset = extent.end();
    }
}

fn read(image: &impl Source, offset: u64, length: u64, piece: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0xee; length as usize];
    let mut position = offset;
    for part in bytes.chunks_mut(piece as usize) {
        if let Err(error) = image.read_exact_at(part, position) {
            assert_one_line(&error);
            return None;
        }
        position += part.len() as u64;
    }
    Some(bytes)
}

fn assert_one_line(error: &blkimage::Error) {
    let message = error.to_string();
    assert!(message.starts_with("fuzz: ") && !message.chars().any(char::is_control), "{message}");
}

/// Maximum number of extents to check. Empty tables can describe a very large image.
const MAX_EXTENTS: usize = 64;

/// Maximum number of bytes to read from each extent.
const MAX_READ: u64 = 128 << 10;

/// A real image, and the offsets of the sectors that hold its structures.
pub struct Seed {
    bytes: Vec<u8>,
    structures: Vec<usize>,
}

/// Real images of a format.
pub type Seeds = LazyLock<Vec<Seed>>;

impl Seed {
    fn new(bytes: Vec<u8>) -> Self {
        let sectors = bytes.chunks(SECTOR).enumerate();
        // Data has the same value in all bytes of a sector, structures do not.
        let structures = sectors
            .filter(|(_, sector)| sector.iter().any(|byte| *byte != sector[0]))
            .map(|(index, _)| index * SECTOR)
            .collect();
        Self { bytes, structures }
    }

    /// Returns the image with the changes that the input lists. Each has the sector, the place in it, the
    /// width and byte order, and the value.
    fn changed(&self, changes: &[u8]) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for change in changes.chunks_exact(CHANGE) {
            let number = |at: usize| u16::from_le_bytes([change[at], change[at + 1]]);
            let sector = self.structures[usize::from(number(0)) % self.structures.len()];
            let at = sector + usize::from(number(2)) % SECTOR;
            let mut value = [0; 8];
            value.copy_from_slice(&change[5..]);
            let width = (1_usize << (change[4] & 3)).min(bytes.len() - at);
            if change[4] & 4 != 0 {
                value[..width].reverse();
            }
            match change[4] >> 3 {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] ^= 1 << (value[0] & 7),
                _ => bytes[at..at + width].copy_from_slice(&value[..width]),
            }
            if bytes.len() < self.bytes.len() {
                break;
            }
        }
        bytes
    }
}

/// Returns an image for each of the options. It is read from the folder `images` next to the program, where fuzz/build
/// leaves images for machines without QEMU, or created, and written to the folder `BLKHASH_FUZZ_IMAGES` if that is set.
pub fn seeds(format: &str, options: &[&str]) -> Vec<Seed> {
    let prepared = env::current_exe().unwrap().with_file_name("images");
    let seed = |(number, options): (usize, &&str)| {
        let name = format!("{format}-{number}");
        if let Ok(bytes) = fs::read(prepared.join(&name)) {
            return Seed::new(bytes);
        }
        let bytes = create(format, options);
        if let Some(folder) = env::var_os("BLKHASH_FUZZ_IMAGES") {
            fs::create_dir_all(&folder).unwrap();
            fs::write(Path::new(&folder).join(name), &bytes).unwrap();
        }
        Seed::new(bytes)
    };
    options.iter().enumerate().map(seed).collect()
}

/// Creates an image of 8 MiB with `qemu-img create -f FORMAT -o OPTIONS`, with data, zeros and empty ranges.
fn create(format: &str, options: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seed");
    let run = |program: &str, args: &[&str]| {
        let status = Command::new(program).args(args).arg(&path).status();
        assert!(status.expect("qemu-utils").success(), "{program} {args:?}");
    };
    let mut args = vec!["create", "-q", "-f", format];
    if !options.is_empty() {
        args.extend(["-o", options]);
    }
    let status = Command::new("qemu-img").args(args).arg(&path).arg("8M").status();
    assert!(status.expect("qemu-utils").success());
    let writes = ["write -P 7 0 20k", "write -P 9 3M 4k", "write -z 5M 1M", "write -P 5 7M 68k"];
    let commands = writes.iter().flat_map(|write| ["-c", write]);
    run("qemu-io", &["-f", format].into_iter().chain(commands).collect::<Vec<_>>());
    fs::read(&path).unwrap()
}

/// Checks a seed with the changes that `data` lists: the number of the seed, then the changes.
pub fn check_changed(seeds: &[Seed], data: &[u8], format: Format, repair: fn(&mut [u8])) {
    let Some((number, changes)) = data.split_first() else { return };
    let mut bytes = seeds[usize::from(*number) % seeds.len()].changed(changes);
    repair(&mut bytes);
    check(&bytes, format);
}

const SECTOR: usize = 512;

/// Length of a change in the input.
const CHANGE: usize = 13;
