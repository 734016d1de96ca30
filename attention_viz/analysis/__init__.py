"""Traces in, numbers out: metrics, search, similarity, readings, and comparing two runs."""
