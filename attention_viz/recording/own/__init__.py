"""Any torch module, recorded while it runs: what asks torch for attention is heard, and our function computes it."""
