"""Show traces and tokens in notebooks; foreign text is never markup."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from attention_viz.trace.spelling import xml_text

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

__all__ = ["table_in_html", "tokens_in_html", "trace_in_html"]

_MOST_ROWS, _LONGEST = 60, 300


def trace_in_html(trace: "Trace") -> str:
    """Show a trace's provenance and each stream's layer, head and token counts."""
    origin = trace.provenance
    rows: list[tuple[str, str]] = [("model", origin.model)]
    texts = (
        *origin.media.items(),
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


def tokens_in_html(tokens: "Tokens") -> str:
    """Show label, readable text, id and word per position."""
    ids = tokens.ids or (None,) * len(tokens)
    rows = zip(range(len(tokens)), tokens.labels, tokens.written, ids, tokens.words, strict=True)
    shown = [tuple("" if cell is None else str(cell) for cell in row) for row in list(rows)[:_MOST_ROWS]]
    more = f"<p>… {len(tokens)} positions in all</p>" if len(tokens) > _MOST_ROWS else ""
    return table_in_html(["position", "label", "written", "id", "word"], shown) + more


def table_in_html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Build a table of texts; each row's first is its heading."""
    above = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>" if head else ""
    below = "".join(
        f'<tr><th style="text-align:left">{escape(first)}</th>'
        f"{''.join(f'<td style={chr(34)}text-align:left{chr(34)}>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return xml_text(f"<table>{above}{below}</table>")


def _named(tokens: "Tokens") -> str:
    return _shortened(" ".join(tokens.written))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
