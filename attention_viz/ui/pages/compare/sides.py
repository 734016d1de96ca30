"""The Compare page's two runs and their common axes."""

import contextlib
from dataclasses import dataclass, replace

from streamlit.delta_generator import DeltaGenerator

from attention_viz.analysis.comparison.compare import Comparison, compare
from attention_viz.analysis.signed import has_channels
from attention_viz.edits.edit import Edit
from attention_viz.errors import AttentionVizError
from attention_viz.serving.models import refresh
from attention_viz.serving.runs import Run, is_loaded, run_request
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.controls import reading as readings
from attention_viz.ui.controls.edits import made
from attention_viz.ui.controls.edits_choice import current_edits
from attention_viz.ui.controls.wording import read_otherwise
from attention_viz.ui.pages.compare.choice import CompareChoice, sides
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import hold, show_cut, show_notes, show_problem, without_words
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.readings import read
from attention_viz.ui.parts.unread import unknown_words
from attention_viz.views.style.captions import layer_name


@dataclass(frozen=True, eq=False)
class ShownSide:
    """One side: its run, as recorded and as read; of layers with a matrix per channel, all channels together."""

    state: State
    run: Run
    shown: Run

    @property
    def stream(self) -> str:
        """Return the shown stream."""
        return self.run.stream(self.state.stream)

    @property
    def place(self) -> tuple[int, int]:
        """Return the shown layer and head."""
        if self.stream not in self.shown.trace.mixers:
            return self.state.layer, readings.head(self.state)
        return self.shown.place(self.stream, self.state.layer, readings.head(self.state))

    @property
    def where(self) -> str:
        """Name the layer and head if the layer has no softmax; empty for others."""
        if self.stream not in self.shown.trace.mixers:
            return ""
        layer, head = self.place
        together = has_channels(self.shown.trace, self.stream, layer)
        name = layer_name(self.shown.trace, layer, self.stream)
        return f"{name[0].lower()}{name[1:]}, {'all channels' if together else f'head {head}'}"

    @property
    def from_file(self) -> bool:
        """Return whether a file was opened instead of a run."""
        return self.run.fit is None


def run_first(choice: CompareChoice, state: State, place: DeltaGenerator, height: int) -> ShownSide | None:
    """Return the first side; None after a shown problem."""
    first, _ = sides(choice, state)
    if (open_trace := opening.opened()) is not None:
        return _read(state, open_trace, place)
    side = _run(first, place, height, ())
    if side is not None:
        place.empty()
    return side


def run_second(
    choice: CompareChoice, state: State, first: ShownSide | None, place: DeltaGenerator, height: int
) -> ShownSide | None:
    """Return the second side; None after a problem, or if it is the first run changed.

    The slot keeps its progress until both sides are shown.
    """
    _, second = sides(choice, state)
    if choice.what == "heads":
        # The same run, whether from a file or made here.
        return None if first is None else ShownSide(second, first.run, first.shown)
    if choice.what != "edit":
        return _run(second, place, height, ())
    if first is None:
        place.empty()
        return None
    if first.from_file:
        place.info("A trace from a file can't be run again. Close it to compare with a change.")
        return None
    try:
        edits = made(current_edits(), first.run, state)
    except AttentionVizError as error:
        show_problem(error, place)
        return None
    return _run(second, place, height, edits)


def _run(state: State, place: DeltaGenerator, height: int, edits: tuple[Edit, ...]) -> ShownSide | None:
    refresh(state.model)
    # The old figure stays on the screen, paler, until the new one is ready.
    if not is_loaded(state.model):
        hold(state, place, height)
    try:
        run = run_request(state.request, edits=edits)
    except AttentionVizError as error:
        show_problem(error, place, state)
        return None
    return _read(state, run, place)


def _read(state: State, run: Run, place: DeltaGenerator) -> ShownSide | None:
    try:
        shown = read(run, state)
        trace = shown.drawn
        return ShownSide(state, run, shown if trace is shown.trace else Run(trace, shown.fit, shown.second))
    except AttentionVizError as error:
        show_problem(error, place)
        return None


