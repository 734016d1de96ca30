"""One head's steps in order, each cell as its arithmetic; uses `analysis`, `edits`, `trace`, `operation` and below."""
