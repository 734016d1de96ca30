"""What was read where it was no text, as a trace keeps it."""
