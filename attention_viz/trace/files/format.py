"""The conventions that writing and reading trace files share."""

__all__ = ["FORMATS", "FORMAT_OF_ALL", "FORMAT_OF_LESS", "FORMAT_OF_SOME", "HEADER", "WEIGHTS", "WHAT"]

# A version that knows nothing of layers left out would give those that are there other numbers: it reads format 1 only.
# One that knows nothing of weights in place of terms, or of rounded numbers, reads formats 1 and 2.
# Version 1.0.0 counts a hybrid's attention layers from 0: `kept_entry` writes that, and the model's own numbers beside.
FORMAT_OF_ALL, FORMAT_OF_SOME, FORMAT_OF_LESS = FORMATS = (1, 2, 3)
# The entry of the file's metadata that holds our header.
HEADER = "attention_viz"
# A layer's tensor in a file of weights alone.
WEIGHTS = "weights"
# What of a trace a file holds.
WHAT = ("all", "terms", WEIGHTS)
