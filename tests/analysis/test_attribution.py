"""Each number against a computation written anew: plain loops, networkx, cuts tried one by one, plain transformers."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import networkx
import numpy
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.testing import assert_close
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.analysis import attribution
from attention_viz.analysis.attribution import flow, norm_weighted, rollout
from attention_viz.errors import ShapeError, TraceError
from attention_viz.models.model import AttentionModel
from attention_viz.operation.attention import attend
from attention_viz.operation.modules import Projection
from attention_viz.scratch.model import Scratch
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from tests.models.families import build, eager_twin, ids, run, wrapped

NAME = "all-MiniLM-L6-v2"
TEXT = "The bank of the river was flooded"
GROUPED = "llama"  # six query heads share two key and value heads


Pair = tuple[Trace, NDArray[Any]]


@pytest.fixture(scope="module", params=["encoder", "decoder"])
def pair(request: pytest.FixtureRequest, minilm: AttentionModel, eager_minilm: PreTrainedModel) -> Pair:
    """A trace, and what plain transformers says its weights are, (layer, head, query, key)."""
    if request.param == "encoder":
        trace, plain = minilm.trace(TEXT), eager_minilm
    else:
        trace, plain = wrapped(GROUPED).trace_ids(ids(8)), eager_twin(build(GROUPED))
    result = run(plain, input_ids=torch.tensor([trace.query_tokens().ids]), output_attentions=True)
    return trace, torch.stack([layer[0] for layer in result["attentions"]]).double().numpy()


def hand_made(*layers: Tensor, stream: str = "encoder") -> Trace:
    """A trace of just these weights, (head, query, key) a layer; a row of zeros may look at nothing."""
    calls = [
        attend(
            weights.new_zeros(*weights.shape[:2], 2),
            weights.new_zeros(*weights.shape[::2], 2),
            weights.new_zeros(*weights.shape[::2], 2),
            allowed=weights > 0,
            bias=torch.where(weights > 0, weights, 1).log(),
        )
        for weights in layers
    ]
    queries, keys = (Tokens.of_ids(range(count)) for count in layers[0].shape[1:])
    return Trace(
        {stream: tuple(Layer(call, str(number)) for number, call in enumerate(calls))},
        {stream: queries},
        {stream: keys},
        torch.zeros(1, 1),
        Provenance("hand-made", ""),
        Fidelity(0, 0, 1, "itself"),
    )


def random_weights(heads: int, count: int, *, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (3 * torch.randn(heads, count, count, generator=generator)).softmax(dim=-1)


def widened(weights: NDArray[Any]) -> NDArray[Any]:
    """Half the weights, averaged over heads, and half the position itself: (layer, query, key)."""
    return numpy.stack([0.5 * layer.mean(axis=0) + 0.5 * numpy.eye(layer.shape[-1]) for layer in weights])


def by_loops(mixed: NDArray[Any]) -> NDArray[Any]:
    """Rollout, one path step at a time."""
    count = mixed.shape[-1]
    rolled = [mixed[0]]
    for layer in mixed[1:]:
        new = numpy.zeros((count, count))
        for query, between, key in itertools.product(range(count), repeat=3):
            new[query, key] += layer[query, between] * rolled[-1][between, key]
        rolled.append(new)
    return numpy.stack(rolled)


def by_networkx(mixed: NDArray[Any], layer: int, query: int, key: int) -> float:
    """The maximum flow through a graph with named nodes and capacities as they are."""
    graph = networkx.DiGraph()
    for number, matrix in enumerate(mixed[: layer + 1]):
        for (upper, lower), capacity in numpy.ndenumerate(matrix):
            if capacity > 0:
                graph.add_edge((number, upper), (number - 1, lower), capacity=float(capacity))
    if (-1, key) not in graph:
        return 0.0
    return networkx.maximum_flow_value(graph, (layer, query), (-1, key))


def by_cuts(mixed: NDArray[Any], query: int, key: int) -> float:
    """The narrowest of all cuts between a position after the last layer and a token, each of them tried."""
    count = mixed.shape[-1]
    nodes = list(itertools.product(range(-1, len(mixed)), range(count)))
    top, bottom = nodes.index((len(mixed) - 1, query)), nodes.index((-1, key))
    near = numpy.array([*itertools.product((True, False), repeat=len(nodes))])  # (cut, node): which nodes are above it
    near = near[near[:, top] & ~near[:, bottom]]
    width = numpy.zeros(len(near))
    for number, matrix in enumerate(mixed):
        for (upper, lower), capacity in numpy.ndenumerate(matrix):
            width += capacity * (near[:, nodes.index((number, upper))] & ~near[:, nodes.index((number - 1, lower))])
    return float(width.min())


def test_rollout_is_what_plain_loops_over_plain_transformers_weights_give(pair: Pair) -> None:
    trace, weights = pair
    rolled = rollout(trace)
    assert rolled.dtype == torch.float32 and rolled.shape == (len(weights), *weights.shape[2:])
    assert_close(rolled.double().numpy(), by_loops(widened(weights)), rtol=0, atol=1e-6)


def test_rows_of_rollout_are_shares(pair: Pair) -> None:
    rolled = rollout(pair[0])
    assert rolled.min() >= 0
    assert_close(rolled.sum(dim=-1), torch.ones(rolled.shape[:2]), rtol=0, atol=1e-6)


def test_rollout_of_two_layers_worked_by_hand() -> None:
    first = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])  # on average ½ everywhere
    second = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    # ½ W + ½ I: ((¾ ¼) (¼ ¾)), then ((1 0) (½ ½)); their product leaves row 0 and takes the mean as row 1.
    expected = torch.tensor([[[0.75, 0.25], [0.25, 0.75]], [[0.75, 0.25], [0.5, 0.5]]])
    assert_close(rollout(hand_made(first, second)), expected)


def test_a_row_that_may_look_at_nothing_stays_what_it_was() -> None:
    first, second = random_weights(2, 4, seed=1), random_weights(3, 4, seed=2)
    second[:, 2] = 0
    rolled = rollout(hand_made(first, second))
    assert_close(rolled[1, 2], rolled[0, 2])
    nothing = hand_made(torch.zeros(2, 4, 4), torch.zeros(2, 4, 4))
    for found in (rollout(nothing), flow(nothing)):
        assert found.equal(torch.eye(4).repeat(2, 1, 1))


def test_what_sinks_take_goes_to_the_residual_connection() -> None:
    trace = wrapped("gpt_oss").trace_ids(ids(6))
    mean = trace.attention(0).weights.mean(dim=0)
    missing = 1 - mean.sum(dim=-1)
    assert missing.min() > 0.01
    expected = (mean + torch.eye(6)) / (2 - missing)[:, None]
    assert_close(rollout(trace)[0], expected)
    assert_close(rollout(trace).sum(dim=-1), torch.ones(trace.layer_count(), 6))


def test_nothing_comes_from_padding_and_the_rest_is_as_without(minilm: AttentionModel) -> None:
    row = torch.tensor([[101, 2023, 2003, 1037, 3231, 102]])
    padded = torch.nn.functional.pad(row, (0, 3))
    with_padding = minilm.trace_ids(padded, (padded != 0).long())
    for method in (rollout, flow):
        whole, alone = method(with_padding), method(minilm.trace_ids(row))
        assert not whole[:, :6, 6:].any()
        assert_close(whole[:, :6, :6], alone, rtol=0, atol=1e-5)


def test_rows_of_half_precision_sum_to_one_all_the_same() -> None:
    rolled = rollout(hand_made(*(random_weights(2, 9, seed=seed).bfloat16() for seed in (1, 2))))
    assert_close(rolled.sum(dim=-1), torch.ones(2, 9), rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", [rollout, flow])
def test_streams_that_look_at_themselves_are_followed_and_no_others(method: Callable[..., Tensor]) -> None:
    trace = wrapped("bart").trace_ids(ids(5), decoder_input_ids=ids(4))
    assert method(trace, "encoder").shape == (2, 5, 5) and method(trace, "decoder").shape == (2, 4, 4)
    name = method.__name__
    with pytest.raises(TraceError, match=f"{name} needs .*cross-attention has 4 queries and 5 keys .*; choose enc"):
        method(trace, "cross")
    with pytest.raises(TraceError, match="has 5 queries and 5 keys of two different rows"):
        method(wrapped("bart").trace_ids(ids(5), decoder_input_ids=ids(5)), "cross")
    with pytest.raises(TraceError, match="no stream was named; this trace has encoder, decoder, cross"):
        method(trace)
    with pytest.raises(TraceError, match=f"{name} needs .*; the decoder has 3 queries and 5 keys"):
        method(hand_made(torch.full((1, 3, 5), 0.2), stream="decoder"))


def test_flow_is_what_networkx_finds_in_plain_transformers_weights(pair: Pair) -> None:
    trace, weights = pair
    mixed, queries = widened(weights), [1, 6]
    found = flow(trace, queries=queries)
    assert found.dtype == torch.float32
    for layer, row, key in numpy.ndindex(*found.shape):
        assert float(found[layer, row, key]) == pytest.approx(by_networkx(mixed, layer, queries[row], key), abs=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_flow_is_the_narrowest_cut(seed: int) -> None:
    weights = [random_weights(2, 3, seed=10 * seed + layer) for layer in range(3)]
    mixed, found = widened(numpy.stack([layer.double().numpy() for layer in weights])), flow(hand_made(*weights))
    for layers in (2, 3):
        for query, key in itertools.product(range(3), repeat=2):
            narrowest = by_cuts(mixed[:layers], query, key)
            assert float(found[layers - 1, query, key]) == pytest.approx(narrowest, abs=2e-7)


def test_flow_of_two_layers_worked_by_hand() -> None:
    first = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]])
    second = torch.tensor([[[0.0, 1.0], [0.5, 0.5]]])
    # ½ W + ½ I: first ((¾ ¼) (0 1)), second ((½ ½) (¼ ¾)). Two ways down, each as wide as its narrower half:
    # 0 → 0: min(½, ¾) + min(½, 0) = ½    0 → 1: min(½, ¼) + min(½, 1) = ¾
    # 1 → 0: min(¼, ¾) + min(¾, 0) = ¼    1 → 1: min(¼, ¼) + min(¾, 1) = 1
    expected = torch.tensor([[[0.75, 0.25], [0.0, 1.0]], [[0.5, 0.75], [0.25, 1.0]]])
    assert_close(flow(hand_made(first, second)), expected, rtol=0, atol=1e-7)


def test_two_layers_are_as_wide_as_the_narrower_half_of_each_way(minilm: AttentionModel) -> None:
    trace = minilm.trace(" ".join([TEXT] * 3))
    lower, upper = (
        (trace.attention(layer).weights.double().mean(dim=0) + torch.eye(len(trace.query_tokens()))) / 2
        for layer in (0, 1)
    )
    ways = torch.minimum(upper[:, :, None], lower[None]).sum(dim=1)
    assert_close(flow(trace, layers=[1])[0], ways.float(), rtol=0, atol=1e-6)


def test_flow_lies_between_rollout_and_what_its_ends_can_hold(pair: Pair) -> None:
    trace, rolled, found = pair[0], rollout(pair[0]), flow(pair[0])
    assert_close(found[0], rolled[0], rtol=0, atol=1e-7)
    assert (found - rolled).min() > -1e-6 and (found - rolled).max() > 0.01
    assert found.max() <= 1
    assert (rolled[0].sum(dim=0) - found).min() > -1e-6, "no more than all pipes into the token hold"
    assert found.sum(dim=-1).min() > 1 - 1e-6
    assert found.diagonal(dim1=1, dim2=2).min() > 0.5 - 1e-6, "the residual connection alone"
    if trace.streams == ("decoder",):
        assert not found.triu(1).any() and not rolled.triu(1).any()


def test_flow_gives_just_the_layers_and_queries_asked_for(pair: Pair) -> None:
    trace, whole = pair[0], flow(pair[0])
    assert flow(trace, layers=[2, 0], queries=[5, 1]).equal(whole[[2, 0]][:, [5, 1]])
    assert flow(trace, layers=[]).shape == (0, *whole.shape[1:])
    assert flow(trace, queries=[]).shape == (len(whole), 0, whole.shape[2])
    with pytest.raises(TraceError, match=f"no layer {len(whole)}; the .* has layers 0 to {len(whole) - 1}"):
        flow(trace, layers=[0, len(whole)])
    with pytest.raises(TraceError, match="no layer -1"):
        flow(trace, layers=[-1])
    with pytest.raises(ShapeError, match="query 99; there are"):
        flow(trace, queries=[99])


def test_flow_refuses_what_would_take_hours_and_does_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 230
    trace = hand_made(torch.full((1, count, count), 1 / count))
    assert flow(trace, queries=[3])[0, 0, :5].tolist() == pytest.approx(
        [0.5 / count] * 3 + [0.5 + 0.5 / count, 0.5 / count]
    )
    monkeypatch.setattr(attribution, "maximum_flow", None)
    told = r"for 1 × 230 × 230 \(layer, query, key\) needs 2\.8e\+09 steps .* over the limit of 2e\+09"
    with pytest.raises(TraceError, match=told):
        flow(trace)
    with pytest.raises(TraceError, match=r"needs 2\.2e\+09 steps"):  # after layer 2 a flow has three layers to search
        flow(hand_made(*[torch.full((1, 165, 165), 1 / 165)] * 3), layers=[2])


Naive = tuple[Tensor, Tensor, Tensor]


def modules_of(model: PreTrainedModel, layer: int) -> tuple[nn.Module, nn.Module]:
    """The module whose output is the value, last of all where several are side by side, and the one that is W_O."""
    found: Any = model
    match model.config.model_type:
        case "bert":
            found = found.encoder.layer[layer].attention
            return found.self.value, found.output.dense
        case "gpt2":
            found = found.transformer.h[layer].attn
            return found.c_attn, found.c_proj
        case "bart":
            found = found.decoder.layers[layer].encoder_attn
            return found.v_proj, found.out_proj
        case _:
            found = found.model.layers[layer].self_attn
            return found.v_proj, found.o_proj


def naive(model: PreTrainedModel, layer: int, call: av.Attention, inputs: Mapping[str, Tensor]) -> Naive:
    """From plain transformers: α_ij f(x_j) as (head, query, key, d_model), b_O, and what its own W_O puts out."""
    value_of, joining = modules_of(model, layer)
    seen: dict[str, Tensor] = {}
    handles = [
        value_of.register_forward_hook(lambda _module, _inputs, output: seen.update(value=output[0])),
        joining.register_forward_hook(lambda _module, _inputs, output: seen.update(joined=output[0])),
    ]
    result = run(model, **inputs, output_attentions=True)
    for handle in handles:
        handle.remove()
    weights = (result.get("cross_attentions") or result["attentions"])[layer][0].double()
    heads, width = len(weights), call.value.shape[-1]
    value = seen["value"].double()[:, -len(call.value) * width :]
    matrix: Tensor = joining.weight.detach().double()  # pyright: ignore[reportAssignmentType] -- a module's weight
    matrix = matrix if model.config.model_type == "gpt2" else matrix.T
    fetched = []
    for head in range(heads):
        shared = head // (heads // len(call.value))
        moved = value[:, shared * width : (shared + 1) * width] @ matrix[head * width : (head + 1) * width]
        fetched.append(weights[head][:, :, None] * moved[None])
    bias: Any = getattr(joining, "bias", None)
    return torch.stack(fetched), torch.zeros(1) if bias is None else bias.detach(), seen["joined"]


Case = tuple[AttentionModel, PreTrainedModel, Trace, dict[str, Tensor], str | None]


@pytest.fixture(scope="module", params=["minilm", "gpt2", GROUPED, "one key head", "bart"])
def case(request: pytest.FixtureRequest, minilm: AttentionModel, eager_minilm: PreTrainedModel) -> Case:
    """A model, its plain twin, a trace, and the plain pass's inputs; a stream where there are several."""
    if request.param == "minilm":
        trace = minilm.trace(TEXT)
        return minilm, eager_minilm, trace, {"input_ids": torch.tensor([trace.query_tokens().ids])}, None
    fewer = {"num_key_value_heads": 1} if request.param == "one key head" else {}
    plain = build(GROUPED if fewer else request.param, **fewer)
    model = av.wrap(build(GROUPED, **fewer)) if fewer else wrapped(request.param)
    if request.param == "bart":
        inputs = {"input_ids": ids(7), "decoder_input_ids": ids(5)}
        return model, eager_twin(plain), model.trace_ids(ids(7), decoder_input_ids=ids(5)), inputs, "cross"
    return model, eager_twin(plain), model.trace_ids(ids(7)), {"input_ids": ids(7)}, None


