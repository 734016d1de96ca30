"""Which part of an image or a sound each position stands for, proven by changing that part."""
