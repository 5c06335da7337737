//! Maps of random contents, compared with the contents themselves.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use blkhash::engine::Accumulator;
use blkhash::{
    Algorithm, BlockDigests, BlockSize, Comparison, Construction, Digester, Parameters, Run, Salt,
    Sink, Tree,
};
use blkmap::{
    Against, BlockRun, Error, Header, ImageEnd, Key, Lookup, Map, Output, Recovered, Report, Side,
    Update, Writer, check, checksum, diff, merge, seal,
};
use proptest::prelude::*;

const BLOCK: usize = 512;

/// The content of an image: a byte for each block, 0 for a block of zeros, and the length of the last block.
#[derive(Clone, Debug)]
struct Content {
    blocks: Vec<u8>,
    last: usize,
}

impl Content {
    fn size(&self) -> u64 {
        match self.blocks.len() {
            0 => 0,
            count => ((count - 1) * BLOCK + self.last) as u64,
        }
    }

    fn block(&self, index: usize) -> Vec<u8> {
        let length = if index + 1 == self.blocks.len() { self.last } else { BLOCK };
        vec![self.blocks[index]; length]
    }

    fn bytes(&self) -> Vec<u8> {
        (0..self.blocks.len()).flat_map(|index| self.block(index)).collect()
    }

    /// Returns the digests of a range of blocks as a pass over the image has them.
    fn digests(&self, header: &Header, from: usize, to: usize) -> BlockDigests {
        let leaf = header.leaf();
        let mut digests = BlockDigests::default();
        for index in from..to {
            let block = self.block(index);
            if block.len() == BLOCK && self.blocks[index] == 0 {
                digests.push_zero_blocks(1, BLOCK);
            } else {
                digests.push(&leaf.hash(&block), block.len() as u64);
            }
        }
        digests
    }

    fn padded_last(&self, header: &Header) -> Option<blkhash::Digest> {
        let last = self.block(self.blocks.len().checked_sub(1)?);
        let is_short = last.len() < BLOCK;
        is_short.then(|| {
            let mut padded = last;
            padded.resize(BLOCK, 0);
            header.leaf().hash(&padded)
        })
    }
}

fn content() -> impl Strategy<Value = Content> {
    let run = (prop_oneof![Just(0), 0..3_u8, any::<u8>()], prop_oneof![1..4_usize, 100..400_usize]);
    (prop::collection::vec(run, 0..8), prop_oneof![Just(BLOCK), 1..=BLOCK]).prop_map(
        |(runs, last)| {
            let blocks = runs.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect();
            Content { blocks, last }
        },
    )
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    let names = ["sha256", "sha256", "sha1", "sha512", "crc32c", "blake3", "xxh3-64", "md5"];
    prop::sample::select(names.to_vec()).prop_map(|name| name.parse().unwrap())
}

fn header(algorithm: Algorithm, salt: Salt) -> Header {
    let block_size = BlockSize::try_from(BLOCK as u64).unwrap();
    Header::with_id(*b"0123456789abcdef", algorithm, block_size, salt)
}

/// Writes the map of a range of pages, with a checkpoint after each part of `parts` blocks.
fn map_of(content: &Content, header: Header, pages: std::ops::Range<u64>, part: usize) -> Vec<u8> {
    let per_page = header.blocks_per_page();
    let mut writer = Writer::new(Vec::new(), header, content.size()).unwrap();
    writer.skip_to(pages.start).unwrap();
    writer.set_padded_last(content.padded_last(&header));
    let mut at = ((pages.start * per_page) as usize).min(content.blocks.len());
    let end = ((pages.end.saturating_mul(per_page)) as usize).min(content.blocks.len());
    while at < end {
        let to = end.min(at + part);
        writer.take(&content.digests(&header, at, to)).unwrap();
        if to < end {
            writer.checkpoint("{}").unwrap();
        }
        at = to;
    }
    writer.finish("{\"made\":\"read\"}").unwrap().0
}

fn whole(content: &Content, header: Header) -> Vec<u8> {
    map_of(content, header, 0..u64::MAX, usize::MAX / 2)
}

