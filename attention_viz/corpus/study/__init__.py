"""A second look at a few of a scan's texts: heads ablated, similar heads, words written."""
