"""Changes made inside a model while it runs: their kinds, their places, and their effect on a call.

Uses `trace`, `operation` and the packages below them.
"""
