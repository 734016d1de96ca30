"""Text, images and sound turned into tensors and tokens.

Uses `sources` and the rooms below it.
"""
