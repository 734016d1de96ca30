"""The Masks page."""
