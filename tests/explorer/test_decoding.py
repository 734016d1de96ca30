"""The browser reads exactly what Python packed."""

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from attention_viz.explorer import component_source, pack
from attention_viz.explorer.payload import ERROR
from attention_viz.trace.trace import Trace

READ = """async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    const recording = new Recording(shifted.subarray(3));
    const streams = {};
    for (const {name, layers, queries, keys} of recording.streams) {
        streams[name] = [];
        for (let layer = 0; layer < layers.length; layer++) {
            const heads = await recording.load(name, layer);
            const cells = (read) => Array.from({length: queries.count}, (_, query) =>
                Array.from({length: keys.count}, (_, key) => read(query, key)));
            streams[name].push(heads.map((head) => ({
                weights: cells((query, key) => head.at(query, key)),
                blocked: cells((query, key) => head.isBlocked(query, key)),
                sums: Array.from(head.sums),
            })));
        }
    }
    return streams;
}"""


@pytest.fixture
def read(open_page: Callable[..., Page]) -> Callable[[Trace], dict[str, Any]]:
    """Packs a trace and reads it in the browser, from bytes that lie at an odd address as Streamlit's do."""
    page = open_page("about:blank")
    page.add_script_tag(content=component_source()[2] + "\nglobalThis.Recording = Recording;", type="module")
    page.wait_for_function("globalThis.Recording !== undefined")  # a module runs once the page has come so far
    return lambda trace: page.evaluate(READ, base64.b64encode(pack(trace)).decode())


def test_weights_blocked_cells_and_sums_arrive_as_they_are(read: Callable[..., Any], many_kinds: Trace) -> None:
    streams = read(many_kinds)
    assert list(streams) == list(many_kinds.streams)
    for stream, layers in streams.items():
        for number, heads in enumerate(layers):
            call = many_kinds.attention(number, stream)
            exact = call.weights.numpy()
            allowed = np.ones(exact.shape, bool) if call.allowed is None else np.broadcast_to(call.allowed, exact.shape)
            assert len(heads) == exact.shape[0]
            for got, weights, open_cells in zip(heads, exact, allowed, strict=True):
                assert np.abs(np.array(got["weights"]) - weights).max() <= ERROR
                np.testing.assert_array_equal(got["blocked"], ~open_cells)
                np.testing.assert_allclose(got["sums"], weights.sum(-1), atol=1e-5)


def test_a_real_sentence_arrives_as_it_is(read: Callable[..., Any], bank: Trace) -> None:
    layers = read(bank)["encoder"]
    for number, heads in enumerate(layers):
        exact = bank.attention(number).weights.numpy()
        assert np.abs(np.array([head["weights"] for head in heads]) - exact).max() <= ERROR
