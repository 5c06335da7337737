//! Lists what a value can be: digests of its length, constructions, block sizes.

use blkhash::{Algorithm, BlockSize, Construction, Parameters};

use super::digests::digests_of_size;
use super::limits::Limits;
use super::value::Value;

/// The parameters to try for a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Digests to try. Empty: all of the length of a value, except those that withstand less than the others.
    pub algorithms: Vec<Algorithm>,
    /// Construction to try. `None`: all that are in use.
    pub construction: Option<Construction>,
    /// Block size to try. `None`: 64 KiB, and 4 MiB for `concat`.
    pub block_size: Option<BlockSize>,
    /// How much is hashed. What would be more is not tried.
    pub limits: Limits,
}

/// The bytes to hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The content that a guest sees.
    Content,
    /// The bytes of the file that stores the image.
    Bytes,
}

/// Checksums to compute in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The bytes to hash.
    pub subject: Subject,
    /// Parameters of the checksums. Never empty.
    pub parameters: Vec<Parameters>,
}

impl Search {
    /// Returns the digests that a value can be of, likeliest first.
    pub fn digests(&self, value: &Value) -> Vec<Algorithm> {
        let is_given = |it: &Algorithm| self.algorithms.is_empty() || self.algorithms.contains(it);
        if let Some(algorithm) = value.algorithm {
            return Some(algorithm).filter(is_given).into_iter().collect();
        }
        let size = value.digest.len();
        match self.algorithms.is_empty() {
            true => digests_of_size(size),
            false => {
                self.algorithms.iter().copied().filter(|it| it.digest_size() == size).collect()
            }
        }
    }

    /// Returns what values without parts can be, likeliest first. A pass is needed only if nothing before it
    /// matches:
    ///
    /// 1. the constructions over blocks, whose digests are computed once,
    /// 2. `linear`, which hashes zeros as well, and `concat` with other blocks,
    /// 3. the bytes of the file,
    /// 4. and 5. the same with the other digests.
    pub fn passes(&self, values: &[Value]) -> Vec<Pass> {
        let (mut first, mut others) = (Vec::new(), Vec::new());
        for value in values.iter().filter(|value| value.parts.is_none()) {
            for (index, algorithm) in self.digests(value).into_iter().enumerate() {
                let list = if index == 0 { &mut first } else { &mut others };
                if !list.contains(&algorithm) {
                    list.push(algorithm);
                }
            }
        }
        others.retain(|algorithm| !first.contains(algorithm));
        let of = |algorithms: &[Algorithm], kinds: &[(Construction, BlockSize)]| {
            let all = algorithms.iter().flat_map(|algorithm| {
                let parameters = |(construction, size): &(Construction, BlockSize)| {
                    Parameters::new(*algorithm, *construction, *size).ok()
                };
                kinds.iter().filter_map(parameters)
            });
            all.collect::<Vec<_>>()
        };
        let (blocks, whole) = (self.over_blocks(), self.other_kinds());
        let linear = match self.construction {
            None => vec![(Construction::Linear, BlockSize::DEFAULT)],
            Some(_) => Vec::new(),
        };
        let all = [blocks.clone(), whole.clone()].concat();
        let passes = [
            (Subject::Content, of(&first, &blocks)),
            (Subject::Content, of(&first, &whole)),
            (Subject::Bytes, of(&first, &linear)),
            (Subject::Content, of(&others, &all)),
            (Subject::Bytes, of(&others, &linear)),
        ];
        let passes = passes.into_iter().filter(|(_, parameters)| !parameters.is_empty());
        passes.map(|(subject, parameters)| Pass { subject, parameters }).collect()
    }

    /// Returns what a value of parts can be of a file with this many bytes. `None` if no size of a part gives
    /// that number.
    pub fn parts(&self, value: &Value, length: u64) -> Option<Pass> {
        let size = match self.block_size {
            None => part_size(length, value.parts?)?,
            Some(size) => Some(size).filter(|it| Some(parts_of(length, *it)) == value.parts)?,
        };
        let digests = self.digests(value).into_iter();
        let parameters =
            digests.filter_map(|it| Parameters::new(it, Construction::Concat, size).ok());
        let parameters: Vec<_> = parameters.collect();
        (!parameters.is_empty()).then_some(Pass { subject: Subject::Bytes, parameters })
    }

    fn over_blocks(&self) -> Vec<(Construction, BlockSize)> {
        if let Some(construction) = self.construction {
            let size = self.block_size.unwrap_or(construction.default_block_size());
            return vec![(construction, size)];
        }
        let size = self.block_size.unwrap_or_default();
        let streams = STREAMS.map(|count| format!("streams:{count}").parse().expect("is in range"));
        let all = streams.into_iter().chain([Construction::Flat, Construction::Concat]);
        all.map(|construction| (construction, size)).collect()
    }

