"""Answers as JSON: their keys, their schemas, and the library calls behind them, for commands and tools alike."""
