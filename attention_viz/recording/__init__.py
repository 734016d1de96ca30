"""Recording what attention computes inside a model, proving it exact, and measuring its distance from the model's own.

Uses `inputs` and the rooms below it.
"""
