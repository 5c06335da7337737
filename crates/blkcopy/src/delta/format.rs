//! The bytes of a delta: a header, records, and an end.

use std::io::{self, Read, Write};
use std::ops::Range;

use blkhash::{Algorithm, BlockSize, Construction, Digest, Digester, Parameters, State};
use blkimage::Image;
use blkmap::{Header as MapHeader, Map, PAGE};

use crate::Error;

/// What a delta is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The parameters of the digests of blocks.
    pub map: MapHeader,
    /// Size of the content that the destination has before, in bytes.
    pub base_size: u64,
    /// Size of the content afterwards, in bytes.
    pub size: u64,
}

/// Consecutive blocks that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub kind: Kind,
    /// Number of the first block.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
}

/// What follows the fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The bytes of the blocks.
    Data = 1,
    /// Nothing: the blocks are zeros.
    Zeros = 2,
    /// The text that states the checksum of the content afterwards, `count` bytes long.
    End = 3,
}

impl Header {
    /// Returns the header of a delta that makes the content of `base` one of `size` bytes.
    pub fn new(base: &Map, size: u64) -> Self {
        Self { map: *base.header(), base_size: base.commit().image_size(), size }
    }

    /// Checks that a destination that can be resized has the size of one of the contents, or grew in part.
    pub fn check_size(&self, destination: &Image) -> Result<(), Error> {
        let size = destination.virtual_size();
        match size == self.size || (self.base_size..=self.size.max(self.base_size)).contains(&size)
        {
            true => Ok(()),
            false => Err(Error::BaseSize { size, needed: self.base_size }),
        }
    }

    /// Returns the size of a block in bytes.
    pub fn block_size(&self) -> u64 {
        self.map.block_size.into()
    }

    /// Returns the bytes of a record in the content afterwards.
    pub fn range(&self, record: &Record) -> Range<u64> {
        let start = record.first * self.block_size();
        start..(start + record.count * self.block_size()).min(self.size)
    }

    /// Returns the number of blocks before and afterwards.
    pub fn blocks(&self) -> [u64; 2] {
        [self.base_size, self.size].map(|size| size.div_ceil(self.block_size()))
    }

    /// Returns the number of the first block that is sent whether it differs or not. If the size changes, these are the blocks
    /// at the old and the new end, and those between.
    pub fn always_from(&self) -> u64 {
        match self.base_size == self.size {
            true => u64::MAX,
            false => self.base_size.min(self.size) / self.block_size(),
        }
    }

    /// Returns the largest number of blocks in a record, unless they are zeros past the old end.
    pub fn max_count(&self) -> u64 {
        (MAX_DATA / self.block_size()).max(1)
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(self.base_size.to_le_bytes());
        bytes.extend(self.size.to_le_bytes());
        bytes.extend(self.map.to_bytes());
        bytes
    }

    fn parse(bytes: &[u8; HEADER]) -> Result<Self, String> {
        let field = |at| u64::from_le_bytes(*bytes[at..].first_chunk().expect("a field"));
        if field(8) != u64::from(VERSION) {
            return Err("is a delta of an unknown version".into());
        }
        // Sums of these and of a block stay in 64 bits.
        if [field(16), field(24)].into_iter().any(|size| i64::try_from(size).is_err()) {
            return Err("states a size that no file can have".into());
        }
        let map = bytes[FIELDS..].first_chunk::<PAGE>().expect("the header of a map");
        let map = MapHeader::parse(map).map_err(|error| error.to_string())?;
        Ok(Self { map, base_size: field(16), size: field(24) })
    }
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&(self.kind as u64).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first.to_le_bytes());
        bytes[16..].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    fn parse(bytes: [u8; RECORD]) -> Option<Self> {
        let field = |at| u64::from_le_bytes(*bytes[at..].first_chunk().expect("a field"));
        let kinds = [Kind::Data, Kind::Zeros, Kind::End];
        let kind = kinds.into_iter().find(|kind| *kind as u64 == field(0))?;
        Some(Self { kind, first: field(8), count: field(16) })
    }
}

