"""A scan of the chosen head over many texts."""

import functools
from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from attention_viz.analysis.metrics import METRICS
from attention_viz.corpus.site.studied import change_words
from attention_viz.corpus.tables import LEADING, records_of
from attention_viz.errors import AttentionVizError
from attention_viz.serving.run import Run
from attention_viz.serving.scans import examples_of, offered, opened
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, HeadsChoice
from attention_viz.ui.pages.heads.many.examples import in_html
from attention_viz.ui.pages.heads.many.story import show_story
from attention_viz.ui.pages.heads.many.words import here_words, over_words
from attention_viz.ui.pages.heads.search import Atlas
from attention_viz.ui.parts.markdown import as_sentence, plain

__all__ = ["show_many"]


def show_many(atlas: Atlas, run: Run, state: State, choice: HeadsChoice) -> None:
    """Show the scan's section if this model has one."""
    scans = offered(atlas.trace.provenance.sha256)
    name = _chosen(list(scans), choice.scan)
    if name is None:
        return
    place = (atlas.stream, *run.place(atlas.stream, state.layer, state.head))
    with st.container(key="heads-many"):
        st.markdown("#### Over many texts")
        left, right = st.columns([1.5, 1], gap="medium")
        try:
            with left:
                _show_head(atlas, run, state, scans[name], place, {**pickers.address(), "scan": name})
            with right:
                if run.fit is not None:
                    show_story(state, choice, scans[name], atlas.stream)
        except AttentionVizError as error:
            st.info(as_sentence(str(error)))


def _chosen(names: list[str], asked: str) -> str | None:
    if asked not in ("", *names):
        others = f"; there are {', '.join(names)}" if names else ": none is on this machine"
        st.info(as_sentence(f"the scan “{asked}” was asked for, and isn't one of this model{others}"))
    if not names:
        return None
    if asked and asked not in names[1:]:
        visit.fill(HEADS_CHOICES, scan="")
    if len(names) > 1:
        options = ["", *names[1:]]
        widgets.show(
            st.selectbox,
            "Scan",
            of=HEADS_CHOICES,
            name="scan",
            options=options,
            format_func=functools.partial(_scan_label, names[0]),
        )
    return visit.chosen(HEADS_CHOICES).scan or names[0]


def _scan_label(first: str, name: str) -> str:
    return name or first


def _show_head(
    atlas: Atlas, run: Run, state: State, path: Path, place: tuple[str, int, int], address: Mapping[str, str]
) -> None:
    scan = opened(path)
    table = scan.heads
    stream, layer, head = place
    rows = records_of(table[(table["stream"] == stream) & (table["layer"] == layer) & (table["head"] == head)])
    if not rows:
        st.caption(plain(f"The scan of {scan.manifest['corpus']} has no layer {layer} of {stream}."))
        return
    st.markdown(plain(over_words(rows[0], scan.manifest["done"]["texts"], scan.manifest["corpus"])))
    if (state.layer, state.head) in atlas.jobs.index:
        role, score = atlas.jobs.loc[(state.layer, state.head), ["role", "score"]]
        st.markdown(plain(here_words(rows[0], str(role), float(score))))
    changed = [one for one in scan.studied("silenced") if (one["stream"], one["layer"], one["head"]) == place]
    for one in changed:
        st.markdown(plain(change_words(one)))
    if run.fit is None:
        return
    metric = LEADING[str(rows[0]["role"])]
    examples = examples_of(state.request, path, place, metric)
    st.html(in_html(examples, METRICS[metric].label, address))
