"""Pickers and switches, each kept in the URL."""
