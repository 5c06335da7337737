//! Prints the measurements of an image, as text and as JSON.

use std::ffi::OsString;

use blkbench::Spread;
use blkbench::text::{number, size, table};
use blkimage::Format;
use blkrecord::Name;

use super::super::noise::{mark, note};
use crate::json;
use crate::records::bench as records;
use crate::size::Bytes;

/// An image, and what its digests cost.
#[derive(Debug)]
pub struct Report {
    /// Its name.
    pub name: OsString,
    pub format: Format,
    /// Size of the guest's content in bytes.
    pub virtual_size: u64,
    /// Bytes of it that were measured, from its beginning.
    pub beginning: u64,
    /// Bytes of data in those.
    pub data: u64,
    /// Bytes of data in a second that the storage gives on the most threads, past the page cache;
    /// none where there is nothing below the cache, or it cannot be passed.
    pub storage: Option<Spread>,
    /// Digests in the order they were asked for, `null` first.
    pub rows: Vec<Row>,
}

/// A digest on some number of threads.
#[derive(Debug)]
pub struct Row {
    pub digest: &'static str,
    pub threads: usize,
    /// Bytes of data in a second, from the page cache. Of the digest `null`, that is reading alone.
    pub rate: Spread,
    /// The bottleneck of the digest.
    pub bound: Bound,
}

/// The bottleneck of a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The storage: hashing keeps up with it.
    Disk,
    /// Copying and decoding what is in memory already.
    Memory,
    /// The hash.
    Hash,
}

impl Bound {
    /// Returns the bottleneck of a digest of this rate if reading alone has the rate `reading`.
    pub fn of(rate: f64, reading: f64, storage: Option<f64>) -> Self {
        match storage {
            Some(storage) if rate >= KEEPS_UP * storage => Self::Disk,
            _ if rate >= KEEPS_UP * reading => Self::Memory,
            _ => Self::Hash,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Memory => "memory",
            Self::Hash => "hash",
        }
    }

    fn describe(self, rate: f64, reading: f64, storage: Option<f64>) -> String {
        let times = |limit: f64| number(limit / rate);
        match (self, storage) {
            (Self::Disk, _) => "disk-bound: the algorithm does not matter".to_owned(),
            (Self::Memory, _) => "memory-bound: as fast as reading".to_owned(),
            (Self::Hash, Some(storage)) if storage < reading => {
                format!("hash-bound: storage is {} times as fast", times(storage))
            }
            (Self::Hash, _) => {
                format!("hash-bound: reading is {} times as fast", times(reading))
            }
        }
    }
}

/// A digest keeps up with what it gets at this share of its rate: less is noise.
const KEEPS_UP: f64 = 0.95;

