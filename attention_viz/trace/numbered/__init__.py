"""Layers by the model's own numbers: which of them a trace keeps, and how they are asked for."""
