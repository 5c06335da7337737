//! A bar chart.

use super::{batches, scenario, sections};
use crate::bench::Report;
use crate::clock::SHORT_TICKS;
use crate::svg::Picture;
use crate::text::number;

/// Formats the report as a chart of speeds, with a bar for each row that reads its input. It
/// follows the light or dark colour scheme of the viewer.
pub fn svg(report: &Report) -> String {
    let rows = || report.rows.iter().filter_map(|row| Some((row, row.speed?.median)));
    let names = rows().map(|(row, _)| row.name.chars().count()).max().unwrap_or(0);
    let left = names as f64 * LETTER + 2.0 * GAP;
    let bars = WIDTH - left - VALUE;
    let unit = SHORT_TICKS.to_lowercase();
    let (title, body) = (format!("Hashing {}", batches(&report.conditions)), String::new());
    let mut picture = Picture { width: WIDTH, title, style: STYLE, dark_style: DARK, body };
    let mut y = 2.0 * LINE + GAP;
    for (circumstances, rows) in sections(report) {
        y += LINE;
        picture.text(GAP, y, "section", &capitalised(&scenario(circumstances)));
        y += GAP;
        let speeds = rows.iter().filter_map(|row| Some((row, row.speed?.median)));
        let fastest = speeds.clone().map(|(_, speed)| speed).fold(1.0, f64::max);
        for (row, speed) in speeds {
            let width = (bars * speed / fastest).max(0.5);
            picture.text(left - GAP, y + BAR - 4.0, "name", &row.name);
            picture.body += &format!(
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"2\"/>\n",
                BAR - 3.0
            );
            let ticks = number(row.ticks.median);
            let value = format!("{} MiB/s, {ticks} {unit}", grouped(speed));
            picture.text(left + width + GAP, y + BAR - 4.0, "note", &value);
            y += BAR;
        }
    }
    let machine = &report.machine;
    let conditions = &report.conditions;
    let captions = [
        format!("MiB/s, and {unit} for a block ({})", super::unit(conditions)),
        format!("{}; {}; {}", machine.cpu, machine.kernel, machine.compiler),
        format!("{} UTC; median of {} samples", machine.date, conditions.repetitions),
    ];
    y += GAP;
    for caption in captions {
        y += LINE - 2.0;
        picture.text(GAP, y, "note", &caption);
    }
    picture.finish(y + LINE)
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Formats a number with thin spaces between groups of three digits: `12 345`.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

const WIDTH: f64 = 960.0;
const LINE: f64 = 20.0;
const BAR: f64 = 19.0;
const GAP: f64 = 8.0;

/// Approximate width of a letter.
const LETTER: f64 = 7.4;

/// Room for the text after the longest bar.
const VALUE: f64 = 210.0;

const STYLE: &str = "rect { fill: #3b76b8 }
.section { font-weight: 600 }
.name { text-anchor: end; font-family: ui-monospace, monospace }
";

const DARK: &str = "rect { fill: #5b9bd8 }\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers() {
        assert_eq!(grouped(1_234_567.0), "1\u{202f}234\u{202f}567");
        assert_eq!(grouped(999.6), "1\u{202f}000");
        assert_eq!(capitalised("hot"), "Hot");
    }
}
