import ast
import importlib
from pathlib import Path

import pytest

import attention_viz

SOURCE = ast.parse(Path(attention_viz.__file__).read_text())
HOMES: dict[str, str | None] = attention_viz._HOMES


def written_for_type_checkers() -> dict[str, str | None]:
    """The names that the TYPE_CHECKING block imports, and from where; None for a module that is itself the name."""
    block = next(node for node in SOURCE.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    homes: dict[str, str | None] = {}
    for line in block.body:
        assert isinstance(line, ast.ImportFrom) and line.module
        for alias in line.names:
            assert alias.asname == alias.name, f"{alias.name} is not marked as public by `as {alias.name}`"
            homes[alias.name] = line.module.partition(".")[2] or None
    return homes


def test_what_type_checkers_see_is_what_loads() -> None:
    assert written_for_type_checkers() == HOMES


def test_all_lists_each_name_once() -> None:
    assert sorted(attention_viz.__all__) == sorted([*HOMES, "__version__"])
    assert dir(attention_viz) == sorted(attention_viz.__all__)


@pytest.mark.parametrize("name", HOMES)
def test_a_public_name_resolves_to_what_its_home_calls_public(name: str) -> None:
    home = importlib.import_module(f"attention_viz.{HOMES[name] or name}")
    value = getattr(attention_viz, name)
    assert value is (home if HOMES[name] is None else getattr(home, name))
    assert HOMES[name] is None or name in home.__all__
    assert value.__doc__ or isinstance(value, dict)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'attention_viz' has no attribute 'nothing'"):
        attention_viz.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(attention_viz, "nothing")
