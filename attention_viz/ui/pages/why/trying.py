"""The number with heads ablated or patched."""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pandas
import streamlit as st

from attention_viz.circuits.asked import Logit, Score
from attention_viz.circuits.decomposition import HELD
from attention_viz.circuits.patching.patching import TOTAL
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.why_payload import layer_heads, streams_beside
from attention_viz.serving.runs import Run
from attention_viz.serving.why import Head, Patched, WrittenNumber, known_silenced, patched, run_patches, without_heads
from attention_viz.trace.trace import Trace
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import State
from attention_viz.ui.controls import pickers
from attention_viz.ui.pages.why.asking import tell_put, tell_silenced
from attention_viz.ui.pages.why.page import RANKED, WHY_CHOICES
from attention_viz.ui.parts.exports import csv_bytes, file_button, model_part
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.runner.page import Slots

# Up to this many tokens, over all runs, need no click.
_AT_ONCE = 8_000


def offer_rows(trace: Trace, found: WrittenNumber) -> None:
    """Offer the rows as CSV and JSON."""
    name = f"attention_{model_part(trace)}_why"
    holds = "One row per part of the model, with its contribution; the rows sum to the number"
    for ending, make in (("csv", _csv), ("json", _json)):
        label, file = f"Attribution ({ending.upper()})", functools.partial(make, trace, found)
        file_button(label, name, ending, file, f"why-{ending}", holds=holds)


def _offer_puts(trace: Trace, of: Logit, other: str, found: Patched) -> None:
    holds = "Each head's effect when patched from the other text: estimated, and measured if it was run"
    make, name = functools.partial(_puts, trace, of, other, found), f"attention_{model_part(trace)}_put"
    file_button("Head effects (CSV)", name, "csv", make, "why-put", holds=holds)


def _puts(trace: Trace, of: Logit, other: str, found: Patched) -> bytes:
    """Order by largest change; empty if a head wasn't run."""
    best = {**found.estimates, **found.runs}  # the effect that was run, else its estimate
    rows = [
        (*head, estimate - found.number, found.runs[head] - found.number if head in found.runs else None)
        for head, estimate in sorted(found.estimates.items(), key=lambda one: -abs(best[one[0]] - found.number))
    ]
    origin = {
        "of": str(of),
        "model": trace.provenance.model,
        "text": trace.provenance.text,
        "other_text": other,
        "number": found.number,
        "other_number": found.other_number,
        "held": TOTAL,
    }
    return csv_bytes(pandas.DataFrame(rows, columns=["layer", "head", "estimate", "effect"]).assign(**origin))


def _csv(trace: Trace, found: WrittenNumber) -> bytes:
    origin = _origin(trace, found)
    return csv_bytes(found.table.assign(**{name: origin[name] for name in ("of", "model", "total", "held")}))


def _json(trace: Trace, found: WrittenNumber) -> bytes:
    rows: list[dict[str, object]] = [
        {str(name): None if pandas.isna(cell) else cell for name, cell in row.items()}
        for row in found.table.astype(object).to_dict("records")
    ]
    content = {**_origin(trace, found), "rows": rows}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False).encode("utf-8", "replace")


def _origin(trace: Trace, found: WrittenNumber) -> dict[str, object]:
    origin = trace.provenance
    return {
        "of": str(found.of),
        "model": origin.model,
        "text": origin.text,
        "total": found.total,
        "remainder": found.remainder,
        "held": HELD,
    }


@dataclass(frozen=True)
class Silenced:
    """A number, its run, and the shown layer and head."""

    run: Run
    state: State
    of: Score | Logit
    name: str
    place: Head

    @property
    def streams(self) -> tuple[str, ...]:
        """Return the streams of the heads in the map."""
        return streams_beside(self.run.trace, self.run.stream(self.state.stream))

    @property
    def stream(self) -> str | None:
        """Return the heads' stream; None if the layer says which one it is."""
        trace, streams = self.run.trace, self.streams
        return streams[0] if len(trace.streams) > len(streams) else None

    @property
    def heads(self) -> list[Head]:
        """Return heads that affect the number: for a score, from earlier layers."""
        layers = layer_heads(self.run.trace, self.streams)
        last = self.of.layer if isinstance(self.of, Score) else None
        return [
            (layer, head) for layer in sorted(layers) if last is None or layer < last for head in range(layers[layer])
        ]


def silence_largest(one: Silenced, largest: Sequence[Head]) -> None:
    """Send the number without each of the largest or already ablated heads."""
    request = one.state.request
    found = without_heads(one.run, request, one.of, largest, one.stream)
    tell_silenced(one.name, one.place, {**known_silenced(request, one.of, one.heads, one.stream), **found}, "largest")


