"""Reads sparse attention, over windows, blocks or buckets, as matrices of tokens by tokens."""
