"""Processes with bounds, in which whatever strangers wrote is parsed, built and run: see `process.Process`."""
