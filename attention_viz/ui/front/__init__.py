"""The server's face: its addresses and headers, and the page for whoever waits until there is room."""
