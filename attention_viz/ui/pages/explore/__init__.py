"""The Explore page: its URL parameters, its controls and its view."""
