"""Hears a model's own attention by its products and softmaxes; uses the recorder alone."""
