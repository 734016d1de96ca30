"""What follows from a mask further on, and from the number that stands for "blocked"."""

import math
from dataclasses import replace
from typing import Any

import pandas
import streamlit as st
from torch import Tensor

from attention_viz.edits.effects import moved_output, moved_weight
from attention_viz.operation.blocking import Blocked, block_row
from attention_viz.trace.trace import Trace
from attention_viz.ui.controls.plot import show_picture
from attention_viz.ui.pages.masks.choice import MaskChoice
from attention_viz.ui.pages.masks.words import allowed_of, blocks_more
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.themes import theme_name
from attention_viz.views import changed_heads, changed_outputs, difference

__all__ = ["show_consequences"]

_HEIGHT = 400
_VALUES = {-math.inf: "−∞", -1e9: "−1e9", -1e4: "−1e4"}


def show_consequences(before: Trace, after: Trace, stream: str, layer: int, head: int, choice: MaskChoice) -> None:
    """What the mask changed in this head, in all heads and in what comes out, and the demonstration below."""
    if choice.mask == "drawn" and not choice.cells:
        st.markdown("Nothing is drawn yet. Block a cell, and what changes here and in later layers stands below.")
    elif choice.mask != "none" and blocks_more(before, after):
        st.markdown("##### What changed, here and further on")
        _show_changes(before, after, stream, layer, head)
    _show_demonstration(after, stream, layer, head)


def _show_changes(before: Trace, after: Trace, stream: str, layer: int, head: int) -> None:
    theme = theme_name()
    here, heads, outputs = st.columns([1.25, 1.25, 1])
    with here:
        _chart(difference(before, after, layer, head, stream, theme=theme), "This head: after − before", "difference")
        st.caption(
            "Orange gained weight, blue lost it. What a row may still look at shares what the blocked cells had, so "
            "each row adds up to 0, unless it has nothing left."
        )
    with heads:
        _chart(
            changed_heads(before, after, stream, theme=theme),
            "Share of the weight that moved, by head",
            "changed-heads",
        )
        st.caption(
            "For each token the weight that its cells lost, "
            "$\\sum_j \\max(A^{\\text{before}}_{ij} - A^{\\text{after}}_{ij}, 0)$, on "
            "average over the tokens: 0 is unchanged, 1 is everything elsewhere. Later layers change even where "
            "nothing is blocked, since what they read has changed."
        )
    with outputs:
        _chart(changed_outputs(before, after, theme=theme), "How far each token's output moved", "changed-outputs")
        st.caption(
            "$\\lVert \\text{after} - \\text{before} \\rVert / \\lVert \\text{before} \\rVert$, the length of the "
            "change over the length before, of what the model hands out for each token."
        )
    with st.expander("The same as tables"):
        _show_tables(before, after, stream)


def _show_tables(before: Trace, after: Trace, stream: str) -> None:
    labels = before.query_tokens(before.streams[-1]).written
    outputs = {"token": labels, "output moved": [round(float(one), 6) for one in moved_output(before, after)]}
    heads = moved_weight(before, after, stream).numpy().round(6)
    left, right = st.columns([1, 2])
    left.dataframe(pandas.DataFrame(outputs), key="outputs-table")
    columns = [f"head {number}" for number in range(heads.shape[1])]
    index = [f"layer {number}" for number in range(heads.shape[0])]
    right.dataframe(pandas.DataFrame(heads, columns=columns, index=index), key="heads-table")


def _chart(figure: Any, title: str, key: str) -> None:
    figure.update_layout(title_text=title, height=_HEIGHT)
    show_picture(figure, key, title, tools=True)


def _show_demonstration(after: Trace, stream: str, layer: int, head: int) -> None:
    """The head on the screen, blocked with each number that people write for it."""
    logits = _unmasked(after, stream, layer, head)
    now = allowed_of(after, layer, head, stream)
    row, allowed = _example(now)
    queries, labels = after.query_tokens(stream).written, after.key_tokens(stream).written
    st.markdown("##### Which number blocks: −∞, −1e9 or −1e4?")
    st.markdown(
        plain(
            f"“Blocked” is a number added to the score before the softmax. Below it is added to the scores of "
            f"“{queries[row]}” (row {row}) of this head, once with numbers of some 7 digits (float32) and once of some "
            "3 (float16), and PyTorch's own softmax is taken. The leak is the largest weight that a blocked cell gets "
            "all the same; the pictures above use −∞, and give 0 to a row with nothing left."
        )
    )
    some, nothing = st.columns(2)
    if allowed is not None:
        keys = allowed.nonzero().flatten().tolist()
        names = ", ".join(f"“{labels[key]}”" for key in keys[:4]) + (" …" if len(keys) > 4 else "")
        with some:
            sentence = f"A row that may look at {len(keys)} of {len(allowed)} ({names})"
            made_up = not bool((now[row] == allowed).all())
            st.markdown(
                plain(f"For comparison, as no row above is blocked in part: a{sentence[1:]}" if made_up else sentence)
            )
            st.markdown(_table(block_row(logits[row], allowed)))
    with nothing:
        st.markdown("A row with nothing left to look at")
        st.markdown(_table(block_row(logits[row], logits[row] != logits[row])))


def _unmasked(trace: Trace, stream: str, layer: int, head: int) -> Tensor:
    """What would enter the softmax of a head if nothing were blocked."""
    one = trace.attention(layer, stream).head(head)
    return replace(one, allowed=None).masked.detach().cpu()


def _example(allowed: Tensor) -> tuple[int, Tensor | None]:
    """A row that is blocked in part; where there is none, the first row, with only its first key open."""
    partly = (allowed.any(dim=-1) & ~allowed.all(dim=-1)).nonzero().flatten().tolist()
    if partly:
        row = partly[len(partly) // 2]
        return row, allowed[row]
    if allowed.shape[-1] < 2:
        return 0, None
    only = allowed[0].clone()
    only[:] = False
    only[0] = True
    return 0, only


def _table(results: tuple[Blocked, ...]) -> str:
    """One line a value, one column a precision."""
    by_value = {value: [one for one in results if one.value == value] for value in _VALUES}
    head = "| added | float32 | float16 |\n|---|---|---|\n"
    return head + "\n".join(
        f"| {_VALUES[value]} | {' | '.join(_outcome(one) for one in ones)} |" for value, ones in by_value.items()
    )


def _outcome(one: Blocked) -> str:
    became = "float16 ends at −65,504, so this becomes −∞. " if one.rounded != one.value else ""
    leak = f"{one.leak:.3g}"
    return (
        became
        + {
            "exact": "Leak 0: the row is exact.",
            "leak": f"Leak {leak}: beside so large a number the scores keep some of their digits only.",
            "uniform": f"Leak {leak}: every cell alike, as beside so large a number the scores keep no digit.",
            "ignored": f"Leak {leak}: the weights of no mask at all, since every cell got the same.",
            "not a number": "NaN: 0 ÷ 0 is no number, and it spreads to all that follows.",
        }[one.outcome]
    )
