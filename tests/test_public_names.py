"""The names that `import attention_viz as av` gives: all load on first use, and type checkers read the same list."""

import ast
import importlib
from pathlib import Path

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


def test_a_function_called_as_its_room_stays_a_function() -> None:
    importlib.import_module("attention_viz.scratch.model")
    assert callable(attention_viz.scratch)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No attention_viz attribute nothing"):
        attention_viz.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(attention_viz, "nothing")
