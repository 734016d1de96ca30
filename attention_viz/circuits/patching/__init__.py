"""Runs in which a head or an MLP computes what it computed for another text, or nothing."""
