"""The shape of the system, kept: which room may import what, what stays out, how long things get."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import TypeCheckError

from attention_viz.operation import masks
from tests.conftest import SHAPED

ROOT = Path(__file__).parents[1]
PACKAGE = "attention_viz"

# One row a room, from the ground to the roof: a room may use its own row and those above it, never one below.
# With it, the packages that it does not know.
ROOMS: dict[str, tuple[str, ...]] = {
    "errors": ("torch", "transformers", "plotly", "streamlit"),
    "operation": ("transformers", "plotly", "streamlit"),
    "trace": ("transformers", "plotly", "streamlit"),
    "edits": ("transformers", "plotly", "streamlit"),
    "analysis": ("transformers", "plotly", "streamlit"),
    "steps": ("transformers", "plotly", "streamlit"),
    "protocol": ("transformers", "plotly", "streamlit"),
    "scratch": ("transformers", "plotly", "streamlit"),
    "sources": ("plotly", "streamlit"),
    "inputs": ("plotly", "streamlit"),
    "recording": ("plotly", "streamlit"),
    "models": ("plotly", "streamlit"),
    "circuits": ("plotly", "streamlit"),
    "views": ("transformers", "streamlit"),
    "explorer": ("transformers", "streamlit"),
    "corpus": ("streamlit",),
    "lesson": ("transformers", "streamlit"),
    "serving": ("plotly", "streamlit"),
    "streamlit": (),
    "ui": (),
    "cli": ("streamlit",),
    "pages": ("torch", "transformers", "plotly"),
}
RANK = {room: rank for rank, room in enumerate(ROOMS)}
# The front door: the public names, and `python -m attention_viz`.
AT_THE_ROOT = {"__init__", "__main__"}
CROWDED = 20

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


@functools.cache
def parsed(text: str) -> ast.Module:
    """A file's code, read once for all tests."""
    return ast.parse(text)


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file below the current root imports, wherever in the file, by its absolute name."""
    home = list(path.parent.parts)
    for node in ast.walk(parsed(path.read_text())):
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
    """The room that an absolute module name leads to; None is somebody else's package, "__init__" the front door."""
    first, _, rest = module.partition(".")
    if rest == "__version__":  # plain data, which loads nothing
        return None
    if first != PACKAGE:
        return "pages" if first in ("pages", "app") else None
    second = rest.partition(".")[0]
    return second if second in RANK else "__init__"


def home_of(path: Path) -> str:
    """The room that a file below the current root lies in."""
    parts = path.with_suffix("").parts
    return parts[1] if parts[0] == PACKAGE else "pages"


