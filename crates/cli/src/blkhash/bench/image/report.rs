//! What was measured of an image, for people and for machines.

use blkbench::Spread;
use blkbench::text::{Align, number, size, table};
use blkimage::Format;
use serde::Serialize;

/// An image, and what its digests cost.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Its name.
    pub name: String,
    #[serde(serialize_with = "as_text")]
    pub format: Format,
    /// Size of the guest's content in bytes.
    pub virtual_size: u64,
    /// Bytes of it that were measured, from its beginning.
    pub beginning: u64,
    /// Bytes of data in those.
    pub data: u64,
    /// Bytes of data in a second that the storage gives on the most threads, past the page cache;
    /// none where there is nothing behind the cache, or it cannot be passed.
    pub storage: Option<Spread>,
    /// Digests in the order they were asked for, `null` first.
    #[serde(skip)]
    pub rows: Vec<Row>,
}

/// A digest on some number of threads.
#[derive(Debug, Serialize)]
pub struct Row {
    pub digest: &'static str,
    pub threads: usize,
    /// Bytes of data in a second.
    pub rate: Spread,
    /// What the digest waits for.
    pub bound: Bound,
}

/// What a checksum waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The storage: hashing keeps up with it.
    Disk,
    /// Copying and decoding what is in memory already.
    Memory,
    /// The hash.
    Hash,
}

impl Bound {
    /// What binds a digest of this rate where reading alone has the rate `reading`.
    pub fn of(rate: f64, reading: f64, storage: Option<f64>) -> Self {
        match storage {
            Some(storage) if rate >= KEEPS_UP * storage => Self::Disk,
            _ if rate >= KEEPS_UP * reading => Self::Memory,
            _ => Self::Hash,
        }
    }

    fn describe(self, rate: f64, limit: f64) -> String {
        match self {
            Self::Disk => "disk-bound: the algorithm does not matter here".to_owned(),
            Self::Memory => "memory-bound: as fast as reading".to_owned(),
            Self::Hash => {
                format!("hash-bound: reading alone is {} times as fast", number(limit / rate))
            }
        }
    }
}

/// A digest keeps up with what it gets at this share of its rate: less is noise.
const KEEPS_UP: f64 = 0.95;

/// The report as a table.
pub fn text(report: &Report) -> String {
    let mut text = format!(
        "{}: {}, {}",
        crate::quote::name(report.name.as_bytes()),
        report.format,
        size(report.virtual_size)
    );
    if report.beginning < report.virtual_size {
        text += &format!(", the first {}", binary(report.beginning));
    }
    text += &format!(" with {} of data\n", binary(report.data));
    match &report.storage {
        Some(storage) => text += &format!("storage gives {}/s\n", binary(storage.median as u64)),
        None => text += "storage is memory, or cannot be read past the page cache\n",
    }
    let mut threads: Vec<usize> = report.rows.iter().map(|row| row.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let most = threads.last().copied().unwrap_or(1);
    let column =
        |count: usize| format!("GiB/s, {count} thread{}", if count == 1 { "" } else { "s" });
    let names: Vec<String> = threads.iter().map(|count| column(*count)).collect();
    let mut heads = vec![("digest", Align::Left)];
    heads.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    heads.push(("", Align::Left));
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
            let rate = find(*digest, count).map_or(0.0, |row| row.rate.median);
            cells.push(number(rate / GIB));
        }
        let reading = find("null", most).map_or(0.0, |row| row.rate.median);
        cells.push(match find(*digest, most) {
            _ if *digest == "null" => "reading alone".to_owned(),
            Some(row) => {
                let limit = report.storage.map_or(reading, |storage| storage.median.min(reading));
                row.bound.describe(row.rate.median, limit)
            }
            None => String::new(),
        });
        cells
    });
    text + "\n" + &table(&heads, &rows.collect::<Vec<_>>())
}

/// The report as JSON, an object a line: the image, then its rows.
pub fn json(report: &Report) -> String {
    let rows = report.rows.iter().map(|row| crate::json::text(row) + "\n");
    crate::json::text(report) + "\n" + &rows.collect::<String>()
}

/// A number of bytes, rounded.
fn binary(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        _ if bytes >= GIB => format!("{} GiB", number(bytes / GIB)),
        _ => format!("{} MiB", number(bytes / MIB)),
    }
}

fn as_text<S: serde::Serializer>(format: &Format, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(format)
}

const GIB: f64 = (1 << 30) as f64;
const MIB: f64 = (1 << 20) as f64;

#[cfg(test)]
mod tests {
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
storage gives 2.00 GiB/s

digest  GiB/s, 1 thread  GiB/s, 2 threads
------  ---------------  ----------------  -----------------------------------------------
null               6.00              12.0  reading alone
sha256             2.50              5.00  disk-bound: the algorithm does not matter here
md5                0.50              1.00  hash-bound: reading alone is 2.00 times as fast
";
        assert_eq!(text(&report).lines().collect::<Vec<_>>(), expected.lines().collect::<Vec<_>>());
        assert_eq!(json(&report).lines().count(), 7);
    }
}
