//! The classes of this package that are written in Python.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

/// Returns `blkhash._errors`.
pub fn errors(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE
        .get_or_try_init(py, || PyModule::import(py, "blkhash._errors").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// A class or function of this package.
pub struct Class {
    module: &'static str,
    name: &'static str,
    class: PyOnceLock<Py<PyAny>>,
}

impl Class {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, class: PyOnceLock::new() }
    }

    /// Calls it with these arguments.
    pub fn make<'py>(
        &'static self,
        py: Python<'py>,
        args: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.class.import(py, self.module, self.name)?.call1(args)
    }
}

pub static BTRFS_FILE_SYSTEM: Class = Class::new(TYPES, "BtrfsFileSystem");
pub static BTRFS_FINDING: Class = Class::new(TYPES, "BtrfsFinding");
pub static BTRFS_REPORT: Class = Class::new(TYPES, "BtrfsReport");
pub static CHECKED: Class = Class::new(TYPES, "Checked");
pub static CHECK_FINDING: Class = Class::new(TYPES, "CheckFinding");
pub static CHECKSUM: Class = Class::new(TYPES, "Checksum");
pub static COPIED: Class = Class::new(TYPES, "Copied");
pub static EXTENT: Class = Class::new(TYPES, "Extent");
pub static FILE: Class = Class::new(TYPES, "File");
pub static LAYER: Class = Class::new(TYPES, "Layer");
pub static MEMBER: Class = Class::new(TYPES, "Member");
pub static OWNER: Class = Class::new(TYPES, "Owner");
pub static OWNED: Class = Class::new(TYPES, "Owned");
pub static OWNERS: Class = Class::new(TYPES, "Owners");
pub static PARTITION: Class = Class::new(TYPES, "Partition");
pub static SENT_DELTA: Class = Class::new(TYPES, "SentDelta");
pub static SNAPSHOT: Class = Class::new(TYPES, "Snapshot");
pub static RUN: Class = Class::new(TYPES, "Run");
pub static SUMS: Class = Class::new(TYPES, "Sums");
pub static SUM_LINE: Class = Class::new(TYPES, "SumLine");
pub static STATE: Class = Class::new(TYPES, "State");
pub static VERIFIED: Class = Class::new(TYPES, "Verified");
pub static VERIFIED_SUM: Class = Class::new(TYPES, "VerifiedSum");
pub static VERIFIED_SUMS: Class = Class::new(TYPES, "VerifiedSums");
pub static AUDIT: Class = Class::new(TYPES, "Audit");
pub static DIFFERENCES: Class = Class::new(TYPES, "Differences");
pub static DIFFERENCE: Class = Class::new(TYPES, "Difference");
pub static IMAGE_FILE: Class = Class::new("blkhash._file", "ImageFile");
pub static BLOCKS: Class = Class::new("blkhash._maps", "blocks");

const TYPES: &str = "blkhash._types";
