"""Our own multi-head attention as a model: words with seeded vectors, untrained.

Uses `protocol` and the rooms below it. `av.scratch` is the function in `model`.
"""
