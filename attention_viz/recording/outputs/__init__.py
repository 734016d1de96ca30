"""Finds a model's output, and computes its rows from the body's last state."""
