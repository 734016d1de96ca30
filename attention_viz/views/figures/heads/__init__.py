"""One file a picture of all heads at once: by a number, by two, by how alike they are, by what silencing one does."""
