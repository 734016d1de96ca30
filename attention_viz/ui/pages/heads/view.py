"""The Heads page's parts."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import streamlit as st

from attention_viz.analysis.head_table import COUNT, ERROR
from attention_viz.analysis.search import DETECTORS
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.atlas_payload import HeadTables
from attention_viz.serving.runs import Run, run_request
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.edits import begin_edits
from attention_viz.ui.controls.edits_choice import current_edits
from attention_viz.ui.controls.opening import opening
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, HeadsChoice
from attention_viz.ui.pages.heads.headlines import likeness_words, metric_headline, pattern_words, scatter_words
from attention_viz.ui.pages.heads.many import show_many
from attention_viz.ui.pages.heads.numbers import distances, mean_numbers, measure_all, roles_of, streams_together
from attention_viz.ui.pages.heads.one import export_one, show_one
from attention_viz.ui.pages.heads.page import MOST_TEXTS, remember, split_texts
from attention_viz.ui.pages.heads.search import Atlas, follow_text, show_search, take_row
from attention_viz.ui.pages.heads.silence import arrive_silent, tested_headline
from attention_viz.ui.pages.heads.views import export_view, hold_cards, opened_in_explore, show_view
from attention_viz.ui.pages.heads.what_if import show_what_if
from attention_viz.ui.pages.heads.words import claim_words, few_words, missing_words, safe_csv
from attention_viz.ui.parts.drawing import hold, show_notes
from attention_viz.ui.parts.exports import file_button, model_part, show_run_exports
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.presenting.host import present_roles
from attention_viz.ui.runner.loading import load_text, settle_text
from attention_viz.ui.runner.page import Part, Parts, Slots
from attention_viz.ui.selection import Filled, Selection, answer, update

_LONGEST_NAME = 60


@dataclass(frozen=True)
class MoreTexts:
    """The further texts' traces, and notices."""

    texts: tuple[str, ...] = ()
    traces: tuple[Trace, ...] = ()
    notices: list[str] = field(default_factory=list[str])


def _run_texts(run: Run, state: State, typed: str) -> MoreTexts:
    """Run uncached texts with progress; none beside a file's trace."""
    texts = split_texts(typed)
    if not texts:
        return MoreTexts()
    if run.fit is None:
        return MoreTexts(notices=["A trace from a file can't have more texts beside it. Close it to add some."])
    notices: list[str] = []
    if len(texts) > MOST_TEXTS:
        notices.append(f"Only the first {MOST_TEXTS} of {len(texts)} more texts count; that is the limit.")
    place, found = st.empty(), list["tuple[str, Trace]"]()
    for done, text in enumerate(texts[:MOST_TEXTS]):
        place.progress(done / len(texts), f"Text {done + 1} of {min(len(texts), MOST_TEXTS)}")
        try:
            one = run_request(replace(state, text=text, second="", target="", more=0).request)
        except AttentionVizError as error:
            notices.append(f"The text “{_short(text)}” is left out: {error}.")
            continue
        if one.fit is not None and one.fit.cut:
            notices.append(f"The text “{_short(text)}” is cut to {one.fit.limit} tokens.")
        found.append((text, one.drawn))
    place.empty()
    return MoreTexts(tuple(text for text, _ in found), tuple(trace for _, trace in found), notices)


def _show_texts(more: MoreTexts) -> None:
    if more.texts:
        st.caption(
            f"Numbers are means over {len(more.texts) + 1} texts. The table and each head's metrics show their spread "
            "(standard deviation). Patterns and similarity use the sentence alone."
        )
    for one in more.notices:
        st.caption(plain(one))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


@dataclass(frozen=True, eq=False)
class HeadsStudy:
    """A run, the other texts, all heads' numbers, and exports in page order."""

    run: Run
    more: MoreTexts
    atlas: Atlas
    exports: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])

    def state(self, shared: State) -> State:
        """Return the pickers' state with the head that is shown: of all channels together, there is one."""
        if not self.atlas.mixes:
            return shared
        layer, head = self.atlas.place(shared)
        return replace(shared, layer=layer, head=head, stream=self.atlas.stream)


def load(state: State, slots: Slots) -> Run | None:
    """Run the sentence; None after a problem."""
    if opened_in_explore():
        st.switch_page("app.py", query_params=pickers.address())
    begin_edits()
    if visit.pending(HEADS_CHOICES, "silence") == "on":
        arrive_silent()
    return load_text(state, slots)


def settle(selection: Selection, run: Run) -> Selection:
    """Select the run's best finding, and answer this page's choices."""
    selection = settle_text(selection, run)
    pending = selection.part(HEADS_CHOICES).pending
    # Older links that name only a metric mean the atlas in its colours.
    coloured = "metric" in pending and "view" not in pending
    selection = answer(selection, HEADS_CHOICES, DETECTORS)
    if coloured:
        selection = update(selection, Filled(HEADS_CHOICES, {"view": "colours"}))
    return follow_text(selection, run.trace.provenance.text or "")


