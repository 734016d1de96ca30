"""A model's learned numbers: whether they are those that ran, and the matrices that they are."""
