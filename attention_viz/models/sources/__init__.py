"""Where models come from: the catalogue, folders, the hub, and moments of a training."""
