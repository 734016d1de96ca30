"""Traces in, numbers out: metrics, search, likeness, readings, and comparing two runs.

Uses `edits`, `trace`, `operation` and what stands below them; neither transformers nor plotly nor streamlit.
"""
