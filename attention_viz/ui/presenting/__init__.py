"""Slides on every page, turned with the keys."""
