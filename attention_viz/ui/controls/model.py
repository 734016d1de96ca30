"""The model picker: catalogue, folder, or hub."""

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import AttentionVizError
from attention_viz.protocol.facts import UNKNOWN_COUNT
from attention_viz.serving import jobs
from attention_viz.serving import permissions as allowed
from attention_viz.serving.models import check_room, plan_of, refresh
from attention_viz.serving.permissions import FOLDER, HUB
from attention_viz.serving.runs import is_loaded
from attention_viz.sources import CATALOGUE
from attention_viz.sources.catalogue import how_to_install
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import DEFAULT, State, write_address
from attention_viz.ui.address.kinds import notice, number_words
from attention_viz.ui.controls.thing import shown_models
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import load_in_place, show_problem
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.selection import SHARED, Filled
from attention_viz.views.style.wording import one_line

if TYPE_CHECKING:
    from attention_viz.sources import Plan
    from attention_viz.trace.trace import Trace

# In characters: in a file a model may be called anything.
_LONGEST = 40


def _offer_download(model: str, plan: "Plan", place: DeltaGenerator) -> None:
    check_room(plan.name, plan.bytes)
    download = jobs.download_of(model)
    with place:
        if download is not None and not download.over:
            _watch(model)
            return
        if download is not None and not download.problem:
            # It finished after the missing bytes were counted.
            jobs.forget(model)
            visit.run_again()
        if download is not None:
            st.warning(as_sentence(download.problem))
        here = plan.bytes - plan.missing
        already = f", {_megabytes(here)} of them already on this machine" if here else ""
        st.markdown(
            plain(
                f"{plan.name} at {plan.revision} ({plan.commit[:7]}) is on the hub: {len(plan.files)} files, "
                f"{_megabytes(plan.bytes)}{already}. The download stays on this machine, for all its users."
            )
        )
        st.button(f"Download {_megabytes(plan.missing)}", type="primary", on_click=_begin, args=(model, plan))


def _begin(model: str, plan: "Plan") -> None:
    visit.memory(_Begun).download = jobs.begin(model, plan)


@dataclass
class _Begun:
    """A visitor's download, which only they may cancel."""

    download: jobs.Download | None = None


@st.fragment(run_every=1.0)
def _watch(model: str) -> None:
    download = jobs.download_of(model)
    if download is None or download.over:
        if download is not None and not download.problem:
            jobs.forget(model)
        visit.run_again()
    plan = download.plan
    received = f"{_megabytes(download.received)} of {_megabytes(plan.missing)}"
    st.progress(download.share, text=plain(f"Downloading {plan.name}: {received}"))
    if visit.memory(_Begun).download is download:
        st.button("Cancel", on_click=download.cancel)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count < 1e8 else f"{count / 1e6:,.0f} MB"


@dataclass
class _Source:
    """The source chosen before its model; `of` is the model and file then shown."""

    of: tuple[object, ...] = ()
    name: str = ""
    refused: str = ""
    folder: str = ""
    identity: str = ""
    revision: str = "main"


def pick_model() -> None:
    """Draw the model picker."""
    model, run = visit.shared().model, opening.opened()
    file = [] if run is None else [name_in_file(run.trace, _LONGEST)]
    source, of = visit.memory(_Source), (model, *file, opening.count())
    # A source stays chosen before its model is, and the last run stays on the page; another model has its own source.
    if source.of != of:
        source.of, source.name = of, (file or [_source(model) or model])[0]
    widgets.preset("source", source.name)
    st.selectbox(
        "Model",
        [*shown_models(model), *allowed.other_sources(), *file],
        key="source",
        on_change=_take_source,
        width=widgets.fitting(source.name),
        label_visibility="collapsed",
    )


def name_in_file(trace: "Trace", longest: int) -> str:
    """Name a file's model, cut to `longest` letters."""
    return f"{one_line(trace.provenance.model, longest)} (a file)"


def show_source() -> None:
    """Draw the source's fields, and how to install a missing default model."""
    chosen = visit.memory(_Source)
    source, model = chosen.name, visit.shared().model
    if source == DEFAULT.model and (missing := how_to_install()):
        st.caption(plain(missing))
    if source == FOLDER:
        _ask_folder()
    elif source == HUB:
        _ask_hub()
    if source in allowed.other_sources() and model in CATALOGUE:
        st.caption(plain(f"Still shown: {model}, {CATALOGUE[model].short}."))
    if source in allowed.other_sources() and chosen.refused:
        st.error(plain(f"This model can't be opened: {chosen.refused}."))


def described(state: State) -> str:
    """Describe the model in one line."""
    if (run := opening.opened()) is not None:
        stream = run.stream(state.stream)
        known = CATALOGUE.get(run.trace.provenance.model)
        words = f"{known.short}: " if known else ""
        layer, _ = run.place(stream, state.layer, 0)
        return plain(words + _counted(run.trace.layer_count(stream), run.trace.head_count(layer, stream)))
    if len(state.layers) == UNKNOWN_COUNT:
        return ""
    words = f"{CATALOGUE[state.model].short}: " if state.model in CATALOGUE else ""
    return plain(words + _counted(len(state.layers), state.head_count))


