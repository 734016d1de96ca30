"""The field for images, videos or audio."""

import functools
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from attention_viz.errors import AttentionVizError
from attention_viz.inputs.media.shapes import DRAWN
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving import permissions as allowed
from attention_viz.serving.uploads import (
    Upload,
    is_upload,
    joined,
    names_of,
    release,
    shows_of,
    title_of,
    upload_of,
)
from attention_viz.sources import CATALOGUE
from attention_viz.trace.kind import MIXER, InputKind
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import DEFAULT, MOST_IMAGES, State, titles, write_address
from attention_viz.ui.controls.sheet import show_sheet
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.selection import SHARED
from attention_viz.views.style.wording import one_line

# The pages that show each kind of input other than text; the others say that they can't.
SHOWN_ON = {
    InputKind.PICTURE: ("Explore", "Step by step", "Masks", "Heads", "Compare", "Why"),
    InputKind.SOUND: ("Explore", "Step by step", "Heads", "Cross-attention", "Why"),
    InputKind.BESIDE: ("Explore", "Step by step", "Masks", "Heads", "Compare", "Why"),
}
# A page's model that reads text, if it isn't the default one.
STAYS = {"Cross-attention": "translation"}
# How a visitor's file is kept.
KEPT = (
    "Your file stays in this server’s memory while you have the app open, and is then deleted. Logs and links don’t "
    "contain it."
)
# The labels of the upload fields.
_UPLOAD = {
    InputKind.PICTURE: "Upload image",
    InputKind.SOUND: "Upload audio",
    InputKind.VIDEO: "Upload video",
}
# The name of the upload fields; each is emptied after its file was read.
_FIELDS = "thing"
_LONGEST_NAME = 60
# The seconds that a model hears at once; for longer audio, the start can be chosen.
_WINDOW = 30.0


@dataclass
class _MediaRefusal:
    reason: str = ""


def reads(state: State) -> InputKind:
    """Return the shown run's input kind."""
    if (run := opening.opened()) is None:
        return state.facts.reads
    found = next(iter(run.trace.seen.tensors), InputKind.TEXT)
    return InputKind.BESIDE if found == InputKind.PICTURE and run.trace.provenance.text is not None else found


def thing_label(state: State) -> str:
    """Describe the shown image or audio briefly."""
    if (run := opening.opened()) is not None:
        origin = run.trace.provenance
        return one_line(next(iter(origin.media.values()), ""), _LONGEST_NAME)
    name = state.shown
    if (count := len(names_of(name))) > 1:
        return one_line(f"{count} images · {shows_of(name) or title_of(name)}", _LONGEST_NAME)
    shows = f" · {found}" if (found := shows_of(name)) else ""
    return one_line(f"{title_of(name)}{shows}", _LONGEST_NAME)


def show_thing(state: State, kind: InputKind) -> None:
    """Draw the field."""
    medium = kind.medium
    assert medium is not None, "a text has no file"
    with st.popover(plain(thing_label(state)), key=widgets.fresh(_FIELDS), width="stretch"):
        if kind == InputKind.BESIDE:
            _several(state)
        _samples(medium, state)
        if DRAWN.keys() >= {*samples_of(state, medium)}:
            show_sheet(names_of(state.shown)[0], functools.partial(_draw, medium))
        _ask(medium)
        if kind == InputKind.BESIDE:
            _ask_video(state.facts.why_no_video)
        _window(state)
        st.caption(KEPT)


def why_alone_of(state: State) -> str:
    """Return why the chosen model can't read an image or audio beside the text; empty if nothing prevents it."""
    return "" if opening.opened() is not None else state.facts.why_alone


def show_why_alone(why: str) -> None:
    """Draw the reason in the field's place."""
    with st.popover("Text alone", key="text-alone", width="stretch"):
        st.caption(plain(f"This model’s text part is shown alone. {as_sentence(why)}"))


def shown_models(chosen: str) -> list[str]:
    """Return the catalogue's models whose input some page shows, and the chosen one."""
    kinds = (InputKind.TEXT, *SHOWN_ON)
    return [name for name, entry in CATALOGUE.items() if entry.reads in kinds or name == chosen]


def is_shown_on(page: str, kind: InputKind) -> bool:
    """Return whether a page supports the input."""
    return kind == InputKind.TEXT or page in SHOWN_ON.get(kind, ())


