//! The ends of the names of archives with disks. They decide what a URL leads to, and for some kinds what a file is.

/// Appliances.
pub(crate) const OVA: &[&[u8]] = &[b".ova"];

pub(crate) const ZIP: &[&[u8]] = &[b".zip"];

/// Backups of Proxmox VE.
pub(crate) const VMA: &[&[u8]] = &[b".vma", b".vma.zst", b".vma.gz", b".vma.lzo"];

/// Exports of XenServer and XCP-ng.
pub(crate) const XVA: &[&[u8]] = &[b".xva", b".xva.gz", b".xva.zst", b".xva.xz", b".xva.bz2"];

/// Archives of tar, compressed or not, OCI archives among them.
pub(crate) const TAR: &[&[u8]] = &[
    b".tar",
    b".box",
    b".tgz",
    b".tbz",
    b".tbz2",
    b".txz",
    b".tzst",
    b".tlz4",
    b".tar.gz",
    b".tar.xz",
    b".tar.zst",
    b".tar.bz2",
    b".tar.lz4",
    b".tar.lzo",
    b".ova.gz",
    b".ova.xz",
    b".ova.zst",
    b".ova.bz2",
    b".ova.lz4",
    b".ova.lzo",
];

/// Endings of all kinds.
pub(crate) const ALL: [&[&[u8]]; 5] = [OVA, ZIP, VMA, XVA, TAR];
