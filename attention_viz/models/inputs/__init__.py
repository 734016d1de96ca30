"""From what a person gives to what a model reads: text to ids and tokens, checked, padded, continued."""
