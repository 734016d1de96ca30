"""Convert and cache models that come inside PyPI packages."""
