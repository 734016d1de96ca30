"""One folder a page: its shell, its body, its choice and its words."""
