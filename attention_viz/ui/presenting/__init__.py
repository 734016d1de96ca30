"""Slides on every page, led through by the keys."""
