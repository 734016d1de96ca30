"""One file a lesson: what its text tells of the reader's sentence, its picture, and the one thing to change."""
