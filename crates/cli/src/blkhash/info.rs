//! `blkhash info`: describes images, with what `--snapshot` and `--partition` can name.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use blkimage::partition::{self, Details, Label, Partition, TableError};
use blkimage::{Image, Member, MemberFile, OpenOptions, Snapshot, Stated};
use blkrecord::Name;

use super::source::shown;
use super::{acquisition, args};
use crate::image::about;
use crate::image::input::{self, Origin};
use crate::problem::{Failure, Outcome, Problem};
use crate::records::chain::ChainImage;
use crate::records::info;
use crate::size::Bytes;
use crate::stdio::Stdout;
use crate::{image, json, messages, quote};

/// Describes every image on the command line, and every disk of an appliance.
pub fn run(args: &args::Info) -> Result<Outcome, Failure> {
    let options = args.opening.confine(&args.names)?;
    let mut outcome = Outcome::Clean;
    let mut gap = "";
    for name in &args.names {
        for (disk, found) in input::disks((name.clone(), Ok(Origin::CommandLine)), &options) {
            let described = found.and_then(|_| describe(&disk, &options, args.json));
            match described {
                Ok(text) => {
                    Stdout.write_all(format!("{gap}{text}").as_bytes())?;
                    gap = if args.json { "" } else { "\n" };
                }
                Err(problem) => {
                    problem.report(&disk);
                    outcome = Outcome::Unknown;
                }
            }
        }
    }
    Ok(outcome)
}

/// Returns the description of an image.
fn describe(name: &OsStr, options: &OpenOptions, is_json: bool) -> Result<String, Problem> {
    let image = image::open::open(name, options)?;
    let snapshots = image.snapshots().map_err(|error| Problem::of_image(&error, name))?;
    let (table, problem) = match partition::table(&*image) {
        Ok(mut table) => {
            let problem = table.lost.take().or_else(|| table.primary.take());
            (table, problem.map(|problem| problem.to_string()))
        }
        Err(TableError::Image(error)) => return Err(Problem::of_image(&error, name)),
        Err(error) => (partition::Table::default(), Some(error.to_string())),
    };
    image.check_digests().map_err(|error| Problem::of_image(&error, name))?;
    let parts: Vec<_> = table
        .partitions
        .iter()
        .filter_map(|part| Some((part, table.details.get(&part.number)?)))
        .collect();
    // The image can be used whatever it states.
    let stated = image.stated_checksums().unwrap_or_else(|error| {
        messages::message_of(name.as_encoded_bytes(), &format!("warning: {}", error.reason()));
        None
    });
    let stated = stated.unwrap_or_default();
    if !is_json {
        return Ok(text(
            name,
            &image,
            &stated,
            snapshots.as_deref(),
            table.label,
            &parts,
            problem.as_deref(),
        ));
    }
    let object = info::Info {
        name: Name::new(name),
        format: image.format().name(),
        virtual_size: image.virtual_size(),
        chain: ChainImage::all(&image),
        snapshots: snapshots.as_ref().map(|all| all.iter().map(info::Snapshot::new).collect()),
        partition_table: table.label.map(label),
        partitions: parts
            .iter()
            .map(|(part, details)| info::Partition::new(part, details))
            .collect(),
        partition_problem: problem,
        acquisition: image.acquisition().map(|found| info::Acquisition::new(found, &stated)),
        backup: image.backup().map(info::Backup::new),
        implanted: stated.implanted.as_ref().map(info::Implanted::new),
        part_checksums: part_checksums(&stated),
    };
    Ok(json::line(&object))
}

/// Says what parts of an image it states checksums of.
fn part_checksums(stated: &Stated) -> Option<String> {
    let of_sums = || match stated.sums.len() {
        0 => None,
        1 => Some("CRC-32 of 1 part".to_owned()),
        count => Some(format!("CRC-32 of {count} parts")),
    };
    stated.parts.map(str::to_owned).or_else(of_sums)
}

