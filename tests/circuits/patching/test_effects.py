"""What heads are worth to a number, compared with hooks on plain transformers and with runs of their own."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attention_viz as av
from tests.models.families import build, ids
from tests.shipped import MINILM, shipped

TEXT = "moon cheese frog ring moon cheese"


def by_hook(hf: nn.Module, read: Tensor, joining: nn.Module, head: int, heads: int, to: str) -> Tensor:
    """The output of the plain model when one head's columns, before they are joined, become their mean or 0."""

    def change(_module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        mine = given[0].clone()
        width = mine.shape[-1] // heads
        columns = slice(head * width, (head + 1) * width)
        mine[..., columns] = mine[..., columns].mean(dim=-2, keepdim=True) if to == "mean" else 0
        return (mine, *given[1:])

    handle = joining.register_forward_pre_hook(change)
    try:
        with torch.no_grad():
            return hf(read)[0][0].double()
    finally:
        handle.remove()


@pytest.mark.parametrize("to", ["mean", "zero"])
def test_effects_are_what_hooks_on_the_plain_model_give(to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = shipped("induction")
    assert isinstance(model, av.AttentionModel)
    hf, before = model.hf_model, model.trace(TEXT)
    read = torch.tensor([before.query_tokens().ids])
    word = int(before.output[-1].argmax())
    trace, traces = type(model).trace, list[str]()

    def noted(self: av.AttentionModel, text: str, *more: Any, **options: Any) -> av.Trace:
        traces.append(text)
        return trace(self, text, *more, **options)

    monkeypatch.setattr(type(model), "trace", noted)
    logits = av.effects(model, TEXT, av.Logit(word, against=3), to=to)
    chances = av.effects(model, TEXT, av.Probability(word), to=to)
    assert traces == [TEXT, TEXT]  # once each; all heads are tried in batches
    assert logits.index.names == ["layer", "head"]
    assert sorted(logits.index) == [(layer, head) for layer in range(2) for head in range(model.heads["decoder"][0])]
    assert logits["effect"].abs().is_monotonic_decreasing
    number = float(before.output[-1, word] - before.output[-1, 3])
    assert logits.attrs["number"] == pytest.approx(number, abs=1e-5)
    assert chances.attrs["number"] == model.probability(before, word)
    assert ("mean over the positions of this text" in logits.attrs["to"]) == (to == "mean")
    layers = [
        module for name, module in hf.named_modules() if name.endswith(("c_proj", "o_proj")) and "mlp" not in name
    ]
    assert len(layers) == 2
    for layer, head in logits.index:
        row = by_hook(hf, read, layers[layer], head, model.heads["decoder"][0], to)[-1]
        found = logits.loc[(layer, head)]
        assert found["number"] == pytest.approx(float(row[word] - row[3]), abs=1e-4)
        assert found["effect"] == pytest.approx(float(row[word] - row[3]) - number, abs=1e-4)
        assert chances.loc[(layer, head), "number"] == pytest.approx(float(row.softmax(-1)[word]), abs=1e-5)


def test_some_heads_of_one_stream_and_how_far_the_work_is() -> None:
    model = shipped("translation")
    assert isinstance(model, av.AttentionModel)
    text = "the small cat sees a dog"
    before = model.trace(text)
    told: list[tuple[int, int]] = []
    token = int(before.output[-1].argmax())
    found = av.effects(
        model, text, av.Logit(token), heads=[(0, 1)], stream="cross", report=lambda done, of: told.append((done, of))
    )
    assert (list(found.index), found.index.names) == ([("cross", 0, 1)], ["stream", "layer", "head"])
    alone = model.trace(text, edits=[av.Ablate(0, 1, "mean", stream="cross")])
    assert float(found["number"].iloc[0]) == pytest.approx(float(alone.output[-1, token]), abs=1e-5)
    assert told == [(0, 1), (1, 1)]

    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        av.effects(model, text, av.Logit(token), report=stop)


def test_an_encoder_is_asked_for_a_direction_and_a_trace_from_a_file_will_do(tmp_path: Path) -> None:
    model = shipped(MINILM)
    trace = model.trace("The animal was tired")
    with pytest.raises(av.UnsupportedModel, match="has no head that chooses tokens; ask for a Direction"):
        av.effects(model, trace, av.Probability(5))
    trace.save(tmp_path / "a.safetensors")
    vector = torch.randn(trace.output.shape[1], generator=torch.Generator().manual_seed(1))
    asked = av.Direction(vector, position=None)
    some = [(0, 1), (3, 2), (5, 0)]
    found, again = (
        av.effects(model, one, asked, heads=some) for one in (trace, av.Trace.load(tmp_path / "a.safetensors"))
    )
    assert found.equals(again)
    assert found.attrs["number"] == pytest.approx(float(trace.output.mean(dim=0) @ vector), abs=1e-4)
    assert av.effects(model, trace, asked, heads=found.index[:1]).index[0] == found.index[0]
    layer, head = map(int, found.index[0])
    alone = model.trace(trace.provenance.text or "", edits=[av.Ablate(layer, head, "mean")]).output.mean(dim=0) @ vector
    assert found["number"].iloc[0] == pytest.approx(float(alone), abs=1e-4)


def test_the_sum_of_all_probabilities_is_one() -> None:
    model = av.wrap(build("llama"))
    trace = model.trace_ids(ids(7))
    assert math.isclose(sum(model.probability(trace, one) for one in range(trace.output.shape[1])), 1, rel_tol=1e-9)
    assert model.probability(trace, 5, position=0) == pytest.approx(float(trace.output[0].softmax(-1)[5]), rel=1e-5)


def test_what_cannot_be_asked_is_refused_by_name() -> None:
    model = shipped("induction")
    assert isinstance(model, av.AttentionModel)
    trace, asked = model.trace(TEXT), av.Logit(5)
    with pytest.raises(av.ShapeError, match="no sum of what parts wrote"):
        av.decompose(model, trace, av.Probability(5))  # pyright: ignore[reportArgumentType] -- asked for on purpose
    with pytest.raises(av.ShapeError, match='its "mean" or "zero"; got \'one\''):
        av.effects(model, TEXT, asked, to="one")  # pyright: ignore[reportArgumentType] -- asked for on purpose
    with pytest.raises(av.ShapeError, match="no heads were asked for"):
        av.effects(model, TEXT, asked, heads=[])
    with pytest.raises(av.ShapeError, match="names head 9"):
        av.effects(model, TEXT, asked, heads=[(0, 9)])
    with pytest.raises(av.ShapeError, match=r"an av.Logit, an av.Probability or an av.Direction; got the score"):
        av.effects(model, TEXT, av.Score(0, 0, 1, 1))  # pyright: ignore[reportArgumentType] -- asked for on purpose
    with pytest.raises(av.TraceError, match="of an edited run"):
        av.effects(model, model.trace(TEXT, edits=[av.Ablate(0, 0)]), asked)
    masked = shipped("coreference")
    assert isinstance(masked, av.AttentionModel)
    with pytest.raises(av.UnusableText, match="guesses what stands behind"):
        masked.probability(masked.trace("the cat was tired"), 5)
