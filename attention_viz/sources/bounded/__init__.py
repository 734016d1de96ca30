"""Parse, build and run untrusted files in bounded processes: see `process.Process`."""
