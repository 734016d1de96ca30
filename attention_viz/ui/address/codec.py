"""Parameters of an address: declared once, as the fields of a frozen dataclass, then read and written for all pages."""

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from attention_viz.ui.address.kinds import ParameterKind

__all__ = ["ChoiceT", "Older", "Parameter", "Parameters", "modernised", "parameter", "parameters", "read", "write"]


@runtime_checkable
class Parameters(Protocol):
    """A frozen dataclass whose fields are declared with `parameter`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


ChoiceT = TypeVar("ChoiceT", bound=Parameters)


@dataclass(frozen=True)
class Older:
    """The name that links of before have for a parameter.

    Attributes:
        meant: whether an address means this parameter by it; by default always.
    """

    name: str
    meant: Callable[[Mapping[str, str]], bool] = lambda address: True


@dataclass(frozen=True)
class Parameter:
    """One thing that a page keeps in the address.

    Attributes:
        name: its name there, and that of the field.
        default: what holds where an address says nothing.
        kind: how it is written, read, and brought within what is allowed.
        means: what it is, as the documents say it.
        applies: whether anything depends on it, given what is chosen and what the page knows; else it isn't written.
        brief: whether the default isn't written, either.
        older: its name in links of before.
    """

    name: str
    default: Any
    kind: ParameterKind
    means: str
    applies: Callable[[Any, Any], bool]
    brief: bool
    older: Older | None


def parameter(
    default: Any,
    kind: ParameterKind,
    means: str,
    *,
    applies: Callable[[Any, Any], bool] = lambda choice, known: True,
    brief: bool = False,
    older: Older | None = None,
) -> Any:
    """Declare a field of a frozen dataclass as a parameter of the address; the arguments are `Parameter`'s."""
    declared = functools.partial(
        Parameter, default=default, kind=kind, means=means, applies=applies, brief=brief, older=older
    )
    return field(default=default, metadata={"parameter": declared})


@functools.cache
def parameters(choice: type[Any]) -> tuple[Parameter, ...]:
    """What a page keeps in the address, in the order in which it is written."""
    return tuple(one.metadata["parameter"](one.name) for one in fields(choice))


def modernised(choices: Collection[type[Any]], address: Mapping[str, str]) -> dict[str, str]:
    """An address with the names of today, whichever version wrote it."""
    found = dict(address)
    for one in (one for choice in choices for one in parameters(choice)):
        older = one.older
        if older is not None and older.name in address and one.name not in address and older.meant(address):
            found[one.name] = found.pop(older.name)
    return found


def read(
    default: ChoiceT,
    address: Mapping[str, str],
    known: object = None,
    *,
    only: Collection[str] | None = None,
    last: Mapping[str, Any] | None = None,
) -> tuple[ChoiceT, list[str]]:
    """What an address asks for, and a plain sentence for each part of it that can't be had.

    Args:
        known: what the page knows that says what is allowed, such as a state or a trace.
        only: the parameters to read; by default all.
        last: by name, what to take instead of a value that is none; by default the parameter's own default.
    """
    choice, notices = default, dict[str, list[str]]()
    for one in _in_turn(type(default)):
        if only is not None and one.name not in only:
            continue
        allowed = one.kind.allowed(choice, known)
        value = one.kind.within(getattr(choice, one.name), allowed, (last or {}).get(one.name, one.default))
        if one.name in address:
            asked = one.kind.meant(address[one.name], known)
            value, notices[one.name] = one.kind.read(one.name, asked, value, allowed)
        choice = replace(choice, **{one.name: value})
    return choice, [sentence for one in parameters(type(default)) for sentence in notices.get(one.name, ())]


@functools.cache
def _in_turn(choice: type[Any]) -> tuple[Parameter, ...]:
    """The parameters in the order in which they are read: what others depend on comes first."""
    return tuple(sorted(parameters(choice), key=lambda one: one.kind.depends))


def write(choice: Parameters, known: object = None) -> dict[str, str]:
    """The parameters that reproduce a choice: those that something depends on, and that a link can carry."""
    written: dict[str, str] = {}
    for one in parameters(type(choice)):
        value = getattr(choice, one.name)
        if value is None or not one.applies(choice, known) or (one.brief and value == one.default):
            continue
        text = one.kind.write(value)
        if text is not None:
            written[one.name] = text
    return written
