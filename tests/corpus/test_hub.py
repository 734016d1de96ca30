"""Data sets on the hub are read row by row; without the package or the network the scan is refused by name."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas
import pytest

import attention_viz as av
from attention_viz.corpus import hub
from tests.corpus.texts import by_lot
from tests.shipped import shipped

ROWS = [{"label": 0, "text": "frog ring"}, {"label": 1, "text": None}, {"label": 2, "text": "moon frog moon"}]


class StandIn(ModuleType):
    """What the package `datasets` does with a name, without a network."""

    def __init__(self, rows: list[dict[str, Any]], breaks: Exception | None = None) -> None:
        super().__init__("datasets")
        self.rows, self.breaks, self.read = rows, breaks, 0
        self.asked: list[tuple[tuple[str | None, ...], Mapping[str, object]]] = []

    def load_dataset(self, *names: str | None, **options: object) -> Iterator[dict[str, Any]]:
        self.asked.append((names, options))
        for row in self.rows:
            self.read += 1
            yield row
        if self.breaks is not None:
            raise self.breaks


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    found = StandIn(ROWS)
    monkeypatch.setitem(sys.modules, "datasets", found)
    return found


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("hub:owner/letters", ("owner/letters", None, "train")),
        ("hub:letters:test", ("letters", None, "test")),
        ("hub:owner/letters:short:test", ("owner/letters", "short", "test")),
    ],
)
def test_a_name_says_which_part_is_read(name: str, asked: tuple[str | None, ...], stand_in: StandIn) -> None:
    corpus = av.Corpus(name)
    assert list(corpus.texts()) == ["frog ring", "moon frog moon"] and corpus.name == name
    assert stand_in.asked == [(asked[:2], {"split": asked[2], "streaming": True})]
    with pytest.raises(av.UnusableText, match=rf"{name} has no column 'body'; its columns are label, text"):
        list(av.Corpus(name, column="body").texts())


def test_no_more_is_read_than_is_scanned(tmp_path: Path, stand_in: StandIn) -> None:
    stand_in.rows = [{"text": text} for text in by_lot(1_000)]
    found = av.scan(shipped("induction"), "hub:letters", tmp_path, limit=3)
    assert found.manifest["done"]["texts"] == 3 and found.manifest["corpus"] == "hub:letters"
    assert stand_in.read < 100 and len(stand_in.asked) == 1


def test_what_can_not_be_had_is_refused_by_name(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in.breaks = ConnectionError("Couldn't reach the hub\nafter five tries")
    with pytest.raises(av.UnusableText, match=r"can't read hub:letters from the hub: Couldn't reach the hub$"):
        list(av.Corpus("hub:letters").texts())
    for name in ("hub:", "hub::test", "hub:a:b:c:d", "hub:a:"):
        with pytest.raises(av.UnusableText, match="doesn't name a data set; use hub:NAME, hub:NAME:PART"):
            list(av.Corpus(name).texts())
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(av.UnusableText, match=r"isn't installed; run pip install .attention-viz\[datasets\]"):
        list(hub.hub_rows("hub:letters"))


@pytest.mark.filterwarnings("default")  # its own
def test_the_package_itself_reads_a_data_set_that_lies_here(tmp_path: Path) -> None:
    texts = by_lot(70)
    for part, rows in {"train": [*texts, None], "test": texts[:3]}.items():
        pandas.DataFrame({"label": range(len(rows)), "text": rows}).to_parquet(tmp_path / f"{part}.parquet")
    name = f"hub:{tmp_path}"
    assert list(av.Corpus(name).texts()) == texts and list(av.Corpus(f"{name}:test").texts()) == texts[:3]
    with pytest.raises(av.UnusableText, match="has no column 'body'; its columns are label, text"):
        list(av.Corpus(name, column="body").texts())
    with pytest.raises(av.UnusableText, match=r"can't read .* from the hub: Bad split: dev.*'train', 'test'"):
        list(av.Corpus(f"{name}:dev").texts())
    with pytest.raises(av.UnusableText, match=r"can't read .* from the hub: .*'short' not found"):
        list(av.Corpus(f"{name}:short:train").texts())
