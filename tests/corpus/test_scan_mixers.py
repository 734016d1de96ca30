"""A scan of layers without a softmax: its numbers are those of single traces, and channels are refused."""

from functools import cache
from pathlib import Path

import numpy
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import attention_viz as av
from attention_viz.analysis.metrics import metrics_for
from attention_viz.errors import ScanError, ShapeError
from attention_viz.models.model import AttentionModel
from attention_viz.trace.kind import Unit
from tests.corpus.texts import by_lot
from tests.recording.mixers.hybrids import build

WORDS = ("moon", "cheese", "frog", "ring", "cat")
# One has a single token, whose roles can't be told.
TEXTS = ("cat", *by_lot(9, words=WORDS))


@cache
def hybrid(name: str) -> AttentionModel:
    # Word 0 fills batches up in some families.
    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(("nothing", *WORDS))}, unk_token="nothing"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return av.wrap(build(name), PreTrainedTokenizerFast(tokenizer_object=words))


@pytest.mark.parametrize("name", ["qwen3_next", "bamba"])
def test_the_numbers_of_a_scan_are_those_of_single_traces(name: str, tmp_path: Path) -> None:
    model = hybrid(name)
    found, traces = av.scan(model, TEXTS, tmp_path, stream="mixer"), [model.trace(text) for text in TEXTS]
    assert found.streams == ("mixer",) and found.manifest["settings"]["stream"] == "mixer"
    names = [*metrics_for(Unit.WORD, "mixer")]
    own = av.head_table(traces, stream="mixer")
    assert list(found.table)[: len(names)] == names
    for ending in ("", "_spread", "_n"):
        columns = [column + ending for column in names]
        assert found.table[columns].to_numpy() == pytest.approx(own[columns].to_numpy(), abs=1e-6, nan_ok=True)
    roles = av.roles(traces, "mixer")
    assert found.roles["role"].tolist() == roles["role"].tolist()
    assert found.roles["label"].tolist() == roles["label"].tolist()
    for role in ("previous", "itself", "same token", "first", "broad"):
        assert found.roles[f"role {role}"].tolist() == pytest.approx(roles[role].tolist(), abs=1e-6, nan_ok=True)
    best = found.examples(0, 1, "reach").iloc[0]
    row = model.trace(best["said"]).weights(0, 1, "mixer")[best["query"]].double().abs().numpy()
    assert best["key"] == row.argmax() and best["weight"] == pytest.approx(row.max() / row.sum(), abs=1e-6)
    away = numpy.abs(best["query"] - numpy.arange(len(row)))
    assert best["value"] == pytest.approx((row * away).sum() / row[away > 0].sum(), abs=1e-5)
    # Opened again, it knows its stream; a hypothesis is tested by shares of size.
    again = av.Scan.load(tmp_path, model)
    assert "average precision" in again.test("key.is_first").verdict
    for refused in (again.study, lambda: again.site(tmp_path / "site")):
        with pytest.raises(ScanError, match="needs softmax attention; this is a scan of layers without"):
            refused()


def test_one_layer_of_a_scan_and_attention_stay_apart(tmp_path: Path) -> None:
    model = hybrid("falcon_h1")
    found = av.scan(model, TEXTS[:3], tmp_path / "one", layers=[1], stream="mixer")
    assert {layer for layer, _ in found.table.index} == {1}
    whole = av.head_table([model.trace(text) for text in TEXTS[:3]], stream="mixer").loc[[1]]
    assert found.table["reach"].tolist() == pytest.approx(whole["reach"].tolist(), abs=1e-6)
    attention = av.scan(model, TEXTS[:3], tmp_path / "attention")
    assert attention.streams == ("decoder",) and "negative" not in attention.table and "entropy" in attention.table
    assert "stream" not in attention.manifest["settings"]


def test_channels_and_unknown_streams_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ScanError, match=r"layer 0 of the mixer has 64 channels \(selective scan\); measure"):
        av.scan(hybrid("jamba"), TEXTS, tmp_path / "channels", stream="mixer")
    with pytest.raises(ScanError, match="no layers without a softmax in the stream 'mixer 2'; choose mixer"):
        av.scan(hybrid("bamba"), TEXTS, tmp_path / "stream", stream="mixer 2")
    with pytest.raises(ShapeError, match="no layer 1 in the mixer; choose 0"):
        av.scan(hybrid("bamba"), TEXTS, tmp_path / "layer", layers=[1], stream="mixer")
