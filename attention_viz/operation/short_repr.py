"""Short records at a prompt: fields, and tensors' kind and shape."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from torch import Tensor

_LONGEST, _MOST = 60, 3


class ShortRepr:
    """A dataclass, made with `repr=False`, that is short at a prompt however much it holds."""

    def __repr__(self) -> str:
        """Show name and fields except None."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(cast("Any", self)) if entry.repr}
        said = ", ".join(f"{name}={short_repr(value)}" for name, value in found.items() if value is not None)
        return f"{type(self).__name__}({said})"


def short_repr(value: object) -> str:
    """Shorten a value: tensors to kind and shape, collections to counts."""
    if isinstance(value, Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        return f"<{kind} {' × '.join(map(str, value.shape)) or 'number'}>"
    if isinstance(value, Mapping):
        known = cast("Mapping[object, object]", value)
        return "{" + ", ".join(f"{key!r}: {short_repr(one)}" for key, one in known.items()) + "}"
    if isinstance(value, tuple | list):
        several = cast("tuple[object, ...]", value)
        parts = [short_repr(one) for one in several[:_MOST]]
        rest = [f"… {len(several)} in all"] if len(several) > _MOST else []
        return f"({', '.join([*parts, *rest])})"
    if hasattr(value, "columns"):
        table = cast("Any", value)
        return f"<table of {len(table)} rows: {', '.join(map(str, table.columns))}>"
    text = repr(value)
    return text if isinstance(value, ShortRepr) or len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