def show_both(choice: CompareChoice, chosen: State, first: ShownSide | None, second: ShownSide | None) -> None:
    """Show both runs' notes."""
    if first is not None:
        show_notes(first.run, first.state)
    if second is not None and choice.what in ("sentences", "models"):
        if second.run.fit is not None and second.run.fit.cut:
            show_cut(second.run.fit, second.state, "The second side’s text has")
        if unknown := unknown_words(second.run.trace):
            tell(f"On the second side: {unknown}", loud=True, short="Unknown words")
        of_first = [] if first is None else _remarks(first.run.trace)
        for words in _remarks(second.run.trace):
            if words not in of_first:
                tell(f"On the second side: {words[0].lower()}{words[1:]}")
    if chosen.more and chosen.facts.continues_text:
        tell("This page compares only the texts that you typed, without the tokens that the model added.")
    if chosen.second.strip() and chosen.facts.reads_pairs:
        tell("This page compares single sentences; it leaves out the one that is read together with the first.")


def _remarks(trace: Trace) -> list[str]:
    without = without_words(trace)
    return [*read_otherwise(trace), *trace.provenance.notes, *([without] if without else [])]


def compared(choice: CompareChoice, first: ShownSide, second: ShownSide) -> Comparison:
    """Align both heads, word by word if the models tokenize differently."""
    traces = _in_words(first, second) if choice.what == "models" else (first.shown.trace, second.shown.trace)
    (layer, head), (other_layer, other_head) = first.place, second.place
    return compare(
        *traces,
        layer,
        head,
        other_layer=other_layer,
        other_head=other_head,
        stream=first.stream,
        other_stream=second.stream,
        align=choice.align,
    )


def _in_words(first: ShownSide, second: ShownSide) -> tuple[Trace, Trace]:
    both = first, second
    cuts = [side.shown.trace.key_tokens(side.stream).pieces for side in both]
    if first.state.model != second.state.model and any(len(piece) > 1 for cut in cuts for piece in cut):
        # A reading without whole words leaves the subword tokens, marked on each side.
        with contextlib.suppress(AttentionVizError):
            one, other = (read(side.run, replace(side.state, words="on")).drawn for side in both)
            return one, other
    return first.shown.trace, second.shown.trace


def places_of_pair(comparison: Comparison, first: ShownSide) -> tuple[int, int] | None:
    """Return the chosen pair on the common axes, from the first text's positions."""
    found: list[int] = []
    for position, axis, (own, shown) in zip(
        (first.state.query, first.state.key),
        (comparison.queries, comparison.keys),
        _axes(comparison, first),
        strict=True,
    ):
        groups = _groups(own, shown)
        word = next((at for at, group in enumerate(groups) if position in group), None)
        if word is None or word not in axis.one:
            return None
        found.append(axis.place_of(word))
    return found[0], found[1]


def _in_first(comparison: Comparison, cell: tuple[int, int]) -> tuple[int, int] | None:
    """Return the cell in the first head; None if missing."""
    found: list[int] = []
    for place, axis in zip(cell, (comparison.queries, comparison.keys), strict=True):
        there = axis.partner(place) if axis.one[place] is None else place
        row = None if there is None else axis.one[there]
        if row is None:
            return None
        found.append(row)
    return found[0], found[1]


def pair_at(comparison: Comparison, first: ShownSide, cell: tuple[int, int]) -> tuple[int, int] | None:
    """Return a cell as first-text positions: a whole word's first token."""
    rows = _in_first(comparison, cell)
    if rows is None or not can_choose(comparison, first):
        return None
    query, key = (_groups(*axis)[row][0] for axis, row in zip(_axes(comparison, first), rows, strict=True))
    return query, key


def can_choose(comparison: Comparison, first: ShownSide) -> bool:
    """Return whether rows and columns map to the first text's tokens."""
    return all(_groups(own, shown) for own, shown in _axes(comparison, first))


def _axes(comparison: Comparison, first: ShownSide) -> tuple[tuple[Tokens, Tokens], tuple[Tokens, Tokens]]:
    stream, shown, own = comparison.one.stream, comparison.one.trace, first.run.trace
    return ((own.query_tokens(stream), shown.query_tokens(stream)), (own.key_tokens(stream), shown.key_tokens(stream)))


def _groups(own: Tokens, shown: Tokens) -> tuple[tuple[int, ...], ...]:
    """Return each row's token positions; empty if unknown."""
    if shown == own:
        return tuple((position,) for position in range(len(own)))
    return own.pieces if len(own.pieces) == len(shown) else ()
