"""Exercises by theme: each function makes one `Exercise` of a scene and seed."""
