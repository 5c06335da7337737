//! What `blkhash check` prints: a line for each finding, and a table of the layers.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use blkcheck::{Finding, FindingKind, Place, Report, Row, Sink, Verdict};
use blkrecord::Name;

use crate::blkhash::args::Check;
use crate::blkhash::limit::Limit;
use crate::blkhash::out::Out;
use crate::json;
use crate::problem::Problem;
use crate::quote;
use crate::records::check;
use crate::records::common::Named;
use crate::size::Bytes;

/// The output about one image.
pub struct Output<'a> {
    args: &'a Check,
    name: &'a OsString,
    limit: Limit,
    printed: u64,
    out: Out,
}

impl<'a> Output<'a> {
    pub fn new(args: &'a Check, name: &'a OsString, limit: Limit) -> Self {
        Self { args, name, limit, printed: 0, out: Out::buffered() }
    }

    /// Returns what may still be printed.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Ends the output about an image that cannot be checked.
    pub fn give_up(mut self, problem: &Problem) -> io::Result<()> {
        if self.args.json {
            let error = problem.message(self.name);
            let name = Name::new(self.name);
            self.out.write(&json::line(&check::Failed { r#type: "error", name, error }));
        }
        self.out.end()
    }

    /// Ends the output with the table, or the summary.
    pub fn end(mut self, report: &Report, elapsed: Duration) -> io::Result<()> {
        let verdict = report.verdict();
        let found: u64 = report.rows.iter().map(findings).fold(0, u64::saturating_add);
        let not_printed = found.saturating_sub(self.printed);
        if self.args.json {
            self.out.write(&json::line(&check::Summary {
                r#type: "summary",
                name: Name::new(self.name),
                verdict: verdict.name(),
                layers: report.rows.len(),
                findings: found,
                not_printed,
                seconds: elapsed.as_secs_f64(),
            }));
        } else if !(self.args.quiet && verdict == Verdict::Clean) {
            if not_printed > 0 {
                self.out.write(&format!("... {not_printed} more: --max-errors 0 prints all\n"));
            }
            let text = table(&quote::name(self.name.as_bytes()), report);
            self.out.write(&text);
        }
        self.out.end()
    }
}

impl Sink for Output<'_> {
    fn finding(&mut self, place: &Place, kind: &'static str, finding: &Finding) {
        let text = match self.args.json {
            true => object(self.name, place, kind, finding),
            false => line(&quote::name(self.name.as_bytes()), place, kind, finding),
        };
        if self.limit.take(text.len()) {
            self.out.write(&text);
            self.printed = self.printed.saturating_add(finding.count);
        }
    }

    fn row(&mut self, row: &Row) {
        if self.args.json {
            self.out.write(&layer(self.name, row));
        }
    }
}

fn findings(row: &Row) -> u64 {
    let Row { mismatches, damaged, unreadable, skipped, .. } = row;
    [mismatches, damaged, unreadable, skipped].into_iter().copied().fold(0, u64::saturating_add)
}

/// Returns the line about a finding.
fn line(name: &str, place: &Place, kind: &str, finding: &Finding) -> String {
    let Finding { structure, disk_offset, length, reason, paths, .. } = finding;
    let what = match finding.kind {
        FindingKind::Mismatch | FindingKind::Damaged => "",
        FindingKind::Unreadable => "cannot be read: ",
        FindingKind::Skipped => "not verified: ",
    };
    let bytes = if *length > 0 { format!(", {length} bytes") } else { String::new() };
    let mut text = format!(
        "{name}: {}: {kind}: {structure} at {disk_offset}{bytes}: {what}{}",
        quote::printable(&place.to_string()),
        quote::printable(reason)
    );
    for (index, path) in paths.iter().enumerate() {
        text += if index == 0 { ": " } else { ", " };
        text += &quote::name(path);
    }
    if finding.count > 1 {
        let _ = write!(text, " ({} times)", finding.count);
    }
    text + "\n"
}

/// Returns the table of the layers, the remarks, and the verdict.
fn table(name: &str, report: &Report) -> String {
    let head = ["", "layer", "verified", "no checksum", "result"].map(str::to_owned);
    let rows: Vec<_> = [head].into_iter().chain(report.rows.iter().map(cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths = [0, 1, 2, 3].map(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for [place, kind, verified, unprotected, result] in &rows {
        let [a, b, c, d] = widths;
        let row = format!("  {place:<a$}  {kind:<b$}  {verified:<c$}  {unprotected:>d$}  {result}");
        let _ = writeln!(text, "{}", row.trim_end());
    }
    for row in &report.rows {
        for remark in &row.remarks {
            let remark = quote::printable(remark);
            let _ = writeln!(text, "{name}: {}: {remark}", shown(&row.place));
        }
    }
    let verdict = match report.verdict() {
        Verdict::Clean => "OK",
        Verdict::Damaged => "DAMAGED",
        Verdict::Incomplete => "NOT COMPLETE",
    };
    format!("{name}: {verdict}\n{text}")
}

fn cells(row: &Row) -> [String; 5] {
    let (count, bytes) = row.verified_total();
    let structures = |count| if count == 1 { "structure" } else { "structures" };
    let verified = match (row.verified.as_slice(), bytes) {
        ([], _) => "nothing".to_owned(),
        ([only], 0) => format!("{count} {}s", only.structure),
        (_, bytes) => format!("{count} {}, {}", structures(count), Bytes(bytes)),
    };
    let unprotected = match row.unprotected {
        Some(0) | None => String::new(),
        Some(bytes) => Bytes(bytes).to_string(),
    };
    let counts = [
        (row.mismatches, if row.mismatches == 1 { "does not match" } else { "do not match" }),
        (row.damaged, "damaged"),
        (row.unreadable, "cannot be read"),
        (row.skipped, "not verified"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    let result = match parts.as_slice() {
        [] if row.verified.is_empty() => "-".to_owned(),
        [] => "OK".to_owned(),
        parts => parts.join(", "),
    };
    [shown(&row.place), row.kind.to_owned(), verified, unprotected, result]
}

fn shown(place: &Place) -> String {
    quote::printable(&place.to_string())
}

fn object(name: &OsStr, place: &Place, layer: &'static str, finding: &Finding) -> String {
    let named = |path: &'_ Vec<u8>| OsStr::from_bytes(path).to_owned();
    let paths: Vec<_> = finding.paths.iter().map(named).collect();
    json::line(&check::Finding {
        r#type: "finding",
        name: Name::new(name),
        place: place.to_string(),
        partition: place.partition(),
        layer,
        problem: finding.kind.name(),
        structure: finding.structure,
        offset: finding.disk_offset,
        layer_offset: finding.offset,
        length: finding.length,
        object: finding.object,
        files: paths.iter().map(|path| Named { name: Name::new(path) }).collect(),
        reason: finding.reason.clone(),
        count: finding.count,
    })
}

fn layer(name: &OsStr, row: &Row) -> String {
    let verified = row.verified.iter().map(|it| check::Verified {
        structure: it.structure,
        count: it.count,
        bytes: it.bytes,
    });
    json::line(&check::Layer {
        r#type: "layer",
        name: Name::new(name),
        place: row.place.to_string(),
        partition: row.place.partition(),
        offset: row.offset,
        length: row.length,
        layer: row.kind,
        label: row.label.as_ref().map(|label| String::from_utf8_lossy(label).into_owned()),
        uuid: row.uuid.clone(),
        verdict: row.verdict().name(),
        verified: verified.collect(),
        unprotected_bytes: row.unprotected,
        mismatches: row.mismatches,
        damaged: row.damaged,
        unreadable: row.unreadable,
        skipped: row.skipped,
        leaks: row.structure.map(|it| it.leaks),
        outdated: row.structure.map(|it| it.outdated),
        remarks: row.remarks.clone(),
    })
}
