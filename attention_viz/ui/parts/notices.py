"""Notices behind a button that pushes nothing."""

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui import visit
from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.parts.markdown import plain


@dataclass(frozen=True)
class _Notice:
    words: str
    loud: bool
    short: str
    below: Callable[[str], object] | None


@dataclass
class _NoticeButton:
    place: DeltaGenerator
    button: DeltaGenerator | None = None
    notices: list[_Notice] = field(default_factory=list[_Notice])


@dataclass
class _NoticeRow:
    button: _NoticeButton | None = None


def hold_notices() -> None:
    """Reserve the button's slot in the row, empty without notices."""
    visit.memory(_NoticeRow).button = _NoticeButton(st.container(key="notices-place"))


def tell(words: str, *, loud: bool = False, short: str = "", below: Callable[[str], object] | None = None) -> None:
    """Add a notice, announced to screen readers at once; `short` is for the button."""
    if (button := visit.memory(_NoticeRow).button) is None:
        hold_notices()
        return tell(words, loud=loud, short=short, below=below)
    notice = _Notice(words, loud, short, below)
    if notice.words in [one.words for one in button.notices]:
        return
    button.notices.append(notice)
    _draw(button)


def _draw(button: _NoticeButton) -> None:
    if button.button is None:
        button.button = button.place.empty()
    kind = "loud" if any(one.loud for one in button.notices) else "quiet"
    # Rerun for each new notice: no two widgets of a run may share a key.
    count = len(button.notices)
    with button.button.container(key=f"notices-{kind}-{count}"):
        said = " ".join(one.words for one in button.notices)
        st.html(f'<p class="notices-said" role="status">{html.escape(said)}</p>')
        with st.popover(_label(button.notices), key=f"notices-{count}"):
            for number, one in enumerate(button.notices):
                (st.warning if one.loud else st.caption)(plain(one.words))
                if one.below is not None:
                    one.below(f"notices-{count}-{number}")


def _label(notices: Sequence[_Notice]) -> str:
    """Return "2 notes", "Text cut" or "Text cut · 2 more"; a loud notice names the button first."""
    short = next((one.short for one in sorted(notices, key=lambda one: not one.loud) if one.short), "")
    others = len(notices) - bool(short)
    if short:
        return f"{short} · {others} more" if others else short
    return f"{others} note{'s' * (others != 1)}"


def show_notices(notices: Sequence[str]) -> None:
    """Show notices about the URL, if any."""
    for one in notices:
        tell(one, loud=True, short="URL adjusted")


def show_link_limit(text: str, pronoun: str = "it") -> None:
    """Warn that links leave out a text that is too long."""
    if not fits_link(text):
        st.caption(f"Too long for a link: links leave {pronoun} out.")
