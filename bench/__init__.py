"""Speed as ratios measured in one run (DESIGN 10). `make bench` runs it."""
