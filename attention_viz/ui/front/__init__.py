"""The server's headers and waiting page."""
