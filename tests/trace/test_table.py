import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import attend
from attention_viz.trace.export import COLUMNS, to_csv
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace

HEADS = 2


def trace(targets: tuple[str, ...] = ("a", "b", "c"), sources: tuple[str, ...] = ("v", "w", "x", "y", "z")) -> Trace:
    """Two layers of a decoder and one that looks at a source of another length."""
    lengths = {"decoder": (targets, targets), "cross": (targets, sources)}
    generator = torch.Generator().manual_seed(0)

    def layer(queries: int, keys: int) -> Layer:
        query, key = (torch.randn(HEADS, n, 4, generator=generator) for n in (queries, keys))
        return Layer(attend(3 * query, key, key), "0")

    return Trace(
        {name: (layer(len(rows), len(columns)),) * 2 for name, (rows, columns) in lengths.items()},
        {name: Tokens(rows, tuple(range(len(rows)))) for name, (rows, _) in lengths.items()},
        {name: Tokens(columns, tuple(range(len(columns)))) for name, (_, columns) in lengths.items()},
        torch.zeros(len(targets), 3),
        Provenance("a model"),
        Fidelity(0.0, 0.0, 1e-5, "itself"),
    )


def read(text: str) -> list[list[str]]:
    """The cells of a CSV, as any reader finds them."""
    return list(csv.reader(io.StringIO(text, newline="")))


def cells(*labels: str) -> list[str]:
    """What the labels become in a CSV."""
    rows = read(to_csv(trace(labels, labels).table(0, 0, "decoder")))
    return [row[6] for row in rows[1 : 1 + len(labels)]]


def test_each_weight_is_a_row_with_where_it_stands() -> None:
    one = trace()
    table = one.table(1, 1, "cross")
    assert tuple(table.columns) == COLUMNS and len(table) == 3 * 5
    row = table.iloc[1 * 5 + 3]
    assert row.drop("weight").to_dict() == {
        "stream": "cross", "layer": 1, "head": 1, "query": 1, "query_token": "b", "key": 3, "key_token": "y",
        "query_written": "b", "key_written": "y",
    }  # fmt: skip
    assert row["weight"] == one.weights(1, 1, "cross")[1, 3]
    torch.testing.assert_close(torch.tensor(table["weight"].to_numpy().reshape(3, 5)), one.weights(1, 1, "cross"))


def test_what_is_not_chosen_is_all_there() -> None:
    table = trace().table()
    assert len(table) == 2 * HEADS * (3 * 3 + 3 * 5)
    assert list(table.index) == list(range(len(table)))
    assert set(map(tuple, table[["stream", "layer", "head"]].drop_duplicates().to_numpy())) == {
        (stream, layer, head) for stream in ("decoder", "cross") for layer in range(2) for head in range(HEADS)
    }
    assert len(trace().table(layer=1)) == len(table) / 2
    assert len(trace().table(head=0, stream="decoder")) == 2 * 3 * 3


