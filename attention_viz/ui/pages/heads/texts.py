"""The Heads page's further texts, run and averaged."""

from dataclasses import dataclass, field, replace

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run, run_request
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.pages.heads.texts_box import MOST_TEXTS, split_texts
from attention_viz.ui.parts.markdown import plain

__all__ = ["MoreTexts", "run_texts", "show_texts"]

_LONGEST_NAME = 60


@dataclass(frozen=True)
class MoreTexts:
    """The further texts' traces, and notices of omissions and cuts."""

    texts: tuple[str, ...] = ()
    traces: tuple[Trace, ...] = ()
    notices: list[str] = field(default_factory=list[str])


def run_texts(run: Run, state: State, typed: str) -> MoreTexts:
    """Run uncached texts with progress; none beside a file's trace."""
    texts = split_texts(typed)
    if not texts:
        return MoreTexts()
    if run.fit is None:
        return MoreTexts(notices=["A trace from a file stands alone: close it to have more texts beside a sentence."])
    notices: list[str] = []
    if len(texts) > MOST_TEXTS:
        notices.append(f"Of the {len(texts)} other texts the first {MOST_TEXTS} are read: that is the most here.")
    place, found = st.empty(), list["tuple[str, Trace]"]()
    for done, text in enumerate(texts[:MOST_TEXTS]):
        place.progress(done / len(texts), f"Text {done + 1} of {min(len(texts), MOST_TEXTS)}")
        try:
            one = run_request(replace(state, text=text, second="", target="", more=0).request)
        except AttentionVizError as error:
            notices.append(f"The text “{_short(text)}” is left out: {error}.")
            continue
        if one.fit is not None and one.fit.cut:
            notices.append(f"The text “{_short(text)}” is cut after {one.fit.limit} tokens.")
        found.append((text, one.trace))
    place.empty()
    return MoreTexts(tuple(text for text, _ in found), tuple(trace for _, trace in found), notices)


def show_texts(more: MoreTexts) -> None:
    """Show the number of averaged texts, and omissions."""
    if more.texts:
        st.caption(
            f"Numbers are the mean over {len(more.texts) + 1} texts, with their spread (standard deviation) in the "
            "table and beside a head that is pointed at. Patterns and likeness are those of the sentence alone."
        )
    for one in more.notices:
        st.caption(plain(one))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
