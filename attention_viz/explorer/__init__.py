"""The interactive picture of a trace: one browser component, shown in a notebook, a single HTML file, or the app.

`explore(trace)` is all a notebook needs. `pack`, `component_source` and `channel_source` are for hosts: how they fit
together is told in `attention_viz.explorer.source`.
"""

from attention_viz.explorer.page import Explorer, explore
from attention_viz.explorer.payload import Choice, pack
from attention_viz.explorer.source import channel_source, component_source, joined_with, style_sheet

__all__ = [
    "Choice",
    "Explorer",
    "channel_source",
    "component_source",
    "explore",
    "joined_with",
    "pack",
    "style_sheet",
]
