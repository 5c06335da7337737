//! A picture of a comparison: a grid of cells, each of which stands for a number of blocks.
//!
//! Memory and time for a run of blocks depend on the number of cells, not on the size of the image.

use std::env;
use std::io::IsTerminal;

use rustix::stdio::stdout;

use blksum::{RelatedRun, Relation};

use super::relations::Counts;
use crate::size::Bytes;
use crate::stdio;

/// The properties of a terminal that affect the picture.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    pub columns: usize,
    pub has_color: bool,
    /// Whether it shows more than ASCII.
    pub is_utf8: bool,
}

impl Screen {
    /// Describes standard output.
    pub fn of_stdout() -> Self {
        let variable = |name: &str| {
            env::var_os(name).map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let has_color =
            stdout().is_terminal() && variable("NO_COLOR").is_empty() && variable("TERM") != "dumb";
        Self {
            columns: stdio::columns().unwrap_or(USUAL_COLUMNS),
            has_color,
            is_utf8: is_utf8(variable),
        }
    }

    /// Returns the cells in a row of the picture, at most.
    pub fn cells(&self) -> usize {
        self.columns.saturating_sub(MARGIN).max(1)
    }
}

/// Returns whether the locale uses UTF-8.
fn is_utf8(variable: impl Fn(&str) -> String) -> bool {
    let values = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
    let locale = values.iter().find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// The cells of a picture.
pub struct Cells {
    /// Number of blocks of the larger side.
    blocks: u64,
    /// Number of bytes of a block.
    block_size: u64,
    /// Number of blocks of a cell, a power of two.
    cell: u64,
    columns: usize,
    counts: Vec<Counts>,
}

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Part of the blocks differs, in quarters of the cell from 1 to 3, rounded up.
    Part(u8),
    /// All blocks differ.
    Whole,
    /// A block cannot be read.
    Unreadable,
    Equal,
    Zeros,
    /// A block is not known, or none was compared.
    Unknown,
}

impl Cells {
    /// Creates the cells. A row has a power of two of them, so that its offsets are round numbers, unless
    /// a single row suffices.
    pub fn new(blocks: u64, block_size: u64, max_columns: usize, max_rows: usize) -> Self {
        let columns = 1_usize << max_columns.max(1).ilog2();
        let limit = (columns * max_rows.max(1)) as u64;
        let mut cell = 1_u64;
        while blocks.div_ceil(cell) > limit {
            cell *= 2;
        }
        let cells = usize::try_from(blocks.div_ceil(cell)).expect("at most the limit");
        let columns = columns.min(cells.max(1));
        Self { blocks, block_size, cell, columns, counts: vec![Counts::default(); cells] }
    }

