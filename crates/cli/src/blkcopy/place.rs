//! The destination on the command line.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;

use blkcopy::{Destination, Existing, FileName, Found, Others, Reading, Refused};
use blkimage::{Identity, Image, Location, OpenOptions};
use rustix::fs::OFlags;

use super::args::Args;
use super::log;
use crate::image::names::missing_destination;
use crate::map::open::base_of_state;
use crate::messages;
use crate::outputs::{self, Leftover, Named, mode_of_images};
use crate::problem::{Outcome, Problem};
use crate::stdio;

/// A destination before the process is restricted.
pub struct Place {
    place: blkcopy::Place,
    leftover: Leftover,
}

/// What a destination was before the copy.
pub struct Kept {
    pub found: Found,
    /// Removes a new file.
    pub leftover: Leftover,
}

impl Place {
    /// Returns the new file that the destination is.
    pub fn leftover(&self) -> Leftover {
        self.leftover
    }

    /// Returns the destination for a copy of this source, which is `None` for a stream.
    pub fn ready(
        self,
        args: &Args,
        source: Option<&Image>,
        options: &OpenOptions,
    ) -> Result<(Box<dyn Destination>, Kept), Problem> {
        let Self { place, leftover } = self;
        let kept = Kept { found: place.found().clone(), leftover };
        let destination = place.into_destination(source, args.zeros.unwrap_or_default(), options);
        let destination = destination.map_err(|refused| {
            leave_alone(leftover);
            problem(args, &refused)
        })?;
        leftover.share(source);
        Ok((destination, kept))
    }
}

impl Kept {
    /// Keeps a new file, if its name still leads to it.
    pub fn keep(&self, args: &Args) -> Result<(), Problem> {
        self.found.check_named().map_err(|refused| problem(args, &refused))?;
        self.leftover.keep();
        Ok(())
    }
}

/// Opens a file or a device. `None` is standard output.
pub fn open(args: &Args) -> Result<Option<Place>, Problem> {
    let existing = match args {
        Args { force: true, .. } => Existing::Overwrite,
        args if args.update || args.needs_old() => Existing::Update,
        Args { resume: true, .. } => Existing::Resume,
        _ => Existing::Refuse,
    };
    let name = &*args.destination;
    if name == "-" {
        return match io::stdout().is_terminal() {
            true => Err(Problem::new("is a terminal").with_hint("redirect it to a file or a pipe")),
            false => Ok(None),
        };
    }
    let refused = |refused| problem(args, &refused);
    let stdin = stdio::stdin();
    let source = match &stdin {
        Ok(stdin) if args.source == "-" => Reading::File(stdin),
        _ => Reading::Name(Location::new(&args.source)),
    };
    let files = others(args);
    let others = Others { source: Some(source), files: &files };
    let path = match Location::new(name) {
        Location::Path(path) => path,
        _ => {
            let uri = name.to_str().ok_or("is a URI that is not UTF-8")?;
            let place = blkcopy::Place::export(uri, existing, &others).map_err(refused)?;
            return Ok(Some(Place { place, leftover: Leftover::NONE }));
        }
    };
    let name = FileName::new(path, existing).map_err(refused)?;
    if name.is_device() {
        let place = name.open_device(&others).map_err(refused)?;
        return Ok(Some(Place { place, leftover: Leftover::NONE }));
    }
    let (mode, flags) = (mode_of_images([&*args.source]), OFlags::RDWR | OFlags::NONBLOCK);
    let remote = remote(&args.destination).or_else(|| missing_destination(&args.destination));
    let opened = outputs::open_locked(path, Named::ByUser, mode, flags);
    let opened = opened.map_err(|problem| match &remote {
        Some(way) if problem.hint.is_none() => problem.with_hint(way.clone()),
        _ => problem,
    })?;
    let metadata = opened.file.metadata().map_err(|error| Problem::from(&error))?;
    let leftover = match opened.leftover {
        leftover if leftover.is_new() || metadata.len() > 0 => leftover,
        _ => Leftover::emptied(&opened.file, &metadata),
    };
    if let Some(way) = remote.filter(|_| leftover.is_new() && !args.quiet) {
        let note = format!("note: is a file of this host: {way}");
        messages::remark_of(args.destination.as_encoded_bytes(), &note);
    }
    if args.needs_old() && leftover.is_new() {
        let hint = "only a part is written, so it must have the rest";
        return Err(Problem::new("does not exist").with_hint(hint));
    }
    let place = name.with_file(opened.file, leftover.is_new(), &others);
    let place = place.map_err(|reason| {
        leave_alone(leftover);
        refused(reason)
    })?;
    Ok(Some(Place { place, leftover }))
}

/// Leaves a file alone that was empty and that is refused, as another program may have written to it since.
fn leave_alone(leftover: Leftover) {
    if !leftover.is_new() {
        leftover.keep();
    }
}

