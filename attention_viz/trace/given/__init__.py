"""Traces of queries, keys and values, or of weights, from outside."""
