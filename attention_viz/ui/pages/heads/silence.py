"""Head ablation and its effect on the output."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.signed import has_channels
from attention_viz.edits.change import Change
from attention_viz.edits.changes import to_edits
from attention_viz.edits.effects import moved_output, moved_weight
from attention_viz.errors import AttentionVizError
from attention_viz.explorer import effect_source
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.runs import Run, ask, run_request
from attention_viz.trace.spelling import set_apart, weight_text
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, HeadsChoice
from attention_viz.ui.pages.heads.headlines import tested_words
from attention_viz.ui.pages.heads.numbers import (
    Head,
    changed_head,
    effects_of,
    heads_of,
    known_effects,
    made_once,
    offer_all,
)
from attention_viz.ui.pages.heads.search import Atlas
from attention_viz.ui.pages.heads.words import named
from attention_viz.ui.parts.explorer import show_channel
from attention_viz.ui.parts.markdown import as_sentence
from attention_viz.ui.parts.predictions import likelier_at, predicted, title_of
from attention_viz.views.style.wording import share_text, shortened

_ZERO = Change("zero")
_KEY, _GRID = "heads-effect", "heads-grid"
# The button's words: before it is pressed, and then.
_OF_HEAD = ["Ablate head", "Restore head"]
_OF_LAYER = ["Ablate layer’s mixer", "Restore layer’s mixer"]
# Rows shown: of words, and of sentences, which are longer.
_WORDS, _SENTENCES = 4, 3
_UNCHANGED = "Headline, roles, patterns and metrics stay those of the whole model."
# Beyond so many tokens in all runs together, all heads are tested only on request.
MOST_TOKENS = 30_000
# Smaller changes count as none: two digits don't show them.
_SAME = 0.005
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

# What all models' sentence vectors may take together, in bytes.
_ROOM = 2_000_000
_read = SharedCache[tuple[str, str | None, str], Float[Tensor, "sentence width"]](_ROOM, lambda one: one.nbytes)

_effect = widgets.component("effect", *effect_source())


@dataclass(frozen=True)
class _Effect:
    """The output in words and bars, as it was and without the head."""

    was: str = ""
    sentence: str = ""
    title: str = ""
    rows: Sequence[tuple[str, float, float]] = ()
    note: str = ""
    changed: Sequence[float | None] | None = None

    def message(self) -> dict[str, Any]:
        """Return it for the browser, each number also as text."""
        rows = [[shortened(label, 90), old, new, weight_text(old), weight_text(new)] for label, old, new in self.rows]
        texts = {"was": self.was, "sentence": self.sentence, "title": self.title, "note": self.note}
        return {**texts, "rows": rows, "changed": self.changed}


@dataclass
class _Arrival:
    """Whether a link asked for the ablation: phones then show it first."""

    silent: bool = False


def arrive_silent() -> None:
    """Remember that a link asked for the ablation."""
    visit.memory(_Arrival).silent = True


def _take_switch() -> None:
    message = widgets.sent(_KEY, "choice")
    silent = isinstance(message, Mapping) and message.get("silent") is True
    visit.memory(_Arrival).silent = False
    visit.pick(HEADS_CHOICES, silence="on" if silent else "off")


def show_silence(atlas: Atlas, run: Run, state: State, choice: HeadsChoice) -> Callable[[], object]:
    """Draw the ablation button, and return what sends the effect once the page is drawn."""
    if run.fit is None:
        st.caption("A trace from a file can't be run again. Close it to ablate a head.")
        return lambda: None
    silent = choice.silence == "on"
    with st.container(key="heads-silence", gap="small"):
        first = silent and visit.memory(_Arrival).silent
        with st.container(key="heads-silent-first" if first else "heads-silent", gap="small"):
            shown = _shown_head(run, state)
            _effect(
                key=_KEY,
                data={**shown, "silent": silent, "seen": widgets.serial(_KEY), "heard": widgets.serial(_GRID)},
                height="content",
                on_choice_change=_take_switch,
            )
            place = st.empty()

    def send() -> None:
        try:
            effect = _effect_of(atlas, run, replace(state, more=0), name=shown["name"], silent=silent)
        except AttentionVizError as error:
            effect = _Effect(was=as_sentence(str(error)), sentence=as_sentence(str(error)))
        with place:
            message = {"about": "effect", "of": shown["of"], "silent": silent}
            show_channel(_KEY, **message, **effect.message())

    return send


def _shown_head(run: Run, state: State) -> dict[str, Any]:
    """Name the head, and the button; of a layer with a matrix per channel, the layer."""
    stream = run.stream(state.stream)
    layer, head = run.place(stream, state.layer, state.head)
    channels = has_channels(run.trace, stream, layer)
    return {
        "of": f"{stream} {layer} {head}",
        "name": f"layer {layer}’s mixer" if channels else f"{layer}·{head}",
        "buttons": _OF_LAYER if channels else _OF_HEAD,
        "rows": _SENTENCES if _compares(run, state) else _WORDS if state.facts.predicts else 0,
    }


def tested_headline(atlas: Atlas, run: Run, state: State) -> str:
    """Name the head whose ablation moves the output most; empty for a trace from a file."""
    if run.fit is None:
        return ""
    before = run_request(replace(state, more=0).request)
    known = {head: one for stream in atlas.parts for head, one in known_effects(before, _ZERO, stream).items()}
    return tested_words(known, sum(len(heads_of(run, stream)) for stream in atlas.parts))


def show_tested(atlas: Atlas, run: Run, state: State) -> Callable[[], object]:
    """Show every head's known effect, and return what tests the others once the page is drawn."""
    heads = {stream: heads_of(run, stream) for stream in atlas.parts}
    if run.fit is None:
        st.caption("A trace from a file can't be run again. Close it to ablate heads.")
        return lambda: None
    state, place, count = replace(state, more=0), st.empty(), sum(map(len, heads.values()))
    length = max(len(run.trace.query_tokens(stream)) for stream in heads)

    def tell(before: Run, name: str, done: int | None = None) -> None:
        known = {stream: known_effects(before, _ZERO, stream) for stream in heads}
        ordered = _in_order(atlas, {stream: lambda head, of=of: of.get(head) for stream, of in known.items()}, heads)
        with place:
            show_channel(_GRID, name if done is None else f"{name}-{done}", about="effects", effects=ordered)

    def test() -> None:
        try:
            before = run_request(state.request)
            for stream, some in heads.items():
                show = functools.partial(tell, before, f"effects-{stream}")
                _ = effects_of(before, state, _ZERO, stream, some, show)
            tell(before, "effects")
        except AttentionVizError as error:
            place.info(as_sentence(str(error)))

    if count * length <= MOST_TOKENS:
        return test
    st.caption(f"Ablating each head takes {count:,} runs of {length:,} tokens.")
    before = run_request(state.request)
    offer_all(before, state, _ZERO, heads, f"Ablate all {count:,} heads", "heads-tested")
    return functools.partial(tell, before, "effects")