def _counted(layers: int, heads: int) -> str:
    return f"{layers} layer{'s' * (layers != 1)} × {heads} head{'s' * (heads != 1)}"


def prepare(state: State, *, asked: bool = True) -> State:
    """Load a model outside the catalogue, or end the page; limit layer and head."""
    if state.model in CATALOGUE or opening.opened() is not None:
        return state
    refresh(state.model)
    if not is_loaded(state.model) and not _load(state):
        # The URL keeps its other parameters until the page can be shown.
        st.query_params.update(write_address(state))
        st.stop()
    return _within(state, asked=asked)


def _source(model: str) -> str | None:
    """Return a model's source; None for the catalogue."""
    source = {"folder": FOLDER, "hub": HUB}.get(allowed.kind(model))
    return source if source in allowed.other_sources() else None


def _take_source() -> None:
    source, name = visit.memory(_Source), widgets.content("source")
    source.refused, source.name = "", name
    if name in CATALOGUE:
        visit.pick(SHARED, model=name)


def _ask_folder() -> None:
    model, found, source = visit.shared().model, allowed.folders(), visit.memory(_Source)
    chosen = model if _source(model) == FOLDER else None
    options = [*found, *([chosen] if chosen and chosen not in found else [])]
    widgets.preset("folder", chosen)
    st.selectbox(
        "Folder",
        options,
        key="folder",
        format_func=allowed.display_name,
        accept_new_options=True,
        placeholder="Choose one, or type its path" if options else "Type a model folder's path",
        on_change=_take_folder,
        width=460,
    )
    if not options or source.refused:
        none = "" if found else "No model found. "
        # Only the path that was typed, none of this machine's: anyone in the room may have typed it.
        path = shlex.quote(source.folder or "/the/folder")
        st.caption(
            plain(
                f"{none}Models are read from the folder “models” beside the app, or from the folders named in "
                f"ATTENTION_VIZ_MODELS at the start: ATTENTION_VIZ_MODELS={path} attention-viz app. In a checkout, use "
                "make run instead of attention-viz app."
            )
        )


def _ask_hub() -> None:
    model, source = visit.shared().model, visit.memory(_Source)
    if not source.refused:
        source.identity, source.revision = allowed.split(model) if _source(model) == HUB else ("", "main")
    with st.container(horizontal=True):
        for label, key, typed, hint, width in (
            ("Hub id", "hub_id", source.identity, "owner/name", 340),
            ("Revision", "hub_revision", source.revision, "main", 180),
        ):
            widgets.preset(key, typed)
            st.text_input(label, key=key, placeholder=hint, on_change=_take_hub, width=width)


def _take_folder() -> None:
    _take(widgets.content("folder"), "folder")


def _take_hub() -> None:
    source = visit.memory(_Source)
    source.identity, source.revision = ((widgets.content(key) or "").strip() for key in ("hub_id", "hub_revision"))
    _take(allowed.hub_name(source.identity, source.revision) if source.identity else None, "hub")


def _take(name: str | None, kind: str) -> None:
    source = visit.memory(_Source)
    source.refused = ""
    if not name:
        return
    name = name.strip()
    reason = allowed.refusal(name)
    if reason is None and allowed.kind(name) != kind:
        reason = f"“{name[:60]}” isn't in a folder that this app may read" if kind == "folder" else "it isn't a hub id"
    if reason is None:
        visit.pick(SHARED, model=allowed.canonical_name(name))
        return
    source.refused = reason
    if kind == "folder":
        source.folder = one_line(name, 200)


def _load(state: State) -> bool:
    """Load a model, downloading on request; False until loaded."""
    place = st.empty()
    try:
        if allowed.kind(state.model) == "hub":
            with place:
                st.caption("Asking the hub …")
            plan = plan_of(state.model)
            if not plan.complete:
                _offer_download(state.model, plan, place.container())
                return False
        load_in_place(state.model, place)
    except AttentionVizError as error:
        show_problem(error, place, instead="*Model* lists the available models.")
        return False
    place.empty()
    return True


def _within(state: State, *, asked: bool) -> State:
    """Return the nearest layer and head; warn about the URL's."""
    within = state.within()
    if within != state:
        own = asked and not visit.here().selection.part(SHARED).touched
        values = {"layer": within.layer, "head": within.head}
        visit.send(Filled(SHARED, values, tuple(_notices(state, within)) if own else (), stays=asked))
    return within


def _notices(asked: State, within: State) -> list[str]:
    there = {"layer": within.layers, "head": range(within.head_count)}
    return [
        notice(name, str(getattr(asked, name)), number_words(numbers), str(getattr(within, name)))
        for name, numbers in there.items()
        if getattr(asked, name) != getattr(within, name)
    ]
