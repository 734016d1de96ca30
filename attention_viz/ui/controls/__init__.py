"""Pickers and switches: whatever a person chooses with, each kept in the address."""
