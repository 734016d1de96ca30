"""Data for a page's script: short, equal parts once, and nothing in it that ends the script."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

__all__ = ["packed", "script_call", "script_json"]

# A part that is shorter than this, in characters, takes no less room if it is written once.
_SHORT = 40
# An object with this key is a reference; no other object has it, whatever a text is.
_REFERENCE = "$"
# HTML ends a script at these characters, and JavaScript before 2019 a line.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def packed(value: object) -> dict[str, object]:
    """Return JSON values as {"shared": parts, "value": value}, where {"$": 3} stands for the fourth part."""
    counts = Counter[str]()
    _count(value, counts)
    shared, places = list[object](), dict[str, int]()

    def pack(part: object) -> object:
        text = _text(part)
        if text is None or counts[text] < 2:
            return _inside(part, pack)
        if text not in places:
            inner = _inside(part, pack)
            places[text] = len(shared)
            shared.append(inner)
        return {_REFERENCE: places[text]}

    whole = pack(value)
    return {"shared": shared, "value": whole}


def script_call(function: str, name: str, value: object) -> str:
    """Return a script that hands JSON values to a function by name."""
    return f"{function}({json.dumps(name)},{script_json(value)});\n"


def script_json(value: object) -> str:
    """Return JSON that a script on a page can hold."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def _count(part: object, counts: Counter[str]) -> None:
    text = _text(part)
    if text is not None:
        counts[text] += 1
        if counts[text] > 1:
            return
    for inner in _parts(part):
        _count(inner, counts)


def _text(part: object) -> str | None:
    """Return a part's JSON if it is worth sharing."""
    if not isinstance(part, dict | list | str):
        return None
    text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) >= _SHORT else None


def _parts(part: Any) -> list[Any]:
    return list(part.values()) if isinstance(part, Mapping) else part if isinstance(part, list) else []


def _inside(part: Any, pack: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: pack(inner) for name, inner in part.items()}
    return [pack(inner) for inner in part] if isinstance(part, list) else part
