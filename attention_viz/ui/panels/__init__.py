"""Panels of other packages below Explore, found by their entry points and run beside the page."""
