"""An edit says what it is and refuses what it can't mean; a mask only ever takes away."""

from collections.abc import Callable, Iterator

import jaxtyping
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_viz as av
from attention_viz.edits.edit import Edit
from attention_viz.edits.kinds.masks import narrow
from attention_viz.edits.places import check_places
from attention_viz.operation.masks import causal
from attention_viz.scratch.model import Scratch
from attention_viz.trace.kept import KeptLayers

SHAPE = (3, 5)


def mask(*blocked: tuple[int, int]) -> torch.Tensor:
    allowed = torch.ones(SHAPE, dtype=torch.bool)
    for query, key in blocked:
        allowed[query, key] = False
    return allowed


def test_an_edit_is_told_in_words() -> None:
    assert str(av.Allow(mask((0, 4), (2, 1)))) == "allow: 2 of 3 × 5 cells blocked in all layers, all heads"
    assert str(av.Allow(mask(), layer=1, head=6)) == "allow: 0 of 3 × 5 cells blocked in layer 1, head 6"
    assert str(av.Block(4, 2, 1)) == "block: query 4 may not attend to key 2 in layer 1, all heads"
    assert str(av.Temperature(0.5)) == "temperature: the softmax's input divided by 0.5 in all layers, all heads"
    assert str(av.Ablate(2, 7)) == "ablate: the output becomes 0 in layer 2, head 7"
    assert (
        str(av.Ablate(2, 7, "mean", "cross")) == "ablate: the output becomes its mean in layer 2, head 7, of the cross"
    )
    assert str(av.Replace(0, 3, torch.eye(4))) == "replace: weights of 4 × 4 given in layer 0, head 3"


def test_edits_without_a_tensor_are_equal_when_they_say_the_same() -> None:
    assert av.Block(1, 2) == av.Block(1, 2) != av.Block(1, 2, layer=0)
    assert len({av.Temperature(2), av.Temperature(2), av.Ablate(0, 1), av.Ablate(0, 1), av.Ablate(0, 1, "mean")}) == 3


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As outside the tests, where nobody checks shapes before the code itself does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("allowed", [torch.ones(3, 5), torch.ones(2, 3, 5, dtype=torch.bool), torch.tensor(True)])
def test_what_is_no_boolean_matrix_is_refused(allowed: torch.Tensor) -> None:
    with pytest.raises(av.ShapeError, match=r"allowed must be boolean, \(query, key\)"):
        av.Allow(allowed)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: av.Block(-1, 2), "positions count from 0; got query -1, key 2"),
        (lambda: av.Block(1, -2), "positions count from 0; got query 1, key -2"),
        (lambda: av.Block(1.0, 2), "query must be a whole number; got 1.0"),
        (lambda: av.Block(1, True), "key must be a whole number; got True"),
        (lambda: av.Temperature(0), "a temperature must be a finite number above 0; got 0"),
        (lambda: av.Temperature(-1.5), "above 0; got -1.5"),
        (lambda: av.Temperature(float("inf")), "above 0; got inf"),
        (lambda: av.Temperature(float("nan")), "above 0; got nan"),
        (lambda: av.Temperature(10**400), "a temperature must be a finite number"),
        (lambda: av.Temperature(True), "above 0; got True"),
        (lambda: av.Temperature("2"), "above 0; got '2'"),
        (lambda: av.Ablate("0", 1), "layer must be a whole number; got '0'"),
        (lambda: av.Ablate(0, 1.5), "head must be a whole number; got 1.5"),
        (lambda: av.Ablate(0, 1, "median"), 'to must be "zero" or "mean"; got \'median\''),
        (lambda: av.Ablate(0, 1, "mean", rows=torch.ones(3)), r"rows must be boolean, \(query,\).*float32 \(3,\)"),
        (lambda: av.Replace(0, None, torch.eye(3)), "head must be a whole number; got None"),
        (lambda: av.Replace(0, 1, [[1.0]]), r"weights must be a tensor; got list"),
        (lambda: av.Replace(0, 1, torch.eye(3, dtype=torch.long)), "weights must be a floating-point matrix"),
        (lambda: av.Replace(0, 1, torch.ones(1, 2, 2) / 2), r"weights must be a floating-point matrix.*\(1, 2, 2\)"),
        (lambda: av.Replace(0, 1, torch.tensor([[float("nan"), 1]])), "finite and non-negative; got nan"),
        (lambda: av.Replace(0, 1, torch.tensor([[float("inf"), 1]])), "finite and non-negative; got inf"),
        (lambda: av.Replace(0, 1, torch.tensor([[1.5, -0.5]])), "finite and non-negative; got -0.5"),
        (lambda: av.Replace(0, 1, torch.tensor([[1, 0], [0.5, 0.499]])), "to 0; row 1 sums to 0.999"),
        (lambda: av.Replace(0, 1, torch.tensor([[1e-5, 0]])), "to 0; row 0 sums to 1e-05"),
    ],
)
def test_what_can_not_be_meant_is_refused_when_it_is_made(make: Callable[[], Edit], message: str) -> None:
    with pytest.raises(av.ShapeError, match=message):
        make()


