"""The beginning that two texts share doesn't run again, and what comes of that is what runs of all tokens say."""

from dataclasses import replace

import pytest
import torch

import attention_viz as av
from attention_viz.circuits.opened import run_behind
from attention_viz.circuits.patching import bench
from attention_viz.circuits.patching.bench import shared_beginning
from attention_viz.circuits.patching.patching import Patching
from attention_viz.operation.attention import Attention
from tests.circuits.patching.test_patch import FAMILIES, LAST, LENGTH, others
from tests.models.families import build, ids
from tests.shipped import MINILM, shipped


@pytest.mark.parametrize("family", [*FAMILIES, "gpt_neox", "qwen3"])
def test_tokens_before_the_first_that_differs_do_not_run_again(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = av.wrap(build(family))
    pair = model.trace_ids(ids(LENGTH)), model.trace_ids(others())
    alone, made = Patching.begin(model, *pair, LAST), Patching.begin(model, *pair, LAST)
    expected = {put: next(alone.batches([put]))[put] for put in alone.puts}
    read: list[tuple[int, ...]] = []
    embeddings = made.bench.twin.model.get_input_embeddings()
    embeddings.register_forward_pre_hook(lambda _module, given: read.append(tuple(given[0].shape)))
    found = next(made.batches())
    assert read[-1] == (1 + len(found), LENGTH - 2) and made._start == 2 and not made._whole
    assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-5, rel=1e-4)
    # Keys of the beginning that aren't the run's are noticed, and from then on all tokens run.
    before = bench.continued

    def off(call: Attention, whole: Attention, start: int) -> Attention:
        return before(call, replace(whole, key=whole.key.flip(-2)), start)

    monkeypatch.setattr(bench, "continued", off)
    again = next(made.batches())
    assert list(again.values()) == pytest.approx(list(expected.values()), abs=1e-5, rel=1e-4)
    assert made._whole and read[-1] == (1 + len(found), LENGTH)


def test_all_tokens_run_where_a_beginning_is_not_shared() -> None:
    model, other = av.wrap(build("llama")), ids(LENGTH).clone()
    text = model.trace_ids(ids(LENGTH))
    other[0, 0] = 60
    assert Patching.begin(model, text, model.trace_ids(other), LAST)._start == 0
    # What is asked for has to run, too.
    other = ids(LENGTH).clone()
    other[0, 7] = 60
    assert Patching.begin(model, text, model.trace_ids(other), av.Logit(17, position=4))._start == 4
    # Tokens that look ahead are changed by what comes later.
    encoder = shipped(MINILM)
    pair = [encoder.trace(f"the boat on the river was {one}") for one in ("red", "blue")]
    asked = av.Direction(torch.ones(pair[0].output.shape[1]), position=7)
    assert Patching.begin(encoder, *pair, asked)._start == 0
    run, tokens = run_behind(model, text), model.trace_ids(others()).query_tokens()
    spots = tuple((at, at) for at in range(LENGTH))
    assert shared_beginning(run, tokens, spots, LENGTH - 1) == 2
    assert shared_beginning(run, tokens, spots[1:], LENGTH - 1) == 0
    # One layer in which nothing is blocked is enough.
    call = run.layers[1].attention
    ahead = replace(run.layers[1], attention=replace(call, allowed=torch.ones_like(call.scores).bool()))
    looks = run._replace(layers=(run.layers[0], ahead, run.layers[2]))
    assert shared_beginning(looks, tokens, spots, LENGTH - 1) == 0
