"""Layers without a softmax in the explorer: the browser gets a mixer's own numbers, and draws them with their signs."""

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

import attention_viz as av
from attention_viz.explorer import explore, mixers, pack
from attention_viz.explorer.mixers import pack_channel
from attention_viz.explorer.packet import read_packet
from attention_viz.trace.trace import Trace
from tests.recording.mixers.hybrids import build
from tests.shipped import shipped

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
IDS = (torch.arange(25)[None] * 7) % 97


@pytest.fixture(scope="module")
def delta() -> Trace:
    return av.wrap(build("qwen3_next")).trace_ids(IDS)


@pytest.fixture(scope="module")
def scan() -> Trace:
    return av.wrap(build("jamba")).trace_ids(IDS)


def read(trace: Trace) -> tuple[dict[str, Any], Callable[[list[int]], np.ndarray]]:
    """The first mixer's layer, and its arrays."""
    header, body = read_packet(pack(trace))
    (layer,) = next(one for one in header["streams"] if one["name"] == "mixer")["layers"]
    return layer, lambda at: np.frombuffer(zlib.decompress(body[at[0] : at[0] + at[1]]), "<f4")


def test_the_browser_gets_the_signed_weights_that_ran_and_the_lengths_of_values(delta: Trace) -> None:
    layer, numbers = read(delta)
    call = delta.attention(0, "mixer")
    assert (layer["kind"], layer["per"], layer["heads"], layer["number"]) == ("gated delta", "head", 4, 0)
    assert layer["convolved"] == build("qwen3_next").config.linear_conv_kernel_dim
    cells = numbers(layer["cells"]).reshape(4, 25, 25)
    assert (cells < 0).any() and np.array_equal(cells, call.weights.numpy())
    arrived = np.abs(cells) * numbers(layer["lengths"]).reshape(4, 1, 25)
    assert np.allclose(arrived, call.contributions.numpy(), rtol=1e-5, atol=0)


def test_channels_come_as_one_picture_of_all_that_arrives(scan: Trace) -> None:
    layer, numbers = read(scan)
    call = scan.attention(0, "mixer")
    assert (layer["per"], layer["heads"], layer["channels"]) == ("channel", 1, call.shape[0])
    each = [(call.weights[one].double() * call.value[one, :, 0].double()) ** 2 for one in range(call.shape[0])]
    expected = torch.stack(each).sum(dim=0).sqrt()
    assert np.allclose(numbers(layer["cells"]).reshape(25, 25), expected.numpy(), rtol=1e-4, atol=1e-7)


def test_a_channel_comes_alone_with_its_signs_and_its_skip(scan: Trace) -> None:
    packed = pack_channel(scan, "mixer", 0, 17)
    assert packed is not None
    header, body = read_packet(packed)
    cells, lengths, skip = (
        np.frombuffer(zlib.decompress(body[at : at + count]), "<f4")
        for at, count in (header["cells"], header["lengths"], header["skip"])
    )
    call = scan.attention(0, "mixer").head(17)
    without = dataclasses.replace(call, skip=None)
    assert np.array_equal(cells.reshape(25, 25), call.weights.numpy()) and (cells < 0).any()
    assert np.allclose(lengths, call.value[:, 0].abs().numpy())
    assert np.allclose(np.diag(cells.reshape(25, 25)) - skip, without.weights.diagonal().numpy(), atol=1e-5)
    assert header["of"] == read_packet(pack(scan))[0]["channels"]


