//! `blkhash.check()`: what images say of their own health.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use blkcheck::{
    Error, Finding, Options, Place, Report, Row, Sink, check_selected, check_unopened,
    damaged_image, is_damage,
};
use blkimage::Location;
use blksum::Progress;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::errors::{self, Failure};
use crate::input::Input;
use crate::job::Watch;
use crate::open::{Opened, Request};
use crate::types;

/// Verifies, layer by layer, every checksum that an image holds of itself, as `blkhash check` does.
///
/// Args:
///     image: an `Image` or the name of one.
///     max_findings: largest number of findings that are kept. All are counted.
///     threads: number of threads, by default one per processor.
///     progress: called a few times a second and at the end, with the bytes read and their total,
///         which grows with each layer.
///     cancel: an object like `threading.Event`, which ends the work once it is set.
///     partition: number of the only partition to look at, by default the whole disk.
#[doc = include_str!("options.txt")]
///
/// Returns:
///     A `Checked` with the `verdict` "clean", "incomplete" or "damaged", the `layers` and the
///     `findings`. Findings are no exceptions. Nor is an image that violates the rules of its
///     format, or content that cannot be opened, if the format has a structure that is verified.
///
/// Raises:
///     ImageError: the image cannot be opened, or changed meanwhile (`ChangedError`).
///     CancelledError: `cancel` was set.
///     ValueError, TypeError: an argument is invalid. Options for opening are for names: an `Image`
///         has its own.
///
/// >>> checked = blkhash.check("btrfs.qcow2")
/// >>> checked.verdict, [layer.layer for layer in checked.layers]
/// ('clean', ['qcow2', 'btrfs'])
#[pyfunction]
#[pyo3(signature = (image, *, max_findings=100, threads=None, progress=None, cancel=None, **options))]
pub fn check<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    max_findings: u64,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let input = Input::with_options(image, options)?;
    let settings = Options::default()
        .with_threads(arguments::threads(threads)?)
        .with_max_findings(Some(max_findings));
    let watch = Watch { progress, cancel };
    watch.run(py, move |progress| Checked::of(&input, &settings, progress))?.into_object(py)
}

/// The result of a check.
struct Checked {
    report: Report,
    findings: Found,
}

/// Findings with the place and the kind of their layer.
#[derive(Default)]
struct Found(Vec<(Place, &'static str, Finding)>);

impl Checked {
    fn of(input: &Input, settings: &Options, progress: &Progress) -> Result<Self, Failure> {
        match input {
            Input::Open(opened) => {
                Self::of_opened(opened.here()?.without_range()?, settings, progress)
            }
            Input::ToOpen(request) => match request.open_image() {
                Ok(image) => Self::of_opened(&request.select(Arc::new(image))?, settings, progress),
                Err(error) => Self::of_unopened(request, error, settings, progress),
            },
        }
    }

    fn of_opened(
        opened: &Opened,
        settings: &Options,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        let mut findings = Found::default();
        let report = match check_selected(&opened.selected, settings, progress, &mut findings) {
            Err(Error::Image(error)) if is_damage(&error) => {
                damaged_image(&errors::reason(&error), &mut findings)
            }
            report => report.map_err(Failure::Check)?,
        };
        Ok(Self { report, findings })
    }

    /// Checks the structure alone, which may tell more of an image whose content cannot be opened.
    fn of_unopened(
        request: &Request,
        error: blkimage::Error,
        settings: &Options,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        let Location::Path(path) = request.name().location() else {
            return Err(Failure::Image(error));
        };
        let (mut findings, reason) = (Found::default(), errors::reason(&error));
        let options = request.options();
        match check_unopened(path, options, &reason, settings, progress, &mut findings) {
            Ok(Some(report)) => Ok(Self { report, findings }),
            _ if is_damage(&error) => {
                Ok(Self { report: damaged_image(&reason, &mut findings), findings })
            }
            _ => Err(Failure::Image(error)),
        }
    }

    /// Returns the object for Python.
    fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let Self { report, findings: Found(findings) } = self;
        let layers = report.rows.iter().map(|row| layer(py, row)).collect::<PyResult<Vec<_>>>()?;
        let findings = findings.iter().map(|(place, kind, it)| finding(py, place, kind, it));
        let findings = findings.collect::<PyResult<Vec<_>>>()?;
        let (layers, findings) = (PyTuple::new(py, layers)?, PyTuple::new(py, findings)?);
        types::CHECKED.make(py, (report.verdict().name(), layers, findings))
    }
}

impl Sink for Found {
    fn finding(&mut self, place: &Place, kind: &'static str, finding: &Finding) {
        self.0.push((place.clone(), kind, finding.clone()));
    }

    // The report has them.
    fn row(&mut self, _: &Row) {}
}

fn layer<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
    let verified = row.verified.iter();
    let verified = verified.map(|it| types::VERIFIED.make(py, (it.structure, it.count, it.bytes)));
    let verified = PyTuple::new(py, verified.collect::<PyResult<Vec<_>>>()?)?;
    // A tuple of Rust converts no more than 12 fields.
    let fields = [
        row.place.to_string().into_pyobject(py)?.into_any(),
        row.place.partition().into_pyobject(py)?.into_any(),
        row.offset.into_pyobject(py)?.into_any(),
        row.length.into_pyobject(py)?.into_any(),
        row.kind.into_pyobject(py)?.into_any(),
        row.label.as_deref().map(OsStr::from_bytes).into_pyobject(py)?.into_any(),
        row.uuid.as_deref().into_pyobject(py)?.into_any(),
        row.verdict().name().into_pyobject(py)?.into_any(),
        verified.into_any(),
        row.unprotected.into_pyobject(py)?.into_any(),
        row.mismatches.into_pyobject(py)?.into_any(),
        row.damaged.into_pyobject(py)?.into_any(),
        row.unreadable.into_pyobject(py)?.into_any(),
        row.skipped.into_pyobject(py)?.into_any(),
        row.structure.map(|it| it.leaks).into_pyobject(py)?.into_any(),
        row.structure.map(|it| it.outdated).into_pyobject(py)?.into_any(),
        PyTuple::new(py, &row.remarks)?.into_any(),
    ];
    types::LAYER.make(py, PyTuple::new(py, fields)?)
}

fn finding<'py>(
    py: Python<'py>,
    place: &Place,
    layer: &'static str,
    finding: &Finding,
) -> PyResult<Bound<'py, PyAny>> {
    let files = PyTuple::new(py, finding.paths.iter().map(|path| OsStr::from_bytes(path)))?;
    let fields = (
        place.to_string(),
        place.partition(),
        layer,
        finding.kind.name(),
        finding.structure,
        finding.disk_offset,
        finding.offset,
        finding.length,
        finding.object,
        files,
        finding.reason.as_str(),
        finding.count,
    );
    types::CHECK_FINDING.make(py, fields)
}
