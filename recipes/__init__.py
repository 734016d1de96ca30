"""How the small models that ship were trained: one file a model, each reproducible from its seed.

`python -m recipes` trains them all, on one CPU thread, in about a minute each; `shapes` takes ten. The models are toys:
they know a few hundred words and a handful of patterns, and exist so that heads with a known job can be looked at
offline.
"""
