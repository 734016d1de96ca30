"""Slides on every page: the button, the URL and the component."""
