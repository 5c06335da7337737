use std::io::{self, Write};
use std::iter;

use blkimage::names;

use super::Changes;

/// A form in which [`Changes::print`] writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Output {
    /// `lines`: `OFFSET LENGTH` on each line.
    #[default]
    Lines,
    /// `json`: an array of objects with the fields `offset` and `length`, each on a line.
    Json,
    /// `nbdinfo`: the output of `nbdinfo --map=qemu:dirty-bitmap:NAME --json`, byte for byte. Covers the whole disk.
    Nbdinfo,
}

names!(Output, "form of output", { Lines = "lines", Json = "json", Nbdinfo = "nbdinfo" });

impl Changes {
    /// Writes the extents. [`List::parse`](super::List::parse) reads each form.
    ///
    /// Each extent is a few small writes, so `to` should have a buffer. Only [`Output::Nbdinfo`] depends on
    /// `disk_size`. It covers the disk, and extents past its end, if there are any.
    ///
    /// ```
    /// use blksum::changes::{Changes, Output};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let changes: Changes = [0..512, 4096..8192].into_iter().collect();
    /// let mut text = Vec::new();
    /// changes.print(Output::Lines, 1 << 20, &mut text)?;
    /// assert_eq!(text, b"0 512\n4096 4096\n");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if `to` fails.
    pub fn print(&self, output: Output, disk_size: u64, mut to: impl Write) -> io::Result<()> {
        let extents = self.extents().iter().map(|extent| (extent.start, extent.end - extent.start));
        match output {
            Output::Lines => {
                for (offset, length) in extents {
                    writeln!(to, "{offset} {length}")?;
                }
                Ok(())
            }
            Output::Json => array(to, extents, |to, (offset, length)| {
                write!(to, r#"{{"offset":{offset},"length":{length}}}"#)
            }),
            Output::Nbdinfo => array(to, self.map(disk_size), |to, (offset, length, is_dirty)| {
                let (flags, description) = if is_dirty { (1, "dirty") } else { (0, "clean") };
                write!(to, r#"{{ "offset": {offset}, "length": {length}, "#)?;
                write!(to, r#""type": {flags}, "description": "{description}"}}"#)
            }),
        }
    }

    /// Returns offset, length and whether it is an extent, of all extents and of what is between them.
    fn map(&self, disk_size: u64) -> impl Iterator<Item = (u64, u64, bool)> {
        let ends =
            self.extents().iter().flat_map(|extent| [(extent.start, false), (extent.end, true)]);
        let mut start = 0;
        ends.chain(iter::once((disk_size.max(self.end()), false))).filter_map(
            move |(end, is_dirty)| {
                let offset = start;
                start = end;
                (end > offset).then_some((offset, end - offset, is_dirty))
            },
        )
    }
}

/// Writes an array with each element on a line.
fn array<W: Write, T>(
    mut to: W,
    elements: impl Iterator<Item = T>,
    write: impl Fn(&mut W, T) -> io::Result<()>,
) -> io::Result<()> {
    write!(to, "[")?;
    for (index, element) in elements.enumerate() {
        writeln!(to, "{}", if index == 0 { "" } else { "," })?;
        write(&mut to, element)?;
    }
    writeln!(to, "\n]")
}
