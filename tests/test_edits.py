"""An edit says what it is, refuses what it can't mean, and only ever takes away."""

from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_viz as av
from attention_viz.edits import check_places, narrow
from attention_viz.from_scratch import Scratch
from attention_viz.masks import causal

SHAPE = (3, 5)


def mask(*blocked: tuple[int, int]) -> torch.Tensor:
    allowed = torch.ones(SHAPE, dtype=torch.bool)
    for query, key in blocked:
        allowed[query, key] = False
    return allowed


def test_an_edit_is_told_in_words() -> None:
    assert str(av.Allow(mask((0, 4), (2, 1)))) == "allow: 2 of 3 × 5 cells blocked in all layers, all heads"
    assert str(av.Allow(mask(), layer=1, head=6)) == "allow: 0 of 3 × 5 cells blocked in layer 1, head 6"


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As outside the tests, where nobody checks shapes before the code itself does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("allowed", [torch.ones(3, 5), torch.ones(2, 3, 5, dtype=torch.bool), torch.tensor(True)])
def test_what_is_no_boolean_matrix_is_refused(allowed: torch.Tensor) -> None:
    with pytest.raises(av.ShapeError, match=r"allowed has to be boolean, \(query, key\)"):
        av.Allow(allowed)


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


@pytest.mark.parametrize("head", [-1, 2])
def test_a_head_that_is_not_there_is_refused(head: int) -> None:
    with pytest.raises(av.ShapeError, match=f"head {head} was asked for; layer 0 has heads 0 to 1"):
        narrow([av.Allow(mask(), head=head)], ("encoder", 0), 2, SHAPE, None)


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(av.ShapeError, match=r"\(3, 3\) was asked for; this text needs \(query, key\) = \(3, 5\)"):
        narrow([av.Allow(causal(3))], ("encoder", 0), 2, SHAPE, None)


@pytest.mark.parametrize("layer", [-1, 6])
def test_a_layer_that_is_not_there_is_refused_rather_than_left_unedited(layer: int) -> None:
    with pytest.raises(av.ShapeError, match=f"layer {layer} was asked for; the model has layers 0 to 5"):
        check_places([av.Allow(mask(), layer=layer)], {"encoder": 6})


def test_an_edit_for_a_layer_that_our_own_module_does_not_have_is_refused() -> None:
    edit = av.Allow(causal(2), layer=1)
    with pytest.raises(av.ShapeError, match="layer 1 was asked for; the model has only layer 0"):
        Scratch().trace("a boat", edits=[edit])
