"""Loading a model by its name or from a folder, after a trial run in a process of its own."""
