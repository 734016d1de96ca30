"""What a scan's sums can't say, from a few of its texts run once more: heads silenced, heads alike, words written."""
