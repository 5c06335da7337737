//! Output of findings and summaries as text and as JSON.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use blkbtrfs::{Category, FileSystem, Finding, Owner, Owners, Parent, Subject, Summary};
use blkrecord::Name;

use super::open::Names;
use crate::blkhash::limit::Limit;
use crate::blkhash::out::Out;
use crate::records::btrfs::{self as records, TreeOf};
use crate::records::common::Named;
use crate::size::Bytes;
use crate::{json, quote};

/// Standard output of one verification.
pub struct Output {
    json: bool,
    name: OsString,
    names: Names,
    out: Out,
    limit: Limit,
    /// Number of blocks in the findings that were printed, by category.
    shown: [u64; Category::ALL.len()],
}

impl Output {
    /// Creates the output for one file system. `name` is its first image's, `names` are its devices'.
    pub fn new(json: bool, name: &OsStr, names: Names, limit: Limit) -> Self {
        let shown = [0; Category::ALL.len()];
        Self { json, name: name.to_owned(), names, out: Out::unbuffered(), limit, shown }
    }

    /// Returns the rest of the limit.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Prints a finding, within the limit.
    pub fn finding(&mut self, filesystem: &FileSystem, finding: &Finding) {
        if !self.out.has_failed() {
            let text = if self.json {
                json::line(&self.finding_record(filesystem, finding))
            } else {
                finding_text(filesystem, finding)
            };
            if self.limit.take(text.len()) {
                self.shown[finding.category() as usize] += finding.blocks;
                self.out.write(&text);
            }
        }
    }

    /// Prints the summary.
    ///
    /// # Errors
    ///
    /// Fails if this or any earlier output could not be written.
    pub fn summary(
        mut self,
        filesystem: &FileSystem,
        summary: &Summary,
        elapsed: Duration,
    ) -> io::Result<()> {
        let text = if self.json {
            json::line(&self.summary_record(filesystem, summary, elapsed))
        } else {
            let name = quote::name(self.name.as_encoded_bytes());
            summary_text(&name, filesystem, summary, &self.shown, elapsed)
        };
        self.out.write(&text);
        self.out.end()
    }
}

fn finding_text(filesystem: &FileSystem, finding: &Finding) -> String {
    let mut text = String::new();
    let place = finding.place;
    let device = place.and_then(|place| filesystem.devices().get(&place.device));
    text += device.map_or("file system", |device| device.name.as_str());
    text += ": ";
    text += &subject(finding);
    let mut at = Vec::new();
    at.extend(finding.logical.map(|logical| format!("logical {logical}")));
    if let Some(place) = place {
        at.push(format!("physical {} of device {}", place.physical, place.device));
        if finding.mirrors > 1 {
            at.push(format!("mirror {} of {}", place.mirror, finding.mirrors));
        }
    }
    if !at.is_empty() {
        text += &format!(" at {}", at.join(", "));
    }
    text += &format!(": {}", finding.problem);
    if finding.blocks > 1 {
        text += &format!("; the first of {} in a row, {} bytes", finding.blocks, finding.length);
    }
    if let Some(parent) = finding.parent.filter(|_| finding.is_about_reference()) {
        text += &format!("; {parent} leads to it");
    }
    text += &match &finding.good_mirrors[..] {
        [] if finding.mirrors > 1
            && !matches!(finding.category(), Category::Mirror | Category::NoChecksum) =>
        {
            "; no mirror is good".to_owned()
        }
        [] => String::new(),
        [one] => format!("; mirror {one} is good"),
        many => {
            let list: Vec<_> = many.iter().map(ToString::to_string).collect();
            format!("; mirrors {} are good", list.join(" and "))
        }
    };
    text += match finding.rebuildable {
        Some(true) => "; can be rebuilt from parity",
        Some(false) => "; parity cannot rebuild it",
        None => "",
    };
    text.push('\n');
    if matches!(finding.subject, Subject::TreeBlock { .. } | Subject::Data) {
        text += &owners_text(&finding.owners);
    }
    text.lines().map(|line| quote::printable(line) + "\n").collect()
}

