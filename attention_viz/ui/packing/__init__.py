"""Runs as the bytes that the components in the browser read, packed once per run and kept for as long as it is."""
