"""Words that the model can't read, and a model that can."""

import functools
import html
from typing import TYPE_CHECKING

import streamlit as st

from attention_viz.edits.words import listed
from attention_viz.serving import permissions as allowed
from attention_viz.serving.runs import Run, unread
from attention_viz.sources.catalogue import of_text
from attention_viz.trace.slots import has_target, target_stream
from attention_viz.trace.spelling import UNKNOWN_WORDS, set_apart
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.selection import SHARED
from attention_viz.views.style.wording import one_line

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

_NAMED, _LONGEST = 3, 24


def unknown_words(trace: "Trace") -> str:
    """Count words unknown to the model; "" if none."""
    parts = {"sentence": trace.key_tokens(trace.streams[0])}
    if has_target(trace.attention_streams):
        target = trace.query_tokens(target_stream(trace.attention_streams))
        parts = {"sentence": trace.key_tokens("cross" if "cross" in trace.layers else "encoder"), "target": target}
    found = {
        where: [label for label in tokens.labels if label.lower() in UNKNOWN_WORDS] for where, tokens in parts.items()
    }
    unknown = [
        f"{len(labels)} {'word' if len(labels) == 1 else 'words'} of the {where}"
        for where, labels in found.items()
        if labels
    ]
    if not unknown:
        return ""
    (sign, *_) = [label for labels in found.values() for label in labels]
    return f"{trace.provenance.model} doesn't know {' and '.join(unknown)}, and reads “{sign}” (unknown) instead."


def counted(tokens: "Tokens") -> tuple[int, int]:
    """Return how many of the text's words are unknown, and how many it has."""
    own = set(tokens.counted) | {at for at, label in enumerate(tokens.labels) if label.lower() in UNKNOWN_WORDS}
    words = [piece for piece in tokens.pieces if own.issuperset(piece)]
    return sum(any(tokens.labels[at].lower() in UNKNOWN_WORDS for at in piece) for piece in words), len(words)


def reader(state: State) -> str | None:
    """Return an offered model that reads any text; None if there is none, or the page needs two texts."""
    if state.facts.is_encoder_decoder:
        return None
    found = (name for name, entry in of_text().items() if entry.reads_any and entry.available)
    return next((name for name in found if name != state.model), None)


def show_unread(run: Run, state: State, *, offers: bool = True) -> None:
    """Show first that most words are unknown, with a model that reads them if the page can take one; note a few."""
    if not (words := unknown_words(run.trace)):
        return
    unknown, count = counted(run.trace.key_tokens(run.trace.streams[0]))
    if 2 * unknown > count:
        with st.container(key="unread", horizontal=True, vertical_alignment="center"):
            known = f"{allowed.display_name(state.model)} can’t read this: {unknown} of {count} words unknown."
            st.html(f'<p class="unread" role="status">{html.escape(known)}</p>')
            if offers:
                _offer(state, "unread-first")
        return
    parts = list(dict.fromkeys(unread(state.request, run.trace.provenance.text or "")))
    named = [f"“{set_apart(one_line(part, _LONGEST))}”" for part in parts[:_NAMED] if part.strip()]
    more = [f"{len(parts) - _NAMED} more"] if len(parts) > _NAMED else []
    which = f" Unknown here: {listed([*named, *more])}." if named else ""
    below = functools.partial(_offer, state) if offers else None
    tell(f"{words}{which}", loud=True, short="Unknown words", below=below)


def _offer(state: State, key: str) -> None:
    if (name := reader(state)) is not None:
        st.button(f"Read it with {name}", key=f"reader-{key}", on_click=_read_with, args=(name,))


def _read_with(name: str) -> None:
    visit.pick(SHARED, model=name)
