"""The Explore page: a sentence, a model, and every head of it at once."""
