"""The immutable record of one run: layers, tokens, provenance, files and tables, and traces made from traces.

Uses `operation` and what stands below it.
"""
