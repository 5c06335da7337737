//! Helpers for the tests against QEMU's tools: running them, and reading an image as they do.

#![allow(dead_code, reason = "each test program uses its part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use blkimage::{ExtentKind, Follow, Image, OpenOptions, Source};

/// Returns whether QEMU's tools are missing here, and reports that. `make test` installs them.
pub fn lacks_qemu() -> bool {
    let is_missing = Command::new("qemu-img").arg("--version").output().is_err();
    if is_missing {
        println!("skipped: qemu-img is missing (Debian: qemu-utils)");
    }
    is_missing
}

/// Runs a program in `folder` and returns its output. Panics unless it succeeds.
pub fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).current_dir(folder).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} (Debian: qemu-utils): {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Runs a command line of words without quoting.
pub fn sh(folder: &Path, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    run(folder, words[0], &words[1..])
}

/// Runs qemu-io commands in one process. QEMU refuses a compressed write over an allocated cluster.
/// Nothing else may fail.
pub fn qemu_io(folder: &Path, image: &str, commands: &[String]) {
    let mut qemu_io = Command::new("qemu-io");
    qemu_io.current_dir(folder).arg(image);
    for command in commands {
        qemu_io.args(["-c", command]);
    }
    let output = qemu_io.output().expect("qemu-io (Debian: qemu-utils)");
    let text = String::from_utf8(output.stdout).unwrap();
    let failures = text.matches("failed").count();
    let compressed = commands.iter().filter(|command| command.starts_with("write -c")).count();
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_expected = failures <= compressed && errors.is_empty();
    assert!(is_expected, "{image}: {commands:?}: {text}{errors}");
}

/// Returns the guest view of QEMU.
pub fn qemu_view(folder: &Path, image: &str, options: &str) -> Vec<u8> {
    let target = folder.join("qemu-view.raw");
    sh(folder, &format!("qemu-img convert -O raw {options} {image} qemu-view.raw"));
    let bytes = std::fs::read(&target).unwrap();
    std::fs::remove_file(target).unwrap();
    bytes
}

/// Returns options that follow references to other files. Emulators of other CPUs lack openat2, without which the
/// default follows none.
pub fn options() -> OpenOptions {
    let is_emulated = std::env::var_os("BLKHASH_TEST_RUNNER").is_some();
    OpenOptions::new().follow(if is_emulated { Follow::Any } else { Follow::Beneath })
}

/// Opens `name` in `folder`.
pub fn open(folder: &Path, name: &str) -> Image {
    options().open(folder.join(name)).unwrap_or_else(|error| panic!("{error} {error:?}"))
}

/// Returns the guest view of a single read, checked against reads of odd lengths and against the extents.
pub fn our_view(image: &Image) -> Vec<u8> {
    let size = usize::try_from(image.size()).unwrap();
    let mut whole = vec![0xee; size];
    image.read_exact_at(&mut whole, 0).unwrap();

    let mut offset = 0;
    let mut step = 1;
    while offset < size {
        let length = step.min(size - offset);
        let mut piece = vec![0xee; length];
        image.read_exact_at(&mut piece, offset as u64).unwrap();
        assert!(piece == whole[offset..offset + length], "piece of {length} at {offset}");
        offset += length;
        step = step * 7 % 131_071 + 1;
    }
    for limit in [u64::MAX, 100_001] {
        check_extents(image, &whole, limit);
    }
    image.check_unchanged().unwrap();
    whole
}

/// Fails unless extents cover everything without gaps, and all zero extents are zero.
fn check_extents(image: &Image, content: &[u8], limit: u64) {
    let mut offset = 0;
    while offset < image.size() {
        let extent = image.extent(offset, limit).unwrap();
        assert_eq!(extent.offset, offset);
        assert!(extent.length > 0 && extent.length <= limit && extent.end() <= image.size());
        if extent.kind == ExtentKind::Zero {
            let bytes = &content[offset as usize..extent.end() as usize];
            assert!(bytes.iter().all(|byte| *byte == 0), "{extent:?} is not zero");
        }
        offset = extent.end();
    }
}

/// Fails unless our view equals QEMU's.
pub fn assert_same(folder: &Path, name: &str) {
    let (ours, theirs) = (our_view(&open(folder, name)), qemu_view(folder, name, ""));
    assert_same_bytes(&ours, &theirs, name);
}

pub fn assert_same_bytes(ours: &[u8], theirs: &[u8], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}: size");
    if let Some(at) = ours.iter().zip(theirs).position(|(a, b)| a != b) {
        panic!("{what}: byte {at} is {:#x}, QEMU reads {:#x}", ours[at], theirs[at]);
    }
}

/// Creates a sparse raw file from a specification such as `32k:A 64k:- 32k:0`: runs of a letter, of
/// zeros (`0`), of holes (`-`) and of bytes that do not compress (`R`). Returns the path of the file.
pub fn make_raw(folder: &Path, name: &str, spec: &str) -> PathBuf {
    use std::os::unix::fs::FileExt;
    let path = folder.join(name);
    let file = std::fs::File::create(&path).unwrap();
    let mut offset = 0;
    for part in spec.split_whitespace() {
        let (length, kind) = part.split_once(':').unwrap();
        let length = parse_size(length);
        match kind {
            "-" => {}
            "R" => file.write_all_at(&noise(length, offset), offset).unwrap(),
            "0" => file.write_all_at(&vec![0; length], offset).unwrap(),
            letter => {
                file.write_all_at(&vec![letter.as_bytes()[0]; length], offset).unwrap();
            }
        }
        offset += length as u64;
    }
    file.set_len(offset).unwrap();
    path
}

fn parse_size(text: &str) -> usize {
    let (digits, unit) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('m').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<usize>().unwrap() * unit
}

/// Returns bytes that do not compress, always the same for a seed.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    (0..length.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(length).collect()
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Returns `true` with a probability of 1 in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
