"""What one word of a text is, which pieces of a tokenizer it is made of, and where it is."""
