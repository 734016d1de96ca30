"""The names that `import attention_viz as av` gives: all load on first use, and type checkers read the same list."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import attention_viz

PACKAGE = Path(attention_viz.__file__).parent
STUBS = sorted(PACKAGE.rglob("__init__.pyi"))


def homes(stub: Path) -> dict[str, str]:
    """The names that a stub lists, and the module below its package that each comes from; "" for a module itself."""
    found: dict[str, str] = {}
    for line in ast.parse(stub.read_text("utf-8")).body:
        if isinstance(line, ast.ImportFrom):
            assert line.level == 1
            for alias in line.names:
                assert alias.asname == alias.name, f"{alias.name} is not marked as public by `as {alias.name}`"
                found[alias.name] = line.module or ""
    return found


def package_of(stub: Path) -> str:
    return ".".join(["attention_viz", *stub.parent.relative_to(PACKAGE).parts])


PUBLIC = [(package_of(stub), name, home) for stub in STUBS for name, home in homes(stub).items()]


def test_all_lists_each_name_once() -> None:
    names = homes(PACKAGE / "__init__.pyi")
    assert sorted(attention_viz.__all__) == sorted([*names, "__version__"])
    assert set(dir(attention_viz)) <= set(attention_viz.__all__)


@pytest.mark.parametrize(("package", "name", "home"), PUBLIC, ids=lambda part: part)
def test_a_public_name_resolves_to_what_its_home_calls_public(package: str, name: str, home: str) -> None:
    value = getattr(importlib.import_module(package), name)
    if not home:
        assert value is importlib.import_module(f"{package}.{name}")
        return
    module = importlib.import_module(f"{package}.{home}")
    assert value is getattr(module, name)
    assert name in module.__all__
    assert value.__doc__ or isinstance(value, dict)


def calls_of(name: str, value: object) -> Iterator[tuple[str, Callable[..., object]]]:
    """Every function that a public name stands for: itself, a class's methods and properties, a module's functions."""
    if inspect.isfunction(value):
        yield name, value
    if inspect.isclass(value):
        for part in (one for one in dir(value) if not one.startswith("_")):
            found = inspect.getattr_static(value, part)
            found = found.__func__ if isinstance(found, classmethod | staticmethod) else found
            found = found.fget if isinstance(found, property) else found
            if inspect.isfunction(found) and found.__module__.startswith("attention_viz"):
                yield f"{name}.{part}", found
    if inspect.ismodule(value):
        for part in getattr(value, "__all__", ()):
            if not inspect.ismodule(getattr(value, part)):
                yield from calls_of(f"{name}.{part}", getattr(value, part))


def own_types(hint: object, module: ModuleType) -> set[type]:
    """The package's own classes in an annotation, however deep, also where it is written as text."""
    if isinstance(hint, str):
        where = {**vars(module), **typed_only(module)}
        return {typing.cast("type", where[word]) for word in re.findall(r"\w+", hint) if is_own(where.get(word))}
    if is_own(hint):
        return {typing.cast("type", hint)}
    return {one for part in typing.get_args(hint) for one in own_types(part, module)}


def is_own(value: object) -> bool:
    return inspect.isclass(value) and value.__module__.startswith("attention_viz")


def typed_only(module: ModuleType) -> dict[str, object]:
    """The package's own names that a module imports for type checkers only."""
    found: dict[str, object] = {}
    for line in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("attention_viz") and not line.level:
            home = importlib.import_module(line.module or "")
            found |= {alias.asname or alias.name: getattr(home, alias.name, None) for alias in line.names}
    return found


# What the rooms of the package hand to each other, and nobody outside asks for.
INSIDE = {
    f"{home}AttentionModel.{name}"
    for home in ("attention_viz.", "attention_viz.models.")
    for name in ("anatomy", "layers", "reader", "runner")
} | {"attention_viz.Scratch.layers"}
CALLS = {
    label: call
    for package, name, _ in PUBLIC
    for label, call in calls_of(f"{package}.{name}", getattr(importlib.import_module(package), name))
}
RETURNED = {
    label: own_types(inspect.get_annotations(call).get("return"), importlib.import_module(call.__module__))
    for label, call in CALLS.items()
    if label not in INSIDE
}
LISTED = {
    f"{package}.{name}": {type(value) for value in getattr(importlib.import_module(package), name).values()}
    for package, name, _ in PUBLIC
    if package == "attention_viz" and isinstance(getattr(attention_viz, name), dict)
}


def test_returned_types_are_read_however_they_are_written() -> None:
    assert RETURNED["attention_viz.load"] == {attention_viz.AttentionModel, attention_viz.Scratch}
    assert RETURNED["attention_viz.AttentionModel.generate"] == {attention_viz.Trace}
    assert RETURNED["attention_viz.AttentionModel.projections"] == {attention_viz.Projection}
    assert RETURNED["attention_viz.masks.recognise"] == {attention_viz.Pattern}
    assert LISTED["attention_viz.METRICS"] == {attention_viz.Metric}
    assert own_types("tuple[Fit, ...]", importlib.import_module("attention_viz.serving.runs")) == {attention_viz.Fit}


def test_every_type_that_a_call_returns_can_be_imported_from_the_top() -> None:
    missing = {
        f"{name} has {one.__module__}.{one.__name__}"
        for name, types in (RETURNED | LISTED).items()
        for one in types
        if is_own(one) and getattr(attention_viz, one.__name__, None) is not one
    }
    assert not missing


def test_every_type_that_a_call_returns_is_in_the_documents() -> None:
    text = (PACKAGE.parent / "docs" / "python.md").read_text("utf-8")
    names = {one.__name__ for types in (RETURNED | LISTED).values() for one in types if is_own(one)}
    assert not {name for name in names if f"`{name}`" not in text and f"`av.{name}`" not in text}


ROOM = """
import {first}
import attention_viz as av
from attention_viz.{name}.{module} import {inside}
from attention_viz import {name}
assert {name} is av.{name} and callable(av.{name}), av.{name}
import attention_viz.{name}
import sys
assert callable(attention_viz.{name}) and sys.modules["attention_viz.{name}"].__path__
"""


@pytest.mark.parametrize("name, module, inside", [("scratch", "model", "Scratch"), ("steps", "head", "open_head")])
@pytest.mark.parametrize("first", ["attention_viz", "attention_viz.{name}", "attention_viz.{name}.{module}"])
def test_a_function_called_as_its_room_stays_a_function(name: str, module: str, inside: str, first: str) -> None:
    first = first.format(name=name, module=module)
    code = ROOM.format(first=first, name=name, module=module, inside=inside)
    subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, check=True, timeout=120)


def test_a_room_that_is_public_is_the_module() -> None:
    assert attention_viz.errors is importlib.import_module("attention_viz.errors")
    assert attention_viz.views is importlib.import_module("attention_viz.views")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No attention_viz attribute nothing"):
        attention_viz.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(attention_viz, "nothing")
