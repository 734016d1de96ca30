"""Show a trace in a notebook."""

from attention_viz.trace.spelling import table_in_html
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace_data import TraceData

__all__ = ["trace_in_html"]

_LONGEST = 300


def trace_in_html(trace: TraceData) -> str:
    """Show a trace's provenance and each stream's layer, head and token counts."""
    origin = trace.provenance
    rows: list[tuple[str, str]] = [("model", origin.model)]
    texts = (
        ("picture", origin.picture),
        ("sound", origin.sound),
        ("text", origin.text),
        ("second text", origin.second_text),
        ("target", origin.target),
    )
    rows += [(name, _shortened(text)) for name, text in texts if text is not None]
    rows += [("notes", _shortened(one)) for one in origin.notes]
    rows += [("edited", _shortened(edit)) for edit in origin.edits]
    if words := origin.stored_in_words:
        rows.append(("stored", words))
    if origin.added:
        rows.append(("added", f"{' and '.join(origin.added)}: ones, so every position is read"))
    for stream, layers in trace.layers.items():
        heads, queries, keys = layers[0].attention.shape
        note = f" ({trace.kept[stream].note})" * bool(trace.kept[stream].note)
        rows.append((stream, f"{trace.kept[stream]}{note}, {heads} heads, {queries} × {keys} tokens"))
        rows.append(("tokens" if len(trace.streams) == 1 else f"tokens of the {stream}", _named(trace.queries[stream])))
    if origin.output:
        rows.append(("output", f"{origin.output}, {' × '.join(map(str, trace.output_shape))}"))
    fidelity = vars(trace).get("fidelity")
    if fidelity is not None:
        said = "verified" if fidelity.ok else "not verified"
        far = "" if fidelity.largest_error is None else f"{fidelity.largest_error:.1e} off "
        rows.append(("fidelity", f"{said}: {far}{fidelity.reference}"))
    return table_in_html([], rows)


def _named(tokens: Tokens) -> str:
    return _shortened(" ".join(tokens.written))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
