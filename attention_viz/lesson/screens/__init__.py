"""One file per lesson: its facts on the reader's sentence, its figure and its control."""
