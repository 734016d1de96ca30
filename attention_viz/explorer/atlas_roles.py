"""The atlas's roles."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attention_viz.analysis.measured import looks_back
from attention_viz.analysis.roles import ROLES, roles_for
from attention_viz.trace.kind import CROSSING_STREAMS, Unit
from attention_viz.views.style.wording import shortened

if TYPE_CHECKING:
    import pandas

    from attention_viz.trace.trace import Trace

# Up to this many special tokens are named one by one.
_NAMED = 2

_ASKS = {
    "previous": "on the {unit} before",
    "next": "on the {unit} after",
    "above": "on the {unit} above",
    "itself": "on the {unit} itself",
    "same token": "more than other words give it",
    "induction": "more than other words give it",
    "punctuation": "on punctuation marks",
}
_ASKS_OF_PATCHES = {"previous": "on the patch to the left", "next": "on the patch to the right"}
_NOTHING = {
    "same token": "None here: too few repeated tokens.",
    "induction": "None here: too few repeated tokens.",
    "punctuation": "None here: too little punctuation.",
}


def pack_roles(
    trace: "Trace", tables: Mapping[str, "pandas.DataFrame"], rows: Sequence[tuple[str, int]]
) -> dict[str, Any]:
    """Pack the atlas header's roles: by stream, of layers in the order of `rows`.

    Returns:
        `role`: each head's index into `roles`; `score`: the share behind it, None if none.
    """
    first = next(iter(tables))
    unit, resting = trace.query_tokens(first).unit, resting_words(trace, first)
    having = {stream: roles_for(unit, mixes=stream in trace.mixers) for stream in tables}
    names = [name for name in ROLES if any(name in some for some in having.values())]
    heads = [tables[stream].loc[[layer]] for stream, layer in rows]
    return {
        "roles": [
            _role(name, trace, {stream: tables[stream] for stream, some in having.items() if name in some}, resting)
            for name in names
        ],
        "role": [names.index(name) for some in heads for name in some["role"]],
        "score": [None if score != score else round(score, 6) for some in heads for score in some["score"].tolist()],
    }


def _role(name: str, trace: "Trace", tables: Mapping[str, "pandas.DataFrame"], resting: str) -> dict[str, Any]:
    """Pack a role; `tables` has the streams whose heads can have it."""
    role, (stream, table) = ROLES[name], next(iter(tables.items()))
    unit = trace.query_tokens(stream).unit
    label, meaning = role.wording("mixer" if stream in trace.mixers else unit)
    entry: dict[str, Any] = {
        "name": name,
        "colour": list(ROLES).index(name),
        "label": label,
        "meaning": meaning,
        "threshold": role.threshold,
        "job": role.job,
        "asks": _asks(name, unit, resting),
        "none": "",
    }
    if len(tables) > 1:
        entry["by"] = {"softmax": role.wording(unit), "mixer": role.wording("mixer")}
    if not any(name in one["role"].tolist() for one in tables.values()):
        entry["none"] = _why_none(name, unit, trace, stream, table)
    return entry


def resting_words(trace: "Trace", stream: str) -> str:
    """Name sink tokens: special ones, or the first if none attends ahead."""
    keys = trace.key_tokens(stream)
    real = [place for place in range(len(keys)) if not keys.padding[place]]
    first = real[:1] if looks_back(trace, stream) else []
    resting = [place for place in real if keys.special[place] or place in first]
    names = list(dict.fromkeys(shortened(keys.names[place], 12) for place in resting))
    if len(names) > _NAMED:
        return "special tokens"
    quoted = {shortened(keys.names[place], 12) for place in resting if not keys.special[place]}
    return " and ".join(f"“{name}”" if name in quoted else name for name in names)


def _asks(name: str, unit: Unit, resting: str) -> str:
    threshold = f"≥ {ROLES[name].threshold:.2f}"
    if name == "first":
        return f"{threshold} on {resting or 'special tokens'}; no specific role"
    if name == "broad":
        return f"{threshold} even (1: all weights equal)"
    if name == "mixed":
        return "no threshold reached"
    asks = _ASKS_OF_PATCHES if unit is Unit.PATCH and name in _ASKS_OF_PATCHES else _ASKS
    return f"{threshold} {asks[name].format(unit=unit.token)}"


def _why_none(name: str, unit: Unit, trace: "Trace", stream: str, table: "pandas.DataFrame") -> str:
    if name == "mixed":
        return "None: each has a role."
    if name == "next" and looks_back(trace, stream):
        return "None can look ahead here."
    shares = [share for share in table[name].tolist() if share == share]
    if not shares:
        if stream in CROSSING_STREAMS and name not in ("punctuation", "first", "broad"):
            return "Only for self-attention."
        return _NOTHING.get(name, f"Too few {unit.plural} to tell.")
    # A head may reach the threshold and have a stronger role.
    most = max(shares)
    if most >= ROLES[name].threshold:
        return "None: another role of these heads is stronger."
    return f"None: the largest is {most:.2f}.".replace("-", "−")
