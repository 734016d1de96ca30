"""Run untrusted tokenizers and chat templates in bounded processes."""
