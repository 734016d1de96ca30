"""How exercises are made, by theme: each function takes a scene and a seed and gives one `Exercise`."""
