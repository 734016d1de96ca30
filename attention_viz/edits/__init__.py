"""Changes made inside a model while it runs: what they are, where they take place, and what they make of a call.

Uses `trace`, `operation` and what stands below them.
"""
