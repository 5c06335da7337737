//! Everything that is printed about a comparison: text, extents, JSON and pictures.
//!
//! Runs of blocks come in order and are joined to ranges. Ranges are printed as they come, except for text
//! with a limit, which begins with the summary.

mod summary;

use std::ffi::OsStr;
use std::io;

use blkfs::{Content, Usage};
use blkhash::Comparison;
use blkimage::partition::Partition;
use blkrecord::{Flat, Name};
use blksum::map::AuditSummary;
use blksum::{RelatedRun, Relation, Sides, Unreadable};

use super::args::Report;
use super::picture::{self, Cells, Screen};
use super::relations::{self, Counts, Labels, plural};
use super::svg;
use crate::blkhash::limit::Limit;
use crate::blkhash::out::Out;
use crate::blkhash::unreadable;
use crate::image::contents::{self, Contents, Usages};
use crate::json;
use crate::messages;
use crate::problem::Outcome;
use crate::records;
use crate::records::common::{Files, Reason};
use crate::records::map::Side;

impl Labels {
    /// Returns the partitions that bytes are in.
    fn partitions(&self, offset: u64, length: u64) -> impl Iterator<Item = &Partition> {
        let is_in = move |partition: &&Partition| {
            let end = partition.offset.saturating_add(partition.length);
            partition.offset < offset.saturating_add(length) && offset < end
        };
        self.partitions.iter().filter(is_in)
    }

    fn partitions_text(&self, offset: u64, length: u64) -> String {
        let numbers = self.partitions(offset, length).map(|partition| partition.number);
        let numbers: Vec<_> = numbers.take(MAX_PARTITIONS + 1).collect();
        let named: Vec<_> = numbers.iter().take(MAX_PARTITIONS).map(ToString::to_string).collect();
        match numbers.len() {
            0 => String::new(),
            1 => format!("partition {}", named[0]),
            count if count > MAX_PARTITIONS => format!("partitions {} and more", named.join(", ")),
            _ => format!("partitions {}", named.join(", ")),
        }
    }
}

