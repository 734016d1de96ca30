"""Slides for a room, on every page: the button, what the address keeps of them, and the component that shows them."""
