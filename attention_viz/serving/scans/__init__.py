"""Scans of many texts that visitors may see: those that ship, and those in the operator's folders."""
