//! Virtual PC disks: a footer that records two sizes.

use super::size::Sizes;
use crate::error::{ErrorKind, Result};
use crate::formats::fields::{Head, whole_sectors};
use crate::formats::named::{Named, not_a};
use crate::probe::Format;
use crate::storage::HostFile;

/// QEMU reads the footer at the start, where only dynamic disks have a copy, or at the end.
pub(crate) fn examine(file: &HostFile) -> Result<Named> {
    if file.size() < VPC_FOOTER as u64 {
        return Err(not_a(file, Format::Vpc));
    }
    let mut footer = Head::read(file, 0, VPC_FOOTER)?;
    if !footer.starts_with(b"conectix") {
        footer = Head::read(file, file.size() - VPC_FOOTER as u64, VPC_FOOTER)?;
    }
    if footer.bytes()[1..].starts_with(b"conectix") {
        let reason = "is a vpc image of before 2004, which is not read: if it is none, use -f raw";
        return Err(file.error(ErrorKind::Unsupported, reason));
    }
    if !footer.starts_with(b"conectix") {
        return Err(not_a(file, Format::Vpc));
    }
    match footer.be32(60) {
        VPC_FIXED | VPC_DYNAMIC => {
            whole_sectors(file)?;
            Ok(Named { vpc: Some(Sizes::of(&footer)), ..Named::default() })
        }
        VPC_DIFFERENCING => {
            let reason = "is a difference to another disk, which is not read";
            Err(file.error(ErrorKind::Unsupported, reason))
        }
        other => Err(file.corrupt(format!("has the unknown disk type {other}"))),
    }
}

const VPC_FOOTER: usize = 512;
const VPC_FIXED: u32 = 2;
const VPC_DYNAMIC: u32 = 3;
const VPC_DIFFERENCING: u32 = 4;
