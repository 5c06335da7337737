//! Whether what tracks the changes of an image tells all of them since a map was made.

use blkimage::{Format, Image};

use super::{BitmapInfo, FileInfo, Info, SourceInfo, Subject};

/// The reason why a bitmap, an overlay or an older image does not tell what changed since a map was made. The text is about the map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtherBase {
    /// The map does not say what image it is of.
    #[error("does not say of which image it is")]
    Unknown,
    /// The map is of a snapshot, of another partition, or of an image in another format.
    #[error("is the map of another snapshot, partition or format of the image")]
    Content,
    /// The map is of another file.
    #[error("is the map of another file")]
    File,
    /// The image has other backing files, or they changed.
    #[error("is the map of the image with other backing files, or with an earlier state of them")]
    Backing,
    /// No backing file of the image has the state of the map.
    #[error("is not the map of a backing file of the image, as that is now")]
    NotBacking,
    /// The older image does not have the state of the map.
    #[error("is not the map of the older image, as that is now")]
    NotOlder,
    /// The image did not have the bitmap when the map was made.
    #[error("is older than bitmap {0:?}, or is of a copy without it")]
    NoBitmap(String),
    /// The bitmap does not record changes, or did not when the map was made.
    #[error("was made when bitmap {0:?} did not record changes, or it does not now")]
    Disabled(String),
    /// The bitmap counts in other units than when the map was made.
    #[error("was made when bitmap {0:?} had another granularity: it was made anew")]
    Anew(String),
    /// The bitmap does not mark what it marked when the map was made.
    #[error(
        "was made when bitmap {name:?} marked offset {offset}, and it does not now: it was cleared, or made anew"
    )]
    Unmarked {
        /// Name of the bitmap.
        name: String,
        /// Offset in the image, in bytes.
        offset: u64,
    },
    /// The bitmap has fewer changes than when the map was made.
    #[error(
        "was made when bitmap {name:?} had {then} bits set, and it has {now} now: it was cleared, or made anew"
    )]
    Cleared {
        /// Name of the bitmap.
        name: String,
        /// Number of bits that were set when the map was made.
        then: u64,
        /// Number of bits that are set now.
        now: u64,
    },
}

/// Checks that a bitmap in an image tells every change since the map with this info was made: it was there and empty or not
/// cleared since, and recorded all changes, and backing files are as they were.
///
/// A bitmap that was cleared or made anew is noticed if it marked something when the map was made that it does not mark now. One
/// that marked nothing looks the same after it was cleared.
///
/// # Errors
///
/// Fails with the first reason why it may not.
pub fn check_bitmap(
    info: Option<&Info>,
    subject: &Subject<'_>,
    name: &str,
) -> Result<(), OtherBase> {
    let then = info.and_then(|info| info.source.as_ref()).ok_or(OtherBase::Unknown)?;
    let now = SourceInfo::new(subject);
    if (&then.format, &then.snapshot, then.partition) != (&now.format, &now.snapshot, now.partition)
    {
        return Err(OtherBase::Content);
    }
    let (Some((old, old_others)), Some((new, new_others))) =
        (then.files.split_first(), now.files.split_first())
    else {
        return Err(OtherBase::Unknown);
    };
    if (old.ino, old.mtime_ns.is_some()) != (new.ino, new.mtime_ns.is_some()) {
        return Err(OtherBase::File);
    }
    let backing = |files: &[FileInfo]| {
        let backing = files.iter().filter(|file| file.role == "backing");
        backing.map(FileInfo::state).collect::<Vec<_>>()
    };
    if backing(old_others) != backing(new_others) {
        return Err(OtherBase::Backing);
    }
    let bitmap = |source: &SourceInfo| source.bitmaps.iter().find(|it| it.name == name).cloned();
    let missing = || OtherBase::NoBitmap(name.to_owned());
    let (old, new) = bitmap(then).zip(bitmap(&now)).ok_or_else(missing)?;
    if !old.enabled || !new.enabled {
        return Err(OtherBase::Disabled(name.to_owned()));
    }
    if old.granularity != new.granularity {
        return Err(OtherBase::Anew(name.to_owned()));
    }
    match (old.dirty, new.dirty) {
        (Some(then), Some(now)) if then > now => {
            Err(OtherBase::Cleared { name: name.to_owned(), then, now })
        }
        (Some(_), Some(_)) => check_marked(&old, subject.image),
        _ => Err(missing()),
    }
}

/// Fails unless a bitmap marks what it marked when the map was made: while it records changes, it only grows.
fn check_marked(old: &BitmapInfo, image: &Image) -> Result<(), OtherBase> {
    let marked = image.dirty_extents(old.name.as_bytes()).unwrap_or_default();
    let size = image.virtual_size();
    for [start, length] in &old.marked {
        // An image that was made smaller has no bits past its end.
        let end = start.saturating_add(*length).min(size);
        let after = marked.partition_point(|it| it.start <= *start);
        let covered = after.checked_sub(1).map_or(*start, |index| marked[index].end.max(*start));
        if covered < end {
            return Err(OtherBase::Unmarked { name: old.name.clone(), offset: covered });
        }
    }
    Ok(())
}

/// Returns how many images of a chain are above the one that the map with this info was made of.
///
/// # Errors
///
/// Fails if the map is of none of the backing files, or they changed since.
pub fn overlay_depth(info: Option<&Info>, image: &Image) -> Result<usize, OtherBase> {
    let source = info.and_then(|info| info.source.as_ref()).ok_or(OtherBase::Unknown)?;
    if source.snapshot.is_some() || source.files.is_empty() {
        return Err(OtherBase::Content);
    }
    let chain = image.chain();
    let is_base = |depth: &usize| {
        let members = chain[*depth..].iter().enumerate();
        let files = members.flat_map(|(index, member)| FileInfo::of_member(index, member));
        source.format == Format::name(chain[*depth].format())
            && source.files.iter().map(FileInfo::state).eq(files.map(|file| file.state()))
    };
    (1..chain.len()).find(is_base).ok_or(OtherBase::NotBacking)
}

/// Checks that an older image, with which another one is compared by what both share, has the state that the map with
/// this info was made of.
///
/// # Errors
///
/// Fails if the map is of another image or another part of it, if the image changed since, or if this is unknown.
pub fn check_older(info: Option<&Info>, older: &Subject<'_>) -> Result<(), OtherBase> {
    let info = info.filter(|info| info.shows_changes()).ok_or(OtherBase::Unknown)?;
    let now = Info { source: Some(SourceInfo::new(older)), ..Info::default() };
    if info.is_same_image(&now) { Ok(()) } else { Err(OtherBase::NotOlder) }
}
