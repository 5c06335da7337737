//! Whether content may be made of digests, so that its checksum is also one of other content.
//! docs/inside/decisions/lists-of-digests.md says why such a match does not count.
//!
//! The last step of `streams`, `flat` and `concat` hashes a list of digests. A file that holds that list has the
//! checksum of the image as its `linear` value, and one whose blocks are such lists can have it as its `concat` value.
//! Anyone who can read the image can make such a file. It is noise: half of its bytes are 128 or more, where zeros and
//! text have long runs of lower ones. Text is looked for at the beginning only, zeros everywhere: the beginning of an
//! encrypted disk is noise, too. Only the last blocks of the trees of verity end with zeros, and the descriptor of
//! fs-verity holds some.

use std::fmt;
use std::io::{self, Read};

use blkhash::{Construction, Parameters, Strength};
use blkimage::{Compression, ExtentKind, Format, Source, detect_within, is_tar, probe};

use crate::Error;

/// The length of content and what its ends hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    length: u64,
    /// Whether no digests have such a run of low bytes.
    has_run: bool,
    /// Whether this may be the descriptor of fs-verity, or the topmost block of a tree of verity.
    is_of_verity: bool,
    /// The last eight bytes, in little endian. `None` if they are not known.
    last: Option<u64>,
    is_archive: bool,
    compression: Option<Compression>,
    format: Format,
}

/// Why a match of a value that does not record its parameters proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// The content may be a list of the digests of another image.
    Digests,
    /// The content is itself an image, and the value may be of the file, with another content.
    Image(Format),
    /// The content is itself an archive, and the value may be of an appliance.
    Archive,
    /// The content is itself a compressed file, and the value may be of a compressed image.
    Compressed(Compression),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digests => f.write_str("it could be a list of the digests of another image"),
            Self::Image(format) => write!(f, "its content is a {format} image itself"),
            Self::Archive => f.write_str("its content is an archive"),
            Self::Compressed(compression) => {
                write!(f, "its content is a file compressed by {compression}")
            }
        }
    }
}

impl Shape {
    /// Reads the ends of the content, and the rest up to the first zeros, if the beginning is noise.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be read.
    pub fn of(source: &dyn Source) -> Result<Self, Error> {
        let length = source.size();
        let mut head = vec![0; length.min(HEAD) as usize];
        source.read_exact_at(&mut head, 0)?;
        let mut last = [0; LAST as usize];
        let has_last = length >= LAST;
        if has_last {
            source.read_exact_at(&mut last, length - LAST)?;
        }
        let last = has_last.then(|| u64::from_le_bytes(last));
        let format = detect_within(source, &head)?;
        let shape = Self::of_head(&head, length);
        let has_run = shape.has_run || has_zeros(source, head)?;
        Ok(Self { last, format, has_run, ..shape })
    }

    /// Returns the shape of content of which the first bytes and the length are known.
    fn of_head(head: &[u8], length: u64) -> Self {
        let has_run = has_run(head);
        let is_descriptor = length == DESCRIPTOR && matches!(head, [1, 1 | 2, ..]);
        let is_of_verity = is_descriptor || is_topmost_block(head, length);
        let (is_archive, format) = (is_tar(head), probe(head).unwrap_or(Format::Raw));
        let compression = Compression::of_head(head);
        Self { length, has_run, is_of_verity, last: None, is_archive, compression, format }
    }

    /// Returns why a checksum with these parameters that equals a value may not be of the content that the value
    /// was computed of. `None` if it is as good as any. `is_file` is whether the content is the bytes of a file.
    pub fn doubt(&self, parameters: &Parameters, is_file: bool) -> Option<Doubt> {
        let algorithm = parameters.algorithm();
        let strength = algorithm.properties().strength;
        if matches!(strength, Strength::None | Strength::ErrorDetection) {
            return None;
        }
        let is_linear = parameters.construction() == Construction::Linear;
        if is_linear && !is_file && self.format != Format::Raw {
            return Some(Doubt::Image(self.format));
        }
        if is_linear && !is_file && self.is_archive {
            return Some(Doubt::Archive);
        }
        if let (true, false, Some(compression)) = (is_linear, is_file, self.compression) {
            return Some(Doubt::Compressed(compression));
        }
        if is_linear && self.is_of_verity {
            return Some(Doubt::Digests);
        }
        if self.has_run {
            return None;
        }
        let size = algorithm.digest_size() as u64;
        let is_list = match parameters.construction() {
            Construction::Linear => self.is_list_of(size),
            Construction::Concat => self.length > 0,
            _ => false,
        };
        is_list.then_some(Doubt::Digests)
    }