def test_norms_are_those_of_each_vector_that_plain_transformers_adds_up(case: Case) -> None:
    model, plain, trace, inputs, stream = case
    for layer in range(trace.layer_count(stream)):
        fetched, bias, joined = naive(plain, layer, trace.attention(layer, stream), inputs)
        norms = norm_weighted(model, trace, layer, stream)
        assert norms.dtype == torch.float32 and norms.shape == fetched.shape[:3]
        expected = fetched.norm(dim=-1)
        assert_close(norms.double(), expected, rtol=1e-4, atol=1e-5 * float(expected.max()))
        # The vectors are the right ones: together they are what leaves the layer.
        together = (fetched.sum(dim=(0, 2)) + bias).float()
        recorded = trace.layer(layer, stream).joined
        assert recorded is not None
        for whole in (joined, recorded):
            assert_close(together, whole, rtol=1e-4, atol=1e-4 * float(whole.abs().max()))


def test_norms_are_zero_where_a_query_may_not_look() -> None:
    model = wrapped(GROUPED)
    norms = norm_weighted(model, model.trace_ids(ids(6)), 1)
    assert not norms.triu(1).any() and (norms.diagonal(dim1=1, dim2=2) > 0).all()


def test_our_own_module_has_norms_too() -> None:
    model = Scratch(d_model=6, heads=2)
    trace = model.trace(TEXT)
    call, matrix = trace.attention(0), model.module().output.weight.detach().T
    vectors = torch.stack([call.value[head] @ matrix[3 * head : 3 * head + 3] for head in range(2)])
    assert_close(norm_weighted(model, trace, 0), call.weights * vectors.norm(dim=-1)[:, None])


