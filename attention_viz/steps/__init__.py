"""One head opened: its steps in order, and each cell of a step as its arithmetic.

Uses `analysis`, `edits`, `trace`, `operation` and what stands below them.
"""
