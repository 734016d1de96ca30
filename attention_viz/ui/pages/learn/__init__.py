"""The Learn page: a course of short lessons on the reader's own sentence."""
