"""The number without each head: the largest at once, all on request."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from attention_viz.circuits.asked import Logit, Score
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run
from attention_viz.serving.why import Head, known_silenced, without_heads
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.why.board import tell_silenced
from attention_viz.ui.pages.why.choice import RANKED, WHY_CHOICES
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.runner.page import Slots

__all__ = ["Silenced", "pick_ranked", "runs_at_once", "silence_all", "silence_largest"]

# So many tokens, those of all runs together, are run without a press of their own.
_AT_ONCE = 8_000


@dataclass(frozen=True)
class Silenced:
    """A number with silenced heads.

    Attributes:
        place: the shown layer and head.
    """

    run: Run
    state: State
    of: Score | Logit
    name: str
    place: Head

    @property
    def stream(self) -> str | None:
        """Return the heads' stream."""
        stream = self.run.stream(self.state.stream)
        return stream if len(self.run.trace.streams) > 1 else None

    @property
    def heads(self) -> list[Head]:
        """Return heads that affect the number: a score's from earlier layers."""
        trace, stream = self.run.trace, self.run.stream(self.state.stream)
        layers = trace.layer_numbers(stream)
        if isinstance(self.of, Score):
            layers = layers[: layers.index(self.of.layer)]
        return [(layer, head) for layer in layers for head in range(trace.head_count(layer, stream))]


def silence_largest(one: Silenced, largest: Sequence[Head]) -> None:
    """Send the number without each of the largest or earlier silenced heads."""
    request = one.state.request
    found = without_heads(one.run, request, one.of, largest, one.stream)
    tell_silenced(one.name, one.place, {**known_silenced(request, one.of, one.heads, one.stream), **found}, "largest")


def pick_ranked() -> None:
    """Draw the picker of the heads' colour and order."""
    pickers.switch("Heads by", RANKED, WHY_CHOICES, "ranked")


def runs_at_once(one: Silenced, count: int) -> bool:
    """Return whether the runs are few enough to skip a press."""
    return count * len(one.run.trace.query_tokens(one.run.stream(one.state.stream))) <= _AT_ONCE


def silence_all(one: Silenced, slots: Slots) -> None:
    """Silence each head in turn if that orders them."""
    heads, request = one.heads, one.state.request
    if visit.chosen(WHY_CHOICES).ranked != "silenced":
        return
    if len(known_silenced(request, one.of, heads, one.stream)) == len(heads):
        return
    at_once = isinstance(one.of, Logit) and runs_at_once(one, len(heads))
    with slots["running"].container(horizontal=True, vertical_alignment="center", gap="small"):
        if not at_once and not st.button(f"Silence all {len(heads)}", key="why-silence-all"):
            return
        # A press anywhere ends the run; what was done by then is kept.
        st.button("Stop", key="why-silence-stop", on_click=visit.pick, args=(WHY_CHOICES,), kwargs={"ranked": "wrote"})
        slot = st.empty()

    def report(done: int) -> None:
        slot.caption(f"{done} of {len(heads)} heads silenced")

    try:
        after = without_heads(one.run, request, one.of, heads, one.stream, report)
    except AttentionVizError as error:
        slots["running"].caption(plain(as_sentence(str(error))))
        return
    slots["running"].empty()
    with slots["board"]:
        tell_silenced(one.name, one.place, after, "all")
