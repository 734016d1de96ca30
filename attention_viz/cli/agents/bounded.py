"""Answers of a bounded length, which say what they leave out."""

import json
from typing import Any

from attention_viz.errors import AttentionVizError

# The characters of an answer: by default, at least and at most.
USUAL, LEAST, MOST = 10_000, 3_000, 1_000_000
# Characters that a long text in a cut answer keeps.
_KEPT = 200


def fitted(answer: dict[str, Any], most: int) -> tuple[dict[str, Any], str]:
    """Return an answer and its JSON, of `most` characters at most: without its last rows, and with long texts cut."""
    whole = _written(answer)
    if len(whole) <= most:
        return answer, whole
    rows = answer["result"].get("rows", [])
    short, kept = _shortened(answer), len(rows)
    low, high = 0, len(rows)
    while low < high:  # the most rows that fit
        kept = (low + high + 1) // 2
        low, high = (kept, high) if len(_written(_cut(short, kept, len(rows), len(whole)))) <= most else (low, kept - 1)
    found = _cut(short, low, len(rows), len(whole))
    text = _written(found)
    if len(text) > most:
        raise AttentionVizError(f"the answer doesn't fit into {most:,} characters; ask with a larger characters")
    return found, text


def _cut(answer: dict[str, Any], kept: int, of: int, length: int) -> dict[str, Any]:
    left = f"The last {of - kept} of {of} rows are left out" if kept < of else "Rows are complete"
    more = f"ask with characters={-(-length // 1000) * 1000}" if length <= MOST else "ask for fewer rows with top"
    how = f"{left}, and texts of more than {_KEPT} characters are cut; for the rest, {more}."
    result = answer["result"]
    rows = {"rows": result["rows"][:kept]} if "rows" in result else {}
    return {**answer, "cut": how, "result": {**result, **rows}}


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _KEPT else f"{value[:_KEPT]}…"
    if isinstance(value, dict):
        return {name: _shortened(one) for name, one in value.items()}
    return [_shortened(one) for one in value] if isinstance(value, list) else value


def _written(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False, allow_nan=False)
