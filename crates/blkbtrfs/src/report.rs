//! Verifies all file systems on some disks, and keeps the result.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::devices::Device;
use crate::error::{Error, Result};
use crate::filesystem::FileSystem;
use crate::find::{Group, Part, Unverified, find, group};
use crate::superblock::{DeviceItem, Superblock};
use crate::verify::{Category, Finding, Options, Summary, Watch, verify};

/// The file systems on some disks, opened for reading.
pub struct FileSystems {
    opened: Vec<FileSystem>,
    problems: Vec<Unverified>,
    others: Vec<String>,
}

/// The result for all file systems on some disks.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The result for each file system. There is at least one.
    pub verdicts: Vec<Verdict>,
    /// Disks, partitions and file systems that could not be verified.
    pub problems: Vec<Unverified>,
    /// Names of the partitions without btrfs.
    pub others: Vec<String>,
}

/// The result for a file system.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verdict {
    /// Newest intact superblock.
    pub superblock: Superblock,
    /// Names of its devices, by their numbers.
    pub devices: BTreeMap<u64, String>,
    /// Devices that it has and that were not given.
    pub missing: Vec<DeviceItem>,
    /// Amounts that were verified, and the number of wrong blocks in each category.
    pub summary: Summary,
    /// The first findings, as many as the options allow for all file systems together.
    pub findings: Vec<Finding>,
}

impl FileSystems {
    /// Opens the file systems that are found on `disks`, or only in a part of each, like [`find`].
    ///
    /// # Errors
    ///
    /// Fails if there is none that can be opened. The error is the first reason.
    pub fn open(disks: &[(Device, Option<Part>)]) -> Result<Self, Unverified> {
        let mut candidates = Vec::new();
        let mut all = Self { opened: Vec::new(), problems: Vec::new(), others: Vec::new() };
        for (disk, part) in disks {
            let found = find(disk, *part);
            candidates.extend(found.candidates);
            all.problems.extend(found.problems);
            all.others.extend(found.others);
        }
        for Group { devices, seeds, .. } in group(candidates) {
            let name = devices.first().map(|device| device.name.clone()).unwrap_or_default();
            match FileSystem::open_with(devices, seeds, None) {
                Ok(opened) => all.opened.push(opened),
                Err(error) => all.problems.push(Unverified { name, error }),
            }
        }
        if all.opened.is_empty() {
            let error = Error::Devices("no disk was given".to_owned());
            let none = Unverified { name: String::new(), error };
            return Err(all.problems.into_iter().next().unwrap_or(none));
        }
        Ok(all)
    }

    /// Returns the approximate number of bytes that a verification reads, like
    /// [`FileSystem::verified_bytes`].
    pub fn verified_bytes(&self) -> u64 {
        self.opened.iter().map(FileSystem::verified_bytes).fold(0, u64::saturating_add)
    }

    /// Verifies one file system after the other.
    ///
    /// # Errors
    ///
    /// Fails like [`verify`].
    pub fn verify(self, options: &Options, watch: &Watch<'_>) -> Result<Report> {
        let mut verdicts = Vec::with_capacity(self.opened.len());
        let mut left = options.max_findings;
        for filesystem in self.opened {
            let findings = Mutex::new(Vec::new());
            let options = options.with_max_findings(left);
            let summary = verify(&filesystem, &options, watch, &|finding| {
                findings.lock().unwrap_or_else(PoisonError::into_inner).push(finding.clone());
            })?;
            let findings = findings.into_inner().unwrap_or_else(PoisonError::into_inner);
            left = left.map(|left| left.saturating_sub(findings.len() as u64));
            let devices = filesystem.devices().iter();
            verdicts.push(Verdict {
                superblock: filesystem.superblock().clone(),
                devices: devices.map(|(id, device)| (*id, device.name.clone())).collect(),
                missing: filesystem.missing_devices().to_vec(),
                summary,
                findings,
            });
        }
        Ok(Report { verdicts, problems: self.problems, others: self.others })
    }
}

impl Report {
    /// Returns whether there are no findings.
    pub fn is_clean(&self) -> bool {
        self.verdicts.iter().all(|it| it.summary.is_clean())
    }

    /// Returns whether everything could be verified.
    pub fn is_complete(&self) -> bool {
        self.problems.is_empty() && self.verdicts.iter().all(|it| it.summary.is_complete())
    }

    /// Returns the number of wrong blocks in one category.
    pub fn count(&self, category: Category) -> u64 {
        self.verdicts.iter().map(|it| it.summary.count(category)).fold(0, u64::saturating_add)
    }
}

impl Verdict {
    /// Returns the name of the device of a finding, if the finding has a place.
    pub fn device_of(&self, finding: &Finding) -> Option<&str> {
        finding.place.and_then(|place| self.devices.get(&place.device)).map(String::as_str)
    }
}
