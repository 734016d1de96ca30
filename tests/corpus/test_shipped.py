"""The scans that ship are of the models and texts that ship, are small, and say what single traces say."""

import pytest

import attention_viz as av
from attention_viz.corpus.chunks import chunks_of
from attention_viz.corpus.reading import Corpus
from attention_viz.corpus.shipped import CORPUS, SHIPPED, scans
from attention_viz.corpus.tables import STUDIED, records_of
from tests.shipped import shipped

# What ships of them all together, in bytes.
_ROOM = 3_000_000


def test_they_are_small() -> None:
    assert tuple(scans()) == SHIPPED
    assert sum(path.stat().st_size for path in CORPUS.parent.rglob("*") if path.suffix != ".pyc") <= _ROOM
    kept = {"manifest.json", *(f"{name}.parquet" for name in ("heads", "kinds", "examples", "texts", *STUDIED))}
    assert {path.name for folder in scans().values() for path in folder.iterdir()} == kept


@pytest.mark.parametrize("name", SHIPPED)
def test_they_are_of_the_models_and_the_texts_that_ship(name: str) -> None:
    model, found = shipped(name), av.Scan.load(scans()[name])
    assert found.complete and found.manifest["model"]["sha256"] == model.origin.sha256
    *_, last = chunks_of(Corpus(CORPUS).texts())
    assert found.manifest["fingerprint"] == last.fingerprint and found.manifest["done"]["texts"] == 300
    for metric in ("previous", "confidence"):
        best = records_of(found.examples(2, 1, metric))[0]
        weights = model.trace(best["said"], layers=[2]).weights(2, 1)
        assert float(weights[best["query"], best["key"]]) == pytest.approx(best["weight"], abs=1e-4)


def test_the_heads_that_matter_most_are_told_apart_from_chance() -> None:
    for path in scans().values():
        found = av.Scan.load(path)
        for first in found.studied("silenced") and records_of(found.silenced)[:1]:
            assert abs(first["change"]) > 2 * first["change_error"]
