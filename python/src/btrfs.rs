//! `blkhash.btrfs_verify()`: the btrfs file systems in images.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use blkbtrfs::{
    Category, Device, FileSystems, Finding, Options, Part, Report, Subject, Unverified, Verdict,
};
use blksum::Progress;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::errors::Failure;
use crate::input::Input;
use crate::job::Watch;
use crate::types;

/// Verifies every checksum and the structure of the btrfs file systems in images, offline, as
/// `blkhash btrfs verify` does.
///
/// Args:
///     images: one or more, each an `Image` or the name of one. A file system on several devices
///         needs all of them, in any order.
///     limit: largest number of findings that are kept. All are counted.
///     max_files: largest number of files that are named for each finding.
///     threads: number of threads, by default one per processor.
///     progress: called a few times a second and at the end, with the bytes done and their total,
///         which is an estimate until then.
///     cancel: an object like `threading.Event`, which ends the work once it is set.
///     partition: number of the only partition to look at, by default every one with btrfs.
#[doc = include_str!("options.txt")]
///
/// Returns:
///     A `BtrfsReport`. All is well if its `is_clean` and its `is_complete` are true. Findings are
///     no exceptions.
///
/// Raises:
///     ImageError: an image cannot be opened or read, changed meanwhile (`ChangedError`), or there
///         is no file system that can be verified.
///     CancelledError: `cancel` was set.
///     ValueError, TypeError: an argument is invalid. Options for opening are for names: an `Image`
///         has its own.
///
/// >>> report = blkhash.btrfs_verify("btrfs.qcow2")
/// >>> report.is_clean, report.is_complete
/// (True, True)
#[pyfunction]
#[pyo3(signature = (*images, limit=100, max_files=16, threads=None, progress=None, cancel=None, **options))]
#[expect(clippy::too_many_arguments, reason = "as in Python")]
pub fn btrfs_verify<'py>(
    py: Python<'py>,
    images: &Bound<'py, PyTuple>,
    limit: u64,
    max_files: usize,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    if images.is_empty() {
        return Err(PyTypeError::new_err("btrfs_verify() needs an image"));
    }
    let inputs = images.iter().map(|image| Input::with_options(&image, options));
    let inputs: Vec<_> = inputs.collect::<PyResult<_>>()?;
    let settings = Options::default()
        .with_threads(arguments::threads(threads)?)
        .with_max_owners(max_files)
        .with_max_findings(Some(limit));
    let watch = Watch { progress, cancel };
    let report = watch.run(py, move |progress| verify(&inputs, &settings, progress))?;
    into_object(py, &report)
}

/// Verifies the file systems in all images, which stay open meanwhile.
fn verify(inputs: &[Input], settings: &Options, progress: &Progress) -> Result<Report, Failure> {
    let (mut disks, mut names) = (Vec::new(), Vec::new());
    for input in inputs {
        let (disk, name) = input.with_disk(|image| {
            let (selected, mut name) = (&image.selected, image.name.display().to_string());
            let part = selected.part().map(|_| Part::Whole);
            if let Some(number) = selected.partition() {
                name += &Part::Partition(number).to_string();
            }
            let source = Arc::new(selected.source().clone());
            Ok(((Device { name, source }, part), image.name.clone()))
        })?;
        names.push((disk.0.name.clone(), name));
        disks.push(disk);
    }
    let failed = |unverified: Unverified| {
        let is_of = |shown: &str| unverified.name.starts_with(shown);
        let name = names.iter().filter(|(shown, _)| is_of(shown)).max_by_key(|it| it.0.len());
        let name: Option<OsString> = name.map(|(_, name)| name.clone());
        Failure::Btrfs(unverified, name)
    };
    let all = FileSystems::open(&disks).map_err(failed)?;
    progress.set_total(all.verified_bytes());
    let report = all.verify(settings, &|bytes| {
        progress.advance(bytes, bytes);
        if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let report = report.map_err(|error| failed(Unverified { name: String::new(), error }))?;
    // What was expected was an estimate.
    progress.set_total(progress.done());
    Ok(report)
}

/// Returns the object for Python.
fn into_object<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyAny>> {
    let systems = report.verdicts.iter().map(|verdict| file_system(py, verdict));
    let systems = PyTuple::new(py, systems.collect::<PyResult<Vec<_>>>()?)?;
    let problems = report.problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    let problems = PyTuple::new(py, problems)?;
    types::BTRFS_REPORT.make(py, (systems, problems, PyTuple::new(py, &report.others)?))
}

fn file_system<'py>(py: Python<'py>, verdict: &Verdict) -> PyResult<Bound<'py, PyAny>> {
    let Verdict { superblock, summary, .. } = verdict;
    let counts = PyDict::new(py);
    for category in Category::ALL {
        counts.set_item(category.name(), summary.count(*category))?;
    }
    let devices = PyDict::new(py);
    for (id, name) in &verdict.devices {
        devices.set_item(id, name)?;
    }
    let missing = PyTuple::new(py, verdict.missing.iter().map(|device| device.id))?;
    let findings = verdict.findings.iter().map(|it| finding(py, verdict, it));
    let findings = PyTuple::new(py, findings.collect::<PyResult<Vec<_>>>()?)?;
    let fields = (
        superblock.fsid.to_string(),
        OsStr::from_bytes(&superblock.label),
        superblock.checksum_type.name(),
        devices,
        missing,
        counts,
        findings,
        summary.verified.data_bytes,
        summary.verified.tree_bytes,
        summary.verified.unchecked_bytes,
        summary.missing_bytes,
        summary.is_complete(),
    );
    types::BTRFS_FILE_SYSTEM.make(py, fields)
}

fn finding<'py>(
    py: Python<'py>,
    verdict: &Verdict,
    finding: &Finding,
) -> PyResult<Bound<'py, PyAny>> {
    let Finding { subject, place, .. } = finding;
    let inode = match subject {
        Subject::Inode { inode, .. } => Some(inode),
        _ => None,
    };
    let files = finding.owners.paths().map(OsStr::from_bytes);
    let files = PyTuple::new(py, files.collect::<Vec<_>>())?;
    // A tuple of Rust converts no more than 12 fields.
    let fields = [
        finding.category().name().into_pyobject(py)?.into_any(),
        subject.name().into_pyobject(py)?.into_any(),
        finding.problem.to_string().into_pyobject(py)?.into_any(),
        verdict.device_of(finding).into_pyobject(py)?.into_any(),
        place.map(|place| place.physical).into_pyobject(py)?.into_any(),
        finding.logical.into_pyobject(py)?.into_any(),
        finding.length.into_pyobject(py)?.into_any(),
        finding.blocks.into_pyobject(py)?.into_any(),
        place.map(|place| place.mirror).into_pyobject(py)?.into_any(),
        finding.mirrors.into_pyobject(py)?.into_any(),
        PyTuple::new(py, &finding.good_mirrors)?.into_any(),
        finding.rebuildable.into_pyobject(py)?.into_any(),
        subject.tree().map(|tree| tree as i64).into_pyobject(py)?.into_any(),
        inode.into_pyobject(py)?.into_any(),
        files.into_any(),
        (!finding.owners.is_partial).into_pyobject(py)?.to_owned().into_any(),
    ];
    types::BTRFS_FINDING.make(py, PyTuple::new(py, fields)?)
}
