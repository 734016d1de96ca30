"""Record a model's attention, prove the record exact, and measure its distance from the model's own run."""
