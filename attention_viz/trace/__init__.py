"""The immutable record of one run, with its files, tables and derived traces; imports `operation` and below."""