def test_a_trace_that_is_too_large_keeps_its_layers_without_their_matrices(
    delta: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attention_viz.explorer.mixers.LONGEST_MATRIX", 24)
    assert read(delta)[0]["cells"] is None and mixers.mixer_cells(delta.mixers["mixer"]) == 4 * 25 * 25


def test_many_heads_come_in_small_and_one_by_one(delta: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_viz.explorer.mixers.MOST_CELLS_AT_ONCE", 4 * 25 * 25 - 1)
    monkeypatch.setattr("attention_viz.explorer.mixers.SIDE", 5)
    header, body = read_packet(pack(delta, hosted=True))
    (layer,) = next(one for one in header["streams"] if one["name"] == "mixer")["layers"]
    assert layer["cells"] is None and layer["small"]["side"] == [5, 5]
    call, rows = delta.attention(0, "mixer"), [2, 7, 12, 17, 22]
    for which, exact in (("signs", call.weights), ("arrivals", call.contributions)):
        at, count = layer["small"][which]["at"]
        codes = np.frombuffer(zlib.decompress(body[at : at + count]), np.int8).reshape(4, 5, 5)
        for head, most in enumerate(layer["small"][which]["most"]):
            cells = exact[head, rows].numpy().reshape(5, 5, 5)
            largest = np.take_along_axis(cells, np.abs(cells).argmax(2)[:, :, None], 2)[:, :, 0]
            assert most == np.abs(largest).max()
            for row, column in np.ndindex(5, 5):
                if 5 * column > rows[row]:
                    assert codes[head, row, column] == -128
                else:
                    place = np.clip(1 + np.log10(max(abs(largest[row, column]) / most, 1e-30)) / 4, 0, 1)
                    assert codes[head, row, column] == pytest.approx(127 * np.sign(largest[row, column]) * place, abs=1)
    packed = pack_channel(delta, "mixer", 0, 3)
    assert packed is not None and read_packet(packed)[0]["of"] == header["channels"]
    (at, count), alone = read_packet(packed)[0]["cells"], read_packet(packed)[1]
    cells = np.frombuffer(zlib.decompress(alone[at : at + count]), "<f4")
    # A head alone is computed in other steps: its last digits may differ.
    assert np.allclose(cells.reshape(25, 25), call.weights[3].numpy(), rtol=1e-5, atol=1e-7)


def test_a_model_without_softmax_attention_is_drawn_and_its_skip_set_apart(
    open_page: Callable[..., Page], tmp_path: Any
) -> None:
    trace = shipped("recall-mamba").trace("hugo pink , ida gold , karl white , ida black . ida ?")
    explore(trace, layer=1, head=1).save_html(tmp_path / "pure.html")
    page = open_page((tmp_path / "pure.html").as_uri())
    expect(page.get_by_test_id("explorer-readout")).to_have_text("Head 1·1 · SSD")
    expect(page.get_by_test_id("explorer-mixing")).to_contain_text("the diagonal adds the skip")
    expect(page.get_by_test_id("explorer-sentence")).not_to_be_empty()
    assert "attends" not in page.get_by_test_id("explorer").inner_text()


def test_a_head_is_drawn_with_its_signs_in_one_grid_with_softmax_layers(
    delta: Trace, open_page: Callable[..., Page], tmp_path: Any
) -> None:
    explore(delta, stream="mixer", layer=0, head=1).save_html(tmp_path / "mixer.html")
    page = open_page((tmp_path / "mixer.html").as_uri())
    expect(page.get_by_test_id("explorer-readout")).to_have_text("Head 0·1 · gated delta")
    grid = page.get_by_test_id("explorer-grid")
    expect(grid.get_by_role("columnheader")).to_have_text(["Head", "0 · gated delta", "1 · softmax"])
    table = page.get_by_test_id("explorer-table")
    table.locator("summary").click()
    cells = table.locator("tbody tr").nth(24).locator("td").all_text_contents()
    row = delta.weights(0, 1, "mixer")[24].tolist()
    read_back = [float(one.replace("−", "-").replace(" × 10", "e").translate(RAISED)) for one in cells]
    assert read_back == [float(f"{weight:.2e}") for weight in row] and min(row) < 0
    page.get_by_role("radio", name="What arrived").check()
    expect(page.get_by_test_id("explorer-sentence")).to_contain_text("a vector of length")
    page.get_by_role("gridcell", name="Layer 1 · softmax head 2", exact=True).click()
    expect(page.get_by_test_id("explorer-readout")).to_have_text("Head 1·2")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
