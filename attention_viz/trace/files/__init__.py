"""A trace as a file: written whole or made smaller, and read back with everything checked."""