fn subject(finding: &Finding) -> String {
    match finding.subject {
        Subject::Superblock(number) => format!("superblock {number}"),
        Subject::TreeBlock { level: 0, .. } => "leaf".to_owned(),
        Subject::TreeBlock { level, .. } => format!("node of level {level}"),
        Subject::Data => "data".to_owned(),
        Subject::Parity => "parity".to_owned(),
        Subject::Device => format!("device of {} bytes", finding.length),
        Subject::Chunk => "chunk".to_owned(),
        Subject::Tree(number) => tree(number),
        Subject::Inode { tree: number, inode } => format!("inode {inode} of {}", tree(number)),
        Subject::FileSystem => "space".to_owned(),
        _ => "block".to_owned(),
    }
}

fn tree(number: u64) -> String {
    format!("{} {}", blkbtrfs::tree_name(number), number as i64)
}

fn owners_text(owners: &Owners) -> String {
    let mut text = String::new();
    for owner in &owners.list {
        match owner {
            Owner::File { subvolume, inode, offset, paths } => {
                let names: Vec<_> = paths.iter().map(|path| quote::name(path)).collect();
                let names = if names.is_empty() { "a file".into() } else { names.join(" = ") };
                let _ =
                    writeln!(text, "  {names} at {offset} (subvolume {subvolume}, inode {inode})");
            }
            Owner::Tree { number, name, path } => {
                let path = path.as_ref().filter(|path| !path.is_empty());
                let path = path.map(|path| format!(", {}", quote::name(path)));
                let _ = writeln!(text, "  {name} {}{}", *number as i64, path.unwrap_or_default());
            }
            _ => {}
        }
    }
    if let Some(reason) = &owners.problem {
        let _ = writeln!(text, "  what it belongs to is not known: {reason}");
    } else if owners.is_partial {
        text += "  and there may be more\n";
    } else if owners.list.is_empty() {
        text += "  no file uses it now\n";
    }
    text
}

impl Output {
    fn finding_record<'a>(
        &'a self,
        filesystem: &'a FileSystem,
        finding: &'a Finding,
    ) -> records::Finding<'a> {
        let (copy, level, inode) = match finding.subject {
            Subject::Superblock(number) => (Some(number as u64), None, None),
            Subject::TreeBlock { level, .. } => (None, Some(level), None),
            Subject::Inode { inode, .. } => (None, None, Some(inode)),
            _ => (None, None, None),
        };
        let (checksums, place) = (finding.checksums(), finding.place);
        let device = place.and_then(|place| filesystem.devices().get(&place.device));
        let device_name = device.and_then(|device| self.names.get(&device.name));
        records::Finding {
            r#type: "error",
            name: Name::new(&self.name),
            subject: finding.subject.name(),
            copy,
            tree: finding.subject.tree().map(|tree| TreeOf { number: tree as i64, level }),
            inode,
            category: finding.category().name(),
            problem: finding.problem.to_string(),
            logical: finding.logical,
            length: finding.length,
            blocks: finding.blocks,
            parent: finding.parent.map(parent_record),
            mirror: place.map(|place| place.mirror),
            mirrors: finding.mirrors,
            good_mirrors: &finding.good_mirrors,
            rebuildable: finding.rebuildable,
            device: place.map(|place| place.device),
            device_name: device_name.map(Name::new),
            physical: place.map(|place| place.physical),
            expected: checksums.map(|(expected, _)| expected.to_string()),
            computed: checksums.map(|(_, computed)| computed.to_string()),
            owners: finding.owners.list.iter().map(owner_record).collect(),
            owners_complete: !finding.owners.is_partial,
            owners_problem: finding.owners.problem.as_deref(),
        }
    }

    fn summary_record<'a>(
        &'a self,
        filesystem: &'a FileSystem,
        summary: &Summary,
        elapsed: Duration,
    ) -> records::Verification<'a> {
        let (superblock, verified) = (filesystem.superblock(), &summary.verified);
        let counts = |count: &dyn Fn(Category) -> u64| {
            Category::ALL.iter().map(|category| (category.name(), count(*category))).collect()
        };
        let missing = filesystem.missing_devices().iter().take(MAX_MISSING_IDS);
        let unprotected = summary.used.map(|it| it.unprotected);
        records::Verification {
            r#type: "summary",
            name: Name::new(&self.name),
            fsid: superblock.fsid.to_string(),
            label: Name::new(OsStr::from_bytes(&superblock.label)),
            checksum: superblock.checksum_type.name(),
            superblocks: verified.superblocks,
            tree_blocks: verified.tree_blocks,
            tree_bytes: verified.tree_bytes,
            data_bytes: verified.data_bytes,
            unchecked_bytes: verified.unchecked_bytes,
            checksums: verified.checksums,
            rebuilt_bytes: verified.rebuilt_bytes,
            parity_bytes: verified.parity_bytes,
            errors: counts(&|category| summary.count(category)),
            errors_not_printed: counts(&|category| hidden(summary, &self.shown, category)),
            lost_blocks: summary.lost_blocks,
            missing_devices: missing.map(|device| device.id).collect(),
            missing_device_count: summary.missing_devices,
            missing_bytes: summary.missing_bytes,
            compared: summary.compared,
            used: summary.used.map(|it| records::Used {
                metadata: it.metadata,
                data: it.data,
                unprotected: it.unprotected.total(),
            }),
            unprotected: unprotected.map(|it| records::Unprotected {
                nodatasum: it.nodatasum,
                preallocated: it.preallocated,
                internal: it.internal,
                other: it.other,
            }),
            seconds: elapsed.as_secs_f64(),
        }
    }
}