    /// Returns whether the length fits digests of this many bytes, alone or with the length of an image after
    /// them, as `flat` hashes it.
    fn is_list_of(&self, size: u64) -> bool {
        let is_list = self.length > 0 && self.length.is_multiple_of(size);
        let is_flat = self.length.checked_sub(LAST).is_some_and(|digests| {
            let count = digests / size;
            let has_count = |length: u64| {
                BLOCK_SIZE_BITS.into_iter().any(|bits| length.div_ceil(1 << bits) == count)
            };
            digests.is_multiple_of(size) && self.last.is_none_or(has_count)
        });
        is_list || is_flat
    }
}

/// Returns whether content may be the topmost block of a tree, with the salt in front of it or after it. The block
/// begins with digests, and ends with zeros unless it is full.
fn is_topmost_block(head: &[u8], length: u64) -> bool {
    TREE_BLOCK_BITS.into_iter().any(|bits| {
        let block = 1 << bits;
        let Some(salt) = length.checked_sub(block).filter(|salt| *salt <= MAX_SALT) else {
            return false;
        };
        let is_topmost = |bytes: &[u8]| {
            let end = bytes.windows(PADDING).position(is_zero).unwrap_or(bytes.len());
            let (digests, padding) = bytes.split_at(end);
            !digests.is_empty() && !has_run(digests) && is_zero(padding)
        };
        let in_front = &head[..head.len().min(block as usize)];
        is_topmost(in_front) || head.get(salt as usize..).is_some_and(is_topmost)
    })
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Returns whether there is a run of low bytes that digests do not have. At each place they have one with the
/// probability of 2^-128.
fn has_run(bytes: &[u8]) -> bool {
    finds_run(bytes, |byte| byte < 128)
}

/// Returns whether there are [`RUN`] such bytes in a row.
fn finds_run(bytes: &[u8], is_in: impl Fn(u8) -> bool) -> bool {
    let mut start = 0;
    while let Some(run) = bytes.get(start..start + RUN) {
        // No run holds the last byte that is not in it, so noise is skipped in long steps.
        match run.iter().rposition(|byte| !is_in(*byte)) {
            None => return true,
            Some(last) => start += last + 1,
        }
    }
    false
}

/// Returns whether content has a run of zeros. `buffer` has the size of the pieces that are read.
fn has_zeros(source: &dyn Source, mut buffer: Vec<u8>) -> Result<bool, Error> {
    let (size, mut at, mut zeros) = (source.size(), 0, Zeros::default());
    while at < size && !zeros.found {
        let extent = source.extent(at, size - at)?;
        let length = match extent.kind {
            ExtentKind::Zero => {
                zeros.push(&[0; RUN][..extent.length.min(RUN as u64) as usize]);
                extent.length
            }
            ExtentKind::Data => {
                let length = extent.length.min(buffer.len() as u64);
                let piece = &mut buffer[..length as usize];
                source.read_exact_at(piece, at)?;
                zeros.push(piece);
                length
            }
        };
        at += length;
    }
    Ok(zeros.found)
}

/// A reader of content that comes once and in order, which notes its shape.
#[derive(Debug)]
pub struct Observed<R> {
    content: R,
    head: Vec<u8>,
    length: u64,
    zeros: Zeros,
}

impl<R> Observed<R> {
    /// Creates a reader of the same bytes.
    pub fn new(content: R) -> Self {
        Self { content, head: Vec::new(), length: 0, zeros: Zeros::default() }
    }

    /// Returns the shape of what was read.
    pub fn shape(&self) -> Shape {
        let shape = Shape::of_head(&self.head, self.length);
        Shape { has_run: shape.has_run || self.zeros.found, ..shape }
    }
}

impl<R: Read> Read for Observed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buf)?;
        let room = HEAD as usize - self.head.len();
        let (head, rest) = buf[..count].split_at(room.min(count));
        self.head.extend_from_slice(head);
        // Where the beginning is no noise, the rest makes no difference.
        if !head.is_empty() && head.len() == room && has_run(&self.head) {
            self.zeros.found = true;
        }
        self.zeros.push(head);
        self.zeros.push(rest);
        self.length += count as u64;
        Ok(count)
    }
}

