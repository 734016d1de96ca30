"""Finds each position's part of an image or audio, by changing that part."""
