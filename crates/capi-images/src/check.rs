//! `struct blksum_check`: the checksums that an image holds of itself.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use blkcheck::{
    Finding, FindingKind, Place, Row, Sink, Verdict, check_selected, damaged_image, is_damage,
};

use crate::boundary::{put, quiet, run};
use crate::error_object::{Error, text};
use crate::failure::Failure;
use crate::handle::{self, Handle};
use crate::image::Image;
use crate::job::{Watch, blksum_progress};
use crate::options::{Options, settings};
use crate::pass::{DIFFERENT, EQUAL, UNKNOWN};

/// `struct blksum_check`.
pub enum Check {}

/// The result of a check.
pub(crate) struct Checked {
    verdict: c_int,
    layers: Vec<Layer>,
    findings: Vec<Found>,
}

/// A layer, with the texts that its pointers lead to.
struct Layer {
    row: Row,
    place: CString,
    kind: CString,
    label: Option<CString>,
    uuid: Option<CString>,
    remarks: Vec<CString>,
}

/// A finding, with the texts that its pointers lead to.
struct Found {
    finding: Finding,
    layer: usize,
    structure: CString,
    reason: CString,
    files: Vec<CString>,
}

impl Handle for Check {
    type Value = Checked;
    const TAG: u32 = u32::from_be_bytes(*b"chck");
    const NOUN: &'static str = "result of a check";
}

/// `struct blksum_check_layer`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheckLayer {
    /// Where the layer is.
    pub place: *const c_char,
    /// What it is.
    pub kind: *const c_char,
    /// Its label or name, or null.
    pub label: *const c_char,
    /// Its UUID or serial number, or null.
    pub uuid: *const c_char,
    /// Offset of its first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Number of structures whose checksums match.
    pub verified: u64,
    /// Their bytes.
    pub verified_bytes: u64,
    /// Bytes of content without a checksum, or `UINT64_MAX`.
    pub unprotected_bytes: u64,
    /// Number of structures whose checksums do not match.
    pub mismatches: u64,
    /// Number of parts that violate rules.
    pub damaged: u64,
    /// Number of parts that cannot be read.
    pub unreadable: u64,
    /// Number of parts that were not verified.
    pub skipped: u64,
    /// Number of clusters that are not used, or `UINT64_MAX`.
    pub leaks: u64,
    /// Number of reference counts that are out of date, or `UINT64_MAX`.
    pub outdated: u64,
    /// Number of the partition, or 0.
    pub partition: u32,
    /// An `enum blksum_verdict`.
    pub verdict: u32,
}

/// `struct blksum_check_finding`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheckFinding {
    /// Name of the structure.
    pub structure: *const c_char,
    /// What is wrong with it.
    pub reason: *const c_char,
    /// Index of the layer.
    pub layer: u64,
    /// Offset in the content, or in the file of the image.
    pub offset: u64,
    /// Offset in the layer.
    pub layer_offset: u64,
    /// Length in bytes, or 0.
    pub length: u64,
    /// Number of the inode or file record, or `UINT64_MAX`.
    pub object: u64,
    /// Number of findings that it stands for.
    pub count: u64,
    /// An `enum blksum_check_problem`.
    pub problem: u32,
    /// 0.
    pub reserved: u32,
}

impl Checked {
    fn new() -> Self {
        Self { verdict: EQUAL, layers: Vec::new(), findings: Vec::new() }
    }
}

impl Sink for Checked {
    fn finding(&mut self, _: &Place, _: &'static str, finding: &Finding) {
        self.findings.push(Found {
            // Its layer comes after it.
            layer: self.layers.len(),
            structure: text(finding.structure),
            reason: text(finding.reason.as_str()),
            files: finding.paths.iter().map(|path| name(path)).collect(),
            finding: finding.clone(),
        });
    }

    fn row(&mut self, row: &Row) {
        self.layers.push(Layer {
            place: text(row.place.to_string()),
            kind: text(row.kind),
            label: row.label.as_deref().map(name),
            uuid: row.uuid.as_deref().map(text),
            remarks: row.remarks.iter().map(|remark| text(remark.as_str())).collect(),
            row: row.clone(),
        });
    }
}

impl Layer {
    fn to_c(&self) -> CheckLayer {
        let Self { row, .. } = self;
        let (verified, verified_bytes) = row.verified_total();
        CheckLayer {
            place: self.place.as_ptr(),
            kind: self.kind.as_ptr(),
            label: self.label.as_ref().map_or(ptr::null(), |label| label.as_ptr()),
            uuid: self.uuid.as_ref().map_or(ptr::null(), |uuid| uuid.as_ptr()),
            offset: row.offset,
            length: row.length,
            verified,
            verified_bytes,
            unprotected_bytes: row.unprotected.unwrap_or(u64::MAX),
            mismatches: row.mismatches,
            damaged: row.damaged,
            unreadable: row.unreadable,
            skipped: row.skipped,
            leaks: row.structure.map_or(u64::MAX, |it| it.leaks),
            outdated: row.structure.map_or(u64::MAX, |it| it.outdated),
            partition: row.place.partition().unwrap_or(0),
            verdict: verdict(row.verdict()) as u32,
        }
    }
}

