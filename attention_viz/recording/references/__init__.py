"""References for a recorded run: eager weights, whole or in rows, and a more exact run."""
