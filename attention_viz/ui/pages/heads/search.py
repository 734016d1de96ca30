"""The Heads page's search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas
import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from attention_viz.analysis.likeness import similarity
from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.search import DETECTORS, find_heads
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.atlas_payload import HeadTables, layers_in_order
from attention_viz.serving.runs import Run
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.opening import opening
from attention_viz.ui.pages.heads.board import cannot_draw, drawn_cells, show_board_controls
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, SEARCHES, HeadsChoice
from attention_viz.ui.pages.heads.numbers import made_once
from attention_viz.ui.pages.heads.words import detected_words, found_words, like_words, several_words
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.selection import SHARED, Filled, Selection, update
from attention_viz.views.style.scale import round_up

_LISTED = 12
_HEIGHT = 300


@dataclass(frozen=True, eq=False)
class Atlas:
    """The page's heads and numbers.

    Attributes:
        trace: with all streams; of layers with a matrix per channel, all channels together.
        stream: the chosen head's.
        parts: by stream, the metrics averaged over texts, and each head's main role; the first stream's tokens are all.
    """

    trace: Trace
    stream: str
    texts: tuple[str, ...]
    others: tuple[Trace, ...]
    parts: Mapping[str, HeadTables]

    @property
    def table(self) -> pandas.DataFrame:
        """The metrics of the chosen head's stream."""
        return self.parts[self.stream].table

    @property
    def jobs(self) -> pandas.DataFrame:
        """The roles of the chosen head's stream."""
        return self.parts[self.stream].roles

    @property
    def mixes(self) -> bool:
        """Whether the chosen head's layer has no softmax, so that its weights are signed."""
        return self.stream in self.trace.mixers

    @property
    def every_metric(self) -> set[str]:
        """The metrics that any of the layers has."""
        return {name for name in METRICS for part in self.parts.values() if name in part.table}

    def metric(self, name: str) -> str:
        """Return a metric if any of the layers has it, else the first that one has."""
        return name if name in self.every_metric else next(one for one in METRICS if one in self.every_metric)

    def own_metric(self, name: str) -> str:
        """Return a metric if the chosen head's stream has it, else the first that it has."""
        return name if name in self.table else next(one for one in METRICS if one in self.table)

    @property
    def rows(self) -> list[tuple[str, int]]:
        """The layers, by stream and number, in the model's order."""
        return layers_in_order(self.trace, tuple(self.parts))

    def place(self, state: State) -> tuple[int, int]:
        """Return the shown layer and head."""
        return Run(self.trace).place(self.stream, state.layer, state.head)


def show_search(atlas: Atlas, state: State, choice: HeadsChoice) -> None:
    """Show the search and its heads, best first; open if changed."""
    asked = bool(atlas.texts) or choice.search != "words" or choice.query_word not in ("", HeadsChoice.query_word)
    with opening("heads-finding", "Find heads by words, pattern or detector", asked):
        asking, found = st.columns([1, 1.6], gap="medium")
        with asking:
            _show_search(atlas, state, choice, found)
            if len(atlas.parts) > 1:
                st.caption(_searched_words(atlas))


def _searched_words(atlas: Atlas) -> str:
    if atlas.mixes:
        return "This searches layers without a softmax, by shares of size. Choose a softmax head to search the others."
    return "This searches softmax layers. Choose a head of another layer to search the others, by shares of size."


def _show_search(atlas: Atlas, state: State, choice: HeadsChoice, place: DeltaGenerator) -> None:
    pickers.switch("Search by", SEARCHES, HEADS_CHOICES, "search")
    ask = {"words": _ask_words, "pattern": _ask_pattern, "detector": _ask_detector}[choice.search]
    find = {"words": _by_words, "pattern": _by_pattern, "detector": _by_detector}[choice.search]
    ask(atlas, state)
    try:
        found = find(atlas, state, choice)
    except AttentionVizError as error:
        st.info(as_sentence(str(error)))
        return
    if found is not None:
        with place:
            _show_found(*found)


def follow_text(selection: Selection, text: str) -> Selection:
    """Fill the default word boxes; empty them if the text lacks those words."""
    choice, part = selection.of(HEADS_CHOICES), selection.part(HEADS_CHOICES)
    if choice.search != "words":
        return selection
    first, none = (HeadsChoice.query_word, HeadsChoice.key_word), ("", "")
    words = first if all(word in text.lower() for word in first) else none
    now = (choice.query_word, choice.key_word)
    emptied = part.chosen.isdisjoint(("query_word", "key_word"))  # by this page, not by a visitor
    if (now == first and words == none) or (now == none and words == first and emptied):
        return update(selection, Filled(HEADS_CHOICES, {"query_word": words[0], "key_word": words[1]}))
    return selection


def take_head(head: tuple[int, int], stream: str | None = None) -> None:
    """Choose a head for all pages; by default of the chosen stream."""
    values = {"layer": head[0], "head": head[1]} | ({} if stream is None else {"stream": stream})
    visit.pick(SHARED, **values)


