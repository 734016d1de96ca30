"""A chat in the browser: folded into its segments, opened again by pointer and keyboard."""

from collections.abc import Callable

import torch
from playwright.sync_api import Page, expect

import attention_viz as av

SEGMENTS = [av.Segment("user", 1, 10), av.Segment("thinking", 12, 20), av.Segment("assistant", 22, 40)]


def chat() -> av.Trace:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 40, 8)
    labels = [f"word{at}" for at in range(40)]
    return av.Trace.from_qkv(query, key, value, av.masks.causal(40), labels=labels).with_segments(SEGMENTS)


def test_a_chat_folds_and_its_segments_open(show: Callable[..., Page]) -> None:
    trace = chat()
    page = show(trace, layer=0, head=1)
    fold, folded = page.get_by_test_id("explorer-fold"), page.get_by_test_id("explorer-segments")
    expect(folded).to_be_hidden()  # a short chat begins unfolded
    fold.click()
    expect(page.get_by_test_id("explorer-heatmap").locator(".av-stage")).to_be_hidden()
    rows = folded.locator("tbody tr").evaluate_all("rows => rows.map(row => [...row.cells].map(one => one.innerText))")
    table = av.segment_table(trace)
    wanted = table[table["head"] == 1].weight.to_numpy().reshape(4, 5)
    assert [row[0].split()[0] for row in rows] == ["user", "thinking", "assistant", "other"]
    for row, weights in zip(rows, wanted, strict=True):
        assert row[1:] == ["0" if one == 0 else "<0.01" if one < 0.005 else f"{one:.2f}" for one in weights]
    cell = folded.get_by_role("button", name="assistant to thinking")
    cell.press("ArrowLeft")
    expect(folded.get_by_role("button", name="assistant to user")).to_be_focused()
    cell.press("Enter")
    expect(folded).to_be_hidden()
    expect(page.get_by_test_id("explorer-part")).to_contain_text("assistant to thinking: 0.")
    expect(page.get_by_role("button", name="Zoom out")).to_be_enabled()
    fold.click()
    expect(folded).to_be_visible()
    width, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= room


def test_a_text_without_segments_has_nothing_to_fold(show: Callable[..., Page]) -> None:
    page = show(chat().with_segments([]), layer=0, head=1)
    expect(page.get_by_test_id("explorer-fold")).to_be_hidden()
    expect(page.get_by_test_id("explorer-segments")).to_be_hidden()