@pytest.mark.parametrize(
    ("asked", "error", "named"),
    [
        ({"layer": 2}, TraceError, "layer 2"),
        ({"layer": -1}, TraceError, "layer -1"),
        ({"stream": "encoder"}, TraceError, "stream 'encoder'"),
        ({"head": 9}, ShapeError, "head 9"),
    ],
)
def test_what_is_not_there_is_refused(asked: dict[str, Any], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        trace().table(**asked)


def test_numbers_survive_the_round_trip() -> None:
    table = trace().table()
    back = pandas.read_csv(io.StringIO(to_csv(table)), keep_default_na=False)
    assert tuple(back.columns) == COLUMNS
    numpy.testing.assert_allclose(back["weight"], table["weight"], rtol=1e-7, atol=0)
    assert (back["weight"].astype("float32") == table["weight"]).all()
    pandas.testing.assert_frame_equal(back.drop(columns="weight"), table.drop(columns="weight"))


def test_small_weights_keep_their_digits() -> None:
    table = trace().table(0, 0, "decoder")
    table["weight"] = numpy.float32([0, 1, 1.2345678e-30, 0.1, 1 / 3, 2e-45, 0.9999999, 1e-7, 5e-5])
    back = pandas.read_csv(io.StringIO(to_csv(table)))
    assert (back["weight"].astype("float32") == table["weight"]).all()


def test_the_first_line_names_the_columns_plainly() -> None:
    assert to_csv(trace().table(0, 0, "decoder")).splitlines()[0] == ",".join(COLUMNS)


@pytest.mark.parametrize(
    "label",
    [
        "=cmd()", "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "\xa0@x", "\u3000=1",
        "＝cmd()", "＋1", "－1", "＠x", "\u200b=1", "\ufeff=1", "\x00=1", "\u202e=1", "\t", "\n", "\x0b+1",
    ],
)  # fmt: skip
def test_what_a_spreadsheet_takes_for_a_formula_becomes_text(label: str) -> None:
    assert cells(label, "b") == ["'" + label, "b"]


@pytest.mark.parametrize(
    "label", ["bank", "##ing", "Ġriver", "▁the", "a=b", "1-2", "", " ", "'", '"', "<s>", "nan", "👩‍👩‍👧", "שלום"]
)
def test_other_text_is_left_as_it_is(label: str) -> None:
    assert cells(label, "b") == [label, "b"]


def test_nothing_in_a_label_ends_its_cell_or_its_row() -> None:
    labels = ("a,b", 'a"b', "a\nb", "a\r=cmd()", "a;=cmd()", "a\t=cmd()", '",=cmd(),"', '"\n=cmd()')
    text = to_csv(trace(labels, labels).table(0, 0, "decoder"))
    assert cells(*labels) == list(labels)
    inside = False
    for index, character in enumerate(text):
        inside ^= character == '"'
        if not inside and character in "=;\t\r":
            raise AssertionError(f"{text[index - 9 : index + 9]!r} has {character!r} outside of quotes")


@settings(max_examples=40)
@given(
    st.lists(
        st.text(
            st.characters(exclude_characters="\0", exclude_categories=("Cs",)) | st.sampled_from("=+-@\t\r\n\"'; ,"),
            max_size=6,
        ),
        min_size=2,
        max_size=3,
    )
)
def test_any_label_comes_back_as_it_was_or_behind_an_apostrophe(labels: list[str]) -> None:
    for label, cell in zip(labels, cells(*labels), strict=True):
        assert cell in (label, "'" + label)
        assert not cell.strip().startswith(("=", "+", "-", "@"))


def test_half_of_a_surrogate_pair_is_spelled_out() -> None:
    assert cells("a\ud800", "b") == ["a\\ud800", "b"]
    assert to_csv(trace(("\udfff", "b"), ("c",)).table()).encode()


def test_making_csv_leaves_the_table_as_it_was() -> None:
    table = trace(("=1", "b"), ("c",)).table()
    before = table.copy()
    to_csv(table)
    pandas.testing.assert_frame_equal(table, before)


def test_gradients_and_half_precision_are_no_hindrance() -> None:
    query = torch.randn(1, 2, 3, dtype=torch.bfloat16, requires_grad=True)
    rows = {"encoder": Tokens(("a", "b"), (0, 1))}
    layers = {"encoder": (Layer(attend(query, query, query), "0"),)}
    one = Trace(layers, rows, rows, torch.zeros(2, 3), Provenance("m"), Fidelity(0.0, 0.0, 1e-5, ""))
    assert one.table()["weight"].dtype == "float32"


def test_files_keep_the_tokenizers_own_tokens_and_say_beside_them_how_people_read_them() -> None:
    rows = json.loads((Path(__file__).parents[1] / "explorer" / "spelling.json").read_text())
    tokens = Tokens(
        tuple(row["label"] for row in rows),
        tuple(range(len(rows))),
        spelling=tuple(row["spelling"] for row in rows),
    )
    one = trace(tokens.labels, tokens.labels)
    named = one.derived(queries={"decoder": tokens, "cross": tokens}, keys={"decoder": tokens, "cross": tokens})
    columns, *found = read(to_csv(named.table(0, 0, "decoder")))
    own, written = columns.index("key_token"), columns.index("key_written")
    for row, line in zip(rows, found, strict=False):
        label = row["label"].encode("utf-8", "backslashreplace").decode()
        assert line[own].removeprefix("'") == label.removeprefix("'")
        assert line[written].removeprefix("'") == (row["mark"] + row["text"]).removeprefix("'")
    every = len(rows)
    assert [line[columns.index("query_written")] for line in found[::every]] == [
        line[written] for line in found[:every]
    ]
