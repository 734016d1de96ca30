"""What pages share besides pickers: the badge, downloads, notices, the menu, the explorer's host."""
