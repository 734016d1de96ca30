"""What is chosen on a page, held for a visit: from the address at first and after Back or Forward, else by widgets."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attention_viz.ui.address.codec import ChoiceT, Parameter, parameters, read, write

__all__ = ["Choices", "went_through_history"]


def went_through_history() -> bool:
    """Whether the page runs because of Back or Forward: then what is chosen is what the address says."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


@dataclass
class _Visit:
    """What is remembered of a visitor beside what is chosen.

    Attributes:
        asked: what the address asks for, as far as it isn't answered yet.
        open: the parameters that the address was not asked for yet.
        again: whether it is asked after Back or Forward.
        last: what was chosen when the page last ran.
        known: what the page knew when it last answered.
        first: what was chosen when it had answered.
        notices: what can't be had of what was asked for.
        labels: what options were called.
        told: what alone the address tells until something is chosen; None for all.
    """

    asked: dict[str, str]
    open: set[str]
    again: bool
    last: dict[str, Any]
    known: object = None
    first: Any = None
    notices: list[str] = field(default_factory=list[str])
    labels: tuple[str, ...] = ()
    told: Collection[str] | None = None


class Choices(Generic[ChoiceT]):
    """What a visitor has chosen of the parameters of one page, each held under the key of its widget.

    At its top a page calls `begin`, which remembers what the address asks for. Once it knows what there is, it calls
    `settle`, which answers. `current` tells what is chosen, `notices` what couldn't be had, and `address` what a link
    has to say.
    """

    def __init__(self, default: ChoiceT, prefix: str, visit: str = "") -> None:
        """Name what a page keeps in the address.

        Args:
            default: what holds at first: a frozen dataclass of parameters.
            prefix: stands before the parameters' names in the keys of their widgets.
            visit: names what is remembered of a visit, where no prefix does.
        """
        self.default = default
        self.prefix = prefix
        self._visit = f"{prefix or visit}-visit"

    @property
    def _parameters(self) -> dict[str, Parameter]:
        return {one.name: one for one in parameters(type(self.default))}

    @property
    def unseen(self) -> bool:
        """Whether this is a visitor who has not been here before."""
        return self._visit not in st.session_state

    def key(self, name: str) -> str:
        """The key of the widget that holds a parameter."""
        return self.prefix + name

    def begin(self, address: Mapping[str, str] | None = None) -> bool:
        """Remember what the address asks for, at a visitor's first run and after Back or Forward.

        Args:
            address: its parameters; by default those of the page.

        Returns:
            Whether this is such a run.
        """
        again = not self.unseen
        # A picker may hold words for its number, where a page runs again before the browser knows its new options.
        last = _values(self.current()) if again else _values(self.default)
        self.set(**last)
        if again and not went_through_history():
            self._remembered.last = last
            return False
        asked = st.query_params.to_dict() if address is None else dict(address)
        asked = {name: text for name, text in asked.items() if name in self._parameters}
        st.session_state[self._visit] = _Visit(asked, set(self._parameters), again, last)
        return True

    def settle(
        self,
        known: object = None,
        *,
        default: ChoiceT | None = None,
        only: Collection[str] | None = None,
        labels: Sequence[str] = (),
    ) -> ChoiceT:
        """Answer what the address asks for, and bring everything within what there is now.

        Args:
            known: what the page knows that says what is allowed, such as a state or a trace.
            default: what holds where the address says nothing; by default what holds at first.
            only: the parameters that can be answered yet; by default all.
            labels: what options are called, where that depends on what is shown.
        """
        visit, names = self._remembered, self._parameters.keys() if only is None else set(only)
        visit.known, now = known, visit.open.intersection(names)
        chosen = self.current()
        if now:
            chosen, notices = self._answered(chosen, default or self.default, known, now)
            visit.notices += notices
        chosen, _ = read(chosen, {}, known, only=names, last=visit.last)
        # A browser holds a choice by its label, which may now belong to another option.
        self._hold(_values(chosen), afresh=bool(labels) and tuple(labels) != visit.labels)
        visit.labels, visit.last = tuple(labels) or visit.labels, _values(chosen)
        if now:
            visit.first = chosen
        return chosen

    def current(self) -> ChoiceT:
        """What is chosen now; what has no widget at the moment keeps its last value."""
        last: dict[str, Any] = {} if self.unseen else self._remembered.last
        values = {name: self._widget_value(one, last.get(name, one.default)) for name, one in self._parameters.items()}
        return replace(self.default, **values)

    def set(self, **values: Any) -> None:
        """Choose something else, before its widget is drawn; by the names of the parameters."""
        self._hold(values, afresh=False)

    def set_afresh(self, **values: Any) -> None:
        """Choose again, though it may be chosen already: its label may now belong to another option."""
        self._hold(values, afresh=True)

    def _hold(self, values: Mapping[str, Any], *, afresh: bool) -> None:
        for name, value in values.items():
            option = self._parameters[name].kind.to_widget(value)
            if afresh or self.key(name) not in st.session_state or st.session_state[self.key(name)] != option:
                st.session_state[self.key(name)] = option

    @property
    def asking(self) -> bool:
        """Whether the address is still to be answered, or a part of it."""
        return bool(self._remembered.open)

    @property
    def untouched(self) -> bool:
        """Whether nothing was chosen since the address was taken."""
        return self.current() == self._remembered.first

    def adjust(self, notices: Sequence[str] = (), **values: Any) -> None:
        """Bring something within what there turned out to be, which is no choice of the visitor's.

        Args:
            notices: what to say of it, until the visitor chooses something else.
            values: by the names of the parameters.
        """
        untouched = self.untouched
        self.set(**values)
        # Another page may come before this one runs again.
        self._remembered.last = _values(self.current())
        if untouched or notices:
            self._remembered.first = self.current()
            self._remembered.notices = [*(self._remembered.notices if untouched else ()), *notices]

    def restore(self) -> None:
        """Choose again what was chosen when the page last ran, also where that seems to be chosen still."""
        self._hold(self._remembered.last, afresh=True)

    def notices(self) -> list[str]:
        """What was wrong with the address, until the visitor chooses something else."""
        visit = self._remembered
        if visit.notices and self.current() != visit.first:
            visit.notices = []
        return visit.notices

    def address(self) -> dict[str, str]:
        """The parameters that reproduce what is chosen, and those that could not be answered yet."""
        visit = self._remembered
        written = write(self.current(), visit.known)
        if visit.told is not None and self.untouched:
            written = {name: text for name, text in written.items() if name in visit.told}
        return written | visit.asked

    def arrived(self, *names: str) -> None:
        """Leave the address as the page before wrote it, until something is chosen.

        Another address of the same page would be one more step of Back, on which one stays where one is.

        Args:
            names: the parameters that the page before wrote.
        """
        self._remembered.told = names

    def asked(self, name: str) -> str | None:
        """What the address asks for of a parameter, as long as that is not answered."""
        return self._remembered.asked.get(name)

    @property
    def _remembered(self) -> _Visit:
        return st.session_state[self._visit]

    def _widget_value(self, one: Parameter, otherwise: Any) -> Any:
        """What the widget holds, where that is a value at all."""
        option = one.kind.from_widget(st.session_state.get(self.key(one.name), otherwise))
        wanted = one.kind.type if one.default is None else type(one.default)
        fitting = isinstance(option, wanted) or (option is None and one.default is None)
        return option if fitting else otherwise

    def _answered(
        self, chosen: ChoiceT, default: ChoiceT, known: object, now: Collection[str]
    ) -> tuple[ChoiceT, list[str]]:
        """What is chosen, with those parameters as the address asks for them."""
        visit = self._remembered
        asked = {name: visit.asked.pop(name) for name in now if name in visit.asked}
        visit.open.difference_update(now)
        start = replace(chosen, **{name: getattr(default, name) for name in now})
        found, notices = read(start, asked, known, only=now)
        if visit.again:
            # What an address leaves out stands for the default, or no link could carry it, or nothing depends on it.
            unchanged = [one for name, one in self._parameters.items() if name in now and name not in asked]
            unchanged = [
                one for one in unchanged if not one.applies(found, known) or _too_long(one, getattr(chosen, one.name))
            ]
            found = replace(found, **{one.name: getattr(chosen, one.name) for one in unchanged})
        return found, notices


def _values(choice: Any) -> dict[str, Any]:
    return {one.name: getattr(choice, one.name) for one in parameters(type(choice))}


def _too_long(one: Parameter, value: Any) -> bool:
    return value is not None and one.kind.write(value) is None
