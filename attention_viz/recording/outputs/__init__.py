"""A model's output: which of the things it returns that is, and how its rows are made from the body's last state.

Uses the operation and the trace, and what stands below them.
"""
