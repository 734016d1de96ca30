"""One file a picture of how a head comes about: its matrices, and one number, row or output of them opened."""