/// Returns the text of the end.
pub(super) fn end(parameters: &Parameters, digest: &Digest) -> String {
    let (algorithm, block_size) = (parameters.algorithm().name(), parameters.block_size().get());
    format!("{algorithm} {} {block_size} {digest}", parameters.construction())
}

/// Parses the text of the end.
pub(super) fn parse_end(text: &[u8]) -> Option<(Parameters, Digest)> {
    let mut words = std::str::from_utf8(text).ok()?.split(' ');
    let [name, construction, block_size, digest] = std::array::from_fn(|_| words.next());
    let algorithm = Algorithm::ALL.iter().copied().find(|known| Some(known.name()) == name)?;
    let construction = construction?.parse::<Construction>().ok()?;
    let block_size = BlockSize::try_from(block_size?.parse::<u64>().ok()?).ok()?;
    let parameters = Parameters::new(algorithm, construction, block_size).ok()?;
    let digest = digest?.parse::<Digest>().ok()?;
    // One form for each value.
    (end(&parameters, &digest).as_bytes() == text
        && algorithm.digest_size() > 0
        && digest.as_bytes().len() == algorithm.digest_size())
    .then_some((parameters, digest))
}

/// The digest of everything that was sent so far, which follows each record.
struct Chain {
    digester: Digester,
    state: State,
}

impl Chain {
    fn new() -> Self {
        let digester = Digester::new(Algorithm::Sha256);
        Self { state: digester.start(), digester }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// Returns the digest, with which the next one begins.
    fn next(&mut self) -> Digest {
        let mut start = self.digester.start();
        std::mem::swap(&mut start, &mut self.state);
        let digest = start.finalize();
        self.state.update(digest.as_bytes());
        digest
    }
}

/// Writes a delta.
pub(super) struct Encoder<'a> {
    output: &'a mut (dyn Write + Send),
    chain: Chain,
    /// Number of bytes so far.
    pub length: u64,
}

impl<'a> Encoder<'a> {
    pub fn new(output: &'a mut (dyn Write + Send), header: &Header) -> io::Result<Self> {
        let mut encoder = Self { output, chain: Chain::new(), length: 0 };
        encoder.put(&[&header.to_bytes()])?;
        Ok(encoder)
    }

    /// Writes a record: the digests of the blocks before, and their bytes.
    pub fn record(&mut self, record: Record, old: &[u8], data: &[u8]) -> io::Result<()> {
        self.put(&[&record.to_bytes(), old, data])
    }

    pub fn end(&mut self, text: &str) -> io::Result<()> {
        let record = Record { kind: Kind::End, first: 0, count: text.len() as u64 };
        self.put(&[&record.to_bytes(), text.as_bytes()])?;
        self.output.flush()
    }

    fn put(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            self.chain.update(part);
            self.output.write_all(part)?;
            self.length += part.len() as u64;
        }
        let digest = self.chain.next();
        self.length += digest.as_bytes().len() as u64;
        self.output.write_all(digest.as_bytes())
    }
}

/// Reads a delta.
pub(super) struct Decoder<'a> {
    input: &'a mut dyn Read,
    chain: Chain,
    /// Offset of the next byte.
    at: u64,
    pub header: Header,
    /// Number of the first block that may follow.
    next: u64,
    /// The digests of the blocks before, and their bytes.
    old: Vec<u8>,
    data: Vec<u8>,
}

/// A record whose digest was checked.
pub(super) enum Item<'a> {
    /// Blocks, the digests that they had before, none past the old end, and the bytes, none if they are zeros.
    Blocks { record: Record, old: &'a [u8], data: Option<&'a [u8]> },
    /// The checksum of the content afterwards. Nothing follows.
    End(Box<(Parameters, Digest)>),
}