    /// Adds the blocks of a run.
    pub fn add(&mut self, run: RelatedRun) {
        let end = run.first.saturating_add(run.count).min(self.blocks);
        let mut first = run.first;
        while first < end {
            let index = first / self.cell;
            let next = ((index + 1) * self.cell).min(end);
            self.counts[index as usize].add(run.relation, next - first);
            first = next;
        }
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of bytes that a cell stands for.
    pub fn cell_size(&self) -> u64 {
        self.cell.saturating_mul(self.block_size)
    }

    /// Returns the number of bytes of all blocks.
    pub fn size(&self) -> u64 {
        self.blocks.saturating_mul(self.block_size)
    }

    /// Returns the counts of all cells.
    pub fn counts(&self) -> &[Counts] {
        &self.counts
    }

    /// Returns what a cell shows. A single block that differs is visible.
    pub fn look(&self, index: usize) -> Look {
        let counts = &self.counts[index];
        let different = counts.different();
        if counts.of(Relation::Unreadable) > 0 {
            return Look::Unreadable;
        }
        if different > 0 {
            // Blocks that were not compared count as blocks of the cell.
            let all = self.cell.min(self.blocks - index as u64 * self.cell);
            let quarters = (u128::from(different) * 4).div_ceil(u128::from(all));
            return if different == all { Look::Whole } else { Look::Part(quarters.min(3) as u8) };
        }
        if counts.of(Relation::Unknown) > 0 || counts.total() == 0 {
            Look::Unknown
        } else if counts.of(Relation::Equal) > 0 {
            Look::Equal
        } else {
            Look::Zeros
        }
    }

    /// Returns what one cell is, for the legend.
    pub fn scale(&self) -> String {
        let size = round(self.cell_size());
        if self.cell == 1 {
            format!("one cell is a block of {size}")
        } else {
            format!("one cell is {size}")
        }
    }

    /// Draws the picture, in whole lines. It is empty if there are no blocks.
    pub fn draw(&self, screen: Screen) -> String {
        let style = Style(screen);
        let looks: Vec<_> = (0..self.counts.len()).map(|index| self.look(index)).collect();
        let row_size = self.cell_size().saturating_mul(self.columns as u64);
        let labels = (0_u64..).map(|row| round(row.saturating_mul(row_size)));
        let rows: Vec<_> = labels.zip(looks.chunks(self.columns)).collect();
        if rows.is_empty() {
            return String::new();
        }
        let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        let mut text = String::new();
        let edge = style.edge();
        for (label, looks) in rows {
            text += &format!("{label:>width$} {edge}");
            // One escape sequence for cells with the same colour.
            for cells in looks.chunk_by(|one, other| style.color(*one) == style.color(*other)) {
                let glyphs: String = cells.iter().map(|look| style.glyph(*look)).collect();
                text += &style.paint(cells[0], &glyphs);
            }
            text += edge;
            text.push('\n');
        }
        text + &self.legend(style, &looks, width + 2)
    }

    /// Explains the cells that occur, in lines that fit the terminal if it is not very narrow.
    fn legend(&self, style: Style, looks: &[Look], mut indent: usize) -> String {
        let has = |look: Look| looks.contains(&look);
        let parts = [3, 2, 1].map(Look::Part);
        let mut entries = vec![(self.scale() + ":", String::new())];
        if has(Look::Whole) || parts.into_iter().any(has) {
            entries.push(style.entry(Look::Whole, "changed"));
        }
        if parts.into_iter().any(has) {
            let mut glyphs: Vec<_> = parts.iter().map(|look| style.glyph(*look)).collect();
            glyphs.dedup();
            let glyphs: String = glyphs.into_iter().collect();
            let painted = format!("{} part of it", style.paint(Look::Part(1), &glyphs));
            entries.push((format!("{glyphs} part of it"), painted));
        }
        if has(Look::Unreadable) {
            entries.push(style.entry(Look::Unreadable, "cannot be read"));
        }
        if has(Look::Equal) {
            entries.push(style.entry(Look::Equal, "equal"));
        }
        if has(Look::Zeros) {
            entries.push(("blank zeros".to_owned(), String::new()));
        }
        if has(Look::Unknown) {
            entries.push(style.entry(Look::Unknown, "not compared"));
        }
        let widest = entries.iter().map(|(plain, _)| plain.chars().count()).max().unwrap_or(0);
        indent = indent.min(style.0.columns.saturating_sub(widest));
        let mut text = " ".repeat(indent);
        let mut column = indent;
        for (index, (plain, painted)) in entries.iter().enumerate() {
            let gap = [0, 1, 2][index.min(2)];
            let width = plain.chars().count();
            if index > 0 && column + gap + width > style.0.columns {
                text += &format!("\n{:indent$}", "");
                column = indent;
            } else {
                text += &" ".repeat(gap);
                column += gap;
            }
            text += if painted.is_empty() { plain } else { painted };
            column += width;
        }
        text + "\n"
    }
}

/// Characters and colours.
#[derive(Clone, Copy)]
struct Style(Screen);

impl Style {
    fn edge(self) -> &'static str {
        if self.0.is_utf8 { "│" } else { "|" }
    }

    fn glyph(self, look: Look) -> char {
        match (look, self.0.is_utf8) {
            (Look::Part(1), true) => '░',
            (Look::Part(2), true) => '▒',
            (Look::Part(_), true) => '▓',
            (Look::Part(_), false) => '+',
            (Look::Whole, true) => '█',
            (Look::Whole, false) => '#',
            (Look::Unreadable, true) => '╳',
            (Look::Unreadable, false) => 'X',
            (Look::Equal, true) => '·',
            (Look::Equal, false) => '.',
            (Look::Zeros, _) => ' ',
            (Look::Unknown, _) => '?',
        }
    }

    /// Returns the parameter of the escape sequence: red, grey or yellow.
    fn color(self, look: Look) -> Option<&'static str> {
        match look {
            _ if !self.0.has_color => None,
            Look::Part(_) | Look::Whole | Look::Unreadable => Some("31"),
            Look::Equal => Some("90"),
            Look::Zeros => None,
            Look::Unknown => Some("33"),
        }
    }

    fn paint(self, look: Look, text: &str) -> String {
        match self.color(look) {
            Some(color) => format!("\x1b[{color}m{text}\x1b[m"),
            None => text.to_owned(),
        }
    }

    /// Returns an entry of the legend, without and with colours.
    fn entry(self, look: Look, meaning: &str) -> (String, String) {
        let glyph = self.glyph(look).to_string();
        (format!("{glyph} {meaning}"), format!("{} {meaning}", self.paint(look, &glyph)))
    }
}

/// Formats a number of bytes without decimals that are zero, as in `512 MiB`.
pub fn round(bytes: u64) -> String {
    Bytes(bytes).to_string().replace(".00 ", " ")
}

/// Columns of a row besides its cells: an offset of up to 11 characters, a space, two edges, and two spare
/// ones.
const MARGIN: usize = 16;

/// Number of rows of a picture on a terminal, which leaves space for the summary on a usual one.
pub const MAX_ROWS: usize = 16;

/// For output that is no terminal.
const USUAL_COLUMNS: usize = 80;
