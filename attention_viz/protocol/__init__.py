"""The protocol that every model satisfies: pretrained ones and our own module.

May use `steps` and the rooms below it.
"""
