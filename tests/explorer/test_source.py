"""The component's source: modules that can be joined into one script, colours that are the theme's."""

import re
from collections import Counter
from importlib import resources
from pathlib import Path, PurePosixPath
from posixpath import normpath

import pytest

from attention_viz.analysis.findings.finding import FINDING_KINDS
from attention_viz.explorer import atlas_source, channel_source, component_source, script
from attention_viz.explorer.source import page_source, style_sheet
from attention_viz.views.style.theme import DARK, LIGHT

STATIC = Path(str(resources.files("attention_viz.explorer"))) / "static"
MODULES = sorted(file.relative_to(STATIC).as_posix() for file in STATIC.rglob("*.js"))
# What a page is given; everything else is imported by one of them.
ENTRIES = (
    "atlas/atlas.js",
    "atlas/behind.js",
    "atlas/effect.js",
    "chart/chart.js",
    "compare/compare.js",
    "course/start.js",
    "drawing/drawing.js",
    "hosts/beginning.js",
    "hosts/channel.js",
    "hosts/component_in_widget.js",
    "hosts/explorer_in_widget.js",
    "hosts/in_embed.js",
    "hosts/in_page.js",
    "hosts/in_streamlit.js",
    "hosts/lessons.js",
    "hosts/loading.js",
    "hosts/packet.js",
    "hosts/question.js",
    "hosts/sight.js",
    "lesson/noted.js",
    "lesson/saved.js",
    "lesson/tested.js",
    "masks/masks.js",
    "page/fold.js",
    "page/panel.js",
    "page/paper.js",
    "page/pen.js",
    "page/texts.js",
    "page/themes.js",
    "pipeline/drawer.js",
    "pipeline/handed.js",
    "pipeline/pipeline.js",
    "present/present.js",
    "why/why.js",
)
# Those that run as they are loaded.
PAGES = ("course/start.js", "hosts/in_embed.js", "hosts/in_page.js")
DECLARED = re.compile(r"^(?:export )?(?:default )?(?:async )?(?:function|class|const|let) (?:(\w+)|\[([^\]]*)\])", re.M)
IMPORTED = re.compile(r'^import \{([^}]*)\} from "([^"]+)";$', re.M)
EXPORTED = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.M)


def read(module: str) -> str:
    return (STATIC / module).read_text("utf-8")


def declared(text: str) -> list[str]:
    return [name for one, several in DECLARED.findall(text) for name in ([one] if one else several.split(", "))]


def imports(module: str) -> list[tuple[list[str], str]]:
    """The names that a module imports, and the module that they are from."""
    here = PurePosixPath(module).parent
    found = IMPORTED.findall(read(module))
    return [([one.strip() for one in names.split(",") if one.strip()], normpath(here / home)) for names, home in found]


def reached(module: str) -> set[str]:
    return {module}.union(*(reached(home) for _, home in imports(module)))


def test_every_module_is_given_to_a_page_or_imported_by_one_that_is() -> None:
    assert set(ENTRIES) <= set(MODULES)
    assert set().union(*map(reached, ENTRIES)) == set(MODULES)


def test_findings_with_a_weight_between_two_words_are_neither_of_a_head_nor_of_a_mixer() -> None:
    (kinds,) = re.findall(r"BETWEEN_WORDS = new Set\(\[(.*)\]\)", read("claim/aside.js"))
    of_no_cell = ("carried", "erased", "heard", "region of a word")
    assert re.findall('"(.*?)"', kinds) == [
        name for name, kind in FINDING_KINDS.items() if not kind.of_a_head and name not in of_no_cell
    ]


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_two_modules_of_a_script_declare_the_same_name(entry: str) -> None:
    counts = Counter(declared(script(entry)))
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_script_has_each_module_once_and_after_those_that_it_imports(entry: str) -> None:
    text, modules = script(entry), reached(entry)
    order = declared(text)
    places = {module: order.index(declared(read(module))[0]) for module in modules}
    for module in modules:
        assert all(places[home] < places[module] for _, home in imports(module))
    assert len(declared(text)) == sum(len(declared(read(module))) for module in modules)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_in_one_way_what_others_export(module: str) -> None:
    for names, home in imports(module):
        assert set(names) <= set(EXPORTED.findall(read(home)))
    assert len(imports(module)) == len(re.findall(r"^import\b", read(module), re.M))


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_script_imports_nothing_and_carries_no_types(entry: str) -> None:
    text = script(entry)
    assert not re.search(r"^\s*import\b", text, re.M)
    assert not re.search(r"^\s*/?\*", text, re.M)
    exports = re.findall(r"^export .*", text, re.M)
    assert len(exports) == (0 if entry in PAGES else 1)
    assert all(line.startswith("export default function") for line in exports)


def test_streamlit_takes_the_source_for_text_and_not_for_a_path() -> None:
    for html, css, code in (component_source(), channel_source(), atlas_source(420)):
        assert "\n" in html and "\n" in css and "\n" in code


def test_nothing_from_a_text_can_become_markup() -> None:
    joined = page_source() + "".join(map(script, ENTRIES))
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert forbidden not in joined


def test_the_style_sheet_has_the_colours_of_both_themes() -> None:
    sheet = style_sheet()
    for colours in (LIGHT, DARK):
        assert f"--av-query: {colours.query};" in sheet
        assert f"--av-ramp: {' '.join(colours.weights)};" in sheet
    written_out = (STATIC / "explorer.css").read_text("utf-8")
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b", written_out)
