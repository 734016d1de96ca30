"""The Cross-attention page."""
