"""The component's HTML, style sheet and script, as each host needs them.

The script is kept as small ES modules in `static/`. A notebook and a single HTML file need it in one piece, and so does
Streamlit for a component that is not an installed package of its own, so the modules are joined by a plain rule: they
are put one after another in the order of `MODULES`, imports are left out, and ``export `` is cut from the front of
lines. For that, no two modules may declare the same name at the top level.

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
- `serial` counts the reader's choices. The component ignores a choice of the server's made before it had seen the
  reader's latest, so the picture never jumps back while somebody walks along the heads.
"""

import functools
import re
from collections.abc import Sequence
from importlib import resources

from attention_viz.views.style.theme import DARK, LIGHT, MONOSPACE, SANS, Palette, ramp

__all__ = ["MODULES", "channel_source", "component_source", "joined_with", "page_source", "style_sheet"]

# In the order in which they are joined: a module may only import from those above it.
MODULES = (
    "parts/element.js",
    "data/tokens.js",
    "data/payload.js",
    "data/recording.js",
    "data/store.js",
    "data/scale.js",
    "data/raster.js",
    "data/ranking.js",
    "data/table.js",
    "parts/tooltip.js",
    "parts/controls.js",
    "parts/legend.js",
    "parts/arcs.js",
    "parts/edges.js",
    "parts/strip.js",
    "parts/cells.js",
    "parts/grid.js",
    "data/viewport.js",
    "parts/matrix.js",
    "parts/gestures.js",
    "parts/heatmap.js",
    "parts/bars.js",
    "parts/search.js",
    "parts/table.js",
    "explorer.js",
    "hosts/hosting.js",
)

_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def component_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the explorer, to register with Streamlit; how is told above."""
    return '<div class="av-host"></div>\n', style_sheet(), _joined(*MODULES, "hosts/in_streamlit.js")


def channel_source() -> tuple[str, str, str]:
    """HTML, CSS and JavaScript of the small component that hands the page's own choice to the explorer."""
    return "<span hidden></span>\n", ":host {\n  display: none;\n}\n", _joined("hosts/channel.js")


def page_source() -> str:
    """The script of a page that shows one explorer and nothing else."""
    return _joined(*MODULES, "hosts/in_page.js")


def joined_with(modules: Sequence[str], *texts: str) -> str:
    """One script for another component of ours: some of the explorer's modules, in their order, and its own after them.

    Args:
        modules: names in `MODULES`.
        texts: the component's own modules, each of which imports only from those before it.
    """
    return "\n".join([_joined(*(name for name in MODULES if name in modules)), *(_cut(text) for text in texts)])


@functools.cache
def style_sheet() -> str:
    """The style sheet, with the colours of both themes taken from `views.theme`."""
    light, dark = _variables(LIGHT), _variables(DARK)
    fonts = f"  --av-mono: {MONOSPACE};\n  --av-sans: {SANS};\n"
    return (
        f".av-explorer {{\n{fonts}{light}  color-scheme: light;\n}}\n"
        f'.av-explorer[data-theme="dark"] {{\n{dark}  color-scheme: dark;\n}}\n'
        f"{_read('explorer.css')}"
    )


def _variables(palette: Palette) -> str:
    colours = {
        name.replace("_", "-"): getattr(palette, name)
        for name in ("background", "surface", "ink", "muted", "line", "accent", "query", "key", "value", "blocked")
    }
    colours["ramp"] = " ".join(ramp(palette.weight_low, palette.weight_high))
    return "".join(f"  --av-{name}: {value};\n" for name, value in colours.items())


@functools.cache
def _joined(*modules: str) -> str:
    """The modules as one script."""
    return "\n".join(_cut(_read(name)) for name in modules)


def _cut(module: str) -> str:
    """A module without its imports, and without saying what it exports."""
    return _EXPORT.sub("", _IMPORT.sub("", module))


def _read(name: str) -> str:
    return resources.files("attention_viz.explorer").joinpath("static", *name.split("/")).read_text("utf-8")
