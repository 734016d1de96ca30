"""DeepSeek V4's compressed keys: the spans of tokens that they are made of, and the indexer's choice among them."""

import functools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.layout import spans
from attention_viz.recording.sparse import picking as listening
from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import open_head
from attention_viz.trace.slots import span_at
from scripts.tiny import Family, scaled, tiny
from tests.models.families import ids, padding

COUNT = 13
KINDS = ["sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention", "sliding_attention"]
SPANS = {
    "decoder 2": ["span 0–2", "span 3–5", "span 6–8", "span 9–11"],
    "decoder 3": ["span 0–1", "span 0–3", "span 2–5", "span 4–7", "span 6–9", "span 8–11"],
}


def compressing(kinds: Any = tuple(KINDS), sparse: int = 2, heavy: int = 3) -> PreTrainedModel:
    """A tiny DeepSeek V4; its sparse layers pick two of the keys made of `sparse` tokens and as many before them."""
    model = tiny(Family("deepseek_v4", "DeepseekV4ForCausalLM"))
    changes: dict[str, Any] = {
        "num_hidden_layers": len(kinds),
        "layer_types": list(kinds),
        "mlp_layer_types": ["moe"] * len(kinds),
        "compress_rates": {"compressed_sparse_attention": sparse, "heavily_compressed_attention": heavy},
        "index_topk": 2,
        "max_position_embeddings": 128,
    }
    torch.manual_seed(3)
    return scaled(type(model)(type(model.config)(**{**model.config.to_dict(), **changes})).eval(), 8)


@functools.cache
def compressed() -> tuple[PreTrainedModel, Any]:
    model = compressing()
    return model, av.wrap(model)


@pytest.mark.parametrize("padded", [0, 2, -2])
def test_weights_over_compressed_keys_are_those_that_the_model_hands_out(padded: int) -> None:
    model, wrapped = compressed()
    mask = padding(COUNT, padded)
    trace = wrapped.trace_ids(ids(COUNT), mask)
    assert trace.fidelity.ok
    assert {name: trace.layer_numbers(name) for name in trace.streams} == {
        "decoder": (0, 3),
        "decoder 2": (1,),
        "decoder 3": (2,),
    }
    with torch.no_grad():
        theirs = model(ids(COUNT), attention_mask=mask, use_cache=False, output_attentions=True).attentions
    for stream in trace.streams:
        for number in trace.layer_numbers(stream):
            ours = trace.attention(number, stream).weights[:, mask[0].bool()]
            assert_close(ours, theirs[number][0][:, mask[0].bool()], rtol=0, atol=1e-5)
        assert list(trace.key_tokens(stream).labels[COUNT:]) == SPANS.get(stream, [])
        assert trace.key_tokens(stream).labels[:COUNT] == trace.query_tokens(stream).labels


