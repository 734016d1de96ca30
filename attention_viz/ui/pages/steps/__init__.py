"""The Step by step page: every intermediate number of one head."""
