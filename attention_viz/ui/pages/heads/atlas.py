"""The atlas of all heads, as a browser component."""

from collections.abc import Callable, Sequence

from streamlit.components import v2 as components

from attention_viz.explorer import atlas_source, behind_source
from attention_viz.ui import widgets
from attention_viz.ui.parts.explorer import show_channel

__all__ = ["HEIGHT", "asked_role", "chosen_head", "hold_cards", "show_atlas"]

HEIGHT = 420

_KEY = "heads-grid"

# Registered once, when the module is imported: a component's name stands for its code from then on.
_html, _css, _js = atlas_source(HEIGHT)
_behind_html, _behind_css, _behind_js = behind_source()
_behind = components.component("attention_viz_behind", html=_behind_html, css=_behind_css, js=_behind_js)
_atlas = components.component("attention_viz_atlas", html=_html, css=_css, js=_js)


def chosen_head(name: str) -> tuple[int, int] | None:
    """Return the head chosen ("choice") or to open ("open"); None for neither, or invalid browser data."""
    choice = widgets.sent(_KEY, name)
    layer, head = (widgets.whole(choice, part) for part in ("layer", "head"))
    return None if layer is None or head is None else (layer, head)


def asked_role() -> str | None:
    """Return the role just pressed; empty if cleared."""
    role = widgets.sent(_KEY, "role")
    return role if isinstance(role, str) else None


def show_atlas(
    payload: bytes,
    chosen: tuple[int, int],
    *,
    view: str,
    metric: str,
    role: str | None,
    linking: Sequence[tuple[int, int]],
    effects: Sequence[float | None],
    over: str,
    on_choice: Callable[[], None],
    on_open: Callable[[], None],
    on_role: Callable[[], None],
) -> None:
    """Show all heads, and receive the reader's choice.

    Args:
        payload: from `attention_viz.explorer.atlas_payload.pack_atlas`; sent only when it changes.
        effects: output change without each head, in order; None if untried.
    """
    _atlas(
        key=_KEY,
        data=payload,
        height="content",
        on_choice_change=on_choice,
        on_open_change=on_open,
        on_role_change=on_role,
    )
    seen = widgets.whole(widgets.sent(_KEY, "choice"), "serial") or 0
    layer, head = chosen
    show_channel(
        _KEY,
        layer=layer,
        head=head,
        seen=seen,
        view=view,
        metric=metric,
        role=role,
        linking=[list(one) for one in linking],
        effects=list(effects),
        over=over,
    )


def hold_cards() -> None:
    """Reserve the role cards' place, behind the chosen head on phones."""
    _behind(key="heads-behind", height="content")
