"""The browser components as notebook widgets (`anywidget`)."""
