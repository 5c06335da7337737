//! The picture of a comparison as SVG. It follows the light or dark colour scheme of the viewer.

use blkbench::svg::Picture;
use blkimage::partition::Partition;
use blksum::Relation;

use super::picture::{Cells, Look, round};
use super::relations::{self, Counts, Labels};
use crate::blkhash::source::shown;

/// Draws the picture under the names of both sides and the line `summary`.
pub fn draw(cells: &Cells, labels: &Labels, summary: &str) -> String {
    let counts = cells.counts();
    let rows = counts.len().div_ceil(cells.columns());
    let bottom = TOP + rows as f64 * PITCH;
    let title = format!("{} and {}", name(&labels.left), name(&labels.right));
    let (style, dark_style, body) = (STYLE, DARK, String::new());
    let mut picture = Picture { width: WIDTH, title, style, dark_style, body };
    picture.text(GAP, 44.0, "note", summary);
    let row_size = cells.cell_size().saturating_mul(cells.columns() as u64);
    for row in 0..rows {
        let y = TOP + row as f64 * PITCH + 9.0;
        picture.text(LEFT - GAP, y, "offset", &round(row_size.saturating_mul(row as u64)));
    }
    for (index, counts) in counts.iter().enumerate() {
        picture.body += &cell(cells, index, counts);
    }
    let drawn = labels.partitions.iter().take(MAX_PARTITIONS);
    let drawn: Vec<_> = drawn.filter_map(|it| Some((it.number, span(cells, it)?))).collect();
    for (number, (first, end)) in &drawn {
        let outline = outline(*first, *end, cells.columns());
        picture.body += &format!(
            "<path class=\"part\" d=\"{outline}\"><title>partition {number}</title></path>\n"
        );
    }
    let right = LEFT + cells.columns() as f64 * PITCH;
    brackets(&mut picture, &drawn, cells.columns(), right + GAP);
    let bottom = legend(&mut picture, cells, bottom + 2.0 * GAP);
    picture.finish(bottom + GAP)
}

/// Returns a cell with its offsets and counts as a tooltip.
fn cell(cells: &Cells, index: usize, counts: &Counts) -> String {
    let (column, row) = (index % cells.columns(), index / cells.columns());
    let (x, y) = (LEFT + column as f64 * PITCH, TOP + row as f64 * PITCH);
    let size = cells.cell_size();
    let offset = size.saturating_mul(index as u64);
    let end = cells.size().min(offset.saturating_add(size));
    let class = class(cells.look(index), counts);
    format!(
        "<path class=\"{class}\" d=\"M{x} {y}h{CELL}v{CELL}h-{CELL}z\">\
         <title>{offset} to {end}: {}</title></path>\n",
        counts.text()
    )
}

/// Returns the classes of a cell: its most frequent kind, and the share of blocks that differ.
fn class(look: Look, counts: &Counts) -> String {
    let share = match look {
        Look::Equal => return "equal".to_owned(),
        Look::Zeros => return "zeros".to_owned(),
        Look::Unknown => return "unknown".to_owned(),
        Look::Part(quarters) => quarters,
        Look::Unreadable => return "unreadable s4".to_owned(),
        Look::Whole => 4,
    };
    let kinds = Relation::ALL.into_iter().filter(|kind| kind.is_different());
    let kind = kinds.max_by_key(|kind| counts.of(*kind)).unwrap_or(Relation::Changed);
    format!("{} s{share}", kind.name())
}

/// Returns the first cell of a partition and the cell after it.
fn span(cells: &Cells, partition: &Partition) -> Option<(usize, usize)> {
    let end = partition.offset.saturating_add(partition.length).min(cells.size());
    if partition.offset >= end {
        return None;
    }
    let index = |offset: u64| (offset / cells.cell_size()) as usize;
    Some((index(partition.offset), index(end - 1) + 1))
}

/// Returns the path around the cells from `first` to `end`, row by row.
fn outline(first: usize, end: usize, columns: usize) -> String {
    let x = |column: usize| LEFT + column as f64 * PITCH - 1.0;
    let y = |row: usize| TOP + row as f64 * PITCH - 1.0;
    let (top, left) = (first / columns, first % columns);
    let (bottom, right) = ((end - 1) / columns, (end - 1) % columns + 1);
    if top == bottom {
        return format!("M{} {}H{}V{}H{}z", x(left), y(top), x(right), y(top + 1), x(left));
    }
    if top + 1 == bottom && right <= left {
        // The two parts do not touch.
        return format!(
            "M{} {}H{}V{}H{}z M{} {}H{}V{}H{}z",
            x(left),
            y(top),
            x(columns),
            y(top + 1),
            x(left),
            x(0),
            y(bottom),
            x(right),
            y(bottom + 1),
            x(0),
        );
    }
    format!(
        "M{} {}H{}V{}H{}V{}H{}V{}H{}z",
        x(left),
        y(top),
        x(columns),
        y(bottom),
        x(right),
        y(bottom + 1),
        x(0),
        y(top + 1),
        x(left),
    )
}