def _in_order(
    atlas: Atlas, numbers: Mapping[str, Callable[[Head], float | None]], heads: Mapping[str, Sequence[Head]]
) -> list[float | None]:
    """Return a number per head, in the order of the atlas."""
    return [numbers[stream](head) for stream, layer in atlas.rows for head in heads[stream] if head[0] == layer]


def _effect_of(atlas: Atlas, run: Run, state: State, *, name: str, silent: bool) -> _Effect:
    before = run_request(state.request)
    if not silent:
        return _told(before, before, state, name, silent=False)
    stream = before.stream(state.stream)
    place = before.place(stream, state.layer, state.head)
    after = run_request(state.request, edits=to_edits(changed_head(_ZERO, before, stream, place), before.trace))
    effect, made = _told(before, after, state, name, silent=True), ("changed", name, tuple(atlas.parts))
    changed = made_once(run.drawn, made, lambda: _changed(atlas, before, after, (state.layer, state.head)))
    return replace(
        effect, changed=changed, note=" ".join(filter(None, (_changed_words(atlas, changed), effect.note, _UNCHANGED)))
    )


def _changed(atlas: Atlas, before: Run, after: Run, ablated: Head) -> list[float | None]:
    """Return the share of each other head's weights that moved, in the order of the atlas."""
    numbers = dict[str, Callable[[Head], float | None]]()
    for stream in atlas.parts:
        moved = moved_weight(before.drawn, after.drawn, stream)
        rows = {layer: row for row, layer in enumerate(before.drawn.layer_numbers(stream))}
        numbers[stream] = lambda head, moved=moved, rows=rows: float(moved[rows[head[0]], head[1]].nan_to_num(0))
    return [
        None if (stream, layer, head) == (atlas.stream, *ablated) else numbers[stream]((layer, head))
        for stream, layer in atlas.rows
        for head in range(atlas.trace.head_count(layer, stream))
    ]


def _changed_words(atlas: Atlas, changed: Sequence[float | None]) -> str:
    """Count the heads whose weights moved, and name the one that changed most."""
    names = [(layer, head) for stream, layer in atlas.rows for head in range(atlas.trace.head_count(layer, stream))]
    moved = [(share or 0.0, name) for share, name in zip(changed, names, strict=True) if (share or 0.0) >= _SAME]
    if not moved:
        return "No other head’s weights change."
    share, (layer, head) = max(moved)
    several = f"{len(moved)} other heads’ weights change" if len(moved) > 1 else "One other head’s weights change"
    return f"{several}: {layer}·{head} most, {weight_text(share)} of its weight moves."


