//! `struct blksum_btrfs`: the verification of btrfs file systems.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::ptr;
use std::slice;
use std::sync::Arc;

use blkbtrfs::{Category, Device, FileSystems, Part, Place, Report, Unverified, Verdict};
use blksum::Progress;

use crate::boundary::{put, quiet, run};
use crate::check::name;
use crate::error_object::{Error, text};
use crate::failure::Failure;
use crate::handle::{self, Handle};
use crate::image::{Image, Opened};
use crate::job::{Watch, blksum_progress};
use crate::options::{Options, settings};
use crate::pass::{DIFFERENT, EQUAL, UNKNOWN};
use crate::settings::Settings;

/// `struct blksum_btrfs`.
pub enum Btrfs {}

/// The result of a verification.
pub(crate) struct Verified {
    verdict: c_int,
    /// Number of wrong blocks in each category.
    counts: Vec<u64>,
    findings: Vec<Found>,
    problems: Vec<CString>,
}

/// A finding, with the texts that its pointers lead to.
struct Found {
    category: u32,
    subject: CString,
    reason: CString,
    device: Option<CString>,
    logical: Option<u64>,
    place: Option<Place>,
    length: u64,
    blocks: u64,
    mirrors: u32,
    files: Vec<CString>,
}

impl Handle for Btrfs {
    type Value = Verified;
    const TAG: u32 = u32::from_be_bytes(*b"btrf");
    const NOUN: &'static str = "result for file systems";
}

/// `struct blksum_btrfs_finding`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Finding {
    /// What is wrong.
    pub subject: *const c_char,
    /// How it is wrong.
    pub reason: *const c_char,
    /// Name of the device, or null.
    pub device: *const c_char,
    /// Offset on the device in bytes, or `UINT64_MAX`.
    pub offset: u64,
    /// Address in the file system, or `UINT64_MAX`.
    pub logical: u64,
    /// Length in bytes.
    pub length: u64,
    /// Number of adjacent blocks.
    pub blocks: u64,
    /// An `enum blksum_btrfs_category`.
    pub category: u32,
    /// Number of the mirror from 1, or 0.
    pub mirror: u32,
    /// Number of mirrors.
    pub mirrors: u32,
    /// 0.
    pub reserved: u32,
}

impl Verified {
    fn new(report: &Report) -> Self {
        let verdict = match () {
            () if !report.is_clean() => DIFFERENT,
            () if !report.is_complete() => UNKNOWN,
            () => EQUAL,
        };
        let of = |verdict: &'_ Verdict| -> Vec<_> {
            verdict.findings.iter().map(|finding| Found::new(verdict, finding)).collect()
        };
        Self {
            verdict,
            counts: Category::ALL.iter().map(|category| report.count(*category)).collect(),
            findings: report.verdicts.iter().flat_map(of).collect(),
            problems: report.problems.iter().map(|problem| text(problem.to_string())).collect(),
        }
    }
}

impl Found {
    fn new(verdict: &Verdict, finding: &blkbtrfs::Finding) -> Self {
        Self {
            category: finding.category() as u32,
            subject: text(finding.subject.name()),
            reason: text(finding.problem.to_string()),
            device: verdict.device_of(finding).map(text),
            logical: finding.logical,
            place: finding.place,
            length: finding.length,
            blocks: finding.blocks,
            mirrors: finding.mirrors,
            files: finding.owners.paths().map(name).collect(),
        }
    }

    fn to_c(&self) -> Finding {
        Finding {
            subject: self.subject.as_ptr(),
            reason: self.reason.as_ptr(),
            device: self.device.as_ref().map_or(ptr::null(), |device| device.as_ptr()),
            offset: self.place.map_or(u64::MAX, |place| place.physical),
            logical: self.logical.unwrap_or(u64::MAX),
            length: self.length,
            blocks: self.blocks,
            category: self.category,
            mirror: self.place.map_or(0, |place| place.mirror),
            mirrors: self.mirrors,
            reserved: 0,
        }
    }
}

/// Returns the images in an array.
///
/// # Safety
///
/// `images` is null or has `count` pointers, each of which is null or came from this library.
unsafe fn opened(images: *const *const Image, count: usize) -> Result<Vec<Arc<Opened>>, Failure> {
    if images.is_null() || count == 0 {
        return Err(Failure::argument("there are no images"));
    }
    if count > MAX_IMAGES {
        return Err(Failure::argument(format!("there are more than {MAX_IMAGES} images")));
    }
    // SAFETY: the caller's promise; `images` is not null.
    let images = unsafe { slice::from_raw_parts(images, count) };
    // SAFETY: the caller's promise.
    images.iter().map(|image| unsafe { handle::value(*image) }).collect()
}

