"""Reads a model's weights: whether they changed, and their matrices."""
