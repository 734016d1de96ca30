"""The components' HTML, style sheets and scripts, as each host needs them.

The scripts are kept as small ES modules in `static/`. A notebook and a single HTML file need theirs in one piece, and
so does Streamlit for a component that is not an installed package of its own, so `script` joins a module with all that
it imports by a plain rule: each after those that it imports, imports and what only the type checker reads left out,
and ``export `` cut from the front of lines. For that, no two modules of a script may declare the same name at the top
level.

In Streamlit the explorer is two components, because data is sent whole whenever any of it changes::

    explorer = st.components.v2.component("explorer", html=…, css=…, js=…)           # component_source()
    channel = st.components.v2.component("explorer_channel", html=…, css=…, js=…)    # channel_source()

    chosen = explorer(key="explorer", data=pack(trace), on_choice_change=lambda: None).choice
    channel(key="explorer-channel", data={
        "explorer": "explorer",                       # the key of the explorer that is meant
        "stream": "encoder", "layer": 0, "head": 4,   # what the page shows now, by its own pickers or by `chosen`
        "seen": (chosen or {}).get("serial", 0),      # the last choice that the server has heard of
    })

- `pack(trace)` depends on the trace only, so its bytes are sent once; a choice is some fifty bytes through the channel.
- The state value `choice` is ``{"stream": str, "layer": int, "head": int, "serial": int}``, or None before the reader
  has chosen anything. It is set 100 ms after the last click or key press, at once when the pointer or the focus leaves
  the explorer, and never while pointing.
- Of a long text (`pack` with `terms`) a head comes in bytes of its own, through a third component:
  `packet(key="explorer-packet", data=pack_head(trace, stream, layer, head, of))`, `packet_source()`; `of` is the id in
  the header of the text's bytes. What `beginning_of` cuts from those bytes can be handed over before them, through
  `beginning_source()`: the head's maps are drawn while its numbers are on their way. The state value `pair`,
  ``{"stream": str, "query": int, "key": int}``, is set when the reader asks for the heads that link two tokens; they
  come back as `ranking` through the channel.
- `serial` counts the reader's choices. The component ignores a choice of the server's made before it had seen the
  reader's latest, so the picture never jumps back while somebody walks along the heads.
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
    "component_source",
    "masks_source",
    "packet_source",
    "page_source",
    "pipeline_source",
    "prediction_source",
    "present_source",
    "script",
    "style_sheet",
    "why_source",
]

_IMPORT = re.compile(r"^import [^;]*?\"([^\"]+)\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
# Types and documentation, on lines of their own: for those who write the modules, not for the browser.
_DOCUMENTATION = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/[ \t]*\n", re.MULTILINE | re.DOTALL)


def component_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the explorer, to register with Streamlit; how is told above."""
    return '<div class="av-host"></div>\n', style_sheet(), script("hosts/in_streamlit.js")


def channel_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the small component that hands the page's own choice to the explorer."""
    return _unseen("hosts/channel.js")


def packet_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the small component that hands one head of a long text to the explorer."""
    return _unseen("hosts/packet.js")


def beginning_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the small component that hands the maps of such a head to the explorer before it."""
    return _unseen("hosts/beginning.js")


def atlas_source(height: int) -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the atlas of all heads, `height` pixels high at most; its data are `pack_atlas`'s."""
    html = f'<div class="av-explorer av-atlas" data-testid="atlas" data-height="{height}"></div>\n'
    return html, style_sheet() + _read("atlas/atlas.css") + _read("atlas/cards.css"), script("atlas/atlas.js")


def behind_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the place where the atlas puts its cards on a phone."""
    html = '<div class="av-explorer av-atlas av-behind"></div>\n'
    return html, style_sheet() + _read("atlas/atlas.css") + _read("atlas/cards.css"), script("atlas/behind.js")


def pipeline_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of one head as a pipeline for a chosen pair; its data are `pack_pipeline`'s."""
    html = '<div class="av-explorer av-pipeline" data-testid="pipeline"></div>\n'
    return html, style_sheet() + _read("pipeline/pipeline.css"), script("pipeline/pipeline.js")


def masks_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the mask that is painted; its data are `pack_board`'s."""
    html = '<div class="av-explorer av-masks" data-testid="masks"></div>\n'
    return html, style_sheet() + _read("masks/masks.css"), script("masks/masks.js")


def why_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of what wrote a number; its data are `pack_why`'s."""
    html = '<div class="av-explorer av-why" data-testid="why"></div>\n'
    return html, style_sheet() + _read("why/why.css"), script("why/why.js")


def prediction_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of a question of the course, guessed on the bars that then show the answer."""
    html = '<div class="av-explorer av-lesson" data-testid="prediction"></div>\n'
    return html, style_sheet() + _read("lesson/lesson.css"), script("lesson/predict.js")


def present_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the slides for a room; their data are told in `static/present/present.js`."""
    html = '<dialog class="av-present" data-testid="present" aria-label="Slides" tabindex="-1"></dialog>\n'
    return html, _themed(".av-present") + _read("present/present.css"), script("present/present.js")


def page_source() -> str:
    """The script of a page that shows one explorer and nothing else."""
    return script("hosts/in_page.js")


def _unseen(name: str) -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of a component that only hands something on."""
    return "<span hidden></span>\n", ":host {\n  display: none;\n}\n", script(name)


@functools.cache
def script(name: str) -> str:
    """One of our modules in one piece with everything that it imports.

    Args:
        name: its path below `static/`, such as "page/pen.js".
    """
    return "\n".join(_cut(_read(module)) for module in _with_imports(name))


def _with_imports(name: str) -> list[str]:
    """The module and all that it imports, each once and after those that it imports itself."""
    found: list[str] = []
    for imported in _IMPORT.findall(_read(name)):
        inner = _with_imports(posixpath.normpath(posixpath.join(posixpath.dirname(name), imported)))
        found += [module for module in inner if module not in found]
    return [*found, name]


@functools.cache
def style_sheet() -> str:
    """The style sheet, with the colours of both themes taken from `views.theme`."""
    return _themed(".av-explorer") + _read("explorer.css") + _read("claim/claim.css") + _read("seen/seen.css")


def _themed(root: str) -> str:
    """The colours and fonts of both themes, for what a selector names."""
    light, dark = _variables(LIGHT), _variables(DARK)
    fonts = f"  --av-mono: {MONOSPACE};\n  --av-sans: {SANS};\n"
    return (
        f"{root} {{\n{fonts}{light}  color-scheme: light;\n}}\n"
        f'{root}[data-theme="dark"] {{\n{dark}  color-scheme: dark;\n}}\n'
    )


def _variables(palette: Palette) -> str:
    colours = {
        name.replace("_", "-"): getattr(palette, name)
        for name in ("background", "surface", "ink", "muted", "line", "accent", "query", "key", "value", "blocked")
    }
    colours["ramp"] = " ".join(palette.weights)
    colours["differences"] = " ".join(palette.differences)
    colours["roles"] = " ".join(palette.roles)
    return "".join(f"  --av-{name}: {value};\n" for name, value in colours.items())


def _cut(module: str) -> str:
    """A module without its imports, its types, and saying what it exports."""
    return _DOCUMENTATION.sub("", _EXPORT.sub("", _IMPORT.sub("", module)))


def _read(name: str) -> str:
    return resources.files("attention_viz.explorer").joinpath("static", *name.split("/")).read_text("utf-8")
