use blkimage::names;

/// The form of a list of changed extents. The forms of JSON can be an array of records, or records and arrays one after
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// `csi`: JSON of `snapshot-metadata-lister` (kubernetes-csi/external-snapshot-metadata), also with the names and
    /// values of protobuf's JSON. An extent without `byte_offset` starts at 0. States the size of the disk.
    Csi,
    /// `nbdinfo`: JSON of `nbdinfo --map=qemu:dirty-bitmap:NAME --json`. Covers the whole disk, and so states its size.
    /// Maps of other contexts are refused.
    Nbdinfo,
    /// `rbd`: JSON of `rbd diff --format json`. Extents that no longer exist are changes, too.
    Rbd,
    /// `ebs`: JSON of `aws ebs list-changed-blocks` and `list-snapshot-blocks`, all pages one after another. The last one
    /// has no `NextToken`. States the size of the disk.
    Ebs,
    /// `vmware`: pages of `QueryChangedDiskAreas` of vSphere, one after another: JSON of govmomi or pyVmomi, or what
    /// pyVmomi prints. They cover the disk, and so state its size.
    Vmware,
    /// `xenserver`: the bitmap of `VDI.list_changed_blocks` of XenServer and XCP-ng, in base64. It has no mark by which it could
    /// be recognised, so its form must be given.
    Xenserver,
    /// `thin-delta`: XML of `thin_delta`, with `--verbose` or without. `different`, `left_only` and `right_only` are
    /// changes.
    ThinDelta,
    /// `json`: JSON of records of `offset` and `length`, and an empty array in any of the other forms of JSON.
    Json,
    /// `csv`: `OFFSET,LENGTH` on each line, with or without the header `offset,length`.
    Csv,
    /// `lines`: `OFFSET LENGTH` on each line.
    Lines,
}

names!(Form, "form of a list", {
    Csi = "csi",
    Nbdinfo = "nbdinfo",
    Rbd = "rbd",
    Ebs = "ebs",
    Vmware = "vmware",
    Xenserver = "xenserver",
    ThinDelta = "thin-delta",
    Json = "json",
    Csv = "csv",
    Lines = "lines",
});

impl Form {
    pub(super) const fn is_json(self) -> bool {
        matches!(
            self,
            Self::Csi | Self::Nbdinfo | Self::Rbd | Self::Ebs | Self::Vmware | Self::Json
        )
    }
}
