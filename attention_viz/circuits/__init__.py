"""What wrote a number inside a model: contributions, patched runs, the logit lens, circuits from weights.

Uses `models` and the rooms below it. `av.circuits` is the function in `weights`.
"""
