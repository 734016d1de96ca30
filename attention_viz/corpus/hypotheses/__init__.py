"""Hypotheses about what a head attends to: parsed, and tested on texts that their ranking didn't see."""
