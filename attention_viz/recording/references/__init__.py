"""What a recorded run is held against: eager weights, whole or of some rows, and a run in float64."""
