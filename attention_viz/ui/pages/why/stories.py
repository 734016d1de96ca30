"""Three opening examples, run anew with the available model."""

from dataclasses import dataclass

import streamlit as st

from attention_viz.sources import CATALOGUE
from attention_viz.ui import visit, widgets
from attention_viz.ui.pages.why.choice import WHY_CHOICES, WhyChoice
from attention_viz.ui.selection import SHARED

__all__ = ["STORIES", "offer_stories"]


@dataclass(frozen=True)
class Story:
    """A number worth opening; its place is empty for the next word."""

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
    """Draw a menu of stories whose models are available."""
    # A new key closes the menu once a story is taken.
    with st.popover("Stories", key=widgets.fresh("why-stories")):
        for number, story in enumerate(STORIES):
            if CATALOGUE[story.model].available:
                st.button(story.label, key=f"why-story-{number}", on_click=_take, args=(story,), type="tertiary")
                st.caption(f"{story.model}: “{story.text}”")


def _take(story: Story) -> None:
    widgets.renew("why-stories")
    choice = story.why
    visit.pick(WHY_CHOICES, why=choice.why, token=choice.token, against=choice.against, side=choice.side)
    visit.pick(WHY_CHOICES, ranked=choice.ranked, put_from=choice.put_from)
    visit.pick(SHARED, model=story.model, text=story.text, chat="off")
    if story.place is not None:
        layer, head, query, key = story.place
        # The head is the story's and nobody's choice: another text opens on a head of its own.
        visit.fill(SHARED, layer=layer, head=head)
        visit.pick(SHARED, query=query, key=key)
