"""The Cross-attention page: which source word each step looks at."""
