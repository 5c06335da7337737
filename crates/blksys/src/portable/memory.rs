//! Files without a name.

use std::fs::File;
use std::io;

/// Creates a file that ends with its last descriptor, in the folder for temporary files.
///
/// # Errors
///
/// Fails if none can be created there.
pub fn memory_file(_name: &str) -> io::Result<File> {
    tempfile::tempfile()
}
