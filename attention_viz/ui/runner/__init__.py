"""What every page has alike: `Page` declares one, and `show_page` runs it from the URL to the badge."""