def pick_ranked(can_patch: bool) -> None:
    """Draw the picker of the heads' order; patching is for a next word without an image."""
    ranked = visit.chosen(WHY_CHOICES).ranked
    shown = {name: label for name, label in RANKED.items() if can_patch or name in ("wrote", "silenced", ranked)}
    pickers.switch("Rank heads by", shown, WHY_CHOICES, "ranked")


def _runs_at_once(one: Silenced, count: int) -> bool:
    """Return whether the runs are few enough to need no click."""
    return count * len(one.run.trace.query_tokens(one.run.stream(one.state.stream))) <= _AT_ONCE


def silence_all(one: Silenced, slots: Slots) -> None:
    """Ablate each head in turn if that ranks them."""
    heads, request = one.heads, one.state.request
    if visit.chosen(WHY_CHOICES).ranked != "silenced":
        return
    if len(known_silenced(request, one.of, heads, one.stream)) == len(heads):
        return
    at_once = isinstance(one.of, Logit) and _runs_at_once(one, len(heads))
    with slots["running"].container(horizontal=True, vertical_alignment="center", gap="small"):
        if not at_once and not st.button(f"Ablate all {len(heads)}", key="why-silence-all"):
            return
        # A press anywhere ends the run; what was done by then is kept.
        st.button("Stop", key="why-silence-stop", on_click=visit.pick, args=(WHY_CHOICES,), kwargs={"ranked": "wrote"})
        slot = st.empty()

    def report(done: int) -> None:
        slot.caption(f"{done} of {len(heads)} heads ablated")

    try:
        after = without_heads(one.run, request, one.of, heads, one.stream, report)
    except AttentionVizError as error:
        slots["running"].caption(plain(as_sentence(str(error))))
        return
    slots["running"].empty()
    with slots["board"]:
        tell_silenced(one.name, one.place, after, "all")


@dataclass
class _StoppedRuns:
    """Runs the visitor stopped, by heads, text and number."""

    of: tuple[str, str] | None = None


def ask_other() -> None:
    """Draw the other text's box."""
    widgets.show(
        st.text_input,
        "Patch from",
        of=WHY_CHOICES,
        name="put_from",
        placeholder="The sentence with a word changed, to patch each head's output from",
        label_visibility="collapsed",
    )


def put_all(one: Silenced, slots: Slots) -> Patched | None:
    """Patch every head if that ranks them; return known numbers."""
    choice = visit.chosen(WHY_CHOICES)
    if choice.ranked != "put":
        return None
    if isinstance(one.of, Score):
        slots["told"].caption("Patching explains a next word, not a score. To patch, choose Next word as the number.")
        return None
    if not choice.put_from.strip():
        slots["told"].caption("Type the sentence with a word changed, and press Enter.")
        return None
    try:
        return _put(one, slots, choice.put_from)
    except AttentionVizError as error:
        slots["told"].warning(plain(as_sentence(str(error))))
        return None


def _put(one: Silenced, slots: Slots, other: str) -> Patched:
    request, of = one.state.request, one.of
    assert not isinstance(of, Score)
    found = patched(one.run, request, other, of)
    with slots["board"]:
        tell_put(one.name, one.place, other, found.known, "estimated")
    count = len(found.estimates)
    if len(found.runs) == count:
        _end(one, found, other, slots)
        return found
    stopped = visit.memory(_StoppedRuns).of == (other, one.name)
    with slots["told"].container(horizontal=True, vertical_alignment="center", gap="small"):
        if stopped or not _runs_at_once(one, count):
            if not st.button(f"Run {count - len(found.runs)} heads", key="why-put-run"):
                measured = f"; {len(found.runs)} heads run" if found.runs else ""
                st.caption(f"Estimated by a gradient{measured}.")
                _offer_puts(one.run.trace, of, other, found)
                return found
        # A press anywhere ends the run; what was done by then is kept.
        st.button("Stop", key="why-put-stop", on_click=_stop, args=(other, one.name))
        slot = st.empty()

    def report(done: int) -> None:
        slot.caption(f"Estimated by a gradient; {done} of {count} heads run")

    found = run_patches(one.run, request, other, of, report)
    visit.memory(_StoppedRuns).of = None
    _end(one, found, other, slots)
    with slots["board"]:
        tell_put(one.name, one.place, other, found.known, "run")
    return found


def _end(one: Silenced, found: Patched, other: str, slots: Slots) -> None:
    assert not isinstance(one.of, Score)
    with slots["told"].container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(_words(found))
        _offer_puts(one.run.trace, one.of, other, found)


def _stop(other: str, name: str) -> None:
    visit.memory(_StoppedRuns).of = (other, name)


def _words(found: Patched) -> str:
    mine, theirs = found.lengths
    phrase = f"Total effects, from a run for each of {len(found.runs)} heads."
    if found.other_number is not None:
        phrase += f" In the other text the number is {found.other_number:.2f}.".replace("-", "−")
    if mine != theirs:
        phrase += f" The tokens are aligned: {theirs} there, {mine} here."
    return plain(phrase)
