"""The Why page in a browser."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.pages import OpenPage
from tests.ui.screens import Screen

Idle = Callable[[Page], None]


def test_the_sum_opens_a_head_is_chosen_and_its_ablation_is_shown(stay: OpenPage) -> None:
    page = stay("/why?model=induction&text=moon+ring+moon")
    why = page.get_by_test_id("why")
    expect(why.locator(".av-question")).to_contain_text("and not")
    part = why.locator(".av-opener[aria-expanded=false]").first
    part.click()
    expect(why.locator(".av-part").first.locator(".av-sumline").first).to_be_visible()
    second = why.locator(".av-largest-row").nth(1)
    name = second.get_attribute("data-head")
    assert name is not None
    second.click()
    layer, head = name.split()
    expect(why.locator(".av-meaning h3")).to_contain_text(f"Layer {layer}, head {head}")
    expect(why.locator(".av-meaning h3")).to_contain_text("lost by ablation")
    expect(page.get_by_role("combobox", name="Head")).to_have_value(f"Head {head}")
    chosen = why.locator('.av-spot[aria-selected="true"]')
    chosen.focus()
    before = chosen.get_attribute("aria-label")
    page.keyboard.press("ArrowLeft" if layer != "0" else "ArrowRight")
    expect(why.locator('.av-spot[aria-selected="true"]')).to_be_focused()
    assert why.locator('.av-spot[aria-selected="true"]').get_attribute("aria-label") != before
    page.get_by_text("Ablation", exact=True).click()
    expect(why.get_by_role("heading", name="Effect of ablating each head")).to_be_visible()
    expect(why.locator(".av-spot.av-untried")).to_have_count(0)
    # The story's second step opens the score of the pair that its first is about.
    why.locator(".av-step").nth(1).click()
    expect(why.locator(".av-question")).to_contain_text("→")
    expect(page).to_have_url(re.compile(r"/why\?.*why=pair"))


def test_a_first_layers_keys_are_compared_and_another_word_is_run_in_its_place(stay: OpenPage) -> None:
    page = stay("/why?model=all-MiniLM-L6-v2&text=The+bank+of+the+river+was+flooded&layer=0&head=4&query=2&key=5")
    why = page.get_by_test_id("why")
    expect(why.locator(".av-question")).to_contain_text("“bank” chooses “river” for the word, not for its place")
    expect(why.locator(".av-question small")).to_have_text("5.05 = word +3.88, place +2.05, biases −0.88")
    expect(why.locator("button.av-split-key")).to_have_count(9)
    why.locator('button.av-split-key[data-key="7"]').click()
    expect(why.locator(".av-split-told")).to_contain_text(
        "“river” scores 1.27 more than “flooded”: word +0.57, place +0.66, biases +0.03."
    )
    expect(why.locator(".av-meets h2")).to_contain_text("“river” less “flooded”: +1.27 in all")
    expect(why.locator(".av-exchanged")).to_contain_text("lake")
    why.get_by_label("Another word").fill("riverbank")
    why.get_by_role("button", name="Run").click()
    expect(why.locator(".av-exchange form")).to_contain_text("2 tokens for all-MiniLM-L6-v2")
    why.get_by_label("Another word").fill("spoon")
    page.keyboard.press("Enter")
    expect(why.locator(".av-exchanged")).to_contain_text("spoon")
    expect(why.locator(".av-exchange form")).not_to_contain_text("2 tokens")
    # What was pressed stays, and the other key opens as the pair.
    why.get_by_role("button", name="Explain “flooded” instead").click()
    expect(why.locator(".av-question")).to_contain_text("“bank” prefers “river” to “flooded”")
    expect(page).to_have_url(re.compile("key=7"))


def test_beside_a_number_and_a_head_one_gets_to_why_and_to_what_becomes_without_it(stay: OpenPage, idle: Idle) -> None:
    page = stay("/?model=all-MiniLM-L6-v2&text=the+cat+sat+down&layer=1&head=0&query=2&key=3")
    page.get_by_test_id("explorer-why").click()
    question = page.get_by_test_id("why").locator(".av-question")
    expect(question).to_contain_text("“cat” → “sat”")
    expect(page).to_have_url(re.compile(r"/why\?.*why=pair"))
    idle(page)
    page.get_by_role("link", name="Step by step").click()
    page.get_by_test_id("pipeline-why").click()
    expect(page).to_have_url(re.compile("/why"))
    expect(question).to_contain_text("“cat” → “sat”")
    # Beside the head, the way to what becomes of the model without it.
    idle(page)
    page.get_by_role("link", name="Explore").click()
    page.get_by_test_id("explorer-matters").click()
    page.get_by_role("button", name="More on Heads").click()
    expect(page.get_by_role("button", name="Restore head")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/heads\?.*layer=1&head=0&query=2&key=3.*silence=on"))


def test_two_words_that_may_come_next_are_pressed_on_explore_and_told_apart(stay: OpenPage, idle: Idle) -> None:
    page = stay("/?model=induction&text=moon+ring+moon")
    words = page.locator(".st-key-asked-words")
    first, second = (words.get_by_role("button").nth(at) for at in (0, 1))
    names = first.inner_text(), second.inner_text()
    expect(page.get_by_role("button", name=f"Why “{names[0]}”?")).to_be_visible()
    second.click()
    expect(page.get_by_role("button", name=f"Why “{names[1]}”?")).to_be_visible()
    idle(page)
    first.click()
    page.get_by_role("button", name=f"Why “{names[1]}” and not “{names[0]}”?").click()
    question = page.get_by_test_id("why").locator(".av-question")
    expect(question).to_contain_text(f"Why “{names[1]}” and not “{names[0]}”?")


def test_a_model_of_masked_words_opens_on_a_score_where_none_is_masked() -> None:
    screen = Screen().open("/why?model=coreference")
    assert not screen.alerts and screen.picker("Which number").value == "pair"
    asked = Screen().open("/why?model=coreference&why=word")
    assert "predicts only masked words" in "".join(asked.alerts)
