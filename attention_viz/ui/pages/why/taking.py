"""An opened number's exports: its rows with their context."""

import functools
import json

import pandas
import streamlit as st

from attention_viz.circuits.asked import Logit
from attention_viz.circuits.decomposition import HELD
from attention_viz.circuits.patching.patching import TOTAL
from attention_viz.serving.why import Patched, WrittenNumber
from attention_viz.trace.trace import Trace
from attention_viz.ui.parts.exports import csv_bytes, model_part

__all__ = ["offer_puts", "offer_rows"]


def offer_rows(trace: Trace, found: WrittenNumber) -> None:
    """Offer the rows as CSV and JSON."""
    name = f"attention_{model_part(trace)}_why"
    forms = {
        "What wrote it (CSV)": ("csv", "text/csv", _csv),
        "What wrote it (JSON)": ("json", "application/json", _json),
    }
    for label, (ending, media, make) in forms.items():
        st.download_button(
            label,
            functools.partial(make, trace, found),
            f"{name}.{ending}",
            media,
            help="Every part of the model and what it wrote of this number, a row each; they sum to the number",
            on_click="ignore",
            key=f"download-why-{ending}",
        )


def offer_puts(trace: Trace, of: Logit, other: str, found: Patched) -> None:
    """Offer the patched heads as CSV."""
    st.download_button(
        "These heads (CSV)",
        functools.partial(_puts, trace, of, other, found),
        f"attention_{model_part(trace)}_put.csv",
        "text/csv",
        help="How each head's output from the other text changes the number: as estimated, and as run where it was run",
        on_click="ignore",
        key="download-why-put",
    )


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
