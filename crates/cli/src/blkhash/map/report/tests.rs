//! The output compared with a naive model that has every block.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use blkhash::BlockSize;
use blkimage::{Extent, ExtentKind, Source};
use serde_json::Value;

use super::*;
use crate::blkhash::map::picture::Look;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const PLAIN: Screen = Screen { columns: 80, has_color: false, is_utf8: true };

fn args() -> Report {
    Report { quiet: false, extents: false, picture: None, max_errors: None, json: false }
}

fn labels() -> Labels {
    let partition = |number, offset, length| Partition { number, offset, length };
    Labels {
        left: "monday".into(),
        right: "<tuesday>\u{1b} & 'more'".into(),
        partitions: vec![partition(1, 1024, 2048), partition(2, 4096, 1 << 20)],
    }
}

/// Returns what is printed, and the end.
fn printed(
    args: &Report,
    screen: Screen,
    sides: Sides,
    runs: &[(u64, u64, Comparison)],
) -> (String, Ended) {
    let sink = Sink::default();
    let out = Out::new(Box::new(sink.clone()), 100);
    let mut differences = Differences::with(args, sides, labels(), screen, out);
    for (first, count, kind) in runs {
        differences.push(*first, *count, *kind);
    }
    let ended = differences.end(Some(&[])).unwrap();
    let bytes = sink.0.lock().unwrap().clone();
    (String::from_utf8(bytes).unwrap(), ended)
}

fn sides(left: u64, right: u64) -> Sides {
    Sides::new(BlockSize::try_from(512).unwrap(), left, right)
}

use Comparison::{Changed, Equal, Unknown, Written, Zeroed, Zeros};

#[test]
fn text_begins_with_the_summary() {
    let runs = [(0, 2, Changed), (2, 1, Changed), (3, 1, Written), (4, 90, Equal), (94, 6, Zeros)];
    let (text, ended) = printed(&args(), PLAIN, sides(51200, 51200), &runs);
    assert_eq!(
        text,
        "4 of 100 blocks differ, 2.00 KiB, in 2 ranges; 90 equal, 6 zeros in both\n\n\
         offset length\n     0   1536  changed        partition 1\n  1536    512  written        partition 1\n"
    );
    assert_eq!(ended.outcome, Outcome::Errors);
    let few = Report { max_errors: Some(1), ..args() };
    let (text, _) = printed(&few, PLAIN, sides(51200, 51200), &runs);
    assert!(
        text.ends_with(
            "  0   1536  changed        partition 1\n... 1 more: --max-errors 0 prints all\n"
        ),
        "{text}"
    );
    let all = Report { max_errors: Some(0), ..args() };
    let (text, _) = printed(&all, PLAIN, sides(51200, 51200), &runs);
    assert!(text.starts_with("offset length\n     0"), "{text}");
    assert!(text.ends_with("partition 1\n\n4 of 100 blocks differ, 2.00 KiB, in 2 ranges; 90 equal, 6 zeros in both\n"), "{text}");
}

#[test]
fn outcomes() {
    let outcome = |left, right, runs: &[_]| {
        let (text, ended) = printed(&args(), PLAIN, sides(left, right), runs);
        (text.lines().next().unwrap_or_default().to_owned(), ended.outcome)
    };
    let clean = ("no differences in 2 blocks".to_owned(), Outcome::Clean);
    assert_eq!(outcome(1024, 1024, &[(0, 1, Equal), (1, 1, Zeros)]), clean);
    let unknown = ("no differences in 1 block, 1 not known".to_owned(), Outcome::Unknown);
    assert_eq!(outcome(1024, 1024, &[(0, 1, Equal), (1, 1, Unknown)]), unknown);
    let nothing = ("nothing to compare: 2 blocks are not known".to_owned(), Outcome::Unknown);
    assert_eq!(outcome(1024, 1024, &[(0, 2, Unknown)]), nothing);
    let empty = ("no differences in 0 blocks".to_owned(), Outcome::Clean);
    assert_eq!(outcome(0, 0, &[]), empty);
    let longer = outcome(512, 1600, &[(0, 1, Equal)]);
    let text = "3 of 4 blocks differ, 1.06 KiB, in 1 range; 1 equal; right has 1088 bytes more";
    assert_eq!(longer, (text.to_owned(), Outcome::Errors));
    let one = "1 of 1 block differs, 2 B, in 1 range; left has 1 byte more".to_owned();
    assert_eq!(outcome(2, 1, &[(0, 1, Changed)]), (one, Outcome::Errors));
    let quiet = Report { quiet: true, ..args() };
    let (text, ended) = printed(&quiet, PLAIN, sides(2, 1), &[(0, 1, Changed)]);
    assert_eq!((text.as_str(), ended.outcome), ("", Outcome::Errors));
}

