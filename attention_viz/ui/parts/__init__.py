"""The pages' shared parts."""
