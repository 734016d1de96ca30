"""The components in a stranger's app: chosen apart, set from Python, and nothing that leads to our own pages."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "own-app.md"
# Two texts whose heads come one at a time.
LONG = """
import streamlit as st
import torch

import attention_viz as av
from attention_viz.streamlit import explorer


@st.cache_resource
def trace(seed):
    made = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, 24, 1_050, 4, generator=made) for _ in range(3))
    return av.Trace.from_qkv(q, k, v, layout="bhsd")


for number, side in enumerate(st.columns(2)):
    with side:
        chosen = explorer(trace(number), key=f"text {number}")
        st.write(f"Text {number} shows head {chosen.head}.")
"""
ALL = """
import streamlit as st

import attention_viz as av
from attention_viz.streamlit import atlas, mask, steps, why

model = st.cache_resource(lambda: av.load("induction"))()
trace = st.cache_resource(lambda: model.trace("moon ring moon"))()
chosen = atlas(trace, key="atlas")
st.write(f"Atlas: {chosen.layer}·{chosen.head}")
pair = steps(trace, key="steps", selection={"layer": chosen.layer, "head": chosen.head})
st.write(f"Pair: {pair.layer}·{pair.head} {pair.query} to {pair.key}")
writer = why(trace, av.Logit("ring"), key="why")
st.write(f"Writer: {writer.layer}·{writer.head}")
masked = mask(model, trace, key="mask")
blocked = 0 if masked.allowed is None else int((~masked.allowed).sum())
weight = float(masked.trace.weights(0, 0)[3, 1])
st.write(f"Mask: {blocked} blocked, weight {weight:.3f}")
"""


def in_part(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key}")


def choose(part: Locator, layer: int, head: int) -> None:
    part.get_by_role("gridcell", name=re.compile(rf"^Layer {layer},? head {head}\b")).click()


def example() -> str:
    found = re.search(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_two_explorers_are_chosen_apart_set_from_python_and_followed_by_a_click(
    open_app: Callable[..., Page], idle: Callable[[Page], None]
) -> None:
    page = open_app(example())
    first, second = in_part(page, "first"), in_part(page, "second")
    expect(first.get_by_test_id("explorer-readout")).to_have_text("Head 1·1")
    choose(first, 0, 3)
    expect(page.get_by_text("Chosen: 0·3 and 1·1")).to_be_visible()
    choose(second, 0, 2)
    expect(page.get_by_text("Chosen: 0·3 and 0·2")).to_be_visible()
    page.get_by_role("button", name="Show layer 1, head 2").click()
    expect(page.get_by_text("Chosen: 0·3 and 1·2")).to_be_visible()
    expect(second.get_by_test_id("explorer-readout")).to_have_text("Head 1·2")
    expect(first.get_by_test_id("explorer-readout")).to_have_text("Head 0·3")
    choose(second, 1, 0)
    expect(page.get_by_text("Chosen: 0·3 and 1·0")).to_be_visible()
    idle(page)
    expect(second.get_by_test_id("explorer-readout")).to_have_text("Head 1·0")
    # The same again from Python counts again, once it was something else.
    page.get_by_role("button", name="Show layer 1, head 2").click()
    expect(second.get_by_test_id("explorer-readout")).to_have_text("Head 1·2")


def test_the_steps_follow_the_explorer_and_then_their_own_pair(open_app: Callable[..., Page]) -> None:
    page = open_app(example())
    expect(page.get_by_text("Pair: 3 → 2")).to_be_visible()
    steps = in_part(page, "steps")
    steps.get_by_role("group", name=re.compile("key", re.IGNORECASE)).get_by_role("button").first.click()
    expect(page.get_by_text("Pair: 3 → 0")).to_be_visible()
    choose(in_part(page, "first"), 0, 3)
    expect(page.get_by_text("Chosen: 0·3 and 1·1")).to_be_visible()
    expect(steps.get_by_test_id("pipeline-claim")).not_to_contain_text("0.91")


def test_nothing_leads_to_pages_that_are_not_there(open_app: Callable[..., Page]) -> None:
    page = open_app(example())
    for words in ("How was", "Does it matter", "Why"):
        expect(page.get_by_role("button", name=re.compile(words))).to_have_count(0)
    expect(in_part(page, "steps").locator(".av-open").first).to_be_hidden()


def test_long_texts_beside_each_other_get_their_heads_one_at_a_time(open_app: Callable[..., Page]) -> None:
    page = open_app(LONG)
    parts = page.get_by_test_id("explorer")
    expect(parts).to_have_count(2)
    for number in (0, 1):
        # The matrix is exact once the head is here: it then has numbers to point at.
        expect(parts.nth(number).get_by_text("Strongest links").first).to_be_visible()
        choose(parts.nth(number), 0, 7 + number)
        expect(page.get_by_text(f"Text {number} shows head {7 + number}.")).to_be_visible()
        expect(parts.nth(number).get_by_test_id("explorer-readout")).to_have_text(f"Head 0·{7 + number}")


def test_atlas_steps_why_and_mask_return_what_is_chosen(open_app: Callable[..., Page]) -> None:
    page = open_app(ALL)
    choose(page.get_by_test_id("atlas"), 1, 1)
    expect(page.get_by_text("Atlas: 1·1")).to_be_visible()
    expect(page.get_by_text("Pair: 1·1 3 to 2")).to_be_visible()
    why = page.get_by_test_id("why")
    expect(why.get_by_text("Why “ring” and not", exact=False)).to_be_visible()
    expect(why.get_by_text("Running the model")).to_have_count(0)
    before = page.get_by_text("Writer:").inner_text()
    why.locator(".av-largest-row").nth(1).click()
    expect(page.get_by_text("Writer:")).not_to_have_text(before)
    masks = page.get_by_test_id("masks")
    expect(page.get_by_text("Mask: 0 blocked, weight")).not_to_have_text("Mask: 0 blocked, weight 0.000")
    masks.get_by_role("button", name="window").click()
    expect(page.get_by_text("Mask: 6 blocked, weight 0.000")).to_be_visible()
    expect(masks.get_by_role("button", name="padding")).to_have_count(0)


def test_in_a_narrow_column_nothing_is_wider_than_it(open_app: Callable[..., Page]) -> None:
    page = open_app(ALL, width=390)
    for name in ("atlas", "pipeline", "why", "masks"):
        part = page.get_by_test_id(name)
        assert part.evaluate("one => one.scrollWidth <= one.clientWidth + 4"), name