fn parent_record(parent: Parent) -> records::Parent {
    let (kind, at) = match parent {
        Parent::Root { logical, slot } => ("root item", Some((logical, slot))),
        Parent::Node { logical, slot } => ("pointer", Some((logical, slot))),
        _ => ("superblock", None),
    };
    let (logical, slot) = at.unzip();
    records::Parent { kind, logical, slot }
}

fn owner_record(owner: &Owner) -> records::Owner<'_> {
    let named = |path| Named { name: Name::new(OsStr::from_bytes(path)) };
    match owner {
        Owner::File { subvolume, inode, offset, paths } => records::Owner {
            subvolume: Some(*subvolume),
            inode: Some(*inode),
            offset: Some(*offset),
            paths: Some(paths.iter().map(|path| named(path)).collect()),
            ..records::Owner::default()
        },
        Owner::Tree { number, name, path } => records::Owner {
            tree: Some(*number as i64),
            tree_name: Some(name),
            path: Some(path.as_ref().map(|path| named(path))),
            ..records::Owner::default()
        },
        _ => records::Owner::default(),
    }
}

fn summary_text(
    name: &str,
    filesystem: &FileSystem,
    summary: &Summary,
    shown: &[u64; Category::ALL.len()],
    elapsed: Duration,
) -> String {
    let (superblock, verified) = (filesystem.superblock(), &summary.verified);
    let bytes = |count: u64| Bytes(count).to_string();
    let mut text = format!("{name}: btrfs {}", superblock.fsid);
    if !superblock.label.is_empty() {
        text += &format!(", {}", quote::name(&superblock.label));
    }
    text.push('\n');
    let mut line = |head: &str, value: String| {
        let _ = writeln!(text, "  {head:<13} {value}");
    };
    line(
        "verified",
        format!(
            "{} of data, {} of metadata, {} superblocks",
            bytes(verified.data_bytes),
            bytes(verified.tree_bytes),
            verified.superblocks
        ),
    );
    line("checksums", format!("{} of {}", verified.checksums, superblock.checksum_type));
    let read = verified.data_bytes + verified.tree_bytes;
    let seconds = elapsed.as_secs_f64();
    let rate = (read as f64 / seconds.max(1e-6)) as u64;
    line("time", format!("{seconds:.2} s, {}/s", bytes(rate)));
    if verified.parity_bytes > 0 {
        line("parity", format!("{} of rows", bytes(verified.parity_bytes)));
    }
    line("in use", in_use(summary));
    line("no checksums", without_checksums(summary));
    let missing = filesystem.missing_devices();
    for device in missing.iter().take(MAX_MISSING_LINES) {
        line("missing", format!("device {} ({})", device.id, device.uuid));
    }
    if missing.len() > MAX_MISSING_LINES {
        line("missing", format!("{} more devices", missing.len() - MAX_MISSING_LINES));
    }
    if verified.rebuilt_bytes > 0 {
        line(
            "rebuilt",
            format!("{} of missing devices, from parity", bytes(verified.rebuilt_bytes)),
        );
    }
    if summary.missing_bytes > 0 {
        line("not verified", format!("{} on missing devices", bytes(summary.missing_bytes)));
    }
    // An incomplete verification must not look like a clean result.
    let none = if summary.is_complete() { "none" } else { "none in what was verified" };
    line(
        "errors",
        if summary.is_clean() { none.into() } else { by_category(|it| summary.count(it)) },
    );
    let rest = by_category(|category| hidden(summary, shown, category));
    if !rest.is_empty() {
        line("not printed", format!("{rest} (--max-errors)"));
    }
    if !summary.compared {
        line(
            "not compared",
            "trees with each other: blocks of them are lost or make no sense".into(),
        );
    }
    if summary.lost_blocks > 0 {
        let what = "tree blocks cannot be reached: what is below them may not be verified";
        line("lost", format!("{} {what}", summary.lost_blocks));
    }
    text
}

