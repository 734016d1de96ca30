"""Head ablation and its effect on the output."""

import html
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import streamlit as st
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.signed import has_channels
from attention_viz.edits.change import Change
from attention_viz.edits.changes import to_edits
from attention_viz.edits.effects import moved_output
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run, ask, run_request
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, HeadsChoice
from attention_viz.ui.pages.heads.numbers import Head, changed_head, heads_of, known_effects, offer_all
from attention_viz.ui.pages.heads.search import Atlas
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.parts.predictions import likelier_at, predicted, title_of
from attention_viz.views.style.wording import shortened

_ZERO = Change("zero")
# Rows shown: of words, and of sentences, which are longer.
_WORDS, _SENTENCES = 4, 3
_NEAREST = "The nearest sentence"
# Smaller changes count as none.
_SAME = 0.0005
# On varied topics, some close to the app's own examples.
SENTENCES = (
    "Heavy rain made the water rise over the fields.",
    "She opened a savings account in the city.",
    "The kitten slept since it had played all day.",
    "The trophy was too large for the bag.",
    "He poured himself a glass of cold water.",
    "Paris is a town that many people visit.",
    "The children walked home from school.",
    "A mechanic repaired the engine of the car.",
    "Bread and butter stood on the table.",
    "The orchestra played until midnight.",
    "Careful, the path by the cliff is slippery.",
    "Two friends met in a small shop.",
)

# Models whose sentence vectors are cached.
_MOST = 4
_read = dict[object, Float[Tensor, "sentence width"]]()
_reading = threading.Lock()


@dataclass(frozen=True)
class _Said:
    sentence: str
    rows: Sequence[tuple[str, float, float]]
    note: str


@dataclass
class _Arrival:
    """Whether a link asked for the ablation: phones then show it first."""

    silent: bool = False


def arrive_silent() -> None:
    """Remember that a link asked for the ablation."""
    visit.memory(_Arrival).silent = True


def _switch(*, silent: bool) -> None:
    visit.memory(_Arrival).silent = False
    visit.pick(HEADS_CHOICES, silence="on" if silent else "off")


def _label(run: Run, state: State, *, silent: bool) -> str:
    """Name the ablated part: a head, or all of a layer with a matrix per channel."""
    stream = run.stream(state.stream)
    layer, _ = run.place(stream, state.layer, state.head)
    if has_channels(run.trace, stream, layer):
        return "Restore layer’s mixer" if silent else "Ablate layer’s mixer"
    return "Restore head" if silent else "Ablate head"


def show_silence(run: Run, state: State, choice: HeadsChoice) -> None:
    """Draw the ablation button and its effect."""
    if run.fit is None:
        st.caption("A trace from a file can't be run again. Close it to ablate a head.")
        return
    silent = choice.silence == "on"
    with st.container(key="heads-silence", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                _label(run, state, silent=silent),
                type="secondary" if silent else "primary",
                on_click=_switch,
                kwargs={"silent": not silent},
            )
            st.caption("Its output is 0 everywhere." if silent else "Sets its output to 0 everywhere.", width="content")
        try:
            first = silent and visit.memory(_Arrival).silent
            with st.container(key="heads-silent-first" if first else "heads-silent", gap="small"):
                _show_said(run, replace(state, more=0), silent=silent)
        except AttentionVizError as error:
            st.info(as_sentence(str(error)))


def silenced_effects(run: Run, state: State, atlas: Atlas) -> list[float | None]:
    """Return output changes in head order, None if untested; offer to test those."""
    heads = {stream: heads_of(run, stream) for stream in atlas.parts}
    found = dict[str, Mapping[Head, float]]()
    if run.fit is None:
        st.caption("A trace from a file can't be run again. Close it to ablate heads.")
        return [None] * sum(map(len, heads.values()))
    try:
        before = run_request(replace(state, more=0).request)
        offer_all(before, state, _ZERO, heads, f"Ablate all {sum(map(len, heads.values()))}", "heads-every")
        found = {stream: known_effects(before, _ZERO, stream) for stream in heads}
    except AttentionVizError as error:
        st.info(as_sentence(str(error)))
    ordered = [(stream, head) for stream, layer in atlas.rows for head in heads[stream] if head[0] == layer]
    return [found.get(stream, {}).get(head) for stream, head in ordered]


def _show_said(run: Run, state: State, *, silent: bool) -> None:
    before = run_request(state.request)
    after = before
    if silent:
        stream = before.stream(state.stream)
        change = changed_head(_ZERO, before, stream, before.place(stream, state.layer, state.head))
        after = run_request(state.request, edits=to_edits(change, before.trace))
    said = _said(before, after, state, silent=silent)
    if said.sentence:
        st.markdown(plain(said.sentence))
    if said.rows:
        st.html(_bars(said.rows, silent=silent))
    if said.note:
        st.caption(plain(said.note))


