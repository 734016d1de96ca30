"""Tables as Arrow and Parquet: the same numbers, and each column with its unit and meaning."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest
import torch
from pyarrow import parquet

import attention_viz as av
from attention_viz.corpus.columns import columns_of
from attention_viz.trace.export import WEIGHT_COLUMNS
from attention_viz.trace.files import arrow

MOON = "moon cheese frog ring moon cheese"
CAUSAL = av.masks.causal(40)
MADE = torch.Generator().manual_seed(0)


def made(count: int = 40, heads: int = 3, label: str = "w") -> av.Trace:
    parts = [torch.randn(heads, count, 4, generator=MADE) for _ in range(3)]
    labels = [f"{label}{one % 7}" for one in range(count)]
    return av.Trace.from_qkv([parts[0]] * 2, [parts[1]] * 2, [parts[2]] * 2, av.masks.causal(count), labels=labels)


def described(table: Any) -> dict[str, dict[bytes, bytes] | None]:
    return {field.name: field.metadata for field in av.to_arrow(table).schema}


def test_a_traces_file_has_its_table_with_units_and_meanings(tmp_path: Path) -> None:
    trace, path = made(), tmp_path / "weights.parquet"
    trace.to_parquet(path)
    pandas.testing.assert_frame_equal(pandas.read_parquet(path), trace.table())
    schema: Any = parquet.read_schema(path)
    assert schema.field("weight").metadata[b"unit"] == b"share of the query"
    for name, column in WEIGHT_COLUMNS.items():
        assert schema.field(name).metadata[b"description"].decode() == column.meaning
    assert json.loads(schema.metadata[b"attention_viz"])["model"] == trace.provenance.model
    found = polars.read_parquet(path)
    assert found.shape == (2 * 3 * 1600, 10) and found["weight"].dtype == polars.Float32
    assert found.filter(polars.col("head") == 2)["weight"].to_list() == trace.table(head=2)["weight"].tolist()


def test_a_part_of_a_trace_is_written_alone(tmp_path: Path) -> None:
    trace, path = made(), tmp_path / "weights.parquet"
    trace.to_parquet(path, 1, 2, "decoder")
    pandas.testing.assert_frame_equal(pandas.read_parquet(path), trace.table(1, 2))
    trace.to_parquet(path, layers=[0])
    pandas.testing.assert_frame_equal(pandas.read_parquet(path), trace.table(layers=[0]))
    with pytest.raises(av.TraceError, match="no layer 5"):
        trace.to_parquet(path, 5)
    with pytest.raises(av.ShapeError, match="pass layer or layers, not both"):
        trace.to_parquet(path, 0, layers=[0])
    pandas.testing.assert_frame_equal(pandas.read_parquet(path), trace.table(layers=[0]))


def test_kept_heads_and_rows_keep_their_numbers(tmp_path: Path) -> None:
    part = av.load("induction").trace(MOON, heads=[1], queries=2)
    part.to_parquet(tmp_path / "part.parquet")
    found = pandas.read_parquet(tmp_path / "part.parquet")
    pandas.testing.assert_frame_equal(found, part.table())
    assert set(found["head"]) == {1} and found["query"].min() > 0


def test_row_groups_end_with_their_head_and_hold_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, path = made(), tmp_path / "weights.parquet"
    monkeypatch.setattr("attention_viz.trace.export.GROUP", 600)
    trace.to_parquet(path)
    file: Any = parquet.ParquetFile(path)
    assert file.num_row_groups == 2 * 3 * 3
    for number in range(file.num_row_groups):
        group = file.read_row_group(number, ["layer", "head"]).to_pandas()
        assert len(group) <= 600 and len(group.drop_duplicates()) == 1
    pandas.testing.assert_frame_equal(pandas.read_parquet(path), trace.table())


def test_a_long_text_is_written_without_its_table_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = made(1500, heads=1)
    monkeypatch.setattr("attention_viz.trace.export.GROUP", 2**16)
    shares: list[float] = []
    held: list[int] = []

    def progress(share: float) -> None:
        shares.append(share)
        held.append(pyarrow.total_allocated_bytes() - before)

    tracemalloc.start()
    before: int = pyarrow.total_allocated_bytes()
    trace.to_parquet(tmp_path / "long.parquet", 0, progress=progress)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    table = trace.table(0)
    assert most < table.memory_usage(deep=True).sum() / 4 and max(held) < 2**24
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 20
    assert parquet.read_metadata(tmp_path / "long.parquet").num_rows == len(table) == 1500**2


def test_signed_weights_of_layers_without_a_softmax_are_written(tmp_path: Path) -> None:
    trace = av.load("recall").trace("a 1 b 2 a")
    trace.to_parquet(tmp_path / "mixer.parquet", stream="mixer")
    found = pandas.read_parquet(tmp_path / "mixer.parquet")
    pandas.testing.assert_frame_equal(found, trace.table(stream="mixer"), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("label", ["half \ud83d", "‏שלום", "a\x00b", "👩‍🔬", '"; DROP', "=1+1", ""])
def test_tokens_of_any_text_are_written(label: str, tmp_path: Path) -> None:
    trace = made(4, label=label)
    trace.to_parquet(tmp_path / "any.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "any.parquet"), trace.table())
    av.to_parquet(pandas.DataFrame({"text": [label, None]}, dtype=object), tmp_path / "any.parquet")
    read = pandas.read_parquet(tmp_path / "any.parquet")
    assert read["text"][0] == label.encode("utf-8", "backslashreplace").decode()


def test_tables_of_heads_describe_every_column() -> None:
    trace = av.load("induction").trace(MOON)
    several = [trace, av.load("induction").trace("moon ring moon ring")]
    tables = (
        trace.table(0, 0),
        av.head_table(trace, repeated_random=True),
        av.head_table(several),
        av.head_table(trace, rows=2),
        av.roles(trace),
        av.find_heads(trace, "frog", "cheese"),
        av.find_heads(several, "ring", "moon"),
        av.head_table(trace).sort_values("induction").head(2),
    )
    for table in tables:
        fields = described(table)
        assert all(metadata and metadata[b"description"] for metadata in fields.values()), fields
        again = av.to_arrow(table).to_pandas()
        pandas.testing.assert_frame_equal(again, table.reset_index(drop=table.index.names == [None]), check_like=True)
    assert described(tables[1])["entropy"][b"unit"].decode() == av.METRICS["entropy"].unit  # pyright: ignore[reportOptionalSubscript]


def test_a_scans_tables_describe_every_column(tmp_path: Path) -> None:
    scan = av.scan(av.load("induction"), [MOON, "moon ring moon ring"], tmp_path / "scan")
    for table in (scan.table, scan.roles, scan.deciles, scan.heads, scan.kinds, scan.texts):
        assert all(described(table).values()), [name for name, one in described(table).items() if not one]
    for path in (tmp_path / "scan").glob("*.parquet"):
        schema: Any = parquet.read_schema(path)
        assert all(field.metadata for field in schema), path
        assert set(schema.names) <= set(columns_of(path.stem))


def test_polars_takes_an_arrow_table_as_it_is() -> None:
    table = av.head_table(av.load("induction").trace(MOON))
    found: Any = polars.from_arrow(av.to_arrow(table))
    assert found["induction"].to_list() == table["induction"].tolist() and found.columns[:2] == ["layer", "head"]


def test_a_table_that_isnt_one_is_refused_and_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    av.to_parquet(pandas.DataFrame({"a": [1]}), path, {"of": "one"})
    assert parquet.read_schema(path).metadata[b"attention_viz"] == b'{"of": "one"}'
    with pytest.raises(av.AttentionVizError, match="can't make an Arrow table"):
        av.to_parquet(pandas.DataFrame({"a": [1, "x"]}), path)
    assert pandas.read_parquet(path)["a"].tolist() == [1]
    assert not [one for one in tmp_path.iterdir() if one != path]


def test_a_files_bytes_are_those_of_its_row_groups(tmp_path: Path) -> None:
    schema: Any = pyarrow.schema([("a", pyarrow.int64())])
    groups: Any = [pyarrow.table({"a": [1, 2]}), pyarrow.table({"a": [3]})]
    arrow.write_groups(tmp_path / "groups.parquet", groups, schema)
    file: Any = parquet.ParquetFile(tmp_path / "groups.parquet")
    assert file.num_row_groups == 2 and file.read()["a"].to_pylist() == [1, 2, 3]