impl<'a> Decoder<'a> {
    pub fn new(input: &'a mut dyn Read) -> Result<Self, Error> {
        let (mut chain, mut at) = (Chain::new(), 0);
        let mut bytes = [0; HEADER];
        let (magic, rest) = bytes.split_at_mut(MAGIC.len());
        let filled = fill(input, magic, &mut at).map(|()| *magic == MAGIC);
        match filled {
            Ok(true) => fill(input, rest, &mut at)?,
            Ok(false) | Err(Error::Delta { .. }) => {
                return Err(Error::Delta { at: 0, reason: "is not a delta".into() });
            }
            Err(error) => return Err(error),
        }
        chain.update(&bytes);
        let header = Header::parse(&bytes);
        let header = header.map_err(|reason| Error::Delta { at: 0, reason })?;
        let (old, data) = (Vec::new(), Vec::new());
        let mut decoder = Self { input, chain, at, header, next: 0, old, data };
        decoder.check(0)?;
        Ok(decoder)
    }

    /// Returns the next record.
    pub fn next(&mut self) -> Result<Item<'_>, Error> {
        let start = self.at;
        let damaged = |reason: &str| Error::Delta { at: start, reason: reason.into() };
        let mut fields = [0; RECORD];
        self.read(&mut fields)?;
        let record = Record::parse(fields).ok_or_else(|| damaged("a record of an unknown kind"))?;
        self.chain.update(&fields);
        if record.kind == Kind::End {
            if record.first != 0 || record.count > MAX_TEXT {
                return Err(damaged("an end that is no end"));
            }
            self.data.resize(record.count as usize, 0);
            fill(self.input, &mut self.data, &mut self.at)?;
            self.chain.update(&self.data);
            self.check(start)?;
            if !matches!(self.input.read(&mut [0]), Ok(0)) {
                return Err(Error::Delta { at: self.at, reason: "more follows the end".into() });
            }
            let end = parse_end(&self.data);
            let end = end.ok_or_else(|| damaged("an end without a checksum"))?;
            return Ok(Item::End(Box::new(end)));
        }
        let (old, data) = self.lengths(record).ok_or_else(|| damaged("blocks out of place"))?;
        self.next = record.first + record.count;
        self.old.resize(old, 0);
        self.data.resize(data, 0);
        for part in [&mut self.old, &mut self.data] {
            fill(self.input, part, &mut self.at)?;
            self.chain.update(part);
        }
        self.check(start)?;
        let data = (record.kind == Kind::Data).then_some(&*self.data);
        Ok(Item::Blocks { record, old: &self.old, data })
    }

    /// Returns the number of bytes of the digests of the blocks before, and of the blocks. `None` if there can be no such record.
    fn lengths(&self, record: Record) -> Option<(usize, usize)> {
        let header = &self.header;
        let [before, blocks] = header.blocks();
        let end = record.first.checked_add(record.count).filter(|end| *end <= blocks)?;
        let has_old = end <= before;
        let is_free = record.kind == Kind::Zeros && !has_old;
        let is_whole = record.count > 0 && (is_free || record.count <= header.max_count());
        // A record is before the old end or past it.
        if !is_whole || record.first < self.next || (!has_old && record.first < before) {
            return None;
        }
        let old =
            if has_old { record.count * header.map.algorithm.digest_size() as u64 } else { 0 };
        let data = match record.kind {
            Kind::Data => {
                let range = header.range(&record);
                range.end - range.start
            }
            _ => 0,
        };
        Some((old as usize, data as usize))
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        fill(self.input, bytes, &mut self.at)
    }

    /// Checks the digest that follows what began at `start`.
    fn check(&mut self, start: u64) -> Result<(), Error> {
        let expected = self.chain.next();
        let mut found = [0; CHAIN];
        self.read(&mut found)?;
        match expected.as_bytes() == found {
            true => Ok(()),
            false => Err(Error::Delta { at: start, reason: "its digest is another one".into() }),
        }
    }
}

fn fill(input: &mut dyn Read, bytes: &mut [u8], at: &mut u64) -> Result<(), Error> {
    match input.read_exact(bytes) {
        Ok(()) => {
            *at += bytes.len() as u64;
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(Error::Delta { at: *at, reason: "ends there, and is not complete".into() })
        }
        Err(error) => Err(Error::Source(blksum::Error::Stream(error))),
    }
}

