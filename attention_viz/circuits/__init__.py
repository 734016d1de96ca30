"""Find what wrote a number inside a model.

Uses `models` and the rooms below it. `av.circuits` is the function in `weights`.
"""