def _ask_words(_atlas: Atlas, _state: State) -> None:
    words = (("query_word", "Query word"), ("key_word", "Key word"))
    for place, (name, label) in zip(st.columns(2, gap="small"), words, strict=True):
        hint = "a word"
        widgets.show(place.text_input, label, of=HEADS_CHOICES, name=name, placeholder=hint)


def _ask_pattern(atlas: Atlas, state: State) -> None:
    if not cannot_draw(atlas.trace, atlas.stream, state):
        show_board_controls(atlas.trace, atlas.stream, state.layer, state.head)


def _ask_detector(_atlas: Atlas, _state: State) -> None:
    widgets.show(
        st.selectbox,
        "Detector",
        of=HEADS_CHOICES,
        name="detector",
        options={name: one.label for name, one in DETECTORS.items()},
    )


def _by_words(atlas: Atlas, _state: State, choice: HeadsChoice) -> tuple[pandas.DataFrame, str, str] | None:
    if not choice.query_word.strip() or not choice.key_word.strip():
        st.caption("Type the query word and the key word that it attends to.")
        return None
    traces = (atlas.trace, *atlas.others)
    what = ("words", atlas.stream, atlas.texts, choice.query_word, choice.key_word)
    asked = traces if atlas.others else atlas.trace
    found = made_once(atlas.trace, what, lambda: find_heads(asked, choice.query_word, choice.key_word, atlas.stream))
    value = "share" if atlas.mixes else "weight"
    if atlas.others:
        return found.rename(columns={"mean_rank": "mean rank"}), value, several_words(found, len(traces))
    return found, value, found_words(atlas.trace, found, atlas.stream)


def _by_pattern(atlas: Atlas, state: State, choice: HeadsChoice) -> tuple[pandas.DataFrame, str, str] | None:
    if why := cannot_draw(atlas.trace, atlas.stream, state):
        st.info(plain(why))
        return None
    cells = drawn_cells(choice.pattern, len(atlas.trace.query_tokens(atlas.stream)))
    if not cells.any():
        st.caption("Mark cells on the matrix. The heads most similar to them come first.")
        return None
    found = made_once(atlas.trace, ("pattern", atlas.stream, choice.pattern), lambda: _alike(atlas, cells.tolist()))
    return found, "similarity", like_words(found, int(cells.any(axis=1).sum()))


def _alike(atlas: Atlas, cells: Sequence[Sequence[bool]]) -> pandas.DataFrame:
    alike = similarity(atlas.trace, torch.tensor(cells, dtype=torch.float32), atlas.stream)
    heads = atlas.table.index.to_frame(index=False)
    rows = {layer: row for row, layer in enumerate(atlas.trace.layer_numbers(atlas.stream))}
    values = [float(alike[rows[layer], head]) for layer, head in zip(heads["layer"], heads["head"], strict=True)]
    table = pandas.DataFrame({"layer": heads["layer"], "head": heads["head"], "similarity": values})
    return table.sort_values("similarity", ascending=False, kind="stable", ignore_index=True)


def _by_detector(atlas: Atlas, _state: State, choice: HeadsChoice) -> tuple[pandas.DataFrame, str, str] | None:
    detector = DETECTORS[choice.detector]
    unit = METRICS[detector.metric].unit
    if detector.metric not in atlas.table:
        st.caption(f"Layers without a softmax have no such pattern: {METRICS[detector.metric].mixers}.")
        return None
    numbers = pandas.DataFrame({unit: atlas.table[detector.metric].dropna()})
    if numbers.empty:
        st.caption(f"{detector.finds} No token of this text qualifies.")
        return None
    found = numbers.sort_values(unit, ascending=False, kind="stable").reset_index()
    return found, unit, detected_words(detector, found, len(atlas.texts) + 1)


def _show_found(found: pandas.DataFrame, value: str, words: str) -> None:
    shown = found.head(_LISTED)
    columns = ["layer", "head", value, *(["mean rank"] if "mean rank" in shown.columns else [])]
    heads = [(int(layer), int(head)) for layer, head in zip(shown["layer"], shown["head"], strict=True)]
    full = 1.0 if value in ("weight", "share", "similarity") else round_up(max(shown[value].tolist()))
    st.dataframe(
        shown[columns],
        hide_index=True,
        height=_HEIGHT,
        key="heads-found",
        on_select=lambda: take_row("heads-found", heads),
        selection_mode="single-row",
        column_config={
            "layer": st.column_config.NumberColumn(width=50),
            "head": st.column_config.NumberColumn(width=50),
            value: st.column_config.ProgressColumn(width=125, min_value=0, max_value=full, format="%.3f"),
            "mean rank": st.column_config.NumberColumn(width=70, format="%.1f"),
        },
    )
    st.caption(plain(f"{words} Tick a row to choose its head."))


def take_row(key: str, heads: Sequence[tuple[int, int]]) -> None:
    """Choose the ticked table row's head."""
    row = widgets.picked_row(key)
    if row is not None and row < len(heads):
        take_head(heads[row])
