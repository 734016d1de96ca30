"""What each layer would say, against plain transformers: its hidden states, through the last norm and the word head."""

from typing import Any

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel, UnusableText
from tests.models.families import build, ids
from tests.shipped import MINILM, SMOLLM2, plain, shipped

STORY = "When Mary and John went to the store, John gave a drink to"
# How a hidden state is read in the end.
HEADS = {
    "gpt2": lambda m, x: m.lm_head(m.transformer.ln_f(x)),
    "llama": lambda m, x: m.lm_head(m.model.norm(x)),
    "gemma2": lambda m, x: 30 * torch.tanh(m.lm_head(m.model.norm(x)) / 30),
    "opt": lambda m, x: m.lm_head(m.model.decoder.final_layer_norm(x)),
    "bert with a head": lambda m, x: m.cls(x),
}


def by_hand(model: Any, head: Any, given: Tensor) -> Tensor:
    """Probabilities, (layer, position, token): of what enters the first layer, and of what leaves each."""
    with torch.no_grad():
        told = model(given, output_hidden_states=True)
        states = [head(model, state[0]) for state in told.hidden_states[:-1]]
        return torch.stack([*states, told.logits[0]]).softmax(dim=-1)


@pytest.mark.parametrize("family", HEADS)
def test_it_is_the_last_norm_and_the_word_head_applied_to_what_leaves_each_layer(family: str) -> None:
    hf, given = build(family), ids(9)
    hf.set_attn_implementation("eager")
    expected = by_hand(hf, HEADS[family], given)
    model = av.wrap(hf)
    flags = [(one.requires_grad, one.grad) for one in hf.parameters()]
    trace = model.trace_ids(given)
    layers = len(expected)
    found = av.logit_lens(model, trace)
    assert found["layer"].tolist() == list(range(-1, layers - 1)) * 9
    assert found["position"].tolist() == [at for at in range(9) for _ in range(layers)]
    shares = torch.tensor(found["probability"].tolist()).unflatten(0, (9, layers))
    torch.testing.assert_close(shares, expected.amax(dim=-1).T.contiguous(), atol=1e-5, rtol=1e-4)
    one = av.logit_lens(model, trace, token=7)
    shares = torch.tensor(one["probability"].tolist()).unflatten(0, (9, layers))
    torch.testing.assert_close(shares, expected[:, :, 7].T.contiguous(), atol=1e-5, rtol=1e-4)
    three = torch.tensor(av.logit_lens(model, trace, count=3)["probability"].tolist()).unflatten(0, (9, layers, 3))
    torch.testing.assert_close(three, expected.topk(3).values.transpose(0, 1).contiguous(), atol=1e-5, rtol=1e-4)
    assert flags == [(one.requires_grad, one.grad) for one in hf.parameters()]


def test_smollm2_says_mary_in_its_last_layer_only() -> None:
    model = shipped(SMOLLM2)
    trace = model.trace(STORY)
    found = av.logit_lens(model, trace)
    last = found[found["position"] == 13].set_index("layer")
    assert (last["token"][29], last["probability"][29]) == ("ĠMary", pytest.approx(0.923, abs=0.002))
    mary = av.logit_lens(model, trace, token="Mary")
    before = mary[(mary["position"] == 13) & (mary["layer"] < 29)]["probability"]
    body, given = plain(SMOLLM2), torch.tensor([trace.query_tokens().ids])
    with torch.no_grad():
        states = torch.stack(body(given, output_hidden_states=True).hidden_states[:-1])[:, 0, 13]
        # Its word head has the numbers of its embeddings.
        expected = (body.norm(states) @ body.get_input_embeddings().weight.T).softmax(dim=-1)
    (token,) = model.tokenizer.encode(" Mary")  # pyright: ignore[reportOptionalMemberAccess]
    torch.testing.assert_close(torch.tensor(before.tolist()), expected[:, token], atol=1e-5, rtol=1e-3)
    assert before.max() < 0.01


def test_an_edited_run_is_read_as_it_ran() -> None:
    model = shipped("induction")
    text = "red cat blue dog red"
    trace = model.trace(text, edits=[av.Ablate(1, 1)])
    found = av.logit_lens(model, trace)
    last = found[(found["position"] == 5) & (found["layer"] == 1)]["probability"].item()
    assert last == pytest.approx(float(trace.output[-1].softmax(dim=-1).max()), abs=1e-5)
    whole = av.logit_lens(model, model.trace(text))
    assert last != pytest.approx(float(whole[(whole["position"] == 5) & (whole["layer"] == 1)]["probability"].item()))


def test_what_can_t_be_read_is_refused_in_words() -> None:
    induction, translation, encoder = shipped("induction"), shipped("translation"), shipped(MINILM)
    trace = induction.trace("red cat blue dog red")
    with pytest.raises(ShapeError, match="count must be at least 1; got 0"):
        _ = av.logit_lens(induction, trace, count=0)
    with pytest.raises(UnusableText, match="no token 'xylophonist'"):
        _ = av.logit_lens(induction, trace, token="xylophonist")
    with pytest.raises(TraceError, match="only its own traces"):
        _ = av.logit_lens(induction, encoder.trace("the cat"))
    with pytest.raises(UnsupportedModel, match="needs an unembedding, which all-MiniLM-L6-v2 lacks"):
        _ = av.logit_lens(encoder, encoder.trace("the cat"))
    with pytest.raises(UnsupportedModel, match="3 attention types"):
        _ = av.logit_lens(translation, translation.trace("the red house"))
    with pytest.raises(TraceError, match="from a file or another trace"):
        _ = av.logit_lens(induction, trace.derived())
