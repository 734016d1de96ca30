"""The second way into a model: its own attention, heard by its products and softmaxes; uses the recorder alone."""