def end_unless_shown(page: str, state: State, kind: InputKind) -> None:
    """End a page unfit for the input, naming fit ones."""
    if kind != InputKind.TEXT and (refused := visit.memory(_MediaRefusal).reason):
        st.error(as_sentence(refused))
    if is_shown_on(page, kind):
        return
    opened = opening.opened() is not None
    name = allowed.display_name(state.model)
    reads = f"The open trace is of {kind.one}." if opened else f"The model {name} reads {kind.plural}."
    _end(page, state, (f"{page} can’t show {kind.plural}", reads), SHOWN_ON.get(kind, ()))


def end_without_softmax(page: str, state: State) -> None:
    """End a page about softmax attention for a model that has none."""
    run = opening.opened()
    streams = state.facts.streams if run is None else run.trace.streams
    # Before the model is loaded, its streams aren't known.
    if not streams or not all(stream.startswith(MIXER) for stream in streams):
        return
    name = f"The model {allowed.display_name(state.model)}" if run is None else "The open trace"
    reason = f"{page} needs softmax attention", f"{name} has none: its layers mix tokens by signed weights."
    _end(page, state, reason, ("Explore", "Step by step"))


def _end(page: str, state: State, why: tuple[str, str], others: Sequence[str]) -> None:
    """End a page with a reason, links to the pages that show the input, and a way to stay."""
    st.html(f'<h1 class="unfit-reason">{html.escape(why[0])}</h1>')
    st.markdown(plain(f"{why[1]} These pages show it:"))
    with st.container(key="unfit-pages"):
        for name, label in titles.labels().items():
            if label in others:
                with st.container(key=f"unfit-{name or 'explore'}", border=True):
                    st.page_link(titles.file_of(name), label=label, query_params=write_address(state))
                    st.caption(plain(titles.description(name, state)))
    if opening.opened() is not None:
        opening.offer_closing("close-thing")
    else:
        model = STAYS.get(page, DEFAULT.model)
        st.button(
            f"Stay on {page} with {model}",
            key="unfit-stay",
            on_click=visit.pick,
            args=(SHARED,),
            kwargs={"model": model},
        )
    # The URL keeps its other parameters.
    st.query_params.update(write_address(state))
    st.stop()


def samples_of(state: State, medium: InputKind) -> list[str]:
    """Return the names of a model's own samples; without any, of all samples of a medium."""
    entry = CATALOGUE.get(state.model)
    own = entry.samples if entry is not None else ()
    return list(own or (name for name, one in SAMPLES.items() if one.kind == medium))


def _samples(medium: InputKind, state: State) -> None:
    with st.container(horizontal=True, gap="xsmall", key="samples"):
        for name in samples_of(state, medium):
            st.button(
                plain(f"Sample – {SAMPLES[name].shows}"),
                key=f"sample-{name}",
                help=plain(SAMPLES[name].whose),
                on_click=choose_sample,
                args=(medium, name),
            )


def _ask(kind: InputKind) -> None:
    taken = widgets.fresh(_FIELDS).removeprefix(f"{_FIELDS}-")
    upload = f"thing-upload-{taken}"
    st.file_uploader(_UPLOAD[kind], key=upload, on_change=_take, args=(kind, upload))
    if kind == InputKind.SOUND:
        microphone = f"thing-microphone-{taken}"
        st.audio_input("Microphone", key=microphone, on_change=_take, args=(kind, microphone, "your recording"))
        return
    # The browser asks for the camera as soon as its widget is there.
    if st.toggle("Camera", key=f"thing-camera-on-{taken}"):
        camera = f"thing-camera-{taken}"
        st.camera_input("Take a photo", key=camera, on_change=_take, args=(kind, camera, "your photo"))
        st.caption(
            "If you see no image here, your browser blocks the camera. Allow it next to the URL, or upload an image."
        )


def _ask_video(why_not: str | None) -> None:
    """Draw the field for a video, or the reason why there is none; nothing for a model that takes no frames."""
    if why_not:
        st.caption(plain(as_sentence(why_not)))
    elif why_not is not None:
        key = f"thing-video-{widgets.fresh(_FIELDS).removeprefix(f'{_FIELDS}-')}"
        st.file_uploader(_UPLOAD[InputKind.VIDEO], key=key, on_change=_take, args=(InputKind.VIDEO, key))


def _window(state: State) -> None:
    upload = upload_of(state.sound) if state.facts.reads == InputKind.SOUND else None
    whole = getattr(upload.thing, "whole", 0.0) if upload is not None else 0.0
    if upload is None or whole <= _WINDOW:
        return
    st.number_input(
        "Start at second",
        0.0,
        whole - 1.0,
        getattr(upload.thing, "start", 0.0),
        step=5.0,
        key=f"thing-start-{upload.name}",
        on_change=_begin_at,
        args=(upload,),
    )


