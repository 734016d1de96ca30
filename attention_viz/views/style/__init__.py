"""Shared parts of pictures: colours, the wording of tokens, hatching, and descriptions in words."""
