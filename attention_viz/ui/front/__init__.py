"""The server's URLs and headers, and its waiting page."""
