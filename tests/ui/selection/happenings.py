"""What can happen to a session, as Hypothesis draws it, and what a page does before it draws anything."""

from dataclasses import dataclass

import pytest
import streamlit
from hypothesis import strategies as st

from attention_viz.analysis.readings import READINGS
from attention_viz.protocol.facts import ModelFacts
from attention_viz.serving.settings import SETTINGS
from attention_viz.sources import CATALOGUE
from attention_viz.trace.kind import InputKind
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls.wording import settle_stream
from attention_viz.ui.selection import SHARED, Selection, answer

__all__ = [
    "BOXES",
    "EXAMPLE",
    "MINE",
    "SEEN",
    "SHAPES",
    "Best",
    "addresses",
    "heads",
    "models",
    "positions",
    "settled",
    "streams",
    "texts",
]

# A model that the catalogue doesn't have: it is loaded, turns out to have other layers, and goes again.
MINE = "mine"
SHAPES = [
    ModelFacts({"encoder": (2,)}),
    ModelFacts({"decoder": (3, 1, 5)}, numbers={"decoder": (1, 3, 4)}),
    ModelFacts({"encoder": (4, 4), "decoder": (4,), "cross": (4,)}),
    ModelFacts({"picture": (2, 2)}, reads=InputKind.PICTURE),
    ModelFacts({"encoder": (2,), "decoder": (2, 2), "cross": (2, 2)}, reads=InputKind.SOUND),
]
BOXES = ("text", "second", "target")
# Names of what is looked at, which a link has to reproduce.
SEEN = ("model", "layer", "head", "query", "key", "reading")
EXAMPLE = State(model="translation", text="the boy finds the key", layer=0, head=1, stream="cross")

models = st.sampled_from([*CATALOGUE, MINE])
texts = st.one_of(
    st.text("ab .\n", max_size=9), st.just("long " * SETTINGS.longest_link), st.sampled_from(["A file.", "Typed."])
)
positions = st.none() | st.integers(0, 9)
streams = st.sampled_from(["encoder", "decoder", "cross", "picture", "sound"])
numbers = st.integers(-1, 40).map(str) | st.sampled_from(["", "x", "１"])
addresses = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from([*CATALOGUE, "<b>", ""]),
        "text": texts,
        "second": texts,
        "layer": numbers,
        "head": numbers,
        "stream": streams | st.just("third"),
        "query": numbers,
        "key": numbers,
        "reading": st.sampled_from([*READINGS, "aloud"]),
        "heads": numbers,
        "other": st.just("1"),
    },
)


@dataclass(frozen=True)
class Best:
    """The head that a run's best finding is about."""

    layer: int
    head: int
    stream: str


def settled(selection: Selection, only: str | None = None) -> Selection:
    """Return the selection as a page brings it within what the model has, before it draws anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamlit, "session_state", {})
        visit.here().selection = selection
        settle_stream(visit.shared(), only)
        return answer(visit.here().selection, SHARED)


def heads(state: State, stream: str | None) -> list[tuple[int, int]]:
    """Return the layer and the number of each head of a stream; a few if nobody has loaded the model."""
    facts = state.facts
    return [
        (layer, head)
        for layer in list(facts.layer_numbers(stream))[:40]
        for head in range(min(state.heads if state.own else facts.head_count(stream, layer), 12))
    ]
