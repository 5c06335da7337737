"""Draws charts as SVG: bars, with times of the same work side by side, and lines, with rates by the number of threads."""

import dataclasses
import math
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 960, 400, 130
LINE, BAR = 18, 12
# Of a panel of lines, and its margins.
PANEL_WIDTH, PANEL_HEIGHT = 490, 280
PANEL_LEFT, PANEL_RIGHT, PANEL_TOP, PANEL_BOTTOM = 68, 136, 40, 32
LABEL = 12

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
.grid { stroke: #d8dee4 }
.tick, .tick.peer { fill: #59636e; font-size: 11px }
.tick.ours { fill: #3b76b8; font-weight: 600 }
.right { text-anchor: end }
polyline { fill: none; stroke-width: 1.5 }
polyline.ours { fill: none; stroke: #3b76b8; stroke-width: 2.5 }
polyline.peer { fill: none; stroke: #a8b1ba }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117 }
text { fill: #e6edf3 }
.value, .caption { fill: #9198a1 }
.ours { fill: #5b9bd8 }
.other { fill: #d9964a }
.peer { fill: #5c6670 }
.grid { stroke: #30363d }
.tick, .tick.peer { fill: #9198a1 }
.tick.ours { fill: #5b9bd8 }
polyline.ours { stroke: #5b9bd8 }
polyline.peer { stroke: #5c6670 }
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
    have different scales, because microseconds would be invisible next to seconds."""
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
    return document(title, body, y + 16)


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    # ours or peer.
    kind: str
    # Rates in GiB/s by the number of threads.
    points: dict


def draw_lines(title, captions, panels):
    """Draws `panels`, which are pairs of a name and lines, two in a row. Both axes are logarithmic, so a rate that
    grows with the threads is a straight line, and the distance of two lines is their ratio."""
    body = [text(8, 28, "title", title)]
    top = 28
    for caption in captions:
        top += 20
        body.append(text(8, top, "caption", caption))
    top += 16
    for at, (name, lines) in enumerate(panels):
        body += panel(at % 2 * PANEL_WIDTH, top + at // 2 * PANEL_HEIGHT, name, lines)
    return document(title, body, top + (len(panels) + 1) // 2 * PANEL_HEIGHT, 2 * PANEL_WIDTH)


def panel(left, top, name, lines):
    threads = [x for line in lines for x in line.points]
    rates = [y for line in lines for y in line.points.values()]
    low, high = math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates)))
    high = max(high, low + 1)
    doublings = max(1, math.ceil(math.log2(max(threads))))
    width, height = PANEL_WIDTH - PANEL_LEFT - PANEL_RIGHT, PANEL_HEIGHT - PANEL_TOP - PANEL_BOTTOM

    def place(x, y):
        return (
            left + PANEL_LEFT + math.log2(x) / doublings * width,
            top + PANEL_TOP + (high - math.log10(y)) / (high - low) * height,
        )

    body = [text(left + 8, top + 20, "section", name)]
    for exponent in range(low, high + 1):
        x, y = place(1, 10**exponent)
        body += [
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + width:.1f}" y2="{y:.1f}" class="grid"/>',
            text(x - 6, y + 4, "tick right", f"{10**exponent:,}"),
        ]
    for exponent in range(doublings + 1):
        x, y = place(2**exponent, 10**low)
        body.append(text(x - 4, y + 16, "tick", f"{2**exponent}"))
    # From the top down, so that each name can be below the one above it.
    below = top
    for number, line in enumerate(sorted(lines, key=lambda it: -it.points[max(it.points)])):
        places = " ".join("{:.1f},{:.1f}".format(*place(*it)) for it in line.points.items())
        dash = f' stroke-dasharray="{2 + 2 * number} 3"' if line.kind == "peer" else ""
        values = ", ".join(f"{x}: {rate(y)}" for x, y in line.points.items())
        body.append(
            f'<polyline points="{places}" class="{line.kind}"{dash}>'
            f"<title>{escape(f'{line.name}, GiB/s: {values}')}</title></polyline>"
        )
        last = max(line.points)
        x, y = place(last, line.points[last])
        below = max(y + 4, below + LABEL)
        body.append(text(x + 6, below, f"tick {line.kind}", f"{line.name} {rate(line.points[last])}"))
    return body


def rate(value):
    """Returns a rate with three digits that count."""
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{digits}f}"


def document(title, body, height, width=WIDTH):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
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
