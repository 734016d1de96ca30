"""Our attention inside a model: the recorder, the ways into a model, the probe, and the comparison with a plain run."""
