"""A score without each of several heads, from one batch, against a run for each."""

from typing import Any

import pytest
import torch
import transformers

import attention_viz as av
from attention_viz.circuits.patching.bench import Bench
from attention_viz.circuits.patching.silencing import silenced_scores
from tests.models.families import GROUPED, build, ids

OF, HEADS = av.Score(2, 4, 6, 2), [(0, 1), (1, 5), (2, 4)]


def by_runs(model: av.AttentionModel) -> list[float]:
    found: list[float] = []
    for head in HEADS:
        call = model.trace_ids(ids(9), edits=[av.Ablate(*head)]).attention(OF.layer)
        shared = OF.head * call.key.shape[0] // call.query.shape[0]
        found.append(float(call.query[OF.head, OF.query] @ call.key[shared, OF.key]) * call.scale)
    return found


@pytest.mark.parametrize("shared", [1, 2, 6])
def test_it_is_the_score_of_a_run_without_the_head_however_many_heads_share_a_key(shared: int) -> None:
    torch.manual_seed(0)
    given: dict[str, Any] = {**GROUPED, "vocab_size": 97, "num_key_value_heads": shared}
    config = transformers.LlamaConfig(**given)
    model = av.wrap(transformers.LlamaForCausalLM(config).eval())
    expected = by_runs(model)
    found = silenced_scores(model, model.trace_ids(ids(9)), OF, HEADS, "decoder")
    assert found == pytest.approx(expected, abs=1e-6, rel=1e-4)
    # The last head writes into no layer before the score's.
    assert len({round(one, 7) for one in expected}) == 3


def test_a_batch_whose_untouched_row_comes_out_otherwise_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = av.wrap(build("llama"))
    trace, outputs = model.trace_ids(ids(9)), Bench.outputs
    assert silenced_scores(model, trace, OF, HEADS, "decoder") is not None

    def off(self: Bench, inputs: dict[str, torch.Tensor], *more: object, **named: object) -> torch.Tensor:
        named["first"] = 0
        return outputs(self, {**inputs, "input_ids": inputs["input_ids"].roll(1)}, *more, **named)  # pyright: ignore

    monkeypatch.setattr(Bench, "outputs", off)
    assert silenced_scores(model, trace, OF, HEADS, "decoder") is None
