import math
from collections.abc import Callable
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

import attention_viz as av
from attention_viz.operation.modules import Projection
from attention_viz.operation.positional import rotation
from attention_viz.operation.terms import terms_of
from attention_viz.scratch.model import Scratch
from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import OpenHead, open_head, row_statistics
from attention_viz.steps.steps import NOTATIONS, STEPS, shape_of_step, step_tensors, steps_of, transposed
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from tests.shipped import shipped

STEEP = "The bank is steep, so it's dangerous to stand near it"
LABELS = ["Embeddings", "Query", "Key", "Value", "Scores", "Scaled", "Allowed", "Weights", "Output", "Heads joined"]


def trace_of(layer: Layer, stream: str = "decoder") -> Trace:
    queries, keys = layer.attention.shape[-2:]
    rows, columns = (av.Tokens.of_ids(range(count)) for count in (queries, keys))
    return Trace(
        {stream: (layer,)},
        {stream: rows},
        {stream: columns},
        torch.zeros(queries, 2),
        Provenance("made for a test"),
        Fidelity(0.0, 0.0, 1e-5, "nothing"),
    )


def numbers(*shape: int) -> Tensor:
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(math.prod(shape)))


@cache
def own() -> OpenHead:
    """Our own module with a causal mask, three heads, everything known."""
    module = Scratch(12, 3, 1)
    words = "The cat sat on mat".split()
    parts = {"word vector": module.embed(words) * 0.25, "position": module.embed(words) * 0.75}
    trace = module.run(" ".join(words), av.masks.causal(5))
    return open_head(trace, 0, 2, projections=module.projections(), parts=parts)


@cache
def shared() -> OpenHead:
    """Six query heads on two key heads, soft-capped, biased, masked, with sinks, and turned by position."""
    before_query, before_key = numbers(6, 5, 8), numbers(2, 5, 8)
    call = av.attend(
        turned(before_query),
        turned(before_key),
        numbers(2, 5, 7),
        av.masks.causal(5),
        scale=0.3,
        softcap=2.5,
        bias=numbers(6, 5, 5),
        sinks=numbers(6),
    )
    joined, matrix = torch.zeros(5, 11), numbers(42, 11)
    joined = call.output.transpose(0, 1).flatten(1) @ matrix
    layer = Layer(call, "0", None, joined, before_query, before_key)
    return open_head(trace_of(layer), 0, 4, projections={"output": Projection(matrix)})


@cache
def pretrained() -> OpenHead:
    model = shipped("all-MiniLM-L6-v2")
    return open_head(model.trace(STEEP), 3, 1, projections=model.projections(3))


def turned(rows: Tensor) -> Tensor:
    """Each position turned by its number, in pairs of one half with the other."""
    half = rows.shape[-1] // 2
    angle = torch.arange(rows.shape[-2])[:, None] * 0.5 ** torch.arange(half)
    first, second = rows[..., :half], rows[..., half:]
    return torch.cat([first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos()], -1)


MADE: dict[str, Callable[[], OpenHead]] = {"own": own, "shared": shared, "pretrained": pretrained}


def test_the_steps_come_in_order_and_only_where_the_model_has_them() -> None:
    assert [step.label for step in steps_of(own()).values()] == LABELS
    assert list(steps_of(pretrained())) == list(steps_of(own()))
    assert list(steps_of(shared())) == [name for name in STEPS if name != "picked"]  # it has no indexer


@pytest.mark.parametrize("name", ["own", "pretrained"])
def test_each_step_is_what_plain_torch_computes_from_the_one_before(name: str) -> None:
    opened = MADE[name]()
    found = {step: STEPS[step].function(opened) for step in steps_of(opened)}
    width, x = opened.d_k, found["embeddings"]
    assert x is not None
    columns = slice(opened.head * width, (opened.head + 1) * width)
    for step in ("query", "key", "value"):
        matrix = opened.projections[step]
        bias = 0 if matrix.bias is None else matrix.bias[columns]
        assert_close(found[step], x @ matrix.weight[:, columns] + bias, atol=1e-5, rtol=1e-5)
    assert_close(found["scores"], torch.einsum("qc,kc->qk", found["query"], found["key"]), atol=1e-5, rtol=1e-5)
    assert_close(found["scaled"], found["scores"] / width**0.5)
    blocked = torch.ones(len(x), len(x)).triu(1).bool() if name == "own" else torch.zeros(len(x), len(x)).bool()
    assert_close(found["allowed"], found["scaled"].masked_fill(blocked, -math.inf))
    assert_close(found["weights"], found["allowed"].exp() / found["allowed"].exp().sum(-1, keepdim=True))
    assert_close(found["output"], found["weights"] @ found["value"], atol=1e-5, rtol=1e-5)


def test_a_head_with_every_term_there_is_is_opened_here() -> None:
    assert not [term.name for term in terms_of(av.Attention) if getattr(shared().attention, term.name) is None]


