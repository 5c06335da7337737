"""Code shared by scripts/bench-images, scripts/bench-scaling and scripts/record.

What the last one imports runs with Python 3.9 and its standard library, on Linux, macOS and FreeBSD.
"""