/// Looks for a run of zeros that no list of digests has, in content that comes in pieces. Low bytes alone would not do:
/// a user who may write a few blocks of an image finds some with such digests.
#[derive(Clone, Copy, Debug, Default)]
struct Zeros {
    /// Number of zeros at the end of what came so far.
    last: usize,
    found: bool,
}

impl Zeros {
    /// Takes the next bytes of the content.
    fn push(&mut self, bytes: &[u8]) {
        if self.found {
            return;
        }
        let is_other = |byte: &u8| *byte != 0;
        let first = bytes.iter().position(is_other).unwrap_or(bytes.len());
        self.found = self.last + first >= RUN || finds_run(bytes, |byte| byte == 0);
        self.last = match bytes.iter().rposition(is_other) {
            None => self.last + bytes.len(),
            Some(last) => bytes.len() - last - 1,
        };
    }
}

/// Number of bytes in which a run of low bytes is looked for.
const HEAD: u64 = 1 << 20;

/// Number of bytes at the end, where a list of `flat` has the length.
const LAST: u64 = 8;

/// Length of a run of low bytes, or of zeros, that no digests have.
const RUN: usize = 128;

/// Number of zeros that no digest in a tree of verity and its own padding hold, which is 16 bytes at most.
const PADDING: usize = 32;

/// Length of the descriptor of fs-verity in bytes.
const DESCRIPTOR: u64 = 256;

/// Maximum length of a salt of dm-verity in bytes.
const MAX_SALT: u64 = 256;

/// Logarithms of the sizes of blocks of trees that veritysetup and kernels take.
const TREE_BLOCK_BITS: std::ops::RangeInclusive<u32> = 9..=19;

/// Logarithms of the sizes of blocks.
const BLOCK_SIZE_BITS: std::ops::RangeInclusive<u32> = 9..=26;

#[cfg(test)]
mod tests {
    use blkhash::{Algorithm, BlockSize, Hasher};
    use blkimage::{Memory, OpenOptions};

    use super::*;

    fn parameters(algorithm: Algorithm, construction: &str, block_size: u64) -> Parameters {
        let block_size = BlockSize::try_from(block_size).unwrap();
        Parameters::new(algorithm, construction.parse().unwrap(), block_size).unwrap()
    }

    fn checksum(parameters: Parameters, content: &[u8]) -> Vec<u8> {
        let mut hasher = Hasher::new(parameters, 1);
        hasher.update(content);
        hasher.finalize().as_bytes().to_vec()
    }

    fn shape(content: &[u8]) -> Shape {
        let memory = Box::new(Memory(content.to_vec()));
        let image = OpenOptions::new().format(Format::Raw).open_storage(memory, "x").unwrap();
        Shape::of(&image).unwrap()
    }

    /// The files that can be made of an image, so that they have its checksum.
    #[test]
    fn lists_of_digests_are_found() {
        let digest = Algorithm::Sha256;
        let linear = parameters(digest, "linear", 512);
        let content: Vec<u8> =
            (0..16 * 4 * 512_u32).map(|byte| ((byte * byte) >> 7) as u8).collect();
        let digests: Vec<Vec<u8>> = content.chunks(512).map(|it| checksum(linear, it)).collect();
        let streams: Vec<Vec<u8>> = (0..4)
            .map(|first| digests.iter().skip(first).step_by(4).flatten().copied().collect())
            .collect();
        let length = (content.len() as u64).to_le_bytes();
        let forged = [
            ("concat", digests.concat(), linear),
            ("flat", [digests.concat(), length.to_vec()].concat(), linear),
            ("streams:4", streams.iter().flat_map(|it| checksum(linear, it)).collect(), linear),
            ("streams:4", streams.concat(), parameters(digest, "concat", 512)),
        ];
        for (construction, file, reading) in forged {
            let value = checksum(parameters(digest, construction, 512), &content);
            assert_eq!(checksum(reading, &file), value, "{construction}");
            assert_eq!(shape(&file).doubt(&reading, true), Some(Doubt::Digests), "{construction}");
            assert!(shape(&file).doubt(&parameters(digest, "flat", 512), true).is_none());
            assert_eq!(
                Shape::of_head(&file, file.len() as u64).doubt(&reading, true),
                Some(Doubt::Digests)
            );
        }
    }

