"""One folder per page."""
