"""The pair that stands for a head of a layer without a softmax."""

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.findings.link import link_of
from attention_viz.serving.run import Run
from tests.recording.mixers.hybrids import build

IDS = (torch.arange(30)[None] * 7) % 97


@pytest.mark.parametrize(("name", "head"), [("qwen3_next", 2), ("jamba", 5)])
def test_a_mixer_head_is_shown_by_its_largest_share_off_the_diagonal(name: str, head: int) -> None:
    trace = av.wrap(build(name)).trace_ids(IDS)
    mixer = trace.mixers["mixer"][0].mixer
    if mixer.per == "channel":
        # One picture of all channels: √Σ (A v)².
        sizes = (mixer.weights * mixer.value.squeeze(-1)[:, None]).square().sum(dim=0).sqrt()
    else:
        sizes = mixer.head(head).weights.abs()
    shares = (sizes / sizes.sum(dim=-1, keepdim=True)).nan_to_num(0)
    shares.fill_diagonal_(0)[:, 0] = 0
    layer = trace.layer_numbers("mixer")[0]
    found = link_of(trace, "mixer", layer, head)
    assert found == divmod(int(shares.argmax()), 30)
    run = Run(trace)
    assert run.stream("mixer") == "mixer" and run.stream(None) == "decoder" and run.mixes("mixer")
    assert run.place("mixer", layer, 10_000) == (layer, trace.head_count(layer, "mixer") - 1)
    assert run.alone("mixer") is run and run.tokens == 30
