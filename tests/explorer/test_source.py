"""The component's source: modules that can be joined into one script, colours that are the theme's."""

import os
import re
from collections import Counter
from importlib import resources
from pathlib import Path, PurePosixPath

import pytest

from attention_viz.explorer import channel_source, component_source
from attention_viz.explorer.source import MODULES, page_source, style_sheet
from attention_viz.views.style.theme import DARK, LIGHT, ramp

STATIC = Path(str(resources.files("attention_viz.explorer"))) / "static"
HOSTS = {"hosts/in_page.js", "hosts/in_streamlit.js", "hosts/channel.js"}
TOP_LEVEL = re.compile(
    r"^(?:export )?(?:default )?(?:async )?(?:function|class|const|let) (?:(\w+)|\[([^\]]*)\])", re.M
)


def names(module: str) -> list[str]:
    found = TOP_LEVEL.findall((STATIC / module).read_text("utf-8"))
    return [name for one, several in found for name in ([one] if one else several.split(", "))]


def test_every_module_is_joined_or_is_a_host() -> None:
    apart = {"atlas", "page"}  # components of their own
    files = {file.relative_to(STATIC) for file in STATIC.rglob("*.js")}
    files = {file.as_posix() for file in files if file.parts[0] not in apart}
    assert files == set(MODULES) | HOSTS


@pytest.mark.parametrize("host", ["hosts/in_page.js", "hosts/in_streamlit.js"])
def test_no_two_modules_declare_the_same_name(host: str) -> None:
    counts = Counter(name for module in (*MODULES, host) for name in names(module))
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("module", [*MODULES, "hosts/in_page.js", "hosts/in_streamlit.js"])
def test_a_module_imports_only_what_modules_above_it_export(module: str) -> None:
    order = [*MODULES, *HOSTS]
    text = (STATIC / module).read_text("utf-8")
    for imported, source in re.findall(r'^import \{([^}]*)\} from "([^"]+)";$', text, re.M):
        source = os.path.normpath(PurePosixPath(module).parent / source)
        assert order.index(source) < order.index(module)
        exported = re.findall(
            r"^export (?:async )?(?:function|class|const) (\w+)", (STATIC / source).read_text("utf-8"), re.M
        )
        assert set(imported.split(", ")) <= set(exported)


@pytest.mark.parametrize("module", [*MODULES, "hosts/in_page.js", "hosts/in_streamlit.js"])
def test_a_module_uses_every_name_that_it_imports(module: str) -> None:
    text = (STATIC / module).read_text("utf-8")
    body = re.sub(r"^import [^;]*;$", "", text, flags=re.M)
    for imported in re.findall(r"^import \{([^}]*)\}", text, re.M):
        for name in imported.split(", "):
            assert re.search(rf"\b{name}\b", body), f"{module} imports {name} for nothing"


def test_the_joined_scripts_import_nothing() -> None:
    for script in (component_source()[2], channel_source()[2], page_source()):
        assert not re.search(r"^\s*import\b", script, re.M)
    assert re.findall(r"^export .*", component_source()[2], re.M)[0].startswith("export default function")
    assert "export" not in re.sub(r"//.*", "", page_source())


def test_streamlit_takes_the_source_for_text_and_not_for_a_path() -> None:
    for html, css, script in (component_source(), channel_source()):
        assert "\n" in html and "\n" in css and "\n" in script


def test_nothing_from_a_text_can_become_markup() -> None:
    joined = component_source()[2] + page_source()
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert forbidden not in joined


def test_the_style_sheet_has_the_colours_of_both_themes() -> None:
    sheet = style_sheet()
    for colours in (LIGHT, DARK):
        assert f"--av-query: {colours.query};" in sheet
        assert " ".join(ramp(colours.weight_low, colours.weight_high)) in sheet
    written_out = (STATIC / "explorer.css").read_text("utf-8")
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b", written_out)
