"""The arguments of tools, checked in sentences that an agent can act on."""

from collections.abc import Mapping
from typing import Any

from attention_viz.cli.answers.keys import Key
from attention_viz.cli.given import whole
from attention_viz.errors import AttentionVizError

_KINDS = {"string": "a text", "integer": "a whole number", "boolean": "true or false"}
# Characters of a wrong value in a message.
_SHOWN = 60


def checked(parameters: Mapping[str, Key], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments, with the defaults of those left out; None for those without."""
    for name in given:
        if name not in parameters:
            raise AttentionVizError(f"unknown argument {_short(name)}; choose from {', '.join(parameters)}")
    found = dict[str, Any]()
    for name, key in parameters.items():
        value = given.get(name)
        if value is None and not key.optional:
            raise AttentionVizError(f"the argument {name} is missing: {key.meaning}")
        found[name] = key.default if value is None else _checked(name, key, value)
    return found


def _checked(name: str, key: Key, value: Any) -> Any:
    if key.type == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    kinds: dict[str, type] = {"string": str, "integer": int, "boolean": bool}
    if not isinstance(value, kinds[key.type]) or (key.type == "integer" and isinstance(value, bool)):
        raise AttentionVizError(f"{name} must be {_KINDS[key.type]}; got {_short(value)}")
    if key.values and value not in key.values:
        raise AttentionVizError(f"unknown {name} {_short(value)}; choose from {', '.join(key.values)}")
    return _within(name, key, value)


def _within(name: str, key: Key, value: Any) -> Any:
    if isinstance(value, str):
        if key.most is not None and len(value) > key.most:
            raise AttentionVizError(f"{name} has {len(value):,} characters; give {key.most:,} at most")
        return whole(value)
    if (key.least is not None and value < key.least) or (key.most is not None and value > key.most):
        bounds = f"{key.least} or more" if key.most is None else f"from {key.least} to {key.most}"
        raise AttentionVizError(f"{name} must be {bounds}; got {_short(value)}")
    return value


def _short(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}…"
