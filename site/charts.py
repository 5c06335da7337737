"""Draws the charts of the page of benchmark records, as SVG in the colours of the page (site.css)."""

import csv
import json
import math
import re
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, RIGHT = 480, 64
LABEL, BAR, GAP = 18, 12, 8


class Bar(NamedTuple):
    name: str
    # The colour: this project, or another program.
    is_ours: bool
    value: float
    # The least and the most value that was measured, or None.
    spread: tuple[float, float] | None = None


def all_charts(records):
    """Returns the charts by name. `records` is the folder of the records."""
    folder = records / "2026-11-22-sapphire-rapids"
    with open(folder / "images.json") as file:
        images = json.load(file)
    groups = {
        "raw": ["image-raw"],
        "formats": ["image-qcow2", "image-chain", "image-zlib", "image-zstd", "image-nbd"],
        "many": ["many"],
        "empty": ["empty-100G", "empty-8T"],
    }
    charts = {name: times(folder.name, images, rows) for name, rows in groups.items()}
    charts["digests"] = digests(records / "2026-11-21-sapphire-rapids/hashes-4k.csv")
    return charts


def times(date, record, names):
    """Charts the times of the commands of some rows of a record of images."""
    rows = {row["name"]: row for row in record["rows"]}
    sections = []
    for name in names:
        commands = rows[name]["commands"]
        bars = [
            Bar(shortened(it["command"]), it["ours"], it["median"], (it["min"], it["max"]))
            for it in commands
            if "-d null" not in it["command"]
        ]
        sections.append((rows[name]["title"] if len(names) > 1 else "", bars))
    machine = record["machine"]
    caption = (
        f"{machine['cpu']}, {machine['processors']} processors, {machine['blksum']}, {date[:10]}. "
        f"Medians of {machine['runs']} runs. A thin line is the range of these runs."
    )
    return figure("seconds, less is better", sections, caption)


def shortened(command):
    """Leaves out how qemu-img is made to only read."""
    return re.sub(r"^(qemu-img convert) -f \S+ .* (?:--target-image-opts) (\S+) .*", r"\1 \2 (to nowhere)", command)


def digests(path):
    """Charts the fastest implementation of each digest, and OpenSSL's."""
    fastest, openssl = {}, {}
    with open(path) as file:
        for row in csv.DictReader(file):
            digest, name = row["digest"], row["implementation"]
            if digest == "null" or not row["mib_per_second"]:
                continue
            speed = float(row["mib_per_second"]) / 1024
            if name.endswith("(OpenSSL)"):
                openssl[digest] = speed
            elif "(" not in name and speed > fastest.get(digest, (0, ""))[0]:
                fastest[digest] = speed, name.removeprefix(f"{digest}-")
    shown = ["md5", "sha1", "sha256", "sha512-256", "sha3-256", "blake2b512", "blake2s256", "blake3"]
    bars = []
    for digest in shown:
        speed, name = fastest[digest]
        bars.append(Bar(f"{digest} ({name})", True, speed))
        if digest in openssl:
            bars.append(Bar(f"{digest} (OpenSSL)", False, openssl[digest]))
    caption = f"Intel Sapphire Rapids, one thread, {path.parent.name[:10]}. CRCs and the xxh family are 14 to 60 GiB/s."
    return figure("GiB/s, more is better", [("", bars)], caption)


def figure(unit, sections, caption):
    """Returns a figure with one axis. `sections` are pairs of a title and bars."""
    most = max(bar.spread[1] if bar.spread else bar.value for _, bars in sections for bar in bars)
    step = tick_step(most)
    end = math.ceil(most / step) * step
    scale = (WIDTH - RIGHT) / end
    body, y = [], 0
    for title, bars in sections:
        if title:
            y += LABEL + GAP
            body.append(f'<text class="title" x="0" y="{y - 4}">{escape(title)}</text>')
        for bar in bars:
            y += LABEL
            body.append(f'<text class="name" x="0" y="{y - 4}">{escape(bar.name)}</text>')
            kind = "ours" if bar.is_ours else "other"
            length = max(bar.value * scale, 1)
            body.append(f'<rect class="{kind}" x="0" y="{y}" width="{length:.1f}" height="{BAR}"/>')
            right = length
            if bar.spread:
                least, right = (value * scale for value in bar.spread)
                body.append(f'<path class="spread" d="M{least:.1f} {y + BAR / 2}H{right:.1f}"/>')
            x = max(length, right) + 6
            body.append(f'<text class="value" x="{x:.1f}" y="{y + BAR - 2}">{number(bar.value)}</text>')
            y += BAR + GAP
    grid = []
    for count in range(round(end / step) + 1):
        x = count * step * scale
        anchor = "start" if count == 0 else "middle"
        grid.append(f'<path class="grid" d="M{x:.1f} 0V{y}"/>')
        grid.append(f'<text class="tick" text-anchor="{anchor}" x="{x:.1f}" y="{y + 14}">{count * step:.4g}</text>')
    grid.append(f'<text class="tick" x="0" y="{y + 32}">{unit}</text>')
    what = "; ".join(f"{bar.name}: {number(bar.value)}" for _, bars in sections for bar in bars)
    lines = "\n".join(grid + body)
    return (
        f'<figure class="chart">\n<svg viewBox="-8 0 {WIDTH + 8} {y + 38}" role="img" '
        f'aria-label="{escape(f"{unit}: {what}", {chr(34): "&quot;"})}">\n{lines}\n</svg>\n'
        f"<figcaption><span class='ours'>■</span> this project <span class='other'>■</span> other programs. "
        f"{escape(caption)}</figcaption>\n</figure>"
    )


def tick_step(most):
    """Returns the distance of ticks, 1, 2 or 5 times a power of ten, of which four to nine fit."""
    power = 10 ** math.floor(math.log10(most / 4))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= most / 4)


def number(value):
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
