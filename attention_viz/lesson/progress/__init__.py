"""Students' progress files: read, checked again, and summed up for a class."""
