"""Traces put together of tensors that somebody has in hand, read and checked."""
