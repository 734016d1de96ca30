"""The Learn page: its URL parameters, its controls and its view."""
