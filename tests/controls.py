"""What a page lets people choose, read from its code: the labels of its widgets, by the modules that it is made of."""

import ast
from functools import cache
from pathlib import Path

from attention_viz.edits.change import EditKind
from attention_viz.edits.changes import EDITS

__all__ = ["asked_of", "labels", "modules", "strings"]

_UI = Path(__file__).parents[1] / "attention_viz" / "ui"

# What makes a widget, and which of its arguments is the label.
_WIDGETS = dict.fromkeys(
    (
        *("button", "checkbox", "download_button", "expander", "file_uploader", "form_submit_button", "multiselect"),
        *("number_input", "popover", "radio", "segmented_control", "select_slider", "selectbox", "slider"),
        *(
            "text_area",
            "text_input",
            "toggle",
            "text_box",
            "_line",
            "_pick_token",
            "_select",
            "_button",
            "file_button",
            "show_switch",
            "switch",
        ),
    ),
    0,
) | {"_switch": 1, "_where": 1, "show": 1, "draft": 1, "_setting": 1}


@cache
def modules(entry: str) -> frozenset[str]:
    """A module of `attention_viz.ui`, as "pages.heads.page", and all of that room that it imports, directly or not."""
    found, todo = set[str](), [entry]
    while todo:
        name = todo.pop()
        if name not in found and _path(name).exists():
            found.add(name)
            todo += [one for node in ast.walk(_tree(name)) for one in _imported(node)]
    return frozenset(found)


def labels(names: frozenset[str]) -> set[str]:
    """The labels of the widgets in some modules; of one that is put together, the part before what varies."""
    return {label for name in names for label in _labels(_tree(name), {}) if any(map(str.isalnum, label))}


def strings(names: frozenset[str]) -> set[str]:
    """Every piece of text in some modules, and what changes ask for where a page lets people choose one."""
    asked = {text for entry in EDITS.values() for text in asked_of(entry)} if "controls.edits" in names else set[str]()
    return asked | {
        text
        for name in names
        for node in ast.walk(_tree(name))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for text in (node.value, _fixed(node.value))
    }


def _fixed(sentence: str) -> str:
    """The part before the first {name}."""
    return sentence.partition("{")[0].strip()


def asked_of(entry: EditKind) -> list[str]:
    """The labels of the widgets that a kind of change asks for."""
    return [value for value in vars(entry.asks).values() if isinstance(value, str)]


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(_path(name).read_text("utf-8"))


def _path(name: str) -> Path:
    return _UI / f"{name.replace('.', '/')}.py"


def _imported(node: ast.AST) -> list[str]:
    if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("attention_viz.ui"):
        return []
    inside = (node.module or "").removeprefix("attention_viz.ui").removeprefix(".")
    return [inside, *(f"{inside}.{one.name}".lstrip(".") for one in node.names)]


def _labels(node: ast.AST, known: dict[str, list[str]]) -> list[str]:
    """Of a widget below a node; `known` are the values that a loop over written-out rows gives a name."""
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple | ast.List):
        known = known | _looped(node.target, node.iter.elts)
    found = _label(node, known) if isinstance(node, ast.Call) else []
    return found + [one for child in ast.iter_child_nodes(node) for one in _labels(child, known)]


def _looped(target: ast.expr, rows: list[ast.expr]) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    if isinstance(target, ast.Tuple):
        for place, name in enumerate(target.elts):
            cells = [row.elts[place] for row in rows if isinstance(row, ast.Tuple) and len(row.elts) > place]
            if isinstance(name, ast.Name):
                texts = [cell.value for cell in cells if isinstance(cell, ast.Constant) and isinstance(cell.value, str)]
                found[name.id] = texts
    return found


def _label(call: ast.Call, known: dict[str, list[str]]) -> list[str]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in _WIDGETS or len(call.args) <= _WIDGETS[name]:
        return []
    label = call.args[_WIDGETS[name]]
    if isinstance(label, ast.Call) and getattr(label.func, "id", "") == "translate":
        label = label.args[-1]  # the English sentence
    if isinstance(label, ast.Constant) and isinstance(label.value, str):
        return [_fixed(label.value)]
    if isinstance(label, ast.Name):
        return known.get(label.id, [])
    if isinstance(label, ast.JoinedStr) and isinstance(label.values[0], ast.Constant):
        return [str(label.values[0].value).strip()]
    return []
