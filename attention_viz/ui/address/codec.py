"""URL parameters as declared dataclass fields."""

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from attention_viz.ui.address.kinds import ParameterKind


@runtime_checkable
class Parameters(Protocol):
    """A frozen dataclass of `parameter` fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


ChoiceT = TypeVar("ChoiceT", bound=Parameters)


@dataclass(frozen=True)
class Older:
    """A parameter's older name."""

    name: str
    meant: Callable[[Mapping[str, str]], bool] = lambda address: True


@dataclass(frozen=True)
class Parameter:
    """A value that a page keeps in the URL.

    Attributes:
        applies: whether anything depends on it; if not, links leave it out.
        brief: whether links leave its default out, too.
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
    """Declare a dataclass field as a URL parameter."""
    declared = functools.partial(
        Parameter, default=default, kind=kind, means=means, applies=applies, brief=brief, older=older
    )
    return field(default=default, metadata={"parameter": declared})


@functools.cache
def parameters(choice: type[Any]) -> tuple[Parameter, ...]:
    """Return a page's URL parameters in writing order."""
    return tuple(one.metadata["parameter"](one.name) for one in fields(choice))


def modernised(choices: Collection[type[Any]], address: Mapping[str, str]) -> dict[str, str]:
    """Rename an older URL's parameters."""
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
    """Return a URL's values, and a sentence for each impossible part.

    Args:
        last: replacements for invalid values.
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
    return tuple(sorted(parameters(choice), key=lambda one: callable(one.kind.options)))


def write(choice: Parameters, known: object = None) -> dict[str, str]:
    """Return the parameters that apply and fit into links."""
    written: dict[str, str] = {}
    for one in parameters(type(choice)):
        value = getattr(choice, one.name)
        if value is None or not one.applies(choice, known) or (one.brief and value == one.default):
            continue
        text = one.kind.write(value)
        if text is not None:
            written[one.name] = text
    return written
