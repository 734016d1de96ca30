"""Parts of an address that can't be had: recognised, and told in plain sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import streamlit as st

from attention_viz.ui.parts.markdown import plain

__all__ = ["notice", "tell_notices", "whole_number", "with_number"]


@runtime_checkable
class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


_Chosen = TypeVar("_Chosen", bound=_Dataclass)


def notice(name: str, given: str, allowed: str, instead: str) -> str:
    """What to say of a part of the address that can't be had."""
    short = given if len(given) <= 40 else given[:39] + "…"
    return f"The address asks for {name} “{short}”. Allowed here: {allowed}. Shown instead: {instead}."


def whole_number(given: str) -> int:
    """The number that somebody wrote in plain digits; −1 for anything else: int() also takes "１２", "1_0", " 3 "."""
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 7 else -1


def with_number(
    chosen: _Chosen, name: str, parameters: Mapping[str, str], low: int, high: int, notices: list[str]
) -> _Chosen:
    """What was chosen with the number that the address gives for one of its fields; a notice where it can't be had.

    Args:
        chosen: a frozen dataclass whose field of that name is a number, or None for all.
        name: of the field and of the address's parameter.
        parameters: the address's, as anybody may have typed them.
        low: the smallest number allowed.
        high: the largest.
        notices: to which a notice is added.
    """
    given = parameters.get(name)
    if given is None:
        return chosen
    number = whole_number(given)
    if low <= number <= high:
        return replace(chosen, **{name: number})
    instead = getattr(chosen, name)
    notices.append(notice(name, given, f"{low} to {high}", "all" if instead is None else str(instead)))
    return chosen


def tell_notices(notices: Sequence[str]) -> None:
    """Show what was wrong with the address, where anything was."""
    if notices:
        st.warning("\n\n".join(plain(one) for one in notices))
