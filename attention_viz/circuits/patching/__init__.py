"""Replace the output of heads or MLPs by that of another text, or by zero."""