    fn other_kinds(&self) -> Vec<(Construction, BlockSize)> {
        if self.construction.is_some() {
            return Vec::new();
        }
        let mut kinds = vec![(Construction::Linear, BlockSize::DEFAULT)];
        if self.block_size.is_none()
            && let Ok(size) = BlockSize::try_from(OVIRT)
        {
            kinds.push((Construction::Concat, size));
        }
        kinds
    }
}

/// Returns the size of a part, a power of two, if `length` bytes have this many parts. `None` if there is none up to
/// 64 MiB.
pub fn part_size(length: u64, parts: u64) -> Option<BlockSize> {
    let sizes = (0..=BlockSize::MAX.get().ilog2()).map(|bits| 1_u64 << bits);
    let mut sizes = sizes.filter_map(|size| BlockSize::try_from(size).ok());
    sizes.find(|size| parts_of(length, *size) == parts)
}

fn parts_of(length: u64, size: BlockSize) -> u64 {
    length.div_ceil(size.get() as u64).max(1)
}

/// Numbers of streams of released versions of the C blksum.
const STREAMS: [u8; 3] = [4, 32, 64];

/// Block size of oVirt's checksums.
const OVIRT: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn value(size: usize) -> Value {
        Value::new(vec![0; size]).unwrap()
    }

    #[test]
    fn digests_of_a_value() {
        let search = Search { algorithms: vec![Algorithm::Xxh128], ..Search::default() };
        assert_eq!(search.digests(&value(16)), [Algorithm::Xxh128]);
        assert_eq!(search.digests(&value(32)), []);
        let named = Value::of(Algorithm::Sha512, vec![0; 64]).unwrap();
        assert_eq!(Search::default().digests(&named), [Algorithm::Sha512]);
    }

    #[test]
    fn passes_begin_with_what_is_likely_and_cheap() {
        let text = |pass: &Pass| {
            let parameters = pass.parameters.iter();
            let parameters = parameters.map(|it| {
                format!("{}:{}:{}", it.algorithm(), it.construction(), it.block_size().get() >> 10)
            });
            parameters.collect::<Vec<_>>()
        };
        let passes = Search::default().passes(&[value(32), value(20), value(32)]);
        assert_eq!(
            text(&passes[0])[..5],
            [
                "sha256:streams:4:64",
                "sha256:streams:32:64",
                "sha256:streams:64:64",
                "sha256:flat:64",
                "sha256:concat:64"
            ]
        );
        assert_eq!(passes[0].parameters.len(), 10);
        assert_eq!(text(&passes[1])[..2], ["sha256:linear:64", "sha256:concat:4096"]);
        let subjects: Vec<_> = passes.iter().map(|pass| pass.subject).collect();
        let (content, bytes) = (Subject::Content, Subject::Bytes);
        assert_eq!(subjects, [content, content, bytes, content, bytes]);
        let is_first =
            |it: &Parameters| [Algorithm::Sha256, Algorithm::Sha1].contains(&it.algorithm());
        assert!(passes[..3].iter().all(|pass| pass.parameters.iter().all(is_first)));
        assert!(!passes[3..].iter().any(|pass| pass.parameters.iter().any(is_first)));

        let size = BlockSize::try_from(4096_u64).unwrap();
        let algorithms = vec![Algorithm::Sha256];
        let search = Search { algorithms, block_size: Some(size), ..Search::default() };
        let passes = search.passes(&[value(32)]);
        assert_eq!(passes.len(), 3);
        assert!(passes[0].parameters.iter().all(|it| it.block_size() == BlockSize::PAGE));
        assert_eq!(text(&passes[1]).len(), 1);
        assert!(search.passes(&[value(16)]).is_empty());
        let search = Search { construction: Some(Construction::Linear), ..search };
        let passes = search.passes(&[value(32)]);
        assert_eq!((passes.len(), text(&passes[0])), (1, vec!["sha256:linear:4".to_owned()]));
    }

    #[test]
    fn sizes_of_parts() {
        let size = |length, parts| part_size(length, parts).map(BlockSize::get);
        assert_eq!(size(300 << 20, 38), Some(8 << 20));
        assert_eq!(size(300 << 20, 37), None);
        assert_eq!(size(16 << 20, 2), Some(8 << 20));
        assert_eq!((size(0, 1), size(1, 1), size(513, 1)), (Some(512), Some(512), Some(1024)));
        assert_eq!(
            (size(0, 0), size(1 << 40, 1), size(u64::MAX, 1 << 38)),
            (None, None, Some(64 << 20))
        );
    }
}
