//! `struct blksum_diff`: where two contents differ.

use std::ffi::{OsStr, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use blksum::{Difference as Found, Relation};

use crate::boundary::{put, run};
use crate::error_object::Error;
use crate::failure::{Failure, Kind};
use crate::handle::{self, Handle};
use crate::image::Image;
use crate::job::{Watch, blksum_progress};
use crate::map::BlockMap;
use crate::options::{Options, settings};

/// `struct blksum_diff`.
pub enum Diff {}

impl Handle for Diff {
    type Value = Vec<Difference>;
    const TAG: u32 = u32::from_be_bytes(*b"diff");
    const NOUN: &'static str = "list of differences";
}

/// `struct blksum_difference`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// An `enum blksum_difference_kind`.
    pub kind: u32,
    /// 0.
    pub reserved: u32,
}

/// Collects at most `limit` differences.
fn collect(
    limit: usize,
    compare: impl FnOnce(&mut (dyn FnMut(Found) + Send)) -> Result<(), Failure>,
) -> Result<Vec<Difference>, Failure> {
    let found = Mutex::new((Vec::new(), false));
    compare(&mut |it: Found| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.0.len() < limit {
            let Found { offset, length, relation, .. } = it;
            found.0.push(Difference { offset, length, kind: kind(relation), reserved: 0 });
        } else {
            found.1 = true;
        }
    })?;
    match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        (list, false) => Ok(list),
        // A part of the differences looks like all.
        (_, true) => Err(Failure::new(
            Kind::Limit,
            format!("more than {limit} extents differ: the option limit returns more"),
        )),
    }
}

fn kind(relation: Relation) -> u32 {
    match relation {
        Relation::Zeroed => 1,
        Relation::Written => 2,
        Relation::LeftOnly => 3,
        Relation::RightOnly => 4,
        Relation::Unknown => 5,
        Relation::Unreadable => 6,
        // Equal blocks are not reported.
        Relation::Changed | Relation::Equal | Relation::Zeros => 0,
    }
}

/// `blksum_map_verify()`.
///
/// # Safety
///
/// Objects are null or came from this library, `error` is null or can be written, and `progress` can be called with
/// `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_verify(
    map: *const BlockMap,
    image: *const Image,
    opts: *const Options,
    progress: blksum_progress,
    user_data: *mut c_void,
    error: *mut *mut Error,
) -> *mut Diff {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, ptr::null_mut(), || {
            let (map, image) = (handle::value(map)?, handle::value(image)?);
            let settings = settings(opts)?;
            let list = Watch { progress, user_data }.run(move |progress| {
                let tuning = settings.tuning();
                collect(settings.limit(), |found| {
                    blksum::map::verify(&map.map, &image.selected, found, &tuning, progress)
                        .map(drop)
                        .map_err(|error| Failure::of_pass(&error, &image.name, &map.name))
                })
            })?;
            Ok(handle::create(list))
        })
    }
}

/// `blksum_map_diff()`.
///
/// # Safety
///
/// Like [`blksum_map_verify`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_map_diff(
    left: *const BlockMap,
    right: *const BlockMap,
    opts: *const Options,
    error: *mut *mut Error,
) -> *mut Diff {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, ptr::null_mut(), || {
            let (left, right) = (handle::value(left)?, handle::value(right)?);
            let settings = settings(opts)?;
            let list = Watch::NONE.run(move |_| {
                collect(settings.limit(), |found| {
                    blksum::map::diff(&left.map, &right.map, found)
                        .map_err(|error| Failure::of_pass(&error, &left.name, &left.name))
                })
            })?;
            Ok(handle::create(list))
        })
    }
}

/// `blksum_image_diff()`.
///
/// # Safety
///
/// Like [`blksum_map_verify`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_image_diff(
    left: *const Image,
    right: *const Image,
    opts: *const Options,
    progress: blksum_progress,
    user_data: *mut c_void,
    error: *mut *mut Error,
) -> *mut Diff {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, ptr::null_mut(), || {
            let (left, right) = (handle::value(left)?, handle::value(right)?);
            let settings = settings(opts)?;
            let list = Watch { progress, user_data }.run(move |progress| {
                let (block_size, tuning) = (settings.block_size(), settings.tuning());
                let (one, other) = (left.content(), right.content());
                collect(settings.limit(), |found| {
                    blksum::differences(one, other, block_size, found, &tuning, progress)
                        .map(drop)
                        .map_err(|error| Failure::of_pass(&error, &left.name, OsStr::new("")))
                })
            })?;
            Ok(handle::create(list))
        })
    }
}

/// `blksum_diff_count()`.
///
/// # Safety
///
/// Like [`blksum_map_verify`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_diff_count(diff: *const Diff, error: *mut *mut Error) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { run(error, -1, || Ok(handle::value(diff)?.len() as i64)) }
}

/// `blksum_diff_get()`.
///
/// # Safety
///
/// Like [`blksum_map_verify`], and `difference` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_diff_get(
    diff: *const Diff,
    index: usize,
    difference: *mut Difference,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, -1, || {
            let list = handle::value(diff)?;
            let found = list.get(index).copied();
            let found = found.ok_or_else(|| {
                Failure::argument(format!("there is no difference {index} of {}", list.len()))
            })?;
            put(difference, found, "difference")?;
            Ok(0)
        })
    }
}

/// `blksum_diff_free()`.
///
/// # Safety
///
/// `diff` is null or came from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blksum_diff_free(diff: *mut Diff) {
    // SAFETY: the caller's promise.
    unsafe { handle::free(diff) }
}
