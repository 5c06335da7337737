"""What scripts/bench-images and scripts/bench-scaling share."""
