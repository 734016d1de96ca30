"""Turn text, images and sound into tensors and tokens.

Uses `sources` and the rooms below it.
"""
