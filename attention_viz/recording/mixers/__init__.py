"""Layers without a softmax: hears the kernels that models call, and names their arguments as terms."""