/// The report as a table. `longer` is what to do if figures are rough.
pub fn text(report: &Report, longer: &str) -> String {
    let mut text = format!(
        "{}: {}, {}",
        crate::quote::name(report.name.as_encoded_bytes()),
        report.format,
        size(report.virtual_size)
    );
    if report.beginning < report.virtual_size {
        text += &format!(", the first {:#}", Bytes(report.beginning));
    }
    text += &format!(" with {:#} of data\n", Bytes(report.data));
    match &report.storage {
        Some(storage) => {
            let rate = Bytes(storage.median as u64);
            let hours = number(LARGE / storage.median / HOUR);
            let line = format!("storage gives {rate:#}/s{}", mark(storage));
            text += &format!("{}: 10 TB take {hours} hours or more\n", line.trim_end());
        }
        None => text += "storage is memory, or cannot be read past the page cache\n",
    }
    text += "\nGiB of data in a second from the page cache, without the limit of the storage:\n";
    let mut threads: Vec<usize> = report.rows.iter().map(|row| row.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let most = threads.last().copied().unwrap_or(1);
    let column = |count: usize| format!(">{count} thread{}", if count == 1 { "" } else { "s" });
    let names: Vec<String> = threads.iter().map(|count| column(*count)).collect();
    let mut heads = vec!["digest"];
    heads.extend(names.iter().map(String::as_str));
    heads.push("");
    let mut digests: Vec<&str> = Vec::new();
    for row in &report.rows {
        if !digests.contains(&row.digest) {
            digests.push(row.digest);
        }
    }
    let find = |digest, threads| {
        report.rows.iter().find(|row| row.digest == digest && row.threads == threads)
    };
    let rows = digests.iter().map(|digest| {
        let mut cells = vec![(*digest).to_owned()];
        for &count in &threads {
            cells.push(find(*digest, count).map_or(String::new(), |row| {
                format!("{}{}", number(row.rate.median / GIB), mark(&row.rate))
            }));
        }
        let reading = find("null", most).map_or(0.0, |row| row.rate.median);
        cells.push(match find(*digest, most) {
            _ if *digest == "null" => "reading, without a digest".to_owned(),
            Some(row) => {
                let storage = report.storage.map(|storage| storage.median);
                row.bound.describe(row.rate.median, reading, storage)
            }
            None => String::new(),
        });
        cells
    });
    text += &table(&heads, &rows.collect::<Vec<_>>());
    let figures: Vec<&Spread> =
        report.rows.iter().map(|row| &row.rate).chain(&report.storage).collect();
    let noisy = figures.iter().filter(|spread| spread.is_noisy()).count();
    text + &note(noisy, figures.len(), longer)
}

/// The report as JSON, an object a line: the image, then its rows.
pub fn json(report: &Report) -> String {
    let image = json::line(&records::Image {
        name: Name::new(&report.name),
        format: report.format.name(),
        virtual_size: report.virtual_size,
        beginning: report.beginning,
        data: report.data,
        storage: report.storage,
    });
    let row = |&Row { digest, threads, rate, bound }: &Row| {
        json::line(&records::Digest { digest, threads, rate, bound: bound.name() })
    };
    image + &report.rows.iter().map(row).collect::<String>()
}

const GIB: f64 = (1 << 30) as f64;

/// An amount of data in bytes that people have to check in a night.
const LARGE: f64 = 10e12;

const HOUR: f64 = 3600.0;

#[cfg(test)]
mod tests {
    use blkbench::report::MARK;

    use super::*;

    #[test]
    fn what_binds() {
        assert_eq!(Bound::of(3.0, 10.0, None), Bound::Hash);
        assert_eq!(Bound::of(9.9, 10.0, None), Bound::Memory);
        assert_eq!(Bound::of(3.0, 10.0, Some(2.0)), Bound::Disk);
        assert_eq!(Bound::of(3.0, 10.0, Some(4.0)), Bound::Hash);
        assert_eq!(Bound::of(9.9, 10.0, Some(20.0)), Bound::Memory);
    }

    #[test]
    fn a_row_for_each_digest() {
        let row = |digest, threads, rate: f64, bound| Row {
            digest,
            threads,
            rate: Spread::of([rate * GIB]),
            bound,
        };
        let report = Report {
            name: "disk.img".into(),
            format: Format::Raw,
            virtual_size: 6 << 30,
            beginning: 3 << 30,
            data: 1 << 30,
            storage: Some(Spread::of([2.0 * GIB])),
            rows: vec![
                row("null", 1, 6.0, Bound::Disk),
                row("null", 2, 12.0, Bound::Disk),
                row("sha256", 1, 2.5, Bound::Disk),
                row("sha256", 2, 5.0, Bound::Disk),
                row("md5", 1, 0.5, Bound::Hash),
                row("md5", 2, 1.0, Bound::Hash),
            ],
        };
        let expected = "\
disk.img: raw, 6 GiB, the first 3.00 GiB with 1.00 GiB of data
storage gives 2.00 GiB/s: 10 TB take 1.29 hours or more

GiB of data in a second from the page cache, without the limit of the storage:
digest  1 thread  2 threads
------  --------  ---------  -----------------------------------------
null       6.00       12.0   reading, without a digest
sha256     2.50       5.00   disk-bound: the algorithm does not matter
md5        0.50       1.00   hash-bound: storage is 2.00 times as fast
";
        assert_eq!(text(&report, ""), expected);
        assert_eq!(json(&report).lines().count(), 7);
    }

    #[test]
    fn the_factor_is_that_of_the_figure_it_names() {
        assert_eq!(
            Bound::Hash.describe(1.0, 12.0, Some(2.0)),
            "hash-bound: storage is 2.00 times as fast"
        );
        for storage in [None, Some(20.0)] {
            let text = Bound::Hash.describe(1.0, 12.0, storage);
            assert_eq!(text, "hash-bound: reading is 12.0 times as fast");
        }
    }

    #[test]
    fn noisy_figures_are_marked_and_lines_fit() {
        let noisy = Spread { min: GIB, median: 10.0 * GIB, max: 90.0 * GIB, mad: GIB };
        let bounds = [Bound::Disk, Bound::Memory, Bound::Hash];
        let rows = ["null", "blake2b256", "sha512-256"].into_iter().zip(bounds);
        let rows = rows.flat_map(|(digest, bound)| {
            [1, 1024].map(|threads| Row { digest, threads, rate: noisy, bound })
        });
        let report = Report {
            name: "disk.img".into(),
            format: Format::Raw,
            virtual_size: 1 << 40,
            beginning: 1 << 39,
            data: 1 << 30,
            storage: Some(noisy),
            rows: rows.collect(),
        };
        let text = text(&report, "measure longer (--time 5)");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.matches(MARK).count(), 7 + 1, "each figure, and the note: {text}");
        assert!(text.contains("7 of 7 figures"), "{text}");
    }
}
