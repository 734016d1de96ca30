"""The Class page: its URL parameters, its controls and its view."""
