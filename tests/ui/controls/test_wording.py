"""What stands around a text, beside it and after it, as a person chooses it in a real browser: numbers, not widgets."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pandas
import pytest
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from tests.conftest import OpenPage, Server
from tests.shipped import shipped

Idle = Callable[[Page], None]
BANK = "The bank of the river was flooded"
REPEATED = "/?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=1&head=1"


@pytest.fixture(scope="module")
def app_server(operated: Server) -> Server:
    """The app that also has a decoder that chats, and a hybrid."""
    return operated


def weights(screen: Page) -> pandas.DataFrame:
    with screen.expect_download() as download:
        screen.get_by_role("button", name="Weights (CSV)").click()
    return pandas.read_csv(io.BytesIO(download.value.path().read_bytes()), keep_default_na=False)


def tokens(screen: Page) -> list[str]:
    table = weights(screen).drop_duplicates("query").sort_values("query")
    return table.query_token.tolist()


def parameters(screen: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(screen.url).query).items()}


def panel(screen: Page) -> Locator:
    return screen.locator(".st-key-candidates")


def switch(screen: Page, label: str, idle: Idle) -> None:
    screen.get_by_text(label, exact=True).click()
    idle(screen)


def test_a_second_sentence_is_read_together_with_the_first(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/?layer=5&head=6")
    alone = tokens(screen)
    screen.get_by_label("Second sentence", exact=True).fill("A boat drifted past")
    screen.get_by_label("Second sentence", exact=True).press("Control+Enter")
    idle(screen)
    assert tokens(screen) == [*alone, "a", "boat", "drifted", "past", "[SEP]"]
    assert parameters(screen)["second"] == "A boat drifted past"
    expect(screen.get_by_test_id("explorer-legend")).to_contain_text("second sentence")
    expect(screen.get_by_text("[CLS] and [SEP] were added around both")).to_be_visible()
    ours = weights(screen).pivot(index="query", columns="key", values="weight").to_numpy()
    trace = shipped("all-MiniLM-L6-v2").trace(BANK, "A boat drifted past")
    assert abs(ours - trace.weights(5, 6).numpy()).max() < 1e-5


def test_a_link_with_two_sentences_holds_on_every_page(stay: OpenPage) -> None:
    for place in ("/", "/steps", "/masks"):
        screen = stay(f"{place}?second=A+boat")
        assert len(tokens(screen)) == 12, place
        expect(screen.get_by_label("Second sentence", exact=True)).to_have_value("A boat")


def test_a_batch_has_a_second_sentence_of_its_own(page: OpenPage) -> None:
    screen = page("/masks?mask=padding&second=A+boat")
    expect(screen.get_by_label("Second sentence", exact=True)).to_have_count(1)
    assert tokens(screen)[:4] == ["[CLS]", "a", "boat", "[SEP]"]
    screen.get_by_role("link", name="Explore").click()
    expect(screen.get_by_test_id("explorer")).to_be_visible()
    expect(screen.get_by_label("Sentence", exact=True)).to_have_value(BANK)
    expect(screen.get_by_label("Second sentence", exact=True)).to_have_value("")
    assert "second" not in parameters(screen)


def test_a_second_sentence_without_a_first_is_answered_in_words(stay: OpenPage) -> None:
    screen = stay("/?text=+&second=A+boat")
    expect(screen.get_by_test_id("stAlert")).to_contain_text("The first sentence is empty")


def test_without_special_tokens_two_rows_go(page: OpenPage, idle: Idle) -> None:
    screen = page("/")
    with_them = tokens(screen)
    switch(screen, "Special tokens", idle)
    assert tokens(screen) == with_them[1:-1]
    assert parameters(screen)["special"] == "off"
    expect(screen.get_by_text("Nothing was added around the text")).to_be_visible()
    expect(screen.get_by_text(re.compile("^Verified"))).to_be_visible()
    screen.go_back()
    idle(screen)
    assert tokens(screen) == with_them


def test_what_comes_next_is_the_softmax_of_the_output(stay: OpenPage) -> None:
    screen = stay(REPEATED)
    trace = shipped("induction").trace("moon cheese frog ring moon cheese")
    likely = shipped("induction").candidates(trace, count=6)
    expect(panel(screen)).to_contain_text("What comes next")
    expect(panel(screen)).to_contain_text("“frog”")
    bars = panel(screen).locator(".bartext")
    expect(bars.nth(6)).to_be_visible()  # Plotly draws a little after the page has come to rest
    texts = bars.all_text_contents()
    shown = [one if one >= 0.0005 else None for one in trace.output[-1].softmax(-1).sort(descending=True).values[:6]]
    assert [text.split()[0] for text in texts[:6]] == likely.token.tolist()
    assert [text.split()[1] for text in texts[:6]] == ["<0.001" if one is None else f"{one:.3f}" for one in shown]
    row = trace.weights(1, 1)[-1]
    assert texts[6].split() == ["frog", f"{row.max():.3f}"]


def test_a_masked_word_is_guessed(stay: OpenPage) -> None:
    screen = stay("/?model=coreference&text=the+woman+dropped+the+cup+because+[MASK]+was+heavy&layer=1&head=2")
    expect(panel(screen)).to_contain_text("What stands behind [MASK]")
    expect(panel(screen).locator(".bartext").first).to_have_text(re.compile(r"^it\s"))


@pytest.mark.parametrize("place", ["/?text=the+bank", "/?model=coreference&text=the+cup", "/?model=scratch&text=a+b"])
def test_where_nothing_is_predicted_nothing_is_shown(stay: OpenPage, place: str) -> None:
    screen = stay(place)
    expect(screen.get_by_test_id("explorer")).to_be_visible()
    expect(panel(screen)).to_have_count(0)
    expect(screen.get_by_role("button", name="One more token")).to_have_count(0)
    expect(screen.get_by_text("Chat template", exact=True)).to_have_count(0)


def test_a_decoder_goes_on_token_by_token(page: OpenPage, idle: Idle) -> None:
    screen = page(f"{REPEATED}&more=3")
    assert tokens(screen) == "<s> moon cheese frog ring moon cheese frog ring moon".split()
    expect(screen.get_by_text("The last 3 tokens are the model's own", exact=True)).to_be_visible()
    expect(screen.get_by_test_id("explorer-legend")).to_contain_text("the model's own")
    expect(screen.get_by_label("Second sentence", exact=True)).to_have_count(0)
    screen.get_by_role("button", name="One more token").click()
    idle(screen)
    assert tokens(screen)[-4:] == "frog ring moon cheese".split()
    assert parameters(screen)["more"] == "4"
    screen.go_back()
    idle(screen)
    assert len(tokens(screen)) == 10


def test_steps_show_what_the_model_added_and_masks_leave_it_out(stay: OpenPage) -> None:
    link = REPEATED.removeprefix("/") + "&more=3"
    assert len(tokens(stay(f"/steps{link}"))) == 10
    screen = stay(f"/masks{link}")
    assert len(tokens(screen)) == 7
    expect(screen.get_by_text("the tokens that the model went on by are left out here")).to_be_visible()
    assert parameters(screen)["more"] == "3"


def test_a_model_that_is_full_says_so(stay: OpenPage) -> None:
    screen = stay(f"/?model=lists&text={quote('reverse c a f : f a c')}&more=40")
    expect(screen.get_by_text(re.compile(r"^The model stopped after \d+ of 40 tokens: "))).to_be_visible()


def test_a_chat_template_stands_around_the_text(stay: OpenPage, models: Path, idle: Idle) -> None:
    screen = stay(f"/?model={quote(str(models / 'chat'), safe='')}&text=the+bank&head=0")
    assert tokens(screen) == ["the", "Ġbank"]
    switch(screen, "Chat template", idle)
    assert tokens(screen) == ["<|user|>", "the", "Ġbank", "<|answer|>"]
    assert parameters(screen)["chat"] == "on"
    expect(screen.get_by_text("The chat template added <|user|> and <|answer|>")).to_be_visible()
    expect(screen.get_by_text("Special tokens", exact=True)).to_have_count(0)


def test_a_hybrid_says_which_layers_have_attention(stay: OpenPage, models: Path) -> None:
    screen = stay(f"/?model={quote(str(models / 'hybrid'), safe='')}&text=the+bank&head=0&layer=0")
    found = av.load(str(models / "hybrid"))
    assert isinstance(found, av.AttentionModel)
    for number in found.layers_without_attention:
        expect(screen.get_by_text(re.compile(rf"^Layers? .*{number}.* of this model ha"))).to_be_visible()
    label = found.trace("the").layer(0).label
    expect(screen.get_by_role("combobox", name="Layer")).to_have_value(f"0 ({label})")
