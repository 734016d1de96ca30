"""Comparisons with what one would otherwise use: `make bench`. Ratios within one run, never limits on times."""
