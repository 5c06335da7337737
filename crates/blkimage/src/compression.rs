//! Methods of compressing a file as a whole, and how they are recognised.

use std::path::Path;

use crate::location::telling;
use crate::names;

/// A method of compressing a file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// By `gzip`, `pigz` or `bgzip`.
    Gzip,
    /// By `xz`, with LZMA2.
    Xz,
    /// By `zstd` or `pzstd`.
    Zstd,
    /// By `bzip2`.
    Bzip2,
    /// By `lz4`, in frames.
    Lz4,
    /// By `lzop`.
    Lzop,
}

names!(Compression {
    Gzip = "gzip",
    Xz = "xz",
    Zstd = "zstd",
    Bzip2 = "bzip2",
    Lz4 = "lz4",
    Lzop = "lzop",
});

impl Compression {
    /// Returns the compression of a file that begins with `head`, of which it examines [`Self::HEAD_SIZE`] bytes.
    pub fn of_head(head: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.begins(head))
    }

    /// Returns whether a file that begins with `head` may have this compression.
    pub(crate) fn begins(self, head: &[u8]) -> bool {
        let starts = |magic: &[u8]| head.starts_with(magic);
        // zstd and lz4 have the same frames to skip, with which files of pzstd begin.
        let is_skipped = || matches!(head, [first, 0x2a, 0x4d, 0x18, ..] if first >> 4 == 5);
        match self {
            Self::Gzip => starts(b"\x1f\x8b\x08"),
            Self::Xz => starts(b"\xfd7zXZ\0"),
            Self::Zstd => starts(b"\x28\xb5\x2f\xfd") || is_skipped(),
            // A stream without content has no block.
            Self::Bzip2 => {
                starts(b"BZh") && matches!(head.get(4..10), Some(b"1AY&SY" | b"\x17rE8P\x90"))
            }
            Self::Lzop => starts(b"\x89LZO\0\r\n\x1a\n"),
            // The second one marks old frames, which are refused.
            Self::Lz4 => starts(b"\x04\x22\x4d\x18") || starts(b"\x02\x21\x4c\x18") || is_skipped(),
        }
    }

    /// Returns the compression that the end of a name stands for, which is a path or a URL.
    pub fn of_name(name: &Path) -> Option<Self> {
        let name = telling(name);
        let extension = name.extension()?;
        let is = |it: &Self| it.extensions().iter().any(|it| extension.eq_ignore_ascii_case(it));
        Self::ALL.iter().copied().find(is)
    }

    /// Returns the ends of the names of such files, in lower case and without the dot.
    pub(crate) const fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Gzip => &["gz", "bgz"],
            Self::Xz => &["xz"],
            Self::Zstd => &["zst", "zstd"],
            Self::Bzip2 => &["bz2"],
            Self::Lz4 => &["lz4"],
            Self::Lzop => &["lzo"],
        }
    }

    /// Number of bytes that [`of_head`](Self::of_head) examines.
    pub const HEAD_SIZE: usize = 10;
}
