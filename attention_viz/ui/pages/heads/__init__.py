"""The Heads page: its URL parameters, its controls and its view."""
