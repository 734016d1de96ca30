"""A step's numbers."""

import html
import math
import re
from collections.abc import Sequence

import streamlit as st
from torch import Tensor

from attention_viz.steps.arithmetic import Arithmetic
from attention_viz.steps.head import OpenHead, row_statistics
from attention_viz.steps.steps import Step, transposed
from attention_viz.views.style.wording import shortened

# Rows and columns on each side of the chosen cell.
_AROUND = 4
# On a phone, columns further than this from the chosen one are left out of the window.
_NEAR = 2
# A table with more lines than this scrolls.
_WHOLE = 17


def label_of(opened: OpenHead, axis: str, place: int) -> str:
    """Return an axis position's token or dimension number."""
    if axis not in ("token", "query", "key"):
        return str(place)
    tokens = opened.trace.key_tokens if axis == "key" else opened.trace.query_tokens
    return shortened(tokens(opened.stream).said[place])


def in_notation(words: str, step: Step, notation: str) -> str:
    """Reword rows as columns if the notation transposes the step."""
    return re.sub(r"\b([Rr])ow(s?)\b", _column, words) if transposed(step, notation) else words


def _column(found: re.Match[str]) -> str:
    return f"{'C' if found[1] == 'R' else 'c'}olumn{found[2]}"


def show_window(opened: OpenHead, step: Step, matrix: Tensor, cell: tuple[int, int], *, turned: bool) -> None:
    """Show numbers around the chosen cell; a small matrix whole."""
    rows, columns = (_near(place, count) for place, count in zip(cell, matrix.shape, strict=True))
    down, across = [(step.axes[0], rows), (step.axes[1], columns)]
    values = matrix[rows.start : rows.stop, columns.start : columns.stop].tolist()
    at = (cell[0] - rows.start, cell[1] - columns.start)
    if turned:
        (down, across), values, at = (across, down), [list(line) for line in zip(*values, strict=True)], at[::-1]
    names = [[label_of(opened, axis, place) for place in places] for axis, places in (down, across)]
    whole = tuple(matrix.shape) == (len(rows), len(columns))
    caption = "All numbers" if whole else f"Numbers around the chosen cell, of {matrix.numel():,}"
    st.caption(caption)
    near = _near(at[1], len(names[1]), _NEAR)
    far = ["" if place in near else "far" for place in range(len(names[1]))]
    lines = [
        [_cell(name, "th"), *(_number(value, (i, j) == at, 3, far[j]) for j, value in enumerate(line))]
        for i, (name, line) in enumerate(zip(names[0], values, strict=True))
    ]
    head = [_cell("", "th"), *(_cell(name, "th", far[j]) for j, name in enumerate(names[1]))]
    _show_table(head, lines, "window")


def show_arithmetic(opened: OpenHead, step: Step, cell: tuple[int, int], found: Arithmetic, notation: str) -> None:
    """Show the products that make a cell."""
    where = ", ".join(label_of(opened, axis, place) for axis, place in zip(step.axes, cell, strict=True))
    total = f'<b data-testid="total">{_rounded(found.total)}</b>'
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
    head = [_cell(name, "th") for name in ("", *plain_names, last)]
    lines = [_term(opened, found, place, len(names)) for place in range(len(found.terms))]
    _show_table(head, lines, "arithmetic", _closing(found, len(names)))
    if found.rule == "share":
        _share(found)


def _term(opened: OpenHead, found: Arithmetic, place: int, factors: int) -> list[str]:
    term, picked = found.terms[place], found.rule == "share" and place == found.chosen
    cells = [_number(number, False) for _, number in term.factors]
    cells += [_cell("", "td")] * (factors - len(cells))
    return [_cell(shortened(term.label, 32), "th"), *cells, _number(term.product, picked)]


def _closing(found: Arithmetic, factors: int) -> list[str]:
    empty = [_cell("", "td")] * factors
    return [_cell("sum", "th"), *empty, _number(found.sum, found.rule == "sum")]


def _share(found: Arithmetic) -> None:
    part = found.terms[found.chosen].product
    caption = " / ".join(_rounded(number, 7) for number in (part, found.sum)) + f" = {_rounded(found.computed)}"
    st.html(f'<p class="steps-said steps-quotient">{caption}</p>')


def show_statistics(opened: OpenHead, as_run: OpenHead, step: Step, row: int, notation: str) -> None:
    """Show the softmax's sharpness, beside the model's."""
    sides = {"": opened} if not opened.switched else {", now": opened, ", as the model did": as_run}
    names = {"entropy": "entropy (nats)", "largest": "largest", "gradient": "gradient"}
    head, lines = [_cell(name, "th") for name in ("weights of", *names.values())], list[list[str]]()
    for caption, one in sides.items():
        found = row_statistics(one.weights)
        columns = [getattr(found, name) for name in names]
        token = label_of(opened, "query", row)
        lines.append(
            [
                _cell(in_notation(f"row {token}{caption}", step, notation), "th"),
                *(_number(float(c[row]), False) for c in columns),
            ]
        )
        lines.append(
            [
                _cell(in_notation(f"all rows, mean{caption}", step, notation), "th"),
                *(_number(float(c.mean()), False) for c in columns),
            ]
        )
    _show_table(head, lines, "statistics")
    st.caption(
        "These describe the softmax weights of the numbers above. Entropy: their spread, from 0 (all on one key) to "
        f"{math.log(opened.weights.shape[-1]):.2f} (even over all keys). Gradient: how much the weights respond to a "
        "change of the scores, $\\lVert \\mathrm{diag}(p) - pp^\\top \\rVert$; near 0, learning stops."
    )


def _near(place: int, count: int, around: int = _AROUND) -> range:
    start = max(0, min(place - around, count - 2 * around - 1))
    return range(start, min(count, start + 2 * around + 1))


def _rounded(number: float, digits: int = 5) -> str:
    if math.isinf(number):
        return "−∞" if number < 0 else "∞"
    if 0 < abs(number) < 10 ** (1 - digits):
        return f"{number:.2e}".replace("-", "−")
    # Adding 0 makes −0 into 0.
    return (f"{number + 0.0:.{digits}f}" if abs(number) < 1000 else f"{number:.6g}").replace("-", "−")


def _number(number: float, marked: bool, digits: int = 5, kind: str = "") -> str:
    kinds = " ".join(["steps-number", *["steps-chosen"] * marked, *[kind] * bool(kind)])
    return f'<td class="{kinds}">{_rounded(number, digits)}</td>'


def _cell(text: str, tag: str, kind: str = "") -> str:
    return f'<{tag} class="{kind}">{html.escape(text)}</{tag}>'


def _show_table(head: list[str], lines: list[list[str]], name: str, closing: Sequence[str] = ()) -> None:
    """Draw a keyboard-scrollable table, its head and closing line in sight."""
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    kind = "steps-table" if len(lines) <= _WHOLE else "steps-table steps-long"
    foot = f"<tfoot><tr>{''.join(closing)}</tr></tfoot>" if closing else ""
    st.html(
        f'<div class="{kind}" data-testid="{name}" role="region" aria-label="{name}" tabindex="0"><table>'
        f"<thead><tr>{''.join(head)}</tr></thead><tbody>{body}</tbody>{foot}</table></div>"
    )
