"""Lessons on heads that were trained: what they do, how they work together, what they write, and what weights hide."""
