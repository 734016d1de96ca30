"""The components' HTML, style sheets and scripts for each host.

Scripts are small ES modules in `static/`. `script` joins one with its imports into one piece: imports first, import
lines and types left out, ``export `` cut. So no two modules may declare one top-level name.

In Streamlit the explorer is two components, because any change sends all data::

    explorer = st.components.v2.component("explorer", html=…, css=…, js=…)           # component_source()
    channel = st.components.v2.component("explorer_channel", html=…, css=…, js=…)    # channel_source()

    chosen = explorer(key="explorer", data=pack(trace), on_choice_change=lambda: None).choice
    channel(key="explorer-channel", data={
        "explorer": "explorer",                       # the explorer's key
        "stream": "encoder", "layer": 0, "head": 4,   # shown now
        "seen": (chosen or {}).get("serial", 0),      # the last known choice
    })

- `pack(trace)` depends on the trace only, so is sent once; a choice is some fifty bytes.
- State `choice` is ``{"stream": str, "layer": int, "head": int, "serial": int}``, with the pair (`query`, `key`), and
  of a mixer whether it shows what arrives (`arrived`) and one channel (`single`); None at first; set 100 ms after the
  last click or key, at once when pointer or focus leaves, never while pointing.
- A long text's head (`pack` with `terms`) has a third component, `packet_source()`:
  `packet(key="explorer-packet", data=pack_head(trace, stream, layer, head, of))`; `of` is the header's `id`.
  `beginning_of`, by `beginning_source()`, draws its maps earlier. State `pair`,
  ``{"stream": str, "query": int, "key": int}``, requests linking heads: `ranking` in the channel.
- `serial` counts the reader's choices; older server choices are ignored, so the picture never jumps back.
"""

import functools
import posixpath
import re
from importlib import resources

from attention_viz.views.style.theme import DARK, LIGHT, MONOSPACE, SANS, Palette

__all__ = [
    "atlas_source",
    "beginning_source",
    "behind_source",
    "channel_source",
    "chart_source",
    "compare_source",
    "component_source",
    "course_page_source",
    "course_source",
    "drawer_source",
    "drawing_source",
    "effect_source",
    "embed_source",
    "embedded",
    "in_column",
    "keeping_source",
    "masks_source",
    "noting_source",
    "packet_source",
    "page_source",
    "pipeline_source",
    "prediction_source",
    "present_source",
    "quiz_source",
    "rest_source",
    "script",
    "sight_source",
    "style_sheet",
    "why_source",
]

_IMPORT = re.compile(r"^import [^;]*?\"([^\"]+)\";\n", re.MULTILINE)
_WIDTHS = re.compile(r"@media (?=\((?:max|min)-width: \d+px\)(?: and \((?:max|min)-width: \d+px\))* \{)")
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
# Types and documentation, on lines of their own: for those who write the modules, not for the browser.
_DOCUMENTATION = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/[ \t]*\n", re.MULTILINE | re.DOTALL)


def component_source() -> tuple[str, str, str]:
    """Return the explorer's HTML, CSS and JavaScript for Streamlit."""
    return '<div class="av-host"></div>\n', style_sheet(), script("hosts/in_streamlit.js")


def channel_source() -> tuple[str, str, str]:
    """Return the component for the page's choice."""
    return _unseen("hosts/channel.js")


def packet_source() -> tuple[str, str, str]:
    """Return the component for a long text's head."""
    return _unseen("hosts/packet.js")


def beginning_source() -> tuple[str, str, str]:
    """Return the component for that head's maps."""
    return _unseen("hosts/beginning.js")


def atlas_source(height: int) -> tuple[str, str, str]:
    """Return the atlas, `height` pixels at most, for `pack_atlas`."""
    html = f'<div class="av-explorer av-atlas" data-testid="atlas" data-height="{height}"></div>\n'
    css = style_sheet() + "".join(map(_read, ("atlas/atlas.css", "atlas/cards.css", "chart/chart.css")))
    return html, css, script("atlas/atlas.js")


def behind_source() -> tuple[str, str, str]:
    """Return the atlas's slot for cards on a phone."""
    html = '<div class="av-explorer av-atlas av-behind"></div>\n'
    return html, style_sheet() + _read("atlas/atlas.css") + _read("atlas/cards.css"), script("atlas/behind.js")