def test_spans_that_a_text_moves_are_named_for_each_text() -> None:
    model, start = compressing(), [0]
    compressor = model.get_submodule("model.layers.1.self_attn.compressor")

    def begin(_module: object, _inputs: object, named: dict[str, Any]) -> None:
        start[0] = int(named["input_ids"][0, 0]) % 2

    def move(_module: object, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        states = inputs[0]
        return torch.cat([states[:, start[0] :], states[:, : start[0]]], dim=1), *inputs[1:]

    model.register_forward_pre_hook(begin, with_kwargs=True)
    compressor.register_forward_pre_hook(move)
    wrapped, text = av.wrap(model), ids(COUNT)
    assert int(text[0, 0]) % 2 == 1
    other = text + torch.eye(COUNT, dtype=torch.long)[:1]
    moved = ["span 1–3", "span 4–6", "span 7–9", "span 10–12"]
    for given, expected in ((text, moved), (other, SPANS["decoder 2"]), (text, moved)):
        trace = wrapped.trace_ids(given)
        assert [list(trace.key_tokens(stream).labels[COUNT:]) for stream in trace.streams][1] == expected


def moved_by(token: int, at: int, wrapped: Any, model: PreTrainedModel) -> list[int]:
    """Return the keys of a layer that move with one row of what its attention reads."""
    given = list[Tensor]()

    def disturb(_module: Any, inputs: tuple[Any, ...]) -> Any:
        rows = inputs[0].clone()
        rows[0, token] += 1 + rows[0, token].abs() if given else 0
        return (rows, *inputs[1:])

    keys = list[Tensor]()
    handle = next(one for name, one in model.named_modules() if name.endswith(f"layers.{at}.self_attn"))
    hook = handle.register_forward_pre_hook(disturb)
    try:
        for _ in range(2):
            call = wrapped.runner.record(wrapped.runner.inputs({"input_ids": ids(COUNT)})).calls[at]
            keys.append(call.attention.key)
            given.append(call.attention.key)
    finally:
        hook.remove()
    return (keys[0] != keys[1]).any(dim=-1).any(dim=0).nonzero().flatten().tolist()


@pytest.mark.parametrize(("stream", "layer"), [("decoder 2", 1), ("decoder 3", 2), ("decoder", 3)])
def test_a_token_moves_its_own_key_and_the_spans_that_name_it(stream: str, layer: int) -> None:
    model, wrapped = compressed()
    trace = wrapped.trace_ids(ids(COUNT))
    keys = trace.key_tokens(stream)
    for token in range(COUNT):
        spans_of_it = [at for at in range(COUNT, len(keys)) if token in (span_at(keys, at) or ())]
        assert moved_by(token, layer, wrapped, model) == [token, *spans_of_it]


@pytest.mark.parametrize("count", [1, 2, 5, 70, 120])
def test_spans_follow_the_length_of_the_text(count: int) -> None:
    trace = compressed()[1].trace_ids(ids(count))
    assert trace.fidelity.ok
    found = {stream: [span_at(keys, at) for at in range(count, len(keys))] for stream, keys in keys_of(trace).items()}
    assert found["decoder"] == []
    assert found["decoder 2"] == [range(3 * at, 3 * at + 3) for at in range(count // 3)]
    assert found["decoder 3"] == [range(max(0, 2 * at - 2), 2 * at + 2) for at in range(count // 2)]


def keys_of(trace: av.Trace) -> dict[str, Any]:
    return {stream: trace.key_tokens(stream) for stream in trace.streams}


def test_layers_without_compressed_keys_in_a_short_text_have_them_in_a_longer_one() -> None:
    kinds = ["heavily_compressed_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
    wrapped = av.wrap(compressing(kinds, sparse=4, heavy=20))
    short, long = wrapped.trace_ids(ids(COUNT)), wrapped.trace_ids(ids(45))
    assert short.key_tokens("decoder").labels == short.query_tokens("decoder").labels
    assert long.key_tokens("decoder").labels[45:] == ("span 0–19", "span 20–39")
    assert long.layer_numbers("decoder") == (0, 2)
    assert long.fidelity.ok


def test_the_keys_picked_are_the_indexers_highest_and_a_moved_cut_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = compressed()[1]
    layer = wrapped.trace_ids(ids(COUNT)).layer(2, "decoder 3")
    picking, weights = layer.picking, layer.attention.weights
    assert int(picking.left_out.sum()) == sum(max(0, (at + 1) // 2 - 2) for at in range(COUNT))
    assert not bool(picking.left_out[..., :COUNT].any())
    own = layer.attention.allowed.expand(weights.shape)
    assert torch.equal(own, picking.picked.expand(weights.shape))
    assert not bool(weights[~picking.picked.expand(weights.shape)].any())
    for row in range(COUNT):
        scores = picking.scores[0, row, COUNT:]
        known = scores[scores > -torch.inf]
        assert set(scores[picking.picked[0, row, COUNT:]].tolist()) == set(known.sort().values[-2:].tolist())
    right = listening.HeardIndexer

    def shown(change: Any) -> Any:
        made = lambda module, choices: right(module, [(scores, change(places)) for scores, places in choices])  # noqa: E731
        monkeypatch.setattr(listening, "HeardIndexer", made)
        return wrapped.trace_ids(ids(COUNT)).layer(2, "decoder 3").picking

    assert shown(lambda places: places) is not None
    assert shown(lambda places: places[..., :-1]) is None
    assert shown(lambda places: (places + 1) % 6) is None


def test_the_scores_are_the_indexers_own() -> None:
    """By DeepSeek-AI 2026, "DeepSeek-V4", eq. 16, from what enters the indexer's scorer."""
    model, wrapped = compressed()
    heard = list[Tensor]()
    scorer: Any = next(one for one in model.modules() if type(one).__name__.endswith("IndexerScorer"))

    def keep(_module: Any, inputs: tuple[Any, ...], _output: object) -> None:
        query, keys, rows = inputs
        shares = scorer.weights_proj(rows)[0] * scorer.weights_scaling
        each = [(query[0, :, head] @ keys[0].T).clamp_min(0) * shares[:, head, None] for head in range(query.shape[2])]
        heard.append(torch.stack(each).sum(0) * query.shape[-1] ** -0.5)

    hook = scorer.register_forward_hook(keep)
    try:
        with torch.no_grad():
            model(ids(COUNT), use_cache=False)
    finally:
        hook.remove()
    scores = wrapped.trace_ids(ids(COUNT)).layer(2, "decoder 3").picking.scores[0, :, COUNT:]
    known = scores > -torch.inf
    assert_close(scores[known], heard[0][known], rtol=0, atol=1e-5)


def test_cells_of_spans_say_why_they_are_blocked() -> None:
    trace = compressed()[1].trace_ids(ids(COUNT))
    opened = open_head(trace, 2, 0, "decoder 3")
    picking = trace.layer(2, "decoder 3").picking
    query, key = (int(at) for at in picking.left_out[0].nonzero()[0])
    assert "didn't pick this key" in open_cell(opened, "allowed", query, key).sentence
    assert open_cell(opened, "picked", query, key).total == pytest.approx(float(picking.margins[0, query, key]))
    assert "span ends later" in open_cell(opened, "allowed", 2, COUNT + 1).sentence
    assert "comes later" in open_cell(opened, "allowed", 2, 5).sentence
    table = av.picked_table(trace, stream="decoder 3")
    assert set(table[~table["picked"]]["key_token"]) <= set(SPANS["decoder 3"])


@pytest.mark.parametrize(
    "wrong", [lambda one: [*one[1:], one[0]], lambda one: [(first + 1, last + 1) for first, last in one]]
)
def test_other_spans_are_noticed(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper that named other tokens would attend to spans that end later, so it is no decoder."""
    right = spans.spans_of
    monkeypatch.setattr(spans, "spans_of", lambda *given: tuple(tuple(wrong(one)) for one in right(*given)))
    assert av.wrap(compressing()).streams[0] == "encoder"


def test_what_these_models_cannot_do_is_refused_by_name() -> None:
    wrapped = compressed()[1]
    with pytest.raises(UnsupportedModel, match="grow in jumps"):
        _ = list(wrapped.generate("x", 2))
    with pytest.raises(UnsupportedModel, match="one by one"):
        _ = wrapped.traces_of([])
    with pytest.raises(UnsupportedModel, match="heads= and queries="):
        _ = wrapped.trace_ids(ids(COUNT), heads=[0])


def test_edits_reach_compressed_keys() -> None:
    wrapped = compressed()[1]
    block = av.Block(12, COUNT + 5, layer=2, head=0, stream="decoder 3")
    trace = wrapped.trace_ids(ids(COUNT), edits=[block])
    assert float(trace.weights(2, 0, "decoder 3")[12, COUNT + 5]) == 0
    assert trace.layer(2, "decoder 3").picking is None
