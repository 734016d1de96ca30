"""The shape of the system, kept: which room may import what, what stays out, how long things get."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import TypeCheckError

from attention_viz import masks

ROOT = Path(__file__).parents[1]
PACKAGE = "attention_viz"

# From the operation down to the screen. A room imports from its own row and from those above, never from one below.
ROOMS = (
    ("errors",),
    ("attention", "blocking", "masks", "modules", "shapes"),
    ("projection", "provenance", "tokens", "trace", "storage", "table", "tensors"),
    ("open_head", "rotation", "arithmetic", "step_changes", "steps", "step_formulas"),
    ("given", "readings", "metrics", "merging", "likeness", "search", "attribution"),
    ("changes", "edits", "edit_places", "editing"),
    ("aligning", "comparing"),
    ("models", "from_scratch", "torch_twin", "variants"),
    ("views",),
    ("explorer",),
    ("lesson",),
    ("ui", "cli", "__main__", "__init__"),
    ("app", "pages"),
)
RANK = {room: rank for rank, row in enumerate(ROOMS) for room in row}

# What a place must not know about, the first prefix that fits decides.
NOT_HERE = {
    "attention_viz/ui": (),
    "attention_viz/models": ("plotly", "streamlit"),
    "attention_viz/views": ("transformers", "streamlit"),
    "attention_viz/explorer": ("transformers", "streamlit"),
    "attention_viz/lesson": ("transformers", "streamlit"),
    "attention_viz/cli": ("streamlit",),
    "attention_viz": ("transformers", "plotly", "streamlit"),
    "pages": ("torch", "transformers", "plotly"),
    "app.py": ("torch", "transformers", "plotly"),
}

NOT_IN_THE_SOURCE = {
    "unpickling runs code": r"(import|from)\s+(\w*pickle|dill|joblib)\b|\bpickle\.|torch\.load\(",
    "eval runs code": r"(?<![\w.])eval\(",
    "a model may not bring code": r"trust_remote_code\s*=\s*True",
    "a path of one machine": r"""["'`(\s](/(home|root|Users|work|opt|usr|mnt|srv)/|[A-Z]:\\)""",
}


def sources(*endings: str) -> list[Path]:
    """The files that make up the library and the app, with these endings."""
    places = [ROOT / "app.py", *(ROOT / "pages").rglob("*"), *(ROOT / PACKAGE).rglob("*")]
    return sorted(path for path in places if path.suffix in endings and path.is_file())


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file below the current root imports, wherever in the file, by its absolute name."""
    home = list(path.parent.parts)
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = home[: len(home) - level + 1] if level else []
                base += module.split(".") if module else []
                yield from ((node.lineno, ".".join([*base, alias.name])) for alias in names)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(text)), *_]):
                if name in ("import_module", "__import__"):
                    yield node.lineno, text


def room_of(module: str) -> str | None:
    """The room that an absolute module name leads to; `__init__` is the front door, None is somebody else's package."""
    first, _, rest = module.partition(".")
    if rest == "__version__":  # plain data, which loads nothing
        return None
    if first != PACKAGE:
        return first if first in ROOMS[-1] else None
    second = rest.partition(".")[0]
    return second if second in RANK else "__init__"


def wrong_imports(path: Path) -> list[str]:
    """The imports of one file, given from the root, that its place does not allow."""
    name = path.as_posix()
    here = path.with_suffix("").parts[1 if path.parts[0] == PACKAGE else 0]
    banned = next((packages for prefix, packages in NOT_HERE.items() if name.startswith(prefix)), ())
    wrong = []
    for line, module in imported(path):
        there = room_of(module)
        if module.partition(".")[0] in banned or (there and RANK[there] > RANK.get(here, len(ROOMS))):
            wrong.append(f"{name}:{line} imports {module}")
    return wrong


def test_every_module_has_a_room() -> None:
    modules = {path.stem if path.is_file() else path.name for path in (ROOT / PACKAGE).glob("[!_.]*")}
    homeless = sorted(modules - RANK.keys() - {"py"})
    assert not homeless, f"give these a row in ROOMS, and a line in the table of rooms: {homeless}"


def test_imports_point_upwards_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    files = [path.relative_to(ROOT) for path in sources(".py")]
    assert files
    assert not [wrong for path in files for wrong in wrong_imports(path)]


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("attention_viz/metrics.py", "import plotly.express"),
        ("attention_viz/metrics.py", "from attention_viz import views"),
        ("attention_viz/metrics.py", "from . import views"),
        ("attention_viz/metrics.py", "import attention_viz as av"),
        ("attention_viz/errors.py", "from .attention import attend"),
        ("attention_viz/models/__init__.py", "from ..views import heatmap"),
        ("attention_viz/models/recorder.py", "from ..views.theme import QUERY"),
        ("attention_viz/views/heatmap.py", "import attention_viz.ui.menu"),
        ("attention_viz/views/heatmap.py", "importlib.import_module('transformers')"),
        ("attention_viz/lesson/steps.py", "from streamlit import session_state"),
        ("attention_viz/ui/menu.py", "import app"),
        ("pages/steps.py", "import torch"),
        ("app.py", "from plotly import graph_objects"),
    ],
)
def test_a_planted_import_that_points_down_is_caught(
    place: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"def inside():\n    {line}\n")
    assert len(wrong_imports(path)) == 1


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("attention_viz/metrics.py", "from attention_viz.trace import Trace"),
        ("attention_viz/metrics.py", "from attention_viz import errors, masks"),
        ("attention_viz/models/recorder.py", "from ..attention import attend"),
        ("attention_viz/models/recorder.py", "import transformers"),
        ("attention_viz/explorer/page.py", "from attention_viz.views.theme import QUERY"),
        ("attention_viz/ui/menu.py", "import attention_viz as av"),
        ("app.py", "from attention_viz.ui import menu"),
    ],
)
def test_an_import_that_points_up_is_left_alone(
    place: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line + "\n")
    assert not wrong_imports(path)


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {"streamlit", "plotly", "transformers", "torch"}
    ask = f"import sys, {PACKAGE}; print(*({heavy} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def test_types_and_shapes_in_signatures_are_checked_while_the_tests_run() -> None:
    with pytest.raises(TypeCheckError):
        masks.padding("no ids", padding_id=0)


@pytest.mark.parametrize("reason", NOT_IN_THE_SOURCE)
def test_the_source_keeps_out(reason: str) -> None:
    pattern = re.compile(NOT_IN_THE_SOURCE[reason])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources(".py", ".js", ".mjs", ".html", ".css")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found


def test_no_file_is_longer_than_300_lines() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in sources(".py", ".js", ".mjs", ".css")}
    assert not {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > 300}


def test_no_function_is_longer_than_60_lines() -> None:
    long = []
    for path in sources(".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 60:
                long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not long


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "helpers", "common", "misc"}
    assert not [str(path.relative_to(ROOT)) for path in sources(".py") if path.stem in drawers]
