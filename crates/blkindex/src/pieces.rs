//! Texts with a line for each block or run of blocks: lines, tables and JSON.
//!
//! The last line tells the size of the image, and the first digest the size of a block, unless the last line tells both.
//! Both are found before the text is read in order.

use blkhash::{Algorithm, BlockSize, Digest};
use blkmap::{Error, ReadAt, Result};

use crate::shape::{Options, Shape};
use crate::target::{Blocks, Target};
use crate::text::{Tokens, last_line, read_at};
use crate::walk::Kind;

/// Blocks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Number of the first block, if the line has it.
    pub block: Option<u64>,
    /// In bytes.
    pub offset: u64,
    /// In bytes.
    pub length: u64,
    pub kind: Kind<Digest>,
}

/// What a line is.
pub(crate) enum Line {
    Piece(Piece),
    /// The end of the text, with the parameters of the map.
    Summary(Box<Shape>),
}

/// A form of the lines.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// The first line, which has no blocks.
    pub head: Option<&'static [u8]>,
    /// Whether the last line is a summary.
    pub has_summary: bool,
    /// Reads a line without its end. The error is the problem.
    pub parse: fn(&[u8]) -> std::result::Result<Line, String>,
}

pub(crate) struct Pieces<'a> {
    file: &'a dyn ReadAt,
    form: Form,
    shape: Shape,
}

/// Finds the parameters.
pub(crate) fn open<'a>(
    file: &'a dyn ReadAt,
    form: Form,
    options: &Options,
) -> Result<(Shape, Pieces<'a>)> {
    let (at, line) = last_line(file)?;
    let shape = if form.head == Some(&line) {
        shape(file, form, options, 0, at)?
    } else {
        match parse(form, at, &line)? {
            Line::Summary(summary) => {
                let Shape { algorithm, block_size, image_size, .. } = *summary;
                let checked = Shape::new(algorithm, block_size, image_size, at)?;
                Shape { salt: summary.salt, content_id: summary.content_id, ..checked }
            }
            Line::Piece(_) if form.has_summary => {
                return Err(Error::damaged(at, "the text is cut: its last line is no summary"));
            }
            Line::Piece(Piece { offset, length, .. }) => {
                let size = offset.checked_add(length);
                let size = size.ok_or_else(|| Error::damaged(at, "the offset is too large"))?;
                shape(file, form, options, size, at)?
            }
        }
    };
    Ok((shape, Pieces { file, form, shape }))
}

/// Finds the size of a block and the digest by the first line with a digest. `at` is the offset of the last line.
fn shape(
    file: &dyn ReadAt,
    form: Form,
    options: &Options,
    image_size: u64,
    at: u64,
) -> Result<Shape> {
    let mut lines = Lines::new(file, form)?;
    let first = loop {
        match lines.next()? {
            Some((_, Line::Piece(Piece { kind: Kind::Zeros | Kind::Unknown, .. }))) => {}
            Some((at, Line::Piece(Piece { length, kind: Kind::Digest(digest), .. }))) => {
                break Some((at, length, digest));
            }
            Some((_, Line::Summary(_))) | None => break None,
        }
    };
    let algorithm = match (options.algorithm, first) {
        (Some(algorithm), _) => algorithm,
        (None, Some((_, _, digest))) if digest.as_bytes().len() != SHA256_SIZE => {
            return Err(Error::Unsupported(format!(
                "has digests of {} bytes and does not say which digest it is",
                digest.as_bytes().len()
            )));
        }
        (None, _) => Algorithm::Sha256,
    };
    let block_size = match (options.block_size, first) {
        (Some(block_size), _) => block_size,
        (None, None) => BlockSize::DEFAULT,
        (None, Some((at, length, _))) => {
            let size = BlockSize::try_from(length);
            size.map_err(|_| Error::damaged(at, format!("a block of {length} bytes")))?
        }
    };
    Shape::new(algorithm, block_size, image_size, at)
}

impl Blocks for Pieces<'_> {
    fn write(&mut self, target: &mut Target<'_>) -> Result<()> {
        let mut lines = Lines::new(self.file, self.form)?;
        let mut next = 0;
        while let Some((at, line)) = lines.next()? {
            let Line::Piece(piece) = line else {
                return match lines.next()? {
                    None => self.end(at, next),
                    Some((at, _)) => Err(Error::damaged(at, "a line after the summary")),
                };
            };
            self.piece(at, piece, next, target)?;
            next = piece.offset + piece.length;
        }
        self.end(self.file.length()?, next)
    }
}

impl Pieces<'_> {
    fn end(&self, at: u64, next: u64) -> Result<()> {
        match next == self.shape.image_size {
            true => Ok(()),
            false => Err(Error::damaged(at, format!("the blocks end at {next}"))),
        }
    }

    /// Passes on the piece in the line at `at`, which is to start at `next`.
    fn piece(&self, at: u64, piece: Piece, next: u64, target: &mut Target<'_>) -> Result<()> {
        let Piece { block, offset, length, kind } = piece;
        let (size, image_size) = (u64::from(self.shape.block_size), self.shape.image_size);
        let fail = |reason: String| Err(Error::damaged(at, reason));
        if offset != next {
            let how = if offset < next { "overlaps the line before" } else { "leaves out blocks" };
            return fail(format!("offset {offset} {how}, which ends at {next}"));
        }
        if let Some(block) = block.filter(|block| block.checked_mul(size) != Some(offset)) {
            return fail(format!("block {block} is not at {offset}"));
        }
        let end = offset.checked_add(length).filter(|end| *end <= image_size && length > 0);
        let Some(end) = end else { return fail(format!("a length of {length} bytes")) };
        if !end.is_multiple_of(size) && end != image_size {
            return fail(format!("{length} bytes are not whole blocks of {size} bytes"));
        }
        let blocks = length.div_ceil(size);
        match kind {
            Kind::Digest(_) if blocks != 1 => {
                fail(format!("a block of {length} bytes, and not of {size}"))
            }
            Kind::Digest(digest) => {
                let (own, other) = (self.shape.algorithm.digest_size(), digest.as_bytes().len());
                if own != other {
                    return fail(format!("a digest of {other} bytes, and not of {own}"));
                }
                target.digests(digest.as_bytes())
            }
            Kind::Zeros => target.zeros(blocks),
            Kind::Unknown => target.unknown(blocks),
        }
    }
}

/// The lines of a text.
struct Lines<'a> {
    tokens: Tokens<'a>,
    form: Form,
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    /// Reads the first line, if it has no blocks.
    fn new(file: &'a dyn ReadAt, form: Form) -> Result<Self> {
        let mut lines = Self { tokens: Tokens::new(file, 0)?, form, line: Vec::new() };
        if let Some(head) = form.head {
            lines.tokens.next(b'\n', &mut lines.line)?;
            if without_end(&lines.line) != head {
                return Err(Error::damaged(
                    0,
                    format!("does not begin with {}", head.escape_ascii()),
                ));
            }
        }
        Ok(lines)
    }

    fn next(&mut self) -> Result<Option<(u64, Line)>> {
        match self.tokens.next(b'\n', &mut self.line)? {
            None => Ok(None),
            Some(at) => Ok(Some((at, parse(self.form, at, without_end(&self.line))?))),
        }
    }
}

fn parse(form: Form, at: u64, line: &[u8]) -> Result<Line> {
    read_at(at, (form.parse)(line))
}

fn without_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

const SHA256_SIZE: usize = 32;
