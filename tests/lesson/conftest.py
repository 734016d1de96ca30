"""What tests of the course share: the catalogue's models, each loaded once, and what they did with a text, kept."""

from collections.abc import Sequence
from functools import cache

import pytest

import attention_viz as av
from attention_viz.edits.edit import Edit
from attention_viz.inputs.check import trace_filled
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson.scene import RunText
from attention_viz.models import SNAPSHOTS
from attention_viz.models.loading.snapshots import revision_of, snapshot_name
from attention_viz.protocol.model import Model
from attention_viz.trace.kind import InputKind
from attention_viz.trace.trace import Trace
from tests.shipped import load_once, shown


@pytest.fixture(scope="session")
def run() -> RunText:
    """Runs a text through a model of the catalogue, as the app does; the same call again costs nothing.

    Of session scope, so that a worker loads a model once: `Scene("The cat sat", run)`.
    """
    moments = {snapshot_name(model, step): (model, step) for model, steps in SNAPSHOTS.items() for step in steps}

    @cache
    def load(name: str) -> Model:
        model, step = moments.get(name, (name, None))
        return load_once(model) if step is None else av.load(model, revision=revision_of(step))

    @cache
    def kept(model: str, text: str, edits: tuple[Edit, ...], beside: str | None, picture: str) -> Trace:
        one = load(model)
        if picture:
            return one.trace(text, picture=av.Picture(SAMPLES[picture].path), edits=edits)  # pyright: ignore[reportCallIssue] -- it reads both
        if text in SAMPLES and not one.facts.reads.has_text:
            if not edits:
                return shown(model, text)
            opened = av.Picture if SAMPLES[text].kind is InputKind.PICTURE else av.Sound
            return one.trace(opened(SAMPLES[text].path), edits=edits)  # pyright: ignore[reportArgumentType] -- it reads such
        if beside is None:
            return one.trace(text, edits=edits)
        return trace_filled(one, text, max(one.fit(text).count, one.fit(beside).count), edits)

    def run(
        model: str, text: str, *, edits: Sequence[Edit] = (), beside: str | None = None, picture: str = ""
    ) -> Trace:
        return kept(model, text, tuple(edits), beside, picture)

    return run
