//! A bar chart.

use super::{batches, scenario, sections};
use crate::bench::Report;
use crate::clock::SHORT_TICKS;
use crate::text::number;

/// Formats the report as a chart of speeds, with a bar for each row that reads its input. It
/// follows the light or dark colour scheme of the viewer.
pub fn svg(report: &Report) -> String {
    let rows = || report.rows.iter().filter_map(|row| Some((row, row.speed?.median)));
    let names = rows().map(|(row, _)| row.name.chars().count()).max().unwrap_or(0);
    let left = names as f64 * LETTER + 2.0 * GAP;
    let bars = WIDTH - left - VALUE;
    let unit = SHORT_TICKS.to_lowercase();
    let mut body = String::new();
    let mut y = 2.0 * LINE + GAP;
    for (circumstances, rows) in sections(report) {
        y += LINE;
        body += &text(GAP, y, "section", &capitalised(&scenario(circumstances)));
        y += GAP;
        let speeds = rows.iter().filter_map(|row| Some((row, row.speed?.median)));
        let fastest = speeds.clone().map(|(_, speed)| speed).fold(1.0, f64::max);
        for (row, speed) in speeds {
            let width = (bars * speed / fastest).max(0.5);
            body += &text(left - GAP, y + BAR - 4.0, "name", &row.name);
            body += &format!(
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"2\"/>\n",
                BAR - 3.0
            );
            let ticks = number(row.ticks.median);
            let value = format!("{} MiB/s, {ticks} {unit}", grouped(speed));
            body += &text(left + width + GAP, y + BAR - 4.0, "value", &value);
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
        body += &text(GAP, y, "caption", &caption);
    }
    let title = format!("Hashing {}", batches(conditions));
    let height = y + LINE;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
         height=\"{height:.0}\" role=\"img\">\n<title>{}</title>\n{STYLE}\n{}{body}</svg>\n",
        escaped(&title),
        text(GAP, LINE + GAP, "title", &title),
    )
}

fn text(x: f64, y: f64, class: &str, content: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>\n", escaped(content))
}

/// Escapes a text for XML. Control characters, which XML does not allow, become spaces.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
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

/// Room for the text behind the longest bar.
const VALUE: f64 = 210.0;

const STYLE: &str = "<style>
svg { font: 12px system-ui, sans-serif; background: #fff; color-scheme: light dark }
text { fill: #1f2328 }
rect { fill: #3b76b8 }
.title { font-size: 16px; font-weight: 600 }
.section { font-weight: 600 }
.name { text-anchor: end; font-family: ui-monospace, monospace }
.value, .caption { fill: #59636e }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117 }
text { fill: #e6edf3 }
rect { fill: #5b9bd8 }
.value, .caption { fill: #9198a1 }
}
</style>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_xml() {
        assert_eq!(escaped("a<b>&\"c\"\u{1b}"), "a&lt;b&gt;&amp;&quot;c&quot; ");
        assert_eq!(grouped(1_234_567.0), "1\u{202f}234\u{202f}567");
        assert_eq!(grouped(999.6), "1\u{202f}000");
        assert_eq!(capitalised("hot"), "Hot");
    }
}
