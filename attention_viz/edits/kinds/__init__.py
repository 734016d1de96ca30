"""The kinds of edit, a module each: the edit itself, what it makes of a call, and in `KINDS` what pages offer of it.

Uses what `edits` uses. `attention_viz.edits.changes` finds every module that is laid here.
"""
