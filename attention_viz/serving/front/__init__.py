"""What a server tells whoever stands before it: who has to wait, whether it is ready, and what its log may hold."""