/// Returns the blocks of a map: an entry, nothing for zeros, or `None` if it is not known.
fn blocks_of(map: &Map, limit: u64) -> Vec<Option<Vec<u8>>> {
    let mut found = Vec::new();
    let mut blocks = map.blocks().unwrap();
    while let Some(run) = blocks.next(limit).unwrap() {
        match run {
            BlockRun::Digests { first, entries } => {
                assert_eq!(first, found.len() as u64);
                let entries = entries.chunks_exact(map.header().entry_size());
                found.extend(entries.map(|entry| Some(entry.to_vec())));
            }
            BlockRun::Zeros { count, .. } => {
                found.extend((0..count).map(|_| Some(map.zero_block().as_bytes().to_vec())));
            }
            BlockRun::Unknown { count, .. } => found.extend((0..count).map(|_| None)),
        }
    }
    found
}

fn check_all(map: &Map) -> blkmap::Result<()> {
    check(map, &mut |_| ControlFlow::Continue(()))
}

type Kinds = BTreeMap<u64, Comparison>;

fn collect(run: impl FnOnce(Report<'_>)) -> Kinds {
    let mut kinds = Kinds::new();
    let mut take = |first: u64, count: u64, kind| {
        for block in first..first + count {
            assert!(kinds.insert(block, kind).is_none(), "{block} twice");
        }
    };
    run(Report::new(&mut take));
    kinds
}

/// Compares the bytes of two contents.
fn compare_bytes(left: &Content, right: &Content) -> Kinds {
    let common = left.blocks.len().min(right.blocks.len());
    let kind = |index: usize| {
        let (one, other) = (left.block(index), right.block(index));
        let zeros = (left.blocks[index] == 0, right.blocks[index] == 0);
        let padded = |mut block: Vec<u8>| {
            block.resize(BLOCK, 0);
            block
        };
        Comparison::new(zeros.0, zeros.1, padded(one) == padded(other))
    };
    (0..common).map(|index| (index as u64, kind(index))).collect()
}

/// Maps do not tell zeros in equal pages.
fn without_zeros(kinds: Kinds) -> Kinds {
    let known = |kind| if kind == Comparison::Zeros { Comparison::Equal } else { kind };
    kinds.into_iter().map(|(block, kind)| (block, known(kind))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn maps_hold_what_was_written(
        content in content(), algorithm in algorithm(), salted in any::<bool>(),
        part in 1..500_usize, limit in 1..300_u64,
    ) {
        let salt: Salt = if salted { "00ff".parse().unwrap() } else { Salt::EMPTY };
        let header = header(algorithm, salt);
        let bytes = map_of(&content, header, 0..u64::MAX, part);
        let map = Map::open(bytes.clone()).unwrap();
        check_all(&map).unwrap();
        let leaf = header.leaf();
        let found = blocks_of(&map, limit);
        prop_assert_eq!(found.len(), content.blocks.len());
        for (index, entry) in found.iter().enumerate() {
            let digest = leaf.hash(&content.block(index));
            let entry = entry.as_ref().unwrap();
            prop_assert_eq!(&entry[..digest.as_bytes().len()], digest.as_bytes());
        }
        // The layout depends on checkpoints, the content does not.
        let plain = Map::open(whole(&content, header)).unwrap();
        prop_assert_eq!(map.commit().root(), plain.commit().root());
        prop_assert_eq!(map.commit().content_id(&header), plain.commit().content_id(&header));
        prop_assert!(map.is_complete());
    }

    #[test]
    fn roots_are_those_of_dm_verity(content in content()) {
        let content = Content { last: BLOCK, ..content };
        prop_assume!(content.blocks.len() > 1);
        let header = header(Algorithm::Sha256, Salt::EMPTY);
        let map = Map::open(whole(&content, header)).unwrap();
        let mut tree = Tree::new(&header.leaf(), BlockSize::PAGE);
        for index in 0..content.blocks.len() {
            let Ok(()) = tree.push(header.leaf().hash(&content.block(index)).as_bytes());
        }
        let Ok((root, ())) = tree.finish();
        prop_assert_eq!(&map.commit().root().unwrap()[..], root.as_bytes());
    }

    #[test]
    fn checksums_are_those_of_the_content(content in content(), algorithm in algorithm()) {
        let header = header(algorithm, Salt::EMPTY);
        let map = Map::open(whole(&content, header)).unwrap();
        for name in ["streams:4", "streams:3", "flat", "concat", "fs-verity", "dm-verity"] {
            let construction: Construction = name.parse().unwrap();
            let found = checksum(&map, construction, 2);
            let parameters = Parameters::new(algorithm, construction, header.block_size);
            match parameters.and_then(|it| it.check_length(content.size()).map(|()| it)) {
                Ok(parameters) => {
                    let mut accumulator = Accumulator::new(&parameters, 1);
                    accumulator.update(&content.bytes());
                    prop_assert_eq!(found.unwrap(), accumulator.finalize(), "{}", name);
                }
                Err(_) => prop_assert!(found.is_err(), "{}", name),
            }
        }
    }

    #[test]
    fn differences_are_those_of_the_bytes(
        left in content(), right in content(), cut in 0..400_usize, same in any::<bool>(),
        algorithm in algorithm(), changes in prop::collection::vec((any::<usize>(), 0..4_u8), 0..6),
    ) {
        // Mostly two states of one image.
        let mut right = if same { left.clone() } else { right };
        let length = right.blocks.len();
        right.blocks.truncate(length.saturating_sub(if same { cut % 3 * 128 } else { cut }));
        for (index, byte) in changes {
            let length = right.blocks.len();
            if let Some(block) = right.blocks.get_mut(index % length.max(1)) {
                *block = byte;
            }
        }
        let header = header(algorithm, Salt::EMPTY);
        let (one, other) = (
            Map::open(map_of(&left, header, 0..u64::MAX, 200)).unwrap(),
            Map::open(whole(&right, header)).unwrap(),
        );
        let expected = compare_bytes(&left, &right);
        let found = collect(|report| diff(&one, &other, report).unwrap());
        prop_assert_eq!(without_zeros(found), without_zeros(expected.clone()));
        for (map, content, side) in [(&one, &right, Side::Left), (&other, &left, Side::Right)] {
            let found = collect(|report| {
                let end = ImageEnd {
                    size: content.size(),
                    padded_last: content.padded_last(&header),
                };
                let mut against = Against::new(map, side, map.blocks().unwrap(), end, report);
                for at in (0..content.blocks.len()).step_by(77) {
                    let to = content.blocks.len().min(at + 77);
                    against.take(&content.digests(&header, at, to)).unwrap();
                }
                against.end();
            });
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn parts_in_any_order_make_the_whole(
        content in content(), algorithm in algorithm(), shards in 1..6_u64,
        order in any::<prop::sample::Index>(), without in any::<prop::sample::Index>(),
    ) {
        let header = header(algorithm, Salt::EMPTY);
        let expected = Map::open(whole(&content, header)).unwrap();
        let pages = expected.pages();
        let mut parts: Vec<Map> = (0..shards)
            .map(|shard| pages * shard / shards..pages * (shard + 1) / shards)
            .map(|range| Map::open(map_of(&content, header, range, 300)).unwrap())
            .collect();
        let middle = order.index(parts.len());
        parts.rotate_left(middle);
        let merged = |parts: &[Map]| {
            let mut writer = Writer::new(Vec::new(), header, content.size()).unwrap();
            let padded = merge(parts, &mut writer, &mut |_| {}).unwrap();
            writer.set_padded_last(padded);
            Map::open(writer.finish("{}").unwrap().0).unwrap()
        };
        let map = merged(&parts);
        check_all(&map).unwrap();
        prop_assert_eq!(map.commit().root(), expected.commit().root());
        prop_assert_eq!(map.padded_last(), expected.padded_last());
        prop_assert_eq!(blocks_of(&map, 1000), blocks_of(&expected, 1000));
        let hole = parts.remove(without.index(parts.len()));
        prop_assume!(!parts.is_empty());
        let map = merged(&parts);
        check_all(&map).unwrap();
        for (index, entry) in blocks_of(&map, 1000).iter().enumerate() {
            let is_in_hole = blocks_of(&hole, 1000)[index].is_some();
            prop_assert_eq!(entry.is_none(), is_in_hole);
        }
        prop_assert_eq!(map.is_complete(), hole.commit().known() == 0);
    }

    #[test]
    fn interrupted_maps_go_on(
        content in content(), part in 1..300_usize, cut in any::<prop::sample::Index>(),
        garbage in prop_oneof![Just(0_usize), 1..20_000_usize],
    ) {
        let header = header(Algorithm::Sha256, Salt::EMPTY);
        let mut bytes = map_of(&content, header, 0..u64::MAX, part);
        bytes.truncate(4096 + cut.index(bytes.len() - 4096));
        bytes.extend((0..garbage).map(|index| index as u8));
        let mut file = tempfile::tempfile().unwrap();
        Output::append(&mut file, &bytes).unwrap();
        let recovered = Recovered::find(file).unwrap();
        prop_assert_eq!(recovered.header(), &header);
        prop_assert!(recovered.commit().is_none_or(|commit| !commit.is_final()));
        let mut writer = recovered.continued(content.size()).unwrap();
        let from = (writer.page() * header.blocks_per_page()) as usize;
        let count = content.blocks.len();
        writer.set_padded_last(content.padded_last(&header));
        writer.take(&content.digests(&header, from.min(count), count)).unwrap();
        let (file, _) = writer.finish("{}").unwrap();
        let map = Map::open(file).unwrap();
        check_all(&map).unwrap();
        let expected = Map::open(whole(&content, header)).unwrap();
        prop_assert_eq!(map.commit().root(), expected.commit().root());
        prop_assert_eq!(blocks_of(&map, 1000), blocks_of(&expected, 1000));
    }
}

fn small() -> Vec<u8> {
    let blocks = [vec![1; 130], vec![0; 300], vec![2; 5], vec![0; 100], vec![3; 2]].concat();
    let content = Content { blocks, last: 77 };
    map_of(&content, header(Algorithm::Sha1, "11".parse().unwrap()), 0..u64::MAX, 200)
}

#[test]
#[ignore = "slow"]
fn every_changed_byte_is_found() {
    let bytes = small();
    check_all(&Map::open(bytes.clone()).unwrap()).unwrap();
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        let found = Map::open(bytes).and_then(|map| check_all(&map));
        assert!(found.is_err(), "the change at {at} was not found");
    }
}

#[test]
fn every_cut_off_map_is_refused() {
    let bytes = small();
    for length in 0..bytes.len() {
        assert!(Map::open(bytes[..length].to_vec()).is_err(), "{length}");
    }
}

#[test]
fn maps_of_other_digests_are_not_compared() {
    let content = Content { blocks: vec![1; 3], last: BLOCK };
    let map = |header: Header| Map::open(whole(&content, header)).unwrap();
    let one = map(header(Algorithm::Sha256, Salt::EMPTY));
    let mut pages = header(Algorithm::Sha256, Salt::EMPTY);
    pages.block_size = BlockSize::PAGE;
    for other in [
        header(Algorithm::Sha1, Salt::EMPTY),
        header(Algorithm::Sha256, "00".parse().unwrap()),
        pages,
    ] {
        let mut take = |_, _, _| panic!("nothing was compared");
        if other.block_size == BlockSize::PAGE {
            continue;
        }
        let result = diff(&one, &map(other), Report::new(&mut take));
        assert!(matches!(result, Err(Error::Mismatch(_))), "{other:?}");
    }
}

#[test]
fn seals_need_their_key() {
    let mut bytes = small();
    let (key, other) = (Key::new(vec![7; 32]).unwrap(), Key::new(vec![8; 32]).unwrap());
    let map = Map::open(bytes.clone()).unwrap();
    assert!(matches!(map.check_seal(&key), Err(Error::Seal("is not sealed"))));
    seal(&map, &mut bytes, &key).unwrap();
    let map = Map::open(bytes.clone()).unwrap();
    check_all(&map).unwrap();
    map.check_seal(&key).unwrap();
    assert!(matches!(map.check_seal(&other), Err(Error::Seal("is sealed with another key"))));
    // The key id belongs to the record that the tag covers.
    let digester = Digester::new(Algorithm::Sha256);
    let mut forged = bytes.clone();
    let record = forged.len() - 4096;
    forged[record + 48] ^= 1;
    let hash = digester.digest(&forged[record..record + 4064]);
    forged[record + 4064..].copy_from_slice(hash.as_bytes());
    let found = Map::open(forged).and_then(|map| map.check_seal(&key));
    assert!(found.is_err());
}

#[test]
fn zeros_that_would_take_hours_are_refused() {
    let header = header(Algorithm::Sha256, Salt::EMPTY);
    let blocks = (1 << 32) + 1;
    let mut digests = BlockDigests::default();
    digests.push_zero_blocks(blocks, BLOCK);
    let mut writer = Writer::new(Vec::new(), header, blocks * BLOCK as u64).unwrap();
    writer.take(&digests).unwrap();
    let map = Map::open(writer.finish("{}").unwrap().0).unwrap();
    let error = checksum(&map, Construction::default(), 1).unwrap_err();
    assert!(error.to_string().contains("zero blocks"), "{error}");
    checksum(&map, Construction::DmVerity, 1).unwrap();
}

/// Returns a later state of a content: another size, and other blocks at some places. The blocks that are not told are as
/// they were.
fn later(old: &Content, size: (usize, usize), edits: &[(u16, u8)]) -> (Content, Vec<usize>) {
    let (count, last) = size;
    let mut new = old.clone();
    new.blocks.resize(count, 0);
    new.last = if count == 0 { BLOCK } else { last };
    let mut changed: Vec<usize> = (old.blocks.len()..count).collect();
    let length = |content: &Content, index: usize| content.block(index).len();
    let common = count.min(old.blocks.len());
    changed.extend((0..common).filter(|index| length(old, *index) != length(&new, *index)));
    for (place, byte) in edits {
        if count > 0 {
            let index = usize::from(*place) % count;
            new.blocks[index] = *byte;
            changed.push(index);
        }
    }
    changed.sort_unstable();
    changed.dedup();
    (new, changed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_updated_map_is_that_of_the_new_content(
        old in content(),
        algorithm in algorithm(),
        size in (0..1500_usize, 1..=BLOCK, any::<bool>()),
        edits in prop::collection::vec((any::<u16>(), prop_oneof![Just(0), any::<u8>()]), 0..12),
        appends in any::<bool>(),
        is_sealed in any::<bool>(),
    ) {
        let header = header(algorithm, Salt::default());
        let (count, last, is_resized) = size;
        let size = if is_resized { (count, last) } else { (old.blocks.len(), old.last) };
        let (new, changed) = later(&old, size, &edits);
        let mut old_file = whole(&old, header);
        let key = is_sealed.then(|| Key::new(vec![7; 32]).unwrap());
        if let Some(key) = &key {
            seal(&Map::open(old_file.clone()).unwrap(), &mut old_file, key).unwrap();
        }
        let base = Map::open(old_file.clone()).unwrap();
        let other = (!is_sealed).then(|| Key::new(vec![7; 32]).unwrap());
        let refused = base.check_base(other.as_ref()).unwrap_err();
        prop_assert!(matches!(refused, Error::Sealed | Error::Seal("is not sealed")));
        let output = if appends { old_file.clone() } else { Vec::new() };
        let update = if appends {
            Update::append(&base, output, new.size(), key.clone())
        } else {
            Update::copy(&base, output, new.size(), key.clone())
        };
        let mut update = update.unwrap();
        for &block in &changed {
            for run in new.digests(&header, block, block + 1).runs() {
                update.write(block as u64, run).unwrap();
            }
        }
        if new.last != BLOCK || old.last != BLOCK {
            update.set_padded_last(new.padded_last(&header));
        }
        let (file, commit) = update.finish("{}").unwrap();
        let before = base.commit().sequence();
        prop_assert_eq!(commit.sequence(), if appends { before + 1 } else { 1 });
        let map = Map::open(file.clone()).unwrap();
        check_all(&map).unwrap();
        let fresh = Map::open(whole(&new, *map.header())).unwrap();
        prop_assert_eq!(map.commit().root(), fresh.commit().root());
        prop_assert_eq!(map.padded_last(), fresh.padded_last());
        prop_assert_eq!(blocks_of(&map, 1000), blocks_of(&fresh, 1000));
        prop_assert_eq!(map.commit().zero_blocks(), fresh.commit().zero_blocks());
        if let Some(key) = &key {
            map.check_seal(key).unwrap();
        }
        if appends {
            prop_assert_eq!(&file[..old_file.len()], &old_file[..]);
            let state = Map::open_state(file, 1).unwrap();
            prop_assert_eq!(state.commit().root(), base.commit().root());
        }
    }

    #[test]
    fn a_lookup_finds_the_first_block_that_differs(
        old in content(),
        algorithm in algorithm(),
        edits in prop::collection::vec((any::<u16>(), any::<u8>()), 0..3),
        stride in 1..200_usize,
    ) {
        // Digests that are not cryptographic may be equal, too, but these bytes have others.
        let header = header(algorithm, Salt::default());
        let (new, _) = later(&old, (old.blocks.len(), old.last), &edits);
        let base = Map::open(whole(&old, header)).unwrap();
        let mut lookup = Lookup::new(&base).unwrap();
        for block in (0..new.blocks.len()).step_by(stride) {
            let to = (block + stride.min(3)).min(new.blocks.len());
            let mut first = block as u64;
            let mut found = None;
            for run in new.digests(&header, block, to).runs() {
                found = found.or(lookup.find_difference(first, run).unwrap());
                first += match run {
                    Run::Digests { count, .. } | Run::Zeros { count } => count,
                };
            }
            let expected = (block..to).find(|index| old.blocks[*index] != new.blocks[*index]);
            prop_assert_eq!(found, expected.map(|index| index as u64));
        }
    }
}

#[test]
fn an_update_leaves_nothing_out() {
    let header = header(Algorithm::Sha256, Salt::default());
    let content = Content { blocks: vec![1; 200], last: BLOCK };
    let base = Map::open(whole(&content, header)).unwrap();
    let longer = (201 * BLOCK) as u64;
    let update = Update::append(&base, whole(&content, header), longer, None).unwrap();
    assert!(matches!(update.finish("{}"), Err(Error::Content(_))));
    let part = map_of(&content, header, 0..1, 1000);
    let base = Map::open(part.clone()).unwrap();
    let update = Update::append(&base, part, content.size(), None);
    assert!(matches!(update.err(), Some(Error::Incomplete { known: 128, blocks: 200 })));
}

#[test]
fn an_update_that_was_cut_off_leaves_the_state_before() {
    let header = header(Algorithm::Sha256, Salt::default());
    let old = Content { blocks: (0..=255).cycle().take(500).collect(), last: BLOCK };
    let (new, changed) = later(&old, (500, BLOCK), &[(3, 9), (299, 9), (499, 9)]);
    let old_file = whole(&old, header);
    let base = Map::open(old_file.clone()).unwrap();
    assert_eq!(base.rest().unwrap(), 0);
    let mut update = Update::append(&base, old_file.clone(), new.size(), None).unwrap();
    for block in changed {
        for run in new.digests(&header, block, block + 1).runs() {
            update.write(block as u64, run).unwrap();
        }
    }
    let (file, commit) = update.finish("{}").unwrap();
    // Three pages with changes, the tables and the commit. The other page is not written again.
    assert_eq!(file.len() - old_file.len(), 7 * 4096);
    for length in (old_file.len()..file.len()).step_by(512) {
        let map = Map::open(file[..length].to_vec()).unwrap();
        assert_eq!(map.commit().root(), base.commit().root());
        assert_eq!(map.rest().unwrap(), (length - old_file.len()) as u64);
        check_all(&map).unwrap();
        let state = Map::open_state(file[..length].to_vec(), 1).unwrap();
        assert_eq!(state.commit().root(), base.commit().root());
    }
    let mut cut = file[..old_file.len() + 512].to_vec();
    let map = Map::open(cut.clone()).unwrap();
    assert!(matches!(Update::append(&map, cut.clone(), 0, None).err(), Some(Error::Content(_))));
    let key = Key::new(vec![7; 32]).unwrap();
    assert!(matches!(seal(&map, &mut cut, &key), Err(Error::Content(_))));
    // What is cut off before the first commit leaves nothing.
    for length in (0..old_file.len()).step_by(512) {
        assert!(Map::open(file[..length].to_vec()).is_err());
    }
    // A commit that is damaged is no update that was cut off.
    let mut damaged = file.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(matches!(Map::open(damaged), Err(Error::Damaged { .. })));
    assert_eq!(Map::open(file).unwrap().commit().root(), commit.root());
}
