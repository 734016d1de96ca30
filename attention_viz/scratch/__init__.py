"""Our own multi-head attention as a model: words with seeded vectors, untrained; and what every model answers to.

Uses `steps` and what stands below it. `av.scratch` is the function in `model`.
"""
