"""What becomes of a run when something in it is another: a head or an MLP of another text, or a value of zero.

May use everything that `attention_viz.models.circuits` may, and that.
"""
