"""A study says what becomes of a model without each head, which heads are alike, and what heads write."""

from collections import Counter
from pathlib import Path

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.analysis.likeness import head_distances
from attention_viz.corpus.tables import records_of
from attention_viz.corpus.tally import lots
from tests.corpus.test_scan import files_of
from tests.corpus.texts import PROSE, TRANSLATED, by_lot
from tests.shipped import shipped

TEXTS = [*by_lot(20), "moon ring frog moon ring frog moon"]


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> av.Scan:
    return av.scan(shipped("induction"), TEXTS, tmp_path_factory.mktemp("scan")).study(5)


def chosen(count: int) -> list[str]:
    return [TEXTS[at] for at in numpy.argsort(lots(range(len(TEXTS))))[:count]]


def loss(trace: av.Trace) -> float:
    """Added up word by word."""
    ids, logits = trace.query_tokens().numbers, trace.output.double()
    costs = [-float(logits[at].log_softmax(dim=-1)[ids[at + 1]]) for at in range(len(ids) - 1)]
    return sum(costs) / len(costs)


def test_silencing_is_the_change_of_the_loss_with_its_standard_error(studied: av.Scan) -> None:
    model, found = shipped("induction"), studied.silenced
    changes = [loss(model.trace(text, edits=[av.Ablate(1, 1)])) - loss(model.trace(text)) for text in chosen(5)]
    row = found.loc[(1, 1)]
    assert row["change"] == pytest.approx(numpy.mean(changes), abs=1e-5)
    assert row["change_error"] == pytest.approx(numpy.std(changes, ddof=1) / 5**0.5, abs=1e-5)
    assert (found.attrs["of"], found.attrs["texts"]) == ("loss", 5)
    assert len(found) == 8 and found["change"].abs().is_monotonic_decreasing


def test_the_nearest_heads_are_those_of_the_texts_together(studied: av.Scan) -> None:
    apart = torch.stack([head_distances(shipped("induction").trace(text)) for text in chosen(5)]).mean(dim=0)
    own = apart[4 * 1 + 1].clone()
    own[5] = torch.inf
    near = studied.alike.loc[(1, 1)]
    assert len(near) == 5
    assert near["apart"].to_numpy() == pytest.approx(own.sort().values[:5].numpy(), abs=1e-6)
    assert (near.iloc[0]["other_layer"], near.iloc[0]["other_head"]) == divmod(int(own.argmin()), 4)


def test_words_are_those_that_the_head_makes_likelier_where_it_asks(studied: av.Scan) -> None:
    model, best = shipped("induction"), studied.examples(1, 1, "induction").iloc[0]
    written = studied.written
    (row,) = [one for one in records_of(written) if (one["layer"], one["head"], one["text"]) == (1, 1, best["text"])]
    assert row["query"] == best["query"]
    table = av.writes(model, model.trace(best["said"]), 1, 1, int(best["query"]))
    assert row["words"].split()[0] == table["written"].iloc[0].strip("·")
    assert max(Counter(zip(written["layer"], written["head"], strict=True)).values()) == 1


def test_a_study_lies_beside_the_scan_and_changes_nothing_of_it(studied: av.Scan, tmp_path: Path) -> None:
    model = shipped("induction")
    av.scan(model, TEXTS, tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(av.ScanError, match=r"has no silenced yet; run scan\.study\(\)"):
        _ = av.Scan.load(tmp_path).silenced
    told: list[tuple[int, int]] = []
    av.Scan.load(tmp_path).study(5, progress=lambda done, of: told.append((done, of)))
    assert told[0] == (0, told[0][1]) and all(done < of for done, of in told) and told == sorted(told)
    assert av.scan(model, TEXTS, tmp_path).silenced.equals(studied.silenced)
    assert {name: files_of(tmp_path)[name] for name in before} == before


def test_an_embedding_moves_and_what_says_nothing_is_refused(tmp_path: Path) -> None:
    model = shipped("all-MiniLM-L6-v2")
    found = av.scan(model, PROSE[:2], tmp_path / "one", layers=[2]).study().silenced
    apart = list[float]()
    for text in PROSE[:2]:
        one, other = (model.trace(text, edits=edits).output.mean(dim=0) for edits in ([], [av.Ablate(2, 3)]))
        apart.append(1 - float(torch.nn.functional.cosine_similarity(one, other, dim=0)))
    assert found.loc[(2, 3), "change"] == pytest.approx(numpy.mean(apart), abs=1e-6)
    assert (found.attrs["of"], found.attrs["texts"]) == ("embedding", 2) and len(found) == 12
    with pytest.raises(av.UnsupportedModel, match="neither predicts a next token nor embeds texts"):
        av.scan(shipped("translation"), TRANSLATED[:1], tmp_path / "two").study()
