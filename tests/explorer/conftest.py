"""Traces to show: small ones made of random numbers, and what the shipped model makes of real sentences."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page

import attention_viz as av
from attention_viz.explorer import explore
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace

# Labels that break pages: markup, quotes, line separators, other directions, joiners, marks without a letter.
WILD = (
    "[CLS]",
    "</script>",
    "<img src=x onerror=alert(1)>",
    "\"'&amp;",
    "a\u2028b",
    "שלום",
    "\u202egnirts",
    "👩\u200d👩\u200d👧",
    "\u0301x",
    "##ing",
    "\u0120bank",
    "\n",
    "",
)


def tokens(labels: tuple[str, ...]) -> Tokens:
    return Tokens(labels, tuple(range(len(labels))), special=tuple(label == "[CLS]" for label in labels))


def words(count: int, role: str = "w") -> tuple[str, ...]:
    return tuple(f"{role}{place}" for place in range(count))


def layer(
    number: int,
    queries: int,
    keys: int,
    *,
    heads: int = 3,
    shared: int | None = None,
    seed: int = 0,
    label: str = "",
    **terms: object,
) -> Layer:
    """One attention call with uneven weights."""
    generator = torch.Generator().manual_seed(1000 * seed + number)

    def random(count: int, positions: int) -> torch.Tensor:
        return torch.randn(count, positions, 4, generator=generator)

    shared = shared or heads
    call = av.attend(8 * random(heads, queries), random(shared, keys), random(shared, keys), **terms)
    return Layer(call, label or str(number))


def trace_of(layers: dict[str, tuple[Layer, ...]], queries: dict[str, Tokens], keys: dict[str, Tokens]) -> Trace:
    measured = Fidelity(0.0, 0.0, 1e-5, "nothing")
    return Trace(layers, queries, keys, torch.zeros(2, 3), Provenance("random", "a text"), measured)


def self_attention(count: int, layers: int = 2, **terms: object) -> Trace:
    """One stream of that many tokens."""
    axis = {"encoder": tokens(words(count))}
    return trace_of({"encoder": tuple(layer(i, count, count, **terms) for i in range(layers))}, axis, axis)


@pytest.fixture(scope="session")
def many_kinds() -> Trace:
    """Three streams: open and wild labels; causal with sinks and shared keys; cross with blocked cells and rows."""
    source, target = tokens(WILD), tokens(words(7, "t"))
    allowed = torch.rand(3, 7, len(WILD), generator=torch.Generator().manual_seed(5)) > 0.3
    allowed[:, 2] = False
    layers = {
        "encoder": tuple(layer(i, len(WILD), len(WILD)) for i in range(2)),
        "decoder": (
            layer(2, 7, 7, heads=4, shared=2, label="0", allowed=av.masks.causal(7), sinks=torch.ones(4)),
            layer(3, 7, 7, heads=4, label="1", allowed=av.masks.causal(7)),
        ),
        "cross": (
            layer(4, 7, len(WILD), label="0", allowed=allowed),
            layer(5, 7, len(WILD), label="1", allowed=allowed[0]),
        ),
    }
    queries = {"encoder": source, "decoder": target, "cross": target}
    return trace_of(layers, queries, {"encoder": source, "decoder": target, "cross": source})


@pytest.fixture(scope="session")
def model(minilm: av.AttentionModel) -> av.AttentionModel:
    return minilm


@pytest.fixture(scope="session")
def bank(model: av.AttentionModel) -> Trace:
    return model.trace("The bank of the river was flooded")


@pytest.fixture
def show(open_page: Callable[..., Page], tmp_path: Path) -> Callable[..., Page]:
    """Saves an explorer as a file and opens it, drawn: `show(trace, layer=0, head=4, dark=True, width=390)`."""

    def open_explorer(
        trace: Trace, *, stream: str | None = None, layer: int = 0, head: int = 0, **size: object
    ) -> Page:
        file = tmp_path / "explorer.html"
        explore(trace, stream=stream, layer=layer, head=head).save_html(file)
        shown = open_page(file.as_uri(), **size)
        shown.locator('[data-testid="explorer-bars"] li, [data-testid="picture"]').first.wait_for()
        return shown

    return open_explorer