fn verify(
    images: &[Arc<Opened>],
    settings: &Settings,
    progress: &Progress,
) -> Result<Verified, Failure> {
    let disk = |image: &Arc<Opened>| {
        let (selected, mut name) = (&image.selected, image.name.display().to_string());
        let part = selected.part().map(|_| Part::Whole);
        if let Some(number) = selected.partition() {
            name += &Part::Partition(number).to_string();
        }
        (Device { name, source: Arc::new(selected.source().clone()) }, part)
    };
    let disks: Vec<_> = images.iter().map(disk).collect();
    let failed = |unverified: Unverified| Failure::of_btrfs(&unverified);
    let all = FileSystems::open(&disks).map_err(failed)?;
    progress.set_total(all.verified_bytes());
    let report = all.verify(&settings.btrfs(), &|bytes| {
        progress.advance(bytes, bytes);
        if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let report = report.map_err(|error| failed(Unverified { name: String::new(), error }))?;
    // What was expected was an estimate.
    progress.set_total(progress.done());
    Ok(Verified::new(&report))
}

/// `blksum_btrfs_verify()`.
///
/// # Safety
///
/// `images` is null or has `count` pointers. Objects are null or came from this library, `error` is null or can be written,
/// and `progress` can be called with `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_btrfs_verify(
    images: *const *const Image,
    count: usize,
    opts: *const Options,
    progress: blksum_progress,
    user_data: *mut c_void,
    error: *mut *mut Error,
) -> *mut Btrfs {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, ptr::null_mut(), || {
            let (images, settings) = (opened(images, count)?, settings(opts)?);
            let verified = Watch { progress, user_data }
                .run(move |progress| verify(&images, &settings, progress))?;
            Ok(handle::create(verified))
        })
    }
}

/// `blksum_btrfs_verdict()`.
///
/// # Safety
///
/// Objects are null or came from this library, and `error` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_btrfs_verdict(
    btrfs: *const Btrfs,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { run(error, -1, || Ok(handle::value(btrfs)?.verdict)) }
}

/// `blksum_btrfs_wrong()`.
///
/// # Safety
///
/// Like [`blksum_btrfs_verdict`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_btrfs_wrong(
    btrfs: *const Btrfs,
    category: c_int,
    error: *mut *mut Error,
) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let counts = &handle::value(btrfs)?.counts;
            let count = usize::try_from(category).ok().and_then(|index| counts.get(index));
            let count = count
                .ok_or_else(|| Failure::argument(format!("there is no category {category}")))?;
            Ok(i64::try_from(*count).unwrap_or(i64::MAX))
        })
    }
}

/// `blksum_btrfs_count()`.
///
/// # Safety
///
/// Like [`blksum_btrfs_verdict`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_btrfs_count(btrfs: *const Btrfs, error: *mut *mut Error) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { run(error, -1, || Ok(handle::value(btrfs)?.findings.len() as i64)) }
}

/// `blksum_btrfs_get()`.
///
/// # Safety
///
/// Like [`blksum_btrfs_verdict`], and `finding` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_btrfs_get(
    btrfs: *const Btrfs,
    index: usize,
    finding: *mut Finding,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise. The texts live as long as the object.
    unsafe {
        run(error, -1, || {
            let findings = &handle::value(btrfs)?.findings;
            let found = findings.get(index).ok_or_else(|| {
                Failure::argument(format!("there is no finding {index} of {}", findings.len()))
            })?;
            put(finding, found.to_c(), "finding")?;
            Ok(0)
        })
    }
}

/// `blksum_btrfs_file()`.
///
/// # Safety
///
/// `btrfs` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_btrfs_file(
    btrfs: *const Btrfs,
    index: usize,
    file: usize,
) -> *const c_char {
    quiet(ptr::null(), || {
        // SAFETY: the caller's promise. The text lives as long as the object.
        let btrfs = unsafe { handle::value(btrfs) }?;
        let file = btrfs.findings.get(index).and_then(|it| it.files.get(file));
        Ok(file.map_or(ptr::null(), |it| it.as_ptr()))
    })
}

/// `blksum_btrfs_problem()`.
///
/// # Safety
///
/// `btrfs` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_btrfs_problem(btrfs: *const Btrfs, index: usize) -> *const c_char {
    quiet(ptr::null(), || {
        // SAFETY: the caller's promise. The text lives as long as the object.
        let btrfs = unsafe { handle::value(btrfs) }?;
        Ok(btrfs.problems.get(index).map_or(ptr::null(), |it| it.as_ptr()))
    })
}

/// `blksum_btrfs_free()`.
///
/// # Safety
///
/// `btrfs` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_btrfs_free(btrfs: *mut Btrfs) {
    // SAFETY: the caller's promise.
    unsafe { handle::free(btrfs) }
}

/// More images than a file system has devices.
const MAX_IMAGES: usize = 1 << 16;
