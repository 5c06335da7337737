"""Code shared by scripts/bench-images and scripts/bench-scaling."""
