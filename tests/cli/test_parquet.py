"""Commands print Parquet where they print CSV."""

import io
import json
import math
import sys
from typing import Any

import pandas
import pytest
from pyarrow import parquet

import attention_viz as av
from attention_viz.cli import main
from attention_viz.cli.answers.answer import Answer
from attention_viz.cli.output import show

MOON = "moon cheese frog ring moon cheese"


def printed(capsysbinary: pytest.CaptureFixture[bytes], *words: str) -> Any:
    assert main(words) == 0
    return parquet.read_table(io.BytesIO(capsysbinary.readouterr().out))


def test_heads_are_a_table_with_units(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    table = printed(capsysbinary, "heads", MOON, "--model", "induction", "--format", "parquet")
    own = av.head_table(av.load("induction").trace(MOON))
    pandas.testing.assert_frame_equal(table.to_pandas(), own.reset_index())
    assert table.schema.field("entropy").metadata[b"unit"].decode() == av.METRICS["entropy"].unit


@pytest.mark.parametrize("words", [("findings", MOON), ("find", "frog", "cheese", "--text", MOON)])
def test_every_column_is_described(words: tuple[str, ...], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    table = printed(capsysbinary, *words, "--model", "induction", "--format", "parquet")
    assert len(table) and all(field.metadata for field in table.schema)


def test_an_answers_facts_are_in_the_schema(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    answer = Answer("effects", "induction", {"error": math.nan}, pandas.DataFrame({"layer": [1, 2]}))
    show(answer, "parquet")
    table: Any = parquet.read_table(io.BytesIO(capsysbinary.readouterr().out))
    assert table["layer"].to_pylist() == [1, 2]
    assert json.loads(table.schema.metadata[b"attention_viz"]) == {"model": "induction", "error": None}


def test_a_terminal_isnt_filled_with_bytes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(("heads", MOON, "--model", "induction", "--format", "parquet")) == 2
    assert "parquet is binary; send it to a file" in capsys.readouterr().err