def test_the_terms_of_other_models_are_steps_of_their_own() -> None:
    opened, head = shared(), 4
    call = opened.entry.attention
    scaled = call.query[head] @ call.key[head // 3].T * 0.3
    assert opened.attention.softcap == 2.5
    capped = 2.5 * torch.tanh(scaled / 2.5)
    assert_close(STEPS["softcapped"].function(opened), capped)
    assert call.bias is not None
    assert call.sinks is not None
    biased = capped + call.bias[head]
    assert_close(STEPS["biased"].function(opened), biased)
    powers = biased.masked_fill(~av.masks.causal(5), -math.inf).exp()
    weights = powers / (powers.sum(-1, keepdim=True) + call.sinks[head].exp())
    assert_close(STEPS["weights"].function(opened), weights)
    assert_close(STEPS["output"].function(opened), weights @ call.value[head // 3])
    assert "sum to between" in STEPS["weights"].change(opened)


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=60)
@given(data=st.data())
def test_the_arithmetic_of_any_cell_gives_the_number_in_the_tensor(name: str, data: st.DataObject) -> None:
    opened = MADE[name]()
    step = data.draw(st.sampled_from(sorted(steps_of(opened))))
    matrix = STEPS[step].function(opened)
    if matrix is None:
        return
    row, column = (data.draw(st.integers(0, count - 1)) for count in matrix.shape)
    found = open_cell(opened, step, row, column)
    assert found.total == matrix[row, column].item()
    assert found.computed == pytest.approx(found.total, rel=1e-4, abs=2e-5)
    for term in found.terms:
        if len(term.factors) == 2 and found.rule == "sum":
            assert math.prod(number for _, number in term.factors) == pytest.approx(term.product)


def test_every_step_of_a_pretrained_head_opens_as_products() -> None:
    rules = {step: open_cell(pretrained(), step, 5, 3).rule for step in steps_of(pretrained())}
    assert [step for step, rule in rules.items() if rule == "given"] == ["embeddings", "allowed"]
    assert len(open_cell(pretrained(), "query", 5, 3).terms) == 384 + 1
    assert len(open_cell(pretrained(), "joined", 5, 3).terms) == 12 + 1


def test_a_blocked_cell_says_why() -> None:
    found = open_cell(own(), "allowed", 1, 3)
    assert found.total == -math.inf
    assert "comes later" in found.sentence
    assert open_cell(own(), "weights", 1, 3).total == 0


def test_a_row_with_nothing_allowed_is_said_and_not_divided() -> None:
    trace = av.scratch("a b c", allowed=torch.tensor([[True] * 3, [False] * 3, [True] * 3]))
    found = open_cell(open_head(trace, 0, 0), "weights", 1, 2)
    assert (found.total, found.rule) == (0, "given")
    assert "1 rows have nothing left" in STEPS["allowed"].change(open_head(trace, 0, 0))


@pytest.mark.parametrize(("scale", "factor"), [("d_k", 1 / 2), ("d_model", 1 / math.sqrt(12)), ("none", 1.0)])
def test_a_scale_recomputes_everything_after_it(scale: str, factor: float) -> None:
    as_run = own()
    opened = open_head(as_run.trace, 0, 2, scale=scale, projections=as_run.projections)
    logits = (as_run.attention.scores * factor).masked_fill(~av.masks.causal(5), -math.inf)
    assert_close(opened.weights, logits.softmax(-1))
    assert_close(opened.attention.output, logits.softmax(-1) @ as_run.attention.value)
    assert bool(opened.switched) == (scale != "d_k")
    joined = opened.entry.attention.output.transpose(0, 1).flatten(1) @ as_run.projections["output"].weight
    assert_close(opened.entry.joined, joined)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_moves_the_numbers_a_little(precision: str) -> None:
    opened = open_head(own().trace, 0, 2, precision=precision)
    assert opened.weights.dtype == getattr(torch, precision)
    off = (opened.weights.float() - own().weights).abs().max()
    assert 0 < off < 0.02
    assert opened.switched == (f"precision {precision}",)
    assert any(precision in edit for edit in opened.trace.provenance.edits)


def test_a_matrix_that_does_not_make_the_numbers_is_not_shown_as_if_it_did() -> None:
    wrong = {"query": Projection(numbers(12, 12)), "output": Projection(numbers(11, 12))}
    assert open_head(own().trace, 0, 2, projections=wrong).projections == {}


@pytest.mark.parametrize("name", MADE)
def test_what_each_head_adds_sums_with_the_bias_to_the_joined_vector(name: str) -> None:
    opened = MADE[name]()
    trace, known = opened.trace, opened.projections
    each = [open_head(trace, opened.layer, head, projections=known).adds for head in range(opened.heads)]
    added = torch.stack([one for one in each if one is not None])
    bias = known["output"].bias
    assert len(added) == opened.heads
    assert_close(added.sum(0) + (0 if bias is None else bias), opened.entry.joined, atol=1e-4, rtol=1e-4)


def test_what_a_head_adds_is_what_the_joined_vector_loses_when_it_is_silenced() -> None:
    opened, silenced = pretrained(), shipped("all-MiniLM-L6-v2").trace(STEEP, edits=[av.Ablate(3, 1)])
    before, after = opened.entry.joined, silenced.layer(3).joined
    assert before is not None and after is not None
    assert_close(opened.adds, before - after, atol=1e-5, rtol=1e-4)
    assert open_head(silenced, 3, 1).adds is None


def test_without_w_o_a_switched_run_has_no_joined_heads() -> None:
    assert open_head(own().trace, 0, 2, scale="none").entry.joined is None


@pytest.mark.parametrize(("wrong", "message"), [({"scale": "√d"}, "scale '√d'"), ({"precision": "int8"}, "'int8'")])
def test_a_switch_that_is_not_there_is_refused_by_name(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(av.ShapeError, match=message):
        open_head(own().trace, 0, 2, **wrong)


def test_a_step_or_cell_that_is_not_there_is_refused() -> None:
    with pytest.raises(av.ShapeError, match="unknown step 'softmax'"):
        open_cell(own(), "softmax", 0, 0)
    with pytest.raises(av.ShapeError, match=r"no cell \(0, 5\); the matrix is 5 × 5"):
        open_cell(own(), "weights", 0, 5)
    with pytest.raises(av.ShapeError, match="no head 7"):
        open_head(own().trace, 0, 7)


def test_statistics_of_a_row_agree_with_torch() -> None:
    weights = own().weights
    found = row_statistics(weights)
    for row, p in enumerate(weights.double()):
        assert found.entropy[row] == pytest.approx(torch.distributions.Categorical(p).entropy().item(), abs=1e-6)
        assert found.gradient[row] == pytest.approx((p.diag() - p.outer(p)).norm().item(), abs=1e-9)
        assert found.largest[row] == p.max()


def test_a_rotation_is_found_with_its_angles() -> None:
    rows = numbers(5, 8)
    found = rotation(rows, turned(rows))
    assert found is not None
    assert found.pairs == ((0, 4), (1, 5), (2, 6), (3, 7))
    expected = torch.arange(5)[:, None] * 0.5 ** torch.arange(4)
    turns = (found.angles - expected + math.pi) % (2 * math.pi) - math.pi
    assert_close(turns, torch.zeros_like(turns), atol=1e-5, rtol=0)
    assert rotation(rows, numbers(5, 9)[:, :8]) is None


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
def test_a_notation_turns_shapes_and_never_numbers(notation: str, step: object) -> None:
    found = STEPS[next(name for name, one in STEPS.items() if one is step)]
    matrix = torch.zeros(5, 7)
    words, symbols = shape_of_step(found, matrix, notation)
    assert words.startswith("7 " if transposed(found, notation) else "5 ")
    assert found.formula(notation).count("{") == found.formula(notation).count("}")
    assert r"\times" in symbols


def test_formulas_follow_the_notation() -> None:
    assert STEPS["scores"].formula("rows").startswith(r"S = Q K^{\top}")
    assert STEPS["scores"].formula("columns").startswith(r"E = Q^{\top} K")
    assert STEPS["scores"].formula("keys down").startswith(r"S = K Q^{\top}")
    assert STEPS["output"].formula("columns").startswith(r"C = A V^{\top}")
    assert shape_of_step(STEPS["query"], torch.zeros(9, 32), "columns")[0] == "32 dimensions × 9 queries"
    assert shape_of_step(STEPS["scores"], torch.zeros(1, 1))[0] == "1 query × 1 key"
    # Keys of another text are as many as that has tokens.
    assert shape_of_step(STEPS["weights"], torch.zeros(6, 8), crossing=True) == ("6 queries × 8 keys", r"n \times m")
    assert shape_of_step(STEPS["key"], torch.zeros(8, 2), "columns", crossing=True)[1] == r"d_k \times m"


def test_the_file_holds_every_tensor_on_the_screen() -> None:
    held = step_tensors(own())
    shown = "query key value scores scaled masked weights output embeddings joined".split()
    weights = [f"{name}_weight" for name in ("query", "key", "value", "output")]
    assert list(held) == [*shown, *weights, "embeddings_word_vector", "embeddings_position"]
    assert all(tensor.ndim == 2 for tensor in held.values())
    assert_close(held["embeddings"] @ held["key_weight"], held["key"])
    assert {"softcapped", "biased", "unrotated_query", "unrotated_key"} <= set(step_tensors(shared()))
    assert step_tensors(pretrained())["query_bias"].shape == (1, 32)
