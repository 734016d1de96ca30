"""The Step by step page: what its address keeps, its controls, and what stands on it."""
