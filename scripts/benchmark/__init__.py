"""Code shared by scripts/bench-images, scripts/bench-scaling, scripts/record and scripts/first-run.

What the last two import runs with Python 3.9 and its standard library, on Linux, macOS and FreeBSD.
"""
