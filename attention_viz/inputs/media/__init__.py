"""Open, check and prepare images and sounds for a model."""
