"""The Heads page: all heads of a model as one atlas."""
