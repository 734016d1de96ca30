"""Strangers' tokenizers and chat templates, each in a bounded process: what runs there, and what asks it."""
