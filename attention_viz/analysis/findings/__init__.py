"""What a person should look at in a run: what stands out in it, chosen so that it is varied, told in sentences."""
