//! The source on the command line.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use blkcopy::Zeros;
use blkimage::{
    AtUrl, Decompressed, FileKind, Format, Identity, Image, Location, OpenOptions, Source,
};
use blksum::expect::{Amount, Observed};
use blksum::{Part, Selected};

use super::args::Args;
use super::delta;
use crate::image::input::{self, Input, is_export, is_target, is_url};
use crate::image::{advice, open};
use crate::messages;
use crate::problem::Problem;
use crate::stdio::Patient;

/// The source.
pub enum Opened {
    /// An image, and the part of it that is copied.
    Image(Arc<Image>, Selected),
    /// Standard input that is a pipe, a compressed file, or an object on a server without ranges. The flag says whether it is decompressed.
    Stream(Observed<Box<dyn Read>>, bool),
    /// A delta.
    Delta(Box<dyn Read>),
}

impl Opened {
    /// Returns the number of bytes to copy, if it is known.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Image(_, selected) => Some(selected.size()),
            Self::Stream(..) | Self::Delta(_) => None,
        }
    }
}

/// The bytes of the file of the source, for a value that may be of them and not of the content.
pub struct Bytes {
    image: Image,
    identity: Identity,
    /// Size in bytes, and number of those that are stored.
    size: (u64, u64),
}

impl Bytes {
    /// Opens the file before the source is, so that whatever changes meanwhile is found out.
    pub fn open(args: &Args, options: &OpenOptions) -> Option<Self> {
        let is_whole = args.partition.is_none() && args.opening.open.snapshot.is_none();
        let Location::Path(path) = Location::new(&args.source) else { return None };
        let size = input::file_size(&args.source).filter(|_| is_whole && args.source != "-")?;
        let identity = Identity::of(path)?;
        let mut options = options.clone().format(Format::Raw);
        options.compression = None;
        let image = options.open(path).ok()?;
        identity.is_in(&image).then_some(Self { image, identity, size })
    }

    /// Returns these bytes, if they are the source's and differ from its content.
    pub fn of(self, args: &Args, opened: &Opened) -> Option<Self> {
        let is_same = match opened {
            Opened::Image(image, _) => {
                let is_content = image.format() == Format::Raw && !image.is_decompressed();
                self.identity.is_in(image) && !is_content
            }
            // It was opened by name in between.
            Opened::Stream(_, is_decompressed) => {
                *is_decompressed && Identity::of(Path::new(&args.source)) == Some(self.identity)
            }
            Opened::Delta(_) => false,
        };
        is_same.then_some(self)
    }

    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Returns how much there is to hash.
    pub fn amount(&self) -> Amount {
        let (size, stored) = self.size;
        Amount { size, zeros: size.saturating_sub(stored) }
    }
}

/// Opens the source.
pub fn open(args: &Args, options: &OpenOptions) -> Result<Opened, Problem> {
    let name = &*args.source;
    if args.apply {
        return delta::open(args).map(Opened::Delta);
    }
    let image = match Input::new(name).map_err(|error| Problem::from(&error))? {
        Input::Stream(file) => return stream(args, options, file),
        Input::Descriptor { file, start } => {
            let image = options.open_file(file, Path::new(name), start);
            let image = image.map_err(|error| Problem::of_image(&error, name))?;
            advice::warn(&image, name);
            Arc::new(image)
        }
        Input::Path(path) if needs_image(args).is_none() && args.destination != "-" => {
            match open::decompressed(path, options, HEAD)? {
                Some((head, content)) => {
                    return of_stream(args, head, content, true);
                }
                None => open::open(name, options)?,
            }
        }
        Input::Uri(url)
            if is_url(name) && needs_image(args).is_none() && args.destination != "-" =>
        {
            let found = options.open_url(url);
            match found.map_err(|error| Problem::of_image(&error, name))? {
                AtUrl::Stream(content) => {
                    let is_decompressed = content.compression().is_some();
                    return of_stream(args, Vec::new(), content, is_decompressed);
                }
                AtUrl::Image(image) => {
                    advice::warn(&image, name);
                    Arc::new(image)
                }
            }
        }
        Input::Uri(_) | Input::Path(_) => open::open(name, options)?,
    };
    let selected = Selected::new(Arc::clone(&image), args.partition.map(Part::Partition));
    let selected = selected.map_err(|error| Problem::new(error.to_string()))?;
    if is_export(name) && image.format() == Format::Raw {
        let mut head = vec![0; selected.size().min(HEAD) as usize];
        let read = selected.source().read_exact_at(&mut head, 0);
        read.map_err(|error| Problem::of_image(&error, name))?;
        note_other(args, &head);
    }
    Ok(Opened::Image(image, selected))
}

/// Bytes that come once and in order are raw content, where they do not look like anything else.
fn stream(args: &Args, options: &OpenOptions, file: File) -> Result<Opened, Problem> {
    if let Some(option) = needs_image(args) {
        return Err(Problem::new(format!("is a pipe, for which there is no {option}")));
    }
    let failed = |error: io::Error| Problem::of_stream(&error, &args.source);
    let mut content: Box<dyn Read> = match options.compression {
        None => Box::new(Patient(file)),
        Some(compression) => {
            let name = Path::new(&args.source);
            Box::new(Decompressed::new(compression, Patient(file), options, name).map_err(failed)?)
        }
    };
    let mut head = Vec::new();
    (&mut content).take(HEAD).read_to_end(&mut head).map_err(failed)?;
    open::check_stream(&head, &args.source, "is a pipe", options)?;
    of_stream(args, head, content, options.compression.is_some())
}

/// Returns content that comes once and in order, of which `head` was read.
fn of_stream(
    args: &Args,
    head: Vec<u8>,
    content: impl Read + 'static,
    is_decompressed: bool,
) -> Result<Opened, Problem> {
    if head.is_empty() && is_target(&args.destination) {
        return Err(Problem::new("is empty, so there is nothing to copy"));
    }
    let content: Box<dyn Read> = Box::new(io::Cursor::new(head).chain(content));
    Ok(Opened::Stream(Observed::new(content), is_decompressed))
}

/// Returns the first given option for which a source has a size and is read in parts.
fn needs_image(args: &Args) -> Option<&'static str> {
    let options = [
        ("--format", args.opening.open.format.is_some_and(|format| format != Format::Raw)),
        ("--snapshot", args.opening.open.snapshot.is_some()),
        ("--partition", args.partition.is_some()),
        ("--map", args.map.is_some()),
        ("--update", args.update),
        ("--destination-map", args.destination_map.is_some()),
        ("--bitmap", args.bitmap.is_some()),
        ("--changes", args.changes.is_some()),
        ("--delta-from", args.delta_from.is_some()),
        ("--zeros=keep-if-zero", args.zeros == Some(Zeros::KeepIfZero)),
    ];
    options.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
}

/// Says that an export is a file of something else than a disk, which is copied as it is.
fn note_other(args: &Args, head: &[u8]) {
    if let Some(kind) = FileKind::of_head(head).filter(|_| !args.quiet) {
        let note = format!("note: looks like {kind}, which is copied as it is");
        messages::remark_of(args.source.as_encoded_bytes(), &note);
    }
}

/// Number of bytes of a stream that are examined to detect its format.
const HEAD: u64 = 4096;