def effect_source() -> tuple[str, str, str]:
    """Return the button that ablates a head, with the effect on the output."""
    html = '<div class="av-explorer av-effect" data-testid="effect"></div>\n'
    return html, style_sheet() + _read("atlas/effect.css"), script("atlas/effect.js")


def pipeline_source() -> tuple[str, str, str]:
    """Return the pipeline's component, for `pack_pipeline`."""
    html = '<div class="av-explorer av-pipeline" data-testid="pipeline"></div>\n'
    return html, style_sheet() + _read("pipeline/pipeline.css"), script("pipeline/pipeline.js")


def rest_source() -> tuple[str, str, str]:
    """Return the component for the rest of the pipeline's layer, for `pack_rest`."""
    return _unseen("pipeline/handed.js")


def drawer_source() -> tuple[str, str, str]:
    """Return the component that places the pipeline's drawer and closes it."""
    return _unseen("pipeline/drawer.js")


def masks_source() -> tuple[str, str, str]:
    """Return the mask's component, for `pack_board`."""
    html = '<div class="av-explorer av-masks" data-testid="masks"></div>\n'
    return html, style_sheet() + _read("masks/masks.css"), script("masks/masks.js")


def compare_source() -> tuple[str, str, str]:
    """Return the Compare page's component, for `pack_compare`."""
    html = '<div class="av-explorer av-compare" data-testid="compare"></div>\n'
    return html, style_sheet() + _read("compare/compare.css"), script("compare/compare.js")


def why_source() -> tuple[str, str, str]:
    """Return the Why page's component, for `pack_why`."""
    html = '<div class="av-explorer av-why" data-testid="why"></div>\n'
    return html, style_sheet() + _read("why/why.css"), script("why/why.js")


def chart_source() -> tuple[str, str, str]:
    """Return the component for `pack_grid` and `pack_bars`."""
    html = '<div class="av-explorer av-chart" data-testid="chart"></div>\n'
    return html, style_sheet() + _read("chart/chart.css"), script("chart/chart.js")


def sight_source() -> tuple[str, str, str]:
    """Return an empty place that reports when it is seen."""
    return '<div class="av-sight" aria-hidden="true"></div>\n', ":host { display: block; }\n", script("hosts/sight.js")


def course_source() -> tuple[str, str, str]:
    """Return the list of lessons."""
    html = '<div class="av-explorer av-course" data-testid="course"></div>\n'
    return html, style_sheet() + _read("lesson/course.css"), script("hosts/lessons.js")


def course_page_source() -> tuple[str, str]:
    """Return style sheet and script of the course's own page, which needs no server."""
    styles = (
        "lesson/course.css",
        "lesson/lesson.css",
        "lesson/openings.css",
        "lesson/keeping.css",
        "lesson/quiz.css",
        "course/course.css",
    )
    dark = f"@media (prefers-color-scheme: dark) {{\n{_page_colours(DARK)}}}\n"
    sheet = _page_colours(LIGHT) + dark + style_sheet() + "".join(map(_read, styles))
    # A page from a disk may load scripts, but no modules.
    return sheet, f'"use strict";\n(() => {{\n{script("course/start.js")}}})();\n'


def prediction_source() -> tuple[str, str, str]:
    """Return a course question, guessed on its answer bars."""
    html = '<div class="av-explorer av-lesson" data-testid="prediction"></div>\n'
    css = _read("lesson/lesson.css") + _read("lesson/openings.css")
    return html, style_sheet() + css, script("hosts/question.js")


def keeping_source() -> tuple[str, str, str]:
    """Return the buttons of the course's record, which the browser keeps."""
    html = '<div class="av-explorer av-keeping" data-testid="progress"></div>\n'
    return html, style_sheet() + _read("lesson/keeping.css"), script("lesson/saved.js")


def quiz_source() -> tuple[str, str, str]:
    """Return the test of learning."""
    html = '<div class="av-explorer av-test" data-testid="quiz"></div>\n'
    return html, style_sheet() + _read("lesson/quiz.css"), script("lesson/tested.js")


