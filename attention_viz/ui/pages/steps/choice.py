"""What a person chose on the Step by step page, read from the address and written back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import streamlit as st

from attention_viz.ui.parts.notices import notice, whole_number

__all__ = ["PREFIX", "Choice", "begin", "choice", "keep_possible", "still_asked", "told"]

# Before the names of this page's widgets, so that they stay apart from those that all pages share.
PREFIX = "steps-"


@dataclass(frozen=True)
class Choice:
    """Everything that decides what the page shows, besides what all pages share.

    Attributes:
        step: a name in `STEPS`.
        query: which query token is opened, from 0.
        key: which key token.
        dimension: which column of a matrix that has dimensions across.
        scale: one of `SCALES`.
        precision: "model" as it ran, or one of `PRECISIONS`.
        notation: one of `NOTATIONS`.
        variant: one of `VARIANTS`, for our own module.
        all: "yes" for all steps at once.
    """

    step: str = "embeddings"
    query: int = 0
    key: int = 0
    dimension: int = 0
    scale: str = "model"
    precision: str = "model"
    notation: str = "rows"
    variant: str = "multi"
    all: str = "no"

    def address(self, *, own: bool) -> dict[str, str]:
        """As parameters of the address; the variant only where it is a choice."""
        names = [name for name in self.__dataclass_fields__ if own or name != "variant"]
        return {name: str(getattr(self, name)) for name in names}


def begin(parameters: Mapping[str, str], *, again: bool) -> None:
    """At a visitor's first run, hold what the address asks for until it is known what is possible.

    Args:
        parameters: the address's, as anybody may have typed them.
        again: whether to ask the address though it isn't the first run, as after Back or Forward.
    """
    if again or f"{PREFIX}asked" not in st.session_state:
        st.session_state.pop(f"{PREFIX}first", None)
        asked = {name: parameters[name] for name in Choice.__dataclass_fields__ if name in parameters}
        st.session_state[f"{PREFIX}asked"], st.session_state[f"{PREFIX}notices"] = asked, []
        for name, field in Choice.__dataclass_fields__.items():
            st.session_state[PREFIX + name] = field.default


def keep_possible(
    possible: Mapping[str, Sequence[str] | range],
    as_the_model: Mapping[str, str] = MappingProxyType({}),
    wording: Sequence[str] = (),
) -> None:
    """Bring each choice within what this trace has; of those that the address asked for, say what can't be had.

    Args:
        possible: by name, what may be chosen; the first is taken instead of what isn't there.
        as_the_model: by name, what an address may say for "model".
        wording: what the options are called, as far as that depends on the trace.
    """
    asked: dict[str, str] = st.session_state[f"{PREFIX}asked"]
    for name, options in possible.items():
        key = PREFIX + name
        if name in asked:
            given = asked.pop(name)
            _take(name, "model" if given == as_the_model.get(name) else given, options)
        if st.session_state[key] not in options:
            # Another text may be shorter: the nearest token is kept. Of names, the first is the model's own way.
            near = isinstance(options, range) and isinstance(st.session_state[key], int)
            st.session_state[key] = min(st.session_state[key], options[-1]) if near else options[0]
    _keep_meaning(possible, (*as_the_model.values(), *wording))


def _keep_meaning(possible: Mapping[str, Sequence[str] | range], wording: tuple[str, ...]) -> None:
    """Say again what is chosen where options are called otherwise than before.

    The browser holds a choice by its label, and another trace may have the same label for something else, such as
    "√d_k" for the model's own scale or for another.
    """
    if wording and st.session_state.get(f"{PREFIX}wording") != wording:
        st.session_state[f"{PREFIX}wording"] = wording
        for name in possible:
            st.session_state[PREFIX + name] = st.session_state[PREFIX + name]


def choice() -> Choice:
    """What is chosen now."""
    return Choice(**{name: st.session_state[PREFIX + name] for name in Choice.__dataclass_fields__})


def still_asked() -> dict[str, str]:
    """What the address asked for and could not be answered yet, since nothing could be drawn."""
    return dict(st.session_state[f"{PREFIX}asked"])


def told() -> list[str]:
    """What was wrong with the address, until the visitor chooses something else."""
    notices: list[str] = st.session_state[f"{PREFIX}notices"]
    if notices and st.session_state.setdefault(f"{PREFIX}first", choice()) != choice():
        notices.clear()
    return notices


def _take(name: str, given: str, options: Sequence[str] | range) -> None:
    whole = isinstance(options, range)
    wanted = whole_number(given) if whole else given
    if wanted in options:
        st.session_state[PREFIX + name] = wanted
        return
    allowed = f"0 to {options[-1]}" if whole else ", ".join(str(option) for option in options)
    instead = options[0] if st.session_state[PREFIX + name] not in options else st.session_state[PREFIX + name]
    st.session_state[f"{PREFIX}notices"].append(notice(name, given, allowed, str(instead)))
