"""Run texts on Enter; keep texts without link in the tab."""

from attention_viz.explorer import script
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui import visit, widgets
from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.selection import SHARED, Filled

__all__ = ["follow_texts"]

# The boxes that all pages share, which a URL carries under the same names.
_SHARED = ("text", "second", "target")
# The others whose text is run as a whole, by their keys: the group in `Selection.parts`, and the parameter.
_OWN = {"batch": ("masks", "batch"), "compare-other": ("compare-", "other")}
_KEY = "texts-follower"

_follower = widgets.component("texts", js=script("page/texts.js"))


def follow_texts() -> None:
    """Run typed text on Enter, and mark an outdated page."""
    texts = {name: getattr(visit.shared(), name) for name in _SHARED}
    parts = visit.here().selection.parts
    texts |= {key: getattr(parts[group].value, name) for key, (group, name) in _OWN.items() if group in parts}
    long = [key for key in _SHARED if not fits_link(texts.get(key, ""))]
    _follower(key=_KEY, data={"texts": texts, "long": long}, on_kept_change=_take_kept)


def _take_kept() -> None:
    kept = widgets.sent(_KEY, "kept")
    # Anything can come from a browser.
    for key in _SHARED if isinstance(kept, dict) else ():
        if isinstance(text := kept.get(key), str):
            # What else the URL says belongs to this text.
            visit.send(Filled(SHARED, {key: text[: SETTINGS.longest_input]}, stays=True, late=True))