fn in_use(summary: &Summary) -> String {
    let Some(used) = &summary.used else {
        return match summary.missing_devices {
            0 => "unknown: the trees that record it are damaged".to_owned(),
            _ => "unknown: the trees that record it are on a missing device".to_owned(),
        };
    };
    let without = &used.unprotected;
    // What is in use is known from the trees, also where it cannot be read.
    let is_read = summary.count(Category::Read) == 0
        && summary.missing_bytes == 0
        && summary.lost_blocks == 0;
    let (with, read) = match is_read {
        true => ("verified", "read without checksums"),
        false => ("with checksums", "without checksums"),
    };
    let parts = [
        (used.total() - without.total(), with),
        (without.read(), read),
        (without.not_read(), "not read"),
    ];
    let parts = list(parts, |bytes, what| format!("{what} {}", Bytes(bytes)));
    format!("{}: {parts}", Bytes(used.total()))
}

fn without_checksums(summary: &Summary) -> String {
    match summary.used.as_ref().map(|used| &used.unprotected) {
        None => "not known".to_owned(),
        Some(none) if none.total() == 0 => "none".to_owned(),
        Some(some) => {
            let parts = [
                (some.nodatasum, "nodatasum"),
                (some.preallocated, "preallocated"),
                (some.internal, "of the free space cache"),
                (some.other, "left over of extents"),
            ];
            list(parts, |bytes, what| format!("{} {what}", Bytes(bytes)))
        }
    }
}

fn by_category(count: impl Fn(Category) -> u64) -> String {
    let counts = Category::ALL.iter().map(|category| (count(*category), describe(*category)));
    list(counts, |count, what| format!("{what}: {count}"))
}

/// Joins the numbers that are not zero, in these words.
fn list<'a>(
    parts: impl IntoIterator<Item = (u64, &'a str)>,
    words: impl Fn(u64, &str) -> String,
) -> String {
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, what)| words(count, what)).collect::<Vec<_>>().join(", ")
}

/// Returns the number of blocks of a category that are not part of a printed finding.
fn hidden(summary: &Summary, shown: &[u64; Category::ALL.len()], category: Category) -> u64 {
    summary.count(category).saturating_sub(shown[category as usize])
}

fn describe(category: Category) -> &'static str {
    match category {
        Category::Superblock => "superblocks",
        Category::TreeChecksum => "tree blocks whose checksum does not match",
        Category::TreeHeader => "tree blocks that do not match their reference",
        Category::TreeItem => "tree blocks with items that break a rule",
        Category::Contradiction => "contradictions between items",
        Category::NoChecksum => "data sectors that have lost their checksum",
        Category::Mirror => "mirrors that differ",
        Category::DataChecksum => "data sectors whose checksum does not match",
        Category::Read => "blocks that cannot be read",
        Category::Parity => "parities",
        other => other.name(),
    }
}

/// Maximum number of lines for missing devices in a summary.
/// Limit in lines.
const MAX_MISSING_LINES: usize = 16;

/// Maximum number of missing devices in the JSON of a summary.
/// Limit in devices.
const MAX_MISSING_IDS: usize = 1024;
