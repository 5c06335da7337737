"""Draws a bar chart as SVG, with times of the same work side by side."""

import dataclasses
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 960, 400, 130
LINE, BAR = 18, 12

STYLE = """
svg { font: 12px system-ui, sans-serif; background: #fff; color-scheme: light dark }
text { fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.section { font-weight: 600 }
.name { text-anchor: end; font-family: ui-monospace, monospace; font-size: 11px }
.value, .caption { fill: #59636e }
.ours { fill: #3b76b8 }
.other { fill: #c9822b }
.peer { fill: #a8b1ba }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117 }
text { fill: #e6edf3 }
.value, .caption { fill: #9198a1 }
.ours { fill: #5b9bd8 }
.other { fill: #d9964a }
.peer { fill: #5c6670 }
}
"""


@dataclasses.dataclass(frozen=True)
class Bar:
    name: str
    # ours, other or peer.
    kind: str
    seconds: float
    least: float
    most: float


def draw(title, captions, sections):
    """Draws `sections`, which are pairs of a name and bars. Bars have one scale in each section. Sections
    have different scales, because microseconds would be invisible beside seconds."""
    body = [text(8, 28, "title", title)]
    y = 28
    for caption in captions:
        y += 20
        body.append(text(8, y, "caption", caption))
    for name, bars in sections:
        y += 34
        body.append(text(8, y, "section", name))
        scale = (WIDTH - LEFT - RIGHT) / max(bar.seconds for bar in bars)
        for bar in bars:
            y += LINE
            length = max(bar.seconds * scale, 1)
            spread = f"{milliseconds(bar.least)} to {milliseconds(bar.most)} ms"
            body += [
                text(LEFT - 8, y, "name", shortened(bar.name)),
                f'<rect x="{LEFT}" y="{y - BAR + 2}" width="{length:.1f}" height="{BAR}" '
                f'class="{bar.kind}"><title>{escape(spread)}</title></rect>',
                text(LEFT + length + 6, y, "value", f"{milliseconds(bar.seconds)} ms"),
            ]
    height = y + 16
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        *body,
        "</svg>\n",
    ])


def text(x, y, kind, content):
    return f'<text x="{x:.1f}" y="{y}" class="{kind}">{escape(content)}</text>'


def shortened(name):
    """Shortens a name to fit left of the bars."""
    return name if len(name) <= 56 else f"{name[:55]}…"


def milliseconds(seconds):
    value = seconds * 1000
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f}"
