"""Traces in, numbers out: metrics, search, likeness, readings, and comparing two runs."""