def study(run: Run, selection: Selection, slots: Slots) -> HeadsStudy:
    """Run other texts and measure all heads."""
    state = selection.shared
    with slots["notes"]:
        more = _run_texts(run, state, selection.of(HEADS_CHOICES).texts)
    place = slots.picture.to_fill()
    if place is not None:
        hold(state, place, slots.height, "Measuring every head …")
    stream, traces = run.stream(state.stream), (run.drawn, *more.traces)
    parts = {
        one: HeadTables(mean_numbers(traces, one), roles_of(traces, one, more.texts))
        for one in streams_together(traces[0], stream)
    }
    if place is not None:
        place.empty()
    remember(state)
    return HeadsStudy(run, more, Atlas(traces[0], stream, more.texts, traces[1:], parts))


def view(study: HeadsStudy, selection: Selection) -> Parts:
    """Return the page's parts."""
    state, choice = study.state(selection.shared), selection.of(HEADS_CHOICES)
    return Parts(
        [
            Part("notes", functools.partial(show_notes, study.run, state)),
            Part("notes", functools.partial(_show_texts, study.more)),
            Part("picture", functools.partial(_show_parts, study, state, choice)),
        ],
        exports=functools.partial(_show_exports, study, state, choice),
        slides=functools.partial(present_roles, study.run, state, study.atlas.jobs),
        runs=[("", study.run)],
    )


def _show_parts(study: HeadsStudy, state: State, choice: HeadsChoice) -> Callable[[], object]:
    atlas, run = study.atlas, study.run
    headline = functools.partial(_headline, study, state, choice)
    with st.container(key="heads-claim"):
        # Only the effects of ablations come after the page is drawn.
        claim = st.empty() if choice.view == "silenced" else st.container()
        claim.markdown(headline())
    left, right = st.columns([2.1, 1], gap="medium")
    with left:
        test = show_view(atlas, run, state, choice)
    with right:
        finish = show_one(atlas, run, state, choice)
        if choice.view == "roles":
            hold_cards()
    # Drawing a pattern needs the matrix above in sight.
    show_search(atlas, state, choice)
    show_many(atlas, run, state, choice)
    with opening("heads-what-if", "What if the model were changed?", bool(current_edits())):
        show_what_if(run, state, study.exports)
    _show_numbers(atlas)

    def last() -> None:
        finish()
        test()
        if choice.view == "silenced":
            claim.markdown(headline())

    return last


def _headline(study: HeadsStudy, state: State, choice: HeadsChoice) -> str:
    """Return the view's headline; without numbers for one, the roles'."""
    atlas = study.atlas
    table, first, second = atlas.table, atlas.own_metric(choice.metric), atlas.own_metric(choice.beside)
    makers = {
        "patterns": lambda: pattern_words(table),
        "silenced": lambda: tested_headline(atlas, study.run, state),
        "colours": lambda: metric_headline(table, first),
        "scatter": lambda: scatter_words(table, first, second),
        "map": lambda: likeness_words(list(table.index), distances(atlas.trace, atlas.stream)),
    }
    words = makers[choice.view]() if choice.view in makers else ""
    return f"### {plain(words or claim_words(atlas.parts, atlas.trace))}"


def _show_exports(study: HeadsStudy, state: State, choice: HeadsChoice) -> None:
    with st.popover("Export", key="export"):
        file_button("Head table (CSV)", "heads", "csv", functools.partial(safe_csv, study.atlas.table), "heads")
        export_view(study.atlas, state, choice)
        export_one(study.atlas, study.run, state, choice)
        for show in study.exports:
            show()
        show_run_exports(lambda: study.run.trace, model_part(study.run.trace))


def _show_numbers(atlas: Atlas) -> None:
    with st.expander("All metrics", key="heads-numbers"):
        _show_table(atlas)


def _show_table(atlas: Atlas) -> None:
    measured = atlas.table.dropna(axis="columns", how="all")
    counts = [name for name in measured if str(name).endswith(COUNT)]
    numbers = measured.drop(columns=counts).round(4).reset_index()
    heads = [(int(layer), int(head)) for layer, head in zip(numbers["layer"], numbers["head"], strict=True)]
    st.dataframe(
        numbers,
        hide_index=True,
        key="heads-table",
        on_select=lambda: take_row("heads-table", heads),
        selection_mode="single-row",
    )
    _tell_sample(atlas)
    if few := few_words(measured):
        st.caption(plain(few))
    if missing := missing_words(atlas.table):
        st.caption(plain(missing))
    spread = " Columns that end in “_spread” are standard deviations over the texts." if atlas.texts else ""
    st.caption(f"Click a column's name to sort by it; tick a row to choose its head.{spread}")


def _tell_sample(atlas: Atlas) -> None:
    """Show the row count, and offer to measure all; clicks stop it."""
    rows, queries = atlas.table.attrs["rows"], atlas.table.attrs["queries"]
    if rows == queries:
        return
    st.caption(
        f"Measured from {rows:,} of {queries:,} rows, spread over the text. Columns that end in “{ERROR}” are the "
        "standard errors of these means."
    )
    if not st.button("Measure all rows", key="heads-all-rows"):
        return
    st.button("Stop", key="heads-all-rows-stop")
    bar = st.progress(0.0)
    traces = (atlas.trace, *atlas.others)
    for number, trace in enumerate(traces):
        measure_all(trace, atlas.stream, lambda share, before=number: bar.progress((before + share) / len(traces)))
    visit.run_again()