def wrong_imports(path: Path) -> list[str]:
    """The imports of one file, given from the root, that its room does not allow."""
    here = home_of(path)
    if here in AT_THE_ROOT:
        return []
    wrong = []
    for line, module in imported(path):
        there = room_of(module)
        # The front door leads to every room, so a room that went through it could reach those above.
        above = there is not None and RANK.get(there, RANK["ui"]) > RANK[here]
        if module.partition(".")[0] in ROOMS[here] or above:
            wrong.append(f"{path.as_posix()}:{line} imports {module}")
    return wrong


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other in a circle."""

    def reached(start: str) -> set[str]:
        seen, ahead = set[str](), [start]
        while ahead:
            for following in arrows.get(ahead.pop(), set()) - seen:
                seen.add(following)
                ahead.append(following)
        return seen

    reach = {name: reached(name) for name in arrows}
    in_circles = {name for name in arrows if name in reach[name]}
    return sorted(
        {tuple(sorted(other for other in in_circles & reach[name] if name in reach[other])) for name in in_circles}
    )


def arrows_between(files: list[Path]) -> dict[str, set[str]]:
    """Which module imports which, of files below the current root, be it for type checkers alone."""
    known = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in files}
    arrows: dict[str, set[str]] = {}
    for name, path in known.items():
        for _, module in imported(path):
            there = module if module in known else module.rpartition(".")[0]
            if there in known and there != name:
                arrows.setdefault(name, set()).add(there)
    return arrows


def test_every_module_has_a_room() -> None:
    modules = {path.stem if path.is_file() else path.name for path in (ROOT / PACKAGE).glob("[!.]*")}
    homeless = sorted(modules - RANK.keys() - AT_THE_ROOT - {"py", "__pycache__"})
    assert not homeless, f"these stand at the root, in no room: {homeless}"


def test_each_room_says_what_it_is_for() -> None:
    folders = {path.parent for path in (ROOT / PACKAGE).rglob("*.py")}
    silent = [
        folder
        for folder in folders
        if len(ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or "") < 30
    ]
    assert not silent


def test_no_folder_is_crowded() -> None:
    counts = {
        str(folder.relative_to(ROOT)): sum(
            path.suffix in (".py", ".js") and path.stem != "__init__" for path in folder.iterdir()
        )
        for folder in {path.parent for path in sources(".py", ".js")}
    }
    assert not {folder: count for folder, count in counts.items() if count > CROWDED}


def test_imports_point_from_the_roof_to_the_ground_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    files = [path.relative_to(ROOT) for path in sources(".py")]
    assert files
    assert not [wrong for path in files for wrong in wrong_imports(path)]


def test_no_modules_import_each_other_in_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert not circles(arrows_between([path.relative_to(ROOT) for path in sources(".py")]))


def test_a_planted_circle_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.py").write_text("def late():\n    from two import b\n")
    Path("two.py").write_text("if TYPE_CHECKING:\n    from one import a\n")
    Path("three.py").write_text("from one import a\n")
    assert circles(arrows_between(sorted(Path().glob("*.py")))) == [("one", "two")]


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("attention_viz/analysis/metrics.py", "import plotly.express"),
        ("attention_viz/analysis/metrics.py", "from attention_viz import views"),
        ("attention_viz/analysis/metrics.py", "from .. import views"),
        ("attention_viz/analysis/metrics.py", "import attention_viz as av"),
        ("attention_viz/errors.py", "from .operation.attention import attend"),
        ("attention_viz/trace/trace.py", "from attention_viz.edits.kinds.masks import Block"),
        ("attention_viz/models/__init__.py", "from ..views import heatmap"),
        ("attention_viz/recording/recorder.py", "from ..views.style.theme import QUERY"),
        ("attention_viz/views/figures/matrices.py", "import attention_viz.ui.parts.menu"),
        ("attention_viz/views/figures/matrices.py", "importlib.import_module('transformers')"),
        ("attention_viz/lesson/steps.py", "from streamlit import session_state"),
        ("attention_viz/serving/runs.py", "from attention_viz.ui.address import State"),
        ("attention_viz/serving/runs.py", "import streamlit"),
        ("attention_viz/ui/parts/menu.py", "import app"),
        ("pages/steps.py", "import torch"),
        ("app.py", "from plotly import graph_objects"),
    ],
)
def test_a_planted_import_that_points_up_is_caught(
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
        ("attention_viz/analysis/metrics.py", "from attention_viz.trace.trace import Trace"),
        ("attention_viz/analysis/metrics.py", "from attention_viz import errors, operation"),
        ("attention_viz/recording/recorder.py", "from ..operation.attention import attend"),
        ("attention_viz/recording/recorder.py", "import transformers"),
        ("attention_viz/explorer/page.py", "from attention_viz.views.style.theme import QUERY"),
        ("attention_viz/ui/parts/menu.py", "import attention_viz as av"),
        ("app.py", "from attention_viz.ui import menu"),
    ],
)
def test_an_import_that_points_down_is_left_alone(
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
    assert len(SHAPED) > 40 and "attention_viz.operation.attention" in SHAPED


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


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in sources(".py", ".js", ".mjs", ".css")}
    assert not {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > 400}


def test_no_function_is_longer_than_60_lines() -> None:
    long = []
    for path in sources(".py"):
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 60:
                long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not long


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "helpers", "common", "misc"}
    assert not [str(path.relative_to(ROOT)) for path in sources(".py") if path.stem in drawers]


# What a page draws at once may import no more than this inside its functions: all else stands at the top of a file.
MOST_LATE_IMPORTS = 20


def naming(word: str) -> set[str]:
    """The files of the app that name something of Streamlit's."""
    ui = ROOT / PACKAGE / "ui"
    return {path.relative_to(ui).as_posix() for path in ui.rglob("*.py") if word in path.read_text("utf-8")}


