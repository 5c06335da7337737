//! Pictures as SVG, which follow the light or dark colour scheme of the viewer.

/// A picture of a fixed width, whose elements are added to its body.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Width in pixels.
    pub width: f64,
    /// The text on top, which is the name of the picture, too.
    pub title: String,
    /// Rules of CSS besides the rules of all pictures.
    pub style: &'static str,
    /// Rules in their place if the viewer is dark.
    pub dark_style: &'static str,
    /// The elements.
    pub body: String,
}

impl Picture {
    /// Adds a text that begins at `x`, or ends there if the style of its class says so.
    pub fn text(&mut self, x: f64, y: f64, class: &str, content: &str) {
        let content = escaped(content);
        self.body +=
            &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{content}</text>\n");
    }

    /// Returns the document.
    pub fn finish(mut self, height: f64) -> String {
        let title = self.title.clone();
        self.text(MARGIN, TITLE, "title", &title);
        let Self { width, style, dark_style, body, .. } = self;
        let size = format!("width=\"{width:.0}\" height=\"{height:.0}\"");
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" {size} role=\"img\">\n\
             <title>{}</title>\n<style>\n{STYLE}{style}@media (prefers-color-scheme: dark) {{\n{DARK}{dark_style}}}\n\
             </style>\n<path class=\"paper\" d=\"M0 0H{width:.0}V{height:.0}H0z\"/>\n{body}</svg>\n",
            escaped(&title),
        )
    }
}

/// Escapes a text for XML, without characters that XML does not allow.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&apos;",
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Distance of the title from the left, and of its base from the top.
const MARGIN: f64 = 10.0;
const TITLE: f64 = 24.0;

const STYLE: &str = "svg { font: 12px system-ui, sans-serif; color-scheme: light dark }
text { fill: #1f2328 }
.paper { fill: #ffffff }
.title { font-size: 16px; font-weight: 600 }
.note { fill: #59636e }
";

const DARK: &str = "text { fill: #e6edf3 }
.paper { fill: #0d1117 }
.note { fill: #9198a1 }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_xml() {
        let text = escaped("<a b=\"1\" c='2'>&\u{1b}\u{ffff}");
        assert_eq!(text, "&lt;a b=&quot;1&quot; c=&apos;2&apos;&gt;&amp;");
    }
}