/// Draws lines next to the rows of each partition, with their numbers.
fn brackets(picture: &mut Picture, drawn: &[(u32, (usize, usize))], columns: usize, x: f64) {
    let mut rows: Vec<_> = drawn
        .iter()
        .map(|(number, (first, end))| (first / columns, (end - 1) / columns, *number))
        .collect();
    rows.sort_unstable();
    // The last row of each lane.
    let mut lanes: Vec<usize> = Vec::new();
    let mut labels: Vec<(usize, String)> = Vec::new();
    for (first, last, number) in rows {
        let lane = lanes.iter().position(|end| *end < first).unwrap_or(lanes.len());
        if lane < MAX_LANES {
            lanes.resize(lanes.len().max(lane + 1), last);
            lanes[lane] = last;
            let (top, bottom) = (TOP + first as f64 * PITCH, TOP + last as f64 * PITCH + CELL);
            let x = x + lane as f64 * 6.0;
            picture.body +=
                &format!("<path class=\"bracket\" d=\"M{} {top}h3V{bottom}h-3\"/>\n", x - 3.0);
        }
        match labels.last_mut() {
            Some((row, label)) if *row == first => *label += &format!(", {number}"),
            _ => labels.push((first, format!("partition {number}"))),
        }
    }
    let x = x + lanes.len() as f64 * 6.0;
    for (row, label) in labels {
        picture.text(x, TOP + row as f64 * PITCH + 9.0, "label", &clipped(&label, MAX_LABEL));
    }
}

/// Explains the cells that occur, from `y` on. Returns the end of the legend.
fn legend(picture: &mut Picture, cells: &Cells, y: f64) -> f64 {
    let mut total = Counts::default();
    for counts in cells.counts() {
        Relation::ALL.into_iter().for_each(|kind| total.add(kind, counts.of(kind)));
    }
    let looks: Vec<_> = (0..cells.counts().len()).map(|index| cells.look(index)).collect();
    let mut entries: Vec<(String, &str)> = Vec::new();
    for kind in Relation::ALL.into_iter().filter(|kind| kind.is_different() && total.of(*kind) > 0)
    {
        entries.push((format!("{} s4", kind.name()), relations::text(kind)));
    }
    for (look, class, meaning) in [
        (Look::Equal, "equal", "equal"),
        (Look::Zeros, "zeros", "zeros in both"),
        (Look::Unknown, "unknown", "not compared"),
    ] {
        if looks.contains(&look) {
            entries.push((class.to_owned(), meaning));
        }
    }
    let mut scale = cells.scale();
    if looks.iter().any(|look| matches!(look, Look::Part(_))) {
        scale += ", paler where only a part of it differs";
    }
    let mut x = LEFT;
    for (class, meaning) in entries {
        picture.body +=
            &format!("<path class=\"{class}\" d=\"M{x} {y}h{CELL}v{CELL}h-{CELL}z\"/>\n");
        picture.text(x + PITCH + 4.0, y + 10.0, "label", meaning);
        x += PITCH + 4.0 + meaning.len() as f64 * LETTER + 2.0 * GAP;
    }
    let y = y + CELL + 2.0 * GAP;
    picture.text(LEFT, y, "note", &scale);
    y + GAP
}

fn name(name: &std::ffi::OsStr) -> String {
    clipped(&shown(name), MAX_NAME)
}

/// Returns the text, without its middle if it is longer than `limit` characters.
fn clipped(text: &str, limit: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= limit {
        return text.to_owned();
    }
    let half = limit / 2;
    let (start, end) = (&characters[..half], &characters[characters.len() - half + 1..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// Maximum number of cells in a row, and of rows.
pub const COLUMNS: usize = 64;
pub const MAX_ROWS: usize = 64;

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 96.0;
const TOP: f64 = 64.0;
const CELL: f64 = 11.0;
const PITCH: f64 = 13.0;
const GAP: f64 = 10.0;

/// Approximate width of a letter.
const LETTER: f64 = 6.6;

/// Maximum number of characters of a name, and of the numbers of partitions that begin in one row.
const MAX_NAME: usize = 56;
const MAX_LABEL: usize = 17;

/// Maximum number of partitions that are drawn, and of overlapping ones next to the rows.
const MAX_PARTITIONS: usize = 64;
const MAX_LANES: usize = 4;

const STYLE: &str = ".offset { text-anchor: end; font-size: 10px; fill: #59636e }
.label { font-size: 11px }
.changed { fill: #cf222e }
.zeroed { fill: #8250df }
.written { fill: #0969da }
.left-only, .right-only { fill: #bc4c00 }
.unreadable { fill: #1f2328 }
.equal { fill: #cdd5de }
.zeros { fill: #f0f2f5 }
.unknown { fill: #f5dd90 }
.s1 { fill-opacity: .45 }
.s2 { fill-opacity: .65 }
.s3 { fill-opacity: .82 }
.part { fill: none; stroke: #59636e; stroke-width: 1; pointer-events: none }
.bracket { fill: none; stroke: #59636e; stroke-width: 1.5 }
";

const DARK: &str = ".offset { fill: #9198a1 }
.changed { fill: #ff6b63 }
.zeroed { fill: #b78cff }
.written { fill: #58a6ff }
.left-only, .right-only { fill: #f0883e }
.unreadable { fill: #f0f6fc }
.equal { fill: #3d4652 }
.zeros { fill: #1a2029 }
.unknown { fill: #7a6420 }
.part, .bracket { stroke: #9198a1 }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(clipped("abcdefghij", 10), "abcdefghij");
        assert_eq!(clipped("abcdefghijk", 10), "abcde…hijk");
    }

    #[test]
    fn outlines_of_partitions() {
        let path = |first, end| outline(first, end, 4).matches('z').count();
        assert_eq!((path(0, 4), path(1, 6), path(3, 5), path(2, 6), path(1, 12)), (1, 1, 2, 2, 1));
    }
}
