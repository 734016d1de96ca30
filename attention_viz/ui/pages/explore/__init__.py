"""The Explore page: a sentence, a model, and all heads at once."""
