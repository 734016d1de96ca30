"""Load a model by name or from a folder, after a dry run in a separate process."""
