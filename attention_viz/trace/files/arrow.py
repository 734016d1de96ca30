"""Tables as Arrow and Parquet: each field has the unit and meaning of its column."""

import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from attention_viz.errors import AttentionVizError
from attention_viz.trace.files.whole_file import write_pieces, write_whole

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["PLACES", "Column", "described", "parquet_bytes", "schema_of", "to_arrow", "to_parquet", "write_groups"]

# Where a table keeps its columns' descriptions; a plain dict, as pandas stores it in files.
_ATTRIBUTE = "columns"


@dataclass(frozen=True)
class Column:
    """A column's meaning, a phrase, and its unit; empty if it has none."""

    meaning: str
    unit: str = ""

    @property
    def metadata(self) -> dict[str, str]:
        """The field's metadata."""
        return {"description": self.meaning} | ({"unit": self.unit} if self.unit else {})


# The columns that name a head.
PLACES = {
    "stream": Column("the kind of attention, such as encoder, decoder or cross"),
    "layer": Column("the layer's number, the model's own"),
    "head": Column("the head's number in its layer, from 0"),
}


def described(table: "pandas.DataFrame", columns: Mapping[str, Column]) -> "pandas.DataFrame":
    """Return a table that knows its columns' units and meanings, for `to_arrow`."""
    there = [str(name) for name in (*table.index.names, *table.columns)]
    table.attrs[_ATTRIBUTE] = {name: columns[name].metadata for name in there if name in columns}
    return table


def schema_of(types: Mapping[str, Any], columns: Mapping[str, Column], about: str) -> Any:
    """Return the schema of described columns; `about` is the table's origin, as JSON."""
    import pyarrow

    fields = [pyarrow.field(name, kind, metadata=columns[name].metadata) for name, kind in types.items()]
    return pyarrow.schema(fields, metadata={"attention_viz": about})


def to_arrow(  # pyright: ignore[reportUnknownParameterType] -- pyarrow has no types
    table: "pandas.DataFrame", about: Mapping[str, Any] | None = None
) -> "pyarrow.Table":
    """Return a table of this package as an Arrow table, which polars and DuckDB read as it is.

    Args:
        table: such as `trace.table()`, `av.head_table(trace)` or a scan's; named indices become columns.
        about: facts on the whole table, JSON's kinds of values; its schema has them as `attention_viz`.

    Returns:
        A field's metadata has its column's `description` and, if it has one, its `unit`.

    Raises:
        AttentionVizError: a column mixes kinds of values.
    """
    import pyarrow

    flat = table if list(table.index.names) == [None] else table.reset_index()
    try:
        made = pyarrow.Table.from_pandas(_encodable(flat), preserve_index=False)
    except pyarrow.ArrowException as error:
        raise AttentionVizError(f"can't make an Arrow table: {error}") from None
    known = cast("Mapping[str, Mapping[str, str]]", table.attrs.get(_ATTRIBUTE, {}))
    fields = [field.with_metadata(known.get(field.name)) for field in made.schema]
    more = {} if about is None else {b"attention_viz": json.dumps(about).encode()}
    return made.cast(pyarrow.schema(fields, metadata={**(made.schema.metadata or {}), **more}))


def to_parquet(table: "pandas.DataFrame", path: str | PathLike[str], about: Mapping[str, Any] | None = None) -> None:
    """Write a table of this package to a Parquet file, with its columns' units and meanings as `to_arrow` has them.

    Args:
        table: as in `to_arrow`; `trace.to_parquet` writes a trace's weights without such a table.
        path: an existing file stays until the new one is complete.
        about: as in `to_arrow`.

    Raises:
        AttentionVizError: a column mixes kinds of values.
        OSError: the file can't be written.
    """
    write_whole(path, parquet_bytes(table, about))


def parquet_bytes(table: "pandas.DataFrame", about: Mapping[str, Any] | None = None) -> bytes:
    """Return the content of a table's Parquet file."""
    made = to_arrow(table, about)
    return b"".join(_pieces_of([made], made.schema))


def _pieces_of(groups: Iterable[Any], schema: Any) -> Generator[bytes]:
    """Yield a Parquet file's bytes; each table is a row group, and is written before the next one is made."""
    from pyarrow import parquet

    sink = _Sink()
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(1, len(group)))
            yield sink.take()
    yield sink.take()


def write_groups(path: str | PathLike[str], groups: Iterable[Any], schema: Any) -> None:
    """Write a Parquet file, one row group at a time."""
    write_pieces(path, _pieces_of(groups, schema))


class _Sink:
    """A file in memory that gives up its bytes in parts."""

    closed = False
    mode = "wb"

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._length += len(part)
        return len(part)

    def tell(self) -> int:
        return self._length

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _encodable(table: "pandas.DataFrame") -> "pandas.DataFrame":
    """Spell out lone surrogates, which no file takes."""
    texts = {
        name: [_spelled(value) for value in column]
        for name, column in table.items()
        if column.dtype == object and any(isinstance(value, str) and _spelled(value) != value for value in column)
    }
    return table.assign(**{str(name): values for name, values in texts.items()}) if texts else table


def _spelled(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