def noting_source() -> tuple[str, str, str]:
    """Return the component that adds to that record."""
    return _unseen("lesson/noted.js")


def drawing_source() -> tuple[str, str, str]:
    """Return the sheet to draw shapes on."""
    html = '<div class="av-explorer av-drawing" data-testid="drawing"></div>\n'
    return html, style_sheet() + _read("drawing/drawing.css"), script("drawing/drawing.js")


def present_source() -> tuple[str, str, str]:
    """Return the slides; `static/present/present.js` describes their data."""
    html = '<dialog class="av-present" data-testid="present" aria-label="Slides" tabindex="-1"></dialog>\n'
    return html, _themed(".av-present") + _read("present/present.css"), script("present/present.js")


def page_source() -> str:
    """Return the script of a page with one explorer only."""
    return script("hosts/in_page.js")


def embed_source() -> tuple[str, str]:
    """Return style sheet and script of an explorer in another page; the script declares a function to call."""
    return in_column(style_sheet(), "section"), script("hosts/in_embed.js")


def in_column(css: str, host: str = ":host") -> str:
    """Return a style sheet that measures its column instead of the window."""
    return f"{host} {{ display: block; container-type: inline-size; }}\n{_WIDTHS.sub('@container ', css)}"


def embedded(source: tuple[str, str, str]) -> tuple[str, str, str]:
    """Return a component marked as on a page without the app's other pages, so that nothing leads to them."""
    html, css, text = source
    return html.replace("<div ", "<div data-embedded ", 1), css, text


def _unseen(name: str) -> tuple[str, str, str]:
    return '<span class="av-unseen" hidden></span>\n', ":host {\n  display: none;\n}\n", script(name)


@functools.cache
def script(name: str) -> str:
    """Join a module, by path below `static/`, with its imports."""
    return "\n".join(_cut(_read(module)) for module in _with_imports(name))


def _with_imports(name: str) -> list[str]:
    found: list[str] = []
    for imported in _IMPORT.findall(_read(name)):
        inner = _with_imports(posixpath.normpath(posixpath.join(posixpath.dirname(name), imported)))
        found += [module for module in inner if module not in found]
    return [*found, name]


@functools.cache
def style_sheet() -> str:
    """Return the style sheet with `views.theme` colours."""
    parts = ("explorer.css", "overview/overview.css", "claim/claim.css", "seen/seen.css", "chat/segments.css")
    return _themed(".av-explorer") + "".join(map(_read, parts))


def _themed(root: str) -> str:
    light, dark = _variables(LIGHT), _variables(DARK)
    fonts = f"  --av-mono: {MONOSPACE};\n  --av-sans: {SANS};\n"
    return (
        f"{root} {{\n{fonts}{light}  color-scheme: light;\n}}\n"
        f'{root}[data-theme="dark"] {{\n{dark}  color-scheme: dark;\n}}\n'
    )


def _page_colours(palette: Palette) -> str:
    fonts = f"  --av-mono: {MONOSPACE};\n  --av-sans: {SANS};\n"
    good = f"  --av-good: {palette.good};\n  --av-bad: {palette.bad};\n"
    # What components of a Streamlit page ask the page for.
    return f":root {{\n{fonts}{_variables(palette)}{good}  --st-background-color: {palette.background};\n}}\n"


def _variables(palette: Palette) -> str:
    colours = {
        name.replace("_", "-"): getattr(palette, name)
        for name in (
            "background",
            "surface",
            "ink",
            "muted",
            "line",
            "accent",
            "query",
            "key",
            "value",
            "blocked",
            "more",
            "less",
        )
    }
    colours["ramp"] = " ".join(palette.weights)
    colours["minus"], colours["plus"] = palette.less, palette.more
    colours["differences"] = " ".join(palette.differences)
    colours["roles"] = " ".join(palette.roles)
    return "".join(f"  --av-{name}: {value};\n" for name, value in colours.items())


def _cut(module: str) -> str:
    return _DOCUMENTATION.sub("", _EXPORT.sub("", _IMPORT.sub("", module)))


def _read(name: str) -> str:
    return resources.files("attention_viz.explorer").joinpath("static", *name.split("/")).read_text("utf-8")
