//! Why parts of an image cannot be read, for output.

use std::ffi::OsStr;

use blksum::Unreadable;

use crate::problem::Problem;

/// Returns a message for each reason, about the image that `name` returns for it.
pub fn messages<'a>(
    unreadable: &'a [Unreadable],
    name: impl Fn(&Unreadable) -> &'a OsStr,
) -> Vec<String> {
    let message = |it: &Unreadable| {
        let mut problem = Problem::of_image(&it.error, name(it));
        problem.reason.insert_str(0, &format!("cannot be read at {}: ", it.offset));
        problem.message(name(it))
    };
    unreadable.iter().map(message).collect()
}
