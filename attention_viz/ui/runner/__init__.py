"""A page's declaration, `Page`, and its runner, `show_page`."""
