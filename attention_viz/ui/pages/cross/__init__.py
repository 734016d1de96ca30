"""The Cross-attention page: its URL parameters, its controls and its view."""
