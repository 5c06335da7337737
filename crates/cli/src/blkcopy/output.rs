//! What is printed about a copy.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use blkcopy::{Amounts, Sent};
use blkfs::Usage;
use blkhash::{Algorithm, Digest, Parameters, Strength};
use blkimage::ReadMethod;
use blkrecord::{Flat, Name};
use blksum::check_file::{Form, Style};
use blksum::{Content, Encoding, ImageTag, Tag};

use super::args::{Args, Verification};
use super::replaced::Replaced;
use crate::problem::Problem;
use crate::records::checksum::block_size;
use crate::records::common::Owner;
use crate::records::copy::{Copy, Failed, Names};
use crate::size::Bytes;
use crate::stdio::{Stderr, Stdout};
use crate::{json, messages, quote};

/// The result of a copy.
pub struct Report {
    pub size: u64,
    pub format: &'static str,
    /// The checksum, unless there is none.
    pub checksum: Option<(Parameters, Digest)>,
    /// Bytes that were written, zeroed, and left as they were. `None` for standard output.
    pub amounts: Option<Amounts>,
    /// What an update replaced.
    pub replaced: Option<Replaced>,
    /// What was sent of a delta.
    pub sent: Option<Sent>,
    pub verification: Verification,
    /// The way in which the destination was read back.
    pub read_back: Option<ReadMethod>,
    /// Number of bytes that were compared with the map of `--expect-map`, and equal.
    pub compared: Option<u64>,
    pub elapsed: Duration,
}

impl Report {
    /// Prints the report.
    pub fn print(&self, args: &Args) -> io::Result<()> {
        if args.verbose {
            messages::remark_of(args.destination.as_bytes(), &self.summary(args));
            let replaced = self.replaced.as_ref().map(Replaced::text).filter(|it| !it.is_empty());
            if let Some(text) = replaced {
                messages::remark_of(args.destination.as_bytes(), &text);
            }
            let remarks = self.replaced.iter().flat_map(|it| &it.used.remarks);
            remarks.for_each(|remark| messages::remark_of(args.source.as_bytes(), remark));
        }
        let text = match () {
            () if args.quiet => return Ok(()),
            () if args.json => self.object(args).into_bytes(),
            () => match &self.checksum {
                Some((parameters, digest)) => line(args, &args.destination, parameters, digest),
                None => return Ok(()),
            },
        };
        print(args, &text)
    }

    fn summary(&self, args: &Args) -> String {
        if let Some(sent) = &self.sent {
            return format!("{} differ, {} sent", Bytes(sent.changed), Bytes(sent.length));
        }
        let amounts = match self.amounts {
            Some(Amounts { shared, .. }) if shared > 0 => {
                format!("{} shared with the source", Bytes(shared))
            }
            Some(Amounts { written, zeroed, equal, .. }) => {
                let (written, zeroed, equal) = (Bytes(written), Bytes(zeroed), Bytes(equal));
                format!("{written} written, {zeroed} of zeros, {equal} left as they were")
            }
            None => format!("{} written", Bytes(self.size)),
        };
        let is_shared = self.amounts.is_some_and(|it| it.shared > 0);
        let verified = match self.verification {
            Verification::ReadBack if is_shared => match self.read_back {
                Some(ReadMethod::Direct) => "read once, around the page cache",
                _ => "read once, through the page cache",
            },
            Verification::ReadBack => match self.read_back {
                _ if args.is_partial() => "read back, and what was copied is equal",
                Some(ReadMethod::Direct) => "read back around the page cache, and equal",
                Some(ReadMethod::Nbd) => "read back from the server, and equal",
                _ => "read back through the page cache, and equal",
            },
            Verification::Source => "not read back",
            Verification::None => "not verified",
        };
        let by = self.weak_digest().map_or(String::new(), |digest| format!(" by {digest}"));
        let map = self
            .compared
            .map(|bytes| format!("; {} compared with the map, and equal", Bytes(bytes)));
        format!("{amounts}; {verified}{by}{}", map.unwrap_or_default())
    }

    /// Returns the digest that was compared, if it shows accidents only.
    fn weak_digest(&self) -> Option<Algorithm> {
        let (parameters, _) = self.checksum.as_ref()?;
        let algorithm = parameters.algorithm();
        let is_weak = matches!(
            algorithm.properties().strength,
            Strength::None | Strength::ErrorDetection | Strength::Keyed
        );
        Some(algorithm).filter(|_| is_weak && self.verification == Verification::ReadBack)
    }

    fn object(&self, args: &Args) -> String {
        let checksum = self.checksum.as_ref();
        let parameters = checksum.map(|(parameters, _)| parameters);
        let used = self.replaced.as_ref().map(|it| &it.used).filter(|it| it.usages.total() > 0);
        let usage = |usage| used.map(|used| used.usages.of(usage));
        json::line(&Copy {
            names: Flat(names(args)),
            checksum: checksum.map(|(_, digest)| digest.to_string()),
            digest: parameters.map(|it| it.algorithm().name()),
            construction: parameters.map(|it| it.construction().to_string()),
            block_size: parameters.and_then(block_size),
            virtual_size: self.size,
            format: self.format,
            written_bytes: self.amounts.map(|it| it.written),
            zeroed_bytes: self.amounts.map(|it| it.zeroed),
            equal_bytes: self.amounts.map(|it| it.equal),
            shared_bytes: self.amounts.map(|it| it.shared),
            changed_bytes: self.sent.as_ref().map(|sent| sent.changed),
            delta_bytes: self.sent.as_ref().map(|sent| sent.length),
            in_files: usage(Usage::File),
            in_metadata: usage(Usage::Metadata),
            in_journal: usage(Usage::Journal),
            in_free_space: usage(Usage::Free),
            elsewhere: usage(Usage::Unknown),
            owners: used.map(|it| it.owners.iter().map(Owner::new).collect()),
            owners_complete: used.map(|it| !it.has_more_owners),
            verified: self.verification.name(),
            read_back: self.read_back.map(ReadMethod::name),
            compared_bytes: self.compared,
            seconds: self.elapsed.as_secs_f64(),
        })
    }
}

/// Prints the object of a copy that failed.
pub fn print_failure(args: &Args, problem: &Problem) -> io::Result<()> {
    if !args.json {
        return Ok(());
    }
    let error = problem.message(&args.destination);
    print(args, json::line(&Failed { names: Flat(names(args)), error }).as_bytes())
}

fn names(args: &Args) -> Names<'_> {
    let [source, destination] = [&args.source, &args.destination].map(Name::new);
    Names { r#type: "copy", source, destination }
}

/// Prints what is printed. Standard output may be the copy.
fn print(args: &Args, text: &[u8]) -> io::Result<()> {
    match args.destination == "-" {
        true => Stderr.write_all(text),
        false => Stdout.write_all(text),
    }
}

/// Returns the line of blksum for the destination.
fn line(args: &Args, name: &OsStr, parameters: &Parameters, digest: &Digest) -> Vec<u8> {
    let form = match args.tag {
        false => Form::Text,
        true => {
            // The destination is raw, whatever a guest wrote.
            let content = Content { format: Some(blkimage::Format::Raw), ..Content::default() };
            Form::Tagged(Tag::Image(Box::new(ImageTag { parameters: *parameters, content })))
        }
    };
    let style = Style { form, encoding: Encoding::Hex, zero: false };
    let is_terminal = match args.destination == "-" {
        true => io::stderr().is_terminal(),
        false => io::stdout().is_terminal(),
    };
    quote::line(&style, name.as_bytes(), digest.as_bytes(), is_terminal)
}
