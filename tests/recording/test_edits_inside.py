"""What an edit changes inside a model is what plain transformers gives when the same is done to it from outside."""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.edits.edit import Edit
from attention_viz.models.model import AttentionModel
from recipes.induction import SEGMENT, trials
from scripts.tiny import Family, tiny
from tests.models.families import build, eager, eager_twin, ids, wrapped
from tests.shipped import shipped
from tests.terms import assert_same_terms

SENTENCE = "The bank of the river was flooded"
COUNT = 9
HEADS = {"bert": 5, "gemma2": 6, "gpt_oss": 6, "llama": 6, "t5 encoder": 5}

Hook = Callable[[nn.Module, Any], Any]


def relative(ours: Tensor, theirs: Tensor) -> float:
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def parts(model: Any, layer: int) -> tuple[nn.Module, nn.Module]:
    """What makes a layer's values, and what joins its heads."""
    if hasattr(model, "model"):
        attention = model.model.layers[layer].self_attn
        return attention.v_proj, attention.o_proj
    if model.config.model_type == "t5":
        attention = model.encoder.block[layer].layer[0].SelfAttention
        return attention.v, attention.o
    attention = model.encoder.layer[layer].attention
    return attention.self.value, attention.output.dense


@contextmanager
def hooked_before(module: nn.Module, hook: Hook) -> Iterator[None]:
    handle = module.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def with_slice(head: int, width: int, make: Callable[[Tensor], Tensor | float]) -> Hook:
    """A hook that gives the module which joins the heads other numbers in one head's columns."""

    def hook(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        joined, columns = args[0].clone(), slice(head * width, (head + 1) * width)
        joined[0, :, columns] = make(joined[0, :, columns])
        return joined, *args[1:]

    return hook


def random_weights(count: int = COUNT) -> Tensor:
    """Weights without any pattern: ahead of the query as well, with zeros, and a row of nothing else."""
    generator = torch.Generator().manual_seed(5)
    drawn = torch.rand(count, count, generator=generator) ** 6 * (torch.rand(count, count, generator=generator) < 0.7)
    drawn[4] = 0
    return torch.nan_to_num(drawn / drawn.sum(dim=-1, keepdim=True), nan=0.0)


def input_ids(model: AttentionModel, text: str = SENTENCE) -> Tensor:
    return model.tokenizer(text, return_tensors="pt")["input_ids"]


@pytest.fixture(params=["encoder", "grouped decoder"])
def pair(request: pytest.FixtureRequest) -> tuple[AttentionModel, PreTrainedModel, Tensor, int]:
    """A model, one with the same weights under eager attention, what to read, and the width of a head."""
    if request.param == "encoder":
        minilm = request.getfixturevalue("minilm")
        return minilm, request.getfixturevalue("eager_minilm"), input_ids(minilm), 32
    return wrapped("llama"), eager_twin(build("llama")), ids(COUNT), 8


@pytest.mark.parametrize("to", ["zero", "mean"])
@pytest.mark.parametrize(("layer", "head"), [(0, 4), (2, 1)])
def test_an_ablated_head_is_one_whose_slice_a_hook_overwrites(
    pair: tuple[AttentionModel, PreTrainedModel, Tensor, int], to: str, layer: int, head: int
) -> None:
    model, plain, read, width = pair
    make = with_slice(head, width, lambda part: 0 if to == "zero" else part.mean(dim=0))
    with hooked_before(parts(plain, layer)[1], make):
        output, weights = eager(plain, input_ids=read)
    before, trace = model.trace_ids(read), model.trace_ids(read, edits=[av.Ablate(layer, head, to)])
    assert relative(trace.output, output) < 1e-5
    assert relative(before.output, output) > 1e-3, "the head does nothing, so this would prove nothing"
    for number, theirs in enumerate(weights):
        assert_close(trace.attention(number).weights, theirs, rtol=0, atol=1e-5)
    assert_close(trace.attention(layer).weights, before.attention(layer).weights, rtol=0, atol=1e-6)
    left, whole = trace.attention(layer).output[head], before.attention(layer).output[head]
    assert_close(left, (whole.mean(dim=0) if to == "mean" else whole.new_zeros(width)).expand_as(left))


@pytest.mark.parametrize("family", ["bert", "llama"])
@pytest.mark.parametrize("padding", [[0, 0, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 0, 0]])
def test_the_mean_is_taken_over_what_is_not_padding(family: str, padding: list[int]) -> None:
    model, plain, mask = wrapped(family), eager_twin(build(family)), torch.tensor([padding])
    real, width = mask[0].bool(), 4 if family == "bert" else 8
    with hooked_before(parts(plain, 1)[1], with_slice(2, width, lambda part: part[real].mean(dim=0))):
        output = eager(plain, input_ids=ids(COUNT), attention_mask=mask)[0]
    trace = model.trace_ids(ids(COUNT), mask, edits=[av.Ablate(1, 2, "mean")])
    assert relative(trace.output[real], output[real]) < 1e-5


def test_the_mean_may_be_taken_over_chosen_rows() -> None:
    model, rows = wrapped("bert"), torch.arange(COUNT) < 3
    whole = model.trace_ids(ids(COUNT)).attention(0).output[1]
    left = model.trace_ids(ids(COUNT), edits=[av.Ablate(0, 1, "mean", rows=rows)]).attention(0).output[1]
    assert_close(left, whole[:3].mean(dim=0).expand_as(left))


def test_a_head_of_cross_attention_is_ablated() -> None:
    model, plain = av.wrap(build("bart")), eager_twin(build("bart"))
    inputs = {"input_ids": ids(COUNT), "decoder_input_ids": ids(6)}
    with hooked_before(plain.get_decoder().layers[1].encoder_attn.out_proj, with_slice(3, 4, lambda _part: 0)):
        output = eager_of_pair(plain, inputs)
    trace = model.trace_ids(ids(COUNT), decoder_input_ids=ids(6), edits=[av.Ablate(1, 3, stream="cross")])
    assert relative(trace.output, output) < 1e-5
    assert relative(model.trace_ids(ids(COUNT), decoder_input_ids=ids(6)).output, output) > 1e-3
    assert trace.provenance.edits == ("ablate: the output becomes 0 in layer 1, head 3, of the cross",)


@torch.no_grad()
def eager_of_pair(model: PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
    return model(**inputs).last_hidden_state[0]


@pytest.mark.parametrize(("query", "key"), [(2, 5), (8, 0)])
def test_a_blocked_cell_is_a_mask_with_one_cell_closed(
    minilm: AttentionModel, eager_minilm: PreTrainedModel, query: int, key: int
) -> None:
    allowed = torch.ones(COUNT, COUNT, dtype=torch.bool)
    allowed[query, key] = False
    added = torch.where(allowed, 0.0, torch.finfo(torch.float32).min)[None, None]
    output, weights = eager(eager_minilm, input_ids=input_ids(minilm), attention_mask=added)
    trace = minilm.trace(SENTENCE, edits=[av.Block(query, key)])
    assert relative(trace.output, output) < 1e-5
    masked = minilm.trace(SENTENCE, edits=[av.Allow(allowed)])
    assert torch.equal(trace.output, masked.output)
    for layer, theirs in enumerate(weights):
        assert not trace.attention(layer).weights[:, query, key].any()
        assert_close(trace.attention(layer).weights, theirs, rtol=0, atol=1e-5)


def test_a_cell_is_blocked_in_one_head_only() -> None:
    before = wrapped("llama").trace_ids(ids(COUNT)).attention(1).weights
    after = wrapped("llama").trace_ids(ids(COUNT), edits=[av.Block(6, 2, layer=1, head=4)]).attention(1).weights
    assert after[4, 6, 2] == 0 < before[4, 6, 2]
    others = torch.arange(6) != 4
    assert_close(after[others], before[others], rtol=0, atol=1e-6)


@pytest.mark.parametrize("value", [2.5, 0.25])
def test_a_temperature_everywhere_divides_the_models_own_scaling(
    minilm: AttentionModel, eager_minilm: PreTrainedModel, value: float
) -> None:
    plain: Any = copy.deepcopy(eager_minilm)
    for layer in plain.encoder.layer:
        layer.attention.self.scaling /= value
    output, weights = eager(plain, input_ids=input_ids(minilm))
    trace = minilm.trace(SENTENCE, edits=[av.Temperature(value)])
    assert relative(trace.output, output) < 1e-5
    for layer, theirs in enumerate(weights):
        assert_close(trace.attention(layer).weights, theirs, rtol=0, atol=1e-5)


def softened(attention: av.Attention, value: float) -> Tensor:
    """softmax(logits / value), with a sink as one more logit."""
    logits = attention.masked
    if attention.sinks is not None:
        logits = torch.cat([logits, attention.sinks[:, None, None].expand(*logits.shape[:-1], 1)], dim=-1)
    return (logits.double() / value).softmax(dim=-1)[..., : attention.shape[-1]]


@pytest.mark.parametrize("head", [None, 3])
@pytest.mark.parametrize("value", [3.0, 0.4])
@pytest.mark.parametrize("family", HEADS)
def test_weights_at_a_temperature_are_the_softmax_of_the_divided_logits(
    family: str, value: float, head: int | None
) -> None:
    model = wrapped(family)
    before = model.trace_ids(ids(COUNT)).attention(0)
    after = model.trace_ids(ids(COUNT), edits=[av.Temperature(value, layer=0, head=head)]).attention(0)
    expected = before.weights.double()
    chosen = slice(None) if head is None else head
    expected[chosen] = softened(before, value)[chosen]
    assert_close(after.weights.double(), expected, rtol=0, atol=2e-6)
    assert (expected[chosen] - before.weights[chosen]).abs().max() > 0.01


def test_one_head_of_the_real_model_at_a_temperature(minilm: AttentionModel) -> None:
    before, after = (minilm.trace(SENTENCE, edits=edits).attention(0) for edits in ([], [av.Temperature(2, 0, 4)]))
    assert_close(after.weights[4], (before.masked[4] / 2).softmax(dim=-1), rtol=0, atol=1e-6)


def test_a_temperature_is_exact_in_half_precision() -> None:
    model = av.wrap(build("llama").to(torch.bfloat16))
    before = model.trace_ids(ids(COUNT)).attention(0)
    after = model.trace_ids(ids(COUNT), edits=[av.Temperature(3, 0, 2)]).attention(0)
    assert torch.equal(after.weights[2], (before.masked[2] / 3).softmax(dim=-1).to(torch.bfloat16))


@pytest.mark.parametrize(("layer", "head"), [(0, 4), (2, 1)])
def test_a_heads_own_weights_change_nothing(
    pair: tuple[AttentionModel, PreTrainedModel, Tensor, int], layer: int, head: int
) -> None:
    model, _, read, _ = pair
    before = model.trace_ids(read)
    after = model.trace_ids(read, edits=[av.Replace(layer, head, before.weights(layer, head))])
    assert relative(after.output, before.output) < 1e-5
    for number in before.layer_numbers():
        assert_close(after.attention(number).weights, before.attention(number).weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("layer", "head"), [(0, 4), (2, 1)])
def test_uniform_weights_hand_on_the_mean_of_the_values(
    pair: tuple[AttentionModel, PreTrainedModel, Tensor, int], layer: int, head: int
) -> None:
    model, plain, read, width = pair
    makes, joins = parts(plain, layer)
    values: list[Tensor] = []
    shared = model.trace_ids(read).attention(layer)
    key_head = head * shared.value.shape[0] // shared.shape[0]
    handle = makes.register_forward_hook(lambda _module, _args, made: values.append(made))

    def mean_of_values(_part: Tensor) -> Tensor:
        return values[-1][0, :, key_head * width : (key_head + 1) * width].mean(dim=0)

    try:
        with hooked_before(joins, with_slice(head, width, mean_of_values)):
            output = eager(plain, input_ids=read)[0]
    finally:
        handle.remove()
    uniform = torch.full((COUNT, COUNT), 1 / COUNT)
    trace = model.trace_ids(read, edits=[av.Replace(layer, head, uniform)])
    assert relative(trace.output, output) < 1e-5
    assert relative(model.trace_ids(read).output, output) > 1e-3
    assert_close(trace.weights(layer, head), uniform, rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", HEADS)
def test_replaced_weights_are_recorded_and_the_other_heads_keep_theirs(family: str) -> None:
    model, weights = wrapped(family), random_weights()
    before = model.trace_ids(ids(COUNT)).attention(0)
    after = model.trace_ids(ids(COUNT), edits=[av.Replace(0, 3, weights)]).attention(0)
    assert_close(after.weights[3], weights, rtol=0, atol=1e-6)
    assert torch.equal(after.weights[3] == 0, weights == 0)
    others = torch.arange(HEADS[family]) != 3
    assert_close(after.weights[others], before.weights[others], rtol=0, atol=1e-6)
    value = before.head(3).value
    assert_close(after.output[3], weights @ value, rtol=1e-5, atol=1e-5)


LOOKS_BACK = torch.ones(COUNT, COUNT).tril() / torch.arange(1, COUNT + 1)[:, None]
EDITS: dict[str, list[Edit]] = {
    "ablate": [av.Ablate(1, 3)],
    "block": [av.Block(5, 2, 1, 3)],
    "cool": [av.Temperature(0.5, 1)],
    "cool one": [av.Temperature(2, 1, 3)],
    "replace": [av.Replace(1, 3, random_weights())],
    "several": [av.Replace(1, 3, LOOKS_BACK), av.Ablate(1, 3, "mean"), av.Temperature(3), av.Temperature(2, 1, 0)],
}


@pytest.mark.parametrize("family", HEADS)
@pytest.mark.parametrize("name", EDITS)
def test_what_is_recorded_is_what_went_on(family: str, name: str) -> None:
    model = wrapped(family)
    entered: list[Tensor] = []
    with hooked_before(parts(model.hf_model, 1)[1], lambda _module, args: entered.append(args[0])):
        trace = model.trace_ids(ids(COUNT), edits=EDITS[name])
    attention = trace.attention(1)
    assert_close(entered[-1][0], attention.output.transpose(0, 1).flatten(1), rtol=1e-5, atol=1e-6)
    assert trace.provenance.edits == tuple(str(edit) for edit in EDITS[name])
    assert trace.layer(1).joined is not None, "the second run was another one"


def test_edits_apply_in_their_order() -> None:
    weights = torch.full((COUNT, COUNT), 1 / COUNT)
    replaced, blocked = av.Replace(0, 3, weights), av.Block(5, 2)
    first, last = (wrapped("bert").trace_ids(ids(COUNT), edits=e) for e in ([blocked, replaced], [replaced, blocked]))
    assert_close(first.weights(0, 3), weights, rtol=0, atol=1e-6)
    assert last.weights(0, 3)[5, 2] == 0
    assert_close(last.weights(0, 3)[5, 3], torch.tensor(1 / (COUNT - 1)), rtol=0, atol=1e-6)
    sharper = wrapped("bert").trace_ids(ids(COUNT), edits=[av.Temperature(2), av.Temperature(0.25)])
    once = wrapped("bert").trace_ids(ids(COUNT), edits=[av.Temperature(0.5)])
    assert relative(sharper.output, once.output) < 1e-6


def test_values_in_two_halves_are_ablated_both() -> None:
    model = av.wrap(tiny(Family("diffllama", "DiffLlamaForCausalLM"), scale=2))
    before, after = (model.trace_ids(ids(COUNT), edits=edits) for edits in ([], [av.Ablate(0, 1)]))
    attention = after.attention(0)
    assert attention.value.shape[-1] == 2 * attention.query.shape[-1]
    assert not attention.output[1].any()
    assert torch.equal(attention.weights, before.attention(0).weights)
    assert not torch.equal(after.output, before.output)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_leaves_the_model_as_it_was_also_while_another_thread_edits(
    name: str, together: Callable[..., list[object]]
) -> None:
    model = wrapped("llama")
    before = model.trace_ids(ids(COUNT))

    def plain() -> list[av.Trace]:
        return [model.trace_ids(ids(COUNT)) for _ in range(8)]

    def with_edits() -> list[av.Trace]:
        return [model.trace_ids(ids(COUNT), edits=EDITS[name]) for _ in range(8)]

    again, changed = together(plain, with_edits)
    for trace in [*again, model.trace_ids(ids(COUNT))]:
        assert torch.equal(trace.output, before.output)
        for layer in range(3):
            assert torch.equal(trace.attention(layer).weights, before.attention(layer).weights)
            assert torch.equal(trace.attention(layer).value, before.attention(layer).value)
    assert all(torch.equal(trace.output, changed[0].output) for trace in changed)
    assert not torch.equal(changed[0].output, before.output)


def test_whoever_gave_the_tensors_may_write_into_them_afterwards() -> None:
    weights, rows = random_weights(), torch.ones(COUNT, dtype=torch.bool)
    trace = wrapped("bert").trace_ids(ids(COUNT), edits=[av.Replace(0, 3, weights), av.Ablate(1, 1, "mean", rows=rows)])
    told = weights.clone()
    weights.zero_(), rows.zero_()
    assert trace.layer(0).joined is not None
    assert trace.layer(2).joined is not None
    assert_close(trace.weights(0, 3), told, rtol=0, atol=1e-6)


def test_an_edited_trace_with_a_closed_sink_is_saved_to_the_last_bit(tmp_path: Path) -> None:
    trace = wrapped("gpt_oss").trace_ids(ids(COUNT), edits=[av.Replace(0, 3, random_weights()), av.Temperature(2, 1)])
    trace.save(tmp_path / "trace")
    loaded = av.Trace.load(tmp_path / "trace")
    for layer in range(3):
        assert_same_terms(loaded.attention(layer), trace.attention(layer))
    assert loaded.provenance == trace.provenance


def test_the_induction_heads_are_needed_as_the_models_card_says() -> None:
    model = shipped("induction")
    assert isinstance(model, AttentionModel)
    told = json.loads((Path(av.__file__).parent / "sources/trained/induction/figures.json").read_text("utf-8"))
    rows = trials(model.tokenizer)

    def accuracy(*edits: Edit) -> float:
        said = torch.stack([model.trace_ids(row[None], edits=edits).output.argmax(dim=-1) for row in rows])
        return float((said[:, SEGMENT + 1 : -1] == rows[:, SEGMENT + 2 :]).float().mean())

    assert accuracy() == pytest.approx(told["accuracy"], abs=0.01)
    for layer, head in [(0, 0), (1, 1), (1, 2)]:
        assert accuracy(av.Ablate(layer, head)) == pytest.approx(told[f"without_{layer}_{head}"], abs=0.01)
    assert told["without_1_1"] < 0.1 < 0.9 < told["accuracy"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (av.Ablate(3, 0), "layer 3.*0 to 2"),
        (av.Ablate(0, 6), "head 6.*0 to 5"),
        (av.Ablate(0, 0, stream="cross"), "cross.*decoder"),
        (av.Ablate(0, 0, "mean", rows=torch.ones(4, dtype=torch.bool)), r"layer 0, head 0 needs 9 rows"),
        (av.Ablate(0, 0, "mean", rows=torch.zeros(9, dtype=torch.bool)), "True"),
        (av.Block(0, 1, layer=-1), "layer -1"),
        (av.Block(0, 1, head=6), "head 6.*0 to 5"),
        (av.Block(0, 1, stream="encoder"), "encoder"),
        (av.Block(9, 1), "query 9 and key 1.*9 queries and 9 keys"),
        (av.Block(1, 9), "query 1 and key 9"),
        (av.Temperature(2, layer=7), "layer 7"),
        (av.Temperature(2, head=-1), "head -1"),
        (av.Temperature(2, stream="side"), "side"),
        (av.Temperature(1e-37, 0), "temperature .*1e-37.*overflow"),
        (av.Temperature(5e-324, 0, 1), "temperature .*4.94066e-324.*overflow"),
        (av.Temperature(1e-37, 0, 1), "temperature .*1e-37.*overflow"),
        (av.Replace(5, 0, torch.eye(9)), "layer 5"),
        (av.Replace(0, 6, torch.eye(9)), "head 6"),
        (av.Replace(0, 0, torch.eye(9), "cross"), "cross"),
        (av.Replace(0, 0, torch.eye(4)), r"\(9, 9\); got \(4, 4\)"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_by_its_kind(edit: Edit, message: str) -> None:
    with pytest.raises(av.ShapeError, match=message):
        wrapped("llama").trace_ids(ids(COUNT), edits=[edit])


@pytest.mark.parametrize("head", [None, 2])
def test_a_temperature_so_high_that_the_softcap_vanishes_is_refused(head: int | None) -> None:
    assert wrapped("gemma2").trace_ids(ids(COUNT), edits=[av.Temperature(1e30, 0, head)]).output.isfinite().all()
    with pytest.raises(av.ShapeError, match=r"temperature .*1e\+38.*softcap"):
        wrapped("gemma2").trace_ids(ids(COUNT), edits=[av.Temperature(1e38, 0, head)])


@pytest.mark.parametrize("value", [1e-30, 1e30])
@pytest.mark.parametrize("head", [None, 2])
def test_a_temperature_far_away_gives_one_key_or_all(value: float, head: int | None) -> None:
    weights = wrapped("bert").trace_ids(ids(COUNT), edits=[av.Temperature(value, 0, head)]).weights(0, 2)
    assert_close(weights.amax(dim=-1), torch.full((COUNT,), 1.0 if value < 1 else 1 / COUNT))


def test_a_mean_that_no_values_give_is_refused() -> None:
    with pytest.raises(av.UnsupportedModel, match=r'layer 0, head 1.* attention sink.* to="zero"'):
        wrapped("gpt_oss").trace_ids(ids(COUNT), edits=[av.Ablate(0, 1, "mean")])
    alone = [av.Block(0, 0, 0, 1), av.Ablate(0, 1, "mean")]
    with pytest.raises(av.ShapeError, match=r"layer 0, head 1.*query 0"):
        wrapped("llama").trace_ids(ids(COUNT), edits=alone)


@pytest.mark.parametrize("edit", [av.Ablate(0, 0), av.Block(0, 1), av.Temperature(2), av.Replace(0, 0, torch.eye(9))])
def test_an_edit_has_to_say_its_stream_where_a_model_has_several(edit: Edit) -> None:
    with pytest.raises(av.ShapeError, match="encoder, decoder, cross"):
        wrapped("bart").trace_ids(ids(COUNT), decoder_input_ids=ids(COUNT), edits=[edit])
