"""One answer of a command or a tool, and the envelope that its JSON has."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from attention_viz import __version__

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Answer:
    """An answer of a kind in `ANSWERS`.

    Attributes:
        name: its kind.
        model: the model's name; None for none or several.
        facts: the result's keys, without its rows.
        table: the result's rows.
        notes: what to know about the result, in sentences.
    """

    name: str
    model: str | None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    table: "pandas.DataFrame | None" = None
    notes: Sequence[str] = ()


def envelope(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON has it, as its schema says: numbers are finite or None."""
    from attention_viz.cli.answers.kinds import ANSWERS

    result = {name: plain(value) for name, value in answer.facts.items()}
    if answer.table is not None:
        result["rows"] = rows_of(answer.table)
    return {
        "schema": answer.name,
        "schema_version": ANSWERS[answer.name].version,
        "package_version": __version__,
        "model": answer.model,
        "notes": list(answer.notes),
        "result": result,
    }


def rows_of(table: "pandas.DataFrame") -> list[dict[str, Any]]:
    """Return a table's rows as objects."""
    columns = {str(name): [plain(value) for value in table[name]] for name in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain(value: Any) -> Any:
    """Convert a value to JSON's types; pandas' empty cells and numbers that aren't finite become None."""
    if type(value).__name__ == "NAType":
        return None
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in cast("Sequence[object]", value)]
    found = value.item() if hasattr(value, "item") else value
    return None if isinstance(found, float) and not math.isfinite(found) else found
