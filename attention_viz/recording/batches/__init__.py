"""Several edited, cut-off or patched runs of a model in one pass."""
