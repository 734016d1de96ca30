"""Trace files: write a trace whole or in part, and read it back checked."""
