"""What pictures share: colours, the wording of tokens, hatching, and what a picture says in words."""
