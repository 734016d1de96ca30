"""What a head or an MLP of one text does in another: put there, run, and compared.

May use everything that `attention_viz.models.circuits` may, and that.
"""
