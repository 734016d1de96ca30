"""What lessons tell of a picture and of a sound, computed from runs of the samples that ship."""
