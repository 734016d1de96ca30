"""Findings: the most striking links and heads of a run, of varied kinds, as sentences."""
