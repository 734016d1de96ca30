"""The Compare page: two heads side by side, and their difference."""
