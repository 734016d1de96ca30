"""A layer's number and its index, told apart by their types; both are ints when the code runs."""

from typing import NewType

# The model's own number of a layer. A hybrid's attention layers may be 3, 7 and 11.
LayerNumber = NewType("LayerNumber", int)
# Where a layer stands in a list of layers, from 0: among those that a trace keeps, or among all that attend.
LayerIndex = NewType("LayerIndex", int)
