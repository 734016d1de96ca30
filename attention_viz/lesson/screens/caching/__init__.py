"""Screens about what a model keeps of a text: a cache of keys and values, and windows."""
