"""What wrote a number inside a model: an attention score or an output opened into the parts that it is the sum of.

May use everything that `attention_viz.models` may, and its recorder.
"""