def _told(before: Run, after: Run, state: State, name: str, *, silent: bool) -> _Effect:
    """Return the next word, the nearest sentence, or else the output's change."""
    if places := predicted(before, after, state):
        return _next_word(before, after, state, places[0], name)
    if _compares(before, state):
        offer = f"Ablate the head to see which of {len(SENTENCES)} example sentences is then nearest to yours."
        return _nearest(before, after, state, offer, name) if silent else _Effect(offer)
    offer = "Ablate the head to see how far the output moves: the head’s own output is then 0 everywhere."
    return _Effect(offer, _far(before, after, name) if silent else "")


def _far(before: Run, after: Run, name: str) -> str:
    """Describe how far the output moves, and which token's most."""
    moved = moved_output(before.trace, after.trace)
    tokens = before.trace.query_tokens(before.trace.streams[-1])
    places = list(tokens.counted) or list(range(len(moved)))
    most = max(places, key=lambda place: float(moved[place]))
    mean = f"Without {name}, the output moves by {share_text(float(moved.mean()))}"
    if not moved.any() or len(places) < 2:
        return f"{mean}."
    return f"{mean}; {named(tokens, most)} most, by {share_text(float(moved[most]))}."


def _next_word(before: Run, after: Run, state: State, place: int, name: str) -> _Effect:
    rows = likelier_at(before, after, state, place)
    was, most = rows[0], max(rows, key=lambda row: row[2])
    follows = state.facts.continues_text
    what = "The next word" if follows else title_of(before.trace, place)
    changes = [f"{_quoted(was[0])} {_moves(was)}"]
    rising = most if most != was else max(rows[1:], key=lambda row: (row[2] - row[1]) * (was[1] - was[2]), default=was)
    if rising != was and abs(rising[2] - rising[1]) >= _SAME:
        changes.append(f"{_quoted(rising[0])} {_moves(rising)}{' and is now likeliest' if most != was else ''}")
    begins = f"Without {name}, " if follows else f"{what}: without {name}, "
    moved = float(moved_output(before.trace, after.trace).mean())
    among = before.trace.query_tokens(before.stream(state.stream)).unit.tokens
    return _Effect(
        was=f"{what}: {_quoted(was[0])}, {weight_text(was[1])}.",
        sentence=f"{begins}{'; '.join(changes)}.",
        title="Probability of the next word" if follows else what,
        rows=_first(rows, _WORDS, rising),
        note=f"The output moves by {share_text(moved)} of its length, on average over the {among}.",
    )


def _moves(row: tuple[str, float, float]) -> str:
    _, old, new = row
    if weight_text(old) == weight_text(new):
        return f"stays at {weight_text(old)}"
    return f"{'rises' if new > old else 'falls'} from {weight_text(old)} to {weight_text(new)}"


def _nearest(before: Run, after: Run, state: State, offer: str, name: str) -> _Effect:
    old, new = _nearness(before, after, state)
    rows = sorted(zip(SENTENCES, old, new, strict=True), key=lambda row: -row[1])
    most = max(rows, key=lambda row: row[2])
    turns = "" if most == rows[0] else f" The nearest sentence is now {_quoted(most[0].rstrip('.'))}."
    return _Effect(
        was=offer,
        sentence=f"{_far(before, after, name)}{turns}",
        title=f"Nearest of {len(SENTENCES)} example sentences",
        rows=_first(rows, _SENTENCES, most),
        note="Cosine similarity of mean last-layer vectors. The unchanged model reads the example sentences.",
    )


def _quoted(label: str) -> str:
    return f"“{set_apart(shortened(label.strip('· ') or label, 60))}”"


def _first(
    rows: Sequence[tuple[str, float, float]], count: int, told: tuple[str, float, float]
) -> list[tuple[str, float, float]]:
    """Return the first rows, and the one in the sentence."""
    first = list(rows[:count])
    return first if told in first else [*first[: count - 1], told]


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
    return _read.get(
        of, lambda: torch.stack(ask(state.request, lambda model: [_mean(model.trace(one)) for one in SENTENCES]))
    )


def _mean(trace: Trace) -> Float[Tensor, " width"]:
    """Average over tokens, without padding."""
    real = ~torch.tensor(trace.query_tokens().padding)
    return trace.output.detach().double().cpu()[real].mean(dim=0)
