"""A first layer's scores, and the way from a layer's heads to the model's answer."""
