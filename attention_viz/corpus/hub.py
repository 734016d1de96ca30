"""Hub data sets, read row by row by Hugging Face's `datasets`."""

import importlib
from collections.abc import Iterator
from typing import Any

from attention_viz.errors import UnusableText

# What the name of such a corpus begins with, and the part of a data set that is read where none is named.
ON_HUB = "hub:"
_PART = "train"


def hub_rows(name: str) -> Iterator[dict[str, Any]]:
    """Yield a data set's rows lazily.

    Args:
        name: "hub:NAME", "hub:NAME:PART" or "hub:NAME:SUBSET:PART"; the part defaults to "train".
    """
    what, subset, part = _parts(name)
    given = _datasets()
    try:
        yield from given.load_dataset(what, subset, split=part, streaming=True)
    except Exception as error:  # it has errors of many packages, of no common kind
        phrase = str(error).strip().split("\n")[0] or type(error).__name__
        raise UnusableText(f"can't read {name} from the hub: {phrase}") from error


def _parts(name: str) -> tuple[str, str | None, str]:
    what, *others = name.removeprefix(ON_HUB).split(":")
    if not what or not all(others) or len(others) > 2:
        raise UnusableText(f"{name!r} doesn't name a data set; use hub:NAME, hub:NAME:PART or hub:NAME:SUBSET:PART")
    return what, others[0] if len(others) > 1 else None, others[-1] if others else _PART


def _datasets() -> Any:
    # By name: a type checker that doesn't have it would ask for it.
    try:
        return importlib.import_module("datasets")
    except ImportError:
        raise UnusableText(
            "reading the hub needs the package datasets, which isn't installed; "
            'run pip install "attention-viz[datasets]"'
        ) from None