impl Found {
    fn to_c(&self) -> CheckFinding {
        let Finding { kind, offset, length, disk_offset, object, count, .. } = self.finding;
        CheckFinding {
            structure: self.structure.as_ptr(),
            reason: self.reason.as_ptr(),
            layer: self.layer as u64,
            offset: disk_offset,
            layer_offset: offset,
            length,
            object: object.unwrap_or(u64::MAX),
            count,
            problem: match kind {
                FindingKind::Mismatch => 0,
                FindingKind::Damaged => 1,
                FindingKind::Unreadable => 2,
                FindingKind::Skipped => 3,
            },
            reserved: 0,
        }
    }
}

fn verdict(verdict: Verdict) -> c_int {
    match verdict {
        Verdict::Clean => EQUAL,
        Verdict::Damaged => DIFFERENT,
        Verdict::Incomplete => UNKNOWN,
    }
}

/// Returns a name for C. One with a NUL ends there, as no file name has one.
pub(crate) fn name(name: &[u8]) -> CString {
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    CString::new(&name[..length]).unwrap_or_default()
}

/// `blksum_image_check()`.
///
/// # Safety
///
/// Objects are null or came from this library, `error` is null or can be written, and `progress` can be called with
/// `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_check(
    image: *const Image,
    opts: *const Options,
    progress: blksum_progress,
    user_data: *mut c_void,
    error: *mut *mut Error,
) -> *mut Check {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, ptr::null_mut(), || {
            let (image, settings) = (handle::value(image)?, settings(opts)?);
            let checked = Watch { progress, user_data }.run(move |progress| {
                let mut checked = Checked::new();
                let (selected, options) = (&image.selected, settings.check());
                let report = check_selected(selected, &options, progress, &mut checked);
                let report = match report {
                    Err(blkcheck::Error::Image(error)) if is_damage(&error) => {
                        damaged_image(error.reason(), &mut checked)
                    }
                    report => report.map_err(|error| Failure::of_check(&error, &image.name))?,
                };
                checked.verdict = verdict(report.verdict());
                Ok(checked)
            })?;
            Ok(handle::create(checked))
        })
    }
}

/// `blksum_check_verdict()`.
///
/// # Safety
///
/// Objects are null or came from this library, and `error` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_check_verdict(
    check: *const Check,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { run(error, -1, || Ok(handle::value(check)?.verdict)) }
}

/// `blksum_check_layers()`.
///
/// # Safety
///
/// Like [`blksum_check_verdict`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_check_layers(check: *const Check, error: *mut *mut Error) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { run(error, -1, || Ok(handle::value(check)?.layers.len() as i64)) }
}

/// `blksum_check_layer()`.
///
/// # Safety
///
/// Like [`blksum_check_verdict`], and `layer` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_check_layer(
    check: *const Check,
    index: usize,
    layer: *mut CheckLayer,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise. The texts live as long as the object.
    unsafe {
        run(error, -1, || {
            let layers = &handle::value(check)?.layers;
            let found = layers.get(index).ok_or_else(|| {
                Failure::argument(format!("there is no layer {index} of {}", layers.len()))
            })?;
            put(layer, found.to_c(), "layer")?;
            Ok(0)
        })
    }
}

/// `blksum_check_remark()`.
///
/// # Safety
///
/// `check` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_check_remark(
    check: *const Check,
    layer: usize,
    index: usize,
) -> *const c_char {
    quiet(ptr::null(), || {
        // SAFETY: the caller's promise. The text lives as long as the object.
        let check = unsafe { handle::value(check) }?;
        let remark = check.layers.get(layer).and_then(|it| it.remarks.get(index));
        Ok(remark.map_or(ptr::null(), |it| it.as_ptr()))
    })
}

/// `blksum_check_count()`.
///
/// # Safety
///
/// Like [`blksum_check_verdict`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_check_count(check: *const Check, error: *mut *mut Error) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { run(error, -1, || Ok(handle::value(check)?.findings.len() as i64)) }
}

/// `blksum_check_get()`.
///
/// # Safety
///
/// Like [`blksum_check_verdict`], and `finding` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_check_get(
    check: *const Check,
    index: usize,
    finding: *mut CheckFinding,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise. The texts live as long as the object.
    unsafe {
        run(error, -1, || {
            let findings = &handle::value(check)?.findings;
            let found = findings.get(index).ok_or_else(|| {
                Failure::argument(format!("there is no finding {index} of {}", findings.len()))
            })?;
            put(finding, found.to_c(), "finding")?;
            Ok(0)
        })
    }
}

/// `blksum_check_file()`.
///
/// # Safety
///
/// `check` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_check_file(
    check: *const Check,
    index: usize,
    file: usize,
) -> *const c_char {
    quiet(ptr::null(), || {
        // SAFETY: the caller's promise. The text lives as long as the object.
        let check = unsafe { handle::value(check) }?;
        let file = check.findings.get(index).and_then(|it| it.files.get(file));
        Ok(file.map_or(ptr::null(), |it| it.as_ptr()))
    })
}

/// `blksum_check_free()`.
///
/// # Safety
///
/// `check` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_check_free(check: *mut Check) {
    // SAFETY: the caller's promise.
    unsafe { handle::free(check) }
}
