"""Count the files that a sentence passes on its way to the explorer, and a click on its way to the downloads.

Usage: PYTHONPATH=TREE python benchmarks/walk.py prints the numbers of a tree of the project, and the files by name.
"""

import contextlib
import functools
import inspect
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, is_dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

import attention_viz
from benchmarks.report import Benchmark, Result, Table, to_text

__all__ = ["BENCHMARK", "follow"]

_PACKAGE = Path(attention_viz.__file__).parent
# Like none of the app's own sentences, and short enough that nothing cuts it.
_SENTENCE = "A quiet otter carried the lantern over the frozen weir"
# The head that is clicked: no page opens on it.
_LAYER, _HEAD = 4, 11
# How far into a value it is looked whether it carries the sentence or the head, and at how many parts of each.
_DEPTH, _PARTS = 4, 50
# Frames of Python's own that are no functions of ours.
_UNNAMED = {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


# Between a call of ours and Streamlit's function: `session_state.get` and the like.
_BETWEEN = {Mapping.get.__code__.co_filename, contextlib.__file__}


def _has_sentence(_names: "Mapping[Any, Any] | None", value: object) -> bool:
    return isinstance(value, str) and _SENTENCE in value


def _has_head(names: "Mapping[Any, Any] | None", value: object) -> bool:
    if names is not None:
        # By itself it is known where it is put under its name, as Streamlit's session state has it.
        by_name = (names.get("key"), names.get("value")) == ("head", _HEAD)
        return by_name or (names.get("layer"), names.get("head")) == (_LAYER, _HEAD)
    return isinstance(value, list | tuple) and (_LAYER, _HEAD) in pairwise(value[:_PARTS])


def _parts(value: object) -> "tuple[Mapping[Any, Any] | None, list[object]]":
    """Return a value's parts: by name, if they have names, and in order."""
    if isinstance(value, functools.partial):
        return value.keywords, [*value.args, *value.keywords.values()]
    if isinstance(value, dict):
        return value, list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return None, list(value)
    if not isinstance(value, type) and (is_dataclass(value) or type(value).__module__.startswith("attention_viz")):
        names = dict(getattr(value, "__dict__", {}))  # never a property: it may compute
        return names, list(names.values())
    return None, []


def _carries(value: object, has: "Callable[[Mapping[Any, Any] | None, object], bool]", depth: int = _DEPTH) -> bool:
    """Return whether a value is or contains the followed one."""
    names, parts = _parts(value)
    if has(None, value) or (names is not None and has(names, value)):
        return True
    return depth > 0 and any(_carries(part, has, depth - 1) for part in parts[:_PARTS])


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(str(_PACKAGE)) and frame.f_code.co_name not in _UNNAMED


@dataclass
class Way:
    """The functions that the followed value passes, in order.

    Attributes:
        has: whether a value is what is followed, by itself; told its parts' names, too.
        is_end: whether a call of Streamlit's is where the way may end; told the call's arguments and its function.
        end: how many steps there were when the way came to its last end.
    """

    has: "Callable[[Mapping[Any, Any] | None, object], bool]"
    is_end: "Callable[[str, Mapping[str, Any]], bool]"
    steps: list[tuple[str, str]] = field(default_factory=list)
    end: int = 0
    _resumed: set[FrameType] = field(default_factory=set)

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """Trace a call or a return, and record a step if the way passes it."""
        if event not in ("call", "return"):
            return
        if _is_ours(frame):
            self._note_ours(frame, event, argument)
        elif "/streamlit/" in frame.f_code.co_filename:
            self._note_streamlits(frame, event, argument)

    def _note_ours(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
            if frame in self._resumed:
                return
            self._resumed.add(frame)
        if _carries(self._taken(frame) if event == "call" else argument, self.has):
            self._step(frame, event)

    def _note_streamlits(self, frame: FrameType, event: str, argument: object) -> None:
        """Record the package's exchange with Streamlit: widgets and session state."""
        if event == "call" and self.is_end(frame.f_code.co_name, frame.f_locals):
            self.end = len(self.steps)
        caller = frame.f_back
        while caller is not None and caller.f_code.co_filename in _BETWEEN:
            caller = caller.f_back
        if caller is None or not _is_ours(caller):
            return
        taken = self._taken(frame)
        if _carries(taken if event == "call" else argument, self.has) or (
            event == "return" and self.has({**taken, "value": argument}, None)
        ):
            self._step(caller, event)

    @staticmethod
    def _taken(frame: FrameType) -> dict[str, object]:
        """Return a function's arguments and its closure."""
        code, found = frame.f_code, frame.f_locals
        counted = code.co_argcount + code.co_kwonlyargcount
        counted += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        return {name: found[name] for name in (*code.co_varnames[:counted], *code.co_freevars) if name in found}

    def _step(self, frame: FrameType, event: str) -> None:
        code = frame.f_code
        step = str(Path(code.co_filename).relative_to(_PACKAGE.parent)), code.co_qualname
        # A return comes after all calls inside: it is a step only if the function wasn't known to have it.
        if event == "call" or step not in self.steps:
            self.steps.append(step)

    @property
    def visits(self) -> list[tuple[str, str]]:
        """Return the files in order, each with the function that enters it."""
        steps = self.steps[: self.end]
        return [step for at, step in enumerate(steps) if at == 0 or step[0] != steps[at - 1][0]]

    @contextlib.contextmanager
    def followed(self) -> Generator[None]:
        """Follow the app's script inside."""

        def begin(frame: FrameType, event: str, argument: object) -> None:
            # Streamlit's test runs the script in a thread of its own; others compute beside it.
            if threading.current_thread().name == "ScriptRunner.scriptThread":
                sys.setprofile(self.note)
                self.note(frame, event, argument)
            else:
                sys.setprofile(None)

        threading.setprofile(begin)
        try:
            yield
        finally:
            threading.setprofile(None)  # pyright: ignore[reportArgumentType] -- as Python's documentation has it


def _shows_explorer(_function: str, found: Mapping[str, Any]) -> bool:
    return found.get("key") == "explorer" and isinstance(found.get("data"), bytes)


def _offers_download(function: str, _found: Mapping[str, Any]) -> bool:
    return function == "download_button"


def follow() -> tuple[Way, Way]:
    """Type a sentence into Explore's box, and click a head in the picture that comes."""
    app = AppTest.from_file(str(_PACKAGE.parent / "app.py"), default_timeout=300)
    _check(app.run())
    _check(app.run())  # everything is imported, and the model loaded
    typed, clicked = Way(_has_sentence, _shows_explorer), Way(_has_head, _offers_download)
    box = next(one for one in app.text_area if one.key == "text")
    with typed.followed():
        _check(box.set_value(_SENTENCE).run())
    (explorer,) = [one.proto.id for one in app.get("bidi_component") if one.proto.id.endswith("-explorer")]
    choice = {"stream": "encoder", "layer": _LAYER, "head": _HEAD, "serial": 1}
    states = app._tree.get_widget_states()  # pyright: ignore[reportPrivateUsage] -- AppTest can't set a component
    states.widgets.append(WidgetState(id=explorer, json_value=json.dumps({"choice": choice})))
    with clicked.followed():
        _check(app._run(states))  # pyright: ignore[reportPrivateUsage]
    return typed, clicked


def _check(app: AppTest) -> None:
    if app.exception:
        raise RuntimeError(f"the page shows an exception: {app.exception[0].value}")


def run(_quick: bool) -> Result:
    """Follow a sentence and a click."""
    return _phrase(*follow())


def _phrase(typed: Way, clicked: Way) -> Result:
    rows = list[list[str]]()
    for name, way in ((_TYPED, typed), (_CLICKED, clicked)):
        files = {file for file, _ in way.visits}
        in_ui = sum(file.startswith("attention_viz/ui/") for file in files)
        rows.append([name, str(len(files)), str(in_ui), str(len(way.visits) - len(files)), str(way.end)])
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in (_PACKAGE / "ui").rglob("*.py"))
    return Result([Table(_COLUMNS, rows)], [f"`attention_viz/ui` has {lines:,} lines of Python."])


def _files(way: Way) -> Table:
    """Return the files in the order of the way."""
    first, entries = dict(reversed(way.visits)), Counter(file for file, _ in way.visits)
    rows = [[file, str(count), first[file]] for file, count in entries.items()]
    return Table(("file", "entries", "first function"), rows)


def main() -> None:
    """Print the numbers, and each file on both ways."""
    typed, clicked = follow()
    result = _phrase(typed, clicked)
    for table in (*result.tables, _files(typed), _files(clicked)):
        print(f"{to_text(table)}\n")
    print("\n".join(result.remarks))


_TYPED = "A sentence, from the box to the explorer's bytes"
_CLICKED = "A click on a head, from the picture to the downloads"
_COLUMNS = ("way", "files", "of these in ui", "returns to a file", "calls")

BENCHMARK = Benchmark(
    "The way through the code",
    "A test types a sentence on Explore and clicks a head in its picture, in Streamlit's AppTest, and traces every "
    "call. A file of the package is on the way if one of its functions takes or returns the sentence or the head, by "
    "itself or inside a value, or exchanges it with Streamlit. A return to a file enters one that the way had left. "
    "No time is measured.",
    run,
)


if __name__ == "__main__":
    main()