/// The output about one comparison.
pub struct Differences {
    mode: Mode,
    sides: Sides,
    labels: Labels,
    contents: Contents,
    screen: Screen,
    counts: Counts,
    /// What the blocks that differ are used for.
    usages: Usages,
    /// Whether differences in free space are none.
    ignores_free: bool,
    /// Number of blocks of free space that differ and are ignored.
    ignored: u64,
    /// Whether one side has digests of ranges of blocks, and says nothing about the blocks between them.
    has_ranges: bool,
    /// Whether blocks that are not known are no reason for another status.
    ignores_unknown: bool,
    /// Number of bytes that are not known.
    unknown_bytes: u64,
    /// Number of bytes that differ.
    bytes: u64,
    /// Number of ranges that differ.
    ranges: u64,
    /// The last run, which may continue.
    run: Option<RelatedRun>,
    limit: Limit,
    /// Number of ranges beyond the limit.
    not_printed: u64,
    /// The table, if the summary comes before it.
    table: Option<String>,
    /// Whether the table is printed as its ranges come, and has begun.
    is_table_begun: bool,
    picture: Option<(Picture, Cells)>,
    /// The judgement of a list of changes. What differs is then what changed and is not listed.
    audit: Option<AuditSummary>,
    /// What to say if no block is equal.
    if_all_differ: Option<&'static str>,
    out: Out,
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Ended {
    pub outcome: Outcome,
    /// The content of the file of `--picture=FILE`.
    pub svg: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Quiet,
    Extents,
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Picture {
    Terminal,
    Svg,
}

impl Differences {
    /// Begins the output. With `--json`, the picture on the terminal is left out, because it is no JSON.
    pub fn new(args: &Report, sides: Sides, labels: Labels) -> Self {
        Self::with(args, sides, labels, Screen::of_stdout(), Out::buffered())
    }

    fn with(args: &Report, sides: Sides, labels: Labels, screen: Screen, out: Out) -> Self {
        let mode = match args {
            Report { quiet: true, .. } => Mode::Quiet,
            Report { extents: true, .. } => Mode::Extents,
            Report { json: true, .. } => Mode::Json,
            _ => Mode::Text,
        };
        // Programs get everything by default.
        let limit = match mode {
            Mode::Text => Limit::new(args.max_errors),
            _ => Limit::new(args.max_errors.or(Some(0))),
        };
        let is_short = limit.findings().is_some_and(|findings| findings <= MAX_TABLE);
        let table = (mode == Mode::Text && is_short).then(String::new);
        let cells =
            |columns, rows| Cells::new(sides.blocks(), sides.block_size.into(), columns, rows);
        let picture = match &args.picture {
            Some(name) if !name.is_empty() => {
                Some((Picture::Svg, cells(svg::COLUMNS, svg::MAX_ROWS)))
            }
            Some(_) if mode == Mode::Text => {
                Some((Picture::Terminal, cells(screen.cells(), picture::MAX_ROWS)))
            }
            _ => None,
        };
        Self {
            mode,
            sides,
            labels,
            contents: Contents::default(),
            screen,
            counts: Counts::default(),
            usages: Usages::default(),
            ignores_free: false,
            ignored: 0,
            has_ranges: false,
            ignores_unknown: false,
            unknown_bytes: 0,
            bytes: 0,
            ranges: 0,
            run: None,
            limit,
            not_printed: 0,
            table,
            is_table_begun: false,
            picture,
            audit: None,
            if_all_differ: None,
            out,
        }
    }

    /// Ends with the judgement of a list of changes. What was added as different is what the list does not have.
    pub fn with_audit(self, summary: AuditSummary) -> Self {
        Self { audit: Some(summary), ..self }
    }

    /// Says this in a remark at the end if no block is equal, not even one of zeros.
    pub fn with_remark_if_all_differ(self, remark: Option<&'static str>) -> Self {
        Self { if_all_differ: remark, ..self }
    }

    /// Names the files in ranges that differ.
    pub fn with_contents(self, contents: Contents) -> Self {
        Self { contents, ..self }
    }

    /// Does not count differences in free space of file systems.
    pub fn with_free_space_ignored(self, ignores_free: bool) -> Self {
        Self { ignores_free, ..self }
    }

    /// Describes a comparison with digests of ranges of blocks. Text does not list the blocks between them.
    pub fn with_ranges(self, has_ranges: bool) -> Self {
        Self { has_ranges, ..self }
    }

    /// Ends with [`Outcome::Clean`] although blocks are not known, if no others differ.
    pub fn with_unknown_ignored(self, ignores_unknown: bool) -> Self {
        Self { ignores_unknown, ..self }
    }

    /// Adds the result for `count` blocks. Runs must come in order. Blocks that never come are not part of
    /// the comparison.
    pub fn push(&mut self, first: u64, count: u64, kind: Comparison) {
        if count > 0 {
            self.sort_out(RelatedRun { first, count, relation: kind.into() });
        }
    }

    /// Returns whether a difference was found.
    pub fn differs(&self) -> bool {
        self.counts.different() > 0 || self.sides.differ()
    }

    /// Ends the output: if the comparison is complete, with the blocks that only one side has, the summary, the picture, and
    /// why blocks could not be read. An incomplete comparison has none of them, and [`Outcome::Unknown`].
    ///
    /// With `--extents`, the extents are those to copy from the right side to make the left one equal. What
    /// only the left side has is therefore none of them, but it is a difference.
    ///
    /// # Errors
    ///
    /// Fails if this or any earlier output could not be written.
    pub fn end(mut self, unreadable: Option<&[Unreadable]>) -> io::Result<Ended> {
        let is_complete = unreadable.is_some();
        let unreadable = unreadable.unwrap_or_default();
        let tail = self.sides.tail().filter(|_| is_complete);
        tail.into_iter().for_each(|tail| self.sort_out(tail));
        if let Some(run) = self.run.take() {
            self.range(run);
        }
        let mut svg = None;
        match self.mode {
            Mode::Quiet => {}
            Mode::Extents => {
                let unknown = self.counts.of(Relation::Unknown);
                if unknown > 0 {
                    let blocks = plural(unknown, "block is", "blocks are");
                    messages::message(&format!("{unknown} {blocks} not known, and not listed"));
                }
            }
            Mode::Json => {
                if is_complete {
                    self.out.write(&self.summary_object(unreadable));
                }
            }
            Mode::Text => self.end_text(is_complete),
        }
        if let Some((Picture::Svg, cells)) = &self.picture
            && is_complete
        {
            svg = Some(svg::draw(cells, &self.labels, &self.summary_text()));
        }
        let outcome = match () {
            () if !is_complete => Outcome::Unknown,
            () if self.differs() => Outcome::Errors,
            () if self.counts.of(Relation::Unknown) > 0 && !self.ignores_unknown => {
                Outcome::Unknown
            }
            () => Outcome::Clean,
        };
        let reasons = unreadable::messages(unreadable, |it| self.name_of(it));
        self.out.end()?;
        if self.mode != Mode::Quiet {
            reasons.iter().for_each(|reason| messages::message(reason));
            self.contents.remarks().iter().for_each(|remark| messages::remark(remark));
        }
        let has_equal = [Relation::Equal, Relation::Zeros].iter().any(|it| self.counts.of(*it) > 0);
        if self.counts.of(Relation::Changed) > 0
            && !has_equal
            && is_complete
            && self.mode != Mode::Quiet
            && let Some(remark) = self.if_all_differ
        {
            messages::remark(remark);
        }
        Ok(Ended { outcome, svg })
    }

    /// Adds a run, but for the blocks that are ignored. Counts what they are used for.
    fn sort_out(&mut self, run: RelatedRun) {
        let is_shown = matches!(self.mode, Mode::Text | Mode::Json) && self.audit.is_none();
        let is_asked = is_shown || self.ignores_free;
        let (offset, length) = self.sides.extent(run, self.sides.larger());
        if !run.relation.is_different() || length == 0 || !is_asked || !self.contents.has_files() {
            return self.add(run);
        }
        let can_ignore = self.ignores_free
            && matches!(run.relation, Relation::Changed | Relation::Zeroed | Relation::Written);
        let block = self.sides.block_size.get() as u64;
        for (blocks, usage) in self.contents.usage(offset, length, block) {
            let count = blocks.end - blocks.start;
            if can_ignore && usage == Usage::Free {
                self.ignored += count;
                continue;
            }
            self.usages.add(usage, count);
            self.add(RelatedRun { first: blocks.start, count, ..run });
        }
    }

    fn add(&mut self, mut run: RelatedRun) {
        self.counts.add(run.relation, run.count);
        if run.relation == Relation::Unknown {
            self.unknown_bytes += self.sides.extent(run, self.sides.larger()).1;
        }
        if let Some((_, cells)) = &mut self.picture {
            cells.add(run);
        }
        if self.mode == Mode::Extents
            && self.sides.short_end() == Some(run.first + run.count - 1)
            && !run.relation.is_different()
        {
            // A copy of this block makes the left side longer.
            run = RelatedRun {
                first: run.first + run.count - 1,
                count: 1,
                relation: Relation::Changed,
            };
        }
        let is_listed = match self.mode {
            Mode::Extents => {
                let is_left = run.relation == Relation::LeftOnly;
                let is_different = run.relation.is_different();
                // What to copy does not depend on the kind.
                run.relation = Relation::Changed;
                is_different && !is_left
            }
            Mode::Text if self.has_ranges => run.relation.is_different(),
            _ => run.relation.is_different() || run.relation == Relation::Unknown,
        };
        if is_listed && let Some(last) = run.join(&mut self.run) {
            self.range(last);
        }
    }

    /// Counts a range, and prints it within the limit.
    fn range(&mut self, run: RelatedRun) {
        let size = match self.mode {
            Mode::Extents => self.sides.right,
            _ => self.sides.larger(),
        };
        let (offset, length) = self.sides.extent(run, size);
        if run.relation.is_different() {
            self.bytes += length;
            self.ranges += 1;
        }
        match self.mode {
            Mode::Quiet => return,
            // The last block of the left side may begin past the end of the right one.
            Mode::Extents if length == 0 => return,
            Mode::Extents => return self.out.write(&format!("{offset} {length}\n")),
            Mode::Text | Mode::Json if self.limit.is_used_up() => {
                self.not_printed += 1;
                return;
            }
            Mode::Text | Mode::Json => {}
        }
        let content = match run.relation.is_different() {
            true => self.contents.find(offset, length),
            false => Content::unknown(),
        };
        let line = match self.mode {
            Mode::Json => {
                let partition = self.labels.partitions(offset, length).next();
                json::line(&records::map::Difference {
                    r#type: "range",
                    offset,
                    length,
                    blocks: run.count,
                    kind: run.relation.name(),
                    partition: partition.map(|it| it.number),
                    partition_offset: partition.map(|it| offset.saturating_sub(it.offset)),
                    files: Flat(Files::new(&content)),
                })
            }
            _ => self.row(offset, length, run.relation, &content),
        };
        if !self.limit.take(line.len()) {
            self.not_printed += 1;
            return;
        }
        match &mut self.table {
            Some(table) => *table += &line,
            None => {
                if self.mode == Mode::Text && !self.is_table_begun {
                    self.out.write(&self.head());
                    self.is_table_begun = true;
                }
                self.out.write(&line);
            }
        }
    }

    /// Returns the name of the image that cannot be read.
    fn name_of(&self, unreadable: &Unreadable) -> &OsStr {
        if unreadable.is_left { &self.labels.left } else { &self.labels.right }
    }

    /// Returns a row of the table.
    fn row(&self, offset: u64, length: u64, relation: Relation, content: &Content) -> String {
        let width = self.width();
        let mut place = self.labels.partitions_text(offset, length);
        let files = contents::text(content);
        if !place.is_empty() && !files.is_empty() {
            place += ": ";
        }
        let row = format!(
            "{offset:>width$} {length:>width$}  {:<13}  {place}{files}",
            relations::text(relation)
        );
        row.trim_end().to_owned() + "\n"
    }

    /// Returns the first line of the table.
    fn head(&self) -> String {
        let width = self.width();
        format!("{:>width$} {:>width$}\n", "offset", "length")
    }

    /// Returns the width of numbers in the table.
    fn width(&self) -> usize {
        self.sides.larger().to_string().len().max("offset".len())
    }

    /// Prints the rest of the text.
    fn end_text(&mut self, is_complete: bool) {
        let (mut parts, more) = (Vec::new(), self.more());
        let mut table = match self.table.take() {
            Some(rows) if !rows.is_empty() => self.head() + &rows + &more,
            _ => more,
        };
        if self.is_table_begun {
            // The rest of the table comes first. An empty one separates it from the summary.
            parts.push(std::mem::take(&mut table));
        }
        if is_complete {
            parts.push(self.summary_text() + "\n");
        }
        if let Some((Picture::Terminal, cells)) = &self.picture
            && is_complete
            && !cells.counts().is_empty()
        {
            parts.push(cells.draw(self.screen));
        }
        if !table.is_empty() {
            parts.push(table);
        }
        self.out.write(&parts.join("\n"));
    }

    /// Says how many ranges are not printed.
    fn more(&self) -> String {
        match self.not_printed {
            0 => String::new(),
            more => format!("... {more} more: --max-errors 0 prints all\n"),
        }
    }

    fn audit_object(&self, audit: &AuditSummary) -> String {
        json::line(&records::map::Audit {
            r#type: "summary",
            block_size: self.sides.block_size.get(),
            blocks: self.counts.total(),
            missed: audit.missed,
            bytes: self.bytes,
            ranges: self.ranges,
            listed: audit.listed,
            needless: audit.needless,
            clean: audit.clean,
            unknown: audit.unknown,
            listed_bytes: audit.listed_bytes,
            needless_bytes: audit.needless_bytes,
            not_printed: self.not_printed,
            left: side(&self.labels.left, self.sides.left),
            right: side(&self.labels.right, self.sides.right),
        })
    }

    fn summary_object(&self, unreadable: &[Unreadable]) -> String {
        if let Some(audit) = &self.audit {
            return self.audit_object(audit);
        }
        let counts = &self.counts;
        let is_used = counts.different() > 0 && self.contents.has_files();
        let usage = |usage| is_used.then(|| self.usages.of(usage));
        let is_all = counts.of(Relation::Unknown) == 0
            && self.sides.part.is_none()
            && counts.total() + self.ignored == self.sides.blocks();
        let unread = counts.of(Relation::Unreadable);
        let differs = counts.different() > unread || self.ignored > 0 || self.sides.differ();
        let same = match differs {
            true => Some(false),
            // Nothing tells whether what cannot be read is equal.
            false if unread > 0 => None,
            false if is_all => Some(true),
            false => None,
        };
        json::line(&records::map::Comparison {
            r#type: "summary",
            block_size: self.sides.block_size.get(),
            blocks: counts.total() + self.ignored,
            different: counts.different(),
            bytes: self.bytes,
            ranges: self.ranges,
            equal: counts.of(Relation::Equal),
            zeros: counts.of(Relation::Zeros),
            unreadable: unread,
            unknown: counts.of(Relation::Unknown),
            unknown_bytes: self.unknown_bytes,
            in_files: usage(Usage::File),
            in_metadata: usage(Usage::Metadata),
            in_journal: usage(Usage::Journal),
            in_free_space: usage(Usage::Free),
            elsewhere: usage(Usage::Unknown),
            ignored: self.ignored,
            not_printed: self.not_printed,
            same_content: same,
            reasons: Reason::all(unreadable, |it| self.name_of(it)),
            left: side(&self.labels.left, self.sides.left),
            right: side(&self.labels.right, self.sides.right),
        })
    }
}

fn side(name: &OsStr, size: u64) -> Side<'_> {
    Side { name: Name::new(name), size }
}

/// Maximum number of rows of a table that is kept until the summary is printed. Longer ones are printed as the ranges
/// come, and the summary is last.
/// Limit in rows.
const MAX_TABLE: u64 = 10_000;

/// Maximum number of partitions that are named for one range.
/// Limit in partitions.
const MAX_PARTITIONS: usize = 4;

#[cfg(test)]
mod tests;