def _said(before: Run, after: Run, state: State, *, silent: bool) -> _Said:
    """Return the next word, the nearest sentence, or else the output's change."""
    moved = float(moved_output(before.trace, after.trace).mean())
    among = before.trace.query_tokens(before.stream(state.stream)).unit.tokens
    far = f"The output moves by {moved:.2%} of its length, on average over the {among}."
    if places := predicted(before, after, state):
        return _next_word(before, after, state, places[0], far if silent else "")
    if _compares(before, state):
        return _nearest(before, after, state, far) if silent else _Said("", (), _offer())
    return _Said(far if silent else "", (), "")


def _offer() -> str:
    return f"Ablate the head to see which of {len(SENTENCES)} example sentences is then nearest to yours."


def _next_word(before: Run, after: Run, state: State, place: int, far: str) -> _Said:
    rows = likelier_at(before, after, state, place)
    what = "The next word" if state.facts.continues_text else title_of(before.trace, place)
    return _Said(_became(what, rows, silent=bool(far)), _shown(rows, _WORDS), far)


def _nearest(before: Run, after: Run, state: State, far: str) -> _Said:
    old, new = _nearness(before, after, state)
    rows = sorted(zip(SENTENCES, old, new, strict=True), key=lambda row: -row[1])
    note = (
        f"Cosine similarity of mean last-layer vectors. The unchanged model reads the {len(SENTENCES)} example "
        f"sentences. {far}"
    )
    return _Said(_became(_NEAREST, rows, silent=True), _shown(rows, _SENTENCES), note)


def _became(what: str, rows: Sequence[tuple[str, float, float]], *, silent: bool) -> str:
    """Describe the change in rows of the earlier order."""
    was, now = rows[0], max(rows, key=lambda row: row[2])
    if not silent:
        return f"{what}: {_quoted(was[0])}, {_part(was[1])}."
    if now[0] != was[0]:
        return f"{what} becomes {_quoted(now[0])}, no longer {_quoted(was[0])}."
    change = was[2] - was[1]
    how = "as before" if abs(change) < _SAME else ("a little " if abs(change) < 0.05 else "") + _more(what, change)
    return f"{what} stays {_quoted(was[0])}, {how}: {_part(was[1])} → {_part(was[2])}."


def _more(what: str, change: float) -> str:
    if what == _NEAREST:
        return "nearer" if change > 0 else "farther"
    return "more likely" if change > 0 else "less likely"


def _part(number: float) -> str:
    return "<0.001" if 0 < number < _SAME else f"{number:.3f}"


def _quoted(label: str) -> str:
    return f"“{shortened(label.strip('· ') or label, 60)}”"


def _shown(rows: Sequence[tuple[str, float, float]], count: int) -> list[tuple[str, float, float]]:
    now = max(rows, key=lambda row: row[2])
    first = list(rows[:count])
    return first if now in first else [*first[: count - 1], now]


def _bars(rows: Sequence[tuple[str, float, float]], *, silent: bool) -> str:
    """Draw two bars per row, scaled to the largest number."""
    most = max(1e-9, *(max(old, new) for _, old, new in rows))

    def bar(kind: str, number: float) -> str:
        shape = f'<rect width="{max(0.0, number / most):.4f}" height="1"></rect>'
        return (
            f'<svg class="heads-{kind}" viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">{shape}</svg>'
        )

    lines = "".join(
        f'<tr><th scope="row" title="{html.escape(label)}">{html.escape(shortened(label, 60))}</th>'
        f"<td>{bar('before', old)}{bar('after', new) if silent else ''}</td>"
        f'<td class="heads-number">{html.escape(_part(old) + (f" → {_part(new)}" if silent else ""))}</td></tr>'
        for label, old, new in rows
    )
    phrase = "Before and after the ablation" if silent else "Likeliest words"
    return f'<table class="heads-bars" data-testid="silenced" aria-label="{phrase}">{lines}</table>'


def _compares(run: Run, state: State) -> bool:
    """Return whether the model is a trained encoder without predictions."""
    encodes = state.facts.streams == ("encoder",) and not state.facts.predicts and not state.own
    return encodes and run.trace.provenance.text is not None


def _nearness(before: Run, after: Run, state: State) -> tuple[list[float], list[float]]:
    """Return cosines with `SENTENCES`, before and after; the unchanged model reads these."""
    sentences = _sentences(before, state)
    found = [torch.cosine_similarity(_mean(one.trace)[None], sentences).tolist() for one in (before, after)]
    return found[0], found[1]


def _sentences(run: Run, state: State) -> Float[Tensor, "sentence width"]:
    origin = run.trace.provenance
    of = (origin.model, origin.sha256, origin.dtype)
    with _reading:
        known = _read.get(of)
    if known is not None:
        return known
    made = torch.stack(ask(state.request, lambda model: [_mean(model.trace(one)) for one in SENTENCES]))
    with _reading:
        while len(_read) >= _MOST:
            del _read[next(iter(_read))]
        _read[of] = made
    return made


def _mean(trace: Trace) -> Float[Tensor, " width"]:
    """Average over tokens, without padding."""
    real = ~torch.tensor(trace.query_tokens().padding)
    return trace.output.detach().double().cpu()[real].mean(dim=0)
