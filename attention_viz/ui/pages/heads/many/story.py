"""A testable story about heads: its box, examples and result."""

from pathlib import Path

import streamlit as st

from attention_viz.corpus.tables import records_of
from attention_viz.errors import AttentionVizError, HypothesisError
from attention_viz.serving.scans import known, test_story
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, LONGEST_STORY, HeadsChoice
from attention_viz.ui.parts.markdown import as_sentence, plain

__all__ = ["STORIES", "show_story"]

# What a story can look like: each by a name, as it is typed.
STORIES = {
    "the word before": "key.position == query.position - 1",
    "induction": "query.text == key.previous.text and key.position < query.position",
    "same word": "query.text == key.text and key.position < query.position",
    "pronoun to noun": "query.is_pronoun and key.is_noun and key.position < query.position",
    "to “and” and “or”": 'key.text in ("and", "or")',
}
_TOLD = 5


def show_story(state: State, choice: HeadsChoice, path: Path, stream: str) -> None:
    """Draw the story's box and test result."""
    widgets.show(
        st.text_input,
        "Your guess: at which keys does a head look?",
        of=HEADS_CHOICES,
        name="story",
        placeholder=STORIES["induction"],
        max_chars=LONGEST_STORY,
        help="A pattern over `query` and `key`: `text`, `word`, `position`, `length`, `is_pronoun`, `is_noun`, "
        "`is_punctuation` and the like, `previous` and `next`, compared and joined by and, or, not.",
    )
    with st.container(horizontal=True, gap="small", key="heads-stories"):
        for name, story in STORIES.items():
            st.button(name, key=f"heads-story-{name}", type="tertiary", on_click=_take, args=(story,))
    story = visit.chosen(HEADS_CHOICES).story.strip()
    asked = st.button("Put it to the test", key="heads-test", disabled=not story)
    if story:
        _show_tested(state, path, stream, story, asked=asked)


def _take(story: str) -> None:
    visit.pick(HEADS_CHOICES, story=story)


def _show_tested(state: State, path: Path, stream: str, story: str, *, asked: bool) -> None:
    from attention_viz.corpus.hypotheses.language import read_hypothesis

    try:
        _ = read_hypothesis(story)
        found = known(path, stream, story)
        if found is None and asked:
            bar = st.empty()
            found = test_story(
                state.request, path, stream, story, lambda done, of: bar.progress(done / of, f"{done} of {of} texts")
            )
            bar.empty()
    except HypothesisError as error:
        st.code(str(error), language=None, wrap_lines=True)
        return
    except AttentionVizError as error:
        st.info(as_sentence(str(error)))
        return
    if found is None:
        return
    st.markdown(f"**{plain(found.verdict)}.**")
    best = records_of(found.table.head(_TOLD).reset_index())
    columns = {"average precision": "average_precision", "precision": "precision", "recall": "recall"}
    shown = [
        {"head": f"{row['layer']}·{row['head']}", **{name: round(row[of], 2) for name, of in columns.items()}}
        for row in best
    ]
    # Whole numbers, too, so that they stand below each other.
    written = dict.fromkeys(columns, st.column_config.NumberColumn(format="%.2f"))
    st.dataframe(shown, hide_index=True, width="stretch", column_config=written)
    first, second = found.texts
    st.caption(f"Heads are ranked on {first} texts; these numbers are from {second} others.")
