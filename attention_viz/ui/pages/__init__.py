"""One folder per page: its URL parameters, controls and view."""
