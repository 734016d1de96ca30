"""Many texts: a model's heads scanned over a corpus, and what is told of them; uses the rooms below and no page."""