/// The first bytes of a delta.
pub const MAGIC: [u8; 8] = *b"\x89BLKDLT\n";

const VERSION: u32 = 1;

/// Offset of the header of the map.
const FIELDS: usize = 32;

/// Number of bytes of the header.
const HEADER: usize = FIELDS + PAGE;

/// Number of bytes of the fields of a record.
const RECORD: usize = 24;

/// Number of bytes of the digest after a record.
const CHAIN: usize = 32;

/// Maximum size of a record of a delta, unless one block is larger. A record is in memory until its digest was
/// checked.
/// Limit in bytes.
const MAX_DATA: u64 = 1 << 20;

/// Maximum length of the text at the end of a delta.
/// Limit in bytes.
const MAX_TEXT: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use blkhash::Salt;

    fn header() -> Header {
        let map = MapHeader::new(Algorithm::Sha256, BlockSize::DEFAULT, Salt::EMPTY).unwrap();
        Header { map, base_size: 100_000, size: 300_000 }
    }

    fn delta() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, &header()).unwrap();
        let block = vec![7; 65536];
        let record = |kind, first, count| Record { kind, first, count };
        encoder.record(record(Kind::Data, 1, 1), &[1; 32], &block).unwrap();
        encoder.record(record(Kind::Zeros, 2, 2), &[], &[]).unwrap();
        encoder.record(record(Kind::Data, 4, 1), &[], &block[..300_000 - 4 * 65536]).unwrap();
        let parameters = Parameters::default();
        let digest = Digester::new(parameters.algorithm()).digest(b"");
        encoder.end(&end(&parameters, &digest)).unwrap();
        bytes
    }

    /// Reads a delta, and returns the number of its records.
    fn read(mut bytes: &[u8]) -> Result<usize, Error> {
        let mut decoder = Decoder::new(&mut bytes)?;
        assert_eq!(decoder.header.size, 300_000);
        for count in 0.. {
            if let Item::End(end) = decoder.next()? {
                assert_eq!(end.0, Parameters::default());
                return Ok(count);
            }
        }
        unreachable!()
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        assert_eq!(read(&delta()).unwrap(), 3);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_found() {
        let whole = delta();
        for length in (0..whole.len()).step_by(61).chain(whole.len() - 200..whole.len()) {
            let error = read(&whole[..length]).unwrap_err();
            assert!(matches!(error, Error::Delta { .. }), "{length}: {error}");
        }
        for at in (0..whole.len()).step_by(53).chain(0..64).chain(HEADER..HEADER + 128) {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            assert!(matches!(read(&bytes), Err(Error::Delta { .. })), "{at}");
        }
        let more = [&whole[..], b"x"].concat();
        assert!(read(&more).is_err());
    }

    #[test]
    fn sizes_that_cannot_be() {
        for size in [1 << 63, u64::MAX] {
            for header in [Header { size, ..header() }, Header { base_size: size, ..header() }] {
                let mut bytes = Vec::new();
                Encoder::new(&mut bytes, &header).unwrap();
                assert!(matches!(read(&bytes), Err(Error::Delta { at: 0, .. })), "{size}");
            }
        }
    }

    #[test]
    fn records_that_cannot_be() {
        let records = [
            (Kind::Data, 0, 0),
            (Kind::Data, 0, 17),
            (Kind::Zeros, 0, 17),
            (Kind::Zeros, 1, 2),
            (Kind::Data, 5, 1),
            (Kind::Zeros, 4, 2),
            (Kind::Zeros, u64::MAX, 2),
            (Kind::End, 1, 0),
            (Kind::End, 0, 1 << 40),
        ];
        for (kind, first, count) in records {
            let mut bytes = Vec::new();
            let mut encoder = Encoder::new(&mut bytes, &header()).unwrap();
            encoder.record(Record { kind, first, count }, &[0; 64], &[0; 200]).unwrap();
            let error = read(&bytes).unwrap_err();
            assert!(matches!(error, Error::Delta { at: 4160, .. }), "{error:?}");
        }
    }
}
