"""The Masks page: who may look at whom, and what follows from it."""
