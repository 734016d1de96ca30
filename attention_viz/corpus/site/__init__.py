"""A scan as a folder of offline web pages: an atlas of roles, one page per head, search."""
