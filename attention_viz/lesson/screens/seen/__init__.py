"""Lessons on what is no text: a picture, and a sound."""
