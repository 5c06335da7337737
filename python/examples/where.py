#!/usr/bin/env python3
"""Shows where two images differ, as a line of characters and a table.

    where.py LEFT RIGHT

Each character is an equal part of the larger image: `#` if some of it differs, `.` if it has data, blank for zeros.
"""

import argparse
import sys

import blkhash

CELLS = 64


def main(left, right):
    with blkhash.Image(left) as expected, blkhash.Image(right) as image:
        differences = blkhash.diff(expected, image, block_size=4096)
        size = max(expected.size, image.size)
        extents = [extent for extent in image.extents() if extent.kind == "data"]
    if not differences:
        print("no differences")
        return 0
    cells = [" "] * CELLS
    for mark, found in ((".", extents), ("#", differences)):
        for it in found:
            first, last = it.offset * CELLS // size, (it.offset + it.length - 1) * CELLS // size
            cells[first : last + 1] = mark * (last + 1 - first)
    print(f"|{''.join(cells)}|")
    for it in differences:
        print(f"{it.offset:>12} {it.length:>12}  {it.kind}")
    return 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Shows where two images differ.")
    parser.add_argument("left")
    parser.add_argument("right")
    args = parser.parse_args()
    sys.exit(main(args.left, args.right))
