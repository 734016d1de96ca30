"""Waiting until a place of the page is seen."""

from dataclasses import dataclass, field

from attention_viz.explorer import sight_source
from attention_viz.ui import visit, widgets

_sight = widgets.component("sight", *sight_source())


@dataclass
class _SeenKeys:
    """The places that the visitor has scrolled to."""

    keys: set[str] = field(default_factory=set[str])


def in_sight(key: str, height: int) -> bool:
    """Return whether the place was ever seen; until then, draw an empty one, `height` pixels high."""
    seen = visit.memory(_SeenKeys).keys
    if key in seen:
        return True

    def take() -> None:
        if widgets.sent(key, "seen") is True:
            seen.add(key)

    _sight(key=key, data={"height": height}, height="content", on_seen_change=take)
    return False
