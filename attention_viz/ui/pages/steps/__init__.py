"""The Step by step page: its URL parameters, its controls and its view."""
