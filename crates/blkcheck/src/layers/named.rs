//! Kinds of content of which only the name is reported.

/// Returns whether a kind has checksums that are not verified.
pub(crate) fn has_checksums(name: &str) -> bool {
    matches!(
        name,
        "apfs"
            | "bcachefs"
            | "bitlocker"
            | "f2fs"
            | "linux_raid_member"
            | "nilfs2"
            | "refs"
            | "udf"
            | "zfs_member"
    )
}