/// Returns the way to copy to another host, if the name looks like one there.
fn remote(name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    let (host, path) = match name.strip_prefix("ssh://") {
        Some(rest) => rest.split_once('/')?,
        // An address such as https://host/path names no host to log in to.
        None => name
            .split_once(':')
            .filter(|(host, path)| !host.contains('/') && !path.starts_with("//"))?,
    };
    let is_plain =
        |it: &str| !it.is_empty() && it.chars().all(|c| c.is_alphanumeric() || "@._-/".contains(c));
    (is_plain(host) && is_plain(path))
        .then(|| format!("blkcopy SOURCE - | ssh {host} 'blkcopy - {path}' copies to another one"))
}

/// Refuses standard output that is a file which is read.
pub fn check_stdout(args: &Args, image: &Image) -> Result<(), Problem> {
    let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let Ok(metadata) = stdout.and_then(|file| file.metadata()) else { return Ok(()) };
    let own = Identity::new(&metadata);
    if args.delta_from.as_deref().and_then(Identity::of) == Some(own) {
        return Err("is the map of --delta-from".into());
    }
    // A terminal or a pipe is no file of an image.
    if own.is_in(image) { Err("is a file of the source".into()) } else { Ok(()) }
}

/// Returns the files that other options or descriptors of the command name.
fn others(args: &Args) -> Vec<(Identity, &'static str)> {
    let options = [
        (args.opening.secret_file.as_deref(), "the file of --secret-file"),
        (args.map.as_deref(), "the file of --map"),
        (args.delta_from.as_deref(), "the map of --delta-from"),
        (args.destination_map.as_deref(), "the map of --destination-map"),
        (args.expect_map.as_deref(), "the map of --expect-map"),
        (args.changes.as_deref().map(Path::new), "the list of --changes"),
        (args.apply.then(|| Path::new(&args.source)), "the delta"),
    ];
    // MAP@N is a state of the map in the file MAP.
    let of_state = |path: &Path| Identity::of(Path::new(&base_of_state(path.as_os_str())?));
    let identity = |path| Identity::of(path).or_else(|| of_state(path));
    let files = options.into_iter().filter_map(|(path, name)| Some((identity(path?)?, name)));
    // What is printed would be written into the copy.
    let printed = "standard output or standard error: - copies to it";
    let stdin = if args.source == "-" { "a file of the source" } else { "the list of --changes" };
    let streams = [
        (io::stdout().as_fd().try_clone_to_owned().map(File::from), printed),
        (io::stderr().as_fd().try_clone_to_owned().map(File::from), printed),
        (stdio::stdin(), stdin),
    ];
    let reads_stdin = args.source == "-" || args.changes.as_deref().is_some_and(|it| it == "-");
    let streams = streams.into_iter().take(if reads_stdin { 3 } else { 2 });
    let streams = streams.filter_map(|(file, name)| {
        let metadata = file.and_then(|file| file.metadata()).ok()?;
        Some((Identity::new(&metadata), name))
    });
    files.chain(streams).collect()
}

/// Describes why the destination is refused.
pub fn problem(args: &Args, refused: &Refused) -> Problem {
    let problem = Problem::new(refused.to_string());
    match refused {
        _ if refused.is_of_log() => log::refused(args, refused),
        Refused::Open(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            Problem::from(error).with_hint("a device must not be mounted or in use")
        }
        Refused::Open(error) => error.into(),
        Refused::Image(error) => Problem::of_image(error, &args.destination),
        Refused::Used(error) => Problem::new(Problem::of_image(error, &args.destination).reason),
        Refused::Name(kind) if kind.format().is_some() => problem
            .with_hint("copy to a qemu-nbd that serves it; --force makes a raw file of this name"),
        Refused::Name(kind) => match kind.compression() {
            Some(method) => problem.with_hint(format!(
                "blkcopy SOURCE - | {method} > FILE compresses it, --force writes it as it is"
            )),
            None => problem.with_hint("--force writes it as it is"),
        },
        Refused::OtherFormat(_) => {
            problem.with_hint("copy to a qemu-nbd that serves it; --force makes a raw file of it")
        }
        Refused::Url => match missing_destination(&args.destination) {
            Some(way) => problem.with_hint(way),
            None => problem,
        },
        Refused::NoDevice => problem.with_hint("a new file in /dev would be in memory"),
        Refused::Exists if args.map.is_some() => {
            problem.with_hint("--resume continues an interrupted copy, --force overwrites it")
        }
        Refused::Exists => {
            problem.with_hint("--update writes only what differs, --force overwrites it")
        }
        Refused::Holds(_) => {
            problem.with_hint("--force overwrites it, --update writes only what differs")
        }
        Refused::NoCheckpoint => problem.with_hint("--force overwrites it"),
        Refused::Deallocation => Problem::new(format!("--zeros=punch: {refused}")),
        Refused::New => {
            problem.with_hint("remove the map to begin anew").with_outcome(Outcome::Useless)
        }
        Refused::NotCopied(_) => problem
            .with_outcome(Outcome::Errors)
            .with_hint("if it is the interrupted copy, --update without --map writes what differs"),
        Refused::Unreadable(error) => Problem::of_pass(error, &args.source).about(&args.source),
        Refused::Content(error) => Problem::of_pass(error, &args.destination),
        Refused::OtherLength { .. } | Refused::Removed => problem.with_outcome(Outcome::Useless),
        Refused::Busy => problem.with_outcome(Outcome::Busy),
        _ => problem,
    }
}
