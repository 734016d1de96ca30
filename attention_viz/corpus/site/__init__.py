"""A scan as a folder of pages that a double click opens: an atlas of roles, a page a head, search; no network."""
