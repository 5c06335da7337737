use std::fmt;
use std::str::FromStr;

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

/// Error for a text that is not the name of a [`Form`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown form of a list")]
pub struct UnknownForm;

impl Form {
    /// All forms.
    pub const ALL: &'static [Self] = &[
        Self::Csi,
        Self::Nbdinfo,
        Self::Rbd,
        Self::Ebs,
        Self::ThinDelta,
        Self::Json,
        Self::Csv,
        Self::Lines,
    ];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csi => "csi",
            Self::Nbdinfo => "nbdinfo",
            Self::Rbd => "rbd",
            Self::Ebs => "ebs",
            Self::ThinDelta => "thin-delta",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Lines => "lines",
        }
    }

    pub(super) const fn is_json(self) -> bool {
        matches!(self, Self::Csi | Self::Nbdinfo | Self::Rbd | Self::Ebs | Self::Json)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Form {
    type Err = UnknownForm;

    fn from_str(name: &str) -> Result<Self, UnknownForm> {
        Self::ALL.iter().copied().find(|form| form.name() == name).ok_or(UnknownForm)
    }
}
