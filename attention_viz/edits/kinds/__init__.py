"""The kinds of edit, one module each: the edit, its effect on a call, and its entry for pages in `KINDS`.

Uses what `edits` uses. `attention_viz.edits.changes` finds every module in this folder.
"""
