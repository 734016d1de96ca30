"""Kinds of questions that are answered by a gesture: each describes itself as plain data and judges a guess."""