class Telling:
    """A model that tells just these matrices, and no name."""

    def __init__(self, **told: Projection) -> None:
        self.notes = told

    def projections(self, layer: int, stream: str | None = None) -> Mapping[str, Projection]:
        return self.notes


def test_norms_without_the_matrix_that_joins_the_heads_are_refused_by_name() -> None:
    trace = wrapped(GROUPED).trace_ids(ids(5))
    with pytest.raises(TraceError, match=r"norms need W_O, .* of decoder layer 1"):
        norm_weighted(Telling(value=Projection(torch.ones(12, 16))), trace, 1)
    with pytest.raises(
        TraceError, match="W_O of decoder layer 1 has 40 rows, but the trace's 6 heads of 8 values need"
    ):
        norm_weighted(Telling(output=Projection(torch.ones(40, 12))), trace, 1)


def test_norms_of_another_models_trace_are_refused(minilm: AttentionModel) -> None:
    with pytest.raises(TraceError, match=f"the trace is of scratch, but the matrices are of {NAME}"):
        norm_weighted(minilm, Scratch().trace(TEXT), 0)


def test_norms_of_a_layer_or_stream_that_is_not_there_are_refused(minilm: AttentionModel) -> None:
    trace = minilm.trace(TEXT)
    with pytest.raises(TraceError, match="no layer 6; the encoder has layers 0 to 5"):
        norm_weighted(minilm, trace, 6)
    with pytest.raises(TraceError, match="unknown stream 'cross'; this trace has encoder"):
        norm_weighted(minilm, trace, 0, "cross")
