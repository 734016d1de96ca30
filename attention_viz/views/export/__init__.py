"""Pictures as files: SVG written from the trace itself, and PNG and PDF drawn by a local browser."""
