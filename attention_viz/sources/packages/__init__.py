"""Models that come inside packages of PyPI: which they are, what is made of their files, and where that is kept."""
