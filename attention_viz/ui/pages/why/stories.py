"""Three stories to begin with: a number each that shows what the page is for, opened anew with the model at hand."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from attention_viz.models import CATALOGUE
from attention_viz.serving.runs import Drawn
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.model import show_model
from attention_viz.ui.pages.why.choice import WHY_CHOICES, WhyChoice
from attention_viz.ui.parts.selection import settle_selection

__all__ = ["STORIES", "offer_stories", "settle_story"]

# Kept until the story's text has run: its head and its pair.
_NEXT = "why-story"
# Kept for a visit: how many stories were taken.
_TAKEN = "why-stories-taken"


@dataclass(frozen=True)
class Story:
    """A number that is worth opening.

    Attributes:
        label: what the button says.
        model: which model.
        why: the page's own choice.
        place: layer, head, query and key of a score; empty for the next word.
    """

    label: str
    model: str
    why: WhyChoice
    place: tuple[int, int, int, int] | None = None

    @property
    def text(self) -> str:
        """The model's own example."""
        return CATALOGUE[self.model].examples[0]


STORIES = (
    Story("Why Mary and not John?", "SmolLM2-135M-Instruct", WhyChoice(why="word", token="Mary", against="John")),
    Story(
        "What if Mary gave the drink?",
        "SmolLM2-135M-Instruct",
        WhyChoice(
            why="word",
            token="Mary",
            against="John",
            ranked="put",
            put_from="When Mary and John went to the store, Mary gave a drink to",
        ),
    ),
    Story("How does a head find what came after?", "induction", WhyChoice(why="pair"), (1, 1, 6, 3)),
)


def offer_stories() -> None:
    """A menu with a button for each story whose model can be had here."""
    # A new key closes the menu once a story is taken.
    with st.popover("Stories", key=f"why-stories-{st.session_state.get(_TAKEN, 0)}"):
        for number, story in enumerate(STORIES):
            if CATALOGUE[story.model].available:
                st.button(story.label, key=f"why-story-{number}", on_click=_take, args=(story,), type="tertiary")
                st.caption(f"{story.model}: “{story.text}”")


def settle_story(drawn: Drawn, state: State) -> None:
    """As `settle_selection`; a story that was begun then has its own head and pair.

    Args:
        drawn: what ran.
        state: what the pickers say.
    """
    settle_selection(drawn, state, own_head=True)
    place: dict[str, Any] | None = st.session_state.pop(_NEXT, None)
    if place is not None:
        pickers.choose_next(**place)
        visit.run_again()


def _take(story: Story) -> None:
    if story.model != st.session_state["model"]:
        show_model(story.model)
    st.session_state["text"], st.session_state["chat"] = story.text, "off"
    st.session_state[_TAKEN] = st.session_state.get(_TAKEN, 0) + 1
    choice = story.why
    visit.pick(WHY_CHOICES, why=choice.why, token=choice.token, against=choice.against, side=choice.side)
    visit.pick(WHY_CHOICES, ranked=choice.ranked, put_from=choice.put_from)
    if story.place is not None:
        st.session_state[_NEXT] = dict(zip(("layer", "head", "query", "key"), story.place, strict=True))
