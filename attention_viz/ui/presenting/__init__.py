"""Slides on every page."""