#[test]
fn write_errors_are_kept() {
    struct Broken;
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let args = Report { json: true, ..args() };
    let out = Out::new(Box::new(Broken), 0);
    let mut differences = Differences::with(&args, sides(5120, 5120), labels(), PLAIN, out);
    (0..5).for_each(|block| differences.push(2 * block, 1, Changed));
    assert_eq!(differences.end(Some(&[])).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn an_incomplete_comparison_has_no_summary() {
    let sink = Sink::default();
    let out = Out::new(Box::new(sink.clone()), 0);
    let mut differences = Differences::with(&args(), sides(5120, 5120), labels(), PLAIN, out);
    differences.push(0, 1, Changed);
    assert_eq!(differences.end(None).unwrap().outcome, Outcome::Unknown);
    let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text, "offset length\n     0    512  changed\n");
}

/// A generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

const KINDS: [Comparison; 6] = [Equal, Zeros, Changed, Zeroed, Written, Unknown];

/// Returns random sides, runs, and the kind of every block.
fn random(random: &mut Random) -> (Sides, Vec<(u64, u64, Comparison)>, Vec<Relation>) {
    let left = random.below(2000 * 512);
    let right = if random.below(2) == 0 { left } else { random.below(2000 * 512) };
    let sides = sides(left, right);
    let (mut runs, mut blocks) = (Vec::new(), Vec::new());
    while (blocks.len() as u64) < sides.common() {
        let first = blocks.len() as u64;
        let longest = if random.below(4) == 0 { 300 } else { 3 };
        let count = (1 + random.below(longest)).min(sides.common() - first);
        let kind = KINDS[random.below(6) as usize];
        runs.push((first, count, kind));
        blocks.resize((first + count) as usize, Relation::from(kind));
    }
    let tail = if left > right { Relation::LeftOnly } else { Relation::RightOnly };
    blocks.resize(sides.blocks() as usize, tail);
    (sides, runs, blocks)
}

#[test]
fn extents_are_those_of_single_bytes() {
    let mut source = Random(1);
    let extents = Report { extents: true, ..args() };
    for _ in 0..200 {
        let (sides, runs, blocks) = random(&mut source);
        let mut expected: Vec<(u64, u64)> = Vec::new();
        for (block, kind) in (0_u64..).zip(&blocks) {
            let (start, end) = (block * 512, (block * 512 + 512).min(sides.right));
            // What makes a short last block of the left side longer is copied, too.
            let is_end = (start + 1..start + 512).contains(&sides.left) && sides.left < sides.right;
            if !(kind.is_different() || is_end) || end <= start {
                continue;
            }
            match expected.last_mut() {
                Some((offset, length)) if *offset + *length == start => *length += end - start,
                _ => expected.push((start, end - start)),
            }
        }
        let (text, ended) = printed(&extents, PLAIN, sides, &runs);
        let lines: String =
            expected.iter().map(|(at, length)| format!("{at} {length}\n")).collect();
        assert_eq!(text, lines);
        let differs = sides.left != sides.right || blocks.iter().any(|kind| kind.is_different());
        assert_eq!(ended.outcome == Outcome::Errors, differs);
    }
}

#[test]
fn json_adds_up() {
    let mut source = Random(2);
    for round in 0..200 {
        let max_errors = (round % 2 == 1).then_some(5);
        let args = Report { json: true, max_errors, ..args() };
        let (sides, runs, blocks) = random(&mut source);
        let (text, _) = printed(&args, PLAIN, sides, &runs);
        let mut lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let summary = lines.pop().unwrap();
        let number = |name: &str| summary[name].as_u64().unwrap();
        let parts = ["different", "equal", "zeros", "unknown"].map(number);
        assert_eq!(parts.iter().sum::<u64>(), number("blocks"));
        assert_eq!(number("blocks"), blocks.len() as u64);
        let different = blocks.iter().filter(|kind| kind.is_different()).count() as u64;
        assert_eq!(parts[0], different);
        let runs = blocks
            .chunk_by(|one, other| one == other)
            .filter(|run| run[0].is_different() || run[0] == Relation::Unknown);
        assert_eq!(lines.len() as u64 + number("not_printed"), runs.count() as u64);
        assert_eq!(summary["right"]["name"], "<tuesday>\u{1b} & 'more'");
        if max_errors.is_some() {
            assert!(lines.len() <= 5);
            continue;
        }
        let sum = |name: &str| -> u64 {
            let ranges = lines.iter().filter(|line| line["kind"] != "unknown");
            ranges.map(|line| line[name].as_u64().unwrap()).sum()
        };
        assert_eq!((sum("blocks"), sum("length")), (different, number("bytes")));
        for line in &lines {
            let first = (line["offset"].as_u64().unwrap() / 512) as usize;
            let count = line["blocks"].as_u64().unwrap() as usize;
            assert!(blocks[first..first + count].iter().all(|kind| kind.name() == line["kind"]));
        }
    }
}

#[test]
fn content_is_the_same_only_if_all_is_compared() {
    let args = Report { json: true, ..args() };
    let same = |runs: &[_]| {
        let (text, _) = printed(&args, PLAIN, sides(1024, 1024), runs);
        serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap()["same_content"].clone()
    };
    assert_eq!(same(&[(0, 2, Equal)]), true);
    assert_eq!(same(&[(0, 1, Equal), (1, 1, Zeroed)]), false);
    assert_eq!(same(&[(0, 1, Equal), (1, 1, Unknown)]), Value::Null);
    assert_eq!(same(&[(1, 1, Equal)]), Value::Null);
}

#[test]
fn cells_count_every_block() {
    let mut source = Random(3);
    for _ in 0..200 {
        let (sides, runs, blocks) = random(&mut source);
        let (columns, rows) = (1 + source.below(70) as usize, 1 + source.below(20) as usize);
        let mut cells = Cells::new(sides.blocks(), 512, columns, rows);
        for (first, count, kind) in runs {
            cells.add(RelatedRun { first, count, relation: kind.into() });
        }
        sides.tail().into_iter().for_each(|tail| cells.add(tail));
        assert!(cells.columns() <= columns && cells.counts().len() <= columns * rows);
        let per_cell = (cells.cell_size() / 512) as usize;
        assert_eq!(cells.counts().len(), blocks.len().div_ceil(per_cell));
        for (index, blocks) in blocks.chunks(per_cell).enumerate() {
            let mut expected = Counts::default();
            blocks.iter().for_each(|kind| expected.add(*kind, 1));
            assert_eq!(cells.counts()[index], expected);
            let different = blocks.iter().filter(|kind| kind.is_different()).count();
            let look = cells.look(index);
            assert_eq!(different > 0, matches!(look, Look::Part(_) | Look::Whole));
            assert_eq!(different == blocks.len(), look == Look::Whole);
        }
    }
}

#[test]
fn pictures_fit_the_terminal() {
    let mut source = Random(4);
    let picture = Report { picture: Some("".into()), ..args() };
    let svg = Report { picture: Some("file".into()), quiet: false, ..args() };
    for shift in 0..=63 {
        for size in [1 << shift, (1_u64 << shift) + source.below(1 << shift), u64::MAX] {
            let blocks = size.div_ceil(512);
            let part = blocks / 3;
            let runs = [
                (0, part, Equal),
                (part, 1, Changed),
                (part + 1, part / 2, Unknown),
                (part + 1 + part / 2, part / 3, Zeros),
            ];
            for (columns, has_color, is_utf8) in
                [(20, false, false), (37, true, true), (80, false, true), (250, true, false)]
            {
                let screen = Screen { columns, has_color, is_utf8 };
                let (text, _) = printed(&picture, screen, sides(size, size), &runs);
                let drawn = text.split("\n\n").nth(1).unwrap();
                let colors = ["\u{1b}[31m", "\u{1b}[90m", "\u{1b}[33m", "\u{1b}[m"];
                let drawn = colors.iter().fold(drawn.to_owned(), |text, it| text.replace(it, ""));
                let rows = drawn.lines().filter(|line| line.ends_with(['│', '|'])).count();
                assert!((1..=16).contains(&rows));
                for line in drawn.lines() {
                    let width = line.chars().count();
                    assert!(width <= columns.max(32), "{columns}: {line}");
                    assert!(is_utf8 || line.is_ascii());
                    assert!(!line.contains('\u{1b}'));
                }
            }
            let (_, ended) = printed(&svg, PLAIN, sides(size, size), &runs);
            let svg = ended.svg.unwrap();
            assert!(svg.len() < 1 << 20 && svg.ends_with("</svg>\n"));
            assert!(!svg.contains("<tuesday>") && !svg.contains('\u{1b}'));
        }
    }
}

#[test]
fn a_picture() {
    let picture = Report { picture: Some("".into()), ..args() };
    let sides = Sides {
        block_size: BlockSize::default(),
        left: 3 << 30,
        right: (3 << 30) + (100 << 20),
        part: None,
        ignores_tail: false,
    };
    let runs = [
        (0, 5, Changed),
        (5, 8187, Equal),
        (8192, 20000, Zeros),
        (28192, 100, Written),
        (28292, 4000, Equal),
        (32292, 16860, Unknown),
    ];
    let (text, _) = printed(&picture, PLAIN, sides, &runs);
    let row = |label: &str, cells: &str| format!("{label:>8} │{cells}│\n");
    let (equal, zeros, unknown) = ("·".repeat(64), " ".repeat(64), "?".repeat(64));
    let mut expected = row("0 B", &format!("░{}", "·".repeat(63))) + &row("256 MiB", &equal);
    for label in ["512 MiB", "768 MiB", "1 GiB", "1.25 GiB"] {
        expected += &row(label, &zeros);
    }
    expected += &row("1.50 GiB", &format!("{}▒█░·····", " ".repeat(56)));
    expected += &row("1.75 GiB", &format!("{}????????", "·".repeat(56)));
    for label in ["2 GiB", "2.25 GiB", "2.50 GiB", "2.75 GiB"] {
        expected += &row(label, &unknown);
    }
    expected += &row("3 GiB", &"█".repeat(25));
    expected += "          one cell is 4 MiB: █ changed  ▓▒░ part of it  · equal  blank zeros\n";
    expected += "          ? not compared";
    assert_eq!(text.split("\n\n").nth(1), Some(expected.as_str()), "{text}");
}

/// A disk of zeros that counts its reads.
#[derive(Default)]
struct Disk(AtomicUsize);

impl Source for Disk {
    fn size(&self) -> u64 {
        1 << 20
    }

    fn extent(&self, offset: u64, limit: u64) -> blkimage::Result<Extent> {
        Ok(Extent { offset, length: limit.min(self.size() - offset), kind: ExtentKind::Data })
    }

    fn read_exact_at(&self, buf: &mut [u8], _: u64) -> blkimage::Result<()> {
        self.0.fetch_add(1, Relaxed);
        buf.fill(0);
        Ok(())
    }
}

#[test]
fn contents_are_read_only_for_ranges_that_are_printed() {
    let is_read = |args: &Report, runs: &[(u64, u64, Comparison)]| {
        let disk = Arc::new(Disk::default());
        let out = Out::new(Box::new(Sink::default()), 100);
        let differences = Differences::with(args, sides(51200, 51200), labels(), PLAIN, out);
        let mut differences = differences.with_contents(Contents::of(vec![disk.clone()]));
        for (first, count, kind) in runs {
            differences.push(*first, *count, *kind);
        }
        differences.end(Some(&[])).unwrap();
        disk.0.load(Relaxed) > 0
    };
    let json = Report { json: true, ..args() };
    for args in [args(), json] {
        assert!(is_read(&args, &[(0, 100, Changed)]));
        assert!(!is_read(&args, &[(0, 50, Equal), (50, 10, Zeros), (60, 40, Unknown)]));
    }
    for args in [Report { quiet: true, ..args() }, Report { extents: true, ..args() }] {
        assert!(!is_read(&args, &[(0, 100, Changed)]));
    }
}
