"""The course as files that need no server."""
