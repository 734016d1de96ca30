"""Records any torch module by its calls of torch's attention."""
