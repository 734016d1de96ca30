"""Records any torch module while it runs, by the attention that it asks torch for."""
