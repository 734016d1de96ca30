"""What a model from a folder is tried with before it is loaded."""