def _begin_at(upload: Upload) -> None:
    _hold(upload.kind, upload.beginning_at(float(widgets.content(f"thing-start-{upload.name}"))))


def choose_sample(kind: InputKind, name: str, *, model: str | None = None) -> None:
    """Show a sample or a drawing, with its model if named; free uploads that are no longer shown."""
    visit.memory(_MediaRefusal).reason = ""
    _show(kind, [*_stay(), name] if model is None else [name], **({} if model is None else {"model": model}))


def _draw(kind: InputKind, name: str) -> None:
    """Show a drawing, and close its sheet."""
    choose_sample(kind, name)
    widgets.renew(_FIELDS)


def _several(state: State) -> None:
    """Draw a button per image that removes it, and the switch that adds the next one."""
    names = names_of(state.shown)
    if len(names) > 1:
        with st.container(horizontal=True, gap="xsmall", key="shown-images"):
            for at, name in enumerate(names):
                label = one_line(f"Remove image {at + 1} · {shows_of(name) or title_of(name)}", _LONGEST_NAME)
                st.button(plain(label), key=f"remove-image-{at}", on_click=_remove, args=(at,))
    if not state.facts.reads_several or any(_is_video(name) for name in names):
        return
    if len(names) < MOST_IMAGES:
        st.toggle("Add image", key=_add_key(), help="The next image that you choose is added after the others.")
    else:
        st.caption(f"A text is shown with up to {MOST_IMAGES} images. Remove one to add another.")


def _remove(at: int) -> None:
    names = names_of(visit.shared().shown)
    if len(names) > 1 and at < len(names):
        _show(InputKind.PICTURE, [name for place, name in enumerate(names) if place != at])


def _add_key() -> str:
    return f"thing-add-{widgets.fresh(_FIELDS).removeprefix(f'{_FIELDS}-')}"


def _stay() -> list[str]:
    """Return the images that stay when another one is chosen; none if it replaces them."""
    names = names_of(visit.shared().shown)
    return names if widgets.content(_add_key()) is True and len(names) < MOST_IMAGES else []


def _is_video(name: str) -> bool:
    upload = upload_of(name)
    return upload is not None and upload.kind == InputKind.VIDEO


def _show(kind: InputKind, names: Sequence[str], **values: str) -> None:
    """Show one or several inputs of a kind; free uploads that are no longer shown, and close the field if it added."""
    brought = visit.here().brought
    for key in [key for key, one in brought.items() if key.startswith(kind) and one.name not in names]:
        release(brought.pop(key).name)
    if len(names) > 1:
        widgets.renew(_FIELDS)
    visit.pick(SHARED, **{kind: joined(names)}, **values)


def ask_another(label: str, kind: InputKind, chosen: str, on_brought: Callable[[str], None]) -> None:
    """Draw a field for a second upload; free the last one if `chosen` isn't an upload."""
    if not is_upload(chosen):
        visit.here().brought.pop(_another(kind), None)

    def hold(_kind: InputKind, upload: Upload) -> None:
        visit.here().brought[_another(kind)] = upload
        on_brought(upload.name)

    key = f"thing-another-{widgets.fresh(_FIELDS)}"
    st.file_uploader(label, key=key, on_change=_take, args=(kind, key), kwargs={"hold": hold})
    st.caption(KEPT)


def _another(kind: InputKind) -> str:
    return f"second {kind}"


def _take(
    kind: InputKind, key: str, title: str = "", *, hold: Callable[[InputKind, Upload], None] | None = None
) -> None:
    file: object = widgets.content(key)
    # Streamlit keeps a marker of a removed file until the field is redrawn.
    if not isinstance(file, UploadedFile):
        return
    refusal = visit.memory(_MediaRefusal)
    refusal.reason = ""
    try:
        upload = Upload(kind, file.getvalue(), title or one_line(file.name, _LONGEST_NAME))
    except AttentionVizError as error:
        refusal.reason = str(error)
    else:
        (hold or _hold)(kind, upload)
    opening.let_go(file)
    widgets.renew(_FIELDS)


def _hold(kind: InputKind, upload: Upload) -> None:
    """Keep the upload while it is shown; nothing else holds it. A video takes the image's place, alone."""
    stay = [] if kind == InputKind.VIDEO else _stay()
    kind = InputKind.PICTURE if kind == InputKind.VIDEO else kind
    visit.here().brought[f"{kind} {upload.name}"] = upload
    _show(kind, [*stay, upload.name])


def is_own(state: State) -> bool:
    """Return whether the visitor uploaded the shown input."""
    return is_upload(state.shown)
