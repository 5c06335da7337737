"""What scripts/bench-images is made of."""
