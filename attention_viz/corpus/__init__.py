"""Many texts: a model's heads scanned over a corpus, and the results; uses the layers below and no page."""