    /// A disk whose first MiB is encrypted.
    #[test]
    fn zeros_are_looked_for_everywhere() {
        let linear = parameters(Algorithm::Sha256, "linear", 512);
        let noise: Vec<u8> =
            (0..3 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect();
        let is_doubted = |content: &[u8]| shape(content).doubt(&linear, true).is_some();
        assert!(is_doubted(&noise));
        // Text is no sign after the beginning, and fewer zeros are none.
        for (at, run) in
            [(2 << 20, &[0; RUN][..]), ((1 << 20) - 5, &[0; RUN]), ((3 << 20) - RUN, &[0; RUN])]
        {
            let mut disk = noise.clone();
            disk[at..at + run.len()].copy_from_slice(run);
            assert!(!is_doubted(&disk), "{at}");
            disk[at + RUN / 2] = 1;
            assert!(is_doubted(&disk), "{at}");
            disk[at..at + run.len()].fill(b'x');
            assert!(is_doubted(&disk), "{at}");
        }
    }

    #[test]
    fn zeros_in_pieces() {
        for size in [1, 7, 127, 128, 129, 1000] {
            let found = |bytes: &[u8]| {
                let mut zeros = Zeros::default();
                bytes.chunks(size).for_each(|piece| zeros.push(piece));
                zeros.found
            };
            for at in [0, 1, 100, 500] {
                let mut bytes = vec![1; 1000];
                bytes[at..at + RUN - 1].fill(0);
                assert!(!found(&bytes), "{size} {at}");
                bytes[at + RUN - 1] = 0;
                assert!(found(&bytes), "{size} {at}");
            }
        }
    }

    /// The last inputs of the hash function of verity, with the padding in them.
    #[test]
    fn blocks_of_trees_are_found() {
        let linear = parameters(Algorithm::Sha256, "linear", 512);
        let is_doubted = |content: &[u8]| shape(content).doubt(&linear, true).is_some();
        for size in [512, 4096, 65536] {
            let block = [vec![0xa5; 96], vec![0; size - 96]].concat();
            assert!(is_doubted(&block));
            for salt in [vec![7; 4], vec![0; 32], vec![7; 256]] {
                assert!(is_doubted(&[&salt[..], &block].concat()));
                assert!(is_doubted(&[&block[..], &salt].concat()));
                // A full block ends with a digest.
                assert!(is_doubted(&[&salt[..], &vec![0xa5; size]].concat()));
            }
            assert!(!is_doubted(&vec![0; size]), "a digest is not zeros");
            let disk = [&block[..size - 1], &[1]].concat();
            assert!(!is_doubted(&disk), "{size}");
            assert!(!is_doubted(&[block, vec![0; 1000]].concat()));
        }
        let disk = [vec![0xa5; 96], vec![0; (1 << 20) - 96]].concat();
        assert!(!is_doubted(&disk), "no tree has such blocks");
        let descriptor = [vec![1, 1, 12, 0], vec![0; 252]].concat();
        assert!(is_doubted(&descriptor));
        assert!(!is_doubted(&[&descriptor[..], &[0; 700], b"x"].concat()));
    }

    #[test]
    fn other_content_is_not_doubted() {
        let linear = parameters(Algorithm::Sha256, "linear", 512);
        let text = b"a text file of some length\n".repeat(400);
        let doubted =
            (0..text.len()).filter(|length| shape(&text[..*length]).doubt(&linear, true).is_some());
        assert_eq!(doubted.collect::<Vec<_>>(), [32, 64, 96], "too short to tell");
        let mut disk = vec![0xa5; 4096];
        assert!(shape(&disk).doubt(&linear, true).is_some());
        disk[1000..1000 + RUN].fill(0);
        assert_eq!(shape(&disk).doubt(&linear, true), None);
        assert_eq!(shape(&disk).doubt(&parameters(Algorithm::Sha256, "concat", 512), true), None);
        assert_eq!(
            shape(&text[..32]).doubt(&parameters(Algorithm::Crc32c, "linear", 512), true),
            None
        );

        let mut image = vec![0; 1024];
        image[1000] = 1;
        image[..8].copy_from_slice(b"QFI\xfb\0\0\0\x03");
        assert_eq!(shape(&image).doubt(&linear, false), Some(Doubt::Image(Format::Qcow2)));
        assert_eq!(shape(&image).doubt(&linear, true), None);
        // Some formats have their magic in the last sector.
        let mut image = vec![0; 2048];
        image[1536..1540].copy_from_slice(b"koly");
        assert_eq!(shape(&image).doubt(&linear, false), Some(Doubt::Image(Format::Dmg)));
        assert_eq!(shape(&image).doubt(&linear, true), None);
    }
}