def test_the_state_of_a_visit_is_in_one_value_and_pages_run_again_by_one_function() -> None:
    # Streamlit's own module of that name is no state of ours.
    assert naming("session_state") == {"front/presses.py", "visit.py", "widgets.py"}
    assert naming("st.session_state") == {"visit.py", "widgets.py"}
    assert naming("st.rerun(") == {"visit.py"}
    assert not naming("persist_state")


def late_imports(path: Path) -> list[str]:
    """The imports inside functions of one file."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    inside = {
        node.lineno
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return [f"{path}:{line}" for line in sorted(inside)]


def test_pages_import_at_the_top() -> None:
    found = [place for path in (ROOT / PACKAGE / "ui").rglob("*.py") for place in late_imports(path)]
    assert len(found) <= MOST_LATE_IMPORTS, found


def test_a_planted_late_import_is_counted(tmp_path: Path) -> None:
    source = "import a\n\n\ndef show():\n    from b import c\n\n    def inner():\n        import d\n"
    (tmp_path / "late.py").write_text(source)
    assert len(late_imports(tmp_path / "late.py")) == 2


def test_the_first_paint_waits_for_nothing_heavy() -> None:
    """What `app.py` and the files in `pages/` import at their top, in a fresh interpreter."""
    names = [module for path in (ROOT / "app.py", *(ROOT / "pages").glob("*.py")) for _, module in imported(path)]
    shells = sorted({name.rpartition(".")[0] for name in names if name.startswith(f"{PACKAGE}.ui.pages.")})
    assert len(shells) == len([*(ROOT / "pages").glob("*.py")]) + 1
    heavy = {
        "torch",
        "transformers",
        "plotly.graph_objs._figure",
        "pandas",
        *(f"{shell[:-5]}.view" for shell in shells),
    }
    check = (
        f"import importlib, sys; [importlib.import_module(name) for name in {shells!r}]; "
        f"print(sorted({heavy!r} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def private_patches(source: str) -> list[int]:
    """The lines of a test's code that put something in the place of a name that begins with an underscore."""
    found = set[int]()
    for node in ast.walk(ast.parse(source)):
        targets: list[ast.expr] = []
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr" | "setitem" | "delitem" | "object" | "patch")):
                targets = node.args[:2]
            case ast.Assign() | ast.Delete():
                targets = node.targets
            case ast.AugAssign() | ast.AnnAssign():
                targets = [node.target]
        for part in (part for target in targets for part in ast.walk(target)):
            match part:
                case ast.Attribute(value=ast.Name(id="self" | "cls")):
                    names = []
                case ast.Attribute(attr=name):
                    names = [name]
                case ast.Constant(value=str(path)) if isinstance(node, ast.Call):
                    names = path.split(".")
                case _:
                    names = []
            if any(re.match("_(?!_)", name) for name in names):
                found.add(part.lineno)
    return sorted(found)


def test_no_test_patches_a_private_name() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix(): private_patches(path.read_text("utf-8")) for path in files}
    assert not {path: lines for path, lines in found.items() if lines}


@pytest.mark.parametrize(
    "line",
    [
        'monkeypatch.setattr(module, "_limit", 1)',
        'monkeypatch.setattr("package.module._limit", 1)',
        "patch.setitem(module._table, key, 1)",
        'mocker.patch("package.module._limit")',
        "module._limit = 1",
        "module._table[key] += 1",
        "del module._table[key]",
    ],
)
def test_a_planted_patch_of_a_private_name_is_caught(line: str) -> None:
    assert private_patches(line) == [1]


@pytest.mark.parametrize("line", ['patch.setattr(module, "LIMIT", 1)', "self._limit = 1", 'patch.setenv("_A", "b")'])
def test_a_patch_of_a_public_name_is_left_alone(line: str) -> None:
    assert private_patches(line) == []