fn text(
    name: &OsStr,
    image: &Image,
    stated: &Stated,
    snapshots: Option<&[Snapshot]>,
    label_of_table: Option<Label>,
    parts: &[(&Partition, &Details)],
    problem: Option<&str>,
) -> String {
    let mut out = format!("{}\n", shown(name));
    let mut line = |label: &str, value: String| {
        let _ = writeln!(out, "  {label:<12}{value}");
    };
    let size = image.virtual_size();
    line("format", image.format().to_string());
    line("size", format!("{} ({size} bytes)", Bytes(size)));
    if let Some(sizes) = image.chain().iter().find_map(Member::vpc_sizes) {
        line("", format!("or {}", about::other_size(&sizes)));
    }
    for (depth, member) in image.chain().iter().enumerate() {
        for (number, file) in member.files().enumerate() {
            let label = match (depth, number) {
                (0, 0) => "file",
                (_, 0) => "backing",
                _ => "data",
            };
            line(label, file_text(file, (depth > 0).then_some(member)));
            if let Some(object) = file.object() {
                if Path::new(&object.url) != file.name() {
                    line("", format!("at {}", shown(object.url.as_ref())));
                }
                line("", format!("{}, changes told by {}", Bytes(file.size()), object.validator));
            }
        }
    }
    if let Some(acquisition) = image.acquisition() {
        acquisition::lines(acquisition, stated, &mut line);
    }
    if let Some(backup) = image.backup() {
        line("file system", quote::printable(&backup.file_system));
        line("used", format!("{} ({} bytes)", Bytes(backup.used), backup.used));
        line("partclone", quote::printable(&backup.version));
    }
    if let Some(implanted) = &stated.implanted {
        line("md5", blkrecord::hex(&implanted.md5));
        let length = implanted.length;
        line(
            "",
            format!("of the first {length} bytes, as isomd5sum computes it: blksum -c compares it"),
        );
    }
    if let Some(sums) = part_checksums(stated) {
        line("checksums", format!("{sums}: blksum -c compares them"));
    }
    if let Some(snapshots) = snapshots {
        line("snapshots", count(snapshots.len()));
    }
    line("partitions", label_of_table.map_or("none".to_owned(), |it| label(it).to_owned()));
    if let Some(problem) = problem {
        line("", quote::printable(problem));
    }
    if let Some(snapshots @ [_, ..]) = snapshots {
        out += &table(["snapshot", "taken", "size", "name"], snapshots.iter().map(snapshot_row));
    }
    if !parts.is_empty() {
        out += &table(["partition", "offset", "size", "type"], parts.iter().map(part_row));
    }
    out
}

fn file_text(file: MemberFile<'_>, member: Option<&Member>) -> String {
    let format = member.map_or(String::new(), |member| format!("{}, ", member.format()));
    // All of an object is stored.
    let stored = file.stored().filter(|_| file.object().is_none());
    let stored = stored.map_or(String::new(), |stored| format!("{} stored, ", Bytes(stored)));
    format!("{format}{stored}{}", shown(file.name().as_os_str()))
}

fn snapshot_row(snapshot: &Snapshot) -> [String; 4] {
    let memory = match snapshot.vm_state_size {
        0 => String::new(),
        size => format!(", with {} of memory", Bytes(size)),
    };
    [
        quote::name(&snapshot.id),
        blksys::utc(snapshot.created),
        Bytes(snapshot.virtual_size).to_string(),
        quote::name(&snapshot.name) + &memory,
    ]
}

fn part_row((part, details): &(&Partition, &Details)) -> [String; 4] {
    let kind = details.kind.name().map_or_else(|| details.kind.to_string(), str::to_owned);
    let name = match details.name.as_str() {
        "" => String::new(),
        name => format!(", {}", quote::name(name.as_bytes())),
    };
    let size = Bytes(part.length).to_string();
    [part.number.to_string(), part.offset.to_string(), size, kind + &name]
}

/// Formats the first rows as a table. The last column has no limit, so everything before it stays in place.
fn table(head: [&str; 4], rows: impl ExactSizeIterator<Item = [String; 4]>) -> String {
    let more = rows.len().saturating_sub(MAX_ROWS);
    let rows: Vec<_> =
        std::iter::once(head.map(str::to_owned)).chain(rows.take(MAX_ROWS)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let [first, second, third] = [0, 1, 2].map(width);
    let mut out = "\n".to_owned();
    for [a, b, c, last] in &rows {
        let _ = writeln!(out, "  {a:>first$}  {b:>second$}  {c:>third$}  {last}");
    }
    if more > 0 {
        let _ = writeln!(out, "  ... {more} more: --json lists all");
    }
    out
}

fn count(number: usize) -> String {
    if number == 0 { "none".to_owned() } else { number.to_string() }
}

fn label(label: Label) -> &'static str {
    match label {
        Label::Gpt => "gpt",
        Label::Mbr => "mbr",
        _ => "other",
    }
}

/// Maximum number of rows of a table of snapshots or partitions. An image may have 65536 snapshots. `--json` has all.
/// Limit in rows.
const MAX_ROWS: usize = 100;
