"""What somebody types, from addresses to stories of a scan: right, or refused in our words."""

import contextlib
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_viz as av
from attention_viz.corpus.hypotheses.language import read_hypothesis
from attention_viz.corpus.hypotheses.values import ATTRIBUTES, HypothesisAxis
from attention_viz.edits.changes import EDITS, misfit, read_changes, to_edits, write_changes
from attention_viz.scratch.model import Scratch
from attention_viz.trace.tokens import Tokens
from attention_viz.ui.address import State, read_address, write_address
from attention_viz.ui.address.codec import parameters
from attention_viz.ui.address.kinds import fits_link
from tests.fuzz.settings import examples
from tests.shipped import shipped

pytestmark = pytest.mark.usefixtures("unchecked_module")

VALUES = st.one_of(
    st.text(max_size=30),
    st.integers(-3, 20).map(str),
    st.sampled_from(
        ["", "9" * 5000, "nan", "1e400", "scratch", "all", "0:0", "a,b", "<script>", "../..", "\x00", "１"]
    ),
    st.builds(
        "{}{}{}".format, st.sampled_from(sorted(EDITS)), st.sampled_from([":", "@", ";", "="]), st.text(max_size=9)
    ),
)


@examples(150)
@given(st.dictionaries(st.sampled_from(sorted(one.name for one in parameters(State))), VALUES, max_size=6))
def test_any_address_is_read_as_a_state_with_notices_in_words(address: dict[str, str]) -> None:
    state, notices = read_address(address)
    assert isinstance(state, State)
    assert all(isinstance(one, str) and one for one in notices)
    # What was made of it stands in its own address, and is read as the same one, but for texts that no link carries.
    written = write_address(state)
    again = write_address(read_address(written)[0])
    left_out = {name for name in ("text", "second", "target") if not fits_link(getattr(state, name))}
    assert {name: value for name, value in again.items() if name not in left_out} == written


@examples(100)
@given(st.lists(st.one_of(VALUES, st.sampled_from([one.example for one in EDITS.values()])), max_size=3).map(";".join))
def test_any_changes_are_read_and_run_or_are_refused_in_words(text: str) -> None:
    changes, notices = read_changes(text)
    assert all(isinstance(one, str) and one for one in notices)
    assert read_changes(write_changes(changes))[0] == changes
    before = Scratch(heads=2).trace("the bank of the river")
    with contextlib.suppress(av.AttentionVizError):
        edits = [edit for change in changes if not misfit(change, before) for edit in to_edits(change, before)]
        after = Scratch(heads=2).trace("the bank of the river", edits=edits)
        assert after.provenance.edits == tuple(str(edit) for edit in edits)
        assert torch.isfinite(after.output).all()


_WORDS = ["and", "or", "not", "(", ")", "==", "!=", "<", "<=", "+", "-", "in", ",", "'a'", '"it"', "3", "key", "."]
_ASKED = [f"{who}.{name}" for who in ("query", "key.previous") for name in ATTRIBUTES]
_SIGNS = st.sampled_from([*_WORDS, "9" * 400, "9" * 5000]) | st.sampled_from(_ASKED)
_TOKENS = Tokens(("The", "cat", "saw", "it", "."), (0, 1, 2, 3, 4), words=(0, 1, 2, 3, 4), spelling=("text",) * 5)


@examples(300)
@given(
    st.one_of(
        st.lists(_SIGNS, max_size=9).map(" ".join),
        st.text(max_size=40),
        st.integers(1, 3000).map("(".__mul__),
        st.integers(1, 3000).map(lambda count: "query.position" + " + 1" * count + " == 3"),
    )
)
def test_any_story_is_read_as_cells_or_is_refused_with_its_place(said: str) -> None:
    axis = HypothesisAxis(_TOKENS, looks_back=False)
    with contextlib.suppress(av.AttentionVizError):
        found = read_hypothesis(said).holds(axis, axis)
        assert found.shape == (5, 5)
        assert found.dtype == numpy.bool_


@examples(60)
@given(
    st.text(max_size=60)
    | st.text(st.sampled_from("the bank of river [CLS] \x00\ud800\u200d\u0301é漢😀 \n"), max_size=40)
)
def test_any_text_is_traced_exactly_or_refused_in_words(text: str) -> None:
    for trace in (av.scratch, shipped("lists").trace):
        with contextlib.suppress(av.AttentionVizError):
            found = trace(text)
            assert found.fidelity.ok
            assert found.weights(0, 0).sum(-1).allclose(torch.ones(len(found.query_tokens())), atol=1e-5)


@examples(60)
@given(
    st.lists(st.integers(0, 12) | st.integers(-(2**63), 2**63 - 1), max_size=6),
    st.sampled_from([(1, -1), (-1,), (2, -1), (1, 1, -1)]),
    st.sampled_from([torch.long, torch.int32, torch.float32, torch.bool]),
    st.sampled_from([None, "ones", "some", "wrong"]),
)
def test_any_ids_are_traced_exactly_or_refused_in_words(
    ids: list[int], shape: tuple[int, ...], dtype: torch.dtype, padding: str | None
) -> None:
    made = torch.tensor(ids, dtype=torch.long).to(dtype)
    made = made.reshape(shape) if made.numel() and made.numel() % 2 == 0 else made[None]
    mask: Any = None if padding is None else torch.ones(made.shape, dtype=torch.long)
    if padding == "some" and mask.numel():
        mask[..., -1:] = 0
    if padding == "wrong":
        mask = torch.full((1, 3), 7)
    with contextlib.suppress(av.AttentionVizError):
        found = shipped("lists").trace_ids(made, mask)
        assert found.fidelity.ok
