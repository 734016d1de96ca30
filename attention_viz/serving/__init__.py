"""Serve many people: models, traces and runs, each made once and limited. No streamlit."""
