"""A step's numbers."""

import html
import math
import re
from collections.abc import Sequence

import streamlit as st

from attention_viz.steps.arithmetic import Arithmetic
from attention_viz.steps.head import OpenHead, row_statistics
from attention_viz.steps.mixing import MixerHead
from attention_viz.steps.steps import Step, transposed
from attention_viz.views.style.wording import shortened

# A table with more lines than this scrolls.
_WHOLE = 17


def label_of(opened: OpenHead | MixerHead, axis: str, place: int) -> str:
    """Return an axis position's token or dimension number."""
    if axis not in ("token", "query", "key"):
        return str(place)
    tokens = opened.trace.key_tokens if axis == "key" else opened.trace.query_tokens
    return shortened(tokens(opened.stream).names[place])


def in_notation(words: str, step: Step, notation: str) -> str:
    """Reword rows as columns if the notation transposes the step."""
    return re.sub(r"\b([Rr])ow(s?)\b", _column, words) if transposed(step, notation) else words


def _column(found: re.Match[str]) -> str:
    return f"{'C' if found[1] == 'R' else 'c'}olumn{found[2]}"


def show_arithmetic(
    opened: OpenHead | MixerHead, step: Step, cell: tuple[int, int], found: Arithmetic, notation: str
) -> None:
    """Show the products that make a cell."""
    where = ", ".join(label_of(opened, axis, place) for axis, place in zip(step.axes, cell, strict=True))
    total = f'<b data-testid="total">{rounded(found.total)}</b>'
    st.html(
        f'<p class="steps-said">{html.escape(step.label)} at <code>{html.escape(where)}</code> = {total}<br>'
        f"<span>{html.escape(in_notation(found.sentence, step, notation))}</span></p>"
    )
    if not found.terms:
        return
    names = [name for name, _ in found.terms[0].factors]
    plain_names = [
        name if len({term.factors[i][0] for term in found.terms if term.factors}) == 1 else ""
        for i, name in enumerate(names)
    ]
    last = "exp" if found.rule == "share" else "product" if names else "number"
    head = [cell_html(name, "th") for name in ("", *plain_names, last)]
    lines = [_term(opened, found, place, len(names)) for place in range(len(found.terms))]
    _show_table(head, lines, "arithmetic", _closing(found, len(names)))
    if found.rule == "share":
        _share(found)


def _term(opened: OpenHead | MixerHead, found: Arithmetic, place: int, factors: int) -> list[str]:
    term, picked = found.terms[place], found.rule == "share" and place == found.chosen
    cells = [number_html(number, False) for _, number in term.factors]
    cells += [cell_html("", "td")] * (factors - len(cells))
    return [cell_html(shortened(term.label, 32), "th"), *cells, number_html(term.product, picked)]


def _closing(found: Arithmetic, factors: int) -> list[str]:
    empty = [cell_html("", "td")] * factors
    if found.rule == "product":
        return [cell_html("product", "th"), *empty, number_html(found.computed, True)]
    return [cell_html("sum", "th"), *empty, number_html(found.sum, found.rule == "sum")]


def _share(found: Arithmetic) -> None:
    part = found.terms[found.chosen].product
    caption = " / ".join(rounded(number, 7) for number in (part, found.sum)) + f" = {rounded(found.computed)}"
    st.html(f'<p class="steps-said steps-quotient">{caption}</p>')


def show_statistics(opened: OpenHead, as_run: OpenHead, step: Step, row: int, notation: str) -> None:
    """Show the softmax's sharpness, beside the model's."""
    sides = {"": opened} if not opened.switched else {", now": opened, ", as the model did": as_run}
    names = {"entropy": "entropy (nats)", "largest": "largest", "gradient": "gradient"}
    head, lines = [cell_html(name, "th") for name in ("weights of", *names.values())], list[list[str]]()
    for caption, one in sides.items():
        found = row_statistics(one.weights)
        columns = [getattr(found, name) for name in names]
        token = label_of(opened, "query", row)
        lines.append(
            [
                cell_html(in_notation(f"row {token}{caption}", step, notation), "th"),
                *(number_html(float(c[row]), False) for c in columns),
            ]
        )
        lines.append(
            [
                cell_html(in_notation(f"all rows, mean{caption}", step, notation), "th"),
                *(number_html(float(c.mean()), False) for c in columns),
            ]
        )
    _show_table(head, lines, "statistics")
    st.caption(
        "These describe the softmax weights of the numbers above. Entropy: their spread, from 0 (all on one key) to "
        f"{math.log(opened.weights.shape[-1]):.2f} (even over all keys). Gradient: how much the weights respond to a "
        "change of the scores, $\\lVert \\mathrm{diag}(p) - pp^\\top \\rVert$; near 0, learning stops."
    )


def rounded(number: float, digits: int = 5) -> str:
    """Write a number with a true minus."""
    if math.isinf(number):
        return "−∞" if number < 0 else "∞"
    if 0 < abs(number) < 10 ** (1 - digits):
        return f"{number:.2e}".replace("-", "−")
    # Adding 0 makes −0 into 0.
    return (f"{number + 0.0:.{digits}f}" if abs(number) < 1000 else f"{number:.6g}").replace("-", "−")


def number_html(number: float, marked: bool = False, digits: int = 5, kind: str = "") -> str:
    """Write a table's number."""
    kinds = " ".join(["steps-number", *["steps-chosen"] * marked, *[kind] * bool(kind)])
    return f'<td class="{kinds}">{rounded(number, digits)}</td>'


def cell_html(text: str, tag: str, kind: str = "") -> str:
    """Write a table's text."""
    return f'<{tag} class="{kind}">{html.escape(text)}</{tag}>'


def _show_table(head: list[str], lines: list[list[str]], name: str, closing: Sequence[str] = ()) -> None:
    st.html(table_html(head, lines, name, closing))


def table_html(head: Sequence[str], lines: Sequence[Sequence[str]], name: str, closing: Sequence[str] = ()) -> str:
    """Write a keyboard-scrollable table, its head and closing line in sight."""
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    kind = "steps-table" if len(lines) <= _WHOLE else "steps-table steps-long"
    foot = f"<tfoot><tr>{''.join(closing)}</tr></tfoot>" if closing else ""
    return (
        f'<div class="{kind}" data-testid="{name}" role="region" aria-label="{name}" tabindex="0"><table>'
        f"<thead><tr>{''.join(head)}</tr></thead><tbody>{body}</tbody>{foot}</table></div>"
    )
