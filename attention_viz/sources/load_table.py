"""Read an operator's file of load options: TOML, one table per model."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from attention_viz.errors import UnsupportedModel
from attention_viz.sources.load_options import LoadOptions, check_options

_KEYS = ("device", "dtype", "quantization", "max_memory")


def read_load_table(file: Path) -> dict[str, LoadOptions]:
    """Return the options per model name.

    Raises:
        ValueError: the file is missing, isn't TOML, or names something unknown; the message has the file's name.
    """
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"can't read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} isn't valid TOML: {error}") from None
    strange = sorted(found.keys() - {"models"})
    tables: object = found.get("models", {})
    if strange or not isinstance(tables, Mapping):
        what = f"it has {strange[0]!r}" if strange else "models isn't a table"
        raise ValueError(f'{file} may hold tables [models."name"] alone, but {what}')
    return {name: _options(file, name, table) for name, table in cast("Mapping[str, object]", tables).items()}


def _options(file: Path, name: str, table: object) -> LoadOptions:
    where = f'{file}, [models."{name}"]'
    if not isinstance(table, Mapping):
        raise ValueError(f"{where}: it must be a table; got {table!r}")
    values = cast("Mapping[str, Any]", table)
    strange = sorted(values.keys() - set(_KEYS))
    if strange:
        raise ValueError(f"{where}: unknown key {strange[0]!r}; choose {', '.join(_KEYS)}")
    for key in ("dtype", "quantization"):
        if key in values and not isinstance(values[key], str):
            raise ValueError(f"{where}: {key} must be a text; got {values[key]!r}")
    try:
        return check_options(LoadOptions(**values))
    except UnsupportedModel as error:
        raise ValueError(f"{where}: {error}") from None
