"""What the app's pages are arranged from: state in the address, pickers, and the hosts of pictures and downloads.

Nothing here imports torch, transformers or plotly before a page needs them: the first paint doesn't wait for them.
"""
