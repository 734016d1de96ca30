"""A chat inside a trace: whose tokens are where."""
