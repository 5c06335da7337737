//! `blkhash btrfs verify`

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use blkbtrfs::{Error, FileSystem, Options};
use blkhash::{Algorithm, Implementation, implementations};
use blksum::Progress;

use super::args;
use super::mounted;
use super::open::{self, Group};
use super::output::Output;
use crate::blkhash::limit::Limit;
use crate::blkhash::suggest::instead_of;
use crate::problem::{Failure, Outcome, Problem};
use crate::progress::{Amount, Counts, Reporter};
use crate::{implementation, messages, quote};

/// Verifies every file system on the command line.
pub fn run(args: &args::Verify) -> Result<Outcome, Failure> {
    let implementation = args.implementation.as_deref().map(find).transpose()?;
    let names = without_folders(&args.names);
    // Whether a file is on a btrfs cannot be asked in the sandbox.
    let on_btrfs: Vec<_> =
        names.iter().filter_map(|name| Some((name, mounted::below(Path::new(name))?))).collect();
    let options = args.images.opening.confine(&names)?;
    let (groups, has_failed) = open::open(&names, &options, &args.images, |_| Ok(()));
    for (name, device) in on_btrfs.iter().filter(|(name, _)| !is_in(&groups, name)) {
        let device = quote::name(device.as_os_str().as_bytes());
        messages::remark_of(
            name.as_encoded_bytes(),
            &format!(
                "is itself a file of the btrfs on {device}: the kernel compares its checksums when it is \
                 read, and 'blkhash btrfs verify {device}' lists the files that are damaged"
            ),
        );
    }
    let is_complete = !has_failed && names.len() == args.names.len();
    let mut outcome = if is_complete { Outcome::Clean } else { Outcome::Unknown };
    let mut limit = Limit::new(args.max_errors);
    let when = args.progress.when();
    let reporter = Reporter::new(when, Some(groups.len() as u64));
    for group in groups {
        let name = group.name.clone();
        reporter.begin(&name);
        outcome = outcome.and(verify(args, group, implementation, &mut limit, &reporter)?);
        reporter.end(&name, None);
    }
    Ok(outcome)
}

/// Returns the names without folders, which are reported with what to do instead.
fn without_folders(names: &[OsString]) -> Vec<OsString> {
    let is_image = |name: &&OsString| match mounted::find(Path::new(name)) {
        None => true,
        Some(found) => {
            Problem::from(found.map_or_else(|reason| reason, |it| it.instead(name))).report(name);
            false
        }
    };
    names.iter().filter(is_image).cloned().collect()
}

/// Returns whether a file system was found in the image `name`.
fn is_in(groups: &[Group], name: &OsStr) -> bool {
    groups
        .iter()
        .flat_map(|group| group.names.values())
        .any(|full| full.as_encoded_bytes().starts_with(name.as_encoded_bytes()))
}

/// The implementation of one of btrfs's algorithms.
fn find(name: &str) -> Result<Implementation, Failure> {
    let mut algorithms =
        blkbtrfs::ChecksumType::ALL.map(blkbtrfs::ChecksumType::algorithm).into_iter();
    let is_of = |algorithm: &Algorithm| name.starts_with(&format!("{algorithm}-"));
    match algorithms.find(is_of).map(|algorithm| implementation::find(algorithm, name)) {
        Some(Ok(found)) => Ok(found),
        Some(Err(error)) => Err(Failure::usage(error.to_string())),
        None => {
            let all = blkbtrfs::ChecksumType::ALL.map(blkbtrfs::ChecksumType::algorithm);
            let names: Vec<_> =
                all.into_iter().flat_map(implementations).map(Implementation::name).collect();
            let reason = format!("{name}: no implementation of a checksum of btrfs");
            Err(Failure::usage(format!("{reason}: {}", instead_of(name, &names))))
        }
    }
}

fn verify(
    args: &args::Verify,
    group: Group,
    implementation: Option<Implementation>,
    limit: &mut Limit,
    reporter: &Reporter,
) -> Result<Outcome, Failure> {
    let started = Instant::now();
    let fail = |error: &Error| Ok(Problem::of_btrfs(error, &group.name).report(&group.name));
    let filesystem =
        match FileSystem::open_with(group.found.devices, group.found.seeds, implementation) {
            Ok(filesystem) => filesystem,
            Err(error) => return fail(&error),
        };
    crate::blkhash::warn([filesystem.superblock().checksum_type.algorithm()]);
    let defaults = Options::default();
    let options = defaults
        .with_threads(args.threads.map_or(defaults.threads, usize::from))
        .with_max_owners(args.max_files.map_or(defaults.max_owners, usize::from))
        .with_max_findings(limit.findings());
    let output = Mutex::new(Output::new(args.json, &group.name, group.names, *limit));
    let progress = Arc::new(Progress::new());
    let total = filesystem.verified_bytes();
    // All of it is read: there are no holes.
    let watch = reporter.watch(Some(Amount { total, stored: Some(total) }), {
        let progress = progress.clone();
        move || {
            let done = progress.done();
            Counts { done, data: done, read: done }
        }
    });
    let advance = |bytes| {
        progress.advance(bytes, bytes);
        ControlFlow::Continue(())
    };
    let verified = blkbtrfs::verify(&filesystem, &options, &advance, &|finding| {
        output.lock().expect("no thread panicked").finding(&filesystem, finding);
    });
    drop(watch);
    let summary = match verified {
        Ok(summary) => summary,
        Err(error) => return fail(&error),
    };
    let output = output.into_inner().expect("no thread panicked");
    *limit = output.limit();
    let is_fine = summary.is_clean() && summary.is_complete();
    if !(args.quiet && is_fine) {
        output.summary(&filesystem, &summary, started.elapsed())?;
    }
    Ok(match () {
        () if !summary.is_clean() => Outcome::Errors,
        () if !summary.is_complete() => Outcome::Unknown,
        () => Outcome::Clean,
    })
}