def test_rows_that_rounding_left_beside_one_are_taken() -> None:
    av.Replace(0, 1, torch.tensor([[0.5, 0.50005], [0, 0]]))


def test_without_edits_the_models_own_mask_is_handed_back_itself() -> None:
    own = mask((1, 1))
    assert narrow((), ("encoder", 0), 2, SHAPE, own) is own
    assert narrow((), ("encoder", 0), 2, SHAPE, None) is None
    assert narrow([av.Allow(mask(), layer=1)], ("encoder", 0), 2, SHAPE, own) is own


def test_edits_are_and_ed_with_the_models_own_mask_and_with_each_other() -> None:
    own = mask((0, 0))[None]
    edits = [av.Allow(mask((1, 1))), av.Allow(mask((2, 2)), layer=4)]
    allowed = narrow(edits, ("encoder", 4), 2, SHAPE, own)
    assert torch.equal(allowed, mask((0, 0), (1, 1), (2, 2))[None])


def test_an_edit_of_one_head_leaves_the_others_open() -> None:
    allowed = narrow([av.Allow(mask((1, 3)), head=1)], ("encoder", 0), 2, SHAPE, None)
    assert torch.equal(allowed, torch.stack([mask(), mask((1, 3))]))


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from([None, 0, 1]), st.integers(0, 14)), max_size=5))
def test_an_edit_never_opens_what_the_model_blocks(drawn: list[tuple[int, int | None, int]]) -> None:
    own = causal(*SHAPE)[None]
    edits = [av.Allow(mask(divmod(cell, 5)), layer, head) for layer, head, cell in drawn]
    allowed = narrow(edits, ("encoder", 0), 2, SHAPE, own)
    assert not (allowed & ~own).any()


def test_a_block_is_a_mask_with_one_cell_closed() -> None:
    own = mask((0, 0))[None]
    assert torch.equal(narrow([av.Block(1, 3)], ("encoder", 0), 2, SHAPE, own), mask((0, 0), (1, 3))[None])
    one = narrow([av.Block(1, 3, head=1)], ("encoder", 0), 2, SHAPE, None)
    assert torch.equal(one, torch.stack([mask(), mask((1, 3))]))


@pytest.mark.parametrize(("query", "key"), [(3, 0), (0, 5)])
def test_a_block_outside_the_text_is_refused(query: int, key: int) -> None:
    with pytest.raises(av.ShapeError, match=f"can't block query {query} and key {key}; this text has 3"):
        narrow([av.Block(query, key)], ("encoder", 0), 2, SHAPE, None)


@pytest.mark.parametrize("head", [-1, 2])
def test_a_head_that_is_not_there_is_refused(head: int) -> None:
    with pytest.raises(av.ShapeError, match=f"names head {head}; layer 0 has heads 0 to 1"):
        narrow([av.Allow(mask(), head=head)], ("encoder", 0), 2, SHAPE, None)


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(av.ShapeError, match=r"the shape \(query, key\) = \(3, 5\); got \(3, 3\)"):
        narrow([av.Allow(causal(3))], ("encoder", 0), 2, SHAPE, None)


@pytest.mark.parametrize("layer", [-1, 6])
def test_a_layer_that_is_not_there_is_refused_rather_than_left_unedited(layer: int) -> None:
    with pytest.raises(av.ShapeError, match=f"names layer {layer}; the model has layers 0 to 5"):
        check_places([av.Allow(mask(), layer=layer)], {"encoder": KeptLayers.first(6)})


def test_an_edit_for_a_layer_that_our_own_module_does_not_have_is_refused() -> None:
    edit = av.Allow(causal(2), layer=1)
    with pytest.raises(av.ShapeError, match="names layer 1; the model has only layer 0"):
        Scratch().trace("a boat", edits=[edit])


def test_our_own_module_blocks_a_cell() -> None:
    trace = Scratch().trace("a boat here", edits=[av.Block(2, 0, head=1)])
    assert trace.weights(0, 1)[2, 0] == 0 < trace.weights(0, 0)[2, 0]
    assert trace.provenance.edits == ("block: query 2 may not attend to key 0 in all layers, head 1",)
