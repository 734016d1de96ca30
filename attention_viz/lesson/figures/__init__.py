"""Figures of the course: small matrices, and the words of every figure in the course's language."""
