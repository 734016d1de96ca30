"""The chosen head's scan over many texts."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from attention_viz.analysis.metrics import METRICS
from attention_viz.corpus.site.studied import change_words
from attention_viz.corpus.tables import LEADING, records_of
from attention_viz.errors import AttentionVizError, HypothesisError
from attention_viz.serving.run import Run
from attention_viz.serving.scans import Example, examples_of, known, offered, opened, test_story
from attention_viz.trace.spelling import weight_text
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.opening import opening
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES, LONGEST_STORY, HeadsChoice
from attention_viz.ui.pages.heads.search import Atlas
from attention_viz.ui.pages.heads.words import here_words, over_words
from attention_viz.ui.parts.markdown import as_sentence, plain

# Strongest examples shown without a click.
_SHOWN = 3
# Example hypotheses, by name.
STORIES = {
    "previous token": "key.position == query.position - 1",
    "induction": "query.text == key.previous.text and key.position < query.position",
    "duplicate token": "query.text == key.text and key.position < query.position",
    "pronoun to noun": "query.is_pronoun and key.is_noun and key.position < query.position",
    "to “and” or “or”": 'key.text in ("and", "or")',
}
_TOLD = 5


# The corpora of scans that ship, in words.
_CORPORA = {"austen": "Jane Austen’s novels"}


def corpus_words(name: str) -> str:
    """Name a corpus in words, if it is known, else by its file."""
    return _CORPORA.get(name.removesuffix(".txt"), name)


def show_many(atlas: Atlas, run: Run, state: State, choice: HeadsChoice) -> None:
    """Show the scan, if this model has one."""
    scans = offered(atlas.trace.provenance.sha256)
    if not scans and not choice.scan:
        return
    asked = choice.scan != "" or choice.story != ""
    with opening("heads-many", "This head over many texts", asked):
        name = _chosen(list(scans), choice.scan)
        if name is None:
            return
        place = (atlas.stream, *run.place(atlas.stream, state.layer, state.head))
        left, right = st.columns([1.5, 1], gap="medium")
        try:
            with left:
                _show_head(atlas, run, state, scans[name], place, {**pickers.address(), "scan": name})
            with right:
                if run.fit is not None:
                    _show_story(state, choice, scans[name], atlas.stream)
        except AttentionVizError as error:
            st.info(as_sentence(str(error)))


def _chosen(names: list[str], asked: str) -> str | None:
    if asked not in ("", *names):
        others = f"; choose {', '.join(names)}" if names else "; this machine has no scan of it"
        st.info(as_sentence(f"this model has no scan “{asked}”{others}"))
    if not names:
        return None
    if asked and asked not in names[1:]:
        visit.fill(HEADS_CHOICES, scan="")
    if len(names) > 1:
        widgets.show(
            st.selectbox,
            "Scan",
            of=HEADS_CHOICES,
            name="scan",
            options={"": corpus_words(names[0]), **{name: corpus_words(name) for name in names[1:]}},
        )
    return visit.chosen(HEADS_CHOICES).scan or names[0]


def _show_head(
    atlas: Atlas, run: Run, state: State, path: Path, place: tuple[str, int, int], address: Mapping[str, str]
) -> None:
    scan = opened(path)
    table = scan.heads
    stream, layer, head = place
    corpus = corpus_words(scan.manifest["corpus"])
    rows = records_of(table[(table["stream"] == stream) & (table["layer"] == layer) & (table["head"] == head)])
    if not rows:
        st.caption(plain(f"The scan of {corpus} doesn't include layer {layer} ({stream})."))
        return
    st.markdown(plain(over_words(rows[0], scan.manifest["done"]["texts"], corpus)))
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
    st.html(_in_html(examples, METRICS[metric].label, address))


def _in_html(examples: Sequence[Example], metric: str, address: Mapping[str, str]) -> str:
    """Show the strongest, with more and random ones behind a line."""
    strongest = [one for one in examples if one.kind == "strongest"]
    by_lot = [one for one in examples if one.kind == "random"]
    parts = [
        f"<p>Strongest examples by “{escape(metric)}”:</p>{_listed(strongest[:_SHOWN], address)}",
        _behind("More strong examples", strongest[_SHOWN:], address),
        _behind("Random examples, from the lowest tenth of the texts to the highest", by_lot, address),
    ]
    return f'<div class="heads-examples" data-testid="scan-examples">{"".join(parts)}</div>'


def _behind(title: str, some: Sequence[Example], address: Mapping[str, str]) -> str:
    if not some:
        return ""
    return f"<details><summary>{escape(title)}</summary>{_listed(some, address)}</details>"


def _listed(some: Sequence[Example], address: Mapping[str, str]) -> str:
    return f"<ol>{''.join(f'<li>{_one(example, address)}</li>' for example in some)}</ol>"


def _one(one: Example, address: Mapping[str, str]) -> str:
    pair = {"query": f"{one.query}", "key": f"{one.key}"} if one.tokens else {}
    opened = urlencode({**address, "text": one.said, **pair})
    tenth = f"tenth {one.tenth}, " if one.tenth else ""
    weight = escape(weight_text(one.weight))
    phrase = f'<span class="heads-told">{tenth}{weight} <a href="?{escape(opened)}" target="_self">Open</a></span>'
    return f"{_tokens(one)} {phrase}"


def _tokens(one: Example) -> str:
    if not one.tokens:
        return f"<span>{escape(one.said)}</span>"
    marks = {one.query: "query", one.key: "key"} | ({one.query: "query key"} if one.query == one.key else {})
    return "".join(
        f'<span class="heads-{marks[at].replace(" ", " heads-")}">{escape(token)}</span>'
        if at in marks
        else f"<span>{escape(token)}</span>"
        for at, token in enumerate(one.tokens)
    )


def _show_story(state: State, choice: HeadsChoice, path: Path, stream: str) -> None:
    widgets.show(
        st.text_input,
        "Hypothesis",
        of=HEADS_CHOICES,
        name="story",
        placeholder=STORIES["induction"],
        max_chars=LONGEST_STORY,
        help="A condition on `query` and `key`. Compare `text`, `word`, `position`, `length`, `is_pronoun`, `is_noun`, "
        "`is_punctuation` and so on, or those of `previous` and `next`; join with and, or, not.",
    )
    with st.container(horizontal=True, gap="small", key="heads-stories"):
        for name, story in STORIES.items():
            st.button(name, key=f"heads-story-{name}", type="tertiary", on_click=_take, args=(story,))
    story = visit.chosen(HEADS_CHOICES).story.strip()
    asked = st.button("Test hypothesis", key="heads-test", disabled=not story)
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
    # Whole numbers, too, so that their points align.
    written = dict.fromkeys(columns, st.column_config.NumberColumn(format="%.2f"))
    st.dataframe(shown, hide_index=True, width="stretch", column_config=written)
    first, second = found.texts
    st.caption(f"{first} texts ranked the heads; these numbers come from {second} others.")
