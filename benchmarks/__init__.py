"""Comparisons with the alternatives: `make bench`. Ratios within one run, never limits on times."""
